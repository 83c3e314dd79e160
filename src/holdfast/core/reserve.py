"""How much a call may use, before it is sent: the part of its price that can be known.

Input is known by its size, output only if it is bounded: by the plan, or, where a limit must be kept, by us.
What is reserved for an answer is then also how long it may be. Until this run has seen how a model counts,
two bytes are taken for a token.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from holdfast.model.call import Usage

BYTES_PER_TOKEN: Final = 2
USUAL_OUTPUT: Final = 1024
MOST_OUTPUT: Final = 8192  # of an answer that the plan does not bound, where a limit must be kept
LEAST_OUTPUT: Final = 16  # a call that may say less than this is not worth its input


class Seen(NamedTuple):
    """What the calls of one model used so far: input tokens for 1,000 bytes, at most."""

    ratio: int = 0

    def and_also(self, size: int, input_tokens: int) -> Seen:
        """With one more call."""
        return Seen(max(self.ratio, -(-input_tokens * 1000 // max(1, size))))


def input_bound(size: int, seen: Seen) -> int:
    """The tokens of a request of so many bytes."""
    if seen.ratio:
        return -(-size * seen.ratio // 1000)
    return -(-size // BYTES_PER_TOKEN)


def output_bound(asked: int | None, enough: int | None, *, limited: bool) -> int:
    """The tokens of an answer: as the plan bounds it, else as a limit needs it; without one, the usual.

    `enough` is what whoever asks finds long enough.
    """
    if asked is not None:
        return asked
    return (enough or MOST_OUTPUT) if limited else USUAL_OUTPUT


def counted(usage: Usage, size: int, said: int) -> Usage:
    """What a call used, as far as that can be: none of it negative, and no more cached than read.

    Where nothing is counted, a token is taken for two bytes of what was read, or of what was said.
    """
    read = max(0, usage.input) or -(-size // BYTES_PER_TOKEN)
    wrote = max(0, usage.output) or -(-said // BYTES_PER_TOKEN)
    cached = min(read, max(0, usage.cached))
    return Usage(read, wrote, cached, min(read - cached, max(0, usage.stored)))
