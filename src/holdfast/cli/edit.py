"""edit: make an edit in any format, look at it first, take it back."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TypeVar

import click

from holdfast.cli.edited import (
    tell_forgotten,
    tell_list,
    tell_preview,
    tell_recovered,
    tell_report,
    tell_rollback,
)
from holdfast.cli.place import json_option
from holdfast.config.settings import read_protected
from holdfast.edits.editing import Edit, Saw, Syntax, apply_edit, preview_edit
from holdfast.edits.formats import FORMS
from holdfast.edits.retell import RETOLD
from holdfast.edits.scope import MOST_FILES, MOST_LINES, Scope
from holdfast.edits.workspace import Workspace, cut_short_by_others
from holdfast.edits.write import forget_edits, history, recover_workspace, roll_back
from holdfast.errors import UsageError

MOST_BYTES = 64 << 20
_DIGEST = re.compile(r"[0-9a-f]{64}")
F = TypeVar("F", bound=Callable[..., int])


@click.group(
    epilog="\b\nExample:\n  holdfast edit preview change.diff\n"
    "  holdfast edit apply change.diff --scope 'src/**'\n  holdfast edit rollback last"
)
def edit() -> None:
    """Make an edit of files, all or nothing; look at it first, or take it back.

    An edit is search/replace blocks, a unified diff, a V4A patch, whole files or JSON; the format is
    recognised. A place that is not found, or found twice, is refused with what would help: nothing is
    written then.
    """


def _where(command: F) -> F:
    """Options that say which files are edited, and where edits are kept."""
    for option in (
        click.option(
            "--state",
            metavar="DIR",
            help="Keep edits in DIR (default: in .holdfast/edits of the root).",
        ),
        click.option(
            "--root",
            default=".",
            metavar="DIR",
            help="The directory that is edited (default: this).",
        ),
    ):
        command = option(command)
    return command


def _what(command: F) -> F:
    """Options that say what may be edited, and what the author of the edit saw."""
    for option in reversed(
        (
            click.option(
                "--scope",
                multiple=True,
                metavar="GLOB",
                help="Only these may be written; repeatable.",
            ),
            click.option(
                "--protect", multiple=True, metavar="NAME", help="One more name nobody may write."
            ),
            click.option(
                "--unprotect", multiple=True, metavar="NAME", help="A protected name that may be."
            ),
            click.option(
                "--code-only", is_flag=True, help="Protect conftest.py, sitecustomize.py and *.pth."
            ),
            click.option(
                "--format",
                "form",
                type=click.Choice(FORMS),
                help="Of the edit (default: found out).",
            ),
            click.option(
                "--base",
                multiple=True,
                metavar="PATH=DIGEST",
                help="What the author saw, as SHA-256; repeatable.",
            ),
            click.option(
                "--seen", metavar="FILE", help="The same for many files, as JSON: digests or texts."
            ),
            click.option(
                "--if-unchanged",
                is_flag=True,
                help="Refuse it if a file is no longer what its author saw.",
            ),
            click.option(
                "--max-files",
                type=click.IntRange(1),
                default=MOST_FILES,
                metavar="N",
                help="The most files that may change.",
                show_default=True,
            ),
            click.option(
                "--max-lines",
                type=click.IntRange(1),
                default=MOST_LINES,
                metavar="N",
                help="The most lines that may change.",
                show_default=True,
            ),
            click.option(
                "--syntax",
                type=click.Choice(["warn", "refuse", "off"]),
                default="warn",
                help="What to do about syntax errors that the edit brings.",
                show_default=True,
            ),
        )
    ):
        command = option(command)
    return command


@edit.command("apply", epilog="\b\nExample:\n  holdfast edit apply - --scope 'src/**' <change.diff")
@click.argument("file", default="-", metavar="[FILE|-]")
@_what
@_where
@click.option("--dry-run", is_flag=True, help="Only show what would change, as preview does.")
@json_option
def apply(
    file: str, *, dry_run: bool, as_json: bool, root: str, state: str | None, **words: object
) -> int:
    """Make an edit, all files or none, and keep it so that it can be taken back."""
    workspace, wish = _workspace(root, state, _scope(root, words)), _wish(file, words)
    if dry_run:
        report = preview_edit(workspace, wish)
        tell_preview(report, as_json=as_json)
    else:
        report = apply_edit(workspace, wish)
        tell_report(report, _where_words(root, state), as_json=as_json)
    return 1 if report.refusals else 0


@edit.command("preview", epilog="\b\nExample:\n  holdfast edit preview change.diff")
@click.argument("file", default="-", metavar="[FILE|-]")
@click.option(
    "--as",
    "told_as",
    type=click.Choice(RETOLD),
    default=RETOLD[0],
    help="Show the edit in this format.",
    show_default=True,
)
@click.option("--reverse", is_flag=True, help="Show the edit that would take it back.")
@_what
@_where
@json_option
def preview(
    file: str,
    *,
    told_as: str,
    reverse: bool,
    as_json: bool,
    root: str,
    state: str | None,
    **words: object,
) -> int:
    """Show what an edit would change, as a unified diff; nothing is written.

    What is shown can be applied: it says the places that were found, whatever format the edit came in.
    """
    report = preview_edit(_workspace(root, state, _scope(root, words)), _wish(file, words))
    if as_json and (reverse or told_as != RETOLD[0]):
        raise UsageError("--json has the diff of each file alone", hint="leave --json out")
    tell_preview(report, told_as, reverse=reverse, as_json=as_json)
    return 1 if report.refusals else 0


@edit.command("rollback", epilog="\b\nExample:\n  holdfast edit rollback last")
@click.argument("id_", metavar="ID|last")
@_where
@json_option
def rollback(id_: str, *, as_json: bool, root: str, state: str | None) -> int:
    """Take an edit back: bytes, modes, files and directories exactly as they were.

    Refused, with their names, if one of its files was changed since.
    """
    key, journal = roll_back(_workspace(root, state), id_)
    tell_rollback(key, journal, as_json=as_json)
    return 0


@edit.command("list", epilog="\b\nExample:\n  holdfast edit list --json")
@_where
@json_option
def list_edits(*, as_json: bool, root: str, state: str | None) -> int:
    """Show the edits that are kept, the latest first."""
    tell_list(history(_workspace(root, state)), as_json=as_json)
    return 0


@edit.command("forget", epilog="\b\nExample:\n  holdfast edit forget --keep 100")
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option(
    "--keep", type=click.IntRange(0), metavar="N", help="Forget all but the latest N instead."
)
@_where
@json_option
def forget(
    ids: tuple[str, ...], *, keep: int | None, as_json: bool, root: str, state: str | None
) -> int:
    """Remove edits from what is kept; the files stay as they are, and cannot be taken back any more."""
    if ids and keep is not None:
        raise UsageError("say which edits to forget or how many to keep, not both")
    if not ids and keep is None:
        raise UsageError("say which edits to forget, or how many to keep", hint="--keep 100")
    tell_forgotten(forget_edits(_workspace(root, state), ids, keep), as_json=as_json)
    return 0


def _wish(file: str, words: Mapping[str, object]) -> Edit:
    base, seen, form = words["base"], words["seen"], words["form"]
    assert isinstance(base, tuple)
    return Edit(
        _text(file),
        str(form) if form else None,
        _saw(base, str(seen) if seen else None),
        _SYNTAX[str(words["syntax"])],
        bool(words["if_unchanged"]),
    )


_SYNTAX: Mapping[str, Syntax] = {"warn": "warn", "refuse": "refuse", "off": "off"}


def _scope(root: str, words: Mapping[str, object]) -> Scope:
    def names(key: str) -> tuple[str, ...]:
        given = words[key]
        assert isinstance(given, tuple)
        return tuple(str(one) for one in given)

    files, lines = words["max_files"], words["max_lines"]
    assert isinstance(files, int)
    assert isinstance(lines, int)
    return Scope(
        names("scope") or ("**",),
        (*names("protect"), *read_protected(root)),
        names("unprotect"),
        bool(words["code_only"]),
        files,
        lines,
    )


def _where_words(root: str, state: str | None) -> str:
    """What must be said again for another command about the same place."""
    words = (("--root", root if root != "." else ""), ("--state", state or ""))
    return "".join(f" {flag} {shlex.quote(value)}" for flag, value in words if value)


def _workspace(root: str, state: str | None, scope: Scope | None = None) -> Workspace:
    """The directory that is edited, with whatever an earlier command was ended in brought to its end."""
    if not os.path.isdir(root):
        raise UsageError(f"'{root}' is not a directory", hint="--root DIR")
    place = os.path.abspath(state) if state else ""
    workspace = Workspace(os.path.abspath(root), scope or Scope(), place)
    tell_recovered(recover_workspace(workspace), cut_short_by_others(workspace))
    return workspace


def _text(file: str) -> str:
    """The text of an edit; bytes that are no text stay what they are."""
    if file == "-" and (sys.stdin is None or sys.stdin.isatty()):
        raise UsageError("there is no edit", hint="holdfast edit apply FILE")
    try:
        if file == "-":
            content = sys.stdin.buffer.read(MOST_BYTES + 1)
        else:
            with open(file, "rb") as stream:
                content = stream.read(MOST_BYTES + 1)
    except OSError as error:
        raise UsageError(f"cannot read '{file}': {(error.strerror or '').lower()}") from error
    if len(content) > MOST_BYTES:
        raise UsageError(f"the edit has more than {MOST_BYTES} bytes")
    return content.decode("utf-8", "surrogateescape")


def _saw(pairs: tuple[str, ...], file: str | None) -> Saw:
    digests: dict[str, str | None] = {}
    needed: list[str] = []
    contents: dict[str, bytes] = {}
    for path, value in _seen(file).items():
        if value is None or (isinstance(value, str) and _DIGEST.fullmatch(value)):
            digests[path] = value
        elif (content := _content(value)) is not None:
            contents[path] = content
        else:
            raise UsageError(
                f"'{file}' says nothing usable about '{path}'",
                hint='a SHA-256 in hex, null for no file, or {"text": "…"}',
            )
    for pair in pairs:
        path, equals, digest = pair.rpartition("=")
        if not equals or not path or not _DIGEST.fullmatch(digest):
            raise UsageError(f"'{pair}' is not PATH=DIGEST", hint="DIGEST is a SHA-256 in hex")
        digests[path] = digest
        needed.append(path)
    return Saw(digests, contents, tuple(needed))


def _content(value: object) -> bytes | None:
    """The bytes of a text; None if it is none, or half a character that no bytes stand for."""
    text = value.get("text") if isinstance(value, Mapping) else None
    with suppress(UnicodeEncodeError):
        return text.encode("utf-8", "surrogateescape") if isinstance(text, str) else None
    return None


def _seen(file: str | None) -> Mapping[str, object]:
    if file is None:
        return {}
    try:
        with open(file, "rb") as stream:
            found = json.loads(stream.read(MOST_BYTES))
    except OSError as error:
        raise UsageError(f"cannot read '{file}': {(error.strerror or '').lower()}") from error
    except ValueError as error:
        raise UsageError(f"'{file}' is not JSON: {error}") from error
    except RecursionError as error:
        raise UsageError(f"'{file}' is nested too deep") from error
    if not isinstance(found, dict):
        raise UsageError(f"'{file}' must be an object", hint='{"src/a.py": "SHA-256"}')
    return found
