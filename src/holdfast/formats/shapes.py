"""The types of values in a plan file: each reads a node, and says the same as JSON Schema."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from holdfast.formats.nodes import Listing, Mapping, Node, Scalar
from holdfast.formats.problems import Placed, folded, quoted
from holdfast.formats.reading import Reading
from holdfast.model.digest import Json
from holdfast.model.expression import parse
from holdfast.model.fixed import frozen
from holdfast.model.glob import PRIVATE, components
from holdfast.model.pattern import Pattern

T_co = TypeVar("T_co", covariant=True)

EXPRESSION = "${{"
_DURATION = Pattern(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)([smhd])\Z")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_SPLIT_SPECIAL = Pattern(r"['\"\\]")
_SHELL_WORDS = frozenset({"|", "||", "&", "&&", ";", ">", ">>", "<", "<<", "2>&1", "2>"})
_NAME = Pattern(r"[A-Za-z_][A-Za-z0-9_]{0,127}\Z")
_EASY_PATH = Pattern(r"\w[\w.-]*(?:/\w[\w.-]*)*\Z", re.ASCII)
_LONGEST_NAME = 255
_MOST = 1_000_000_000_000


@frozen
class Shape(Generic[T_co]):
    """How a value is read, and its JSON Schema; `read` gives None after it reported a problem."""

    read: Callable[[Reading, str, Node], T_co | None]
    schema: Json


def text(reading: Reading, key: str, node: Node) -> str | None:
    """Any text, without expressions."""
    if not isinstance(node, Scalar) or not isinstance(node.value, str):
        reading.wrong_type(key, node, "text")
        return None
    if EXPRESSION in node.value:
        no_expression(reading, key, node)
        return None
    return node.value


def prose(reading: Reading, key: str, node: Node) -> str | None:
    """Text that people and models read as it is; as in prompts, `$${{` in it is the text `${{`."""
    if isinstance(node, Scalar) and isinstance(node.value, str) and EXPRESSION in node.value:
        pieces = parse(node.value)
        if all(isinstance(piece, str) for piece in pieces):
            return "".join(map(str, pieces))
    return text(reading, key, node)


def no_expression(reading: Reading, key: str, node: Node) -> None:
    if key in {"run", "shell", "command"}:
        message = f"{reading.label(key)} holds '${{{{', and nothing is ever filled into a command"
        hint = "give the value by 'with' and read it from the directory HOLDFAST_WITH"
        reading.problems.add("P039", node, message, hint)
    else:
        message = f"{reading.label(key)} holds '${{{{', and nothing is ever filled in there"
        reading.problems.add("P039", node, message, "expressions work in 'with' and in 'prompt'")


def line(reading: Reading, key: str, node: Node) -> str | None:
    """Text of one line that is not empty."""
    value = text(reading, key, node)
    if value is None:
        return None
    if not value.strip() or not value.isprintable() or len(value) > _LONGEST_NAME:
        message = f"{reading.label(key)} must be one line of 1 to {_LONGEST_NAME} characters"
        reading.problems.add("P046", node, message)
        return None
    return value


def flag(reading: Reading, key: str, node: Node) -> bool | None:
    if isinstance(node, Scalar) and isinstance(node.value, bool):
        return node.value
    reading.wrong_type(key, node, "true or false")
    return None


def whole(least: int) -> Shape[int]:
    def read(reading: Reading, key: str, node: Node) -> int | None:
        value = node.value if isinstance(node, Scalar) else None
        if not isinstance(value, int) or isinstance(value, bool):
            reading.wrong_type(key, node, "a whole number")
            return None
        if not least <= value <= _MOST:
            message = f"{reading.label(key)} must be from {least} to {_MOST:,}"
            hint = f"the nearest is {min(max(value, least), _MOST):,}"
            reading.problems.add("P037", node, message, hint)
            return None
        return value

    return Shape(read, {"type": "integer", "minimum": least, "maximum": _MOST})


def decimal(least: float, most: float) -> Shape[float]:
    """A number between two bounds."""

    def read(reading: Reading, key: str, node: Node) -> float | None:
        value = node.value if isinstance(node, Scalar) else None
        if isinstance(value, bool) or not isinstance(value, int | float):
            reading.wrong_type(key, node, "a number")
            return None
        if not least <= value <= most:
            message = f"{reading.label(key)} must be from {least:g} to {most:g}"
            hint = f"the nearest is {min(max(value, least), most):g}"
            reading.problems.add("P037", node, message, hint)
            return None
        return value

    return Shape(read, {"type": "number", "minimum": least, "maximum": most})


def word(*words: str, reserved: Iterable[str] = (), any_case: bool = False) -> Shape[str]:
    """One of a closed list; reserved words are known but not available."""
    kept = frozenset(reserved)

    def read(reading: Reading, key: str, node: Node) -> str | None:
        value = text(reading, key, node)
        if value is None:
            return None
        found = value.lower() if any_case else value
        if found in words:
            return found
        if found in kept:
            message = f"'{key}: {value}' is not available in this version"
            reading.problems.add("P031", node, message, f"available: {', '.join(words)}")
            return None
        guess = reading.problems.did_you_mean(value, words)
        message = f"{reading.label(key)} is {quoted(value)}, which is not one of {', '.join(words)}"
        reading.problems.add("P034", node, message, guess)
        return None

    if any_case:
        letters = ["".join(f"[{char}{char.upper()}]" for char in item) for item in words]
        pattern: Json = {"type": "string", "pattern": f"^(?:{'|'.join(letters)})$"}
        return Shape(read, {"anyOf": [{"enum": list(words)}, pattern]})
    return Shape(read, {"enum": list(words)})


def seconds_of(value: str) -> float | None:
    """90s, 5m, 2h, 7d as seconds; None if it is no duration."""
    found = _DURATION.match(value)
    seconds = float(found[1]) * _SECONDS[found[2]] if found else 0.0
    return seconds if seconds > 0 else None


def duration(reading: Reading, key: str, node: Node) -> float | None:
    """90s, 5m, 2h, 7d as seconds."""
    number = node.value if isinstance(node, Scalar) else None
    if isinstance(number, int | float) and not isinstance(number, bool):
        message = f"{reading.label(key)} needs a unit"
        reading.problems.add("P036", node, message, "write it like 90s, 5m, 2h or 7d")
        return None
    value = text(reading, key, node)
    if value is None:
        return None
    seconds = seconds_of(value)
    if seconds is None:
        message = f"{reading.label(key)} is {quoted(value)}, which is not a duration"
        reading.problems.add("P036", node, message, "write it like 90s, 5m, 2h or 7d")
        return None
    return seconds


def each(node: Node) -> list[Node]:
    """The items of a list; one value stands for a list of itself."""
    return node.items if isinstance(node, Listing) else [node]


def list_of(
    item: Callable[[Reading, str, Node], str | None], schema: Json
) -> Shape[tuple[str, ...]]:
    """One text, or a list of texts without repetition."""

    def read(reading: Reading, key: str, node: Node) -> tuple[str, ...] | None:
        if isinstance(node, Mapping):
            reading.wrong_type(key, node, "a list of text")
            return None
        found: dict[str, Node] = {}
        for entry in each(node):
            value = item(reading, key, entry)
            if value is not None:
                twice(reading, key, value, entry, found)
        return tuple(found)

    return Shape(read, {"anyOf": [schema, {"type": "array", "items": schema, "uniqueItems": True}]})


def twice(reading: Reading, key: str, value: str, node: Node, found: dict[str, Node]) -> None:
    """Note a value and its place, or report that it was there before."""
    if value in found:
        first = f"first in line {found[value].line}"
        message = f"{quoted(value)} stands twice in {reading.label(key)}, {first}"
        reading.problems.add("P038", node, message)
    else:
        found[value] = node


def name(reading: Reading, key: str, node: Node) -> str | None:
    """The name of an environment variable."""
    value = text(reading, key, node)
    if value is None:
        return None
    if not _NAME.match(value):
        message = f"{quoted(value)} in {reading.label(key)} is not the name of a variable"
        hint = "give names only, of letters, digits and _; values come from the environment"
        reading.problems.add("P046", node, message, hint)
        return None
    if value.upper().startswith("HOLDFAST_"):
        reading.problems.add("P046", node, f"{quoted(value)} is set by holdfast itself")
        return None
    return value


def command(reading: Reading, key: str, node: Node) -> tuple[str, ...] | None:
    """An argv: a list of text, or one text split like a shell would but never given to one."""
    if isinstance(node, Listing):
        words = [text(reading, key, item) for item in node.items]
        argv = tuple(item for item in words if item is not None)
        if len(argv) != len(words):
            return None
    else:
        value = text(reading, key, node)
        if value is None:
            return None
        try:
            argv = _split(value)
        except ValueError as error:
            message = f"{reading.label(key)} cannot be split into words: {str(error).lower()}"
            hint = "write it as a list, one item for each word"
            reading.problems.add("P040", node, message, hint)
            return None
        odd = next((item for item in argv if item in _SHELL_WORDS), None)
        if odd is not None:
            message = f"{reading.label(key)} is not given to a shell: '{odd}' is only a word"
            reading.problems.warn("P901", node, message, "for a shell line use 'shell'")
    if not argv or not argv[0]:
        reading.problems.add("P040", node, f"{reading.label(key)} names no program")
        return None
    return argv


def _split(value: str) -> tuple[str, ...]:
    if value.isascii() and not _SPLIT_SPECIAL.search(value):
        return tuple(value.split())
    return tuple(shlex.split(value))


def function(reading: Reading, key: str, node: Node) -> str | None:
    """A function by the name of its module: package.module:function."""
    value = text(reading, key, node)
    if value is None:
        return None
    module, colon, called = value.partition(":")
    if colon and called.isidentifier() and all(part.isidentifier() for part in module.split(".")):
        return value
    message = f"{reading.label(key)} is {quoted(value)}, which is not module:function"
    reading.problems.add("P041", node, message, "write it like package.module:function")
    return None


def inside(reading: Reading, key: str, node: Placed, value: str) -> list[str] | None:
    """The components of a path that stays in the project."""
    parts = components(value)
    reason = ""
    if not parts:
        reason = "names no file"
    elif value.startswith("/") or parts[0].startswith("~"):
        reason = "is not relative to the project"
    elif ".." in parts:
        reason = "leads out of the project"
    elif any(folded(part).rstrip(". ") in PRIVATE for part in parts):
        reason = "lies in a directory that is not the plan's"
    elif not value.isprintable() or any(len(part.encode()) > _LONGEST_NAME for part in parts):
        reason = "is not a usable file name"
    if reason:
        hint = "paths are relative to the directory of the plan file"
        message = f"{quoted(value)} in {reading.label(key)} {reason}"
        reading.problems.add("P043", node, message, hint)
        return None
    return parts


def path(reading: Reading, key: str, node: Node) -> str | None:
    """A path inside the project, in its shortest spelling."""
    value = text(reading, key, node)
    if value is None:
        return None
    if len(value) <= _LONGEST_NAME and _EASY_PATH.match(value):
        return value
    if "*" in value or "?" in value:
        message = f"{quoted(value)} in {reading.label(key)} is a glob, not a path"
        reading.problems.add("P043", node, message, "name the files, or the directory they are in")
        return None
    parts = inside(reading, key, node, value)
    return "/".join(parts) if parts else None


def glob(reading: Reading, key: str, node: Node) -> str | None:
    """A glob inside the project, in its shortest spelling."""
    value = text(reading, key, node)
    if value is None:
        return None
    parts = inside(reading, key, node, value)
    return "/".join(parts) if parts else None


def pairs(reading: Reading, node: Mapping) -> list[tuple[str, Node]]:
    found = []
    for name, (place, value) in node.pairs.items():
        if name == "$decimal":
            reading.problems.add("P046", place, "the key '$decimal' is kept for holdfast itself")
        else:
            found.append((name, value))
    return found


def plain(reading: Reading, key: str, node: Node) -> Json:
    """A node as JSON; the reader has bounded its depth."""
    if isinstance(node, Mapping):
        return {name: plain(reading, key, value) for name, value in pairs(reading, node)}
    if isinstance(node, Listing):
        return [plain(reading, key, item) for item in node.items]
    if isinstance(node.value, str) and EXPRESSION in node.value:
        no_expression(reading, key, node)
    return node.value


def verbatim(reading: Reading, node: Node) -> Json:
    """A node as JSON, where every text is only kept."""
    if isinstance(node, Mapping):
        return {name: verbatim(reading, value) for name, value in pairs(reading, node)}
    if isinstance(node, Listing):
        return [verbatim(reading, item) for item in node.items]
    return node.value


def as_is(_reading: Reading, _key: str, node: Node) -> Node:
    """The node itself, for a part that is read later."""
    return node


TEXT = Shape(text, {"type": "string"})
PROSE = Shape(prose, {"type": "string"})
LINE = Shape(line, {"type": "string", "minLength": 1, "maxLength": _LONGEST_NAME})
FLAG = Shape(flag, {"type": "boolean"})
DURATION = Shape(duration, {"type": "string", "pattern": r"^[0-9]{1,9}(\.[0-9]{1,9})?[smhd]$"})
NAMES = list_of(name, {"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]{0,127}$"})
LINES = list_of(line, LINE.schema)
COMMAND = Shape(
    command, {"anyOf": [{"type": "string"}, {"type": "array", "items": TEXT.schema, "minItems": 1}]}
)
FUNCTION = Shape(function, {"type": "string", "pattern": "^[^:]+:[^:]+$"})
PATH = Shape(path, {"type": "string"})
GLOB = Shape(glob, {"type": "string"})
