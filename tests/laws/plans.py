"""Plans written by hand for the little world of `script`."""

from holdfast.model.digest import Json
from holdfast.model.plan import Guard, Limits, Need, NeedType, Plan, Reuse, Step, StepId
from tests.laws.harness import LINE


def step(
    name: str,
    *needs: str,
    text: int = 1,
    noise: int = 0,
    reads: int = 1,
    skill: int = 3,
    mode: str = "",
    least: int | None = None,
    retries: int = 3,
    reuse: Reuse = "merkle",
    kind: NeedType = "data",
) -> Step:
    """A step; `least` is what its guard asks of the quality, which grows by one with each refusal."""
    values: dict[str, Json] = {
        "text": text,
        "noise": noise,
        "reads": reads,
        "skill": skill,
        "mode": mode,
    }
    return Step(
        id=StepId(name),
        uses="script",
        needs=tuple(Need(StepId(need), kind) for need in needs),
        values=values,
        guards=() if least is None else (Guard("script", {"least": least}, name="g"),),
        retries=retries,
        reuse=reuse,
    )


def chain(*names: str) -> tuple[Step, ...]:
    """Each step needs the one before it."""
    return tuple(step(name, *names[max(0, at - 1) : at]) for at, name in enumerate(names))


def plan(*steps: Step, limits: Limits | None = None) -> Plan:
    return Plan(LINE, {one.id: one for one in steps}, limits=limits or Limits())
