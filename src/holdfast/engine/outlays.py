"""What runs paid for, read from the store, and what a plan will cost, foreseen from that."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache

from holdfast.core.estimate import (
    Expected,
    Looked,
    asked_models,
    from_history,
    from_price,
    from_size,
    from_template,
    judges_of,
    looked_back,
    once_more,
)
from holdfast.core.outlay import CALLS, KINDS, Account, Made, Saved, account_of
from holdfast.core.preview import Means
from holdfast.core.reserve import USUAL_OUTPUT, Seen, input_bound
from holdfast.core.state import State
from holdfast.engine.journals import read_plan
from holdfast.errors import HoldfastError, IntegrityError
from holdfast.model.artifact import Artifact
from holdfast.model.call import MICRO, Message, Request, Usage, request_bytes
from holdfast.model.digest import Digest, canonical, digest_json
from holdfast.model.plan import Plan, RunId, Step, StepId
from holdfast.ports import Store

MOST_RUNS = 20  # the newest of a line that are looked at
MOST_STEPS = 2000  # nobody waits for what more of them have saved
_SECTION = 24  # bytes of a heading and fences around what a prompt reads

Price = Callable[[str, Usage], int | None]


def account(store: Store, runs: Iterable[RunId], since: int = 0) -> Account:
    """What these runs paid."""
    return account_of(store.told([f"run:{run}" for run in runs], KINDS, since))


def newest_runs(store: Store, project: str, line: str, most: int = MOST_RUNS) -> list[RunId]:
    """The newest runs of a line, oldest first."""
    return [row.run for row in store.runs(line) if row.project == project][-most:]


def spent_beside(store: Store, runs: Iterable[RunId], since: int) -> int:
    """What calls of these runs cost since a moment, open ones with what they may cost."""
    found = account_of(store.told([f"run:{run}" for run in runs], CALLS, since))
    return sum(call.cost or 0 for call in found.calls)


# --- saved --------------------------------------------------------------------------------------


def saved_in(store: Store, state: State) -> Saved:
    """What a run saved because artifacts stood that models had made."""
    steps = [
        step_id
        for step_id, step in state.steps.items()
        if step.phase == "reused"
        and step_id not in state.gaps
        and asked_models(state.plan.steps[step_id])
    ]
    digests = {s: d for s in steps[:MOST_STEPS] if (d := state.steps[s].digest) is not None}
    return saved_by(store, state.project, state.line, digests)


def saved_by(store: Store, project: str, line: str, digests: Mapping[StepId, Digest]) -> Saved:
    """What it had cost to make these artifacts of steps."""
    makers = {
        maker
        for step, digest in digests.items()
        if (maker := _maker(store, project, line, step, digest)) is not None
    }
    costs = account(store, sorted(makers)).saved() if makers else {}
    found = [costs[item] for item in digests.items() if item in costs]
    return Saved(sum(cost or 0 for cost in found), sum(cost is None for cost in found))


def _maker(store: Store, project: str, line: str, step: StepId, digest: Digest) -> RunId | None:
    """The run that last made an artifact: of this line, else of another one that it was taken from."""
    for where in (line, None):
        rows = store.artifacts(project=project, line=where, step=step, digest=digest)
        runs = [row.run for row in rows if row.attempt and row.source == "generated" and row.run]
        if runs:
            return runs[-1]
    return None


# --- foreseen -----------------------------------------------------------------------------------


class Forecast:
    """Estimates for the steps of a plan; looks only at what it needs to."""

    def __init__(
        self,
        store: Store,
        plan: Plan,
        line: str,
        price: Price,
        given: Mapping[StepId, Artifact],
        weigh: Callable[[str], int],
    ) -> None:
        self._store = store
        self._plan = plan
        self._price = price
        self._given = given
        self._weigh = weigh  # bytes of the files that a glob matches
        self._account = account(store, newest_runs(store, plan.project, line))
        self._made: dict[tuple[StepId, str], list[Made]] = {}
        for made in sorted(self._account.made, key=lambda one: one.at):
            self._made.setdefault((made.step, made.model), []).append(made)
        self._read_plan = cache(self._plan_of)

    def last(self) -> tuple[RunId, Looked] | None:
        """The last run that had a history: what that had let expect, and what it cost."""
        found = looked_back(self._account)
        return next(reversed(found.items()), None)

    def of(self, steps: Mapping[StepId, Means]) -> dict[StepId, Expected]:
        """What each of these steps may cost and use that asks models, by what an attempt would do."""
        found = {}
        for step_id, means in steps.items():
            step = self._plan.steps[step_id]
            if means == "adopt" and judges_of(step):
                found[step_id] = self._look(step)
            elif means == "guard" and asked_models(step):
                found[step_id] = self._once_more(step)
            elif means == "make" and asked_models(step):
                found[step_id] = self._of(step, asked_models(step))
        return found

    def _once_more(self, step: Step) -> Expected:
        look = self._look(step)
        if not step.asks_model:
            return look
        made = self._of(step, asked_models(step))
        return Expected(once_more(look.cost, made.cost), once_more(look.tokens, made.tokens))

    def _look(self, step: Step) -> Expected:
        """What judges take who look at one candidate."""
        cost, tokens = self._judged(step, 0)
        return Expected(from_price(cost, 1, None, bounded=not cost), from_size(tokens, 1, None))

    def _judged(self, step: Step, said: int) -> tuple[int | None, int]:
        """The price and the tokens of all votes over one candidate: as the last one, else so many tokens."""
        last = self._given.get(step.id)
        read = input_bound(self._length(last.digest), Seen()) if last else said
        usage = Usage(input=read, output=USUAL_OUTPUT)
        votes = judges_of(step)
        prices = [(self._price(model, usage), times) for model, times in votes.items()]
        tokens = sum(votes.values()) * (usage.input + usage.output)
        if any(price is None for price, _ in prices):
            return None, tokens
        return sum((price or 0) * times for price, times in prices), tokens

    def _of(self, step: Step, models: tuple[str, ...]) -> Expected:
        known = self._made.get((step.id, models[0]))
        if known:
            costs, tokens = [made.cost for made in known], [made.tokens for made in known]
            return Expected(from_history(costs), from_history(tokens))
        size, whole = self._size(step)
        alike = [(made, self._read(made)) for made in self._alike(step, models[0])]
        if alike:
            return Expected(
                from_template([(made.cost, read) for made, read in alike], size),
                from_template([(made.tokens, read) for made, read in alike], size),
            )
        return self._at_most(step, size, whole=whole)

    def _at_most(self, step: Step, size: int, *, whole: bool) -> Expected:
        """From what it reads and may answer; `whole` says that all it reads is known."""
        asked = step.parameters.get("max_tokens")
        said = asked if isinstance(asked, int) else USUAL_OUTPUT
        usage = Usage(input=input_bound(size, Seen()), output=said)
        own = self._price(step.model, usage) if step.asks_model else 0
        judged, tokens = self._judged(step, said if step.asks_model else 0)
        once = None if own is None or judged is None else own + judged
        tokens += usage.input + usage.output if step.asks_model else 0
        usd = step.budget.get("usd")
        most = None if usd is None else int(float(str(usd)) * MICRO)
        alone = step.uses == "llm" and not step.has_judge
        bounded = once == 0 or (whole and isinstance(asked, int) and alone)
        tries, bound = 1 + step.retries, step.budget.get("tokens")
        return Expected(
            from_price(once, tries, most, bounded=bounded),
            from_size(tokens, tries, bound if isinstance(bound, int) else None),
        )

    def _alike(self, step: Step, model: str) -> Iterator[Made]:
        """What was made by other steps with the same prompt and model."""
        if step.prompt is None:
            return
        prompt = digest_json({"prompt": step.prompt})
        for (_, by), ones in self._made.items():
            if by != model:
                continue
            for made in ones:
                plan = self._read_plan(self._account.runs[made.run].plan)
                then = plan.steps.get(made.step) if plan else None
                if then and digest_json({"prompt": then.prompt}) == prompt:
                    yield made

    def _plan_of(self, digest: Digest) -> Plan | None:
        try:
            return read_plan(self._store, digest)
        except HoldfastError:
            return None

    def _read(self, made: Made) -> int:
        return self._length(made.calls[0].request)

    def _length(self, digest: Digest) -> int:
        try:
            return len(self._store.get(digest))
        except IntegrityError:
            return 0

    def _size(self, step: Step) -> tuple[int, bool]:
        """About how many bytes a model would read, and whether all of that is known."""
        text = canonical({"prompt": step.prompt, "values": step.values}).decode()
        text += step.constraints + step.specification + step.contract
        asked = Request(step.model, (Message("user", text),), step.parameters, step.schema)
        size, whole = len(request_bytes(asked)), True
        size += sum(_SECTION + self._weigh(each.glob) for each in step.inputs)
        for need in step.data_needs:
            artifact = self._given.get(need)
            whole = whole and artifact is not None
            size += _SECTION + (self._length(artifact.digest) if artifact else 0)
        return size, whole
