"""The closed list of reasons: a code and a sentence for each decision Holdfast can make.

A sentence completes "<step> runs: …", "<step> is reused: …" and so on. `{names}` stands for what is
behind the reason: paths, step ids, names of parts.
"""

from __future__ import annotations

from typing import Final

from holdfast.errors import BugError
from holdfast.model.event import Reason

SENTENCES: Final[dict[str, str]] = {
    # why a step runs
    "never_ran": "first time",
    "input_changed": "an input changed: {names}",
    "upstream_changed": "a step it needs changed: {names}",
    "prompt_changed": "its prompt changed",
    "model_changed": "its model changed",
    "parameters_changed": "its parameters changed: {names}",
    "guard_changed": "its guards changed",
    "generator_changed": "what generates it changed",
    "command_changed": "its command changed: {names}",
    "contract_changed": "what it must produce changed: {names}",
    "specification_changed": "its specification changed: {names}",
    "context_changed": "what it is told of the work before it changed",
    "dependencies_changed": "the steps it needs are others than before: {names}",
    "tools_changed": "the version of a tool changed: {names}",
    "environment_changed": "its environment changed: {names}",
    "previous_failed": "its previous attempt failed",
    "previous_incomplete": "its previous run did not get to it",
    "previous_interrupted": "its previous attempt was interrupted",
    "output_missing": "an output is missing: {names}",
    "output_modified": "an output was changed by hand: {names}",
    "expired": "its artifact is older than it may be",
    "evidence_contested": "a person contested what it told or stands on: {names}",
    "forced": "it was asked for",
    "resampled": "another sample was asked for",
    "retried": "a person asked to try again",
    "approved": "a person approved it",
    "conflict_settled": "the disagreement it stood on is settled",
    "answered": "a person gave it",
    "resumed": "the run was resumed",
    "reopened": "tried anew, because a step could not get through: {names}",
    "undone": "a person undid it",
    "key_version": "the way keys are made changed",
    "condition_open": "if its condition holds, which {names} decides",
    "items_open": "as many as {names} finds",
    "additions_unfit": "what it added no longer fits the plan: {names}",
    # why an artifact stands
    "unchanged": "nothing that decides it changed",
    "unchanged_content": "the content it reads is the same, though steps above it ran",
    "amended": "a person's version stands",
    "accepted_by_person": "a person accepted this version",
    "reguarded": "only its guards changed, and the kept artifact passes them",
    "forked": "it stands as in the run that this one was forked from",
    "skipped_by_person": "a person lets the run go on without it",
    # why a step does not run, or did not get through
    "items_changed": "its items were made from another list than {names} has now",
    "key_missing": "what it reads is not there: {names}",
    "dependency_failed": "Dependency {names} failed",
    "dependency_skipped": "a step it needs was skipped: {names}",
    "not_selected": "it was not selected",
    "condition_unmet": "its condition does not hold: {names}",
    "condition_above": "a step it needs was left out by its condition: {names}",
    "awaiting_approval": "it waits for an approval: {names}",
    "awaiting_person": "it waits for a person",
    "conflict_open": "a conflict is open: {names}",
    "replan_wanted": "what was learned speaks against the plan: {names}",
    "effect_unconfirmed": "its effect was started and never confirmed; a person must look",
    "receipt_gone": "its effect was done, and what it gave is gone; a person must look",
    "effect_doubted": "its effect was done, and it may be the same now: {names}; a person must look",
    "limit_reached": "a limit was reached: {names}",
    "stopped": "the run was stopped",
    "guard_rejected": "a guard rejected it: {names}",
    "guard_fatal": "a guard refused it for good: {names}",
    "guard_broken": "a guard could not give a verdict: {names}",
    "command_failed": "its command failed",
    "call_failed": "no model answered, however often it was asked",
    "call_refused": "its call was refused",
    "credentials_missing": "its provider was given no key that it takes",
    "model_refused": "the model refused to answer",
    "answer_cut": "the answer was longer than it may be",
    "answer_empty": "the model answered nothing",
    "answer_too_large": "the answer had no end",
    "budget_spent": "its budget is spent",
    "turns_spent": "its model took more turns than it may",
    "tool_unconfirmed": "a tool was begun and nobody knows whether it did its work",
    "timed_out": "it took longer than it may: {names}",
    "lost": "its process died",
    "not_recorded": "no answer to its request is recorded",
    "rejected_by_person": "a person rejected it: {names}",
    "stagnated": "it was refused with the same words again and again by {names}",
    "stuck": "it cannot get through; a person must look",
    "reopening": "a step above it is made again first: {names}",
    "critical_failed": "a critical step failed: {names}",
    "fatal_verdict": "a guard refused for good what a step made: {names}",
    "wave_failed": "every step of a wave that ran failed: {names}",
    "deadlocked": "these steps can never start: {names}",
}

CODES: Final = frozenset(SENTENCES)
UNANSWERED: Final = frozenset(  # an attempt got stuck on its way; nobody said a word about its work
    {
        "call_failed",
        "call_refused",
        "credentials_missing",
        "budget_spent",
        "not_recorded",
        "tool_unconfirmed",
    }
)
_OWN_WORDS: Final = frozenset({"run", "shell"})  # parts of a command that stand in the plan itself


def _command_changed(names: tuple[str, ...]) -> str:
    if names[0].endswith("cannot be resolved"):
        return "nobody can tell whether its command changed: {names}"
    if _OWN_WORDS.isdisjoint(names):
        return "a file of its command changed: {names}"
    return SENTENCES["command_changed"]


def sentence(reason: Reason) -> str:
    """The reason in words, with what is behind it."""
    text = SENTENCES.get(reason.code)
    if text is None:
        raise BugError(f"'{reason.code}' is not in the list of reasons")
    if reason.code == "command_failed" and reason.because:  # nothing was started, and this is why
        text = "it cannot run: {names}"
    if reason.code == "effect_unconfirmed" and reason.because:  # it is known to be done
        text = "its effect was done, and {names}; a person must look"
    if reason.code == "command_changed" and reason.because:
        text = _command_changed(reason.because)
    if "{names}" not in text:
        return text
    if not reason.because:
        return text.replace(": {names}", "").replace(" {names}", "")
    quote = "'" if reason.code == "dependency_failed" else ""
    shown = ", ".join(f"{quote}{name}{quote}" for name in reason.because[:5])
    more = len(reason.because) - 5
    return text.replace("{names}", f"{shown} and {more} more" if more > 0 else shown)
