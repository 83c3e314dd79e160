"""The Python API: load a plan, or build one from functions, and run it."""

from __future__ import annotations

import getpass
import os
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Literal, Unpack, cast

from holdfast import wire
from holdfast.core.approvals import Approval
from holdfast.core.growth import after as put_after
from holdfast.core.state import State
from holdfast.core.views import run_json
from holdfast.core.waves import graph_of
from holdfast.engine.answers import given_for, lying_there
from holdfast.engine.asked import asked_in
from holdfast.engine.decisions import Decisions, Given, Wanted
from holdfast.engine.journals import read_state
from holdfast.engine.requests import additions, ask_to_add, check_needs, plan_to_be
from holdfast.engine.runs import start_run
from holdfast.errors import UsageError
from holdfast.formats.agentfile import shipped
from holdfast.formats.contracts import bound
from holdfast.formats.fragment import check_added, held, read_fragment
from holdfast.formats.modelsteps import Around, ModelKeys, model_step
from holdfast.formats.planfile import Asked as Loading
from holdfast.formats.planfile import load_plan, read_file
from holdfast.formats.planout import plan_yaml
from holdfast.model import plan as model
from holdfast.model.agent import Action, Agent, Registry, contracts, voices, with_contracts
from holdfast.model.artifact import Artifact, Status
from holdfast.model.digest import Json
from holdfast.model.event import Drift, Options
from holdfast.model.expression import Wrong, parts
from holdfast.model.line import Scope
from holdfast.model.plan import Guard, Need, RunId, Step, StepId
from holdfast.ports import Store

Function = Callable[..., object]


@dataclass(slots=True)
class Plan:
    """A plan in the making: steps are added, then it is run. `load` gives one from a file.

    With `agents`, contracts by name, its steps are held to them and to those that are known anyway.
    """

    name: str
    root: str = "."
    steps: dict[StepId, Step] = field(default_factory=dict)
    functions: dict[StepId, Function] = field(default_factory=dict)
    limits: model.Limits = field(default_factory=model.Limits)
    project: str = ""
    params: dict[str, Json] = field(default_factory=dict)
    agents: dict[str, Agent] = field(default_factory=dict)
    origin: Mapping[str, Json] = field(default_factory=dict)
    voices: Mapping[str, Json] = field(default_factory=dict)
    contracts: Mapping[str, Json] = field(default_factory=dict)
    foreign: str = ""

    def step(
        self,
        name: str,
        function: Function,
        *,
        needs: Iterable[str] = (),
        values: Mapping[str, Json] | None = None,
        guards: Iterable[Guard] = (),
        inline: bool = False,
        retries: int = 0,
    ) -> None:
        """Add a step that is a function; with `inline` it runs in this process and cannot be killed.

        A parameter named like a need gets that step's artifact, one named in `values` its value.
        Values may hold `${{ steps.ID.output }}`, which needs that step by itself.
        """
        step_id = StepId(name)
        if step_id in self.steps:
            raise UsageError(f"the plan has a step '{name}' already")
        target = f"{function.__module__}:{function.__qualname__}"
        if not inline and ("<" in target or function.__module__ == "__main__"):
            raise UsageError(
                f"'{target}' cannot be imported by a child process", hint="say inline=True"
            )
        self.steps[step_id] = Step(
            id=step_id,
            uses="python",
            run=(target,),
            needs=tuple(Need(StepId(need)) for need in dict.fromkeys((*needs, *_read(values)))),
            values=dict(values or {}),
            guards=tuple(guards),
            retries=retries,
        )
        if inline:
            self.functions[step_id] = function

    def llm(self, name: str, prompt: Json, **keys: Unpack[ModelKeys]) -> None:
        """Add a step that a model does: `model="small"`, `guards=[…]`, `budget={"usd": 0.5}` and so on."""
        self._add_model(name, "llm", prompt, keys)

    def agent(self, name: str, prompt: Json, **keys: Unpack[ModelKeys]) -> None:
        """Add a step that a model does with tools: `tools=["module:function"]`, `turns=20`."""
        self._add_model(name, "agent", prompt, keys)

    def _add_model(self, name: str, uses: str, prompt: Json, keys: ModelKeys) -> None:
        if StepId(name) in self.steps:
            raise UsageError(f"the plan has a step '{name}' already")
        asked = Loading(check=wire.guard_flaw, models=wire.market.known_names)
        around = Around(os.path.abspath(self.root), self.steps.keys(), asked)
        self.steps[StepId(name)] = model_step(name, uses, prompt, keys, around)

    def add(self, step: Step) -> None:
        """Add a step that was made by hand."""
        self.steps[step.id] = step

    def to_yaml(self) -> str:
        """The plan as the text of a plan file; functions of this process cannot be written."""
        return plan_yaml(self.build())

    def get_dependents(self, step: str) -> set[str]:
        """The steps that need this one; empty if none does."""
        return {
            str(other.id)
            for other in self.steps.values()
            if any(need.step == step for need in other.needs)
        }

    def execution_waves(self) -> list[list[str]]:
        """Step ids level by level, those that need nothing first; a circle is an error with its path."""
        return [[str(name) for name in wave] for wave in graph_of(self.build()).waves()]

    def subgraph(self, steps: Iterable[str]) -> Plan:
        """A plan of some of the steps; what they need of the others is taken to be there."""
        kept = {StepId(name) for name in steps}
        if lost := sorted(kept - self.steps.keys()):
            raise UsageError(f"the plan has no step '{lost[0]}'")
        few = {
            name: replace(step, needs=tuple(need for need in step.needs if need.step in kept))
            for name, step in self.steps.items()
            if name in kept
        }
        functions = {name: made for name, made in self.functions.items() if name in kept}
        return replace(self, steps=few, functions=functions)

    def build(self) -> model.Plan:
        """The immutable plan; a PlanError says which contracts its steps break."""
        steps, limits, counts = dict(self.steps), self.limits, self.voices
        terms = self.contracts
        if self.agents:
            counts = voices(Registry(self.agents).over(shipped()), shipped())
            own, kept = contracts(Registry(self.agents), Registry()), terms.get("agents", {})
            terms = {"agents": {**cast("Mapping[str, Json]", kept), **own}}
        if terms:
            known = with_contracts(wire.known_agents(), terms)
            steps, limits = bound(steps, limits, known, self.params)
        return model.Plan(
            self.name,
            steps,
            limits=limits,
            project=self.project,
            params=dict(self.params),
            origin=self.origin,
            voices=counts,
            contracts=terms,
        )


def _read(values: Mapping[str, Json] | None) -> list[str]:
    """The steps that values refer to. Only they can be filled in: a program has its own variables."""
    found = []
    for part in parts(values or {}):
        if isinstance(part, Wrong):
            raise UsageError(part.message, hint=part.hint)
        if part.root != "steps":
            raise UsageError(
                f"'{part.path}' cannot be read here", hint="put the value itself there"
            )
        found.append(part.name)
    return found


class Result:
    """A run that ended or rests: its state, and the artifacts of its steps."""

    def __init__(self, state: Callable[[], State], location: str, status: str = "") -> None:
        self._made = state
        self._status = status
        self.location = location

    @cached_property
    def state(self) -> State:
        """The run, folded."""
        return self._made()

    @property
    def status(self) -> str:
        """How the run ended: completed, failed, waiting, paused, limit."""
        return self._status or str(self.state.status)

    def __getitem__(self, step: str) -> bytes:
        """The content of a step's artifact."""
        digest = self.state.steps[StepId(step)].digest
        if digest is None:
            raise KeyError(step)
        store = wire.open_store(self.location, readonly=True)
        try:
            return store.get(digest)
        finally:
            store.close()

    def json(self) -> dict[str, Json]:
        """The run as `holdfast run --json` prints it."""
        store = wire.open_store(self.location, readonly=True)
        try:
            asked, more = asked_in(store, self.state), additions(store, self.state)
        finally:
            store.close()
        return run_json(self.state, file=None, now=wire.now_ms(), asked=asked, additions=more)


def load(
    path: str, *, plan_id: str | None = None, params: Mapping[str, Json] | None = None
) -> Plan:
    """Read a plan file; `params` are values for what it declares."""
    find, check, own = wire.project_files, wire.guard_flaw, wire.own_agents
    loaded = load_plan(
        path,
        name=plan_id,
        params=params,
        find=find,
        check=check,
        own=own,
        models=wire.market.known_names,
    )
    made = loaded.plan
    return Plan(
        made.name,
        loaded.root,
        dict(made.steps),
        limits=made.limits,
        project=made.project,
        params=dict(made.params),
        origin=made.origin,
        voices=made.voices,
        contracts=made.contracts,
        foreign=loaded.foreign,
    )


def run(
    plan: Plan,
    *,
    store: str | None = None,
    jobs: int = 0,
    force: bool = False,
    force_steps: Iterable[str] = (),
    resample: Iterable[str] = (),
    cutoff: bool = False,
    on_drift: Drift = "adopt",
    trust: str | None = None,
    max_cost: float | None = None,
    record: str | None = None,
    provider: Literal["recorded"] | None = None,
    recorded: str | None = None,
) -> Result:
    """Run a plan to its end or rest; what stands in the store is reused.

    Of the steps named in `resample` one more artifact is made, and nothing else runs: the one with the best
    score of its judges stands, else the newest.
    On models it spends at most `max_cost` dollars, and never more than the person's own budget. Answers of
    models are written to files in the directory `record`. With `provider="recorded"` nobody is asked: every
    answer comes from the directory `recorded`, which is `recorded/` beside the plan unless it is named.
    A plan from a foreign file runs only if `trust` is its digest, `holdfast plan FILE --json` says which.
    """
    built = plan.build()
    if plan.foreign and trust != model.plan_digest(built):
        digest = model.plan_digest(built)
        raise UsageError(
            f"'{plan.name}' comes from a foreign file and nobody approved it",
            hint=f"trust={digest!r}",
        )
    root = os.path.abspath(plan.root)
    location = wire.store_location(root, store)
    more = tuple(StepId(name) for name in resample)
    options = Options(
        force=force,
        force_steps=tuple(StepId(name) for name in force_steps),
        select=more,
        resample=more,
        cutoff=cutoff,
        on_drift=on_drift,
        max_cost=wire.market.cost_bound(root, built, wire.market.micro(max_cost)),
    )
    folder = _recordings(root, provider, recorded)
    if record is not None:
        if folder is not None:
            raise UsageError("with provider='recorded' nobody is asked: there is nothing to record")
        record = wire.market.record_into(root, record)
    opened = wire.open_store(location, create=True)
    try:
        wishes = wire.Wishes(
            parallel=jobs, functions=plan.functions, record=record, recorded=folder
        )
        world = wire.world_for(built, root, location, opened, wishes)
        repeated = wire.repeat(world, built, options)
        if repeated is not None:
            return Result(repeated.state, location, "completed")  # folded if somebody asks for more
        state = wire.drive(lambda: start_run(world, built, built.name, options), world=world)
    finally:
        opened.close()
    return Result(lambda: state, location)


def _recordings(root: str, provider: str | None, recorded: str | None) -> str | None:
    """The directory that all answers come from; None if models are asked."""
    if provider not in {None, "recorded"}:
        raise UsageError(f"provider is '{provider}'", hint="'recorded', or nothing")
    if provider is None:
        if recorded is not None:
            raise UsageError("recorded= names recordings for provider='recorded'")
        return None
    return os.path.abspath(recorded or os.path.join(root, "recorded"))


def add(
    steps: str | Iterable[Step],
    run: str,
    *,
    root: str = ".",
    store: str | None = None,
    after: str | None = None,
    because: str = "",
) -> int:
    """Ask a run that has not ended to add steps; gives the number of the request in its line's journal.

    `steps` are the path of a file with `steps:` as in a plan, or steps made by hand; each comes after the
    step `after`. The engine that drives the run answers within a second; a run at rest takes them up when
    it is resumed. PlanError or UsageError say what keeps them from being added.
    """
    root = os.path.abspath(root)
    opened = wire.open_store(wire.store_location(root, store))
    try:
        state = read_state(opened, RunId(run))
        if state is None:
            raise UsageError(f"there is no run '{run}'")
        if state.ended:
            raise UsageError(f"run '{run}' is {state.status}; nothing can be added to it")
        whole = plan_to_be(opened, state)
        if isinstance(steps, str):
            content = read_file(steps)[0]
            check, own = wire.guard_flaw, wire.own_agents
            more = read_fragment(content, steps, root, whole, check=check, own=own)
        else:
            more = {step.id: step for step in steps}
        if after is not None:
            if after not in whole.steps:
                raise UsageError(f"the run has no step '{after}'")
            more = put_after(more, StepId(after))
        more, _ = held(whole, more, wire.own_agents)
        check_added(whole, more)
        check_needs(state, more)
        hidden = wire.market.Vault(root).values
        return ask_to_add(opened, state, more, getpass.getuser(), because, wire.now_ms, hidden)
    finally:
        opened.close()


@dataclass(frozen=True, slots=True)
class Where:
    """A predicate over artifacts; combine with `&`, `|` and `~`."""

    test: Callable[[Artifact], bool]

    def __and__(self, other: Where) -> Where:
        """Both."""
        return Where(lambda row: self.test(row) and other.test(row))

    def __or__(self, other: Where) -> Where:
        """Either."""
        return Where(lambda row: self.test(row) or other.test(row))

    def __invert__(self) -> Where:
        """Not."""
        return Where(lambda row: not self.test(row))


def where(
    *,
    status: Status | None = None,
    step: str | None = None,
    line: str | None = None,
    source: str | None = None,
) -> Where:
    """Artifacts of this status, step, line and source; what is not said does not matter."""
    wanted = {"status": status, "step": step, "line": line, "source": source}
    asked = {name: value for name, value in wanted.items() if value is not None}
    return Where(lambda row: all(getattr(row, name) == value for name, value in asked.items()))


def artifacts(
    location: str,
    matching: Where | None = None,
    *,
    order_by: str = "number",
    limit: int | None = None,
    offset: int = 0,
) -> list[Artifact]:
    """Artifacts of a store that match; `order_by` a field, with a leading `-` from the largest."""
    store = wire.open_store(location, readonly=True)
    try:
        rows = [row for row in store.artifacts() if matching is None or matching.test(row)]
    finally:
        store.close()
    name = order_by.removeprefix("-")
    if name not in Artifact.__dataclass_fields__:
        raise UsageError(f"artifacts have no field '{name}'")
    rows.sort(key=lambda row: getattr(row, name), reverse=order_by.startswith("-"))
    return rows[offset : None if limit is None else offset + limit]


@dataclass(frozen=True, slots=True)
class Asked:
    """A question to people: what it is about, who may answer, and what became of it.

    `covers` is everything that decides what would happen; `subject` is its digest. `state` is open,
    approved, rejected, revoked, expired, used, abandoned (open, and no step waits for it any more) or
    overtaken (approved, and its step asked about something else before the yes was used).
    """

    id: str
    step: str
    run: str
    gate: str
    names: tuple[str, ...]
    subject: str
    state: str
    covers: Mapping[str, Json]
    blocks: tuple[str, ...] = ()


def approvals(location: str, *, line: str | None = None, every: bool = False) -> list[Asked]:
    """What waits for a person on a line of a store (the last one if none is named).

    With `every` also what was decided, and what nobody waits for any more.
    """
    store = wire.open_store(location, readonly=True)
    try:
        decisions = _decisions(store, line)
        wanted = {item.approval.id: item for item in decisions.wanted()}
        found = {name: item.approval for name, item in wanted.items()}
        if every:
            found = {approval.id: approval for approval in decisions.book} | found
        passed = decisions.overtaken() if every else ()
        return [_asked(decisions, item, wanted.get(name), passed) for name, item in found.items()]
    finally:
        store.close()


def approve(
    location: str,
    which: str,
    *,
    line: str | None = None,
    scope: Scope | None = None,
    seconds: float = 0,
    because: str = "",
) -> list[Asked]:
    """Say yes to what a step, or the approval with this id, waits for; `seconds` is how long it stands.

    UsageError if somebody else has to say it, if somebody was faster, or inside a step or an engine.
    """
    until = wire.now_ms() + int(seconds * 1000) if seconds else 0
    return _decide(location, line, which, Given(scope, until, because), yes=True)


def reject(location: str, which: str, *, because: str, line: str | None = None) -> list[Asked]:
    """Say no, and why; the same rules as for `approve`."""
    if not because.strip():
        raise UsageError("a rejection needs a reason")
    return _decide(location, line, which, Given(because=because), yes=False)


def answer(
    location: str,
    step: str,
    content: bytes | str | None = None,
    *,
    root: str = ".",
    line: str | None = None,
    because: str = "",
) -> Asked:
    """Give the content of a step that only a person can do; without, what lies at its output paths."""
    store = wire.open_store(location)
    try:
        person = wire.person(store, location, terminal=False)
        decisions = _decisions(store, line)
        wanted, doing = decisions.answerable(step)
        person.names_for(wanted.approval.request.names)
        hidden = wire.market.Vault(os.path.abspath(root), lambda: doing.secrets).values
        if content is None:
            digest, form = lying_there(store, os.path.abspath(root), doing, hidden)
        else:
            given = content.encode() if isinstance(content, str) else content
            digest, form = given_for(store, doing, given, hidden)
        said = Given(because=because, content=digest, form=form)
        return _asked(decisions, decisions.decide(wanted, person, said, yes=True), wanted)
    finally:
        store.close()


def _decide(location: str, line: str | None, which: str, given: Given, *, yes: bool) -> list[Asked]:
    store = wire.open_store(location)
    try:
        person = wire.person(store, location, terminal=False)
        decisions = _decisions(store, line)
        chosen = {wanted.approval.id: wanted for wanted in decisions.called(which)}.values()
        for wanted in chosen:
            person.names_for(wanted.approval.request.names)
            if yes and wanted.approval.request.gate == "answer":
                raise UsageError(f"'{wanted.step}' waits for its content, not for a yes")
        return [
            _asked(decisions, decisions.decide(wanted, person, given, yes=yes), wanted)
            for wanted in chosen
        ]
    finally:
        store.close()


def _decisions(store: Store, line: str | None) -> Decisions:
    rows = store.runs(line)
    if not rows:
        raise UsageError("there is no run yet" + (f" of line '{line}'" if line else ""))
    row, drives = rows[-1], partial(wire.is_driven, store)
    hidden = wire.market.Vault(os.getcwd()).values
    return Decisions(store, row.project, row.line, wire.now_ms, drives, hidden)


def _asked(
    decisions: Decisions, found: Approval, wanted: Wanted | None, passed: Container[str] = ()
) -> Asked:
    request, state = found.request, str(found.stand(wire.now_ms()))
    if state == "approved" and found.id in passed:
        state = "overtaken"
    return Asked(
        found.id,
        request.step,
        request.run,
        request.gate,
        request.names,
        request.subject,
        "abandoned" if state == "open" and wanted is None else state,
        decisions.document(found),
        wanted.blocks if wanted is not None else (),
    )


__all__ = [
    "Action",
    "Agent",
    "Asked",
    "Plan",
    "Result",
    "Where",
    "add",
    "answer",
    "approvals",
    "approve",
    "artifacts",
    "load",
    "reject",
    "run",
    "where",
]
