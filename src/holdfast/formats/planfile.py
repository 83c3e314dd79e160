"""Load a plan file: bytes to nodes, nodes to steps, steps to a checked plan."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from collections.abc import Mapping as Table
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from holdfast.errors import Problem, outside_fault
from holdfast.formats.asking import take_model
from holdfast.formats.contracts import Contracts, Own
from holdfast.formats.fields import Promise
from holdfast.formats.foreign import EXCUSED, excuse, translated
from holdfast.formats.grammar import PLAN, STEP, At, InputAt, NeedAt
from holdfast.formats.graph import GRAPH, graph_plan, is_graph
from holdfast.formats.judges import asks_model, settle_guards
from holdfast.formats.nodes import BOUNDS, Mapping, Node, Scalar, read
from holdfast.formats.params import read_params
from holdfast.formats.problems import NOWHERE, Placed, Problems, folded, in_order, quoted
from holdfast.formats.reading import Check, Find, Named, Reading, kind_of
from holdfast.formats.records import record
from holdfast.formats.shapes import command, function
from holdfast.formats.strangers import refuse_stranger, refuse_unknown
from holdfast.formats.wiring import Wired, check_wiring
from holdfast.model.digest import Json
from holdfast.model.expression import MOST
from holdfast.model.plan import (
    AGENT,
    COPIES,
    MODEL_USES,
    STEP_ID,
    Input,
    Limits,
    Need,
    Plan,
    Step,
    StepId,
)

_EXPRESSIONS_EACH = 100  # for each step, beside those that any plan may have


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
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
) -> Loaded:
    """Load a plan file, YAML or JSON; raises PlanError with everything that is wrong with it.

    `params` that the plan does not have, or of another type, are a UsageError. `find` gives the files
    of a project (its directory, a glob) for params that are files; `check` says of a kind of guard
    and its value why it can never judge; `held` says whether anybody holds the name of an approver,
    `own` gives the agents that the person knows, `models` whom it can ask, and by which names.
    """
    content, root = read_file(path)
    return load_text(content, path, root, Asked(name, params or {}, find, check, held, own, models))


def read_file(path: str) -> tuple[bytes, str]:
    """The bytes of a plan file, and its directory."""
    problems = Problems(path)
    try:
        file = Path(path)
        if not file.exists():
            raise problems.fatal("P010", NOWHERE, f"there is no file {quoted(path)}")
        if not file.is_file():
            raise problems.fatal("P010", NOWHERE, f"{quoted(path)} is not a regular file")
        with file.open("rb") as stream:
            content = stream.read(BOUNDS.size + 1)
        root = str(file.resolve().parent)
    except OSError as error:
        if (fault := outside_fault(error)) is not None:
            raise fault from error
        reason = (error.strerror or "the system refused").lower()
        raise problems.fatal("P010", NOWHERE, f"{quoted(path)} cannot be read: {reason}") from error
    except (ValueError, RuntimeError) as error:
        raise problems.fatal("P010", NOWHERE, f"{quoted(path)} is no usable file name") from error
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
    tree = read(content, problems, strict_json=file.endswith(".json"))
    if not isinstance(tree, Mapping):
        message = f"a plan is a mapping with 'steps', not {kind_of(tree)}"
        raise problems.fatal("P032", tree, message)
    reading = Reading(problems, root, source=content, check=asked.check, models=asked.models)
    reading.prompts = asked.prompts
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
    reading.params = read_params(reading, declared, asked.params, asked.find)
    said = cast("Node | None", given.get("agents"))
    contracts = Contracts(reading, said, asked.own, foreign=foreign is not None)
    steps = _steps(reading, tree, given, contracts)
    _check_approvers(reading, asked)
    if steps and ("agents" in given or any(step.agent for step in steps.values())):
        limits = cast("Limits", given.get("limits", Limits()))
        held = contracts.hold(steps, _place_in(given), limits, reading.params)
        steps, given["limits"] = held
    if foreign is not None:
        excuse(problems)
    problems.stop()
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
    )
    return plan, foreign.format if foreign else ""


def _place_in(given: dict[str, object]) -> Callable[[StepId], Mapping]:
    """Where a step of the plan stands."""
    steps = cast("Mapping", given["steps"])
    return lambda step_id: cast("Mapping", steps.pairs[step_id][1])


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


def step_of(
    reading: Reading, wired: Wired, node: Node, defaults: dict[str, object], contracts: Contracts
) -> Step | None:
    """Read one step; what reaches beyond it is kept in `wired` with its place."""
    if not isinstance(node, Mapping):
        message = f"step {quoted(wired.id)} must be a mapping, not {kind_of(node)}"
        reading.problems.add("P032", node, message)
        return None
    given = record(reading, "step", node, STEP) or {}
    wired.needs = cast("list[NeedAt]", given.get("needs", []))
    wired.inputs = cast("list[InputAt]", given.get("inputs", []))
    wired.produces = cast("list[At]", given.get("produces", []))
    wired.escalate = cast("list[At]", given.get("escalate", []))
    wired.takes = _takes(node, given)
    wired.promise = _promise(node, given)
    _take_uses(reading, wired)
    _take_command(reading, node, given, contracts)
    once = given.get("effects") == "external" and not given.get("idempotent")
    for key, value in defaults.items():
        if key != "retries" or not once:  # nothing outside is done again unless the step says so
            given.setdefault(key, value)
    if once:
        wired.once = node.pairs["effects"][0]
        if given.get("retries"):
            message = f"{quoted(wired.id)} may be done again outside: its effect is not idempotent"
            hint = "leave out 'retries', or say idempotent: true if a repetition does no harm"
            reading.problems.warn("P906", node.pairs["retries"][0], message, hint)
    take_model(reading, node, given)
    _check_tools(reading, node, given)
    settle_guards(reading, node, given, wired)
    _check_together(reading, node, given)
    if given.get("approve") == "never":
        del given["approve"]
    given["needs"] = tuple(item.need for item in wired.needs)
    given["inputs"] = tuple(item.input for item in wired.inputs)
    given["produces"] = tuple(item.value for item in wired.produces)
    given["escalate"] = tuple(item.value for item in wired.escalate)
    return Step(StepId(wired.id), **given)  # type: ignore[arg-type]  # fields as the table reads them


def _takes(node: Mapping, given: dict[str, object]) -> list[tuple[str, int, Placed]]:
    """What a step takes of named resources, each with its place."""
    amounts = cast("Table[str, int]", given.get("resources", {}))
    if not amounts:
        return []
    listed = node.pairs["resources"][1]
    places = listed.pairs if isinstance(listed, Mapping) else {}
    return [(name, count, places[name][1]) for name, count in amounts.items()]


def _promise(node: Mapping, given: dict[str, object]) -> Promise:
    outputs, schema = given.get("outputs", ()), given.get("schema")
    named = node.pairs["schema"][1] if "schema" in node.pairs else None
    file = named.value if isinstance(named, Scalar) and isinstance(named.value, str) else ""
    return Promise(cast("tuple[str, ...]", outputs), cast("Json", schema), file)


def _take_uses(reading: Reading, wired: Wired) -> None:
    """What values and the prompt refer to is needed, and the files of a param are read."""
    wired.uses, reading.uses = reading.uses, []
    if not wired.uses:
        return
    needs = {item.need.step: item.need.type for item in wired.needs}
    globs = {item.input.glob for item in wired.inputs}
    for use in wired.uses:
        name = use.reference.name
        if use.reference.root == "params":
            glob = reading.params[name].glob
            if glob and glob not in globs:
                globs.add(glob)
                wired.inputs.append(InputAt(Input(glob), use.place(0)))
        elif name not in needs:
            needs[StepId(name)] = "data"
            wired.needs.append(NeedAt(Need(StepId(name)), use.place(0)))
        elif (kind := needs[StepId(name)]) != "data":
            how = "only in sequence" if kind == "sequence" else f"as '{kind}'"
            message = f"{quoted(wired.id)} reads {quoted(name)} and needs it {how}"
            hint = f"need it as data: needs: [{name}]"
            reading.problems.add("P035", use.place(0), message, hint)


def _take_command(
    reading: Reading, node: Mapping, given: dict[str, object], contracts: Contracts
) -> None:
    """Decide what the step uses, and read `run` accordingly."""
    problems = reading.problems
    run = cast("Node | None", given.pop("run", None))
    if "run" in node.pairs and "shell" in node.pairs:
        message = f"step {quoted(reading.step)} has both 'run' and 'shell'"
        problems.add("P035", node.pairs["shell"][0], message, "keep one of them")
        return
    if "uses" in node.pairs and "uses" not in given:
        return  # reported
    uses = given.setdefault("uses", "shell")
    if uses in _BY_PROMPT:
        for key in ("run", "shell"):
            if key in node.pairs:
                who = _BY_PROMPT[str(uses)]
                message = f"step {quoted(reading.step)} is done by {who} and cannot have '{key}'"
                problems.add("P035", node.pairs[key][0], message, "say what to do in 'prompt'")
        if uses != "human" and "prompt" not in node.pairs:
            message = f"step {quoted(reading.step)} is done by a model and has no 'prompt'"
            problems.add("P042", _first(node), message, "say what to do in 'prompt'")
    elif uses == "python":
        _take_function(reading, node, given, run)
    elif run is not None:
        argv = command(reading, "run", run)
        if argv is not None:
            given["run"] = argv
    elif "shell" in node.pairs:
        if given.get("shell") is not None and not str(given["shell"]).strip():
            problems.add("P040", node.pairs["shell"][1], f"{reading.label('shell')} is empty")
    elif "prompt" in node.pairs and "uses" not in node.pairs:
        given["uses"] = "llm"
    elif (action := contracts.action(given.get("agent"), given.get("action"))) is not None:
        given |= {"uses": action.uses, "run": action.run, "shell": action.shell}
    else:
        message = f"step {quoted(reading.step)} has nothing to run"
        hint = "give it a 'prompt'" if "model" in node.pairs else "give it 'run' or 'shell'"
        problems.add("P042", _first(node), message, hint)


def _check_tools(reading: Reading, node: Mapping, given: dict[str, object]) -> None:
    """Tools and turns are for agents, and a model tells its tools apart by the names of functions."""
    for key in ("tools", "turns"):
        if key in node.pairs and given.get("uses") != AGENT:
            message = f"step {quoted(reading.step)} cannot have '{key}'"
            reading.problems.add("P035", node.pairs[key][0], message, "say uses: agent")
    seen: dict[str, str] = {}
    for tool in cast("tuple[str, ...]", given.get("tools", ())):
        name = tool.partition(":")[2]
        if name in seen:
            message = f"{quoted(tool)} and {quoted(seen[name])} have the same name for a model"
            hint = "give one of the functions another name"
            reading.problems.add("P038", node.pairs["tools"][1], message, hint)
        seen[name] = tool


def _take_function(
    reading: Reading, node: Mapping, given: dict[str, object], run: Node | None
) -> None:
    if "shell" in node.pairs:
        message = f"step {quoted(reading.step)} uses python and cannot have 'shell'"
        reading.problems.add("P035", node.pairs["shell"][0], message, "name a function in 'run'")
    elif run is None:
        message = f"step {quoted(reading.step)} uses python and has no 'run'"
        reading.problems.add("P042", _first(node), message, "write run: module:function")
    else:
        called = function(reading, "run", run)
        if called is not None:
            given["run"] = (called,)


def _check_together(reading: Reading, node: Mapping, given: dict[str, object]) -> None:
    """Keys that are each right and together wrong."""
    problems = reading.problems
    if given.get("share") and (
        given.get("effects", "none") != "none" or given.get("workspace") != "scratch"
    ):
        message = f"step {quoted(reading.step)} cannot be shared between lines"
        hint = "sharing needs 'workspace: scratch' and no effects"
        problems.add("P048", node.pairs["share"][0], message, hint)
    secrets = cast("tuple[str, ...]", given.get("secrets", ()))
    for name in cast("tuple[str, ...]", given.get("env", ())):
        if name in secrets:
            message = f"{quoted(name)} stands in 'env' and in 'secrets' of {quoted(reading.step)}"
            problems.add("P035", node.pairs["secrets"][0], message, "keep it in 'secrets'")
    _check_budget(reading, node, given)
    copied = given.get("workspace") in COPIES
    if given.get("uses") == "human" and copied and given.get("effects") == "workspace":
        message = f"step {quoted(reading.step)} is done by a person, who has no copy of the project"
        problems.add("P035", node.pairs["effects"][0], message, "leave out 'effects'")
    elif given.get("workspace") == "worktree" and not (
        given.get("produces") or given.get("effects", "none") != "none"
    ):
        message = f"what {quoted(reading.step)} changes in its worktree is thrown away"
        place = node.pairs["workspace"][0] if "workspace" in node.pairs else _first(node)
        problems.warn("P909", place, message, "say effects: workspace to have it taken over")
    if given.get("idempotent") and given.get("effects", "none") == "none":
        message = f"'idempotent' of {quoted(reading.step)} says nothing: the step has no effects"
        problems.warn("P903", node.pairs["idempotent"][0], message)
    if "rounds" in given and not given.get("escalate"):
        message = f"'rounds' of {quoted(reading.step)} says nothing: it has no 'escalate'"
        problems.warn("P903", node.pairs["rounds"][0], message, "name steps above it")


def _check_budget(reading: Reading, node: Mapping, given: dict[str, object]) -> None:
    """A budget and the asking that it is for go together."""
    place = node.pairs.get("budget")
    keys = place[1].pairs if place is not None and isinstance(place[1], Mapping) else {}
    asks = given.get("approve") == "over_budget"
    if asks and "attempts" not in keys:
        message = f"'approve: over_budget' of {quoted(reading.step)} has no budget to be over"
        hint = "say budget: {attempts: 2}"
        reading.problems.add("P033", node.pairs["approve"][0], message, hint)
    elif "attempts" in keys and not asks:
        message = f"'budget' of {quoted(reading.step)} says nothing: nobody is asked beyond it"
        reading.problems.warn("P903", node.pairs["budget"][0], message, "say approve: over_budget")
    if given.get("uses") not in MODEL_USES and not asks_model(given):
        for key in ("usd", "tokens"):
            if key in keys:
                message = (
                    f"'budget.{key}' of {quoted(reading.step)} says nothing: no model is asked"
                )
                reading.problems.warn("P903", keys[key][0], message)


_BY_PROMPT = {"human": "a person", "llm": "a model", "agent": "a model"}


def _first(node: Mapping) -> Placed:
    return next((key for key, _ in node.pairs.values()), node)
