"""Gathers what the items of a step made: a directory with an index and one file for each item.

Nothing is copied: the artifact names the contents that the items have already. Whoever needs it by data
reads the directory, or in a value the list of what the items made, in their order.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import cast

from holdfast.core.state import COMPLETE, State
from holdfast.core.values import listed
from holdfast.engine.given import readable
from holdfast.errors import AttemptError, PlanError, Problem
from holdfast.model.artifact import Entry, Form, tree_entries
from holdfast.model.digest import Digest, EncodingError, Json, canonical
from holdfast.model.items import items_of, key_in, opened, quoted_key, source_of
from holdfast.model.plan import GATHER, Step, StepId
from holdfast.model.walls import WALLS, Walls
from holdfast.ports import Candidate, File, Given, Listed, given_artifact

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
    base: Step,
    steps: Mapping[StepId, Step],
    get: Callable[[Digest], bytes],
    digest: Digest,
    form: Form,
    walls: Walls = WALLS,
) -> dict[StepId, Step]:
    """The items of a step, and last itself, as the artifact of the step that lists them has it.

    `steps` are those of the plan.

    PlanError if that is no list, or its items cannot be told apart. Nothing is remembered: the present plan
    and the artifact say it all.
    """
    source = source_of(base.for_each)
    assert source is not None  # the others are opened when the plan is read
    given = collected(given_artifact(get, digest, form), source, steps)
    try:
        values = listed(str(base.for_each), lambda _: readable(given))
        canonical(values)
        return opened(base, items_of(base.id, values, base.key, walls))
    except AttemptError as error:
        what, _, hint = error.message.partition("\nhint: ")
        raise PlanError((Problem(what, hint=hint, code="P090"),)) from error
    except EncodingError as error:
        message = f"the items of '{base.id}': {error.message}"
        raise PlanError((Problem(message, code="P091"),)) from error


def collected(given: Given, step_id: StepId, steps: Mapping[StepId, Step]) -> Given:
    """An artifact as it is; if a step gathered it, with what that gathered, in its order.

    So it stays, too, if a person put something else in its place.
    """
    if steps[step_id].uses != GATHER:
        return given
    contents = {path: content for path, _, content in given.files}
    found = _listed(contents, "", step_id, steps)
    return given if found is None else replace(given, items=found)


def _listed(
    contents: Mapping[str, Callable[[], bytes]],
    folder: str,
    step_id: StepId,
    steps: Mapping[StepId, Step],
) -> Listed | None:
    """What a step gathered, in a folder of these files; None if that has no index.

    What is gathered from steps that are no items is known by their names.
    """
    if folder + INDEX not in contents:
        return None
    try:
        index = cast("list[dict[str, str]]", json.loads(contents[folder + INDEX]()))
        found = [(item["key"], folder + item["file"], StepId(item["step"])) for item in index]
    except (ValueError, TypeError, KeyError):
        return None
    made: list[Callable[[], bytes] | Listed | None] = []
    for _, name, above in found:
        is_gathered = above in steps and steps[above].uses == GATHER
        inner = _listed(contents, f"{name}/", above, steps) if is_gathered else None
        made.append(contents.get(name) if inner is None else inner)
    keys = tuple(key for key, _, _ in found) if steps[step_id].template is None else None
    return Listed(tuple(made), keys)
