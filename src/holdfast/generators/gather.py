"""A generator that stands for gathering what items made: the engine does it, out of what it knows."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.errors import AttemptError
from holdfast.model.digest import Json
from holdfast.model.plan import Step
from holdfast.ports import Candidate, Job


class GatherGenerator:
    """Adds nothing to the key: the items and their order are what the step needs."""

    def identity(self, step: Step, root: str) -> Mapping[str, Json]:
        del step, root
        return {}

    async def generate(self, job: Job) -> Candidate:
        raise AttemptError(f"'{job.step.id}' is gathered by the engine", reason="command_failed")

    async def close(self) -> None:
        """Nothing is kept."""
