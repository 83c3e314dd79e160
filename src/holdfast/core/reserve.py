"""How much a call may use, before it is sent: the part of its price that can be known.

Input is known by its size, output only if the plan bounds it. Until this run has seen how a model counts,
two bytes are taken for a token and 1,024 tokens for an answer; from then on the most that was seen.
"""

from __future__ import annotations

from typing import Final, NamedTuple

BYTES_PER_TOKEN: Final = 2
USUAL_OUTPUT: Final = 1024
LEAST_OUTPUT: Final = 16  # a call that may say less than this is not worth its input


class Seen(NamedTuple):
    """What the calls of one model used so far: input tokens for 1,000 bytes, and output, at most."""

    ratio: int = 0
    output: int = 0

    def and_also(self, size: int, input_tokens: int, output_tokens: int) -> Seen:
        """With one more call."""
        ratio = -(-input_tokens * 1000 // max(1, size))
        return Seen(max(self.ratio, ratio), max(self.output, output_tokens))


def input_bound(size: int, seen: Seen) -> int:
    """The tokens of a request of so many bytes."""
    if seen.ratio:
        return -(-size * seen.ratio // 1000)
    return -(-size // BYTES_PER_TOKEN)


def output_bound(asked: int | None, seen: Seen) -> int:
    """The tokens of an answer: as the plan bounds it, else the most so far."""
    return asked if asked is not None else seen.output or USUAL_OUTPUT
