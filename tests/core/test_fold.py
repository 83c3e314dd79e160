"""What an event means, and what it may not follow."""

import copy
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.fold import apply, extend, fold
from holdfast.core.moves import TRANSITIONS
from holdfast.core.state import PHASES, Phase, State, empty_state
from holdfast.core.views import worked_ms
from holdfast.engine.referee import read
from holdfast.errors import BugError
from holdfast.model.event import (
    AttemptAccepted,
    EffectConfirmed,
    Event,
    GapClosed,
    PlanExtended,
    Reason,
    Recorded,
    ReplanDecided,
    ReplanWanted,
    RunEnded,
    RunRested,
    RunResumed,
    Skipped,
    StepsReleased,
    StepsReopened,
    StepsReset,
    StepsSkipped,
)
from holdfast.model.line import PlanVersioned
from holdfast.model.plan import Limits, plan_json
from holdfast.ports import Raw
from holdfast.store.codec import encode
from tests.core.builders import (
    TO_REACH,
    about,
    accepted,
    begun,
    failed,
    follow,
    graph,
    lost,
    plan,
    recorded,
    ref,
    rejected,
    reused,
    sid,
    skipped,
    started,
    state_of,
    step,
    taken,
)

ONE = plan(step("s"), step("x"))
S = sid("s")


_CONFIRMS = (
    about("s", "effect_started"),
)  # a candidate may be kept before its effect is confirmed


def in_phase(phase: Phase) -> State:
    return state_of(ONE, *(about("s", kind) for kind in TO_REACH[phase]))


def refused(state: State, event: Event, seq: int | None = None) -> str:
    """The event raises and leaves the state as it was, to the last field."""
    before = copy.deepcopy(state)
    with pytest.raises(BugError) as caught:
        apply(state, Recorded(state.seq + 1 if seq is None else seq, 1, event))
    assert state == before
    return caught.value.message


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("kind", TRANSITIONS)
def test_an_event_is_legal_where_the_table_says_so_and_nowhere_else(
    kind: str, phase: Phase
) -> None:
    before = [about("s", one) for one in TO_REACH[phase]]
    assert state_of(ONE, *before).steps[S].phase == phase
    if phase == "waiting" and kind in {"attempt_accepted", "attempt_rejected", "effect_confirmed"}:
        before = [started("s"), *_CONFIRMS, about("s", "attempt_parked")]
    elif phase == "running" and kind == "effect_confirmed":
        before += _CONFIRMS
    elif phase == "running" and kind in {"call_answered", "call_failed"}:
        before.append(about("s", "call_started"))
    state, event = state_of(ONE, *before), about("s", kind)
    if kind not in {"answers_kept", "gap_closed"}:  # the second reading looks at other things there
        rows = [Raw(r.seq, r.at, *encode(r.event)) for r in recorded([begun(), *before, event])]
        assert (phase in TRANSITIONS[kind]) == (not read(rows, plan_json(ONE)).problems)
    if phase not in TRANSITIONS[kind]:
        assert kind in refused(state, event)
        return
    follow(state, event)
    assert state.steps[S].phase == TRANSITIONS[kind][phase]
    assert state.counts[state.steps[S].phase] >= 1
    assert sum(state.counts.values()) == 2
    assert (S in state.ready) == (state.steps[S].phase == "pending")
    assert (S in state.running) == (state.steps[S].phase == "running")


def test_guarding_again_is_accepted_as_reuse() -> None:
    again = replace(started("s"), reguard=ref("kept"))
    state = state_of(ONE, again, accepted("s"))
    assert (state.steps[S].phase, state.steps[S].reason) == ("reused", Reason("reguarded"))
    by_hand = AttemptAccepted(S, 1, ref("kept"), source="human")
    assert state_of(ONE, again, by_hand).steps[S].reason == Reason("amended")


DEEP = graph("a>b>c")


@pytest.mark.req("R76")
@pytest.mark.parametrize("event", [started("b"), reused("b"), reused("a", "c"), reused("b", "a")])
def test_nothing_starts_or_is_reused_before_its_needs_are_complete(event: Event) -> None:
    said = refused(state_of(DEEP), event)
    assert "before its needs are complete" in said
    assert said.startswith(f"'{encode(event)[0]}' of ")


@pytest.mark.parametrize(
    "event, words",
    [
        (reused("a", "b", "b"), "twice|while it is"),
        (StepsReset((S, S), "retried"), "twice"),
        (started("ghost"), "no step"),
        (skipped("a", "ghost"), "no step"),
        (reused("ghost"), "no step"),
        (started("a", 2), "follows 0"),
        (accepted("a", 1), "while it is"),
        (begun(), "cannot follow"),
        (PlanVersioned(ref("p"), ref("w"), None), "does not belong"),
        (RunEnded("completed"), "open"),
    ],
)
def test_what_cannot_be_is_refused(event: Event, words: str) -> None:
    said = refused(state_of(DEEP), event)
    assert any(word in said for word in words.split("|")), said


def test_a_list_with_one_illegal_item_changes_nothing() -> None:
    state = state_of(plan(step("a"), step("b"), step("c")), started("c"))
    refused(state, reused("a", "b", "c"))
    refused(state, skipped("a", "b", "c"))
    refused(state, StepsSkipped((Skipped(sid("a"), "dependency_failed", S),) * 2))


def test_an_answer_of_another_attempt_is_refused() -> None:
    state = state_of(ONE, started("s"), rejected("s"), started("s", 2))
    for stale in (accepted("s"), rejected("s"), failed("s"), lost("s"), accepted("s", 3)):
        assert "not running" in refused(state, stale)


@pytest.mark.parametrize("seq", [0, 1, 3, 7])
def test_events_come_in_their_numbers(seq: int) -> None:
    assert "follows 1" in refused(state_of(ONE), started("s"), seq)


def test_a_run_begins_once_rests_only_when_nothing_runs_and_ends_once() -> None:
    nothing = empty_state(ONE)
    refused(nothing, started("s"))
    refused(nothing, RunResumed("e"))
    running = state_of(ONE, started("s"))
    assert "are running" in refused(running, RunRested("paused", Reason("stopped")))
    refused(running, RunEnded("superseded"))
    resting = state_of(ONE, RunRested("paused", Reason("stopped")))
    refused(resting, started("s"))
    refused(resting, RunRested("paused", Reason("stopped")))
    follow(resting, RunResumed("e"))
    assert (resting.status, resting.rest) == ("running", None)
    ended = state_of(ONE, reused("s", "x"), RunEnded("completed"))
    for late in (RunResumed("e"), started("s"), RunEnded("superseded"), begun()):
        refused(ended, late)
    assert state_of(ONE, RunRested("failed", Reason("stopped")), RunEnded("superseded")).ended


def test_budgets_are_counted_apart_and_a_reset_makes_them_fresh() -> None:
    state = state_of(
        ONE,
        *(started("s"), rejected("s")),
        *(started("s", 2), failed("s", 2)),
        *(started("s", 3), lost("s", 3)),
        *(started("s", 4), lost("s", 4, "previous_interrupted")),
    )
    now = state.steps[S]
    assert (now.attempts, now.rejections, now.losses) == (4, 2, 1)
    assert [fed.guard for fed in now.fed] == ["g", ""]
    follow(state, about("s", "step_failed"), StepsReset((S,), "retried"))
    assert (now.attempts, now.rejections, now.losses) == (4, 0, 0)
    assert (now.phase, now.reason, now.last) == ("pending", None, Reason("retried"))


def test_guarding_again_costs_no_try() -> None:
    again = replace(started("s"), reguard=ref("kept"))
    now = state_of(ONE, again, rejected("s")).steps[S]
    assert (now.rejections, len(now.fed), now.last) == (0, 1, Reason("guard_rejected", ("g",)))


@pytest.mark.req("R93", "E12")
def test_a_step_that_recovers_is_no_longer_counted_as_failed() -> None:
    retry = StepsReset((S,), "retried")
    state = state_of(ONE, about("s", "step_failed"), retry, started("s"), accepted("s"))
    assert (state.counts["failed"], state.counts["done"]) == (0, 1)
    assert state.steps[S].digest == ref("content of s")


# --- laws over whole stories -----------------------------------------------------------------------


@st.composite
def stories(draw: st.DrawFn) -> list[Event]:
    """Any legal story: draw an event, keep it if the state takes it."""
    of = graph("a>b>d a>c>d e")
    state = state_of(of)
    events: list[Event] = [begun()]
    for _ in range(draw(st.integers(0, 30))):
        name = draw(st.sampled_from("abcde"))
        event = about(name, draw(st.sampled_from(sorted(TRANSITIONS))))
        if hasattr(event, "attempt"):
            going = state.steps[sid(name)].running
            number = going.attempt if going else state.steps[sid(name)].attempts + 1
            event = replace(event, attempt=number)  # type: ignore[arg-type]  # those have one
        try:
            follow(state, event)
        except BugError:
            continue
        events.append(event)
    return events


@given(stories())
def test_folding_at_once_equals_folding_one_by_one(events: list[Event]) -> None:
    of = graph("a>b>d a>c>d e")
    whole = fold(of, recorded(events))
    state = empty_state(of)
    for item in recorded(events):
        apply(state, item)
    assert state == whole
    ready = {
        name
        for name, found in whole.steps.items()
        if found.phase == "pending"
        and all(whole.steps[n.step].phase in {"done", "reused"} for n in of.steps[name].needs)
    }
    assert whole.ready == ready
    assert ready <= set(whole.ready_log)
    assert set(whole.running) == {n for n, s in whole.steps.items() if s.phase == "running"}
    assert whole.counts == {p: sum(s.phase == p for s in whole.steps.values()) for p in PHASES}


@given(st.integers(0, 4), st.integers(0, 4))
def test_one_long_list_of_reuse_means_what_several_short_ones_mean(one: int, two: int) -> None:
    cut = sorted((one, two))
    names = ["a", "b", "c", "d"]
    pieces = [names[: cut[0]], names[cut[0] : cut[1]], names[cut[1] :]]
    of = graph("a>b>d a>c>d e")
    state = state_of(of, reused(*pieces[0]))
    for piece in pieces[1:]:
        for item in reused(*piece).items:
            extend(state, item)
    assert state == state_of(of, reused(*names))


def test_the_time_of_every_attempt_counts_whose_end_was_seen() -> None:
    events: tuple[tuple[int, Event], ...] = (
        (0, begun()),
        (10, started("s")),
        (30, replace(rejected("s"), duration_ms=15)),
        (40, started("s", 2)),
        (60, failed("s", 2)),
        (70, started("s", 3)),
        (75, lost("s", 3, "timed_out")),
        (80, started("s", 4)),
        (9_000, lost("s", 4, "previous_interrupted")),
    )
    state = fold(ONE, [Recorded(seq, at, event) for seq, (at, event) in enumerate(events, 1)])
    assert state.steps[S].spent_ms == 15 + 20 + 5
    apply(state, Recorded(10, 9_100, started("s", 5)))
    apply(state, Recorded(11, 9_200, replace(accepted("s", 5), duration_ms=60)))
    assert (state.steps[S].duration_ms, state.steps[S].spent_ms) == (60, 100)


def _timed(*told: tuple[int, Event]) -> State:
    return fold(ONE, [Recorded(seq, at, event) for seq, (at, event) in enumerate(told, 1)])


def test_a_run_took_what_engines_worked_on_it() -> None:
    rests = RunRested("failed", Reason("stuck"))
    first: list[tuple[int, Event]] = [(100, begun()), (110, started("s")), (150, failed("s"))]
    assert worked_ms(_timed(*first), 170) == 70, "it goes on"
    assert worked_ms(_timed(*first)) == 50, "its engine is gone, and told nothing since"
    rested = [*first, (160, rests)]
    assert worked_ms(_timed(*rested), 9000) == 60
    resumed = [*rested, (1000, RunResumed("e"))]
    assert worked_ms(_timed(*resumed), 1005) == 65, "nobody worked in between"
    assert worked_ms(_timed(*rested, (8000, RunEnded("superseded")))) == 60
    cut = [*first[:2], (5000, RunResumed("e")), (5001, lost("s")), (5020, rests)]
    assert worked_ms(_timed(*cut)) == 30, "whoever went on found that it was gone"
    gone = [*first[:2], (7000, lost("s")), (7000, RunEnded("superseded"))]
    assert worked_ms(_timed(*gone)) == 10


@pytest.mark.parametrize(
    "kind",
    [
        "attempt_accepted",
        "attempt_parked",
        "attempt_rejected",
        "attempt_failed",
        "attempt_lost",
        "effect_started",
        "effect_confirmed",
    ],
)
def test_an_end_of_an_attempt_that_does_not_run_is_refused_by_its_name(kind: str) -> None:
    other = replace(about("s", kind), attempt=2)  # type: ignore[arg-type]  # each has the field
    said = refused(in_phase("running"), other)
    assert said.startswith(f"'{kind}' of attempt 2 of 's', which is not running")


def test_a_kept_candidate_gave_back_what_its_attempt_had_taken() -> None:
    bound = plan(replace(step("s"), agent="w"), limits=Limits(agents={"w": 1}))
    state = state_of(bound, started("s"))
    assert state.taken == {("agent", "w"): 1}
    follow(state, about("s", "attempt_parked"))
    assert state.taken == {("agent", "w"): 0}
    follow(state, accepted("s"))
    assert state.taken == {("agent", "w"): 0}


@pytest.mark.parametrize(
    "event",
    [
        skipped("a", "a"),
        StepsReset((S, S), "retried"),
        StepsReleased((S, S), "approved"),
        StepsReopened(S, S, (S, S)),
        GapClosed(S, (S, S)),
    ],
    ids=lambda event: type(event).__name__,
)
def test_an_event_that_names_a_step_twice_is_refused_by_its_name(event: Event) -> None:
    kind = encode(event)[0]
    assert refused(in_phase("waiting"), event).startswith(f"'{kind}' names a step twice")


def test_what_is_closed_or_confirmed_was_open() -> None:
    leaves = GapClosed(S, (sid("x"),))
    assert "'gap_closed' of 's' leaves it as it is" in refused(state_of(ONE, reused("s")), leaves)
    begun_effect = state_of(ONE, started("s"), *_CONFIRMS)
    other = EffectConfirmed(S, 1, ref("another key"))
    assert "is confirmed that was not started" in refused(begun_effect, other)


def test_another_plan_is_wanted_once() -> None:
    wanted = ReplanWanted(("e-1",), 0, ref("why"))
    state = state_of(ONE, wanted)
    assert "wanted while that is open already" in refused(state, wanted)


def test_a_run_whose_later_plans_nobody_can_find_does_not_grow() -> None:
    grows = PlanExtended(ref("p"), ref("w"), ref("plan"), (sid("y"),))
    assert "of a run that grew cannot be found here" in refused(state_of(ONE), grows)


def test_what_stands_on_a_step_that_is_sent_back_is_ready_no_more() -> None:
    state = state_of(graph("a>b"), reused("a"))
    assert state.ready == {"b"}
    follow(state, StepsReopened(sid("a"), sid("a"), (sid("a"),)))
    assert state.ready == {"a"}


@pytest.mark.parametrize(("code", "answered"), [("approved", {"e-1"}), ("withdrawn", set())])
def test_what_people_let_be_does_not_come_up_again(code: str, answered: set[str]) -> None:
    wanted = ReplanWanted(("e-1",), 0, ref("why"))
    decided = ReplanDecided(("e-1",), code)
    nothing = "decided about a plan that nothing spoke against"
    assert nothing in refused(state_of(ONE), decided)
    assert nothing in refused(state_of(ONE, wanted), replace(decided, triggers=("e-2",)))
    state = state_of(ONE, wanted, decided)
    assert (state.replan, state.answered) == (None, answered)


@pytest.mark.parametrize("kept", [reused("x"), taken("x")])
def test_what_was_made_without_a_step_is_made_again_with_it(kept: Event) -> None:
    of = graph("s>x")
    for below in ([kept], [started("x"), accepted("x")]):
        state = state_of(of, about("s", "step_waived"), *below)
        follow(state, GapClosed(S, (S, sid("x"))))
        assert {here.phase for here in state.steps.values()} == {"pending"}
