"""The `json-schema` guard: Draft 2020-12, nothing fetched, patterns that cannot run away."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import replace
from itertools import islice
from typing import Any, Protocol

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, ValidationError
from jsonschema.validators import extend
from jsonschema_specifications import REGISTRY as SPECIFICATIONS
from referencing import Registry
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from holdfast.errors import EditError, GuardBroken
from holdfast.guards.apart import judged_apart
from holdfast.guards.candidate import accept, json_of, parse_json, reject
from holdfast.guards.identity import schema_identity
from holdfast.guards.linear import HeavyError, pattern_flaw, search, weight
from holdfast.guards.schemaparts import TYPES, Placed, parts
from holdfast.model.artifact import Verdict
from holdfast.model.digest import Json
from holdfast.model.plan import Guard
from holdfast.ports import Candidate, Flaw, Job
from holdfast.process.inside import read_inside

MAX_ERRORS = 20
ENDLESS = "the schema refers to itself without end, so nothing can be judged by it"
_BELOW = "let it refer to itself only below a key such as 'properties' or 'items'"
_DEEP = 60  # levels of an artifact with which a schema that follows it may go too deep
_UNCOUNTED = frozenset(
    {"unevaluatedProperties", "unevaluatedItems", "$dynamicRef", "$recursiveRef"}
)
_QUICK = 20_000  # keywords that are asked: some tenths of a second
_QUICK_BYTES = 1 << 20
_left: ContextVar[list[int] | None] = ContextVar("left", default=None)  # None: as many as it takes


class JsonSchemaGuard:
    """The schema is a mapping, or the path of a file in the project."""

    def identity(self, guard: Guard, root: str) -> Mapping[str, Json]:
        return schema_identity(guard, root)

    async def judge(self, guard: Guard, candidate: Candidate, job: Job) -> Verdict:
        guard = replace(guard, config=_schema(guard, job.root, job.walls.artifact))
        if len(candidate.content) <= _QUICK_BYTES and not _is_odd(guard.config):
            left = _left.set([_QUICK])
            try:
                return compare(guard, candidate)
            except HeavyError:
                pass
            finally:
                _left.reset(left)
        return await judged_apart("json-schema", guard, candidate, job)


def compare(guard: Guard, candidate: Candidate) -> Verdict:
    """The verdict on a candidate by the schema that is the config of its guard."""
    schema = guard.config
    try:
        value = json_of(candidate)
    except ValueError as error:
        return reject(guard, str(error))
    flaw = schema_flaw(schema)
    if flaw is not None:
        raise GuardBroken(flaw.message, hint=flaw.hint or None)
    try:
        validator = _Linear(schema, registry=Registry())
        errors = list(islice(validator.iter_errors(value), MAX_ERRORS))
    except Unresolvable as error:
        raise GuardBroken(f"the schema refers to '{error.ref}', which is not in it") from error
    except RecursionError as error:
        if not is_deep(value):
            raise GuardBroken(ENDLESS, hint=_BELOW) from error
        return reject(guard, "the artifact is nested too deeply for its schema")
    if not errors:
        return accept(guard)
    return reject(guard, "\n".join(f"{error.json_path}: {_short(error)}" for error in errors))


def _schema(guard: Guard, root: str, most: int) -> Mapping[str, Json] | bool:
    config = guard.config
    if isinstance(config, str):
        try:
            config = parse_json(read_inside(root, config, most).content)
        except (EditError, OSError) as error:
            raise GuardBroken(f"the schema file '{config}' cannot be read: {error}") from error
        except ValueError as error:
            raise GuardBroken(f"the schema file '{config}' is {error}") from error
    if not isinstance(config, Mapping | bool):
        raise GuardBroken("a schema must be a JSON object, true or false")
    return config


def schema_flaw(schema: Json) -> Flaw | None:
    """Why nothing can ever be judged by a schema; None if it is right."""
    try:
        _Linear.check_schema(schema, format_checker=None)  # patterns are looked at below
        found = list(parts(schema))
        return _mixture_flaw(schema) or _patterns_flaw(found) or _references_flaw(schema, found)
    except SchemaError as error:
        return _in_words(error)
    except RecursionError:
        return Flaw("the schema is nested too deeply")


def _in_words(error: SchemaError) -> Flaw:
    path = tuple(error.absolute_path)
    key = next((item for item in reversed(path) if isinstance(item, str)), "schema")
    what = f"'{key}'" if not path or isinstance(path[-1], str) else f"an item of '{key}'"
    value = _json(error.instance)
    hint = ""
    if key == "type" and error.validator != "uniqueItems":
        message, hint = f"{what} is {value}, which is no type", f"one of {', '.join(TYPES)}"
    elif error.validator == "type":
        wanted = error.validator_value
        kinds = " or ".join(wanted) if isinstance(wanted, list) else str(wanted)
        message = f"{what} must be of type {kinds}, not {value}"
    else:
        message = f"{what} may not be {value}"
    return Flaw(f"the schema is no schema: {message}", path, hint)


def _json(value: object) -> str:
    most = 60
    text = json.dumps(value, ensure_ascii=False, default=str).replace('"', "'")
    return text if len(text) <= most else text[: most - 1] + "…"


def _patterns_flaw(found: Sequence[Placed]) -> Flaw | None:
    for path, part in found:
        pattern, named = part.get("pattern"), part.get("patternProperties")
        flaw = pattern_flaw(pattern, (*path, "pattern")) if isinstance(pattern, str) else None
        for key in named if isinstance(named, Mapping) and not flaw else ():
            wrong = pattern_flaw(key, (*path, "patternProperties", key))
            flaw = flaw or (replace(wrong, is_key=True) if wrong else None)
        if flaw is not None:
            return flaw
    return None


def _mixture_flaw(schema: Json) -> Flaw | None:
    """The library searches these two together with an engine of its own."""
    if _has_key(schema, "patternProperties") and _has_key(schema, "unevaluatedProperties"):
        return Flaw("a schema may not have both 'patternProperties' and 'unevaluatedProperties'")
    return None


def _has_key(value: Json, key: str) -> bool:
    if isinstance(value, Mapping):
        return key in value or any(_has_key(item, key) for item in value.values())
    return isinstance(value, list) and any(_has_key(item, key) for item in value)


def _references_flaw(schema: Json, found: Sequence[Placed]) -> Flaw | None:
    """Nothing is ever fetched: what a schema refers to is in it, or is a draft of JSON Schema."""
    referring = [(path, part["$ref"]) for path, part in found if "$ref" in part]
    if not referring or any("$id" in part for path, part in found if path):
        return None  # a part with an address of its own: only the library follows those
    root = SPECIFICATIONS.resolver_with_root(DRAFT202012.create_resource(schema))
    for path, reference in referring:
        try:
            root.lookup(str(reference))
        except (Unresolvable, ValueError):
            message = f"the schema refers to '{reference}', which is not in it"
            return Flaw(message, (*path, "$ref"))
        if _comes_back(root, str(reference)):
            return Flaw(ENDLESS, (*path, "$ref"), _BELOW)
    return None


def _comes_back(root: _Resolver, reference: str) -> bool:
    """Whether one reference leads to the next and so back, without ever saying anything."""
    seen: set[str] = set()
    while reference not in seen:
        seen.add(reference)
        part = root.lookup(reference).contents
        if not isinstance(part, Mapping) or not isinstance(part.get("$ref"), str):
            return False
        reference = str(part["$ref"])
    return True


def is_deep(value: Json) -> bool:
    """Whether a value has so many levels that it, and not its schema, has no end."""
    level: list[Json] = [value]
    for _ in range(_DEEP):
        level = [
            inner
            for item in level
            if isinstance(item, list | Mapping)
            for inner in (item.values() if isinstance(item, Mapping) else item)
        ]
    return bool(level)


def _short(error: ValidationError) -> str:
    limit = 500
    return error.message if len(error.message) <= limit else f"{error.message[:limit]}…"


class _Resolved(Protocol):
    """What a reference leads to."""

    @property
    def contents(self) -> object:
        """That part of the schema."""


class _Resolver(Protocol):
    """Who follows references."""

    def lookup(self, ref: str) -> _Resolved:
        """What one leads to; raises Unresolvable."""


class _Descends(Protocol):
    """What a keyword needs of the validator at work."""

    def descend(
        self, instance: object, schema: object, *, path: str, schema_path: str | None = None
    ) -> Iterator[ValidationError]:
        """The errors of a part of the instance under a part of the schema."""


Keyword = Callable[[_Descends, Any, object, Mapping[str, Json]], Iterable[ValidationError] | None]


def _counted(keyword: Keyword) -> Keyword:
    """The same keyword, which counts how often it is asked: references can double at every step."""

    def counting(
        validator: _Descends, value: object, instance: object, schema: Mapping[str, Json]
    ) -> Iterable[ValidationError] | None:
        _spend(1 + (len(value) if isinstance(value, list) else 0))
        return keyword(validator, value, instance, schema)

    return counting


def _spend(asked: int) -> None:
    """HeavyError if more was asked than is quick."""
    left = _left.get()
    if left is not None:
        left[0] -= asked
        if left[0] < 0:
            raise HeavyError


def _search(pattern: str, text: str) -> int | None:
    _spend(int(weight(pattern, text) * _QUICK))
    return search(pattern, text)


def _is_odd(schema: Json) -> bool:
    """Whether a schema has a keyword with which the library goes through it uncounted."""
    if isinstance(schema, Mapping):
        return not _UNCOUNTED.isdisjoint(schema) or any(map(_is_odd, schema.values()))
    return isinstance(schema, list) and any(map(_is_odd, schema))


# The keywords whose own implementation would search with a backtracking engine. Their signature is
# that of the library.


def _pattern(
    _: _Descends, pattern: str, instance: object, _schema: Mapping[str, Json]
) -> Iterator[ValidationError]:
    if isinstance(instance, str) and _search(pattern, instance) is None:
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


def _pattern_properties(
    validator: _Descends,
    patterns: Mapping[str, Mapping[str, Json]],
    instance: object,
    _schema: Mapping[str, Json],
) -> Iterator[ValidationError]:
    if not isinstance(instance, Mapping):
        return
    for pattern, part in patterns.items():
        for key, value in instance.items():
            if _search(pattern, key) is not None:
                yield from validator.descend(value, part, path=key, schema_path=pattern)


def _additional_properties(
    validator: _Descends,
    allowed: Mapping[str, Json] | bool,
    instance: object,
    schema: Mapping[str, Json],
) -> Iterator[ValidationError]:
    if not isinstance(instance, Mapping):
        return
    known, patterns = schema.get("properties"), schema.get("patternProperties")
    for key, value in instance.items():
        if isinstance(known, Mapping) and key in known:
            continue
        if isinstance(patterns, Mapping) and any(_search(p, key) is not None for p in patterns):
            continue
        if allowed is False:
            yield ValidationError(f"the key {json.dumps(key)} is not allowed")
        elif isinstance(allowed, Mapping):
            yield from validator.descend(value, allowed, path=key)


def _unique_items(
    _: _Descends, wanted: bool, instance: object, _schema: Mapping[str, Json]
) -> Iterator[ValidationError]:
    """The library compares each with each."""
    if not wanted or not isinstance(instance, list):
        return
    _spend(len(instance) // 10)
    if len({_alike(item) for item in instance}) < len(instance):
        yield ValidationError(f"{instance!r} has non-unique elements")


def _alike(value: object) -> Hashable:
    """Something that is equal for equal values of JSON: 1 is 1.0, and neither is true.

    Numbers as texts: whoever writes them could choose such as have one hash.
    """
    if isinstance(value, Mapping):
        return dict, frozenset((key, _alike(item)) for key, item in value.items())
    if isinstance(value, list):
        return list, tuple(_alike(item) for item in value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return (int, repr(value)) if isinstance(value, int | float) else (str, value)


_Linear = extend(  # type: ignore[no-untyped-call]  # the stubs leave it open
    Draft202012Validator,
    {
        name: _counted(keyword)
        for name, keyword in {
            **Draft202012Validator.VALIDATORS,
            "pattern": _pattern,
            "patternProperties": _pattern_properties,
            "additionalProperties": _additional_properties,
            "uniqueItems": _unique_items,
        }.items()
    },
)
