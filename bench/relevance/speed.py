"""How fast an index is made, follows a commit and searches, on the files of one repository.

Each figure is a process of its own, the least of some rounds: `python -m bench.relevance.speed WHAT FOLDER`
prints seconds. The bare parser reads and parses the same files and does nothing else.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from holdfast.codebase.grammars import grammar_of
from holdfast.codebase.index import Index
from holdfast.codebase.languages import PARSED, language_of
from holdfast.codebase.search import Query, ripgrep, search

MOST_FILES = 5_000
PATTERNS = (r"class \w+Error", "import", "zzz_nowhere_zzz")


def figures(folder: str, scratch: Path, rounds: int = 3) -> dict[str, float]:
    """All of them for one git directory: CPU or wall seconds by name."""
    shutil.rmtree(scratch, ignore_errors=True)
    whole, parsed = scratch / "whole", scratch / "parsed"
    _git(scratch.parent, "clone", "-q", "--shared", folder, str(whole))
    names = _git(whole, "ls-files", "-z").split("\0")
    _git(parsed, "init", "-q")  # or a repository around it might ignore all of it
    for name in names:
        if language_of(name) in PARSED and (whole / name).is_file():
            (parsed / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(whole / name, parsed / name)
    for name in [name for name in names if name][MOST_FILES:]:
        (whole / name).unlink(missing_ok=True)
    _git(whole, "add", "-A")
    _git(whole, "commit", "-q", "--allow-empty", "-m", "at most so many files")
    found = {}
    taken = {}
    for what, place in (("bare", parsed), ("cold", parsed), ("cold with history", whole)):
        said = [_said(what.partition(" ")[0], place) for _ in range(rounds)]
        found[what], taken[what] = min(said)
    if taken["cold"] < 0.98 * taken["bare"]:  # a few are too large, or no UTF-8
        raise RuntimeError(f"the same files were to be parsed: {taken}")
    found["update cpu"], found["update wall"] = _update(whole, scratch / "code.db", rounds)
    for pattern in PATTERNS:
        found[f"ripgrep {pattern}"], found[f"search {pattern}"] = _searches(whole, pattern, rounds)
    shutil.rmtree(scratch)
    return found


def _update(folder: Path, place: Path, rounds: int) -> tuple[float, float]:
    """An update after a commit of three files, all else known."""
    with Index(str(folder), str(place)) as index:
        index.update()
    changed = [name for name in _git(folder, "ls-files").split("\n") if name.endswith(".py")][:3]
    cpu, wall = [], []
    for number in range(rounds):
        for name in changed:
            with (folder / name).open("a") as file:
                file.write(f"\n\ndef added_{number}(): pass\n")
        _git(folder, "commit", "-q", "-am", f"change {number}")
        time.sleep(0.2)  # a file as young as the look at it is read again, by anybody
        began, used = time.perf_counter(), _cpu()
        with Index(str(folder), str(place)) as index:
            index.update()
        cpu.append(_cpu() - used)
        wall.append(time.perf_counter() - began)
    return min(cpu), min(wall)


def _searches(folder: Path, pattern: str, rounds: int) -> tuple[float, float]:
    """CPU of ripgrep alone and of ours with the same ripgrep in it, in turn."""
    bare: list[float] = []
    ours: list[float] = []
    command = [ripgrep(), "--hidden", "--glob=!.git", "-n", "-e", pattern, "./"]
    for _ in range(3 * rounds):
        bare.append(_took(lambda: subprocess.run(command, cwd=folder, check=False, stdout=-1)))
        ours.append(_took(lambda: search(str(folder), Query(pattern))))
    return min(bare), min(ours)


def _took(work: Callable[[], object]) -> float:
    used = _cpu()
    work()
    return _cpu() - used


def _cpu() -> float:
    """CPU seconds of this process and of the children it waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def _bare(folder: str) -> tuple[float, int]:
    for language in PARSED:
        grammar_of(language)
    used, files = _cpu(), 0
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != ".git"]
        for name in names:
            grammar = grammar_of(language_of(name))
            if grammar is not None:
                grammar.parser.parse(Path(place, name).read_bytes())
                files += 1
    return _cpu() - used, files


def _cold(folder: str) -> tuple[float, int]:
    for language in PARSED:
        grammar_of(language)
    used = _cpu()
    with Index(folder, str(Path(folder).parent / f"cold{os.getpid()}.db")) as index:
        index.update()
        used = _cpu() - used
        return used, sum(file.parsed for file in index.files())


def _said(what: str, folder: Path) -> tuple[float, int]:
    command = [sys.executable, "-m", "bench.relevance.speed", what, str(folder)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    seconds, files = json.loads(done.stdout)
    return float(seconds), int(files)


def _git(folder: Path, *words: str) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    who = ["-c", "user.name=bench", "-c", "user.email=bench@example.com", "-c", "gc.auto=0"]
    done = subprocess.run(
        ["git", *who, *words], cwd=folder, check=True, capture_output=True, text=True
    )
    return done.stdout


def main(words: Sequence[str]) -> None:
    what, folder = words
    print(json.dumps({"bare": _bare, "cold": _cold}[what](folder)))


if __name__ == "__main__":
    main(sys.argv[1:])
