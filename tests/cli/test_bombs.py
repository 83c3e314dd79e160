"""Bombs in steps: each ends at its limit, while another run and the page go on, and nothing of it stays."""

import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.cli.project import DEADLINE, Project, alive, finish, finish_run, until
from tests.cli.test_sandbox import configure
from tests.crash.report import Report
from tests.forge import Running
from tests.web.site import Site, serve

PYTHON = f"{sys.executable} -c"
HOLD = "x = bytearray(b'x' * {each}); import time; time.sleep(600)"
FILES = "for n in range({many}): open(f'f{{n}}', 'w').close()"
DESCRIPTORS = "x = [open('/dev/null') for _ in range(100000)]"
LATE = frozenset({"timed_out"})
ENDED = frozenset({"command_failed", "lost"})  # it failed, or was killed: by which limit it fell


class Bomb(NamedTuple):
    """What a step does, and what it may be told to have ended of."""

    script: str
    told: frozenset[str]
    seconds: int = 60
    prints: bool = False  # stdout is its artifact


def bombs(many: int, each: int, line: str, late: int) -> dict[str, Bomb]:
    """Those that no other limit ends have so many seconds."""
    four = f'for i in 1 2 3 4; do {PYTHON} "{HOLD.format(each=each)}" & done; wait; exit 9'
    return {
        "forks": Bomb("bomb(){ bomb|bomb& }; bomb; sleep 600", LATE | ENDED, late),
        "file": Bomb("head -c 10G /dev/zero > big", ENDED),
        # where files lie in memory, a quick machine comes to that limit first
        "files": Bomb(f'{PYTHON} "{FILES.format(many=many)}"; sleep 600', LATE | ENDED, late),
        "scratch": Bomb("head -c 10G /dev/zero > /tmp/x || exit 9", ENDED),
        "allocation": Bomb(f"{PYTHON} 'x = bytearray(8 * 10**9)'", ENDED),
        "allocations": Bomb(four, LATE | ENDED, late),
        "output": Bomb("yes", ENDED, prints=True),
        "line": Bomb(line, ENDED, prints=True),
        "errors": Bomb("yes >&2", LATE, late),
        "sleep": Bomb("sleep infinity", LATE, late),
        "descriptors": Bomb(f'{PYTHON} "{DESCRIPTORS}"', ENDED),
        "memory": Bomb("cat /dev/zero > /dev/shm/x || exit 9", ENDED),
    }


SMALL = """
[sandbox]
processes = 80
memory = "150 MB"
file_size = "4 MB"
open_files = 100
scratch = "4 MB"
[limits]
artifact = "8 MB"
"""
FEW = bombs(10**9, 10**8, "tr '\\0' x < /dev/zero", 3)
LARGE = """
[sandbox]
processes = 2000
memory = "2 GB"
file_size = "2 GB"
scratch = "500 MB"
"""
HEAVY = bombs(1_000_000, 10**9, "head -c 2000000000 /dev/zero | tr '\\0' x", 90)


@pytest.fixture(autouse=True)
def _bubblewrap(require_part: Callable[[str], str]) -> None:
    require_part("bubblewrap")


def prepared(project: Project, wanted: Mapping[str, Bomb]) -> Site:
    """A plan of bombs, another plan beside it, and the page of both."""
    steps: dict[str, Mapping[str, Any]] = {}
    for name, bomb in wanted.items():
        steps[name] = {
            "shell": project.sh(bomb.script),
            "workspace": "scratch",
            "timeout": f"{bomb.seconds}s",
            "retries": 0,
            **({} if bomb.prints else {"produces": [f"out-{name}"]}),
        }
    wait = f"until [ -e {project.gates / 'over'} ]; do sleep 0.1; done; echo over"
    steps["gate"] = {"shell": wait, "timeout": "300s"}  # the run lasts until all was looked at
    project.plan(steps)
    project.plan(
        {name: {"shell": f"echo {name}"} for name in "abc"}, file="other.yaml", name="other"
    )
    site = serve(project)
    site.enter()
    return site


def undisturbed(project: Project, site: Site, engine: Running) -> None:
    """While bombs go off another run does its steps, and the page tells of it."""
    done = project.run("other.yaml", "--force")
    assert (done.code, set(done.states.values())) == (0, {"done"}), done.err
    for path in ("/", f"/runs/{done.id}", "/approvals"):
        assert site.ask(path).status == 200, path
    assert engine.poll() is None, finish(engine)


def exploded(project: Project, wanted: Mapping[str, Bomb], report: Report) -> None:
    """Let bombs go off, look at the others meanwhile, and at what is left."""
    site = prepared(project, wanted)
    engine = project.start("run", "--json", "-j", str(len(wanted) + 1))
    most = len(wanted) * 2 // 3  # on a busy machine the time of one may be over before it begins
    until(lambda: len(project.begun()) >= most or engine.poll() is not None, "they begin")
    undisturbed(project, site, engine)
    project.open("over")
    late = max(bomb.seconds for bomb in wanted.values())
    run = finish_run(engine, DEADLINE + 2 * late)  # what ends late is tried once more
    report.fired += len(set(project.begun()) & set(wanted))
    report.tried += len(wanted)
    report.work += run.states["gate"] == "done"
    report.outcomes.update(str(run.codes[name]) for name in wanted)
    report.violations += [
        f"{name} is {run.states[name]}: {run.codes[name]}"
        for name, bomb in wanted.items()
        if run.states[name] != "failed" or run.codes[name] not in bomb.told
    ]
    report.violations += list(left(project))
    assert site.ask("/").status == 200
    assert project.call("verify", "--all").code == 0


def left(project: Project) -> list[str]:
    """What of the bombs is still there."""
    files = [path for path in project.folder.rglob("*") if path.is_file()]
    size = sum(path.stat().st_size for path in files)
    found = [f"{size} bytes stay"] if size > 150 * 10**6 else []
    found += [f"{path} stays" for path in (project.store / "scratch").glob("*/*")]
    for pid in filter(str.isdigit, os.listdir("/proc")):  # they may go while they are looked at
        with suppress(OSError):
            known = Path("/proc", pid, "environ").read_bytes()
            is_step = b"\0HOLDFAST_STEP=" in known and os.fsencode(project.root) in known
            found += [f"process {pid} stays"] if is_step and alive(int(pid)) else []
    return found


@pytest.mark.req("D40", "I12", "I16")
def test_bombs_end_at_their_limits_and_disturb_nobody(
    project: Project, sweep: Callable[[Report], None]
) -> None:
    configure(project, SMALL)
    report = Report("bombs", "other")
    exploded(project, FEW, report)
    sweep(report)
    assert not report.violations, report.violations
    assert (report.fired, report.work) == (len(FEW), 1)  # a bomb that never goes off proves nothing
    told = project.ok("trace", "--json").out
    assert "run_rested" in told
    events = {row["step"]: row for row in project.events() if row["event"] == "attempt_failed"}
    said = {name: project.shown(row["feedback"]).decode() for name, row in events.items()}
    assert "'limits.artifact' in your config.toml" in said["output"]
    assert "'limits.artifact' in your config.toml" in said["line"]
    assert "limit on the size of a file" in said["file"] or "File size" in said["file"]


@pytest.mark.soak("other")
@pytest.mark.req("D40", "I12", "I16")
@pytest.mark.parametrize("name", HEAVY)
def test_a_heavy_bomb_ends_at_its_limit_and_disturbs_nobody(
    project: Project, name: str, sweep: Callable[[Report], None]
) -> None:
    configure(project, LARGE)
    report = Report("heavy bombs", "other", total=len(HEAVY))
    exploded(project, {name: HEAVY[name]}, report)
    sweep(report)
    assert not report.violations, report.violations
    assert (report.fired, report.work) == (1, 1)
