"""Steps that change files that they read, over many runs, by the command's front door.

The law: a preview says what its run does; a run right after one that was completed makes nothing; whatever
lay in the project is there or stored; a completed run leaves what its commands make of the files that lay
there; no step runs unless something changed that decides it, and each runs whose file a person changed.
"""

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from tests.crash.report import Report
from tests.laws.in_place import Bed, Sequel, play, sequel, shortest

SLICES, EACH = 4, 100
Sweep = Callable[[Report], None]


def told(whole: Sequel, bed: Bed) -> str:
    return "\n".join([*bed.wrong, str(whole), "what was done:", *bed.trace])


def swept(folder: Path, seeds: Iterable[int], name: str) -> Report:
    seeds = [*seeds]
    report = Report(name, total=len(seeds))
    for seed in seeds:
        whole = sequel(seed)
        bed = play(folder / f"{seed}", whole)
        report.tried += 1
        report.fired += bed.runs
        report.work += bed.made
        report.outcomes["broken" if bed.wrong else "kept"] += 1
        if bed.wrong:
            law = bed.wrong[0].partition(":")[0]
            report.violations.append(
                f"seed {seed}: {told(*shortest(folder / f'{seed}', whole, law))}"
            )
    return report


@pytest.mark.req("C27", "R54", "R107")
def test_changes_in_place_are_made_once_and_kept(tmp_path: Path, sweep: Sweep) -> None:
    report = swept(tmp_path, (11, 22, 31, 34, 48, 197, 200, 283), "changes in place")
    sweep(report)
    assert report.violations == []


@pytest.mark.soak
@pytest.mark.req("C27", "R54", "R107")
@pytest.mark.parametrize("number", range(SLICES))
def test_many_changes_in_place_are_made_once_and_kept(
    tmp_path: Path, sweep: Sweep, number: int
) -> None:
    seeds = range(number * EACH, (number + 1) * EACH)
    report = swept(tmp_path, seeds, "changes in place")
    sweep(report)
    assert report.violations == []
