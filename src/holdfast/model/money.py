"""Money in words: whole micro-dollars inside, dollars outside."""

from __future__ import annotations

from holdfast.model.call import MICRO

_CENT = MICRO // 100


def dollars(micro: int) -> str:
    """An amount: in cents from a cent on, below that as far as it says something."""
    if not micro:
        return "$0"
    if micro >= _CENT:
        return f"${micro / MICRO:.2f}"
    return f"${micro / MICRO:.4f}" if micro >= _CENT // 100 else f"${micro / MICRO:.6f}"


def dollars_left(micro: int) -> str:
    """What can still be spent: never said to be more than it is."""
    return dollars(micro - micro % _unit(micro))


def dollars_needed(micro: int) -> str:
    """What something may cost: never said to be less than it is."""
    return dollars(-(-micro // _unit(micro)) * _unit(micro))


def _unit(micro: int) -> int:
    """The smallest part of an amount that is shown."""
    if micro >= _CENT:
        return _CENT
    return _CENT // 100 if micro >= _CENT // 100 else 1
