"""Asks the tools of a plan for their versions."""

from __future__ import annotations

import os
from collections.abc import Iterable

from holdfast.model.plan import Plan, Step
from holdfast.process.run import Command, run


async def tool_versions(plan: Plan, root: str) -> dict[tuple[str, ...], bytes | None]:
    """What each tool says, asked once; None if it could not say."""
    return await versions_for(plan.steps.values(), root)


async def versions_for(steps: Iterable[Step], root: str) -> dict[tuple[str, ...], bytes | None]:
    """The same for some steps."""
    found: dict[tuple[str, ...], bytes | None] = {}
    for step in steps:
        for argv in step.tool_versions.values():
            if argv not in found:
                found[argv] = await _version(argv, root)
    return found


async def _version(argv: tuple[str, ...], root: str) -> bytes | None:
    env = {"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8"}
    done = await run(Command(argv=argv, cwd=root, env=env, timeout=30))
    return done.stdout if done.code == 0 else None
