"""Random plans and random edits of them."""

from dataclasses import replace

from hypothesis import strategies as st

from holdfast.model.event import Options
from holdfast.model.plan import Guard, Need, NeedType, Plan, Step, StepId
from tests.laws.harness import LINE, Stage
from tests.laws.script import persons_version

NAMES = tuple(StepId(name) for name in ("z", "m", "a", "q", "k", "b", "x", "c", "w", "d", "y", "e"))
Steps = dict[StepId, Step]


@st.composite
def steps(draw: st.DrawFn, name: StepId, earlier: tuple[StepId, ...]) -> Step:
    chosen = draw(st.lists(st.sampled_from(earlier), unique=True, max_size=3)) if earlier else []
    needs = tuple(
        Need(need, draw(st.sampled_from(["data", "data", "sequence"]))) for need in chosen
    )
    modes = [""] * 12 + ["gone-first", "moody", "broken", "gone"]
    least = draw(st.sampled_from([0, 0, 1, 2]))
    skill = draw(st.sampled_from([3] * 9 + [0]))
    return Step(
        id=name,
        uses="script",
        needs=needs,
        values={
            "text": draw(st.integers(0, 2)),
            "noise": 0,
            "reads": draw(st.sampled_from([1, 1, 0])),
            "skill": skill,
            "mode": draw(st.sampled_from(modes)),
        },
        guards=(Guard("script", {"least": least}, name="g"),) if draw(st.booleans()) else (),
        retries=3,
        reuse=draw(st.sampled_from(["merkle", "merkle", "content", "strict"])),
    )


@st.composite
def plans(draw: st.DrawFn, most: int) -> Steps:
    """Steps whose order of need has nothing to do with the alphabet."""
    names = draw(st.permutations(NAMES))[: draw(st.integers(1, draw(st.sampled_from([3, most]))))]
    found: Steps = {}
    for place, name in enumerate(names):
        found[name] = draw(steps(name, tuple(names[:place])))
    return found


@st.composite
def edits(draw: st.DrawFn, before: Steps) -> Steps:
    """One change of a plan: of a step, of a need, of the set of steps."""
    after = dict(before)
    name = draw(st.sampled_from(sorted(after)))
    step = after[name]
    match draw(st.integers(0, 13)):
        case 0 | 12:
            after[name] = _with(step, text=draw(st.integers(0, 3)))
        case 1:
            after[name] = _with(step, noise=draw(st.integers(0, 1)))
        case 2:
            after[name] = replace(step, prompt=draw(st.sampled_from(["p", "q"])))
        case 3:
            after[name] = replace(step, specification=draw(st.sampled_from(["", "s", "t"])))
        case 4 | 13:
            least = draw(st.integers(0, 3))
            fatal = {"least": 0, "fatal": 1} if draw(st.integers(0, 4)) == 0 else {"least": least}
            after[name] = replace(step, guards=(Guard("script", fatal, name="g"),))
        case 5:
            after[name] = replace(step, guards=())
        case 6:
            after[name] = _rewired(draw, after, step)
        case 7 if len(after) > 1:
            del after[name]
            after = {key: _without(item, name) for key, item in after.items()}
        case 8 if len(after) < len(NAMES):
            new = draw(st.sampled_from([item for item in NAMES if item not in after]))
            after[new] = draw(steps(new, tuple(after)))
        case 9:
            after[name] = _with(
                step, mode=draw(st.sampled_from(["", "", "broken", "moody", "gone-first"]))
            )
        case 10:  # none of this decides a result
            after[name] = replace(step, description="other", priority="high", timeout=7.5)
        case _:
            after[name] = replace(
                step, reuse=draw(st.sampled_from(["merkle", "content", "strict"]))
            )
    return after


def _with(step: Step, **values: int | str) -> Step:
    return replace(step, values={**step.values, **values})


def _without(step: Step, name: StepId) -> Step:
    return replace(step, needs=tuple(need for need in step.needs if need.step != name))


def _rewired(draw: st.DrawFn, plan: Steps, step: Step) -> Step:
    """Another need, or one less; steps only ever need what stands before them."""
    earlier = list(plan)[: list(plan).index(step.id)]
    if not earlier:
        return step
    name = draw(st.sampled_from(earlier))
    rest = _without(step, name)
    if len(rest.needs) < len(step.needs) and draw(st.booleans()):
        return rest
    kind: NeedType = draw(st.sampled_from(["data", "sequence"]))
    return replace(step, needs=(*rest.needs, Need(name, kind)))


@st.composite
def scenarios(draw: st.DrawFn, most_steps: int = 8, most_stages: int = 4) -> tuple[Stage, ...]:
    """A first run and what follows it: edits, amendments, force, cutoff, a world that changed."""
    current = draw(plans(most_steps))
    salts: dict[StepId, int] = {}
    stages = [Stage(_plan(current))]
    for number in range(draw(st.integers(1, most_stages - 1))):
        for _ in range(draw(st.sampled_from([1, 1, 2, 0]))):
            current = draw(edits(current))
        names = st.sampled_from(sorted(current))
        if draw(st.integers(0, 2)) == 0:
            salts = {**salts, draw(names): number + 1}
        amended: tuple[tuple[StepId, bytes], ...] = ()
        if draw(st.integers(0, 2)) == 0:
            version = persons_version(draw(st.integers(0, 1)), draw(st.sampled_from([0, 9])))
            amended = ((draw(names), version),)
        stages.append(Stage(_plan(current), _options(draw, names), dict(salts), amended))
    return tuple(stages)


def _options(draw: st.DrawFn, names: st.SearchStrategy[StepId]) -> Options:
    match draw(st.integers(0, 6)):
        case 0:
            return Options(force_steps=tuple(draw(st.lists(names, max_size=2, unique=True))))
        case 1:
            return Options(cutoff=True)
        case 2:
            return Options(cutoff=True, force_steps=(draw(names),))
        case 3 if draw(st.integers(0, 3)) == 0:
            return Options(force=True)
    return Options()


def _plan(steps_: Steps) -> Plan:
    return Plan(name=LINE, steps=dict(steps_))
