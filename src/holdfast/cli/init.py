"""init: a project that runs as it is."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import NamedTuple

import click

from holdfast.cli import templates
from holdfast.cli.agentfiles import (
    Change,
    agents_named,
    changes_for,
    install_lines,
    write_changes,
)
from holdfast.cli.ciwrite import SYSTEMS, ci_files
from holdfast.cli.place import PLAN_NAMES, json_option
from holdfast.cli.say import out, out_json
from holdfast.cli.templating import can_ask, found, with_params
from holdfast.errors import ELSEWHERE, StoreError, UsageError
from holdfast.model.digest import Json
from holdfast.process.gitplaces import top_of
from holdfast.wire import STORE_NAME

SCHEMA_PATH = f"{STORE_NAME}/schema/plan-1.json"
_IGNORED = f"{STORE_NAME}/"
_LONGEST_NAME = 255
_NAME_LINE = re.compile(rb"^name: \S+", re.MULTILINE)
_SAFE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*\Z")


@click.command(
    epilog="\b\nExample:\n  holdfast init\n  holdfast init notes --template python --name notes\n"
    "  holdfast init --ci github\n  holdfast init --agents claude,cursor,codex"
)
@click.argument("directory", metavar="[DIR]", default=".")
@click.option(
    "--template",
    metavar="NAME",
    default="basic",
    show_default=True,
    help="basic: commands and a guard. python: functions too. minimal: two steps. goal: a model plans. Or"
    " one of your own.",
)
@click.option(
    "--param",
    "params",
    multiple=True,
    metavar="NAME=VALUE",
    help="A value for a param of the template; may be repeated.",
)
@click.option("--name", metavar="NAME", help="Name of the plan (default: the directory's).")
@click.option(
    "--ci",
    "system",
    type=click.Choice(SYSTEMS),
    help="Write a workflow for this CI too; beside a plan that is there, nothing but that.",
)
@click.option(
    "--agents",
    metavar="LIST",
    help="Let these coding agents use Holdfast here: claude,cursor,codex. With a plan that is there already, "
    "only this is done.",
)
@json_option
def init(
    directory: str,
    template: str,
    name: str | None,
    params: tuple[str, ...],
    system: str | None,
    agents: str | None,
    *,
    as_json: bool,
) -> int:
    """Write a project that runs as it is: a plan, what it reads, a guard.

    No file is ever overwritten: if one is in the way, nothing is written at all.
    """
    invited, workflow = _invited(directory, agents), ci_files(system, directory)
    if (invited is not None or system is not None) and _has_plan(directory):
        write_files(directory, workflow)
        if invited is None:
            return _say_workflow(directory, [*workflow], as_json=as_json)
        return _tell_agents(directory, invited, [*workflow], as_json=as_json)
    title = _name(directory, name)
    chosen = found(template, os.getcwd())
    whole = with_params(chosen, _params(params), asks=can_ask() and not as_json)
    files = {**named(whole, title), **workflow}
    write_project(directory, files)
    written = [*files, SCHEMA_PATH]
    if _ignore_store(directory):
        written.append(".gitignore")
    if invited is not None:
        write_changes(directory, invited.changes)
        written += [one.path for one in invited.changes if one.how != "kept"]
    following = templates.NEXT.get(template, "plan")
    move = "" if directory == "." else f"cd {shlex.quote(directory)} && "
    if as_json:
        out_json(
            {
                "schema": "holdfast.init/1",
                "directory": directory,
                "template": template,
                "name": title,
                "files": list(written),
                "next": [f"{move}holdfast {following}"],
            }
        )
        return 0
    out(f"{title}: a project from the template '{template}'")
    for path in written:
        out(f"  {os.path.normpath(os.path.join(directory, path))}")
    for line in invited.lines if invited is not None else ():
        out(line)
    out(f"next: {move}holdfast {following}")
    return 0


def _say_workflow(directory: str, written: list[str], *, as_json: bool) -> int:
    places = [os.path.normpath(os.path.join(directory, path)) for path in written]
    following = f"git add {shlex.join(places)}"
    if as_json:
        files: list[Json] = [*places]
        out_json({"schema": "holdfast.init/1", "files": files, "next": [following]})
        return 0
    for path in places:
        out(f"  {path}")
    out(f"next: {following}")
    return 0


class _Invited(NamedTuple):
    """Agents that shall use Holdfast here: what their files become, and how they are told elsewhere."""

    changes: Sequence[Change]
    lines: Sequence[str]


def _invited(directory: str, given: str | None) -> _Invited | None:
    """What becomes of the files of agents; errors in them are found before anything is written."""
    if given is None:
        return None
    names = agents_named(given)
    return _Invited(changes_for(directory, names), install_lines(names))


def _has_plan(directory: str) -> bool:
    return any(os.path.isfile(os.path.join(directory, name)) for name in PLAN_NAMES)


def _tell_agents(
    directory: str, invited: _Invited, written: Sequence[str], *, as_json: bool
) -> int:
    """Only the files of agents, and what else was written, beside a plan that is there."""
    write_changes(directory, invited.changes)
    if as_json:
        out_json(
            {
                "schema": "holdfast.init/1",
                "directory": directory,
                "template": None,
                "name": None,
                "files": [*written, *(one.path for one in invited.changes if one.how != "kept")],
                "next": ["holdfast plan"],
            }
        )
        return 0
    for path in written:
        out(f"  {os.path.normpath(os.path.join(directory, path))}")
    for one in invited.changes:
        out(f"  {one.how:<7} {os.path.normpath(os.path.join(directory, one.path))}")
    for line in invited.lines:
        out(line)
    out("next: holdfast plan")
    return 0


def named(files: Mapping[str, bytes], name: str) -> dict[str, bytes]:
    """The files of a template with the plan under another name."""
    spelled = name if _SAFE_NAME.match(name) else json.dumps(name, ensure_ascii=False)
    line = f"name: {spelled}".encode()
    if "plan.yaml" not in files:
        return dict(files)
    plan = _NAME_LINE.sub(lambda _: line, files["plan.yaml"], count=1)
    return {**files, "plan.yaml": plan}


def _params(given: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for word in given:
        name, sign, value = word.partition("=")
        if not sign or not name:
            raise UsageError(f"'{word}' is no value for a param", hint="--param NAME=VALUE")
        found[name] = value
    return found


def _name(directory: str, given: str | None) -> str:
    if given is None:
        found = os.path.basename(os.path.abspath(directory))
        return found if _SAFE_NAME.match(found) else "my-plan"
    fits = given.strip() and given.isprintable() and len(given) <= _LONGEST_NAME
    if not fits or "${{" in given:
        raise UsageError(f"a plan's name is one line of 1 to {_LONGEST_NAME} characters")
    return given


def write_project(directory: str, files: Mapping[str, bytes]) -> None:
    """Write all files and the schema for editors, or none and say what is in the way."""
    _refuse_overwriting(
        directory, (*files, *PLAN_NAMES), "holdfast init DIR, with a directory of its own"
    )
    made: list[str] = []
    with _whole(made):
        for path, content in files.items():
            _write_new(os.path.join(directory, path), content, made)
        _write_schema(directory, made)


def write_files(directory: str, files: Mapping[str, bytes]) -> None:
    """Write all files beside what is there, or none and say what is in the way."""
    _refuse_overwriting(directory, (*files,), "compare it with examples/ci, or move it away first")
    made: list[str] = []
    with _whole(made):
        for path, content in files.items():
            _write_new(os.path.join(directory, path), content, made)


def _refuse_overwriting(directory: str, paths: Sequence[str], hint: str) -> None:
    blocked = _in_the_way(directory, paths)
    if blocked:
        raise UsageError(
            f"nothing was written, because this is there already: {', '.join(blocked)}",
            hint=hint,
        )


@contextmanager
def _whole(made: list[str]) -> Iterator[None]:
    """Take back all that was made if not all can be."""
    try:
        yield
    except OSError as error:
        _take_back(made)
        raise StoreError(f"the project cannot be written: {error}", hint=ELSEWHERE) from error
    except BaseException:
        _take_back(made)
        raise


def _in_the_way(directory: str, paths: Sequence[str]) -> list[str]:
    """Files that would be overwritten or shadowed, and whatever stands where a directory must be."""
    found: dict[str, None] = {}
    for path in paths:
        parts = path.split("/")
        for count in range(len(parts)):
            place = os.path.join(directory, *parts[:count])
            if os.path.lexists(place) and not os.path.isdir(place):
                found[os.path.normpath(place)] = None
        if os.path.lexists(os.path.join(directory, path)):
            found[os.path.normpath(os.path.join(directory, path))] = None
    return list(found)


def _write_new(path: str, content: bytes, made: list[str]) -> None:
    """Write a file that is not there; `made` grows by all that was made for it."""
    _make_folder(os.path.dirname(path), made)
    with open(path, "xb") as file:
        made.append(path)
        file.write(content)


def _make_folder(folder: str, made: list[str], mode: int = 0o777) -> None:
    missing: list[str] = []
    while folder and not os.path.isdir(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    for path in reversed(missing):
        os.mkdir(path, mode)
        made.append(path)


def _write_schema(directory: str, made: list[str]) -> None:
    """Where the first line of the plan points. Not a store: that begins with its database."""
    from holdfast.formats.grammar import plan_schema

    home = os.path.join(directory, STORE_NAME)
    _make_folder(home, made, 0o700)  # as the store itself does
    with suppress(FileExistsError):
        _write_new(os.path.join(home, ".gitignore"), b"*\n", made)
    place = os.path.join(directory, SCHEMA_PATH)
    _make_folder(os.path.dirname(place), made)
    text = json.dumps(plan_schema(), ensure_ascii=False, indent=1) + "\n"
    if not os.path.exists(place):
        made.append(place)
    with open(place, "w", encoding="utf-8") as file:
        file.write(text)


def _take_back(made: list[str]) -> None:
    for path in reversed(made):
        with suppress(OSError):  # somebody else put something there meanwhile: it stays
            (os.rmdir if os.path.isdir(path) else os.unlink)(path)


def _ignore_store(directory: str) -> bool:
    """Keep the store out of git, if git is used here; whether a line had to be added."""
    if top_of(os.path.abspath(directory)) is None:
        return False
    path = os.path.join(directory, ".gitignore")
    try:
        with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
            old = file.read()
    except FileNotFoundError:
        old = ""
    except OSError:  # a directory, or not ours to read: the store ignores itself anyway
        return False
    if any(line.strip().strip("/") == STORE_NAME for line in old.splitlines()):
        return False
    gap = "" if not old or old.endswith("\n") else "\n"
    try:
        with open(path, "a", encoding="utf-8", newline="") as file:
            file.write(f"{gap}{_IGNORED}\n")
    except OSError:
        return False
    return True
