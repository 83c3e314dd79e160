"""Options that say how a plan is made for a goal."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import click

from holdfast.model.fixed import frozen


@frozen
class Wanted:
    """What was said about planning: who plans, and whether again. `failed` is what to avoid this time.

    Again with `replan` the model sees the plan that stands; with `fresh` it does not.
    """

    model: str | None = None
    replan: bool = False
    fresh: bool = False
    strategy: str = ""
    artifacts: int | None = None
    depth: int | None = None
    rounds: int | None = None
    with_files: bool = False
    failed: str = ""

    @property
    def anew(self) -> bool:
        """Whether a plan is wanted though there is one."""
        return self.replan or self.fresh


def goal_options(command: Callable[..., object]) -> Callable[..., object]:
    """The options of commands that may have to plan."""
    for option in (
        click.option(
            "--model",
            metavar="NAME",
            help="Who plans for a goal: provider:name, a tier or an alias (default: the tier 'large').",
        ),
        click.option(
            "--replan",
            is_flag=True,
            help="Plan a goal again from the plan that stands; shows the difference first.",
        ),
        click.option(
            "--fresh", is_flag=True, help="Plan a goal again as if there were no plan for it."
        ),
        click.option(
            "--strategy",
            type=click.Choice(["artifact-first", "contract-first", "sequential"]),
            default="artifact-first",
            help="What a plan for a goal begins with (default: the artifacts that others need).",
        ),
        click.option(
            "--max-artifacts",
            "artifacts",
            type=click.IntRange(1, 10_000),
            metavar="N",
            help="Steps that a plan for a goal may have (default: 50).",
        ),
        click.option(
            "--max-depth",
            "depth",
            type=click.IntRange(1, 1000),
            metavar="N",
            help="Steps in a row that a plan for a goal may have (default: 10).",
        ),
        click.option(
            "--rounds",
            type=click.IntRange(1, 100),
            metavar="N",
            help="How often a model may try to make a plan that holds (default: 5).",
        ),
        click.option(
            "--with-files",
            is_flag=True,
            help="Show the planner which files the project has: paths alone, none that are ignored.",
        ),
    ):
        command = option(command)
    return command


def taken(given: dict[str, object]) -> Wanted:
    """What was said about planning, taken out of the options of a command."""
    strategy = str(given.pop("strategy"))
    return Wanted(
        model=cast("str | None", given.pop("model")),
        replan=bool(given.pop("replan")),
        fresh=bool(given.pop("fresh")),
        strategy="" if strategy == "artifact-first" else strategy,
        artifacts=cast("int | None", given.pop("artifacts")),
        depth=cast("int | None", given.pop("depth")),
        rounds=cast("int | None", given.pop("rounds")),
        with_files=bool(given.pop("with_files")),
    )
