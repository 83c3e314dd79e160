"""A server of objects on loopback, and a door before it that can be shut, held, or made busy."""

import http.client
import os
import re
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple

BUCKET = "contents"
SECRET = "wJalrXUtnFEMIsecret"
KEYS = {"AWS_ACCESS_KEY_ID": "AKIAHOLDFASTTEST", "AWS_SECRET_ACCESS_KEY": SECRET}


@contextmanager
def server() -> Iterator[str]:
    """The address of a moto server with one empty bucket."""
    argv = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"]
    started = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert started.stdout is not None
    try:
        lines = (re.search(r"http://127\.0\.0\.1:\d+", line) for line in started.stdout)
        address = next(found[0] for found in lines if found)
        drain = threading.Thread(target=started.stdout.read)  # its log would fill the pipe
        drain.start()
        ask(f"{address}/{BUCKET}", "PUT")
        yield address
    finally:
        started.kill()
        started.wait()
        drain.join()
        started.stdout.close()


def ask(address: str, method: str, body: bytes = b"") -> None:
    """One request without a signature."""
    headers = {"Content-Type": "text/plain"}
    request = urllib.request.Request(address, data=body, method=method, headers=headers)
    urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request).close()


class Asked(NamedTuple):
    method: str
    path: str
    headers: dict[str, str]


class Door:
    """Passes requests on to a server, one connection each; what came is in `asked`."""

    def __init__(self, address: str) -> None:
        self.address = ""
        self.asked: list[Asked] = []
        self.busy = 0  # so many requests are answered 503
        self.cut = 0  # so many answers end in their middle
        self.held = threading.Event()
        self.hold = ""  # requests with this in their path are never passed on
        self.meeting: threading.Barrier | None = None  # for PUTs
        self._server = address.removeprefix("http://")
        self._port = 0
        self.open()

    def open(self) -> None:
        """Listen, at the same port as before."""
        door = self

        class Handler(BaseHTTPRequestHandler):
            def do_any(self) -> None:
                door.serve(self)

            do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = do_any  # noqa: N815

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                pass

        self._listening = ThreadingHTTPServer(("127.0.0.1", self._port), Handler)
        self._port = self._listening.server_address[1]
        self.address = f"http://127.0.0.1:{self._port}"
        self._thread = threading.Thread(target=self._listening.serve_forever, args=(0.01,))
        self._thread.start()

    def shut(self) -> None:
        """Refuse connections from now on."""
        self._listening.shutdown()
        self._thread.join()
        self._listening.server_close()

    def serve(self, handler: BaseHTTPRequestHandler) -> None:
        body = handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
        method = handler.command
        self.asked.append(Asked(method, handler.path, dict(handler.headers)))
        if self.hold and self.hold in handler.path:
            self.held.set()
            handler.rfile.read()  # until whoever asks is gone
            return
        if self.busy:
            self.busy -= 1
            handler.send_error(503)
            return
        if self.meeting is not None and method == "PUT":
            self.meeting.wait(60)
        onward = http.client.HTTPConnection(self._server)
        onward.request(method, handler.path, body, dict(handler.headers))
        answer = onward.getresponse()
        content = answer.read()
        handler.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in {"server", "date", "connection"}:
                handler.send_header(name, value)
        handler.end_headers()
        if self.cut and method == "GET" and len(content) > 1:
            self.cut -= 1
            content = content[: len(content) // 2]
        with suppress(OSError):
            handler.wfile.write(content)
        onward.close()

    def count(self, method: str, part: str = "") -> int:
        return sum(item.method == method and part in item.path for item in self.asked)


def variables(address: str) -> dict[str, str]:
    """The environment in which an address is the server, and nothing of this machine counts."""
    return {
        **KEYS,
        "AWS_ENDPOINT_URL": address,
        "AWS_REGION": "us-east-1",
        "AWS_ALLOW_HTTP": "true",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "NO_PROXY": "127.0.0.1",
    }
