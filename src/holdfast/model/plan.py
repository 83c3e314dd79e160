"""A plan: an immutable graph of guarded steps."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, field, fields
from itertools import chain, compress
from operator import attrgetter, is_, is_not
from typing import Any, Literal, NewType, cast

from holdfast.errors import BugError, PlanError, Problem
from holdfast.model.digest import Digest, Json, digest_bytes, encoded, spelled
from holdfast.model.fixed import fixed
from holdfast.model.pattern import Pattern

StepId = NewType("StepId", str)
RunId = NewType("RunId", str)

_ID = r"[A-Za-z_][A-Za-z0-9_.\-]{0,127}"
STEP_ID = Pattern(rf"{_ID}\Z")
ANY_ID = Pattern(rf"{_ID}(?:\[[A-Za-z0-9_.\-@+=,~%]+\])?\Z")  # of items too
LONGEST_ID = 200  # characters of the id of an item
PLAN_SCHEMA = "holdfast.plan/1"
FRAGMENT_SCHEMA = "holdfast.fragment/1"
PARTS = ("params", "origin", "voices", "contracts", "premises")  # of a plan; left out if empty
WORK = "work"  # what a cycle of a ticket uses
CLI_AGENT = "cli-agent"  # what a step uses that a coding agent of the command line does
MODEL_USES = frozenset({"llm", "agent", WORK})
TURNS = 20  # of a model with tools, if a step does not say how many
GATHER = "gather"  # what a step uses that collects what its items made
AGENT = "agent"  # what a step uses of which nobody said how it is done

OF_MACHINES = frozenset({"cpus", "gpus", "memory"})  # resources that a cluster knows by itself

NeedType = Literal["data", "sequence", "approval"]
Effects = Literal["none", "workspace", "external"]
Workspace = Literal["", "shared", "scratch", "worktree"]
Reuse = Literal["merkle", "content", "strict"]
COPIES: frozenset[Workspace] = frozenset({"scratch", "worktree"})
Approve = Literal["", "always", "on_change", "over_budget"]
OnFatal = Literal["fail", "escalate"]
PRIORITIES = {"critical": 0, "high": 1, "normal": 2, "low": 3}


@fixed
class Need:
    """An edge: this step starts after `step` is complete, over an approval edge also after a person said yes.

    Data edges enter the ref, the others do not. `approver` is the name that the person must hold. Over an
    `optional` edge the step goes on without one that failed or was skipped.
    """

    step: StepId
    type: NeedType = "data"
    key: str = ""
    approver: str = ""
    optional: bool = False

    @property
    def asks(self) -> bool:
        """Whether a person must say yes: over an approval edge, or where data goes by way of somebody."""
        return self.type == "approval" or bool(self.approver)


@fixed
class Input:
    """Files of the project that a step reads, by glob; no match is an error unless optional."""

    glob: str
    optional: bool = False


@fixed
class Guard:
    """A check of the candidate. `all`, `any` and `majority` hold further guards in `items`."""

    kind: str
    config: Json = None
    name: str = ""
    timeout: float | None = None
    fatal_on: tuple[int, ...] = ()
    items: tuple[Guard, ...] = ()

    @property
    def asks(self) -> bool:
        """Whether it, or a guard inside it, asks a person."""
        return self.kind == "human" or any(item.asks for item in self.items)

    @property
    def asks_model(self) -> bool:
        """Whether it, or a guard inside it, asks a model."""
        return self.kind == "judge" or any(item.asks_model for item in self.items)

    @property
    def leaves_it_to_models(self) -> bool:
        """Whether models alone can make it accept."""
        if not self.items:
            return self.kind == "judge"
        alone = sum(item.leaves_it_to_models for item in self.items)
        most = {"all": len(self.items), "any": 1}.get(self.kind, len(self.items) // 2 + 1)
        return alone >= most


IN_REF = "in-ref"  # what a step is told is a part of its key
_NOTHING: Mapping[str, Any] = {}


def _nothing() -> Mapping[str, Any]:
    """One empty mapping for all steps: a plan may have a million of them."""
    return _NOTHING


@fixed
class Step:
    """One guarded step: what generates, what it needs, what guards it, its limits."""

    id: StepId
    uses: str = "shell"
    run: tuple[str, ...] = ()
    shell: str = ""
    prompt: Json = None
    model: str = ""
    tier: str = ""  # what the plan file called the model, if that was not its name
    parameters: Mapping[str, Json] = field(default_factory=_nothing)
    values: Mapping[str, Json] = field(default_factory=_nothing)
    needs: tuple[Need, ...] = ()
    inputs: tuple[Input, ...] = ()
    produces: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    schema: Json = None
    guards: tuple[Guard, ...] = ()
    retries: int = 0
    lost_retries: int = 1
    timeout: float | None = None
    priority: str = "normal"
    effects: Effects = "none"
    idempotent: bool = False
    approve: Approve = ""
    budget: Mapping[str, Json] = field(default_factory=_nothing)
    patience: int | None = None
    escalate: tuple[str, ...] = ()
    rounds: int = 1
    on_fatal: OnFatal = "fail"
    resources: Mapping[str, int] = field(default_factory=_nothing)
    runs_on: str = ""  # which machines do it, by a name that they go by
    workspace: Workspace = ""
    reuse: Reuse = "merkle"
    fresh_for: float | None = None
    handoff: bool = False  # whether it is done only with a handoff
    context: Json = None  # whether it is told what steps above handed over
    context_tokens: int | None = None  # how much of it
    type: str = ""  # research, synthesize, experiment or develop
    mode: str = ""  # how an experiment or a synthesis is meant
    hypotheses: tuple[str, ...] = ()  # that it tests
    requirements: tuple[str, ...] = ()  # that it serves
    preregistered: tuple[str, ...] = ()  # what an experiment commits to beforehand
    evaluate_against: tuple[str, ...] = ()  # what a synthesis judges by
    share: bool = False
    env: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    turns: int | None = None
    tool_versions: Mapping[str, tuple[str, ...]] = field(default_factory=_nothing)
    description: str = ""
    contract: str = ""
    constraints: str = ""
    specification: str = ""
    agent: str = ""
    action: str = ""
    for_each: Json = None  # the list, {files: GLOB}, or the expression that reads it from a step
    key: str = ""  # what tells its items apart, as an expression
    template: Step | None = None  # what each of its items does
    has_items: bool = False  # its items are steps of the plan
    when: Json = None  # the condition under which it runs
    optional: bool = False  # whoever needs it goes on without it
    within: str = ""  # the sub-plan that it came from

    @property
    def awaits_items(self) -> bool:
        """Whether its items are not known before the step that lists them is complete."""
        return self.template is not None and not self.has_items

    @property
    def asks_model(self) -> bool:
        """Whether a model is asked for what it makes; a cycle without one is done by a command-line agent."""
        return self.uses in MODEL_USES and (self.uses != WORK or bool(self.model))

    @property
    def is_told(self) -> bool:
        """Whether its prompt is told with all that it is given, to a model or to an agent."""
        return self.asks_model or self.uses == CLI_AGENT

    @property
    def is_judged(self) -> bool:
        """Whether anything judges what it makes; `outputs` and `schema` stand for guards too."""
        return bool(self.guards or self.outputs) or self.schema is not None

    @property
    def has_judge(self) -> bool:
        """Whether a model is asked about what it makes."""
        return bool(self.guards) and any(guard.asks_model for guard in self.guards)

    @property
    def leaves_effects_to_models(self) -> bool:
        """Whether nothing but models judges what it does outside."""
        if self.effects != "external" or not self.guards or self.outputs or self.schema is not None:
            return False
        return all(guard.leaves_it_to_models for guard in self.guards)

    @property
    def is_idle(self) -> bool:
        """Whether nobody said how it is done, so that it has nothing to run."""
        return self.uses == AGENT and self.prompt is None

    @property
    def asks_first(self) -> bool:
        """Whether a person may have to say something before an attempt begins."""
        if self.approve or self.uses == "human":
            return True
        for need in self.needs:  # noqa: SIM110 - asked of every step: half the time of any()
            if need.type == "approval" or need.approver:
                return True
        return False

    @property
    def done_once(self) -> bool:
        """Whether nobody may repeat it unasked once it may have happened."""
        return self.effects == "external" and not self.idempotent

    @property
    def asks_after(self) -> bool:
        """Whether a person may have to accept what an attempt made."""
        return any(guard.asks for guard in self.guards)

    @property
    def reads_keys(self) -> bool:
        """Whether it reads named outputs, which have to be there before it starts."""
        for need in self.needs:  # noqa: SIM110 - as above
            if need.key:
                return True
        return False

    @property
    def data_needs(self) -> tuple[StepId, ...]:
        """The steps whose artifacts this one reads."""
        return tuple([need.step for need in self.needs if need.type == "data"])

    def called(self, need: StepId) -> StepId:
        """The name by which it is given what a step made: in a sub-plan the one that its file knows."""
        return StepId(need.removeprefix(f"{self.within}.")) if self.within else need

    @property
    def changes_copy(self) -> bool:
        """Whether it changes project files in a copy of its own, from which the engine takes them over."""
        return self.effects == "workspace" and self.workspace in COPIES

    @property
    def can_leave(self) -> bool:
        """Whether another machine can do it: a command or a function, in a directory of its own."""
        return (
            self.uses in {"shell", "python"}
            and self.workspace in {"", "scratch"}
            and not self.runs_alone
        )

    @property
    def runs_alone(self) -> bool:
        """Whether nothing may run beside it: it changes project files where they are."""
        return self.effects == "workspace" and self.workspace not in COPIES


@fixed
class Limits:
    """Bounds of a run: wall seconds, attempts, money, tokens, steps at once (at one resource or agent too).

    A resource that is not named here is there once.
    """

    time: float | None = None
    attempts: int | None = None
    parallel: int | None = None
    usd: float | None = None
    tokens: int | None = None
    resources: Mapping[str, int] = field(default_factory=dict)
    agents: Mapping[str, int] = field(default_factory=dict)


@fixed
class Plan:
    """Steps by id, under the name of a line. Checked on construction: ids are legal, needs exist.

    `params` are the values it was loaded with; they are filled in already and kept to be shown. `origin` is
    what a file of another format said beside that, kept for whoever wants that format back. `voices` is
    what the words of its own agents count when they disagree, `contracts` what they and all steps that are
    added later are held to; it is empty if the plan binds nobody. `premises` is what it stands on, by the
    keys of the plan file: hypotheses, requirements, unknowns, and when to plan again.
    """

    name: str
    steps: Mapping[StepId, Step]
    goal: str = ""
    description: str = ""
    project: str = ""
    limits: Limits = Limits()
    params: Mapping[str, Json] = field(default_factory=dict)
    origin: Mapping[str, Json] = field(default_factory=dict)
    voices: Mapping[str, Json] = field(default_factory=dict)
    contracts: Mapping[str, Json] = field(default_factory=dict)
    premises: Mapping[str, Json] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse a plan that no engine could run."""
        problems: list[Problem] = []
        steps = self.steps.values()
        suspects = (
            steps if _may_be_wrong(self.steps) else [s for s in steps if s.effects == "external"]
        )
        for step in suspects:
            problems += self._wrong_with(step)
        if not self.steps:
            problems.append(Problem("the plan has no steps", code="P001"))
        if problems:
            raise PlanError(tuple(problems))

    def _wrong_with(self, step: Step) -> list[Problem]:
        problems = []
        is_text = isinstance(step.id, str)
        if not is_text or not ANY_ID.match(step.id) or len(step.id) > LONGEST_ID:
            problems.append(
                Problem(
                    f"'{step.id}' is not a step id",
                    hint="start with a letter or _, then letters, digits, _ . -; at most 128",
                    code="P002",
                )
            )
        names = [need.step for need in step.needs]
        if not self.steps.keys() >= set(names) or len(set(names)) < len(names):
            problems += self._wrong_needs(step.id, names)
        if step.effects == "external" and step.leaves_effects_to_models:
            problems.append(
                Problem(
                    f"nothing but a model judges '{step.id}', which has effects outside",
                    hint="put a guard beside the judge that is none",
                    code="P066",
                )
            )
        return problems

    def _wrong_needs(self, step_id: StepId, names: list[StepId]) -> Iterator[Problem]:
        for place, name in enumerate(names):
            if name not in self.steps:
                yield Problem(f"'{step_id}' needs '{name}', which is no step", code="P003")
            elif name in names[:place]:
                yield Problem(f"'{step_id}' needs '{name}' twice", code="P004")


_needed: Callable[[Need], StepId] = attrgetter("step")


def _may_be_wrong(steps: Mapping[StepId, Step]) -> bool:
    """Whether the id or the needs of any step are wrong: one look at all of them, as plans may be large."""
    ids = [step.id for step in steps.values()]
    needs = [step.needs for step in steps.values()]
    return (
        not all(isinstance(name, str) for name in ids)
        or max(map(len, ids), default=0) > LONGEST_ID
        or not all(map(ANY_ID.match, ids))
        or not steps.keys() >= {*map(_needed, chain.from_iterable(needs))}
        or any(len(some) > 1 and len({*map(_needed, some)}) < len(some) for some in needs)
    )


def plan_bytes(plan: Plan) -> bytes:
    """The whole normalised plan, which a run keeps; its digest identifies a version of a line.

    `plan_from_json` reads it back. What equals its default is left out.
    """
    steps = _steps(plan.steps)
    head: dict[str, Json] = {
        "schema": PLAN_SCHEMA,
        "name": plan.name,
        "goal": plan.goal,
        "description": plan.description,
        "project": plan.project,
        "limits": limits_json(plan.limits),
    }
    for key in PARTS:
        if part := getattr(plan, key):
            head[key] = part
    return encoded(f'{spelled(head)[:-1]},"steps":{{{steps}}}}}')


def plan_digest(plan: Plan) -> Digest:
    """Digest of the whole normalised plan, prompt texts included."""
    return digest_bytes(plan_bytes(plan))


def plan_json(plan: Plan) -> dict[str, Json]:
    """The normalised plan as an object, its steps in the order of the plan."""
    data = _numbers(cast("Mapping[str, Json]", json.loads(plan_bytes(plan))))
    steps = cast("Mapping[str, Json]", data["steps"])
    data["steps"] = {step_id: steps[step_id] for step_id in plan.steps}
    return data


def fragment_bytes(steps: Mapping[StepId, Step]) -> bytes:
    """Steps that are to be added to a plan, normalised; `fragment_steps` reads them back."""
    return encoded(f'{{"schema":"{FRAGMENT_SCHEMA}","steps":{{{_steps(steps)}}}}}')


def fragment_steps(content: bytes) -> dict[StepId, Step]:
    """The steps of a fragment that `fragment_bytes` wrote."""
    data = cast("Mapping[str, Mapping[str, Mapping[str, Json]]]", json.loads(content))
    known: Known = {}
    return {
        StepId(key): _step_from(StepId(key), value, known) for key, value in data["steps"].items()
    }


def limits_json(limits: Limits) -> dict[str, Json]:
    """The limits that were set."""
    return dict(_sparse(_LIMITS, _limits_of(limits), _LIMIT_DEFAULTS))


def plan_from_bytes(content: bytes) -> Plan:
    """Read what `plan_bytes` wrote; in most plans every number is whole."""
    data = cast("Mapping[str, Json]", json.loads(content))
    return plan_from_json(data, is_whole=b'"$decimal"' not in content)


def plan_from_json(data: Mapping[str, Json], *, is_whole: bool = False) -> Plan:
    """Read a snapshot written by `plan_json`; with `is_whole`, no number in it is spelled in another way."""
    if data.get("schema") != PLAN_SCHEMA:
        raise PlanError((Problem(f"'{data.get('schema')}' is not '{PLAN_SCHEMA}'", code="P005"),))
    steps = cast("Mapping[str, Mapping[str, Json]]", data["steps"])
    limits = cast("dict[str, float | int]", data["limits"])
    known: Known = {}
    return Plan(
        name=str(data["name"]),
        goal=str(data["goal"]),
        description=str(data["description"]),
        project=str(data["project"]),
        limits=Limits(**_numbers(limits)),  # type: ignore[arg-type]  # keys come from _LIMITS
        steps={
            StepId(key): _step_from(StepId(key), value, known, is_whole=is_whole)
            for key, value in steps.items()
        },
        **{key: _numbers(cast("Mapping[str, Json]", data.get(key, {}))) for key in PARTS},
    )


Known = dict[object, object]


def _defaults(noun: type) -> tuple[tuple[str, object], ...]:
    pairs = []
    for item in fields(noun):
        default = item.default if item.default is not MISSING else None
        if item.default_factory is not MISSING:
            default = item.default_factory()
        pairs.append((item.name, default))
    return tuple(pairs)


_STEP = tuple(
    pair
    for pair in _defaults(Step)
    if pair[0] not in {"id", "needs", "inputs", "guards", "template"}
)
_STEP_KEYS = frozenset(name for name, _ in _defaults(Step)) - {"id"}
_LIMITS = _defaults(Limits)
_TUPLES = {
    *("run", "produces", "outputs", "env", "secrets", "escalate", "tools"),
    *("hypotheses", "requirements", "preregistered", "evaluate_against"),
}


_OWN = {"values", "prompt"}  # what most steps that were made from one differ in
_SHARED = tuple(pair for pair in _STEP if pair[0] not in _OWN)
_SHARED_DEFAULTS = tuple(default for _, default in _SHARED)
_all_of: Callable[[object], tuple[Json, ...]] = attrgetter(*(name for name, _ in _SHARED))
_shared_of: Callable[[object], tuple[object, ...]] = attrgetter(
    *(name for name, _ in _SHARED), "guards", "template"
)
_limits_of: Callable[[object], tuple[Json, ...]] = attrgetter(*(name for name, _ in _LIMITS))
_LIMIT_DEFAULTS = tuple(default for _, default in _LIMITS)


def _sparse(
    names: tuple[tuple[str, object], ...],
    values: tuple[Json, ...],
    defaults: tuple[object, ...],
) -> Iterator[tuple[str, Json]]:
    """What differs from the defaults. Most values are the very default."""
    others = compress(zip(names, values, strict=True), map(is_not, values, defaults))
    return ((name, got) for (name, default), got in others if got != default)


def _steps(steps: Mapping[StepId, Step]) -> str:
    """The encodings of steps by their ids. What a step shares with the one before it is encoded once.

    Steps of one function or one `for_each` are made of the very same parts, but for few.
    """
    texts = []
    last: tuple[object, ...] = ()
    shared: list[str] = []
    for name in sorted(steps):
        step = steps[name]
        now = _shared_of(step)
        if len(last) != len(now) or not all(map(is_, now, last)):
            last, shared = now, _shared_parts(step)
        texts.append(f"{spelled(name)}:{_joined(step, shared)}")
    return ",".join(texts)


def _step(step: Step) -> str:
    """The encoding of a step; ids need no escaping."""
    return _joined(step, _shared_parts(step))


def _joined(step: Step, shared: list[str]) -> str:
    parts = [*shared]
    if step.needs:
        parts.append(f'"needs":[{",".join([need_spelled(need) for need in step.needs])}]')
    if step.values:
        parts.append(f'"values":{spelled(step.values)}')
    if step.prompt is not None:
        parts.append(f'"prompt":{spelled(step.prompt)}')
    if step.inputs:
        parts.append(f'"inputs":{spelled([[item.glob, item.optional] for item in step.inputs])}')
    parts.sort()  # by name: the quotation mark after it comes before all that names have
    return f"{{{','.join(parts)}}}"


def _shared_parts(step: Step) -> list[str]:
    """What steps that were made from one have in common: all but needs, values, prompt and inputs."""
    found = _sparse(_SHARED, _all_of(step), _SHARED_DEFAULTS)
    parts = [f'"{name}":{spelled(got)}' for name, got in found]
    if step.guards:
        parts.append(f'"guards":{spelled([guard_json(guard) for guard in step.guards])}')
    if step.template is not None:
        parts.append(f'"template":{_step(step.template)}')
    return parts


def need_spelled(need: Need) -> str:
    """The encoding of a need; ids need no escaping."""
    key = spelled(need.key) if need.key else '""'
    head = f'["{need.step}","{need.type}",{key}'
    if need.optional:
        return f"{head},{spelled(need.approver)},true]"
    return f"{head},{spelled(need.approver)}]" if need.approver else f"{head}]"


def guard_json(guard: Guard, *, limits: bool = True) -> dict[str, Json]:
    """A guard as JSON, defaults left out: with its limits for a snapshot, without them for a ref."""
    data: dict[str, Json] = {"kind": guard.kind}
    if guard.config is not None:
        data["config"] = guard.config
    if guard.name:
        data["name"] = guard.name
    if limits and guard.timeout is not None:
        data["timeout"] = guard.timeout
    if guard.fatal_on:
        data["fatal_on"] = list(guard.fatal_on)
    if guard.items:
        data["items"] = [guard_json(item, limits=limits) for item in guard.items]
    return data


def _step_from(
    step_id: StepId, data: Mapping[str, Json], known: Known, *, is_whole: bool = False
) -> Step:
    """A step of a snapshot. What equals something in `known` becomes that: steps have much in common."""
    given: dict[str, object] = dict(data) if is_whole else dict(_numbers(data))
    for name, value in given.items():
        if value.__class__ is str:
            given[name] = known.setdefault(value, value)
        elif value.__class__ is list and name in _TUPLES:
            words = tuple(cast("list[str]", value))
            given[name] = known.setdefault(words, words)
    if "tool_versions" in given:
        tools = cast("Mapping[str, list[str]]", given["tool_versions"])
        given["tool_versions"] = {name: tuple(argv) for name, argv in tools.items()}
    if "needs" in given:
        needs = cast("list[tuple[str, NeedType, str, str, bool]]", given["needs"])
        found = tuple([Need(StepId(need[0]), *need[1:]) for need in needs])
        given["needs"] = known.setdefault(found, found) if len(found) == 1 else found
    if "inputs" in given:
        inputs = cast("list[tuple[str, bool]]", given["inputs"])
        given["inputs"] = tuple([Input(glob, optional) for glob, optional in inputs])
    if "guards" in given:
        guards = cast("list[Mapping[str, Json]]", given["guards"])
        given["guards"] = tuple([_guard_from(item) for item in guards])
    if "template" in given:
        template = cast("Mapping[str, Json]", data["template"])
        given["template"] = _step_from(step_id, template, known, is_whole=is_whole)
    if not given.keys() <= _STEP_KEYS:
        unknown = sorted(given.keys() - _STEP_KEYS)
        raise BugError(f"a plan snapshot has unknown step keys {unknown}")
    return Step(step_id, **given)  # type: ignore[arg-type]  # names were checked against the fields


def _guard_from(data: Mapping[str, Json]) -> Guard:
    plain = _numbers(data)
    return Guard(
        kind=str(plain["kind"]),
        config=plain.get("config"),
        name=str(plain.get("name", "")),
        timeout=cast("float | None", plain.get("timeout")),
        fatal_on=tuple(cast("list[int]", plain.get("fatal_on", []))),
        items=tuple(
            _guard_from(i) for i in cast("list[Mapping[str, Json]]", plain.get("items", []))
        ),
    )


def _numbers(data: Mapping[str, Json]) -> dict[str, Json]:
    """Undo the canonical spelling of numbers that are not whole."""
    return {key: _number(value) for key, value in data.items()}


def _number(value: Json) -> Json:
    kind = type(value)
    if kind is str or kind is int or kind is bool or value is None:  # nearly all, in a large plan
        return value
    if isinstance(value, Mapping):
        if value.keys() == {"$decimal"}:
            return float(cast("str", value["$decimal"]))
        return _numbers(value)
    if isinstance(value, list | tuple):
        return [_number(item) for item in value]
    return value
