"""A generator that is a person: what it gives comes through an approval, never from here."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.errors import AttemptError
from holdfast.model.digest import Json
from holdfast.model.plan import Step
from holdfast.ports import Candidate, Job


class HumanGenerator:
    """Stands for the person in the key; the engine asks, and guards what it is given."""

    def identity(self, step: Step, root: str) -> Mapping[str, Json]:
        del step, root
        return {}

    async def generate(self, job: Job) -> Candidate:
        raise AttemptError(f"nobody gave '{job.step.id}' yet", reason="command_failed")

    async def close(self) -> None:
        """Nothing is kept."""
