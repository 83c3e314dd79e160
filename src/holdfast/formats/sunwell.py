"""Read saved plans of artifacts: version "1.0", as documented and in its flat dialect.

```text
{version, goal, graph: {artifacts: {id: spec}, waves: [[id]]}, execution: {completed, failed}, metrics}
{version, goal, artifacts: [spec], waves: [{wave, artifacts: [id]}], statistics, …}     the flat dialect
spec: id, description, contract, requires, produces_file, domain_type, metadata
```

An artifact becomes a step that a model does: its description is the task, its contract goes with it, what it
requires is needed. The tier of its model is the one that the file says was used, else it follows from the
shape of the graph: nothing required is small, up to two medium, more large. Waves are a view, checked and
never obeyed. What the file says about results are claims: the results are not in it, so they are made here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Mapping as Table
from typing import NamedTuple

from holdfast.errors import CyclicDependencyError
from holdfast.formats.foreignnodes import (
    ANYTHING,
    FREE,
    Said,
    Translated,
    few,
    items_of,
    known_part,
    named,
    parts,
    plain,
    prompt_words,
    said_text,
    text_of,
    words,
)
from holdfast.formats.graph import create_batches
from holdfast.formats.nodes import Listing, Mapping, Node, Scalar
from holdfast.formats.problems import Problems, quoted
from holdfast.formats.reading import Reading
from holdfast.formats.records import Key
from holdfast.formats.shapes import LINE, LINES, whole
from holdfast.model.provider import TIERS
from holdfast.model.tiers import tiers_by_place

SUNWELL = "sunwell"
VERSION = "1.0"
_HASH = re.compile(r"[0-9a-f]{4,64}\Z")
_PLAN = dict.fromkeys(
    (
        *("version", "goal", "goal_hash", "status", "created_at", "updated_at"),
        *("graph", "execution", "content_hashes", "metrics"),
        *("artifacts", "waves", "statistics", "expertise", "source_file"),
    ),
    ANYTHING,
)
_GRAPH = {"artifacts": ANYTHING, "waves": ANYTHING}
_SPEC: dict[str, Key] = {
    "id": Key(LINE),
    "description": FREE,
    "contract": FREE,
    "requires": ANYTHING,
    "produces_file": Key(LINE),
    "domain_type": Key(LINE),
    "metadata": ANYTHING,
    "wave": Key(whole(1)),
}
_EXECUTION = dict.fromkeys(("status", "current_wave", "completed", "failed", "skipped"), ANYTHING)
_WAVE = {"wave": Key(whole(1)), "artifacts": Key(LINES)}

# How a plan of an older version becomes one of this: the way for those that may come.
MIGRATIONS: dict[str, Callable[[Mapping], Mapping]] = {VERSION: lambda tree: tree}


class Spec(NamedTuple):
    """One artifact of the file, with the places of what it says."""

    id: str
    node: Mapping
    place: Scalar
    given: Table[str, object]
    requires: Table[str, Node]


def is_sunwell(tree: Mapping) -> bool:
    """Whether a file is a saved plan of artifacts."""
    graph = tree.pairs.get("graph")
    if graph is not None and isinstance(graph[1], Mapping) and "artifacts" in graph[1].pairs:
        return True
    return "artifacts" in tree.pairs and "waves" in tree.pairs


def sunwell_words(reading: Reading, tree: Mapping) -> Translated:
    """The plan in words of a plan file; problems say what keeps it from being one."""
    tree = _migrated(reading.problems, tree)
    given = known_part(reading, "saved plan", tree, _PLAN)
    graph: Node = tree
    if "graph" in given:
        graph = tree.pairs["graph"][1]
        given = {**given, **known_part(reading, "artifact graph", graph, _GRAPH, ("artifacts",))}
    specs = _specs(reading, given.get("artifacts"))
    _check_waves(reading, given.get("waves"), specs)
    used = _claims(reading, given, specs)
    tiers = {**tiers_by_place({name: spec.requires for name, spec in specs.items()}), **used}
    steps = words(tree, {name: _step(spec, tiers[name]) for name, spec in specs.items()})
    placed = {name: (specs[name].place, node) for name, (_, node) in steps.pairs.items()}
    listed = given.get("artifacts")
    at = listed if isinstance(listed, Listing | Mapping) else tree
    said: dict[str, Said] = {"steps": Mapping(placed, at.line, at.column)}
    goal = tree.pairs["goal"][1] if "goal" in tree.pairs else None
    if text_of(goal):
        said["goal"] = goal
    return Translated(SUNWELL, words(tree, said), plain(tree))


def _migrated(problems: Problems, tree: Mapping) -> Mapping:
    found = tree.pairs.get("version")
    if found is None:
        message = "a saved plan of artifacts has no 'version'"
        hint = (
            f'this version of holdfast reads "{VERSION}"; if it is one, say "version": "{VERSION}"'
        )
        raise problems.fatal("P085", tree, message, hint)
    version = found[1]
    migrate = MIGRATIONS.get(text_of(version))
    if migrate is None:
        said = version.value if isinstance(version, Scalar) else "…"
        message = f"version {quoted(str(said))} of a saved plan of artifacts is not known"
        hint = f'this version of holdfast reads "{VERSION}"'
        raise problems.fatal("P085", version, message, hint)
    return migrate(tree)


def _specs(reading: Reading, node: object) -> dict[str, Spec]:
    found: dict[str, Spec] = {}
    for item, key in _each(reading, node):
        given = known_part(reading, "artifact", item, _SPEC, () if key else ("id",))
        if not isinstance(item, Mapping):
            continue
        name = str(given.get("id", key.value if key else ""))
        place = item.pairs["id"][1] if "id" in given else key
        if not name or not isinstance(place, Scalar):
            continue
        if key is not None and name != key.value:
            message = f"the artifact {quoted(str(key.value))} says that its id is {quoted(name)}"
            reading.problems.add("P035", place, message, "keep one of them")
        elif name in found:
            message = (
                f"the artifact {quoted(name)} stands twice, first in line {found[name].place.line}"
            )
            reading.problems.add("P038", place, message)
        else:
            above = named(reading, "requires", given.get("requires"))
            found[name] = Spec(name, item, place, given, above)
    return found


def _each(reading: Reading, node: object) -> Iterator[tuple[Node, Scalar | None]]:
    if isinstance(node, Listing):
        yield from ((item, None) for item in node.items)
    else:
        yield from ((value, place) for place, _, value in parts(reading, "artifacts", node))


def _step(spec: Spec, tier: str) -> Mapping:
    pairs = spec.node.pairs
    task = said_text(spec.given.get("description"), f"Make {spec.id}.")
    said: dict[str, Said] = {
        "prompt": prompt_words(spec.place, task=task),
        "model": tier,
    }
    for key in ("description", "contract"):
        if text_of(pairs[key][1] if key in spec.given else None):
            said[key] = pairs[key][1]
    if "produces_file" in spec.given:
        said["produces"] = pairs["produces_file"][1]
    if spec.requires:
        at = pairs["requires"][1]
        said["needs"] = Listing(list(spec.requires.values()), at.line, at.column)
    return words(spec.place, said)


# --- what the file claims -----------------------------------------------------------------------


def _claims(reading: Reading, given: Table[str, object], specs: Table[str, Spec]) -> dict[str, str]:
    """Check what the file says was made; the tier of each model that it says was used."""
    node = given.get("execution")
    if node is None:
        return {}
    told = known_part(reading, "execution", node, _EXECUTION)  # type: ignore[arg-type]  # a node
    used: dict[str, str] = {}
    claimed = []
    for place, name, value in parts(reading, "completed", told.get("completed")):
        _check_named(reading, place, name, specs)
        result = value.pairs if isinstance(value, Mapping) else {}
        if "content_hash" in result:
            check_hash(reading, name, result["content_hash"][1])
        if text_of(result["model_tier"][1] if "model_tier" in result else None) in TIERS:
            used[name] = text_of(result["model_tier"][1])
        claimed.append(place)
    for place, name, _ in parts(reading, "failed", told.get("failed")):
        _check_named(reading, place, name, specs)
    for place, name, value in parts(reading, "content_hashes", given.get("content_hashes")):
        _check_named(reading, place, name, specs)
        check_hash(reading, name, value)
    if claimed:
        size = "1 artifact is" if len(claimed) == 1 else f"{len(claimed)} artifacts are"
        message = f"{size} said to be complete; the file does not hold what they are"
        reading.problems.warn("P915", claimed[0], message, "a run makes them here")
    return used


def _check_named(reading: Reading, place: Scalar, name: str, specs: Table[str, Spec]) -> None:
    if name not in specs:
        message = f"the file tells of {quoted(name)}, which is no artifact of its graph"
        hint = reading.problems.did_you_mean(name, specs)
        reading.problems.add("P003", place, message, hint)


def check_hash(reading: Reading, name: str, node: Node) -> None:
    """A hash is of hexadecimal digits, whole or its beginning; nothing is the hash of nothing."""
    said = text_of(node)
    if _HASH.match(said) or (isinstance(node, Scalar) and node.value in {"", None}):
        return
    odd = next((char for char in said if char not in "0123456789abcdef"), "")
    why = f"{quoted(odd)} is no hexadecimal digit" if odd else "it has 4 to 64 hexadecimal digits"
    message = f"the hash of {quoted(name)} is {quoted(said or 'no text')}; {why}"
    reading.problems.add("P088", node, message, "examples in documents are often made up")


def _check_waves(reading: Reading, node: object, specs: Table[str, Spec]) -> None:
    waves = [(_wave(reading, item), item) for item in items_of(reading, "waves", node)]
    if not waves or reading.problems.found:
        return
    try:
        right = waves_of({name: [*spec.requires] for name, spec in specs.items()})
    except CyclicDependencyError:
        return  # told where steps need each other
    for number, (wave, item) in enumerate(waves, 1):
        unknown = [name for name in wave if name not in specs]
        if unknown:
            message = (
                f"wave {number} names {few(map(quoted, unknown))}, which no artifact is called"
            )
            reading.problems.add("P083", item, message, "leave 'waves' out: they are derived")
        elif sorted(wave) != (right[number - 1] if number <= len(right) else []):
            wanted = few(right[number - 1] if number <= len(right) else ())
            message = f"wave {number} has {few(wave)}; what they require gives {wanted}"
            reading.problems.add("P083", item, message, "leave 'waves' out: they are derived")
    if len(waves) < len(right) and not reading.problems.found:
        message = f"there are {len(waves)} waves; what artifacts require gives {len(right)}"
        reading.problems.add("P083", waves[-1][1], message, "leave 'waves' out: they are derived")


def _wave(reading: Reading, item: Node) -> list[str]:
    if isinstance(item, Mapping):
        found = known_part(reading, "wave", item, _WAVE, ("artifacts",)).get("artifacts", ())
        return [*found]  # type: ignore[misc]  # LINES reads a tuple of text
    return [*named(reading, "waves", item)]


def waves_of(requires: Table[str, Sequence[str]]) -> list[list[str]]:
    """The waves of artifacts: what requires nothing first; a circle is a CyclicDependencyError."""
    return create_batches(requires)
