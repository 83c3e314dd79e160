"""The `cites` guard: every quote of the artifact is found in its source."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress

from holdfast.errors import EditError, GuardBroken
from holdfast.guards.candidate import accept, json_of, name_of, parse_json, reject
from holdfast.guards.quotes import Source, missing, nearest, plain
from holdfast.model.artifact import Verdict
from holdfast.model.digest import Json
from holdfast.model.plan import Guard, StepId
from holdfast.ports import Candidate, Job
from holdfast.process.inside import read_inside

_WITH = "with."
_MOST_SHOWN = 5
_LONGEST = 400  # characters of a quote that are shown

Find = Callable[[str, str], list[str]]


class CitesGuard:
    """Quotes stand under `field` of every item of `each`; `in` names a need, a value, or files.

    `find` gives the files of a directory that match a glob. An artifact that is JSON may be quoted as it is,
    or by any text in it. It is looked for in a thread, so that long sources keep nobody waiting.
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
        contents = self._contents(guard, str(config["in"]), job)
        over = threading.Event()
        try:
            flaw = await asyncio.to_thread(_flaw, contents, quotes, over)
        finally:  # whoever waits no longer needs no answer
            over.set()
        return reject(guard, flaw) if flaw else accept(guard)

    def _contents(self, guard: Guard, name: str, job: Job) -> list[tuple[str, str | bytes]]:
        """What may be quoted, by name: texts, and contents that nobody looked into."""
        if name.startswith(_WITH):
            value = job.step.values.get(name.removeprefix(_WITH))
            return [(name, text) for text in _texts(value)]
        given = job.given.get(StepId(name))
        if given is not None:
            if given.form != "tree":
                return [(name, given.content())]
            return [(path, read()) for path, _, read in given.files]
        try:
            paths = self._find(job.folder, name)
            found: list[tuple[str, str | bytes]] = [
                (path, read_inside(job.folder, path, job.walls.artifact).content) for path in paths
            ]
        except (EditError, OSError) as error:
            raise GuardBroken(f"'{name_of(guard)}' cannot look in its source: {error}") from error
        if not found:
            raise GuardBroken(f"'{name_of(guard)}' finds nothing to look in: '{name}'")
        return found


def _flaw(
    contents: Sequence[tuple[str, str | bytes]], quotes: Sequence[str], over: threading.Event
) -> str:
    """What to say about quotes that are not there; nothing if all are."""
    sources = [source for item in contents for source in _readings(*item)]
    lacking = missing(sources, quotes, over.is_set)
    return _feedback(lacking, len(quotes), sources, over.is_set) if lacking else ""


def _readings(name: str, content: str | bytes) -> list[Source]:
    """A content as text, and the texts in it if it is JSON."""
    if isinstance(content, str):
        return [Source(name, content)]
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


def _feedback(
    lacking: Sequence[str], total: int, sources: Sequence[Source], over: Callable[[], bool]
) -> str:
    verb = "is" if len(lacking) == 1 else "are"
    noun = "quote" if total == 1 else "quotes"
    lines = [f"{len(lacking)} of {total} {noun} {verb} not in the source"]
    for quote in lacking[:_MOST_SHOWN]:
        lines.append(f'said    "{_short(quote)}"')
        near = None if over() else nearest(sources, quote)
        if near is None:
            lines.append("nearest nothing like it")
        else:
            lines.append(f'nearest "{_short(near.fragment)}" ({near.place})')
    if len(lacking) > _MOST_SHOWN:
        lines.append(f"and {len(lacking) - _MOST_SHOWN} more")
    return "\n".join(lines)


def _short(text: str) -> str:
    words = plain(text)
    return words if len(words) <= _LONGEST else f"{words[: _LONGEST - 1]}…"
