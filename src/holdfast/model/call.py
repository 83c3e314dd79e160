"""A call: one question to a model and its answer, as values with one spelling each.

The encoding of a request is what identifies it: what was answered once is found again by its digest. It
holds everything that decides the answer and nothing else, so neither keys nor addresses.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field
from typing import Literal, cast

from holdfast.model.digest import Json, encoded, spelled
from holdfast.model.fixed import fixed

Role = Literal["system", "user", "assistant", "tool"]
Finish = Literal["stop", "length", "tools", "refused", "other"]
MICRO = 1_000_000  # micro-dollars in a dollar


@fixed
class ToolUse:
    """What a model wants done: a tool by name, its arguments as the JSON text that the model wrote."""

    id: str
    name: str
    arguments: str


@fixed
class Message:
    """One turn of a conversation. `uses` are a model's, `answers` is the id of the use that this answers."""

    role: Role
    text: str
    uses: tuple[ToolUse, ...] = ()
    answers: str = ""
    tool: str = ""  # the name of the tool whose answer this is


@fixed
class Offer:
    """A tool that a model may use: its name, what it is for, the JSON Schema of its arguments."""

    name: str
    words: str
    schema: Json


@fixed
class Cap:
    """How many tokens an answer may have because limits are kept; `words` say which and how to raise it."""

    tokens: int
    words: str


@fixed
class Request:
    """What is asked of a model: `provider:name`, the conversation, how to sample, what to give.

    How long the answer may be for the sake of limits is no part of what is asked: `enough` are the tokens
    that whoever asks does with, `cap` is what he gets.
    """

    model: str
    messages: tuple[Message, ...]
    parameters: Mapping[str, Json] = field(default_factory=dict)
    schema: Json = None  # the JSON Schema of the answer; None is text
    offers: tuple[Offer, ...] = ()
    enough: int | None = None
    cap: Cap | None = None

    @property
    def name(self) -> str:
        """The model as its provider calls it."""
        return self.model.partition(":")[2]

    @property
    def provider(self) -> str:
        """Who is asked."""
        return self.model.partition(":")[0]


@fixed
class Usage:
    """Tokens of a call. `cached` were read from the provider's cache, `stored` put there; both are input."""

    input: int = 0
    output: int = 0
    cached: int = 0
    stored: int = 0


@fixed
class Answer:
    """What a model said. `cut` are the words of the cap that it was cut by, if it was by one."""

    text: str
    uses: tuple[ToolUse, ...] = ()
    finish: Finish = "stop"
    usage: Usage = Usage()
    id: str = ""  # how the provider names it
    cut: str = ""


def request_bytes(request: Request) -> bytes:
    """The canonical encoding of a request, sparse: what is not there leaves no trace."""
    return encoded(spelled(request_json(request)))


def request_json(request: Request) -> dict[str, Json]:
    """A request as a value that its encoding is made from."""
    data: dict[str, Json] = {
        "model": request.model,
        "messages": [_message(message) for message in request.messages],
    }
    if request.parameters:
        data["parameters"] = request.parameters
    if request.schema is not None:
        data["schema"] = request.schema
    if request.offers:
        data["tools"] = [
            {"name": offer.name, "description": offer.words, "schema": offer.schema}
            for offer in request.offers
        ]
    return data


def _message(message: Message) -> dict[str, Json]:
    data: dict[str, Json] = {"role": message.role, "text": message.text}
    if message.uses:
        data["uses"] = [_use(use) for use in message.uses]
    if message.answers:
        data |= {"answers": message.answers, "tool": message.tool}
    return data


def _use(use: ToolUse) -> dict[str, Json]:
    return {"id": use.id, "name": use.name, "arguments": use.arguments}


def said_bytes(answer: Answer) -> int:
    """How many bytes a model said: its text, and the tools it uses with what it gives them."""
    uses = (part for use in answer.uses for part in (use.name, use.arguments))
    return sum(len(part.encode("utf-8", "replace")) for part in (answer.text, *uses))


def answer_bytes(answer: Answer) -> bytes:
    """The canonical encoding of an answer; `answer_from` reads it back."""
    usage = answer.usage
    data: dict[str, Json] = {
        "text": answer.text,
        "finish": answer.finish,
        "usage": [usage.input, usage.output, usage.cached, usage.stored],
    }
    if answer.uses:
        data["uses"] = [_use(use) for use in answer.uses]
    if answer.id:
        data["id"] = answer.id
    if answer.cut:
        data["cut"] = answer.cut
    return encoded(spelled(data))


def answer_from(content: bytes) -> Answer:
    """Read what `answer_bytes` wrote."""
    data = cast("Mapping[str, Json]", json.loads(content))
    uses = cast("list[Mapping[str, str]]", data.get("uses", []))
    return Answer(
        text=str(data["text"]),
        uses=tuple(ToolUse(use["id"], use["name"], use["arguments"]) for use in uses),
        finish=cast("Finish", data["finish"]),
        usage=Usage(*cast("list[int]", data["usage"])),
        id=str(data.get("id", "")),
        cut=str(data.get("cut", "")),
    )
