"""A cycle of a ticket as a step: the desk is laid, the model works, what came of it is named."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from typing import cast

from holdfast.edits.write import recover_workspace
from holdfast.errors import AttemptError, GitError, IntegrityError, StaleError, UsageError
from holdfast.model.cliagent import read_cli_agent
from holdfast.model.digest import Json, canonical
from holdfast.model.plan import Step, StepId
from holdfast.ports import Candidate, Job
from holdfast.process.terms import Terms as Confinement
from holdfast.worker.cliagent import Hired
from holdfast.worker.desk import Desk
from holdfast.worker.memory import Memory
from holdfast.worker.plan import Terms, told
from holdfast.worker.prompt import Around, agent_prompt, prompt, told_before
from holdfast.worker.standing import standing
from holdfast.worker.talk import Talk
from holdfast.worker.ticket import Ticket
from holdfast.worker.tools import Tools, in_thread
from holdfast.worker.tree import told_tree

SCHEMA = "holdfast.cycle/1"
Open = Callable[[Ticket, Terms], Desk]


class CycleGenerator:
    """Does the cycles of tickets; `open_desk` gives the worktree of one."""

    def __init__(self, open_desk: Open, confinement: Confinement | None) -> None:
        self._open = open_desk
        self._confinement = confinement

    def identity(self, step: Step, root: str) -> Mapping[str, Json]:
        """The plan says it all: ticket, terms and model are in the key."""
        del step, root
        return {}

    async def generate(self, job: Job) -> Candidate:
        ticket, terms, number = told(job.step)
        if job.calls is None:
            raise AttemptError("no model can be asked here", reason="call_refused")
        desk = await in_thread(lambda: self._open(ticket, terms))
        try:
            begun = await in_thread(lambda: _begin(desk, job, ticket, terms))
        except (
            StaleError
        ) as error:  # somebody did something to the branch: nobody works for nothing
            raise AttemptError(f"{error}\n{error.hint}", reason="command_failed") from error
        memory = Memory(begun, plan=_plan_before(job))
        if terms.done and number == 1 and not job.feedback:
            memory.last = {"ready": True, "summary": "what stands is checked again"}
            made = await in_thread(lambda: _made(desk, memory, begun, "finish"))
            return Candidate("bytes", canonical(made), log=b"what stands is checked again\n")
        told_of = agent_prompt if terms.agent else prompt
        try:
            around = await in_thread(lambda: _around(job, desk, ticket, terms, number))
        except UsageError as error:  # a task tree that nobody could go on with
            raise AttemptError(str(error), reason="command_failed") from error
        messages = await in_thread(lambda: told_of(ticket, desk, around))
        talk: Talk | Hired
        if terms.agent:
            agent = read_cli_agent(terms.agent)
            subject = ticket.title[:72]
            talk = Hired(job, desk, memory, agent, self._confinement, subject)
        else:
            tools = Tools(desk, memory, job, self._confinement)
            talk = Talk(job, job.calls, tools, memory, desk.bounds.turns, desk.bounds.refusals)
        try:
            async with asyncio.timeout(job.step.timeout):
                ended = await talk.through(messages)
        except TimeoutError as error:
            message = f"the cycle was not done within {job.step.timeout:g} s"
            raise AttemptError(message, reason="timed_out", log=talk.log()) from error
        try:
            memory.state = await in_thread(lambda: _settled(desk, memory.state))
        except (UsageError, GitError) as error:
            raise AttemptError(str(error), reason="command_failed", log=talk.log()) from error
        made = await in_thread(lambda: _made(desk, memory, begun, ended))
        return Candidate("bytes", canonical(made), log=talk.log(), handoff=_handoff(memory))

    async def close(self) -> None:
        """Nothing is kept."""


def made_by(content: bytes) -> Mapping[str, Json]:
    """What a cycle made, read back; IntegrityError if it is something else."""
    data = cast("Mapping[str, Json]", json.loads(content))
    if data.get("schema") != SCHEMA:
        raise IntegrityError("the content of a cycle is of another kind")
    return data


def head_before(job: Job, terms: Terms) -> str:
    """The commit that a cycle stands on."""
    done = delivered_before(job)
    return str(done["head"]) if done else terms.base


def delivered_before(job: Job) -> Mapping[str, Json]:
    """What the delivery before this cycle said; empty for the first."""
    _, _, number = told(job.step)
    given = job.given.get(StepId(f"deliver-{number - 1}"))
    return {} if given is None else cast("Mapping[str, Json]", json.loads(given.content()))


def _begin(desk: Desk, job: Job, ticket: Ticket, terms: Terms) -> str:
    """The state that an attempt begins with: what the last one left, or the commit before it."""
    run = job.mark.partition("/")[0]
    head = standing(desk.tree.client, ticket, head_before(job, terms), run, job.step.id)
    recover_workspace(desk.workspace)  # an edit that a kill cut short
    desk.base = begun = desk.begin(terms.base)
    if head != terms.base:
        begun = desk.begin(head)
    for item in reversed(job.feedback):
        if item.content is not None:
            state = str(made_by(item.content())["state"])
            desk.go_to(state)
            return desk.spare_tree(begun)
    return begun


def _settled(desk: Desk, state: str) -> str:
    """The files of a state as a commit would hold them."""
    desk.go_to(state)
    desk.stir()
    return desk.settle()


def _around(job: Job, desk: Desk, ticket: Ticket, terms: Terms, number: int) -> Around:
    done = delivered_before(job)
    answers = [
        given.content().decode("utf-8", "replace")
        for need, given in job.given.items()
        if need.startswith("question-")
    ]
    before = "\n".join([told_before(done), *(f"a person answered: {text}" for text in answers)])
    about = str(done.get("eoi") or "")
    if not about and ticket.eoi is not None:
        about = " ".join(filter(None, dict.fromkeys((ticket.eoi.label, ticket.eoi.path))))
    return Around(
        cycle=number,
        cycles=terms.cycles,
        attempt=len(job.feedback) + (0 if terms.done and number == 1 else 1),
        before=before.strip(),
        feedback=job.feedback,
        tree=told_tree(desk.folder, ticket),
        checks=terms.checks,
        eoi=about,
        plan=_plan_before(job),
    )


def _plan_before(job: Job) -> tuple[str, ...]:
    return tuple(cast("list[str]", delivered_before(job).get("plan", [])))


def _made(desk: Desk, memory: Memory, begun: str, ended: str) -> dict[str, Json]:
    last = memory.last
    return {
        "schema": SCHEMA,
        "ended": ended,
        "ready": bool(last.get("ready")) and ended == "finish",
        "begun": begun,
        "state": memory.state,
        "at": int(time.time()),
        "files": [item.path for item in desk.touched(begun, memory.state)],
        "commits": [
            {"state": mark.state, "message": mark.message, "nodes": list(mark.nodes)}
            for mark in memory.marks
        ],
        "message": str(last.get("message") or ""),
        "worked_on": list(cast("list[str]", last.get("nodes", []))),
        "summary": str(last.get("summary") or ""),
        "question": str(last.get("question") or ""),
        "eoi": str(last.get("eoi") or ""),
        "nodes": list(memory.nodes),
        "plan": list(memory.plan),
        "reflections": list(cast("list[Json]", last.get("reflections", []))),
        "lost": list(memory.lost),
    }


def _handoff(memory: Memory) -> bytes:
    given = memory.last.get("handoff")
    return canonical(given) if isinstance(given, Mapping) and given else b""
