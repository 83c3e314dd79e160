"""One store, many processes: claims beside bare SQL, and simulated workers on the real claims."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.envs import Found
from bench.measure import HOLDFAST, REPOSITORY, Tool, environment, run, tool_of
from bench.results import Beside, Claims, Play
from bench.scale.check import judge
from bench.scale.hold import play
from bench.scale.places import STORES, new_store
from bench.scale.scene import Scene

PROCESSES = (1, 8, 32)
STEPS = 2_000
TAKEOVER = Scene().takeover
WAYS = ("claims", "bareclaims")


def claims(*, repeats: int, quick: bool) -> Iterator[Claims]:
    """Both ways on the same server or disk, in turn; of each the best."""
    for store in STORES:
        for processes in PROCESSES:
            yield _claims(store, processes, STEPS // 4 if quick else STEPS, repeats)


def _claims(store: str, processes: int, steps: int, repeats: int) -> Claims:
    print(f"shared: claims, {store}, {processes} processes", file=sys.stderr, flush=True)
    found: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
    for _ in range(repeats):
        for way, said in found.items():
            with new_store(store) as place:
                said.append(_say(way, place, str(processes), str(steps)))
    best = {way: max(said, key=lambda one: one["per_second"]) for way, said in found.items()}
    ours = best["claims"]
    return Claims(
        store=store,
        processes=processes,
        steps=steps,
        per_second=ours["per_second"],
        bare=best["bareclaims"]["per_second"],
        fewest=int(ours["fewest"]),
        most=int(ours["most"]),
        bare_fewest=int(best["bareclaims"]["fewest"]),
        bare_most=int(best["bareclaims"]["most"]),
        wrong=int(sum(one["twice"] + one["lost"] for one in found["claims"])),
        repeats=repeats,
    )


def besides(peers: Iterable[Found], *, repeats: int, quick: bool) -> Iterator[Beside]:
    """One engine and the peers that work on PostgreSQL, in turn on one server; of each the best."""
    steps = 200 if quick else 1_000
    for peer in (found for found in peers if found.peer.name == "dbos"):
        for shape in ("wide", "chain"):
            print(f"shared: one engine and {peer.peer.name}, {shape}", file=sys.stderr, flush=True)
            best = _best(tool_of(peer), shape, steps, repeats)
            yield Beside(peer.peer.name, shape, steps, *best, repeats)


def _best(peer: Tool, shape: str, steps: int, repeats: int) -> tuple[float, float]:
    """Steps a second of ours, and of the peer."""
    walls: tuple[list[float], list[float]] = [], []
    for _ in range(repeats):
        with new_store("postgresql") as address, TemporaryDirectory(prefix="hf-beside-") as folder:
            for tool, found in zip((HOLDFAST, peer), walls, strict=True):
                there = replace(tool, variant=_plain(address) if tool is peer else address)
                sample = run(there, shape, steps, Path(folder) / tool.name)
                found.append(sample.wall)
    return steps / min(walls[0]), steps / min(walls[1])


def _plain(address: str) -> str:
    """The address without the schema, which is our own word in it."""
    return address.replace("&schema=holdfast", "").replace("?schema=holdfast&", "?")


def plays(*, quick: bool) -> Iterator[Play]:
    """A small play on each store; `python -m bench.scale` plays larger ones."""
    scene = Scene(steps=500, workers=40) if quick else Scene()
    for store in STORES:
        print(f"shared: {scene.workers} simulated workers, {store}", file=sys.stderr, flush=True)
        with new_store(store) as place:
            found = judge(store, play(scene, place))
        yield Play(
            store=store,
            steps=found.steps,
            workers=found.workers,
            wrong=found.lost + found.twice + found.taken_twice + found.made_up + found.told_late,
            overtaken=found.overtaken,
            takeover=found.takeover_most,
            limit=found.takeover_limit,
            per_second=found.per_second,
            model=found.model,
        )


def _say(module: str, *words: str) -> dict[str, float]:
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
