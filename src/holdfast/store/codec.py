"""Events as text, and the hash chain over them.

An event is stored as a kind (the class name in snake case) and a body: one JSON object with the
fields in the order of the class. Constraints: some 5 µs to write or read an attempt, and bytes that
never depend on the process that wrote them.

- A field equal to its default is left out, so a field with a default can be added to a class
  without touching a stored byte.
- A tuple is a JSON array, a named tuple too. A data class inside an event is an object, defaults
  left out. How a field is read back follows from its annotation, looked at when a class is first
  met (to do it for all classes costs 5 ms at start); no class has to be listed here.
- The body is ASCII: a file name may hold lone surrogates, which SQLite refuses; escaped they come
  back as they were.
- An unknown kind or field is refused, never skipped: state is the fold of all events or nothing.
  The type of each value is not checked again; the chain vouches for the bytes.

Rejected: pickle (revives objects), one column per field (a table per class), CBOR or MessagePack (a
journal must be readable with nothing but `sqlite3` at hand), digests as base64 (20 bytes shorter
each, but then nobody can search for a digest).

The chain: `hash_n = sha256(hash_(n-1) + seq + at + len(kind) + len(body) + kind + body)`, numbers
as 8 bytes and lengths as 4, big end first; `hash_0` is the SHA-256 of the journal's name.
"""

from __future__ import annotations

import hashlib
import json
import re
import struct
from collections.abc import Callable, Iterable
from dataclasses import MISSING, fields, is_dataclass
from datetime import UTC, datetime
from itertools import starmap
from json.encoder import encode_basestring_ascii as _quoted
from typing import Literal, NamedTuple, cast, get_args, get_origin, get_type_hints

from holdfast.errors import IntegrityError
from holdfast.model.digest import Json
from holdfast.model.event import Event, Recorded
from holdfast.ports import Kept

CLASSES = cast("tuple[type[Event], ...]", get_args(Event))
_NEWER = "written by a newer Holdfast? upgrade holdfast"

_Build = Callable[[object], object]  # turns the JSON of one field back into its value


class _Shape(NamedTuple):
    """What the codec knows about a class."""

    kind: str
    make: Callable[..., object]
    defaults: tuple[tuple[str, object], ...]
    spell: Callable[[object], str]
    nested: tuple[tuple[str, _Build], ...]


def _shape(noun: type) -> _Shape:
    known = _shapes.get(noun)
    if known is None:
        known = _shapes[noun] = _new_shape(noun)
    return known


def _new_shape(noun: type) -> _Shape:
    items = fields(noun)
    return _Shape(
        kind=_kind(noun),
        make=noun,
        defaults=tuple((item.name, item.default) for item in items),
        spell=_speller(noun),
        nested=_nested(noun),
    )


def _kind(noun: type) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", noun.__name__).lower()


def _nested(noun: type) -> tuple[tuple[str, _Build], ...]:
    """The fields of a class that JSON does not give back as they were."""
    found = ((name, _builder(hint)) for name, hint in get_type_hints(noun).items())
    return tuple((name, build) for name, build in found if build is not None)


def _builder(hint: object) -> _Build | None:
    """How to read a value with this annotation back; None if JSON gives it back as it was."""
    if get_origin(hint) is tuple:
        inner = get_args(hint)[0]
        item = _builder(inner)
        if isinstance(inner, type) and issubclass(inner, tuple) and not _nested(inner):
            return lambda data: tuple(starmap(inner, cast("list[list[object]]", data)))
        return tuple if item is None else _tuple_of(item)  # type: ignore[return-value]
    if not isinstance(hint, type):
        return None
    if is_dataclass(hint):
        return _object_of(_shape(hint))
    return _named_of(hint) if issubclass(hint, tuple) else None


def _tuple_of(build: _Build) -> _Build:
    return lambda data: tuple([build(item) for item in cast("list[object]", data)])


def _named_of(noun: type) -> _Build:
    names = list(get_type_hints(noun))
    nested = [(names.index(name), build) for name, build in _nested(noun)]
    if not nested:
        return lambda data: noun(*cast("Iterable[object]", data))

    def build(data: object) -> object:
        values = list(cast("Iterable[object]", data))
        for place, inner in nested:
            values[place] = inner(values[place])
        return noun(*values)

    return build


def _object_of(shape: _Shape) -> _Build:
    return lambda data: _made(shape, cast("dict[str, object]", data))


def _made(shape: _Shape, data: dict[str, object]) -> object:
    for name, build in shape.nested:
        if name in data:
            data[name] = build(data[name])
    return shape.make(**data)


def _speller(noun: type) -> Callable[[object], str]:
    """Writes objects of a class as JSON, without the fields that are as they usually are.

    A function is compiled from the fields, as `dataclass` does for `__init__`: going through them one by
    one takes 5.2 µs for the start of an attempt, this 2.6 µs.
    """
    lines = ["def spell(it):", " parts = []"]
    known: dict[str, object] = {"text": _text, "quoted": _quoted}
    hints = get_type_hints(noun)
    for item in fields(noun):
        write = "quoted" if _is_text(hints[item.name]) else "text"
        line = f""" parts.append('"{item.name}":' + {write}(it.{item.name}))"""
        if item.default is not MISSING:
            known[f"usual_{item.name}"] = item.default
            line = f" if it.{item.name} != usual_{item.name}:\n {line}"
        lines.append(line)
    lines.append(" return '{' + ','.join(parts) + '}'")
    exec("\n".join(lines), known)  # noqa: S102 - made of names of fields, which are identifiers
    return cast("Callable[[object], str]", known["spell"])


def _is_text(hint: object) -> bool:
    """Whether values with this annotation are always text."""
    if get_origin(hint) is Literal:
        return all(isinstance(word, str) for word in get_args(hint))
    return hint is str or getattr(hint, "__supertype__", None) is str


def _text(value: object) -> str:
    """A value as `json.dumps` writes it without blanks."""
    kind = value.__class__
    if kind is str:
        return _quoted(cast("str", value))
    if kind is int:
        return str(value)
    if value is None or kind is bool:
        return _WORDS[value]
    if isinstance(value, tuple):
        if len(value) > _MANY and isinstance(value[0], tuple):  # named tuples of plain values
            return _rows(value)
        return f"[{','.join([_text(item) for item in value])}]"
    if is_dataclass(value):
        return _shape(type(value)).spell(value)
    return _to_text(value)


def _rows(value: tuple[tuple[str, ...], ...]) -> str:
    """Named tuples as `_to_text` writes them, in half the time if all is text that needs no escape."""
    try:
        text = f"""[["{'"],["'.join(map('","'.join, value))}"]]"""
    except TypeError:
        return _to_text(value)
    alike = {*map(type, value)} == {type(value[0])}
    plain = text.isascii() and not text.encode().translate(None, _UNESCAPED)
    if alike and plain and text.count('"') == 2 * sum(map(len, value)):
        return text
    return _to_text(value)


_shapes: dict[type, _Shape] = {}
_kinds: dict[str, type[Event]] = {_kind(noun): noun for noun in CLASSES}
KINDS = tuple(_kinds)
_WORDS: dict[object, str] = {None: "null", True: "true", False: "false"}
_MANY = 8
_UNESCAPED = bytes(range(0x20, 0x7F)).replace(b"\\", b"")  # quotes are counted
_to_text = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode
_from_text = json.JSONDecoder().raw_decode


def kind_of(event: Event) -> str:
    """The kind under which an event is stored: its class name in snake case."""
    return _kind(type(event))


def kind_of_class(noun: type[Event]) -> str:
    """The kind under which events of a class are stored."""
    return _kind(noun)


def encode(event: Event | Kept) -> tuple[str, str]:
    """The kind and the body of an event; equal events give equal text in every process."""
    if isinstance(event, Kept):
        return kind_of_class(event.noun), event.body
    shape = _shape(type(event))
    return shape.kind, shape.spell(event)


def class_of(kind: str) -> type[Event]:
    """The class of the events that are stored under a kind; IntegrityError if this Holdfast knows none."""
    noun = _kinds.get(kind)
    if noun is None:
        raise IntegrityError(f"there is no event '{kind}'", hint=_NEWER)
    return noun


def decode(kind: str, body: str) -> Event:
    """Read an event back; IntegrityError if this Holdfast does not know its kind or a field."""
    shape = _shape(class_of(kind))
    try:
        data, end = _from_text(body)
        if end != len(body):
            raise IntegrityError(f"an event '{kind}' has text after its end")
        return cast("Event", _made(shape, data))
    except (TypeError, ValueError, IndexError, AttributeError, RecursionError) as error:
        raise _unreadable(shape, body) from error


def _unreadable(shape: _Shape, body: str) -> IntegrityError:
    """Name what cannot be read: the unknown field, if that is it."""
    known = {name for name, _ in shape.defaults}
    try:
        unknown = sorted(cast("dict[str, object]", json.loads(body)).keys() - known)
    except (ValueError, AttributeError, RecursionError):
        return IntegrityError(f"an event '{shape.kind}' is not a JSON object")
    if unknown:
        message = f"an event '{shape.kind}' has the unknown field '{unknown[0]}'"
    else:
        message = f"an event '{shape.kind}' lacks a field or holds one of the wrong shape"
    return IntegrityError(message, hint=_NEWER)


_numbers = struct.Struct(">QqII").pack
_sha256 = hashlib.sha256
_kind_bytes = {kind: kind.encode() for kind in KINDS}


def first_hash(journal: str) -> bytes:
    """What the first event of a journal is chained to."""
    return _sha256(journal.encode("utf-8", "surrogatepass")).digest()


def next_hash(before: bytes, seq: int, at: int, kind: str, body: str) -> bytes:
    """The hash of an event; covers everything the journal holds up to it."""
    k, b = _kind_bytes.get(kind) or kind.encode(), body.encode()
    return _sha256(before + _numbers(seq, at, len(k), len(b)) + k + b).digest()


def hash_of_row(before: bytes, seq: int, at: int, kind: str, body: str) -> bytes:
    """The same of a row as it was read; empty if a disk made something else of one of its columns."""
    try:
        return next_hash(before, seq, at, kind, body)
    except (AttributeError, TypeError, struct.error):
        return b""


def timestamp(at: int) -> str:
    """Milliseconds since 1970 as RFC 3339 in UTC, three digits after the second."""
    moment = datetime.fromtimestamp(at // 1000, UTC).replace(tzinfo=None)
    return f"{moment.isoformat()}.{at % 1000:03d}Z"


def event_json(recorded: Recorded) -> dict[str, Json]:
    """One line of `holdfast trace --json`: every field by name, defaults too, in words."""
    line: dict[str, Json] = {
        "seq": recorded.seq,
        "ts": timestamp(recorded.at),
        "event": kind_of(recorded.event),
    }
    for item in fields(recorded.event):
        line[item.name] = _readable(getattr(recorded.event, item.name))
    return line


def _readable(value: object) -> Json:
    """A nested value as JSON: named things are objects."""
    if is_dataclass(value):
        return {item.name: _readable(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, tuple):
        names = getattr(value, "_fields", None)
        items = [_readable(item) for item in value]
        return items if names is None else dict(zip(names, items, strict=True))
    return cast("Json", value)
