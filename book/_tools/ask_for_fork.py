"""``python ask_for_fork.py SOCKET -m MODULE …`` does what ``python -m MODULE …`` does, in a fork of a server.

The fork gets this process's environment, working directory and standard streams. This process imports very little.
"""

import json
import os
import signal
import socket
import sys

signal.signal(signal.SIGINT, signal.SIG_IGN)  # Jupyter interrupts a kernel before it asks the kernel itself to end
_, file, *arguments = sys.argv
with socket.socket(socket.AF_UNIX) as server:
    server.connect(file)
    asked = [os.getcwd(), dict(os.environ), arguments]  # noqa: PTH109
    socket.send_fds(server, [json.dumps(asked).encode()], [0, 1, 2])
    code = server.recv(1) or b"\1"
sys.exit(code[0])
