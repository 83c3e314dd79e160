"""What a step is told of the work before it: a page made of the ledger of its ancestors, within a budget.

It is a function of the plan and of the handoffs above the step; what other branches found is not in it. The
order is the order of worth:

    1  what the steps it needs recommend to do first
    2  what they attempted, changed and left undone
    3  how the hypotheses stand that the step tests
    4  questions that are open, the latest raised first, with how else they were put
    5  evidence of the steps it needs, then of those above them, nearest first; the surest first; of
       findings that say the same the surest alone, with how many there are and how else they put it;
       nothing that is contested
    6  gaps of the steps farther above

Each line ends with the id of its entry, so that a handoff can refer to it. A step that gathers tells nothing
itself: whoever needs it needs the items or the steps whose work it gathers. If not everything finds room, the
first lines take three quarters of the budget. The others are summed up below them, a line for each step in
the same order: how many findings, questions, changes and gaps, what the findings are about, how sure the
surest is, and the id of the handoff that holds them all. Steps whose summary finds no room either are counted
in a last line, and where that finds none, one line says how much there is beside what stands above it. That
line alone is the least page, and the only one that may be longer than its budget. So nothing is left out
unsaid, and everything is found: `holdfast ledger ID`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from holdfast.core.confidence import UNSAID, certainties
from holdfast.core.evidence import Evidence
from holdfast.core.ledger import Ledger, counting
from holdfast.core.likeness import topics
from holdfast.core.told import Told
from holdfast.core.waves import Graph
from holdfast.model.fixed import fixed
from holdfast.model.plan import GATHER, Step, StepId
from holdfast.model.text import one_line

BUDGET = 4_000  # tokens, if a step does not say how many
LETTERS = 4  # of a token, roughly
_HEADINGS = {
    "first": "Do first, as the steps before advise",
    "before": "What the steps before did",
    "hypotheses": "Hypotheses",
    "open": "Open questions",
    "evidence": "Evidence",
    "gaps": "Not done further above",
}
_PLURAL = {
    "piece of advice": "pieces of advice",
    "account": "accounts",
    "change": "changes",
    "gap": "gaps",
    "hypothesis": "hypotheses",
    "open question": "open questions",
    "finding": "findings",
}


SUMMED = "## Summed up, for want of room"  # all below it names handoffs, not entries
_ID = re.compile(r"^- .* ([a-z]-[0-9a-f]{12})$", re.MULTILINE)
_FOR_WHOLE = 0.75  # of the budget, if not everything finds room
_TOPICS = 3  # words that findings are about
_WORDINGS = 3  # other ones that a finding is shown with


class _Line(NamedTuple):
    section: str
    text: str
    step: StepId | None  # whose it is; None of a hypothesis
    kind: str  # what it is one of, in a summary
    about: str = ""  # a finding, and how sure it is
    sure: float | None = None


@fixed
class Briefing:
    """The page, and how many entries stand in it only as a part of a summary."""

    text: str
    left_out: int


class Quoted(NamedTuple):
    """The ids that a page names: of entries, and of handoffs of which it sums something up."""

    entries: frozenset[str]
    summed: frozenset[str]


def quoted(page: str) -> Quoted:
    """What a page names: each of its lines ends with an id. A heading is a line of its own, words are not."""
    lines = page.split("\n")
    at = lines.index(SUMMED) if SUMMED in lines else len(lines)
    return Quoted(_ends(lines[:at]), _ends(lines[at:]))


def _ends(lines: Iterable[str]) -> frozenset[str]:
    return frozenset(line.rpartition(" ")[2] for line in lines)


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


def needed_by(steps: Mapping[StepId, Step], step: Step) -> set[StepId]:
    """The steps that a step needs, and for those that gather, what they gather."""
    found: set[StepId] = set()
    queue = [need.step for need in step.needs]
    while queue:
        name = queue.pop()
        if name not in found:
            found.add(name)
            queue += steps[name].data_needs if steps[name].uses == GATHER else ()
    return found


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
    every = list(_lines(ledger, needs, tested))
    kept = _fitting(every, room)
    if len(kept) == len(every):
        return Briefing(_page(kept), 0)
    kept = _fitting(every, int(room * _FOR_WHOLE))
    text = _joined(ledger, every, kept, room)
    while kept and len(text) > room:
        kept.pop()
        text = _joined(ledger, every, kept, room)
    return Briefing(text, len(every) - len(kept))


def _joined(ledger: Ledger, every: Sequence[_Line], kept: Sequence[_Line], room: int) -> str:
    """The lines that are kept, and below them all others summed up."""
    page = _page(kept)
    taken = len(page) + 2 if page else 0
    summed = _summed(ledger, every[len(kept) :], room - taken)
    return "\n\n".join(part for part in (page, summed) if part)


def ids_on(page: str) -> set[str]:
    """The ids of the entries that a page tells; what looks like one in the words of an entry is none."""
    return {*_ID.findall(page)}


def _fitting(lines: Iterable[_Line], room: int) -> list[_Line]:
    """The first ones; what is worth less never takes the place of what did not fit."""
    kept: list[_Line] = []
    sections: set[str] = set()
    for line in lines:
        room -= len(line.text) + 1
        if line.section not in sections:
            room -= len(_HEADINGS[line.section]) + 5
        if room < 0:
            break
        sections.add(line.section)
        kept.append(line)
    return kept


def _page(kept: Iterable[_Line]) -> str:
    parts: dict[str, list[str]] = {}
    for line in kept:
        parts.setdefault(line.section, []).append(line.text)
    blocks = [f"## {_HEADINGS[name]}\n" + "\n".join(lines) for name, lines in parts.items()]
    return "\n\n".join(blocks)


# --- what finds no room ---------------------------------------------------------------------------


def _summed(ledger: Ledger, left: Sequence[_Line], room: int) -> str:
    """A line for each step, in the order of worth; one for all those that find no room either."""
    ids = {one.step: one.id for one in ledger.handoffs}
    of_step: dict[StepId | None, list[_Line]] = {}
    for line in left:
        of_step.setdefault(line.step, []).append(line)
    said = [SUMMED]
    taken = len(SUMMED)
    for step, lines in of_step.items():
        text = _summary(step, lines, ids)
        if taken + len(text) + 1 > room:
            break
        taken += len(text) + 1
        said.append(text)
    while len(said) <= len(of_step):
        rest = [*of_step.values()][len(said) - 1 :]
        for text in _rest(rest):
            if taken + len(text) + 1 <= room:
                return "\n".join([*said, text])
        if len(said) == 1:
            return f"{len(left):,} more, for want of room: `holdfast ledger`"
        taken -= len(said.pop()) + 1
    return "\n".join(said)


def _rest(others: Sequence[Sequence[_Line]]) -> Iterator[str]:
    """A line for several steps, and the same in fewer words."""
    where = f"{len(others)} steps more" if len(others) > 1 else "1 step more"
    lines = [line for ones in others for line in ones]
    yield f"- {where}: {_counted(lines)}; `holdfast ledger` lists them"
    yield f"- {where}, {len(lines):,} entries: `holdfast ledger`"


def _summary(step: StepId | None, lines: Sequence[_Line], ids: Mapping[StepId, str]) -> str:
    if step is None:
        return f"- {_counted(lines)}: `holdfast ledger hypotheses`"
    name, handoff = (step, ids[step]) if step in ids else ("people", "")
    return f"- {name}: {_counted(lines)} {handoff}".rstrip()


def _counted(lines: Iterable[_Line]) -> str:
    """How many of each kind; of findings what they are about, and how sure the surest is."""
    kinds: dict[str, list[_Line]] = {}
    for line in lines:
        kinds.setdefault(line.kind, []).append(line)
    return ", ".join(_of_kind(kind, ones) for kind, ones in kinds.items())


def _of_kind(kind: str, lines: Sequence[_Line]) -> str:
    many = len(lines)
    text = f"{many} {kind}" if many == 1 else f"{many} {_PLURAL[kind]}"
    words = topics([line.about for line in lines if line.about], _TOPICS)
    sure = max((line.sure for line in lines if line.sure is not None), default=None)
    text += f" about {', '.join(words)}" if words else ""
    return text if sure is None else f"{text} (surest {sure:.2f})"


# --- what there is to tell ------------------------------------------------------------------------


def _lines(ledger: Ledger, needs: Collection[StepId], tested: Collection[str]) -> Iterator[_Line]:
    near = [one for one in ledger.handoffs if one.step in needs]
    for one in near:
        if one.handoff.first:
            text = f"- {one_line(one.handoff.first)} ({one.step}) {one.id}"
            yield _Line("first", text, one.step, "piece of advice")
    for one in near:
        yield from _done(one)
    yield from _stand(ledger, tested)
    for question in reversed(ledger.uncertainties):
        if question.status != "resolved":
            asked = one_line(question.question)
            others = _wordings(asked, question.same)
            text = f"- {asked} ({question.status}){others} {question.id}"
            yield _Line("open", text, question.step, "open question")
    yield from _evidence(ledger, needs)
    for gap in ledger.gaps:
        if gap.step not in needs and not gap.closed:
            text = f"- {one_line(gap.item)}: {one_line(gap.reason)} {gap.id}"
            yield _Line("gaps", text, gap.step, "gap")


def _done(one: Told) -> Iterator[_Line]:
    failed = " failed" if one.failed else ""
    text = f"- {one.step}{failed}: {one_line(one.handoff.attempted)} {one.id}"
    yield _Line("before", text, one.step, "account")
    for change in one.handoff.changed:
        text = f"  - changed {one_line(change.artifact)}: {one_line(change.ref)}"
        yield _Line("before", text, one.step, "change")
    for undone in one.handoff.not_done:
        text = f"  - not done {one_line(undone.item)}: {one_line(undone.reason)}"
        yield _Line("before", text, one.step, "gap")


def _stand(ledger: Ledger, tested: Collection[str]) -> Iterator[_Line]:
    for name in tested:
        found = ledger.hypotheses.get(name)
        if found is not None:
            sides = f"{len(found.supporting)} for, {len(found.refuting)} against"
            says = tested.get(name, "") if isinstance(tested, Mapping) else ""
            said = f" ({one_line(says)})" if says else ""
            stale = ", stale: some of it was contested" if found.stale else ""
            text = f"- {name}{said} is {found.status}: {sides}{stale}"
            yield _Line("hypotheses", text, None, "hypothesis")


def _evidence(ledger: Ledger, needs: Collection[StepId]) -> Iterator[_Line]:
    wave = {one.step: one.wave for one in ledger.handoffs}
    certain = certainties(counting(ledger))
    same: dict[str, list[Evidence]] = {}
    for one in ledger.evidence:
        if not one.contested:
            same.setdefault(one.head, []).append(one)
    order = {
        head: min([_worth(one, needs, wave, certain) for one in ones])
        for head, ones in same.items()
    }
    for head in sorted(same, key=order.__getitem__):
        one = max(same[head], key=lambda one: _counts(certain[one.id]))
        sure = certain[one.id]
        text = _finding(one, same[head], sure)
        yield _Line("evidence", text, one.step, "finding", one.finding, sure)


def _worth(
    one: Evidence,
    needs: Collection[StepId],
    wave: Mapping[StepId, int],
    certain: Mapping[str, float | None],
) -> tuple[bool, int, float, str]:
    sure = certain[one.id]
    return (one.step not in needs, -wave.get(one.step, 0), -_counts(sure), one.id)


def _counts(sure: float | None) -> float:
    return UNSAID if sure is None else sure


def _finding(one: Evidence, same: Sequence[Evidence], sure: float | None) -> str:
    facts = [one_line(one.source)] if one.source else []
    facts += [f"{sure:.2f}"] if sure is not None else []
    facts += [f"said {len(same)} times"] if len(same) > 1 else []
    facts += ["stands on what was contested"] if one.stale else []
    told = f" ({', '.join(facts)})" if facts else ""
    finding = one_line(one.finding)
    others = _wordings(finding, (other.finding for other in same))
    return f"- {finding}{told}{others} {one.id}"


def _wordings(one: str, same: Iterable[str]) -> str:
    """How others put what is taken for the same: whoever reads it sees if it is not."""
    others = [text for text in dict.fromkeys(map(one_line, same)) if text != one]
    more = f" and {len(others) - _WORDINGS} wordings more" if len(others) > _WORDINGS else ""
    quoted = ", ".join(f'"{text}"' for text in others[:_WORDINGS])
    return f", also put as {quoted}{more}" if quoted else ""
