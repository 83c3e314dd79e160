"""The artifacts that a model found for a goal, read from its answer, and everything that is wrong with them.

An artifact has a contract, needs others, and may be a file. Together they must be a graph that somebody can
build: not empty, without circles, with nothing missing, and no larger than the limits.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from holdfast.model.digest import Json
from holdfast.model.fixed import fixed
from holdfast.model.plan import STEP_ID
from holdfast.model.provider import TIERS
from holdfast.model.tiers import levels as levels_of
from holdfast.model.tiers import tiers_by_place

_NAMED = 5  # of a circle, or of others, that are told
_INTERFACES = ("contract", "format", "interface", "outline", "protocol", "schema")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")  # in no plan
_WORDS = ("description", "contract", "produces_file", "domain_type", "tests")
COMMANDS = frozenset({"plan.yaml", "plan.yml", "plan.json", "holdfast.toml"})  # in any folder
OF_PROJECT = frozenset({"pyproject.toml"})  # beside the plan


class Bounds(NamedTuple):
    """How large a plan may be, and how often a model may try to make one."""

    artifacts: int = 50
    depth: int = 10
    rounds: int = 5


@fixed
class Found:
    """One artifact that is to be made. `tier` is the model's own wish, if it had one.

    `tests` is a claim that the plan stands on and that this artifact puts to the test.
    """

    id: str
    description: str
    contract: str
    requires: tuple[str, ...] = ()
    produces_file: str = ""
    domain_type: str = ""
    tier: str = ""
    tests: str = ""


SCHEMA: Mapping[str, Json] = {
    "type": "object",
    "properties": {
        "artifacts": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "id": {"type": "string"},
                    "description": {"type": "string"},
                    "contract": {"type": "string"},
                    "requires": {"type": "array", "items": {"type": "string"}},
                    "produces_file": {"type": "string"},
                    "domain_type": {"type": "string"},
                    "tier": {"type": "string"},
                    "tests": {"type": "string"},
                },
                "required": ["id", "description", "contract", "requires"],
            },
        }
    },
    "required": ["artifacts"],
}


def read_found(value: Json) -> list[Found]:
    """The artifacts of an answer; ValueError if it is not what the schema says."""
    listed = value.get("artifacts") if isinstance(value, Mapping) else None
    if not isinstance(listed, list):
        raise ValueError("the answer has no list 'artifacts'")  # noqa: TRY004 - a value, as below
    return [_one(item) for item in listed]


def _one(item: Json) -> Found:
    if not isinstance(item, Mapping):
        raise ValueError("an artifact must be an object")  # noqa: TRY004 - wrong words, not a bug
    requires = item.get("requires") or []
    if not isinstance(requires, list):
        raise ValueError("'requires' of an artifact must be a list")  # noqa: TRY004 - as above
    return Found(
        id=_text(item, "id"),
        description=_text(item, "description"),
        contract=_text(item, "contract"),
        requires=tuple(str(name) for name in requires),
        produces_file=_text(item, "produces_file"),
        domain_type=_text(item, "domain_type"),
        tier=_text(item, "tier"),
        tests=_text(item, "tests"),
    )


def _text(item: Mapping[str, Json], key: str) -> str:
    value = item.get(key)
    return "" if value is None else str(value).strip()


def flaws(found: Sequence[Found], bounds: Bounds, strategy: str = "") -> list[str]:
    """Everything that keeps these artifacts from being a plan, in sentences for whoever made them."""
    if not found:
        return ["the plan is empty: name at least one artifact"]
    ids = [one.id for one in found]
    told = [f"'{name}' is there more than once" for name in _twice(ids)]
    known = set(ids)
    for one in found:
        told += _flaws_of(one, known)
    if circle := circle_in(found):
        told.append(
            f"these artifacts require each other in a circle: {_circle(circle)};"
            " one of them must be made without the next"
        )
    if len(found) > bounds.artifacts:
        told.append(
            f"there are {len(found)} artifacts, and at most {bounds.artifacts} are allowed:"
            " join those that belong together"
        )
    deep = max(levels(found).values(), default=-1) + 1
    if deep > bounds.depth:
        told.append(
            f"the longest chain has {deep} artifacts, and at most {bounds.depth} are allowed:"
            " let more of them stand side by side"
        )
    return told or [*_STRATEGIES[strategy](found)]


def _in_a_row(found: Sequence[Found]) -> Iterable[str]:
    at: dict[int, list[str]] = {}
    for name, level in levels(found).items():
        at.setdefault(level, []).append(name)
    for names in at.values():
        if len(names) > 1:
            few = ", ".join(names[:_NAMED])
            yield f"these would be made side by side: {few}; each must require the one before it"


def _on_interfaces(found: Sequence[Found]) -> Iterable[str]:
    required = {need for one in found for need in one.requires}
    for one in found:
        if one.id in required and not one.requires and one.domain_type.lower() not in _INTERFACES:
            yield (
                f"'{one.id}' is what others begin with, and no interface: let it require one, or give it"
                f" a domain_type of {', '.join(_INTERFACES)}"
            )


_STRATEGIES = {"": lambda _: (), "contract-first": _on_interfaces, "sequential": _in_a_row}


def _flaws_of(one: Found, known: set[str]) -> Iterable[str]:
    name = one.id or "an artifact"
    if not STEP_ID.match(one.id):
        yield (
            f"'{one.id}' cannot be an id: start with a letter or _, then letters, digits, _ . -;"
            " at most 128"
        )
    if not one.description:
        yield f"'{name}' has no description: say in one sentence what it is"
    if not one.contract:
        yield f"'{name}' has no contract: say what it must fulfil"
    for key in _WORDS:
        if odd := _CONTROL.search(getattr(one, key)):
            yield f"'{key}' of '{name}' has the character U+{ord(odd[0]):04X}: leave it out"
    for need in dict.fromkeys(one.requires):
        if need == one.id:
            yield f"'{name}' requires itself"
        elif need not in known:
            yield f"'{name}' requires '{need}', which is not among the artifacts"
    for need in _twice(one.requires):
        yield f"'{name}' requires '{need}' more than once"
    if one.tier and one.tier not in TIERS:
        yield f"'{name}' has the tier '{one.tier}', which is none of {', '.join(TIERS)}"
    if decides_what_runs(one.produces_file):
        yield (
            f"'{name}' is the file '{one.produces_file}', which says what runs in this project:"
            " no planned step may write it"
        )


def decides_what_runs(path: str) -> bool:
    """Whether a bare `holdfast run` or its settings would read this file, however it is spelled."""
    plain = unicodedata.normalize("NFKC", path).casefold().replace("\\", "/")
    parts = [part.rstrip(" .") for part in plain.split("/")]
    parts = [part for part in parts if part]
    return bool(parts) and (parts[-1] in COMMANDS or (len(parts) == 1 and parts[0] in OF_PROJECT))


def _twice(names: Iterable[str]) -> list[str]:
    seen: set[str] = set()
    return list(dict.fromkeys(name for name in names if name in seen or seen.add(name)))  # type: ignore[func-returns-value]  # adds it on the way


def _circle(names: Sequence[str]) -> str:
    more = f" → … ({len(names)} in all)" if len(names) > _NAMED else ""
    return " → ".join([*names[:_NAMED], *(() if more else names[:1])]) + more


def levels(found: Sequence[Found]) -> dict[str, int]:
    """How many artifacts stand below each one; none for what is in a circle, or stands on one."""
    return levels_of({one.id: one.requires for one in found})


def circle_in(found: Sequence[Found]) -> list[str]:
    """The ids of artifacts that require each other in a circle, in its order; none if there is no circle."""
    known = {one.id: one for one in found}
    level = levels(found)
    left = {name for name in known if name not in level}
    name = next(iter(sorted(left)), None)
    path: list[str] = []
    while name is not None and name not in path:  # each that is left requires another that is
        path.append(name)
        name = next((need for need in known[name].requires if need in left), None)
    return path[path.index(name) :] if name is not None and path != [name] else []


def tiers(found: Sequence[Found]) -> dict[str, str]:
    """The tier that makes each artifact: its own, else by its place in the graph.

    It is settled when the plan is made: a plan that grows changes no step that was there.
    """
    place = tiers_by_place({one.id: one.requires for one in found})
    return {one.id: one.tier if one.tier in TIERS else place[one.id] for one in found}
