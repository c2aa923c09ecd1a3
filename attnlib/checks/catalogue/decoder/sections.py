"""The places of the book that reports send their readers to. A test holds them against the pages' headings."""

from functools import partial

from attnlib.checks.exercise import Section

_block = partial(Section, "book/modern-block.md", "The modern block")
_generating = partial(Section, "book/generating.md", "Generating, one word at a time")
_writing = partial(Section, "book/a-model-that-writes.md", "A model that writes")

RMS_NORM = _block("RMSNorm")
SWIGLU = _block("SwiGLU")
CACHE = _generating("The KV cache")
GROUPS = _generating("Fewer key heads than query heads")
TEMPERATURE = _writing("Temperature")
CUTS = _writing("Top-k and top-p")
LOOP = _writing("The loop that writes")
PREFILL = _writing("Prefill and decode")
ALIGN = Section("book/masks.md", "Masks", "When the numbers of queries and keys differ")
ROPE = Section("book/positions.md", "Positions", "RoPE: turn queries and keys")
LAYOUTS = Section("book/positions.md", "Positions", "Layouts in RoPE, and rotating a part of the width")
BLOCK = Section("book/transformer.md", "A transformer you can read", "Two jobs, one block")
