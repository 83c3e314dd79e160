"""Expressions in values and prompts: `${{ PATH }}`, a path and nothing else; nothing is evaluated.

    params.NAME                 a value that the plan is given
    steps.ID.output             the artifact of a step, as text
    steps.ID.output.a.0.b       what its JSON has there
    item, item.a                the item that a step with `for_each` runs for

A text with expressions is a template: pieces of text, and references between them. One that is a
single reference stands for the value itself, with its type; any other becomes text, where text
stands as it is and every other value as compact JSON.

Of the dollars directly before `{{` two stand for one, and an odd one makes an expression: `$${{` is
the text `${{`. A template that was read can therefore be written again, whatever its text holds, and
a value put into it can never become an expression.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Literal, NamedTuple

from holdfast.model.digest import Json
from holdfast.model.pattern import Pattern

OPEN, CLOSE = "${{", "}}"
FORMS = "params.NAME, steps.ID.output or steps.ID.output.FIELD"
PARAM_NAME = Pattern(r"[A-Za-z_][A-Za-z0-9_\-]{0,127}\Z")

MOST = 10_000  # expressions in one text

_LONGEST = 1000
_NAME = r"[A-Za-z_][A-Za-z0-9_\-]{0,127}"
_FIELDS = r"((?:\.[\w\-]+)*)\Z"
_PARAM = Pattern(rf"params\.({_NAME})\Z")
_STEP = Pattern(rf"steps\.([A-Za-z_][A-Za-z0-9_.\-]{{0,127}}?)\.output{_FIELDS}")
_ITEM = Pattern(rf"item{_FIELDS}")
_MADE_OF = Pattern(r"[\w.\-]*\Z")

Root = Literal["params", "steps", "item"]


class Reference(NamedTuple):
    """A path: where it starts, which param or step, and the way into its value.

    `begin` is where the expression begins in its text, `at` where its path does.
    """

    root: Root
    name: str
    fields: tuple[str, ...]
    path: str
    begin: int
    at: int

    def place(self, depth: int) -> tuple[int, int]:
        """Where in the text the name (0) or a field (from 1) stands, and how long it is."""
        start = self.at + len(self.root) + (1 if self.name else 0)
        if depth == 0:
            return start, len(self.name)
        start += len(self.name) + (len(".output") if self.root == "steps" else 0)
        for field in self.fields[: depth - 1]:
            start += 1 + len(field)
        return start + 1, len(self.fields[depth - 1])


class Wrong(NamedTuple):
    """An expression that cannot be read: what is wrong, what to do, where it begins, how long it is."""

    message: str
    hint: str
    begin: int
    length: int


Part = str | Reference | Wrong
Lookup = Callable[[Reference], Json]


def is_template(text: str) -> bool:
    """Whether a text has to be parsed at all."""
    return OPEN in text


def parse(text: str) -> list[Part]:
    """The pieces of a template in their order, neighbouring text joined."""
    found: list[Part] = []
    pieces: list[str] = []  # of the text since the last expression
    done = 0
    while (begin := text.find(OPEN, done)) >= 0:
        first = begin
        while first > done and text[first - 1] == "$":
            first -= 1
        dollars = begin - first + 1
        pieces += (text[done:first], "$" * (dollars // 2))
        done = begin + len(OPEN)
        if dollars % 2 == 0:
            pieces.append(OPEN[1:])
            continue
        part, done = _expression(text, begin, done, len(found))
        _flush(pieces, found)
        found.append(part)
    pieces.append(text[done:])
    _flush(pieces, found)
    return found


def _expression(text: str, begin: int, inside: int, so_far: int) -> tuple[Reference | Wrong, int]:
    """The expression that begins here, and where the text goes on; at its end if that is hopeless."""
    end = text.find(CLOSE, inside)
    if end < 0:
        hint = f"close it with '{CLOSE}'; for the text itself write '${OPEN}'"
        return Wrong(f"'{OPEN}' is never closed", hint, begin, len(OPEN)), len(text)
    if so_far > 2 * MOST:
        wrong = Wrong(f"a text has more than {MOST:,} expressions", "", begin, len(OPEN))
        return wrong, len(text)
    return _reference(text[inside:end], begin, inside), end + len(CLOSE)


def _flush(pieces: list[str], found: list[Part]) -> None:
    """Add the text so far as one part."""
    text = "".join(pieces)
    pieces.clear()
    if text:
        found.append(text)


def _reference(inside: str, begin: int, at: int) -> Reference | Wrong:
    path = inside.strip()
    at += len(inside) - len(inside.lstrip())
    length = len(inside) + len(OPEN) + len(CLOSE)
    if len(path) > _LONGEST:
        return Wrong(f"an expression has more than {_LONGEST:,} characters", "", begin, length)
    if found := _PARAM.match(path):
        return Reference("params", found[1], (), path, begin, at)
    if found := _STEP.match(path):
        return Reference("steps", found[1], _fields(found[2]), path, begin, at)
    if found := _ITEM.match(path):
        return Reference("item", "", _fields(found[1]), path, begin, at)
    return Wrong(*_refusal(path), begin, length)


def _fields(text: str) -> tuple[str, ...]:
    return tuple(text[1:].split(".")) if text else ()


def _refusal(path: str) -> tuple[str, str]:
    """What is wrong with a path, and what to do."""
    if not path:
        return "an expression is empty", f"write {FORMS}"
    short = path if len(path) <= 60 else path[:59] + "…"  # noqa: PLR2004 - as much as is read
    if not _MADE_OF.match(path):
        hint = f"only a path is filled in: {FORMS}; compute values in a step"
        return f"'{short}' is not a path", hint
    root, _, rest = path.partition(".")
    if root == "steps" and rest and "output" not in rest.split("."):
        return f"'{short}' names no artifact", f"did you mean 'steps.{rest.split('.')[0]}.output'?"
    if root == "params" and "." in rest:
        return f"'{short}' goes into a param, and a param is one value", f"write {FORMS}"
    if root in {"params", "steps"}:
        return f"'{short}' is not a whole path", f"write {FORMS}"
    hint = f"write {FORMS}; for the text itself write '${OPEN}'"
    return f"'{short}' starts with nothing that is known here", hint


def parts(value: Json) -> Iterator[Reference | Wrong]:
    """Every expression in a JSON value."""
    for text in texts_in(value):
        if OPEN in text:
            yield from (part for part in parse(text) if not isinstance(part, str))


def texts_in(value: Json) -> Iterator[str]:
    """Every text in a value, keys apart."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from texts_in(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from texts_in(item)


def write(template: Iterable[Part]) -> str:
    """A template as text, so that reading it gives the same parts."""
    written: list[str] = []
    pieces: list[str] = []
    for part in template:
        if isinstance(part, str):
            pieces.append(part)
        elif isinstance(part, Reference):
            text = "".join(pieces)
            pieces.clear()
            written += (literal(text), "$" * (len(text) - len(text.rstrip("$"))))
            written.append(f"{OPEN} {part.path} {CLOSE}")
    return "".join((*written, literal("".join(pieces))))


def literal(text: str) -> str:
    """A text as a template that stands for exactly this text."""
    if OPEN not in text:
        return text
    return re.sub(r"(?<!\$)(\$++)(?=\{\{)", r"\1\1", text)


def literals(value: Json) -> Json:
    """A JSON value as one that, filled, is this value."""
    return _over(value, literal)


def fill(value: Json, lookup: Lookup) -> Json:
    """A JSON value with every reference replaced by what it stands for."""

    def one(text: str) -> Json:
        if OPEN not in text:
            return text
        pieces = parse(text)
        if len(pieces) == 1 and isinstance(pieces[0], Reference):
            return lookup(pieces[0])
        return "".join(_filled(part, lookup) for part in pieces)

    return _over(value, one)


def _filled(part: Part, lookup: Lookup) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, Wrong):  # was refused when the plan was loaded
        return ""
    return rendered(lookup(part))


def rendered(value: Json) -> str:
    """A value inside a longer text: text as it is, anything else as compact JSON."""
    if isinstance(value, str):
        return value
    if type(value) is int:
        return repr(value)
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def _over(value: Json, one: Callable[[str], Json]) -> Json:
    if isinstance(value, str):
        return one(value)
    if isinstance(value, Mapping):
        return {key: _over(item, one) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_over(item, one) for item in value]
    return value
