"""Random plans and random edits of them."""

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import strategies as st

from holdfast.model.event import Options
from holdfast.model.plan import Guard, Need, NeedType, Plan, Reuse, Step, StepId
from tests.laws.choosing import Choose, by_hypothesis, several
from tests.laws.harness import LINE, Stage
from tests.laws.script import persons_version

NAMES = tuple(StepId(name) for name in ("z", "m", "a", "q", "k", "b", "x", "c", "w", "d", "y", "e"))
Steps = dict[StepId, Step]
TYPES: tuple[NeedType, ...] = ("data", "data", "sequence")
REUSES: tuple[Reuse, ...] = ("merkle", "merkle", "content", "strict")


def a_step(choose: Choose, name: StepId, earlier: Sequence[StepId]) -> Step:
    needs = tuple(Need(need, choose(TYPES)) for need in several(choose, earlier, 3))
    modes = [""] * 12 + ["gone-first", "moody", "broken", "gone"]
    least = choose([0, 0, 1, 2])
    return Step(
        id=name,
        uses="script",
        needs=needs,
        values={
            "text": choose(range(3)),
            "noise": 0,
            "reads": choose([1, 1, 0]),
            "skill": choose([3] * 9 + [0]),
            "mode": choose(modes),
        },
        guards=(Guard("script", {"least": least}, name="g"),) if choose([False, True]) else (),
        retries=3,
        reuse=choose(REUSES),
    )


def a_plan(choose: Choose, most: int) -> Steps:
    """Steps whose order of need has nothing to do with the alphabet."""
    left, found = list(NAMES), Steps()
    for _ in range(choose(range(1, choose([3, most]) + 1))):
        name = left.pop(choose(range(len(left))))
        found[name] = a_step(choose, name, tuple(found))
    return found


def an_edit(choose: Choose, before: Steps) -> Steps:
    """One change of a plan: of a step, of a need, of the set of steps."""
    after = dict(before)
    name = choose(sorted(after))
    step = after[name]
    match choose(range(14)):
        case 0 | 12:
            after[name] = _with(step, text=choose(range(4)))
        case 1:
            after[name] = _with(step, noise=choose(range(2)))
        case 2:
            after[name] = replace(step, prompt=choose(["p", "q"]))
        case 3:
            after[name] = replace(step, specification=choose(["", "s", "t"]))
        case 4 | 13:
            least = choose(range(4))
            fatal = {"least": 0, "fatal": 1} if choose(range(5)) == 0 else {"least": least}
            after[name] = replace(step, guards=(Guard("script", fatal, name="g"),))
        case 5:
            after[name] = replace(step, guards=())
        case 6:
            after[name] = _rewired(choose, after, step)
        case 7 if len(after) > 1:
            del after[name]
            after = {key: _without(item, name) for key, item in after.items()}
        case 8 if len(after) < len(NAMES):
            new = choose([item for item in NAMES if item not in after])
            after[new] = a_step(choose, new, tuple(after))
        case 9:
            after[name] = _with(step, mode=choose(["", "", "broken", "moody", "gone-first"]))
        case 10:  # none of this decides a result
            after[name] = replace(step, description="other", priority="high", timeout=7.5)
        case _:
            after[name] = replace(step, reuse=choose(["merkle", "content", "strict"]))
    return after


def _with(step: Step, **values: int | str) -> Step:
    return replace(step, values={**step.values, **values})


def _without(step: Step, name: StepId) -> Step:
    return replace(step, needs=tuple(need for need in step.needs if need.step != name))


def _rewired(choose: Choose, plan: Steps, step: Step) -> Step:
    """Another need, or one less; steps only ever need what stands before them."""
    earlier = list(plan)[: list(plan).index(step.id)]
    if not earlier:
        return step
    name = choose(earlier)
    rest = _without(step, name)
    if len(rest.needs) < len(step.needs) and choose([False, True]):
        return rest
    return replace(step, needs=(*rest.needs, Need(name, choose(["data", "sequence"]))))


def a_scenario(choose: Choose, most_steps: int = 8, most_stages: int = 4) -> tuple[Stage, ...]:
    """A first run and what follows it: edits, amendments, force, cutoff, a world that changed."""
    current = a_plan(choose, most_steps)
    salts: dict[StepId, int] = {}
    stages = [Stage(_plan(current))]
    for number in range(choose(range(1, most_stages))):
        for _ in range(choose([1, 1, 2, 0])):
            current = an_edit(choose, current)
        names = sorted(current)
        if choose(range(3)) == 0:
            salts = {**salts, choose(names): number + 1}
        amended: tuple[tuple[StepId, bytes], ...] = ()
        if choose(range(3)) == 0:
            version = persons_version(choose(range(2)), choose([0, 9]))
            amended = ((choose(names), version),)
        stages.append(Stage(_plan(current), _options(choose, names), dict(salts), amended))
    return tuple(stages)


def _options(choose: Choose, names: Sequence[StepId]) -> Options:
    match choose(range(7)):
        case 0:
            return Options(force_steps=tuple(several(choose, names, 2)))
        case 1:
            return Options(cutoff=True)
        case 2:
            return Options(cutoff=True, force_steps=(choose(names),))
        case 3 if choose(range(4)) == 0:
            return Options(force=True)
    return Options()


def _plan(steps_: Steps) -> Plan:
    return Plan(name=LINE, steps=dict(steps_))


@st.composite
def scenarios(draw: st.DrawFn, most_steps: int = 8, most_stages: int = 4) -> tuple[Stage, ...]:
    """A scenario that Hypothesis chose, and can make smaller."""
    return a_scenario(by_hypothesis(draw), most_steps, most_stages)
