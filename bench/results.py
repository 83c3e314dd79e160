"""What a run of the bench found: plain records, written as JSON and read back for the page."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

SCHEMA = "holdfast.bench/1"


@dataclass(frozen=True, slots=True)
class Contender:
    """Who was measured, in which version; `missing` says why not."""

    name: str
    version: str = ""
    note: str = ""
    keeps: str = ""
    missing: str = ""


@dataclass(frozen=True, slots=True)
class Cell:
    """One tool, one graph, one phase: the least of `repeats` runs, in seconds. `failed` says why none."""

    tool: str
    shape: str
    phase: str
    size: int
    steps: int = 0
    repeats: int = 0
    cpu: float = 0.0
    wall: float = 0.0
    process_cpu: float = 0.0
    peak_mb: float = 0.0
    failed: str = ""


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


@dataclass(frozen=True, slots=True)
class Start:
    """Seconds that a command takes above a Python (or a program) that does nothing."""

    tool: str
    what: str
    cpu: float = 0.0
    wall: float = 0.0
    repeats: int = 0
    failed: str = ""


@dataclass(frozen=True, slots=True)
class Own:
    """A figure of Holdfast alone, with the same figure of what it is compared with."""

    name: str
    value: float
    unit: str
    reference: float | None = None
    repeats: int = 0


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


@dataclass(frozen=True, slots=True)
class Beside:
    """Steps of one engine on PostgreSQL, beside those of a peer on the same server."""

    peer: str
    shape: str
    steps: int
    per_second: float
    peers: float
    repeats: int


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


@dataclass(frozen=True, slots=True)
class Promise:
    """A number that Holdfast promises; `measured` and `held` are None if this run did not take it."""

    name: str
    relation: str
    limit: float
    unit: str
    measured: float | None
    held: bool | None


@dataclass(slots=True)
class Results:
    environment: dict[str, str] = field(default_factory=dict)
    options: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    contenders: list[Contender] = field(default_factory=list)
    cells: list[Cell] = field(default_factory=list)
    kills: list[Kill] = field(default_factory=list)
    starts: list[Start] = field(default_factory=list)
    own: list[Own] = field(default_factory=list)
    claims: list[Claims] = field(default_factory=list)
    besides: list[Beside] = field(default_factory=list)
    plays: list[Play] = field(default_factory=list)
    promises: list[Promise] = field(default_factory=list)

    def cell(self, tool: str, shape: str, phase: str, size: int) -> Cell | None:
        """A figure that was taken, if it was."""
        for cell in self.cells:
            if (cell.tool, cell.shape, cell.phase, cell.size) == (tool, shape, phase, size):
                return None if cell.failed else cell
        return None

    def own_of(self, name: str) -> Own | None:
        return next((own for own in self.own if own.name == name), None)

    def write(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        said = {"schema": SCHEMA, **asdict(self)}
        path.write_text(json.dumps(said, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def read(path: Path) -> Results:
    """Results of an earlier run."""
    said = json.loads(path.read_text(encoding="utf-8"))
    if said["schema"] != SCHEMA:
        raise ValueError(f"'{path}' is not in the form {SCHEMA}")
    return Results(
        environment=said["environment"],
        options=said["options"],
        seconds=said["seconds"],
        contenders=[Contender(**row) for row in said["contenders"]],
        cells=[Cell(**row) for row in said["cells"]],
        kills=[Kill(**row) for row in said["kills"]],
        starts=[Start(**row) for row in said["starts"]],
        own=[Own(**row) for row in said["own"]],
        claims=[Claims(**row) for row in said.get("claims", ())],
        besides=[Beside(**row) for row in said.get("besides", ())],
        plays=[Play(**row) for row in said.get("plays", ())],
        promises=[Promise(**row) for row in said["promises"]],
    )
