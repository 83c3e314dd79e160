"""Steps that run once for each item of a list: the keys of items, the ids of their steps, how both are made.

A step with `for_each` stands for one step for each item, with the id `base[key]`, and for the step `base`
itself, which gathers what they made. Keys are any text: in an id, whatever is not plain in a path stands as
`%` and two hexadecimal digits for each byte of its UTF-8, so an id names a file, and its key can be read
back.

What an item is made of is filled into the values and the prompt of its step. So the ref of a step holds
what it uses of its own item, and an item that changes changes one step.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple
from urllib.parse import unquote

from holdfast.errors import PlanError, Problem, UsageError
from holdfast.model.digest import Json, digest_json
from holdfast.model.expression import (
    CLOSE,
    OPEN,
    Part,
    Reference,
    Wrong,
    is_template,
    literals,
    parse,
    rendered,
    write,
)
from holdfast.model.fixed import varied
from holdfast.model.glob import literal
from holdfast.model.pattern import Pattern
from holdfast.model.plan import ANY_ID, GATHER, LONGEST_ID, Input, Need, Plan, Step, StepId
from holdfast.model.text import one_line
from holdfast.model.walls import WALLS, Walls, moved_by

MOST_CHARACTERS = 256 * 1024 * 1024  # that items may be filled in with, for one step

_ODD = Pattern(r"[^A-Za-z0-9_.\-@+=,~]|\A\.")
_QUOTED = Pattern(r"(?<=[A-Za-z0-9_.\-])\[([^\[\]\s'\"]*%[^\[\]\s'\"]*)\]")
_SHORT_DIGEST = 16
_SHOWN = 60


class Item(NamedTuple):
    """One item of a list, and the key by which it is known from run to run."""

    key: str
    value: Json


# --- ids and keys --------------------------------------------------------------------------------------


def quoted_key(key: str) -> str:
    """A key as it stands in an id; `unquoted_key` reads it back."""
    if key.isascii() and key.isalnum():  # most keys
        return key
    return _ODD.sub(_bytes, key) or "%"


def _bytes(found: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in found[0].encode())


def unquoted_key(text: str) -> str:
    """The key that stands in an id."""
    return "" if text == "%" else unquote(text, errors="replace")


def item_id(base: StepId, key: str) -> StepId:
    """The id of the step of an item."""
    return StepId(f"{base}[{quoted_key(key)}]")


def base_of(step_id: StepId) -> StepId | None:
    """The step that gathers what the step of an item makes; None if it is no item."""
    return StepId(step_id.partition("[")[0]) if step_id.endswith("]") else None


def key_of(step_id: StepId) -> str:
    """The key of the item that a step is for."""
    return unquoted_key(step_id.partition("[")[2][:-1])


def key_in(base: StepId, step_id: StepId) -> str:
    """By what a step is known among those that another one gathers."""
    return key_of(step_id) if base_of(step_id) == base else step_id.removeprefix(f"{base}.")


def spelled_out(text: str) -> str:
    """A text for people in which ids of items have their keys as they are, each on one line."""
    if "%" not in text:
        return text
    return _QUOTED.sub(lambda found: f"[{one_line(unquoted_key(found[1]))}]", text)


def step_named(given: str, steps: Mapping[StepId, object]) -> StepId | None:
    """The step that a person means: by its id, or by its base and the key as it is; None if there is none.

    An id may be spelled like the key of another item: then nobody can tell, and it is a UsageError.
    """
    found = [step_id for step_id in ids_meant(given) if step_id in steps]
    refuse_two(given, found)
    return found[0] if found else None


def refuse_two(given: str, found: Sequence[StepId]) -> None:
    """Refuse a name that fits two items."""
    if len(found) > 1:
        as_typed = [text.replace("%", "%25") for text in (given, found[1])]  # keys are spelled out
        known = f"{base_of(found[0])}[{key_of(found[0])}]"
        raise UsageError(
            f"'{as_typed[0]}' names two items", hint=f"say '{known}' or '{as_typed[1]}'"
        )


def ids_meant(given: str) -> tuple[StepId, ...]:
    """The ids that a person may mean, whatever steps there are: as it is, then by its key."""
    base, bracket, rest = given.partition("[")
    if not bracket or not rest.endswith("]"):
        return (StepId(given),)
    by_key = item_id(StepId(base), rest[:-1])
    return (StepId(given),) if by_key == given else (StepId(given), by_key)


def as_id(given: str) -> StepId:
    """What a person typed as the id of a step, whatever steps there are."""
    base, bracket, rest = given.partition("[")
    if not bracket or not rest.endswith("]") or ANY_ID.match(given):
        return StepId(given)
    return item_id(StepId(base), rest[:-1])


# --- items ---------------------------------------------------------------------------------------------


def items_of(base: StepId, values: Json, key: str, walls: Walls = WALLS) -> list[Item]:
    """The items of a list, each with its key; PlanError names the first that cannot be told apart."""
    if not isinstance(values, list | tuple):
        raise _refused("P090", f"'for_each' of '{base}' is {_kind(values)}, not a list")
    if len(values) > walls.items:
        message = (
            f"'for_each' of '{base}' has {len(values):,} items, and {walls.items:,} are the most"
        )
        hint = f"let one item stand for several, or take several steps; {moved_by('items', walls.items)}"
        raise _refused("P092", message, hint)
    name = _Bound(key) if key else None
    found: dict[str, int] = {}
    items = []
    for place, value in enumerate(values):
        known = _key(base, place, value, name)
        if known in found:
            message = (
                f"items {found[known]} and {place} of '{base}' have the same key {_short(known)}"
            )
            hint = "give 'key' an expression that differs, or leave one of the items out"
            raise _refused("P091", message, hint)
        found[known] = place
        items.append(Item(known, value))
    return items


def _key(base: StepId, place: int, value: Json, name: _Bound | None) -> str:
    made: Json
    if name is not None:
        made = name.fill(value, lambda: f"item {place} of '{base}'")
    elif isinstance(value, Mapping | list | tuple):
        made = digest_json(value)[:_SHORT_DIGEST]
    else:
        made = value
    if isinstance(made, Mapping | list | tuple):
        message = f"the key of item {place} of '{base}' is {_kind(made)}, not text or a number"
        raise _refused("P091", message, "let 'key' name a field that is text")
    key = rendered(made)
    try:
        step_id = item_id(base, key)
    except UnicodeEncodeError as error:
        message = f"the key of item {place} of '{base}' holds half a character"
        raise _refused("P091", message) from error
    if len(step_id) > LONGEST_ID:
        message = f"the key of item {place} of '{base}' is too long for an id: {_short(key)}"
        raise _refused("P091", message, "let 'key' name something shorter")
    return key


def _kind(value: Json) -> str:
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return "text" if isinstance(value, str) else "a number"


def _short(text: str) -> str:
    cut = text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
    return "'" + "".join(c if c.isprintable() else f"\\u{{{ord(c):x}}}" for c in cut) + "'"


def _refused(code: str, message: str, hint: str = "") -> PlanError:
    return PlanError((Problem(message, hint=hint, code=code),))


# --- steps ---------------------------------------------------------------------------------------------


def folded(step: Step) -> Step:
    """A step as it was read, with `for_each`, as the one that gathers; its items are still to come.

    It comes after all that they need, and its artifact depends on theirs alone.
    """
    template = replace(step, for_each=None, key="")
    needs = tuple(Need(need.step, "sequence", optional=need.optional) for need in _waited_for(step))
    return Step(
        step.id,
        uses=GATHER,
        needs=needs,
        description=step.description,
        priority=step.priority,
        secrets=step.secrets,
        for_each=step.for_each,
        key=step.key,
        template=template,
        when=step.when,
        optional=step.optional,
    )


def with_templates(plan: Plan) -> Iterator[Step]:
    """The steps of a plan, and after each that gathers what its items do: they may not be known yet."""
    for step in plan.steps.values():
        yield step
        if step.template is not None:
            yield step.template


def _waited_for(step: Step) -> Iterable[Need]:
    needs = {need.step: need for need in step.needs}
    source = source_of(step.for_each)
    if source is not None:
        needs.setdefault(source, Need(source, "sequence"))
    return needs.values()


def source_of(for_each: Json) -> StepId | None:
    """The step whose artifact holds the list; None if it is known when the plan is read."""
    if not isinstance(for_each, str):
        return None
    part = parse(for_each)[0]
    return StepId(part.name) if isinstance(part, Reference) else None


def opened(base: Step, items: Sequence[Item]) -> dict[StepId, Step]:
    """The steps of the items, last the one that gathers them; PlanError if an item lacks what they use."""
    template = base.template
    assert template is not None  # a step that gathers has one
    own = {need.step for need in template.needs}
    needs = (*template.needs, *(need for need in base.needs if need.step not in own))
    values, prompt = _Bound(dict(template.values)), _Bound(template.prompt)
    reads_files = isinstance(base.for_each, Mapping)
    left, found = MOST_CHARACTERS, dict[StepId, Step]()
    step_of = varied(template, "id", "values", "prompt", "needs", "inputs")
    for item in items:
        step_id = item_id(base.id, item.key)
        where = partial(_place, base.id, item.key)
        filled, asked = values.fill(item.value, where), prompt.fill(item.value, where)
        left -= values.grown + prompt.grown
        if left < 0:
            most = MOST_CHARACTERS // (1024 * 1024)
            raise _refused("P092", f"the items of '{base.id}' fill more than {most} MB")
        assert isinstance(filled, dict)  # as it was
        inputs = template.inputs
        if reads_files:
            inputs = (*inputs, Input(literal(str(item.value))))
        found[step_id] = step_of(step_id, filled, asked, needs, inputs)
    found[base.id] = with_items(base, tuple(found))
    return found


def _place(base: StepId, key: str) -> str:
    return f"item {_short(key)} of '{base}'"


def with_items(base: Step, items: Iterable[StepId]) -> Step:
    """The step that gathers these."""
    needs = (*base.needs, *(Need(step_id, optional=base.optional) for step_id in items))
    return replace(base, needs=needs, has_items=True)


def unopened(step: Step) -> Step:
    """The step as it was before its items were known."""
    if source_of(step.for_each) is None or not step.has_items:
        return step
    needs = tuple(need for need in step.needs if base_of(need.step) != step.id)
    return replace(step, needs=needs, has_items=False)


class _Bound:
    """A JSON value with references to an item in it, taken apart once for all items."""

    def __init__(self, value: Json) -> None:
        self.grown = 0  # characters that the last item was filled in with
        self._where: Callable[[], str] = str
        self._fill = self._over(value)

    def fill(self, item: Json, where: Callable[[], str]) -> Json:
        """The value with an item filled in; `where` names the item if it does not have what is read."""
        self.grown, self._where = 0, where
        return self._fill(item)

    def _over(self, value: Json) -> Callable[[Json], Json]:
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, Mapping):
            inner = [(key, self._over(part)) for key, part in value.items()]
            return lambda item: {key: part(item) for key, part in inner}
        if isinstance(value, list | tuple):
            listed = [self._over(part) for part in value]
            return lambda item: [part(item) for part in listed]
        return lambda _: value

    def _text(self, text: str) -> Callable[[Json], Json]:
        parts = parse(text) if is_template(text) else []
        if not any(isinstance(part, Reference) and part.root == "item" for part in parts):
            return lambda _: text
        if len(parts) == 1:
            only = parts[0]
            assert isinstance(only, Reference)  # as it was found
            return lambda item: self._counted(literals(self._find(only, item)))
        return lambda item: self._counted(write([self._part(part, item) for part in parts]))

    def _part(self, part: Part, item: Json) -> Part:
        if isinstance(part, str | Wrong) or part.root != "item":
            return part
        return rendered(self._find(part, item))

    def _counted(self, value: Json) -> Json:
        self.grown += len(value) if isinstance(value, str) else len(rendered(value))
        return value

    def _find(self, reference: Reference, item: Json) -> Json:
        value = item
        for depth, field in enumerate(reference.fields):
            if isinstance(value, Mapping) and field in value:
                value = value[field]
            elif isinstance(value, list | tuple) and field.isdecimal() and int(field) < len(value):
                value = value[int(field)]
            else:
                above = ".".join(("item", *reference.fields[:depth]))
                expression = f"{OPEN} {reference.path} {CLOSE}"
                message = f"'{expression}' cannot be filled in: {self._where()} has no '{field}'"
                raise _refused("P091", f"{message} in '{above}'" if depth else message)
        return value
