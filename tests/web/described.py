"""The page as an OpenAPI description, made from its own table of routes: a new route is in it by itself.

What an operation takes is found where its module reads it; the values that are known of a store stand
as enumerations, so that what fits them reaches deep, and what does not is everything else.
"""

import inspect
import pkgutil
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple

from starlette.routing import BaseRoute, Mount, Route

import holdfast.web
from holdfast.web import door, knock
from holdfast.web.server import routes

FILES = ("page.css", "page.js", "htmx.min.js")
_QUERY = re.compile(r'query(?:_params)?\.get(?:list)?\("([\w-]+)"')
_BODY = re.compile(r'body\.text\([\'"]([\w-]+)[\'"]\)')
_HEADER = re.compile(r'headers\.get\("([\w-]+)"')
_PATH = re.compile(r"{(\w+)}")
_NUMBERS = frozenset({"page", "from", "to", "at", "end", "attempt", "depth", "up", "down", "after"})
Known = Mapping[str, Sequence[str]]


class Operation(NamedTuple):
    """One method of one path."""

    path: str
    method: str
    query: tuple[str, ...] = ()
    body: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.method} {self.path}"


def operations() -> list[Operation]:
    """Everything that the page answers: its table, its files, and what its door itself answers."""
    found = [one for route in routes() for one in _of(route)]
    own = [
        Operation(knock.OPEN, "GET", ("code",)),
        Operation(knock.CODE, "POST"),
        Operation(door.TOKEN, "GET"),
    ]
    return [*found, *own]


def _of(route: BaseRoute) -> Iterator[Operation]:
    if isinstance(route, Mount):
        yield Operation(f"{route.path}/{{file}}", "GET")
        return
    assert isinstance(route, Route), f"a kind of route that nothing here knows: {route}"
    source = "\n".join(map(inspect.getsource, _modules(route)))
    for method in sorted(route.methods or ()):
        if method != "HEAD":  # tried at every operation
            query, body = (tuple(sorted(set(one.findall(source)))) for one in (_QUERY, _BODY))
            takes_body = method == "POST"
            headers = tuple(sorted(set(_HEADER.findall(source))))
            yield Operation(
                route.path, method, () if takes_body else query, body if takes_body else (), headers
            )


def _modules(route: Route) -> list[ModuleType]:
    """Where a route is from, and what reads its address with it."""
    found = []
    for info in pkgutil.iter_modules(holdfast.web.__path__):
        module = import_module(f"holdfast.web.{info.name}")
        if route in getattr(module, "ROUTES", ()) or info.name == "screens":
            found.append(module)
    assert len(found) > 1, f"no module has the route {route.path}"
    if route.path.startswith("/runs/{run}"):
        found.append(import_module("holdfast.web.run"))
    return found


def addresses(method: str, **filled: str) -> tuple[str, ...]:
    """The paths of all operations of a method, with something in the place of each name."""
    return tuple(one.path.format_map(filled) for one in operations() if one.method == method)


def description(known: Known) -> dict[str, Any]:
    """The same as OpenAPI; `known` has values that a store gives sense to."""
    paths: dict[str, dict[str, Any]] = {}
    for one in operations():
        parameters = [
            *(_parameter(name, "path", known) for name in _PATH.findall(one.path)),
            *(_parameter(name, "query", known) for name in one.query),
            *(_parameter(name, "header", known) for name in one.headers),
        ]
        operation: dict[str, Any] = {
            "operationId": one.name,
            "parameters": parameters,
            "responses": {"default": {"description": "a page, or why there is none"}},
        }
        if one.method == "POST":
            operation["requestBody"] = {
                "required": True,
                "content": {"application/json": {"schema": _object(one.body, known)}},
            }
        paths.setdefault(one.path, {})[one.method.lower()] = operation
    about = {"title": "the page", "version": "1"}
    return {"openapi": "3.1.0", "info": about, "paths": paths}


def _parameter(name: str, place: str, known: Known) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string", "enum": list(known.get(name, ("", "1", "x")))}
    if name in _NUMBERS and place == "query":
        schema = {"type": "integer", "minimum": 0}
    return {"name": name, "in": place, "required": place == "path", "schema": schema}


def _object(names: Sequence[str], known: Known) -> dict[str, Any]:
    properties = {name: {"enum": list(known.get(name, ("", "x")))} for name in names}
    return {
        "type": "object",
        "properties": properties,
        "required": list(names),
        "additionalProperties": False,
    }
