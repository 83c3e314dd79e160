"""Where the server works: the plan, the store and the params it was started for, used from many threads.

Every question is asked as a command would ask it: in a context of its own, in plain words, with nobody to
answer a question back. Answers about a run are read anew each time, so nothing here can be out of date.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import click

from holdfast.cli.main import cli
from holdfast.cli.place import PARAMS, Place, place
from holdfast.cli.say import Heard, heard
from holdfast.cli.view import View
from holdfast.errors import UsageError
from holdfast.model.digest import Json

_AS_ARGUMENT = frozenset({"plan", "run"})  # these take the plan file as an argument


@dataclass(frozen=True, slots=True)
class Desk:
    """What the person who started the server said about the place."""

    plan: str | None = None
    store: str | None = None
    plan_id: str | None = None
    params: Mapping[str, Json] = field(default_factory=dict)
    read_only: bool = False

    @contextmanager
    def here(self) -> Iterator[Place]:
        """The place, in a context in which our functions find what a command would give them."""
        context = click.Context(cli, info_name="holdfast", obj=View())
        context.meta[PARAMS] = dict(self.params)
        with context.scope(cleanup=False), heard():
            yield place(self.plan, self.store, self.plan_id)

    def command(self, *words: str, file: str | None = None) -> tuple[int, Heard]:
        """Say a command of ours; its exit code and what it said. Errors are raised as they are."""
        name, *rest = words
        file = file or self.plan
        options = ["--json", *rest]
        if file is not None and name not in _AS_ARGUMENT:
            options += ["--file", file]
        for flag, value in (("--store", self.store), ("--plan-id", self.plan_id)):
            options += [flag, value] if value else []
        for param, given in self.params.items():
            options += ["--param", f"{param}={given}"]
        argument = ["--", file] if file is not None and name in _AS_ARGUMENT else []
        with heard() as said:
            try:
                code = cli.main(
                    ["--no-input", name, *options, *argument],
                    prog_name="holdfast",
                    standalone_mode=False,
                )
            except click.ClickException as error:
                raise UsageError(error.format_message()) from error
        return (code if isinstance(code, int) else 0), said


def said_words(said: Heard) -> Sequence[str]:
    """All that a command said in words."""
    return [*said.lines, *said.beside]
