"""What is copied: runs found by hand and by brute force; prompts cut from functions; beginnings of programs."""

import numpy as np
import pytest
from tokenizers import Tokenizer

from training.copying import LearnedText, begins_a_program, function_prompts, share_copied
from training.vocabulary import END, train_tokenizer

MODULE = '''import os


def first(a,
          b):
    """Return a."""
    return a + 1 + 2 + 3


class Second:
    def method(self):
        x = [1,
             2]
        return x

    def short(self): return 3


async def third():
    pass
'''


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_tokenizer([MODULE], 270)


def test_runs_are_those_found_by_hand():
    learned = LearnedText(np.array([2, 3, 4, 1, 2, 3, 5]), 7)
    found = learned.run_lengths([2, 3, 4, 5, 1, 2, 3, 6, 5])
    assert found.tolist() == [1, 2, 3, 1, 1, 2, 3, 0, 1]
    assert share_copied(found, 3) == 2 / 7  # the windows 2 3 4 and 1 2 3, of 7
    assert share_copied(found, 1) == 8 / 9


def test_runs_are_the_longest_endings_that_occur_in_the_learned_text():
    rng = np.random.default_rng(1)
    text, tokens = rng.integers(0, 3, 80), rng.integers(0, 3, 50).tolist()
    learned = ",".join(map(str, text)) + ","

    def occurs(run):
        return ",".join(map(str, run)) + "," in learned

    expected = [max(n for n in range(k + 2) if n == 0 or occurs(tokens[k + 1 - n : k + 1])) for k in range(50)]
    assert LearnedText(text, 3).run_lengths(tokens).tolist() == expected
    assert max(expected) > 4


def test_a_run_may_begin_at_the_first_token_and_end_at_the_last():
    assert LearnedText(np.array([4, 0, 4]), 5).run_lengths([4, 0, 4, 4]).tolist() == [1, 2, 3, 1]


def test_prompts_end_after_the_first_line_of_the_body(tokenizer):
    found = function_prompts(tokenizer, {"m.py": MODULE}, 2, 10)
    texts = {one.text for one in found}
    assert texts == {
        'def first(a,\n          b):\n    """Return a."""',
        "    def method(self):\n        x = [1,",
    }
    for one in found:
        assert one.module == "m.py"
        assert len(one.rest) == 10
        assert MODULE.partition(one.text)[2].startswith(tokenizer.decode(one.rest))


def test_the_draw_depends_on_the_seed_alone(tokenizer):
    modules = {f"m{n}.py": MODULE for n in range(9)}
    first, again, other = (function_prompts(tokenizer, modules, 6, 10, seed) for seed in (0, 0, 1))
    assert first == again != other


def test_too_few_functions_are_refused(tokenizer):
    with pytest.raises(ValueError, match="only 2 functions are followed by 10 tokens, but 3 are needed"):
        function_prompts(tokenizer, {"m.py": MODULE}, 3, 10)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("def f(x):\n    return (x +", True),
        ("def f(x):\n    return [x,\n            2,\n  ", True),
        ("    def f(self):\n        return 1\n\nclass B:\n    pass\n", True),
        ('def f():\n    """It\n    is', True),
        ("def f(x):\n    return x)\n", False),
        ("def f(x):\n      a = 1\n    b = 2\n", False),
        ("def f(x):\n    x = '\\d'\n", True),  # with a warning
        ("def f(x):\n    return x +\n    y\n", False),
        (f"def f(x):\n    return x\n{END}\n)\n", True),
        ("def f(x):\n    return 'unfin", True),  # the last line is not complete
    ],
)
def test_beginnings_of_programs(text, expected):
    assert begins_a_program(text) is expected
