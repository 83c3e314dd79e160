"""Load a plan file: bytes to nodes, nodes to steps, steps to a checked plan."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator
from collections.abc import Mapping as Table
from contextlib import contextmanager
from dataclasses import field, replace
from functools import partial
from pathlib import Path
from typing import cast

from holdfast.errors import Problem, outside_fault
from holdfast.formats.contracts import Contracts, Own
from holdfast.formats.foreach import going_on, unfolded
from holdfast.formats.foreign import EXCUSED, excuse, translated
from holdfast.formats.grammar import PLAN
from holdfast.formats.graph import GRAPH, graph_plan, is_graph
from holdfast.formats.nodes import Bounds, Mapping, Node, Scalar, read, too_large
from holdfast.formats.onestep import step_of
from holdfast.formats.params import read_params
from holdfast.formats.premises import check_premises, taken
from holdfast.formats.prepared import check_prepared, full_name
from holdfast.formats.problems import BEGIN, NOWHERE, Problems, folded, in_order, quoted
from holdfast.formats.reading import Check, Find, Named, Reading, kind_of
from holdfast.formats.records import record
from holdfast.formats.strangers import refuse_stranger, refuse_unknown
from holdfast.formats.subplans import DEEPEST, inlined
from holdfast.formats.wiring import Wired, check_wiring, wired_of
from holdfast.model.digest import Json
from holdfast.model.expression import MOST
from holdfast.model.fixed import frozen
from holdfast.model.plan import STEP_ID, Limits, Plan, Step, StepId
from holdfast.model.walls import WALLS, Walls, moved_by

MOST_NAMED = 6  # files of a circle
_EXPRESSIONS_EACH = 100  # for each step, beside those that any plan may have


@frozen
class Asked:
    """What a load is asked for: another name of the line, values of params.

    `find` finds files, `check` says why a guard can never judge, `held` whether anybody holds a name
    that approvers need; without them nobody looks. `own` gives the agents that
    the person knows, `models` whom it can ask, and by which names.
    """

    name: str | None = None
    params: Table[str, Json] = field(default_factory=dict)
    find: Find | None = None
    check: Check | None = None
    held: Callable[[str], bool] | None = None
    own: Own | None = None
    models: Named | None = None
    prompts: str = ""  # a file with the prompts of a foreign workflow
    inside: tuple[str, ...] = ()  # the files that are being read, this one in the last of them
    before: tuple[str, ...] = ()  # the files whose place this one is to take, by their full names
    spare: bool = (
        False  # params that the plan does not have were meant for one whose place it takes
    )
    taken: list[int] = field(default_factory=lambda: [0])  # steps of all files so far
    walls: Walls = WALLS


@frozen
class Loaded:
    """A plan and where it came from; `root` is the directory of the file: the project.

    `foreign` names the format of a file that was not written for this program.
    """

    plan: Plan
    file: str
    root: str
    warnings: tuple[Problem, ...] = ()
    foreign: str = ""


def load_plan(
    path: str,
    *,
    name: str | None = None,
    params: Table[str, Json] | None = None,
    find: Find | None = None,
    check: Check | None = None,
    held: Callable[[str], bool] | None = None,
    own: Own | None = None,
    models: Named | None = None,
    walls: Walls = WALLS,
) -> Loaded:
    """Load a plan file, YAML or JSON; raises PlanError with everything that is wrong with it.

    `params` that the plan does not have, or of another type, are a UsageError. `find` gives the files
    of a project (its directory, a glob) for params that are files; `check` says of a kind of guard
    and its value why it can never judge; `held` says whether anybody holds the name of an approver,
    `own` gives the agents that the person knows, `models` whom it can ask, and by which names.
    """
    content, root = read_file(path, walls=walls)
    asked = Asked(name, params or {}, find, check, held, own, models, walls=walls)
    return load_text(content, path, root, asked)


def read_file(path: str, named: str = "", walls: Walls = WALLS) -> tuple[bytes, str]:
    """The bytes of a plan file, and its directory; `named` is what problems call it, if not by its path."""
    named = named or path
    problems = Problems(named)
    try:
        file = Path(path)
        if not file.exists():
            raise problems.fatal("P010", NOWHERE, f"there is no file {quoted(named)}")
        if not file.is_file():
            raise problems.fatal("P010", NOWHERE, f"{quoted(named)} is not a regular file")
        with file.open("rb") as stream:
            content = stream.read(walls.plan_size + 1)
            if len(content) > walls.plan_size:
                raise too_large(problems, walls.plan_size, os.fstat(stream.fileno()).st_size)
        root = str(file.resolve().parent)
    except OSError as error:
        if (fault := outside_fault(error)) is not None:
            raise fault from error
        reason = (error.strerror or "the system refused").lower()
        raise problems.fatal(
            "P010", NOWHERE, f"{quoted(named)} cannot be read: {reason}"
        ) from error
    except (ValueError, RuntimeError) as error:
        raise problems.fatal("P010", NOWHERE, f"{quoted(named)} is no usable file name") from error
    return content, root


def load_text(content: bytes, file: str, root: str, asked: Asked | None = None) -> Loaded:
    """Load a plan from bytes; `file` is named in problems, `root` is where its files are."""
    problems = Problems(file)
    with _collector_paused():
        try:
            plan, foreign = _plan(content, file, Path(root), asked or Asked(), problems)
        except (RecursionError, MemoryError) as error:
            message = "the plan needs more memory than there is"
            raise problems.fatal("P011", NOWHERE, message) from error
    return Loaded(plan, file, root, in_order(problems.warnings), foreign)


@contextmanager
def _collector_paused() -> Iterator[None]:
    """A load makes millions of objects and no garbage cycles; looking for some doubles its time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _plan(
    content: bytes, file: str, root: Path, asked: Asked, problems: Problems
) -> tuple[Plan, str]:
    bounds = Bounds.of(asked.walls)
    tree = read(content, problems, strict_json=file.endswith(".json"), bounds=bounds)
    if not isinstance(tree, Mapping):
        message = f"a plan is a mapping with 'steps', not {kind_of(tree)}"
        raise problems.fatal("P032", tree, message, BEGIN)
    reading = Reading(problems, root, source=content, check=asked.check, models=asked.models)
    reading.prompts, reading.walls = asked.prompts, asked.walls
    refuse_stranger(problems, tree)
    if is_graph(tree):
        contracts = Contracts(reading, own=asked.own, foreign=True)
        return graph_plan(reading, tree, contracts, asked.name), GRAPH
    origin: Json = None
    foreign = translated(reading, tree, Contracts(reading, own=asked.own))
    if foreign is None:
        refuse_unknown(problems, tree, PLAN)
    else:
        tree, origin = foreign.tree, {foreign.format: foreign.origin}
        problems.excused = EXCUSED
    given = record(reading, "plan", tree, PLAN) or {}
    declared = cast("Node | None", given.get("params"))
    values = asked.params
    if asked.spare:
        known = declared.pairs if isinstance(declared, Mapping) else {}
        values = {name: value for name, value in values.items() if name in known}
    reading.params = read_params(reading, declared, values, asked.find, inner=bool(asked.inside))
    said = cast("Node | None", given.get("agents"))
    contracts = Contracts(reading, said, asked.own, foreign=foreign is not None)
    steps = _steps(reading, tree, given, contracts)
    if foreign is None:
        check_premises(reading, given)
    inner: list[Plan] = []
    if reading.plans:
        steps = inlined(reading, steps, partial(_other, file, root, asked, inner))
        problems.stop()
        wired = {str(name): wired_of(step) for name, step in steps.items()}
        check_wiring(wired, problems, cast("Limits", given.get("limits", Limits())).resources)
    _check_approvers(reading, asked)
    if steps and ("agents" in given or any(step.agent for step in steps.values())):
        limits = cast("Limits", given.get("limits", Limits()))
        held = contracts.hold(steps, _place_in(given), limits, reading.params)
        steps, given["limits"] = held
    if foreign is not None:
        excuse(problems)
    problems.stop()
    steps = _counted(reading, unfolded(reading, going_on(steps), reading.lists, asked.find))
    plan = Plan(
        name=_line_name(asked.name or str(given.get("name", "")) or Path(file).stem, problems),
        steps=steps,
        goal=cast("str", given.get("goal", "")),
        description=cast("str", given.get("description", "")),
        project=cast("str", given.get("project", "")),
        limits=cast("Limits", given.get("limits", Limits())),
        params={param.name: param.given for param in reading.params.values()},
        origin=cast("Table[str, Json]", origin or given.get("origin", {})),
        voices=contracts.voices,
        contracts=contracts.to_keep,
        premises=taken(given, inner),
    )
    if foreign is None and not asked.inside:
        own = full_name(root, file) if asked.before else os.path.realpath(file)
        before = (*asked.before, own)
        check_prepared(reading, tree, plan, before, partial(_prepared, root, asked, before))
        problems.stop()
    return plan, foreign.format if foreign else ""


def _prepared(root: Path, asked: Asked, before: tuple[str, ...], path: str) -> tuple[Plan, str]:
    """The plan that is to take the place of another; PlanError if it cannot be read."""
    content, _ = read_file(str(root / path), path, asked.walls)
    own = replace(asked, before=before, spare=True, taken=[0])
    return _plan(content, path, root, own, Problems(path))


def _place_in(given: dict[str, object]) -> Callable[[StepId], Mapping]:
    """Where a step of the plan stands."""
    steps = cast("Mapping", given["steps"])

    def place(step_id: StepId) -> Mapping:
        name = str(step_id)
        while name not in steps.pairs:  # a step of another plan
            name = name.rpartition(".")[0]
        return cast("Mapping", steps.pairs[name][1])

    return place


def _other(
    file: str, root: Path, asked: Asked, taken_over: list[Plan], path: str, params: Table[str, Json]
) -> tuple[Plan, tuple[Problem, ...]]:
    """Another plan file of the project, whose steps are taken over; PlanError if it cannot be."""
    inside = (*asked.inside, os.path.relpath(os.path.realpath(file), os.path.realpath(root)))
    problems = Problems(path)
    name = os.path.relpath(os.path.realpath(root / path), os.path.realpath(root))
    if name.startswith(os.pardir):
        message = "it is a link that leads out of the project"
        raise problems.fatal("P095", NOWHERE, message, "keep the plan in the project")
    if name in inside or len(inside) > DEEPEST:
        way = " → ".join((*inside[-MOST_NAMED:], name))
        message = f"plan files use each other: {way}"
        raise problems.fatal("P096", NOWHERE, message, "let one of them go without the other")
    content, _ = read_file(str(root / path), path, asked.walls)
    inner = replace(asked, name=None, params=params, inside=inside)
    plan, foreign = _plan(content, path, root, inner, problems)
    taken_over.append(plan)
    asked.taken[0] += len(plan.steps)
    if asked.taken[0] > asked.walls.plan_steps:
        most = asked.walls.plan_steps
        message = f"all plans have more than {most:,} steps"
        raise problems.fatal("P096", NOWHERE, message, moved_by("plan_steps", most))
    if foreign or plan.contracts or plan.voices:
        message = "its agents would hold for its own steps alone"
        raise problems.fatal("P095", NOWHERE, message, "say 'agents' in the outer plan")
    if plan.limits != Limits():
        problems.warn("P903", NOWHERE, "its limits say nothing: those of the outer plan hold")
    return plan, in_order(problems.warnings)


def _counted(reading: Reading, steps: dict[StepId, Step]) -> dict[StepId, Step]:
    """The steps, with those of lists and of other plans, if they are not too many."""
    most = reading.walls.plan_steps
    if len(steps) > most:
        message = f"the plan has {len(steps):,} steps, and {most:,} are the most"
        raise reading.problems.fatal("P011", NOWHERE, message, moved_by("plan_steps", most))
    return steps


def _check_approvers(reading: Reading, asked: Asked) -> None:
    """Say once of each name that nobody holds it."""
    for name, place in dict(reversed(reading.approvers)).items():
        if asked.held is not None and not asked.held(name):
            message = f"nobody holds the name {quoted(name)}: any person may answer"
            hint = f"say who does in your own config.toml: [people] {name} = ['USER']"
            reading.problems.warn("P905", place, message, hint)


def _line_name(name: str, problems: Problems) -> str:
    if not name.strip() or not name.isprintable():
        message = f"{quoted(name)} cannot be the name of a line"
        raise problems.fatal("P046", NOWHERE, message, "set 'name' in the plan")
    return name


def _steps(
    reading: Reading, tree: Mapping, given: dict[str, object], contracts: Contracts
) -> dict[StepId, Step]:
    if "steps" not in given:
        hint = "add 'steps:' with one entry for each step"
        reading.problems.add("P001", tree, "the plan has no steps", hint)
        return {}
    node = cast("Node", given["steps"])
    if not isinstance(node, Mapping):
        hint = "write each step as 'id:' with its keys below"
        message = f"'steps' must be a mapping of ids to steps, not {kind_of(node)}"
        reading.problems.add("P032", node, message, hint)
        return {}
    if not node.pairs and not reading.problems.found:
        reading.problems.add("P001", node, "the plan has no steps")
    reading.most = MOST + _EXPRESSIONS_EACH * len(node.pairs)
    defaults = cast("dict[str, object]", given.get("defaults", {}))
    reading.has_bad_model = "model" not in defaults and _says_model(tree)
    steps: dict[StepId, Step] = {}
    wired: dict[str, Wired] = {}
    spellings: dict[str, Scalar] = {}
    for name, (key, value) in node.pairs.items():
        _check_id(name, key, spellings, reading.problems)
        reading.step = name
        wired[name] = Wired(name, key)
        step = step_of(reading, wired[name], value, defaults, contracts)
        if step is not None:
            steps[step.id] = step
    reading.step = ""
    limits = cast("Limits", given.get("limits", Limits()))
    check_wiring(wired, reading.problems, limits.resources)
    return steps


def _says_model(tree: Mapping) -> bool:
    said = tree.pairs["defaults"][1] if "defaults" in tree.pairs else None
    return isinstance(said, Mapping) and "model" in said.pairs


def _check_id(name: str, key: Scalar, spellings: dict[str, Scalar], problems: Problems) -> None:
    if not STEP_ID.match(name):
        hint = "start with a letter or _, then letters, digits, _ . -; at most 128"
        problems.add("P002", key, f"{quoted(name)} is not a step id", hint)
    first = spellings.setdefault(folded(name), key)
    if first is not key:
        other = quoted(str(first.value))
        message = f"{quoted(name)} and {other} in line {first.line} differ only in their spelling"
        problems.add("P050", key, message, "give one of them another id")
