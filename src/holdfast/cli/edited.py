"""What an edit did, would do, or why it is refused: in words, as a diff, as JSON."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence

from holdfast.cli.again import out_next
from holdfast.cli.measure import count, moment
from holdfast.cli.say import out, out_edit, out_json, talk
from holdfast.edits.apply import Recovered
from holdfast.edits.journal import Journal, Row
from holdfast.edits.keeping import Kept
from holdfast.edits.outcome import Refusal
from holdfast.edits.retell import RETOLD, retold
from holdfast.edits.tree import quoted
from holdfast.edits.write import FileEdit, Report, count_files
from holdfast.errors import EditError, UsageError
from holdfast.model.digest import Json
from holdfast.model.text import one_line

_SCHEMA = "holdfast.edit/1"
_FEW = 3
_TOLD = 20  # refusals, in words


def tell_preview(
    report: Report, told_as: str = RETOLD[0], *, reverse: bool = False, as_json: bool
) -> None:
    """An edit as it would be made, in a format that says it, and beside it what stands in its way."""
    if as_json:
        out_json(_report_json(report, "preview"))
    elif not report.refusals:
        _show(_told(report, told_as, reverse=reverse))
    _tell_beside(report)
    if not report.refusals:
        talk(f"would change {_total(report.files)}" if report.files else "nothing to change")


def _told(report: Report, told_as: str, *, reverse: bool) -> str:
    if told_as == RETOLD[0] and not reverse:
        return "".join(file.diff for file in report.files)
    try:
        return retold(report.files, told_as, reverse=reverse)
    except EditError as error:
        raise UsageError(error.message, hint=error.hint) from error


def _show(text: str) -> None:
    """To the byte, so that it can be applied; on a terminal as text that does nothing to it."""
    if sys.stdout is None:
        return
    if not sys.stdout.isatty():
        sys.stdout.flush()
        sys.stdout.buffer.write(text.encode("utf-8", "surrogateescape"))
        return
    for line in text.split("\n")[:-1]:
        out_edit(line)


def tell_report(report: Report, where: str, *, as_json: bool) -> None:
    """What was done, file by file; `where` are the options that name the place again."""
    if as_json:
        out_json(_report_json(report, "apply"))
    elif report.id:
        out(f"applied {report.id}: {_total(report.files)}")
        for file in report.files:
            if file.moved_to is None:
                out(_line(file))
    elif not report.refusals:
        out("nothing to change")
    _tell_beside(report)
    if report.id and not as_json:
        out_next(f"holdfast edit rollback {report.id}{where}")


def tell_rollback(key: str, journal: Journal, *, as_json: bool) -> None:
    """What was put back."""
    if as_json:
        rows: list[Json] = [_row_json(row) for row in journal.rows]
        out_json({"schema": _SCHEMA, "action": "rollback", "id": key, "files": rows})
        return
    out(f"rolled back {key}: {count(len(journal.rows), 'file')}")
    for row in journal.rows:
        out(f"  {'removed ' if row.before is None else 'put back'}  {row.path}")


def tell_list(edits: Sequence[Kept], *, as_json: bool) -> None:
    """The edits on record."""
    if as_json:
        listed: list[Json] = [
            {
                "id": edit.key,
                "state": edit.state,
                "at": round(edit.when * 1000),
                "files": [_row_json(row) for row in edit.rows],
            }
            for edit in edits
        ]
        out_json({"schema": _SCHEMA, "action": "list", "edits": listed})
        return
    for edit in edits:
        names = ", ".join(row.path for row in edit.rows[:_FEW]) or "(its record cannot be read)"
        more = f" and {len(edit.rows) - _FEW} more" if len(edit.rows) > _FEW else ""
        out(f"{edit.key}  {edit.state:<11}  {moment(round(edit.when * 1000))}  {names}{more}")
    if not edits:
        out("no edit is kept here")


def tell_forgotten(keys: Sequence[str], *, as_json: bool) -> None:
    """Which edits are not kept any more."""
    if as_json:
        out_json({"schema": _SCHEMA, "action": "forget", "forgotten": list(keys)})
    else:
        out(f"forgot {count(len(keys), 'edit')}")


def tell_recovered(ended: Sequence[Recovered], others: Sequence[str]) -> None:
    """What an earlier command was ended in the middle of; `others` are places where it was not ours."""
    for one in ended:
        talk(f"an earlier command was ended in the middle of {one.key}: it was undone")
        for conflict in one.conflicts:
            talk(f"  left  {conflict.path}: {conflict.reason}")
            if conflict.copy:
                talk(f"        what was there before the edit is in {conflict.copy}")
    for place in others:
        talk(
            f"warning: {quoted(place)} has an edit that was cut short, and that you did not make here"
        )
        talk(
            f"  it is left alone; if you trust it: holdfast edit list --state {shlex.quote(place)}"
        )


def _tell_beside(report: Report) -> None:
    for warning in report.warnings:
        talk(f"warning: {one_line(warning)}")
    for refusal in report.refusals[:_TOLD]:
        talk(f"error[{refusal.why}]: {one_line(_place(refusal) + refusal.message)}")
        for line in refusal.guidance.splitlines():
            talk(f"  {line}")
    if len(report.refusals) > _TOLD:
        talk(f"and {len(report.refusals) - _TOLD} more, which --json tells")
    if report.refusals:
        talk("nothing was written")


def _place(refusal: Refusal) -> str:
    named = (quoted(refusal.path), f"'{refusal.path}'")
    is_said = any(name in refusal.message for name in named)
    parts = [refusal.path] if refusal.path and not is_said else []
    parts += [f"hunk {refusal.hunk}"] if refusal.hunk else []
    parts += [f"line {refusal.line}"] if refusal.line else []
    return f"{', '.join(parts)}: " if parts else ""


def _total(files: Sequence[FileEdit]) -> str:
    added = sum(file.stat.added for file in files)
    removed = sum(file.stat.removed for file in files)
    return f"{count(count_files(files), 'file')}, +{added} -{removed}"


def _line(file: FileEdit) -> str:
    sign = "A" if file.before is None else "D" if file.after is None else "M"
    name = file.path
    if file.moved_from is not None:
        sign, name = "R", f"{file.moved_from} -> {file.path}"
    levels = ", ".join(dict.fromkeys(file.levels))
    mode = f", mode {file.modes[1]:o}" if sign in "MR" and file.modes[0] != file.modes[1] else ""
    how = f" ({levels}{mode})" if levels else mode
    return f"  {sign} {name}  +{file.stat.added} -{file.stat.removed}{how}"


def _report_json(report: Report, action: str) -> dict[str, Json]:
    return {
        "schema": _SCHEMA,
        "action": action,
        "id": report.id or None,
        "files": [_file_json(file) for file in report.files],
        "refusals": [_refusal_json(refusal) for refusal in report.refusals],
        "skipped": [{"path": path, "hunk": hunk} for path, hunk in report.skipped],
        "warnings": list(report.warnings),
    }


def _file_json(file: FileEdit) -> dict[str, Json]:
    return {
        "path": file.path,
        "before": file.before,
        "after": file.after,
        "mode_before": None if file.before is None else f"{file.modes[0]:o}",
        "mode_after": None if file.after is None else f"{file.modes[1]:o}",
        "levels": list(file.levels),
        "added": file.stat.added,
        "removed": file.stat.removed,
        "moved_from": file.moved_from,
        "moved_to": file.moved_to,
        "diff": file.diff,
    }


def _refusal_json(refusal: Refusal) -> dict[str, Json]:
    return {
        "path": refusal.path or None,
        "why": refusal.why,
        "message": refusal.message,
        "hunk": refusal.hunk or None,
        "line": refusal.line or None,
        "guidance": refusal.guidance,
    }


def _row_json(row: Row) -> dict[str, Json]:
    return {
        "path": row.path,
        "before": row.before.digest if row.before else None,
        "after": row.after.digest if row.after else None,
    }
