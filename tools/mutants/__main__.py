"""`make mutants`: whether some test fails for each small wrong change of the core.

`make mutants ONLY=fold,react SAMPLE=500 SEED=1 JOBS=2`. Results are kept in `.mutants` as they come; the
next run goes on where this one ended, and tries survivors again after the tests have changed.
"""

from __future__ import annotations

import argparse
import ast
import gc
import hashlib
import json
import math
import os
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import pytest
from hypothesis import Phase, settings

from tools.mutants import trial
from tools.mutants.mutate import Mutant, mutants
from tools.mutants.report import PLACE, write
from tools.mutants.trial import CORE, Answer, Fork, Known, source_of

NEAR: Final = ("tests/core", "tests/model")
FAR: Final = ("tests/laws", "tests/engine", "tests/histories/test_replay.py")
EXAMPLES: Final = 30  # of a property that does not say how many it wants
SLOW: Final = 1.0  # seconds of processor; a slower test is not asked
BUDGET: Final = 4.0  # seconds of processor for the tests of one mutant
NEVER: Final = 1e9  # seconds of a test that is not asked
RESULTS: Final = PLACE / "results.jsonl"
_TOLD_EVERY: Final = 20.0


def all_mutants(only: set[str]) -> list[Mutant]:
    modules = sorted(path.stem for path in CORE.glob("*.py"))
    if unknown := only - set(modules):
        sys.exit(f'there is no module "{min(unknown)}" in the core')
    return [
        one
        for name in modules
        if not only or name in only
        for one in mutants(name, source_of(name))
    ]


def place_of(seed: int, one: Mutant) -> str:
    """A place by chance, which does not move when other lines change."""
    return hashlib.sha256(f"{seed}:{one.name}".encode()).hexdigest()


def digest_of(paths: Iterable[Path]) -> str:
    whole = hashlib.sha256()
    for path in sorted(paths):
        whole.update(path.read_bytes())
    return whole.hexdigest()[:16]


class Trials:
    """The whole of it, as the loop over tests of one pytest session that has them loaded."""

    def __init__(self, chosen: list[Mutant], jobs: int, budget: float, seconds: float) -> None:
        self.chosen, self.jobs, self.budget, self.seconds = chosen, jobs, budget, seconds
        self.tests = digest_of(one for top in (*NEAR, *FAR) for one in Path(top).rglob("*.py"))
        self.known: dict[str, Known] = {}
        self.killers: dict[tuple[str, str], list[str]] = defaultdict(list)

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed:
            return False
        self.items = {one.nodeid: one for one in session.items}
        self.live, self.caches = trial.functions(), trial.caches()
        gc.collect()
        gc.freeze()
        self._measure()
        self._try_all()
        return True

    # What the tests reach.

    def _measure(self) -> None:
        """A test is measured again when its file has changed, or a module that it reached."""
        place = PLACE / "reach.json"
        stored = json.loads(place.read_text()) if place.exists() else {"core": {}, "tests": {}}
        core = {one.stem: digest_of([one]) for one in CORE.glob("*.py")}
        moved = {name for name in core if stored["core"].get(name) != core[name]}
        files = {name: name.partition("::")[0] for name in self.items}
        fresh = {file: digest_of([Path(file)]) for file in {*files.values()}}
        kept = {
            name: one
            for name, one in stored["tests"].items()
            if name in files
            and one["file"] == fresh[files[name]]
            and moved.isdisjoint(one["lines"])
        }
        if new := [one for one in self.items if one not in kept]:
            print(f"{len(new)} tests, each alone: which lines do they reach?", flush=True)
            found = self._reached(new)
            self._check_harness(found)
            kept |= {name: {"file": fresh[files[name]], **one} for name, one in found.items()}
        place.write_text(json.dumps({"core": core, "tests": kept}))
        self.known = {name: Known(one["seconds"], one["lines"]) for name, one in kept.items()}

    def _reached(self, names: Sequence[str]) -> dict[str, dict[str, object]]:
        found: dict[str, dict[str, object]] = {}
        told = time.monotonic()
        for count, name in enumerate(names):
            if self._is_over():
                break
            answer = trial.told(partial(trial.reach, self.items[name]))
            if answer.get("ran") and not answer["failed"]:
                found[name] = {"seconds": answer["seconds"], "lines": answer["lines"]}
            else:
                found[name] = {"seconds": NEVER, "lines": {}}
                print(f"  left out: {name}: {answer.get('failed') or answer}", flush=True)
            if time.monotonic() - told > _TOLD_EVERY:
                told = time.monotonic()
                print(f"  {count + 1} of {len(names)}", flush=True)
        return found

    def _is_over(self) -> bool:
        """Whether the time of the processor is spent that this command may take."""
        took = os.times()
        return took.user + took.system + took.children_user + took.children_system > self.seconds

    def _check_harness(self, found: dict[str, dict[str, object]]) -> None:
        """No change must kill nothing, by either way of making one; times without the watching."""
        modules = sorted(path.stem for path in CORE.glob("*.py"))
        items = [self.items[name] for name, one in found.items() if one["lines"]]
        if not items:
            return

        def unchanged() -> Answer:
            count = sum(
                trial.exchange(one, ast.parse(source_of(one)), self.live) for one in modules
            )
            trial.forget(self.caches)
            reports, took = trial.run(items, lambda _: trial.WALL, whole=True)
            return {"count": count, "failed": reports.failed, "took": took}

        def anew() -> Answer:
            names = [one.nodeid for one in items]
            near = [name for name in names if name.startswith(NEAR)]
            trees = {one: ast.parse(source_of(one)) for one in modules}
            reports = trial.load_and_run(trees, near or names, names, 600.0)
            return {"count": len(reports.ran), "failed": reports.failed}

        for work in (unchanged, anew):
            answer = trial.told(work, wall=1_800.0)
            if not answer.get("count"):
                sys.exit(f"the harness itself is broken: {answer}")
            print(
                f"  {work.__name__}: {answer['count']} ok, failed: {answer['failed']}", flush=True
            )
            for name in answer["failed"]:
                if found.pop(name, None) is None:
                    sys.exit(f"the harness itself is broken: {name}: {answer['failed'][name]}")
            for name, seconds in answer.get("took", {}).items():
                if name in found:
                    found[name]["seconds"] = seconds

    # Mutants.

    def _try_all(self) -> None:
        RESULTS.touch()
        done = read_results()
        waiting = [one for one in self.chosen if not self._is_done(one, done)]
        waiting.sort(key=lambda one: one.name not in done)  # those that survived so far come first
        print(f"{len(self.chosen)} mutants, {len(waiting)} of them to try", flush=True)
        running: dict[int, tuple[Fork, Mutant]] = {}
        told, count, killed = time.monotonic(), 0, 0
        with RESULTS.open("a", encoding="utf-8") as out:
            try:
                while waiting or running:
                    if self._is_over():
                        waiting.clear()
                    while waiting and len(running) < self.jobs:
                        one = waiting.pop(0)
                        names = self._tests_for(one)
                        if not names:
                            self._keep(out, one, {"verdict": "unreached"})
                            continue
                        fork = trial.fork(self._work(one, names))
                        running[fork.pid] = fork, one
                    if not running:
                        break
                    for fork, answer in trial.ended([fork for fork, _ in running.values()]):
                        _, one = running.pop(fork.pid)
                        self._keep(out, one, answer)
                        count += 1
                        killed += answer["verdict"] in {"killed", "timeout"}
                    if time.monotonic() - told > _TOLD_EVERY:
                        told = time.monotonic()
                        print(f"  {count} tried, {killed} killed, {len(waiting)} left", flush=True)
            finally:
                for pid in running:
                    os.killpg(pid, signal.SIGKILL)

    def _work(self, one: Mutant, names: Sequence[str]) -> trial.Work:
        if one.is_code:
            items = [self.items[name] for name in names]
            return partial(trial.try_code, one, items, self._seconds, self.live, self.caches)
        limit = 20.0 + trial.PATIENCE * sum(self.known[name].seconds for name in names)
        return lambda: trial.try_module(one, names, self.items, limit)

    def _seconds(self, name: str) -> float:
        return self.known[name].seconds

    def _tests_for(self, one: Mutant) -> list[str]:
        """Who reaches it, in the order in which they are asked: likely killers, the near, the fast."""
        lines = set(range(one.first, one.last + 1))
        wider = set(range(one.statement[0], one.statement[1] + 1))
        reaching = self._reaching(one, lines) or self._reaching(one, wider)
        likely = self.killers[one.module, one.function]
        own = f"tests/core/test_{one.module}.py"
        reaching.sort(
            key=lambda name: (
                name not in likely,
                not name.startswith(own),
                not name.startswith(NEAR),
                self.known[name].seconds,
            )
        )
        chosen, left = [], self.budget
        for name in reaching:
            left -= self.known[name].seconds
            if left < 0:
                break
            chosen.append(name)
        return chosen

    def _reaching(self, one: Mutant, lines: set[int]) -> list[str]:
        own = f"tests/core/test_{one.module}.py"
        return [
            name
            for name, known in self.known.items()
            if name in self.items
            and known.seconds < SLOW
            and (
                not lines.isdisjoint(known.lines.get(one.module, ()))
                if one.is_code
                else name.startswith(NEAR)
                and (one.module in known.lines or name.startswith(own))  # of names alone, no line
            )
        ]

    def _is_done(self, one: Mutant, done: dict[str, Answer]) -> bool:
        kept = done.get(one.name)
        if kept is None or kept["source"] != self._source(one):
            return False
        if kept["verdict"] in {"killed", "timeout"}:
            return True
        return bool(kept["tests"] == self.tests and kept["budget"] >= self.budget)

    def _source(self, one: Mutant) -> str:
        return digest_of([CORE / f"{one.module}.py"])

    def _keep(self, out: trial.Out, one: Mutant, answer: Answer) -> None:
        if by := answer.get("by"):
            likely = self.killers[one.module, one.function]
            if by in likely:
                likely.remove(by)
            likely.insert(0, by)
            del likely[8:]
        about = {"source": self._source(one), "tests": self.tests, "budget": self.budget}
        row = {"name": one.name, **about, **answer}
        out.write(json.dumps(row, ensure_ascii=False) + "\n")
        out.flush()


def read_results() -> dict[str, Answer]:
    """The last word on each mutant."""
    found: dict[str, Answer] = {}
    for line in RESULTS.read_text(encoding="utf-8").splitlines() if RESULTS.exists() else ():
        row = json.loads(line)
        found[row["name"]] = row
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument("--only", default="", help="modules of the core, with commas")
    parser.add_argument(
        "--sample", type=int, default=0, help="this many of them, chosen by the seed"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--budget", type=float, default=BUDGET, help="seconds of tests of each")
    parser.add_argument(
        "--seconds", type=float, default=0, help="of the processor, about; then end"
    )
    parser.add_argument("--report", action="store_true", help="only write the report anew")
    chosen = parser.parse_args()
    PLACE.mkdir(exist_ok=True)
    every = all_mutants({word for word in chosen.only.split(",") if word})
    every.sort(key=partial(place_of, chosen.seed))  # the first of them are a fair sample
    some = every[: chosen.sample] if chosen.sample else every
    if not chosen.report:
        phases = (Phase.explicit, Phase.generate)  # nobody reads the smallest example
        settings.register_profile(
            "mutants", derandomize=True, database=None, phases=phases, max_examples=EXAMPLES
        )
        loop = Trials(some, chosen.jobs, chosen.budget, chosen.seconds or math.inf)
        settings.load_profile("mutants")  # which that of the tests takes up
        code = pytest.main([*trial.OPTIONS, *NEAR, *FAR], plugins=[loop])
        if code not in {0, pytest.ExitCode.NO_TESTS_COLLECTED}:
            return int(code)
    return write(some, read_results(), every)


if __name__ == "__main__":
    sys.exit(main())
