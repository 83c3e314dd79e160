"""Work out what an edit comes to: each file as it would be, or why it cannot be; nothing is written."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from holdfast.edits.compare import spans
from holdfast.edits.diff import blob_name
from holdfast.edits.effort import MOST_STEPS, Effort, TooMuchError
from holdfast.edits.guidance import explained, mentioned, reason
from holdfast.edits.lines import MARK, Text, Unreadable, decoded, encoded, unmarked
from holdfast.edits.merging import merge_edit, merge_whole
from holdfast.edits.outcome import Level, Outcome, Planned, Refusal, Why
from holdfast.edits.placing import Board, Trouble, place_all
from holdfast.edits.sheet import Sheet
from holdfast.edits.splice import rewritten, spliced
from holdfast.edits.wanted import Hunk, Wanted
from holdfast.errors import EditError
from holdfast.model.digest import digest_bytes

_EXPLAINED = 20  # refusals that come with what would help; the others are only named
Read = Callable[[str], bytes | None]


@dataclass(slots=True)
class _Work:
    """An edit while it is worked out."""

    read: Read
    bases: Mapping[str, bytes]
    leaving: Collection[str]
    others: Collection[str]
    effort: Effort
    files: dict[str, Planned] = field(default_factory=dict)
    refusals: list[Refusal] = field(default_factory=list)
    skipped: list[tuple[str, int]] = field(default_factory=list)

    def refuse(self, path: str, why: Why, message: str, guidance: str = "") -> None:
        self.refusals.append(Refusal(path, why, message, guidance=guidance))

    def plan(self, file: Planned) -> None:
        """A file that goes and one that comes at the same path are one change of that path."""
        other = self.files.get(file.path)
        if other is not None and other.after is None:
            file = replace(file, before=other.before)
        elif other is not None and file.after is None:
            file = replace(other, before=file.before)
        elif other is not None:
            self.refuse(file.path, "overlapping", "two parts of the edit write this file")
        self.files[file.path] = file


def work_out(
    wanted: Sequence[Wanted],
    read: Read,
    bases: Mapping[str, bytes] | None = None,
    *,
    others: Collection[str] = (),
    most_steps: int = MOST_STEPS,
) -> Outcome:
    """What an edit comes to with the files as they are.

    `read` gives the bytes at a path, or None where nothing is. `bases` are contents as the author saw them,
    by path. `others` are paths that are searched for lines that are not where the edit has them. An edit that
    takes more than `most_steps` is refused.
    """
    leaving = {one.path for one in wanted if one.to is not None or one.operation == "delete"}
    paths = {*(one.path for one in wanted), *others}
    work = _Work(read, bases or {}, leaving, sorted(paths), Effort(most_steps))
    for one in wanted:
        try:
            _work_out_file(work, one)
        except TooMuchError as error:
            return Outcome(
                refusals=(Refusal(one.path, "too_large", error.message, guidance=error.hint or ""),)
            )
        except EditError as error:
            work.refuse(one.path, "special", error.message)
    if work.refusals:
        return Outcome(refusals=tuple(work.refusals), skipped=tuple(work.skipped))
    return Outcome(tuple(work.files.values()), skipped=tuple(work.skipped))


def _work_out_file(work: _Work, wanted: Wanted) -> None:
    present = work.read(wanted.path)
    if wanted.operation == "create":
        _create(work, wanted, present)
        return
    if present is None and wanted.operation == "whole" and wanted.base is None:
        _create(work, wanted, present)
        return
    if present is None:
        guidance = reason(wanted, work.read, work.others)
        work.refuse(wanted.path, "missing", "there is no such file", guidance)
        return
    if wanted.operation == "delete":
        _delete(work, wanted, present)
        return
    after: bytes | None = present
    levels: tuple[Level, ...] = ()
    if wanted.hunks or wanted.operation in {"whole", "header"}:
        after, levels = _changed(work, wanted, present)
    if after is not None:
        _plan(work, wanted, present, after, levels)


def _plan(
    work: _Work, wanted: Wanted, present: bytes, after: bytes, levels: tuple[Level, ...]
) -> None:
    if wanted.to is None:
        if after == present and wanted.mode is None:
            return
        work.plan(Planned(wanted.path, digest_bytes(present), after, wanted.mode, levels))
        return
    there = None if wanted.to in work.leaving else work.read(wanted.to)
    if there is not None and not _is_same_name(wanted.path, wanted.to, present, there):
        work.refuse(wanted.path, "exists", f"there is a file at '{wanted.to}' already")
        return
    work.plan(Planned(wanted.path, digest_bytes(present), None, None, ("deleted",)))
    before = digest_bytes(work.read(wanted.to) or b"") if wanted.to in work.leaving else None
    work.plan(Planned(wanted.to, before, after, wanted.mode, levels, moved_from=wanted.path))


def _is_same_name(path: str, to: str, present: bytes, there: bytes) -> bool:
    """Where case makes no difference, a file that changes its case is already there."""
    return path.casefold() == to.casefold() and present == there


def _create(work: _Work, wanted: Wanted, present: bytes | None) -> None:
    if present == wanted.content and wanted.mode is None:
        work.skipped.append((wanted.path, 0))
    elif present and wanted.path not in work.leaving:
        guidance = "to change it, say which of its lines; to replace it, give it whole"
        work.refuse(wanted.path, "exists", "there is a file already", guidance)
    else:
        before = None if present is None else digest_bytes(present)
        level: Level = "created" if present is None else "whole"
        work.plan(Planned(wanted.path, before, wanted.content, wanted.mode, (level,)))


def _delete(work: _Work, wanted: Wanted, present: bytes) -> None:
    if wanted.base not in {None, digest_bytes(present)}:
        work.refuse(wanted.path, "stale", "the file is no longer what was to be deleted")
        return
    if wanted.hunks:
        text = decoded(present)
        said = [row.text for hunk in wanted.hunks for row in hunk.rows if row.kind == "-"]
        if isinstance(text, Unreadable) or [*text.lines] != said:
            work.refuse(wanted.path, "stale", "the file is no longer what was to be deleted")
            return
    work.plan(Planned(wanted.path, digest_bytes(present), None, None, ("deleted",)))


# Changes of a file's lines.


def _changed(work: _Work, wanted: Wanted, present: bytes) -> tuple[bytes | None, tuple[Level, ...]]:
    """The file's content afterwards, or None if that was refused."""
    text = decoded(present, wanted.encoding)
    if isinstance(text, Unreadable):
        work.refuse(wanted.path, text.why, text.message)
        return None, ()
    base = _base_of(work, wanted, present)
    if wanted.operation == "whole":
        found, levels = _replaced(work, wanted, present, text, base)
    elif wanted.operation == "header":
        found, levels = _headed(work, wanted, text)
    else:
        found, levels = _edited(work, wanted, present, text, base)
    if found is None:
        return None, ()
    after = present if found is text else encoded(found)
    if isinstance(after, Unreadable):
        work.refuse(wanted.path, after.why, after.message, after.guidance)
        return None, ()
    return after, levels


def _base_of(work: _Work, wanted: Wanted, present: bytes) -> Text | None:
    """What the author saw, if it is known and is not what is there."""
    content = work.bases.get(wanted.path)
    if content is None or content == present or wanted.base not in {None, digest_bytes(content)}:
        return None
    text = decoded(content, wanted.encoding)
    return None if isinstance(text, Unreadable) else text


def _is_base(work: _Work, wanted: Wanted, present: bytes) -> bool:
    """Whether the author is known to have seen what is there."""
    if wanted.base is not None:
        return wanted.base == digest_bytes(present)
    if wanted.path in work.bases:
        return work.bases[wanted.path] == present
    return wanted.blob is not None and blob_name(present).startswith(wanted.blob)


def _edited(
    work: _Work, wanted: Wanted, present: bytes, text: Text, base: Text | None
) -> tuple[Text | None, tuple[Level, ...]]:
    hunks = [hunk for hunk in wanted.hunks if hunk.changes]
    numbers = [number for number, hunk in enumerate(wanted.hunks, start=1) if hunk.changes]
    idle = {*range(1, len(wanted.hunks) + 1)}.difference(numbers)
    work.skipped += [(wanted.path, number) for number in sorted(idle)]
    if not hunks:
        return text, ()
    if any(row.text.startswith(MARK) for hunk in hunks for row in hunk.rows):
        text, base = unmarked(text), None if base is None else unmarked(base)
    seen = None
    if base is not None:
        seen = _placed(Board(hunks, Sheet(base.lines, work.effort), is_base=True))
    sheet = Sheet(text.lines, work.effort)
    board = _placed(Board(hunks, sheet, _is_base(work, wanted, present), seen))
    if wanted.builds and board.troubles and _are_missing(board):
        found = _one_by_one(board, text, work.effort)
        if found is not None:
            return found, _all("exact", hunks)
    if base is not None and seen is not None and _is_for_merge(board):
        found = merge_edit(seen, text, base)
        if found is not None and found.lines != text.lines:
            return found, _all("merged", hunks)
        if found is not None:
            board.troubles[:] = [Trouble(n, "already_applied") for n in range(len(hunks))]
    if board.troubles:
        for trouble in sorted(board.troubles, key=lambda one: one.hunk):
            refusal = mentioned(wanted.path, trouble, board, numbers)
            if len(work.refusals) < _EXPLAINED:
                with suppress(TooMuchError):
                    refusal = explained(refusal, trouble, board, work.read, work.others)
            work.refusals.append(refusal)
        return None, ()
    fits = [board.placed[number] for number in range(len(hunks))]
    return spliced(text, fits), tuple(fit.level for fit in fits)


def _placed(board: Board) -> Board:
    place_all(board)
    return board


def _all(level: Level, hunks: Sequence[Hunk]) -> tuple[Level, ...]:
    return (level,) * len(hunks)


def _is_for_merge(board: Board) -> bool:
    """Whether lines are not there, or not all of them: a merge that is clean is surer than a vote."""
    is_voted = any(fit.level == "voted" for fit in board.placed.values())
    return _are_missing(board) and (is_voted or bool(board.troubles))


def _are_missing(board: Board) -> bool:
    """Whether all trouble is that lines are not there; where there are too many, nothing else helps."""
    return all(trouble.why in {"not_found", "already_applied"} for trouble in board.troubles)


def _one_by_one(board: Board, text: Text, effort: Effort) -> Text | None:
    """Blocks that build on one another: each finds its old lines, once, in what the ones before left.

    Only lines that the author did not see in the file can be those of a block before.
    """
    if board.base is not None and any(one.hunk in board.base.placed for one in board.troubles):
        return None
    for hunk in board.hunks:
        effort.spend(len(text.lines) // 8)
        alone = _placed(Board([hunk], Sheet(text.lines, effort)))
        if alone.troubles or alone.placed[0].level != "exact":
            return None
        text = spliced(text, [alone.placed[0]])
    return text


def _replaced(
    work: _Work, wanted: Wanted, present: bytes, text: Text, base: Text | None
) -> tuple[Text | None, tuple[Level, ...]]:
    """A whole file: its lines in the way of the file that is there."""
    new = decoded(wanted.content)
    if isinstance(new, Unreadable):
        work.refuse(wanted.path, new.why, f"the new content {new.message}")
        return None, ()
    if not wanted.says_end and new.endings and text.endings[-1:] == [""]:
        new = replace(new, endings=[*new.endings[:-1], ""])
    if base is not None:
        found = merge_whole(new, text, base)
        if found is not None:
            return found, ("merged",)
    if base is not None or wanted.base not in {None, digest_bytes(present)}:
        guidance = "read it again; what was changed since would be lost"
        work.refuse(wanted.path, "stale", "the file is no longer what its author saw", guidance)
        return None, ()
    found = rewritten(text, new, spans(text.lines, new.lines))
    if found.lines and new.lines and (not text.lines or found.lines[-1] != text.lines[-1]):
        last = (found.endings[-1] or found.usual) if new.endings[-1] else ""
        found = replace(found, endings=[*found.endings[:-1], last])
    return (text if found == text else found), ("whole",)


def _headed(work: _Work, wanted: Wanted, text: Text) -> tuple[Text | None, tuple[Level, ...]]:
    """Lines put first, below what must stay first."""
    new = decoded(wanted.content)
    if isinstance(new, Unreadable) or not new.lines:
        work.refuse(wanted.path, "malformed", "the header is no text, or empty")
        return None, ()
    at = _below_first(text.lines)
    if list(text.lines[at : at + len(new.lines)]) == list(new.lines):
        work.skipped.append((wanted.path, 0))
        return text, ()
    return rewritten(text, new, [(at, at, 0, len(new.lines))]), ("exact",)


def _below_first(lines: Sequence[str]) -> int:
    """Below a shebang, a line that says the encoding, and what opens XML or PHP."""
    at = 0
    if lines and lines[0].startswith(("#!", "<?xml", "<?php")):
        at = 1
    if (
        at < len(lines)
        and "coding" in lines[at]
        and lines[at].lstrip().startswith(("#", "//", ";", "%", "/*"))
    ):
        at += 1
    return at
