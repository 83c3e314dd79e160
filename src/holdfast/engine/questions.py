"""What people are asked: documents of everything that decides what would happen, and who may answer.

The digest of a document is the subject of an approval. It holds no run and no time, so the same
situation is the same question in every run, and any other situation is another one. Only the
repetition of an effect names its run: it is about one thing that may have happened.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from holdfast.core.effects import FOR_A_PERSON
from holdfast.core.state import StepState
from holdfast.engine.probe import Probed
from holdfast.model.artifact import Form
from holdfast.model.digest import Digest, Json, canonical, digest_bytes
from holdfast.model.line import Gate
from holdfast.model.plan import Guard, RunId, Step, StepId, fragment_bytes

SUBJECT_SCHEMA = "holdfast.approval/1"
# a person says whether it may be tried again
HELD = FOR_A_PERSON | {"stuck"}


class Question(NamedTuple):
    """What a person is asked: the document of everything that is covered, and who may answer."""

    gate: Gate
    document: bytes
    names: tuple[str, ...] = ()

    @property
    def subject(self) -> Digest:
        """What an approval of it is bound to."""
        return digest_bytes(self.document)


def before(
    step: Step,
    w_ref: Digest,
    probed: Probed,
    above: Callable[[StepId], Digest | None],
    attempts: int,
    sent_back: int = 0,
    *,
    pays: bool = False,
) -> list[Question]:
    """What has to be answered before an attempt at this step may begin.

    `above` gives the content of a step that this one needs; `attempts` is how many were made; `sent_back`
    is how often a step below sent this one back: what was said before that does not stand for it. With
    `pays` it costs money that nobody agreed to.
    """
    found: list[Question] = []
    covered = _covered(step, w_ref, probed, above)
    if sent_back:
        covered["sent_back"] = sent_back
    if pays or step.approve in {"always", "on_change"}:
        found.append(_question("step", covered))
    elif is_over_budget(step, attempts):
        found.append(_question("budget", {**covered, "attempts": attempts}))
    for need in step.needs:
        if need.asks:
            about: dict[str, Json] = {"from": need.approver, "after": need.step}
            about["artifact"] = above(need.step)
            names = (need.approver,) if need.approver else ()
            found.append(_question("edge", {**covered, **about}, names))
    if step.uses == "human":
        found.append(_question("answer", covered, (step.agent,) if step.agent else ()))
    return found


def of_items(base: Step, w_ref: Digest, items: Sequence[Step]) -> Question:
    """Whether items of a step may cost money; it is about these items and what they do."""
    covered: dict[str, Json] = {"step": base.id, "plan": w_ref, "items": len(items)}
    made = digest_bytes(fragment_bytes({item.id: item for item in items}))
    return _question("step", {**covered, "fragment": made})


def about(
    step: Step, w_ref: Digest, guards: Sequence[str], digest: Digest, form: Form
) -> list[Question]:
    """What has to be answered before a candidate may be accepted; `guards` are those that ask."""
    made: dict[str, Json] = {"step": step.id, "plan": w_ref, "produces": list(step.produces)}
    made |= {"artifact": digest, "form": form}
    return [
        _question("guard", {**made, "guard": guard}, approvers(step.guards, guard))
        for guard in guards
    ]


def goes_on(step: StepId, run: RunId, here: StepState, beside: Sequence[str] = ()) -> Question:
    """Whether a step that is held for a person may be tried again.

    `beside` are the attempts of other runs of the line whose effect is open: a yes is about those, too, and
    about no later one.
    """
    if here.reason is not None and here.reason.code == "stuck":
        return _question("stuck", {"step": step, "run": run, "attempt": here.attempts})
    about: dict[str, Json] = {"step": step, "run": run, "attempt": here.attempts}
    about |= {"key": here.effect, **({"beside": list(beside)} if beside else {})}
    return _question("effect", about)


def is_over_budget(step: Step, attempts: int) -> bool:
    """Whether the attempts that were made are all that the step may make without asking."""
    most = step.budget.get("attempts")
    if step.approve != "over_budget" or not isinstance(most, int):
        return False
    return attempts > 0 and attempts % most == 0


def approvers(guards: Sequence[Guard], path: str) -> tuple[str, ...]:
    """The name that somebody must hold who answers for a `human` guard, found by its path."""
    name, _, rest = path.partition("/")
    for guard in guards:
        if (guard.name or guard.kind) != name:
            continue
        if rest:
            return approvers(guard.items, rest)
        asked = guard.config.get("from") if isinstance(guard.config, Mapping) else None
        return (asked,) if isinstance(asked, str) and asked else ()
    return ()


def _covered(
    step: Step, w_ref: Digest, probed: Probed, above: Callable[[StepId], Digest | None]
) -> dict[str, Json]:
    """Everything that decides what an attempt would do."""
    seen = probed.seen
    needs: dict[str, Json] = {need: above(need) for need in step.data_needs}
    env = {"env_digests": _digests(seen.get("env"))} if step.env else {}
    return {
        **env,
        "step": step.id,
        "plan": w_ref,
        "input_ref": probed.probe.refs.input_ref,
        "uses": step.uses,
        "run": list(step.run),
        "shell": step.shell,
        "with": step.values,
        "env": list(step.env),
        "secrets": list(step.secrets),
        "effects": step.effects,
        "idempotent": step.idempotent,
        "workspace": step.workspace,
        "approve": step.approve,
        "produces": list(step.produces),
        "files": {**_digests(seen.get("inputs")), **_digests(seen.get("files"))},
        "needs": needs,
    }


def _question(gate: Gate, covered: dict[str, Json], names: tuple[str, ...] = ()) -> Question:
    return Question(gate, canonical({"schema": SUBJECT_SCHEMA, "gate": gate, **covered}), names)


def _digests(part: Json) -> dict[str, Json]:
    return dict(part) if isinstance(part, dict) else {}
