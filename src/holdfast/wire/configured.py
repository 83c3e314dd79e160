"""The configuration: both files are read at once and judged whole, whatever part of them a command uses.

So what one command takes, no other refuses. Parts that bring much with them are loaded only for files that
speak of them: a preview starts fast.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from holdfast.model.fixed import frozen
from holdfast.model.walls import Walls

if TYPE_CHECKING:
    from holdfast.config.settings import Files, Settings

_OF_MODELS = {"providers", "prices", "tiers", "aliases", "budgets"}


@frozen
class Configured:
    """What holds for a project directory."""

    settings: Settings
    walls: Walls


def configured(root: str, env: Mapping[str, str] = os.environ) -> Configured:
    """What holds for a project directory; UsageError names the file and the key that is wrong."""
    from holdfast.config.settings import read_files, settings_in
    from holdfast.config.walls import walls_in

    files = read_files(root, env)
    found = Configured(settings_in(files, env), walls_in(files))
    _judge(files, root)
    return found


def _judge(files: Files, root: str) -> None:
    """Read what is not asked for now; variables are judged by whoever needs them."""
    from holdfast.config.settings import agents_in, people_in, planner_in, rules_in

    for read in (agents_in, people_in, planner_in, rules_in):
        read(files.own, files.personal)
    if _OF_MODELS & {*files.own, *files.project}:
        from holdfast.config.providers import market_in

        market_in(files, root, {})
    if "sandbox" in files.own:
        from holdfast.config.sandbox import terms_in

        terms_in(files.own, files.personal, {})
