"""Commands that a person is told to type: they name the same place as the command that says so."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import overload

import click

from holdfast.cli.said import folder_of
from holdfast.cli.say import out
from holdfast.cli.titles import brief
from holdfast.cli.view import width_now
from holdfast.errors import HoldfastError, IntegrityError, PlanError
from holdfast.model.digest import digest_bytes
from holdfast.model.fixed import frozen
from holdfast.model.pattern import Pattern
from holdfast.model.text import cells, wrap

ARGUMENT = frozenset({"check", "graph", "ls", "plan", "run"})  # these take the plan as an argument
PLANS = frozenset({"plan", "run"})
LONG = frozenset({"logs"})  # here -f is something else
NOWHERE = frozenset(  # these need no place; of plans the commands below it do
    {"agents", "auth", "code", "completion", "demo", "edit", "explain", "init", "plans", "schema"}
    | {"bench", "ci", "store", "tickets", "work", "worker"}
)
READS = frozenset(  # these read the plan, so they need its params
    {"accept", "amend", "check", "diff", "graph", "guard", "impact", "ls", "plan", "run", "why"}
)
_COMMAND = Pattern(r"\bholdfast (plans [a-z]+|ledger (?:add|resolve|contest|apart|show)|[a-z]+)\b")
_IN_QUOTES = Pattern(r"('holdfast [^']+')")
_PLAN = Pattern(
    r" (?:'[^']+\.(?:ya?ml|json|py)(?::\w+)?'|[^\s',]+\.(?:ya?ml|json|py)(?::\w+)?(?![\w.]))"
)
_NEXT, _GAP = "next: ", " " * 4
_HERE = "holdfast.here"
_RECORDED = "holdfast.recorded"
ASKING = frozenset({"plan", "resume", "retry", "run"})  # these may ask models


@frozen
class Here:
    """What was said about the place and is not what is taken anyway."""

    file: str = ""
    store: str = ""
    plan_id: str = ""
    params: Mapping[str, object] = field(default_factory=dict)
    goal: str = ""  # that is planned for on this very line
    root: str = ""  # of the plan file, if there is one
    planless: bool = False  # whether nobody knows which file has the plan of the line


def keep_here(here: Here) -> None:
    """Remember the place of this command."""
    context = click.get_current_context(silent=True)
    if context is not None:
        context.meta[_HERE] = here


def here_now() -> Here:
    """The place of this command."""
    context = click.get_current_context(silent=True)
    found = Here() if context is None else context.meta.get(_HERE, Here())
    assert isinstance(found, Here)
    return found


def keep_recorded(context: click.Context, *words: str) -> None:
    """Remember that this command was told to ask nobody, in these words."""
    context.meta[_RECORDED] = [*context.meta.get(_RECORDED, ()), *words]


@overload
def again(text: str) -> str: ...
@overload
def again(text: None) -> None: ...
def again(text: str | None) -> str | None:
    """Our own words, with every command in them made to work from where the person is."""
    context = click.get_current_context(silent=True)
    if context is None or text is None:
        return text
    here = here_now()
    folder = folder_of(context)
    recorded = context.meta.get(_RECORDED, [])
    pieces = _IN_QUOTES.split(text)
    for number, piece in enumerate(pieces):
        made = _COMMAND.sub(lambda found: _command(found, here, folder, recorded), piece)
        nested = number % 2 and "'" in made.strip("'")  # quotes within quotes are read by nobody
        pieces[number] = f"`{made[1:-1]}`" if nested else made
    return "".join(pieces)


def possible(commands: str) -> str:
    """Commands that are told together, without those for a plan if no file is known to have that."""
    if not here_now().planless:
        return commands
    kept = [one for one in commands.split(_GAP) if not _reads_plan(one)]
    return _GAP.join(kept)


def _reads_plan(command: str) -> bool:
    found = _COMMAND.match(command)
    return found is not None and found[1] in ARGUMENT


def folded(line: str, width: int) -> list[str]:
    """A line as several that fit; commands stay whole, so that each can be copied.

    As many as fit stand side by side, or each on a line of its own where one has no room beside `next:`.
    """
    if not line.startswith(_NEXT) or not width:
        return wrap(line, width)
    commands = line.removeprefix(_NEXT).split(_GAP)
    beside = [_NEXT + commands[0]]
    for command in commands[1:]:
        if cells(beside[-1] + _GAP + command) > width:
            beside.append(" " * len(_NEXT) + command)
        else:
            beside[-1] += _GAP + command
    if all(cells(piece) <= width for piece in beside):
        return beside
    return [_NEXT.rstrip(), *(f"  {command}" for command in commands)]


def out_next(commands: str) -> None:
    """The last line of a screen: what follows from it, separated by four blanks."""
    for piece in folded(again(_NEXT + commands), width_now()):
        out(piece)


def mend(error: HoldfastError) -> None:
    """Make the commands that an error names work here; a broken store can be verified."""
    context = click.get_current_context(silent=True)
    is_looking = context is not None and context.invoked_subcommand == "verify"
    if isinstance(error, IntegrityError) and error.hint is None and not is_looking:
        error.hint = "holdfast verify"
    error.hint = again(error.hint)
    if isinstance(error, PlanError):
        error.check = again(error.check)


def _command(found: re.Match[str], here: Here, folder: str, recorded: Iterable[str]) -> str:
    name = found[1]
    if name in NOWHERE:
        return found[0]
    if here.goal and name in PLANS:  # nothing of a line that plans can be planned or run
        line = here.plan_id.removesuffix(".planning")
        line = "" if line == digest_bytes(here.goal.encode()) else line
        here, name = Here(here.goal, here.store, line), "plan"
    words = ["holdfast", *_flag("-C", folder), name]
    if here.file and not _PLAN.match(found.string, found.end()):  # it may name one already
        words += _file(name, here.file)
    words += _flag("--store", here.store)
    words += _flag("--plan-id", brief(here.plan_id))
    if name in READS:
        words += [
            w for key, value in here.params.items() for w in _flag("--param", f"{key}={value}")
        ]
    if name in ASKING:
        words += map(quoted, recorded)
    return " ".join(words)


def _file(name: str, file: str) -> Iterable[str]:
    if name in ARGUMENT:
        return [quoted(file)]
    return _flag("--file" if name in LONG else "-f", file)


def _flag(flag: str, value: str) -> list[str]:
    return [flag, quoted(value)] if value else []


def quoted(word: str) -> str:
    """A word as a shell takes it whole; plain ones stay as they are."""
    if re.fullmatch(r"[\w@%+=:,./~-]+", word, re.ASCII) and not word.startswith("~"):
        return word
    return "'" + word.replace("'", "'\"'\"'") + "'"
