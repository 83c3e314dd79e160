"""Read YAML or JSON into checked nodes that know their place in the file.

The event stream of the parser is read, never a constructed object, so nothing in a file can run.
Scalars follow the core schema of YAML 1.2: `no`, `on` and `1:30` are text, quoted scalars always.
Refused: tags, merge keys, keys that are not text, duplicate keys, more than one document, anything
but UTF-8, control characters, NaN, infinities, numbers of more than 4,300 characters.

Bounds, so that a hostile file is answered fast: bytes, nesting, aliases and what they expand to,
and processor time. The time allowed grows with the entries of the second level (the steps of a
plan): a file is not hostile because it is a large plan.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from typing import NamedTuple, NoReturn, Protocol, cast

import yaml

from holdfast.errors import PlanError
from holdfast.formats.problems import NOWHERE, Place, Problems, quoted
from holdfast.model.fixed import frozen
from holdfast.model.pattern import Pattern
from holdfast.model.walls import WALLS, Walls, moved_by, size_of

Plain = None | bool | int | float | str


class Scalar(NamedTuple):
    value: Plain
    line: int
    column: int


class Listing(NamedTuple):
    items: list[Node]
    line: int
    column: int


class Mapping(NamedTuple):
    """Pairs by key, in the order of the file; each key node knows its place."""

    pairs: dict[str, tuple[Scalar, Node]]
    line: int
    column: int


Node = Scalar | Listing | Mapping


@frozen
class Bounds:
    """What a file may cost: the walls that a person can move, and what follows from no wish."""

    size: int = WALLS.plan_size
    depth: int = WALLS.plan_depth
    aliases: int = WALLS.plan_aliases
    expanded: int = 2_000_000
    entries: int = WALLS.plan_steps
    seconds: float = 1.5
    seconds_per_entry: float = 0.0002
    digits: int = 4300

    @classmethod
    def of(cls, walls: Walls) -> Bounds:
        """The bounds of a file that is read within these walls."""
        return cls(walls.plan_size, walls.plan_depth, walls.plan_aliases, entries=walls.plan_steps)


BOUNDS = Bounds()

_WORDS: dict[str, Plain] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True,
    "false": False, "False": False, "FALSE": False,
}  # fmt: skip
_NUMERIC = frozenset("+-.0123456789")
_INT = Pattern(r"[-+]?[0-9]+\Z")
_BASED = Pattern(r"0(?:o[0-7]+|x[0-9a-fA-F]+)\Z")
_FLOAT = Pattern(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z")
_ENDLESS = Pattern(r"[-+]?(?:\.(?:inf|Inf|INF|nan|NaN|NAN)|Infinity|NaN)\Z")
_MAYBE_ENDLESS = frozenset({"NaN", "Infinity"})

FORBIDDEN = Pattern(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]"
)
FORBIDDEN_VALUE = Pattern("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
# The parser itself refuses other control characters, but takes these for line breaks.
_BREAKS = ("\u0085".encode(), "\u2028".encode(), "\u2029".encode())
_PAIR = Pattern(r"(?<!\\)((?:\\\\)*)\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})")
_SURROGATE = b"\xed\xa0"
_MARK = b"\xef\xbb\xbf"  # of the byte order
_CHECK_EVERY = 2047
_DEEP = "put deep data into a file and name it under 'inputs'"


class _Mark(Protocol):
    line: int
    column: int


class ParserEvent(Protocol):
    """The attributes of all parser events that are read here."""

    start_mark: _Mark
    anchor: str | None
    tag: str | None
    value: str
    style: str | None


class _Loader(Protocol):
    """A parser of the YAML library; only its events are used."""

    def __init__(self, content: bytes) -> None: ...
    def get_event(self) -> ParserEvent: ...


# The parser in C where it was built, else the one in Python: the same answers, some 50 times slower.
FASTEST = cast("type[_Loader]", getattr(yaml, "CSafeLoader", yaml.SafeLoader))


class _Kept(NamedTuple):
    """An anchored node: how many nodes it stands for, and how deep it is."""

    node: Node
    weight: int
    height: int


class _Open:
    """A collection whose end was not seen yet."""

    __slots__ = ("anchor", "before", "column", "height", "items", "key", "line", "pairs")

    def __init__(self, event: ParserEvent, before: int, is_mapping: bool) -> None:
        self.items: list[Node] = []
        self.pairs: dict[str, tuple[Scalar, Node]] | None = {} if is_mapping else None
        self.key: Scalar | None = None
        self.anchor = event.anchor
        self.line = event.start_mark.line + 1
        self.column = event.start_mark.column + 1
        self.before = before
        self.height = 1


def read(
    content: bytes,
    problems: Problems,
    *,
    strict_json: bool = False,
    bounds: Bounds = BOUNDS,
    clock: Callable[[], float] = time.thread_time,
    loader: type[_Loader] = FASTEST,
) -> Node:
    """The one document in the content; raises PlanError and nothing else."""
    text = decode(content, problems, bounds)
    try:
        plain = content.removeprefix(_MARK)  # a large file is not spelled a third time
        events = loader(as_yaml(text).encode() if strict_json else plain)
        node = _Reader(events, problems, bounds, clock).read()
    except yaml.YAMLError as error:
        if strict_json:
            _require_json(text, problems)
        _translate(error, text, problems)
    except (ValueError, OverflowError) as error:  # the parser in Python lets some numbers through
        raise problems.fatal("P015", NOWHERE, "a number or an escape cannot be read") from error
    except RecursionError as error:
        raise problems.fatal("P019", NOWHERE, "the file is nested too deep", _DEEP) from error
    except MemoryError as error:
        raise problems.fatal("P011", NOWHERE, "the file needs more memory than there is") from error
    if strict_json:
        _require_json(text, problems)
    return node


def reads_as_text(text: str) -> bool:
    """Whether an unquoted scalar is text, and not a number or a word with a meaning."""
    others = (_INT, _BASED, _FLOAT, _ENDLESS)
    return text not in _WORDS and not any(pattern.match(text) for pattern in others)


def decode(content: bytes, problems: Problems, bounds: Bounds) -> str:
    if len(content) > bounds.size:
        raise too_large(problems, bounds.size)
    if content[:2] in {b"\xff\xfe", b"\xfe\xff"} or (b"\0" in content[:4] and len(content) > 1):
        hint = "save it as UTF-8"
        raise problems.fatal("P013", Place(1, 1), "the file is UTF-16 or UTF-32, not UTF-8", hint)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # The decoder counts from behind the byte order mark.
        start = error.start + (len(_MARK) if content.startswith(_MARK) else 0)
        surrogate = content[start : start + 2] >= _SURROGATE and content[start] == _SURROGATE[0]
        what = "a lone surrogate" if surrogate else f"the byte 0x{content[start]:02x}"
        before = content[:start].decode("utf-8-sig")
        place = _place(before, len(before))
        hint = "save it as UTF-8"
        raise problems.fatal("P013", place, f"the file is not UTF-8: {what}", hint) from error
    if any(item in content for item in _BREAKS):
        _refuse_character(text, problems)
    return text


def too_large(problems: Problems, most: int, found: int = 0) -> PlanError:
    """A file of more bytes than a plan may have; `found` is how many it has, if that is known."""
    has = f"has {found:,} bytes and " if found else ""
    message = f"the file {has}is larger than {size_of(most)}"
    return problems.fatal("P011", NOWHERE, message, moved_by("plan_size", most))


def _refuse_character(text: str, problems: Problems) -> None:
    found = FORBIDDEN.search(text)
    if found:
        char = ord(found.group())
        hint = (
            f'inside double quotes, write "\\u{char:04x}"'
            if char in {0x85, 0x2028, 0x2029}
            else "remove it"
        )
        message = f"the character U+{char:04X} is not allowed in a plan"
        raise problems.fatal("P014", _place(text, found.start()), message, hint)


def _place(text: str, offset: int) -> Place:
    before = text[:offset]
    breaks = before.count("\n") + before.count("\r") - before.count("\r\n")
    return Place(breaks + 1, len(before) - max(before.rfind("\n"), before.rfind("\r")))


def as_yaml(text: str) -> str:
    """JSON in the spelling that a YAML parser reads."""
    joined = _PAIR.sub(_joined, text) if "\\u" in text else text
    return joined.replace("\t", " ")


def _joined(found: re.Match[str]) -> str:
    """JSON writes one character as a pair of escapes, YAML as one escape."""
    high, low = int(found[2], 16), int(found[3], 16)
    return f"{found[1]}\\U{0x10000 + ((high & 0x3FF) << 10) + (low & 0x3FF):08x}"


def _require_json(text: str, problems: Problems) -> None:
    """What YAML allows and JSON does not: comments, bare words, a comma at the end."""
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        place = Place(error.lineno, error.colno)
        message = f"this is not JSON: {error.msg[:1].lower()}{error.msg[1:]}"
        raise problems.fatal("P015", place, message) from error
    except (ValueError, RecursionError):
        return  # numbers and depth are judged by the reader


def _translate(error: yaml.YAMLError, text: str, problems: Problems) -> NoReturn:
    _refuse_character(text, problems)
    mark = cast("_Mark | None", getattr(error, "problem_mark", None))
    place = Place(mark.line + 1, mark.column + 1) if mark else NOWHERE
    reason = str(getattr(error, "problem", None) or "it cannot be read")
    context = getattr(error, "context", None)
    if "alias" in reason:
        raise problems.fatal("P018", place, reason, "write the value out") from error
    if "escape" in reason and "Unicode" in reason:
        message = "an escape does not name a character"
        raise problems.fatal("P014", place, message, "write the character itself") from error
    message = f"this is not YAML: {reason}" + (f" {context}" if context else "")
    raise problems.fatal("P015", place, message, _syntax_hint(text, place)) from error


def _syntax_hint(text: str, place: Place) -> str:
    lines = text.split("\n", place.line)
    line = lines[place.line - 1] if 0 < place.line <= len(lines) else ""
    char = line[place.column - 1 : place.column]
    if char == "\t" or line[: len(line) - len(line.lstrip())].count("\t"):
        return "a tab cannot indent; use blanks"
    if char in {"@", "`", "%"}:
        return f"a text that starts with '{char}' needs quotes"
    if line.count(": ") > 1:
        return "a text that holds ': ' needs quotes"
    return ""


class _Reader:
    """Builds nodes from events, without recursion."""

    def __init__(
        self, loader: _Loader, problems: Problems, bounds: Bounds, clock: Callable[[], float]
    ) -> None:
        self.next = loader.get_event
        self.problems = problems
        self.bounds = bounds
        self.clock = clock
        self.started = clock()
        self.stack: list[_Open] = []
        self.count = 0
        self.aliases = 0
        self.entries = 0
        self.kept: dict[str, _Kept] = {}
        self.root: Node | None = None

    def read(self) -> Node:
        following = self.next
        documents = 0
        while True:
            event = following()
            kind: type[object] = type(event)
            if kind is yaml.ScalarEvent:
                self.scalar(event)
            elif kind is yaml.MappingStartEvent:
                self.open(event, is_mapping=True)
            elif kind is yaml.SequenceStartEvent:
                self.open(event, is_mapping=False)
            elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
                self.close()
            elif kind is yaml.AliasEvent:
                self.alias(event)
            elif kind is yaml.DocumentStartEvent:
                documents += 1
                if documents > 1:
                    hint = "keep one document in a file"
                    raise self.fail("P020", event, "a second document starts here", hint)
            elif kind is yaml.StreamEndEvent:
                break
        if self.root is None:
            hint = "a plan begins with 'steps:' and one entry for each step"
            raise self.problems.fatal("P020", Place(1, 1), "the file is empty", hint)
        return self.root

    def fail(self, code: str, event: ParserEvent, message: str, hint: str = "") -> PlanError:
        place = Place(event.start_mark.line + 1, event.start_mark.column + 1)
        return self.problems.fatal(code, place, message, hint)

    def scalar(self, event: ParserEvent) -> None:
        mark = event.start_mark
        text = event.value
        value: Plain = text
        if event.tag is not None:
            raise self.tagged(event)
        if event.style is None or not event.style:
            if text in _WORDS:
                value = _WORDS[text]
            elif text[0] in _NUMERIC or text in _MAYBE_ENDLESS:
                value = self.number(text, event)
        elif not text.isprintable() and FORBIDDEN_VALUE.search(text):
            found = FORBIDDEN_VALUE.search(text)
            char = ord(found.group()) if found else 0
            message = f"the character U+{char:04X} is not allowed in a plan"
            raise self.fail("P014", event, message, "remove it")
        node = Scalar(value, mark.line + 1, mark.column + 1)
        self.count += 1
        if event.anchor is not None:
            self.keep(event.anchor, _Kept(node, 1, 0), node)
        if not self.count & _CHECK_EVERY:
            self.check_time(event)
        stack = self.stack
        if stack:
            top = stack[-1]
            if top.pairs is not None and top.key is None and text == "<<" and not event.style:
                hint = "write the keys out, or use 'defaults'"
                self.problems.add("P021", node, "the merge key '<<' is not allowed", hint)
                top.key = Scalar(None, node.line, node.column)
                return
        self.place(node)

    def number(self, text: str, event: ParserEvent) -> Plain:
        """A number, or the text itself if it only looks like one at its first character."""
        whole = _INT.match(text) or _BASED.match(text)
        if not whole and not _FLOAT.match(text):
            if _ENDLESS.match(text):
                hint = f"put it in quotes if it is text: '{text}'"
                raise self.fail("P023", event, f"'{text}' is not a finite number", hint)
            return text
        if len(text) > self.bounds.digits:
            message = f"a number of {len(text):,} characters is longer than {self.bounds.digits:,}"
            raise self.fail("P023", event, message, "put it in quotes if it is text")
        if whole:
            return int(text, 0) if text[:2] in {"0o", "0x"} else int(text)
        value = float(text)
        if value in {float("inf"), float("-inf")}:
            raise self.fail("P023", event, f"{quoted(text)} is too large for a number")
        return value

    def tagged(self, event: ParserEvent) -> PlanError:
        hint = "a plan holds plain values only"
        return self.fail("P017", event, f"the tag {quoted(event.tag or '')} is not allowed", hint)

    def open(self, event: ParserEvent, *, is_mapping: bool) -> None:
        if event.tag is not None:
            raise self.tagged(event)
        self.count += 1
        if not self.count & _CHECK_EVERY:
            self.check_time(event)
        if len(self.stack) >= self.bounds.depth:
            raise self.too_deep(event)
        self.stack.append(_Open(event, self.count, is_mapping))

    def close(self) -> None:
        top = self.stack.pop()
        node: Node
        if top.pairs is not None:
            node = Mapping(top.pairs, top.line, top.column)
        else:
            node = Listing(top.items, top.line, top.column)
        if top.anchor is not None:
            weight = self.count - top.before + 1
            self.keep(top.anchor, _Kept(node, weight, top.height), node)
        if self.stack and self.stack[-1].height <= top.height:
            self.stack[-1].height = top.height + 1
        self.place(node)

    def keep(self, anchor: str, kept: _Kept, place: Node) -> None:
        if anchor in self.kept:
            what = f"the anchor {quoted(anchor)} is set twice"
            self.problems.add("P018", place, what, "give one of them another name")
        self.kept[anchor] = kept

    def alias(self, event: ParserEvent) -> None:
        name = event.anchor or ""
        kept = self.kept.get(name)
        if kept is None:
            inside = any(item.anchor == name for item in self.stack)
            what = "holds itself" if inside else "stands for nothing before it"
            near = "" if inside else self.problems.did_you_mean(name, self.kept)
            hint = near or "write the value out"
            raise self.fail("P018", event, f"the alias {quoted(name)} {what}", hint)
        self.aliases += 1
        if self.aliases > self.bounds.aliases:
            message = f"there are more than {self.bounds.aliases:,} aliases"
            raise self.fail("P018", event, message, moved_by("plan_aliases", self.bounds.aliases))
        self.count += kept.weight
        if self.count > self.bounds.expanded:
            message = f"the aliases expand to more than {self.bounds.expanded:,} values"
            raise self.fail("P018", event, message, "put the values into a file, or use 'defaults'")
        if len(self.stack) + kept.height > self.bounds.depth:
            raise self.too_deep(event)
        if self.stack and self.stack[-1].height <= kept.height:
            self.stack[-1].height = kept.height + 1
        node = kept.node
        if isinstance(node, Scalar):
            mark = event.start_mark
            node = Scalar(node.value, mark.line + 1, mark.column + 1)
        self.place(node)

    def place(self, node: Node) -> None:
        if not self.stack:
            self.root = node
            return
        top = self.stack[-1]
        if top.pairs is None:
            top.items.append(node)
        elif top.key is None:
            top.key = self.key(node, top.pairs)
        else:
            if isinstance(top.key.value, str):  # any other key was reported, its value is dropped
                top.pairs.setdefault(top.key.value, (top.key, node))
            top.key = None

    def key(self, node: Node, pairs: dict[str, tuple[Scalar, Node]]) -> Scalar:
        if len(self.stack) == 2:  # noqa: PLR2004 - the entries of the second level
            self.entries += 1
            if self.entries > self.bounds.entries:
                message = f"there are more than {self.bounds.entries:,} steps"
                hint = moved_by("plan_steps", self.bounds.entries)
                raise self.problems.fatal("P011", node, message, hint)
        if not isinstance(node, Scalar) or not isinstance(node.value, str):
            hint = "put it in quotes" if isinstance(node, Scalar) else ""
            self.problems.add("P022", node, "a key must be text", hint)
            return Scalar(None, node.line, node.column)
        first = pairs.get(node.value)
        if first is not None:
            what = f"the key {quoted(node.value)} stands twice, first in line {first[0].line}"
            self.problems.add("P016", node, what, "keep one of them")
        return node

    def too_deep(self, event: ParserEvent) -> PlanError:
        message = f"the nesting is deeper than {self.bounds.depth}"
        return self.fail("P019", event, message, moved_by("plan_depth", self.bounds.depth))

    def check_time(self, event: ParserEvent) -> None:
        allowed = self.bounds.seconds + self.entries * self.bounds.seconds_per_entry
        if self.clock() - self.started > allowed:
            raise self.fail("P011", event, "the file takes too long to read")
