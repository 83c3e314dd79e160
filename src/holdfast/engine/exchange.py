"""One question to a model until it is answered: reserved and stored, sent, stored, and only then acted on.

Whoever asks keeps a book: an attempt in the journal of its run, guards that a person lets look in that of the
line. What comes of a call is the same for both. An answer is stored without secrets, with a name only if that
is one, with tokens that can be true, and only if it has an encoding at all; else it is malformed. Whoever
could not answer is asked again, later each time, and each try is written down.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import NamedTuple, Protocol

from holdfast.core.backoff import wait_before
from holdfast.core.reserve import counted
from holdfast.engine.allowance import Bound
from holdfast.errors import AttemptError, CallError
from holdfast.model.call import Answer, Request, Usage, answer_bytes, request_bytes, said_bytes
from holdfast.model.digest import Digest, EncodingError, digest_bytes
from holdfast.model.event import CallAnswered, CallFailed, CallStarted
from holdfast.model.hiding import answered_without, asked_without
from holdfast.model.plan import StepId
from holdfast.model.secret import struck_text
from holdfast.ports import ChatModel

MOST_WORDS = 400  # of what a provider says is wrong
_LONGEST = 200  # letters of the name that a provider gives an answer

Listen = Callable[[str], None]


class Question(NamedTuple):
    """What is asked, without secrets, and how that is stored."""

    request: Request
    body: bytes
    digest: Digest


class Opened(NamedTuple):
    """A call that is stored and not sent yet: its number, what to send, and the most that it may use."""

    number: int
    sent: Request
    bound: Bound


class Book(Protocol):
    """Where the calls of a step are written down, and what holds for them."""

    step: StepId
    attempt: int

    @property
    def models(self) -> ChatModel:
        """Who is asked."""

    def hidden(self) -> Sequence[str]:
        """What is never to be written down."""

    def monotonic(self) -> float:
        """Seconds that only ever grow."""

    def turn(self, provider: str) -> AbstractAsyncContextManager[None]:
        """As long as it lasts, a call of the provider may be under way."""

    async def begin(self, question: Question) -> Opened:
        """Reserve what a call may use, and store that it begins; AttemptError if no limit has room for it."""

    def leaves(self, number: int) -> None:
        """The first byte of a call is about to leave."""

    async def answered(self, question: Question, fact: CallAnswered, content: bytes) -> None:
        """Store the answer."""

    async def failed(self, fact: CallFailed, message: bytes) -> None:
        """Store that there was no answer, and why."""

    def waits(self, question: Question, error: CallError, seconds: float) -> None:
        """The same is asked again after so long."""


def question_of(request: Request, secrets: Sequence[str]) -> Question:
    """A question as it may be sent and stored."""
    safe = asked_without(request, secrets)
    body = request_bytes(safe)
    return Question(safe, body, digest_bytes(body))


def begun(question: Question, book: Book, number: int, bound: Bound) -> CallStarted:
    """The fact that a call begins."""
    return CallStarted(
        book.step,
        book.attempt,
        number,
        question.request.model,
        question.digest,
        bound.cost,
        bound.tokens,
    )


async def answer_to(question: Question, book: Book, listen: Listen) -> Answer:
    """The answer of the model; AttemptError if there is none, however often it is asked."""
    tries = 0
    while True:
        call: Opened | None = None
        try:
            async with book.turn(question.request.provider):
                call = await book.begin(question)
                began = book.monotonic()
                answer, content = await _whole(question, call, book, listen)
                took = book.monotonic() - began
            fact = _answered(question, call, book, answer, content, took)
            await book.answered(question, fact, content)
        except CallError as raised:
            error, tries = _without(raised, book.hidden()), tries + 1
            wait = None
            if error.again:
                wait = wait_before(tries, error.after, _spread(book, tries))
            if call is not None:  # else nothing was sent
                message = error.message.encode("utf-8", "replace")
                fault = _failed(question, call, book, error, message, wait)
                await book.failed(fault, message)
            if wait is None:
                raise _given_up(error, tries) from raised
            book.waits(question, error, wait)
            await asyncio.sleep(wait)
        else:
            return answer


async def _whole(
    question: Question, call: Opened, book: Book, listen: Listen
) -> tuple[Answer, bytes]:
    """An answer as it may be stored, and its encoding; CallError if what came is none."""
    try:
        said = await book.models.ask(call.sent, listen, lambda: book.leaves(call.number))
        safe = answered_without(said, book.hidden())
        usage = counted(safe.usage, len(question.body), said_bytes(safe))
        answer = replace(safe, usage=usage)
        return answer, answer_bytes(answer)
    except (EncodingError, RecursionError) as error:
        raise CallError(
            f"what '{question.request.model}' answered cannot be read",
            reason="malformed",
            again=True,
            read=0,
        ) from error


def _answered(
    question: Question, call: Opened, book: Book, answer: Answer, content: bytes, took: float
) -> CallAnswered:
    usage = answer.usage
    return CallAnswered(
        book.step,
        book.attempt,
        call.number,
        digest_bytes(content),
        usage.input,
        usage.output,
        usage.cached,
        book.models.cost(question.request.model, usage),
        round(took * 1000),
        answer.finish,
        answer.id[:_LONGEST],
    )


def _failed(
    question: Question,
    call: Opened,
    book: Book,
    error: CallError,
    message: bytes,
    wait: float | None,
) -> CallFailed:
    charged = _charged(question, call, book, error.read)
    return CallFailed(
        book.step,
        book.attempt,
        call.number,
        error.reason,
        charged.cost,
        charged.tokens,
        digest_bytes(message),
        None if wait is None else round(wait * 1000),
    )


def _charged(question: Question, call: Opened, book: Book, read: int | None) -> Bound:
    """The most that a call without an answer may have cost, after so many bytes; None if none was sent."""
    if read is None:
        return Bound(tokens=0, cost=0)
    seen = counted(Usage(), len(question.body), read)
    if seen.input + seen.output <= call.bound.tokens:
        return call.bound
    return Bound(seen.input + seen.output, book.models.cost(question.request.model, seen))


def _spread(book: Book, tries: int) -> int:
    """A number that is always the same for a try and hardly ever for two."""
    return int(digest_bytes(f"{book.step}/{book.attempt}/{tries}".encode())[:8], 16)


def _without(error: CallError, secrets: Sequence[str]) -> CallError:
    """An error in which a provider repeats no secret."""
    words = struck_text(error.message, secrets)
    error.message = words if len(words) <= MOST_WORDS else f"{words[: MOST_WORDS - 1]}…"
    error.hint = error.hint and struck_text(error.hint, secrets)
    return error


def _given_up(error: CallError, tries: int) -> AttemptError:
    """Why nobody is asked any more now: the last answer, how often it was tried, and what to do."""
    if not error.again:
        return AttemptError(str(error), reason=error.reason)
    often = "once" if tries == 1 else f"{tries} times"
    late = f"; it wants to be left alone for {error.after:.0f} s" if error.after else ""
    hint = f"\nhint: {error.hint}" if error.hint else ""
    told = f"asked {often} in vain, the last time: {error.message}{late}"
    words = f"{told}; 'holdfast resume' asks again, and nothing that was answered{hint}"
    return AttemptError(words, reason="call_failed")
