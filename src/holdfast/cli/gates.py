"""What a step asks people for, in words and as commands."""

from __future__ import annotations

from holdfast import wire
from holdfast.cli.say import named
from holdfast.core.reasons import sentence
from holdfast.core.state import State, StepState
from holdfast.engine.questions import approvers
from holdfast.model.event import ConflictFound, Reason
from holdfast.model.plan import Step

MOST_CONFLICTS = 5
ASKED = frozenset({"awaiting_approval", "awaiting_person"})


def needs_consent(step: Step) -> bool:
    """Whether it touches the outside world and nobody is asked about that before each attempt."""
    if step.awaits_items and step.template is not None:
        return needs_consent(step.template)
    if step.effects != "external":
        return False
    asks = step.approve in {"always", "on_change"}
    return not asks and not any(need.asks for need in step.needs)


def is_paid(root: str, step: Step, *, about_it: bool = False) -> bool:
    """Whether it asks a model whose answers somebody wants money for; with `about_it` by its guards."""
    return wire.market.pays(root, step, about_it=about_it)


def gate_words(step: Step) -> str:
    """What the plan asks for before an attempt at this step begins."""
    if step.uses == "human":
        return f"a person gives it{f': {step.agent}' if step.agent else ''}"
    edges = [need for need in step.needs if need.asks]
    if step.awaits_items:
        return "its items cost money, and nobody knew how many there are: needs an approval"
    if not step.asks_first:
        return "costs money, and nobody was asked when it was added: needs an approval"
    if not edges:
        return "needs an approval"
    asked = [
        f"after {need.step}" + (f" from {need.approver}" if need.approver else "") for need in edges
    ]
    return f"needs an approval {' and '.join(asked)}"


def conflict_lines(state: State) -> list[str]:
    """The open conflicts of a run, one line each."""
    found = list(state.conflicts.values())
    lines = [f"! {one.conflict}: {conflict_words(one)}" for one in found[:MOST_CONFLICTS]]
    if len(found) > MOST_CONFLICTS:
        lines.append(f"! {len(found) - MOST_CONFLICTS} more conflicts are open")
    return lines


def conflict_words(found: ConflictFound) -> str:
    """Who is in conflict about what."""
    names = " and ".join(f"'{step}'" for step in found.steps)
    more = f" and {len(found.paths) - MOST_CONFLICTS} more" if found.paths[MOST_CONFLICTS:] else ""
    paths = ", ".join(found.paths[:MOST_CONFLICTS]) + more
    match found.kind:
        case "files":
            return f"{names} changed {paths} in different ways"
        case "tree":
            return f"{names} changed {paths}, and so did somebody else meanwhile"
        case "agents":
            return f"{names} recommend different things"


def waiting_words(step: Step, here: StepState) -> str:
    """What a step of a run waits for."""
    if here.reason is None:
        return "waits"
    if here.reason.code not in ASKED:
        return sentence(here.reason)
    if here.parked is not None:
        names = {name for guard in here.parked.guards for name in approvers(step.guards, guard)}
        whose = f" from {' and '.join(sorted(names))}" if names else ""
        return f"what it made needs an approval{whose}"
    return held_words(step, here.reason)


def held_words(step: Step, reason: Reason) -> str:
    """Why a step is held before an attempt."""
    if reason.code not in ASKED:
        return sentence(reason)
    effect = " (external effect)" if step.effects == "external" else ""
    return gate_words(step) + effect


def commands(step: Step, reason: Reason | None) -> list[str]:
    """What can be done about a step that waits."""
    name = named(step.id)
    if reason is not None and reason.code == "conflict_open" and reason.because:
        side = f" --take {name}" if step.changes_copy else ""  # else it only stands on the sides
        return [f"holdfast resolve {reason.because[0]}{side}", "holdfast conflicts"]
    if reason is not None and reason.code == "awaiting_person" and step.uses == "human":
        file = "" if step.produces else " FILE"
        return [f"holdfast answer {name}{file}", "holdfast approvals"]
    return [f"holdfast approve {name}", "holdfast approvals"]
