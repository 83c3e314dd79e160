"""Searches for lines: by ripgrep where it is installed, else by patterns of Python, which is said.

The files are those of the code base: what `.gitignore` leaves out is left out, links are not followed, and
`.git` and `.holdfast` are never looked into. Whatever program looked, the answer is sorted by path and line.
A directory may become a link while ripgrep walks, and it would walk on: so what it says is told only if the
files, opened without links, say the same.
"""

from __future__ import annotations

import os
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from holdfast.codebase.languages import LANGUAGES, names_of, suffixes_of
from holdfast.codebase.listing import NEVER, odd_rules
from holdfast.codebase.sources import Directory
from holdfast.codebase.truth import Record, untrue
from holdfast.errors import ProcessError, UsageError, outside_fault
from holdfast.model.glob import glob_regex

MOST_BYTES = 64 << 20  # of an answer; whoever asks for more should ask more narrowly
LONGEST = 2_000  # signs of a line that are shown
_HEAD = 8_000
_PATIENCE = 0.5  # seconds
_FEW = 5  # notes
_MATCH = b":"  # the sign of a line that matches
_RECORD = re.compile(rb"([^\0]*)\0(\d+)([:-])([^\n]*)(?:\n|\Z)")
_BINARY = re.compile(rb"^[^\0\n]*: binary file matches \(found [^\n]*\n", re.MULTILINE)
_KEPT = ("PATH", "HOME", "XDG_CONFIG_HOME")  # a global gitignore is named there


@dataclass(frozen=True, slots=True)
class Query:
    """What is searched for, and where; `paths` are files or directories beneath the root."""

    pattern: str
    paths: tuple[str, ...] = ()
    globs: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    before: int = 0
    after: int = 0
    ignore_case: bool = False
    word: bool = False
    fixed: bool = False
    limit: int = 200


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a file; `is_match` is false for one that is only near a match."""

    path: str
    number: int
    text: str
    is_match: bool = True


@dataclass(frozen=True, slots=True)
class Hits:
    """Lines up to the limit, matching lines of each file, and how many there are in all."""

    lines: tuple[Line, ...]
    counts: dict[str, int] = field(default_factory=dict)
    total: int = 0
    tool: str = "ripgrep"
    cut: bool = False  # there are more than were counted
    notes: tuple[str, ...] = ()

    @property
    def shown(self) -> int:
        """How many matching lines are among the lines."""
        return sum(line.is_match for line in self.lines)


class _OddRulesError(Exception):
    """A file of rules that ripgrep never comes to the end of."""


def search(root: str, query: Query, program: str | None = None) -> Hits:
    """The lines that match. `program` is ripgrep, found on PATH if not given; '' does without."""
    root = os.path.realpath(root)
    if not os.path.isdir(root):
        raise UsageError(f"there is no directory '{root}'")
    query = _checked(root, query)
    found = ripgrep() if program is None else program
    try:
        return _by_ripgrep(root, query, found) if found else _by_python(root, query)
    except _OddRulesError as odd:
        note = f"{odd}: no file of rules, and ripgrep would read it for ever: it was ended"
        return replace(_by_python(root, query), notes=(note,))


def ripgrep() -> str:
    """The program: the one beside this Python, else the first on PATH; '' if there is none."""
    beside = os.path.join(os.path.dirname(sys.executable), "rg")
    return beside if os.access(beside, os.X_OK) else shutil.which("rg") or ""


def _checked(root: str, query: Query) -> Query:
    """The query with paths as they lead from the root; UsageError for what is not there."""
    if "\n" in query.pattern:
        raise UsageError("the pattern has a line break", hint="lines are searched one by one")
    for language in query.languages:
        if language not in LANGUAGES:
            raise UsageError(
                f"there is no type '{language}'", hint=f"one of {', '.join(LANGUAGES)}"
            )
    return Query(
        **{name: getattr(query, name) for name in Query.__slots__ if name != "paths"},
        paths=tuple(inside(root, path) for path in query.paths),
    )


def inside(root: str, path: str) -> str:
    """A path that was given, relative to the root; UsageError if it is not there or leads out of it."""
    whole = os.path.realpath(os.path.join(root, path))
    if whole != root and not whole.startswith(root.rstrip("/") + "/"):
        raise UsageError(f"'{path}' is not beneath '{root}'", hint="-C DIR works in another place")
    if not os.path.exists(whole):
        raise UsageError(f"there is no file or directory '{path}'")
    if not os.path.isdir(whole) and not os.path.isfile(whole):
        raise UsageError(f"'{path}' is neither a file nor a directory")
    found = os.path.relpath(whole, root)
    if not NEVER.isdisjoint(found.split("/")):
        raise UsageError(f"'{path}' is never looked into")
    return found


# --- ripgrep --------------------------------------------------------------------------------------


def _by_ripgrep(root: str, query: Query, program: str) -> Hits:
    command, since = [program, *_words(query)], time.time()
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    try:
        with (
            tempfile.TemporaryFile() as errors,
            subprocess.Popen(  # noqa: S603 - an argv list, never a shell
                command,
                cwd=root,
                env=kept,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
            ) as process,
        ):
            assert process.stdout is not None  # a pipe was asked for
            try:
                said = _heard(process.stdout.fileno(), root)
                cut = len(said) >= MOST_BYTES
            except _OddRulesError:
                process.kill()
                raise
            if cut:
                process.kill()
            process.wait()
            errors.seek(0)
            complaints = errors.read(1 << 16).decode("utf-8", "replace")
    except OSError as error:
        raise outside_fault(error) or ProcessError(
            f"ripgrep cannot be run: {error.strerror}"
        ) from error
    if process.returncode not in {0, 1} and not cut and not said:
        raise UsageError(_complaint(complaints), hint="-F takes the pattern as it stands")
    notes = tuple(complaints.strip().splitlines()[:_FEW]) if said else ()
    if cut:
        said = said[: said.rfind(b"\n") + 1]  # the last line may not be whole
    return _gathered(root, said, query, since, cut=cut, notes=notes)


def _heard(pipe: int, root: str) -> bytes:
    """All it says, up to a limit. If it is silent for long, the rules that it reads are looked at."""
    chunks: list[bytes] = []
    room = MOST_BYTES
    while room > 0:
        ready, _, _ = select.select([pipe], [], [], _PATIENCE)
        if ready:
            chunks.append(os.read(pipe, min(room, 1 << 20)))
            room -= len(chunks[-1])
            if not chunks[-1]:
                break
        elif odd := odd_rules(root):
            raise _OddRulesError(odd)
    return b"".join(chunks)


def _complaint(text: str) -> str:
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    errors = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
    return f"ripgrep does not take the pattern: {(errors or lines or ['no reason given'])[-1]}"


def _words(query: Query) -> Iterator[str]:
    yield from ("--no-config", "--no-require-git", "--hidden", "--no-heading", "--with-filename")
    yield from (
        "--line-number",
        "--null",
        "--color=never",
        "--no-context-separator",
        "--no-ignore-messages",
    )
    yield from ("--ignore-case" if query.ignore_case else "--case-sensitive",)
    if query.word:
        yield "--word-regexp"
    if query.fixed:
        yield "--fixed-strings"
    if query.before:
        yield f"--before-context={query.before}"
    if query.after:
        yield f"--after-context={query.after}"
    for language in query.languages:
        for suffix in suffixes_of(language):
            yield f"--type-add=wanted:*{suffix}"
        for name in names_of(language):
            yield f"--type-add=wanted:{''.join(f'[{c}{c.upper()}]' for c in name)}"
    if query.languages:
        yield "--type=wanted"
    for glob in query.globs:
        yield f"--glob={glob}"
    yield from ("--glob=!.git", "--glob=!.holdfast", f"--regexp={query.pattern}", "--")
    yield from (f"./{path}" for path in query.paths or ("",))


def _gathered(
    root: str, said: bytes, query: Query, since: float, *, cut: bool, notes: tuple[str, ...]
) -> Hits:
    """Records are a path, NUL, a number, a sign, a line; those of one file stand together."""
    if query.paths:  # files that are named are looked into even if they are no text
        said = _BINARY.sub(b"", said)
    by_name: dict[bytes, list[Record]] = {}
    for name, number, sign, text in _RECORD.findall(said):
        by_name.setdefault(name, []).append((number, sign, text))
    by_file: dict[str, list[Record]] = {}
    for name, records in by_name.items():  # a path that is asked for twice may be told by two names
        path = os.fsdecode(name.removeprefix(b"./").removeprefix(b"./"))
        by_file.setdefault(path, []).extend(records)
    lost = untrue(root, by_file, since)
    notes += tuple(f"{path}: changed while it was searched" for path in lost[:_FEW])
    lines: list[Line] = []
    counts: dict[str, int] = {}
    total = 0
    for path in sorted(by_file.keys() - set(lost), key=os.fsencode):
        records = by_file[path]
        counts[path] = sum(sign == _MATCH for _, sign, _ in records)
        for number, sign, text in records if total < query.limit else ():
            total += sign == _MATCH
            if total > query.limit:
                break
            shown = text[: 4 * LONGEST].decode("utf-8", "replace")
            lines.append(Line(path, int(number), _shortened(shown), sign == _MATCH))
        total = sum(counts.values())
    return Hits(tuple(lines), counts, total, cut=cut, notes=notes)


def _shortened(text: str) -> str:
    text = text.rstrip("\r\n")
    return text if len(text) <= LONGEST else text[:LONGEST] + "…"


# --- without ripgrep ------------------------------------------------------------------------------


def _by_python(root: str, query: Query) -> Hits:
    pattern = _compiled(query)
    source = Directory(root)
    entries, _ = source.entries()
    wanted = [entry for entry in entries if _is_wanted(entry.path, query)]
    lines: list[Line] = []
    counts: dict[str, int] = {}
    total = 0
    for read in source.read(wanted):
        if read.content is None or b"\0" in read.content[:_HEAD]:
            continue
        text = read.content.decode("utf-8", "replace").splitlines()
        hits = [number for number, line in enumerate(text) if pattern.search(line)]
        if not hits:
            continue
        counts[read.entry.path] = len(hits)
        room = query.limit - total
        total += len(hits)
        matched = set(hits)
        for number in _around(hits[: max(0, room)], query, len(text)):
            line = _shortened(text[number])
            lines.append(Line(read.entry.path, number + 1, line, number in matched))
    return Hits(tuple(lines), counts, total, tool="python")


def _compiled(query: Query) -> re.Pattern[str]:
    text = re.escape(query.pattern) if query.fixed else query.pattern
    text = rf"\b(?:{text})\b" if query.word else text
    try:
        return re.compile(text, re.IGNORECASE if query.ignore_case else 0)
    except re.error as error:
        raise UsageError(
            f"Python does not take the pattern: {error}", hint="-F takes the pattern as it stands"
        ) from error


def _is_wanted(path: str, query: Query) -> bool:
    name = os.path.basename(path).lower()
    if query.paths and not any(
        place in {".", path} or path.startswith(f"{place}/") for place in query.paths
    ):
        return False
    if query.languages and not any(
        name.endswith(suffixes_of(one)) or name in names_of(one) for one in query.languages
    ):
        return False
    verdicts = [glob for glob in query.globs if _fits(glob.removeprefix("!"), path)]
    if verdicts:  # the last that fits decides
        return not verdicts[-1].startswith("!")
    return all(glob.startswith("!") for glob in query.globs)


def _fits(glob: str, path: str) -> bool:
    """As in .gitignore: a glob without a slash fits a name at any depth."""
    pattern = glob.lstrip("/") if "/" in glob.rstrip("/") else f"**/{glob}"
    matches = glob_regex(pattern.rstrip("/")).match
    return any(matches(part) for part in _ways(path))


def _ways(path: str) -> Iterator[str]:
    yield path
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path


def _around(hits: Sequence[int], query: Query, lines: int) -> list[int]:
    near = {
        number
        for hit in hits
        for number in range(max(0, hit - query.before), min(lines, hit + query.after + 1))
    }
    return sorted(near)
