"""The outline of a source: the symbols that it defines and what it imports."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import TYPE_CHECKING

from holdfast.codebase.facts import Import, Outline, Symbol
from holdfast.codebase.grammars import grammar_of

if TYPE_CHECKING:
    from tree_sitter import Node

    # Where it starts, where its name stands, which pattern found it, the node, its name, its kind.
    _Defined = tuple[int, int, int, Node, str, str]

_LONGEST_SIGNATURE = 160
_MOST_FLAWS = 100
_SPACE = re.compile(r"\s+")
_IMPORT = re.compile(r"\bimport\b")
_START = itemgetter(0, 1)
_TYPES = frozenset({"class", "enum", "interface", "struct", "trait"})


def outline_of(content: bytes, language: str) -> Outline | None:
    """The outline of a source; None if nobody here can parse its language."""
    grammar = grammar_of(language)
    if grammar is None:
        return None
    root = grammar.parser.parse(content).root_node
    defined: dict[int, _Defined] = {}
    imports: list[Import] = []
    find_imports = _IMPORTS[language]
    for place, captured in grammar.patterns.matches(root):
        if "import" in captured:
            imports += find_imports(captured["import"][0])
            continue
        name = captured.pop("name")[0]
        kind, nodes = captured.popitem()
        at = name.start_byte
        # The first pattern that fits wins: those above say more than those below.
        if at not in defined or place < defined[at][2]:
            node = nodes[0]
            text = content[at : name.end_byte].decode("utf-8", "replace")
            defined[at] = (node.start_byte, at, place, node, text, kind)
    symbols = tuple(_symbols(content, sorted(defined.values(), key=_START), language))
    flaws = _flaws(root) if root.has_error else 0
    return Outline(symbols, tuple(dict.fromkeys(imports)), flaws)


def _symbols(content: bytes, defined: Iterable[_Defined], language: str) -> Iterator[Symbol]:
    """The symbols in the order of the source, each with the names of those around it."""
    around: list[tuple[int, str, str]] = []  # where it ends, its name, its kind
    for start, _, _, node, name, found in defined:
        kind = found
        while around and around[-1][0] <= start:
            around.pop()
        within, scope = (around[-1][2], around[-1][1]) if around else ("", "")
        if kind == "scope":  # an `impl`: its functions belong to its type
            around.append((node.end_byte, name, "class"))
            continue
        if language == "go" and kind == "method":
            scope = _receiver(node)
        if kind == "function" and within in _TYPES:
            kind = "method"
        around.append((node.end_byte, f"{scope}.{name}" if scope else name, kind))
        if kind == "constant" and within:
            continue
        line, end = node.start_point[0] + 1, node.end_point[0] + 1
        yield Symbol(name, kind, line, end, scope, _signature(content, start, node))


def _receiver(node: Node) -> str:
    """The type that a method of Go belongs to."""
    receiver = node.child_by_field_name("receiver")
    text = _text(receiver) if receiver is not None else ""
    found = re.search(r"(\w+)\s*(?:\[.*\])?\s*\)$", text)
    return found[1] if found else ""


def _signature(content: bytes, start: int, node: Node) -> str:
    """The definition without its body, on one line; most of them are one line anyway."""
    most = min(node.end_byte, start + 4 * _LONGEST_SIGNATURE)  # a source may be one long line
    stop = content.find(b"\n", start, most)
    line = content[start : stop if stop >= 0 else most].decode("utf-8", "replace").rstrip()
    if line.endswith((":", "{", ";")) and "{ " not in line:
        return line.rstrip(" {:;")[:_LONGEST_SIGNATURE]
    body = node.child_by_field_name("body")
    if body is not None:
        text = content[start : min(body.start_byte, most)]
        line = " ".join(text.decode("utf-8", "replace").split())
    return line.strip(" {:=;")[:_LONGEST_SIGNATURE]


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
    """Read as text, which is many times faster than from the nodes; a comment or a bracket is cut out."""
    line = node.start_point[0] + 1
    text = _text(node)
    if "#" in text or "\\" in text or "\n" in text:
        text = re.sub(r"#.*|\\", " ", text)
    keyword, _, rest = text.partition(" ")
    if keyword == "import":
        yield from (Import(name, line) for name in _listed(rest))
        return
    source, *names = _IMPORT.split(rest, maxsplit=1)
    taken = _listed("".join(names).strip(" ()\n\t"))
    source = "".join(source.split())
    yield from (Import(source, line, "" if name == "*" else name) for name in taken)


def _listed(text: str) -> list[str]:
    """The names between commas, without what they are called afterwards."""
    return [words[0] for part in text.split(",") if (words := part.split())]


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
