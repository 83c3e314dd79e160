"""The simulation can fail: mistakes put into the engine and the stores are found."""

from collections.abc import Callable

import pytest

from tests.crash.report import Report
from tests.simulation.planted import (
    PLANTED,
    Patch,
    an_acceptance_forgotten,
    claims_given_up_too_early,
    claims_granted_twice,
    launched_before_stored,
    nothing_swept,
    told_before_stored,
)
from tests.simulation.planted_people import PEOPLE, a_limit_unheeded, once_is_always
from tests.simulation.seeds import play

ALL = (*PLANTED, *PEOPLE)

QUICK = (
    *(told_before_stored, launched_before_stored, an_acceptance_forgotten),
    *(claims_given_up_too_early, claims_granted_twice, nothing_swept),
    *(a_limit_unheeded, once_is_always),
)
FEW, MANY = 120, 1000


def first_found(seeds: range) -> int | None:
    """The first seed that breaks a law."""
    return next((result.seed for result in play(seeds) if result.violations), None)


@pytest.mark.req("R148")
@pytest.mark.parametrize("plant", QUICK, ids=lambda plant: plant.__name__)
def test_a_planted_bug_is_found_at_once(
    plant: Callable[[Patch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    assert first_found(range(FEW)) is not None


@pytest.mark.parametrize("plant", ALL, ids=lambda plant: plant.__name__)
def test_a_bug_can_still_be_planted(
    plant: Callable[[Patch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)


@pytest.mark.soak("planted")
@pytest.mark.req("R148")
@pytest.mark.parametrize("plant", ALL, ids=lambda plant: plant.__name__)
def test_every_planted_bug_is_found(
    plant: Callable[[Patch], None],
    monkeypatch: pytest.MonkeyPatch,
    sweep: Callable[[Report], None],
) -> None:
    plant(monkeypatch)
    found = first_found(range(MANY))
    report = Report("planted in the simulation", "planted", tried=1, fired=found is not None)
    report.outcomes[f"{plant.__name__} at seed {found}"] += 1
    if found is None:
        report.violations.append(f"{plant.__name__} was not found in {MANY} seeds")
    sweep(report)
    assert not report.violations, report.violations
