"""Values and prompts of a step: params are filled in here, references to steps are noted and stay."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.formats.nodes import Mapping, Node, Scalar
from holdfast.formats.problems import Placed, Spot
from holdfast.formats.reading import Reading, Use
from holdfast.formats.shapes import Shape, pairs
from holdfast.model.digest import Json
from holdfast.model.expression import (
    OPEN,
    Part,
    Reference,
    Wrong,
    is_template,
    literals,
    parse,
    rendered,
    write,
)
from holdfast.model.fixed import frozen
from holdfast.model.walls import moved_by, size_of

_LONGEST_NAME = 255  # bytes; what cannot be in a name is written as three


@frozen
class _Text:
    """A text that is read, and how to find a piece of it: (begin of expression, start, length)."""

    reading: Reading
    key: str
    value: str
    spot: Callable[[int, int, int], Placed]
    where: Callable[[int], str]  # goes before a message

    def refuse(self, code: str, begin: int, at: Placed, message: str, hint: str = "") -> None:
        self.reading.problems.add(code, at, self.where(begin) + message, hint)


def values(reading: Reading, key: str, node: Node) -> dict[str, Json] | None:
    """A mapping of any JSON values, with expressions in their texts; each name is also that of a file."""
    if not isinstance(node, Mapping):
        reading.wrong_type(key, node, "a mapping")
        return None
    for name, (place, _) in node.pairs.items():
        if len(name.encode()) + 2 * sum(name.count(c) for c in "/%") > _LONGEST_NAME:
            reading.problems.add(
                "P046", place, f"a name in {reading.label(key)} is too long for a file"
            )
    return {name: _value(reading, f"{key}.{name}", item) for name, item in pairs(reading, node)}


def _value(reading: Reading, key: str, node: Node) -> Json:
    if isinstance(node, Mapping):
        return {name: _value(reading, key, item) for name, item in pairs(reading, node)}
    if isinstance(node, Scalar):
        return template(reading, key, node) if isinstance(node.value, str) else node.value
    return [_value(reading, key, item) for item in node.items]


def template(reading: Reading, key: str, node: Scalar) -> Json:
    """A text of the plan file; a single param gives its value, with its type."""
    value = str(node.value)
    if not is_template(value):
        return value

    def spot(begin: int, start: int, length: int) -> Placed:
        return reading.spot(node, value, begin, start, length)

    return _bound(_Text(reading, key, value, spot, lambda _: ""))


def text_template(reading: Reading, key: str, node: Node) -> str | None:
    """A text of the plan file that stays text."""
    if not isinstance(node, Scalar) or not isinstance(node.value, str):
        reading.wrong_type(key, node, "text")
        return None
    return _as_text(template(reading, key, node))


def file_template(reading: Reading, key: str, node: Node, file: str, text: str) -> str | None:
    """The text of a file that the plan names; its problems are told with its own lines."""
    if not is_template(text):
        return text

    def where(begin: int) -> str:
        above = text[:begin]
        return f"{file}:{above.count(chr(10)) + 1}:{begin - above.rfind(chr(10))}: "

    return _as_text(_bound(_Text(reading, key, text, lambda *_: _here(node), where)))


def _here(node: Node) -> Placed:
    return Spot(node.line, node.column, 0)


def _as_text(value: Json) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return rendered(value)


def _bound(text: _Text) -> Json:
    """The template with its params filled in; nothing after it reported a problem."""
    parts: list[Part] = []
    whole = parse(text.value)
    _count(text, len(whole))
    for part in whole:
        if isinstance(part, str):
            parts.append(part)
        elif isinstance(part, Wrong):
            at = text.spot(part.begin, part.begin, part.length)
            text.refuse("P060", part.begin, at, part.message, part.hint)
        elif part.root == "params":
            found = _param(text, part)
            if len(whole) == 1:
                return found
            parts.append(rendered(found))
        else:
            _note(text, part)
            parts.append(part)
    return write(parts)


def _count(text: _Text, expressions: int) -> None:
    reading = text.reading
    reading.expressions += expressions
    if reading.expressions > reading.most:
        message = f"the plan has more than {reading.most:,} expressions"
        raise reading.problems.fatal("P011", text.spot(0, 0, 1), message)


def _count_characters(text: _Text, value: Json) -> None:
    """A value is filled in as often as it is named: without a bound, a small file could grow huge."""
    reading = text.reading
    size = value if isinstance(value, str) else rendered(value)
    reading.expanded += len(size)
    most = reading.walls.plan_size
    if reading.expanded > most:
        message = f"params fill the plan with more than {size_of(most)}"
        hint = moved_by("plan_size", most)
        raise reading.problems.fatal("P011", text.spot(0, 0, 1), message, hint)


def _param(text: _Text, part: Reference) -> Json:
    reading = text.reading
    use = Use(part, lambda start, length: text.spot(part.begin, start, length))
    param = reading.params.get(part.name)
    if param is None:
        guess = reading.problems.did_you_mean(part.name, reading.params)
        known = f"params of this plan: {', '.join(reading.params)}"
        declare = f"declare it: params: {{{part.name}: {{type: string}}}}"
        message = f"{reading.label(text.key)} reads the param '{part.name}', which is not declared"
        hint = guess or (known if reading.params else declare)
        text.refuse("P061", part.begin, use.place(0), message, hint)
        return None
    if param.type == "files":
        reading.uses.append(use)
    _count_characters(text, param.value)
    return literals(param.value) if len(parse(text.value)) == 1 else param.value


def _note(text: _Text, part: Reference) -> None:
    reading = text.reading
    use = Use(part, lambda start, length: text.spot(part.begin, start, length))
    if part.root != "item":
        reading.uses.append(use)
    elif not reading.has_items:
        at = text.spot(part.begin, part.at, len(part.path))
        message = f"'{part.path}' in {reading.label(text.key)}: the step has no 'for_each'"
        text.refuse("P060", part.begin, at, message, f"for the text itself write '${OPEN}'")


VALUES = Shape(values, {"type": "object"})
TEMPLATE = Shape(text_template, {"type": "string"})
