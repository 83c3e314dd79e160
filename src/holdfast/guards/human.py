"""A guard that is a person: it never decides by itself, it asks."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.guards.candidate import name_of
from holdfast.model.artifact import Verdict
from holdfast.model.digest import Json
from holdfast.model.plan import Guard
from holdfast.ports import Candidate, Job


class HumanGuard:
    """Leaves the candidate to a person; the engine asks, and keeps it until there is an answer."""

    def identity(self, guard: Guard, root: str) -> Mapping[str, Json]:
        del guard, root
        return {}

    async def judge(self, guard: Guard, candidate: Candidate, job: Job) -> Verdict:
        del candidate, job
        return Verdict("ask", name_of(guard))
