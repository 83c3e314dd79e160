"""The `cites` guard: every quote of the artifact is found in its source."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress

from holdfast.errors import GuardBroken
from holdfast.guards.candidate import accept, json_of, name_of, parse_json, reject
from holdfast.guards.quotes import Source, nearest, plain
from holdfast.model.artifact import Verdict
from holdfast.model.digest import Json
from holdfast.model.plan import Guard, StepId
from holdfast.ports import Candidate, Job

_WITH = "with."
_MOST_SHOWN = 5
_LONGEST = 400  # characters of a quote that are shown

Find = Callable[[str, str], list[str]]


class CitesGuard:
    """Quotes stand under `field` of every item of `each`; `in` names a need, a value, or files.

    `find` gives the files of a directory that match a glob. An artifact that is JSON may be quoted as it is,
    or by any text in it.
    """

    def __init__(self, find: Find) -> None:
        self._find = find

    def identity(self, guard: Guard, root: str) -> Mapping[str, Json]:
        """Needs, values and inputs are in the key already."""
        del guard, root
        return {}

    async def judge(self, guard: Guard, candidate: Candidate, job: Job) -> Verdict:
        config = guard.config if isinstance(guard.config, Mapping) else {}
        try:
            artifact = json_of(candidate)
            items = _items(artifact, str(config.get("each", "")))
        except ValueError as error:
            return reject(guard, str(error))
        try:
            quotes = [quote for item in items for quote in _quotes(item, str(config["field"]))]
        except ValueError as error:
            return reject(guard, str(error))
        sources = self._sources(guard, str(config["in"]), job)
        missing = [quote for quote in quotes if not any(source.holds(quote) for source in sources)]
        if not missing:
            return accept(guard)
        return reject(guard, _feedback(missing, len(quotes), sources))

    def _sources(self, guard: Guard, name: str, job: Job) -> list[Source]:
        if name.startswith(_WITH):
            value = job.step.values.get(name.removeprefix(_WITH))
            return [Source(name, text) for text in _texts(value)]
        given = job.given.get(StepId(name))
        if given is not None:
            if given.form != "tree":
                return _readings(name, given.content())
            return [source for path, _, read in given.files for source in _readings(path, read())]
        paths = self._find(job.folder, name)
        if not paths:
            raise GuardBroken(f"'{name_of(guard)}' finds nothing to look in: '{name}'")
        found = []
        for path in paths:
            with open(os.path.join(job.folder, path), "rb") as file:
                found += _readings(path, file.read())
        return found


def _readings(name: str, content: bytes) -> list[Source]:
    """A content as text, and the texts in it if it is JSON."""
    text = content.decode("utf-8", "replace")
    found = [Source(name, text)]
    if text[:1] in {"{", "[", '"'}:
        with suppress(ValueError):
            found += [Source(name, part) for part in _texts(parse_json(content))]
    return found


def _texts(value: Json) -> Iterator[str]:
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, Mapping):
            pending += item.values()
        elif isinstance(item, list | tuple):
            pending += item


def _items(artifact: Json, path: str) -> list[Json]:
    """What a path of keys leads to; lists on the way stand for each of their items."""
    found: list[Json] = [artifact]
    for key in path.split(".") if path else ():
        inner: list[Json] = []
        for item in _spread(found):
            if not isinstance(item, Mapping) or key not in item:
                raise ValueError(f"the artifact has no '{key}' of '{path}'")
            inner.append(item[key])
        found = inner
    return _spread(found)


def _spread(items: Sequence[Json]) -> list[Json]:
    spread: list[Json] = []
    for item in items:
        spread += item if isinstance(item, list | tuple) else [item]
    return spread


def _quotes(item: Json, field: str) -> Iterator[str]:
    """The quotes of one item: itself, or what stands under a key of it."""
    value = item.get(field) if isinstance(item, Mapping) else item
    for quote in value if isinstance(value, list | tuple) else [value]:
        if not isinstance(quote, str):
            raise ValueError(f"there is no '{field}' with text in {str(item)[:_LONGEST]}")  # noqa: TRY004 - the artifact's fault
        if not quote.strip():
            raise ValueError(f"a '{field}' is empty")
        yield quote


def _feedback(missing: Sequence[str], total: int, sources: Sequence[Source]) -> str:
    verb = "is" if len(missing) == 1 else "are"
    noun = "quote" if total == 1 else "quotes"
    lines = [f"{len(missing)} of {total} {noun} {verb} not in the source"]
    for quote in missing[:_MOST_SHOWN]:
        lines.append(f'said    "{_short(quote)}"')
        near = nearest(sources, quote)
        if near is None:
            lines.append("nearest nothing like it")
        else:
            lines.append(f'nearest "{_short(near.fragment)}" ({near.place})')
    if len(missing) > _MOST_SHOWN:
        lines.append(f"and {len(missing) - _MOST_SHOWN} more")
    return "\n".join(lines)


def _short(text: str) -> str:
    words = plain(text)
    return words if len(words) <= _LONGEST else f"{words[: _LONGEST - 1]}…"
