"""The person's own word on sandboxes: `[sandbox]` of the personal file, and two variables.

HOLDFAST_NETWORK (0 or 1) comes before the file, the places of HOLDFAST_WRITABLE add to it. A project has no
say here.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import fields

from holdfast.config.settings import personal_file, section, table
from holdfast.errors import UsageError
from holdfast.model.size import bytes_of
from holdfast.process.limits import Limits
from holdfast.process.terms import Terms

_LISTS = ("writable", "readable")
_COUNTS = ("processes", "open_files")
_SIZES = ("memory", "file_size", "scratch", "spare")


def read_terms(env: Mapping[str, str] = os.environ) -> Terms:
    """On which terms commands run; UsageError names the file and the key that is wrong."""
    place = personal_file(env)
    return terms_in(table(place), place, env)


def terms_in(own: Mapping[str, object], place: str, env: Mapping[str, str]) -> Terms:
    given = section(own, "sandbox", {"network", *_LISTS, *_COUNTS, *_SIZES}, place)
    network = given.get("network", False)
    if not isinstance(network, bool):
        raise UsageError(f"'sandbox.network' in '{place}' must be true or false")
    said = env.get("HOLDFAST_NETWORK", "")
    if said not in {"", "0", "1"}:
        raise UsageError("HOLDFAST_NETWORK must be 0 or 1")
    more = [path for path in env.get("HOLDFAST_WRITABLE", "").split(os.pathsep) if path]
    limits = {field.name: _limit(given, field.name, place) for field in fields(Limits)}
    return Terms(
        network=said == "1" if said else network,
        writable=(*_paths(given, "writable", place), *_checked(more, "HOLDFAST_WRITABLE")),
        readable=_paths(given, "readable", place),
        limits=Limits(**{name: value for name, value in limits.items() if value is not None}),
        hidden=(os.path.dirname(os.path.abspath(place)),),
    )


def _paths(given: Mapping[str, object], name: str, place: str) -> tuple[str, ...]:
    value = given.get(name, [])
    if not isinstance(value, list) or not all(isinstance(path, str) for path in value):
        raise UsageError(f"'sandbox.{name}' in '{place}' must be a list of paths")
    return _checked(value, f"'sandbox.{name}' of '{place}'")


def _checked(given: Iterable[str], where: str) -> tuple[str, ...]:
    paths = tuple(os.path.normpath(os.path.expanduser(path)) for path in given)
    for path in paths:
        if not os.path.isabs(path) or os.path.realpath(path) == "/":
            raise UsageError(
                f"'{path}' in {where} is no place that commands can be given",
                hint="an absolute path, or one that begins with ~/",
            )
    return paths


def _limit(given: Mapping[str, object], name: str, place: str) -> int | None:
    value = given.get(name)
    if value is None:
        return None
    if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
        return value
    size = bytes_of(value) if isinstance(value, str) and name in _SIZES else None
    if not size:
        what = "a size such as '4 GB'" if name in _SIZES else "a whole number from 1"
        raise UsageError(f"'sandbox.{name}' in '{place}' must be {what}")
    return size
