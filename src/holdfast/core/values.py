"""What the values and the prompt of a step stand for, once the artifacts of its needs are there.

A reference to a whole artifact gives its text; one that goes into it reads the artifact as strict
JSON. The key of the step holds the template: the digests above it decide the rest.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from holdfast.errors import AttemptError
from holdfast.model.condition import ABSENT, Found, unmet
from holdfast.model.digest import Json
from holdfast.model.expression import (
    CLOSE,
    OPEN,
    Reference,
    Wrong,
    fill,
    is_template,
    parse,
    parts,
)
from holdfast.model.plan import Step, StepId
from holdfast.model.strict import strict_json

INPUTS = "HOLDFAST_INPUTS/"  # before the name of a need, for a function that wants its file
_MOST_NAMES = 20
_LONGEST_NAME = 60

Content = bytes | Sequence["Content"] | Mapping[str, "Content"] | None
Read = Callable[[StepId], Content]


def filled(step: Step, read: Read, lost: Collection[StepId] = ()) -> Step:
    """The step with its references replaced; one to a step that is `lost` and gone without is null.

    `read` gives an artifact: its bytes, those of each item if it was gathered, None if it is several files.

    AttemptError names the expression, the step and what its artifact has instead.
    """
    if not has_expressions(step):
        return step
    _refuse_others(step)
    artifacts = _Artifacts(read, lost)
    values = fill(step.values, artifacts.find)
    assert isinstance(values, Mapping)  # as it was
    return replace(step, values=values, prompt=fill(step.prompt, artifacts.find))


def listed(expression: str, read: Read) -> Json:
    """What an expression that names a list stands for, read as JSON; AttemptError if it is not there."""
    reference = parse(expression)[0]
    assert isinstance(reference, Reference)  # checked when the plan was read
    artifacts = _Artifacts(read)
    return artifacts.find(reference) if reference.fields else artifacts.whole(reference)


def condition_unmet(step: Step, read: Read, lost: Collection[StepId] = ()) -> str:
    """Why the condition of a step does not hold; empty if it does, or has none."""
    if step.when is None:
        return ""
    artifacts = _Artifacts(read, lost)
    return unmet(step.when, artifacts.found)


def _refuse_others(step: Step) -> None:
    """A plan file was checked when it was loaded; a step made by a program is checked here."""
    for part in parts((step.prompt, step.values)):
        message = ""
        if isinstance(part, Wrong):
            message = part.message
        elif part.root != "steps":
            message = f"'{OPEN} {part.path} {CLOSE}' cannot be filled in here"
        elif StepId(part.name) not in step.data_needs:
            message = (
                f"'{OPEN} {part.path} {CLOSE}' reads '{part.name}', which is not needed as data"
            )
        if message:
            raise AttemptError(message, reason="command_failed")


def read_by(step: Step) -> frozenset[StepId]:
    """The needs whose artifacts the prompt or the values of a step read by themselves."""
    found = (part for part in parts((step.prompt, step.values)) if isinstance(part, Reference))
    return frozenset(StepId(part.name) for part in found if part.root == "steps")


def file_values(step: Step) -> dict[str, StepId]:
    """The values of a function that stand for the files of needs, and these, by the names it knows.

    Only what the plan itself says counts: text that another step made names no file.
    """
    if step.uses != "python" or not step.values:
        return {}
    places = {f"{INPUTS}{step.called(need)}": step.called(need) for need in step.data_needs}
    return {
        name: places[value]
        for name, value in step.values.items()
        if isinstance(value, str) and value in places
    }


def has_expressions(step: Step) -> bool:
    """Whether anything in the step's values or prompt has to be filled in."""
    return _has_template(step.prompt) or _has_template(step.values)


def _has_template(value: Json) -> bool:
    if not value or type(value) is int:
        return False
    if isinstance(value, str):
        return is_template(value)
    if type(value) is dict or isinstance(value, Mapping):
        return any(map(_has_template, value.values()))
    return isinstance(value, list | tuple) and any(map(_has_template, value))


class _Artifacts:
    """The artifacts that one step reads, each read and parsed at most once."""

    def __init__(self, read: Read, lost: Collection[StepId] = ()) -> None:
        self._read = read
        self._lost = lost
        self._contents: dict[str, Content] = {}
        self._lists: dict[str, Json] = {}
        self._texts: dict[str, str] = {}
        self._parsed: dict[str, Json] = {}

    def find(self, reference: Reference) -> Json:
        if StepId(reference.name) in self._lost:
            return None
        value = self._listed(reference)
        if value is None:
            if not reference.fields:
                return self._text(reference)
            value = self._json(reference)
        for depth, field in enumerate(reference.fields):
            value = _inside(reference, value, depth, field)
        return value

    def whole(self, reference: Reference) -> Json:
        """A whole artifact as JSON."""
        value = self._listed(reference)
        return self._json(reference) if value is None else value

    def found(self, reference: Reference) -> Found:
        """What a condition compares: the value, or the text without its last line end."""
        if StepId(reference.name) in self._lost:
            return ABSENT
        try:
            if reference.fields:
                return self.find(reference)
            value = self._listed(reference)
            return _scalar(self._text(reference)) if value is None else value
        except AttemptError:
            return ABSENT

    def _listed(self, reference: Reference) -> Json:
        """What items made, as a list: each as the JSON that it is, or as text; None if it is no list."""
        name = reference.name
        if name not in self._lists:
            self._lists[name] = _gathered(reference, self._content(name))
        return self._lists[name]

    def _content(self, name: str) -> Content:
        if name not in self._contents:
            self._contents[name] = self._read(StepId(name))
        return self._contents[name]

    def _text(self, reference: Reference) -> str:
        known = self._texts.get(reference.name)
        if known is not None:
            return known
        content = self._content(reference.name)
        if not isinstance(content, bytes):
            hint = f"read them in the directory HOLDFAST_INPUTS/{reference.name}"
            raise _refused(reference, "is several files", hint)
        try:
            text = self._texts[reference.name] = content.decode()
        except UnicodeDecodeError as error:
            raise _refused(reference, "is not UTF-8 text") from error
        return text

    def _json(self, reference: Reference) -> Json:
        if reference.name not in self._parsed:
            text = self._text(reference)
            try:
                self._parsed[reference.name] = strict_json(text)
            except ValueError as error:
                start = _short(" ".join(text[:200].split()))
                lacks = f" and has no '{reference.fields[0]}'" if reference.fields else ""
                why = "" if isinstance(error, json.JSONDecodeError) else f" ({error})"
                what = f"is not JSON{why}{lacks}; it begins with '{start}'"
                hint = f"print JSON in '{reference.name}'"
                if reference.fields:
                    whole = f"{OPEN} steps.{reference.name}.output {CLOSE}"
                    hint += f", or take the whole text: {whole}"
                raise _refused(reference, what, hint) from error
        return self._parsed[reference.name]


def _gathered(reference: Reference, content: Content) -> Json:
    """What was gathered, in its order or by names; None if it is no collection."""
    if content is None or isinstance(content, bytes):
        return None
    if isinstance(content, Mapping):
        return {key: _value(reference, item) for key, item in content.items()}
    return [_value(reference, item) for item in content]


def _scalar(text: str) -> Json:
    try:
        return strict_json(text)
    except ValueError:
        return text.removesuffix("\n")


def _value(reference: Reference, content: Content) -> Json:
    """What an item made: the JSON that it is, else its text; nothing of one with several files."""
    if content is None or not isinstance(content, bytes):
        return _gathered(reference, content)
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise _refused(reference, "has an item that is not UTF-8 text") from error
    try:
        return strict_json(text)
    except ValueError:
        return text


def _inside(reference: Reference, value: Json, depth: int, field: str) -> Json:
    if isinstance(value, Mapping) and field in value:
        return value[field]
    if isinstance(value, list) and field.isdecimal() and int(field) < len(value):
        found: Json = value[int(field)]
        return found
    above = ".".join(reference.fields[:depth])
    where = f"has no '{field}'" + (f" in '{above}'" if above else "")
    raise _refused(reference, f"{where}; {_has(value)}")


def _has(value: Json) -> str:
    """What is there instead, short enough to be read."""
    if isinstance(value, Mapping):
        names = [_short(name) for name in list(value)[:_MOST_NAMES]]
        more = f" and {len(value) - _MOST_NAMES} more" if len(value) > _MOST_NAMES else ""
        return f"it has: {', '.join(names)}{more}" if names else "it has no fields"
    if isinstance(value, list):
        return f"it is a list of {len(value)}" + (", counted from 0" if value else "")
    if value is None or isinstance(value, bool):
        return f"it is {json.dumps(value)}"
    return "it is text" if isinstance(value, str) else "it is a number"


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_NAME else text[: _LONGEST_NAME - 1] + "…"


def _refused(reference: Reference, what: str, hint: str = "") -> AttemptError:
    expression = f"{OPEN} {reference.path} {CLOSE}"
    message = f"'{expression}' cannot be filled in: the artifact of '{reference.name}' {what}"
    return AttemptError(f"{message}\nhint: {hint}" if hint else message, reason="command_failed")
