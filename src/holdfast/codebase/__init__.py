r"""Finding one's way in a code base: what it has, where things are, what a change touches.

with Index(".", ".holdfast/code.db") as index:
    index.update()
    relevant(index, "sessions expire too early").files
    impact(index, ["app/session.py"])
    find_symbols(index, "Session.open")
    map_of(index, tokens=2_000).text
search(".", Query(r"class \w+", languages=("python",))).lines
"""

from holdfast.codebase.facts import File, Import, Ranked, Symbol
from holdfast.codebase.graph import Graph, graph_of
from holdfast.codebase.impact import impact
from holdfast.codebase.index import Index, Updated
from holdfast.codebase.mapping import Map, map_of
from holdfast.codebase.relevance import Answer, relevant
from holdfast.codebase.search import Hits, Line, Query, search
from holdfast.codebase.symbols import find_symbols

__all__ = [
    "Answer",
    "File",
    "Graph",
    "Hits",
    "Import",
    "Index",
    "Line",
    "Map",
    "Query",
    "Ranked",
    "Symbol",
    "Updated",
    "find_symbols",
    "graph_of",
    "impact",
    "map_of",
    "relevant",
    "search",
]
