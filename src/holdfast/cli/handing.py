"""--handoff: what a person hands over with a content."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import click

from holdfast.engine.handoffs import given_by_person
from holdfast.engine.unkept import Hidden, check_free
from holdfast.errors import UsageError
from holdfast.model.digest import Digest
from holdfast.model.plan import Step
from holdfast.ports import Store

F = TypeVar("F", bound=Callable[..., object])


def handoff_option(command: F) -> F:
    """Name a file with a handoff."""
    return click.option(
        "--handoff",
        metavar="FILE",
        help="What you tell the steps after it: a handoff, as JSON.",
    )(command)


def handed_over(store: Store, step: Step, file: str | None, hidden: Hidden) -> Digest | None:
    """The stored handoff of a file; UsageError if it is none, or if the step needs one."""
    content = None
    if file is not None:
        try:
            with open(file, "rb") as opened:
                content = opened.read()
        except OSError as error:
            raise UsageError(f"cannot read '{file}': {error.strerror}") from error
        check_free(f"the handoff for '{step.id}'", content, hidden)
    told = given_by_person(step, content)
    return store.put(told) if told else None
