"""Tools that models use: what was answered is stored, and taken from the store after an attempt was lost."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from holdfast.core.state import State
from holdfast.engine.world import World
from holdfast.errors import AttemptError
from holdfast.model.call import request_bytes
from holdfast.model.digest import Digest, digest_bytes
from holdfast.model.event import AttemptStarted, RunEvent, ToolStarted, ToolUsed
from holdfast.model.secret import struck
from holdfast.ports import Repeat, Said, Wanted

MOST_ANSWER = 64 * 1024  # bytes of what a tool says


class Board(Protocol):
    """Where facts are stored."""

    world: World
    state: State

    async def record(self, event: RunEvent, *contents: bytes) -> None:
        """Store a fact with what it names; returns when it is on disk."""

    def content(self, digest: Digest) -> bytes:
        """A content that was stored."""


class Uses:
    """The uses of tools by one attempt."""

    def __init__(self, board: Board, started: AttemptStarted) -> None:
        self._board = board
        self._started = started

    async def use(self, wanted: Wanted, run: Callable[[], Awaitable[Said]], repeat: Repeat) -> Said:
        """What the tool answers, from the store or by running it."""
        board, step, attempt = self._board, self._started.step, self._started.attempt
        key = digest_bytes(request_bytes(wanted.after) + f"#{wanted.place}".encode())
        before = board.state.steps[step].tools
        if before is not None and repeat != "always":
            known = before.said.get(key)
            if known is not None:
                return Said(board.content(known.answer).decode(), known.ok)
            if repeat == "never" and key in before.left:
                raise AttemptError(
                    f"'{wanted.tool}' was begun by an attempt that was interrupted, with"
                    f" {wanted.use.arguments[:500]}, and nobody knows whether it did its work",
                    reason="tool_unconfirmed",
                )
        arguments = wanted.use.arguments.encode()
        given = digest_bytes(arguments)
        if repeat in {"never", "undone"}:
            await board.record(ToolStarted(step, attempt, key, wanted.tool, given), arguments)
        began = board.world.monotonic()
        said = await run()
        took = round((board.world.monotonic() - began) * 1000)
        whole = struck(said.text.encode("utf-8", "replace"), board.world.hidden())
        answer = capped(whole)  # only now: what is left of a secret at an edge is none
        await board.record(
            ToolUsed(step, attempt, key, wanted.tool, given, digest_bytes(answer), said.ok, took),
            arguments,
            answer,
        )
        return Said(answer.decode("utf-8", "replace"), said.ok)


def capped(content: bytes) -> bytes:
    """The beginning of a long answer, and how much there was."""
    if len(content) <= MOST_ANSWER:
        return content
    kept = content[:MOST_ANSWER].decode("utf-8", "ignore")
    return f"{kept}\n[cut: the first {MOST_ANSWER} of {len(content)} bytes]".encode()
