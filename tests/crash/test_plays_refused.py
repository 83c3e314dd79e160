"""The system refuses one call of one command of a play: a typed end, nobody blamed, and it goes on later."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.crash.disk import DISK_FAILED, Point, blamed
from tests.crash.faults import Answer, Report, Shim, spread
from tests.crash.playing import PlayCase, Stage, here, staged
from tests.crash.plays import PLAYS
from tests.crash.test_errno import DAMAGED, HANDLES, OF_FILES, OF_PROCESSES, SYNCS
from tests.postgres import Server

# A connection that is interrupted is still made, so that is no refusal.
OF_NETWORK: Mapping[str, Sequence[str]] = {
    "socket": HANDLES,
    "connect": ("EIO", "ENOMEM", "EAGAIN"),
    "sendto": ("EIO", "ENOMEM"),
}
ELSEWHERE: Mapping[str, Sequence[str]] = {**OF_PROCESSES, **OF_NETWORK}
SLICES = 6


def points_of(stage: Stage, place: int, each: int) -> Iterator[Point]:
    """For each kind of call of one command and each of its errors some of all such calls."""
    act = stage.play.acts[place]
    for number, (errors, under) in enumerate(((OF_FILES, ""), (ELSEWHERE, None))):
        scene = stage.bases[place].copied(f"count-{number}")
        made = replace(stage.shim, calls=tuple(errors))
        calls = made.count(
            scene, *act.words, code=act.code, under=here(scene) if under is not None else ""
        )
        scene.remove()
        for call, count in sorted(Counter(calls).items()):
            for seed, error in enumerate(errors[call]):
                for n in spread([call] * count, each, seed=seed):
                    yield Point((call,), n, f"error {error}", under)


def struck(case: PlayCase, shim: Shim, point: Point, *words: str) -> Answer:
    """One command under one fault."""
    scene = case.scene
    log = scene.folder / "fault.txt"
    under = here(scene) if point.under is not None else ""
    fault = replace(shim, calls=point.calls).fault(point.number, point.how, under, str(log))
    answer = scene.call(*words, fault=fault)
    if log.exists() and "fired" in log.read_text().split():
        case.fired()
    return answer


def codes(point: Point, code: int) -> set[int]:
    """An interrupted call is made again; a sync is never tried twice; SQLite calls a page damaged."""
    if "EINTR" in point.how and point.calls[0] not in SYNCS:
        return {code}
    return {code, DISK_FAILED, *([DAMAGED] if point.calls[0] == "pread64" else [])}


def refuse(stage: Stage, points: Sequence[tuple[int, Point]], report: Report) -> None:
    report.total += len(points)
    for number, (place, point) in enumerate(points):
        act = stage.play.acts[place]
        case = stage.case(place, report, f"{place}-{number}")
        case.renamed(f"{act.name} {point.name()}")
        answer = struck(case, stage.shim, point, *act.words)
        if answer.code not in codes(point, act.code):
            case.violated(f"it ended with {answer.code}: {answer.err[-1500:]}")
        journal = case.broken(answer)
        case.ended(f"exit {answer.code}")
        if answer.code not in {0, act.code} and "error[" not in answer.err:
            case.violated(f"it did not say why: {answer.err[-800:]}")
        if blame := {k: n for k, n in blamed(journal).items() if k != "step_held"}:
            case.violated(f"a step was blamed: {blame}: {answer.err[-800:]}")
        case.go_on(place)
        case.close()


def chosen(stage: Stage, each: int) -> list[tuple[int, Point]]:
    places = range(len(stage.play.acts))
    return [(place, point) for place in places for point in points_of(stage, place, each)]


@pytest.mark.soak("errno")
@pytest.mark.req("D03", "I1")
@pytest.mark.parametrize("slice_", range(SLICES))
@pytest.mark.parametrize("name, least", [("reference", 500), ("PostgreSQL", 250)])
def test_every_kind_of_call_of_a_play_is_refused(
    name: str,
    least: int,
    slice_: int,
    tmp_path: Path,
    shim: Shim,
    server: Callable[[], Server],
    settle: Callable[[Report], None],
) -> None:
    report = Report(f"D03 every call with every error, {name}")
    with staged(PLAYS[name], tmp_path, shim, server) as stage:
        points = chosen(stage, 3)
        assert len(points) > least
        assert {"fork", "connect"} <= {point.calls[0] for _, point in points}
        refuse(stage, points[slice_::SLICES], report)
    settle(report)
    assert report.outcomes[f"exit {DISK_FAILED}"] > report.tried / 4


@pytest.mark.req("D03", "I1")
def test_a_program_and_a_connection_are_refused(
    tmp_path: Path,
    shim: Shim,
    server: Callable[[], Server],
    settle: Callable[[Report], None],
) -> None:
    report = Report("D03 fork and connect", "errno")
    with staged(PLAYS["PostgreSQL"], tmp_path, shim, server) as stage:
        wanted = (("connect", 1, "EIO"), ("fork", 1, "EAGAIN"))
        points = [(0, Point((call,), n, f"error {error}", None)) for call, n, error in wanted]
        refuse(stage, points, report)
    settle(report)
    assert report.fired == report.tried
