"""The sandbox on the command line: what a person grants, and whether a step was in it, by the journal."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import click

from holdfast.model.event import AttemptAccepted, AttemptParked
from holdfast.model.plan import RunId, StepId
from holdfast.ports import Store

F = TypeVar("F", bound=Callable[..., object])


def sandbox_options(command: F) -> F:
    """What a person grants to commands for this once."""
    command = click.option(
        "--no-sandbox",
        is_flag=True,
        help="Let commands read, write and reach whatever you can.",
    )(command)
    return click.option(
        "--network",
        is_flag=True,
        help="Let commands reach the network, which they cannot else.",
    )(command)


def was_confined(store: Store, run: RunId, step: StepId, attempt: int = 0) -> bool | None:
    """Of one attempt, or of the last one; None if the journal names none."""
    found: bool | None = None
    for recorded in store.read(f"run:{run}", 0):
        event = recorded.event
        if not isinstance(event, AttemptAccepted | AttemptParked) or event.step != step:
            continue
        if attempt in {0, event.attempt}:
            found = event.confined
    return found
