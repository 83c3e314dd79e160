"""Figures of Holdfast alone: reopening, stored bytes, plans, ledgers, commands, a million steps."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from statistics import median

from bench.measure import REPOSITORY, environment
from bench.own.commands import KINDS
from bench.own.commands import WAYS as COMMANDS
from bench.own.ledgers import SIZES as HANDOFFS
from bench.own.ledgers import WORDS
from bench.own.plans import LARGE, STEPS, large
from bench.own.reopen import PROMISED
from bench.own.runner import WAYS
from bench.results import Own
from bench.startup import time_of

JOBS = (2, 4)
FEW_STEPS, MANY_STEPS = 10, 10_000  # of the runs whose pages are opened
TYPICAL = f"plan of {STEPS} steps"
MILLION = 1_000_000
ELSEWHERE = {"here": "on this machine", "worker": "on a worker", "ray": "on Ray"}


def figures(scratch: Path, *, repeats: int, quick: bool) -> Iterator[Own]:
    """All of them; a quick run does a tenth of the work."""
    shutil.rmtree(scratch, ignore_errors=True)
    share = 10 if quick else 1
    yield from _reopen(scratch, PROMISED // 2 // share, repeats)
    yield _stored(scratch, 10_000 // share)
    yield from _typical(scratch, repeats)
    yield from _large(scratch, repeats)
    yield from _ledgers(HANDOFFS[:2] if quick else HANDOFFS, repeats)
    for kind in KINDS:
        for jobs in JOBS:
            yield _commands(scratch, kind, jobs, 200 // share, repeats)
    yield from _runner(scratch, 200 // share)
    yield from _elsewhere(scratch, 200 // share, 1 if quick else 3)
    yield from _page(scratch, repeats)
    shutil.rmtree(scratch, ignore_errors=True)


def _reopen(scratch: Path, steps: int, repeats: int) -> Iterator[Own]:
    folder, kept = scratch / "reopen", scratch / "kept"
    events = _say("reopen", "write", str(folder), str(steps))["events"]
    shutil.copytree(folder / ".holdfast", kept)
    found = []
    for _ in range(repeats):
        shutil.rmtree(folder / ".holdfast")
        shutil.copytree(kept, folder / ".holdfast")
        found.append(_say("reopen", "resume", str(folder), str(steps)))
    wall = median(said["wall"] for said in found)
    yield Own("reopened events", events, "events")
    yield Own("reopening", wall, "s", repeats=repeats)
    yield Own("reopening 50,000 events", wall / events * PROMISED, "s", repeats=repeats)
    shutil.rmtree(scratch)


def _stored(scratch: Path, steps: int) -> Own:
    found = _say("stored", str(scratch / "stored"), str(steps))["bytes"]
    return Own("stored bytes per step", found, "bytes", repeats=1)


def _typical(scratch: Path, repeats: int) -> Iterator[Own]:
    """The plan of 50 steps: loaded, kept, and run again after one of its prompts changed."""
    loaded = _say("plans", "load", str(scratch / "load"), str(3 * repeats))
    for name, seconds in loaded.items():
        yield Own(f"{TYPICAL}: loaded from its {name}", seconds * 1e3, "ms", repeats=3 * repeats)
    kept = _say("plans", "keep", str(scratch / "keep"))
    yield Own(f"{TYPICAL}: kept in", kept["bytes"] / 1024, "KB", repeats=1)
    found = _say("plans", "change", str(scratch / "change"))
    yield Own(f"{TYPICAL}: run whole", found["whole_s"], "s", repeats=1)
    yield Own(f"{TYPICAL}: run after one prompt changed", found["again_s"], "s", repeats=1)
    yield Own(f"{TYPICAL}: steps that ran then", found["ran"], "steps", repeats=1)
    for unit, name in (("s", "time"), ("usd", "cost")):
        saved = 100 * (1 - found[f"again_{unit}"] / found[f"whole_{unit}"])
        yield Own(f"{TYPICAL}: {name} saved by reuse", saved, "%", repeats=1)


def _large(scratch: Path, repeats: int) -> Iterator[Own]:
    """`check` and `plan` of 10,000 steps, above the same of one step."""
    folders = {"large": large(), "one": "name: one\nsteps:\n  one: {run: [echo, one]}\n"}
    for name, text in folders.items():
        (scratch / name).mkdir(parents=True)
        (scratch / name / "plan.yaml").write_text(text, encoding="utf-8")
    program = str(Path(sys.executable).parent / "holdfast")
    env = environment(scratch)
    for word in ("check", "plan"):
        print(f"alone: {word} {LARGE:,} steps", file=sys.stderr, flush=True)
        least = {name: float("inf") for name in folders}
        for _ in range(repeats):
            for name in folders:
                code, cpu, _ = time_of((program, word), scratch / name, env)
                if code:
                    raise RuntimeError(f"{word} of {name} ended with {code}")
                least[name] = min(least[name], cpu)
        cpu = least["large"] - least["one"]
        yield Own(f"`{word}` of {LARGE:,} steps", cpu, "s CPU", repeats=repeats)


def _ledgers(sizes: Sequence[int], repeats: int) -> Iterator[Own]:
    """The fold of handoffs in common words at all sizes, and of those it fears at the middle one.

    Each in a process of its own: a fold remembers how texts read, up to some number of them.
    """
    asked = [(size, "common") for size in sizes]
    asked += [(HANDOFFS[1], words) for words in WORDS if words != "common"]
    for size, words in asked:
        rounds = repeats if size < HANDOFFS[-1] else 2
        cpu = min(_say("ledgers", str(size), words)["cpu"] for _ in range(rounds))
        yield Own(ledger_row(size, words), cpu, "s CPU", repeats=rounds)


def ledger_row(size: int, words: str = "common") -> str:
    """How the row of a fold is named."""
    said = {
        "common": "",
        "few": " of few words",
        "equal": " that say the same",
        "near": " that say nearly the same",
    }
    return f"ledger of {size:,} handoffs{said[words]}"


def million(scratch: Path, steps: int = MILLION) -> Iterator[Own]:
    """The plan of very many steps, once; asked for by name, for it takes minutes."""
    shutil.rmtree(scratch, ignore_errors=True)
    found = _say("million", str(steps), str(scratch / "million"))
    for phase, before in (("cold", "cold_"), ("nothing changed", "")):
        name = million_row(steps, phase)
        cpu = found[f"{before}load_cpu"] + found[f"{before}cpu"]
        yield Own(f"{name}: load and run", cpu, "s CPU", repeats=1)
        yield Own(f"{name}: the run", found[f"{before}cpu"], "s CPU", repeats=1)
        yield Own(f"{name}: peak memory", found[f"{before}peak_mb"] / 1e3, "GB", repeats=1)
    shutil.rmtree(scratch, ignore_errors=True)


def million_row(steps: int, phase: str) -> str:
    """How the rows of it are named."""
    return f"{steps:,} steps from `for_each`, {phase}"


def _commands(scratch: Path, kind: str, jobs: int, count: int, repeats: int) -> Own:
    walls: dict[str, list[float]] = {
        who: [] for who in COMMANDS if who != "ninja" or shutil.which("ninja")
    }
    for number in range(repeats):
        for who, found in walls.items():
            folder = scratch / f"{who}{number}"
            found.append(_say("commands", who, kind, str(jobs), str(count), str(folder))["wall"])
            shutil.rmtree(folder)
    each = {who: median(found) / count for who, found in walls.items()}
    name = f"`{kind}`, {jobs} at once"
    return Own(name, each["holdfast"], "s", each["pool"], repeats, each.get("ninja"))


def _elsewhere(scratch: Path, count: int, repeats: int) -> Iterator[Own]:
    """The same commands as steps here, on a worker and on Ray, which has its own calls beside it."""
    places = dict(ELSEWHERE)
    if find_spec("ray") is None:
        del places["ray"]
    found: dict[str, list[float]] = {}
    for _ in range(repeats):
        for place in [*places, "bare ray"] if "ray" in places else places:
            said = _say("elsewhere", place, str(count), str(scratch / "elsewhere"))
            found.setdefault(place, []).append(said["seconds"])
            shutil.rmtree(scratch / "elsewhere", ignore_errors=True)
    for place, words in places.items():
        bare = median(found["bare ray"]) if place == "ray" else None
        yield Own(f"a step {words}", median(found[place]), "s", bare, repeats)


def _runner(scratch: Path, count: int) -> Iterator[Own]:
    found = _say("runner", str(count), str(scratch / "runner"))
    for way in WAYS:
        yield Own(f"`true` {way}", found[way], "s", found["subprocess.run"], count)


def _page(scratch: Path, repeats: int) -> Iterator[Own]:
    """The page of a run of few and of many steps in a browser; nothing where there is no browser."""
    sizes = (str(FEW_STEPS), str(MANY_STEPS))
    for name, took in _say("page", str(scratch / "page"), *sizes, str(repeats)).items():
        steps, _, what = name.partition(" ")
        yield Own(page_row(int(steps), what), took, "ms", repeats=repeats)


def page_row(steps: int, what: str) -> str:
    """How the row of a screen is named."""
    return f"page of {steps:,} steps, {what}"


def _say(module: str, *words: str) -> dict[str, float]:
    print(f"alone: {module} {' '.join(words[:-1])}", file=sys.stderr, flush=True)
    done = subprocess.run(
        [sys.executable, "-m", f"bench.own.{module}", *words],
        cwd=REPOSITORY,
        env=environment(REPOSITORY / ".bench"),
        check=False,
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        raise RuntimeError(f"bench.own.{module} failed:\n{done.stderr}")
    said: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return said
