"""Where a command works: which plan, which project directory, which store, which run."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from functools import cache
from typing import TYPE_CHECKING, TypeVar, cast

import click

from holdfast import wire
from holdfast.cli.again import Here, here_now, keep_here
from holdfast.cli.say import talk_once
from holdfast.cli.titles import brief, is_planning
from holdfast.errors import PlanError, UsageError
from holdfast.formats.heading import plan_name, python_part
from holdfast.model.digest import Json, digest_bytes
from holdfast.model.fixed import frozen
from holdfast.model.items import step_named
from holdfast.model.plan import Plan, RunId, StepId
from holdfast.model.text import is_count
from holdfast.ports import RunRow, Store
from holdfast.wire.shared import refuse_password

if TYPE_CHECKING:
    from holdfast.core.state import State
    from holdfast.engine.unkept import Hidden
    from holdfast.formats.planfile import Asked, Loaded

PLAN_NAMES = ("plan.yaml", "plan.yml", "plan.json")
SUFFIXES = (".yaml", ".yml", ".json", ".py")
RECEIVED = "received"  # the folder of plans that somebody sent
_RECEIVED = f"{os.sep}{wire.STORE_NAME}{os.sep}{RECEIVED}"
WITHOUT_FILE = "no file is known to have this plan: it is taken as the last run has it"
PLANNED = "planned"  # what a plan is called that a model made for a goal

_LONG = 300  # characters of a goal that is not said again in every hint

_HEAD = 256  # bytes in which a saved preview says what it is
_PREVIEW = re.compile(rb"""\s*\{\s*"schema"\s*:\s*"holdfast\.preview/(\w+)\"""")
_DIGITS = re.compile(r"[0-9a-f]{6,63}(\.planning)?")

F = TypeVar("F", bound=Callable[..., object])


@frozen
class Place:
    """A plan file if there is one, or a goal in words, the project directory, and the store."""

    file: str | None
    root: str
    location: str
    plan_id: str | None
    params: Mapping[str, Json] = field(default_factory=dict)
    goal: str = ""
    spare: bool = False  # whether params may be given that the plan does not have
    whole: bool = False  # whether a store is refused of which something cannot be read any more
    meant: bool = False  # whether a person named the file, or the line is known to be run from it

    def load(
        self,
        before: Mapping[str, Json] | None = None,
        held: Callable[[str], bool] | None = None,
    ) -> Loaded:
        """Read the plan; an error if this place has none. Params not given stand as they were `before`.

        With `held`, names of approvers that nobody holds are warned of.
        """
        if self.file is None:
            found = self.planned()
            if found is None:
                raise self._nothing()
            return found
        return load_file(self.file, self._asked(before, held))

    def load_received(self, content: bytes) -> Loaded:
        """Read a plan that somebody sent and that lies nowhere yet: it comes from elsewhere."""
        from holdfast.formats.planfile import load_text

        assert self.file is not None
        return _foreign(load_text(content, self.file, self.root, self._asked()))

    def _asked(
        self,
        before: Mapping[str, Json] | None = None,
        held: Callable[[str], bool] | None = None,
    ) -> Asked:
        from holdfast.formats.planfile import Asked  # many commands need only the line's name

        return Asked(
            name=self.plan_id,
            params={**(before or {}), **self.params},
            find=wire.project_files,
            check=wire.guard_flaw,
            held=held,
            own=wire.own_agents,
            models=wire.market.known_models,
            spare=self.spare,
            walls=wire.walls_at(self.root),
        )

    def planned(self) -> Loaded | None:
        """The plan that a model made for the goal of this line, if one did: it comes from elsewhere."""
        if self.plan_id is None or not self.exists():
            return None
        from holdfast.engine.versions import kept_plan, planned
        from holdfast.formats.planfile import Loaded

        store = self.open(readonly=True)
        try:
            version = planned(store, "", self.plan_id)
            if version is None:
                return None
            return Loaded(kept_plan(store, version.plan), "", self.root, foreign=PLANNED)
        finally:
            store.close()

    def _nothing(self) -> UsageError:
        if self.goal:
            return UsageError("nothing was planned for this goal yet", hint="holdfast plan")
        if self.plan_id is not None and _found() is not None:
            return UsageError(
                f"the plan file of line '{brief(self.plan_id)}' is not there any more",
                hint="name a plan file",
            )
        return UsageError(
            f"there is no {' or '.join(PLAN_NAMES)} here", hint="name a plan file, or use -C DIR"
        )

    def load_again(self, store: Store, state: State) -> Loaded:
        """Read the plan for another run of a line: that of its file, else the one that its last run has."""
        if self.meant or self.is_named(state.line):
            return self.load()
        if (found := self.planned()) is not None:
            return found
        from holdfast.engine.versions import kept_plan
        from holdfast.formats.planfile import Loaded

        return Loaded(replace(kept_plan(store, state.base), name=state.line), "", self.root)

    def is_named(self, line: str) -> bool:
        """Whether the plan file has the name of a line."""
        return self.file is not None and plan_name(self.file) == line

    def file_seen(self) -> str:
        """The plan file as seen from the project; empty if there is none."""
        return os.path.relpath(self.file, self.root) if self.file is not None else ""

    def line(self) -> str | None:
        """The line that is meant: by --plan-id, else by the plan file if there is one.

        Only the name is read; a plan that is wrong somewhere else, or lacks a param, still has it.
        """
        if self.plan_id is not None or self.file is None:
            return self.plan_id
        return plan_name(self.file) or self.load().plan.name

    def open(self, *, create: bool = False, readonly: bool = False) -> Store:
        """Open the store."""
        return wire.open_store(
            self.location, create=create, readonly=readonly, whole=self.whole, say=talk_once
        )

    def hidden(self, store: Store, *plans: Plan) -> Hidden:
        """What nothing may hold that is stored here: keys, and what steps see as secrets.

        Steps of the line's runs, of the plan file if it can be read, and of these plans. Only what is asked
        for is read, so the store must be open then.
        """

        def known() -> Iterator[Plan]:
            yield from plans
            if self.file is not None:
                with suppress(PlanError, UsageError):  # it may be wrong, or lack a param
                    yield self.load().plan

        @cache
        def values() -> Sequence[str]:
            rows = store.runs(self.line())
            project, line = (rows[-1].project, rows[-1].line) if rows else ("", "")
            return wire.market.vault_for(self.root, store, project, line, known).values()

        return values

    def exists(self) -> bool:
        """Whether there is a store already: made whole, not only begun by a process that was killed."""
        return wire.has_store(self.location)


def load_file(path: str, asked: Asked) -> Loaded:
    """The plan of a plan file or of a Python file."""
    if python_part(path)[0]:
        from holdfast.formats.pyplan import load_python

        return load_python(path, asked)
    from holdfast.formats.planfile import load_text, read_file

    content, root = read_file(path, walls=asked.walls)
    if is_received(path):
        return _foreign(load_text(content, path, root_of(path), asked))
    if found := _PREVIEW.match(content[:_HEAD]):
        version, name = found[1].decode(), shlex.quote(path)
        if version != "1":
            raise UsageError(f"'{path}' is a saved preview of the unknown version {version}")
        raise UsageError(f"'{path}' is a saved preview, no plan", hint=f"holdfast run {name}")
    return load_text(content, path, root, asked)


def received(where: Place, text: str) -> Place:
    """Where a plan lies, or would lie, that somebody sent as text: apart from those that people wrote.

    Its project is that of the place; its line is its own.
    """
    name = f"{digest_bytes(text.encode())[:12]}.yaml"
    folder = os.path.relpath(os.path.join(where.root, wire.STORE_NAME, RECEIVED))
    return replace(where, file=os.path.join(folder, name), plan_id=None, goal="")


def is_received(path: str) -> bool:
    """Whether a plan file lies where those lie that somebody sent."""
    return os.path.dirname(os.path.abspath(path)).endswith(_RECEIVED)


def _foreign(loaded: Loaded) -> Loaded:
    return replace(loaded, foreign=loaded.foreign or "plan")


def place(
    plan: str | None, store: str | None, plan_id: str | None, *, whole: bool = False
) -> Place:
    """Resolve what was given on the command line; for whoever will write, or needs it `whole`."""
    goal = plan if plan is not None and is_goal(plan) else ""
    file = None if goal else plan or _found()
    if plan is not None and not goal and not os.path.isfile(python_part(plan)[0] or plan):
        raise UsageError(f"there is no plan file '{plan}'", hint=_instead_of(plan))
    root = root_of(file)
    refuse_password(store or "")
    location = wire.store_location(root, store)
    line = _whole(location, plan_id) or (goal_line(goal) if goal else None)
    found = Place(file, root, location, line, _params(), goal, whole=whole, meant=plan is not None)
    if plan is None and file is not None and line is not None and wire.has_store(location):
        found = of_line(found, line)
    keep_here(_here(found, plan, store))
    return found


def refuse_planning(plan_id: str | None) -> None:
    """No plan of one's own is kept on the line on which plans are made."""
    if plan_id is not None and is_planning(plan_id):
        raise UsageError(
            f"'{plan_id}' is the name of a line on which plans are made",
            hint="name another --plan-id, without .planning at its end",
        )


def root_of(file: str | None) -> str:
    """The project directory of a plan file; without one, where the person is."""
    try:
        if file is not None and is_received(file):
            return os.path.dirname(os.path.abspath(file)).removesuffix(_RECEIVED)
        return os.path.dirname(os.path.abspath(file)) if file else os.getcwd()
    except FileNotFoundError as error:
        raise UsageError("the current directory is not there any more", hint="-C DIR") from error


def of_line(where: Place, line: str) -> Place:
    """The same if the file that happens to be here is the line's; else with the line's own, or with none."""
    from holdfast.engine.replans import last_file
    from holdfast.engine.versions import PLANNED as REASONS
    from holdfast.engine.versions import versions

    store = where.open(readonly=True)
    try:
        found = versions(store, "", line)
        if found and found[-1].reason in REASONS:  # the line is that of a goal
            return replace(where, file=None)
        return on_line(where, line, "" if where.is_named(line) else last_file(store, line))
    finally:
        store.close()


def on_line(where: Place, line: str, file: str) -> Place:
    """This place for a line whose last run began with a plan file, as seen from the project.

    If nobody knows with which, the file that is here stays; if it is gone, there is none.
    """
    if where.is_named(line) or not file:
        return replace(where, plan_id=line, meant=where.is_named(line))
    path = os.path.normpath(os.path.join(where.root, file))
    is_inside = path.startswith(os.path.join(where.root, ""))
    is_there = is_inside and os.path.isfile(python_part(path)[0] or path)
    return replace(
        where, file=os.path.relpath(path) if is_there else None, plan_id=line, meant=is_there
    )


def _whole(location: str, given: str | None) -> str | None:
    """The line that is meant by a name, or by the first digits of a goal's digest."""
    if given is None or not _DIGITS.fullmatch(given) or not wire.has_store(location):
        return given
    from holdfast.engine.versions import lines_of

    digits, dot, rest = given.partition(".")
    store = wire.open_store(location, readonly=True)
    try:
        names = {name for _, name in lines_of(store)}
    finally:
        store.close()
    found = [
        name for name in names if name.startswith(digits) and name.partition(".")[1:] == (dot, rest)
    ]
    if given in names or not found:
        return given
    if len(found) > 1:
        raise UsageError(f"'{given}' fits {len(found)} lines", hint="holdfast plans list")
    return found[0]


def is_goal(given: str) -> bool:
    """Whether words on the command line are a goal, and not the name of a file."""
    has_blank = any(letter.isspace() for letter in given)
    return has_blank and not given.endswith((*SUFFIXES, ".py")) and not os.path.isfile(given)


def goal_line(goal: str) -> str:
    """The line of a goal: the digest of its words, exactly as they are."""
    if not goal.strip():
        raise UsageError("the goal is empty", hint='say what you want: holdfast run "Build a …"')
    try:
        return digest_bytes(goal.encode())
    except UnicodeEncodeError as error:
        raise UsageError("the goal is not text in UTF-8") from error


def _instead_of(given: str) -> str:
    """What to name instead of a plan file that is not there."""
    path = python_part(given)[0] or given
    if os.path.isdir(path):
        return f"it is a directory; to work there, use -C {shlex.quote(path)}"
    near = near_file(path, (*SUFFIXES, ".py"))
    if near is not None:
        return near
    if not given.endswith((*SUFFIXES, ".py")) and os.sep not in given:
        return "a goal has more than one word"
    found = _found()
    return f"the plan file here is '{found}'" if found else "holdfast init"


def near_file(path: str, suffixes: tuple[str, ...] = ("",)) -> str | None:
    """A question about the file that was probably meant by one that is not there; None if none is like it."""
    import difflib

    folder = os.path.dirname(path)
    stems: dict[str, str] = {}
    with suppress(OSError, ValueError):
        for name in sorted(os.listdir(folder or os.curdir)):
            if name.endswith(suffixes) and os.path.isfile(os.path.join(folder, name)):
                stems.setdefault(os.path.splitext(name)[0], os.path.join(folder, name))
    stem = os.path.splitext(os.path.basename(path))[0]
    near = difflib.get_close_matches(stem, stems, n=1)
    return f"did you mean '{stems[near[0]]}'?" if near else None


def keep_line(where: Place, line: str, file: str = "") -> None:
    """Let the commands that are told name another line than that of the plan file.

    `file` is the plan file that the line is run from, if that is known: then they name that one.
    """
    own = where.line()
    if own == line or (own is None and not file):
        return
    there = on_line(where, line, file)
    is_other = there.meant and there.file != _found()
    keep_here(
        replace(
            here_now(),
            file=there.file or "" if is_other else "",
            plan_id="" if there.is_named(line) else line,
            planless=not there.meant,
        )
    )


def _here(found: Place, plan: str | None, store: str | None) -> Here:
    """What has to be said to get to this place again."""
    given = found.file if plan is None else plan
    file = given if given is not None and given != _found() else ""
    is_own = found.location == wire.store_location(found.root, None)
    line = found.plan_id or ""
    if found.goal and (len(found.goal) > _LONG or found.goal.startswith("-")):
        file = ""  # its digest is shorter, and no option
    elif found.goal and line == goal_line(found.goal):
        line = ""
    if line and found.is_named(line):
        line = ""
    root = found.root if found.file is not None else ""
    return Here(file, "" if is_own else store or "", line, found.params, root=root)


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


def _line_given(_ctx: click.Context, _option: click.Parameter, given: str | None) -> str | None:
    """An empty name would be taken for none, and so for the plan's own line."""
    if given is not None and not given.strip():
        raise UsageError("'--plan-id' names no line: it is empty", hint="name one, or leave it out")
    return given


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
        "--store",
        metavar="DIR",
        help="Where state lives: a directory (default: .holdfast beside the plan) or postgresql://…",
    )(command)
    return click.option(
        "--plan-id",
        metavar="NAME",
        callback=_line_given,
        help="The line, if not the plan's own name.",
    )(command)


def file_option(command: F) -> F:
    """The plan file as an option, for commands whose argument is something else."""
    return click.option(
        "-f", "--file", "plan", metavar="PLAN", help="The plan file (default: plan.yaml)."
    )(command)


json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object on stdout."
)


def find_run(
    store: Store,
    given: str | None,
    line: str | None,
    *,
    of_work: bool = False,
    project: str | None = None,
) -> RunId:
    """A run by id, by unique prefix, or counted back: `@` is the last, `@-1` the one before.

    Runs of other stores are counted only if they are named by a person and there is no other. `of_work`:
    those that made a plan are not counted, unless there is no other. With `project`, only its runs are.
    """
    if given is not None and not given.startswith("@"):
        return _by_prefix(list(store.runs(imported=True)), given)
    known = [row for row in store.runs(line, imported=True) if project in {None, row.project}]
    rows = [row for row in known if not row.imported] or (known if given else [])
    if of_work and line is None:
        rows = [row for row in rows if not is_planning(row.line)] or rows
    if not rows:
        raise UsageError(
            "there is no run yet" + (f" of line '{line}'" if line else ""), hint="holdfast run"
        )
    if given is None or given == "@":
        return rows[-1].run
    if given.startswith("@-") and is_count(given[2:]):
        back = int(given[2:])
        if back >= len(rows):
            few = "is only one run" if len(rows) == 1 else f"are only {len(rows)} runs"
            raise UsageError(f"there {few}", hint="holdfast history")
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
        hint = nearest(given, plan.steps) or "holdfast ls"
        raise UsageError(f"the plan has no step '{given}'", hint=hint)
    return step_id


def nearest(given: str, names: Iterable[str]) -> str | None:
    """A question about the name that was probably meant; None if nothing is like it."""
    import difflib

    near = difflib.get_close_matches(given, list(names), n=1)
    return f"did you mean '{near[0]}'?" if near else None
