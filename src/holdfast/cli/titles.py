"""What lines are called on screen: a goal by its words, its digest by the first digits."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from holdfast.model.text import cut, one_line

if TYPE_CHECKING:
    from holdfast.model.plan import Plan

SHOWN = 12  # digits
_WIDEST = 60  # columns of a goal
_DIGEST = re.compile(r"([0-9a-f]{64})(\.planning)?")


def line_title(line: str, goal: str) -> str:
    """A line as people know it: the words of its goal, if nobody gave it a name."""
    found = _DIGEST.fullmatch(line)
    if found is None:
        return line
    from holdfast.model.digest import digest_bytes  # few lines are of goals, and help has none

    if not goal or digest_bytes(goal.encode()) != found[1]:
        return brief(line)
    words = cut(one_line(" ".join(goal.split())), _WIDEST)
    return f"planning of '{words}'" if found[2] else f"'{words}'"


def plan_title(plan: Plan) -> str:
    """The title of the line of a plan."""
    return line_title(plan.name, plan.goal)


def brief(line: str) -> str:
    """The name of a line as it is typed: of a digest, as many digits as tell it from others."""
    found = _DIGEST.fullmatch(line)
    return line if found is None else found[1][:SHOWN] + (found[2] or "")


def is_planning(line: str) -> bool:
    """Whether plans for another line are made on this one."""
    from holdfast.planner.goal import PLANNING

    return line.endswith(PLANNING)
