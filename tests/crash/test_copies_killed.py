"""Killed while changes are taken over, or a worktree comes or goes: all of it is there, or nothing."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.crash.faults import (
    KILLED,
    Case,
    Fault,
    Reference,
    Report,
    Scene,
    Shim,
    each,
    lay,
    spread,
)
from tests.gitrepo.repository import git, inside

RUN = ("run", "-j", "2")
SLICES = 4
NEW_RUN_EVERY = 3
SETS: dict[str, dict[str, str | None]] = {  # what each step changes, and how it looks before
    "scratch": {"keep.txt": "kept\n", "new/n.txt": None},
    "tree": {"tree/b.txt": "b\n", "tree/c.txt": None, "tree/gone.txt": "", "made.txt": None},
    "after": {"ls.txt": None},
}


def half_done(scene: Scene) -> list[str]:
    """Steps some of whose files are as before and some as after: none once recovery has been."""
    found = []
    for step, files in SETS.items():
        states = set()
        for path, text in files.items():
            place = scene.root / path
            before = not place.exists() if text is None else place.exists()
            if text:
                before = place.exists() and place.read_text() == text
            states.add(before)
        if len(states) > 1:
            found.append(step)
    return found


def kill_at(tmp_path: Path, wanted: Reference, report: Report, faults: Sequence[Fault]) -> None:
    report.total += len(faults)

    def kill(numbered: tuple[int, Fault]) -> None:
        number, fault = numbered
        scene = lay(tmp_path / f"case-{number}", "copies")
        theirs = inside(scene.root)
        case = Case(scene, wanted, report, fault.name)
        answer = case.scene.call(*RUN, fault=fault)
        if answer.code == KILLED:
            case.fired()
        elif answer.code != 0:
            case.violated(f"it ended with {answer.code}: {answer.err[-800:]}")
        journal = case.broken(answer)
        case.ended("killed" if journal.runs else "killed before it began")
        case.recovered(*(["run"] if number % NEW_RUN_EVERY == 0 else []))
        if steps := half_done(scene):
            case.violated(f"half of the changes are there: {steps}")
        if git(scene.root, "worktree", "list").count("\n") != 1:
            case.violated("a worktree is left")
        if inside(scene.root) != theirs:
            case.violated("the repository is not as it was")
        case.close()

    each(kill, enumerate(faults, 1))


@pytest.mark.req("C27", "D01")
def test_killed_at_calls_around_copies(
    tmp_path: Path,
    shim: Shim,
    reference: Callable[[str], Reference],
    settle: Callable[[Report], None],
) -> None:
    calls = shim.count(lay(tmp_path / "count", "copies"), *RUN)
    report = Report("C27 kill around copies", "kill")
    faults = [shim.fault(number) for number in spread(calls, 5, seed=5)]
    kill_at(tmp_path, reference("copies"), report, faults)
    settle(report)


@pytest.mark.soak("kill")
@pytest.mark.req("C27", "D01")
@pytest.mark.parametrize("slice_", range(SLICES))
def test_killed_at_every_call_around_copies(
    slice_: int,
    tmp_path: Path,
    shim: Shim,
    reference: Callable[[str], Reference],
    settle: Callable[[Report], None],
) -> None:
    calls = shim.count(lay(tmp_path / "count", "copies"), *RUN)
    report = Report("C27 kill at every call around copies")
    numbers = range(1 + slice_, len(calls) + 1, SLICES)
    kill_at(tmp_path, reference("copies"), report, [shim.fault(n) for n in numbers])
    settle(report)
