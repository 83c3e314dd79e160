"""Frames of a client, before any library sees them: what is wrong is answered, nothing is dropped.

A frame is one JSON object. What it may cost is bounded before it is parsed: its bytes, its depth and how
much it holds, because a short text can become a large heap. Whoever sends something else gets one
error of JSON-RPC for it, with the id of its request if it has a usable one.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import NoReturn, cast

from holdfast.model.digest import Json
from holdfast.model.walls import WALLS, moved_by

MOST_DEPTH = 64
MOST_TOKENS = 400_000  # strings, brackets and commas
LONGEST_ID = 256  # characters

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
BUSY = -32000

# Strings are stepped over whole. An open one goes to the end: looking for its end again would take for ever.
_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[\]{},]', re.DOTALL)
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_OPENS, _CLOSES = b"[{", b"]}"

_WITH_PARAMS = {
    "initialize": "'protocolVersion', 'capabilities' and 'clientInfo'",
    "tools/call": "'name', and 'arguments' if the tool takes any",
    "resources/read": "'uri'",
    "prompts/get": "'name'",
}

Id = str | int
Message = Mapping[str, Json]


class Refused(Exception):  # noqa: N818 - an answer, not a fault of ours
    """A frame that is no request, notification or answer, and what its sender is told."""

    def __init__(self, code: int, message: str, request: Id | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.id = request

    def answer(self) -> dict[str, Json]:
        """The error as it goes back."""
        return {
            "jsonrpc": "2.0",
            "id": self.id,
            "error": {"code": self.code, "message": self.message},
        }


def too_long(most: int) -> Refused:
    """What is said of a frame that is not read to its end."""
    hint = moved_by("frame", most)
    return Refused(INVALID_REQUEST, f"a frame has at most {most:,} bytes; {hint}")


def read_frame(frame: bytes, most: int = WALLS.frame) -> Message:
    """One message of at most so many bytes; raises Refused."""
    if len(frame) > most:
        raise too_long(most)
    _check_size(frame)
    return _checked(_parsed(frame))


def id_of(message: Message) -> Id | None:
    """The id of a request or an answer; None if it has none that can be used."""
    found = message.get("id")
    if isinstance(found, bool) or not isinstance(found, str | int):
        return None
    if isinstance(found, str) and len(found) > LONGEST_ID:
        return None
    return found


def is_request(message: Message) -> bool:
    """Whether somebody waits for an answer to it."""
    return "method" in message and "id" in message


def _check_size(frame: bytes) -> None:
    """Bound how deep it is and how much it holds, without building any of it."""
    depth = 0
    for number, found in enumerate(_TOKEN.finditer(frame)):
        token = frame[found.start()]
        if token in _OPENS:
            depth += 1
        elif token in _CLOSES:
            depth -= 1
        if depth > MOST_DEPTH:
            raise Refused(INVALID_REQUEST, f"a frame is at most {MOST_DEPTH} levels deep")
        if number > MOST_TOKENS:
            raise Refused(INVALID_REQUEST, f"a frame holds at most {MOST_TOKENS:,} tokens")


def _parsed(frame: bytes) -> Json:
    try:
        text = frame.decode("utf-8")
        value = cast(
            "Json",
            json.loads(
                text,
                parse_float=_number,
                parse_constant=_no_number,
                object_pairs_hook=_each_once,
            ),
        )
        if _SURROGATE.search(frame):  # half a character can be neither stored nor sent back
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except (ValueError, RecursionError) as error:  # decoding errors are ValueErrors too
        raise Refused(PARSE_ERROR, "a frame is one JSON object in UTF-8 on one line") from error
    return value


def _each_once(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    """An object whose keys stand in it once: of two, others might take the other one."""
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:  # in one pass: a frame may have a million
            if key in seen:
                raise Refused(INVALID_REQUEST, f"a frame has the key {json.dumps(key[:80])} twice")
            seen.add(key)
    return found


def _number(word: str) -> float:
    """A number with a point or an exponent, unless it is beyond all numbers: JSON has no infinity."""
    found = float(word)
    return found if math.isfinite(found) else _no_number(word)


def _no_number(word: str) -> NoReturn:
    raise ValueError(word)


def _checked(value: Json) -> Message:
    if isinstance(value, list):
        raise Refused(
            INVALID_REQUEST, "batches are not taken: send each message as an object of its own"
        )
    if not isinstance(value, Mapping):
        raise Refused(INVALID_REQUEST, "a frame is a JSON object")
    found = id_of(value)
    if value.get("jsonrpc") != "2.0":
        raise Refused(INVALID_REQUEST, "'jsonrpc' is \"2.0\"", found)
    if "id" in value and found is None:
        raise Refused(
            INVALID_REQUEST, f"'id' is a whole number, or a text of up to {LONGEST_ID} characters"
        )
    if "method" in value:
        _check_call(value, found)
    elif "id" not in value or ("result" in value) == ("error" in value):
        raise Refused(INVALID_REQUEST, "a frame has a 'method', or the answer to one", found)
    elif not isinstance(value.get("result", value.get("error")), Mapping):
        raise Refused(INVALID_REQUEST, "'result' and 'error' are objects", found)
    return value


def _check_call(value: Message, found: Id | None) -> None:
    if not isinstance(value["method"], str):
        raise Refused(INVALID_REQUEST, "'method' is a text", found)
    if unknown := value.keys() - {"jsonrpc", "id", "method", "params"}:
        raise Refused(INVALID_REQUEST, f"a request has no '{min(unknown):.80}'", found)
    if "params" not in value and value["method"] in _WITH_PARAMS:
        needed = _WITH_PARAMS[value["method"]]
        raise Refused(INVALID_PARAMS, f"'{value['method']}' needs 'params' with {needed}", found)
    if "params" in value and not isinstance(value["params"], Mapping):
        raise Refused(INVALID_PARAMS, "'params' is an object", found)
