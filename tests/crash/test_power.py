"""The power may go at any moment: what was told is there, and the run goes on as if nothing had been.

A kill proves nothing about this: after a kill the system still has every byte that was written.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.crash.faults import Reference, Report, lay
from tests.crash.power import Outage, chosen, edit_of, recorded
from tests.crash.power_disk import ENDS, Draw, moments

RUN = ("run", "-j", "2")
SLICES = 8
BLOCK = 8  # moments in a row: neighbours leave equal disks
DICE = 8  # throws for each moment
RESUMED_EVERY = 40  # of so many moments one goes on with the real command


def outage_of(strace: str, folder: Path, name: str) -> Outage:
    scene = lay(folder)
    recording = recorded(strace, scene, *RUN)
    assert recording.answer.code == 0, recording.answer.err
    return Outage(recording, (edit_of(recording.before, scene.root),), Report(name))


@pytest.mark.req("D02", "D21", "I1", "I5", "I6", "I7")
@pytest.mark.parametrize("sample", [80, pytest.param(260, marks=pytest.mark.soak("power"))])
def test_nothing_told_is_lost_with_the_power(
    sample: int,
    tmp_path: Path,
    strace: str,
    reference: Callable[[str], Reference],
    settle: Callable[[Report], None],
) -> None:
    outage = outage_of(strace, tmp_path / "recorded", "D02 power")
    some = chosen(outage.recording, sample, seed=2)
    outage.sweep(lambda number: some.get(number, ()))
    few = chosen(outage.recording, 2, seed=3)
    outage.resume(lambda number: few.get(number, ()), tmp_path / "resumed", reference("reference"))
    settle(outage.report)
    assert len(outage.seen) > 0.96 * sample
    assert min(outage.report.outcomes[how] for how in ("no store", "run", "resumed")) > 0


@pytest.mark.soak
@pytest.mark.req("D02", "D21", "I1", "I5", "I6", "I7")
@pytest.mark.parametrize("slice_", range(SLICES))
def test_nothing_told_is_lost_whenever_the_power_goes(
    slice_: int,
    tmp_path: Path,
    strace: str,
    reference: Callable[[str], Reference],
    settle: Callable[[Report], None],
) -> None:
    outage = outage_of(strace, tmp_path / "recorded", "D02 power, every moment")
    everything: tuple[Draw, ...] = (*ENDS, *range(1, DICE + 1))
    last = moments(outage.recording) - 1

    def here(number: int) -> bool:
        return number // BLOCK % SLICES == slice_

    def few(number: int) -> tuple[Draw, ...]:
        chosen = here(number) and (number % RESUMED_EVERY == 0 or number == last)
        return ("none", "named", number) if chosen else ()

    outage.sweep(lambda number: everything if here(number) else ())
    outage.resume(few, tmp_path / "resumed", reference("reference"))
    settle(outage.report)
    assert len(outage.seen) > 500
