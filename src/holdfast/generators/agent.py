"""Steps that a model does with tools: it is asked, what it wants to use is used, until it answers.

    ask -> uses? -> each one run, in its order, its answer given back -> ask -> … -> text: the candidate

Every turn is a call that the engine stores, and every use of a tool too. After a kill the same questions
are asked in the same order, so that stored answers are found up to the last turn. What a tool says is data:
it comes in the role of a tool, and is cut at a bound. What the model does wrong (a tool that is not there,
arguments that do not fit) it is told as the answer of the tool, and has the turns that are left to do better.

What a tool leaves in the directory of the attempt does not outlive the attempt. Where that is the result
itself (a copy of the project), tools are run again instead of taken from the store.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from functools import cached_property

from holdfast.errors import AttemptError, ProcessError
from holdfast.generators.contract import lay_out
from holdfast.generators.identity import tools_identity
from holdfast.generators.imports import Imports
from holdfast.generators.llm import Find, calls_of, rendered, said
from holdfast.generators.offers import arguments_of, offer_of
from holdfast.generators.python import Call, Pool
from holdfast.model.call import Answer, Message, Offer, Request, ToolUse
from holdfast.model.digest import Json
from holdfast.model.plan import TURNS, Step
from holdfast.model.telling import asked_schema, parted
from holdfast.ports import Calls, Candidate, Job, Repeat, Said, Tool, Wanted

MOST_USES = 64  # of tools, in one turn

Open = Callable[[Job], Mapping[str, Tool]]


class AgentGenerator:
    """Asks the step's model turn by turn; `open_tools` gives the tools of a step by name."""

    def __init__(self, open_tools: Open, find: Find, imports: Imports | None = None) -> None:
        self._open = open_tools
        self._find = find
        self._imports = imports or Imports()

    def identity(self, step: Step, root: str) -> Mapping[str, Json]:
        """The source of every tool; the plan says the rest."""
        return tools_identity(self._imports)(step, root)

    async def generate(self, job: Job) -> Candidate:
        talk = _Talk(job, calls_of(job), self._open(job), rendered(job, self._find))
        try:
            async with asyncio.timeout(job.step.timeout):
                text = await talk.through()
        except TimeoutError as error:
            message = f"'{job.step.model}' was not done within {job.step.timeout:g} s"
            raise AttemptError(message, reason="timed_out", log=talk.log()) from error
        made = parted(job.step, text)
        return Candidate("bytes", made.output, log=talk.log(), handoff=made.handoff)

    async def close(self) -> None:
        """Nothing is kept: whoever opens tools closes them."""


class _Talk:
    """One conversation."""

    def __init__(
        self, job: Job, calls: Calls, tools: Mapping[str, Tool], begin: tuple[Message, ...]
    ) -> None:
        self._job = job
        self._begin = begin
        self._calls = calls
        self._tools = tools
        self._offers = tuple(tool.offer for tool in tools.values())
        self._lines: list[str] = []

    def log(self) -> bytes:
        """What was used, one line each."""
        return "".join(self._lines).encode("utf-8", "replace")

    async def through(self) -> str:
        """The answer at the end; AttemptError if it does not come to one."""
        step, messages = self._job.step, self._begin
        schema = asked_schema(step)
        most = TURNS if step.turns is None else step.turns
        for turn in range(1, most + 1):
            request = Request(step.model, messages, step.parameters, schema, self._offers)
            answer = await self._calls.ask(request)
            text = said(answer, request)
            if not answer.uses:
                return text
            if turn < most:
                messages = (*messages, *await self._turn(turn, request, answer))
        message = f"'{step.model}' still wanted to use tools after {most} turns"
        raise AttemptError(message, reason="turns_spent", log=self.log())

    async def _turn(self, turn: int, request: Request, answer: Answer) -> list[Message]:
        """What the model said, and the answers of the tools that it wanted."""
        messages = [Message("assistant", answer.text, answer.uses)]
        for place, use in enumerate(answer.uses[:MOST_USES]):
            found = await self._use(Wanted(request, place, use, self._known(use)))
            self._note(turn, use, found)
            messages.append(Message("tool", found.text, answers=use.id, tool=use.name))
        for use in answer.uses[MOST_USES:]:
            told = Said(f"not used: at most {MOST_USES} tools in one turn", ok=False)
            self._note(turn, use, told)
            messages.append(Message("tool", told.text, answers=use.id, tool=use.name))
        return messages

    def _known(self, use: ToolUse) -> str:
        return use.name if use.name in self._tools else ""

    async def _use(self, wanted: Wanted) -> Said:
        """What a tool answers; whatever is wrong with the use is an answer, too."""
        tool = self._tools.get(wanted.use.name)
        if tool is None:
            names = ", ".join(self._tools) or "none"
            return await self._told(wanted, f"there is no tool '{wanted.use.name}'; tools: {names}")
        try:
            arguments = arguments_of(wanted.use.arguments, tool.offer.schema)
        except ValueError as error:
            return await self._told(wanted, str(error))

        async def run() -> Said:
            try:
                return Said(await tool.call(arguments, self._job))
            except AttemptError as error:
                return Said(f"'{tool.offer.name}' failed: {error.message}", ok=False)

        return await self._calls.use(wanted, run, self._repeat(tool))

    async def _told(self, wanted: Wanted, problem: str) -> Said:
        async def run() -> Said:
            return Said(problem, ok=False)

        return await self._calls.use(wanted, run, "unanswered")

    def _repeat(self, tool: Tool) -> Repeat:
        step = self._job.step
        if step.changes_copy:  # the copy that the lost attempt worked in is gone
            return "always"
        return "unanswered" if tool.reads_only or step.idempotent else "never"

    def _note(self, turn: int, use: ToolUse, found: Said) -> None:
        given = " ".join(use.arguments.split())[:200]
        words = " ".join(found.text[:400].split())[:200]
        line = f"turn {turn}: {use.name} {given} {'->' if found.ok else 'failed:'} {words}\n"
        self._lines.append(line)
        if self._job.on_output is not None:
            self._job.on_output("tool", line.encode("utf-8", "replace"))


class FunctionTools:
    """Functions of the project as tools, called in child processes as python steps are."""

    def __init__(self, pool: Pool, engine: Mapping[str, str] = os.environ) -> None:
        self._pool = pool
        self._engine = engine

    def open(self, job: Job) -> Mapping[str, Tool]:
        """The tools of a step by the name that its model knows; AttemptError if one is none."""
        desk = _Desk(job, self._engine)
        tools = [_FunctionTool(name, job, self._pool, desk) for name in job.step.tools]
        return {tool.offer.name: tool for tool in tools}

    async def close(self) -> None:
        """End what is kept between attempts."""
        await self._pool.close()


class _Desk:
    """The files and variables of an attempt, laid out when a tool is first used."""

    def __init__(self, job: Job, engine: Mapping[str, str]) -> None:
        self._job = job
        self._engine = engine

    @cached_property
    def env(self) -> dict[str, str]:
        return lay_out(self._job, self._engine)


class _FunctionTool:
    """One function; it changes nothing outside if its step says so."""

    def __init__(self, target: str, job: Job, pool: Pool, desk: _Desk) -> None:
        self._target = target
        self._pool = pool
        self._desk = desk
        self.offer: Offer = offer_of(target, job.root)
        self.reads_only = job.step.effects == "none"

    async def call(self, arguments: Mapping[str, Json], job: Job) -> str:
        call = Call(
            target=self._target,
            root=job.root,
            folder=job.folder,
            room=job.room,
            mark=job.mark,
            env=self._desk.env,
            values=arguments,
        )
        if job.place is not None:
            await job.place()
        try:
            answer = await self._pool.call(call)
        except ProcessError as error:
            raise AttemptError(str(error), reason="command_failed") from error
        if answer.state != "done":
            raise AttemptError(answer.message, reason="command_failed")
        return answer.result.decode("utf-8", "replace")
