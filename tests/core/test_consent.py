"""What somebody agreed that a run may pay for: said by events, and what follows from it."""

from dataclasses import replace

import pytest

from holdfast.core.consent import agreed_in, is_unasked, items_unasked, not_agreed
from holdfast.core.fold import fold
from holdfast.core.growth import with_steps
from holdfast.core.state import State
from holdfast.model.event import (
    Agreed,
    CallStarted,
    Event,
    Options,
    PlanExtended,
    Reason,
    RunRested,
    RunResumed,
    Shown,
    Skipped,
    StepsSkipped,
)
from holdfast.model.items import Item, folded, item_id, opened
from holdfast.model.plan import Plan, StepId, plan_digest
from tests.core.builders import accepted, begun, graph, recorded, ref, reused, sid, started, step

PLAN = graph("a>b")
WHOLE = with_steps(PLAN, {sid("c"): step("c", "a")})
SEEN = (Shown(sid("a"), ref("content of a")),)


def run(
    *events: Event,
    agreed: Agreed | None,
    max_cost: int | None = None,
    shown: tuple[Shown, ...] = (),
) -> State:
    first = begun(Options(max_cost=max_cost, shown=shown))
    start = replace(first, plan=plan_digest(PLAN), agreed=agreed)
    return fold(PLAN, recorded([start, *events]), _plans)


def asked(name: str, reserved: int | None) -> CallStarted:
    return CallStarted(sid(name), 1, 1, "p:m", ref("request"), reserved, 50)


def _plans(_: object) -> Plan:
    return WHOLE


def added(*, request: int = 0) -> PlanExtended:
    """`c`, which comes from `a` or from a person."""
    origin = "" if request else "a"
    names = plan_digest(WHOLE), ref("w2"), plan_digest(PLAN)
    return PlanExtended(*names, (sid("c"),), sid(origin), request)


REST = RunRested("failed", Reason("dependency_failed"))


@pytest.mark.req("R165")
@pytest.mark.parametrize(
    ("first", "then", "found"),
    [
        ("nothing", ["nothing"], "nothing"),
        ("nothing", ["shown", "nothing"], "shown"),
        ("shown", ["anything", "shown"], "anything"),
        (None, ["nothing"], "nothing"),
        (None, ["shown"], "shown"),
    ],
)
def test_what_was_agreed_to_is_never_taken_back(
    first: Agreed | None, then: list[Agreed], found: Agreed
) -> None:
    more = [event for said in then for event in (REST, RunResumed("e-2", agreed=said))]
    assert agreed_in(run(*more, agreed=first)) == found


@pytest.mark.req("R165")
def test_a_bound_is_no_agreement_unless_an_older_version_wrote_it() -> None:
    assert agreed_in(run(agreed="nothing", max_cost=5)) == "nothing"
    assert agreed_in(run(agreed=None, max_cost=5)) == "anything"


@pytest.mark.req("R165")
def test_what_was_paid_is_no_agreement_unless_an_older_version_wrote_it() -> None:
    paid = (started("a"), asked("a", 5))
    assert agreed_in(run(*paid, agreed="nothing")) == "nothing"
    assert agreed_in(run(*paid, agreed=None)) == "shown"
    assert agreed_in(run(started("a"), asked("a", None), agreed=None)) == "nothing"


@pytest.mark.req("R165")
def test_nobody_agreed_to_what_is_still_to_do_if_nobody_was_asked() -> None:
    assert not_agreed(run(agreed="nothing")) == [sid("a"), sid("b")]
    assert not_agreed(run(started("a"), accepted("a"), agreed="nothing")) == [sid("b")]
    for agreed in ("shown", "anything"):
        assert not_agreed(run(agreed=agreed)) == []


@pytest.mark.req("R165")
@pytest.mark.parametrize(
    ("agreed", "unasked"), [("nothing", (True, True)), ("shown", (True, False)), ("anything", ())]
)
def test_what_an_attempt_adds_is_asked_about_later_and_what_comes_with_an_artifact_before(
    agreed: Agreed, unasked: tuple[bool, ...]
) -> None:
    made = run(started("a"), accepted("a"), added(), agreed=agreed)
    taken = run(reused("a"), added(), agreed=agreed, shown=SEEN)
    found = tuple(is_unasked(state, sid("c")) for state in (made, taken))
    assert found == (unasked or (False, False))
    assert sid("c") not in not_agreed(made)
    assert (sid("c") in not_agreed(taken)) == (agreed == "nothing")


@pytest.mark.req("R165")
def test_what_a_person_adds_was_asked_about() -> None:
    state = run(added(request=1), agreed="nothing")
    assert not is_unasked(state, sid("c"))
    assert not_agreed(state) == [sid("a"), sid("b")]


# --- items -------------------------------------------------------------------------------------------------

EACH = folded(replace(step("each"), for_each="${{ steps.a.output }}"))
LISTING = with_steps(PLAN, {EACH.id: EACH})
ITEM = item_id(EACH.id, "x")
LISTED = with_steps(LISTING, opened(EACH, [Item("x", "x")]))


def listing(*events: Event, agreed: Agreed, shown: tuple[Shown, ...] = ()) -> State:
    options = replace(begun().options, shown=shown)
    start = replace(begun(), plan=plan_digest(LISTING), agreed=agreed, options=options)
    return fold(LISTING, recorded([start, *events]), lambda _: LISTED)


def found(*, agreed: bool = False) -> PlanExtended:
    names = plan_digest(LISTED), ref("w2"), plan_digest(LISTING)
    return PlanExtended(*names, (ITEM,), sid("a"), agreed=agreed)


@pytest.mark.req("R165", "R182")
@pytest.mark.parametrize(
    ("agreed", "made", "taken"),
    [("nothing", True, True), ("shown", True, False), ("anything", False, False)],
)
def test_how_many_items_there_are_was_seen_only_if_the_list_stood(
    agreed: Agreed, made: bool, taken: bool
) -> None:
    state = listing(started("a"), accepted("a"), agreed=agreed)
    assert items_unasked(state, sid("a")) == made
    state = listing(reused("a"), agreed=agreed, shown=SEEN)
    assert items_unasked(state, sid("a")) == taken


@pytest.mark.req("R165", "R182")
@pytest.mark.parametrize(
    "shown", [(), (Shown(sid("a"), ref("other")),), (Shown(sid("b"), SEEN[0].digest),)]
)
def test_that_something_is_reused_does_not_say_that_somebody_saw_what_comes_of_it(
    shown: tuple[Shown, ...],
) -> None:
    assert items_unasked(listing(reused("a"), agreed="shown", shown=shown), sid("a"))
    assert is_unasked(run(reused("a"), added(), agreed="shown", shown=shown), sid("c"))


@pytest.mark.req("R165", "R182")
def test_items_that_came_were_asked_about_together() -> None:
    before = (started("a"), accepted("a"))
    for agreed in ("shown", "anything"):
        assert not is_unasked(listing(*before, found(), agreed=agreed), ITEM)
    state = listing(*before, found(), agreed="nothing")
    assert is_unasked(state, ITEM)
    assert ITEM in not_agreed(state), "whoever goes on is asked about them"
    assert not is_unasked(listing(*before, found(agreed=True), agreed="nothing"), ITEM)


@pytest.mark.req("R165", "R182")
def test_items_that_come_with_their_step_are_asked_about_like_any_added_step() -> None:
    whole = folded(replace(step("each", "a"), for_each=["x"]))
    later = with_steps(PLAN, opened(whole, [Item("x", "x")]))
    names = plan_digest(later), ref("w2"), plan_digest(PLAN)
    event = PlanExtended(*names, (whole.id, ITEM), sid("a"))
    start = replace(begun(), plan=plan_digest(PLAN), agreed="shown")
    state = fold(PLAN, recorded([start, started("a"), accepted("a"), event]), lambda _: later)
    assert is_unasked(state, ITEM)


@pytest.mark.req("R165")
@pytest.mark.parametrize(
    ("code", "left"), [("not_selected", []), ("dependency_failed", [sid("b")])]
)
def test_what_a_run_is_complete_without_is_not_asked_about(code: str, left: list[StepId]) -> None:
    out = StepsSkipped((Skipped(sid("b"), code, sid("a")),))
    assert not_agreed(run(started("a"), accepted("a"), out, agreed="nothing")) == left
