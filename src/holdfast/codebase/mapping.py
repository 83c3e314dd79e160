"""A map of a code base within a budget of tokens: directories, files and their most telling symbols.

The same code base and budget always give the same map. Files come in the order of how much hangs on them:
how many others import them, how often they are changed, how much they define; tests and generated files last.
Each file first gets a line, then the symbols that others can use, as long as there is room.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from holdfast.codebase.facts import File, Symbol
from holdfast.codebase.graph import Graph, graph_of, is_test
from holdfast.codebase.index import Index
from holdfast.codebase.relevance import by_habit
from holdfast.model.text import one_line

SIGNS = 4  # of a token, as most models count them
_AGE = 500.0  # commits after which a change counts a third
_MOST_SYMBOLS = 12  # of one file
_TELLING = {
    "class": 0,
    "interface": 0,
    "trait": 0,
    "struct": 0,
    "enum": 1,
    "type": 1,
    "function": 2,
}


@dataclass(frozen=True, slots=True)
class Map:
    """The text, the tokens it takes by our count, and how many files it names of how many."""

    text: str
    tokens: int
    named: int
    files: int


def tokens_of(text: str) -> int:
    """About how many tokens a text takes."""
    return math.ceil(len(text) / SIGNS)


def map_of(index: Index, tokens: int) -> Map:
    """The map of an index that is up to date."""
    files = [file for file in index.files() if file.state != "binary"]
    graph = graph_of(index)
    defined: dict[str, list[Symbol]] = {}
    for path, symbol in index.symbols():
        defined.setdefault(path, []).append(symbol)
    order = _order(files, graph, by_habit(index, _AGE), defined)
    folders = _folders(files)
    chosen: dict[str, list[str]] = {}
    used = tokens_of("\n".join(folders)) + 1
    if used > tokens:
        folders, used = [], 0
    for path in order:
        cost = tokens_of(one_line(path) + "\n")
        if used + cost > tokens:
            continue
        chosen[path] = []
        used += cost
        for line in _lines(defined.get(path, [])):
            more = tokens_of(line + "\n")
            if used + more > tokens:
                break
            chosen[path].append(line)
            used += more
    text = "\n".join([*folders, *_drawn(chosen)])
    while chosen and tokens_of(text) > tokens:  # rounding
        chosen.popitem()
        text = "\n".join([*folders, *_drawn(chosen)])
    return Map(text, tokens_of(text), len(chosen), len(files))


def _order(
    files: Sequence[File],
    graph: Graph,
    habits: Mapping[str, float],
    defined: Mapping[str, Sequence[Symbol]],
) -> list[str]:
    def weight(path: str) -> float:
        found = 2.0 * math.log1p(len(graph.importers.get(path, ())))
        found += math.log1p(habits.get(path, 0.0)) + 0.5 * math.log1p(len(defined.get(path, ())))
        found += 1.0 if os.path.basename(path).lower().startswith("readme") else 0.0
        return found * (0.2 if is_test(path) else 1.0)

    weights = {file.path: round(weight(file.path), 9) for file in files}
    return sorted(weights, key=lambda path: (-weights[path], os.fsencode(path)))


def _folders(files: Sequence[File]) -> list[str]:
    """The directories at the top with what is in them."""
    tops: dict[str, dict[str, int]] = {}
    for file in files:
        top = file.path.split("/")[0] + "/" if "/" in file.path else "."
        counted = tops.setdefault(top, {})
        counted[file.language] = counted.get(file.language, 0) + 1
    lines = []
    for top, counted in sorted(tops.items()):
        most = sorted(counted.items(), key=lambda item: (-item[1], item[0]))[:3]
        said = ", ".join(f"{number} {name}" for name, number in most)
        lines.append(f"{one_line(top)}  {said}")
    return lines


def _lines(symbols: Sequence[Symbol]) -> list[str]:
    """Symbols that others can use, the most telling first, then in the order of the source."""
    open_to_all = [
        symbol
        for symbol in symbols
        if symbol.kind in _TELLING and not symbol.name.startswith("_") and not symbol.scope
    ]
    telling = sorted(open_to_all, key=lambda symbol: (_TELLING[symbol.kind], symbol.line))
    kept = sorted(telling[:_MOST_SYMBOLS], key=lambda symbol: symbol.line)
    return [f"  {symbol.line}: {one_line(symbol.signature)[:100]}" for symbol in kept]


def _drawn(chosen: Mapping[str, Sequence[str]]) -> list[str]:
    lines = []
    for path in sorted(chosen, key=os.fsencode):
        lines += [one_line(path), *chosen[path]]
    return lines
