"""What a run of the bench found: plain records, written as JSON and read back for the page."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

SCHEMA = "holdfast.bench/2"
BESIDE = (
    "bare",
    "bare full",
    "ninja",
)  # what others are divided by: kept as long as one of them is
OWN = "holdfast"
Key = tuple[str, str, str, int]  # tool, graph, phase, size
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Part:
    """What was taken in one go: only figures of one part are compared. Rows name it by its number."""

    taken: str
    seconds: float = 0.0
    asked: str = ""
    environment: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Contender:
    """Who was measured, in which version; `missing` says why not."""

    name: str
    version: str = ""
    note: str = ""
    keeps: str = ""
    missing: str = ""
    durable: bool = True
    steps: int = 0  # of the smaller graph that it gets

    @property
    def label(self) -> str:
        """Its name in a table."""
        version = self.version.partition(",")[0]
        return f"{self.name} {version}".strip() + ("" if self.durable else " (not durable)")


@dataclass(frozen=True, slots=True)
class Cell:
    """One tool, one graph, one phase: the median of `repeats` runs, in seconds. `failed` says why none.

    `steps` are those of the graph that it was given; a slow peer gets a smaller one than `size` says.
    """

    tool: str
    shape: str
    phase: str
    size: int
    steps: int = 0
    repeats: int = 0
    cpu: float = 0.0
    wall: float = 0.0
    least_cpu: float = 0.0
    least_wall: float = 0.0
    process_cpu: float = 0.0
    peak_mb: float = 0.0
    failed: str = ""
    part: int = 0

    @property
    def key(self) -> Key:
        return self.tool, self.shape, self.phase, self.size


@dataclass(frozen=True, slots=True)
class Kill:
    """What a kill half way cost: steps executed before and again after it, and steps never executed.

    `finished_again` counts those whose result had been recorded; None if only the tool could tell.
    """

    tool: str
    shape: str
    size: int
    before: int = 0
    twice: int = 0
    lost: int = 0
    finished_again: int | None = None
    failed: str = ""
    part: int = 0


@dataclass(frozen=True, slots=True)
class Resume:
    """CPU seconds of a run after a kill until its first step began, and of one with nothing to do."""

    tool: str
    shape: str
    size: int
    before: int = 0
    first: float = 0.0
    noop: float = 0.0
    repeats: int = 0
    failed: str = ""
    part: int = 0


@dataclass(frozen=True, slots=True)
class Start:
    """Seconds that a command takes above a Python (or a program) that does nothing, which takes `nothing`."""

    tool: str
    what: str
    cpu: float = 0.0
    wall: float = 0.0
    repeats: int = 0
    failed: str = ""
    nothing: float = 0.0
    part: int = 0


@dataclass(frozen=True, slots=True)
class Own:
    """A figure of Holdfast alone, with the same figure of what it is compared with, and of a third one."""

    name: str
    value: float
    unit: str
    reference: float | None = None
    repeats: int = 0
    other: float | None = None
    part: int = 0


@dataclass(frozen=True, slots=True)
class Claims:
    """Steps that processes took and reported one by one on one store, beside the same in bare SQL.

    Fewest and most are of one process; `wrong` counts steps that were taken twice, or by nobody.
    """

    store: str
    processes: int
    steps: int
    per_second: float
    bare: float
    fewest: int
    most: int
    bare_fewest: int
    bare_most: int
    wrong: int
    repeats: int
    part: int = 0


@dataclass(frozen=True, slots=True)
class Beside:
    """Steps of one engine on PostgreSQL, beside those of a peer on the same server."""

    peer: str
    shape: str
    steps: int
    per_second: float
    peers: float
    repeats: int
    part: int = 0


@dataclass(frozen=True, slots=True)
class Play:
    """Simulated workers on real claims: what went wrong, the longest takeover, and what the model says."""

    store: str
    steps: int
    workers: int
    wrong: int
    overtaken: int
    takeover: float
    limit: float
    per_second: float
    model: float
    part: int = 0


@dataclass(frozen=True, slots=True)
class Promise:
    """A number that Holdfast promises; `measured` and `held` are None if this run did not take it."""

    name: str
    relation: str
    limit: float
    unit: str
    measured: float | None
    held: bool | None
    aim: float | None = None


@dataclass(slots=True)
class Results:
    parts: list[Part] = field(default_factory=list)
    contenders: list[Contender] = field(default_factory=list)
    cells: list[Cell] = field(default_factory=list)
    kills: list[Kill] = field(default_factory=list)
    resumes: list[Resume] = field(default_factory=list)
    starts: list[Start] = field(default_factory=list)
    own: list[Own] = field(default_factory=list)
    claims: list[Claims] = field(default_factory=list)
    besides: list[Beside] = field(default_factory=list)
    plays: list[Play] = field(default_factory=list)
    promises: list[Promise] = field(default_factory=list)

    def look(self, tool: str, shape: str, phase: str, size: int) -> Cell | None:
        """The newest such cell, also one that failed."""
        wanted = (tool, shape, phase, size)
        return next((cell for cell in reversed(self.cells) if cell.key == wanted), None)

    def cell(
        self, tool: str, shape: str, phase: str, size: int, part: int | None = None
    ) -> Cell | None:
        """The newest figure that was taken, of all parts or of one."""
        wanted = (tool, shape, phase, size)
        for cell in reversed(self.cells):
            if cell.key == wanted and not cell.failed and part in (None, cell.part):
                return cell
        return None

    def pair(self, one: Key, other: Key) -> tuple[Cell, Cell] | None:
        """Two figures of one part, the newest that has both."""
        for cell in reversed(self.cells):
            if cell.key == one and not cell.failed:
                beside = self.cell(*other, part=cell.part)
                if beside is not None:
                    return cell, beside
        return None

    def own_of(self, name: str) -> Own | None:
        return next((own for own in self.own if own.name == name), None)

    def write(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        said = {"schema": SCHEMA, **asdict(self)}
        path.write_text(json.dumps(said, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def merged(earlier: Results, later: Results) -> Results:
    """Earlier results with what was taken anew in place of the old; each row says in which part it was."""
    first = len(earlier.parts)

    def rows(name: str, key: Callable[[Any], Hashable]) -> list[Any]:
        fresh = [replace(row, part=row.part + first) for row in getattr(later, name)]
        return _replaced(getattr(earlier, name), fresh, key)

    who = _replaced(earlier.contenders, later.contenders, lambda row: row.name)
    return Results(
        parts=[*earlier.parts, *later.parts],
        contenders=sorted(who, key=lambda row: _place(row.name, earlier, later)),
        cells=_kept_beside(earlier.cells, rows("cells", lambda row: row.key)),
        kills=rows("kills", lambda row: (row.tool, row.shape, row.size)),
        resumes=rows("resumes", lambda row: (row.tool, row.shape, row.size)),
        starts=rows("starts", lambda row: (row.tool, row.what)),
        own=rows("own", lambda row: row.name),
        claims=rows("claims", lambda row: (row.store, row.processes)),
        besides=rows("besides", lambda row: (row.peer, row.shape)),
        plays=rows("plays", lambda row: row.store),
    )


def _replaced(old: Iterable[R], fresh: list[R], key: Callable[[R], Hashable]) -> list[R]:
    anew = {key(row) for row in fresh}
    return [*(row for row in old if key(row) not in anew), *fresh]


def _kept_beside(old: Iterable[Cell], rows: list[Cell]) -> list[Cell]:
    """What rows that stay are compared with stays too, though it was taken again in a later part.

    All are divided by those beside them; the peers are compared with Holdfast besides.
    """
    stays = {_graph(row) for row in rows if row.tool not in BESIDE}
    of_peers = {_graph(row) for row in rows if row.tool not in (*BESIDE, OWN)}
    there = set(rows)
    kept = [
        cell
        for cell in old
        if cell not in there
        and _graph(cell) in (of_peers if cell.tool == OWN else stays if cell.tool in BESIDE else ())
    ]
    return [*kept, *rows]


def _graph(cell: Cell) -> tuple[str, int, int]:
    """What was measured together: a graph of one size, in one part."""
    return cell.shape, cell.size, cell.part


def _place(name: str, *results: Results) -> int:
    """Where a contender stands: as in the first results that have it."""
    names = list(dict.fromkeys(row.name for found in results for row in found.contenders))
    return names.index(name)


def read(path: Path) -> Results:
    """Results of an earlier run."""
    said = json.loads(path.read_text(encoding="utf-8"))
    if said["schema"] != SCHEMA:
        raise ValueError(f"'{path}' is not in the form {SCHEMA}")
    return Results(
        parts=[Part(**row) for row in said["parts"]],
        contenders=[Contender(**row) for row in said["contenders"]],
        cells=[Cell(**row) for row in said["cells"]],
        kills=[Kill(**row) for row in said["kills"]],
        resumes=[Resume(**row) for row in said["resumes"]],
        starts=[Start(**row) for row in said["starts"]],
        own=[Own(**row) for row in said["own"]],
        claims=[Claims(**row) for row in said["claims"]],
        besides=[Beside(**row) for row in said["besides"]],
        plays=[Play(**row) for row in said["plays"]],
        promises=[Promise(**row) for row in said["promises"]],
    )
