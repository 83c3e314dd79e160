"""The answer of `why`, in words and as one object."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from shlex import quote
from typing import NamedTuple

from holdfast.cli.gates import ASKED
from holdfast.cli.say import out, seconds, short
from holdfast.cli.view import view
from holdfast.core.causes import PASSING, Cause, Piece, part_word
from holdfast.core.effects import DOUBTED, RECEIPT_GONE, UNCONFIRMED
from holdfast.core.preview import KEPT_OUT, STUCK, Outlook
from holdfast.core.reasons import sentence
from holdfast.core.views import reason_json
from holdfast.engine.inquiry import Shown
from holdfast.model.artifact import Artifact
from holdfast.model.digest import Json
from holdfast.model.event import Reason
from holdfast.model.plan import RunId, Step, StepId
from holdfast.model.text import cells, cut, one_line, wrap

SCHEMA = "holdfast.why/1"
MOST_LINES = 12  # of one file or value
MOST_PIECES = 5  # files or values of one part
MOST_NAMES = 6
LONGEST_WAY = 8
_MARGIN = 14
LEAST = 100  # milliseconds; less is said as this
_FILES = frozenset({"inputs", "files", "code", "output", "upstream", "tools"})


class Root(NamedTuple):
    """A cause that lies above the step that was asked for, with the content behind it."""

    cause: Cause
    shown: tuple[Shown, ...]


@dataclass(frozen=True, slots=True)
class Told:
    """Everything that is said about one step."""

    step: Step
    decision: str  # run, reuse, maybe, wait; or its state in a run
    reason: Reason | None
    head: str = ""  # the first sentence, if it is not the usual one
    run: RunId | None = None
    against: RunId | None = None
    ran_because: Reason | None = None
    shown: tuple[Shown, ...] = ()
    unchanged: tuple[str, ...] = ()
    unchanged_words: tuple[str, ...] = ()
    maybe: tuple[StepId, ...] = ()
    causes: tuple[Cause, ...] = ()
    roots: tuple[Root, ...] = ()
    otherwise: str = ""
    after: tuple[str, ...] = ()
    rows: tuple[tuple[str, str], ...] = ()
    failure: tuple[str, ...] = ()
    next: tuple[str, ...] = ()
    kept: Artifact | None = None
    took: int | None = None


# --- the counterfactual ---------------------------------------------------------------------------------

_INSTEAD = {
    "forced": "if it had not been asked for",
    "expired": "with a longer fresh_for",
    "output_modified": "with the output as it was",
    "previous_failed": "",
    "previous_interrupted": "",
}


def otherwise(
    outlook: Outlook,
    shown: Sequence[Shown],
    roots: Sequence[Root],
    maybe: Sequence[StepId],
    kept: tuple[Artifact | None, int | None],
) -> str:
    """What would be reused, if what changed had not; nothing if there is nothing to reuse."""
    artifact, took = kept
    if outlook.decision in {"reuse", "wait"} or artifact is None or not artifact.reusable:
        return ""
    code = outlook.reason.code
    if code in _INSTEAD:
        parts = [_INSTEAD[code]] if _INSTEAD[code] else []
    else:
        parts = _as_it_was(shown)
        above = dict.fromkeys(name for root in roots for name in _at_the_root(root, maybe))
        parts += [f"{_some(list(above), 3)} as before"] if above else []
    parts += [f"an equal {_some(maybe, 3)}"] if maybe else []
    if not parts:
        return ""
    origin = short(artifact.run) if artifact.run else "a person's version"
    cost = f" (~{seconds(max(took, LEAST))})" if took is not None else ""
    condition = _listed(parts)
    if not condition.startswith(("if ", "with ")):
        condition = f"with {condition}"
    return f"{condition} this would be reused from {origin}{cost}"


def _at_the_root(root: Root, maybe: Sequence[StepId]) -> Sequence[str]:
    """What would have to be as before: files if that is all, else the step."""
    if root.cause.step in maybe:
        return ()
    parts = [item.change for item in root.shown if item.change.part != "upstream"]
    if parts and all(change.part in {"inputs", "files", "code"} for change in parts):
        return [name for change in parts for name in change.names]
    return [root.cause.step]


def _as_it_was(shown: Sequence[Shown]) -> list[str]:
    words: dict[str, None] = {}
    for item in shown:
        change = item.change
        if change.part == "upstream":
            continue
        if change.part in {"inputs", "files", "code"} and change.names:
            words[f"{_some(change.names, 2)} as before"] = None
        else:
            words[f"the old {part_word(change.part)}"] = None
    return list(words)


def _some(names: Sequence[str], most: int = MOST_NAMES) -> str:
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def _listed(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + " and " + parts[-1]


# --- as one object --------------------------------------------------------------------------------------


def told_json(told: Told) -> dict[str, Json]:
    """The answer as programs read it."""
    way = told.causes[0] if told.causes else None
    reasons = {cause.step: cause.reason for cause in told.causes}
    links: list[Json] = [
        {"step": step, "reason": reason_json(_on_the_way(step, place, way, reasons, told))}
        for place, step in enumerate(way.way if way else ())
    ]
    answer: dict[str, Json] = {
        "schema": SCHEMA,
        "step": told.step.id,
        "decision": told.decision,
        "reason": reason_json(told.reason),
        "changed": [_shown_json(item) for item in told.shown],
        "unchanged": list(told.unchanged),
        "root": links,
        "otherwise": told.otherwise,
        "roots": [
            {
                "step": cause.step,
                "reason": reason_json(cause.reason),
                "way": list(cause.way),
                "changed": [
                    _shown_json(item)
                    for root in told.roots
                    if root.cause == cause
                    for item in root.shown
                ],
            }
            for cause in told.causes
            if cause.way
        ],
        "more_roots": sum(not cause.way for cause in told.causes),
        "may_change": list(told.maybe),
        "after": [name.partition(" ")[0] for name in told.after],
        "notes": dict(told.rows),
        "next": list(told.next),
    }
    if told.run is not None:
        answer["run"] = told.run
        answer["ran_because"] = reason_json(told.ran_because)
    if told.against is not None:
        answer["against"] = told.against
    if told.kept is not None:
        answer["kept"] = {"run": told.kept.run or None, "digest": told.kept.digest}
    return answer


def _on_the_way(
    step: StepId, place: int, way: Cause | None, reasons: dict[StepId, Reason], told: Told
) -> Reason | None:
    """The reason of a step between a root cause and the step that was asked for."""
    if step in reasons:
        return reasons[step]
    if step == told.step.id and told.reason is not None:
        return told.reason
    above = way.way[place - 1] if way and place else step
    return Reason("upstream_changed", (above,))


def _shown_json(item: Shown) -> dict[str, Json]:
    change = item.change
    above = change.part == "upstream"
    return {
        "part": change.part,
        "code": change.code,
        "names": list(change.names),
        "before": None if above else change.before,
        "after": list(change.names) if above else change.after,
        "content": [_piece_json(piece) for piece in item.pieces],
    }


def _piece_json(piece: Piece) -> dict[str, Json]:
    return {
        "name": piece.name,
        "how": piece.how,
        "added": piece.added,
        "removed": piece.removed,
        "note": piece.note,
        "edits": [
            {"line": edit.line, "removed": list(edit.removed), "added": list(edit.added)}
            for edit in piece.edits
        ],
    }


# --- in words -------------------------------------------------------------------------------------------

_VERBS = {
    "reuse": "is reused",
    "maybe": "may run again",
    "wait": "waits",
    "done": "ran in {run}",
    "reused": "was reused in {run}",
    "failed": "failed in {run}",
    "skipped": "was skipped in {run}",
    "pending": "has not run in {run}",
    "running": "is running in {run}",
    "waiting": "waits in {run}",
}


class Line(NamedTuple):
    """A line of the answer; `raw` if it is somebody's content, never read as ours."""

    text: str = ""
    raw: bool = False


def print_told(told: Told) -> None:
    """The answer for a person, on a terminal or wherever stdout leads."""
    for line in told_lines(told):
        out(line.text, raw=line.raw)


def told_lines(told: Told) -> Iterator[Line]:
    """The answer for a person: what, why, the content, what else, and what next."""
    yield from _wrapped("", "  ", told.head or _head(told))
    if told.failure or told.shown or told.roots or told.maybe or told.unchanged or told.rows:
        yield Line()
    for line in told.failure:
        yield _content(line)
    if told.failure and told.ran_because is not None:
        yield from _row("ran because", sentence(told.ran_because))
    yield from _changes(told)
    for name in told.maybe:
        yield from _row("may change", f"{name} (runs first, its artifact may stay equal)")
    if told.unchanged_words:
        yield from _row("unchanged", " · ".join(told.unchanged_words))
    for label, text in told.rows:
        yield from _row(label, text)
    yield from _end(told)


def _head(told: Told) -> str:
    if told.decision == "run":
        verb = "will run again" if told.kept is not None else "will run"
    elif told.decision == "wait" and told.reason is not None and told.reason.code in STUCK:
        verb = "cannot run"
    else:
        run = short(told.run) if told.run else "no run yet"
        verb = _VERBS.get(told.decision, told.decision).format(run=run)
    if told.reason is None:
        return f"{told.step.id} {verb}."
    above = [cause.step for cause in told.causes if cause.step != told.step.id]
    if told.reason.code in PASSING and len(above) > 1:
        what = f"{len(above)} steps above it {_verb(told.causes, told.reason.code, many=True)}"
        return f"{told.step.id} {verb}: {what}: {_some(above, 4)}."
    if told.reason.code == "upstream_changed" and len(above) == 1:
        cause = next(c for c in told.causes if c.step == above[0])
        if cause.reason.code not in PASSING:
            return f"{told.step.id} {verb}, because of {above[0]}: {sentence(cause.reason)}."
    return f"{told.step.id} {verb}: {sentence(told.reason)}."


def _changes(told: Told) -> Iterator[Line]:
    passed_on = told.reason is None or told.reason.code in PASSING
    if passed_on:
        yield from _roots_lines(told, "root cause")
    for item in told.shown:
        if item.change.part != "upstream" or item.pieces:
            yield from _pieces_lines(item, "changed", _MARGIN)
        elif not told.roots:
            yield from _row("changed", f"{_some(item.change.names)} (above it)")
    if not passed_on:
        yield from _roots_lines(told, "also above")


def _roots_lines(told: Told, label: str) -> Iterator[Line]:
    above = [cause for cause in told.causes if cause.step != told.step.id]
    for number, root in enumerate(told.roots, 1):
        count = f"  ({number} of {len(above)})" if len(above) > 1 else ""
        yield from _row(label, f"{root.cause.step}: {_bare(root.cause.reason)}{count}")
        for item in root.shown:
            if item.change.part != "upstream":
                yield from _pieces_lines(item, "", _MARGIN + 2)
        yield from _way_lines(root, told, alone=len(above) == 1)
    rest = [cause.step for cause in above[len(told.roots) :]]
    if rest and told.roots:
        yield from _row(label, f"and {len(rest)} more: {_some(rest)}")


def _bare(reason: Reason) -> str:
    """The sentence without names: the content follows."""
    return (
        sentence(Reason(reason.code))
        if reason.because and reason.code in _NAMED
        else sentence(reason)
    )


_NAMED = frozenset({"input_changed", "command_changed", "output_modified", "parameters_changed"})


def _way_lines(root: Root, told: Told, *, alone: bool) -> Iterator[Line]:
    """The chain from the step that was asked for up to its cause; of several causes on one line each."""
    way = root.cause.way[::-1]
    if not alone:
        gap = len(way) - LONGEST_WAY
        short_way = [*way[:3], f"… {gap} more …", *way[3 + gap :]] if gap > 1 else list(way)
        if len(way) > 2:  # noqa: PLR2004 - a step and its need say it already
            yield from _row("chain", " because ".join(short_way))
        return
    verb = _verb([root.cause], told.reason.code if told.reason else "")
    words = [way[0], *(f"because {step} {verb}" for step in way[1:])]
    names = [n for item in root.shown for n in item.change.names if item.change.part in _FILES]
    if names:
        words.append(f"because {_some(names, 2)} changed")
    gap = len(words) - LONGEST_WAY
    if gap > 1:
        words = [*words[:3], f"… through {gap} more steps …", *words[3 + gap :]]
    for depth, text in enumerate(words):
        yield from _row("chain" if depth == 0 else "", "  " * depth + text)


def _verb(causes: Iterable[Cause], code: str, *, many: bool = False) -> str:
    """What the steps above did, with which one comes from a step that has this reason."""
    if code == "awaiting_person":
        return "wait" if many else "waits"
    if not code.startswith(("dependency_", "condition_")):
        return "changed"
    if all(cause.reason.code in KEPT_OUT for cause in causes):
        return "were left out" if many else "was left out"
    return "failed"


def _pieces_lines(item: Shown, label: str, margin: int) -> Iterator[Line]:
    many = item.pieces[:MOST_PIECES]
    for piece in many:
        yield from _piece_lines(piece, item.change.part, label, margin)
    rest = [piece.name for piece in item.pieces[MOST_PIECES:]]
    if rest:
        yield from _line(label, f"and {len(rest)} more: {_some(rest, 4)}", margin)
    if not item.pieces and item.change.part != "upstream":
        names = f": {_some(item.change.names)}" if item.change.names else ""
        yield from _line(label, f"{part_word(item.change.part)}{names}", margin)


def _piece_lines(piece: Piece, part: str, label: str, margin: int) -> Iterator[Line]:
    flat = _inline(piece) if part not in {*_FILES, "prompt", "run", "shell", "guards"} else ""
    if flat:
        yield from _line(label, flat, margin)
        return
    place = f":{piece.edits[0].line}" if piece.edits and piece.how == "changed" else ""
    notes = [] if piece.how == "changed" else [piece.how]
    if len(piece.edits) > 1 or piece.added + piece.removed > MOST_LINES:
        notes.append(f"+{piece.added} −{piece.removed}")
    notes += [piece.note] if piece.note else []
    yield from _line(
        label, f"{piece.name}{place}" + (f"  ({', '.join(notes)})" if notes else ""), margin
    )
    lines = list(_lines(piece))
    for line in lines[:MOST_LINES]:
        yield _content(" " * (margin + 2) + line)
    if len(lines) > MOST_LINES:
        yield Line(" " * (margin + 2) + f"… {len(lines) - MOST_LINES} more lines")


def _inline(piece: Piece) -> str:
    """A value of one line on each side: `with.size: 1 → 2`."""
    if piece.note:
        return f"{piece.name}: {piece.note}"
    if len(piece.edits) != 1 or piece.added > 1 or piece.removed > 1:
        return ""
    edit = piece.edits[0]
    if not edit.removed:
        return f"{piece.name}: {edit.added[0]} (new)"
    if not edit.added:
        return f"{piece.name}: gone, was {edit.removed[0]}"
    text = f"{piece.name}: {edit.removed[0]} → {edit.added[0]}"
    return text if len(text) <= 60 else ""  # noqa: PLR2004 - else below each other


def _lines(piece: Piece) -> Iterable[str]:
    for number, edit in enumerate(piece.edits):
        if number:
            yield f"line {edit.line}"
        yield from (f"- {line}" for line in edit.removed)
        yield from (f"+ {line}" for line in edit.added)


def _end(told: Told) -> Iterator[Line]:
    said = []
    if told.otherwise:
        said.append(told.otherwise[0].upper() + told.otherwise[1:] + ".")
    if told.after:
        said.append(f"After it: {_some(told.after)}.")
    if said:
        yield Line()
    for text in said:
        yield from _wrapped("  ", "  ", text)
    if told.next:
        yield Line()
    for place, command in enumerate(told.next):
        yield Line(("next: " if place == 0 else "      ") + command)


def commands_for(told: Told, known: Iterable[str]) -> tuple[str, ...]:
    """What can be done now; only commands that this version has."""
    name = quote(told.step.id)
    run = short(told.kept.run) if told.kept is not None and told.kept.run else ""
    code = told.reason.code if told.reason is not None else ""
    if told.decision == "wait" and code == UNCONFIRMED:
        offers = [f"holdfast retry {name}    (does it again: look at its effect first)"]
    elif told.decision == "wait" and code == RECEIPT_GONE:
        offers = [f"holdfast amend {name} FILE    (says what it gave)"]
        offers.append(f"holdfast run --force-node {name}    (does it again)")
    elif told.decision == "wait" and code == DOUBTED:
        offers = [f"holdfast run --force-node {name}    (does it again: look at its effect first)"]
    elif told.decision == "wait" and code in ASKED and not (told.reason and told.reason.because):
        offers = ["holdfast approvals", "holdfast run"]
    elif told.decision == "wait":
        above = [cause.step for cause in told.causes if cause.step != told.step.id]
        offers = [f"holdfast why {quote(above[0])}"] if above else ["holdfast plan"]
    elif told.decision == "reuse":
        offers = [f"holdfast show {name}", f"holdfast run --force-node {name}"]
    elif told.decision in {"run", "maybe"}:
        offers = ["holdfast run"]
        if run and code.endswith("_changed"):
            offers.append(f"holdfast diff {run} @ -s {name} --outputs    (after the run)")
        if run and code.endswith("_changed") and code != "upstream_changed":
            offers.append(f'holdfast accept {name} --from {run} --because "…"')
    elif told.decision in {"done", "reused"}:
        offers = [f"holdfast show {name}", f"holdfast why {name}    (about now)"]
    else:
        offers = [f"holdfast status {short(told.run)}" if told.run else "holdfast status"]
    return tuple(offer for offer in offers if offer.split()[1] in known)


# --- lines that fit -------------------------------------------------------------------------------------


def _row(label: str, text: str) -> Iterator[Line]:
    yield from _line(label, text, _MARGIN)


def _line(label: str, text: str, margin: int) -> Iterator[Line]:
    head = f"  {label:<{_MARGIN - 3}} " if label else ""
    yield from _wrapped(f"{head:<{margin}}", " " * (margin + 2), text)


def _wrapped(first: str, later: str, text: str) -> Iterator[Line]:
    """A line with its continuation below it, none wider than the terminal; nothing in it begins a new one."""
    text, width = one_line(text), view().width
    if not width or cells(first + text) <= width:
        yield Line((first + text).rstrip())
        return
    lead = " " * (len(text) - len(text.lstrip()))
    room = max(20, width - max(len(first), len(later)) - len(lead))
    for place, piece in enumerate(wrap(text.lstrip(), room, indent=0)):
        yield Line((later if place else first) + lead + piece)


def _content(text: str) -> Line:
    """A line of somebody's content: cut where the terminal ends, never read as ours."""
    width, text = view().width, one_line(text.expandtabs(4)).rstrip()
    return Line(cut(text, width) if width else text, raw=True)
