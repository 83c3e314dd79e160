"""What a process finds: a clean environment and the files that its variables name.

Values reach a process only as files or as whole variables, never inside a command line; whatever is
in them stays text.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import shlex
import stat
from collections.abc import Iterable, Mapping, Sequence
from io import BufferedReader
from urllib.parse import quote

from holdfast.errors import EditError, outside_fault
from holdfast.ports import Given
from holdfast.process.inside import open_inside

TAIL_BYTES = 8 * 1024
_LONGEST = 4096  # characters of a path that leads anywhere
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC


def clean_environment(
    room: str, engine: Mapping[str, str], declared: Mapping[str, str]
) -> dict[str, str]:
    """PATH and LANG of the engine, a private HOME and TMPDIR in `room`, and what was declared."""
    return {
        "PATH": engine.get("PATH") or os.defpath,
        "LANG": engine.get("LANG") or "C.UTF-8",
        "HOME": private_folder(room, "home"),
        "TMPDIR": private_folder(room, "tmp"),
        **declared,
    }


def private_folder(room: str, name: str) -> str:
    """A directory of a room, made if it is not there; returns its path."""
    path = f"{room}/{name}"
    if not os.access(path, os.F_OK):
        os.makedirs(path, mode=0o700, exist_ok=True)
    return path


def file_name(name: str) -> str:
    """A name as one component of a path; equal to the name unless that would leave the folder."""
    if name in {"", ".", ".."}:
        return "%2E" * len(name) or "%"
    return "".join(quote(c, safe="") if c in "/\0%" else c for c in name)


def put_file(path: str, content: bytes, *, executable: bool = False) -> str:
    """Write a file that only its owner may read; returns the path."""
    descriptor = os.open(path, _CREATE, 0o700 if executable else 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    return path


def put_tree(path: str, files: Iterable[tuple[str, bytes, bool]]) -> str:
    """Write files (relative path, content, executable) under a new directory; returns the path."""
    os.makedirs(path, mode=0o700, exist_ok=True)
    for relative, content, executable in files:
        if os.path.isabs(relative) or ".." in relative.split("/"):
            raise ValueError(f"'{relative}' is not inside its tree")
        place = os.path.join(path, relative)
        os.makedirs(os.path.dirname(place), mode=0o700, exist_ok=True)
        put_file(place, content, executable=executable)
    return path


def put_given(path: str, given: Given) -> str:
    """Write the artifact of a need: a file, or a directory for several files."""
    if given.form == "tree":
        files = ((name, content(), executable) for name, executable, content in given.files)
        return put_tree(path, files)
    return put_file(path, given.content(), executable=given.form == "program")


def tail(output: bytes, limit: int = TAIL_BYTES) -> str:
    """The end of an output as text, at most `limit` bytes, begun at a whole character."""
    if len(output) > limit:
        output = output[-limit:].lstrip(bytes(range(0x80, 0xC0)))
    return output.decode("utf-8", "replace")


_QUOTES = frozenset("'\"\\")
_WORDS = re.compile(r"[();<>|&]+|[^ \t\r\n();<>|&]+")  # of a line in which nothing is quoted


@functools.lru_cache(maxsize=1024)  # a step is looked at before and after each attempt
def shell_words(line: str) -> tuple[str, ...]:
    """The words of a shell line, as far as they can be told without running it.

    What an output is redirected to is left out: a line does not read what it writes.
    """
    if _QUOTES.isdisjoint(line):
        words = _WORDS.findall(line)
    else:
        lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        lexer.commenters = ""
        try:
            words = list(lexer)
        except ValueError:
            return tuple(line.split())
    pairs = zip(["", *words], words, strict=False)
    return tuple(word for before, word in pairs if ">" not in before)


def named_files(
    words: Sequence[str], root: str, but: Sequence[str] = ()
) -> dict[str, dict[str, str] | list[str]]:
    """The files of the project that a command names, as the part of a key that they are.

    `files` has relative path to digest, `+x` if executable; `unresolved` those that cannot be read. If the
    machine is to blame for that, nothing is known: StoreError.
    A word counts when it names a regular file inside `root`, also after links are resolved; `..` leads
    out of what a link before it leads to. Paths at or beneath `but` are left out: what a step makes does
    not decide whether it must be made.
    """
    files: dict[str, str] = {}
    unresolved: list[str] = []
    maybe = [word for word in words if ".." in word or _is_file(root, word)]
    top = os.path.realpath(root) if maybe else root
    for word in maybe:
        relative = _relative(word, top)
        if relative is None or relative in files or is_beneath(relative, but):
            continue
        try:
            with open_inside(top, relative) as file:
                files[relative] = _digest(file)
        except EditError:
            unresolved.append(relative)
        except OSError as error:
            if (fault := outside_fault(error)) is not None:
                raise fault from error
            unresolved.append(relative)
    found: dict[str, dict[str, str] | list[str]] = {}
    if files:
        found["files"] = files
    if unresolved:
        found["unresolved"] = sorted(set(unresolved))
    return found


def is_beneath(relative: str, places: Sequence[str]) -> bool:
    """Whether a path is one of the places or inside one of them."""
    return any(
        relative == place or relative.startswith(f"{place}/")
        for place in (os.path.normpath(place) for place in places)
    )


def _digest(file: BufferedReader) -> str:
    """SHA-256 of a file, with `+x` if its owner may execute it."""
    digest = hashlib.file_digest(file, "sha256").hexdigest()
    return f"{digest}+x" if os.fstat(file.fileno()).st_mode & 0o100 else digest


def _is_file(root: str, word: str) -> bool:
    """Whether a word names a regular file; of most words one system call says that it does not."""
    if not word or "\0" in word:
        return False
    plain = "/" not in word and word not in {".", ".."}
    path = f"{root}/{word}" if plain else place_of(root, word)
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        return False


def place_of(root: str, word: str) -> str:
    """Where a word leads from a directory, without `..`: that leaves what a link before it leads to.

    What is not there is left by letters, and a link at the end keeps its name.
    """
    way, up, rest = os.path.join(root, word).rpartition("/../")
    if len(way) > _LONGEST:
        return os.path.normpath(f"{way}/../{rest}")
    return os.path.normpath(f"{os.path.realpath(f'{way}/..')}/{rest}" if up else rest)


def reached(root: str, path: str) -> str:
    """The path inside of a directory that one leads to, after links; itself if it leads outside."""
    if len(path) > _LONGEST or "\0" in path:
        return path
    top = os.path.realpath(root)
    full = os.path.realpath(os.path.join(top, path))
    return full[len(top) + 1 :] if full.startswith(f"{top}/") else path


def _relative(word: str, top: str) -> str | None:
    """The path below `top` of the regular file that a word names, if it names one."""
    if not _is_file(top, word):
        return None
    path = place_of(top, word)
    relative = os.path.relpath(path, top)
    if _leaves(relative) or _leaves(os.path.relpath(os.path.realpath(path), top)):
        return None
    return relative


def _leaves(relative: str) -> bool:
    return relative in {".", ".."} or relative.startswith("../")
