"""`make bench`: Holdfast, the bare loop and the peers in one run; Markdown on stdout, JSON in .bench/.

Timings on a shared machine vary by a quarter, so every figure is the median of several runs that
alternate with the others, and only ratios taken in one run are worth comparing.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import apsw

from bench import alone, envs, guard, markdown, plots, promises, shapes, shared
from bench.edits import __main__ as edits
from bench.kill import kill_and_resume, resume_costs
from bench.measure import (
    BARE,
    FULL,
    HOLDFAST,
    REPOSITORY,
    SHELL,
    FailedError,
    Tool,
    tool_of,
)
from bench.relevance.__main__ import main as find_files
from bench.results import Contender, Part, Results, merged, read
from bench.rounds import Contest
from bench.startup import holdfast_commands, peer_commands, start_ups
from holdfast.model.version import VERSION

FOLDER = REPOSITORY / ".bench"
RESULTS = FOLDER / "results.json"
DOCS = REPOSITORY / "docs"
PAGE, COMMITTED = DOCS / "benchmarks.md", DOCS / "benchmarks.json"
SIZES, QUICK_SIZES = (1_000, 10_000, 100_000), (1_000, 10_000)
LEAST = 3 * shapes.LAYERS  # steps need three of the layer above
WORKLOADS = ("W1", "W2", "W3", "W4", "W5", "W6", "W7", "W8", "alone", "shared", "edits", "code")
BY_NAME = ("million",)  # takes minutes: only when it is asked for
GRAPH_OF = {"W1": "wide", "W2": "chain", "W3": "layered", "W8": "layered"}
PHASES_OF = {"W4": ("cold", "noop", "shortcut"), "W5": ("cold", "noop", "change")}
BARE_KEEPS = "a row after each step, no fsync"
KEEPS = "the results that are there as soon as the last ones are on the disk, with fsync"


@dataclass(frozen=True, slots=True)
class Asked:
    only: frozenset[str]
    sizes: tuple[int, ...]
    workloads: frozenset[str]
    repeats: int
    quick: bool
    write: bool
    cache: Path
    earlier: Path | None
    merge: bool
    guard: bool
    against: Path
    tolerance: float
    histories: tuple[str, ...]

    @property
    def base(self) -> int:
        """The size on which everybody is measured."""
        return self.sizes[0]

    def wants(self, name: str) -> bool:
        return not self.only or name in self.only


def asked(words: Sequence[str]) -> Asked:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument(
        "--only", default="", help="tools, as in: holdfast,dbos; bare is always there"
    )
    parser.add_argument("--sizes", default="", help="steps of the graphs; all tools take the first")
    parser.add_argument(
        "--workloads", default=",".join(WORKLOADS), help="as in: W1,W6,alone; or million"
    )
    parser.add_argument("--repeats", type=int, default=0, help="at least 5 unless quick")
    parser.add_argument("--quick", action="store_true", help="about three minutes")
    parser.add_argument("--write", action="store_true", help="write docs/benchmarks.md and .json")
    parser.add_argument(
        "--merge", action="store_true", help="add what is measured to .bench/results.json"
    )
    parser.add_argument(
        "--guard", action="store_true", help="end with 1 if a ratio is worse than in docs/"
    )
    parser.add_argument("--against", default=str(COMMITTED), help="what the guard compares with")
    parser.add_argument(
        "--tolerance", type=float, default=guard.TOLERANCE, help="of the guard, in percent"
    )
    parser.add_argument("--from", metavar="FILE", help="measure nothing: results of an earlier run")
    parser.add_argument(
        "--histories", default="", help="git directories for edits and code, as a,b"
    )
    parser.add_argument("--cache", help="where the environments of the peers are kept")
    given = vars(parser.parse_args(words))
    sizes = [int(size.replace("_", "")) for size in given["sizes"].split(",") if size]
    if any(size < LEAST for size in sizes):
        parser.error(f"a graph has at least {LEAST} steps")
    workloads = frozenset(given["workloads"].split(","))
    if not workloads.issubset((*WORKLOADS, *BY_NAME)):
        parser.error(f"workloads are {', '.join((*WORKLOADS, *BY_NAME))}")
    return Asked(
        only=frozenset(name for name in given["only"].split(",") if name),
        sizes=tuple(sorted(sizes)) or (QUICK_SIZES if given["quick"] else SIZES),
        workloads=workloads,
        repeats=given["repeats"] or (3 if given["quick"] else 5),
        quick=given["quick"],
        write=given["write"],
        cache=envs.cache_folder(given["cache"]),
        earlier=Path(given["from"]) if given["from"] else None,
        merge=given["merge"],
        guard=given["guard"],
        against=Path(given["against"]),
        tolerance=given["tolerance"],
        histories=tuple(folder for folder in given["histories"].split(",") if folder),
    )


def main(words: Sequence[str]) -> int:
    wish = asked(words)
    if wish.workloads == {"edits"}:
        _edits(wish)
        return 0
    found = read(wish.earlier) if wish.earlier else measured(wish)
    found.promises = promises.judge(found)
    text = markdown.page(found)
    code = _guarded(found, wish.against, wish.tolerance) if wish.guard else 0
    if wish.write:
        PAGE.write_text(text, encoding="utf-8")
        found.write(COMMITTED)
        plots.write(found, DOCS / markdown.IMAGES)
    print(text)
    if "code" in wish.workloads and wish.histories:
        find_files([*wish.histories, *(["--write"] if wish.write else [])])
    return code


def _guarded(found: Results, against: Path, tolerance: float) -> int:
    """Whether ratios got worse since the committed table; 2 if there is nothing to compare."""
    if not against.exists():
        print(f"guard: there is no '{against}' to compare with", file=sys.stderr)
        return 2
    worse, count = guard.worse(read(against), found, tolerance)
    for row in worse:
        print(f"guard: worse: {row}", file=sys.stderr)
    said = f"{len(worse)} of {count} ratios are worse by more than {tolerance:g} %"
    print(f"guard: {said}", file=sys.stderr, flush=True)
    return 2 if not count else int(bool(worse))


class Run:
    """What is measured now, and what it is added to."""

    def __init__(self, wish: Asked) -> None:
        self.began = time.monotonic()
        self.part = Part(time.strftime("%Y-%m-%d %H:%M %Z"), 0, _options(wish), _environment())
        self.before = read(RESULTS) if wish.merge and RESULTS.exists() else Results()
        self.found = Results()

    def kept(self) -> Results:
        """All of it, written: an end half way loses little."""
        self.found.parts = [replace(self.part, seconds=time.monotonic() - self.began)]
        whole = merged(self.before, self.found)
        whole.write(RESULTS)
        return whole


def measured(wish: Asked) -> Results:
    """Everything that is asked for; kept as it comes."""
    run = Run(wish)
    found = run.found
    peers = _find(wish, found)
    tools = [tool_of(peer, once=wish.quick) for peer in peers]
    tools[:0] = [BARE, HOLDFAST] if wish.wants("holdfast") else [BARE]
    _graphs(wish, tools, run)
    if "W6" in wish.workloads:
        _kills(wish, tools, run)
    if "W7" in wish.workloads:
        _starts(wish, peers, found)
        run.kept()
    if wish.wants("holdfast"):
        _own(wish, peers, run)
    return run.kept()


def _own(wish: Asked, peers: Sequence[envs.Found], run: Run) -> None:
    """What only Holdfast has; a part that fails says so and leaves the others alone."""
    found, repeats = run.found, 1 if wish.quick else 3

    def alone_parts() -> None:
        found.own.extend(alone.figures(FOLDER / "alone", repeats=wish.repeats, quick=wish.quick))

    def shared_parts() -> None:
        found.claims += shared.claims(repeats=repeats, quick=wish.quick)
        found.besides += shared.besides(peers, repeats=repeats, quick=wish.quick)
        found.plays += shared.plays(quick=wish.quick)

    def million() -> None:
        found.own.extend(alone.million(FOLDER / "alone"))

    parts: dict[str, Callable[[], None]] = {
        "alone": alone_parts,
        "shared": shared_parts,
        "million": million,
        "edits": lambda: _edits(wish),
    }
    for name, part in parts.items():
        if name in wish.workloads:
            try:
                part()
            except (RuntimeError, FailedError) as error:
                print(f"{name}: {error}", file=sys.stderr, flush=True)
            run.kept()


def _edits(wish: Asked) -> None:
    """A page of its own, from histories that are given: none comes with the repository."""
    if not wish.histories:
        print("edits: not measured; hint: --histories GITDIR,GITDIR", file=sys.stderr, flush=True)
        return
    count = ["--count", "5"] if wish.quick else []
    more = ["--write"] if wish.write else []
    edits.main([*count, *more, "--cache", str(wish.cache), *wish.histories])


def _environment() -> dict[str, str]:
    kernel = platform.release().partition("-")[0]
    return {
        "Holdfast": VERSION,
        "Python": platform.python_version(),
        "SQLite": apsw.sqlite_lib_version(),
        platform.system(): kernel,
        "cores": str(os.cpu_count()),
        "load before the run": f"{os.getloadavg()[0]:.1f}",
    }


def _options(wish: Asked) -> str:
    """What was asked for, where it is not everything."""
    said = {
        "quick": "yes" if wish.quick else "",
        "only": ",".join(sorted(wish.only)),
        "sizes": "" if wish.sizes == SIZES else ",".join(map(str, wish.sizes)),
        "workloads": "" if wish.workloads == set(WORKLOADS) else ",".join(sorted(wish.workloads)),
    }
    return " ".join(f"{name}={value}" for name, value in said.items() if value)


def _find(wish: Asked, found: Results) -> list[envs.Found]:
    """The peers that are there; one that is not becomes a row that says why."""
    there = []
    found.contenders += [
        Contender("bare", note="a loop over the graph, and nothing else", keeps=BARE_KEEPS),
        Contender("holdfast", VERSION, "functions of its process (`inline=True`)", KEEPS),
    ]
    for name, peer in envs.peers().items():
        slow = wish.quick and peer.repeats == 1 and name not in wish.only
        if slow or not wish.wants(name):
            continue
        row = Contender(
            name, note=peer.note, keeps=peer.keeps, durable=peer.durable, steps=peer.steps
        )
        try:
            there.append(envs.find(peer, wish.cache))
            found.contenders.append(replace(row, version=there[-1].version))
        except envs.MissingError as error:
            print(f"{name}: {error}", file=sys.stderr, flush=True)
            found.contenders.append(replace(row, missing=str(error)))
    return there


def _graphs(wish: Asked, tools: Sequence[Tool], run: Run) -> None:
    """W1 to W5 and W8."""
    for size in wish.sizes:
        for shape in ("wide", "chain", "layered"):
            phases = _phases(wish, shape)
            part = [tool for tool in [*tools, FULL] if _takes(tool, shape, size, wish.base)]
            if phases and part:
                rounds = min(wish.repeats, _most(shape, size, wish.base))
                contest = Contest(part, shape, size, FOLDER / "run", rounds)
                run.found.cells += contest.hold(phases)
                run.kept()


def _phases(wish: Asked, shape: str) -> set[str]:
    phases = {"cold" for work in wish.workloads if GRAPH_OF.get(work) == shape}
    if shape == "layered":
        phases.update(*(PHASES_OF.get(work, ()) for work in wish.workloads))
    return phases


def _most(shape: str, size: int, base: int) -> int:
    """Long chains do nothing but wait for the disk: two rounds of them are enough."""
    return 2 if shape == "chain" and size > base else 100


def _takes(tool: Tool, shape: str, size: int, base: int) -> bool:
    """All tools take the smallest graphs; of the largest, chains are left out: they only wait."""
    if shape not in tool.shapes or (size != base and size > tool.largest):
        return False
    if size == base or tool in (BARE, HOLDFAST, FULL):
        return shape != "chain" or size <= 10_000
    return shape == "layered"


def _kills(wish: Asked, tools: Sequence[Tool], run: Run) -> None:
    more = [SHELL] if HOLDFAST in tools else []
    for tool in [*tools, *more]:
        shape = "layered" if "layered" in tool.shapes else tool.shapes[0]
        size = min(wish.base, tool.given or wish.base)
        run.found.kills.append(kill_and_resume(tool, shape, size, FOLDER / "kill"))
        run.kept()
    for tool in [tool for tool in (BARE, HOLDFAST) if tool in tools]:
        for size in (wish.base, wish.sizes[-1]):
            repeats = min(wish.repeats, 3)
            cost = resume_costs(tool, "layered", size, FOLDER / "kill", repeats)
            run.found.resumes.append(cost)
        run.kept()


def _starts(wish: Asked, peers: Sequence[envs.Found], found: Results) -> None:
    scratch = FOLDER / "start"
    found.starts += start_ups(holdfast_commands(scratch), max(wish.repeats, 5), scratch)
    for peer in peers:
        found.starts += start_ups(peer_commands(peer, scratch), 3, scratch)
    shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
