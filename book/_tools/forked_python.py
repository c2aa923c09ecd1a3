"""A Python that starts at once, since it is forked from one that has already imported the slow modules.

``python forked_python.py SOCKET MODULE…`` imports the modules and serves ``ask_for_fork.py``, which is run instead of
Python.
"""

import atexit
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

CLIENT = Path(__file__).with_name("ask_for_fork.py")


@contextmanager
def forked_python(*modules: str) -> Iterator[list[str]]:
    """Start a server, and yield the beginning of a command line, to which you add ``-m``, a module and its arguments.

    When the context ends, or this process is killed, all forks are killed. We fork only on Linux: elsewhere, libraries
    that were imported before a fork may not work after it, so the command line starts Python itself.

    A program that dies of a signal has the exit status 1.
    """
    if sys.platform != "linux":
        yield [sys.executable]
        return
    with TemporaryDirectory(dir="/tmp") as folder:  # the path of a socket may have at most 107 characters
        file = str(Path(folder, "socket"))
        command = [sys.executable, __file__, file, *modules]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        with subprocess.Popen(command, **pipes, start_new_session=True) as server:  # type: ignore[call-overload]
            try:
                if server.stdout.readline() != b"ready\n":
                    raise RuntimeError(
                        f"Python could not start with the modules {', '.join(modules)}: the traceback above says why"
                    )
                yield [sys.executable, "-I", "-S", str(CLIENT), file]
            finally:
                os.killpg(server.pid, signal.SIGKILL)


def serve(file: str, *modules: str) -> None:
    """Fork for each request, until the process that started this one closes the standard input of this one."""
    if str(CLIENT.parent) in sys.path:  # forks must not import from there
        sys.path.remove(str(CLIENT.parent))
    for module in modules:
        import_module(module)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # each fork reports its own exit status
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(file)
        server.listen(20)
        print("ready", flush=True)
        while True:
            if sys.stdin in select.select([sys.stdin, server], [], [])[0]:
                os.killpg(0, signal.SIGKILL)
            connection, _ = server.accept()
            if os.fork() == 0:
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                server.close()
                run(connection)
            connection.close()


def run(connection: socket.socket) -> None:
    """Run a module as a program, and report its exit status."""
    length, streams, _, _ = socket.recv_fds(connection, 8, 3)
    with connection.makefile("rb") as request:
        folder, environment, (module, *arguments) = json.loads(request.read(int.from_bytes(length, "big")))
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.path[:0] = [folder, *filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))]
    sys.argv = [module, *arguments]
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()  # or all forks would draw the same numbers
    threading.Thread(target=end_with, args=[connection], daemon=True).start()
    code = 0
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        code = 1
    for thread in threading.enumerate():
        if thread is not threading.main_thread() and not thread.daemon:
            thread.join()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    connection.sendall(bytes([code]))
    os._exit(code)


def end_with(connection: socket.socket) -> None:
    """End this process as soon as the process that asked for it is killed."""
    connection.recv(1)
    os._exit(1)


if __name__ == "__main__":
    serve(*sys.argv[1:])
