"""What a run does with the files of steps that left the plan: keep, list or prune them."""

from __future__ import annotations

import click

from holdfast.cli.again import again
from holdfast.cli.place import Place
from holdfast.cli.say import talk
from holdfast.engine.removed import Left, left_behind, prune
from holdfast.model.plan import Plan

LISTED = 20

removed_option = click.option(
    "--removed",
    type=click.Choice(["keep", "list", "prune"]),
    default="list",
    help="Files of steps that left the plan: keep them, list them (the default), or delete those that "
    "nobody changed.",
)


def tidy(where: Place, plan: Plan, choice: str) -> None:
    """After a run is complete: say which files nobody makes any more, or delete them."""
    if choice == "keep":
        return
    store = where.open(readonly=True)
    try:
        left = left_behind(plan, plan.name, store, where.root)
    finally:
        store.close()
    if choice != "prune":
        left = [item for item in left if not item.changed]
    if not left:
        return
    if choice == "prune":
        prune(where.root, where.location, left)
    _tell(left, gone=choice == "prune")


def _tell(left: list[Left], *, gone: bool) -> None:
    for item in left[:LISTED]:
        if item.changed:
            talk(f"- {item.path}: kept, somebody changed it since '{item.step}' made it")
        elif gone:
            talk(
                f"- {item.path}: deleted, its step '{item.step}' left the plan ({item.digest[:12]})"
            )
        else:
            talk(f"- {item.path}: kept, though its step '{item.step}' left the plan")
    if len(left) > LISTED:
        talk(f"- and {len(left) - LISTED} more")
    if not gone:
        talk(again("  to delete them: holdfast run --removed prune"))
