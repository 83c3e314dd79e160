"""Bytes that are nearly right: seeded changes of a corpus, the same ones every time."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path

CORPUS = Path(__file__).parent / "corpus"
_ODD = (
    *(b"\x00", b"\xff", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\x1b]0;x\x07", b"\xe2\x80\xae"),
    *(b"..", b"/", b"~", b"-", b"{", b"[" * 70, b"&a", b"*a", b"!!x", b"<<", b": ", b"\r\n", b"\t"),
    *(b"NaN", b"-0", b"1e999", b"9" * 5000, b'"\\ud800"', b"null", b"true", b"@@ -1 +1 @@\n"),
)
_LONGEST = 200_000


def corpus(name: str) -> list[bytes]:
    """The kept inputs of a target, in the order of their names."""
    return [file.read_bytes() for file in sorted((CORPUS / name).iterdir())]


def inputs(name: str, count: int, seed: int = 0) -> Iterator[bytes]:
    """The corpus as it is, then so many changes of it."""
    kept = corpus(name)
    yield from kept
    for number in range(count):
        yield changed(kept, random.Random(f"{name} {seed} {number}"))


def changed(kept: Sequence[bytes], dice: random.Random) -> bytes:
    """One of them with some changes; now and then spliced with another."""
    data = bytearray(dice.choice(kept))
    for _ in range(dice.choice((1, 1, 2, 4, 12))):
        at, end = sorted(dice.randrange(len(data) + 1) for _ in range(2))
        match dice.randrange(7):
            case 0:
                del data[at : min(end, at + 40)]
            case 1:
                data[at:at] = dice.choice(_ODD)
            case 2:
                data[at:at] = data[at : min(end, at + 200)] * dice.choice((1, 2, 30))
            case 3 if data:
                data[at % len(data)] ^= 1 << dice.randrange(8)
            case 4:
                other = dice.choice(kept)
                cut = dice.randrange(len(other) + 1)
                data[at:] = other[cut : cut + 4000]
            case 5:
                data[at : min(end, at + 8)] = dice.randbytes(dice.randrange(9))
            case _:
                line = data.find(b"\n", at)
                data[at : line if line >= 0 else at] = dice.choice(_ODD)
    return bytes(data[:_LONGEST])
