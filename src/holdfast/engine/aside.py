"""Questions to models outside of a run: what guards ask when a person lets them look by himself.

The same rules as in a run: reserved and stored before it is sent, stored before it is acted on. It stands in
the journal of the line, and counts for the budgets of the day and the project.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace

from holdfast.core.backoff import wait_before
from holdfast.core.reserve import Seen, counted
from holdfast.engine.allowance import Allowance, Bound, Taken, bounded
from holdfast.engine.calls import (
    digest_spread,
    given_up,
    known_id,
    waiting_words,
    without,
)
from holdfast.engine.purse import Purse
from holdfast.errors import AttemptError, CallError, ConflictError
from holdfast.model.call import Answer, Request, answer_bytes, request_bytes
from holdfast.model.digest import Digest
from holdfast.model.event import CallAnswered, CallFailed, CallStarted, Event
from holdfast.model.fixed import fixed
from holdfast.model.hiding import answered_without, asked_without
from holdfast.model.plan import RunId, Step
from holdfast.model.secret import struck
from holdfast.ports import Append, Batch, ChatModel, Repeat, Said, Store, Wanted

_NO_RUN = RunId("")
_NO_ATTEMPT = 0


@fixed
class Desk:
    """Where questions are asked from: who answers, where it is written down, what it may cost in all."""

    store: Store
    journal: str
    models: ChatModel
    purse: Purse | None
    most: int | None  # micro-dollars
    hidden: Callable[[], Sequence[str]]  # never to be written down
    clock: Callable[[], int]
    monotonic: Callable[[], float]
    say: Callable[[str], None]


class Aside:
    """What the guards of one step ask models with."""

    def __init__(self, desk: Desk, step: Step) -> None:
        self._desk = desk
        self._step = step
        self.spent = 0  # micro-dollars
        self._tokens = 0

    async def use(
        self, wanted: Wanted, run: Callable[[], Awaitable[Said]], repeat: Repeat = "never"
    ) -> Said:
        """Guards use no tools."""
        del run, repeat
        raise AttemptError(f"'{wanted.tool}' cannot be used here", reason="call_refused")

    async def ask(self, request: Request, listen: Callable[[str], None] | None = None) -> Answer:
        """The answer of the model; AttemptError if there is none."""
        request, tries = asked_without(request, self._desk.hidden()), 0
        while True:
            try:
                return await self._once(request, listen or (lambda _: None))
            except CallError as raised:
                error, tries = without(raised, self._desk.hidden()), tries + 1
                spread = digest_spread(f"{self._step.id}/{tries}")
                wait = wait_before(tries, error.after, spread) if error.again else None
                if wait is None and error.again:
                    raise AttemptError(given_up(error, tries), reason="call_failed") from raised
                if wait is None:
                    raise AttemptError(str(error), reason=error.reason) from raised
                self._desk.say(waiting_words(self._step.id, error, wait))
                await asyncio.sleep(wait)

    async def _once(self, request: Request, listen: Callable[[str], None]) -> Answer:
        desk, step = self._desk, self._step.id
        body = request_bytes(request)
        digest = desk.store.put(body)
        async with desk.purse.alone() if desk.purse is not None else nullcontext():
            sent, bound = self._reserved(request, len(body))
            number = self._tell(
                lambda at: CallStarted(
                    step, _NO_ATTEMPT, at, request.model, digest, bound.cost, bound.tokens
                )
            )
        began = desk.monotonic()
        try:
            said = await desk.models.ask(sent, listen, lambda: None)
        except CallError as error:
            self._failed(number, error, bound)
            raise
        took, answer = desk.monotonic() - began, answered_without(said, desk.hidden())
        usage = counted(answer.usage, len(body), len(answer.text.encode("utf-8", "replace")))
        answer = replace(answer, usage=usage)
        kept, cost = desk.store.put(answer_bytes(answer)), desk.models.cost(request.model, usage)
        self.spent += cost or 0
        self._tokens += usage.input + usage.output
        self._tell(
            lambda _: CallAnswered(
                step,
                _NO_ATTEMPT,
                number,
                kept,
                usage.input,
                usage.output,
                usage.cached,
                cost,
                round(took * 1000),
                answer.finish,
                known_id(answer),
            )
        )
        return answer

    def _failed(self, number: int, error: CallError, bound: Bound) -> None:
        """Store that there was no answer, and what that may have cost."""
        desk = self._desk
        charged = error.read is not None  # nobody knows how much
        cost, tokens = (bound.cost, bound.tokens) if charged else (0, 0)
        self.spent += cost or 0
        self._tokens += tokens
        words: Digest = desk.store.put(
            struck(error.message.encode("utf-8", "replace"), desk.hidden())
        )
        self._tell(
            lambda _: CallFailed(
                self._step.id, _NO_ATTEMPT, number, error.reason, cost, tokens, words
            )
        )

    def _tell(self, event: Callable[[int], Event]) -> int:
        """Append a fact to the journal, whoever else writes to it; its number there."""
        store, journal = self._desk.store, self._desk.journal
        while True:
            last = store.last(journal)
            fact = (self._desk.clock(), event(last + 1))
            try:
                store.commit(Batch([Append(journal, last, [fact])]))
            except ConflictError:
                if store.last(journal) == last:
                    raise
                continue
            return last + 1

    def _reserved(self, request: Request, size: int) -> tuple[Request, Bound]:
        """What to send and what it may use; AttemptError if a limit has no room for that."""
        desk, taken = self._desk, Taken(self.spent, self._tokens)
        room = desk.purse.room(_NO_RUN) if desk.purse is not None else None
        if room is not None:  # it knows what was taken here
            room = room._replace(left=room.left + self.spent)
        allowed = Allowance(self._step, taken, taken, desk.most, None, room, "there is")
        found = bounded(request, size, Seen(), allowed, desk.models.cost, alone=False)
        if isinstance(found, AttemptError):
            raise found
        return found
