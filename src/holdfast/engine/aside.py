"""Questions to models outside of a run: what guards ask when a person lets them look by himself.

The same rules as in a run: reserved and stored before it is sent, stored before it is acted on. It stands in
the journal of the line, and counts for the budgets of the day and the project.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext

from holdfast.core.reserve import Seen
from holdfast.engine.allowance import Allowance, Bound, Taken, bounded
from holdfast.engine.exchange import Opened, Question, answer_to, begun, question_of
from holdfast.engine.purse import Purse
from holdfast.errors import AttemptError, CallError, ConflictError
from holdfast.model.call import Answer, Request
from holdfast.model.event import CallAnswered, CallFailed, Event
from holdfast.model.fixed import fixed
from holdfast.model.plan import RunId, Step
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
        self.step = step.id
        self.attempt = _NO_ATTEMPT
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
        return await answer_to(
            question_of(request, self._desk.hidden()), self, listen or (lambda _: None)
        )

    # --- the book of its calls -----------------------------------------------------------------------

    @property
    def models(self) -> ChatModel:
        """Who is asked."""
        return self._desk.models

    def hidden(self) -> Sequence[str]:
        """What is never to be written down."""
        return self._desk.hidden()

    def monotonic(self) -> float:
        """Seconds that only ever grow."""
        return self._desk.monotonic()

    def turn(self, provider: str) -> AbstractAsyncContextManager[None]:
        """Guards ask one after the other."""
        del provider
        return nullcontext()

    async def begin(self, question: Question) -> Opened:
        """Store what the call may use."""
        desk = self._desk
        desk.store.put(question.body)
        async with desk.purse.alone() if desk.purse is not None else nullcontext():
            sent, bound = self._reserved(question.request, len(question.body))
            number = self._tell(lambda at: begun(question, self, at, bound))
        return Opened(number, sent, bound)

    def leaves(self, number: int) -> None:
        """Nobody asks later whether it did."""

    async def answered(self, question: Question, fact: CallAnswered, content: bytes) -> None:
        """Store the answer."""
        del question
        self._settle(fact, content, fact.cost, fact.input + fact.output)

    async def failed(self, fact: CallFailed, message: bytes) -> None:
        """Store that there was no answer, and why."""
        self._settle(fact, message, fact.cost, fact.tokens)

    def waits(self, question: Question, error: CallError, seconds: float) -> None:
        """Say that the same is asked again."""
        del question
        again = f"asking again in {seconds:.0f} s, nothing is lost"
        self._desk.say(f"{self.step}: {error.message}; {again}")

    def _settle(self, fact: Event, content: bytes, cost: int | None, tokens: int) -> None:
        """Store how a call ended, and what it took."""
        self._desk.store.put(content)
        self.spent += cost or 0
        self._tokens += tokens
        self._tell(lambda _: fact)

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
