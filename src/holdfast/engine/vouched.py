"""Whether everything that needed a person's word had it: a second reading of what the lines say.

It shares nothing with the book of approvals but the meaning of the events. An attempt that needed an
approval names it; the line says that it was asked about this very situation, decided once, with yes,
and marked as used by this attempt after that: not ended, not taken back, and a yes for one attempt
only once. An artifact that people had to accept was accepted by them with this very content.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from holdfast.engine.elsewhere import came_with
from holdfast.engine.lines import line_journal
from holdfast.engine.referee import Reading
from holdfast.errors import IntegrityError
from holdfast.model.digest import Digest
from holdfast.model.line import RunImported
from holdfast.model.plan import RunId
from holdfast.ports import RunRow, Store

_Body = Mapping[str, Any]


class Said(NamedTuple):
    """An event of the line with its place and its time."""

    seq: int
    at: int
    body: _Body


@dataclass
class Words:
    """What one line says about approvals, and everything in it that cannot be."""

    asked: dict[str, Said] = field(default_factory=dict)
    decided: dict[str, Said] = field(default_factory=dict)
    revoked: dict[str, Said] = field(default_factory=dict)
    used: dict[str, list[Said]] = field(default_factory=dict)
    structures: set[str] = field(default_factory=set)
    problems: list[str] = field(default_factory=list)


def unvouched(
    store: Store, rows: Sequence[RunRow], readings: Mapping[RunId, Reading]
) -> Iterator[str]:
    """Everything that happened without the approval it needed, or under one that did not hold."""
    lines: dict[str, Words] = {}
    for row in rows:
        if row.imported:
            if readings[row.run].asking and (came := came_with(store, row)) and came.store:
                yield from _attempts(store, row.run, readings[row.run], _brought(store, came))
            continue
        journal = line_journal(row.project, row.line)
        if journal not in lines:
            lines[journal] = _heard(store, journal)
            yield from lines[journal].problems
        reading = readings[row.run]
        if reading.asking:
            yield from _attempts(store, row.run, reading, lines[journal])


def _heard(store: Store, journal: str) -> Words:
    words = Words()
    name = journal.removeprefix("line:")
    for row in store.raw(journal):
        if row.kind == "plan_versioned":
            words.structures.add(json.loads(row.body)["w_ref"])
        if not row.kind.startswith("approval_"):
            continue
        said = Said(row.seq, row.at, json.loads(row.body))
        told = _hear(words, row.kind, said)
        if told:
            words.problems.append(f"line '{name}': event {row.seq}: {told}")
    return words


def _brought(store: Store, came: RunImported) -> Words:
    """What people had said where a run comes from; whether that was asked and given there is told there."""
    words = Words()
    for one in came.vouched:
        asked = {"gate": one.gate, "step": one.step, "subject": one.subject}
        used = {"run": one.run, "step": one.step, "attempt": one.attempt}
        words.asked[one.approval] = Said(0, one.at, asked)
        words.used.setdefault(one.approval, []).append(Said(0, one.at, used))
        words.structures.add((_document(store, one.subject) or {}).get("plan", ""))
    return words


def _hear(words: Words, kind: str, said: Said) -> str:
    """Take one event in; what is wrong with it."""
    approval = said.body["approval"]
    if kind == "approval_requested":
        again = approval in words.asked
        words.asked.setdefault(approval, said)
        return f"approval '{approval}' is asked for twice" if again else ""
    if approval not in words.asked:
        return f"approval '{approval}' was never asked for"
    if kind == "approval_decided":
        if approval in words.decided or approval in words.revoked:
            return f"approval '{approval}' is decided twice"
        words.decided[approval] = said
        same = said.body["subject"] == words.asked[approval].body["subject"]
        return "" if same else f"approval '{approval}' is decided for something else"
    if kind == "approval_revoked":
        words.revoked.setdefault(approval, said)
        return ""
    words.used.setdefault(approval, []).append(said)
    return _misused(words, approval, said)


def _misused(words: Words, approval: str, use: Said) -> str:
    decided = words.decided.get(approval)
    if decided is None or not decided.body["yes"]:
        return f"approval '{approval}' is used and was not given"
    if approval in words.revoked:
        return f"approval '{approval}' is used after it was revoked"
    until, scope = decided.body.get("until", 0), decided.body.get("scope", "once")
    if until and use.at >= until:
        return f"approval '{approval}' is used after its end"
    if scope == "run" and decided.body.get("run") != use.body["run"]:
        return f"approval '{approval}' is used by another run than it is for"
    if scope == "once" and len(words.used[approval]) > 1:
        return f"approval '{approval}' for one attempt is used twice"
    return ""


# --- what needed one ------------------------------------------------------------------------------


def _attempts(store: Store, run: RunId, reading: Reading, words: Words) -> Iterator[str]:
    for body in reading.begun_asking:
        step, number = body["step"], body["attempt"]
        given = {
            name: words.asked[name].body
            for name in body.get("approvals", ())
            if name in words.asked
        }
        for gate, after in _wanted(reading.asking[step], body):
            if gate == "step" and _repeats(store, words, run, body):
                continue
            if not any(
                _covers(store, words, asked, gate, after, body)
                and _was_used(words, name, run, step, number)
                for name, asked in given.items()
            ):
                what = f"the approval after '{after}'" if after else f"an approval ({gate})"
                yield f"run '{run}': attempt {number} of step '{step}' began without {what}"
    for body in reading.accepted_asking:
        step, number = body["step"], body["attempt"]
        for guard in _people(reading.asking[step].get("guards", ())):
            if not _was_accepted(store, words, run, body, guard):
                yield (
                    f"run '{run}': attempt {number} of step '{step}' was accepted"
                    f" without the person that guard '{guard}' asks"
                )


def _wanted(step: _Body, begun: _Body) -> Iterator[tuple[str, str]]:
    """The gates that an attempt had to pass; content that was kept already passes them all."""
    kept = begun.get("reguard") is not None and not begun.get("approvals")
    if kept or begun["reason"][0] == "output_modified":
        return
    approve = step.get("approve", "")
    if approve in {"always", "on_change"}:
        yield "step", ""
    made, most = begun["attempt"] - 1, step.get("budget", {}).get("attempts", 0)
    if approve == "over_budget" and made and most and made % most == 0:
        yield "budget", ""
    for need in step.get("needs", ()):
        if need[1] == "approval" or need[3:]:  # the name of an approver stands behind the key
            yield "edge", need[0]
    if step.get("uses") == "human":
        yield "answer", ""


def _repeats(store: Store, words: Words, run: RunId, begun: _Body) -> bool:
    """Whether people let this attempt repeat an effect, and an earlier one had a yes to the very same."""
    step, number = begun["step"], begun["attempt"]
    uses = [name for name in words.used if name not in words.revoked]
    return any(
        words.asked[name].body["gate"] == "effect" and _was_used(words, name, run, step, number)
        for name in uses
    ) and any(_covers(store, words, words.asked[name].body, "step", "", begun) for name in uses)


def _covers(store: Store, words: Words, asked: _Body, gate: str, after: str, begun: _Body) -> bool:
    """Whether a question was about this very attempt."""
    if asked["gate"] != gate or asked["step"] != begun["step"]:
        return False
    document = _document(store, asked["subject"])
    if document is None:
        return True
    same = document["input_ref"] == begun["input_ref"] and document["plan"] in words.structures
    return same and document.get("after", "") == after


def _was_used(words: Words, approval: str, run: str, step: str, attempt: int) -> bool:
    wanted = (run, step, attempt)
    uses = (item.body for item in words.used.get(approval, ()))
    return any((use["run"], use["step"], use["attempt"]) == wanted for use in uses)


def _was_accepted(store: Store, words: Words, run: RunId, body: _Body, guard: str) -> bool:
    for name, asked in words.asked.items():
        if asked.body["gate"] != "guard" or asked.body["step"] != body["step"]:
            continue
        document = _document(store, asked.body["subject"])
        fits = document is None or (
            document["guard"] == guard and document["artifact"] == body["digest"]
        )
        if fits and _was_used(words, name, run, body["step"], body["attempt"]):
            return True
    return False


def _people(guards: Sequence[_Body], path: str = "") -> Iterator[str]:
    """The guards that must ask a person in any case: not those of which another one is enough."""
    for guard in guards:
        name = path + (guard.get("name") or guard["kind"])
        if guard["kind"] == "human":
            yield name
        elif guard["kind"] == "all":
            yield from _people(guard.get("items", ()), f"{name}/")


def _document(store: Store, subject: str) -> _Body | None:
    """What a question covers; None if that was purged."""
    try:
        found: _Body = json.loads(store.get(Digest(subject)))
    except IntegrityError:
        return None
    return found
