"""What runs paid for, read from the store, and what a plan will cost, foreseen from that."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cache

from holdfast.core.estimate import (
    NOTHING,
    REFUSED,
    Expected,
    Looked,
    asked_models,
    either,
    from_history,
    from_price,
    from_size,
    from_template,
    judges_of,
    looked_back,
)
from holdfast.core.outlay import (
    CALLS,
    KINDS,
    Account,
    Made,
    Outlay,
    Saved,
    Tally,
    account_of,
    paid_then,
)
from holdfast.core.preview import Means
from holdfast.core.reserve import LEAST_OUTPUT, USUAL_OUTPUT, Seen, input_bound
from holdfast.core.state import State
from holdfast.engine.journals import read_plan, runs_of
from holdfast.engine.lines import line_journal
from holdfast.errors import HoldfastError, IntegrityError
from holdfast.model.artifact import Artifact
from holdfast.model.call import MICRO, Message, Request, Usage, request_bytes
from holdfast.model.digest import Digest, canonical, digest_json
from holdfast.model.items import base_of
from holdfast.model.line import PaidThen
from holdfast.model.plan import TURNS, Plan, RunId, Step, StepId
from holdfast.model.telling import asked_schema
from holdfast.ports import Store

MOST_RUNS = 20  # the newest of a line that are looked at
MOST_STEPS = 2000  # nobody waits for what more of them have saved
_SECTION = 24  # bytes of a heading and fences around what a prompt reads
_ROLE = 1024  # bytes of what a judge is told beside rubric and artifact
_ARTIFACT = 4096  # bytes of what nobody has made yet

Price = Callable[[str, Usage], int | None]


def account(store: Store, runs: Iterable[RunId], lines: Iterable[str] = ()) -> Account:
    """What these runs paid, and what was paid outside of runs by the journals of these lines."""
    return account_of(store.told([*(f"run:{run}" for run in runs), *lines], KINDS))


def newest_runs(store: Store, project: str, line: str, most: int = MOST_RUNS) -> list[RunId]:
    """The newest runs of a line, oldest first."""
    return [row.run for row in runs_of(store, project, line)][-most:]


def spent_in(store: Store, journals: Iterable[str], since: int) -> int:
    """What the calls in these journals cost since a moment, open ones with what they may cost."""
    found: dict[str, Tally] = {}
    for journal, recorded in store.told(journals, CALLS, since):
        found.setdefault(journal, Tally(since)).take(recorded)
    return sum(tally.spent for tally in found.values())


def paid_by(store: Store, run: RunId) -> tuple[PaidThen, ...]:
    """What a run counts in budgets, also when it is gone."""
    return paid_then(account_of(store.told([f"run:{run}"], CALLS)).calls)


def paid_in(store: Store, project: str | None = None) -> list[str]:
    """The journals that tell of calls: of runs, and of lines, for guards ask outside of runs too.

    With `project` only those of that one.
    """
    rows = [row for row in store.runs() if project is None or row.project == project]
    return [*(f"run:{row.run}" for row in rows), *lines_of(store, project)]


def lines_of(store: Store, project: str | None = None) -> list[str]:
    """The journals of lines; with `project` only those of that one."""
    first = "line:" if project is None else line_journal(project, "")
    return [journal for journal in store.journals() if journal.startswith(first)]


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
        self._items: dict[tuple[StepId, str], list[Made]] = {}  # of all items of a step
        for made in sorted(self._account.made, key=lambda one: one.at):
            self._made.setdefault((made.step, made.model), []).append(made)
            if (base := base_of(made.step)) is not None:
                self._items.setdefault((base, made.model), []).append(made)
        self._read_plan = cache(self._plan_of)

    def last(self) -> tuple[RunId, Looked] | None:
        """The last run that had a history: what that had let expect, and what it cost."""
        found = looked_back(self._account)
        return next(reversed(found.items()), None)

    def of(self, steps: Mapping[StepId, Means]) -> dict[StepId, Expected]:
        """What each of these steps may cost and use that asks models, by how it comes by its artifact.

        What is only guarded again is made anew if it is refused; what a person wrote is not. Of a step whose
        items are not known yet it is what one of them takes.
        """
        found = {}
        for step_id, means in steps.items():
            step = self._plan.steps[step_id]
            if step.awaits_items and step.template is not None:
                step = step.template
            models = asked_models(step, about_it=means == "adopt")
            if not models:
                continue
            if means == "adopt":
                found[step_id] = self._of_guards(step)
            elif means == "guard":
                look, made = self._of_guards(step), self._of(step, models)
                found[step_id] = Expected(
                    either(look.cost, made.cost), either(look.tokens, made.tokens)
                )
            elif means == "make":
                found[step_id] = self._of(step, models)
        return found

    def _of(self, step: Step, models: tuple[str, ...]) -> Expected:
        others = (base_of(step.id) or step.id, models[0])
        known = self._made.get((step.id, models[0])) or self._items.get(others)
        if known:
            costs = [self._cost(made.calls) for made in known]
            tokens = [made.tokens for made in known]
            return Expected(from_history(costs), from_history(tokens))
        size, whole = self._size(step)
        alike = [(made, self._read(made)) for made in self._alike(step, models[0])]
        if alike:
            return Expected(
                from_template([(self._cost(made.calls), read) for made, read in alike], size),
                from_template([(made.tokens, read) for made, read in alike], size),
            )
        return self._at_most(step, size, whole=whole)

    def _at_most(self, step: Step, size: int, *, whole: bool) -> Expected:
        """From what it reads and may answer; `whole` says that all it reads is known."""
        asked = step.parameters.get("max_tokens")
        read = input_bound(size, Seen())
        if step.asks_model and self._is_refused(step, read):
            return Expected(REFUSED, REFUSED)
        said = asked if isinstance(asked, int) else USUAL_OUTPUT
        usual, longest = _turns(step)
        once, tokens = self._taking(step, usual, read, said)
        high, most_tokens = self._taking(step, longest, read, said)
        is_whole = whole and isinstance(asked, int) and not step.has_judge
        bounded = once == 0 or (is_whole and step.uses == "llm")
        tries, bound = 1 + step.retries, _own_tokens(step)
        return Expected(
            from_price(once, tries, self._most(step), bounded=bounded, longest=high),
            from_size(tokens, tries, bound, most_tokens),
        )

    def _taking(self, step: Step, turns: int, read: int, said: int) -> tuple[int | None, int]:
        """What one try costs and uses that takes so many turns; each reads what was said in those before."""
        prices, tokens = self._asked_about(step)
        for turn in range(turns if step.model else 0):
            usage = Usage(input=read + turn * said, output=said)
            prices.append(self._price(step.model, usage))
            tokens += usage.input + usage.output
        return _summed(prices), tokens

    def _is_refused(self, step: Step, read: int) -> bool:
        """Whether the step's own budget leaves no room for its first call, as short as it may be."""
        asked = step.parameters.get("max_tokens")
        usage = Usage(input=read, output=asked if isinstance(asked, int) else LEAST_OUTPUT)
        price, usd, tokens = self._price(step.model, usage), _own_budget(step), _own_tokens(step)
        dear = usd is not None and price is not None and price > usd
        return dear or (tokens is not None and usage.input + usage.output > tokens)

    def _most(self, step: Step) -> int | None:
        """What the step's own budget lets it spend: of dollars, or of tokens at their highest price."""
        tokens, bounds = _own_tokens(step), [_own_budget(step)]
        if tokens is not None:
            whole = (Usage(input=tokens), Usage(output=tokens))
            dear = [self._price(model, usage) for model in asked_models(step) for usage in whole]
            bounds += [None if None in dear else max(cost or 0 for cost in dear)]
        return min((bound for bound in bounds if bound is not None), default=None)

    def _of_guards(self, step: Step) -> Expected:
        """What it takes to let the guards look once. A model that made it too tells nothing of itself."""
        judges = set(asked_models(step, about_it=True))
        if not judges:
            return Expected(NOTHING, NOTHING)
        known = [
            [call for call in made.calls if call.model in judges]
            for (of, _), ones in self._made.items()
            for made in ones
            if of == step.id
        ]
        known = [calls for calls in known if calls]
        if known and not (step.asks_model and step.model in judges):
            return Expected(
                from_history([self._cost(calls) for calls in known]),
                from_history([sum(call.tokens for call in calls) for calls in known]),
            )
        prices, tokens = self._asked_about(step)
        once = _summed(prices)
        return Expected(
            from_price(once, 1, _own_budget(step), bounded=once == 0), from_size(tokens, 1, None)
        )

    def _asked_about(self, step: Step) -> tuple[list[int | None], int]:
        """What each judge of a step may cost, all votes of it, and the tokens of all of them."""
        made, tokens = self._given.get(step.id), 0
        prices: list[int | None] = []
        shown = self._length(made.digest) if made is not None else _ARTIFACT
        for judge in judges_of(step):
            size = _ROLE + len(judge.rubric.encode("utf-8", "replace")) + shown
            usage = Usage(input=input_bound(size, Seen()), output=USUAL_OUTPUT)
            once = self._price(judge.model, usage)
            prices.append(None if once is None else once * judge.votes)
            tokens += judge.votes * (usage.input + usage.output)
        return prices, tokens

    def _cost(self, calls: Iterable[Outlay]) -> int | None:
        """What calls cost; one whose answer was replayed, what it would have cost."""
        return _summed([self._at_price(call) for call in calls])

    def _at_price(self, call: Outlay) -> int | None:
        if call.cost != 0 or not call.tokens:
            return call.cost
        return self._price(call.model, Usage(input=call.input, output=call.output))

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
        asked = Request(step.model, (Message("user", text),), step.parameters, asked_schema(step))
        size, whole = len(request_bytes(asked)), True
        size += sum(_SECTION + self._weigh(each.glob) for each in step.inputs)
        for need in step.data_needs:
            artifact = self._given.get(need)
            whole = whole and artifact is not None
            size += _SECTION + (self._length(artifact.digest) if artifact else 0)
        return size, whole


def _summed(prices: Collection[int | None]) -> int | None:
    return None if None in prices else sum(price or 0 for price in prices)


def _turns(step: Step) -> tuple[int, int]:
    """How many turns a model usually takes for a step, and at most: of an agent nobody knows, so half."""
    if not step.asks_model:
        return 0, 0
    if step.uses != "agent":
        return 1, 1
    most = TURNS if step.turns is None else step.turns
    return -(-most // 2), most


def _own_tokens(step: Step) -> int | None:
    tokens = step.budget.get("tokens")
    return tokens if isinstance(tokens, int) else None


def _own_budget(step: Step) -> int | None:
    usd = step.budget.get("usd")
    return None if usd is None else int(float(str(usd)) * MICRO)
