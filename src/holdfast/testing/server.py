"""A scripted model server: speaks the OpenAI chat language over real HTTP, and does what it is told.

    with ModelServer(lambda asked: Say(f"echo: {asked.last}")) as server:
        ...  # point a provider of kind 'openai' at server.url

Every request is counted and kept. As a program it tells its address on stdout and writes one JSON line for
each request to a file: `python -m holdfast.testing.server --log FILE [--say TEXT] [--delay SECONDS]`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Protocol, Self, cast

from holdfast.model.digest import Json

_PIECE = 16  # characters in one event of a stream
_MOST_PIECES = 1000
_LAST = ("connection", "close")
_FORKS = frozenset(("oneOf", "anyOf", "allOf", "enum", "not"))
_NOT_STRICT = frozenset(
    (
        *("oneOf", "allOf", "not", "if", "then", "else", "default", "uniqueItems", "contains"),
        *("patternProperties", "propertyNames", "minProperties", "maxProperties"),
        *("dependentRequired", "dependentSchemas", "unevaluatedProperties"),
    )
)


@dataclass(frozen=True, slots=True)
class Asked:
    """One request as it came, counted from 1."""

    number: int
    body: Mapping[str, Json]
    headers: Mapping[str, str]
    path: str = ""

    @property
    def texts(self) -> list[str]:
        """The text of every message."""
        messages = cast("list[Mapping[str, Json]]", self.body.get("messages", []))
        return [str(message.get("content") or "") for message in messages]

    @property
    def last(self) -> str:
        """The text of the last message."""
        return self.texts[-1] if self.texts else ""


@dataclass(frozen=True, slots=True)
class Say:
    """An answer. `cut` ends it after so many pieces, `delay` waits before the first one.

    `after` holds the answer back until something has happened, `pause` what comes after its first half.
    `cached` of the `input` were read from a cache. A cut stream that is `chunked` broke off; one that is not
    looks as if it had come to its end.
    """

    text: str = ""
    tools: Sequence[tuple[str, Json]] = ()
    input: int = 10
    output: int = 5
    finish: str = "stop"
    delay: float = 0.0
    between: float = 0.0
    cut: int | None = None
    refusal: str = ""
    after: threading.Event | None = None
    pause: threading.Event | None = None
    cached: int = 0
    chunked: bool = False


@dataclass(frozen=True, slots=True)
class Fail:
    """A status other than 200, with headers such as retry-after."""

    status: int
    message: str = "no"
    headers: Mapping[str, str] = field(default_factory=dict)
    code: str = ""


@dataclass(frozen=True, slots=True)
class Raw:
    """Bytes as they are, with a status and headers of their own."""

    content: bytes
    kind: str = "application/json"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Hang:
    """No answer until the other side gives up or the server closes."""


Reply = Say | Fail | Raw | Hang
Script = Callable[[Asked], Reply]


class Language(Protocol):
    """How the models of a vendor answer over HTTP; `root` is where their addresses begin."""

    root: str

    def refusal(self, asked: Asked) -> Fail | None:
        """What the vendor does not take, whatever the script says; None if all is well."""

    def failure(self, reply: Fail) -> tuple[int, bytes, Mapping[str, str]]:
        """Status, body and headers of an error."""

    def whole(self, asked: Asked, reply: Say) -> bytes | None:
        """An answer in one piece; None if a stream is asked for."""

    def head(self, asked: Asked) -> Mapping[str, str]:
        """The headers of a stream."""

    def events(self, asked: Asked, reply: Say) -> Iterator[bytes]:
        """The pieces of a stream."""


class OpenAI:
    """The chat language of OpenAI, which many others speak."""

    root = "/v1"

    def refusal(self, asked: Asked) -> Fail | None:
        for where, schema, strict in _schemas(asked):
            problem = _no_root(schema) or (next(_no_strict(schema, ()), "") if strict else "")
            if problem:
                return Fail(400, f"Invalid schema for {where}: {problem}")
        return None

    def failure(self, reply: Fail) -> tuple[int, bytes, Mapping[str, str]]:
        error = {"message": reply.message, "type": "error", "code": reply.code or None}
        return reply.status, json.dumps({"error": error}).encode(), reply.headers

    def whole(self, asked: Asked, reply: Say) -> bytes | None:
        if asked.body.get("stream"):
            return None
        return json.dumps(_completion(asked, reply)).encode()

    def head(self, asked: Asked) -> Mapping[str, str]:
        return {"content-type": "text/event-stream"}

    def events(self, asked: Asked, reply: Say) -> Iterator[bytes]:
        return _events(asked, reply)


class _Server(ThreadingHTTPServer):
    request_queue_size = 512  # connections that wait to be taken in; 5 would refuse a crowd
    daemon_threads = True


class ModelServer:
    """Serves on a free port of loopback until it is closed."""

    def __init__(
        self,
        script: Script | Sequence[Reply] | str,
        port: int = 0,
        language: Language | None = None,
    ) -> None:
        self.language = language or OpenAI()
        self.requests: list[Asked] = []
        self.most = 0  # requests that were answered at the same time
        self._busy = 0
        self._script = _script(script)
        self._numbers = count(1)
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._server = _Server(("127.0.0.1", port), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        """What a provider names as its base_url."""
        return f"http://127.0.0.1:{self._server.server_address[1]}{self.language.root}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop serving."""
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                outer._answer(self)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        return Handler

    def _answer(self, http: BaseHTTPRequestHandler) -> None:
        length = int(http.headers.get("content-length") or 0)
        body = cast("Mapping[str, Json]", json.loads(http.rfile.read(length) or b"{}"))
        with self._lock:
            asked = Asked(next(self._numbers), body, dict(http.headers.items()), http.path)
            self.requests.append(asked)
            self.heard(asked)
            reply = self.language.refusal(asked) or self._script(asked)
            self._busy += 1
            self.most = max(self.most, self._busy)
        with contextlib.suppress(ConnectionError, TimeoutError):
            self._send(http, asked, reply)
        with self._lock:
            self._busy -= 1

    def _await(self, event: threading.Event | None) -> None:
        """Until it is set, or the server closes."""
        while event is not None and not event.wait(0.05) and not self._closing.is_set():
            pass

    def heard(self, asked: Asked) -> None:
        """A request came; the program writes it down."""

    def _send(self, http: BaseHTTPRequestHandler, asked: Asked, reply: Reply) -> None:
        if isinstance(reply, Hang):
            self._closing.wait()
            http.close_connection = True
            return
        if isinstance(reply, Fail):
            _whole(http, *self.language.failure(reply))
            return
        if isinstance(reply, Raw):
            headers = {"content-type": reply.kind, **reply.headers}
            _whole(http, reply.status, reply.content, headers)
            return
        self._closing.wait(reply.delay)
        self._await(reply.after)
        whole = self.language.whole(asked, reply)
        if whole is not None:
            _whole(http, 200, whole, {})
            return
        http.send_response(200)
        for name, value in self.language.head(asked).items():
            http.send_header(name, value)
        http.send_header(*(("transfer-encoding", "chunked") if reply.chunked else _LAST))
        http.end_headers()
        http.close_connection = True
        events = list(self.language.events(asked, reply))
        for number, event in enumerate(events):
            if number == len(events) // 2:
                self._await(reply.pause)
            if number == reply.cut:
                http.connection.shutdown(2)
                return
            http.wfile.write(b"%x\r\n%b\r\n" % (len(event), event) if reply.chunked else event)
            http.wfile.flush()
            self._closing.wait(reply.between)
        if reply.chunked:
            http.wfile.write(b"0\r\n\r\n")


def pieces(text: str) -> list[str]:
    """A text as a stream brings it."""
    size = max(_PIECE, len(text) // _MOST_PIECES)
    return [text[start : start + size] for start in range(0, len(text), size)]


def _script(given: Script | Sequence[Reply] | str) -> Script:
    if isinstance(given, str):
        return lambda _: Say(given)
    if callable(given):
        return given
    replies = iter(given)
    return lambda _: next(replies, Fail(400, "the script is over"))


def _schemas(asked: Asked) -> Iterator[tuple[str, Json, bool]]:
    """Every schema of a request: where it stands, and whether it is to be kept to strictly."""
    wanted = _node(asked.body.get("response_format"))
    if wanted.get("type") == "json_schema":
        given = _node(wanted.get("json_schema"))
        where = f"response_format '{given.get('name')}'"
        yield where, given.get("schema"), bool(given.get("strict"))
    for tool in cast("list[Json]", asked.body.get("tools") or []):
        given = _node(_node(tool).get("function"))
        yield f"function '{given.get('name')}'", given.get("parameters"), bool(given.get("strict"))


def _node(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, Mapping) else {}


def _no_root(schema: Json) -> str:
    kind = _node(schema).get("type")
    if kind != "object":
        return f"schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{kind}\"'."
    if _FORKS & _node(schema).keys():
        return "schema must not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level."
    return "" if "properties" in _node(schema) else "object schema missing properties."


def _no_strict(schema: Json, context: tuple[str, ...]) -> Iterator[str]:
    """What strict mode has against a schema."""
    node = _node(schema)
    for word in sorted(_NOT_STRICT & node.keys()):
        yield f"In context={context}, '{word}' is not permitted."
    if not {"type", "anyOf", "$ref", "enum", "const"} & node.keys():
        yield f"In context={context}, schema must have a 'type' key."
    if node.get("type") == "object":
        names = _node(node.get("properties"))
        required = cast("list[str]", node.get("required") or [])
        if node.get("additionalProperties") is not False:
            yield f"In context={context}, 'additionalProperties' is required to be supplied and to be false."
        if set(required) != set(names):
            yield f"In context={context}, 'required' is required to include every key in properties."
    if node.get("type") == "array":
        yield from _no_strict(node.get("items"), (*context, "items"))
    for word in ("properties", "$defs"):
        for name, each in _node(node.get(word)).items():
            yield from _no_strict(each, (*context, word, name))
    for each in cast("list[Json]", node.get("anyOf") or []):
        yield from _no_strict(each, (*context, "anyOf"))


def _whole(
    http: BaseHTTPRequestHandler, status: int, content: bytes, headers: Mapping[str, str]
) -> None:
    http.send_response(status)
    for name, value in ({"content-type": "application/json"} | dict(headers)).items():
        http.send_header(name, value)
    http.send_header("content-length", str(len(content)))
    http.end_headers()
    http.wfile.write(content)


def _usage(reply: Say) -> dict[str, Json]:
    total = reply.input + reply.output
    return {
        "prompt_tokens": reply.input,
        "completion_tokens": reply.output,
        "total_tokens": total,
        "prompt_tokens_details": {"cached_tokens": reply.cached},
    }


def _uses(reply: Say) -> list[dict[str, Json]]:
    return [
        {
            "index": number,
            "id": f"use-{number}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(given)},
        }
        for number, (name, given) in enumerate(reply.tools)
    ]


def _head(asked: Asked, kind: str) -> dict[str, Json]:
    return {
        "id": f"answer-{asked.number}",
        "object": kind,
        "created": int(time.time()),
        "model": asked.body.get("model", ""),
    }


def _completion(asked: Asked, reply: Say) -> dict[str, Json]:
    message: dict[str, Json] = {"role": "assistant", "content": reply.text or None}
    if reply.tools:
        message["tool_calls"] = _uses(reply)
    if reply.refusal:
        message["refusal"] = reply.refusal
    choice: dict[str, Json] = {
        "index": 0,
        "message": message,
        "finish_reason": "tool_calls" if reply.tools else reply.finish,
    }
    return {**_head(asked, "chat.completion"), "choices": [choice], "usage": _usage(reply)}


def _events(asked: Asked, reply: Say) -> Iterator[bytes]:
    head = _head(asked, "chat.completion.chunk")

    def event(delta: Json, finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return f"data: {json.dumps({**head, 'choices': [choice]})}\n\n".encode()

    yield event({"role": "assistant", "content": ""})
    for piece in pieces(reply.text):
        yield event({"content": piece})
    if reply.refusal:
        yield event({"refusal": reply.refusal})
    if reply.tools:
        yield event({"tool_calls": _uses(reply)})
    yield event({}, "tool_calls" if reply.tools else reply.finish)
    usage = {**head, "choices": [], "usage": _usage(reply)}
    yield f"data: {json.dumps(usage)}\n\n".encode()
    yield b"data: [DONE]\n\n"


class _Logged(ModelServer):
    """Writes each request down, at once."""

    def __init__(self, script: Script, log: str, port: int = 0) -> None:
        super().__init__(script, port)
        self._log = open(log, "a", encoding="utf-8", buffering=1)  # noqa: SIM115 - as long as it serves

    def heard(self, asked: Asked) -> None:
        self._log.write(json.dumps({"number": asked.number, "last": asked.last}) + "\n")


def main(words: Sequence[str] | None = None) -> None:
    """Serve until it is ended."""
    parser = argparse.ArgumentParser(description="A scripted model server on loopback.")
    parser.add_argument("--log", required=True, help="where each request is written down")
    parser.add_argument("--say", default="ok", help="the answer to everything")
    parser.add_argument("--delay", type=float, default=0.0, help="seconds before an answer")
    parser.add_argument("--port", type=int, default=0)
    given = parser.parse_args(words)
    with _Logged(lambda _: Say(given.say, delay=given.delay), given.log, given.port) as server:
        sys.stdout.write(f"{server.url}\n")
        sys.stdout.flush()
        threading.Event().wait()


if __name__ == "__main__":
    main()
