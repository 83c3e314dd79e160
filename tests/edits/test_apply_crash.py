"""Killed, refused or cut short at any system call, an edit ends all-old or all-new."""

import hashlib
import os
import random
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import pytest

import holdfast.edits.apply as room
from holdfast.edits.apply import apply, recover
from holdfast.edits.change import FileChange
from tests.crash.report import Report

SOURCE = str(Path(room.__file__).parents[2])
PYTHON = os.path.realpath(sys.executable)
CALLS = (
    *("write", "pwrite64", "fsync", "fdatasync", "ftruncate", "fchmod"),
    *("rename", "renameat", "renameat2", "unlink", "unlinkat", "rmdir", "mkdir", "mkdirat"),
)
KILLED = -9
REFUSED = 5

OLD_BIG, NEW_BIG = b"old line\n" * 180_000, b"new line\n" * 180_000  # two writes each
NAMED = b"moves from name to name"
MADE = b"made"
OLD = {
    "big.bin": (0o644, OLD_BIG),
    "dir": (0o755, None),
    "dir/name.txt": (0o640, NAMED),
    "flat": (0o644, b"flat"),
    "gone.txt": (0o600, b"gone"),
    "keep.txt": (0o644, b"keep"),
    "nest": (0o755, None),
    "nest/deep": (0o755, None),
    "nest/deep/egg": (0o644, b"egg"),
    "nest/twig": (0o644, b"twig"),
}
NEW = {
    "big.bin": (0o755, NEW_BIG),
    "dir": (0o755, None),
    "dir/renamed.txt": (0o640, NAMED),
    "flat": (0o755, None),
    "flat/in": (0o755, None),
    "flat/in/it": (0o644, MADE),
    "keep.txt": (0o644, b"keep"),
    "nest": (0o644, MADE),
    "new": (0o755, None),
    "new/deep": (0o755, None),
    "new/deep/made.txt": (0o644, MADE),
}


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


CONTENT = {digest(body): body for body in (NEW_BIG, NAMED, MADE)}
CHANGES = (
    FileChange("gone.txt", digest(b"gone"), None),
    FileChange("big.bin", digest(OLD_BIG), digest(NEW_BIG), 0o755),
    FileChange("new/deep/made.txt", None, digest(MADE)),
    FileChange("dir/name.txt", digest(NAMED), None),
    FileChange("dir/renamed.txt", None, digest(NAMED), 0o640),
    FileChange("flat", digest(b"flat"), None),
    FileChange("flat/in/it", None, digest(MADE)),
    FileChange("nest", None, digest(MADE)),
    FileChange("nest/deep/egg", digest(b"egg"), None),
    FileChange("nest/twig", digest(b"twig"), None),
)

# The child imports the room and does one thing; it writes nothing of its own.
CHILD = f"""
import os, sys
os.umask(0o022)
sys.path.insert(0, {SOURCE!r})
from holdfast.edits.apply import apply, recover
from holdfast.edits.change import FileChange
from holdfast.errors import StoreError
def pieces(digest):
    with open(os.path.join(sys.argv[2], "content", digest), "rb") as file:
        while piece := file.read(1 << 20):
            yield piece
base = sys.argv[2]
root, journals = os.path.join(base, "project"), os.path.join(base, "journals")
try:
    if sys.argv[1] == "apply":
        apply(root, [{", ".join(map(repr, CHANGES))}], pieces, journal_dir=journals, key="k")
    else:
        recover(root, journals, committed=lambda key: sys.argv[1] == "forward")
except StoreError:
    sys.exit({REFUSED})
"""

Point = tuple[str, int]
T = TypeVar("T")


def tree(root: Path) -> dict[str, tuple[int, bytes | None]]:
    return {
        str(path.relative_to(root)): (
            path.lstat().st_mode & 0o7777,
            path.read_bytes() if path.is_file() else None,
        )
        for path in sorted(root.rglob("*"))
    }


def build(base: Path) -> Path:
    """A base directory with the old project, the new content and a home for journals."""
    for directory in ("project/dir", "project/nest/deep", "content", "journals"):
        (base / directory).mkdir(parents=True)
        (base / directory).chmod(0o755)
    (base / "project/nest").chmod(0o755)
    for path, (mode, content) in OLD.items():
        if content is not None:
            (base / "project" / path).write_bytes(content)
            (base / "project" / path).chmod(mode)
    for name, content in CONTENT.items():
        (base / "content" / name).write_bytes(content)
    return base


def run(
    action: str, base: Path, wrapper: Iterable[str] = (), env: dict[str, str] | None = None
) -> int:
    command = [*wrapper, PYTHON, "-I", "-S", "-B", "-c", CHILD, action, str(base)]
    done = subprocess.run(
        command, capture_output=True, check=False, timeout=60, env={**os.environ, **(env or {})}
    )
    assert done.returncode in {0, KILLED, REFUSED}, done.stderr.decode()
    return done.returncode


def inject(strace: str, point: Point, fault: str) -> list[str]:
    call, number = point
    rule = f"inject={call}:{fault}:when={number}"
    return [strace, "-f", "-qq", "-o", os.devnull, "-e", f"trace={call}", "-e", rule]


def points(strace: str, action: str, base: Path) -> list[Point]:
    """Every mutating call of one clean run, in groups: the third write is ("write", 3)."""
    log = base / "strace.log"
    trace = [strace, "-f", "-qq", "-o", str(log), "-e", f"trace={','.join(CALLS)}"]
    assert run(action, base, trace) == 0
    counted = Counter(re.findall(r"^\d+ +(\w+)\(", log.read_text(), re.MULTILINE))
    return [(call, n) for call in CALLS for n in range(1, counted[call] + 1)]


def copied(base: Path, name: str) -> Path:
    target = base.with_name(f"{base.name}-{name}")
    shutil.copytree(base, target)
    return target


def finish(base: Path, *, forward: bool) -> bool:
    """Recover in this process and check the end; tells whether a journal was open."""
    root, journals = base / "project", base / "journals"
    found = recover(str(root), str(journals), committed=lambda _: forward)
    assert all(not recovered.conflicts for recovered in found)
    assert tree(root) == (NEW if forward and found else OLD)
    assert os.listdir(journals) == []
    assert recover(str(root), str(journals), committed=lambda _: forward) == []
    return bool(found)


def each(work: Callable[[T], str], items: Iterable[T]) -> Counter[str]:
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return Counter(pool.map(work, items))


@pytest.fixture
def strace(require_part: Callable[[str], str]) -> str:
    return require_part("strace")


@pytest.mark.req("D21", "D06", "I7")
@pytest.mark.parametrize("every", [3, pytest.param(1, marks=pytest.mark.soak("kill"))])
def test_killed_at_every_call_it_recovers_to_all_old_or_all_new(
    tmp_path: Path, strace: str, every: int
) -> None:
    def kill(point: Point) -> str:
        base = build(tmp_path / f"{point[0]}-{point[1]}")
        assert run("apply", base, inject(strace, point, "signal=KILL")) == KILLED
        mixed = tree(base / "project") not in (OLD, NEW)
        opened = finish(copied(base, "back"), forward=False)
        assert finish(base, forward=True) is opened
        return "mixed" if mixed else "open" if opened else "early"

    clean = build(tmp_path / "clean")
    sweep = points(strace, "apply", clean)
    assert tree(clean / "project") == NEW
    after_the_last = [(call, 1 + sum(c == call for c, _ in sweep)) for call in ("write", "fsync")]
    for point in after_the_last:
        base = build(tmp_path / f"after-{point[0]}")
        assert run("apply", base, inject(strace, point, "signal=KILL")) == 0
    seen = each(kill, sweep[::every])
    assert len(sweep) >= 50
    assert min(seen["mixed"], seen["open"], seen["early"]) >= 3 // every


def crashed_states(tmp_path: Path, strace: str) -> list[Path]:
    """Bases with an edit cut short: before its first change, in the middle, after its last."""
    sweep = points(strace, "apply", build(tmp_path / "clean"))
    renames = [point for point in sweep if point[0].startswith("rename")]
    unlinks = [point for point in sweep if point[0] == "unlinkat"]
    states = []
    for call, number in (renames[2], unlinks[-1]):
        base = build(tmp_path / f"state-{call}-{number}")
        assert run("apply", base, inject(strace, (call, number), "signal=KILL")) == KILLED
        states.append(base)
    whole = build(tmp_path / "state-whole")
    assert run("apply", whole) == 0
    return [*states, whole]


def sweep_recovery(tmp_path: Path, strace: str, sample: int | None, depth: int) -> Counter[str]:
    chosen: list[tuple[Path, str, Point]] = []
    seed = random.Random(11)
    for state in crashed_states(tmp_path, strace):
        for action in ("back", "forward"):
            found = points(strace, action, copied(state, f"count-{action}"))
            size = len(found) if sample is None else min(sample, len(found))
            chosen += [(state, action, point) for point in seed.sample(found, size)]

    def kill(case: tuple[Path, str, Point]) -> str:
        state, action, point = case
        base = copied(state, f"{action}-{point[0]}-{point[1]}")
        assert run(action, base, inject(strace, point, "signal=KILL")) == KILLED
        for _ in range(depth - 1):
            run(action, base, inject(strace, ("fsync", 1 + point[1] % 3), "signal=KILL"))
        was_open = (base / "journals/k/journal.json").exists()
        root, journals = base / "project", base / "journals"
        found = recover(str(root), str(journals), committed=lambda _: action == "forward")
        assert bool(found) is was_open
        assert all(not recovered.conflicts for recovered in found)
        assert tree(root) == (NEW if action == "forward" else OLD)
        assert os.listdir(journals) == []
        shutil.rmtree(base)
        return "open" if was_open else "finished"

    seen = each(kill, chosen)
    assert seen.total() == len(chosen)
    return seen


@pytest.mark.req("D11", "D21", "I7")
def test_killed_inside_recovery_the_next_recovery_ends_the_same(
    tmp_path: Path, strace: str
) -> None:
    seen = sweep_recovery(tmp_path, strace, sample=4, depth=1)
    assert seen.total() == 24
    assert min(seen["open"], seen["finished"]) > 0


@pytest.mark.soak("recovery")
@pytest.mark.req("D11", "D21", "I7")
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_killed_at_every_call_of_recovery_again_and_again(
    tmp_path: Path, strace: str, depth: int, sweep: Callable[[Report], None]
) -> None:
    seen = sweep_recovery(tmp_path, strace, sample=None, depth=depth)
    tried = seen.total()
    name = "D21 recovery of an edit killed"
    sweep(Report(name, tried=tried, fired=tried, work=tried, outcomes=seen))
    assert tried > 100


@pytest.mark.req("D03", "D04", "I7")
def test_a_failing_call_is_a_typed_error_and_leaves_all_old(tmp_path: Path, strace: str) -> None:
    sweep = points(strace, "apply", build(tmp_path / "clean"))
    seed = random.Random(4)
    chosen = [(point, "EIO") for point in sweep if point[0] == "fsync"]
    others = [point for point in sweep if point[0] != "fsync"]
    chosen += [(point, seed.choice(["ENOSPC", "EDQUOT"])) for point in seed.sample(others, 16)]

    def fail(case: tuple[Point, str]) -> str:
        point, error = case
        base = build(tmp_path / f"{point[0]}-{point[1]}")
        assert run("apply", base, inject(strace, point, f"error={error}")) == REFUSED
        opened = (base / "journals/k/journal.json").exists()
        if not opened:
            assert tree(base / "project") == OLD
        assert finish(base, forward=False) is opened
        return f"{point[0]} {'left open' if opened else 'undone'}"

    seen = each(fail, chosen)
    assert min(seen["fsync left open"], seen["fsync undone"]) > 0
    assert [name for name in seen if name.endswith("left open")] == ["fsync left open"]


@pytest.mark.req("D03", "I7")
def test_a_disk_that_stays_full_leaves_the_journal_for_later(tmp_path: Path, strace: str) -> None:
    sweep = points(strace, "apply", build(tmp_path / "clean"))
    last = max(number for call, number in sweep if call == "write")
    base = build(tmp_path / "full")
    fault = inject(strace, ("write", last), "error=ENOSPC")
    fault[-1] += "+"
    assert run("apply", base, fault) == REFUSED
    assert tree(base / "project") not in (OLD, NEW)
    assert finish(base, forward=False)


SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
static long seen;
ssize_t write(int fd, const void *data, size_t size) {
    ssize_t (*real)(int, const void *, size_t) = dlsym(RTLD_NEXT, "write");
    if (++seen != atol(getenv("CUT_AT")) || size < 2) return real(fd, data, size);
    ssize_t done = real(fd, data, size / 2);
    if (getenv("CUT_KILLS")) raise(SIGKILL);
    return done;
}
"""


@pytest.fixture
def shim(tmp_path: Path, require_part: Callable[[str], str]) -> str:
    if sys.platform != "linux":
        pytest.skip("the shim is loaded the Linux way")
    compiler = require_part("gcc")
    library = tmp_path / "cut.so"
    build_it = [compiler, "-shared", "-fPIC", "-x", "c", "-", "-o", str(library), "-ldl"]
    subprocess.run(build_it, input=SHIM.encode(), check=True)
    return str(library)


@pytest.mark.req("D05", "D06", "I7")
@pytest.mark.parametrize("every", [3, pytest.param(1, marks=pytest.mark.soak("short-torn-flip"))])
def test_any_write_may_be_short_or_torn(tmp_path: Path, strace: str, shim: str, every: int) -> None:
    sweep = points(strace, "apply", build(tmp_path / "clean"))
    writes = [number for call, number in sweep if call == "write"]

    def cut(number: int) -> str:
        env = {"LD_PRELOAD": shim, "CUT_AT": str(number)}
        short = build(tmp_path / f"short-{number}")
        assert run("apply", short, env=env) == 0
        assert tree(short / "project") == NEW
        torn = build(tmp_path / f"torn-{number}")
        assert run("apply", torn, env={**env, "CUT_KILLS": "1"}) == KILLED
        opened = finish(copied(torn, "back"), forward=False)
        assert finish(torn, forward=True) is opened
        return "open" if opened else "early"

    seen = each(cut, writes[::every])
    assert min(seen["open"], seen["early"]) >= 3 // every


def test_the_reference_edit_is_what_the_sweeps_say(tmp_path: Path) -> None:
    base = build(tmp_path / "base")
    assert tree(base / "project") == OLD
    apply(
        str(base / "project"),
        CHANGES,
        CONTENT.__getitem__,
        journal_dir=str(base / "journals"),
        key="k",
    )
    assert tree(base / "project") == NEW
    assert finish(copied(base, "back"), forward=False)
    assert finish(base, forward=True)


def durable_calls(strace: str, action: str, base: Path) -> list[tuple[str, str, str]]:
    """The calls that succeeded, as (call, directory or file, name), with descriptors as paths."""
    log = base / "durable.log"
    trace = [strace, "-f", "-y", "-qq", "-o", str(log), "-e", f"trace={','.join(CALLS)}"]
    assert run(action, base, trace) == 0
    found = []
    for line in log.read_text().splitlines():
        parsed = re.match(r"\d+ +(\w+)\((?:\d+|AT_FDCWD)<([^>]*)>(?:, \"([^\"]*)\")?", line)
        if parsed and "= -1" not in line:
            found.append((parsed[1], parsed[2], parsed[3] or ""))
    return found


@pytest.mark.req("D21")
def test_content_is_synchronised_before_its_name_and_the_name_before_the_next_step(
    tmp_path: Path, strace: str
) -> None:
    """What a kill cannot show: without these fsyncs a power cut could mix old and new."""
    base = build(tmp_path / "base")
    project, journal = str(base / "project"), str(base / "journals/k")
    calls = durable_calls(strace, "apply", base)
    named = [(n, c) for n, c in enumerate(calls) if c[0] in {"renameat", "unlinkat", "mkdirat"}]
    for position, (call, place, name) in named:
        if call == "renameat":
            file = [c[0] for c in calls[:position] if c[1] == f"{place}/{name}"]
            assert file[-1] == "fsync", name
        following = [c[1] for c in calls[position:] if c[0] == "fsync"]
        assert following[0] == place, (call, place, name)
    ready = calls.index(("renameat", journal, "journal.json.tmp"))
    first = min(position for position, (_, place, _) in named if place.startswith(project))
    before = [place for call, place, _ in calls[:ready] if call == "fsync"]
    staged = {name for name in os.listdir(journal) if name != "journal.json"}
    assert {f"{journal}/{name}" for name in staged} | {journal} <= set(before)
    between = {place for call, place, _ in calls[ready:first] if call == "fsync"}
    assert {journal, str(base / "journals")} <= between
    order = [call for _, (call, place, _) in named if place.startswith(project)]
    way = 5  # three files and two directories, in whose place others come
    assert order[:way] + order[-2:] == ["unlinkat"] * order.count("unlinkat"), "plain ones are last"
    assert len(named) >= 8
    assert len(staged) >= 6


@pytest.mark.req("D11", "D21")
@pytest.mark.parametrize("action", ["back", "forward"])
def test_recovery_synchronises_what_the_dead_process_may_not_have(
    tmp_path: Path, strace: str, action: str
) -> None:
    base = build(tmp_path / "base")
    assert run("apply", base) == 0
    calls = durable_calls(strace, action, base)
    removed = next(n for n, call in enumerate(calls) if call[0] == "fsync" and "/k" in call[1])
    before = {place for call, place, _ in calls[:removed] if call == "fsync"}
    project = str(base / "project")
    assert {project, f"{project}/dir", f"{project}/new"} <= before
