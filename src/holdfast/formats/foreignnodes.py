"""Pieces of foreign files: read with warnings about what means nothing here, and put into words of a plan."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Mapping as Table

from holdfast.formats.nodes import Listing, Mapping, Node, Scalar
from holdfast.formats.problems import Placed, quoted
from holdfast.formats.reading import Reading, kind_of
from holdfast.formats.records import Key, record
from holdfast.formats.shapes import LINE, Shape, as_is, list_of
from holdfast.model.digest import Json
from holdfast.model.expression import literal
from holdfast.model.fixed import frozen

ANYTHING = Key(Shape(as_is, {}))  # read later, or only kept
_PROSE = frozenset({"description", "goal", "contract", "constraints", "specification"})


def text_in(reading: Reading, key: str, node: Node) -> str | None:
    """Any text: it stands for itself."""
    if not isinstance(node, Scalar) or not isinstance(node.value, str):
        reading.wrong_type(key, node, "text")
        return None
    return node.value


FREE = Key(Shape(text_in, {"type": "string"}))  # nothing in a foreign file is an expression
FREE_TEXTS = Key(list_of(text_in, {"type": "string"}))


def known_part(
    reading: Reading, what: str, node: Node, table: Table[str, Key], required: Iterable[str] = ()
) -> dict[str, object]:
    """Read what is known of a mapping; `null` is nothing, the rest is kept and warned about."""
    named = f"{'an' if what[0] in 'aeiou' else 'a'} {what}"
    if not isinstance(node, Mapping):
        reading.problems.add("P032", node, f"{named} is a mapping, not {kind_of(node)}")
        return {}
    known = {}
    for name, (place, value) in node.pairs.items():
        if name == "$decimal":
            reading.problems.add("P046", place, "the key '$decimal' is kept for holdfast itself")
        elif name not in table:
            message = f"{quoted(name)} of {named} means nothing here and is only kept"
            guess = reading.problems.did_you_mean(name, table)
            reading.problems.warn("P911", place, message, guess)
        elif not isinstance(value, Scalar) or value.value is not None:
            known[name] = (place, value)
    for name in required:
        if name not in known:
            reading.problems.add("P033", node, f"{named} has no '{name}'")
    return record(reading, what, Mapping(known, node.line, node.column), table) or {}


def items_of(reading: Reading, key: str, node: object) -> list[Node]:
    """The items of a list; nothing if there is none."""
    if node is None:
        return []
    if not isinstance(node, Listing):
        reading.wrong_type(key, node, "a list")  # type: ignore[arg-type]  # ANYTHING gives nodes
        return []
    return node.items


def named(reading: Reading, key: str, node: object) -> dict[str, Node]:
    """The names of a list with their places, each once."""
    found: dict[str, Node] = {}
    for item in items_of(reading, key, node):
        value = LINE.read(reading, key, item)
        if value is not None and value in found:
            reading.problems.add("P038", item, f"{quoted(value)} stands twice in '{key}'")
        elif value is not None:
            found[value] = item
    return found


def parts(reading: Reading, key: str, node: object) -> Iterator[tuple[Scalar, str, Node]]:
    """The entries of a mapping with the places of their keys; nothing if there is none."""
    if node is None:
        return
    if not isinstance(node, Mapping):
        reading.wrong_type(key, node, "a mapping")  # type: ignore[arg-type]  # as above
        return
    for name, (place, value) in node.pairs.items():
        yield place, name, value


def plain(node: Node) -> Json:
    """A node as JSON, whatever it says."""
    if isinstance(node, Mapping):
        return {name: plain(value) for name, (_, value) in node.pairs.items()}
    if isinstance(node, Listing):
        return [plain(item) for item in node.items]
    return node.value


def text_of(node: object) -> str:
    """The text of a node; empty if it is none."""
    return node.value if isinstance(node, Scalar) and isinstance(node.value, str) else ""


Said = Json | Node


@frozen
class Translated:
    """A foreign file in words of a plan file, and what it was in its own."""

    format: str
    tree: Mapping
    origin: Json


def words(at: Placed, said: Table[str, Said]) -> Mapping:
    """A mapping in words of a plan; what is no node already stands where the foreign file stands."""
    pairs = {
        name: (
            _at(name, value, at),
            _prose(_node(value, at)) if name in _PROSE else _node(value, at),
        )
        for name, value in said.items()
        if value is not None
    }
    return Mapping(pairs, at.line, at.column)


def _at(name: str, value: Said, at: Placed) -> Scalar:
    place = value if isinstance(value, Scalar | Listing | Mapping) else at
    return Scalar(name, place.line, place.column)


def _prose(node: Node) -> Node:
    """A text that stands for itself, whatever it holds."""
    text = text_of(node)
    return Scalar(literal(text), node.line, node.column) if text else node


def _node(value: Said, at: Placed) -> Node:
    if isinstance(value, Scalar | Listing | Mapping):
        return value
    if isinstance(value, Table):
        return words(at, value)
    if value is None or isinstance(value, str | int | float):
        return Scalar(value, at.line, at.column)
    return Listing([_node(item, at) for item in value], at.line, at.column)


def prompt_words(at: Placed, **parts: Json) -> Mapping:
    """A prompt whose text stands for itself: nothing in a foreign file is an expression."""
    told = {name: literal(part) for name, part in parts.items() if isinstance(part, str) and part}
    return words(at, told)


def said_text(*texts: object) -> str:
    """The first text that says something; empty if none does."""
    return next((text for text in texts if isinstance(text, str) and text.strip()), "")


def few(names: Iterable[str], most: int = 8) -> str:
    """Some names, and how many more there are."""
    found = list(names)
    more = f" and {len(found) - most} more" if len(found) > most else ""
    return (", ".join(found[:most]) or "nothing") + more
