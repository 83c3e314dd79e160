"""Where the server works: the plan, the store and the params it was started for, used from many threads.

Every question is asked as a command would ask it: in a context of its own, in plain words, with nobody to
answer a question back. Answers about a run are read anew each time, so nothing here can be out of date.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

import click

from holdfast.cli.main import cli
from holdfast.cli.place import PARAMS, Place, place
from holdfast.cli.say import Heard, heard
from holdfast.cli.view import View
from holdfast.errors import UsageError
from holdfast.model.digest import Json

_AS_ARGUMENT = frozenset({"plan", "run"})  # these take the plan file as an argument


class Asked(NamedTuple):
    """A command to be said. No argument can be taken for an option, whoever chose it.

    `file` is another plan file than that of the place.
    """

    words: Sequence[str]
    options: Sequence[str] = ()
    arguments: Sequence[str] = ()
    file: str | None = None


@dataclass(frozen=True, slots=True)
class Desk:
    """What the person who started the server said about the place."""

    plan: str | None = None
    store: str | None = None
    plan_id: str | None = None
    params: Mapping[str, Json] = field(default_factory=dict)
    said: Mapping[str, object] = field(
        default_factory=dict
    )  # what its command keeps about the place
    read_only: bool = False

    @contextmanager
    def here(self) -> Iterator[Place]:
        """The place, in a context in which our functions find what a command would give them."""
        context = click.Context(cli, info_name="holdfast", obj=View())
        context.meta.update({**self.said, PARAMS: dict(self.params)})
        with context.scope(cleanup=False), heard():
            yield place(self.plan, self.store, self.plan_id)

    def command(self, asked: Asked) -> tuple[int, Heard]:
        """Say a command of ours; its exit code and what it said. Errors are raised as they are."""
        options = ["--json", *asked.options]
        arguments = [*asked.arguments]
        if (file := asked.file or self.plan) is not None:
            takes = asked.words[0] in _AS_ARGUMENT
            arguments += [file] if takes else []
            options += [] if takes else [f"--file={file}"]
        for flag, value in (("--store", self.store), ("--plan-id", self.plan_id)):
            options += (
                [f"{flag}={value}"] if value and not (asked.file and flag == "--plan-id") else []
            )
        options += [f"--param={name}={value}" for name, value in self.params.items()]
        words = ["--no-input", *asked.words, *options, "--", *arguments]
        with heard() as said:
            try:
                code = cli.main(words, prog_name="holdfast", standalone_mode=False)
            except click.ClickException as error:
                raise UsageError(error.format_message()) from error
        return (code if isinstance(code, int) else 0), said


def said_words(said: Heard) -> Sequence[str]:
    """All that a command said in words."""
    return [*said.lines, *said.beside]
