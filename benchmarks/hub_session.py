"""Somebody who is signed in to a JupyterHub: starts servers, calls their API, and runs commands in a kernel there."""

import json
import time
import uuid
from collections.abc import Callable
from typing import Any

import requests
from tornado.httpclient import HTTPRequest
from tornado.ioloop import IOLoop
from tornado.websocket import websocket_connect

RUN = """
import subprocess
_done = subprocess.run(["bash", "-c", {command!r}], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
print(_done.returncode)
print(_done.stdout)
"""
TIMEOUT = 300  # seconds that a request or a command may take


def until(ready: Callable[[], Any], what: str, seconds: float = 120) -> Any:
    """Wait until something is true, and return it."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := ready():
            return found
        time.sleep(0.2)
    raise RuntimeError(f"{what}: still not true after {seconds:.0f} seconds")


class Session:
    """What somebody does at a hub after signing in with a password, as a browser would."""

    def __init__(self, hub: str, name: str, password: str) -> None:
        self.hub, self.name, self._kernels = hub, name, dict[str, str]()
        with requests.Session() as browser:
            browser.get(f"{hub}/hub/login", timeout=TIMEOUT).raise_for_status()
            told = {"username": name, "password": password, "_xsrf": browser.cookies["_xsrf"]}
            answer = browser.post(f"{hub}/hub/login", data=told, allow_redirects=False, timeout=TIMEOUT)
            self.signed_in = answer.status_code == requests.codes.found
            if self.signed_in:
                browser.get(f"{hub}/hub/token", timeout=TIMEOUT)  # which sets the cookie for the next line
                allowed = {"X-XSRFToken": browser.cookies["_xsrf"], "Referer": f"{hub}/hub/token"}
                token = browser.post(f"{hub}/hub/api/users/{name}/tokens", headers=allowed, timeout=TIMEOUT)
                token.raise_for_status()
                self._headers = {"Authorization": f"token {token.json()['token']}"}

    def call(self, method: str, path: str, **what: Any) -> requests.Response:
        """Call the API of the hub, or of a server."""
        return requests.request(method, self.hub + path, headers=self._headers, timeout=TIMEOUT, **what)

    def start(self, server: str) -> int:
        """Start somebody's server, and return the status of the request to do so, once it runs."""
        status = self.call("POST", f"/hub/api/users/{server}/server").status_code
        if status < requests.codes.bad_request:
            until(lambda: self.call("GET", f"/user/{server}/api/status").ok, f"the server of {server} runs")
        return status

    def run(self, command: str, server: str = "") -> tuple[int, str]:
        """Run a command of the shell in a kernel on a server, and return its exit status and its output."""
        server = server or self.name
        if server not in self._kernels:
            self._kernels[server] = self.call("POST", f"/user/{server}/api/kernels", json={"path": ""}).json()["id"]
        printed = IOLoop().run_sync(lambda: self._printed(server, RUN.format(command=command)), timeout=TIMEOUT)
        status, _, output = printed.partition("\n")
        return int(status), output.strip()

    async def _printed(self, server: str, code: str) -> str:
        path = f"/user/{server}/api/kernels/{self._kernels[server]}/channels"
        request = HTTPRequest(self.hub.replace("http", "ws", 1) + path, headers=self._headers)
        connection = await websocket_connect(request, max_message_size=100_000_000)
        asked, printed = uuid.uuid4().hex, ""
        header = {"msg_id": asked, "msg_type": "execute_request", "username": "", "session": asked, "version": "5.3"}
        content = {"code": code, "silent": False, "store_history": False, "allow_stdin": False, "stop_on_error": True}
        message = {"header": header, "parent_header": {}, "metadata": {}, "content": content, "channel": "shell"}
        await connection.write_message(json.dumps(message))
        while True:
            said = json.loads(await connection.read_message())
            if said["parent_header"].get("msg_id") != asked:
                continue
            if said["msg_type"] == "stream":
                printed += said["content"]["text"]
            elif said["msg_type"] == "error":
                raise RuntimeError("\n".join(said["content"]["traceback"]))
            elif said["msg_type"] == "status" and said["content"]["execution_state"] == "idle":
                connection.close()
                return printed

    # As nbgrader's assignment list in JupyterLab does -----------------------------------------------------------------

    def assignments(self, action: str = "", assignment: str = "") -> list[dict[str, Any]]:
        """Return the list of assignments, after fetching or submitting one or fetching its feedback."""
        about = {"course_id": "attention"}
        if action:
            asked = about | {"assignment_id": assignment}
            answer = self.call("POST", f"/user/{self.name}/assignments/{action}", params=asked)
        else:
            answer = self.call("GET", f"/user/{self.name}/assignments", params=about)
        answer.raise_for_status()
        if not (said := answer.json())["success"]:
            raise RuntimeError(f"{action} {assignment}: {said}")
        return list(said["value"])

    def read(self, path: str) -> Any:
        """Return the content of a file of the user's server; of a notebook, as JSON."""
        answer = self.call("GET", f"/user/{self.name}/api/contents/{path}")
        answer.raise_for_status()
        return answer.json()["content"]

    def save(self, path: str, notebook: Any) -> None:
        """Save a notebook on the user's server."""
        model = {"type": "notebook", "format": "json", "content": notebook}
        self.call("PUT", f"/user/{self.name}/api/contents/{path}", json=model).raise_for_status()
