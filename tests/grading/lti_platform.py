"""A learning management system as a process: `lti1p3platform` checks keys, tokens and scopes, and grades arrive here.

The arguments are the platform's key and the tool's public keys; the port is printed, and `/received` shows all scores.
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import ClassVar
from urllib.parse import parse_qsl

from jwcrypto.jwk import JWK
from lti1p3platform.ltiplatform import LTI1P3PlatformConfAbstract
from lti1p3platform.registration import Registration

SCOPE = "https://purl.imsglobal.org/spec/lti-ags/scope/"
LEARNER = ["http://purl.imsglobal.org/vocab/lis/v2/membership#Learner"]
MEMBERS = [
    {"user_id": "u1", "email": "Ada@example.org", "roles": LEARNER},
    {"user_id": "u2", "lis_person_sourcedid": "bela", "roles": LEARNER},
    {"user_id": "1003", "roles": LEARNER},
    {"user_id": "u5", "email": "twins@example.org", "roles": LEARNER},
    {"user_id": "u6", "email": "twins@example.org", "roles": LEARNER},
    {"user_id": "u7", "email": "emmy@example.org", "roles": ["membership#Instructor"]},
]


class Platform(LTI1P3PlatformConfAbstract):
    def init_platform_config(self, **_):
        key = JWK.from_pem(Path(sys.argv[1]).read_bytes())
        self._registration = Registration().set_iss("https://lms.example.org").set_client_id("tool")
        self._registration.set_platform_private_key(key.export_to_pem(private_key=True, password=None).decode())
        self._registration.set_platform_public_key(key.export_to_pem().decode())
        self._registration.set_tool_key_set(json.loads(Path(sys.argv[2]).read_text()))

    def get_registration_by_params(self, *_, **__):
        return self._registration


class Handler(BaseHTTPRequestHandler):
    columns: ClassVar[list[dict]] = []
    received: ClassVar[dict[str, list[dict]]] = {}

    def log_message(self, *_):
        pass

    def answer(self, code: int, body) -> None:
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def may(self, scope: str) -> bool:
        try:
            token = self.headers["Authorization"].removeprefix("Bearer ")
            allowed = Platform().validate_token(token, [f"{SCOPE}{scope}"])
        except Exception:
            allowed = False
        if not allowed:
            self.answer(403, {"error": f"no token for {scope}"})
        return allowed

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        if self.path == "/token":
            try:
                self.answer(200, Platform().get_access_token(dict(parse_qsl(body))))
            except Exception as error:
                self.answer(401, {"error": type(error).__name__})
        elif self.path == "/columns" and self.may("lineitem"):
            where = f"http://{self.headers['Host']}/columns/{len(self.columns)}"
            self.columns.append(json.loads(body) | {"id": where})
            self.answer(201, self.columns[-1])
        elif self.path == "/columns/0/scores" and self.may("score"):
            score = json.loads(body)
            self.received.setdefault(score["userId"], []).append(score)
            self.answer(200, {})

    def do_GET(self):
        if self.path == "/members":
            self.answer(200, {"id": "members", "context": {"id": "course"}, "members": MEMBERS})
        elif self.path == "/received":
            self.answer(200, {"columns": self.columns, "scores": self.received})
        elif self.may("lineitem"):
            self.answer(200, self.columns)


if __name__ == "__main__":
    server = HTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_port, flush=True)
    server.serve_forever()
