"""What a command was called with, kept for whoever says it again; all commands load it, so it is small."""

from __future__ import annotations

import os
from collections.abc import Iterable

import click

_FOLDER = "holdfast.folder"
_WORDS = "holdfast.words"


def keep_folder(context: click.Context, folder: str) -> None:
    """Remember that this command works as if it had been started in a folder."""
    context.meta[_FOLDER] = os.path.join(folder_of(context), folder)


def folder_of(context: click.Context) -> str:
    """Where this command works, if it was told."""
    return str(context.meta.get(_FOLDER, ""))


def keep_words(context: click.Context, words: Iterable[str]) -> None:
    """Remember what this command was called with."""
    context.meta[_WORDS] = (*words,)


def words_now() -> tuple[str, ...]:
    """What this command was called with."""
    context = click.get_current_context(silent=True)
    found = () if context is None else context.meta.get(_WORDS, ())
    assert isinstance(found, tuple)
    return found
