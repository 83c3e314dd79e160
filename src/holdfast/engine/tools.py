"""Asks the tools of a plan for their versions."""

from __future__ import annotations

import os
from collections.abc import Iterable
from tempfile import TemporaryDirectory

from holdfast.model.items import with_templates
from holdfast.model.plan import Plan, Step
from holdfast.process.run import Command, run
from holdfast.process.terms import Terms


async def tool_versions(
    plan: Plan, root: str, terms: Terms | None
) -> dict[tuple[str, ...], bytes | None]:
    """What each tool says, asked once on these terms; None if it could not say."""
    return await versions_for(with_templates(plan), root, terms)


async def versions_for(
    steps: Iterable[Step], root: str, terms: Terms | None
) -> dict[tuple[str, ...], bytes | None]:
    """The same for some steps."""
    found: dict[tuple[str, ...], bytes | None] = {}
    for step in steps:
        for argv in step.tool_versions.values():
            if argv not in found:
                found[argv] = await _version(argv, root, terms)
    return found


async def _version(argv: tuple[str, ...], root: str, terms: Terms | None) -> bytes | None:
    env = {"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8"}
    with TemporaryDirectory(prefix="holdfast-") as room:  # all that it may write to
        box = None if terms is None else terms.sandbox_for(root, room, room, env["PATH"])
        done = await run(Command(argv=argv, cwd=root, env=env, timeout=30, sandbox=box))
    return done.stdout if done.code == 0 else None
