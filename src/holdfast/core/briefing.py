"""What a step is told of the work before it: a page made of the ledger of its ancestors, within a budget.

It is a function of the plan and of the handoffs above the step; what other branches found is not in it. The
order is the order of worth. When the budget is spent the rest is left out, and the page says how much:

    1  what the steps it needs recommend to do first
    2  what they attempted, changed and left undone
    3  how the hypotheses stand that the step tests
    4  questions that are open, the latest raised first
    5  evidence of the steps it needs, then of those above them, nearest first; the surest first; of
       findings that say the same the first alone, with how many there are
    6  gaps of the steps farther above

Each line ends with the id of its entry, so that a handoff can refer to it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from holdfast.core.confidence import bounded
from holdfast.core.ledger import Evidence, Ledger, Told, weights
from holdfast.core.waves import Graph
from holdfast.model.fixed import fixed
from holdfast.model.plan import StepId
from holdfast.model.text import one_line

BUDGET = 4_000  # tokens, if a step does not say how many
LETTERS = 4  # of a token, roughly; a page may be a little longer or shorter than its budget
_HEADINGS = {
    "first": "Do first, as the steps before advise",
    "before": "What the steps before did",
    "hypotheses": "Hypotheses",
    "open": "Open questions",
    "evidence": "Evidence",
    "gaps": "Not done further above",
}


class _Line(NamedTuple):
    section: str
    text: str


@fixed
class Briefing:
    """The page, and how many entries did not fit into the budget."""

    text: str
    left_out: int


def ancestors(graph: Graph, step: StepId) -> set[StepId]:
    """Every step above a step."""
    seen: set[StepId] = set()
    queue = [step]
    while queue:
        for need in graph.steps[queue.pop()].needs:
            if need.step not in seen:
                seen.add(need.step)
                queue.append(need.step)
    return seen


def briefing(
    ledger: Ledger,
    needs: Collection[StepId],
    tested: Collection[str] = (),
    budget: int = BUDGET,
) -> Briefing:
    """The page for a step that needs these steps and tests these hypotheses.

    `ledger` is the one of its ancestors alone. A mapping of hypotheses gives what each of them says.
    """
    room = budget * LETTERS
    kept: list[_Line] = []
    left = 0
    sections: set[str] = set()
    for line in _lines(ledger, needs, tested):
        size = len(line.text) + 1
        if line.section not in sections:
            size += len(_HEADINGS[line.section]) + 5
        if left or size > room:  # what is worth less never takes the place of what did not fit
            left += 1
            continue
        room -= size
        sections.add(line.section)
        kept.append(line)
    return Briefing(_page(kept, left), left)


def _page(kept: Iterable[_Line], left: int) -> str:
    parts: dict[str, list[str]] = {}
    for line in kept:
        parts.setdefault(line.section, []).append(line.text)
    blocks = [f"## {_HEADINGS[name]}\n" + "\n".join(lines) for name, lines in parts.items()]
    if left:
        blocks.append(f"{left} more left out for want of room.")
    return "\n\n".join(blocks)


def _lines(ledger: Ledger, needs: Collection[StepId], tested: Collection[str]) -> Iterator[_Line]:
    near = [one for one in ledger.handoffs if one.step in needs]
    for one in near:
        if one.handoff.first:
            yield _Line("first", f"- {one_line(one.handoff.first)} ({one.step}) {one.id}")
    for one in near:
        yield from (_Line("before", text) for text in _done(one))
    yield from _stand(ledger, tested)
    for question in reversed(ledger.uncertainties):
        if question.status != "resolved":
            asked = one_line(question.question)
            yield _Line("open", f"- {asked} ({question.status}) {question.id}")
    yield from _evidence(ledger, needs)
    for gap in ledger.gaps:
        if gap.step not in needs and not gap.closed:
            yield _Line("gaps", f"- {one_line(gap.item)}: {one_line(gap.reason)} {gap.id}")


def _done(one: Told) -> Iterator[str]:
    failed = " failed" if one.failed else ""
    yield f"- {one.step}{failed}: {one_line(one.handoff.attempted)} {one.id}"
    for change in one.handoff.changed:
        yield f"  - changed {one_line(change.artifact)}: {one_line(change.ref)}"
    for undone in one.handoff.not_done:
        yield f"  - not done {one_line(undone.item)}: {one_line(undone.reason)}"


def _stand(ledger: Ledger, tested: Collection[str]) -> Iterator[_Line]:
    for name in tested:
        found = ledger.hypotheses.get(name)
        if found is not None:
            sides = f"{len(found.supporting)} for, {len(found.refuting)} against"
            says = tested.get(name, "") if isinstance(tested, Mapping) else ""
            text = f" ({one_line(says)})" if says else ""
            yield _Line("hypotheses", f"- {name}{text} is {found.status}: {sides}")


def _evidence(ledger: Ledger, needs: Collection[StepId]) -> Iterator[_Line]:
    wave = {one.step: one.wave for one in ledger.handoffs}
    counting = weights(ledger.evidence)
    same: dict[str, int] = {}
    for one in ledger.evidence:
        same[one.head] = same.get(one.head, 0) + 1
    heads = [one for one in ledger.evidence if one.head == one.id and not one.contested]
    certain = {one.id: bounded(one.id, counting) for one in heads}
    for one in sorted(heads, key=lambda one: _worth(one, needs, wave, certain)):
        yield _Line("evidence", _finding(one, same[one.id], certain[one.id]))


def _worth(
    one: Evidence,
    needs: Collection[StepId],
    wave: Mapping[StepId, int],
    certain: Mapping[str, float | None],
) -> tuple[bool, int, float, str]:
    sure = certain[one.id]
    return (one.step not in needs, -wave.get(one.step, 0), -(sure or 0.0), one.id)


def _finding(one: Evidence, times: int, sure: float | None) -> str:
    facts = [one_line(one.source)] if one.source else []
    facts += [f"{sure:.2f}"] if sure is not None else []
    facts += [f"said {times} times"] if times > 1 else []
    facts += ["stands on what was contested"] if one.stale else []
    told = f" ({', '.join(facts)})" if facts else ""
    return f"- {one_line(one.finding)}{told} {one.id}"
