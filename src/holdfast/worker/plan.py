"""The plan of a ticket: one cycle and its delivery, and, as long as it is not ready, the next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, field, replace
from typing import cast

from holdfast.edits.scope import Scope
from holdfast.model.cliagent import read_cli_agent
from holdfast.model.digest import Json
from holdfast.model.expression import literals
from holdfast.model.fixed import fixed
from holdfast.model.plan import (
    WORK,
    Guard,
    Limits,
    Need,
    Plan,
    Step,
    StepId,
    fragment_bytes,
    fragment_steps,
)
from holdfast.ports import File
from holdfast.worker.desk import Bounds
from holdfast.worker.ticket import Ticket, ticket_from, ticket_json

DELIVER = "deliver"  # what a step uses that commits what a cycle made
VALIDATION = "validation"  # the kind of guard that runs a check of the repository
SCOPE = "scope"  # the kind of guard that looks at what was changed
BRANCH = "branch"  # the kind of guard that looks where a delivery is
ORIGIN = "ticket"  # the key of a plan's origin that says it is one of these
_LISTS = ("checks", "scope", "protected", "agent", "secrets")  # of the terms
_TRIES = 2  # attempts at a cycle after the first


@fixed
class Terms:
    """What the person said about a ticket: none of it can come from the ticket."""

    model: str
    base: str  # the commit it began with
    checks: tuple[str, ...] = ()
    scope: tuple[str, ...] = ("**",)
    protected: tuple[str, ...] = ()
    cycles: int = 10
    bounds: Bounds = Bounds()
    usd: float | None = None
    parameters: Mapping[str, Json] = field(default_factory=dict)
    agent: tuple[str, ...] = ()  # the words of a command-line agent, which works instead of a model
    secrets: tuple[str, ...] = ()  # variables that it may see
    done: bool = False  # it was ready at its base: that is checked before anybody works


def line_of(ticket: Ticket) -> str:
    """The line of a ticket."""
    return ticket.id if ticket.id.startswith("ticket-") else f"ticket-{ticket.id}"


def branch_of(ticket: Ticket) -> str:
    """The branch that its commits come to, in the person's repository too."""
    return f"holdfast/{ticket.id}"


def plan_of(ticket: Ticket, terms: Terms) -> Plan:
    """The plan that a ticket begins with."""
    steps = _cycle(ticket, terms, 1)
    return Plan(
        name=line_of(ticket),
        steps={step.id: step for step in steps},
        description=ticket.title,
        limits=Limits(usd=terms.usd),
        origin={ORIGIN: {"id": ticket.id, "branch": branch_of(ticket), "base": terms.base}},
    )


def next_cycle(step: Step, question: str) -> tuple[File, ...]:
    """The steps that follow a delivery, as a fragment; first a person is asked, if there is a question."""
    ticket, terms, number = told(step)
    steps = {one.id: one for one in _cycle(ticket, terms, number + 1)}
    if question:
        asked = StepId(f"question-{number}")
        steps[asked] = Step(
            id=asked,
            uses="human",
            prompt=f"The worker of ticket {ticket.id} asks:\n\n{question}",
            description="answer the worker's question",
        )
        first = steps[_id("cycle", number + 1)]
        steps[first.id] = replace(first, needs=(*first.needs, Need(asked)))
    return (File("next.json", fragment_bytes(steps)),)


def told(step: Step) -> tuple[Ticket, Terms, int]:
    """What a step of a ticket was told: the ticket, the terms, the number of its cycle."""
    given = step.values
    terms = dict(cast("Mapping[str, Json]", given["terms"]))
    bounds = Bounds(**cast("Mapping[str, float]", terms.pop("bounds")))  # type: ignore[arg-type] # as written
    for key in _LISTS:
        terms[key] = tuple(cast("Sequence[str]", terms[key]))
    ticket = ticket_from(cast("Mapping[str, Json]", given["ticket"]))
    return ticket, Terms(bounds=bounds, **terms), cast("int", given["cycle"])  # type: ignore[arg-type]


def scope_of(terms: Terms) -> Scope:
    """What edits of a ticket may write."""
    return Scope(terms.scope, terms.protected, (), code_only=False, max_files=terms.bounds.files)


def _id(kind: str, number: int) -> StepId:
    return StepId(f"{kind}-{number}")


def _cycle(ticket: Ticket, terms: Terms, number: int) -> tuple[Step, Step]:
    data = cast("dict[str, Json]", asdict(terms))
    if (
        terms.bounds.bytes == Bounds().bytes
    ):  # plans that were made before it was bounded are the same
        cast("dict[str, Json]", data["bounds"]).pop("bytes")
    for key in _LISTS:
        data[key] = list(cast("Sequence[str]", data[key]))
    values: dict[str, Json] = {
        "ticket": literals(ticket_json(ticket)),
        "terms": literals(data),
        "cycle": number,
    }
    before = (Need(_id(DELIVER, number - 1)),) if number > 1 else ()
    checks = tuple(Guard(VALIDATION, command, name=command) for command in terms.checks)
    work = Step(
        id=_id("cycle", number),
        uses=WORK,
        model=terms.model,
        parameters=terms.parameters,
        values=values,
        needs=before,
        guards=(Guard(SCOPE, name="scope"), *checks),
        retries=_TRIES + terms.done,
        secrets=terms.secrets,
        tool_versions=_versions(terms),
        description=f"work on {ticket.title}"[:100],
    )
    deliver = Step(
        id=_id(DELIVER, number),
        uses=DELIVER,
        values=values,
        needs=(Need(work.id), *(Need(need.step) for need in before)),
        guards=(Guard(BRANCH, name="branch"),),
        description="commit what the checks passed",
    )
    return work, deliver


def _versions(terms: Terms) -> dict[str, tuple[str, ...]]:
    """What tells one agent of a name from another: its version, if it tells one."""
    agent = read_cli_agent(terms.agent) if terms.agent else None
    return {agent.name: agent.version} if agent is not None and agent.version else {}


class TicketSteps:
    """Reads the steps that a delivery adds: they are ours, as they were written."""

    def read(self, content: bytes, file: str, plan: Plan) -> Mapping[StepId, Step]:
        """The steps of a fragment."""
        del file, plan
        return fragment_steps(content)

    def check(self, plan: Plan, added: Mapping[StepId, Step]) -> None:
        """See that the plan can have them."""
        replace(plan, steps={**plan.steps, **added})

    def held(self, plan: Plan, added: Mapping[StepId, Step]) -> tuple[dict[StepId, Step], Limits]:
        """No contract binds them."""
        return dict(added), plan.limits
