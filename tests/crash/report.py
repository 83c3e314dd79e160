"""What sweeps tried and found: a report of each, and one table of all.

A sweep may be cut into slices that run in several processes: reports of one kind and one name are
added up. Nothing here imports the package, so every folder of tests can report.
"""

import json
import threading
import weakref
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

KINDS = (
    *("kill", "random-kill", "recovery", "power", "errno", "short-torn-flip"),
    *("full-disk", "lock", "server", "fuzz", "http", "simulation", "law", "model", "nemesis"),
    *("planted", "other"),
)
PLACES = {  # folders and beginnings of files
    "laws": "law",
    "simulation": "simulation",
    "edits": "recovery",
    "test_power": "power",
    "test_errno": "errno",
    "test_bad_disk": "short-torn-flip",
    "test_full_disk": "full-disk",
    "test_lock": "lock",
}
COLUMNS = ("tried", "fired", "kept", "work", "violations")
_live: "weakref.WeakSet[Report]" = weakref.WeakSet()


@dataclass(eq=False)
class Report:
    """What a sweep tried and found."""

    name: str
    kind: str = ""  # one of KINDS; without it, what the marker of its test says
    total: int = 0  # how many points there are to try, if that is known
    tried: int = 0
    fired: int = 0
    kept: int = 0  # steps that were accepted before a fault and had to stay
    work: int = 0  # steps accepted in the end
    outcomes: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        assert self.kind in {"", *KINDS}, self.kind
        _live.add(self)

    def line(self) -> str:
        """One line for a reader."""
        return (
            f"{self.name}: {self.tried} tried, {self.fired} fired, {self.kept} kept, "
            f"{self.work} accepted, {len(self.violations)} violations ({shown(self.outcomes)})"
        )

    def progress(self) -> str:
        """How far it is."""
        wrong = f", {len(self.violations)} violations" if self.violations else ""
        return f"{self.name}: {self.tried}{f' of {self.total}' if self.total else ''}{wrong}"

    def row(self) -> dict[str, Any]:
        """What travels from the process that swept to the one that tells."""
        return {
            "kind": self.kind,
            "name": self.name,
            "tried": self.tried,
            "fired": self.fired,
            "kept": self.kept,
            "work": self.work,
            "outcomes": dict(self.outcomes),
            "violations": list(self.violations),
        }


def shown(outcomes: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(outcomes.items()))


def begin() -> None:
    """Another test begins: what came before it is not under way any more."""
    _live.clear()


def under_way() -> list[Report]:
    """The reports of this process that something was written into."""
    return sorted((r for r in _live if r.tried or r.total), key=lambda report: report.name)


def kind_of(path: str, word: str = "") -> str:
    """The kind of a sweep from its marker, else from the place of its test."""
    parts = path.partition("::")[0].split("/")
    found = (kind for start, kind in PLACES.items() for part in parts if part.startswith(start))
    return word if word in KINDS else next(found, "other")


@dataclass
class Row:
    """One line of the table: a sweep, or all of one kind."""

    kind: str
    name: str
    tried: int = 0
    fired: int = 0
    kept: int = 0
    work: int = 0
    seconds: float = 0.0
    outcomes: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)

    def add(self, found: Mapping[str, Any], seconds: float = 0.0) -> None:
        for name in ("tried", "fired", "kept", "work"):
            setattr(self, name, getattr(self, name) + found[name])
        self.outcomes.update(found["outcomes"])
        self.violations += found["violations"]
        self.seconds += seconds

    def cells(self) -> Iterator[str]:
        yield from (self.kind, self.name)
        for column in COLUMNS:
            found = getattr(self, column)
            yield f"{len(found) if isinstance(found, list) else found:,}"
        yield f"{self.seconds:,.0f}"

    def data(self) -> dict[str, Any]:
        return {**vars(self), "outcomes": dict(self.outcomes), "seconds": round(self.seconds, 1)}


class Table:
    """All sweeps of one run."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str], Row] = {}

    def add(self, found: Mapping[str, Any], seconds: float) -> None:
        key = (str(found["kind"]), str(found["name"]))
        self._rows.setdefault(key, Row(*key)).add(found, seconds)

    @property
    def rows(self) -> list[Row]:
        """Kinds in their order, names by the alphabet."""
        return sorted(self._rows.values(), key=lambda row: (KINDS.index(row.kind), row.name))

    @property
    def totals(self) -> list[Row]:
        """One line for each kind, and one for all."""
        kinds: dict[str, Row] = {}
        whole = Row("all", "")
        for row in self.rows:
            for total in (kinds.setdefault(row.kind, Row(row.kind, "")), whole):
                total.add(vars(row), row.seconds)
        return [*kinds.values(), whole]

    @property
    def violations(self) -> list[str]:
        return [text for row in self.rows for text in row.violations]

    def markdown(self) -> str:
        """Tables of the sweeps and of the kinds, then every violation."""
        head = ("kind", "sweep", *COLUMNS, "seconds")
        parts = ["# Sweeps", *_grid((*head, "outcomes"), self._lines()), "", "## Totals"]
        totals = [[row.kind, *list(row.cells())[2:]] for row in self.totals]
        parts += [*_grid((head[0], *head[2:]), totals), "", "## Violations"]
        parts += [f"- {' '.join(text.split())}" for text in self.violations] or ["None."]
        return "\n".join(parts) + "\n"

    def json(self) -> str:
        return json.dumps(
            {
                "schema": "holdfast.soak/1",
                "sweeps": [row.data() for row in self.rows],
                "totals": [row.data() for row in self.totals],
            },
            indent=1,
        )

    def _lines(self) -> list[list[str]]:
        return [[*row.cells(), shown(row.outcomes)] for row in self.rows]


def _grid(head: Sequence[str], lines: Iterable[Sequence[str]]) -> Iterator[str]:
    """A Markdown table that can be read as it stands; all but the words are set to the right."""
    table = [list(head), *([cell.replace("|", "/") for cell in line] for line in lines)]
    widths = [max(len(line[place]) for line in table) for place in range(len(head))]
    words = {"kind", "sweep", "outcomes"}
    sides = ["<" if name in words else ">" for name in head]
    rule = [
        "-" * width if side == "<" else "-" * (width - 1) + ":"
        for width, side in zip(widths, sides, strict=True)
    ]
    for number, line in enumerate(table):
        cells = (
            f"{cell:{side}{width}}" for cell, side, width in zip(line, sides, widths, strict=True)
        )
        yield f"| {' | '.join(cells)} |"
        if number == 0:
            yield f"| {' | '.join(rule)} |"
