"""Calls of models on behalf of attempts: reserved, stored, sent, stored, and only then acted on.

What was answered and not acted on is taken from the store. Who runs out of money, tokens or patience ends
the attempt; the journal says how far it came.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from holdfast.core.backoff import wait_before
from holdfast.core.reserve import Seen, counted
from holdfast.core.state import Spent, State
from holdfast.core.views import cost_limit
from holdfast.engine.allowance import RUN, Allowance, Bound, Taken, bounded
from holdfast.engine.contents import Contents
from holdfast.engine.rates import Gate
from holdfast.engine.scribe import Scribe
from holdfast.engine.sent import Call, Notes
from holdfast.engine.uses import Uses
from holdfast.engine.world import World
from holdfast.errors import AttemptError, CallError, IntegrityError
from holdfast.model.call import (
    Answer,
    Request,
    Usage,
    answer_bytes,
    answer_from,
    request_bytes,
)
from holdfast.model.digest import Digest, EncodingError, digest_bytes
from holdfast.model.event import (
    AttemptStarted,
    CallAnswered,
    CallFailed,
    CallStarted,
    RunEvent,
)
from holdfast.model.hiding import answered_without, asked_without
from holdfast.model.plan import Step
from holdfast.model.secret import struck_text
from holdfast.ports import ChatModel, Repeat, Said, Wanted

if TYPE_CHECKING:  # it is made by whoever has budgets
    from holdfast.engine.purse import Purse

RATE_LIMITED = "rate_limited"
MOST_WORDS = 400  # of what a provider says is wrong


_ID = re.compile(r"[A-Za-z0-9_.:\-]{1,128}\Z")


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
        self._settled = asyncio.Event()

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

    def saw(self, model: str, size: int, usage: Usage) -> None:
        """One more call was answered."""
        self._seen[model] = self.seen(model).and_also(size, usage.input)

    def settled(self) -> None:
        """A call ended: there may be room for another one."""
        done, self._settled = self._settled, asyncio.Event()
        done.set()

    async def next_settled(self) -> None:
        """Until the next call ended."""
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
        self._started = started
        self._listen = listen
        self._rest = rest
        self._step: Step = board.state.plan.steps[started.step]
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
        request = asked_without(request, self._board.world.hidden())
        body = request_bytes(request)
        digest = digest_bytes(body)
        for kept in [paid for paid in self._paid if paid.request == digest]:
            self._paid.remove(kept)
            with contextlib.suppress(IntegrityError):  # purged since, or damaged: it is asked again
                return answer_from(self._board.content(kept.answer))
        self._rest()
        await self._board.ready(request.provider)
        tries = 0
        while True:
            self._number += 1
            number = self._number
            try:
                return await self._once(number, request, digest, body, listen or self._hear)
            except CallError as raised:
                error = without(raised, self._board.world.hidden())
                tries += 1
                wait = wait_before(tries, error.after, self._spread(tries)) if error.again else None
                await self._failed(number, request, error, wait)
                if wait is None and error.again:
                    raise AttemptError(given_up(error, tries), reason="call_failed") from error
                if wait is None:
                    raise AttemptError(str(error), reason=error.reason) from raised
                self._note(f"[{error.message}; asks again in {wait:.0f} s]\n")
                if error.after is not None or error.reason == RATE_LIMITED:
                    self._board.gate(request.provider).hold(wait)
                await asyncio.sleep(wait)

    async def _once(
        self,
        number: int,
        request: Request,
        digest: Digest,
        body: bytes,
        listen: Callable[[str], None],
    ) -> Answer:
        board, step_id, attempt = self._board, self._started.step, self._started.attempt
        models = board.models
        async with board.gate(request.provider):
            sent = await self._reserve(number, request, digest, body)
            began = board.world.monotonic()
            leaves = partial(board.sent.sending, Call(step_id, attempt, number))
            answer = await _whole(models.ask(sent, listen, leaves), request)
            answer = answered_without(answer, board.world.hidden())
            took = board.world.monotonic() - began
        said_bytes = len(answer.text.encode("utf-8", "replace"))
        usage = counted(answer.usage, len(body), said_bytes)
        answer = replace(answer, usage=usage, id=known_id(answer))
        content = answer_bytes(answer)
        board.saw(request.model, len(body), usage)
        await board.record(
            CallAnswered(
                step_id,
                attempt,
                number,
                digest_bytes(content),
                usage.input,
                usage.output,
                usage.cached,
                models.cost(request.model, usage),
                round(took * 1000),
                answer.finish,
                answer.id,
            ),
            content,
        )
        board.settled()
        self._note()
        return answer

    async def _failed(
        self, number: int, request: Request, error: CallError, wait: float | None
    ) -> None:
        """Store that a call gave no answer, and what it may have cost."""
        calls = self._board.state.steps[self._started.step].calls or {}
        if number not in calls:  # nothing was sent
            return
        cost: int | None = 0
        tokens = 0
        if error.read is not None:  # some of it may have been charged; nobody knows how much
            cost, tokens = calls[number].reserved, calls[number].tokens
        message = error.message.encode("utf-8", "replace")
        await self._board.record(
            CallFailed(
                self._started.step,
                self._started.attempt,
                number,
                error.reason,
                cost,
                tokens,
                digest_bytes(message),
                None if wait is None else round(wait * 1000),
            ),
            message,
        )
        self._board.settled()

    async def _reserve(self, number: int, request: Request, digest: Digest, body: bytes) -> Request:
        """Store what the call may use, once every limit has room for it; the request to send.

        While others are under way it waits for what they leave. The last one goes alone: an answer that the
        plan does not bound is then bounded by what is left. AttemptError if that is not worth it.
        """
        board, started = self._board, self._started
        while True:
            async with board.purse.alone() if board.purse is not None else nullcontext():
                found = self._found(request, len(body))
                if not isinstance(found, AttemptError):
                    sent, bound = found
                    call = CallStarted(
                        started.step,
                        started.attempt,
                        number,
                        request.model,
                        digest,
                        bound.cost,
                        bound.tokens,
                    )
                    board.sent.begin()
                    await board.record(call, body)
                    return sent
            if not self._others_run:
                raise found
            await board.next_settled()

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

    def _spread(self, tries: int) -> int:
        return digest_spread(f"{self._started.step}/{self._started.attempt}/{tries}")


async def _whole(asking: Awaitable[Answer], request: Request) -> Answer:
    """An answer that can be stored; CallError if what came is none."""
    try:
        answer = await asking
        answer_bytes(answer)
    except (EncodingError, RecursionError) as error:
        raise CallError(
            f"what '{request.model}' answered cannot be read",
            reason="malformed",
            again=True,
            read=0,
        ) from error
    return answer


def known_id(answer: Answer) -> str:
    """What the provider calls an answer, if that is a name."""
    return answer.id if _ID.match(answer.id) else ""


def digest_spread(text: str) -> int:
    """A number that is always the same for a text and hardly ever for two."""
    return int(digest_bytes(text.encode())[:8], 16)


def without(error: CallError, secrets: Sequence[str]) -> CallError:
    """An error in which a provider repeats no secret."""
    words = struck_text(error.message, secrets)
    error.message = words if len(words) <= MOST_WORDS else f"{words[: MOST_WORDS - 1]}…"
    error.hint = error.hint and struck_text(error.hint, secrets)
    return error


def given_up(error: CallError, tries: int) -> str:
    """Why nobody is asked any more now: the last answer, how often it was tried, and what to do."""
    often = "once" if tries == 1 else f"{tries} times"
    late = f"; it wants to be left alone for {error.after:.0f} s" if error.after else ""
    hint = f"\nhint: {error.hint}" if error.hint else ""
    told = f"asked {often} in vain, the last time: {error.message}{late}"
    return f"{told}; 'holdfast resume' asks again, and nothing that was answered{hint}"


def waiting_words(step_id: str, error: CallError, wait: float) -> str:
    """What is said while a provider is left alone."""
    return f"{step_id}: {error.message}; asking again in {wait:.0f} s, nothing is lost"
