"""plans: what can be made of a plan beside a run of it."""

from __future__ import annotations

import click

from holdfast.cli.templating import save_as_template


@click.group("plans", epilog="\b\nExample:\n  holdfast plans save-as-template review")
def plans() -> None:
    """Keep a plan as a template for further projects."""


plans.add_command(save_as_template)
