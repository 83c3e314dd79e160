"""Contents that are remembered: bounded, and a step that needs very many does not empty it."""

from __future__ import annotations

from holdfast.engine.recent import LARGEST, MOST_BYTES, Recent
from holdfast.model.digest import Digest, digest_bytes

CONTENT = bytes(LARGEST)
MANY = 2 * MOST_BYTES // LARGEST


def content(number: int) -> tuple[Digest, bytes]:
    data = number.to_bytes(4, "big") + CONTENT[4:]
    return digest_bytes(data), data


def remembered(recent: Recent) -> list[int]:
    return [number for number in range(MANY) if recent.get(content(number)[0]) is not None]


def filled() -> Recent:
    recent = Recent()
    for number in range(MANY):
        recent.made(*content(number))
        recent.get(content(0)[0])
    return recent


def test_it_is_bounded_and_what_was_used_last_stays() -> None:
    kept = remembered(filled())
    assert 0 < len(kept) * LARGEST <= MOST_BYTES
    assert kept == [0, *range(MANY - len(kept) + 1, MANY)]


def test_what_is_only_read_drives_nothing_out() -> None:
    recent = filled()
    kept = remembered(recent)
    for number in range(1, MANY):
        recent.read(*content(number))
    assert remembered(recent) == kept


def test_what_is_read_is_remembered_while_there_is_room() -> None:
    recent = Recent()
    recent.read(*content(1))
    assert recent.get(content(1)[0]) == content(1)[1]


def test_large_contents_are_left_to_the_store() -> None:
    recent, large = Recent(), bytes(LARGEST + 1)
    recent.made(digest_bytes(large), large)
    assert recent.get(digest_bytes(large)) is None
