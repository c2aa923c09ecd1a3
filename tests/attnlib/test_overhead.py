"""What a short call costs besides its arithmetic: functions of attnlib that are called on the way to it.

A time would depend on the machine and on what else it does; `benchmarks/short.py` measures times.
"""

import sys

from backends import Torch
from modules import ATTENTIONS


def calls(function):
    """How many functions of attnlib one call of this function needs."""
    found = []

    def note(frame, event, _):
        if event == "call" and "attnlib" in frame.f_globals.get("__name__", "").split("."):
            found.append(frame.f_code.co_name)

    function()  # imports and caches
    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(None)
    return len(found)


def test_attention_with_weights_of_a_few_words(backend):
    layer = ATTENTIONS["attention"]
    module, inputs = layer.build(backend), layer.inputs(backend)
    most = 50 if isinstance(backend, Torch) else 70  # of NumPy's layers the linear ones are attnlib's, too
    assert calls(lambda: module(**inputs, need_weights=True)) <= most
