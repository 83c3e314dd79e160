"""Disagreement between agents: what counts as one, who wins, and when a person is asked."""

import json
from itertools import permutations

import pytest

from holdfast.core.conflict import (
    Said,
    as_share,
    changed_under,
    decided,
    find_conflicts,
    overlap,
    recommendations,
)
from holdfast.errors import UsageError
from holdfast.model.agent import Agent, Registry, Rules
from holdfast.model.conflict import (
    ASKS,
    Conflict,
    Position,
    conflict_from_json,
    conflict_json,
    record_bytes,
)
from holdfast.model.digest import Digest, Json
from holdfast.model.plan import StepId

pytestmark = pytest.mark.req("R85", "C28")

SECURITY = ("security", "auth", "crypto", "data_exposure")
REGISTRY = Registry(
    {
        "security-analyst": Agent(
            "security-analyst",
            {},
            weight=1.0,
            boost=0.5,
            domains=SECURITY,
            veto_domains=SECURITY,
        ),
        "devops-engineer": Agent(
            "devops-engineer", {}, weight=0.8, boost=0.3, veto_domains=("deployment",)
        ),
        "dev-react": Agent("dev-react", {}, weight=0.8, boost=0.3, domains=("frontend",)),
        "reviewer": Agent("reviewer", {}, weight=0.7),
        "techwriter": Agent("techwriter", {}, weight=0.6),
    }
)


def said(
    agent: str,
    action: str,
    *,
    scope: str = "token storage",
    confidence: float = 1.0,
    relevance: float = 1.0,
    severity: str = "INFO",
    domain: str = "",
    turn: int = 1,
) -> Said:
    item: dict[str, Json] = {
        "agent": agent,
        "scope": scope,
        "action": action,
        "confidence": confidence,
        "relevance": relevance,
        "severity": severity,
        "domain": domain,
        "round": turn,
    }
    content = json.dumps({"recommendations": [item]}).encode()
    (found,) = recommendations(StepId(f"by-{agent}"), "", content)
    return found


def settled(*all_said: Said, registry: Registry = REGISTRY) -> Conflict:
    (found,) = find_conflicts(all_said, registry)
    return found


def winner(conflict: Conflict) -> str:
    assert conflict.winner is not None
    return conflict.positions[conflict.winner].agent


# --- detection --------------------------------------------------------------------------------


def test_differing_recommendations_about_one_scope_are_a_conflict() -> None:
    found = settled(said("security-analyst", "use cookies"), said("reviewer", "use localStorage"))
    assert found.kind == "agents"
    assert found.scope == "token storage"
    assert found.steps == ("by-reviewer", "by-security-analyst")


@pytest.mark.parametrize(
    "other",
    [
        said("reviewer", "Use  cookies."),  # the same, spelled differently
        said("reviewer", "use localStorage", scope="layout"),
    ],
    ids=["same words", "other scope"],
)
def test_what_agrees_or_is_about_something_else_is_no_conflict(other: Said) -> None:
    assert find_conflicts([said("security-analyst", "use cookies"), other], REGISTRY) == []


@pytest.mark.parametrize(
    "item",
    [
        {"scope": "token storage", "action": "none"},
        {"scope": "token storage", "action": "use localStorage", "actionable": False},
        {"scope": "", "action": "use localStorage"},
        {"action": "use localStorage"},
        {"scope": "token storage", "action": ["use localStorage"]},
        "use localStorage",
    ],
)
def test_what_cannot_be_acted_on_takes_no_part(item: Json) -> None:
    content = json.dumps({"recommendations": [item]}).encode()
    assert recommendations(StepId("other"), "reviewer", content) == []


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'"x"', b'{"recommendations": {}}', b"\xff"])
def test_an_artifact_that_is_something_else_recommends_nothing(content: bytes) -> None:
    assert recommendations(StepId("step"), "reviewer", content) == []


@pytest.mark.req("C30")
@pytest.mark.parametrize(
    ("given", "share"), [(85, 0.85), (0.85, 0.85), (100, 1.0), (1, 1.0), (0, 0.0), (250, 1.0)]
)
def test_confidence_in_percent_and_as_a_share_are_the_same(given: float, share: float) -> None:
    assert said("reviewer", "x", confidence=given).position.confidence == share


def test_a_step_speaks_for_its_agent_unless_it_names_another() -> None:
    content = b'{"recommendations": [{"scope": "s", "action": "a"}]}'
    (found,) = recommendations(StepId("step"), "reviewer", content)
    assert found.position.agent == "reviewer"


# --- scores -----------------------------------------------------------------------------------


def test_the_documented_example_is_won_by_its_score() -> None:
    found = settled(
        said("security-analyst", "use cookies", confidence=95, domain="security"),
        said("dev-react", "use localStorage", confidence=80, relevance=0.6, domain="security"),
    )
    scores = {one.agent: one.score for one in found.positions}
    assert scores == {"security-analyst": 1.425, "dev-react": 0.384}
    assert (winner(found), found.how, found.asks) == ("security-analyst", "score", False)
    assert [found.positions[place].agent for place in found.dissent] == ["dev-react"]


def test_agents_that_want_the_same_count_together() -> None:
    found = settled(
        said("security-analyst", "use cookies", confidence=90),
        said("dev-react", "use localStorage"),
        said("reviewer", "use localStorage"),
    )
    assert found.how == "score"
    assert found.positions[found.winner or 0].action == "use localStorage"
    assert len(found.dissent) == 1


def test_an_agent_counts_once_for_a_side_with_its_best_and_steps_without_one_for_themselves() -> (
    None
):
    def of(step: str, agent: str, action: str, confidence: float, turn: int = 1) -> Said:
        return Said("s", Position(StepId(step), agent, action, confidence=confidence, round=turn))

    twice = settled(of("x", "new", "a", 0.9), of("y", "new", "a", 0.5), of("z", "newer", "b", 0.9))
    assert twice.how == "tie"
    best = settled(of("x", "new", "a", 0.5), of("y", "new", "a", 0.9), of("z", "newer", "b", 0.7))
    assert (best.how, winner(best)) == ("score", "new")
    steps = settled(of("x", "", "a", 0.9), of("y", "", "a", 0.9), of("z", "newer", "b", 0.9))
    assert (steps.how, steps.positions[steps.winner or 0].action) == ("score", "a")
    turned = settled(of("x", "new", "a", 0.9), of("y", "new", "b", 0.9, 2), of("z", "", "b", 0.9))
    assert (turned.how, turned.rounds) == ("agreed", 2)


@pytest.mark.parametrize(
    ("confidence", "how"), [(0.9, "tie"), (0.91, "tie"), (0.89, "score"), (0.5, "score")]
)
def test_sides_within_ten_percent_are_left_to_a_person(confidence: float, how: str) -> None:
    found = settled(
        said("security-analyst", "use cookies"),
        said("security-analyst", "use localStorage", confidence=confidence),
    )
    assert found.how == how
    assert found.asks == (how == "tie")


def test_an_agent_that_no_registry_knows_counts_little() -> None:
    found = settled(said("reviewer", "a"), said("stranger", "b"))
    assert {one.agent: one.score for one in found.positions} == {"reviewer": 0.7, "stranger": 0.5}
    assert winner(found) == "reviewer"


# --- vetoes -----------------------------------------------------------------------------------


def test_a_critical_veto_wins_against_any_score_and_nobody_can_override_it() -> None:
    found = settled(
        said("security-analyst", "stop", confidence=1, severity="CRITICAL", domain="auth"),
        *[said(f"agent-{number}", "go on") for number in range(20)],
    )
    assert (winner(found), found.how) == ("security-analyst", "veto")
    assert len(found.dissent) == 20
    with pytest.raises(UsageError, match="critical veto"):
        decided(found, found.dissent[0], "ada")


def test_a_high_veto_goes_to_a_person_whose_word_is_recorded() -> None:
    found = settled(
        said("security-analyst", "add a limit", severity="HIGH", domain="auth"),
        said("techwriter", "leave it", confidence=10),
    )
    assert (found.how, found.winner, found.dissent) == ("high_veto", None, ())
    overridden = decided(found, 1, "ada")
    assert (winner(overridden), overridden.how, overridden.by) == ("techwriter", "person", "ada")
    assert overridden.dissent == (0,)
    assert overridden.conflict_id == found.conflict_id


@pytest.mark.parametrize(
    ("agent", "severity", "domain"),
    [
        ("security-analyst", "CRITICAL", "style"),
        ("reviewer", "CRITICAL", "auth"),
        ("security-analyst", "MEDIUM", "auth"),
    ],
    ids=["not its domain", "no veto", "not grave"],
)
def test_who_has_no_veto_here_only_has_a_weight(agent: str, severity: str, domain: str) -> None:
    found = settled(
        said(agent, "stop", severity=severity, domain=domain, confidence=0.1),
        said("dev-react", "go on"),
    )
    assert (winner(found), found.how) == ("dev-react", "score")


def test_critical_vetoes_that_contradict_each_other_go_to_a_person() -> None:
    found = settled(
        said("security-analyst", "stop", severity="CRITICAL", domain="auth"),
        said("devops-engineer", "go on", severity="CRITICAL", domain="deployment"),
    )
    assert (found.how, found.asks) == ("vetoes", True)


# --- rounds -----------------------------------------------------------------------------------


def test_a_debate_ends_when_everybody_agrees() -> None:
    found = settled(said("reviewer", "a"), said("techwriter", "b"), said("techwriter", "a", turn=2))
    assert (found.how, found.rounds, found.dissent) == ("agreed", 2, ())


def test_the_last_word_of_each_counts_and_a_fourth_round_is_not_heard() -> None:
    debate = [
        said("reviewer", "a", confidence=0.1),
        said("techwriter", "b"),
        said("reviewer", "c", turn=2, confidence=0.1),
        said("reviewer", "d", turn=3),
        said("reviewer", "b", turn=4),
    ]
    found = settled(*debate)
    assert (found.rounds, found.how, winner(found)) == (3, "score", "reviewer")
    assert {one.action for one in found.positions} == {"b", "d"}
    short = settled(*debate, registry=Registry(REGISTRY.agents, Rules(rounds=1)))
    assert (short.rounds, winner(short)) == (1, "techwriter")


def test_a_critical_veto_ends_the_debate_in_the_round_it_is_said_in() -> None:
    found = settled(
        said("security-analyst", "stop", severity="CRITICAL", domain="auth", turn=2),
        said("security-analyst", "go on"),
        said("reviewer", "wait"),
        said("security-analyst", "go on", turn=3),
    )
    assert (found.how, found.rounds) == ("veto", 2)


# --- the record -------------------------------------------------------------------------------


def test_the_record_does_not_depend_on_the_order_in_which_things_were_said() -> None:
    all_said = [
        said("security-analyst", "use cookies", confidence=95, domain="security"),
        said("dev-react", "use localStorage", confidence=80),
        said("reviewer", "use cookies", confidence=80),
        said("techwriter", "write it down", scope="docs"),
        said("reviewer", "leave it", scope="docs"),
    ]
    records = {
        tuple(record_bytes(one) for one in find_conflicts(order, REGISTRY))
        for order in permutations(all_said)
    }
    assert len(records) == 1
    (both,) = records
    assert len(both) == 2


def test_a_record_read_back_is_the_same() -> None:
    found = settled(said("security-analyst", "use cookies"), said("reviewer", "use localStorage"))
    assert conflict_from_json(json.loads(record_bytes(found))) == found
    assert set(conflict_json(found)) == {
        "schema",
        "conflict_id",
        "kind",
        "scope",
        "positions",
        "winner",
        "dissent",
        "rounds",
        "how",
        "by",
    }


def test_another_position_is_another_conflict() -> None:
    one = settled(said("reviewer", "a"), said("techwriter", "b"))
    other = settled(said("reviewer", "a"), said("techwriter", "c"))
    assert one.conflict_id != other.conflict_id


def test_content_that_two_wrote_is_left_to_a_person() -> None:
    found = overlap("out.txt", [(StepId("b"), Digest("2" * 64)), (StepId("a"), Digest("1" * 64))])
    assert (found.kind, found.how, found.asks) == ("files", "overlap", True)
    assert found.steps == ("a", "b")
    assert decided(found, 1, "ada").dissent == (0,)


def test_a_file_that_changed_under_a_step_is_left_to_a_person() -> None:
    found = changed_under("out.txt", StepId("a"), Digest("1" * 64), None)
    assert (found.kind, found.how, found.asks) == ("tree", "changed", True)
    assert found.how in ASKS
    assert found.positions[1] == Position(StepId(""), action="keep")


def test_a_position_that_is_not_there_cannot_win() -> None:
    found = settled(said("reviewer", "a"), said("techwriter", "b"))
    with pytest.raises(UsageError, match="positions 0 to 1"):
        decided(found, 2, "ada")


@pytest.mark.parametrize(
    ("value", "share"),
    [
        (0.4, 0.4),
        (1, 1.0),
        (1.5, 0.015),
        (2, 0.02),
        (80, 0.8),
        (900, 1.0),
        (-5, 0.0),
        (True, 0.7),
        ("1", 0.7),
        (None, 0.7),
        (float("nan"), 0.7),
    ],
)
def test_a_share_is_read_from_a_fraction_or_a_percentage(value: Json, share: float) -> None:
    assert as_share(value, 0.7) == share


@pytest.mark.parametrize("action", ["", "  ", "none", "No Action", "nothing", "N/A"])
def test_who_recommends_nothing_takes_no_part(action: str) -> None:
    def heard(words: str) -> int:
        item = {"scope": "s", "action": words}
        content = b"\xef\xbb\xbf" + json.dumps({"recommendations": [item]}).encode()
        return len(recommendations(StepId("a"), "", content))

    assert heard(action) == 0
    assert heard(f"{action}~") == 1


def test_a_conflict_about_content_names_both_sides_and_any_of_them_may_win() -> None:
    one, other = Digest("1" * 64), Digest("2" * 64)
    tree = changed_under("f", StepId("a"), one, other)
    assert [(p.step, p.action, p.content) for p in tree.positions] == [
        ("a", "write", one),
        ("", "keep", other),
    ]
    files = overlap("f", [(StepId("b"), other), (StepId("a"), one)])
    assert [(p.step, p.action) for p in files.positions] == [("a", "write"), ("b", "write")]
    for found, how in ((tree, "changed"), (files, "overlap")):
        assert (found.rounds, found.how, found.winner) == (1, how, None)
        for winner in (0, 1):
            assert decided(found, winner, "me").winner == winner
        for wrong in (-1, 2):
            with pytest.raises(UsageError, match="has positions 0 to 1"):
                decided(found, wrong, "me")


def test_of_three_sides_the_weightiest_wins_and_its_weightiest_voice_speaks() -> None:
    found = settled(
        said("techwriter", "use cookies"),
        said("security-analyst", "use cookies"),
        said("reviewer", "use localStorage"),
        said("dev-react", "use sessionStorage"),
    )
    assert (winner(found), found.how) == ("security-analyst", "score")
    assert [found.positions[place].agent for place in found.dissent] == ["dev-react", "reviewer"]
