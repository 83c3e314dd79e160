"""Whom a step or a judge asks, and what it is told: the model by its name, and the prompt."""

from __future__ import annotations

import re
from collections.abc import Mapping as Table
from typing import NamedTuple, cast

from holdfast.formats.edges import At
from holdfast.formats.grammar import MODEL_RETRIES, ModelChoice
from holdfast.formats.nodes import Mapping
from holdfast.formats.problems import Placed, quoted
from holdfast.formats.reading import Reading
from holdfast.model.digest import Json
from holdfast.model.plan import MODEL_USES
from holdfast.model.provider import TIERS

_FEEDBACK = "{feedback}"
_FILES = "config.toml of your configuration directory, or in holdfast.toml beside the plan"
_BARE = re.compile(r"[A-Za-z0-9_-]+")  # a key that TOML takes without quotes
_MAKERS = {
    "gpt": "openai",
    "claude": "anthropic",
    "gemini": "google",
    "mistral": "mistral",
    "codestral": "mistral",
}


class Model(NamedTuple):
    """A model as provider:name, and the tier or alias that it was named by."""

    name: str
    tier: str = ""


def take_model(reading: Reading, node: Mapping, given: dict[str, object]) -> None:
    """Find out which model a step asks, by the name of a tier or by its own."""
    chosen = given.pop("model", None)
    if isinstance(chosen, ModelChoice):
        given["parameters"] = chosen.parameters
        given["model"] = chosen.name
    if given.get("uses") not in MODEL_USES:
        return
    given.setdefault("workspace", "scratch")
    given.setdefault("retries", MODEL_RETRIES)
    first = next((key for key, _ in node.pairs.values()), node)
    place = node.pairs["model"][1] if "model" in node.pairs else first
    if isinstance(chosen, ModelChoice):
        found = settled(reading, place, chosen.name)
        given["model"] = found.name
        if found.tier:
            given["tier"] = found.tier
    elif "model" not in node.pairs and not reading.has_bad_model:  # else it is reported
        message = f"step {quoted(reading.step)} has no model"
        reading.problems.add("P068", place, message, "say model: small, or model: provider:name")
    produces = cast("list[At]", given.get("produces", []))
    if len(produces) > 1:
        message = f"{quoted(reading.step)} gives one answer and cannot produce several files"
        reading.problems.add("P035", produces[1].node, message, "keep one path")
    _check_prompt(reading, node, given.get("prompt"))


def _check_prompt(reading: Reading, node: Mapping, prompt: object) -> None:
    """A model is told something, and hears what guards say."""
    if prompt is None:
        return
    place = node.pairs["prompt"][1]
    if isinstance(prompt, str):
        _check_task(reading, place, "prompt", prompt)
        return
    told = cast("Table[str, Json]", prompt)
    parts = place.pairs if isinstance(place, Mapping) else {}
    if _FEEDBACK not in str(told.get("feedback_wrapper", _FEEDBACK)):
        message = f"{reading.label('feedback_wrapper')} has no place for what guards say"
        hint = f"put {_FEEDBACK} where it belongs"
        reading.problems.add("P064", parts["feedback_wrapper"][1], message, hint)
    if "task" in told:  # else it is reported
        at = parts["task"][1] if "task" in parts else place
        _check_task(reading, at, "task", str(told["task"]))


def _check_task(reading: Reading, place: Placed, key: str, task: str) -> None:
    if not task.strip():
        message = f"{reading.label(key)} is empty"
        reading.problems.add("P064", place, message, "say what the model is to do")


def settled(reading: Reading, place: Placed, given: str) -> Model:
    """The model that a name stands for; as it was given, if that is no model, which is reported."""
    known = None if reading.models is None else reading.models(str(reading.root))
    name, tier = given, ""
    if ":" not in given:
        if known is None:
            return Model(given)
        if given not in known.names:
            _add_unknown(reading, place, given, known.names)
            return Model(given)
        name, tier = known.names[given], given
    provider, _, bare = name.partition(":")
    said = f"{quoted(tier)} stands for {quoted(name)}, and " if tier else ""
    if not provider.strip() or not bare.strip():
        message = f"{quoted(name)} names no {'model' if provider.strip() else 'provider'}"
        hint = f"say {provider.strip() or 'provider'}:{bare.strip() or 'name'}"
        reading.problems.add("P069", place, message, hint)
    elif known is not None and known.providers is not None and provider not in known.providers:
        near = reading.problems.nearest(provider, known.providers)
        guess = f"did you mean '{near}:{bare}'? " if near else ""
        hint = f"{guess}known: {', '.join(sorted(known.providers))}"
        message = f"{said}there is no provider {quoted(provider)}"
        reading.problems.add("P069", place, message, hint)
    return Model(name, tier)


def _add_unknown(reading: Reading, place: Placed, name: str, names: Table[str, str]) -> None:
    message = f"nobody said which model {quoted(name)} is"
    key = name if _BARE.fullmatch(name) else f'"{name}"'
    maker = next((by for part, by in _MAKERS.items() if name.startswith(part)), "")
    near = "" if maker else reading.problems.nearest(name, {*TIERS, *names})
    if name in TIERS:
        hint = f'say [tiers] {key} = "provider:model" in {_FILES}'
    elif near:
        hint = f"did you mean '{near}'?"
    else:
        alias = f'[aliases] {key} = "provider:model" in {_FILES}'
        hint = f"say model: {maker or 'provider'}:{name}, or {alias}"
    reading.problems.add("P068", place, message, hint)
