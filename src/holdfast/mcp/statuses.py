"""run_status: where a run stands, and how it goes on while somebody waits for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, cast

from holdfast import wire
from holdfast.cli.ending import exit_code, headline, is_settled, run_told
from holdfast.cli.onlook import Onlooker
from holdfast.cli.place import Place, find_run
from holdfast.cli.say import plain
from holdfast.cli.show import load_state, run_lines
from holdfast.cli.since import answered_in
from holdfast.core.state import COMPLETE, State
from holdfast.mcp.answer import Answer, Next, page, without_next
from holdfast.mcp.desk import Desk
from holdfast.mcp.given import Given
from holdfast.model.digest import Json
from holdfast.ports import Store

WAIT = 50  # seconds at most: clients give up after a minute
_KEPT = ("run", "status", "reason", "plan", "waiting", "conflicts", "gaps", "totals")
_OPEN = frozenset({"running", "waiting", "failed"})


class Moment(NamedTuple):
    """How far a run is, for whoever waits for it."""

    done: int
    steps: int
    words: str


def watch(
    desk: Desk, given: Given, tell: Callable[[Moment], None], pause: Callable[[], None]
) -> None:
    """Look on until a run ends or rests; tell of each change.

    Who knows already that it rests, by `since`, waits until somebody answers what it rests for. Only what is
    new is read. `pause` raises when the time is over, or when nobody waits any more.
    """
    with desk.here() as where:
        store = where.open(readonly=True)
        try:
            state = load_state(store, find_run(store, given.maybe("run_id"), where.line()))
            onlooker, told = Onlooker(store, state), -1
            rests = state.seq == given.number("since")  # who knows that already waits for more
            while True:
                goes_on = (
                    onlooker.goes_on
                )  # asked before reading: what an engine wrote last is not missed
                onlooker.news()
                if state.seq != told:
                    told = state.seq
                    done = state.counts["done"] + state.counts["reused"]
                    words = headline(state, wire.now_ms(), driven=goes_on)
                    tell(Moment(done, len(state.steps), words))
                if not goes_on and not (rests and _asks(store, state)):
                    return
                pause()
        finally:
            store.close()


def _asks(store: Store, state: State) -> bool:
    """Whether a run rests because a person has to answer, and none did."""
    return (
        state.status == "waiting" and not answered_in(store, state) and not is_settled(store, state)
    )


def run_status(desk: Desk, given: Given) -> Answer:
    """Where a run stands now."""
    with desk.here() as where:
        store = where.open(readonly=True)
        try:
            state = load_state(store, find_run(store, given.maybe("run_id"), where.line()))
            return _answer(store, state, where, given)
        finally:
            store.close()


def _answer(store: Store, state: State, where: Place, given: Given) -> Answer:
    driven = wire.is_driven(store, state)
    told = run_told(store, state, where.file)
    since = given.number("since")
    part = page(_steps(store, state, told, since), given.maybe("cursor"))
    lines, commands = without_next(run_lines(store, state, where))
    data: dict[str, Json] = {
        **{key: told[key] for key in _KEPT},
        "engine": "alive" if driven else "gone" if state.status == "running" else "none",
        "exit_code": None if state.status == "running" else exit_code(state),
        "seq": state.seq,
        "steps": list(part.rows),
        "cursor": part.cursor,
    }
    asks = _asks(store, state)
    following = list(following_status(state, told, driven=driven, asks=asks))
    if part.cursor is not None:
        following.append(Next("run_status", {"run_id": state.run, "cursor": part.cursor}))
    for_people = commands if asks or state.status == "limit" else []
    return Answer([plain(line) for line in lines], data, following, for_people)


def _steps(store: Store, state: State, told: Mapping[str, Json], since: float | None) -> list[Json]:
    """The steps that want attention; of a run that was looked at before, those that changed since."""
    rows = cast("Mapping[str, Mapping[str, Json]]", told["steps"])
    names = [name for name in rows if rows[name]["state"] in _OPEN or len(rows) <= _FEW]
    if since is not None:
        events = (one.event for one in store.read(f"run:{state.run}", int(since)))
        changed = dict.fromkeys(str(getattr(event, "step", "")) for event in events)
        names = [name for name in changed if name in rows]
    keys = ("state", "reason", "attempts", "digest", "cost_usd", "duration_ms")
    return [{"step": name, **{key: rows[name].get(key) for key in keys}} for name in names]


_FEW = 20


def following_status(
    state: State, told: Mapping[str, Json], *, driven: bool, asks: bool
) -> Sequence[Next]:
    """The tools that fit where a run stands."""
    run: dict[str, Json] = {"run_id": state.run}
    resume = Next("run_control", {**run, "action": "resume"})
    if state.status == "running" and driven:
        return [Next("run_status", {**run, "wait_s": WAIT, "since": state.seq})]
    if asks:
        asked = cast("Sequence[Mapping[str, Json]]", told["waiting"])
        names = [str(one["approval"]) for one in asked if one["approval"] and one["step"]]
        shown = [Next("approval_request_human", {"approval_id": name}) for name in names[:3]]
        return shown or [Next("run_status", {**run, "wait_s": WAIT, "since": state.seq})]
    if state.status in {"failed", "escalated"}:
        failed = next((s for s in state.graph.order if state.steps[s].phase == "failed"), None)
        if failed is None:
            return [resume]
        return [
            Next("step_read", {"ref": str(failed), "part": "attempts"}),
            Next("run_control", {**run, "action": "retry", "step": str(failed)}),
        ]
    if state.status == "completed":
        made = (s for s in reversed(state.graph.order) if state.steps[s].phase in COMPLETE)
        last = next(made, None)
        return [Next("step_read", {"ref": str(last), "part": "result"})] if last else []
    if state.ended:
        return [Next("plan_preview", {})]
    return [resume]
