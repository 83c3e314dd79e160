"""A page that is really served, by the command in a process of its own; asked by raw HTTP or a browser."""

import json
import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tests.cli.project import Project, until
from tests.forge import Running

DEADLINE = 60.0


class Said(NamedTuple):
    """An answer as it came over the wire."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()


@dataclass
class Site:
    """A page and a session of it."""

    project: Project
    process: Running
    address: str
    cookie: str = ""
    token: str = ""
    host: str = field(init=False)
    port: int = field(init=False)

    def __post_init__(self) -> None:
        self.host = self.address.split("/")[2]
        self.port = int(self.host.rpartition(":")[2])

    @property
    def base(self) -> str:
        return f"http://{self.host}"

    @property
    def code(self) -> str:
        return self.address.partition("?")[2]

    def raw(self, request: bytes) -> Said:
        """Send bytes as they are, read the answer; of an endless one what came first."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=DEADLINE) as wire:
            wire.sendall(request)
            return _read(wire)

    def ask(
        self,
        path: str,
        method: str = "GET",
        headers: Sequence[tuple[str, str]] = (),
        body: bytes = b"",
        *,
        host: str | None = None,
        session: bool = True,
    ) -> Said:
        """One request; with the cookie of the session unless that is not wanted."""
        given = [("Host", self.host if host is None else host), *headers]
        if session and self.cookie:
            given.append(("Cookie", self.cookie))
        if body or method == "POST":
            given.append(("Content-Length", str(len(body))))
        given.append(("Connection", "close"))
        lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in given)]
        return self.raw("\r\n".join([*lines, "", ""]).encode() + body)

    def enter(self) -> None:
        """Exchange the code for a session, as a browser does."""
        found = self.ask(f"/door/open?{self.code}", session=False)
        assert found.status == 303, found
        self.cookie = found.headers["set-cookie"].partition(";")[0]
        self.token = json.loads(self.ask("/door/token").body)["token"]

    def post(self, path: str, values: Mapping[str, Any], *more: tuple[str, str]) -> Said:
        """A changing request as the page sends it."""
        headers = [
            ("Origin", self.base),
            ("Content-Type", "application/json"),
            ("X-Holdfast-Token", self.token),
            *more,
        ]
        return self.ask(path, "POST", headers, json.dumps(values).encode())


def _read(wire: socket.socket) -> Said:
    data = b""
    while b"\r\n\r\n" not in data:
        piece = wire.recv(65536)
        if not piece:
            break
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {
        name.strip().lower(): value.strip()
        for name, _, value in (line.partition(":") for line in lines)
    }
    streams = headers.get("content-type", "").startswith("text/event-stream")
    while not streams and len(body) < int(headers.get("content-length", 1 << 30)):
        piece = wire.recv(65536)
        if not piece:
            break
        body += piece
    return Said(int(first.split()[1]) if first else 0, headers, body)


def serve(project: Project, *words: str, env: Mapping[str, str] | None = None) -> Site:
    """Start a page and wait until it says where it is."""
    process = project.start("ui", "--no-browser", *words, env=env)
    assert process.stdout is not None
    line = process.stdout.readline().decode().strip()
    assert line.startswith("http://127.0.0.1:"), (line, process.poll())
    return Site(project, process, line)


@contextmanager
def listener() -> Iterator[tuple[int, list[bytes]]]:
    """A server that only notes what comes: whoever asks it has left the page."""
    seen: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        over = threading.Event()

        def listen() -> None:
            while not over.is_set():
                try:
                    wire, _ = server.accept()
                except TimeoutError:
                    continue
                with wire:
                    wire.settimeout(1)
                    seen.append(wire.recv(65536))

        thread = threading.Thread(target=listen)
        thread.start()
        try:
            yield server.getsockname()[1], seen
        finally:
            over.set()
            thread.join()


def finished(project: Project, status: str) -> None:
    """Wait until the last run stands so."""
    until(lambda: project.status().data["status"] == status, f"the run is {status}")
