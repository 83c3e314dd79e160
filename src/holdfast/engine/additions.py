"""What accepted attempts of a line added to its plan: whoever reuses an artifact has it added again."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.engine.journals import read_plan
from holdfast.engine.lines import Line
from holdfast.model.agent import Registry, released, with_contracts
from holdfast.model.artifact import Artifact
from holdfast.model.digest import Digest
from holdfast.model.line import StepsAdded
from holdfast.model.plan import Plan, RunId, Step, StepId
from holdfast.ports import Store


class Additions:
    """The additions of one line, read from its journal."""

    def __init__(self, store: Store, project: str, line: str) -> None:
        self._store = store
        self._project = project
        self._name = line
        self._line = Line(store, project, line, lambda: 0)
        self._is_read = False
        self._by_attempt: dict[tuple[StepId, RunId, int], StepsAdded] = {}
        self._by_ref: dict[tuple[StepId, Digest], StepsAdded] = {}
        self._by_digest: dict[tuple[StepId, Digest], StepsAdded] = {}
        self._plans: dict[Digest, Plan] = {}
        self._others: dict[str, Additions] = {}

    def refresh(self) -> None:
        """Read what was added since; other engines may add to the line too."""
        for recorded in self._line.news():
            event = recorded.event
            if isinstance(event, StepsAdded):
                self._by_attempt[event.step, event.run, event.attempt] = event
                self._by_ref[event.step, event.input_ref] = event
                self._by_digest[event.step, event.digest] = event
        self._is_read = True

    def are_any(self) -> bool:
        """Whether anything was ever added by a step of this line."""
        if not self._is_read:
            self.refresh()
        return bool(self._by_attempt)

    def of(self, artifact: Artifact) -> Mapping[StepId, Step]:
        """The steps that came with an artifact; of most there are none.

        What an attempt made is known by the attempt. A row without one is a copy under another ref, a
        person's version in the same place, or an earlier result that a person let stand.
        """
        if not self._is_read:
            self.refresh()
        if artifact.line != self._name:
            return self._other(artifact.line).of(artifact)
        if not self._by_attempt:
            return {}
        step = artifact.step
        if artifact.attempt:
            found = self._by_attempt.get((step, artifact.run, artifact.attempt))
        else:
            found = self._by_ref.get((step, artifact.input_ref))
            if found is None and artifact.source == "accepted":
                found = self._by_digest.get((step, artifact.digest))
        return {} if found is None else self._steps(found)

    def _steps(self, event: StepsAdded) -> Mapping[StepId, Step]:
        plan = self._plans.get(event.plan)
        if plan is None:
            plan = self._plans[event.plan] = read_plan(self._store, event.plan)
        then = with_contracts(Registry(), plan.contracts)  # those of today hold them again
        return {step_id: released(plan.steps[step_id], then) for step_id in event.added}

    def _other(self, line: str) -> Additions:
        """Those of another line, whose artifact is shared."""
        if line not in self._others:
            self._others[line] = Additions(self._store, self._project, line)
        return self._others[line]
