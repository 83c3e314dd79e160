"""Puts files where a step or its guards look for them, when that is not the project directory."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress

from holdfast.model.digest import Json
from holdfast.model.plan import Step
from holdfast.ports import Candidate
from holdfast.process.inside import open_inside


def furnish(folder: str, root: str, seen: Mapping[str, Json]) -> None:
    """Copy the files of the project that a key names: inputs, and what commands and guards name."""
    for path in named_in(seen):
        copy_into(folder, root, path)


def named_in(seen: Mapping[str, Json]) -> Iterator[str]:
    """The files of the project that a key names."""
    for paths in (seen.get("inputs"), seen.get("files"), *_of_guards(seen.get("guards"))):
        yield from paths if isinstance(paths, Mapping) else ()


def _of_guards(guards: Json) -> Iterator[Json]:
    """What guards name, and those that they are made of."""
    for guard in guards if isinstance(guards, list) else ():
        if isinstance(guard, Mapping):
            yield guard.get("files")
            yield from _of_guards(guard.get("items"))


def copy_into(folder: str, root: str, path: str) -> None:
    """Copy one file or directory of the project to the same path in another place; what is gone is left out.

    EditError if something there leads out of the project.
    """
    for inner in _files_at(root, path):
        target = os.path.join(folder, inner)
        with suppress(FileNotFoundError, NotADirectoryError), open_inside(root, inner) as source:
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with open(target, "wb") as file:
                shutil.copyfileobj(source, file)
            found = os.fstat(source.fileno())
            os.chmod(target, found.st_mode & 0o777)
            os.utime(target, ns=(found.st_atime_ns, found.st_mtime_ns))


def _files_at(root: str, path: str) -> Iterator[str]:
    """A path of the project, or all files beneath it; links to directories are not entered."""
    pending = [path]
    while pending:
        place = pending.pop()
        full = os.path.join(root, place)
        if os.path.isdir(full) and not os.path.islink(full):
            pending += [f"{place}/{name}" for name in os.listdir(full)]
        elif os.path.isfile(full):
            yield place


def lay_out(folder: str, step: Step, candidate: Candidate) -> None:
    """Put a candidate at the step's output paths, so that its guards find it there."""
    if candidate.form == "tree":
        for file in candidate.files:
            write_file(folder, file.path, file.content, executable=file.executable)
    elif step.produces:
        executable = candidate.form == "program"
        write_file(folder, step.produces[0], candidate.content, executable=executable)


def write_file(folder: str, path: str, content: bytes, *, executable: bool) -> None:
    """Write one file beneath a private directory."""
    target = os.path.join(folder, path)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    with open(target, "wb") as file:
        file.write(content)
    os.chmod(target, 0o755 if executable else 0o644)
