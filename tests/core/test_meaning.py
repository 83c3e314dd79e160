"""What each event means for its step and its run: this changes, and nothing else."""

from copy import deepcopy
from dataclasses import fields, replace
from typing import Any

from holdfast.core.fold import apply, fold
from holdfast.core.moves import INTERRUPTED, LIMIT
from holdfast.core.state import Fed, Gap, Spent, State, StepState, empty_state
from holdfast.model.event import (
    AttemptAccepted,
    AttemptFailed,
    AttemptLost,
    AttemptParked,
    AttemptRejected,
    EffectConfirmed,
    EffectStarted,
    Event,
    Options,
    Reason,
    Recorded,
    RequestRefused,
    Reused,
    RunEnded,
    RunRested,
    RunResumed,
    Skipped,
    StepFailed,
    StepHeld,
    StepsReleased,
    StepsReopened,
    StepsReset,
    StepsReused,
    StepsSkipped,
    StepsTaken,
)
from holdfast.model.plan import Need, RunId
from tests.core.builders import (
    about,
    accepted,
    begun,
    failed,
    graph,
    lost,
    plan,
    ref,
    rejected,
    reused,
    sid,
    started,
    state_of,
    step,
    taken,
    waived,
)

A, B = sid("a"), sid("b")
PLAN = graph("a>b")
BEGUN = started("a")
NOT_OWN = {"steps", "seq", "last_at", "counts", "plan", "graph", "plans", "ready_log"}
AT = 1000


def changes(*events: Event, by: Event, of: Any = PLAN) -> tuple[dict[str, Any], dict[str, Any]]:
    """What of step `a`, and what of the run, is another after one more event, which comes at 1000."""
    state = state_of(of, *events)
    before = deepcopy(state.steps[A]), {n: deepcopy(getattr(state, n)) for n in names(state)}
    apply(state, Recorded(state.seq + 1, AT, by))
    after = state.steps[A]
    own = {
        one.name: getattr(after, one.name)
        for one in fields(after)
        if getattr(after, one.name) != getattr(before[0], one.name)
    }
    return own, {n: getattr(state, n) for n in names(state) if getattr(state, n) != before[1][n]}


def names(state: State) -> list[str]:
    return [one.name for one in fields(state) if one.name not in NOT_OWN]


def test_an_attempt_that_starts() -> None:
    assert changes(by=BEGUN) == (
        {
            "phase": "running",
            "attempts": 1,
            "running": BEGUN,
            "config_ref": ref("ca"),
            "started_at": AT,
            "reason": Reason("never_ran"),
        },
        {"attempts": 1, "running": {A: BEGUN}, "ready": set()},
    )
    own, _ = changes(BEGUN, rejected("a"), by=started("a", 2))
    assert "reason" not in own, "why it runs was said with the first"


def test_an_attempt_that_is_accepted() -> None:
    full = AttemptAccepted(
        A, 1, ref("x"), "tree", verified=True, log=ref("log"), handoff=ref("told")
    )
    assert changes(BEGUN, by=full) == (
        {
            "phase": "done",
            "digest": ref("x"),
            "form": "tree",
            "verified": True,
            "log": ref("log"),
            "handoff": ref("told"),
            "running": None,
            "duration_ms": AT - 20,
            "spent_ms": AT - 20,
        },
        {"running": {}, "missing": {A: 0, B: 0}, "ready": {B}, "told": True},
    )


def test_an_artifact_that_passed_the_guards_again() -> None:
    again = replace(BEGUN, reguard=ref("kept"))
    own, _ = changes(again, by=accepted("a"))
    assert (own["phase"], own["reason"]) == ("reused", Reason("reguarded"))
    own, _ = changes(again, by=replace(accepted("a"), source="human"))
    assert (own["phase"], own["reason"]) == ("reused", Reason("amended"))
    own, _ = changes(replace(again, reason=Reason("answered")), by=accepted("a"))
    assert own["answered"]
    own, _ = changes(replace(again, approvals=("a-1",)), by=accepted("a"))
    assert own["phase"] == "done", "a person was asked for it"


def test_an_attempt_that_is_rejected() -> None:
    no = AttemptRejected(
        A, 1, "g", ref("bad"), feedback=ref("words"), log=ref("log"), alike=ref("alike")
    )
    assert changes(BEGUN, by=no) == (
        {
            "phase": "pending",
            "rejections": 1,
            "running": None,
            "last": Reason("guard_rejected", ("g",)),
            "fed": (Fed(ref("bad"), "g", ref("words"), ref("alike")),),
            "said": ref("words"),
            "log": ref("log"),
            "spent_ms": AT - 20,
        },
        {"running": {}, "ready": {A}},
    )
    own, _ = changes(BEGUN, by=replace(no, fatal=True))
    assert own["last"] == Reason("guard_fatal", ("g",))


def test_an_attempt_that_failed() -> None:
    wrong = AttemptFailed(A, 1, "timed_out", log=ref("log"), feedback=ref("words"), duration_ms=5)
    assert changes(BEGUN, by=wrong) == (
        {
            "phase": "pending",
            "rejections": 1,
            "running": None,
            "last": Reason("timed_out"),
            "fed": (Fed(None, "", ref("words"), None, "timed_out"),),
            "said": ref("words"),
            "log": ref("log"),
            "spent_ms": 5,
        },
        {"running": {}, "ready": {A}},
    )
    assert changes(BEGUN, by=failed("a"))[0]["effect_failed"]


def test_an_attempt_that_was_lost() -> None:
    gone = AttemptLost(A, 1, "lost", log=ref("log"), feedback=ref("words"))
    assert changes(BEGUN, by=gone) == (
        {
            "phase": "pending",
            "losses": 1,
            "running": None,
            "last": Reason("lost"),
            "said": ref("words"),
            "log": ref("log"),
            "spent_ms": AT - 20,
        },
        {"running": {}, "ready": {A}},
    )
    own, _ = changes(BEGUN, by=lost("a", code=INTERRUPTED))
    assert own == {"phase": "pending", "running": None, "last": Reason(INTERRUPTED)}


def test_a_limit_that_left_no_room_is_remembered_with_the_largest_that_was_wanted() -> None:
    def short(attempt: int, wanted: int, limit: str = "tokens") -> AttemptLost:
        return AttemptLost(A, attempt, LIMIT, limit=limit, wanted=wanted)

    own, run = changes(BEGUN, by=short(1, 70))
    assert own == {"phase": "pending", "running": None, "last": Reason(LIMIT)}
    assert (run["short"], run["wanted"]) == (Reason(LIMIT, ("tokens",)), 70)
    more = (BEGUN, short(1, 70), started("a", 2))
    assert changes(*more, by=short(2, 90))[1]["wanted"] == 90
    assert "wanted" not in changes(*more, by=short(2, 50))[1]
    other = changes(*more, by=short(2, 50, ""))[1]
    assert (other["short"], other["wanted"]) == (Reason(LIMIT, ("cost",)), 50)


def test_a_candidate_that_waits_for_people() -> None:
    parked = AttemptParked(A, 1, ref("x"), ("g",), ("a-1",), log=ref("log"))
    assert changes(BEGUN, by=parked) == (
        {
            "phase": "waiting",
            "parked": parked,
            "log": ref("log"),
            "why": Reason("never_ran"),
            "reason": Reason("awaiting_approval", ("a-1",)),
            "spent_ms": AT - 20,
        },
        {"running": {}},
    )
    for ending in (accepted("a"), rejected("a")):
        own, run = changes(BEGUN, parked, by=ending)
        assert (own["parked"], own["why"], own["reason"]) == (None, None, Reason("never_ran"))
        assert "running" not in run


def test_an_effect_is_begun_and_confirmed() -> None:
    effect = EffectStarted(A, 1, ref("key"))
    assert changes(BEGUN, by=effect) == ({"effect": ref("key"), "effect_at": 3}, {})
    assert changes(BEGUN, effect, by=EffectConfirmed(A, 1, ref("key"))) == ({"effect": None}, {})
    again = (BEGUN, effect, failed("a"), started("a", 2))
    own, _ = changes(*again, by=EffectStarted(A, 2, ref("key")))
    assert own == {"effect_at": 6, "effect_failed": False}


def test_what_stands_is_reused_or_taken_from_another_run() -> None:
    stood = StepsReused((Reused(A, ref("c"), ref("x"), "tree", "amended"),))
    means = {"phase": "reused", "config_ref": ref("c"), "digest": ref("x"), "form": "tree"}
    run = {"ready": {B}, "missing": {A: 0, B: 0}}
    assert changes(by=stood) == ({**means, "reason": Reason("amended")}, run)
    begun_before = (BEGUN, EffectStarted(A, 1, ref("key")), lost("a"))
    assert changes(*begun_before, by=stood)[0]["effect"] is None
    own, same = changes(by=StepsTaken(taken("a").items))
    assert (own["phase"], own["reason"], same) == ("reused", Reason("forked"), run)


def test_a_step_that_failed_for_good() -> None:
    assert changes(
        BEGUN, rejected("a"), by=StepFailed(A, Reason("lost"), because=ref("final"))
    ) == (
        {"phase": "failed", "reason": Reason("lost"), "said": ref("final")},
        {"ready": set(), "failures": state_of(PLAN, BEGUN, failed("a"), failing()).failures},
    )
    own, _ = changes(BEGUN, rejected("a"), by=failing())
    assert "said" not in own, "the words of the last attempt stay"


def failing() -> StepFailed:
    return StepFailed(A, Reason("lost"))


def test_a_step_that_is_held_and_released() -> None:
    held = StepHeld(A, Reason("awaiting_approval", ("a-1",)))
    means = {"phase": "waiting", "reason": held.reason, "held_at": 2}
    assert changes(by=held) == (means, {"ready": set()})
    tried = (BEGUN, rejected("a"))
    own, _ = changes(*tried, by=held)
    assert own["why"] == Reason("never_ran")
    other = StepHeld(A, Reason("effect_unconfirmed"))
    again, _ = changes(*tried, held, by=other)
    assert again == {"reason": other.reason, "held_at": 5}
    assert changes(*tried, held, by=StepsReleased((A,), "approved")) == (
        {"phase": "pending", "reason": Reason("never_ran"), "why": None},
        {"ready": {A}},
    )


def test_a_step_that_is_tried_again_has_fresh_budgets() -> None:
    tried = (BEGUN, rejected("a"), started("a", 2), lost("a", 2), failing())
    own, run = changes(*tried, by=StepsReset((A,), "retried", (A,)))
    assert own == {
        "phase": "pending",
        "rejections": 0,
        "losses": 0,
        "asked": True,
        "reason": None,
        "last": Reason("retried"),
    }
    assert run["ready"] == {A}
    own, _ = changes(*tried, by=StepsReset((A,), "retried"))
    assert "asked" not in own
    parked = (BEGUN, about("a", "attempt_parked"))
    own, _ = changes(*parked, by=StepsReset((A,), "retried"))
    assert (own["parked"], own["running"], own["why"]) == (None, None, None)


def test_a_step_that_is_left_out_is_counted_as_such_only_if_the_run_is_complete_without() -> None:
    for code, count in (("not_selected", 1), ("condition_unmet", 1), ("dependency_failed", 0)):
        left = StepsSkipped((Skipped(A, code, A),))
        own, run = changes(by=left)
        assert own == {"phase": "skipped", "reason": Reason(code, (A,))}
        assert run == {"ready": set(), **({"unselected": 1} if count else {})}
        back = changes(left, by=StepsReset((A,), "retried"))[1]
        assert back == {"ready": {A}, **({"unselected": 0} if count else {})}


def test_who_goes_on_without_a_lost_step_waits_again_when_it_may_still_come() -> None:
    of = plan(step("a"), replace(step("b"), needs=(Need(A, optional=True),)))
    for loss in (failing(), StepsSkipped((Skipped(A, "condition_unmet", A),))):
        assert changes(by=loss, of=of)[1]["ready"] == {B}
        assert changes(loss, by=StepsReset((A,), "retried"), of=of)[1]["ready"] == {A}


def test_a_person_goes_on_without_a_step() -> None:
    tried = (BEGUN, rejected("a"))
    assert changes(*tried, by=waived("a", 7)) == (
        {
            "phase": "reused",
            "config_ref": ref("gap a"),
            "digest": ref(""),
            "reason": Reason("skipped_by_person", ("me",)),
            "last": None,
        },
        {
            "gaps": {A: Gap("me", ref("why"), AT)},
            "heard": 7,
            "ready": {B},
            "missing": {A: 0, B: 0},
        },
    )


def test_a_run_begins_with_what_it_was_told() -> None:
    first = replace(
        begun(Options(select=(B,), max_cost=5)),
        previous=RunId("r-0"),
        forked=RunId("r-f"),
        forked_at=A,
        file="plan.yaml",
        ready=ref("ready"),
    )
    state = fold(PLAN, [Recorded(1, AT, first)])
    assert (state.run, state.line, state.project) == ("r-1", "line", "")
    assert (
        (state.plan_digest, state.w_ref) == (state.base, state.base_ref) == (ref("plan"), ref("w"))
    )
    assert (state.previous, state.forked, state.forked_at) == ("r-0", "r-f", A)
    assert (state.file, state.prepared) == ("plan.yaml", ref("ready"))
    assert (state.started_at, state.since, state.status) == (AT, AT, "running")
    assert (state.selected, state.max_cost, state.ready) == (frozenset({B}), 5, {A})


def test_a_run_rests_goes_on_and_ends() -> None:
    rest = RunRested("waiting", Reason("awaiting_person"))
    assert changes(by=rest)[1] == {
        "status": "waiting",
        "rest": rest.reason,
        "ended_at": AT,
        "worked": AT - 10,
    }
    short = AttemptLost(A, 1, LIMIT, limit="cost", wanted=70)
    assert changes(BEGUN, short, rest, by=RunResumed("e", max_cost=9))[1] == {
        "status": "running",
        "rest": None,
        "short": None,
        "wanted": 0,
        "max_cost": 9,
        "since": AT,
        "attempts": 0,
    }
    assert "max_cost" not in changes(rest, by=RunResumed("e"))[1]
    assert changes(reused("a", "b"), by=RunEnded("completed"))[1] == {
        "status": "completed",
        "ended_at": AT,
        "worked": AT - 10,
    }
    assert changes(by=RunEnded("superseded"))[1]["status"] == "superseded"


def test_a_request_that_is_refused_was_heard() -> None:
    run = changes(by=RequestRefused(4, ref("why")))[1]
    assert run == {"refused": {4: ref("why")}, "heard": 4}
    after = changes(RequestRefused(4, ref("why")), by=RequestRefused(3, ref("no")))[1]
    assert after == {"refused": {4: ref("why"), 3: ref("no")}}


def test_a_step_and_a_run_begin_with_nothing() -> None:
    given = {"phase": "pending", "form": "bytes"}
    fresh = StepState()
    for one in fields(fresh):
        assert getattr(fresh, one.name) in {given.get(one.name), None, False, ()}
    assert Fed(None, "g", None) == Fed(None, "g", None, None, "")
    state = state_of(PLAN)
    assert {state.steps[A] == fresh, state.steps[B] == fresh} == {True}
    empty = {n: getattr(empty_state(PLAN), n) for n in names(state)}
    full = {n for n, value in empty.items() if value}
    assert full == {"missing", "options", "spent"}
    assert state.spent == Spent(0, 0, 0, 0, 0, 0, 0)


def test_a_step_that_is_sent_back_after_a_condition_left_it_out_is_counted_again() -> None:
    of = graph("a>b")
    left = (reused("a"), StepsSkipped((Skipped(B, "condition_unmet", B),)))
    assert state_of(of, *left).unselected == 1
    assert state_of(of, *left, StepsReopened(A, B, (A, B))).unselected == 0
    asked = (StepFailed(A, Reason("lost")), StepsReset((A,), "retried", (A,)), reused("a"))
    assert state_of(of, *asked).steps[A].asked
    assert not state_of(of, *asked, StepsReopened(A, B, (A, B))).steps[A].asked


def test_a_limit_that_wanted_nothing_wants_nothing() -> None:
    state = state_of(PLAN, BEGUN, AttemptLost(A, 1, LIMIT))
    assert (state.short, state.wanted) == (Reason(LIMIT, ("cost",)), 0)
