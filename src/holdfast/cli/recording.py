"""Options that write answers of models down, or take them from where they were written down."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping

import click

from holdfast import wire
from holdfast.cli.again import keep_recorded
from holdfast.cli.place import Place
from holdfast.errors import UsageError

Option = Callable[[Callable[..., object]], Callable[..., object]]


def _for_all(variable: str, value: str | None) -> None:
    """What a flag says goes before the variable, for all of this command and what it starts."""
    if value is not None:
        os.environ[variable] = value


def asks_nobody() -> bool:
    """Whether every answer of this command comes from recordings, whoever the plan names."""
    return os.environ.get("HOLDFAST_PROVIDER") == "recorded"


def _provider(context: click.Context, value: str | None) -> None:
    """Who is asked instead of those that the plan names; commands that follow from this one say it too."""
    if value is not None:
        keep_recorded(context, "--provider", value)
    _for_all("HOLDFAST_PROVIDER", value)


def _folder(context: click.Context, value: str | None) -> None:
    """Where recordings are; said of a command that would not read them, it is a mistake that costs money."""
    if value is not None and not asks_nobody():
        raise UsageError(
            "--recorded says where recordings are, and models would be asked all the same",
            hint="say --provider recorded too, to ask nobody",
        )
    if value is not None:
        keep_recorded(context, "--recorded", value)
    _for_all("HOLDFAST_RECORDED", value)


def with_options(options: Iterable[Option]) -> Option:
    """Several options as one decorator."""

    def decorate(command: Callable[..., object]) -> Callable[..., object]:
        for option in options:
            command = option(command)
        return command

    return decorate


provider_options = (
    click.option(
        "--provider",
        type=click.Choice(["recorded"]),
        expose_value=False,
        is_eager=True,  # read before --recorded, which is nothing without it
        callback=lambda context, _, value: _provider(context, value),
        help="Ask nobody: take every answer from recordings.",
    ),
    click.option(
        "--recorded",
        metavar="DIR",
        expose_value=False,
        callback=lambda context, _, value: _folder(context, value),
        help="Where recordings are (default: recorded/ beside the plan).",
    ),
)
recording_options = (
    click.option(
        "--record",
        metavar="DIR",
        help="Write each answer of a model to a file there, for --provider recorded.",
    ),
    *provider_options,
)


def record_folder(where: Place, given: Mapping[str, object]) -> str | None:
    """Where answers are to be written down, if they are."""
    folder = given["record"]
    return None if folder is None else wire.market.record_into(where.root, str(folder))
