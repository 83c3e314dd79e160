"""How two plans, two texts or two JSON values differ. Equal parts are left out."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, cast

from holdfast.model.digest import Json, same
from holdfast.model.plan import Plan, StepId, plan_json

LONGEST_TEXT = 20_000  # lines; comparing longer ones line by line takes too long
LONGEST_LIST = 2_000  # items; longer lists are compared place by place
DEEPEST = 64  # levels of JSON that are compared one by one

How = Literal["added", "removed", "changed"]


class ValueChange(NamedTuple):
    """One place in a JSON value: `a.b[2]`, and what was there before and after."""

    path: str
    how: How
    before: Json
    after: Json


class StepChange(NamedTuple):
    """A step that is in both plans and not the same: its keys, each with both values."""

    step: StepId
    keys: tuple[ValueChange, ...]


class PlanChange(NamedTuple):
    """What makes one plan into the other."""

    added: tuple[StepId, ...]
    removed: tuple[StepId, ...]
    changed: tuple[StepChange, ...]
    top: tuple[ValueChange, ...]

    @property
    def is_empty(self) -> bool:
        """Whether both are the same plan."""
        return not (self.added or self.removed or self.changed or self.top)


def plan_change(before: Plan, after: Plan) -> PlanChange:
    """Compare two plans, key by key, as they are kept."""
    old, new = plan_json(before), plan_json(after)
    steps = cast("Mapping[StepId, Mapping[str, Json]]", old.pop("steps"))
    others = cast("Mapping[StepId, Mapping[str, Json]]", new.pop("steps"))
    changed = [
        StepChange(step_id, tuple(_keys(steps[step_id], others[step_id])))
        for step_id in steps
        if step_id in others and not same(steps[step_id], others[step_id])
    ]
    return PlanChange(
        added=tuple(step_id for step_id in others if step_id not in steps),
        removed=tuple(step_id for step_id in steps if step_id not in others),
        changed=tuple(changed),
        top=tuple(_keys(old, new)),
    )


def _keys(before: Mapping[str, Json], after: Mapping[str, Json]) -> Iterator[ValueChange]:
    for key in sorted({*before, *after}):
        if key not in after:
            yield ValueChange(key, "removed", before[key], None)
        elif key not in before:
            yield ValueChange(key, "added", None, after[key])
        elif not same(before[key], after[key]):
            yield ValueChange(key, "changed", before[key], after[key])


def text_change(before: str, after: str, names: tuple[str, str]) -> list[str] | None:
    """The lines of a unified diff without line ends; None if the texts are too long for it."""
    old, new = before.splitlines(), after.splitlines()
    if len(old) + len(new) > LONGEST_TEXT:
        return None
    lines = list(difflib.unified_diff(old, new, *names, lineterm=""))
    if not lines and before != after:
        return [f"--- {names[0]}", f"+++ {names[1]}", "(only line ends differ)"]
    return lines


def line_counts(lines: Sequence[str]) -> tuple[int, int]:
    """How many lines a diff adds and removes."""
    body = lines[2:]
    added = sum(line.startswith("+") for line in body)
    return added, sum(line.startswith("-") for line in body)


def value_changes(before: Json, after: Json, path: str = "") -> Iterator[ValueChange]:
    """Where two JSON values differ, as deep as they have the same shape."""
    if same(before, after):
        return
    deep = path.count(".") + path.count("[") >= DEEPEST
    if isinstance(before, Mapping) and isinstance(after, Mapping) and not deep:
        for change in _keys(before, after):
            place = f"{path}.{change.path}" if path else change.path
            if change.how == "changed":
                yield from value_changes(change.before, change.after, place)
            else:
                yield change._replace(path=place)
    elif isinstance(before, list) and isinstance(after, list) and not deep:
        yield from _list_changes(before, after, path)
    else:
        yield ValueChange(path or "(all)", "changed", before, after)


def _list_changes(before: list[Json], after: list[Json], path: str) -> Iterator[ValueChange]:
    """Items that came, went or changed; an item that only moved down is not a change."""
    if max(len(before), len(after)) > LONGEST_LIST:
        spans: Sequence[tuple[str, int, int, int, int]] = [
            ("replace", 0, len(before), 0, len(after))
        ]
    else:
        old, new = [_text(item) for item in before], [_text(item) for item in after]
        spans = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    for tag, start, end, from_, to in spans:
        if tag == "equal":
            continue
        both = min(end - start, to - from_)
        for offset in range(both):
            place = f"{path}[{from_ + offset}]"
            yield from value_changes(before[start + offset], after[from_ + offset], place)
        for index in range(start + both, end):
            yield ValueChange(f"{path}[{index}]", "removed", before[index], None)
        for index in range(from_ + both, to):
            yield ValueChange(f"{path}[{index}]", "added", None, after[index])


def _text(value: Json) -> str:
    return json.dumps(value, sort_keys=True)
