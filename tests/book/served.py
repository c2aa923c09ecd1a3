"""The built book as a web server hands it out: compressed."""

import contextlib
import functools
import gzip
import http.server
import io
import threading
import urllib.parse
from collections.abc import Iterator
from pathlib import Path

from only_element import only_element

PLAIN = ("text/", "application/javascript", "application/json", "image/svg+xml")


class Compressing(http.server.SimpleHTTPRequestHandler):
    """Sends text as gzip to whoever takes it, and says nothing in the terminal."""

    protocol_version = "HTTP/1.1"  # keeps connections open, as every server does

    def end_headers(self):
        """Let the browser cache what pages load, as GitHub Pages does, but not the pages themselves."""
        if not self.path.partition("?")[0].endswith((".html", "/")):
            self.send_header("Cache-Control", "max-age=600")
        super().end_headers()

    def send_head(self):
        """Send the head of the answer, and return its body."""
        path = Path(self.translate_path(self.path))
        kind = self.guess_type(str(path))
        if not (path.is_file() and kind.startswith(PLAIN) and "gzip" in self.headers.get("Accept-Encoding", "")):
            return super().send_head()
        only = urllib.parse.parse_qs(self.path.partition("?")[2]).get("only", [""])[0]
        body = packed(path, path.stat().st_mtime_ns, only)
        self.send_response(200)
        self.send_header("Content-Type", kind if "charset" in kind else f"{kind}; charset=utf-8")
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Vary", "Accept-Encoding")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        return io.BytesIO(body)

    def send_error(self, code, message=None, explain=None):
        """Send the site's own page where there is nothing, as servers of static files do."""
        lost = Path(self.directory, "404.html")
        if code != 404 or not lost.is_file():
            return super().send_error(code, message, explain)
        body = lost.read_bytes()
        self.send_response(404)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Keep the test's output free of requests."""


class Server(http.server.ThreadingHTTPServer):
    """A server that lets 128 connections wait to be accepted, because on a busy machine the usual five are too few."""

    request_queue_size = 128


@functools.lru_cache(maxsize=256)
def packed(path: Path, _changed: int, only: str) -> bytes:
    content = path.read_bytes()
    return gzip.compress(only_element(content.decode(), only).encode() if only else content, 6)


@contextlib.contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder on this machine; yield its address, which ends in a slash."""
    handler = functools.partial(Compressing, directory=folder)
    with Server(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
