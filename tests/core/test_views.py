"""A run as programs read it: every key, and what each says."""

from dataclasses import replace

import pytest

from holdfast.core.state import Origin, Spent, State
from holdfast.core.views import (
    Addition,
    artifacts_of,
    asked_for,
    cost_limit,
    origin_json,
    person_row,
    reason_json,
    run_json,
    spent_json,
    totals,
    usd,
    worked_ms,
)
from holdfast.model.artifact import Artifact
from holdfast.model.event import (
    AttemptAccepted,
    AttemptLost,
    AttemptRejected,
    AttemptStarted,
    ConflictFound,
    Event,
    Reason,
    ReplanWanted,
    Reused,
    RunEnded,
    RunRested,
    RunStarted,
    StepFailed,
    StepHeld,
    StepsReused,
)
from holdfast.model.line import ApprovalRequested, ReplanAnswered, StepAccepted, StepAmended
from holdfast.model.plan import Limits, RunId
from tests.core.builders import (
    NEVER,
    accepted,
    artifact,
    begun,
    failed,
    graph,
    plan,
    recorded,
    ref,
    reused,
    sid,
    started,
    state_of,
    step,
    taken,
    waived,
)

ASKED = Addition(7, (sid("n"),), ("KEY",), "me", "why not", "added", "fine")


def run_with_everything() -> State:
    state = state_of(
        graph("a>b w r n f"),
        started("a"),
        accepted("a"),
        reused("r"),
        StepHeld(sid("w"), Reason("awaiting_approval")),
        waived("f"),
    )
    state.added = {sid("n"): Origin(sid(""), 7, 50)}
    state.conflicts = {"c-1": ConflictFound("c-1", "files", ref("r"), (sid("a"),), ("f",))}
    state.replan = ReplanWanted(("t-1",), 2, ref("words"))
    state.spent = Spent(2_500_000, 30, 4, 0, 400_000, 300_000, 2)
    state.steps[sid("a")].spent_ms = 12
    return state


def test_a_whole_run_is_told_by_its_keys() -> None:
    state = run_with_everything()
    question = ApprovalRequested("q-1", "step", sid("w"), RunId("r-1"), ref("s"), ("ann", "bob"))
    told = run_json(
        state,
        file="plan.yaml",
        now=state.since + 99,
        asked={sid("w"): [question]},
        additions={7: ASKED},
        saved=1_000_000,
        replaces=ReplanAnswered(RunId("r-0"), ("t-0",), "planned"),
    )
    steps = told.pop("steps")
    assert told == {
        "schema": "holdfast.run/1",
        "run": "r-1",
        "status": "running",
        "reason": None,
        "plan": {"line": "line", "ref": ref("w"), "file": "plan.yaml"},
        "waiting": [
            {
                "approval": "t-1",
                "step": None,
                "from": None,
                "subject": ref("words"),
                "for": "replan",
            },
            {"approval": "q-1", "step": "w", "from": "ann or bob", "subject": ref("s")},
        ],
        "conflicts": [
            {
                "conflict": "c-1",
                "kind": "files",
                "steps": ["a"],
                "paths": ["f"],
                "record": ref("r"),
            }
        ],
        "replan": {"triggers": ["t-1"], "wave": 2, "words": ref("words"), "plan": None},
        "replaces": {"run": "r-0", "triggers": ["t-0"], "how": "planned"},
        "gaps": [{"step": "f", "by": "me", "because": ref("why"), "at": state.gaps[sid("f")].at}],
        "additions": [
            {
                "request": 7,
                "steps": ["n"],
                "secrets": ["KEY"],
                "by": "me",
                "because": "why not",
                "state": "added",
                "said": "fine",
            }
        ],
        "forked": None,
        "totals": {
            "steps": 6,
            "done": 1,
            "reused": 1,
            "failed": 0,
            "skipped": 1,
            "cost_usd": 2.5,
            "price": "known",
            "calls": 4,
            "tokens": 30,
            "known_usd": 2.5,
            "saved_usd": 1.0,
            "rejected_usd": 0.4,
            "interrupted_usd": 0.3,
            "interrupted_calls": 2,
            "max_cost_usd": None,
            "duration_ms": 99,
        },
    }
    assert isinstance(steps, dict)
    assert steps["a"] == {
        "state": "done",
        "reason": reason_json(NEVER),
        "attempts": 1,
        "config_ref": ref("ca"),
        "digest": ref("content of a"),
        "cost_usd": 0.0,
        "price": "known",
        "calls": 0,
        "tokens": 0,
        "duration_ms": 12,
        "added": None,
    }
    assert {name: one["state"] for name, one in steps.items()} == {
        "a": "done",
        "b": "pending",
        "w": "waiting",
        "r": "reused",
        "n": "pending",
        "f": "skipped",
    }
    assert steps["r"]["digest"] == ref("content of r")
    assert steps["b"]["digest"] is None
    assert steps["n"]["added"] == {
        "step": None,
        "request": 7,
        "at": 50,
        "by": "me",
        "because": "why not",
    }


def test_what_nobody_said_is_null() -> None:
    assert Addition(1, (), (), "me", "", "open").json() == {
        "request": 1,
        "steps": [],
        "secrets": [],
        "by": "me",
        "because": None,
        "state": "open",
        "said": None,
    }
    assert reason_json(None) is None
    assert reason_json(Reason("upstream_changed", ("a",))) == {
        "code": "upstream_changed",
        "text": "a step it needs changed: a",
        "because": ["a"],
    }
    state = state_of(graph("w"), StepHeld(sid("w"), Reason("awaiting_person")))
    told = run_json(state, file=None, now=0)
    assert told["waiting"] == [{"approval": None, "step": "w", "from": None, "subject": None}]
    assert (told["replan"], told["replaces"], told["gaps"], told["additions"]) == (
        None,
        None,
        [],
        [],
    )
    anybody = ApprovalRequested("q", "step", sid("w"), RunId("r-1"), ref("s"))
    told = run_json(state, file=None, now=0, asked={sid("w"): [anybody]})
    assert [(one["approval"], one["from"]) for one in told["waiting"]] == [("q", None)]  # type: ignore[union-attr,index,call-overload]


def test_what_was_reused_took_no_time_and_a_step_on_its_way_has_no_digest() -> None:
    state = state_of(graph("a r"), started("a"), reused("r"))
    state.steps[sid("r")].spent_ms = state.steps[sid("a")].spent_ms = 5
    state.steps[sid("a")].digest = ref("x")
    told = run_json(state, file=None, now=0)["steps"]
    assert isinstance(told, dict)
    assert (told["r"]["duration_ms"], told["a"]["duration_ms"]) == (0, 5)
    assert told["a"]["digest"] is None


def test_a_plan_that_took_its_place_is_named_and_no_question_is_left() -> None:
    state = run_with_everything()
    state.replanned = ref("other")
    told = run_json(state, file=None, now=0)
    assert told["replan"] == {
        "triggers": ["t-1"],
        "wave": 2,
        "words": ref("words"),
        "plan": ref("other"),
    }
    assert [one["step"] for one in told["waiting"]] == ["w"]  # type: ignore[union-attr,index,call-overload]


def test_a_fork_names_the_run_and_the_step_it_was_forked_at() -> None:
    state = state_of(graph("a"))
    state.forked, state.forked_at = RunId("r-0"), sid("a")
    assert run_json(state, file=None, now=0)["forked"] == {"run": "r-0", "step": "a"}


def test_only_a_run_that_rests_says_why() -> None:
    resting = [failed_step := StepFailed(sid("a"), Reason("command_failed"))]
    rest = RunRested("failed", Reason("dependency_failed", ("a",)))
    state = state_of(graph("a"), *resting, rest)
    assert run_json(state, file=None, now=0)["reason"] == reason_json(rest.reason)
    state = state_of(graph("a"), failed_step)
    assert run_json(state, file=None, now=0)["reason"] is None
    state = state_of(graph("a"), started("a"), accepted("a"), RunEnded("completed"))
    state.rest = Reason("stopped")
    assert run_json(state, file=None, now=0)["reason"] is None


def test_where_a_step_comes_from() -> None:
    state = state_of(graph("a b c"))
    state.added = {sid("a"): Origin(sid("b"), 0, 9), sid("c"): Origin(sid(""), 8, 9)}
    assert origin_json(state, sid("a"), {}) == {
        "step": "b",
        "request": None,
        "at": 9,
        "by": None,
        "because": None,
    }
    assert origin_json(state, sid("b"), {}) is None
    quiet = ASKED._replace(because="")
    assert origin_json(state, sid("c"), {8: quiet}) == {
        "step": None,
        "request": 8,
        "at": 9,
        "by": "me",
        "because": None,
    }
    assert asked_for(state, sid("c"), {8: quiet}) == quiet
    assert asked_for(state, sid("c"), {7: quiet}) is None
    assert asked_for(state, sid("b"), {8: quiet}) is None


@pytest.mark.parametrize(
    ("micro", "dollars"), [(None, None), (0, 0.0), (1, 0.000001), (2_500_000, 2.5)]
)
def test_micro_dollars_are_told_in_dollars(micro: int | None, dollars: float | None) -> None:
    assert usd(micro) == dollars


def test_a_call_without_a_price_makes_the_cost_unknown() -> None:
    assert spent_json(None) == {"cost_usd": 0.0, "price": "known", "calls": 0, "tokens": 0}
    assert spent_json(Spent(5_000_000, 9, 2, unpriced=1)) == {
        "cost_usd": None,
        "price": "unknown",
        "calls": 2,
        "tokens": 9,
    }


def test_what_a_run_may_spend_is_what_a_person_says_else_what_the_plan_says() -> None:
    state = state_of(plan(step("a"), limits=Limits(usd=2.5)))
    assert cost_limit(state) == 2_500_000
    assert totals(state, 0)["max_cost_usd"] == 2.5
    state.max_cost = 0
    assert cost_limit(state) == 0
    assert cost_limit(state_of(graph("a"))) is None
    assert totals(state, 0)["saved_usd"] == 0.0
    assert totals(state, 0, None)["saved_usd"] is None


def test_the_time_of_engines_counts_up_to_now_only_while_one_works() -> None:
    state = state_of(graph("a"), started("a"))
    state.worked, state.since, state.last_at = 100, 1_000, 1_030
    assert worked_ms(state, 1_050) == 150
    assert worked_ms(state) == 130
    assert worked_ms(state, 900) == 100
    state.status = "failed"
    assert worked_ms(state, 1_050) == 100


# --- rows of the artifact index ------------------------------------------------------------------------


def rows(*events: Event, origin: Artifact | None = None) -> list[tuple[int, Artifact]]:
    return artifacts_of(recorded([replace(begun(), project="p"), *events]), lambda *_: origin)


def row(name: str, attempt: int, at: int, **fields: object) -> Artifact:
    base = Artifact(
        project="p",
        line="line",
        step=sid(name),
        config_ref=ref(f"c{name}"),
        input_ref=ref(f"i{name}"),
        own_ref=ref(f"o{name}"),
        digest=ref(f"content of {name}"),
        status="accepted",
        source="generated",
        run=RunId("r-1"),
        attempt=attempt,
        form="bytes",
        verified=False,
        reusable=True,
        at=at,
    )
    return replace(base, **fields)  # type: ignore[arg-type]


def test_an_accepted_attempt_is_a_row_with_all_that_it_says() -> None:
    assert rows(started("a"), accepted("a")) == [(3, row("a", 1, 30))]
    full = AttemptAccepted(sid("a"), 1, ref("x"), form="tree", verified=True, reusable=False)
    human = replace(started("a"), source="human")
    assert rows(human, full) == [
        (
            3,
            row(
                "a",
                1,
                30,
                digest=ref("x"),
                form="tree",
                verified=True,
                reusable=False,
                source="human",
            ),
        )
    ]
    worse = replace(full, stands=False)
    assert rows(human, worse)[0][1].status == "superseded"


def test_refused_and_lost_content_is_a_row_that_is_never_reused() -> None:
    rejected = AttemptRejected(sid("a"), 1, "g", ref("bad"), form="tree")
    bad = row("a", 1, 30, digest=ref("bad"), form="tree", status="rejected", reusable=False)
    assert rows(started("a"), rejected) == [(3, bad)]
    assert rows(started("a"), replace(rejected, digest=None)) == []
    kept = AttemptLost(sid("a"), 1, "lost", kept=ref("half"))
    half = row("a", 1, 30, digest=ref("half"), form="tree", status="interrupted", reusable=False)
    assert rows(started("a"), kept) == [(3, half)]
    assert rows(started("a"), AttemptLost(sid("a"), 1, "lost")) == []
    assert rows(started("a"), failed("a"), started("a", 2), accepted("a", 2)) == [
        (5, row("a", 2, 50))
    ]


def test_what_is_accepted_again_lets_the_former_stand_no_more() -> None:
    found = rows(
        started("a"), accepted("a"), started("b"), accepted("b"), started("a", 2), accepted("a", 2)
    )
    assert [(seq, one.step, one.attempt, one.status) for seq, one in found] == [
        (3, "a", 1, "superseded"),
        (5, "b", 1, "accepted"),
        (7, "a", 2, "accepted"),
    ]


def test_what_is_reused_by_its_content_stands_under_the_new_ref_too() -> None:
    old = artifact("a")
    item = Reused(sid("a"), ref("new"), old.digest, code="unchanged_content")
    expected = replace(old, config_ref=ref("new"), run=RunId("r-1"), attempt=0)
    assert rows(StepsReused((item,)), origin=old) == [(2, expected)]
    assert rows(StepsReused((item,))) == []
    assert rows(StepsReused((item._replace(code="unchanged"),)), origin=old) == []
    twice = rows(StepsReused((item,)), started("a"), accepted("a"), origin=old)
    assert [one.status for _, one in twice] == ["superseded", "accepted"]


def test_what_a_fork_takes_stands_in_its_own_line_as_well() -> None:
    found = rows(taken("a"), started("a"), accepted("a"))
    first = row("a", 0, 1, verified=True, status="superseded")
    assert found == [(2, first), (4, row("a", 1, 40))]


def test_before_a_run_began_nothing_is_known() -> None:
    bare = recorded([AttemptStarted(sid("a"), 1, ref("c"), ref("i"), ref("o"), NEVER)])
    assert artifacts_of(bare, lambda *_: None) == []
    assert isinstance(begun(), RunStarted)


def test_a_persons_version_and_one_that_he_accepted() -> None:
    refs = (ref("c"), ref("i"), ref("o"), ref("x"))
    amended = StepAmended(
        sid("a"), *refs, "tree", True, "me", None, None, after_run=RunId(""), after_seq=0
    )
    made = person_row(amended, "p", "other", 77)
    assert made == Artifact(
        project="p",
        line="other",
        step=sid("a"),
        config_ref=ref("c"),
        input_ref=ref("i"),
        own_ref=ref("o"),
        digest=ref("x"),
        status="accepted",
        source="human",
        run=RunId(""),
        attempt=0,
        form="tree",
        verified=True,
        at=77,
    )
    chosen = StepAccepted(
        sid("a"), *refs, "tree", RunId("r-0"), "me", None, None, after_run=RunId(""), after_seq=0
    )
    expected = replace(made, source="accepted", verified=False)
    assert person_row(chosen, "p", "other", 77) == expected
