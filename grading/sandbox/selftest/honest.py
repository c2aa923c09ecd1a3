"""What honest submissions do, which has to work in the box."""

from dataclasses import dataclass

from grading.sandbox.execute import execute
from grading.sandbox.host import Host
from grading.sandbox.selftest.attempt import AttemptResult
from grading.sandbox.selftest.exceed_limits import verdict
from grading.task import Step, Task


@dataclass(frozen=True)
class Work:
    """A cell, and what it has to print, or the kind of output that it has to show."""

    name: str
    source: str
    expected: str


GRADIENTS = """import torch
x = torch.ones(2, 3, requires_grad=True)
torch.softmax(x @ x.T, -1).square().sum().backward()
print(tuple(x.grad.shape))
"""
BLAS = """import numpy, torch
from threadpoolctl import threadpool_info
print({pool["num_threads"] for pool in threadpool_info()} | {torch.get_num_threads()})
"""
FILE = """import tempfile
with tempfile.NamedTemporaryFile("w+") as file:
    file.write("kept"); file.seek(0); print(file.read())
"""
THREADS = """from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(4) as pool: print(sum(pool.map(abs, range(-4, 0))))
"""
PROCESSES = """import multiprocessing
with multiprocessing.Pool(2) as pool: print(sum(pool.map(abs, [-3, -4])))
"""
WAITING = """import asyncio
process = await asyncio.create_subprocess_exec("echo", "there", stdout=asyncio.subprocess.PIPE)
print((await process.communicate())[0].decode())
"""
WORKS = (
    Work("numpy", "import numpy as np\nprint((np.ones((200, 200)) @ np.ones((200, 200))).sum())", "8000000.0"),
    Work("torch", GRADIENTS, "(2, 3)"),
    Work("figure", "import matplotlib.pyplot as plt\nplt.plot([1, 2]); plt.title('$x_1$'); plt.show()", "image/png"),
    Work("display", "from IPython.display import HTML, display\ndisplay(HTML('<b>bold</b>'))", "text/html"),
    Work("value", "1 + 1", "text/plain"),
    Work("program", "import subprocess\nprint(subprocess.run(['true']).returncode)", "0"),
    Work("line for the shell", "!echo there", "there"),
    Work("temporary file", FILE, "kept"),
    Work("threads", THREADS, "10"),
    Work("processes", PROCESSES, "7"),
    Work("asyncio", WAITING, "there"),
    Work("processor", BLAS, "{1}"),
    Work("library", "import attnlib, attnlib.numpy, attnlib.torch, attnlib.plotting\nprint('there')", "there"),
)


def worked(host: Host, work: Work) -> AttemptResult:
    """Run a cell of an honest submission, and say whether it did what it should."""
    result = execute(host, Task((Step("work", work.source),), host.limits))
    kinds = [kind for output in result.outputs.get(0, []) for kind in output.get("data", {})]
    happened = ", ".join(kinds) if kinds and not result.stops else verdict(result)
    tried = work.source.splitlines()[0][:40]
    return AttemptResult("work", work.name, tried, work.expected, happened, work.expected in happened)
