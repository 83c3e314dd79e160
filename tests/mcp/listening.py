"""A server that listens on HTTP, and a client of a few lines for it."""

import http.client
import json
import re
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tests.cli.project import COMMAND, DEADLINE, Project

PING = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
MODERN = "2025-11-25"


class Door(NamedTuple):
    """A server that listens, and what a client of it needs."""

    port: int
    token: str
    project: Project
    said: list[str]
    pid: int

    def post(
        self, body: bytes | Any = PING, *, path: str = "/mcp", method: str = "POST", **headers: str
    ) -> tuple[int, bytes, dict[str, str]]:
        """One request with the right headers, and those that are given in their place."""
        usual = {
            "Host": f"127.0.0.1:{self.port}",
            "Authorization": f"Bearer {self.token}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "Mcp-Protocol-Version": MODERN,
        }
        given = {key.replace("_", "-"): value for key, value in headers.items()}
        whole = {key: value for key, value in {**usual, **given}.items() if value}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=DEADLINE)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            content = body if isinstance(body, bytes) else json.dumps(body).encode()
            for key, value in {**whole, "Content-Length": str(len(content))}.items():
                connection.putheader(key, value)
            connection.endheaders(content)
            answer = connection.getresponse()
            found = {key.lower(): value for key, value in answer.getheaders()}
            return answer.status, answer.read(), found
        finally:
            connection.close()

    def raw(self, request: bytes) -> bytes:
        """Bytes as they are, and the first line that comes back."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=DEADLINE) as connection:
            connection.sendall(request)
            return connection.makefile("rb").readline()


def peak(pid: int) -> int:
    """The most memory that a process ever had, in bytes."""
    status = Path(f"/proc/{pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


@contextmanager
def listening(project: Project, *words: str) -> Iterator[Door]:
    """A server of a project, until it is not needed any more."""
    process = subprocess.Popen(
        [*COMMAND, "mcp", "--http", *words],
        cwd=project.root,
        env=project.environment(),
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    first, second = process.stderr.readline(), process.stderr.readline()
    found = re.search(r"http://127\.0\.0\.1:(\d+)/mcp", first)
    assert found, first + process.stderr.read()
    said = [first, second]
    thread = threading.Thread(target=lambda: said.extend(process.stderr or ()), daemon=True)
    thread.start()
    token = (project.store / "mcp.token").read_text().strip()
    try:
        yield Door(int(found[1]), token, project, said, process.pid)
    finally:
        process.terminate()
        process.wait(DEADLINE)
        thread.join(DEADLINE)
        process.stderr.close()
