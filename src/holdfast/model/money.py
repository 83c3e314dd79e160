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
