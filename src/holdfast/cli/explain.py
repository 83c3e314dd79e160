"""explain: what a code means, why it happens, what to do; or the same for a step."""

from __future__ import annotations

import difflib

import click

from holdfast.cli.catalogue import GROUPS, Entry, entries, find
from holdfast.cli.place import Place, file_option, json_option, place, place_options
from holdfast.cli.say import out, out_json
from holdfast.cli.view import view
from holdfast.errors import PlanError, UsageError
from holdfast.model.digest import Json
from holdfast.model.text import cut, wrap

SCHEMA = "holdfast.explain/1"
_MARGIN = 12
_KINDS = {
    "reasons": "a reason",
    "plan-file": "a problem of a plan file",
    "errors": "an error",
    "guards": "a guard",
    "exit-codes": "an exit code",
}


@click.command(
    epilog="\b\nExample:\n  holdfast explain P030\n  holdfast explain guard_rejected\n"
    "  holdfast explain exit:3\n  holdfast explain build"
)
@click.argument("what", metavar="[CODE|GROUP|STEP]", required=False)
@file_option
@place_options
@json_option
def explain(
    what: str | None, plan: str | None, store: str | None, plan_id: str | None, *, as_json: bool
) -> int:
    """Say what a code means and what to do about it; for a step, what `why` says.

    Alone it lists all codes; with reasons, plan-file, errors, guards or exit-codes those of a group.
    """
    known = entries()
    if what is None or what in GROUPS:
        _list([e for e in known.values() if what in {None, e.group}], as_json=as_json)
        return 0
    found = find(known, what)
    if found is not None:
        if as_json:
            out_json({"schema": SCHEMA, **_json(found)})
        else:
            _print(found)
        return 0
    where = place(plan, store, plan_id)
    names = _steps(where)
    unknown = _unknown(what, [*known, *GROUPS, *names])
    if not names:
        raise unknown
    from holdfast.cli.why import tell, told_now
    from holdfast.model.event import Options

    try:
        told = told_now(where, what, Options())
    except UsageError as error:
        raise (error if what in names else unknown) from None  # others may be added to the plan
    tell(told, as_json=as_json)
    return 0


def _steps(where: Place) -> list[str]:
    """The steps of the plan here, if there is one that can be read."""
    if where.file is None:
        return []
    try:
        return list(where.load().plan.steps)
    except PlanError:
        return []


def _unknown(what: str, names: list[str]) -> UsageError:
    by_fold = {name.lower(): name for name in names}
    near = difflib.get_close_matches(what.lower(), by_fold, n=1)
    hint = f"did you mean 'holdfast explain {by_fold[near[0]]}'?" if near else "holdfast explain"
    return UsageError(f"'{what}' is neither a code nor a step of a plan here", hint=hint)


def _json(entry: Entry) -> dict[str, Json]:
    return {
        "code": entry.code,
        "group": entry.group,
        "title": entry.title,
        "means": entry.means,
        "why": entry.why,
        "do": entry.do,
        "example": entry.example,
        "exit_code": entry.exit_code,
    }


def _print(entry: Entry) -> None:
    kind = _KINDS.get(entry.group, entry.group)
    told = "" if entry.title == entry.means else f": {entry.title}"
    out(f"{entry.code} · {kind}{told}")
    out()
    for label, text in (("means", entry.means), ("because", entry.why), ("to do", entry.do)):
        if text:
            _row(label, text)
    for place_, line in enumerate(entry.example.splitlines()):
        if place_ == 0:
            out()
        out(f"  {'example' if place_ == 0 else '':<{_MARGIN - 2}}{line}")
    if entry.exit_code is not None and entry.group != "exit-codes":
        out()
        out(f"  exit code {entry.exit_code}")


def _row(label: str, text: str) -> None:
    head, width = f"  {label:<{_MARGIN - 2}}", view().width
    for place_, piece in enumerate(wrap(text, width and max(20, width - _MARGIN), indent=0)):
        out((" " * _MARGIN if place_ else head) + piece)


def _list(listed: list[Entry], *, as_json: bool) -> None:
    if as_json:
        out_json({"schema": "holdfast.codes/1", "codes": [_json(entry) for entry in listed]})
        return
    width = view().width
    group = ""
    for entry in listed:
        if entry.group != group:
            out(("\n" if group else "") + entry.group)
            group = entry.group
        line = f"  {entry.code:<22} {entry.title}"
        out(cut(line, width) if width else line)
    out()
    out("next: holdfast explain CODE")
