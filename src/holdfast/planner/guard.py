"""The guard of plans: refuses artifacts that no plan can be made of, and says everything that is wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from holdfast.model.artifact import Verdict
from holdfast.model.digest import Json
from holdfast.model.plan import Guard
from holdfast.model.strict import strict_json
from holdfast.planner.goal import GOAL
from holdfast.ports import Candidate, Job

Flaws = Callable[[Json, Mapping[str, Json], str, str], list[str]]


class PlanGuard:
    """Structure, dependencies, components, contracts, limits; then what a plan file is checked for.

    `flaws` says what is wrong with an answer, given what the guard was told, the goal and the project
    directory.
    """

    def __init__(self, flaws: Flaws) -> None:
        self._flaws = flaws

    def identity(self, guard: Guard, root: str) -> Mapping[str, Json]:
        del guard, root
        return {}

    async def judge(self, guard: Guard, candidate: Candidate, job: Job) -> Verdict:
        config = guard.config if isinstance(guard.config, Mapping) else {}
        try:
            value = strict_json(candidate.content.decode())
        except ValueError as error:
            return Verdict("reject", guard.name or guard.kind, f"the answer is not JSON: {error}")
        told = self._flaws(value, config, str(job.step.values.get(GOAL, "")), job.root)
        if not told:
            return Verdict("accept", guard.name or guard.kind)
        return Verdict("reject", guard.name or guard.kind, "\n".join(f"- {line}" for line in told))
