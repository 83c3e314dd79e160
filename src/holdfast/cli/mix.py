"""Which models a run would ask, in words."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.core.mix import Mix
from holdfast.model.text import cells, cut, one_line


def models_words(models: Mapping[str, Mix], room: int = 0) -> str:
    """How many steps ask which model, by which tiers; as many as have room, which 0 does not bound."""
    parts = [_words(model, mix) for model, mix in models.items()]
    kept = parts[:1]
    if room and parts:
        kept = [cut(parts[0], room - cells(_listed([], len(parts) - 1)))]
    for left, part in zip(range(len(parts) - 2, -1, -1), parts[1:], strict=True):
        if room and cells(_listed([*kept, part], left)) > room:
            break
        kept.append(part)
    return _listed(kept, len(parts) - len(kept))


def _words(model: str, mix: Mix) -> str:
    tiers = f" ({', '.join(mix.tiers)})" if mix.tiers else ""
    return f"{mix.steps} × {one_line(model)}{tiers}"


def _listed(parts: list[str], left: int) -> str:
    return ", ".join(parts) + (f" and {left} more" if left else "")
