"""Asking a person before something is removed, and who that person is."""

from __future__ import annotations

import getpass

import click

from holdfast.cli.view import view
from holdfast.errors import UsageError


def confirm(question: str, *, yes: bool) -> None:
    """Go on only if somebody says so: on a terminal, or by --yes."""
    if yes:
        return
    if not view().asks:
        raise UsageError("this needs a yes, and nobody is there to ask", hint="say --yes")
    click.confirm(question, abort=True, err=True)


def who() -> str:
    """The person at this machine, as facts name him."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # no name for this user id
        return "unknown"
