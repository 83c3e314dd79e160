"""What the world adds to a step's key: input files, tools, environment, source.

Files are hashed once per content: a cache of (size, mtime, ctime, inode) saves the reading of a file
that has not been touched. A file touched within the last moments is never cached, because a clock tick
later it could change again without its stamps telling.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from typing import NamedTuple, cast

from holdfast.engine.walk import Instead, matching
from holdfast.errors import EditError
from holdfast.model.artifact import Entry
from holdfast.model.digest import Digest, Json, digest_bytes
from holdfast.model.plan import IN_REF, Plan, Step, StepId
from holdfast.ports import Identifies, IgnoreRules, Stat, Store
from holdfast.process.inside import open_inside
from holdfast.process.room import is_beneath, place_of, shell_words

Page = Callable[[Step], Digest | None]
SETTLED_NS = 100_000_000
_LOOKED_INTO = frozenset({"files", "unresolved"})


class NoInputError(EditError):
    """A glob matches nothing."""


class Seen(NamedTuple):
    """The parts of a key that were observed, and the names of those that could not be."""

    parts: Mapping[str, Json]
    unsure: tuple[str, ...]


class Survey:
    """Observes the project directory for one engine."""

    def __init__(
        self,
        root: str,
        store: Store,
        executor: Identifies,
        plan: Plan,
        ignores: Callable[[Iterable[str]], IgnoreRules],
    ) -> None:
        self.root = root
        self._ignores = ignores
        self._plan = plan
        self._makers = {path: step.id for step in plan.steps.values() for path in step.produces}
        self._store = store
        self._executor = executor
        self._digests: dict[str, tuple[Stat, Digest, bool]] = {}
        self._fresh: dict[str, tuple[Stat, Digest, bool]] = {}
        self.tools: dict[tuple[str, ...], str | None] = {}
        self._said: dict[str, bytes] = {}
        self._page: Page = lambda _: None
        self.laid: Mapping[str, Entry | None] = {}
        self.instead: Instead = {}

    def heed(self, page: Page) -> None:
        """Count what a step is told of the work before it, where the plan wants that in its key."""
        self._page = page

    def expecting(self, laid: Mapping[str, Entry | None]) -> Survey:
        """The same, but commands find these files as if they lay there already, or were gone."""
        other = copy(self)
        other.laid = laid
        return other

    def under(self, rules: Instead) -> Survey:
        """The same, but globs match what they would under these contents of `.gitignore` files."""
        other = copy(self)
        other.instead = rules
        return other

    def grow(self, plan: Plan) -> None:
        """The plan has further steps."""
        self._plan = plan
        self._makers = {path: step.id for step in plan.steps.values() for path in step.produces}

    def know(self, tools: Mapping[tuple[str, ...], bytes | None]) -> None:
        """Take note of what tools said about their versions; None is one that could not be asked."""
        for argv, words in tools.items():
            self.tools[argv] = None if words is None else digest_bytes(words)
            if words is not None:
                self._said[digest_bytes(words)] = words

    def said(self, digest: str) -> bytes | None:
        """What a tool said of its version, under the digest that stands in keys."""
        return self._said.get(digest)

    def observe(self, step: Step, *, lenient: bool = False) -> Seen:
        """The observed parts of a step's key as they are now.

        NoInputError if a glob matches nothing, unless `lenient`.
        """
        made = self._executor.identity(step, self.root)
        if step.context == IN_REF and (page := self._page(step)) is not None:
            made = {**made, "context": page}
        if self.laid and step.uses == "shell":
            made = self._as_laid(step, made)
        if not (step.inputs or step.env or step.tool_versions or made.keys() & _LOOKED_INTO):
            return Seen(made, ())
        parts: dict[str, Json] = dict(made)
        unsure = [str(name) for name in _listed(parts.get("unresolved"))]
        if step.inputs:
            parts["inputs"] = self.inputs(step, lenient=lenient)
        if files := cast("Mapping[str, Json]", parts.get("files", {})):
            parts["files"] = self._named_only(step, files, parts.get("inputs"))
        if step.env:
            parts["env"] = {name: env_digest(name) for name in step.env}
        if step.tool_versions:
            tools = {name: self.tools.get(argv) for name, argv in step.tool_versions.items()}
            parts["tools"] = dict(tools)
            unsure += [f"version of '{name}'" for name, found in tools.items() if found is None]
        return Seen(parts, tuple(unsure))

    def _as_laid(self, step: Step, made: Mapping[str, Json]) -> Mapping[str, Json]:
        """The key of a command when the files that are expected lie there."""
        top = os.path.realpath(self.root)
        words = (word for word in step.run or shell_words(step.shell) if "\0" not in word)
        named = {os.path.relpath(place_of(top, word), top) for word in words} & self.laid.keys()
        found = dict(cast("Mapping[str, Json]", made.get("files", {})))
        for path in named:
            found.pop(path, None)
            entry = self.laid[path]
            if entry is not None and not is_beneath(path, step.produces):
                found[path] = f"{entry.digest}+x" if entry.executable else entry.digest
        others = {name: part for name, part in made.items() if name != "files"}
        return {**others, "files": found} if found else others

    def _named_only(self, step: Step, files: Mapping[str, Json], inputs: Json) -> dict[str, Json]:
        """Files that a command names, without declared inputs and what needed steps make."""
        declared = inputs if isinstance(inputs, Mapping) else {}
        kept = {}
        for path, found in files.items():
            maker = self._maker(path)
            if path not in declared and (maker is None or not self._is_above(maker, step)):
                kept[path] = found
        return kept

    def _maker(self, path: str) -> StepId | None:
        parts = path.split("/")
        above = ("/".join(parts[:count]) for count in range(len(parts), 0, -1))
        return next((self._makers[place] for place in above if place in self._makers), None)

    def _is_above(self, maker: StepId, step: Step) -> bool:
        pending, reached = list(step.data_needs), set(step.data_needs)
        while pending:
            need = pending.pop()
            if need == maker:
                return True
            fresh = set(self._plan.steps[need].data_needs) - reached
            reached |= fresh
            pending += fresh
        return False

    def inputs(self, step: Step, *, lenient: bool = False) -> dict[str, Json]:
        """Digest, executable bit and link target of every file the step's globs match."""
        found: dict[str, Json] = {}
        for item in step.inputs:
            paths = matching(self.root, item.glob, self._ignores, self.instead)
            if not paths and not item.optional and not lenient:
                raise NoInputError(
                    f"no file matches the input '{item.glob}' of '{step.id}'",
                    hint="correct the glob, or say {glob: …, optional: true}",
                )
            for path in paths:
                found[path] = self._file(path)
        return found

    def _file(self, path: str) -> list[Json]:
        full = os.path.join(self.root, path)
        target = os.readlink(full) if os.path.islink(full) else None
        digest, executable = self.digest(path)
        return [digest, executable] if target is None else [digest, executable, target]

    def digest(self, path: str) -> tuple[Digest | None, bool]:
        """Digest of a project file now; None if it is not there. Links are followed inside of the project."""
        known = self._digests.get(path) or self._store.stats([path]).get(path)
        if known is not None and known[0] == _lying(os.path.join(self.root, path)):
            self._digests[path] = known
            return known[1], known[2]
        try:
            with open_inside(self.root, path) as file:
                stat = _stat(os.fstat(file.fileno()))
                digest = Digest(hashlib.file_digest(file, "sha256").hexdigest())
                after = os.fstat(file.fileno())
        except (FileNotFoundError, NotADirectoryError):
            return None, False
        except IsADirectoryError as error:
            raise EditError(f"'{path}' is not a regular file") from error
        executable = bool(after.st_mode & 0o100)
        settled = time.time_ns() - max(stat.mtime_ns, stat.ctime_ns) > SETTLED_NS
        if settled and _stat(after) == stat:
            self._digests[path] = self._fresh[path] = (stat, digest, executable)
        return digest, executable

    def take_fresh(self) -> list[tuple[str, Stat, Digest, bool]]:
        """Digests learned since the last call, for the store's cache."""
        items = [(path, *known) for path, known in self._fresh.items()]
        self._fresh.clear()
        return items


def _listed(value: Json) -> Iterable[Json]:
    return value if isinstance(value, list | tuple) else ()


def env_digest(name: str) -> str | None:
    """Digest of an environment variable's value; None if it is not set."""
    value = os.environ.get(name)
    return None if value is None else digest_bytes(value.encode("utf-8", "surrogateescape"))


def _lying(full: str) -> Stat | None:
    """The stamp of what lies at a path itself; None if nothing does."""
    try:
        return _stat(os.lstat(full))
    except OSError:
        return None


def _stat(status: os.stat_result) -> Stat:
    return Stat(status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
