"""Calls of models on behalf of attempts: reserved, stored, sent, stored, and only then acted on.

What was answered and not acted on is taken from the store. Who runs out of money, tokens or patience ends
the attempt; the journal says how far it came.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import TYPE_CHECKING

from holdfast.core.reserve import Seen
from holdfast.core.state import Spent, State
from holdfast.core.views import cost_limit
from holdfast.engine.allowance import RUN, Allowance, Bound, Taken, bounded
from holdfast.engine.contents import Contents
from holdfast.engine.exchange import Opened, Question, answer_to, begun, question_of
from holdfast.engine.rates import Gate
from holdfast.engine.scribe import Scribe
from holdfast.engine.sent import Call, Notes
from holdfast.engine.uses import Uses
from holdfast.engine.world import World
from holdfast.errors import AttemptError, CallError, IntegrityError
from holdfast.model.call import Answer, Request, answer_from
from holdfast.model.digest import Digest
from holdfast.model.event import (
    AttemptStarted,
    CallAnswered,
    CallFailed,
    RunEvent,
)
from holdfast.ports import ChatModel, Repeat, Said, Wanted

if TYPE_CHECKING:  # it is made by whoever has budgets
    from holdfast.engine.purse import Purse

RATE_LIMITED = "rate_limited"


class Switchboard:
    """Gives every attempt a line to the models, for one run."""

    def __init__(
        self,
        world: World,
        state: State,
        scribe: Scribe,
        contents: Contents,
        sent: Notes,
        wake: Callable[[], None],
    ) -> None:
        self.world = world
        self.sent = sent
        self.state = state
        self._scribe = scribe
        self._contents = contents
        self._wake = wake
        self._models: ChatModel | None = None
        self._gates: dict[str, Gate] = {}
        self._loading: dict[str, asyncio.Task[None]] = {}
        self._purse: Purse | None = None
        self._has_purse: bool | None = None  # nobody knows before a model is asked
        self._seen: dict[str, Seen] = {}
        self._settled: asyncio.Event | None = None  # while somebody waits for the next end

    def line(
        self, started: AttemptStarted, listen: Listener | None, rest: Callable[[], None]
    ) -> Asker:
        """The line of one attempt; `rest` is called whenever it begins to wait for a model."""
        return Asker(self, started, listen, rest)

    @property
    def models(self) -> ChatModel:
        """Who is asked; loaded when the first question comes."""
        if self._models is None:
            if self.world.models is None:
                raise AttemptError("no model can be asked here", reason="call_refused")
            self._models = self.world.models()
        return self._models

    def at_once(self, provider: str) -> int:
        """How many calls of a provider may be under way; whoever asks one that is not known is told so."""
        try:
            return self.models.room(provider).at_once
        except CallError:
            return 1

    def is_ready(self, provider: str) -> bool:
        """Whether what it takes to ask a provider is loaded; that begins when it is first asked about."""
        return self._loading_of(provider).done()

    async def ready(self, provider: str) -> None:
        """Until a provider can be asked."""
        await asyncio.shield(self._loading_of(provider))

    def _loading_of(self, provider: str) -> asyncio.Task[None]:
        if provider not in self._loading:
            self._loading[provider] = asyncio.create_task(self._load(provider))
        return self._loading[provider]

    async def _load(self, provider: str) -> None:
        with contextlib.suppress(CallError):  # told by whoever asks
            await asyncio.to_thread(self.models.load, provider)
        self._wake()

    @property
    def purse(self) -> Purse | None:
        """The budgets that hold over more than this run; read when the first question comes."""
        if self._has_purse is None:
            self._purse = self.world.purse()
            self._has_purse = self._purse is not None
        return self._purse

    def gate(self, provider: str) -> Gate:
        """Where calls of a provider wait for their turn."""
        found = self._gates.get(provider)
        if found is None:
            found = self._gates[provider] = Gate(self.models.room(provider), self.world)
        return found

    def seen(self, model: str) -> Seen:
        """What the calls of a model used so far."""
        return self._seen.get(model, Seen())

    def saw(self, model: str, size: int, read: int) -> None:
        """One more call was answered, which took so many tokens to read so many bytes."""
        self._seen[model] = self.seen(model).and_also(size, read)

    def settled(self) -> None:
        """A call ended: there may be room for another one."""
        if self._settled is not None:
            self._settled.set()
            self._settled = None

    async def next_settled(self) -> None:
        """Until the next call ended."""
        if self._settled is None:
            self._settled = asyncio.Event()
        await self._settled.wait()

    async def record(self, event: RunEvent, *contents: bytes) -> None:
        """Store a fact with what it names; returns when it is on disk."""
        pending = self._scribe.pending
        for content in contents:
            self._contents.put(pending.blobs, content)
        self._scribe.append(event)
        stored: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._scribe.pending.waiters.append(stored)
        self._wake()
        await stored

    def content(self, digest: Digest) -> bytes:
        """A content that was stored."""
        return self._scribe.content(digest)

    async def close(self) -> None:
        """End what is kept between calls."""
        await asyncio.gather(*self._loading.values(), return_exceptions=True)
        if self._models is not None:
            await self._models.close()
        self.sent.close()


Listener = Callable[[str, bytes], None]


class Asker:
    """What one attempt asks models with."""

    def __init__(
        self,
        board: Switchboard,
        started: AttemptStarted,
        listen: Listener | None,
        rest: Callable[[], None],
    ) -> None:
        self._board = board
        self.step = started.step
        self.attempt = started.attempt
        self._listen = listen
        self._rest = rest
        self._step = board.state.plan.steps[started.step]
        self._paid = list(board.state.steps[started.step].paid)
        self._number = 0
        self._is_open = False  # a line of an answer
        self._uses = Uses(board, started)

    async def use(
        self, wanted: Wanted, run: Callable[[], Awaitable[Said]], repeat: Repeat = "never"
    ) -> Said:
        """What a tool answers, from the store or by running it."""
        return await self._uses.use(wanted, run, repeat)

    async def ask(self, request: Request, listen: Callable[[str], None] | None = None) -> Answer:
        """The answer, from the store or from the model; secrets are neither asked nor answered."""
        question = question_of(request, self.hidden())
        for kept in [paid for paid in self._paid if paid.request == question.digest]:
            self._paid.remove(kept)
            with contextlib.suppress(IntegrityError):  # purged since, or damaged: it is asked again
                return answer_from(self._board.content(kept.answer))
        self._rest()
        await self._board.ready(request.provider)
        return await answer_to(question, self, listen or self._hear)

    # --- the book of its calls -----------------------------------------------------------------------

    @property
    def models(self) -> ChatModel:
        """Who is asked."""
        return self._board.models

    def hidden(self) -> Sequence[str]:
        """What is never to be written down."""
        return self._board.world.hidden()

    def monotonic(self) -> float:
        """Seconds that only ever grow."""
        return self._board.world.monotonic()

    def turn(self, provider: str) -> AbstractAsyncContextManager[None]:
        """As long as it lasts, a call of the provider may be under way."""
        return self._board.gate(provider)

    async def begin(self, question: Question) -> Opened:
        """Store what the call may use, once every limit has room for it.

        While others are under way it waits for what they leave. The last one goes alone: an answer that the
        plan does not bound is then bounded by what is left. AttemptError if that is not worth it.
        """
        board = self._board
        self._number += 1
        number = self._number
        while True:
            async with board.purse.alone() if board.purse is not None else nullcontext():
                found = self._found(question.request, len(question.body))
                if not isinstance(found, AttemptError):
                    sent, bound = found
                    board.sent.begin()
                    await board.record(begun(question, self, number, bound), question.body)
                    return Opened(number, sent, bound)
            if not self._others_run:
                raise found
            await board.next_settled()

    def leaves(self, number: int) -> None:
        """Note that the first byte of a call is about to leave."""
        self._board.sent.sending(Call(self.step, self.attempt, number))

    async def answered(self, question: Question, fact: CallAnswered, content: bytes) -> None:
        """Store the answer."""
        self._board.saw(question.request.model, len(question.body), fact.input)
        await self._board.record(fact, content)
        self._board.settled()
        self._note()

    async def failed(self, fact: CallFailed, message: bytes) -> None:
        """Store that there was no answer, and why."""
        await self._board.record(fact, message)
        self._board.settled()

    def waits(self, question: Question, error: CallError, seconds: float) -> None:
        """Say that the same is asked again; a provider that wants to be left alone is, by all."""
        self._note(f"[{error.message}; asks again in {seconds:.0f} s]\n")
        if error.after is not None or error.reason == RATE_LIMITED:
            self._board.gate(question.request.provider).hold(seconds)

    @property
    def _others_run(self) -> bool:
        """Whether calls of this run are under way, which may leave some of what they reserved."""
        return bool(self._board.state.reserved or self._board.state.reserved_tokens)

    def _found(self, request: Request, size: int) -> tuple[Request, Bound] | AttemptError:
        """The request to send and what it may use, or the limit that leaves no room for it now."""
        board, state, step = self._board, self._board.state, self._step
        spent = state.steps[step.id].spent or Spent()
        allowed = Allowance(
            step=step,
            spent=Taken(spent.cost, spent.tokens),
            taken=Taken(
                state.spent.cost + state.reserved, state.spent.tokens + state.reserved_tokens
            ),
            most=cost_limit(state),
            tokens=state.plan.limits.tokens,
            room=board.purse.room(state.run) if board.purse is not None else None,
            whose=RUN,
        )
        seen, alone = board.seen(request.model), not self._others_run
        return bounded(request, size, seen, allowed, board.models.cost, alone=alone)

    def _hear(self, text: str) -> None:
        """Some words of an answer, for whoever looks on; nobody takes them for the answer."""
        if self._listen is not None and text:
            self._is_open = not text.endswith("\n")
            self._listen("answer", text.encode("utf-8", "replace"))

    def _note(self, line: str = "") -> None:
        """A line of our own between the words of answers, which it ends."""
        words = f"\n{line}" if self._is_open else line
        self._is_open = False
        if self._listen is not None and words:
            self._listen("note", words.encode("utf-8", "replace"))
