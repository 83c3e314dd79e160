"""Artifacts of a store, chosen by predicates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from holdfast import wire
from holdfast.errors import UsageError
from holdfast.model.artifact import Artifact, Status


@dataclass(frozen=True, slots=True)
class Where:
    """A predicate over artifacts; combine with `&`, `|` and `~`."""

    test: Callable[[Artifact], bool]

    def __and__(self, other: Where) -> Where:
        """Both."""
        return Where(lambda row: self.test(row) and other.test(row))

    def __or__(self, other: Where) -> Where:
        """Either."""
        return Where(lambda row: self.test(row) or other.test(row))

    def __invert__(self) -> Where:
        """Not."""
        return Where(lambda row: not self.test(row))


def where(
    *,
    status: Status | None = None,
    step: str | None = None,
    line: str | None = None,
    source: str | None = None,
) -> Where:
    """Artifacts of this status, step, line and source; what is not said does not matter."""
    wanted = {"status": status, "step": step, "line": line, "source": source}
    asked = {name: value for name, value in wanted.items() if value is not None}
    return Where(lambda row: all(getattr(row, name) == value for name, value in asked.items()))


def artifacts(
    location: str,
    matching: Where | None = None,
    *,
    order_by: str = "number",
    limit: int | None = None,
    offset: int = 0,
) -> list[Artifact]:
    """Artifacts of a store that match; `order_by` a field, with a leading `-` from the largest."""
    store = wire.open_store(location, readonly=True)
    try:
        rows = [row for row in store.artifacts() if matching is None or matching.test(row)]
    finally:
        store.close()
    name = order_by.removeprefix("-")
    if name not in Artifact.__dataclass_fields__:
        raise UsageError(f"artifacts have no field '{name}'")
    rows.sort(key=lambda row: getattr(row, name), reverse=order_by.startswith("-"))
    return rows[offset : None if limit is None else offset + limit]
