"""An edit of four files, and its rollback, are all-old or all-new wherever the command or the power ends."""

import json
import random
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from holdfast.edits.workspace import Workspace
from holdfast.edits.write import history, recover_workspace
from holdfast.errors import HoldfastError
from tests.crash.faults import KILLED, Fault, Report, Scene, Shim, by_strace, each
from tests.crash.power import MEMORY, recorded
from tests.crash.power_disk import ENDS, Cut, Draw, lay_out, moments, states
from tests.crash.power_trace import Recording
from tests.crash.shim import CALLS

BIG = "".join(f"line {number}\n" for number in range(600))
TEXT = "one\ntwo\nthree\n"
NAMED = "#!/bin/sh\necho moved\n"
OLD: dict[str, tuple[int, str | None]] = {
    "gone.txt": (0o600, ""),
    "keep.txt": (0o644, "keep"),
    "src": (0o755, None),
    "src/big.txt": (0o644, BIG),
    "src/name.sh": (0o755, NAMED),
}
NEW = {
    "keep.txt": OLD["keep.txt"],
    "made": (0o755, None),
    "made/deep": (0o755, None),
    "made/deep/new.txt": (0o644, TEXT),
    "made/renamed.sh": (0o755, NAMED.replace("moved", "moved on")),
    "src": (0o755, None),
    "src/big.txt": (0o644, BIG.replace("line 300\n", "line three hundred\n")),
}
EDIT = {
    "edits": [
        {"path": "src/big.txt", "hunks": [{"old": "line 300\n", "new": "line three hundred\n"}]},
        {"path": "made/deep/new.txt", "create": TEXT},
        {"path": "gone.txt", "delete": True},
        {
            "path": "src/name.sh",
            "move": "made/renamed.sh",
            "hunks": [{"old": "echo moved\n", "new": "echo moved on\n"}],
        },
    ]
}
INSIDE = {"edits": [EDIT["edits"][0], {"path": "src/name.sh", "delete": True}]}
APPLY = ("edit", "apply", "../edit.json")
BACK = ("edit", "rollback", "last")
LIST = ("edit", "list", "--json")


def lay(folder: Path, *before: tuple[str, ...]) -> Scene:
    """A project with the edit beside it, after some commands."""
    scene = Scene(folder)
    scene.root.mkdir(parents=True)
    for path, (mode, text) in OLD.items():
        if text is None:
            (scene.root / path).mkdir()
        else:
            (scene.root / path).write_text(text)
        (scene.root / path).chmod(mode)
    (folder / "edit.json").write_text(json.dumps(EDIT))
    (folder / "inside.json").write_text(json.dumps(INSIDE))
    for words in before:
        answer = scene.call(*words)
        assert answer.code == 0, answer.err
    return scene


def tree(root: Path) -> dict[str, tuple[int, str | None]]:
    return {
        str(path.relative_to(root)): (
            path.lstat().st_mode & 0o7777,
            path.read_text() if path.is_file() else None,
        )
        for path in sorted(root.rglob("*"))
        if ".holdfast" not in path.relative_to(root).parts
    }


class Way(NamedTuple):
    """A command that is broken: what comes before it, and what the files are like when it is done."""

    name: str
    words: tuple[str, ...]
    before: tuple[tuple[str, ...], ...]
    old: dict[str, tuple[int, str | None]]
    new: dict[str, tuple[int, str | None]]
    was: list[str]
    done: list[str]  # the states of kept edits then


WAYS = (
    Way("apply", APPLY, (), OLD, NEW, [], ["applied"]),
    Way("rollback", BACK, (APPLY,), NEW, OLD, ["applied"], ["rolled back"]),
)
WITHIN = Way(  # nothing in the root changes, so nothing else brings its names to the disk
    "inside",
    ("edit", "apply", "../inside.json"),
    (),
    OLD,
    {
        path: one
        for path, one in {**OLD, "src/big.txt": NEW["src/big.txt"]}.items()
        if path != "src/name.sh"
    },
    [],
    ["applied"],
)
ways = pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
all_ways = pytest.mark.parametrize("way", [*WAYS, WITHIN], ids=lambda way: way.name)


def check(scene: Scene, way: Way, told: str) -> str:
    """After the next command: which of both it is; anything else fails."""
    answer = scene.call(*LIST)
    assert answer.code == 0, answer.err
    found = [edit["state"] for edit in json.loads(answer.out)["edits"]]
    files = tree(scene.root)
    assert (files, found) in [(way.old, way.was), (way.new, way.done)], (sorted(files), found)
    assert files == way.new or not told, "what was told is true"
    return "new" if files == way.new else "old"


def swept(way: Way, base: Scene, faults: Iterable[Fault]) -> Report:
    report = Report(f"D21 edit {way.name} killed", kind="kill")

    def kill(fault: Fault) -> None:
        scene = base.copied(fault.name.replace(" ", "-"))
        answer = scene.call(*way.words, fault=fault)
        assert answer.code == KILLED, (fault, answer)
        mixed = tree(scene.root) not in (way.old, way.new)
        how = check(scene, way, answer.out)
        if how == "old":
            assert scene.call(*way.words).code == 0, "it can be done again"
            assert tree(scene.root) == way.new
        elif way.name == "apply":
            assert scene.call(*BACK).code == 0
            assert tree(scene.root) == OLD
        with report.lock:
            report.tried += 1
            report.fired += 1
            report.work += 1
            report.outcomes[f"{'mixed' if mixed else 'whole'}, then {how}"] += 1
        scene.remove()

    each(kill, list(faults))
    return report


def by_shim(shim: Shim, way: Way, base: Scene) -> list[Fault]:
    """Every call that changes something, of one clean run, as a place to be killed at."""
    calls = shim.count(base.copied("clean"), *way.words)
    return [shim.fault(number) for number in range(1, len(calls) + 1)]


def by_kernel(strace: str, way: Way, base: Scene) -> list[Fault]:
    """The same as the kernel sees it."""
    calls = (*CALLS, "fchmod", "rmdir", "mkdirat")
    scene = base.copied("counted")
    log = scene.folder / "calls.txt"
    trace = ("-f", "-qq", "-o", str(log), "-e", f"trace={','.join(sorted(set(calls)))}")
    assert scene.call(*way.words, fault=Fault("counted", (strace, *trace))).code == 0
    names = [line.split()[1].partition("(")[0] for line in log.read_text().splitlines()]
    return [
        by_strace(strace, call, number)
        for call in sorted(set(names) & set(calls))
        for number in range(1, names.count(call) + 1)
    ]


@ways
@pytest.mark.req("D21", "R139", "I7")
def test_killed_at_any_call_the_next_command_leaves_all_old_or_all_new(
    way: Way, tmp_path: Path, shim: Shim, strace: str, sweep: Callable[[Report], None]
) -> None:
    base = lay(tmp_path / way.name, *way.before)
    points, others = by_shim(shim, way, base), by_kernel(strace, way, base)
    assert min(len(points), len(others)) > 20
    some = random.Random(7).sample(points[:-3], 12)
    some += [points[-3], points[-1], *random.Random(21).sample(others, 4)]
    report = swept(way, base, some)
    sweep(report)
    assert report.outcomes["mixed, then old" if way.name == "apply" else "mixed, then new"] >= 2
    assert len(report.outcomes) >= 3


@ways
@pytest.mark.soak("kill")
@pytest.mark.req("D21", "R139", "I7")
@pytest.mark.parametrize("how", ["shim", "strace"])
def test_killed_at_every_call_the_next_command_leaves_all_old_or_all_new(
    way: Way, how: str, tmp_path: Path, shim: Shim, strace: str, sweep: Callable[[Report], None]
) -> None:
    base = lay(tmp_path / way.name, *way.before)
    points = by_shim(shim, way, base) if how == "shim" else by_kernel(strace, way, base)
    report = swept(way, base, points)
    sweep(report)
    assert report.tried == len(points) > 20


# The power.


def cut_states(
    way: Way, recording: Recording, wanted: Callable[[int], Iterable[Draw]]
) -> Iterator[tuple[Cut, str]]:
    """Each distinct disk, and what the next command makes of it."""
    seen: set[str] = set()
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as place:
        root = Path(place) / "project"
        for cut in states(recording, wanted):
            if cut.digest in seen:
                continue
            seen.add(cut.digest)
            lay_out(cut.state, root)
            yield cut, _recovered(way, root, cut.told.out)
            shutil.rmtree(root)


def _recovered(way: Way, root: Path, told: str) -> str:
    workspace = Workspace(str(root))
    try:
        ended = recover_workspace(workspace)
        found = [edit.state for edit in history(workspace)]
    except HoldfastError as error:
        return f"violation: {error}"
    if any(one.conflicts for one in ended):
        return f"violation: in conflict: {ended}"
    files = tree(root)
    if (files, found) not in [(way.old, way.was), (way.new, way.done)]:
        return f"violation: {sorted(files)} {found}"
    if told and files != way.new:
        return f"violation: told and not done: {told}"
    return "new" if files == way.new else "old"


def outage(
    way: Way, tmp_path: Path, strace: str, wanted: Callable[[int], Iterable[Draw]]
) -> Report:
    scene = lay(tmp_path / way.name, *way.before)
    recording = recorded(strace, scene, *way.words)
    assert recording.answer.code == 0, recording.answer.err
    assert moments(recording) > 20
    report = Report(f"D21 edit {way.name}, power", kind="power")
    with pytest.MonkeyPatch.context() as same_person:
        same_person.setenv("XDG_STATE_HOME", str(scene.folder / "home/.local/state"))
        for cut, how in cut_states(way, recording, wanted):
            report.tried += 1
            report.fired += not cut.whole
            report.work += 1
            if how.startswith("violation"):
                report.violations.append(f"{cut.title}: {how}")
            else:
                report.outcomes[how] += 1
    return report


@all_ways
@pytest.mark.req("D21", "R139", "I7")
def test_a_power_cut_leaves_all_old_or_all_new(
    way: Way, tmp_path: Path, strace: str, sweep: Callable[[Report], None]
) -> None:
    some = outage(way, tmp_path, strace, lambda at: (*ENDS, *range(3 * at, 3 * at + 6)))
    sweep(some)
    assert some.violations == []
    assert some.outcomes["old"] >= 1
    assert some.outcomes["new"] >= 2
    assert some.fired >= 5


@all_ways
@pytest.mark.soak("power")
@pytest.mark.req("D21", "R139", "I7")
def test_a_power_cut_at_every_moment_leaves_all_old_or_all_new(
    way: Way, tmp_path: Path, strace: str, sweep: Callable[[Report], None]
) -> None:
    every = outage(way, tmp_path, strace, lambda _: (*ENDS, *range(1, 41)))
    sweep(every)
    assert every.violations == []
    assert every.fired >= 8


# What somebody does between the kill and the next command, and a kernel without the one call.


def mixed_scene(tmp_path: Path, shim: Shim) -> Scene:
    """A project whose edit was killed with `src/big.txt` changed and others not yet."""
    base = lay(tmp_path / "base")
    calls = shim.count(base.copied("clean"), *APPLY)
    for number in range(len(calls), 0, -1):
        scene = base.copied(str(number))
        assert scene.call(*APPLY, fault=shim.fault(number)).code == KILLED
        now = tree(scene.root)
        if now["src/big.txt"] != OLD["src/big.txt"] and "gone.txt" in now:
            return scene
    raise AssertionError("no call lies between the first file and the last")


@pytest.mark.req("D21", "R141", "I7")
def test_what_somebody_wrote_after_the_kill_stays_and_is_named(tmp_path: Path, shim: Shim) -> None:
    scene = mixed_scene(tmp_path, shim)
    (scene.root / "src/big.txt").write_text("a person's\n")
    answer = scene.call(*LIST)
    assert answer.code == 0
    assert 'left  src/big.txt: "src/big.txt" was changed by someone else' in answer.err
    assert tree(scene.root) == {**OLD, "src/big.txt": (0o644, "a person's\n")}
    [edit] = json.loads(answer.out)["edits"]
    assert edit["state"] == "in conflict"
    kept = answer.err.rpartition("what was there before the edit is in ")[2].strip()
    assert Path(kept).read_text() == BIG
    assert scene.call(*BACK).code == 2
    assert scene.call("edit", "forget", edit["id"]).code == 0
    assert json.loads(scene.call(*LIST).out)["edits"] == []


@pytest.mark.req("D22", "D23", "I8")
def test_a_kernel_without_openat2_changes_nothing(tmp_path: Path, strace: str) -> None:
    scene = lay(tmp_path / "base")
    log = scene.folder / "openat2.txt"
    rules = (
        "-f",
        "-qq",
        "-o",
        str(log),
        "-e",
        "trace=openat2",
        "-e",
        "inject=openat2:error=ENOSYS",
    )
    without = Fault("no openat2", (strace, *rules))
    assert scene.call(*APPLY, fault=without).code == 0
    assert "ENOSYS" in log.read_text(), "it was tried"
    assert tree(scene.root) == NEW
    (scene.folder / "outside").mkdir()
    (scene.folder / "outside/big.txt").write_text(BIG)
    (scene.root / "src/big.txt").unlink()
    (scene.root / "src").rmdir()
    (scene.root / "src").symlink_to(scene.folder / "outside")
    for fault in (without, Fault("as it is")):
        answer = scene.call("edit", "apply", "../inside.json", "--json", fault=fault)
        assert answer.code == 1
        assert {one["why"] for one in json.loads(answer.out)["refusals"]} <= {"special", "repeated"}
    assert (scene.folder / "outside/big.txt").read_text() == BIG
