"""stop: ask a running engine to stop."""

from __future__ import annotations

import getpass

import click

from holdfast import wire
from holdfast.cli.place import file_option, find_run, json_option, place, place_options
from holdfast.cli.say import out, out_json, short
from holdfast.cli.show import load_state
from holdfast.core.state import State
from holdfast.engine.lines import tell_line
from holdfast.errors import UsageError
from holdfast.model.line import StopRequested
from holdfast.ports import Store


@click.command(epilog="\b\nExample:\n  holdfast stop\n  holdfast stop r-1f3c --now")
@click.argument("run_id", metavar="[RUN]", required=False)
@click.option("--now", is_flag=True, help="End running steps at once; they run again on resume.")
@file_option
@place_options
@json_option
def stop(
    run_id: str | None,
    plan: str | None,
    store: str | None,
    plan_id: str | None,
    *,
    now: bool,
    as_json: bool,
) -> int:
    """Ask a running engine to stop: after its running steps, or now. Both can be resumed."""
    where = place(plan, store, plan_id)
    with_store = where.open()
    try:
        found = find_run(with_store, run_id, where.line())
        state = load_state(with_store, found)
        if state.status != "running":
            raise UsageError(
                f"run {short(found)} is {state.status}, not running", hint="holdfast status"
            )
        if not wire.is_driven(with_store, state):
            raise UsageError(
                f"the engine of run {short(found)} is gone already", hint="holdfast resume"
            )
        _request_stop(with_store, state, now=now)
    finally:
        with_store.close()
    if as_json:
        out_json({"schema": "holdfast.stop/1", "run": found, "now": now})
    else:
        out(f"asked {short(found)} to stop " + ("now" if now else "after its running steps"))
    return 0


def _request_stop(store: Store, state: State, *, now: bool) -> None:
    event = StopRequested(state.run, now, getpass.getuser())
    tell_line(store, state.project, state.line, lambda: (wire.now_ms(), event, []))
