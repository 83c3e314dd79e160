"""Ten tickets over two small repositories, which lie beside this module."""

from __future__ import annotations

import os
import tomllib

from holdfast.model.digest import Json, digest_bytes, digest_json
from holdfast.worker.bench.case import Case, on_files
from holdfast.worker.bench.laying import lay_files

_HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "samples")


def sample_cases(place: str) -> list[Case]:
    """The cases; their repositories are laid in `place`, if they are not there yet."""
    return [case for name in sorted(os.listdir(_HERE)) for case in _cases(name, place)]


def _cases(sample: str, place: str) -> list[Case]:
    home = os.path.join(_HERE, sample)
    with open(os.path.join(home, "sample.toml"), "rb") as file:
        said = tomllib.load(file)
    files = _files(os.path.join(home, "repository"))
    contents: dict[str, Json] = {path: digest_bytes(files[path]) for path in files}
    folder = os.path.join(place, f"{sample}-{digest_json(contents)[:12]}")
    base = lay_files(files, folder)
    tickets = os.path.join(home, "tickets")
    cases = []
    for name in sorted(os.listdir(tickets)):
        here = os.path.join(tickets, name)
        hidden = _files(os.path.join(here, "hidden"))
        cases.append(
            Case(
                name=name,
                ticket=_text(here, "ticket.md"),
                source=os.path.join(folder, ".git"),
                base=base,
                hidden=hidden,
                test=on_files(said["test"], tuple(hidden)),
                checks=(said["check"],),
                reference=_text(here, "reference.yaml"),
            )
        )
    return cases


def _files(root: str) -> dict[str, bytes]:
    """Every file of a folder by its path in it; what Python leaves behind is none."""
    found = {}
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for name in sorted(names):
            path = os.path.join(folder, name)
            with open(path, "rb") as file:
                found[os.path.relpath(path, root)] = file.read()
    return found


def _text(folder: str, name: str) -> str:
    with open(os.path.join(folder, name), encoding="utf-8") as file:
        return file.read()
