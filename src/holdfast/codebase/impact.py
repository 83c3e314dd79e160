"""What a change of some files or symbols, or work described in words, is likely to touch.

From where it begins the walk goes to the tests of a file and to those that import it, further and further
away; each step away halves the score. A file keeps its best score, and says from where it was reached.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from holdfast.codebase.facts import Ranked
from holdfast.codebase.graph import Graph, graph_of, is_test
from holdfast.codebase.index import Index
from holdfast.codebase.relevance import relevant
from holdfast.codebase.symbols import find_symbols
from holdfast.errors import UsageError

DEEPEST = 3
_TEST = 0.8  # of the score of the file that it tests
_IMPORTER = 0.5  # of the score of the file that it imports
_HITS = 5  # files that a text begins with


@dataclass(frozen=True, slots=True)
class Start:
    """Where a walk begins: a file, how surely, and why."""

    path: str
    score: float
    reason: str


def impact(
    index: Index, things: Sequence[str], text: str = "", depth: int = DEEPEST
) -> list[Ranked]:
    """The files that are touched, those named first; things are paths or names of symbols."""
    starts = [start for thing in things for start in _starts(index, thing)]
    graph = graph_of(index)
    if text:
        hits = relevant(index, text, limit=_HITS).files
        starts += [Start(one.path, one.score, "; ".join(one.reasons)) for one in hits]
    return walked(graph, starts, depth)


def _starts(index: Index, thing: str) -> list[Start]:
    path = _from_root(index.root, thing)
    known = {file.path for file in index.files()}
    if path in known:
        return [Start(path, 1.0, "named")]
    inside = sorted(one for one in known if one.startswith(f"{path}/"))
    if inside:
        return [Start(one, 1.0, f"in '{path}'") for one in inside]
    name = thing.rpartition(".")[2]
    found = [where for where, symbol in find_symbols(index, thing) if symbol.name == name]
    if not found:
        raise UsageError(
            f"there is no file or symbol '{thing}'", hint="holdfast code symbols, or --text"
        )
    return [Start(where, 1.0, f"defines '{thing}'") for where in found]


def _from_root(root: str, path: str) -> str:
    """A path as the index has it; one from the top of the file system is taken from the root."""
    if os.path.isabs(path):
        folder, name = os.path.split(os.path.normpath(path))
        return os.path.relpath(os.path.join(os.path.realpath(folder), name), root)
    return os.path.normpath(path)


def walked(graph: Graph, starts: Iterable[Start], depth: int = DEEPEST) -> list[Ranked]:
    """The files that are reached from some, by tests and by imports."""
    best: dict[str, tuple[float, str]] = {}
    for start in starts:
        _better(best, start.path, start.score, start.reason)
    front = dict.fromkeys(sorted(best))
    for _ in range(depth):
        reached: dict[str, None] = {}
        for path in front:
            score = best[path][0]
            for test, why in sorted(graph.tests.get(path, {}).items()):
                if _better(best, test, score * _TEST, _reason(path, why)):
                    reached[test] = None
            if is_test(path):
                continue  # what imports a test is another test, not what it tests
            for other in sorted(graph.importers.get(path, ())):
                if _better(best, other, score * _IMPORTER, f"imports {path}"):
                    reached[other] = None
        front = dict.fromkeys(sorted(reached))
    return [
        Ranked(path, round(score, 4), (why,))
        for path, (score, why) in sorted(best.items(), key=lambda item: (-item[1][0], item[0]))
    ]


def _reason(path: str, why: str) -> str:
    return f"tests {path}" if why == "named after it" else f"a test that imports {path}"


def _better(best: dict[str, tuple[float, str]], path: str, score: float, reason: str) -> bool:
    if path in best and best[path][0] >= score:
        return False
    best[path] = (score, reason)
    return True
