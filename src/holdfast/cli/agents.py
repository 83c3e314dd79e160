"""agents: who can do what, under which contract."""

from __future__ import annotations

import click

from holdfast import wire
from holdfast.cli.place import json_option, nearest
from holdfast.cli.say import out, out_json
from holdfast.errors import UsageError
from holdfast.formats.agentfile import shipped
from holdfast.model.agent import ROLLS, Agent
from holdfast.model.digest import Json


@click.command(epilog="\b\nExample:\n  holdfast agents\n  holdfast agents security-analyst --json")
@click.argument("name", required=False)
@json_option
def agents(name: str | None, *, as_json: bool) -> int:
    """Show the agents that are known, or the contract of one.

    The shipped ones, under those of the registry that 'agents' in your own configuration names. A plan
    may add its own.
    """
    own = wire.own_agents()
    known = shipped() if own is None else own.over(shipped())
    if name is not None and name not in known.agents:
        raise UsageError(f"no agent is called '{name}'", hint=nearest(name, known.agents))
    found = [known.agents[name]] if name is not None else [*known.agents.values()]
    if as_json:
        listed: list[Json] = [agent_json(agent) for agent in found]
        out_json({"schema": "holdfast.agents/1", "agents": listed})
    elif name is not None:
        for line in _contract(found[0]):
            out(line)
    else:
        _print(found)
    return 0


def _print(found: list[Agent]) -> None:
    width = max(len(agent.name) for agent in found)
    for roll in ROLLS:
        out(f"{roll}:")
        for agent in found:
            if agent.roll == roll:
                out(f"  {agent.name:<{width}}  {', '.join(agent.actions)}")


def _contract(agent: Agent) -> list[str]:
    limits = []
    if agent.timeout is not None:
        limits.append(f"at most {agent.timeout:g} s")
    if agent.max_concurrent is not None:
        limits.append(f"{agent.max_concurrent} at once")
    if agent.requires_human_approval:
        limits.append("a person must say yes")
    lines = [
        f"{agent.name} {agent.version} · {agent.tier}" + "".join(f" · {one}" for one in limits)
    ]
    for name, action in agent.actions.items():
        lines.append(f"  {name}: {action.description}" if action.description else f"  {name}")
        lines.append(f"    needs {', '.join(action.required_context) or 'nothing'}")
        lines.append(f"    gives {', '.join(action.required_outputs) or 'anything'}")
    if agent.veto_domains:
        lines.append(f"  can forbid in {', '.join(agent.veto_domains)}")
    return lines


def agent_json(agent: Agent) -> dict[str, Json]:
    """A contract as the format writes it, with its registry."""
    return {
        "agent": agent.name,
        "registry": agent.roll,
        "version": agent.version,
        "tier": agent.tier,
        "capabilities": list(agent.capabilities),
        "input_schema": {
            "actions": {
                name: {
                    "description": action.description,
                    "required_context": list(action.required_context),
                    "optional_context": list(action.optional_context),
                }
                for name, action in agent.actions.items()
            }
        },
        "output_schema": {
            "actions": {
                name: {
                    "required_outputs": list(action.required_outputs),
                    "optional_outputs": list(action.optional_outputs),
                }
                for name, action in agent.actions.items()
            }
        },
        "constraints": {
            "timeout_ms": None if agent.timeout is None else round(agent.timeout * 1000),
            "max_concurrent": agent.max_concurrent,
            "requires_human_approval": agent.requires_human_approval,
        },
        "dependencies": list(agent.dependencies),
        "veto_domains": list(agent.veto_domains),
        "weight": agent.weight,
        "boost": agent.boost,
        "domains": list(agent.domains),
    }
