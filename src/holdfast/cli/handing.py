"""--handoff: what a person hands over with a content, or with a yes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import click

from holdfast.cli.place import Place
from holdfast.engine.citations import Citations, absent, misnamed
from holdfast.engine.handoffs import Checked, added_by_person, given_by_person
from holdfast.engine.unkept import Hidden, check_told
from holdfast.errors import UsageError
from holdfast.model.digest import Digest
from holdfast.model.handoff import MOST_TOLD, Handoff
from holdfast.model.plan import Plan, Step
from holdfast.ports import Store

F = TypeVar("F", bound=Callable[..., object])


def handoff_option(command: F) -> F:
    """Name a file with a handoff."""
    return click.option(
        "--handoff",
        metavar="FILE",
        help="What you tell the steps after it: a handoff, as JSON.",
    )(command)


def handed_over(
    store: Store, where: Place, plan: Plan, step: Step, file: str | None
) -> Digest | None:
    """The stored handoff of a file; UsageError if it is none, or if the step needs one."""
    content = None if file is None else _content(step, file, where.hidden(store, plan))
    told = given_by_person(step, content, _checked(store, where.root, plan, step))
    return store.put(told) if told else None


def added(store: Store, where: Place, plan: Plan, step: Step, file: str | None) -> Digest | None:
    """The same for somebody who adds to what the attempt tells, and need not."""
    if file is None:
        return None
    content = _content(step, file, where.hidden(store, plan))
    return store.put(added_by_person(step, content, _checked(store, where.root, plan, step)))


def _checked(store: Store, root: str, plan: Plan, step: Step) -> Checked:
    """What a person's handoff names and is not there, as for the handoff of a step."""
    citations = Citations(store, plan.project, plan.name)

    def checked(handoff: Handoff) -> tuple[Handoff, list[str]]:
        told, wrong = citations.checked(handoff, step.id)
        return told, [
            *misnamed(plan, told),
            *citations.misplaced(plan.steps, step.id, told),
            *absent(step, None, told, root),
            *wrong,
        ]

    return checked


def _content(step: Step, file: str, hidden: Hidden) -> bytes:
    try:
        with open(file, "rb") as opened:
            content = opened.read(MOST_TOLD + 1)
    except OSError as error:
        raise UsageError(f"cannot read '{file}': {error.strerror}") from error
    if len(content) > MOST_TOLD:
        raise UsageError(
            f"the handoff for '{step.id}' is larger than {MOST_TOLD // 1024:,} KB",
            hint="hand over what others need to know, and name the rest under 'changed'",
        )
    check_told(f"the handoff for '{step.id}'", content, hidden)
    return content
