"""Answers from recordings: what a model said once is said again, without the model.

A recording is a file in a directory, one for each request:

    <digest>.json    SHA-256 of the request's encoding, without the provider: the same model has the same
                     recordings wherever it is asked

    {"schema": "holdfast.recording/1",
     "request": {"model": "name", "messages": [...], ...},      to be read by people; the name is the key
     "answers": [{"text", "finish", "usage": {"input", "output", "cached", "stored"}, "tools"?, "id"?}]}

Several answers were given to the same request, in this order; the last one is repeated. The order begins
anew with each command. There is no time, no address and no key in a recording, and what is known as a
secret is struck out, so it can be committed.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, cast, get_args

from holdfast.errors import CallError
from holdfast.model.call import (
    Answer,
    Finish,
    Request,
    ToolUse,
    Usage,
    answer_bytes,
    request_bytes,
    request_json,
)
from holdfast.model.digest import Digest, EncodingError, Json, digest_bytes
from holdfast.model.hiding import answered_without, asked_without

SCHEMA = "holdfast.recording/1"
_LARGEST = 64 << 20  # bytes of a file
_MOST_FILES = 2000  # that are looked through for one that is near
_NEAR = 0.4  # of the text is the same at its ends
_COMPARED = 100_000  # characters of a request
_WORDS = 8
_PIECE = 64  # characters told at once
_USAGE = ("input", "output", "cached", "stored")


def key_of(request: Request) -> Digest:
    """What a request is recorded under, whoever is asked."""
    return digest_bytes(request_bytes(replace(request, model=request.name)))


def is_recorded(folder: str, request: Request) -> bool:
    """Whether there is a file for a request; whether it can be read, whoever asks finds out."""
    return os.path.isfile(_place(folder, key_of(request)))


class Recorded:
    """Answers from one directory."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._given: dict[Digest, int] = {}
        self._index: list[_Text] | None = None

    async def ask(
        self, request: Request, listen: Callable[[str], None], leaves: Callable[[], None]
    ) -> Answer:
        """The next of the answers that were recorded; CallError if there is none. Nothing leaves."""
        del leaves
        key = key_of(request)
        answers = _answers(_place(self._folder, key))
        if not answers:
            raise self._missing(request, key)
        turn = self._given.get(key, 0)
        self._given[key] = turn + 1
        answer = answers[min(turn, len(answers) - 1)]
        for start in range(0, len(answer.text), _PIECE):
            listen(answer.text[start : start + _PIECE])
        return answer

    async def close(self) -> None:
        """Nothing is kept open."""

    def _missing(self, request: Request, key: Digest) -> CallError:
        folder = os.path.relpath(self._folder)
        what = f"no answer of '{request.name}' to this request ({key[:12]}) is in '{folder}'"
        near = self._near(request)
        if near is not None:
            what += f"; {near}"
        way = f"holdfast run --record {folder}"
        if request.provider == "recorded":
            way = f"give the step a model that can be asked, such as local:smollm2, then {way}"
        else:
            way = f"{way}, without --provider recorded, asks '{request.provider}' and records it"
        return CallError(what, reason="not_recorded", hint=way)

    def _near(self, request: Request) -> str | None:
        """Where the request begins to differ from the recording that is most like it."""
        text = _text_of(request_json(request))
        best, shared = None, 0.0
        for known in self._known():
            if known.model == request.name and (alike := _alike(text, known.text)) > shared:
                best, shared = known, alike
        if best is None or shared < _NEAR:
            return None
        at = _shared(text, best.text)
        now, then = _words(text, at), _words(best.text, at)
        return f"{best.key[:12]} is near, and says {then} where this says {now}"

    def _known(self) -> list[_Text]:
        if self._index is None:
            self._index = list(_texts(self._folder))
        return self._index


class Recorder:
    """Writes what was asked and answered into one directory, each request to a file of its own.

    What an earlier command recorded for a request is replaced; what this one records is added to.
    """

    def __init__(
        self,
        folder: str,
        say: Callable[[str], None],
        hidden: Callable[[], Sequence[str]] = tuple,
    ) -> None:
        self._folder = folder
        self._say = say
        self._hidden = hidden
        self._heard: dict[Digest, list[Json]] = {}

    def keep(self, request: Request, answer: Answer) -> None:
        """Write an answer down. It was paid for: a disk that fails is told of and loses nothing."""
        secrets = self._hidden()
        request, answer = asked_without(request, secrets), answered_without(answer, secrets)
        try:
            answer_bytes(answer)
        except EncodingError:
            return  # whoever asked finds out that this is no answer
        key = key_of(request)
        answers = self._heard.setdefault(key, [])
        answers.append(_answer_json(answer))
        data: dict[str, Json] = {
            "schema": SCHEMA,
            "request": request_json(replace(request, model=request.name)),
            "answers": answers,
        }
        try:
            _write(_place(self._folder, key), data)
        except OSError as error:
            self._say(f"an answer could not be recorded in '{self._folder}': {error.strerror}")


def _place(folder: str, key: Digest) -> str:
    return os.path.join(folder, f"{key}.json")


def _write(place: str, data: Mapping[str, Json]) -> None:
    draft = f"{place}.{os.getpid()}.tmp"
    try:
        with open(draft, "w", encoding="utf-8") as file:
            json.dump(data, file, ensure_ascii=False, indent=1, default=dict)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, place)
    except BaseException:
        if os.path.lexists(draft):
            os.unlink(draft)
        raise


def _answer_json(answer: Answer) -> dict[str, Json]:
    usage = answer.usage
    tokens = (usage.input, usage.output, usage.cached, usage.stored)
    data: dict[str, Json] = {
        "text": answer.text,
        "finish": answer.finish,
        "usage": dict(zip(_USAGE, tokens, strict=True)),
    }
    if answer.uses:
        data["tools"] = [
            {"id": use.id, "name": use.name, "arguments": use.arguments} for use in answer.uses
        ]
    if answer.id:
        data["id"] = answer.id
    return data


def _answers(place: str) -> list[Answer]:
    """What was recorded in a file; nothing if it is not there, CallError if it is not a recording."""
    try:
        data = _read(place)
        if data is None:
            return []
        if not isinstance(data, dict) or data.get("schema") != SCHEMA:
            raise ValueError(f"it does not say schema {SCHEMA}")  # noqa: TRY301 - told below
        given = data.get("answers")
        if not isinstance(given, list) or not given:
            raise ValueError("it holds no answers")  # noqa: TRY301 - told below
        answers = [_answer(item) for item in given]
        for answer in answers:
            answer_bytes(answer)  # else nobody could store it
        return answers
    except (OSError, ValueError, TypeError, KeyError, RecursionError, EncodingError) as error:
        words = error.strerror if isinstance(error, OSError) else str(error)
        raise CallError(
            f"'{os.path.relpath(place)}' is not a recording: {words}",
            reason="not_recorded",
            hint="remove it, and record it again with holdfast run --record",
        ) from error


def _answer(data: Json) -> Answer:
    if not isinstance(data, Mapping):
        raise TypeError("an answer is not a mapping")
    text, finish, usage = data["text"], data["finish"], data["usage"]
    if not isinstance(text, str) or finish not in get_args(Finish) or not isinstance(usage, dict):
        raise TypeError("an answer needs text, finish and usage")
    uses = cast("list[Mapping[str, Json]]", data.get("tools", []))
    tokens = [usage.get(name, 0) for name in _USAGE]
    if not all(isinstance(number, int) and number >= 0 for number in tokens):
        raise TypeError("the usage of an answer is not made of whole numbers")
    return Answer(
        text=text,
        uses=tuple(
            ToolUse(str(use["id"]), str(use["name"]), str(use["arguments"])) for use in uses
        ),
        finish=cast("Finish", finish),
        usage=Usage(*cast("list[int]", tokens)),
        id=str(data.get("id", "")),
    )


def _read(place: str) -> object:
    """The value of a JSON file; None if there is none. Nothing is waited for, as at a pipe."""
    try:
        descriptor = os.open(place, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    with open(descriptor, "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode) or found.st_size > _LARGEST:
            raise ValueError("it is no file, or too large")
        return cast("object", json.loads(file.read(_LARGEST + 1)))


class _Text(NamedTuple):
    """The words of a recorded request."""

    key: str
    model: str
    text: str


def _texts(folder: str) -> list[_Text]:
    """Recordings that can be read, for comparison."""
    found: list[_Text] = []
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return found
    for name in [name for name in names if name.endswith(".json")][:_MOST_FILES]:
        try:
            data = _read(os.path.join(folder, name))
        except (OSError, ValueError, RecursionError):
            continue
        request = data.get("request") if isinstance(data, dict) else None
        if isinstance(request, dict):
            text = _text_of(request)
            found.append(_Text(name.removesuffix(".json"), str(request.get("model")), text))
    return found


def _text_of(request: Mapping[str, Json]) -> str:
    """What a request says, in one piece: the turns first, then how it is to be answered."""
    messages = request.get("messages")
    turns = [
        str(message.get("text", ""))
        for message in (messages if isinstance(messages, list) else [])
        if isinstance(message, Mapping)
    ]
    rest = {key: request[key] for key in sorted(request) if key not in {"messages", "model"}}
    if rest:
        turns.append(json.dumps(rest, sort_keys=True, default=dict))
    return "\n".join(turns)[:_COMPARED]


def _alike(one: str, other: str) -> float:
    """How much of two texts is the same from their beginnings and from their ends."""
    head = _shared(one, other)
    tail = _shared(one[head:][::-1], other[head:][::-1])
    return (head + tail) / max(len(one), len(other), 1)


def _shared(one: str, other: str) -> int:
    """How many characters two texts have in common at their beginnings."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


def _words(text: str, at: int) -> str:
    """Some words from where a text begins to differ."""
    start = max(text.rfind(" ", 0, at), text.rfind("\n", 0, at)) + 1
    words = text[start:].split()[:_WORDS]
    return f"'{' '.join(words)[:80]}'" if words else "nothing"
