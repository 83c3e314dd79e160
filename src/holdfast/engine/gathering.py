"""Gathers what the items of a step made: a directory with an index and one file for each item.

Nothing is copied: the artifact names the contents that the items have already. Whoever needs it by data
reads the directory, or in a value the list of what the items made, in their order.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import cast

from holdfast.core.state import COMPLETE, State
from holdfast.core.values import listed
from holdfast.engine.given import given_artifact, readable
from holdfast.errors import AttemptError, PlanError, Problem
from holdfast.model.artifact import Entry, Form, tree_entries
from holdfast.model.digest import Digest, EncodingError, Json, canonical
from holdfast.model.items import items_of, key_in, opened, quoted_key
from holdfast.model.plan import GATHER, Step, StepId
from holdfast.ports import Candidate, File, Given, Listed

INDEX = "index.json"


def gathered(step: Step, state: State, read: Callable[[StepId, Digest], bytes]) -> Candidate:
    """The collection of what the items of a step made, in their order."""
    index: list[Json] = []
    entries: list[Entry] = []
    for need in step.data_needs:
        made = state.steps[need]
        if made.digest is None or made.phase not in COMPLETE:  # gone on without
            continue
        key = key_in(step.id, need)
        name = file_of(key)
        content = read(need, made.digest)
        if made.form == "tree":
            for entry in tree_entries(content):
                path = f"{name}/{entry.path}"
                entries.append(Entry(path, entry.digest, entry.executable, entry.size))
        else:
            is_program = made.form == "program"
            entries.append(Entry(name, made.digest, is_program, len(content)))
        index.append({"key": key, "step": need, "digest": made.digest, "file": name})
    words = json.dumps(index, ensure_ascii=False, indent=1).encode() + b"\n"
    return Candidate("tree", files=(File(INDEX, words),), entries=tuple(entries))


def file_of(key: str) -> str:
    """The name of an item's file in the directory of its collection."""
    name = quoted_key(key)
    return name if name.lower() != INDEX else name.replace(".", "%2E")


def opened_by(
    base: Step, source: Step, get: Callable[[Digest], bytes], digest: Digest, form: Form
) -> dict[StepId, Step]:
    """The items of a step, and last itself, as the artifact of the step that lists them has it.

    PlanError if that is no list, or its items cannot be told apart. Nothing is remembered: the present plan
    and the artifact say it all.
    """
    given = given_artifact(get, digest, form)
    if source.uses == GATHER:
        given = collected(given, source)
    try:
        values = listed(str(base.for_each), lambda _: readable(given))
        canonical(values)
        return opened(base, items_of(base.id, values, base.key))
    except AttemptError as error:
        what, _, hint = error.message.partition("\nhint: ")
        raise PlanError((Problem(what, hint=hint, code="P090"),)) from error
    except EncodingError as error:
        message = f"the items of '{base.id}': {error.message}"
        raise PlanError((Problem(message, code="P091"),)) from error


def collected(given: Given, step: Step) -> Given:
    """A collection with its items in their order; as it is if a person put something else in its place.

    What is gathered from steps that are no items is known by their names.
    """
    contents = {path: content for path, _, content in given.files}
    if INDEX not in contents:
        return given
    try:
        index = cast("list[dict[str, str]]", json.loads(contents[INDEX]()))
        names = [item["file"] for item in index]
        keys = tuple(item["key"] for item in index) if step.template is None else None
    except (ValueError, TypeError, KeyError):
        return given
    found = Listed(tuple(contents.get(name) for name in names), keys)
    return Given(given.form, given.content, given.files, found)
