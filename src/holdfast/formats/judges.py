"""Guards that reach beyond themselves: the model of a judge, the source of quotes, effects outside."""

from __future__ import annotations

from collections.abc import Mapping as Table
from dataclasses import replace
from typing import cast

from holdfast.formats.asking import settled
from holdfast.formats.edges import InputAt
from holdfast.formats.nodes import Mapping
from holdfast.formats.problems import Placed, quoted
from holdfast.formats.reading import Reading
from holdfast.formats.shapes import inside
from holdfast.formats.wiring import Wired
from holdfast.model.digest import Json
from holdfast.model.plan import MODEL_USES, Guard, Input, Step, StepId

_WITH = "with."
_OF_FILES = frozenset("*?[/.")


def asks_model(given: dict[str, object]) -> bool:
    """Whether a guard of a step asks a model."""
    return any(guard.asks_model for guard in cast("tuple[Guard, ...]", given.get("guards", ())))


def settle_guards(reading: Reading, node: Mapping, given: dict[str, object], wired: Wired) -> None:
    """Find out who judges and where quotes come from; what is read becomes an input."""
    guards = cast("tuple[Guard, ...]", given.get("guards", ()))
    if not guards:
        return
    first = next((key for key, _ in node.pairs.values()), node)
    place: Placed = node.pairs["guards"][1] if "guards" in node.pairs else first
    looked_at = tuple(_settled(reading, place, given, wired, guard) for guard in guards)
    given["guards"] = looked_at
    effects, outputs = str(given.get("effects", "none")), given.get("outputs", ())
    bare = Step(
        StepId(wired.id),
        effects=effects,  # type: ignore[arg-type]  # as the table reads it
        guards=looked_at,
        outputs=cast("tuple[str, ...]", outputs),
        schema=cast("Json", given.get("schema")),
    )
    if bare.leaves_effects_to_models:
        message = f"nothing but a model judges {quoted(wired.id)}, which has effects outside"
        reading.problems.add("P066", place, message, "put a guard beside the judge that is none")


def _settled(
    reading: Reading, place: Placed, given: dict[str, object], wired: Wired, guard: Guard
) -> Guard:
    if guard.items:
        items = tuple(_settled(reading, place, given, wired, item) for item in guard.items)
        return replace(guard, items=items)
    if guard.kind == "judge":
        return _judge(reading, place, given, guard)
    if guard.kind == "cites":
        _check_source(reading, place, given, wired, guard)
    return guard


def _judge(reading: Reading, place: Placed, given: dict[str, object], guard: Guard) -> Guard:
    config = cast("Table[str, Json]", guard.config)
    model = _judging(reading, place, given, str(config.get("model") or ""))
    return replace(guard, config={**config, "model": model})


def _judging(reading: Reading, place: Placed, given: dict[str, object], own: str) -> str:
    """The model that judges: its own, else that of its step; none is reported."""
    if own:
        return settled(reading, place, own).name
    others = str(given.get("model") or "")
    if given.get("uses") in MODEL_USES:  # settled or reported with the step
        return others
    if others:
        return settled(reading, place, others).name
    message = f"the judge of {quoted(reading.step)} has no model"
    reading.problems.add("P068", place, message, "say model: small, or model: provider:name")
    return ""


def _check_source(
    reading: Reading, place: Placed, given: dict[str, object], wired: Wired, guard: Guard
) -> None:
    """A source is what the step was given: a needed artifact, a value, or files of the project."""
    source = str(cast("Table[str, Json]", guard.config)["in"])
    needs = {item.need.step: item.need.type for item in wired.needs}
    if source.startswith(_WITH):
        if source.removeprefix(_WITH) not in cast("Table[str, Json]", given.get("values", {})):
            message = (
                f"'cites' of {quoted(reading.step)} reads {quoted(source)}, which is not there"
            )
            reading.problems.add("P067", place, message, "give the value by 'with'")
    elif source in needs:
        if needs[StepId(source)] != "data":
            message = (
                f"'cites' reads {quoted(source)}, which {quoted(reading.step)} gets no data of"
            )
            reading.problems.add("P067", place, message, f"need it as data: needs: [{source}]")
    elif not _OF_FILES.intersection(source):
        message = f"'cites' reads {quoted(source)}, which {quoted(reading.step)} does not need"
        hint = f"say needs: [{source}], or name with.NAME or files"
        reading.problems.add("P067", place, message, hint)
    elif source not in {item.input.glob for item in wired.inputs} and inside(
        reading, "cites", place, source
    ):
        wired.inputs.append(InputAt(Input(source), place))
