"""The index of the code base that a command works in: opened, brought up to date, told about."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

import click

from holdfast.cli.place import root_of
from holdfast.cli.say import talk
from holdfast.errors import StoreError, UsageError

if TYPE_CHECKING:
    from holdfast.codebase.index import Index, Updated

F = TypeVar("F", bound=Callable[..., object])
FOLDER, NAME = ".holdfast", "code.db"


def index_option(command: F) -> F:
    """Where the index is kept."""
    return click.option(
        "--index",
        "index_file",
        metavar="FILE",
        help="Where the index is kept (default: .holdfast/code.db here).",
    )(command)


@contextmanager
def open_index(index_file: str | None) -> Iterator[tuple[Index, Updated]]:
    """The index of the directory that is worked in, as things are now.

    Where nothing can be written it is made in memory, which is said: whoever only looks must not need to
    write.
    """
    from holdfast.codebase.index import Index

    root = root_of(None)
    place = _place(root, index_file)
    try:
        index = Index(root, place, say=talk)
    except StoreError as error:
        if index_file is not None:
            raise
        talk(f"{error.message}; it is made in memory, for this once")
        index = Index(root, None, say=talk)
    with index:
        updated = index.update()
        say_unparsed(updated)
        yield index, updated


def _place(root: str, index_file: str | None) -> str:
    if index_file is not None:
        if not os.path.isdir(os.path.dirname(os.path.abspath(index_file))):
            raise UsageError(f"there is no directory for '{index_file}'")
        return os.path.abspath(index_file)
    folder = os.path.join(root, FOLDER)
    try:
        os.makedirs(folder, 0o700, exist_ok=True)
        ignore = os.path.join(folder, ".gitignore")
        if not os.path.lexists(ignore):
            with open(ignore, "x", encoding="utf-8") as file:
                file.write("*\n")
    except FileExistsError:
        pass  # another process was first
    except OSError as error:
        talk(f"'{folder}' cannot be written: {(error.strerror or '').lower()}")
    return os.path.join(folder, NAME)


def say_unparsed(updated: Updated) -> None:
    """Say which languages are only searched by text because no grammar is installed."""
    if updated.unparsed:
        talk(
            f"{', '.join(updated.unparsed)}: not parsed, no symbols and imports are known;"
            " pip install 'holdfast[code]'"
        )
