"""Guards of action pairs in words of a plan file: those that are known here, and a person for all others."""

from __future__ import annotations

import json
from collections.abc import Mapping as Table

from holdfast.formats.foreignnodes import ANYTHING, items_of, known_part, parts, plain, words
from holdfast.formats.guardlist import BESIDE, COMPOSED, GUARD_KINDS
from holdfast.formats.nodes import Listing, Mapping, Node, Scalar
from holdfast.formats.problems import Placed, quoted
from holdfast.formats.reading import Reading
from holdfast.formats.records import Key
from holdfast.formats.shapes import LINE, word
from holdfast.model.digest import Json

COMPOSITE = "composite"
NOTHING = "none"  # the guard of a step that has none
_POLICIES = {"all_pass": "all", "any_pass": "any", "majority_pass": "majority"}
_COMPOSITE: dict[str, Key] = {
    "compose": Key(word("sequential", "parallel")),
    "policy": Key(word(*_POLICIES)),
    "guards": ANYTHING,
    "name": Key(LINE),
}
_SINGLE: dict[str, Key] = {"type": Key(LINE), "config": ANYTHING}
_NAME = 200  # letters that a guard may be called by


def guard_words(
    reading: Reading, place: Placed, pair: Mapping, given: Table[str, object]
) -> Listing:
    """The guards of an action pair as the list of a step."""
    seen = _Seen(reading, str(given.get("human_prompt_title", "")))
    config = _config(reading, "guard_config", given.get("guard_config"))
    name = str(given.get("guard", ""))
    inner = given.get("guards")
    found: list[Mapping | None] = []
    if isinstance(inner, Listing):
        found = [seen.guard(item, config) for item in inner.items]
    elif isinstance(inner, Mapping):
        found = [*seen.composite(inner, config)]
    elif inner is not None:
        reading.wrong_type("guards", inner, "a list or a composite")  # type: ignore[arg-type]  # a node
    elif name and name not in {COMPOSITE, NOTHING}:
        found = [seen.single(name, config, pair.pairs["guard"][1])]
    elif name == COMPOSITE:
        at = pair.pairs["guard"][1]
        reading.problems.add("P033", at, f"{reading.label('guard')} has no 'guards'")
    return Listing([one for one in found if one is not None], place.line, place.column)


def _config(reading: Reading, key: str, node: object) -> dict[str, Json]:
    return {name: plain(value) for _, name, value in parts(reading, key, node)}


class _Seen:
    """Guards of one step; those of one name are told apart."""

    def __init__(self, reading: Reading, title: str) -> None:
        self._reading = reading
        self._title = title
        self._names: set[str] = set()

    def guard(self, node: Node, config: Table[str, Json]) -> Mapping | None:
        """A guard by its name, with a configuration, or made of others."""
        if isinstance(node, Scalar):
            name = LINE.read(self._reading, "guards", node)
            return None if name is None else self.single(name, config, node)
        if isinstance(node, Mapping) and "guards" in node.pairs:
            outer, self._names = self._names, set()  # names are apart inside each list
            inner = self.composite(node, config)
            self._names = outer
            if _policy(node) != "all":
                return self._told_apart(inner[0]) if inner else None
            named = {"name": node.pairs["name"][1]} if "name" in node.pairs else {}
            return words(node, {"all": [*inner], **named}) if inner else None
        given = known_part(self._reading, "guard", node, _SINGLE, ("type",))
        if "type" not in given:
            return None
        own = _config(self._reading, "config", given.get("config"))
        return self.single(str(given["type"]), {**config, **own}, node)

    def composite(self, node: Mapping, config: Table[str, Json]) -> list[Mapping]:
        """What a composite says: its guards if all must pass, else one guard that holds them."""
        given = known_part(self._reading, "composite guard", node, _COMPOSITE, ("guards",))
        items = items_of(self._reading, "guards", given.get("guards"))
        if "guards" in given and not items:
            message = "a composite guard holds no guards"
            self._reading.problems.add("P047", node.pairs["guards"][1], message)
        kind = _policy(node)
        warned = len(self._reading.problems.warnings)
        found = [one for item in items if (one := self.guard(item, config)) is not None]
        if kind == "all" or not found:
            return found
        if any(_asks(one) for one in found):  # people are not counted against guards
            del self._reading.problems.warnings[warned:]
            names = ", ".join(_called(item) for item in items)
            return [self._person(f"{kind} of {names}", node)]
        named = {"name": node.pairs["name"][1]} if "name" in given else {}
        return [words(node, {kind: [*found], **named})]

    def single(self, name: str, config: Table[str, Json], node: Node) -> Mapping:
        """A guard that is known here, else a person who judges in its place."""
        if name == "syntax":
            return words(node, {"syntax": config.get("language", "python"), **_beside(config)})
        if name == "human":
            title = self._unused(str(config.get("name", self._title or "human")))
            return words(node, {"human": config.get("value", {}), "name": title})
        if name in GUARD_KINDS and GUARD_KINDS[name].shape and "value" in config:
            return words(node, {name: config["value"], **_beside(config)})
        told = ", ".join(f"{key}={json.dumps(value)}" for key, value in sorted(config.items()))
        return self._person(f"{name} ({told})" if told else name, node)

    def _person(self, name: str, node: Node) -> Mapping:
        message = f"the guard {quoted(name)} is not known here: a person is asked in its place"
        hint = "import it with -o and say what checks: command: […]"
        self._reading.problems.warn("P914", node, message, hint)
        return words(node, {"human": {}, "name": self._unused(name)})

    def _told_apart(self, guard: Mapping) -> Mapping:
        """A person in place of a whole composite is one among the guards around it."""
        if "human" not in guard.pairs or "name" not in guard.pairs:
            return guard
        place, name = guard.pairs["name"]
        other = Scalar(self._unused(str(plain(name))), name.line, name.column)
        return Mapping({**guard.pairs, "name": (place, other)}, guard.line, guard.column)

    def _unused(self, name: str) -> str:
        short = "".join(char if char.isprintable() else " " for char in name)[:_NAME].strip()
        number, found = 1, short or "human"
        while found in self._names:
            number += 1
            found = f"{short} {number}"
        self._names.add(found)
        return found


def _policy(node: Mapping) -> str:
    said = node.pairs.get("policy")
    return _POLICIES.get(str(plain(said[1])) if said else "all_pass", "all")


def _beside(config: Table[str, Json]) -> dict[str, Json]:
    return {key: config[key] for key in BESIDE if key in config}


def _asks(guard: Mapping) -> bool:
    for kind in COMPOSED:
        inner = guard.pairs.get(kind)
        if inner is not None and isinstance(inner[1], Listing):
            return any(_asks(item) for item in inner[1].items if isinstance(item, Mapping))
    return "human" in guard.pairs


def _called(node: Node) -> str:
    if isinstance(node, Scalar):
        return str(node.value)
    named = node.pairs.get("type") if isinstance(node, Mapping) else None
    return str(plain(named[1])) if named else COMPOSITE
