"""What a sequence of runs must come to, worked out by plain recursion.

No engine, no journal, no store, no ref: the oracle remembers what was accepted, under which parts, and
decides each step after the steps it needs. It is slow, small, and shares nothing with the product but
the nouns.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from holdfast.model.event import Options
from holdfast.model.plan import Plan, Step, StepId
from tests.laws.script import made, mishap, verdict

Phase = Literal["done", "reused", "failed", "skipped"]

# the parts of a step that decide its result, in the order in which a change of them is named
CODES = {
    "prompt": "prompt_changed",
    "needs": "dependencies_changed",
    "values": "parameters_changed",
    "specification": "specification_changed",
    "guards": "guard_changed",
}


@dataclass(frozen=True)
class Row:
    """Something accepted, with everything that decided it."""

    own: Mapping[str, str]
    read: str
    above: str
    content: bytes
    human: bool = False

    @property
    def key(self) -> tuple[str, str, str]:
        return repr(sorted(self.own.items())), self.read, self.above

    @property
    def content_key(self) -> tuple[str, str]:
        return self.key[:2]


@dataclass(frozen=True)
class Fate:
    """What must have happened to a step by the end of a run."""

    phase: Phase
    code: str = ""
    content: bytes = b""
    executed: int = 0
    judged: int = 0
    key: tuple[str, str, str] = ("", "", "")


@dataclass
class Oracle:
    """A line's memory: accepted rows by step, what stood in the run before, and how that left each step."""

    rows: dict[StepId, list[Row]] = field(default_factory=dict)
    stood: dict[StepId, Row] = field(default_factory=dict)
    before: dict[StepId, Fate] = field(default_factory=dict)

    def amend(self, step: StepId, content: bytes) -> bool:
        """A person's version takes the place of the newest one; false if there is none."""
        if not self.rows.get(step):
            return False
        newest = self.rows[step][-1]
        self._keep(step, Row(newest.own, newest.read, newest.above, content, human=True))
        self.stood[step] = self.rows[step][-1]
        return True

    def run(self, plan: Plan, options: Options, salts: Mapping[StepId, int]) -> dict[StepId, Fate]:
        """The fate of every step of one run."""
        fates: dict[StepId, Fate] = {}
        for step_id in plan.steps:
            self._decide(plan, options, salts, step_id, fates)
        complete = all(fate.phase in {"done", "reused"} for fate in fates.values())
        self.before = {} if complete else fates
        self.stood = {
            step_id: next(
                row
                for row in reversed(self.rows[step_id])
                if (row.key, row.content) == (fate.key, fate.content)
            )
            for step_id, fate in fates.items()
            if fate.phase in {"done", "reused"}
        }
        return fates

    def _decide(
        self,
        plan: Plan,
        options: Options,
        salts: Mapping[StepId, int],
        step_id: StepId,
        fates: dict[StepId, Fate],
    ) -> Fate:
        if step_id in fates:
            return fates[step_id]
        step = plan.steps[step_id]
        above = {
            need.step: self._decide(plan, options, salts, need.step, fates) for need in step.needs
        }
        if any(fate.phase in {"failed", "skipped"} for fate in above.values()):
            fates[step_id] = Fate("skipped")
        else:
            data = {need: above[need] for need in step.data_needs}
            fates[step_id] = self._complete(step, options, salts.get(step_id, 0), data)
        return fates[step_id]

    def _complete(
        self, step: Step, options: Options, salt: int, above: Mapping[StepId, Fate]
    ) -> Fate:
        own = parts(step)
        ordered = sorted(above.items())  # the order in which needs are written decides nothing
        read = short([(need, fate.content) for need, fate in ordered])
        now = Row(own, read, short([(need, fate.key) for need, fate in ordered]), b"")
        rows = self.rows.get(step.id, [])
        if options.force or step.id in options.force_steps:
            return self._execute(step, now, above, salt, "forced")
        for row in reversed(rows):
            if row.key == now.key:
                code = "amended" if row.human else "unchanged"
                return Fate("reused", code, row.content, key=now.key)
        if options.cutoff or step.reuse == "content":
            for row in reversed(rows):
                if row.content_key == now.content_key:
                    self._keep(step.id, Row(own, read, now.above, row.content, human=row.human))
                    return Fate("reused", "unchanged_content", row.content, key=now.key)
        if rows and step.reuse != "strict" and changed(rows[-1], now) == ["guards"]:
            return self._guard_again(step, now, above, salt, rows[-1])
        return self._execute(step, now, above, salt, self._why(step.id, now))

    def _why(self, step: StepId, now: Row) -> str:
        before, rows = self.before.get(step), self.rows.get(step)
        if before is not None and before.phase == "failed" and before.key == now.key:
            return "previous_failed"
        if not rows:
            skipped = before is not None and before.phase == "skipped"
            return "previous_incomplete" if skipped else "never_ran"
        base = self.stood.get(step, rows[-1])  # not what was tried and taken back before
        return CODES.get(changed(base, now)[0], "upstream_changed")

    def _guard_again(
        self, step: Step, now: Row, above: Mapping[StepId, Fate], salt: int, kept: Row
    ) -> Fate:
        said = verdict(step.guards, kept.content)
        if said.passed:
            self._keep(step.id, Row(now.own, now.read, now.above, kept.content, human=kept.human))
            code = "amended" if kept.human else "reguarded"
            return Fate("reused", code, kept.content, judged=1, key=now.key)
        if said.call == "fatal":
            return Fate("failed", "guard_fatal", judged=1, key=now.key)
        return self._execute(step, now, above, salt, "guard_changed", judged=1)

    def _execute(
        self,
        step: Step,
        now: Row,
        above: Mapping[StepId, Fate],
        salt: int,
        code: str,
        judged: int = 0,
    ) -> Fate:
        """Try until it is accepted or a budget is spent; what was guarded again counts as one refusal."""
        refusals, tries, losses = judged, 0, 0
        while True:
            tries += 1
            ended = mishap(step, judged + tries, salt)
            if ended is not None and ended.ended == "lost":
                losses += 1
                if losses > step.lost_retries:
                    return Fate("failed", ended.code, b"", tries, judged, now.key)
                continue
            if ended is None:
                read = {need: fate.content for need, fate in above.items()}
                content = made(step, read, refusals, salt)
                said = verdict(step.guards, content)
                if said.passed:
                    self._keep(step.id, Row(now.own, now.read, now.above, content))
                    return Fate("done", code, content, tries, judged, now.key)
                if said.call == "fatal":
                    return Fate("failed", "guard_fatal", b"", tries, judged, now.key)
            refusals += 1
            if refusals - judged > step.retries:
                last = "guard_rejected" if ended is None else ended.code
                return Fate("failed", last, b"", tries, judged, now.key)

    def _keep(self, step: StepId, row: Row) -> None:
        self.rows.setdefault(step, []).append(row)


def parts(step: Step) -> dict[str, str]:
    """The own parts that the plans of these tests use, as text."""
    return {
        "prompt": repr(step.prompt),
        "needs": repr(sorted(step.data_needs)),
        "values": repr(sorted(step.values.items())),
        "specification": step.specification,
        "guards": repr(step.guards),
    }


def changed(row: Row, now: Row) -> list[str]:
    """The parts that differ, own before above."""
    names = [name for name in CODES if row.own[name] != now.own[name]]
    if "needs" not in names and (row.read, row.above) != (now.read, now.above):
        names.append("above")
    return names


def short(value: object) -> str:
    return hashlib.sha256(repr(value).encode()).hexdigest()
