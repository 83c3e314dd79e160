"""Calls of models on behalf of attempts: reserved, stored, sent, stored, and only then acted on.

What was answered and not acted on is taken from the store. Who runs out of money, tokens or patience ends
the attempt; the journal says how far it came.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import re
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from holdfast.core.backoff import wait_before
from holdfast.core.moves import LIMIT
from holdfast.core.outlay import Short
from holdfast.core.reserve import LEAST_OUTPUT, Seen, counted, input_bound, output_bound
from holdfast.core.state import Spent, State
from holdfast.engine.contents import Contents
from holdfast.engine.rates import Gate
from holdfast.engine.scribe import Scribe
from holdfast.engine.sent import Call, Notes
from holdfast.engine.uses import Uses
from holdfast.engine.world import World
from holdfast.errors import AttemptError, CallError, IntegrityError
from holdfast.model.call import (
    MICRO,
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
from holdfast.model.money import dollars
from holdfast.model.plan import Step
from holdfast.model.secret import struck_text
from holdfast.ports import ChatModel, Repeat, Said, Wanted

if TYPE_CHECKING:  # it is made by whoever has budgets
    from holdfast.engine.purse import Purse, Room

RATE_LIMITED = "rate_limited"


class Bound(NamedTuple):
    """The most that a call may use: tokens, and micro-dollars unless its price is not known."""

    tokens: int
    cost: int | None


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
    ) -> Line:
        """The line of one attempt; `rest` is called whenever it begins to wait for a model."""
        return Line(self, started, listen, rest)

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


class Line:
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
        """What the call may use and the request to send, or the limit that leaves no room for it now."""
        board = self._board
        seen = board.seen(request.model)
        asked = request.parameters.get("max_tokens")
        asked = asked if isinstance(asked, int) else None
        read = input_bound(size, seen)
        room = board.purse.room(board.state.run) if board.purse is not None else None
        limited = room is not None or self._is_limited
        most = output_bound(asked, request.most, limited=limited)
        bound = self._bound(request, read, most)
        lack = self._lack(request, bound, room)
        capped = (
            asked is None and limited
        )  # else nothing holds the answer to what is reserved for it
        if lack is None:
            return replace(request, most=most if capped else None), bound
        if capped and not self._others_run:
            fewer = self._affordable(request, read, most, room)
            if fewer >= LEAST_OUTPUT:
                return replace(request, most=fewer), self._bound(request, read, fewer)
        return lack

    @property
    def _is_limited(self) -> bool:
        """Whether the plan or a person bounds what the step or the run may use."""
        state, own = self._board.state, self._step.budget
        bounds = (own.get("usd"), own.get("tokens"), _run_limit(state), state.plan.limits.tokens)
        return any(bound is not None for bound in bounds)

    def _bound(self, request: Request, read: int, said: int) -> Bound:
        cost = self._board.models.cost(request.model, Usage(input=read, output=said))
        return Bound(read + said, cost)

    def _affordable(self, request: Request, read: int, said: int, room: Room | None) -> int:
        """How long an answer may be so that every limit is kept; by halving, as a price may have steps."""
        low, high = 0, said
        while low < high:
            middle = (low + high + 1) // 2
            if self._lack(request, self._bound(request, read, middle), room) is None:
                low = middle
            else:
                high = middle - 1
        return low

    def _lack(self, request: Request, bound: Bound, room: Room | None) -> AttemptError | None:
        """The limit that leaves no room for the call, if one does not."""
        state, step = self._board.state, self._step
        own, most = step.budget.get("usd"), _run_limit(state)
        if bound.cost is None and any(limit is not None for limit in (own, most, room)):
            return no_price(request.model)
        cost, spent = bound.cost or 0, state.steps[step.id].spent or Spent()
        taken = state.spent.cost + state.reserved
        price = f"another call may cost {dollars(cost)}"
        if own is not None and spent.cost + cost > float(str(own)) * MICRO:
            return AttemptError(f"its budget is ${own}, and {price}", reason="budget_spent")
        if most is not None and taken + cost > most:
            return _short("cost", f"of {dollars(most)} the run has", most - taken, price)
        if room is not None and taken + cost > room.left:
            name = room.budget.partition(" ")[0]
            told = f"of your {dollars(room.most)} for the {name} the run has"
            mend = f"{price}; raise [budgets] {name} in your own configuration, then resume"
            return _short(room.budget, told, room.left - taken, mend)
        return self._lack_of_tokens(bound.tokens, spent.tokens)

    def _lack_of_tokens(self, wanted: int, spent: int) -> AttemptError | None:
        state, own = self._board.state, self._step.budget.get("tokens")
        more, most = f"and another call may use {wanted}", state.plan.limits.tokens
        if own is not None and spent + wanted > int(str(own)):
            return AttemptError(f"its budget is {own} tokens, {more}", reason="budget_spent")
        used = state.spent.tokens + state.reserved_tokens
        if most is not None and used + wanted > most:
            message = f"of {most} tokens the run has {max(0, most - used)} left, {more}"
            return AttemptError(message, reason=LIMIT, limit="tokens")
        return None

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


def no_price(model: str) -> AttemptError:
    """A budget cannot be kept."""
    return AttemptError(
        f"the price of '{model}' is not known, so no budget can be kept;"
        " give it in [prices] of your configuration",
        reason="call_refused",
    )


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


def _short(limit: Short, told: str, left: int, more: str) -> AttemptError:
    """There is too little money left."""
    message = f"{told} {dollars(max(0, left))} left, and {more}"
    return AttemptError(message, reason=LIMIT, limit=limit)


def _run_limit(state: State) -> int | None:
    if state.max_cost is not None:
        return state.max_cost
    usd = state.plan.limits.usd
    return None if usd is None else math.floor(usd * MICRO)


def digest_spread(text: str) -> int:
    """A number that is always the same for a text and hardly ever for two."""
    return int(digest_bytes(text.encode())[:8], 16)


def without(error: CallError, secrets: Sequence[str]) -> CallError:
    """An error in which a provider repeats no secret."""
    error.message = struck_text(error.message, secrets)
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
