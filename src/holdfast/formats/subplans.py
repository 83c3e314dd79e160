"""Sub-plans: a step that stands for the steps of another plan file, taken over when the plan is read.

The steps of the other file get the ids `base.inner`. Those that need nothing in it come after all that the
step needs; those that nothing in it needs are what the step gathers. Paths are relative to the project of
the outer plan, whose limits and agents hold.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Mapping as Table
from dataclasses import replace
from typing import cast

from holdfast.errors import PlanError, Problem, UsageError
from holdfast.formats.nodes import Mapping, Node
from holdfast.formats.premises import STEP_PREMISES
from holdfast.formats.problems import Placed, folded, quoted
from holdfast.formats.reading import Reading
from holdfast.formats.shapes import PATH
from holdfast.model.condition import JOINS, references, referred
from holdfast.model.digest import Json
from holdfast.model.expression import Part, Reference, fill, parse, parts, write
from holdfast.model.items import base_of
from holdfast.model.plan import GATHER, STEP_ID, Need, Plan, Step, StepId

PLAN_USES = "plan"
DEEPEST = 20  # files inside each other
_MAY_HAVE = frozenset(
    {"uses", "run", "with", "needs", "description", "when", "optional", *STEP_PREMISES}
)
_GATHER_MAY_HAVE = frozenset(
    {"uses", "needs", "description", "when", "optional", "priority", *STEP_PREMISES}
)

Load = Callable[[str, Table[str, Json]], tuple[Plan, tuple[Problem, ...]]]


def take_plan(reading: Reading, node: Mapping, given: dict[str, object], run: Node | None) -> None:
    """What a step says that stands for another plan: the file, and values for its params."""
    problems = reading.problems
    for key, (place, _) in node.pairs.items():
        if key not in _MAY_HAVE:
            message = f"step {quoted(reading.step)} is a plan and cannot have '{key}'"
            problems.add("P095", place, message, "say it of the steps of that plan")
    if run is None:
        place = node.pairs["uses"][0]
        message = f"step {quoted(reading.step)} uses a plan and has no 'run'"
        problems.add("P042", place, message, "write run: other.yaml")
        return
    path = PATH.read(reading, "run", run)
    if path is not None:
        given["run"] = (path,)
        reading.plans[reading.step] = run


def refuse_made(reading: Reading) -> None:
    """Values for the params of another plan are filled in when it is read, so no step made them."""
    made = [use for use in reading.uses if use.reference.root == "steps"]
    for use in made:
        message = f"the values of {quoted(reading.step)} are read with the plan: no step ran yet"
        hint = "give text, numbers or ${{ params.X }}"
        reading.problems.add("P095", use.place(0), message, hint)
    reading.uses = [use for use in reading.uses if use not in made]


def take_gather(reading: Reading, node: Mapping) -> None:
    """A step that gathers what it needs has nothing else to say."""
    for key, (place, _) in node.pairs.items():
        if key not in _GATHER_MAY_HAVE:
            message = (
                f"step {quoted(reading.step)} only gathers what it needs and cannot have '{key}'"
            )
            reading.problems.add("P095", place, message, "leave it out")
    if "needs" not in node.pairs:
        message = f"step {quoted(reading.step)} gathers, and needs nothing"
        reading.problems.add(
            "P033", node.pairs["uses"][0], message, "say in 'needs' what it gathers"
        )


def inlined(reading: Reading, steps: Table[StepId, Step], load: Load) -> dict[StepId, Step]:
    """The steps, with those of other plans in the place of the steps that stand for them."""
    if not any(step.uses == PLAN_USES for step in steps.values()):
        return dict(steps)
    found: dict[StepId, Step] = {}
    owners = {folded(step_id): step_id for step_id in steps}
    for step_id, step in steps.items():
        place = reading.plans.get(step_id)
        if step.uses != PLAN_USES or place is None:  # without a file it was refused
            found[step_id] = step
            continue
        try:
            values = cast("Table[str, Json]", fill(dict(step.values), lambda _: None))
            plan, warnings = load(step.run[0], values)
        except PlanError as error:
            for problem in error.problems:
                reading.problems.add(problem.code, place, _told(problem), problem.hint)
            continue
        except UsageError as error:  # a param that the other plan does not have
            reading.problems.add("P095", place, error.message, error.hint or "")
            continue
        for warning in warnings:
            reading.problems.warn(warning.code, place, _told(warning), warning.hint)
        for name, inner in _taken_over(step, plan).items():
            _check_id(reading, name, owners.setdefault(folded(name), step_id), step_id, place)
            found[name] = inner
    return found


def _told(problem: Problem) -> str:
    """A problem of another file, with its place there if it has one."""
    if not problem.line:
        return problem.message
    return f"{problem.file}:{problem.line}:{problem.column}: {problem.message}"


def _check_id(reading: Reading, name: StepId, owner: StepId, base: StepId, place: Placed) -> None:
    """See that the step has an id, and that the plan has no other of it: `owner` says whose it is."""
    plain = base_of(name) or name
    if not STEP_ID.match(plain):
        message = f"{quoted(name)}, a step of another plan, has too long an id"
        reading.problems.add("P002", place, message, "give the step a shorter id")
    elif owner != base:
        message = f"the plan has a step {quoted(name)}, and so has the plan that it takes over"
        reading.problems.add("P050", place, message, "give one of them another id")


def _taken_over(base: Step, plan: Plan) -> dict[StepId, Step]:
    """The steps of the other plan under their new ids, and the one that gathers what its last ones made."""
    prefix = f"{base.id}."
    needed = {need.step for step in plan.steps.values() for need in step.needs}
    found: dict[StepId, Step] = {}
    for step in plan.steps.values():
        inner = _renamed(step, prefix)
        if not step.needs:
            inner = replace(inner, needs=base.needs, when=_joined(base.when, inner.when))
            if inner.uses == GATHER:  # it gathers nothing, and not that either
                needs = tuple(replace(need, type="sequence", key="") for need in base.needs)
                inner = replace(inner, needs=needs)
        elif all(need.optional for need in step.needs):
            inner = _conditional(base, inner)
        found[inner.id] = inner
    last = [StepId(prefix + s) for s in plan.steps if s not in needed and base_of(s) is None]
    whole = Step(
        base.id,
        uses=GATHER,
        needs=tuple(Need(step_id) for step_id in last),
        description=base.description,
        optional=base.optional,
        type=base.type,
        mode=base.mode,
        hypotheses=base.hypotheses,
        requirements=base.requirements,
        preregistered=base.preregistered,
        evaluate_against=base.evaluate_against,
    )
    goes_on = all(found[step_id].optional for step_id in last)
    found[base.id] = _conditional(base, whole) if goes_on else whole
    return found


def _conditional(base: Step, inner: Step) -> Step:
    """A step that would go on without all others of its plan, under the condition of that plan.

    Any other is left out with what it needs.
    """
    if base.when is None:
        return inner
    compared = {StepId(reference.name) for reference in references(base.when)}
    needs = [replace(need, type="sequence", key="") for need in base.needs if need.step in compared]
    template = inner.template and _conditional(base, inner.template)
    items = tuple(need for need in inner.needs if base_of(need.step) == inner.id)
    own = tuple(need for need in inner.needs if base_of(need.step) != inner.id)
    when = _joined(base.when, inner.when)
    return replace(inner, needs=(*own, *needs, *items), when=when, template=template)


def _joined(outer: Json, inner: Json) -> Json:
    if outer is None or inner is None:
        return inner if outer is None else outer
    return {"all": [outer, inner]}


def _renamed(step: Step, prefix: str) -> Step:
    """The step with another id, and with the new ids of all that it names."""
    return replace(
        step,
        id=StepId(prefix + step.id),
        within=_within(step, prefix),
        needs=tuple(replace(need, step=StepId(prefix + need.step)) for need in step.needs),
        values=cast("Table[str, Json]", _filled(dict(step.values), prefix)),
        prompt=_filled(step.prompt, prefix),
        escalate=tuple(prefix + name for name in step.escalate),
        for_each=_filled(step.for_each, prefix)
        if isinstance(step.for_each, str)
        else step.for_each,
        when=None if step.when is None else _compared(step.when, prefix),
        template=None if step.template is None else _renamed(step.template, prefix),
    )


def _within(step: Step, prefix: str) -> str:
    if step.uses == GATHER:  # it is given nothing
        return ""
    return prefix + step.within if step.within else prefix[:-1]


def _filled(value: Json, prefix: str) -> Json:
    if isinstance(value, str):
        if not any(True for _ in parts(value)):
            return value
        return write([_part(part, prefix) for part in parse(value)])
    if isinstance(value, Table):
        return {key: _filled(item, prefix) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_filled(item, prefix) for item in value]
    return value


def _part(part: Part, prefix: str) -> Part:
    if not isinstance(part, Reference) or part.root != "steps":
        return part
    path = f"steps.{prefix}{part.path.removeprefix('steps.')}"
    return part._replace(name=prefix + part.name, path=path)


def _compared(when: Json, prefix: str) -> Json:
    found: dict[str, Json] = {}
    for key, value in cast("Table[str, Json]", when).items():
        if key in JOINS:
            found[key] = [_compared(item, prefix) for item in cast("list[Json]", value)]
        else:
            assert referred(key) is not None  # as it was read
            found[f"steps.{prefix}{key.removeprefix('steps.')}"] = value
    return found
