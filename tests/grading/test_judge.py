import pytest
from nbformat.v4 import new_output

from grading.judge import refusal


def result(text: str) -> list:
    return [new_output("execute_result", data={"text/plain": text})]


@pytest.mark.parametrize("text", ["0.0", "2.0", "0.6666666666666666", "1e-05", "1.5e-07"])
def test_a_float_from_zero_to_the_points_counts(text):
    assert refusal(result(text), 2) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2",
        "-0.5",
        "2.5",
        "1e+300",
        "nan",
        "inf",
        "True",
        "'2.0'",
        "np.float64(2.0)",
        "tensor(2.)",
        "2.0 ",
        "٢.٠",
        "1_0.0",
    ],
)
def test_nothing_else_counts(text):
    assert refusal(result(text), 2)


def test_a_figure_beside_the_result_changes_nothing():
    figure = new_output("display_data", data={"image/png": "", "text/plain": "3.0"})
    assert refusal([figure, *result("1.0")], 2) is None
    assert refusal([figure], 2)


def test_a_long_result_is_not_quoted_in_full():
    assert len(refusal(result("x" * 10_000), 2) or "") < 200
