"""The outline of a source: the symbols that it defines and what it imports."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from holdfast.codebase.facts import Import, Outline, Symbol
from holdfast.codebase.grammars import grammar_of

if TYPE_CHECKING:
    from tree_sitter import Node

_LONGEST_SIGNATURE = 160
_MOST_FLAWS = 100
_SPACE = re.compile(r"\s+")
_TYPES = frozenset({"class", "enum", "interface", "struct", "trait"})


def outline_of(content: bytes, language: str) -> Outline | None:
    """The outline of a source; None if nobody here can parse its language."""
    grammar = grammar_of(language)
    if grammar is None:
        return None
    root = grammar.parser.parse(content).root_node
    defined: dict[int, tuple[int, Node, Node, str]] = {}
    imports: list[Import] = []
    for place, captured in grammar.patterns.matches(root):
        if "import" in captured:
            imports += _IMPORTS[language](captured["import"][0])
            continue
        name = captured.pop("name")[0]
        (kind, nodes), *_ = captured.items()
        # The first pattern that fits wins: those above say more than those below.
        if name.start_byte not in defined or place < defined[name.start_byte][0]:
            defined[name.start_byte] = (place, nodes[0], name, kind)
    symbols = tuple(_symbols(content, defined.values(), language))
    flaws = _flaws(root) if root.has_error else 0
    return Outline(symbols, tuple(dict.fromkeys(imports)), flaws)


def _symbols(
    content: bytes, defined: Iterable[tuple[int, Node, Node, str]], language: str
) -> Iterator[Symbol]:
    """The symbols in the order of the source, each with the names of those around it."""
    around: list[tuple[int, str, str]] = []  # where it ends, its name, its kind
    inward = sorted(defined, key=lambda one: (one[1].start_byte, one[2].start_byte))
    for _, node, named, found in inward:
        start, end, kind = node.start_byte, node.end_byte, found
        while around and around[-1][0] <= start:
            around.pop()
        name = content[named.start_byte : named.end_byte].decode("utf-8", "replace")
        within, scope = (around[-1][2], around[-1][1]) if around else ("", "")
        if kind == "scope":  # an `impl`: its functions belong to its type
            around.append((end, name, "class"))
            continue
        if language == "go" and kind == "method":
            scope = _receiver(node)
        if kind == "function" and within in _TYPES:
            kind = "method"
        whole = f"{scope}.{name}" if scope else name
        around.append((end, whole, kind))
        if kind == "constant" and within:
            continue
        yield Symbol(
            name=name,
            kind=kind,
            line=node.start_point[0] + 1,
            end=node.end_point[0] + 1,
            scope=scope,
            signature=_signature(content, node),
        )


def _receiver(node: Node) -> str:
    """The type that a method of Go belongs to."""
    receiver = node.child_by_field_name("receiver")
    text = _text(receiver) if receiver is not None else ""
    found = re.search(r"(\w+)\s*(?:\[.*\])?\s*\)$", text)
    return found[1] if found else ""


def _signature(content: bytes, node: Node) -> str:
    """The definition without its body, on one line."""
    body = node.child_by_field_name("body")
    end = body.start_byte if body is not None else node.end_byte
    text = content[node.start_byte : min(end, node.start_byte + 4 * _LONGEST_SIGNATURE)]
    head = text.decode("utf-8", "replace")
    head = head.partition("\n")[0] if body is None else head
    return _SPACE.sub(" ", head).strip(" {:=")[:_LONGEST_SIGNATURE]


def _flaws(root: Node) -> int:
    """How many places could not be parsed; beyond a hundred nobody counts."""
    count, open_nodes = 0, [root]
    while open_nodes and count < _MOST_FLAWS:
        node = open_nodes.pop()
        if node.is_error or node.is_missing:
            count += 1
        elif node.has_error:
            open_nodes += node.children
    return max(count, 1)


def _text(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")


# --- imports --------------------------------------------------------------------------------------


def _python(node: Node) -> Iterator[Import]:
    line = node.start_point[0] + 1
    names = [
        one.child_by_field_name("name") or one if one.type == "aliased_import" else one
        for one in node.children_by_field_name("name")
    ]
    if node.type == "import_statement":
        yield from (Import(_text(name), line) for name in names)
        return
    module = node.child_by_field_name("module_name")
    source = _SPACE.sub("", _text(module)) if module is not None else ""
    if not names:
        yield Import(source, line)
    yield from (Import(source, line, _text(name)) for name in names)


def _quoted(node: Node) -> Iterator[Import]:
    name = _text(node).strip("\"'`")
    if name:
        yield Import(name, node.start_point[0] + 1)


def _java(node: Node) -> Iterator[Import]:
    words = _text(node).removeprefix("import").strip(" ;\t").split()
    is_static = bool(words) and words[0] == "static"
    name = "".join(words[is_static:])
    if is_static:  # a member of a class
        name, _, item = name.rpartition(".")
        yield Import(name, node.start_point[0] + 1, item)
    elif name:
        yield Import(name, node.start_point[0] + 1)


def _rust(node: Node) -> Iterator[Import]:
    line = node.start_point[0] + 1
    parent = node.parent
    if parent is not None and parent.type == "mod_item":
        yield Import(f"mod {_text(node)}", line)
        return
    yield from (Import(path, line) for path in _spread(_text(node)))


def _spread(text: str) -> Iterator[str]:
    """The paths of a use with braces, each alone: `a::{b, c::d}` is `a::b` and `a::c::d`."""
    text = re.sub(r"\s+as\s+\w+", "", re.sub(r"//.*|/\*.*?\*/", "", text))
    text = _SPACE.sub("", text)
    stack: list[str] = []
    prefix = word = ""
    for letter in text:
        if letter == "{":
            stack.append(prefix)
            prefix, word = prefix + word, ""
        elif letter in ",}":
            if word:
                yield _plain(prefix + word)
            word = ""
            if letter == "}" and stack:
                prefix = stack.pop()
        else:
            word += letter
    if word:
        yield _plain(prefix + word)


def _plain(path: str) -> str:
    return path.removesuffix("::*").removesuffix("::self")


_IMPORTS = {
    "python": _python,
    "javascript": _quoted,
    "typescript": _quoted,
    "tsx": _quoted,
    "go": _quoted,
    "rust": _rust,
    "java": _java,
}
