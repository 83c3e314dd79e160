"""Errors: what, where, what now. One message for a person, one object for a program, one exit code."""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
from collections.abc import Mapping, Sequence

import click

from holdfast.cli.say import talk
from holdfast.errors import (
    BugError,
    HoldfastError,
    PlanError,
    Problem,
    StoreError,
    UsageError,
    Where,
    outside_fault,
    shut_out,
)
from holdfast.model.secret import struck_text
from holdfast.model.text import escaped
from holdfast.model.version import VERSION

_COMMAND = re.compile(r"holdfast(?: (?:'[^']*'|[^\s',;()…]+))+")
_SECRET = re.compile(
    r"TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|API_?KEY|_KEY\Z|\AKEY\Z|AUTH|COOKIE|DSN"
)
_SHORTEST_SECRET = 4
_INTERRUPTED = 130
_BUG = 70


def report(error: Exception, arguments: Sequence[str], commands: Sequence[str]) -> int:
    """Say what happened; gives the exit code. Nobody listening is no reason to fail again."""
    as_json = wants_json(arguments)
    with contextlib.suppress(BrokenPipeError):
        if isinstance(error, click.exceptions.NoArgsIsHelpError):
            with contextlib.suppress(OSError, ValueError):
                error.show()
            return error.exit_code
        if isinstance(error, click.Abort):
            return _tell(
                _Told("interrupted", "interrupted; nothing accepted is lost"), as_json, _INTERRUPTED
            )
        if isinstance(error, click.ClickException):
            return _tell(_usage(error, commands), as_json, error.exit_code)
        if isinstance(error, PlanError):
            return _plan(error, as_json)
        if isinstance(error, UsageError) and (fault := _refused_to_all(error)) is not None:
            return _tell(_Told.of(fault), as_json, fault.exit_code)
        if isinstance(error, HoldfastError) and not isinstance(error, BugError):
            return _tell(_Told.of(error), as_json, error.exit_code)
        if (fault := outside_fault(error) or shut_out(error)) is not None:
            return _tell(_Told.of(fault), as_json, fault.exit_code)
        return _bug(error, arguments, commands, as_json)
    return error.exit_code if isinstance(error, HoldfastError | click.ClickException) else _BUG


def _refused_to_all(error: UsageError) -> StoreError | None:
    """The same words, if it was a disk or a machine that kept a file from being read or written."""
    fault = None if error.__cause__ is None else outside_fault(error.__cause__)
    if fault is None:
        return None
    hint = error.hint or (fault.hint or "").partition(", then ")[0]
    return StoreError(error.message, hint=hint or None)


def wants_json(arguments: Sequence[str]) -> bool:
    """Whether a program reads the answer: `--json`, or `--output json` in any spelling."""
    modes = {"json", "jsonl"}
    for place, word in enumerate(arguments):
        if word == "--":
            return False
        after = arguments[place + 1] if place + 1 < len(arguments) else ""
        if word == "--json" or (word == "--output" and after in modes):
            return True
        if word.startswith("--output=") and word.partition("=")[2] in modes:
            return True
    return False


class _Told:
    """An error as it is said."""

    def __init__(
        self,
        code: str,
        message: str,
        hint: str | None = None,
        *,
        where: Where | None = None,
        retryable: bool = False,
        following: Sequence[str] = (),
    ) -> None:
        self.code = code
        self.message = message
        self.hint = hint
        self.where = where or Where()
        self.retryable = retryable
        self.next = [*following, *(_COMMAND.findall(hint) if hint else [])]

    @classmethod
    def of(cls, error: HoldfastError) -> _Told:
        return cls(
            error.code, error.message, error.hint, where=error.where, retryable=error.retryable
        )

    def json(self) -> dict[str, object]:
        return {
            "code": self.code,
            "message": self.message,
            "where": where_json(self.where),
            "hint": self.hint,
            "next": list(dict.fromkeys(self.next)),
            "retryable": self.retryable,
        }


def where_json(where: Where) -> dict[str, object]:
    """A place as programs read it; what is not known is null."""
    return {
        "file": where.file or None,
        "line": where.line or None,
        "col": where.column or None,
        "step": where.step or None,
        "attempt": where.attempt or None,
    }


def _print_json(body: Mapping[str, object]) -> None:
    if sys.stdout is not None:
        with contextlib.suppress(OSError):  # what is wrong is said on stderr too
            sys.stdout.write(escaped(json.dumps({"error": body}, ensure_ascii=False)) + "\n")
            sys.stdout.flush()


def _tell(told: _Told, as_json: bool, code: int) -> int:
    if as_json:
        _print_json(told.json())
    first, *rest = told.message.splitlines() or [""]
    talk(f"error[{told.code}]: {first}")
    for line in rest:
        talk(f"  {line}")
    if told.where.text():
        talk(f"  {told.where.text()}")
    if told.hint:
        talk(f"hint: {told.hint}")
    return code


def error_json(error: HoldfastError) -> dict[str, object]:
    """An error as programs read it; of a plan with every problem."""
    if not isinstance(error, PlanError):
        return _Told.of(error).json()
    first = error.problems[0]
    count = len(error.problems)
    more = f" and {count - 1} more" if count > 1 else ""
    told = _Told(
        error.code,
        f"{first.message}{more}",
        first.hint or f"holdfast explain {first.code}",
        where=Where(first.file, first.line, first.column),
        following=[error.check, f"holdfast explain {first.code}"],
    )
    problems = [_problem_json(problem) for problem in error.problems]
    return {**told.json(), "problems": problems}


def _plan(error: PlanError, as_json: bool) -> int:
    """Every problem of a plan, with the lines it is about."""
    from holdfast.formats.render import render

    first = error.problems[0]
    if as_json:
        _print_json(error_json(error))
    _let_go(error)
    source = b""
    with contextlib.suppress(OSError), open(first.file, "rb") as file:
        source = file.read(64 * 2**20)
    for line in render(error.problems, source, width=error.width).rstrip("\n").splitlines():
        talk(line)
    return error.exit_code


def _let_go(error: BaseException) -> None:
    """Forget where it was raised: the frames there hold a large file, which is read once more here."""
    found: BaseException | None = error
    while found is not None:
        found.__traceback__ = None
        found = found.__cause__ or found.__context__


def _problem_json(problem: Problem) -> dict[str, object]:
    place = Where(problem.file, problem.line, problem.column)
    return {
        "code": problem.code,
        "message": problem.message,
        "hint": problem.hint or None,
        "where": where_json(place),
    }


# --- usage ----------------------------------------------------------------------------------------------


def _usage(error: click.ClickException, commands: Sequence[str]) -> _Told:
    """What click found wrong, in our words, with the nearest thing that exists."""
    context = getattr(error, "ctx", None)
    path = context.command_path if isinstance(context, click.Context) else "holdfast"
    hint = f"{path} --help"
    if isinstance(error, click.exceptions.NoSuchCommand):
        message = f"there is no command '{error.command_name}'"
        hint = _nearest(error.command_name, commands) or hint
    elif isinstance(error, click.exceptions.NoSuchOption):
        message = f"'{path}' has no option '{error.option_name}'"
        near = error.possibilities or _options(context, error.option_name)
        hint = f"did you mean '{near[0]}'?" if near else hint
    else:
        message = error.format_message().rstrip(".")
        message = message[:1].lower() + message[1:]
        if "unexpected extra argument" in message:
            hint = _misread(context) or hint
    return _Told("usage", message, hint)


def _misread(context: click.Context | None) -> str:
    """What -f means where it does not name the plan file, as it does nearly everywhere."""
    if context is None:
        return ""
    options = {name: item for item in context.command.params for name in item.opts}
    short = options.get("-f")
    if short is None or "--file" in short.opts or "--file" not in options:
        return ""
    meaning = max(short.opts, key=len)
    said = context.params.get(short.name or "")
    return f"-f means {meaning} here; name the plan file with --file" if said else ""


def _nearest(word: str, names: Sequence[str]) -> str:
    import difflib

    near = difflib.get_close_matches(word, names, n=1)
    return f"did you mean 'holdfast {near[0]}'?" if near else ""


def _options(context: click.Context | None, word: str) -> list[str]:
    import difflib

    if context is None:
        return []
    known = [name for item in context.command.params for name in (*item.opts, *item.secondary_opts)]
    return difflib.get_close_matches(word, [name for name in known if name.startswith("-")], n=1)


# --- a bug ----------------------------------------------------------------------------------------------


def _bug(error: Exception, arguments: Sequence[str], commands: Sequence[str], as_json: bool) -> int:
    """What nobody foresaw: the story goes into a file, one line to the person."""
    message = str(error) if isinstance(error, BugError) else f"{type(error).__name__}: {error}"
    if not message.endswith("[this is a bug]"):
        message += " [this is a bug]"
    command = next((word for word in arguments if word in commands), "")
    try:
        file = _write_story(error, command)
        hint = f"the whole story is in {file}; nothing accepted is lost"
    except OSError as refused:
        hint = f"no report could be written ({refused.strerror}); --debug shows the story"
    told = _Told("bug", _hidden(message), hint)
    told.next = []
    return _tell(told, as_json, _BUG)


def _write_story(error: Exception, command: str) -> str:
    import platform
    import tempfile
    import traceback

    with tempfile.NamedTemporaryFile(
        "w", prefix="holdfast-report-", suffix=".txt", delete=False, encoding="utf-8"
    ) as file:
        file.write(
            f"holdfast {VERSION}, python {platform.python_version()}, {platform.platform()}\n"
        )
        file.write(f"command: {command or 'none'}\n\n")
        file.write(_hidden("".join(traceback.format_exception(error))))
    return file.name


def _hidden(text: str) -> str:
    """Text without keys, and without the values of variables that look like secrets."""
    found = {
        value: name
        for name, value in os.environ.items()
        if _SECRET.search(name.upper()) and len(value) >= _SHORTEST_SECRET
    }
    for value in sorted(found, key=len, reverse=True):
        text = text.replace(value, f"[{found[value]}]")
    return struck_text(text, (*sorted(found), *_keys()))


def _keys() -> tuple[str, ...]:
    """The keys of providers, whatever their variables are called."""
    from holdfast import wire

    with contextlib.suppress(OSError):  # the directory may be gone
        return wire.market.Vault(os.getcwd()).values()
    return ()
