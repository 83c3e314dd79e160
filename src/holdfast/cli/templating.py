"""Templates of a project and of a person: found by name, filled in, and made from a plan.

A template is a plan file. It is looked for in the folder that the project's settings name, then in that of
the person (`templates` beside the person's config.toml), then among those that are shipped.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import click

from holdfast import wire
from holdfast.cli import templates
from holdfast.cli.place import json_option, place, place_options
from holdfast.cli.say import out, out_json
from holdfast.cli.view import view
from holdfast.config.settings import template_folders
from holdfast.errors import ELSEWHERE, PlanError, StoreError, UsageError
from holdfast.formats.blanks import Blank, blanks, filled_in
from holdfast.formats.heading import python_part
from holdfast.formats.planfile import Asked, load_text, read_file
from holdfast.formats.problems import Problems
from holdfast.formats.reading import Reading
from holdfast.model.walls import Walls

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}\Z")
_SUFFIXES = (".yaml", ".yml", ".json")
_NOT_GIVEN = "P062"  # a param without a value: that is what a template is for


class Found(NamedTuple):
    """A template: the files of a project, and the file in which its params stand."""

    files: Mapping[str, bytes]
    plan: str


def found(name: str, root: str) -> Found:
    """A template by its name; UsageError names those that there are."""
    for folder in template_folders(root):
        for suffix in _SUFFIXES:
            path = os.path.join(folder, name + suffix)
            if _NAME.match(name) and os.path.isfile(path):
                content, _ = read_file(path, walls=wire.walls_at(root))
                file = "plan.json" if suffix == ".json" else "plan.yaml"
                return Found({file: content}, file)
    if name in templates.NAMES:
        return Found(templates.files_of(name), "plan.yaml")
    raise UsageError(
        f"there is no template '{name}'", hint=f"there are: {', '.join(template_names(root))}"
    )


def template_names(root: str) -> list[str]:
    """Every template by its name: the project's and the person's own first, then those that are shipped."""
    return list(dict.fromkeys([*_own_names(root), *templates.NAMES]))


def _own_names(root: str) -> Iterator[str]:
    for folder in template_folders(root):
        if os.path.isdir(folder):
            for entry in sorted(os.listdir(folder)):
                stem, suffix = os.path.splitext(entry)
                if suffix in _SUFFIXES and _NAME.match(stem):
                    yield stem


def with_params(template: Found, given: Mapping[str, str], *, asks: bool) -> dict[str, bytes]:
    """The files of a template with the values of its params; what nobody gave is asked for, or refused."""
    content, file = template.files.get(template.plan), template.plan
    known = {} if content is None else blanks(content, file, Reading(Problems(file), Path()))
    for name in given:
        if name not in known:
            has = f"it has: {', '.join(known)}" if known else "it has none"
            raise UsageError(f"the template has no param '{name}'", hint=has)
    values = dict(given)
    for name, blank in known.items():
        if name not in values and not blank.has_default:
            values[name] = _asked(blank, asks=asks)
    if content is None:
        return dict(template.files)
    made = filled_in(content, file, Reading(Problems(file), Path()), values)
    return {**template.files, file: made}


def _asked(blank: Blank, *, asks: bool) -> str:
    if not asks:
        raise UsageError(
            f"the template wants a value for '{blank.name}' ({blank.type})",
            hint=f"--param {blank.name}=…",
        )
    return str(click.prompt(f"{blank.name} ({blank.type})", err=True))


def can_ask() -> bool:
    """Whether a person sits there who can be asked."""
    return view().mode not in {"json", "jsonl"} and sys.stdin is not None and sys.stdin.isatty()


@click.command(
    "save-as-template",
    epilog="\b\nExample:\n  holdfast plans save-as-template review\n"
    "  holdfast init notes --template review --param topic=pumps",
)
@click.argument("name", metavar="NAME")
@click.argument("plan_file", metavar="[PLAN]", required=False)
@place_options
@json_option
@click.option("--replace", is_flag=True, help="Take the place of a template of this name.")
def save_as_template(
    name: str,
    plan_file: str | None,
    store: str | None,
    plan_id: str | None,
    *,
    as_json: bool,
    replace: bool,
) -> int:
    """Keep a plan file as a template, which 'init --template NAME' makes projects from.

    It goes into the folder that 'templates' in holdfast.toml names, else into your own configuration
    directory. Params without a default are asked for when it is used.
    """
    if not _NAME.match(name):
        raise UsageError(
            f"'{name}' is no name of a template", hint="letters, digits, _ and -, at most 64"
        )
    where = place(plan_file, store, plan_id)
    if where.goal:
        hint = "holdfast plans show GOAL -o FILE writes it, then save that file"
        raise UsageError("a template is made of a plan file, not of a goal", hint=hint)
    if where.file is None:
        raise UsageError("there is no plan file here", hint="holdfast init")
    if python_part(where.file)[0]:
        hint = "write it with to_yaml() first, then save that file"
        raise UsageError(f"'{where.file}' is Python, and a template is a plan file", hint=hint)
    walls = wire.walls_at(where.root)
    content, root = read_file(where.file, walls=walls)
    _check(content, where.file, root, walls)
    suffix = ".json" if where.file.endswith(".json") else ".yaml"
    folder = template_folders(where.root)[0]
    path = os.path.join(folder, name + suffix)
    others = [p for s in _SUFFIXES if os.path.lexists(p := os.path.join(folder, name + s))]
    if others and not replace:
        raise UsageError(f"'{others[0]}' is there already", hint="--replace")
    _write(path, content, others)
    params = list(blanks(content, where.file, Reading(Problems(where.file), Path())))
    if as_json:
        said = {"schema": "holdfast.template/1", "template": name, "file": path, "params": params}
        out_json(said)
        return 0
    out(f"{name}: {path}")
    out(f"params: {', '.join(params)}" if params else "it has no params")
    out(f"next: holdfast init DIR --template {name}")
    return 0


def _check(content: bytes, file: str, root: str, walls: Walls) -> None:
    """See that it is a plan; that nobody gave its params, or that files are not there, is no fault."""
    try:
        load_text(content, file, root, Asked(walls=walls))
    except PlanError as error:
        wrong = tuple(problem for problem in error.problems if problem.code != _NOT_GIVEN)
        if wrong:
            raise PlanError(wrong) from error


def _write(path: str, content: bytes, others: list[str]) -> None:
    draft = f"{path}.draft"
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(draft, "wb") as file:
            file.write(content)
        os.replace(draft, path)
        for other in others:
            if other != path:
                os.unlink(other)
    except OSError as error:
        raise StoreError(f"the template cannot be written: {error}", hint=ELSEWHERE) from error
