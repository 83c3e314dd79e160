"""What commands and the page take of CPU and memory on the store of a very large plan, as JSON.

`python -m bench.scale.asked STEPS FOLDER`: makes a store with four runs of one `for_each` (made, made anew by
another function, nothing changed and looked at step by step, nothing changed by the note of the last run),
lets its contents be two hours old, and asks. The last command removes what the first and the third run left.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import HTTPCookieProcessor, OpenerDirector, build_opener

import apsw

from bench.own.million import WALLS

COMMAND = [sys.executable, "-P", "-m", "holdfast"]
STEP = "all[7]"
LOOKS = 2  # the run that looks at every step
SCREENS = {"steps": "", "steps of an item": "?open=all", "graph": "/graph", "timeline": "/timeline"}
_TICKS = os.sysconf("SC_CLK_TCK")


def make(steps: int, folder: Path) -> None:
    """The store; done once."""
    for turn, how in enumerate(("file", "other", "other", "other")):
        if turn == LOOKS:
            shutil.rmtree(folder / ".holdfast" / "unchanged", ignore_errors=True)
        argv = [sys.executable, "-m", "bench.scale.million", how, str(steps), str(folder)]
        subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
    database = apsw.Connection(str(folder / ".holdfast" / "state.db"))
    database.execute("UPDATE blob SET at = at - 7200")
    database.close()


def asked(words: list[str], folder: Path) -> dict[str, float]:
    """One command in a process of its own: seconds of CPU and of the clock, MB at most."""
    began = time.perf_counter()
    with open(os.devnull, "wb") as nothing:
        process = subprocess.Popen([*COMMAND, *words], cwd=folder, stdout=nothing)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return {
        "cpu": round(used.ru_utime + used.ru_stime, 1),
        "wall": round(time.perf_counter() - began, 1),
        "peak_mb": used.ru_maxrss // 1024,
        "code": process.returncode,
    }


@contextmanager
def served(folder: Path) -> Iterator[tuple[int, str, OpenerDirector]]:
    """The page: its process, its address, and a visitor whom it let in."""
    argv = [*COMMAND, "ui", "--no-browser"]
    process = subprocess.Popen(argv, cwd=folder, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        visitor = build_opener(HTTPCookieProcessor())
        visitor.open(address).read()
        yield process.pid, address.partition("/door")[0], visitor
    finally:
        process.terminate()
        process.wait()


def page(folder: Path, run: str) -> Iterator[tuple[str, dict[str, float]]]:
    """Each screen of a run, twice; CPU is that of the server. The first answer folds the newest runs."""
    with served(folder) as (pid, base, visitor):
        yield "page: opened", {"cpu": round(_cpu(pid), 2), "peak_mb": _peak(pid)}
        for turn in ("first", "again"):
            for screen, path in SCREENS.items():
                began, cpu = time.perf_counter(), _cpu(pid)
                with visitor.open(f"{base}/runs/{run}{path}") as answer:
                    size = len(answer.read())
                yield (
                    f"page: {screen}, {turn}",
                    {
                        "cpu": round(_cpu(pid) - cpu, 2),
                        "wall": round(time.perf_counter() - began, 2),
                        "peak_mb": _peak(pid),
                        "answer_kb": size // 1024,
                    },
                )


def _cpu(pid: int) -> float:
    stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(stat[11]) + int(stat[12])) / _TICKS


def _peak(pid: int) -> int:
    said = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    found = re.search(r"VmHWM:\s+(\d+)", said)
    return int(found[1]) // 1024 if found else 0


def newest(folder: Path) -> str:
    database = apsw.Connection(str(folder / ".holdfast" / "state.db"))
    ((run,),) = database.execute("SELECT id FROM run ORDER BY number DESC LIMIT 1").fetchall()
    database.close()
    return str(run)


def answers(folder: Path) -> Iterator[tuple[str, dict[str, float]]]:
    run = newest(folder)
    for words in (
        ["status"],
        ["why", STEP, "--run", run],
        ["ledger"],
        ["cost"],
        ["history", "-n", "1"],
        ["verify"],
    ):
        yield " ".join(words).replace(run, "RUN"), asked(words, folder)
    yield from page(folder, run)
    yield "gc --dry-run", asked(["gc", "--keep-runs", "1", "--dry-run"], folder)
    yield "gc", asked(["gc", "--keep-runs", "1", "--yes"], folder)


def main() -> None:
    steps, folder = int(sys.argv[1]), Path(sys.argv[2]).absolute()
    home = folder / "home" / "holdfast"
    home.mkdir(parents=True, exist_ok=True)
    (home / "config.toml").write_text(WALLS.format(most=2 * steps), encoding="utf-8")
    os.environ["XDG_CONFIG_HOME"] = str(folder / "home")
    if not (folder / ".holdfast").exists():
        make(steps, folder)
    for what, took in answers(folder):
        print(json.dumps({"what": what, **took}), flush=True)


if __name__ == "__main__":
    main()
