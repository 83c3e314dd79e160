"""Agents and their contracts: what each can do, what it must be given, what it must give.

A contract binds a step that names its agent: the action must be one the agent knows, the required
context must come from somewhere, the required outputs must be promised, and the time may not be longer.
`name@1.2` asks for a contract of version 1.2 or a later one with the same major number.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, field, replace
from types import MappingProxyType
from typing import Literal, NamedTuple, cast

from holdfast.model.digest import Json
from holdfast.model.fixed import fixed
from holdfast.model.plan import Limits, Step, StepId

Tier = Literal["orchestrator", "supervisor", "specialist", "responder"]
TIERS: tuple[Tier, ...] = ("orchestrator", "supervisor", "specialist", "responder")
Roll = Literal["agents", "reviewers"]
ROLLS: tuple[Roll, ...] = ("agents", "reviewers")
Breached = Literal["agent", "action", "context", "outputs", "timeout", "version"]
NO_STEPS: Mapping[StepId, Step] = MappingProxyType({})
_TERMS = ("version", "timeout", "max_concurrent", "requires_human_approval")
_ACTION_TERMS = ("required_context", "required_outputs", "uses", "run", "shell")
VERSION = re.compile(r"([0-9]{1,6})(?:\.([0-9]{1,6}))?(?:\.[0-9]{1,6})?\Z")


@fixed
class Action:
    """One thing that an agent can do. `run` or `shell` say how, if the registry knows."""

    required_context: tuple[str, ...] = ()
    optional_context: tuple[str, ...] = ()
    required_outputs: tuple[str, ...] = ()
    optional_outputs: tuple[str, ...] = ()
    description: str = ""
    uses: str = "shell"
    run: tuple[str, ...] = ()
    shell: str = ""

    @property
    def can_run(self) -> bool:
        """Whether the registry says how it is done."""
        return bool(self.run or self.shell)


@fixed
class Agent:
    """A contract. `roll` says in which of the two registries it stands.

    `weight` is what its word counts in a disagreement, `boost` what is added inside its own `domains`;
    inside `veto_domains` it can forbid.
    """

    name: str
    actions: Mapping[str, Action]
    version: str = "1.0"
    tier: Tier = "specialist"
    roll: Roll = "agents"
    capabilities: tuple[str, ...] = ()
    timeout: float | None = None
    max_concurrent: int | None = None
    requires_human_approval: bool = False
    dependencies: tuple[str, ...] = ()
    veto_domains: tuple[str, ...] = ()
    weight: float | None = None
    boost: float = 0.0
    domains: tuple[str, ...] = ()


@fixed
class Rules:
    """How disagreement is settled: rounds of debate, what counts as a tie, what a stranger's word counts.

    Findings that are more alike than `similarity` are one; those of less `confidence` are dropped.
    """

    rounds: int = 3
    tie: float = 0.1
    weight: float = 0.5
    similarity: float = 0.8
    confidence: float = 0.8


@fixed
class Registry:
    """All agents that are known, by name, and how they settle what they disagree about."""

    agents: Mapping[str, Agent] = field(default_factory=dict)
    rules: Rules = Rules()

    def over(self, other: Registry) -> Registry:
        """This registry laid over another one: its entries and rules win."""
        return Registry({**other.agents, **self.agents}, self.rules)

    def find(self, named: str) -> Agent | None:
        """The agent that a step names, with or without a version."""
        return self.agents.get(agent_name(named))

    def action(self, step_agent: str, action: str) -> Action | None:
        """What a contract says of an action."""
        found = self.find(step_agent)
        return found.actions.get(action) if found else None


class Breach(NamedTuple):
    """One way in which a step breaks the contract of its agent; `key` is the part of the step."""

    step: StepId
    key: Breached
    message: str
    names: tuple[str, ...] = ()
    hint: str = ""


def agent_name(named: str) -> str:
    """The name without the version."""
    return named.partition("@")[0]


def is_compatible(wanted: str, version: str) -> bool:
    """Whether a contract of this version can stand where another one is wanted: same major, not older."""
    want, have = VERSION.match(wanted), VERSION.match(version)
    if want is None or have is None:
        return wanted == version
    return want[1] == have[1] and int(have[2] or 0) >= int(want[2] or 0)


def breaches(
    steps: Mapping[StepId, Step],
    registry: Registry,
    given: Iterable[str] = (),
    beside: Mapping[StepId, Step] = NO_STEPS,
) -> Iterator[Breach]:
    """Everything in which steps break the contracts of their agents; `given` is context all of them have.

    They may need steps that are `beside` them, which nobody looks at.
    """
    everywhere = frozenset(given)
    whole = {**beside, **steps} if beside else steps
    for step in steps.values():
        if not step.agent:
            continue
        agent = registry.find(step.agent)
        if agent is None:
            message = f"'{step.id}' is done by '{agent_name(step.agent)}', whom no registry knows"
            yield Breach(step.id, "agent", message, (agent_name(step.agent),))
            continue
        yield from _with_agent(step, agent)
        action = agent.actions.get(step.action)
        if action is not None:
            yield from _with_action(step, agent, action, everywhere | provided(step, whole))


def _with_agent(step: Step, agent: Agent) -> Iterator[Breach]:
    wanted = step.agent.partition("@")[2]
    if wanted and not is_compatible(wanted, agent.version):
        message = f"'{step.id}' wants version {wanted} of '{agent.name}', whose contract is {agent.version}"
        yield Breach(step.id, "version", message)
    if step.action not in agent.actions:
        known = ", ".join(agent.actions) or "nothing"
        what = f"'{step.action}'" if step.action else "an action that is not named"
        message = f"'{step.id}' asks '{agent.name}' for {what}, which is not in its contract"
        yield Breach(step.id, "action", message, tuple(agent.actions), f"it can do: {known}")
    if agent.timeout is not None and step.timeout is not None and step.timeout > agent.timeout:
        message = (
            f"'{step.id}' may take {step.timeout:g} s, and the contract of '{agent.name}'"
            f" allows {agent.timeout:g} s"
        )
        yield Breach(step.id, "timeout", message)


def _with_action(
    step: Step, agent: Agent, action: Action, context: frozenset[str]
) -> Iterator[Breach]:
    does = f"'{agent.name}' for '{step.action}'"
    missing = tuple(name for name in action.required_context if name not in context)
    if missing:
        message = f"'{step.id}' does not give {does} the context {_listed(missing)}"
        hint = "need a step with that output as data, or give it by 'with'"
        yield Breach(step.id, "context", message, missing, hint)
    lacking = tuple(name for name in action.required_outputs if name not in step.outputs)
    if lacking:
        wanted = f"the outputs {_listed(lacking)} that the contract asks of {does}"
        message = f"'{step.id}' does not promise {wanted}"
        yield Breach(step.id, "outputs", message, lacking, "add them to 'outputs'")


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def provided(step: Step, steps: Mapping[StepId, Step]) -> frozenset[str]:
    """The context that a step has by its values and its data needs: their ids, keys and outputs."""
    names = set(step.values)
    for need in step.needs:
        if need.type != "data":
            continue
        names.add(need.step)
        if need.key:
            names.add(need.key)
        if need.step in steps:
            names.update(steps[need.step].outputs)
    return frozenset(names)


def held_to(step: Step, registry: Registry) -> Step:
    """The step as its contract wants it: the contract's time, outputs and question where it says nothing."""
    agent = registry.find(step.agent) if step.agent else None
    if agent is None:
        return step
    action = agent.actions.get(step.action)
    asks = agent.requires_human_approval and not step.approve
    return replace(
        step,
        timeout=agent.timeout if step.timeout is None else step.timeout,
        outputs=step.outputs or (action.required_outputs if action else ()),
        approve="always" if asks else step.approve,
    )


def released(step: Step, registry: Registry) -> Step:
    """The step without the time and outputs of its contract, so that another one can fill them in.

    What it says itself in the same words goes with them. A question stays: it may be its own.
    """
    agent = registry.find(step.agent) if step.agent else None
    if agent is None:
        return step
    action = agent.actions.get(step.action)
    return replace(
        step,
        timeout=None if step.timeout == agent.timeout else step.timeout,
        outputs=() if action and step.outputs == action.required_outputs else step.outputs,
    )


def limited(limits: Limits, steps: Mapping[StepId, Step], registry: Registry) -> Limits:
    """The limits with how many steps of each agent may run at once; a smaller one that is set stays."""
    most = dict(limits.agents)
    for step in steps.values():
        agent = registry.find(step.agent) if step.agent else None
        if agent is not None and agent.max_concurrent is not None:
            most[agent.name] = min(agent.max_concurrent, most.get(agent.name, agent.max_concurrent))
    return replace(limits, agents=most)


def voices(registry: Registry, below: Registry) -> dict[str, Json]:
    """What a registry says of disagreement beyond the one below it, as a plan keeps it."""
    said: dict[str, Json] = {}
    agents: dict[str, Json] = {
        name: {
            "weight": agent.weight,
            "boost": agent.boost,
            "domains": list(agent.domains),
            "veto_domains": list(agent.veto_domains),
        }
        for name, agent in registry.agents.items()
        if agent is not below.agents.get(name) and (name in below.agents or _speaks(agent))
    }
    if agents:
        said["agents"] = agents
    if registry.rules != below.rules:
        said["rules"] = asdict(registry.rules)
    return said


def _speaks(agent: Agent) -> bool:
    """Whether a contract says what the agent counts for; without that it counts like any stranger."""
    return agent.weight is not None or bool(agent.boost or agent.veto_domains)


def contracts(registry: Registry, below: Registry) -> dict[str, Json]:
    """The contracts of a registry beyond the one below it, by name, as a plan keeps them."""
    return {
        name: {
            **_said_of(agent, _TERMS, Agent(name, {})),
            "actions": {
                action: _said_of(found, _ACTION_TERMS, Action())
                for action, found in agent.actions.items()
            },
        }
        for name, agent in registry.agents.items()
        if agent is not below.agents.get(name)
    }


def _said_of(noun: Agent | Action, terms: Iterable[str], plain: Agent | Action) -> dict[str, Json]:
    """What a contract says of these terms, as JSON; what it does not say is left out."""
    found = {term: getattr(noun, term) for term in terms}
    return {
        term: list(value) if isinstance(value, tuple) else value
        for term, value in found.items()
        if value != getattr(plain, term)
    }


def with_contracts(below: Registry, said: Mapping[str, Json]) -> Registry:
    """A registry with the contracts that a plan keeps laid over it."""
    kept = cast("Mapping[str, Mapping[str, Json]]", said.get("agents", {}))
    return Registry({name: _agent(name, terms) for name, terms in kept.items()}).over(below)


def _agent(name: str, terms: Mapping[str, Json]) -> Agent:
    actions = cast("Mapping[str, Mapping[str, Json]]", terms["actions"])
    plain = {term: value for term, value in terms.items() if term != "actions"}
    return Agent(
        name,
        {action: Action(**_fields(found)) for action, found in actions.items()},  # type: ignore[arg-type]  # as `contracts` writes them
        **plain,  # type: ignore[arg-type]  # likewise
    )


def _fields(terms: Mapping[str, Json]) -> dict[str, object]:
    return {
        term: tuple(value) if isinstance(value, list) else value for term, value in terms.items()
    }


def with_voices(below: Registry, said: Mapping[str, Json]) -> Registry:
    """A registry with what a plan keeps laid over it."""
    agents = cast("Mapping[str, Mapping[str, Json]]", said.get("agents", {}))
    rules = cast("Mapping[str, float]", said.get("rules", {}))
    own = {
        name: Agent(
            name,
            {},
            weight=cast("float | None", voice["weight"]),
            boost=cast("float", voice["boost"]),
            domains=tuple(cast("list[str]", voice["domains"])),
            veto_domains=tuple(cast("list[str]", voice["veto_domains"])),
        )
        for name, voice in agents.items()
    }
    return Registry(
        {**below.agents, **own},
        Rules(**rules) if rules else below.rules,  # type: ignore[arg-type]  # as `voices` writes them
    )
