"""Files beside the plans of other programs: traces, hashes, prompts. They hold no plan; they are checked.

What a trace or a file of hashes says are claims. Nothing of it is taken over: a result counts here only if
its content is here and a guard accepted it.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from holdfast.errors import HoldfastError, PlanError, Problem
from holdfast.formats.atomicguard import ATOMICGUARD, is_workflow
from holdfast.formats.graph import GRAPH, is_graph
from holdfast.formats.nodes import Bounds, Mapping, Scalar, read
from holdfast.formats.planfile import read_file
from holdfast.formats.planspec import PLANSPEC, is_planspec
from holdfast.formats.problems import Place, Problems, quoted
from holdfast.formats.reading import Reading
from holdfast.formats.strangers import is_prompts
from holdfast.formats.sunwell import SUNWELL, check_hash, is_sunwell
from holdfast.formats.tasks import TASKS, is_tasks
from holdfast.model.digest import Json
from holdfast.model.walls import WALLS, Walls

TRACE, HASHES, PROMPTS = "trace", "hashes", "prompts"
EVENTS = {
    "plan_created": ("artifact_count",),
    "incremental_analysis": (),
    "full_rebuild": (),
    "wave_start": ("wave", "artifacts"),
    "artifact_complete": ("id",),
    "artifact_failed": ("id",),
    "artifact_skipped": ("id",),
    "wave_complete": ("wave",),
    "execution_complete": (),
}
_LIKE_A_HASH = re.compile(r"[0-9a-z]{4,64}\Z")
_OTHER_ID = "artifact_id"  # what traces found in the wild call an id


class Record(NamedTuple):
    """A file that was read: which kind, what it says in one line and as JSON, what is odd about it."""

    format: str
    says: str
    data: dict[str, Json]
    warnings: tuple[Problem, ...] = ()


def record_in(path: str, walls: Walls = WALLS) -> Record | None:
    """The file as a record; None if it is something else, PlanError if it is one with errors."""
    content, root = read_file(path, walls=walls)
    problems = Problems(path)
    if path.endswith(".jsonl"):
        return read_trace(content, problems)
    is_json = path.endswith(".json")
    try:
        tree = read(content, Problems(path), strict_json=is_json, bounds=Bounds.of(walls))
    except PlanError:
        return None
    if not isinstance(tree, Mapping):
        return None
    if is_prompts(tree):
        names: list[Json] = [*tree.pairs]
        says = f"prompts for {_count(len(names), 'step')}"
        return Record(PROMPTS, says, {"steps": names})
    if is_hashes(tree):
        for name, (_, node) in tree.pairs.items():
            check_hash(Reading(problems, root), name, node)  # type: ignore[arg-type]  # only names a file
        problems.stop()
        hashes: dict[str, Json] = {name: str(node.value) for name, node in _texts(tree)}
        return Record(HASHES, f"hashes of {_count(len(hashes), 'artifact')}", {"hashes": hashes})
    return None


def format_in(path: str) -> str | None:
    """What a file that was refused was meant to be; None if it cannot be told."""
    if path.endswith(".jsonl"):
        return TRACE
    try:
        content, _ = read_file(path)
        tree = read(content, Problems(path), strict_json=path.endswith(".json"))
    except HoldfastError:
        return None
    if not isinstance(tree, Mapping):
        return None
    return next((name for name, is_it in _KINDS.items() if is_it(tree)), None)


def is_hashes(tree: Mapping) -> bool:
    """Whether a file holds nothing but hashes by name."""
    found = _texts(tree)
    return bool(found) and all(_LIKE_A_HASH.match(str(node.value)) for _, node in found)


def _texts(tree: Mapping) -> list[tuple[str, Scalar]]:
    found = [
        (name, node)
        for name, (_, node) in tree.pairs.items()
        if isinstance(node, Scalar) and isinstance(node.value, str)
    ]
    return found if len(found) == len(tree.pairs) else []


def read_trace(content: bytes, problems: Problems) -> Record:
    """A trace, checked line by line; what it says of each artifact last."""
    counts: Counter[str] = Counter()
    last: dict[str, Json] = {}
    for number, line in enumerate(content.decode("utf-8", "replace").splitlines(), 1):
        if line.strip():
            event = _event(line, Place(number, 1), problems)
            if event is not None:
                kind = str(event["event"])
                counts[kind] += 1
                name = event.get("id", event.get(_OTHER_ID))
                if kind.startswith("artifact_") and isinstance(name, str):
                    last[name] = kind.removeprefix("artifact_")
    problems.stop()
    if not counts:
        raise problems.fatal("P001", Place(1, 1), "the trace has no events")
    done = sum(word == "complete" for word in last.values())
    failed = sum(word == "failed" for word in last.values())
    said = f"{done} complete, {failed} failed" if failed else f"{done} complete"
    says = f"{_count(counts.total(), 'event')}; it says: {said}"
    data: dict[str, Json] = {"events": dict(counts), "artifacts": last}
    return Record(TRACE, says, data, tuple(problems.warnings))


def _event(line: str, at: Place, problems: Problems) -> dict[str, Json] | None:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        where = getattr(error, "colno", 1)
        message = f"line {at.line} is not JSON: {quoted(line.strip(), 40)}"
        hint = "a trace has one JSON object in each line"
        problems.add("P015", Place(at.line, where), message, hint)
        return None
    if not isinstance(found, dict) or not isinstance(found.get("event"), str):
        hint = "a trace has one JSON object with 'ts' and 'event' in each line"
        problems.add("P033", at, f"line {at.line} has no 'event'", hint)
        return None
    if not isinstance(found.get("ts"), str):
        problems.add("P033", at, f"line {at.line} has no 'ts'")
    kind = found["event"]
    if kind not in EVENTS:
        hint = problems.did_you_mean(kind, EVENTS)
        problems.warn("P911", at, f"the event {quoted(kind)} means nothing here", hint)
        return found
    for key in EVENTS[kind]:
        if key not in found and not (key == "id" and _OTHER_ID in found):
            problems.add("P033", at, f"'{kind}' in line {at.line} has no '{key}'")
    return found


_KINDS: dict[str, Callable[[Mapping], bool]] = {
    PROMPTS: is_prompts,
    HASHES: is_hashes,
    GRAPH: is_graph,
    SUNWELL: is_sunwell,
    ATOMICGUARD: is_workflow,
    PLANSPEC: is_planspec,
    TASKS: is_tasks,
}


def _count(number: int, word: str) -> str:
    return f"{number:,} {word}{'' if number == 1 else 's'}"
