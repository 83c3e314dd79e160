"""What the world adds to a step's key: input files, tools, environment, source.

Files are hashed once per content: a cache of (size, mtime, ctime, inode) saves the reading of a file
that has not been touched. A file touched within the last moments is never cached, because a clock tick
later it could change again without its stamps telling.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from stat import S_ISREG
from typing import NamedTuple, cast

import pathspec

from holdfast.errors import EditError
from holdfast.model.digest import Digest, Json, digest_bytes
from holdfast.model.glob import components, fixed_part, glob_regex, is_plain
from holdfast.model.plan import Input, Plan, Step, StepId
from holdfast.ports import Executor, Stat, Store
from holdfast.process.run import Command, run

NEVER = frozenset({".git", ".holdfast"})
_SETTLED_NS = 100_000_000


class NoInputError(EditError):
    """A glob matches nothing."""


class Seen(NamedTuple):
    """The parts of a key that were observed, and the names of those that could not be."""

    parts: Mapping[str, Json]
    unsure: tuple[str, ...]


class Survey:
    """Observes the project directory for one engine."""

    def __init__(self, root: str, store: Store, executor: Executor, plan: Plan) -> None:
        self._root = root
        self._plan = plan
        self._makers = {path: step.id for step in plan.steps.values() for path in step.produces}
        self._store = store
        self._executor = executor
        self._digests: dict[str, tuple[Stat, Digest, bool]] = {}
        self._fresh: dict[str, tuple[Stat, Digest, bool]] = {}
        self._tools: dict[tuple[str, ...], str | None] = {}

    async def prepare(self) -> None:
        """Ask every tool for its version, once."""
        for step in self._plan.steps.values():
            for argv in step.tool_versions.values():
                if argv not in self._tools:
                    self._tools[argv] = await self._version(argv)

    async def _version(self, argv: tuple[str, ...]) -> str | None:
        env = {"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8"}
        done = await run(Command(argv=argv, cwd=self._root, env=env, timeout=30))
        return digest_bytes(done.stdout) if done.code == 0 else None

    def observe(self, step: Step) -> Seen:
        """The observed parts of a step's key as they are now. NoInputError if a glob matches nothing."""
        parts: dict[str, Json] = dict(self._executor.identity(step, self._root))
        unsure = [str(name) for name in _listed(parts.get("unresolved"))]
        if step.inputs:
            parts["inputs"] = self.inputs(step)
        if files := cast("Mapping[str, Json]", parts.get("files", {})):
            parts["files"] = self._named_only(step, files, parts.get("inputs"))
        if step.env:
            parts["env"] = {name: _env_digest(name) for name in step.env}
        if step.tool_versions:
            tools = {name: self._tools.get(argv) for name, argv in step.tool_versions.items()}
            parts["tools"] = dict(tools)
            unsure += [f"version of '{name}'" for name, found in tools.items() if found is None]
        return Seen(parts, tuple(unsure))

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

    def inputs(self, step: Step) -> dict[str, Json]:
        """Digest, executable bit and link target of every file the step's globs match."""
        found: dict[str, Json] = {}
        for item in step.inputs:
            paths = list(self._matches(item))
            if not paths and not item.optional:
                raise NoInputError(
                    f"no file matches the input '{item.glob}' of '{step.id}'",
                    hint="correct the glob, or say {glob: …, optional: true}",
                )
            for path in paths:
                found[path] = self._file(path)
        return found

    def _matches(self, item: Input) -> Iterator[str]:
        if is_plain(item.glob):
            path = os.path.normpath(item.glob)
            full = os.path.join(self._root, path)
            if os.path.isfile(full) or os.path.islink(full):
                yield path
            elif os.path.isdir(full):
                yield from sorted(_walk(self._root, path))
            return
        matches = glob_regex(item.glob).match
        parts = components(item.glob)
        deep = None if "**" in parts else len(parts)
        for path in sorted(_walk(self._root, "/".join(fixed_part(item.glob)), deep)):
            if matches(path):
                yield path

    def _file(self, path: str) -> list[Json]:
        full = os.path.join(self._root, path)
        target = os.readlink(full) if os.path.islink(full) else None
        digest, executable = self.digest(path)
        return [digest, executable] if target is None else [digest, executable, target]

    def digest(self, path: str) -> tuple[Digest | None, bool]:
        """Digest of a project file now; None if it is not there. Links are followed."""
        full = os.path.join(self._root, path)
        try:
            before = os.stat(full)
            if not S_ISREG(before.st_mode):
                raise EditError(f"'{path}' is not a regular file")
            stat = _stat(before)
            known = self._digests.get(path) or self._store.stats([path]).get(path)
            if known is not None and known[0] == stat:
                self._digests[path] = known
                return known[1], known[2]
            with open(full, "rb") as file:
                digest = Digest(hashlib.file_digest(file, "sha256").hexdigest())
                after = os.fstat(file.fileno())
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            return None, False
        except OSError as error:
            raise EditError(f"cannot read '{path}': {error.strerror}") from error
        executable = bool(after.st_mode & 0o100)
        settled = time.time_ns() - max(stat.mtime_ns, stat.ctime_ns) > _SETTLED_NS
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


def _env_digest(name: str) -> str | None:
    value = os.environ.get(name)
    return None if value is None else digest_bytes(value.encode("utf-8", "surrogateescape"))


def _stat(status: os.stat_result) -> Stat:
    return Stat(status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)


def _walk(root: str, base: str, deep: int | None = None) -> Iterator[str]:
    """Relative paths of files beneath a directory, as `.gitignore` files allow; links are not entered.

    With `deep`, only paths of so many components. Devices, sockets and pipes are no files.
    """
    rules = _rules_above(root, base)
    pending = [(base, rules)]
    while pending:
        place, rules = pending.pop()
        rules = [*rules, *_rules_in(root, place)]
        try:
            entries = list(os.scandir(os.path.join(root, place)))
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise EditError(f"cannot read directory '{place}': {error.strerror}") from error
        inner = deep is None or (place.count("/") + 1 if place else 0) < deep - 1
        for entry in entries:
            path = f"{place}/{entry.name}" if place else entry.name
            if entry.name in NEVER:
                continue
            if entry.is_dir(follow_symlinks=False):
                if inner and not _ignored(rules, path + "/"):
                    pending.append((path, rules))
            elif (entry.is_file() or entry.is_symlink()) and not _ignored(rules, path):
                yield path


_Rules = list[tuple[str, pathspec.GitIgnoreSpec]]


def _rules_above(root: str, base: str) -> _Rules:
    rules: _Rules = []
    place = ""
    for part in base.split("/") if base else []:
        rules += _rules_in(root, place)
        place = f"{place}/{part}" if place else part
    return rules


def _rules_in(root: str, place: str) -> _Rules:
    try:
        with open(
            os.path.join(root, place, ".gitignore"), encoding="utf-8", errors="replace"
        ) as file:
            return [(place, pathspec.GitIgnoreSpec.from_lines(file))]
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return []
    except OSError as error:
        raise EditError(f"cannot read directory '{place}': {error.strerror}") from error


def _ignored(rules: _Rules, path: str) -> bool:
    """The innermost `.gitignore` that says something about a path decides."""
    for place, spec in reversed(rules):
        inside = path[len(place) + 1 :] if place else path
        verdict = spec.check_file(inside).include
        if verdict is not None:
            return verdict
    return False
