"""A client of a few lines: JSON objects over the pipes of a real server, by the older handshake."""

import json
import queue
import subprocess
import threading
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from tests.cli.project import COMMAND, DEADLINE, Project
from tests.mcp.listening import peak

VERSION = "2025-06-18"


class Bare:
    """Owns a server process; every read has a deadline."""

    def __init__(self, project: Project, *words: str, env: Mapping[str, str] | None = None) -> None:
        self.process = subprocess.Popen(
            [*COMMAND, "mcp", *words],
            cwd=project.root,
            env=project.environment(env),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self.told: list[Any] = []  # notifications
        self.asked: list[Any] = []  # requests of the server
        self._number = 0
        self._lines: queue.Queue[bytes] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
        self._drains = threading.Thread(target=self._drain, daemon=True)
        self._drains.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(DEADLINE)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert pipe is not None
            try:
                pipe.close()
            except BrokenPipeError:
                continue

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put(b"")

    def _drain(self) -> None:
        """What it says beside its frames; a full pipe would stop it."""
        assert self.process.stderr is not None
        self.said = self.process.stderr.read()

    def close(self) -> None:
        """Let it end by itself, and hear what it said."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(DEADLINE)
        self._drains.join(DEADLINE)

    # --- frames -----------------------------------------------------------------------------------

    def write(self, frame: bytes) -> None:
        """A line as it is."""
        assert self.process.stdin is not None
        self.process.stdin.write(frame + b"\n")
        self.process.stdin.flush()

    def send(self, method: str, params: Any = None, **more: Any) -> None:
        body = {"jsonrpc": "2.0", "method": method, **more}
        self.write(json.dumps(body if params is None else {**body, "params": params}).encode())

    def read(self, *, agree: bool = False) -> Any:
        """The next answer; notifications and questions that come before it are kept.

        Whoever agrees says yes to every question, with all that could pass for a decision.
        """
        while True:
            line = self._lines.get(timeout=DEADLINE)
            assert line, "the server ended"
            found = json.loads(line)
            if "method" not in found:
                return found
            (self.asked if "id" in found else self.told).append(found)
            if agree and "id" in found:
                content = {"seen": True, "approve": True, "answer": "yes", "scope": "content"}
                result = {"action": "accept", "content": content}
                self.write(
                    json.dumps({"jsonrpc": "2.0", "id": found["id"], "result": result}).encode()
                )

    def request(self, method: str, params: Any = None) -> Any:
        """The answer to a request, result or error."""
        self._number += 1
        self.send(method, params, id=self._number)
        found = self.read()
        assert found["id"] == self._number
        return found

    # --- the protocol -----------------------------------------------------------------------------

    def shake_hands(self) -> Any:
        about = {"name": "bare", "version": "1"}
        hello = {"protocolVersion": VERSION, "capabilities": {}, "clientInfo": about}
        answer = self.request("initialize", hello)["result"]
        self.send("notifications/initialized")
        return answer

    def tool(self, tool: str, /, **arguments: Any) -> Any:
        """What a tool answers, whether it could do it or not."""
        answer = self.request("tools/call", {"name": tool, "arguments": arguments})
        assert "result" in answer, answer
        return answer["result"]

    def ok(self, tool: str, /, **arguments: Any) -> Any:
        """The object that a tool answers with."""
        result = self.tool(tool, **arguments)
        assert not result.get("isError"), text(result)
        return result["structuredContent"]

    def refused(self, tool: str, /, **arguments: Any) -> Any:
        """What a tool says that cannot do what it is asked."""
        result = self.tool(tool, **arguments)
        assert result["isError"], text(result)
        return result["structuredContent"]["error"]

    def peak(self) -> int:
        """The most memory that the server ever had, in bytes."""
        return peak(self.process.pid)


def text(result: Any) -> str:
    """The text of an answer."""
    return str(result["content"][0]["text"])
