"""What calls of models will cost and how many tokens they will use, from what they took before.

The best witness is the same step with the same model; next the same prompt in another step, its cost taken
in the ratio of what is read; last the most that the step may use, and its price. Each gives costs that may
occur. Of one step the median and the ninth decile are shown. A sum of ninth deciles would be far too high,
so totals come from drawing one cost for each step many times. The draws are made from the names of the
steps: the same question always has the same answer, whatever the order of the steps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, Literal, NamedTuple

from holdfast.core.history import quantile
from holdfast.core.outlay import Account, Made, total_cost
from holdfast.model.digest import digest_bytes
from holdfast.model.fixed import fixed
from holdfast.model.plan import RunId, Step, StepId

Basis = Literal["history", "price", "size", "none"]
ENOUGH: Final = 10  # the newest samples of a step; older ones tell less of the next
WIDEST: Final = 10  # a prompt that reads more than so many times as much is another prompt
_DRAWS: Final = 400
_WORK: Final = 200_000  # draws over all steps
_FEWEST: Final = 25
_MASK: Final = 2**64 - 1


@fixed
class Estimate:
    """What one step may cost in micro-dollars, or use in tokens: each of `costs` as likely as the others.

    Without costs nobody knows. `attempts` is how many earlier ones it is known from; `bounded`
    says that it cannot cost more than the highest, `refused` that its own budget pays for no call.
    """

    costs: tuple[int, ...] = ()
    basis: Basis = "none"
    attempts: int = 0
    bounded: bool = False
    refused: bool = False

    @property
    def is_known(self) -> bool:
        """Whether anything can be said."""
        return bool(self.costs)

    @property
    def p50(self) -> int | None:
        """What it typically costs."""
        return quantile(sorted(self.costs), 50) if self.costs else None

    @property
    def p90(self) -> int | None:
        """What it costs if it costs much."""
        return quantile(sorted(self.costs), 90) if self.costs else None


UNKNOWN: Final = Estimate()
NOTHING: Final = Estimate((0,))
REFUSED: Final = Estimate((0,), "price", bounded=True, refused=True)


class Expected(NamedTuple):
    """What one step may take: money, and tokens."""

    cost: Estimate
    tokens: Estimate


class Total(NamedTuple):
    """What steps may cost or use together; `unknown` of them are not in it."""

    p50: int = 0
    p90: int = 0
    unknown: int = 0
    attempts: int = 0
    without_history: int = 0


class Looked(NamedTuple):
    """What steps of a run let expect by their history, and what those cost; `partly`: others ran too."""

    expected: int
    actual: int
    partly: bool

    @property
    def is_off(self) -> bool:
        """Whether one is more than twice the other."""
        return max(self.expected, self.actual) > 2 * min(self.expected, self.actual)


def from_history(costs: Sequence[int | None]) -> Estimate:
    """From what the same step cost, oldest first; unknown if the newest price is not known."""
    newest = costs[-ENOUGH:]
    if not newest or newest[-1] is None:
        return Estimate(attempts=len(newest))
    known = tuple(cost for cost in newest if cost is not None)
    return Estimate(known, "history", len(known))


def from_template(samples: Sequence[tuple[int | None, int]], size: int) -> Estimate:
    """From what other steps with the same prompt cost and read, oldest first; `size` is what it reads."""
    scaled = [
        None if cost is None else round(cost * _ratio(size, read))
        for cost, read in samples[-ENOUGH:]
    ]
    return from_history(scaled)


def _ratio(size: int, read: int) -> float:
    if size <= 0 or read <= 0:
        return 1.0
    return min(float(WIDEST), max(1 / WIDEST, size / read))


def from_price(
    once: int | None, tries: int, most: int | None, *, bounded: bool, longest: int | None = None
) -> Estimate:
    """From the price of one try, how many there may be at most, and the step's own budget.

    `longest` is the price of a try that takes as long as it may, if that is not the same.
    """
    if once is None:
        return UNKNOWN if most is None else Estimate((most,), "price", bounded=True)
    low, high = once, (once if longest is None else longest) * max(1, tries)
    if most is not None:
        low, high = min(low, most), min(high, most)
    return Estimate((low, low, high), "price", bounded=bounded or most == high)


def from_size(once: int, tries: int, most: int | None, longest: int | None = None) -> Estimate:
    """From the tokens of one try, how many there may be at most, and the step's own budget."""
    found = from_price(once, tries, most, bounded=False, longest=longest)
    return replace(found, basis="size")


def either(first: Estimate, then: Estimate) -> Estimate:
    """Of something that mostly costs `first`, and seldom, if that was in vain, `then` as well."""
    low, high = first.p50, then.p90
    if low is None or high is None:
        return UNKNOWN
    return Estimate((low, low, low + high), then.basis, then.attempts)


def total(estimates: Mapping[StepId, Estimate]) -> Total:
    """What steps may cost or use together."""
    known = {step: one for step, one in estimates.items() if one.is_known}
    sure = sum(one.costs[0] for one in known.values() if _is_sure(one))
    open_ones = {step: one for step, one in known.items() if not _is_sure(one)}
    sums = _sums(open_ones)
    return Total(
        p50=sure + quantile(sums, 50),
        p90=sure + quantile(sums, 90),
        unknown=len(estimates) - len(known),
        attempts=sum(one.attempts for one in estimates.values()),
        without_history=sum(not one.attempts for one in estimates.values()),
    )


def _is_sure(one: Estimate) -> bool:
    return min(one.costs) == max(one.costs)


def _sums(estimates: Mapping[StepId, Estimate]) -> list[int]:
    """Sums that may occur, in ascending order."""
    if len(estimates) <= 1:
        return sorted(next(iter(estimates.values())).costs) if estimates else [0]
    draws = min(_DRAWS, max(_FEWEST, _WORK // len(estimates)))
    sums = [0] * draws
    for step, one in estimates.items():
        seed = int(digest_bytes(step.encode("utf-8", "surrogatepass"))[:16], 16)
        for number, place in enumerate(_places(seed, draws, len(one.costs))):
            sums[number] += one.costs[place]
    return sorted(sums)


def _places(seed: int, draws: int, size: int) -> list[int]:
    """Each place about equally often, in an order that the seed decides (splitmix64, Fisher and Yates)."""
    places = [number % size for number in range(draws)]
    for left in range(draws - 1, 0, -1):
        seed = (seed + 0x9E3779B97F4A7C15) & _MASK
        mixed = ((seed ^ (seed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
        other = (mixed ^ (mixed >> 31)) % (left + 1)
        places[left], places[other] = places[other], places[left]
    return places


class Judge(NamedTuple):
    """A guard that asks a model: whom, by which rubric, and how often at most if all can be read."""

    model: str
    rubric: str
    votes: int


def judges_of(step: Step) -> list[Judge]:
    """The guards of a step that ask models, also those inside others."""
    found = []
    pending = list(reversed(step.guards))
    while pending:
        guard = pending.pop()
        pending += reversed(guard.items)
        if guard.kind == "judge":
            config = guard.config if isinstance(guard.config, Mapping) else {}
            model, votes = config.get("model") or step.model, config.get("votes", 1)
            found.append(Judge(str(model), str(config.get("rubric", "")), int(str(votes))))
    return found


def asked_models(step: Step, *, about_it: bool = False) -> tuple[str, ...]:
    """The models that a step asks: its own, and those of its guards; with `about_it` only the latter.

    One whose items are not known yet asks those that they would.
    """
    if step.awaits_items and step.template is not None:
        return asked_models(step.template, about_it=about_it)
    found = [step.model] if step.asks_model and not about_it else []
    found += [judge.model for judge in judges_of(step)]
    return tuple(dict.fromkeys(filter(None, found)))


def looked_back(account: Account) -> dict[RunId, Looked]:
    """Of each run that made something before known: what its steps had let expect, and what they cost."""
    known: dict[tuple[StepId, str], list[int | None]] = {}
    found: dict[RunId, Looked] = {}
    made: dict[RunId, list[Made]] = {}
    for one in account.made:
        made.setdefault(one.run, []).append(one)
    for run in sorted(made, key=lambda run: made[run][0].at):
        ones = [one for one in made[run] if known.get((one.step, one.model))]
        parts = {one.step: from_history(known[one.step, one.model]) for one in ones}
        actual = total_cost(call for one in ones for call in one.calls)
        if parts and actual is not None and all(part.is_known for part in parts.values()):
            found[run] = Looked(total(parts).p50, actual, len(ones) < len(made[run]))
        for one in made[run]:
            known.setdefault((one.step, one.model), []).append(one.cost)
    return found
