"""The course's language model, which continues Python code: ``attnlib.hf.load(stdlib_lm.FOLDER)``.

README.md says what it was trained on, and what it can do. ``python -m training`` trains it again.
"""

from pathlib import Path

FOLDER = Path(__file__).parent  # in the layout of a Llama checkpoint
