"""`make bench`: Holdfast, the bare loop and the peers in one run; Markdown on stdout, JSON in .bench/.

Timings on a shared machine vary by a quarter, so every figure is the least of several runs that
alternate with the others, and only ratios taken in one run are worth comparing.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import apsw

from bench import alone, envs, markdown, promises, shapes, shared
from bench.edits import __main__ as edits
from bench.kill import kill_and_resume
from bench.measure import BARE, FULL, HOLDFAST, REPOSITORY, SHELL, Tool, tool_of
from bench.relevance.__main__ import main as find_files
from bench.results import Contender, Results, read
from bench.rounds import Contest
from bench.startup import holdfast_commands, peer_commands, start_ups
from holdfast.model.version import VERSION

FOLDER = REPOSITORY / ".bench"
PAGE = REPOSITORY / "docs" / "benchmarks.md"
SIZES, QUICK_SIZES = (1_000, 10_000, 100_000), (1_000, 10_000)
LEAST = 3 * shapes.LAYERS  # steps need three of the layer above
WORKLOADS = ("W1", "W2", "W3", "W4", "W5", "W6", "W7", "W8", "alone", "shared", "edits", "code")
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
    parser.add_argument("--workloads", default=",".join(WORKLOADS), help="as in: W1,W6,alone")
    parser.add_argument("--repeats", type=int, default=0, help="at least 5 unless quick")
    parser.add_argument("--quick", action="store_true", help="about three minutes")
    parser.add_argument("--write", action="store_true", help="write docs/benchmarks.md")
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
    if not workloads.issubset(WORKLOADS):
        parser.error(f"workloads are {', '.join(WORKLOADS)}")
    return Asked(
        only=frozenset(name for name in given["only"].split(",") if name),
        sizes=tuple(sorted(sizes)) or (QUICK_SIZES if given["quick"] else SIZES),
        workloads=workloads,
        repeats=given["repeats"] or (3 if given["quick"] else 5),
        quick=given["quick"],
        write=given["write"],
        cache=envs.cache_folder(given["cache"]),
        earlier=Path(given["from"]) if given["from"] else None,
        histories=tuple(folder for folder in given["histories"].split(",") if folder),
    )


def main(words: Sequence[str]) -> None:
    wish = asked(words)
    if wish.workloads == {"edits"}:
        _edits(wish)
        return
    found = read(wish.earlier) if wish.earlier else measured(wish)
    text = markdown.page(found)
    if wish.write:
        PAGE.write_text(text, encoding="utf-8")
    print(text)
    if "code" in wish.workloads and wish.histories:
        find_files([*wish.histories, *(["--write"] if wish.write else [])])


def measured(wish: Asked) -> Results:
    """Everything that is asked for; kept as it comes, so that an end half way loses little."""
    began = time.monotonic()
    found = Results(environment=_environment(), options=_options(wish))
    peers = _find(wish, found)
    tools = [tool_of(peer, once=wish.quick) for peer in peers]
    tools[:0] = [BARE, HOLDFAST] if wish.wants("holdfast") else [BARE]
    _graphs(wish, tools, found)
    if "W6" in wish.workloads:
        _kills(wish, tools, found)
    if "W7" in wish.workloads:
        _starts(wish, peers, found)
    if "alone" in wish.workloads and wish.wants("holdfast"):
        try:
            found.own += alone.figures(FOLDER / "alone", repeats=wish.repeats, quick=wish.quick)
        except RuntimeError as error:
            print(error, file=sys.stderr)
    if "shared" in wish.workloads and wish.wants("holdfast"):
        found.claims += shared.claims(repeats=1 if wish.quick else 3, quick=wish.quick)
        found.besides += shared.besides(peers, repeats=1 if wish.quick else 3, quick=wish.quick)
        found.plays += shared.plays(quick=wish.quick)
    if "edits" in wish.workloads and wish.wants("holdfast"):
        _edits(wish)
    found.seconds = time.monotonic() - began
    found.promises = promises.judge(found)
    found.write(FOLDER / "results.json")
    return found


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


def _options(wish: Asked) -> dict[str, str]:
    return {
        "quick": "yes" if wish.quick else "",
        "only": ",".join(sorted(wish.only)),
        "sizes": "" if wish.sizes == SIZES else ",".join(map(str, wish.sizes)),
        "workloads": ""
        if len(wish.workloads) == len(WORKLOADS)
        else ",".join(sorted(wish.workloads)),
    }


def _find(wish: Asked, found: Results) -> list[envs.Found]:
    """The peers that are there; one that is not becomes a row that says why."""
    there = []
    found.contenders += [
        Contender("bare", keeps=BARE_KEEPS),
        Contender("holdfast", VERSION, keeps=KEEPS),
    ]
    for name, peer in envs.peers().items():
        slow = wish.quick and peer.repeats == 1 and name not in wish.only
        if slow or not wish.wants(name):
            continue
        row = Contender(name, note=peer.note, keeps=peer.keeps)
        try:
            there.append(envs.find(peer, wish.cache))
            found.contenders.append(replace(row, version=there[-1].version))
        except envs.MissingError as error:
            print(f"{name}: {error}", file=sys.stderr, flush=True)
            found.contenders.append(replace(row, missing=str(error)))
    return there


def _graphs(wish: Asked, tools: Sequence[Tool], found: Results) -> None:
    """W1 to W5 and W8."""
    for size in wish.sizes:
        for shape in ("wide", "chain", "layered"):
            phases = _phases(wish, shape)
            part = [tool for tool in [*tools, FULL] if _takes(tool, shape, size, wish.base)]
            if phases and part:
                rounds = min(wish.repeats, _most(shape, size, wish.base))
                contest = Contest(part, shape, size, FOLDER / "run", rounds)
                found.cells += contest.hold(phases)
                found.write(FOLDER / "results.json")


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


def _kills(wish: Asked, tools: Sequence[Tool], found: Results) -> None:
    more = [SHELL] if HOLDFAST in tools else []
    for tool in [*tools, *more]:
        shape = "layered" if "layered" in tool.shapes else tool.shapes[0]
        found.kills.append(kill_and_resume(tool, shape, wish.base, FOLDER / "kill"))
        found.write(FOLDER / "results.json")


def _starts(wish: Asked, peers: Sequence[envs.Found], found: Results) -> None:
    scratch = FOLDER / "start"
    found.starts += start_ups(holdfast_commands(scratch), max(wish.repeats, 5), scratch)
    for peer in peers:
        found.starts += start_ups(peer_commands(peer, scratch), 3, scratch)
    shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    main(sys.argv[1:])
