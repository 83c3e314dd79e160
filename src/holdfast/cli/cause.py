"""Whether a step runs and why, in the words of a preview."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.cli.ahead import Ahead
from holdfast.cli.gates import ASKED, gate_words
from holdfast.core.preview import Outlook
from holdfast.core.reasons import sentence
from holdfast.model.event import Reason
from holdfast.model.plan import Step, StepId

NAMED = 3  # steps that a group names
OPEN = "items_open"  # nobody knows yet how many items there are


def sign(outlook: Outlook) -> str:
    """The sign before a step: first time, again, maybe, reused, waiting, stuck."""
    if outlook.decision == "run":
        is_first = outlook.probe is None or outlook.probe.newest is None
        return "+" if is_first and not outlook.failed_before else "~"
    if outlook.decision == "wait":
        return "!" if outlook.is_stuck else "–" if outlook.is_left_out else "⏸"
    return "?" if outlook.decision == "maybe" else "="


def why(ahead: Ahead, step_id: StepId, outlook: Outlook) -> str:
    """Why, and what happens to the files of the step."""
    step = ahead.foreseen.plan.steps[step_id]
    words = _cause(outlook, step)
    if counted := ahead.counted.get(step_id):
        words = words.replace(sentence(outlook.reason), counted)
    if outlook.edited and outlook.means == "make" and outlook.decision in {"run", "maybe"}:
        whose = "your edit of" if outlook.is_edited else "what lies at"
        words += f"; {whose} {few(outlook.edited)} is stored, then replaced"
    if outlook.replaced and outlook.decision in {"run", "maybe"}:
        how = "replaces" if outlook.decision == "run" else "would replace"
        words += f"; {how} your version of {few(outlook.replaced)}"
    if outlook.put_back:
        words += f"; what lies at {few(outlook.put_back)} is stored, then first put back"
    if outlook.written:
        words += f"; writes {few(outlook.written)} from the store"
    if outlook.removed:
        words += f"; removes {few(outlook.removed)} again"
    if outlook.decision in {"run", "maybe"} and outlook.means == "make" and step.asks_after:
        words += " · then a person decides"
    waits = outlook.decision == "wait" and outlook.reason.code == "awaiting_approval"
    if (outlook.decision in {"run", "maybe"} or waits) and step.effects == "external":
        words += " · external effect"
    if origin := ahead.foreseen.added.get(step_id):
        words += f" · added by {origin}"
    return words


def _cause(outlook: Outlook, step: Step) -> str:
    match outlook.decision:
        case "run":
            return _running(outlook)
        case "maybe":
            if outlook.reason.code in {OPEN, "condition_open"}:
                return sentence(outlook.reason)
            if outlook.means == "guard":
                return "its guards changed: the kept artifact is guarded again"
            return f"only if {' or '.join(outlook.reason.because)} changes"
        case "wait":
            return _waiting(outlook, step)
        case "reuse":
            return _standing(outlook)


def _running(outlook: Outlook) -> str:
    if outlook.means == "adopt":
        return f"your edit of {few(outlook.edited)} is guarded and kept"
    if not outlook.failed_before:
        return sentence(outlook.reason)
    failed = sentence(Reason("previous_failed"))
    if outlook.reason.code == "previous_failed":
        return f"{failed}, after {sentence(outlook.also)}" if outlook.also else failed
    return f"{failed}; since then {sentence(outlook.also or outlook.reason)}"


def _waiting(outlook: Outlook, step: Step) -> str:
    reason = outlook.reason
    if reason.code in ASKED and not reason.because:
        return gate_words(step)
    if reason.code == "awaiting_person" and reason.because:
        return f"after {' and '.join(reason.because)}, which waits for a person"
    if reason.code == "not_selected":
        return "not selected"
    if reason.code == "dependency_skipped":
        return f"needs {' and '.join(reason.because)}, which is not selected"
    if reason.code == "dependency_failed":
        return f"needs {' and '.join(reason.because)}, which cannot run"
    if reason.code == "output_modified":
        return f"{sentence(reason)}; --on-drift fail stops here"
    return sentence(reason)


def _standing(outlook: Outlook) -> str:
    if outlook.reason.code == "unchanged":
        artifact = outlook.artifact
        return f"unchanged ({artifact.digest[:12]})" if artifact else "unchanged"
    return sentence(outlook.reason)


def few(names: Sequence[str]) -> str:
    """The first of some names, and how many there are beside them."""
    more = len(names) - NAMED
    shown = ", ".join(names[:NAMED])
    return f"{shown} and {more} more" if more > 0 else shown
