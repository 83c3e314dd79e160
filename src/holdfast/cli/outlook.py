"""The preview as people read it: a table of what would happen to each step, and why.

Everything here gives lines of text; they are made safe and coloured when they are printed.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from holdfast.cli.again import again, folded
from holdfast.cli.ahead import Ahead
from holdfast.cli.gates import ASKED, gate_words
from holdfast.cli.measure import age_words, count
from holdfast.cli.money import UNKNOWN, estimate_words
from holdfast.cli.say import short, shown
from holdfast.cli.sums import few, lists, rough, saves, totals
from holdfast.cli.titles import plan_title
from holdfast.cli.view import View, view
from holdfast.core.estimate import Total, total
from holdfast.core.history import NO_HISTORY
from holdfast.core.preview import Outlook
from holdfast.core.reasons import sentence
from holdfast.engine.foresee import Earlier
from holdfast.model.event import Reason
from holdfast.model.money import dollars
from holdfast.model.plan import Step, StepId, plan_digest
from holdfast.model.text import cells, cut, one_line, wrap
from holdfast.wire import now_ms

MOST_ROWS = 30
FEWEST = 3  # steps that are worth a group
_PASSING = {"upstream_changed", "dependency_failed", "dependency_skipped", "awaiting_person"}
_HINT = "(list: -v)"
_PLAIN = 72  # where the last column begins at most, if lines are never cut
_COLOURS = {"+": "32", "~": "33", "?": "36", "-": "31", "!": "31"}  # the others are signs of states
_SIGN = re.compile(r"^ ([+~?!-])(?= )")
SPOKEN = {
    "+": "runs for the first time",
    "~": "runs again",
    "?": "may run",
    "=": "is reused",
    "⏸": "waits",
    "-": "left the plan",
    "!": "cannot run",
    "–": "is left out",
}


class Row(NamedTuple):
    """One line of the table; `below` are further lines that belong to it."""

    sign: str
    name: str
    why: str
    cost: str = ""
    time: str = ""
    below: tuple[str, ...] = ()


def table(ahead: Ahead, how: View, *, verbose: int = 0, commands: Sequence[str] = ()) -> list[str]:
    """The whole screen."""
    rows = [*_rows(ahead, verbose), *_removed(ahead)]
    lines = [head(ahead), ""]
    if verbose:
        lines += [*lists(ahead), ""]
    lines += totals(ahead)
    folded = [piece for line in lines for piece in wrap(one_line(line), how.width)]
    drawn = [*_drawn(rows, how), ""] if rows else []
    top = folded.index("") + 1
    return [*folded[:top], *drawn, *folded[top:], *next_lines(commands, how)]


def print_lines(lines: Iterable[str], *, err: bool = False) -> None:
    """Print lines, made safe first and coloured then."""
    stream = sys.stderr if err else sys.stdout
    if stream is None:
        return
    for line in lines:
        text = shown(line, stream)
        stream.write((_SIGN.sub(_painted, text) if view().colour else text) + "\n")
    stream.flush()


def _painted(found: re.Match[str]) -> str:
    return f" \x1b[{_COLOURS[found[1]]}m{found[1]}\x1b[0m"


def compared(ahead: Ahead, now: int) -> str:
    """What the plan is compared with, in words."""
    earlier = ahead.earlier
    if earlier is None:
        return "no earlier run"
    if earlier.run is None:
        return f"compared with {ahead.label}"
    return f"compared with {short(earlier.run)} ({age_words(now - earlier.at)})"


def head(ahead: Ahead) -> str:
    """The first line of a preview."""
    steps = count(len(ahead.outlooks), "step")
    if added := len(ahead.foreseen.added):
        steps += f" ({added} added)"
    what = f"{plan_title(ahead.plan)} · {steps} · plan {plan_digest(ahead.plan)[:12]}"
    return f"{what} · {compared(ahead, now_ms())}"


# --- rows --------------------------------------------------------------------------------------------------


def _rows(ahead: Ahead, verbose: int) -> list[Row]:
    listed = {
        s: o for s, o in ahead.outlooks.items() if verbose or o.is_work or o.decision != "reuse"
    }
    if verbose or len(listed) <= MOST_ROWS:
        rows = [_row(ahead, step_id, outlook, verbose) for step_id, outlook in listed.items()]
    else:
        rows = _grouped(ahead, listed)
    if hidden := len(ahead.outlooks) - len(listed):
        rows.append(Row("=", f"{hidden} reused", f"{saves(ahead)} {_HINT}".strip()))
    return rows


def _row(ahead: Ahead, step_id: StepId, outlook: Outlook, verbose: int) -> Row:
    took = ahead.timings.get(step_id, NO_HISTORY)
    makes = outlook.means == "make" and outlook.decision in {"run", "maybe"}
    time = rough(took.p50) if makes and took.attempts else ""
    cost = ahead.costs.get(step_id)
    price = estimate_words(cost) if cost else "$0" if ahead.costs and outlook.is_work else ""
    return Row(
        sign(outlook),
        step_id,
        why(ahead, step_id, outlook),
        price,
        time,
        _digests(outlook) if verbose > 1 else (),
    )


def _digests(outlook: Outlook) -> tuple[str, ...]:
    refs = outlook.probe.refs if outlook.probe else None
    lines = []
    if refs and refs.config_ref:
        lines.append(f"config ref {refs.config_ref}")
    if outlook.artifact:
        lines.append(f"artifact   {outlook.artifact.digest}")
    return tuple(lines)


def sign(outlook: Outlook) -> str:
    """The sign before a step: first time, again, maybe, reused, waiting, stuck."""
    if outlook.decision == "run":
        is_first = outlook.probe is None or outlook.probe.newest is None
        return "+" if is_first and not outlook.failed_before else "~"
    if outlook.decision == "wait":
        return "!" if outlook.is_stuck else "–" if outlook.is_left_out else "⏸"
    return "?" if outlook.decision == "maybe" else "="


def _removed(ahead: Ahead) -> list[Row]:
    if ahead.earlier is None:
        return []
    return [Row("-", s, removed_words(ahead.earlier, s)) for s in ahead.changes.removed]


def removed_words(earlier: Earlier, step_id: StepId) -> str:
    """That a step left the plan, and what becomes of its files."""
    paths = ", ".join(earlier.plan.steps[step_id].produces)
    prune = again("holdfast run --removed prune")
    return f"left the plan; {paths} is kept (delete: {prune})" if paths else "left the plan"


# --- words -------------------------------------------------------------------------------------------------


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


# --- groups ------------------------------------------------------------------------------------------------


def _grouped(ahead: Ahead, shown: dict[StepId, Outlook]) -> list[Row]:
    """Steps with the same sign and reason below the same cause share a row, where the first of them is."""
    groups: dict[tuple[str, str, str], list[StepId]] = {}
    for step_id, outlook in shown.items():
        root = _root(ahead, step_id)
        cause = "" if root == step_id else root
        groups.setdefault((sign(outlook), outlook.reason.code, cause), []).append(step_id)
    rows = []
    for (mark, code, cause), members in groups.items():
        if len(members) < FEWEST:
            rows += [_row(ahead, step_id, shown[step_id], 0) for step_id in members]
        else:
            rows.append(_group(ahead, mark, code, cause, members))
    return rows


def _group(ahead: Ahead, mark: str, code: str, cause: str, members: Sequence[StepId]) -> Row:
    if mark == "?" and cause:
        words = f"only if {cause} changes"
    elif cause:
        words = f"below {cause}"
    else:
        words = sentence(Reason(code))
    found = {s: ahead.costs[s] for s in members if s in ahead.costs}
    cost = total_words(total(found)) if found else "$0" if ahead.costs else ""
    return Row(mark, count(len(members), "step"), f"{words}: {few(members)}", cost)


def total_words(found: Total) -> str:
    """What steps may cost together, in few words."""
    low, high = dollars(found.p50), dollars(found.p90)
    span = low if low == high else f"{low}–{high.removeprefix('$')}"
    if not found.unknown:
        return span
    return f"? ({UNKNOWN})" if not found.p90 else f"{span} and ?"


def _root(ahead: Ahead, step_id: StepId) -> StepId:
    """The step at the beginning of the chain of causes."""
    seen = set()
    while step_id not in seen:
        seen.add(step_id)
        reason = ahead.outlooks[step_id].reason
        if reason.code not in _PASSING:
            break
        if not reason.because or reason.because[0] not in ahead.outlooks:
            break
        step_id = StepId(reason.because[0])
    return step_id


# --- drawing -----------------------------------------------------------------------------------------------


def _drawn(rows: Sequence[Row], how: View) -> list[str]:
    if how.mode == "a11y":
        return [one_line(_spoken(row)) for row in rows]
    rows = [row._replace(name=one_line(row.name), why=one_line(row.why)) for row in rows]
    names = max(len("STEP"), *(cells(row.name) for row in rows))
    times = max(cells(row.time) for row in rows)
    whys = max(len("WHY"), *(cells(row.why) for row in rows))
    times = max(times, len("TIME")) if times else 0
    costs = max(cells(row.cost) for row in rows)
    costs = max(costs, len("COST")) if costs else 0
    if how.width:
        names = min(names, max(12, how.width * 2 // 5))
        taken = names + times + 7 + (costs + 2 if costs else 0)
        whys = max(12, min(whys, how.width - taken))
    else:
        whys = min(whys, _PLAIN)
    title = Row(" ", "STEP", "WHY", "COST" if costs else "", "TIME" if times else "")
    widths = (names, whys, costs, times)
    lines = _line(title, widths, how)
    for row in rows:
        lines += _line(row, widths, how)
        lines += [piece for text in row.below for piece in wrap(f"     {text}", how.width)]
    return lines


def _spoken(row: Row) -> str:
    if row.sign == "=" and row.name.endswith(" reused"):
        return f"{row.name}, {row.why}"
    cost = f", costs {row.cost}" if row.cost else ""
    return f"{row.name}: {SPOKEN[row.sign]}: {row.why}{cost}"


def _line(row: Row, widths: tuple[int, int, int, int], how: View) -> list[str]:
    names, whys, costs, times = widths
    name = cut(row.name, names) if how.width else row.name
    first, *rest = wrap(row.why, whys, indent=2) if how.width else [row.why]
    cost = f"  {_padded(row.cost, costs)}" if costs else ""
    line = (
        f" {row.sign} {_padded(name, names)}  {_padded(first, whys)}{cost}  {row.time:>{times}}"
    ).rstrip()
    return [line, *(f"   {'':<{names}}  {piece}" for piece in rest)]


def _padded(text: str, width: int) -> str:
    return text + " " * max(0, width - cells(text))


def next_lines(commands: Sequence[str], how: View) -> list[str]:
    """The end of a preview: as many of the commands as fit, the first in any case."""
    if not commands:
        return []
    while len(commands) > 1 and how.width and cells(_commands(commands)) > how.width:
        commands = commands[:-1]
    return ["", *folded(_commands(commands), how.width)]


def _commands(commands: Sequence[str]) -> str:
    return "next: " + "    ".join(commands)
