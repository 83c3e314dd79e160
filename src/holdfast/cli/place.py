"""Where a command works: which plan, which project directory, which store, which run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar, cast

import click

from holdfast import wire
from holdfast.cli.again import Here, here_now, keep_here
from holdfast.cli.say import talk
from holdfast.errors import UsageError
from holdfast.formats.heading import plan_name
from holdfast.model.digest import Json
from holdfast.model.items import step_named
from holdfast.model.plan import Plan, RunId, StepId
from holdfast.ports import RunRow, Store

if TYPE_CHECKING:
    from holdfast.formats.planfile import Loaded

PLAN_NAMES = ("plan.yaml", "plan.yml", "plan.json")
SUFFIXES = (".yaml", ".yml", ".json")

F = TypeVar("F", bound=Callable[..., object])


@dataclass(frozen=True, slots=True)
class Place:
    """A plan file if there is one, the project directory, and the store."""

    file: str | None
    root: str
    location: str
    plan_id: str | None
    params: Mapping[str, Json] = field(default_factory=dict)

    def load(
        self,
        before: Mapping[str, Json] | None = None,
        held: Callable[[str], bool] | None = None,
    ) -> Loaded:
        """Read the plan; an error if this place has none. Params not given stand as they were `before`.

        With `held`, names of approvers that nobody holds are warned of.
        """
        if self.file is None:
            raise UsageError(
                f"there is no {' or '.join(PLAN_NAMES)} here",
                hint="name a plan file, or use -C DIR",
            )
        from holdfast.formats.planfile import load_plan  # many commands need only the line's name

        params = {**(before or {}), **self.params}
        return load_plan(
            self.file,
            name=self.plan_id,
            params=params,
            find=wire.project_files,
            check=wire.guard_flaw,
            held=held,
            own=wire.own_agents,
            models=wire.market.known_models,
        )

    def line(self) -> str | None:
        """The line that is meant: by --plan-id, else by the plan file if there is one.

        Only the name is read; a plan that is wrong somewhere else, or lacks a param, still has it.
        """
        if self.plan_id is not None or self.file is None:
            return self.plan_id
        return plan_name(self.file) or self.load().plan.name

    def open(self, *, create: bool = False, readonly: bool = False) -> Store:
        """Open the store."""
        return wire.open_store(self.location, create=create, readonly=readonly, say=talk)

    def exists(self) -> bool:
        """Whether there is a store already: made whole, not only begun by a process that was killed."""
        return wire.has_store(self.location)


def place(plan: str | None, store: str | None, plan_id: str | None) -> Place:
    """Resolve what was given on the command line."""
    file = plan or _found()
    if plan is not None and not os.path.isfile(plan):
        if " " in plan and not plan.endswith(SUFFIXES):
            raise UsageError("a goal in words needs a planner, which this version does not have")
        raise UsageError(f"there is no plan file '{plan}'")
    try:
        root = os.path.dirname(os.path.abspath(file)) if file else os.getcwd()
    except FileNotFoundError as error:
        raise UsageError("the current directory is not there any more", hint="-C DIR") from error
    location = wire.store_location(root, store)
    found = Place(file, root, location, plan_id, _params())
    keep_here(_here(found, plan, store))
    return found


def keep_line(where: Place, line: str) -> None:
    """Let the commands that are told name another line than that of the plan file."""
    if where.line() not in {None, line}:
        keep_here(replace(here_now(), plan_id=line))


def _here(found: Place, plan: str | None, store: str | None) -> Here:
    """What has to be said to get to this place again."""
    file = plan if plan is not None and plan != _found() else ""
    is_own = found.location == wire.store_location(found.root, None)
    line = found.plan_id or ""
    if line and found.file is not None and plan_name(found.file) == line:
        line = ""
    return Here(file, "" if is_own else store or "", line, found.params)


def _found() -> str | None:
    return next((name for name in PLAN_NAMES if os.path.isfile(name)), None)


PARAMS = "holdfast.params"


def _params() -> Mapping[str, Json]:
    context = click.get_current_context(silent=True)
    return {} if context is None else cast("Mapping[str, Json]", context.meta.get(PARAMS, {}))


def _keep_params(ctx: click.Context, _option: click.Parameter, given: tuple[str, ...]) -> None:
    """Params reach the plan through the context: no command has to hand them on."""
    found: dict[str, Json] = {}
    for item in given:
        name, sign, value = item.partition("=")
        if not sign or not name:
            raise UsageError(
                f"--param '{item}' has no value", hint=f"--param {name or 'NAME'}=VALUE"
            )
        if name in found:
            raise UsageError(f"the param '{name}' is given twice")
        found[name] = value
    ctx.meta[PARAMS] = found


def place_options(command: F) -> F:
    """The options that say where a command works, and what its plan is given."""
    command = click.option(
        "--param",
        multiple=True,
        metavar="NAME=VALUE",
        expose_value=False,
        callback=_keep_params,
        help="A value for a param of the plan; may be repeated.",
    )(command)
    command = click.option(
        "--store", metavar="DIR", help="Where state lives (default: .holdfast beside the plan)."
    )(command)
    return click.option("--plan-id", metavar="NAME", help="The line, if not the plan's own name.")(
        command
    )


def file_option(command: F) -> F:
    """The plan file as an option, for commands whose argument is something else."""
    return click.option(
        "-f", "--file", "plan", metavar="PLAN", help="The plan file (default: plan.yaml)."
    )(command)


json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object on stdout."
)


def find_run(store: Store, given: str | None, line: str | None) -> RunId:
    """A run by id, by unique prefix, or counted back: `@` is the last, `@-1` the one before.

    Runs of other stores are counted only if they are named by a person and there is no other.
    """
    if given is not None and not given.startswith("@"):
        return _by_prefix(list(store.runs(imported=True)), given)
    rows = store.runs(line) or (store.runs(line, imported=True) if given else ())
    if not rows:
        raise UsageError(
            "there is no run yet" + (f" of line '{line}'" if line else ""), hint="holdfast run"
        )
    if given is None or given == "@":
        return rows[-1].run
    if given.startswith("@-") and given[2:].isdigit():
        back = int(given[2:])
        if back >= len(rows):
            raise UsageError(f"there are only {len(rows)} runs")
        return rows[-1 - back].run
    raise UsageError(f"there is no run '{given}'", hint="holdfast history")


def _by_prefix(rows: list[RunRow], given: str) -> RunId:
    wanted = given if given.startswith("r-") else f"r-{given}"
    found = [row.run for row in rows if row.run.startswith(wanted)]
    if len(found) == 1:
        return found[0]
    if not found:
        raise UsageError(f"there is no run '{given}'", hint="holdfast status")
    raise UsageError(f"'{given}' fits {len(found)} runs: {', '.join(found[:3])} …")


def known_step(plan: Plan, given: str) -> StepId:
    """A step of the plan by its id; that of an item also by its key as it is."""
    step_id = step_named(given, plan.steps)
    if step_id is None:
        raise UsageError(f"the plan has no step '{given}'", hint=nearest(given, plan.steps))
    return step_id


def nearest(given: str, names: Iterable[str]) -> str | None:
    """A question about the name that was probably meant; None if nothing is like it."""
    import difflib

    near = difflib.get_close_matches(given, list(names), n=1)
    return f"did you mean '{near[0]}'?" if near else None
