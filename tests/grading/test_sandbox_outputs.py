"""What a cell shows is stored within a limit, however little the process had to send for it."""

import json
import random

from grading.sandbox.execute import _Run
from grading.sandbox.limits import Limits
from grading.sandbox.outputs import CellOutputs
from grading.task import Step, Task

MOST = 3_000  # bytes


def display(text, name=None, kind="display_data"):
    return {"output_type": kind, "data": {"text/plain": text}, "metadata": {}, "display_id": name}


def update(text, name):
    return display(text, name, "update_display_data")


def shown(outputs):
    return [output.get("data", {}).get("text/plain", output.get("text")) for output in outputs.shown]


def test_an_update_counts_for_each_display_that_it_changes():
    outputs = CellOutputs(MOST)
    assert all(outputs.add(display("x", "a")) for _ in range(10))
    assert outputs.add(display("y", "b"))
    assert outputs.add(update("x" * 100, "a"))
    assert not outputs.add(update("x" * 300, "a"))
    assert shown(outputs) == ["x" * 100] * 10 + ["y"]
    assert outputs.add(update("y" * 300, "b"))
    assert outputs.add(update("x", "a"))
    assert outputs.add(update("y" * 2_000, "b")), "what became smaller leaves room"
    assert outputs.add({"output_type": "clear_output"})
    assert (outputs.size, outputs.shown) == (0, [])


def test_whatever_is_sent_no_more_than_the_limit_is_stored():
    draw = random.Random(3)
    for _ in range(20):
        outputs = CellOutputs(MOST)
        for _ in range(100):
            text, name = draw.choice("xé") * draw.randrange(400), draw.choice(["a", "b", None])
            stream = {"output_type": "stream", "name": draw.choice(["stdout", "stderr"]), "text": text}
            outputs.add(draw.choice([display(text, name), update(text, name), stream, stream]))
            stored = [len(json.dumps(output)) for output in outputs.shown]
            assert sum(stored) <= outputs.size <= MOST


class Process:
    """It sends the same few messages for each cell: ten displays, and one update for all of them."""

    cut = False

    def ask(self, message, most):
        sent = [display("x", "a") for _ in range(10)] + [update("x" * 1_000, "a")]
        self.left = most - sum(len(json.dumps(output)) for output in sent)
        yield from ({"output": output} for output in sent)


def test_what_all_cells_show_is_bounded_by_the_limit_of_the_notebook():
    limits = Limits(cell_output=10_000, notebook_output=50_000)
    run, process = _Run(Task(tuple(Step(f"{n}") for n in range(30)), limits)), Process()
    for i, step in enumerate(run.task.steps):
        run._do(process, i, step)
    stored = [len(json.dumps(outputs)) for outputs in run.result.outputs.values()]
    assert stored[:9] == stored[:1] * 9
    assert stored[0] > 10_000
    assert sum(stored) < 2.1 * limits.notebook_output
    assert run.result.cut == set(range(9, 30))
