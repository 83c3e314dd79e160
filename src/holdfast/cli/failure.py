"""A failed step on screen: what refused it, with which words, what it blocks, what to do about it."""

from __future__ import annotations

from collections.abc import Mapping
from shlex import quote

from holdfast.cli.again import again
from holdfast.core.effects import REJECTED
from holdfast.core.reasons import sentence
from holdfast.core.state import State, StepState
from holdfast.model.plan import StepId

MOST_STEPS = 10
MOST_WORDS = 6  # lines of what the last attempt was refused with
MOST_NAMES = 8
_INDENT = " " * 12
_NO_NETWORK = (
    "name resolution",
    "could not resolve host",
    "name or service not known",
    "network is unreachable",
    "no matching distribution found",
)
_NO_WRITING = ("read-only file system",)


def failure_lines(
    state: State, words: Mapping[StepId, str], *, only: StepId | None = None
) -> list[str]:
    """Every failed step, in order; `words` is what their last attempts were refused with."""
    failed = [s for s in state.graph.order if state.steps[s].phase == "failed"]
    if only is not None:
        failed = [only]
    lines = [line for s in failed[:MOST_STEPS] for line in _one(state, s, words.get(s, ""))]
    if len(failed) > MOST_STEPS:
        lines.append(f"✗ and {names_of(failed[MOST_STEPS:])}")
    return lines


def failure_next(state: State, broken: StepId | None = None) -> list[str]:
    """Commands that help with a failed step; with the first one if none is named."""
    failed = [s for s in state.graph.order if state.steps[s].phase == "failed"]
    if not failed:
        return []
    step = broken or failed[0]
    name = quote(step)
    looked = [f"holdfast logs {name}"] if state.steps[step].attempts else []
    again = f"holdfast retry {name}" if len(failed) == 1 else "holdfast resume"
    if any(_has_other_items(state.steps[step_id]) for step_id in failed):
        looked, again = [], "holdfast run"
    if any(_is_spent(state.steps[step_id]) for step_id in failed):  # a run keeps its plan
        short = next(step_id for step_id in failed if _is_spent(state.steps[step_id]))
        again = f"raise 'budget' of '{short}' in the plan, then holdfast run --yes"
    return [*looked, again, f"holdfast why {name} --run {state.run[:10]}"]


def _has_other_items(step: StepState) -> bool:
    """Whether only another run can help: this one keeps the items that it has."""
    return step.reason is not None and step.reason.code == "items_changed"


def _is_spent(step: StepState) -> bool:
    """Whether its own budget left no room: trying again comes to the same."""
    return step.reason is not None and step.reason.code == "budget_spent"


def names_of(steps: list[StepId], most: int = MOST_NAMES) -> str:
    """Some names, and how many more there are."""
    more = len(steps) - most
    return ", ".join(steps[:most]) + (f" and {more} more" if more > 0 else "")


def _one(state: State, step_id: StepId, words: str) -> list[str]:
    step = state.steps[step_id]
    lines = [f"✗ {step_id}: {ended_words(step)}"]
    said = [line for line in words.splitlines() if line.strip()]
    for place, line in enumerate([*refusal(step), *_few(step, said)]):
        head = _whose(step) if place == 0 else ""
        lines.append(f"  {head:<11} {line}")
    if len(said) > MOST_WORDS:
        whole = again(f"holdfast logs {quote(step_id)}")
        lines.append(f"  {_INDENT}(the last of {len(said)} lines: {whole})")
    if hint := _held_back(step, words):
        lines.append(f"  {'sandbox?':<11} {again(hint)}")
    blocked = [
        s
        for s in sorted(state.graph.below([step_id]), key=state.graph.rank.__getitem__)
        if state.steps[s].phase == "skipped"
    ]
    if blocked:
        lines.append(f"  {'blocked':<11} {names_of(blocked)}{_kept(state)}")
    return lines


def _whose(step: StepState) -> str:
    """What the words are about: an attempt, or what a person said of a step that was not tried."""
    if step.reason is not None and step.reason.code == REJECTED:
        return "because"
    return f"attempt {step.attempts}" if step.attempts else "said"


def _few(step: StepState, said: list[str]) -> list[str]:
    """The last lines; of what a guard said the first too, which is what it comes to."""
    is_verdict = step.reason is not None and step.reason.code == "guard_rejected"
    if is_verdict and len(said) > MOST_WORDS:
        return [said[0], "…", *said[2 - MOST_WORDS :]]
    return said[-MOST_WORDS:]


def _held_back(step: StepState, words: str) -> str:
    """What to do if it was the sandbox that stood in the way, as the words of a command sound."""
    if step.reason is None or step.reason.code not in {"command_failed", "guard_rejected"}:
        return ""
    said = words.casefold()
    if any(words_of in said for words_of in _NO_NETWORK):
        return "commands reach no network unless you say so: holdfast resume --network"
    if any(words_of in said for words_of in _NO_WRITING):
        return "commands write into the project alone; see 'writable' in docs/howto/sandbox.md"
    return ""


def refusal(step: StepState) -> list[str]:
    """Who refused a person's version; of other refusals the sentence of the reason says it."""
    by_hand = step.reason is not None and step.reason.code == "output_modified"
    guard = step.fed[-1].guard if by_hand and step.fed else ""
    return [f"guard '{guard}' refused your version:"] if guard else []


def ended_words(step: StepState) -> str:
    """What ended it: who refused how many of its attempts, or the sentence of the reason."""
    reason = step.reason
    if reason is None:
        return "failed"
    if reason.code == "guard_rejected" and reason.because:
        guard = reason.because[0]
        refused = sum(fed.guard == guard for fed in step.fed)
        return f"guard '{guard}' rejected {_of(refused, step.attempts)}"
    if reason.code == "guard_fatal" and reason.because:
        return f"guard '{reason.because[0]}' refused it for good on attempt {step.attempts}"
    if reason.code in {"command_failed", "timed_out", "lost"} and step.attempts > 1:
        return f"{sentence(reason)} ({step.attempts} attempts)"
    return sentence(reason)


def _of(count: int, attempts: int) -> str:
    return "its only attempt" if attempts == 1 else f"{count} of {attempts} attempts"


def _kept(state: State) -> str:
    kept = state.counts["done"] + state.counts["reused"]
    if not kept:
        return ""
    return (
        "      (1 other step is done and kept)"
        if kept == 1
        else f"      ({kept} others are done and kept)"
    )
