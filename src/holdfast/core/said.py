"""What people say about a ledger, as the fold takes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from holdfast.model.fixed import fixed
from holdfast.model.handoff import entry_id
from holdfast.model.line import LedgerWord
from holdfast.model.plan import StepId

PERSON = StepId("")  # where an entry comes from that a person added
_TAKES: Mapping[LedgerWord, LedgerWord] = {  # what takes a word back
    "evidence": "withdraw",
    "uncertainty": "withdraw",
    "gap": "withdraw",
    "resolve": "uphold",
    "contest": "uphold",
    "apart": "rejoin",
}
_BACK = frozenset(_TAKES.values())


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


def own_entry(one: Said) -> str:
    """The id of an entry that a person added; empty if the word is about one that was there."""
    match one.word:
        case "evidence":
            return entry_id("e", PERSON, one.text, one.by)
        case "uncertainty":
            return entry_id("u", PERSON, one.text)
        case "gap":
            return entry_id("g", PERSON, one.text)
        case _:
            return ""


def upheld(said: Sequence[Said]) -> list[Said]:
    """What people said and did not take back since."""
    back = {(one.word, _about(one)): number for number, one in enumerate(said) if one.word in _BACK}
    if not back:
        return [*said]
    return [
        one
        for number, one in enumerate(said)
        if one.word not in _BACK and number > back.get((_TAKES[one.word], _about(one)), -1)
    ]


def _about(one: Said) -> frozenset[str]:
    pair = (one.entry, one.text) if one.word in {"apart", "rejoin"} else (one.entry,)
    return frozenset({own_entry(one) or pair[0], *pair[1:]})


def apart(ids: Sequence[str], said: Sequence[Said]) -> set[frozenset[int]]:
    """The places that somebody keeps apart: `text` of their word is the id of the other one."""
    words = [one for one in said if one.word == "apart"]
    place = {name: n for n, name in enumerate(ids)} if words else {}
    return {
        frozenset({place[one.entry], place[one.text]})
        for one in words
        if one.entry in place and one.text in place
    }
