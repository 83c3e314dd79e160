"""`python -m bench.edits GITDIR…`: every engine on the same disturbed edits; Markdown on stdout."""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tomllib
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from bench import envs
from bench.edits import page
from bench.edits.commits import changes
from bench.edits.contest import Contest, Row, measure, read
from bench.edits.disturb import Case, cases
from bench.edits.engines import DRIVERS, OURS, Engine, Peer, programs
from bench.measure import REPOSITORY
from holdfast.model.version import VERSION

PAGE = REPOSITORY / "docs" / "benchmarks-edits.md"
RESULTS = REPOSITORY / ".bench" / "edits.json"
PINS = Path(__file__).parent / "peers.toml"
COUNT = 60


def main(words: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.edits", description=__doc__)
    parser.add_argument("histories", nargs="*", metavar="GITDIR", help="git directories")
    parser.add_argument("--count", type=int, default=COUNT, help="commits of each history")
    parser.add_argument(
        "--only", default="", help="engines whose names begin so, as in: holdfast,patch"
    )
    parser.add_argument("--write", action="store_true", help="write docs/benchmarks-edits.md")
    parser.add_argument("--from", metavar="FILE", help="measure nothing: results of an earlier run")
    parser.add_argument("--cache", help="where the environments of the peers are kept")
    given = vars(parser.parse_args(words))
    if given["from"]:
        found = read(Path(given["from"]))
    elif given["histories"]:
        only = tuple(name for name in given["only"].split(",") if name)
        cache = envs.cache_folder(given["cache"])
        found = hold(given["histories"], given["count"], only, cache)
    else:
        parser.error("name at least one git directory")
    text = page.page(found)
    if given["write"]:
        PAGE.write_text(text, encoding="utf-8")
    print(text)


def hold(
    histories: Sequence[str],
    count: int,
    only: tuple[str, ...],
    cache: Path,
    results: Path = RESULTS,
) -> Contest:
    """All engines on all cases; kept as it comes."""
    found = Contest(environment=_environment())
    taken: list[Case] = []
    for history in histories:
        of_history = list(changes(history, count))
        if not of_history:
            print(f"{history}: no commit of the kind that is taken", file=sys.stderr)
            continue
        found.repositories[of_history[0].repository.replace("+", "/")] = len(of_history)
        taken += [case for change in of_history for case in cases(change)]
    found.must_refuse = sum(case.truth is None for case in taken)
    found.cases = len(taken) - found.must_refuse
    with ExitStack() as stack:
        for name, engine in _engines(found, only, cache, stack).items():
            print(f"edits: {name}", file=sys.stderr, flush=True)
            found.rows.append(engine if isinstance(engine, Row) else measure(name, engine, taken))
            found.write(results)
    return found


def _engines(
    found: Contest, only: tuple[str, ...], cache: Path, stack: ExitStack
) -> dict[str, Engine | Row]:
    """Those that are asked for; one that cannot be had is a row that says why."""
    engines: dict[str, Engine | Row] = {**OURS, **programs()}
    pins = tomllib.loads(PINS.read_text(encoding="utf-8"))
    for name, (package, driver, text) in DRIVERS.items():
        if only and not name.startswith(only):
            continue
        peer = envs.Peer(package, tuple(pins[package]["packages"]), note=pins[package]["note"])
        try:
            there = envs.find(peer, cache)
        except envs.MissingError as error:
            engines[name] = Row(name, missing=str(error))
            continue
        found.versions[package] = there.version
        engines[name] = stack.enter_context(Peer(there, driver, text))
    return {name: one for name, one in engines.items() if not only or name.startswith(only)}


def _environment() -> dict[str, str]:
    return {
        "Holdfast": VERSION,
        "Python": platform.python_version(),
        platform.system(): platform.release().partition("-")[0],
        "cores": str(os.cpu_count()),
        "load before the run": f"{os.getloadavg()[0]:.1f}",
    }


if __name__ == "__main__":
    main(sys.argv[1:])
