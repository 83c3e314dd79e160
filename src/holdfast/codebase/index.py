"""The index of a code base: brought up to date, and asked."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import apsw

from holdfast.codebase.database import Database, Value
from holdfast.codebase.facts import File, Import, Outline, Symbol
from holdfast.codebase.grammars import missing
from holdfast.codebase.history import learn
from holdfast.codebase.languages import language_of
from holdfast.codebase.outline import outline_of
from holdfast.codebase.sources import Commit, Directory, Entry, Read, Source
from holdfast.codebase.words import apart
from holdfast.errors import StoreError

_PART_FILES, _PART_BYTES = 2_000, 32 << 20  # of one transaction
_HEAD = 8_000  # bytes in which a NUL says that a file is no text
_MOST_TEXT = 256 << 10  # bytes of a file whose words are kept
_BOMS = ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))

_SYMBOLS = (
    "SELECT path, name, kind, line, end, scope, signature FROM symbol JOIN file USING (content)"
)


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


class _Row(NamedTuple):
    number: int
    stamp: str
    content: int
    key: str


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
        known = self._known()
        there = {entry.path for entry in entries}
        gone = [row.number for path, row in known.items() if path not in there]
        fresh = [entry for entry in entries if not _is_same(entry, known.get(entry.path))]
        read = parsed = 0
        for part in _parts(self.source.read(fresh)):
            with self.database.writing() as cursor:
                for one in part:
                    read += 1
                    parsed += _keep(cursor, one, known.get(one.entry.path))
        if gone or read:
            with self.database.writing() as cursor:
                _forget(cursor, gone)
        commits = learn(self.database, *self._history)
        left_out = others + [(file.path, _WHY[file.state]) for file in self.files() if file.state]
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

    def _known(self) -> dict[str, _Row]:
        found = self.database.rows(
            "SELECT path, file.id, stamp, content, key FROM file JOIN content ON content.id = content"
        )
        return {
            os.fsdecode(_bytes(path)): _Row(_int(number), str(stamp), _int(content), str(key))
            for path, number, stamp, content, key in found
        }

    # ask

    def files(self) -> list[File]:
        """All files, sorted by their paths."""
        found = self.database.rows(
            "SELECT path, language, key, size, lines, parsed, flaws, state"
            " FROM file JOIN content ON content.id = content ORDER BY path"
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

    def symbols(
        self, condition: str = "1", values: Sequence[Value] = ()
    ) -> list[tuple[str, Symbol]]:
        """Symbols with their files, those that a condition in SQL lets through."""
        found = self.database.rows(
            f"{_SYMBOLS} WHERE {condition} ORDER BY path, line, name", values
        )
        return [
            (
                os.fsdecode(_bytes(path)),
                Symbol(str(name), str(kind), _int(line), _int(end), str(scope), str(signature)),
            )
            for path, name, kind, line, end, scope, signature in found
        ]

    def imports(self) -> list[tuple[str, Import]]:
        """All imports with the files that have them."""
        found = self.database.rows(
            "SELECT path, name, line, item FROM import_ JOIN file USING (content) ORDER BY path, line"
        )
        return [
            (os.fsdecode(_bytes(path)), Import(str(name), _int(line), str(item)))
            for path, name, line, item in found
        ]


_WHY = {
    "binary": "no text",
    "large": "too large: only its name is known",
    "undecodable": "no UTF-8: not parsed",
    "unreadable": "cannot be read",
}


def _is_same(entry: Entry, row: _Row | None) -> bool:
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


def _keep(cursor: apsw.Cursor, read: Read, row: _Row | None) -> int:
    """Write down one file; 1 if it had to be parsed."""
    entry, content = read.entry, read.content
    state = "" if content is not None else "large" if read.why == "large" else "unreadable"
    key = entry.key or (_blob_name(content) if content is not None else f"{state} {entry.size}")
    if row is not None and row.key == key and state != "unreadable":
        cursor.execute("UPDATE file SET stamp = ? WHERE id = ?", (entry.stamp, row.number))
        return 0
    language = language_of(entry.path)
    text, state = _text(content or b"", state)
    found = cursor.execute(
        "SELECT id, names FROM content WHERE key = ? AND language = ?", (key, language)
    ).fetchall()
    if found:
        number, names = found[0]
    else:
        number, names = _add(cursor, key, language, None if state else text)
    path = os.fsencode(entry.path)
    stamp = "" if state == "unreadable" else entry.stamp
    size = entry.size if content is None else len(content)
    if row is None:
        cursor.execute(
            "INSERT INTO file (path, stamp, size, state, content) VALUES (?, ?, ?, ?, ?)",
            (path, stamp, size, state, number),
        )
        file = cursor.connection.last_insert_rowid()
    else:
        file = row.number
        cursor.execute(
            "UPDATE file SET stamp = ?, size = ?, state = ?, content = ? WHERE id = ?",
            (stamp, size, state, number, file),
        )
        cursor.execute("DELETE FROM words WHERE rowid = ?", (file,))
    cursor.execute(
        "INSERT INTO words (rowid, path, symbols, text) VALUES (?, ?, ?, ?)",
        (file, apart(path), names, apart(text[:_MOST_TEXT])),
    )
    return int(not found)


def _add(cursor: apsw.Cursor, key: str, language: str, given: bytes | None) -> tuple[int, str]:
    """Parse a content that is not known yet; None is one that is no text."""
    text = given or b""
    outline = outline_of(text, language) if given is not None else None
    known = outline or Outline()
    names = apart(" ".join(symbol.name for symbol in known.symbols).encode("utf-8", "replace"))
    lines = text.count(b"\n") + (not text.endswith(b"\n") if text else 0)
    cursor.execute(
        "INSERT INTO content (key, language, parsed, flaws, lines, names) VALUES (?, ?, ?, ?, ?, ?)",
        (key, language, outline is not None, known.flaws, lines, names),
    )
    number = cursor.connection.last_insert_rowid()
    cursor.executemany(
        "INSERT INTO symbol VALUES (?, ?, ?, ?, ?, ?, ?)",
        [(number, s.name, s.kind, s.line, s.end, s.scope, s.signature) for s in known.symbols],
    )
    cursor.executemany(
        "INSERT INTO import_ VALUES (?, ?, ?, ?)",
        [(number, i.name, i.line, i.item) for i in known.imports],
    )
    return number, names


def _text(content: bytes, state: str) -> tuple[bytes, str]:
    """The content as UTF-8, and what keeps it from being text."""
    if state:
        return b"", state
    for mark, encoding in _BOMS:
        if content.startswith(mark):
            try:
                return content.decode(encoding).encode(), ""
            except UnicodeError:
                return b"", "undecodable"
    if b"\0" in content[:_HEAD]:
        return b"", "binary"
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return content, "undecodable"
    return content.removeprefix(b"\xef\xbb\xbf"), ""


def _blob_name(content: bytes) -> str:
    """The name that git gives a content."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def _forget(cursor: apsw.Cursor, gone: Sequence[int]) -> None:
    """Let go of files that are not there any more, and of contents that no file has."""
    for number in gone:
        cursor.execute("DELETE FROM file WHERE id = ?", (number,))
        cursor.execute("DELETE FROM words WHERE rowid = ?", (number,))
    unused = cursor.execute(
        "SELECT id FROM content WHERE id NOT IN (SELECT content FROM file)"
    ).fetchall()
    for table, column in (("content", "id"), ("symbol", "content"), ("import_", "content")):
        cursor.executemany(f"DELETE FROM {table} WHERE {column} = ?", unused)  # noqa: S608 - ours


def _int(value: Value) -> int:
    assert isinstance(value, int)
    return value


def _bytes(value: Value) -> bytes:
    assert isinstance(value, bytes)
    return value
