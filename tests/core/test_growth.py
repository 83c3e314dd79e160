"""A run that grows: what its state is then, and what a person can do about what failed in it."""

import copy
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.core.decide import close_gaps, cut_off, free, reset, waive
from holdfast.core.fold import apply, fold
from holdfast.core.growth import after, is_same, with_steps
from holdfast.core.react import react
from holdfast.core.state import State
from holdfast.core.waves import extended, graph_of
from holdfast.errors import BugError, PlanError
from holdfast.model.digest import Digest
from holdfast.model.event import (
    Event,
    GapClosed,
    Options,
    PlanExtended,
    Reason,
    Recorded,
    RequestRefused,
    RunResumed,
    Skipped,
    StepFailed,
    StepHeld,
    StepsReset,
    StepsSkipped,
)
from holdfast.model.items import (
    base_of,
    folded,
    item_id,
    items_of,
    key_of,
    opened,
    quoted_key,
    source_of,
    step_named,
)
from holdfast.model.line import SkipRequested
from holdfast.model.plan import ANY_ID, GATHER, Limits, Need, Plan, RunId, Step, plan_digest
from tests.core.builders import (
    accepted,
    begun,
    failed,
    follow,
    graph,
    lost,
    plan,
    recorded,
    ref,
    reused,
    sid,
    started,
    step,
    taken,
    waived,
)


def growth(of: Plan, *added: Step, origin: str = "", request: int = 0) -> tuple[Plan, PlanExtended]:
    """The plan with further steps, and the event that says so."""
    whole = with_steps(of, {one.id: one for one in added})
    names = tuple(one.id for one in added)
    event = PlanExtended(
        plan_digest(whole), ref("w2"), plan_digest(of), names, sid(origin), request
    )
    return whole, event


def grown(
    of: Plan, *events: Event, plans: dict[Digest, Plan], options: Options | None = None
) -> State:
    first = replace(begun(options), plan=plan_digest(of))
    return fold(of, recorded([first, *events]), plans.__getitem__)


BASE = graph("a>b a>c")


@pytest.mark.req("R32", "C24")
def test_what_is_added_waits_for_its_needs_and_nothing_else_moves() -> None:
    whole, event = growth(BASE, step("x", "a"), step("y", "x", "~b"), step("z"), origin="a")
    plans = {event.plan: whole}
    before = grown(BASE, started("a"), accepted("a"), started("b"), plans=plans)
    state = grown(BASE, started("a"), accepted("a"), started("b"), event, plans=plans)
    assert state.ready == before.ready | {"x", "z"}
    assert state.missing == before.missing | {sid("x"): 0, sid("y"): 2, sid("z"): 0}
    assert (state.plan, state.plan_digest, state.w_ref) == (whole, event.plan, ref("w2"))
    assert state.base == before.plan_digest
    assert {s: state.steps[s] for s in before.steps} == before.steps
    assert state.counts["pending"] == before.counts["pending"] + 3
    assert {s: origin.step for s, origin in state.added.items()} == dict.fromkeys("xyz", "a")
    assert react(state, seen=len(before.ready_log), now=0).probe == ("z", "x")
    follow(state, started("x"), accepted("x"), accepted("b"))
    assert "y" in state.ready


@pytest.mark.parametrize(
    "added, words",
    [
        ([step("a")], "there already"),
        ([step("x", "ghost")], "no step"),
        ([step("x", "y"), step("y", "x")], "need each other"),
        ([], "does not have"),
        ([step("x")], "does not have"),
    ],
)
def test_an_addition_that_cannot_be_is_refused_and_changes_nothing(
    added: list[Step], words: str
) -> None:
    names = tuple(one.id for one in added)
    if words == "does not have":
        names = (*names, sid("ghost"))
    wild = Plan.__new__(Plan)  # a plan that its constructor would refuse
    object.__setattr__(wild, "steps", {one.id: one for one in added})
    object.__setattr__(wild, "limits", BASE.limits)
    event = PlanExtended(ref("p"), ref("w"), plan_digest(BASE), names)
    state = grown(BASE, plans={ref("p"): wild})
    check_refused(state, event, words)
    check_refused(state, replace(event, parent=ref("other")), "does not follow")


def test_added_steps_bring_the_limits_of_their_agents_and_no_others() -> None:
    one, two = (replace(step(name, "a"), agent="w") for name in "xy")
    whole, event = growth(BASE, one, two)
    bound = replace(whole, limits=Limits(agents={"w": 1}))
    state = grown(BASE, event, plans={event.plan: bound})
    assert state.plan == bound
    assert state.demands == dict.fromkeys((sid("x"), sid("y")), ((("agent", "w"), 1),))
    also = replace(whole, limits=Limits(agents={"w": 1, "v": 2}))
    tight = replace(BASE, limits=Limits(agents={"w": 1}))
    more = replace(event, parent=plan_digest(tight))
    assert grown(tight, more, plans={event.plan: also}).plan.limits == also.limits
    for limits in (Limits(agents={"w": 2}), Limits(), Limits(agents={"w": 1}, attempts=9)):
        wider = PlanExtended(ref("p"), ref("w"), plan_digest(tight), (one.id,))
        later = replace(tight, steps={**tight.steps, one.id: one}, limits=limits)
        check_refused(grown(tight, plans={ref("p"): later}), wider, "changes limits")


def test_what_runs_counts_when_its_agent_is_bound_by_added_steps() -> None:
    base = replace(BASE, steps={**BASE.steps, sid("a"): replace(BASE.steps[sid("a")], agent="w")})
    one = replace(step("x", "b"), agent="w")
    whole, event = growth(base, one)
    bound = replace(whole, limits=Limits(agents={"w": 1}))
    state = grown(base, started("a"), event, plans={event.plan: bound})
    assert state.taken == {("agent", "w"): 1}
    follow(state, accepted("a"))
    assert state.taken == {("agent", "w"): 0}


def check_refused(state: State, event: Event, words: str) -> None:
    before = copy.deepcopy(state)
    with pytest.raises(BugError, match=words):
        apply(state, Recorded(state.seq + 1, 1, event))
    assert state == before


def test_what_a_person_adds_to_a_selection_runs_and_what_an_unselected_step_adds_does_not() -> None:
    whole, by_step = growth(BASE, step("x", "a"), origin="a")
    more, by_person = growth(whole, step("y", "a"), request=7)
    plans = {by_step.plan: whole, by_person.plan: more}
    state = grown(BASE, by_step, by_person, plans=plans, options=Options(select=(sid("b"),)))
    assert (state.may_run(sid("x")), state.may_run(sid("y"))) == (False, True)
    chosen = grown(BASE, by_step, plans=plans, options=Options(select=(sid("a"),)))
    assert chosen.may_run(sid("x"))
    assert state.heard == 7


def test_a_wave_in_which_all_failed_has_the_added_steps_too() -> None:
    whole, event = growth(BASE, step("x", "a"), origin="a")
    why = Reason("command_failed")
    first: list[Event] = [
        started("a"),
        accepted("a"),
        started("b"),
        failed("b"),
        StepFailed(sid("b"), why),
    ]
    last: list[Event] = [started("c"), failed("c"), StepFailed(sid("c"), why)]
    alone = grown(BASE, *first, *last, plans={})
    assert alone.escalation == Reason("wave_failed", ("b", "c"))
    beside = grown(BASE, *first, event, *last, plans={event.plan: whole})
    assert beside.escalation is None
    follow(beside, started("x"), failed("x"), StepFailed(sid("x"), why))
    assert beside.escalation == Reason("wave_failed", ("b", "c", "x"))


NAMES = [f"s{number}" for number in range(12)]


@st.composite
def cuts(draw: st.DrawFn) -> tuple[Plan, Plan]:
    """A plan, and a part of it that needs nothing of the rest."""
    steps = []
    for number, name in enumerate(NAMES[: draw(st.integers(2, 12))]):
        needs = draw(st.sets(st.sampled_from(NAMES[:number]), max_size=3)) if number else set()
        steps.append(step(name, *sorted(needs)))
    first = draw(st.integers(1, len(steps)))
    return plan(*steps[:first]), plan(*steps)


@settings(deadline=None)
@given(cuts())
def test_an_order_that_grew_equals_one_that_was_worked_out_at_once(
    parts: tuple[Plan, Plan],
) -> None:
    small, whole = parts
    grew = extended(graph_of(small), whole, whole.steps.keys() - small.steps.keys())
    assert grew == graph_of(whole)


# --- items --------------------------------------------------------------------------------------------


def fan(name: str, source: str, *needs: str) -> Step:
    """A step that runs once for each item which another one lists."""
    return folded(
        replace(step(name, *needs), for_each=f"${{{{ steps.{source}.output }}}}", key="${{ item }}")
    )


def listed(of: Plan, base: str, *keys: str) -> tuple[Plan, PlanExtended]:
    """The plan with items, and the event that says so."""
    steps = opened(of.steps[sid(base)], items_of(sid(base), list(keys), "${{ item }}"))
    whole = with_steps(of, steps)
    names = tuple(sorted(name for name in steps if name != base))
    source = source_of(of.steps[sid(base)].for_each)
    assert source is not None
    event = PlanExtended(plan_digest(whole), ref("w2"), plan_digest(of), names, source)
    return whole, event


FAN = plan(step("a"), step("s"), fan("e", "s", "a"), step("z", "e"))


@pytest.mark.req("R182")
def test_a_step_waits_for_the_items_that_were_found_for_it() -> None:
    whole, event = listed(FAN, "e", "k", "l")
    plans = {event.plan: whole}
    first: list[Event] = [started("a"), accepted("a"), started("s"), accepted("s")]
    before = grown(FAN, *first, plans=plans)
    assert before.ready == {"e"}
    state = grown(FAN, *first, event, plans=plans)
    assert state.ready == {"e[k]", "e[l]"}
    assert state.missing[sid("e")] == 2
    assert {s: state.graph.wave[s] for s in before.graph.wave} == before.graph.wave
    assert state.graph == graph_of(whole)
    assert state.plan == whole
    follow(state, reused("e[k]"), started("e[l]"), accepted("e[l]"))
    assert state.ready == {"e"}
    follow(state, started("e"), accepted("e"))
    assert state.ready == {"z"}


@pytest.mark.req("R182")
def test_items_that_nobody_gathers_are_refused() -> None:
    whole, event = listed(FAN, "e", "k", "l")
    first: list[Event] = [started("a"), accepted("a"), started("s"), accepted("s")]
    early = grown(FAN, *first[:2], plans={event.plan: whole})
    check_refused(early, event, "does not wait for them")
    late = grown(FAN, *first, started("e"), plans={event.plan: whole})
    check_refused(late, event, "does not wait for them")
    base = whole.steps[sid("e")]
    for wrong in (
        replace(base, needs=base.needs[:-1]),
        replace(base, needs=(*base.needs, Need(sid("z")))),
        replace(base, needs=base.needs[1:]),
        replace(base, has_items=False),
        replace(base, key="${{ item.x }}"),
        replace(base, needs=(*base.needs[:-1], Need(base.needs[-1].step, "sequence"))),
    ):
        other = with_steps(whole, {base.id: wrong})
        check_refused(grown(FAN, *first, plans={event.plan: other}), event, "does not gather")
    beside = with_steps(whole, {sid("y"): step("y")})
    more = replace(event, added=(*event.added, sid("y")))
    check_refused(grown(FAN, *first, plans={event.plan: beside}), more, "beside other steps")
    around = with_steps(whole, {sid("e[l]"): step("e[l]", "z")})
    check_refused(grown(FAN, *first, plans={event.plan: around}), event, "does not gather")


@st.composite
def fans(draw: st.DrawFn) -> tuple[Plan, Plan, str]:
    """A plan with a step whose items are not known, with them, and its id."""
    steps = []
    names = NAMES[: draw(st.integers(2, 10))]
    place = draw(st.integers(1, len(names) - 1))
    for number, name in enumerate(names):
        needs = sorted(draw(st.sets(st.sampled_from(names[:number]), max_size=3))) if number else []
        if number == place:
            steps.append(fan(name, draw(st.sampled_from(names[:number])), *needs))
        else:
            steps.append(step(name, *needs))
    small = plan(*steps)
    keys = draw(st.lists(st.text(max_size=5), min_size=1, max_size=4, unique=True))
    keys = [key for key in keys if key.isprintable() and key.strip()] or ["k"]
    return small, listed(small, names[place], *keys)[0], names[place]


@pytest.mark.req("R182")
@settings(deadline=None)
@given(fans())
def test_an_order_that_got_items_equals_one_that_was_worked_out_at_once(
    parts: tuple[Plan, Plan, str],
) -> None:
    small, whole, base = parts
    fresh = whole.steps.keys() - small.steps.keys()
    before = graph_of(small)
    assert extended(before, whole, fresh, whole.steps[sid(base)]) == graph_of(whole)
    assert {s: graph_of(whole).wave[s] for s in before.wave} == before.wave


@pytest.mark.req("R182")
@given(st.text(max_size=30))
def test_a_key_can_be_read_back_from_an_id(key: str) -> None:
    try:
        name = item_id(sid("base"), key)
    except UnicodeEncodeError:
        return
    assert ANY_ID.match(name)
    assert key_of(name) == key
    assert base_of(name) == "base"
    assert step_named(f"base[{key}]", {name: 1}) == name
    assert "/" not in name
    assert not quoted_key(key).startswith(".")


def test_steps_that_need_each_other_are_named() -> None:
    with pytest.raises(PlanError, match="x → y → x"):
        extended(
            graph_of(BASE),
            with_steps(BASE, {sid("x"): step("x", "y"), sid("y"): step("y", "x")}),
            [sid("x"), sid("y")],
        )


def test_a_step_that_comes_after_its_origin_anyway_is_the_same() -> None:
    plain, ordered = step("x", "b"), step("x", "b", "~a")
    assert after({sid("x"): plain}, sid("a"))[sid("x")] == ordered
    assert is_same(plain, ordered, sid("a"))
    assert not is_same(plain, ordered, sid(""))
    assert not is_same(step("x", "c"), ordered, sid("a"))


def test_a_refused_request_is_answered() -> None:
    assert follow(grown(BASE, plans={}), RequestRefused(4, ref("no"))).heard == 4


# --- trying again -------------------------------------------------------------------------------------


def stopped() -> State:
    """a failed, x failed; b and c below a, d below both, e below d and beside: all skipped."""
    of = graph("a>b>c a>d x>d>e f>e")
    below = [("b", "a"), ("c", "b"), ("d", "a"), ("e", "d")]
    why = Reason("command_failed")
    items = tuple(
        Skipped(sid(s), "dependency_failed" if s in "bd" else "dependency_skipped", sid(by))
        for s, by in below
    )
    events: list[Event] = [started("a"), failed("a"), StepFailed(sid("a"), why)]
    events += [StepsSkipped(items)]
    events += [started("x"), failed("x"), StepFailed(sid("x"), why)]
    return grown(of, *events, plans={})


@pytest.mark.req("R84", "R89", "E17")
def test_replaying_frees_what_can_pass_in_one_pass_however_deep_it_lies() -> None:
    state = stopped()
    assert list(reset(state, [sid("a"), sid("x")], "retried")) == [
        StepsReset(tuple(map(sid, "axbdce")), "retried")
    ]
    only = list(reset(state, [sid("a")], "retried"))
    assert only == [StepsReset(tuple(map(sid, "abc")), "retried")], "d and e still need x"
    follow(state, *only)
    assert {s for s, here in state.steps.items() if here.phase == "pending"} == set("abcf")
    assert state.steps[sid("a")].reason is None
    follow(state, started("a", 2), accepted("a", 2))
    assert "b" in state.ready


@pytest.mark.req("R86", "E17")
def test_a_step_that_was_running_when_the_engine_died_is_pending_again() -> None:
    state = grown(BASE, started("a"), plans={})
    assert state.steps[sid("a")].phase == "running"
    follow(state, RunResumed("e2"))
    follow(state, lost("a", 1, "previous_interrupted"))
    assert (state.steps[sid("a")].phase, state.ready) == ("pending", {"a"})


# --- going on without a step ----------------------------------------------------------------------------


def ask(name: str) -> SkipRequested:
    return SkipRequested(RunId("r-1"), sid(name), "me", ref("why"))


@pytest.mark.req("C34", "R174")
def test_going_on_without_a_step_lets_what_needs_it_run_and_is_a_gap() -> None:
    state = stopped()
    follow(state, *free(state, sid("b")))
    event, content = waive(state, 3, ask("b"))
    follow(state, event)
    here = state.steps[sid("b")]
    assert (content, here.phase, here.reason) == (
        b"",
        "reused",
        Reason("skipped_by_person", ("me",)),
    )
    assert state.gaps[sid("b")][:2] == ("me", ref("why"))
    assert state.ready == {"c", "f"}
    assert state.steps[sid("d")].phase == "skipped", "it needs more than that"
    assert state.heard == 3


def test_the_ref_of_a_gap_is_that_of_no_attempt_and_of_no_other_run() -> None:
    state = stopped()
    first, _ = waive(state, 1, ask("b"))
    assert first.config_ref != waive(state, 1, ask("c"))[0].config_ref
    state.run = RunId("r-2")
    assert first.config_ref != waive(state, 1, ask("b"))[0].config_ref


def test_a_gap_is_closed_with_all_that_was_made_without_it() -> None:
    of = graph("a>b>c a>d")
    state = grown(of, started("a"), accepted("a"), waived("b"), reused("c"), plans={})
    follow(state, started("d"))
    (event,) = close_gaps(state, [sid("a"), sid("b")])
    assert event == GapClosed(sid("b"), (sid("b"), sid("c")))
    follow(state, event)
    assert (state.gaps, state.ready) == ({}, {"b"})
    assert state.missing[sid("c")] == 1
    assert state.running.keys() == {"d"}


def test_a_fork_begins_with_what_the_other_run_had() -> None:
    state = grown(graph("a>b>c"), taken("a", "b"), plans={})
    assert [state.steps[s].phase for s in map(sid, "abc")] == ["reused", "reused", "pending"]
    assert state.steps[sid("a")].reason == Reason("forked")
    assert state.ready == {"c"}


def test_a_reused_artifact_brings_steps_that_cannot_start_any_more() -> None:
    state = stopped()
    whole, event = growth(state.plan, step("m", "b"), step("n", "m"), step("o", "f"), origin="f")
    state.plans = {event.plan: whole}.__getitem__
    follow(state, event)
    assert cut_off(state, event.added) == StepsSkipped(
        (
            Skipped(sid("m"), "dependency_skipped", sid("b")),
            Skipped(sid("n"), "dependency_skipped", sid("m")),
        )
    )
    assert cut_off(state, [sid("o")]) is None


def test_what_is_added_below_a_step_that_is_sent_back_does_not_start() -> None:
    held = StepHeld(sid("b"), Reason("reopening", (sid("a"),)))
    whole, event = growth(BASE, step("x", "a"), step("z"))
    state = grown(BASE, reused("a"), held, event, plans={event.plan: whole})
    assert state.frozen == {"a", "b", "c", "x"}


def test_a_wave_that_failed_is_looked_at_from_its_beginning_when_it_lies_elsewhere() -> None:
    whole, event = growth(BASE, step("x"), step("y"))
    one, other = (StepFailed(sid(name), Reason("command_failed")) for name in "bc")
    events: list[Event] = [
        reused("a"),
        started("b"),
        failed("b"),
        one,
        event,
        started("c"),
        failed("c"),
        other,
    ]
    state = grown(BASE, *events, plans={event.plan: whole})
    assert state.escalation == Reason("wave_failed", (sid("b"), sid("c")))


def test_a_list_without_items_comes_with_its_step() -> None:
    empty = replace(step("x"), uses=GATHER, for_each=[], has_items=True)
    whole, event = growth(BASE, empty)
    assert grown(BASE, event, plans={event.plan: whole}).plan == whole


def test_an_added_step_waits_for_what_it_may_go_on_without_until_that_is_lost() -> None:
    eager = replace(step("x"), needs=(Need(sid("b"), optional=True),))
    strict = replace(step("y"), needs=(Need(sid("b")),))
    whole, event = growth(BASE, eager, strict)
    fails = StepFailed(sid("b"), Reason("command_failed"))
    before = grown(BASE, event, plans={event.plan: whole})
    assert (before.missing[sid("x")], before.missing[sid("y")]) == (1, 1)
    after_it = grown(BASE, fails, event, plans={event.plan: whole})
    assert (after_it.missing[sid("x")], after_it.missing[sid("y")]) == (0, 1)


def test_an_added_step_that_runs_alone_is_known_as_such() -> None:
    alone = replace(step("x"), effects="workspace")
    whole, event = growth(BASE, alone, step("y"))
    assert grown(BASE, event, plans={event.plan: whole}).alone == {"x"}
