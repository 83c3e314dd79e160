"""An older version is written only if somebody would read it."""

from dataclasses import replace

import pytest

from holdfast.core.overwritten import has_outputs_at, is_overwritten, without_overwritten
from holdfast.core.preview import Outlook
from holdfast.core.waves import graph_of
from holdfast.model.event import Reason
from holdfast.model.plan import Step, StepId
from tests.core.builders import plan, sid, step

STANDS = Outlook("reuse", Reason("unchanged"), written=("out",))
ADOPTED = Outlook("run", Reason("amended"), means="adopt")
MADE = Outlook("run", Reason("never_ran"), means="make")
NAMES = ("first", "middle", "last", "after")


def writes(name: str, *needs: str, paths: tuple[str, ...]) -> Step:
    return replace(step(name, *needs), produces=paths)


STEPS = (
    writes("first", paths=("out",)),
    step("middle", "first"),
    writes("last", "middle", paths=("out",)),
    step("after", "last"),
)
GRAPH = graph_of(plan(*STEPS))


def looks(**others: Outlook) -> dict[StepId, Outlook]:
    return {sid(name): others.get(name, STANDS) for name in NAMES}


def test_outputs_are_those_of_a_step_by_name_or_beneath_one() -> None:
    one = writes("s", paths=("out", "report.md"))
    assert has_outputs_at(one, ("out", "out/a", "report.md"))
    assert not has_outputs_at(one, ("out", "outer"))
    assert not has_outputs_at(one, ("report",))


def test_a_version_that_a_later_step_has_too_is_not_needed_if_all_between_stands() -> None:
    assert is_overwritten(GRAPH, looks(), sid("first"), ("out",))
    assert is_overwritten(GRAPH, looks(middle=ADOPTED), sid("first"), ("out",))
    assert not is_overwritten(GRAPH, looks(), sid("last"), ("out",))
    assert not is_overwritten(GRAPH, looks(), sid("first"), ("other",))


@pytest.mark.parametrize("maker", ["middle", "last"])
def test_a_step_that_is_made_on_the_way_reads_the_older_version(maker: str) -> None:
    assert not is_overwritten(GRAPH, looks(**{maker: MADE}), sid("first"), ("out",))


def test_what_is_made_after_the_later_step_reads_that_one() -> None:
    assert is_overwritten(GRAPH, looks(after=MADE), sid("first"), ("out",))


def test_a_preview_leaves_out_files_that_would_be_written_over() -> None:
    other = replace(STANDS, written=("notes",))
    found = without_overwritten(GRAPH, looks(middle=other, after=MADE))
    assert {name: one.written for name, one in found.items()} == {
        sid("first"): (),
        sid("middle"): ("notes",),
        sid("last"): ("out",),
        sid("after"): (),
    }
    made = looks(first=replace(MADE, written=("out",)))
    assert without_overwritten(GRAPH, made)[sid("first")].written == ("out",)
