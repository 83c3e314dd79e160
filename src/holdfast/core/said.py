"""What people say about a ledger, as the fold takes it."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.model.fixed import fixed
from holdfast.model.line import LedgerWord
from holdfast.model.plan import StepId

PERSON = StepId("")  # where an entry comes from that a person added


@fixed
class Said:
    """A person's word about the ledger: `entry` is the id it is about, or empty for an entry of their own.

    `text` is that entry, why something is contested or resolved, or the id of what is kept apart from it.
    `place` is where the journal has it, among the handoffs.
    """

    word: LedgerWord
    entry: str
    text: str
    by: str = ""
    at: int = 0
    because: str = ""
    place: int = 0


def upheld(said: Sequence[Said]) -> list[Said]:
    """What people said and did not take back."""
    back = {one.entry: number for number, one in enumerate(said) if one.word == "uphold"}
    return [
        one
        for number, one in enumerate(said)
        if one.word != "uphold" and (one.word != "contest" or number > back.get(one.entry, -1))
    ]


def apart(ids: Sequence[str], said: Sequence[Said]) -> set[frozenset[int]]:
    """The places that somebody keeps apart: `text` of their word is the id of the other one."""
    words = [one for one in said if one.word == "apart"]
    place = {name: n for n, name in enumerate(ids)} if words else {}
    return {
        frozenset({place[one.entry], place[one.text]})
        for one in words
        if one.entry in place and one.text in place
    }
