"""The index of a code base: brought up to date, and asked."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import apsw

from holdfast.codebase.database import Database, Value
from holdfast.codebase.facts import File, Import, Symbol
from holdfast.codebase.grammars import grammar_of, missing
from holdfast.codebase.history import learn
from holdfast.codebase.languages import PARSED
from holdfast.codebase.parsing import ENDLESS, beginning, imports_in, symbols_in
from holdfast.codebase.sources import Commit, Directory, Entry, Read, Source
from holdfast.codebase.writing import Row, forget, keep
from holdfast.errors import StoreError

_PART_FILES, _PART_BYTES = 2_000, 32 << 20  # of one transaction
_CONTENTS = " FROM file JOIN content ON content.id = content "


@dataclass(frozen=True, slots=True)
class Updated:
    """What an update came to: counts, and what is known only by name or not whole, with the reason."""

    files: int
    read: int
    parsed: int
    removed: int
    commits: int
    left_out: tuple[tuple[str, str], ...]
    unparsed: tuple[str, ...]  # languages whose grammar is not installed


class Index:
    """The index of one code base. It is a cache: whoever deletes its file loses nothing but time."""

    def __init__(
        self,
        root: str,
        path: str | None = None,
        *,
        source: Source | None = None,
        history: tuple[str, str] | None = None,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Index a directory in the file `path`, or in memory without one."""
        self.root = os.path.realpath(root)
        self.source = source or Directory(self.root)
        self._history = history or (self.root, "HEAD")
        self.database = Database(path or ":memory:", say)

    @classmethod
    def of_commit(cls, folder: str, commit: str, path: str | None = None) -> Index:
        """The index of a commit of a repository, which may be bare; nothing later is known."""
        return cls(folder, path, source=Commit(folder, commit), history=(folder, commit))

    def move_to(self, commit: str) -> None:
        """Let an index of a commit be one of another."""
        folder = self._history[0]
        self.source, self._history = Commit(folder, commit), (folder, commit)

    def close(self) -> None:
        """Close the file."""
        self.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # bring up to date

    def update(self) -> Updated:
        """Read what changed since the last time; a damaged file is made again."""
        try:
            with self.database.alone():
                entries, left_out = self.source.entries()
                try:
                    return self._update(entries, left_out)
                except (apsw.CorruptError, apsw.NotADBError, apsw.SQLError, UnicodeDecodeError):
                    self.database.renew()
                    return self._update(entries, left_out)
        except apsw.Error as error:
            raise StoreError(f"the index '{self.database.path}' cannot be used: {error}") from error

    def _update(self, entries: list[Entry], others: list[tuple[str, str]]) -> Updated:
        self._forget_unparsed()
        known = self._known()
        there = {entry.path for entry in entries}
        gone = [row.number for path, row in known.items() if path not in there]
        fresh = [entry for entry in entries if not _is_same(entry, known.get(entry.path))]
        read = parsed = 0
        for part in _parts(self.source.read(fresh)):
            with self.database.writing() as cursor:
                read += len(part)
                parsed += keep(cursor, part, known)
        if gone or read:
            with self.database.writing() as cursor:
                forget(cursor, gone)
        commits = learn(self.database, *self._history)
        states = self.database.rows(f"SELECT path, state {_CONTENTS} WHERE state != ''")
        left_out = others + [(os.fsdecode(_bytes(path)), _WHY[str(why)]) for path, why in states]
        lost = {str(one) for (one,) in self.database.rows("SELECT DISTINCT language FROM content")}
        return Updated(
            files=len(entries),
            read=read,
            parsed=parsed,
            removed=len(gone),
            commits=commits,
            left_out=tuple(sorted(left_out)),
            unparsed=tuple(name for name in missing() if name in lost),
        )

    def _forget_unparsed(self) -> None:
        """Let go of files that could be parsed now: grammars were installed since."""
        unparsed = f"{_CONTENTS} WHERE NOT parsed AND state = '' AND language"
        for (language,) in self.database.rows(f"SELECT DISTINCT language {unparsed} != ''"):
            if language in PARSED and grammar_of(str(language)) is not None:
                found = self.database.rows(f"SELECT file.id {unparsed} = ?", (language,))
                with self.database.writing() as cursor:
                    forget(cursor, [_int(number) for (number,) in found])

    def _known(self) -> dict[str, Row]:
        found = self.database.rows(f"SELECT path, file.id, stamp, key {_CONTENTS}")
        return {
            os.fsdecode(_bytes(path)): Row(_int(number), str(stamp), str(key))
            for path, number, stamp, key in found
        }

    # ask

    def files(self) -> list[File]:
        """All files, sorted by their paths."""
        found = self.database.rows(
            "SELECT path, language, key, size, lines, parsed, flaws, state"
            f"{_CONTENTS} ORDER BY path"
        )
        return [
            File(
                os.fsdecode(_bytes(path)),
                str(language),
                str(key),
                _int(size),
                _int(lines),
                bool(parsed),
                _int(flaws),
                str(state),
            )
            for path, language, key, size, lines, parsed, flaws, state in found
        ]

    def entries_of(self, paths: Sequence[str]) -> list[Entry]:
        """Files to be read from the source again."""
        keys = {file.path: file.key for file in self.files()}
        return [Entry(path, "", keys[path]) for path in paths if path in keys]

    def symbols(self, beginning_with: str = "") -> list[tuple[str, Symbol]]:
        """Symbols with their files, in the order of paths and lines.

        Only of files that have a name which begins so; letters of ASCII count the same, small or capital.
        """
        found = self.database.rows(
            f"SELECT path, symbols {_CONTENTS} WHERE instr(lower(symbols), lower(?)) ORDER BY path",
            (beginning(beginning_with) if beginning_with else "",),
        )
        return [
            (path, symbol)
            for name, text in found
            for path in [os.fsdecode(_bytes(name))]
            for symbol in symbols_in(str(text))
        ]

    def imports(self) -> list[tuple[str, Import]]:
        """All imports with the files that have them."""
        found = self.database.rows(f"SELECT path, imports {_CONTENTS} ORDER BY path")
        return [
            (path, one)
            for name, text in found
            for path in [os.fsdecode(_bytes(name))]
            for one in imports_in(str(text))
        ]


_WHY = {
    "binary": "no text",
    "large": "too large: only its name is known",
    "undecodable": "no UTF-8: not parsed",
    "unreadable": "cannot be read",
    ENDLESS: "takes too long or too much memory: not parsed",
}


def _is_same(entry: Entry, row: Row | None) -> bool:
    return row is not None and bool(entry.stamp) and row.stamp == entry.stamp


def _parts(read: Iterator[Read]) -> Iterator[list[Read]]:
    """Pieces of work, each small enough for one transaction."""
    part: list[Read] = []
    size = 0
    for one in read:
        part.append(one)
        size += len(one.content or b"")
        if len(part) >= _PART_FILES or size >= _PART_BYTES:
            yield part
            part, size = [], 0
    if part:
        yield part


def _int(value: Value) -> int:
    assert isinstance(value, int)
    return value


def _bytes(value: Value) -> bytes:
    assert isinstance(value, bytes)
    return value
