"""The typical plan of 50 steps: how long it takes to load, what it takes to keep, what a change of it costs.

`load FOLDER REPEATS`, `keep FOLDER` and `change FOLDER` print one JSON object each. The steps of the plan are
done by a model: a scripted one on this machine, which takes a while for each answer, as real ones do.
"""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path

from holdfast import wire
from holdfast.cli.place import load_file
from holdfast.engine.versions import keep_planned, kept_plan, planned
from holdfast.formats.planfile import Asked
from holdfast.model.plan import RunId
from holdfast.testing.server import ModelServer, Say

STEPS, WIDTH = 50, 10
CHANGED = STEPS // 2  # in the middle of the graph
THINKS = 1.0  # seconds for an answer
LARGE, LARGE_WIDTH = 10_000, 1_000
_LINE = "typical"


def typical(prompt: str = "") -> str:
    """Five layers of ten documents; each needs two of the layer above and is a file. `prompt` is for one."""
    lines = ["schema: holdfast.plan/1", f"name: {_LINE}", "steps:"]
    for number in range(STEPS):
        said = (
            number == CHANGED and prompt
        ) or f"Write part {number} of the handbook in 200 words."
        lines += [
            f"  part-{number:02}:",
            f"    description: Part {number} of the handbook, for people who are new here",
            "    contract: Plain sentences, one idea each, no word that an earlier part did not explain",
            f"    prompt: |\n      {said}\n      Build on the parts above, and contradict none of them.",
            "    model: fake:m",
            f"    produces: handbook/part-{number:02}.md",
            "    guards:\n      - regex: {pattern: part}",
            *_needs(number, WIDTH, "part-{:02}"),
        ]
    return "\n".join(lines) + "\n"


def large() -> str:
    """Ten layers of a thousand commands; each needs three of the layer above and makes a file."""
    lines = ["schema: holdfast.plan/1", "name: large", "steps:"]
    for number in range(LARGE):
        lines += [
            f"  step-{number:05}:",
            f"    description: makes part {number} of the report from what came before",
            f"    run: [echo, part, '{number}']",
            f"    produces: parts/{number:05}.txt",
            *_needs(number, LARGE_WIDTH, "step-{:05}"),
        ]
    return "\n".join(lines) + "\n"


def _needs(number: int, width: int, name: str) -> list[str]:
    if number < width:
        return []
    above = number // width * width - width
    needs = {above + number % width, above + (number * 7 + 1) % width}
    needs |= {above + (number * 13 + 2) % width} if width > WIDTH else set()
    return [f"    needs: [{', '.join(name.format(need) for need in sorted(needs))}]"]


def _loaded(file: Path) -> float:
    began = time.perf_counter()
    plan = load_file(str(file), Asked(find=wire.project_files, check=wire.guard_flaw)).plan
    took = time.perf_counter() - began
    assert len(plan.steps) == STEPS
    return took


def load(folder: Path, repeats: int) -> dict[str, float]:
    """The least seconds until the plan is read and checked, from its file and from a store."""
    file = folder / "plan.yaml"
    file.write_text(typical(), encoding="utf-8")
    _loaded(file)  # what has to be imported is start-up
    keep(folder)
    from_file = min(_loaded(file) for _ in range(repeats))
    found = []
    for _ in range(repeats):
        store = wire.open_store(str(folder / ".holdfast"), readonly=True)
        began = time.perf_counter()
        version = planned(store, "", _LINE)
        assert version is not None
        assert len(kept_plan(store, version.plan).steps) == STEPS
        found.append(time.perf_counter() - began)
        store.close()
    return {"file": from_file, "store": min(found)}


def keep(folder: Path) -> dict[str, float]:
    """Bytes that a store grows by when it keeps the plan as a version of its line."""
    file = folder / "plan.yaml"
    file.write_text(typical(), encoding="utf-8")
    plan = load_file(str(file), Asked()).plan
    place = folder / ".holdfast"
    store = wire.open_store(str(place), create=True)
    try:
        before = _size(place)
        keep_planned(store, plan, RunId(""), "bench", wire.now_ms)
        return {"bytes": _size(place) - before}
    finally:
        store.close()


def _size(place: Path) -> int:
    """Bytes of a store; of its database, those that are in use."""
    with sqlite3.connect(place / "state.db") as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (pages,) = database.execute("PRAGMA page_count").fetchone()
        (free,) = database.execute("PRAGMA freelist_count").fetchone()
        (page,) = database.execute("PRAGMA page_size").fetchone()
    database.close()
    blobs = (place / "blobs").rglob("*")
    return int((pages - free) * page) + sum(path.stat().st_size for path in blobs if path.is_file())


def change(folder: Path) -> dict[str, float]:
    """Wall seconds and dollars of the plan run whole, and run again after one of its prompts changed.

    The time is that from the first attempt to the end of the run: start-up is apart.
    """
    file = folder / "plan.yaml"
    with ModelServer(lambda asked: Say(f"part {asked.number}", delay=THINKS)) as server:
        own = folder / "home" / ".config" / "holdfast"
        own.mkdir(parents=True)
        (own / "config.toml").write_text(
            f'[providers.fake]\nkind = "openai"\nbase_url = "{server.url}"\n'
            '[prices."fake:m"]\ninput = 1\noutput = 2\n',
            encoding="utf-8",
        )
        file.write_text(typical(), encoding="utf-8")
        whole = _run(folder)
        file.write_text(typical("Write it anew."), encoding="utf-8")
        again = _run(folder)
    return {
        "whole_s": whole[0],
        "again_s": again[0],
        "whole_usd": whole[1],
        "again_usd": again[1],
        "ran": again[2],
    }


def _run(folder: Path) -> tuple[float, float, int]:
    totals = json.loads(_said(folder, "run", "--yes", "--json", "-q"))["totals"]
    assert totals["done"] + totals["reused"] == STEPS
    events = [json.loads(line) for line in _said(folder, "trace", "@", "--json").splitlines()]
    first = next(event["ts"] for event in events if event["event"] == "attempt_started")
    times = [datetime.fromisoformat(ts) for ts in (first, events[-1]["ts"])]
    return (times[1] - times[0]).total_seconds(), totals["cost_usd"], totals["done"]


def _said(folder: Path, *words: str) -> bytes:
    program = str(Path(sys.executable).parent / "holdfast")
    env = {**os.environ, "HOME": str(folder / "home"), "XDG_CONFIG_HOME": ""}
    argv = [program, *words]
    return subprocess.run(argv, cwd=folder, env=env, check=True, capture_output=True).stdout


def main() -> None:
    what, folder = sys.argv[1], Path(sys.argv[2]).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    if what == "load":
        said = load(folder, int(sys.argv[3]))
    else:
        said = keep(folder) if what == "keep" else change(folder)
    print(json.dumps(said))


if __name__ == "__main__":
    main()
