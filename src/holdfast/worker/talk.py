"""The conversation of a cycle: ask, use what is wanted, tell, until the model ends it or a bound does."""

from __future__ import annotations

from holdfast.generators.llm import said
from holdfast.generators.offers import arguments_of
from holdfast.model.call import Answer, Message, Request, ToolUse
from holdfast.ports import Calls, Job, Said, Wanted
from holdfast.worker.memory import Memory
from holdfast.worker.offers import OFFERS
from holdfast.worker.tools import Tools

MOST_USES = 16  # of tools, in one turn
_SILENT = 3  # answers in a row that use no tool
_BY_NAME = {offer.name: offer for offer in OFFERS}


class Talk:
    """One conversation; what it comes to is in its memory."""

    def __init__(
        self, job: Job, calls: Calls, tools: Tools, memory: Memory, turns: int, refusals: int
    ) -> None:
        self._job = job
        self._calls = calls
        self._tools = tools
        self._memory = memory
        self._turns = turns
        self._refusals = refusals
        self._lines: list[str] = []

    def log(self) -> bytes:
        """What was used, one line each."""
        return "".join(self._lines).encode("utf-8", "replace")

    async def through(self, messages: tuple[Message, ...]) -> str:
        """Go on until it ends; why it did: finish, ask, or a bound (turns, stagnated, silent)."""
        silent = 0
        for turn in range(1, self._turns + 1):
            step = self._job.step
            request = Request(step.model, messages, step.parameters, None, OFFERS)
            answer = await self._calls.ask(request)
            if answer.finish != "length":
                said(answer, request)
            if answer.uses:
                silent = 0
                messages = (*messages, *await self._turn(turn, request, answer))
            else:
                silent += 1
                messages = (*messages, *_reminded(answer))
            if self._memory.ended:
                return self._memory.ended
            if silent == _SILENT:
                return "silent"
            if self._memory.refused >= self._refusals:
                return "stagnated"
        return "turns"

    async def _turn(self, turn: int, request: Request, answer: Answer) -> list[Message]:
        messages = [Message("assistant", answer.text, answer.uses)]
        for place, use in enumerate(answer.uses):
            if place >= MOST_USES or self._memory.ended:
                why = (
                    "the cycle ended"
                    if self._memory.ended
                    else f"at most {MOST_USES} tools in one turn"
                )
                found = Said(f"not used: {why}", ok=False)
            else:
                found = await self._use(turn, request, place, use)
            self._note(turn, use, found)
            messages.append(Message("tool", found.text, answers=use.id, tool=use.name))
        return messages

    async def _use(self, turn: int, request: Request, place: int, use: ToolUse) -> Said:
        """The answer of a tool, as stored or as it is now; what is wrong with the use is one, too."""
        memory = self._memory
        offer = _BY_NAME.get(use.name)
        wanted = Wanted(request, place, use, use.name if offer else "")
        if offer is None:
            return await self._told(
                wanted, f"there is no tool '{use.name}'; tools: {', '.join(_BY_NAME)}"
            )
        try:
            given = arguments_of(use.arguments, offer.schema)
        except ValueError as error:
            return await self._told(wanted, str(error))
        earlier = memory.used.get(memory.key(use.name, use.arguments))
        if earlier is not None:
            memory.refused += 1
            return await self._told(
                wanted,
                f"refused: the same was done in turn {earlier}, and nothing changed since; look at its"
                " answer, or do something else",
            )
        memory.refused = 0
        found = await self._calls.use(wanted, lambda: self._tools.use(use.name, given), "undone")
        memory.learn(use.name, use.arguments, found.text, turn, ok=found.ok)
        return found

    async def _told(self, wanted: Wanted, problem: str) -> Said:
        async def run() -> Said:
            return Said(problem, ok=False)

        return await self._calls.use(wanted, run, "unanswered")

    def _note(self, turn: int, use: ToolUse, found: Said) -> None:
        given = " ".join(use.arguments.split())[:200]
        words = " ".join(found.text[:400].split())[:200]
        line = f"turn {turn}: {use.name} {given} {'->' if found.ok else 'failed:'} {words}\n"
        self._lines.append(line)
        if self._job.on_output is not None:
            self._job.on_output("tool", line.encode("utf-8", "replace"))


def _reminded(answer: Answer) -> tuple[Message, Message]:
    """What is said to a model that used no tool."""
    words = "Use a tool. If this cycle is over, use `finish`."
    if answer.finish == "length":
        words = f"Your answer was cut: it was too long. {words}"
    return Message("assistant", answer.text or "…"), Message("user", words)
