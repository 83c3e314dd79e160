"""Read one step of a plan file: what it does, what it needs, and which of its keys go together."""

from __future__ import annotations

from collections.abc import Mapping as Table
from typing import cast

from holdfast.formats.asking import take_model
from holdfast.formats.cliagents import take_cli_agent
from holdfast.formats.contracts import Contracts
from holdfast.formats.edges import At, InputAt, NeedAt
from holdfast.formats.fields import Promise
from holdfast.formats.foreach import check_items
from holdfast.formats.grammar import STEP
from holdfast.formats.judges import asks_model, settle_guards
from holdfast.formats.nodes import Mapping, Node, Scalar
from holdfast.formats.problems import Placed, quoted
from holdfast.formats.reading import Reading, Use, kind_of
from holdfast.formats.records import record
from holdfast.formats.shapes import command, function
from holdfast.formats.subplans import PLAN_USES, refuse_made, take_gather, take_plan
from holdfast.formats.wiring import Wired
from holdfast.model.digest import Json
from holdfast.model.plan import (
    AGENT,
    CLI_AGENT,
    COPIES,
    GATHER,
    MODEL_USES,
    Input,
    Need,
    Step,
    StepId,
)

_BY_PROMPT = {"human": "a person", "llm": "a model", "agent": "a model"}


def step_of(
    reading: Reading, wired: Wired, node: Node, defaults: dict[str, object], contracts: Contracts
) -> Step | None:
    """Read one step; what reaches beyond it is kept in `wired` with its place."""
    if not isinstance(node, Mapping):
        message = f"step {quoted(wired.id)} must be a mapping, not {kind_of(node)}"
        hint = "write its keys below its id, as 'run: make'"
        reading.problems.add("P032", node, message, hint)
        return None
    reading.has_items, reading.from_step, reading.listed = "for_each" in node.pairs, None, None
    reading.conditions = []
    given = record(reading, "step", node, STEP) or {}
    wired.needs = cast("list[NeedAt]", given.get("needs", []))
    wired.inputs = cast("list[InputAt]", given.get("inputs", []))
    wired.produces = cast("list[At]", given.get("produces", []))
    wired.escalate = cast("list[At]", given.get("escalate", []))
    wired.takes = _takes(node, given)
    wired.promise = _promise(node, given)
    if given.get("uses") == PLAN_USES:
        refuse_made(reading)
    _take_uses(reading, wired)
    for use in reading.conditions:
        _come_after(wired, use)
    _take_items(reading, wired, node, given)
    _take_command(reading, node, given, contracts)
    once = given.get("effects") == "external" and not given.get("idempotent")
    bare = given.get("uses") in {PLAN_USES, GATHER}
    for key, value in () if bare else defaults.items():
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


def _come_after(wired: Wired, use: Use) -> None:
    """A step that is only looked at comes first, and decides nothing of the result."""
    name = StepId(use.reference.name)
    wired.uses.append(use)
    if all(item.need.step != name for item in wired.needs):
        wired.needs.append(NeedAt(Need(name, "sequence"), use.place(0)))


def _take_items(reading: Reading, wired: Wired, node: Mapping, given: dict[str, object]) -> None:
    """The step that lists the items comes first; each item works in a place of its own."""
    check_items(reading, node)
    if not reading.has_items:
        given.pop("key", None)
        return
    if reading.listed is not None:
        reading.lists[wired.id] = reading.listed
    if reading.from_step is not None:
        _come_after(wired, reading.from_step)
    wired.promise = Promise()  # whoever needs it reads a list
    if given.get("effects", "none") != "external":
        given.setdefault("workspace", "scratch")


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
    elif uses == PLAN_USES:
        take_plan(reading, node, given, run)
    elif uses == CLI_AGENT:
        take_cli_agent(reading, node, given, run)
    elif uses == GATHER:
        take_gather(reading, node)
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
    if given.get("runs_on") and not _can_leave(given):
        message = (
            f"'runs_on' of {quoted(reading.step)} says nothing: the step stays on this machine"
        )
        hint = "only commands and functions leave it, in a scratch directory"
        problems.warn("P903", node.pairs["runs_on"][0], message, hint)
    elif given.get("runs_on") and given.get("secrets"):
        message = f"{quoted(reading.step)} asks for secrets, which no worker of a queue is given"
        hint = "leave out 'runs_on', or run it with --executor ray or local"
        problems.warn("P916", node.pairs["runs_on"][0], message, hint)
    if "rounds" in given and not given.get("escalate"):
        message = f"'rounds' of {quoted(reading.step)} says nothing: it has no 'escalate'"
        problems.warn("P903", node.pairs["rounds"][0], message, "name steps above it")


def _can_leave(given: Table[str, object]) -> bool:
    """As the step itself says, once it is one."""
    keys = {key: given[key] for key in ("uses", "workspace", "effects") if key in given}
    return Step(StepId("step"), **keys).can_leave  # type: ignore[arg-type]  # as the table reads them


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


def _first(node: Mapping) -> Placed:
    return next((key for key, _ in node.pairs.values()), node)
