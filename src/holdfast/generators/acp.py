"""A client of the Agent Client Protocol (version 1): JSON-RPC in lines over the pipes of an agent.

    ours to the agent    initialize, session/new, session/prompt
    the agent's to us    session/update (told to the log), session/request_permission,
                         fs/read_text_file, fs/write_text_file

Files are read and written beneath the folder alone, and no link is followed. An agent is permitted what it
names and may write; to look and to think; and to run commands where a sandbox holds them, since the folder is
looked at afterwards. Everything else is refused: nobody is there to ask.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from holdfast.edits.beneath import read_beneath, write_beneath
from holdfast.errors import EditError, ProcessError, StoreError
from holdfast.model.digest import Json
from holdfast.model.fixed import fixed
from holdfast.model.text import one_line
from holdfast.model.version import VERSION
from holdfast.process.child import Child
from holdfast.process.confine import Sandbox, without_gone

PROTOCOL = 1
_MOST_LINE = 16 << 20
_MOST_HEARD = 64 << 20  # bytes of all that it writes
_MOST_SAID = 1 << 16  # characters of its last words
_HARMLESS = frozenset({"read", "search", "think"})
_CHANGES = frozenset({"edit", "delete", "move"})
_NO_METHOD, _REFUSED, _NOT_THERE = -32601, -32000, -32002

Params = Mapping[str, Json]


@fixed
class Talked:
    """What came of a session: the last words, and what was wrong, empty if it ended well."""

    said: str
    flaw: str = ""
    is_late: bool = False


class RefusedError(Exception):
    """What the agent wants is not given to it; `code` is the protocol's."""

    def __init__(self, message: str, code: int = _REFUSED) -> None:
        super().__init__(message)
        self.code = code


class FloodError(Exception):
    """The agent writes more than anybody should have to read."""


async def talk_acp(
    argv: Sequence[str],
    prompt: str,
    *,
    folder: str,
    env: Mapping[str, str],
    mark: str,
    sandbox: Sandbox | None,
    seconds: float | None,
    refusal: Callable[[str], str],
    on_output: Callable[[str, bytes], None],
) -> Talked:
    """Start an agent, give it one prompt, answer what it asks, and end it; ProcessError if it breaks off.

    If something that the sandbox hides vanished while it was laid out, no agent began: it is started again.
    """
    while True:
        child = Child.start(
            argv,
            folder,
            env,
            mark,
            on_stderr=lambda chunk: on_output("stderr", chunk),
            most=_MOST_LINE,
            wanted=sandbox,
        )
        session = _Session(child, folder, refusal, on_output, is_held=sandbox is not None)
        try:
            return await _talked(session, prompt, seconds)
        except ProcessError:
            await child.kill()
            again = None if child.was_begun or sandbox is None else without_gone(sandbox)
            if again is None:
                raise
            sandbox = again
        finally:
            await child.kill()


async def _talked(session: _Session, prompt: str, seconds: float | None) -> Talked:
    try:
        async with asyncio.timeout(seconds):
            flaw = await session.through(prompt)
    except TimeoutError:
        return Talked(session.said, f"did not end within {seconds:g} s", is_late=True)
    except FloodError:
        return Talked(session.said, f"wrote more than {_MOST_HEARD >> 20} MB to stdout")
    return Talked(session.said, flaw)


@dataclass(slots=True)
class _Session:
    """One session with an agent."""

    child: Child
    folder: str
    refusal: Callable[[str], str]
    on_output: Callable[[str, bytes], None]
    is_held: bool
    said: str = ""
    number: int = 0
    heard: int = 0  # bytes that it wrote
    calls: dict[str, dict[str, Json]] = field(default_factory=dict)  # what it says that it does

    async def through(self, prompt: str) -> str:
        """Give it the prompt and wait for its end; why that is none, or nothing."""
        about = await self._ask("initialize", _INITIALIZE)
        spoken = about.get("protocolVersion")
        if spoken != PROTOCOL:
            return f"speaks version {spoken} of the protocol, and this is a client of version {PROTOCOL}"
        info = _map(about.get("agentInfo"))
        if info:
            self._note(f"agent {info.get('name')} {info.get('version')}")
        opened = await self._ask("session/new", {"cwd": self.folder, "mcpServers": []})
        ended = await self._ask(
            "session/prompt",
            {
                "sessionId": opened.get("sessionId"),
                "prompt": [{"type": "text", "text": prompt}],
            },
        )
        reason = ended.get("stopReason")
        return "" if reason == "end_turn" else f"ended with {one_line(str(reason))}"

    async def _ask(self, method: str, params: Json) -> Params:
        """Our request and its result; whatever else comes before it is answered on the way."""
        self.number += 1
        wanted = self.number
        await self._send({"id": wanted, "method": method, "params": params})
        while True:
            line = await self.child.receive_line()
            self.heard += len(line) + 1
            if self.heard > _MOST_HEARD:
                raise FloodError
            message = self._read(line)
            if "method" in message:
                await self._heed(message)
            elif message.get("id") == wanted:
                if wrong := _map(message.get("error")):
                    said = one_line(str(wrong.get("message")))
                    raise ProcessError(f"the agent answered '{method}' with an error: {said}")
                return _map(message.get("result"))

    def _read(self, line: bytes) -> Params:
        try:
            return _map(json.loads(line))
        except (ValueError, RecursionError):  # a word that is none of the protocol's
            self.on_output("stdout", line + b"\n")
            return {}

    async def _send(self, message: Mapping[str, Json]) -> None:
        await self.child.send_line(json.dumps({"jsonrpc": "2.0", **message}).encode())

    async def _heed(self, message: Params) -> None:
        """Take in what the agent tells, or answer what it asks."""
        method, params = str(message["method"]), _map(message.get("params"))
        if "id" not in message:
            if method == "session/update":
                self._update(_map(params.get("update")))
            return
        answers: dict[str, Callable[[Params], Json]] = {
            "session/request_permission": self._permission,
            "fs/read_text_file": self._read_file,
            "fs/write_text_file": self._write_file,
        }
        try:
            result = await asyncio.to_thread(answers.get(method, _unknown), params)
            await self._send({"id": message["id"], "result": result})
        except (RefusedError, EditError, StoreError) as error:
            code = error.code if isinstance(error, RefusedError) else _REFUSED
            words = one_line(str(error))
            self._note(f"refused {method}: {words}")
            await self._send({"id": message["id"], "error": {"code": code, "message": words}})

    # --- what it tells -------------------------------------------------------------------------------

    def _update(self, update: Params) -> None:
        kind = update.get("sessionUpdate")
        if kind == "agent_message_chunk":
            text = str(_map(update.get("content")).get("text") or "")
            self.said = (self.said + text)[-_MOST_SAID:]
            self.on_output("stdout", text.encode("utf-8", "replace"))
        elif kind in {"tool_call", "tool_call_update"}:
            call = self._known(update)
            if kind == "tool_call":
                self.said = ""  # what comes after it is said later
                self._note(f"\n{call.get('kind') or 'tool'}: {one_line(str(call.get('title')))}")

    def _known(self, told: Params) -> Params:
        """A use of a tool with all that was told of it so far."""
        name = str(told.get("toolCallId") or "")
        known = self.calls.setdefault(name, {})
        known.update({key: value for key, value in told.items() if value is not None})
        return known

    def _note(self, line: str) -> None:
        self.on_output("stderr", f"{line}\n".encode("utf-8", "replace"))

    # --- what it asks --------------------------------------------------------------------------------

    def _permission(self, params: Params) -> Json:
        call = self._known(_map(params.get("toolCall")))
        why = self._why_not(call)
        if why:
            self._note(f"refused {one_line(str(call.get('title') or call.get('kind')))}: {why}")
        options = [_map(option) for option in cast("list[Json]", params.get("options") or [])]
        for kind in ("reject_once", "reject_always") if why else ("allow_once",):
            for option in options:
                if option.get("kind") == kind:
                    return {"outcome": {"outcome": "selected", "optionId": option.get("optionId")}}
        return {"outcome": {"outcome": "cancelled"}}

    def _why_not(self, call: Params) -> str:
        kind = call.get("kind")
        paths = [
            str(_map(item).get("path"))
            for key in ("locations", "content")
            for item in cast("list[Json]", call.get(key) or [])
            if _map(item).get("path")
        ]
        if kind in _HARMLESS:
            return ""
        if kind == "execute":
            return "" if self.is_held else "no sandbox holds its commands"
        if kind not in _CHANGES:
            return "nobody is there to ask"
        if not paths:
            return "it does not say which files"
        try:
            refused = [self.refusal(self._inside(path)) for path in paths]
        except RefusedError as error:
            return str(error)
        return "; ".join(filter(None, refused))

    def _read_file(self, params: Params) -> Json:
        path = self._inside(str(params.get("path")))
        seen = read_beneath(self.folder, path)
        if seen is None:
            raise RefusedError(f"there is no file '{one_line(path)}'", _NOT_THERE)
        lines = seen.content.decode("utf-8", "replace").splitlines(keepends=True)
        first = max(1, _number(params.get("line"), 1)) - 1
        limit = _number(params.get("limit"), len(lines))
        return {"content": "".join(lines[first : first + max(0, limit)])}

    def _write_file(self, params: Params) -> Json:
        path = self._inside(str(params.get("path")))
        if why := self.refusal(path):
            raise RefusedError(why)
        write_beneath(self.folder, path, str(params.get("content")).encode("utf-8", "replace"))
        self._note(f"wrote {one_line(path)}")
        return {}

    def _inside(self, path: str) -> str:
        """A path as the folder knows it; it is judged as text here, and opened without links later."""
        for top in dict.fromkeys((self.folder, os.path.realpath(self.folder))):
            relative = os.path.relpath(os.path.normpath(path), top) if os.path.isabs(path) else ""
            if relative not in {"", "."} and relative.split("/", 1)[0] != "..":
                return relative
        raise RefusedError(f"'{one_line(path)}' is outside of the folder that it works in")


_INITIALIZE: Json = {
    "protocolVersion": PROTOCOL,
    "clientCapabilities": {"fs": {"readTextFile": True, "writeTextFile": True}, "terminal": False},
    "clientInfo": {"name": "holdfast", "title": "Holdfast", "version": VERSION},
}


def _unknown(_: Params) -> Json:
    raise RefusedError("there is no such method here", _NO_METHOD)


def _map(value: object) -> Params:
    return cast("Params", value) if isinstance(value, Mapping) else {}


def _number(value: object, usual: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else usual
