"""The content behind a change, and the causes above a step: pure comparison, nothing is read here.

A *piece* is one thing that differs: a file, or a value of the key. Its *edits* are the lines that went
and came, each with its place. Texts are given by the caller; a text that nobody has is None, and the
piece then says so instead of showing a digest.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from holdfast.core.changes import Change
from holdfast.core.waves import Graph
from holdfast.model.digest import Digest, Json, same
from holdfast.model.event import Reason
from holdfast.model.plan import StepId

NOT_KEPT = "content not kept"
_MOST_CELLS = 1_000_000  # lines against lines; beyond it a block counts as replaced
FILE_PARTS = ("inputs", "files", "code")
_LISTS = frozenset({"needs", "produces", "outputs", "absent", "unresolved"})

Text = Callable[[str, Digest], str | None]  # of a path, under a digest; None if nobody has it


class Edit(NamedTuple):
    """Lines that went and came in one place; `line` counts from 1 in the newer text."""

    line: int
    removed: tuple[str, ...]
    added: tuple[str, ...]


class Piece(NamedTuple):
    """One file or value that differs. Without edits, `note` says why no content is shown."""

    name: str
    how: str  # changed, added, removed
    edits: tuple[Edit, ...] = ()
    note: str = ""

    @property
    def added(self) -> int:
        """How many lines came."""
        return sum(len(edit.added) for edit in self.edits)

    @property
    def removed(self) -> int:
        """How many lines went."""
        return sum(len(edit.removed) for edit in self.edits)


class Mark(NamedTuple):
    """A file as a key names it."""

    digest: Digest | None
    executable: bool = False
    target: str = ""


# --- texts ----------------------------------------------------------------------------------------------


def edits_of(old: str, new: str) -> tuple[Edit, ...]:
    """The lines that differ. Costs little even for texts that were made to be slow to compare."""
    before, after = old.splitlines(), new.splitlines()
    head = _common(zip(before, after, strict=False))
    tail = _common(zip(before[head:][::-1], after[head:][::-1], strict=False))
    before, after = before[head : len(before) - tail], after[head : len(after) - tail]
    if not before and not after:
        return ()
    if len(before) * len(after) > _MOST_CELLS:
        return (Edit(head + 1, tuple(before), tuple(after)),)
    codes = SequenceMatcher(None, before, after).get_opcodes()
    return tuple(
        Edit(head + j1 + 1, tuple(before[i1:i2]), tuple(after[j1:j2]))
        for tag, i1, i2, j1, j2 in codes
        if tag != "equal"
    )


def _common(pairs: Iterable[tuple[str, str]]) -> int:
    count = 0
    for old, new in pairs:
        if old != new:
            break
        count += 1
    return count


# --- files ----------------------------------------------------------------------------------------------


def files_in(parts: Mapping[str, Json]) -> Iterator[tuple[str, Mark]]:
    """Every file that observed parts of a key name, those of guards included."""
    pending: list[Json] = [parts]
    while pending:
        value = pending.pop()
        if isinstance(value, Mapping):
            for name in FILE_PARTS:
                yield from _marks(value.get(name)).items()
            pending += [value.get("guards"), value.get("observed"), value.get("items")]
        elif isinstance(value, list | tuple):
            pending += value


def _marks(value: Json) -> dict[str, Mark]:
    found = value if isinstance(value, Mapping) else {}
    return {path: _mark(entry) for path, entry in found.items()}


def _mark(value: Json) -> Mark:
    if isinstance(value, str):
        return Mark(Digest(value[:64]), value.endswith("+x"))
    if isinstance(value, list | tuple) and value:
        target = str(value[2]) if len(value) > 2 else ""  # noqa: PLR2004 - digest, bit, target
        return Mark(Digest(str(value[0])) if value[0] else None, bool(value[1]), target)
    return Mark(None)


def only(change: Change, names: Sequence[str]) -> Change:
    """The same change, of these files alone."""
    before = {name: value for name, value in _mapping(change.before).items() if name in names}
    after = {name: value for name, value in _mapping(change.after).items() if name in names}
    return change._replace(before=before, after=after)


def compare_files(
    before: Mapping[str, Mark], after: Mapping[str, Mark], old: Text, new: Text
) -> tuple[Piece, ...]:
    """The files that differ, by path, with the lines that differ where both texts are known."""
    return tuple(
        _file(path, before.get(path), after.get(path), old, new)
        for path in sorted({*before, *after})
        if before.get(path) != after.get(path)
    )


def _file(path: str, was: Mark | None, now: Mark | None, old: Text, new: Text) -> Piece:
    how = "added" if was is None else "removed" if now is None else "changed"
    if was and now and was.digest == now.digest:
        if was.target != now.target:
            link = f"it is a link to {now.target or 'nothing'}, was to {was.target or 'nothing'}"
            return Piece(path, how, note=link)
        return Piece(path, how, note=f"it is {'now' if now.executable else 'no longer'} executable")
    text_was = old(path, was.digest) if was and was.digest else None
    text_now = new(path, now.digest) if now and now.digest else None
    if (was and text_was is None) or (now and text_now is None):
        return Piece(path, how, note=NOT_KEPT)
    found = edits_of(text_was or "", text_now or "")
    return Piece(path, how, found, "" if found else "only its line ends or its kind changed")


# --- values ---------------------------------------------------------------------------------------------


def pieces_of(change: Change, old: Text, new: Text) -> tuple[Piece, ...]:
    """What is behind a change of a part of the key."""
    before, after = change.before, change.after
    if change.part in FILE_PARTS or change.part == "output":
        return compare_files(_marks(before), _marks(after), old, new)
    if change.part == "guards":
        was = dict(files_in(_mapping(before)))
        now = dict(files_in(_mapping(after)))
        listed = _value("guards", _mapping(before).get("guards"), _mapping(after).get("guards"))
        return (*listed, *compare_files(was, now, old, new))
    if change.part == "env":
        note = "its value changed (values are never kept)"
        return tuple(Piece(name, "changed", note=note) for name in change.names)
    if change.part == "tools":
        return compare_files(_marks(before), _marks(after), old, new)
    if change.part == "context":
        return compare_files(_page(before), _page(after), old, new)
    if change.part == "upstream":  # what lies above is compared by whoever knows both artifacts
        return ()
    if change.part in {"with", "parameters", "prompt"} and isinstance(before or after, Mapping):
        return _members(change.part, _mapping(before), _mapping(after))
    return _value(change.part, before, after)


def _page(digest: Json) -> dict[str, Mark]:
    return {"what it is told": Mark(Digest(digest))} if isinstance(digest, str) else {}


def _members(part: str, before: Mapping[str, Json], after: Mapping[str, Json]) -> tuple[Piece, ...]:
    names = sorted(n for n in {*before, *after} if not same(before.get(n), after.get(n)))
    return tuple(
        piece for n in names for piece in _value(f"{part}.{n}", before.get(n), after.get(n))
    )


def _value(name: str, before: Json, after: Json) -> tuple[Piece, ...]:
    if same(before, after):
        return ()
    how = "added" if before is None else "removed" if after is None else "changed"
    part = name.partition(".")[0]
    return (Piece(name, how, edits_of(as_text(part, before), as_text(part, after))),)


def as_text(part: str, value: Json) -> str:
    """A value in lines that can be compared and read."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple):
        items = [item if isinstance(item, str) else _json(item) for item in value]
        if part == "run":
            return shlex.join(items)
        if part in _LISTS or part == "guards":
            return "\n".join(items)
    return _json(value)


def _json(value: Json) -> str:
    value = _numbers(value)
    flat = json.dumps(value, ensure_ascii=False, sort_keys=True)
    if len(flat) <= 72:  # noqa: PLR2004 - fits on a line of a terminal, indented
        return flat
    return json.dumps(value, ensure_ascii=False, sort_keys=True, indent=1)


def _numbers(value: Json) -> Json:
    """Numbers that a key spells as text, as numbers again. Plans are nested at most some dozen deep."""
    if isinstance(value, Mapping):
        if list(value) == ["$decimal"]:
            return float(str(value["$decimal"]))
        return {name: _numbers(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_numbers(item) for item in value]
    return value


def _mapping(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, Mapping) else {}


def counted(piece: Piece) -> str:
    """A file or value with how much of it differs: `sources/nl.md (+12 −3)`."""
    if piece.edits:
        return f"{piece.name} (+{piece.added} −{piece.removed})"
    return piece.name if piece.how == "changed" else f"{piece.name} ({piece.how})"


# --- causes above ---------------------------------------------------------------------------------------

PASSING = frozenset(
    {"upstream_changed", "dependency_failed", "dependency_skipped", "awaiting_person"}
)


MOST_WAYS = 50  # causes whose way is worked out: ways are as long as the plan is deep


class Cause(NamedTuple):
    """A root cause: a step that changed by itself, and the way down to the step that was asked for."""

    step: StepId
    reason: Reason
    way: tuple[
        StepId, ...
    ]  # the cause first, the step that was asked for last; of the nearest only


def causes(graph: Graph, step_id: StepId, reasons: Mapping[StepId, Reason]) -> tuple[Cause, ...]:
    """All root causes of a step, the nearest first; `reasons` has the steps that do not just stand.

    A step that only passes on what is above it is no cause, unless nothing above it is known.
    """
    found: list[Cause] = []
    below: dict[StepId, StepId | None] = {step_id: None}
    queue = [step_id] if step_id in reasons else []
    for current in queue:  # grows while it is walked: breadth first
        reason = reasons[current]
        above = [s for s in _above(graph, current, reason) if s in reasons]
        if reason.code not in PASSING or not above:
            way = tuple(_way(current, below)) if len(found) < MOST_WAYS else ()
            found.append(Cause(current, reason, way))
        for need in above:
            if need not in below:
                below[need] = current
                queue.append(need)
    return tuple(found)


def _above(graph: Graph, step_id: StepId, reason: Reason) -> Sequence[StepId]:
    if reason.code in PASSING and reason.because:
        return [StepId(name) for name in reason.because]
    if reason.code in PASSING or reason.code.endswith("_changed"):
        return sorted(graph.steps[step_id].data_needs, key=graph.rank.__getitem__)
    return ()


def _way(step_id: StepId, below: Mapping[StepId, StepId | None]) -> Iterator[StepId]:
    current: StepId | None = step_id
    while current is not None:
        yield current
        current = below[current]


# --- what stayed ----------------------------------------------------------------------------------------

_WORDS: Mapping[str, str] = {  # of those that people call otherwise
    "parameters": "sampling",
    "uses": "generator",
    "may_use": "tools of the model",
    "run": "command",
    "shell": "command",
    "with": "parameters",
    "tools": "tool versions",
    "env": "environment",
    "outputs": "contract",
    "constraints": "specification",
    "agent": "specification",
    "action": "specification",
    "files": "script",
    "code": "source",
    "absent": "source",
    "unresolved": "source",
    "key": "way keys are made",
}


def part_word(part: str) -> str:
    """A part of the key as people say it."""
    return _WORDS.get(part, part)


def unchanged_words(
    own: Mapping[str, Json],
    unchanged: Iterable[str],
    changed: Mapping[str, int],
    above: tuple[int, int],
) -> list[str]:
    """The parts that stayed, in words and numbers.

    `changed` counts the files of a part that differ; `above` is how many of the needs stayed, of all.
    """
    ext = _mapping(own.get("ext"))
    stayed, needs = above
    words: dict[str, None] = {}
    for part in unchanged:
        if part in {"upstream", "needs", "absent", "unresolved", *FILE_PARTS}:
            continue
        if part == "guards" and not _mapping(own.get("guard_config")).get("guards"):
            continue
        name = part_word(part)
        if part == "model":
            name = f"model {_mapping(own.get('model')).get('id') or ''}".rstrip()
        words[name] = None
    for part, one, many in (
        ("files", "script", "scripts"),
        ("code", "source file", "source files"),
        ("inputs", "input", "inputs"),
    ):
        words |= dict.fromkeys(_some(len(_mapping(ext.get(part))), changed.get(part, 0), one, many))
    words |= dict.fromkeys(_some(needs, needs - stayed, "step above", "steps above"))
    return list(words)


def _some(count: int, changed: int, one: str, many: str) -> list[str]:
    stayed = count - changed
    if stayed <= 0:
        return []
    if changed:
        return [f"{stayed} of {count} {many}"]
    return [f"{count} {one if count == 1 else many}"]
