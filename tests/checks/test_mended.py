"""In the tasks that give a faulty function, the function of an earlier task earns nothing, whatever it is called."""

import functools

import pytest
import torch
from correct_solutions import CORRECT_SOLUTIONS
from evaluations import examine_again

# What an answer is examined as, and the earlier task whose function does nearly the same.
EARLIER = {
    "gaussian_without_differences": "gaussian",
    "attention_with_counts": "scaled_dot_product_attention",
    "head_contributions": "multi_head_attention",
    "attention_with_bias": "masked_attention",
    "attention_in_blocks": "scaled_dot_product_attention",
    "rope_attention_with_cache": "grouped_query_attention",
    "apply_rope": "apply_rope",
    "weights_and_output": "scaled_dot_product_attention",
}
# Styles of the earlier task that do without the large array, as this one asks.
WITHIN_MEMORY = {
    ("gaussian_without_differences", "the square multiplied out"),
    ("gaussian_without_differences", "Python loops with math.dist"),
    ("gaussian_without_differences", "recursion over the batch, key after key"),
    ("attention_in_blocks", "Python loops"),
    ("attention_in_blocks", "one key after another, with a running maximum"),
    ("attention_in_blocks", "causal by loops over what may be seen"),
}


def disguised(earlier):
    """Yield a function as it is, called by a function, with its arguments bound, and with the extra ones dropped."""
    yield earlier
    yield lambda *arrays, **options: earlier(*arrays, **options)
    yield functools.partial(earlier)
    yield lambda *arrays, **options: earlier(*arrays[:-1], **options)


def through_numpy(earlier):
    """Return a function of tensors that takes a detour through one of arrays, on which gradients are lost."""
    return lambda *tensors, **options: torch.from_numpy(earlier(*(x.detach().numpy() for x in tensors), **options))


@pytest.mark.parametrize(("name", "earlier"), EARLIER.items())
def test_the_function_of_an_earlier_task_earns_nothing(name, earlier):
    backend = "torch" if name == "apply_rope" else "numpy"
    for text, function in CORRECT_SOLUTIONS[earlier, "numpy"].items():
        if (name, text) in WITHIN_MEMORY:
            continue
        answers = [*disguised(function), *([through_numpy(function)] if backend == "torch" else [])]
        assert [examine_again(name, answer, backend, 0).score for answer in answers] == [0.0] * len(answers), text


@pytest.mark.parametrize("name", ["gaussian_without_differences", "attention_in_blocks"])
def test_an_array_that_is_too_large_is_named(name):
    earlier = next(iter(CORRECT_SOLUTIONS[EARLIER[name], "numpy"].values()))
    report = examine_again(name, earlier, "numpy", 0)
    assert report.mistake == "too-much-memory"
    assert "MB at once" in report.message
