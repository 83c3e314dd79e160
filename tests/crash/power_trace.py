"""Records what a command, its threads and its steps ask of the disk, and what it tells a person.

Every call under one directory is seen, also those of the programs that steps start, in the order in
which the kernel answered them. A sync covers what had been answered when it was called, and counts
once it is answered itself; what is told counts from the moment it is said. Writes have no offset in
the trace: files that are not written by `pwrite` grow at their end, and the test that compares the
replayed project with the real one would show any other.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from tests.crash.faults import Answer, Fault, Scene

Change = Literal["make", "write", "cut", "mode", "move", "link", "unlink", "mkdir", "rmdir"]
Kind = Change | Literal["sync", "out", "err"]
APPEND = -1

_CALLS = (
    *("open", "openat", "creat", "write", "pwrite64", "writev", "pwritev", "pwritev2"),
    *("truncate", "ftruncate", "fallocate", "rename", "renameat", "renameat2", "link", "linkat"),
    *("symlink", "symlinkat", "unlink", "unlinkat", "mkdir", "mkdirat", "rmdir"),
    *("chmod", "fchmod", "fchmodat", "fsync", "fdatasync", "sync_file_range", "sync", "syncfs"),
    *("copy_file_range", "sendfile"),
)
_UNSEEN = ("copy_file_range", "sendfile")  # would write bytes that are not in the trace: refused
_IGNORED = ("sync_file_range",)  # promises nothing
_WHOLE = re.compile(r"(\w+)\((.*)\)\s+= (-?\d+)")
_PAUSED = re.compile(r"(.*) <unfinished \.\.\.>$")
_RESUMED = re.compile(r"<\.\.\. \w+ resumed>(.*)$")
_TEXT = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')
_HANDLE = re.compile(r"[\w-]+<((?:\\x[0-9a-f]{2})+)>")
_SHARED_MEMORY = "-shm"  # SQLite makes it anew


class Op(NamedTuple):
    """One change, sync or word; `line` is when it was done, `began` when it was asked for."""

    kind: Kind
    line: int
    began: int
    path: str = ""
    other: str = ""
    data: bytes = b""
    number: int = 0  # an offset, a size or a mode


class Recording(NamedTuple):
    """The files before, and everything after."""

    before: dict[str, tuple[int, bytes | None]]
    ops: tuple[Op, ...]
    answer: Answer


def record(
    strace: str, scene: Scene, *words: str, env: Mapping[str, str], root: Path | None = None
) -> Recording:
    """Run one command to its end under `strace`, with more in its environment.

    What it does beneath the project counts, or beneath another directory.
    """
    root = root or scene.root
    log = scene.folder / "trace.txt"
    unseen = (f"inject={call}:error=ENOSYS" for call in _UNSEEN)
    rules = (f"trace={','.join(_CALLS)}", *unseen)
    words_ = [word for rule in rules for word in ("-e", rule)]
    before = tree_of(root)
    trace = (strace, "-f", "-xx", "-y", "-qq", "-s", "200000", "-o", str(log), *words_)
    answer = scene.call(*words, fault=Fault("recorded", trace, env))
    with open(log, encoding="ascii") as lines:
        ops = tuple(sorted(_Reader(scene, root).ops(lines), key=lambda op: op.line))
    log.unlink()
    return Recording(before, ops, answer)


def tree_of(root: Path) -> dict[str, tuple[int, bytes | None]]:
    """Every directory (without content) and file beneath a root, with its mode."""
    found: dict[str, tuple[int, bytes | None]] = {}
    for place, folders, names in os.walk(root):
        for name in (*folders, *names):
            path = Path(place, name)
            mode = path.stat().st_mode & 0o777
            if name.endswith(_SHARED_MEMORY):
                continue
            found[str(path.relative_to(root))] = (
                mode,
                None if path.is_dir() else path.read_bytes(),
            )
    return found


class _Reader:
    """Turns the lines of a trace into operations on paths beneath the project."""

    def __init__(self, scene: Scene, root: Path) -> None:
        self._root = os.path.realpath(root)
        folder = os.path.realpath(scene.folder)
        self._told: dict[str, Kind] = {f"{folder}/out.txt": "out", f"{folder}/err.txt": "err"}
        self._where: dict[str, str] = {}  # the last known directory of each process

    def ops(self, lines: Iterator[str]) -> Iterator[Op]:
        paused: dict[str, tuple[int, str]] = {}
        for number, text in enumerate(lines):
            process, _, rest = text.rstrip("\n").partition(" ")
            rest, began = rest.strip(), number
            if begun := _PAUSED.fullmatch(rest):
                paused[process] = (number, begun[1])
                continue
            if resumed := _RESUMED.fullmatch(rest):
                began, start = paused.pop(process)
                rest = start + resumed[1]
            found = _WHOLE.match(rest)
            if found and int(found[3]) >= 0:
                yield from self._op(process, found[1], found[2], int(found[3]), number, began)

    def _op(
        self, process: str, call: str, text: str, answer: int, line: int, began: int
    ) -> Iterator[Op]:
        args = text.split(", ")
        places = list(self._places(process, call, args))
        if call in {"sync", "syncfs"}:
            yield Op("sync", line, began, path="*")
        if not places or call in _IGNORED:
            return
        path, *others = places
        if path in self._told:
            if call in {"write", "writev"}:
                yield Op(self._told[path], began, began, data=_bytes(text)[:answer])
            return
        inside = [self._inside(place) for place in places]
        if inside[0] is None or path.endswith(_SHARED_MEMORY):
            if others and inside[-1] is not None:
                raise AssertionError(f"moved into the project from outside: {path}")
            return
        yield from _named(call, args, inside[0], inside[-1] or "", answer, line, began, text)

    def _places(self, process: str, call: str, args: Sequence[str]) -> Iterator[str]:
        """The absolute paths that a call is about, in their order."""
        base = ""
        for arg in args:
            if handle := _HANDLE.match(arg):
                base = _plain(handle[1])
                if arg.startswith("AT_FDCWD"):
                    self._where[process] = base
                elif call in _BY_HANDLE:
                    yield base
                    return
            elif text := _TEXT.fullmatch(arg):
                where = base or self._where.get(process, "/")
                yield os.path.normpath(os.path.join(where, _plain(text[1])))
                base = ""

    def _inside(self, path: str) -> str | None:
        if path.endswith(" (deleted)"):
            return None
        if path == self._root:
            return ""
        within = path.startswith(self._root + "/")
        return path[len(self._root) + 1 :] if within else None


_BY_HANDLE = {
    *("write", "pwrite64", "writev", "pwritev", "pwritev2", "ftruncate", "fallocate"),
    *("fchmod", "fsync", "fdatasync", "sync_file_range"),
}


def _named(
    call: str,
    args: Sequence[str],
    path: str,
    other: str,
    answer: int,
    line: int,
    began: int,
    text: str,
) -> Iterator[Op]:
    def op(kind: Kind, *, data: bytes = b"", number: int = 0) -> Op:
        return Op(kind, line, began, path, other, data, number)

    match call:
        case "open" | "openat" | "creat":
            flags = text if call != "creat" else "O_CREAT|O_TRUNC"
            if "O_CREAT" in flags:
                yield op("make", number=int(args[-1], 8))
            if "O_TRUNC" in flags:
                yield op("cut")
        case "write" | "writev":
            yield op("write", data=_bytes(text)[:answer], number=APPEND)
        case "pwrite64" | "pwritev" | "pwritev2":
            offset = int(args[-1 if call != "pwritev2" else -2])
            yield op("write", data=_bytes(text)[:answer], number=offset)
        case "ftruncate" | "truncate":
            yield op("cut", number=int(args[1]))
        case "rename" | "renameat" | "renameat2":
            yield op("move")
        case "link" | "linkat":
            yield op("link")
        case "symlink" | "symlinkat":  # git tries whether there are any, and removes it
            yield Op("make", line, began, other, number=0o777)
        case "unlinkat" if "AT_REMOVEDIR" in args[-1]:
            yield op("rmdir")
        case "unlink" | "unlinkat":
            yield op("unlink")
        case "mkdir" | "mkdirat":
            yield op("mkdir", number=int(args[-1], 8))
        case "rmdir":
            yield op("rmdir")
        case "chmod" | "fchmod" | "fchmodat":
            mode = args[1] if call != "fchmodat" else args[2]
            yield op("mode", number=int(mode, 8))
        case "fsync" | "fdatasync":
            yield op("sync")
        case _:
            raise AssertionError(f"nobody knows how to replay '{call}({text[:200]})'")


def _bytes(text: str) -> bytes:
    if '"...' in text:
        raise AssertionError("the trace cuts its strings short")
    return b"".join(bytes.fromhex(part.replace("\\x", "")) for part in _TEXT.findall(text))


def _plain(text: str) -> str:
    return os.fsdecode(bytes.fromhex(text.replace("\\x", "")))
