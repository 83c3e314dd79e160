"""What a bad disk may do to a command, and what must hold then."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from tests.crash.faults import Answer, Case, Journal, Reference, Report, Scene, Shim, each, lay

RUN = ("run", "-j", "1")
DISK_FAILED = 74
FAULTY = (
    "attempt_failed",
    "step_failed",
    "step_held",
)  # nothing of the kind is in an undisturbed run


class Point(NamedTuple):
    """One fault of the shim: which of which calls, and what happens there."""

    calls: tuple[str, ...]
    number: int
    how: str
    under: str | None = ""  # which paths, between colons; None for calls that have no path

    def name(self) -> str:
        return f"{'/'.join(self.calls)} {self.number} {self.how}"


def places(scene: Scene, under: str | None) -> str:
    """The paths that count, in the project unless they begin at the top; nothing means all."""
    if under is None:
        return ""
    return ":".join(
        f"{scene.root}/{part}" if part[:1] != "/" else part for part in under.split(":")
    )


def counted(
    shim: Shim, scene: Scene, calls: Sequence[str], under: str | None, *words: str
) -> list[str]:
    """The calls of an undisturbed command."""
    return replace(shim, calls=tuple(calls)).count(scene, *words, under=places(scene, under))


def struck(case: Case, shim: Shim, point: Point, *words: str) -> tuple[Answer, bool]:
    """One command under one fault; whether the fault fired."""
    scene = case.scene
    log = scene.folder / "fault.txt"
    log.unlink(missing_ok=True)
    made = replace(shim, calls=point.calls)
    fault = made.fault(point.number, point.how, places(scene, point.under), str(log))
    answer = scene.call(*words, fault=fault)
    fired = log.exists() and "fired" in log.read_text().split()
    if fired:
        case.fired()
    return answer, fired


def blamed(journal: Journal) -> Counter[str]:
    """Facts that put the blame on a step."""
    return Counter(kind for facts in journal.facts.values() for kind, _ in facts if kind in FAULTY)


def refused(
    tmp_path: Path,
    shim: Shim,
    reference: Reference,
    report: Report,
    points: Iterable[Point],
    plan: str = "reference",
    codes: Callable[[Point], set[int]] = lambda _: {0, DISK_FAILED},
) -> None:
    """Under each fault: a typed end, nothing told that is not stored, no step blamed; then it goes on."""

    def strike(numbered: tuple[int, Point]) -> None:
        number, point = numbered
        case = Case(lay(tmp_path / f"case-{number}", plan), reference, report, point.name())
        answer, _ = struck(case, shim, point, *RUN)
        if answer.code not in codes(point):
            case.violated(f"it ended with {answer.code}: {answer.err[-1500:]}")
        journal = case.broken(answer)
        case.ended(f"exit {answer.code}")
        if answer.code == 0 and journal.ended(journal.runs[-1]) != "completed":
            case.violated("it ended with 0 and is not completed")
        if blame := blamed(journal):
            case.violated(f"a step was blamed: {dict(blame)}: {answer.err[-800:]}")
        if answer.code and "error[" not in answer.err:
            case.violated(f"it did not say why: {answer.err[-800:]}")
        case.recovered()
        case.close()

    each(strike, enumerate(points, 1))
