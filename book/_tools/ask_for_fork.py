"""``python ask_for_fork.py SOCKET -m MODULE …`` does what ``python -m MODULE …`` does, in a fork of a server.

Given any other option first, this process becomes an ordinary Python.
The fork gets this process's environment, working directory and standard streams. To start at once, this process imports
very little.
"""

import json
import os
import signal
import socket
import sys

signal.signal(signal.SIGINT, signal.SIG_IGN)  # Jupyter interrupts a kernel before it shuts it down
_, file, *arguments = sys.argv
if arguments[0] != "-m":
    os.execv(sys.executable, [sys.executable, *arguments])
with socket.socket(socket.AF_UNIX) as server:
    server.connect(file)
    asked = json.dumps([os.getcwd(), dict(os.environ), arguments[1:]]).encode()  # noqa: PTH109
    socket.send_fds(server, [len(asked).to_bytes(8, "big")], [0, 1, 2])
    server.sendall(asked)
    code = server.recv(1) or b"\1"
sys.exit(code[0])
