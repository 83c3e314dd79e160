"""attach: look on while another process drives a run."""

from __future__ import annotations

import click

from holdfast import wire
from holdfast.cli.again import again
from holdfast.cli.ending import conclude, headline
from holdfast.cli.follow import following
from holdfast.cli.onlook import leaving, look_on
from holdfast.cli.place import file_option, find_run, json_option, place, place_options
from holdfast.cli.say import out_line, short, talk
from holdfast.cli.show import load_state
from holdfast.cli.view import view
from holdfast.store.codec import event_json

HINT = "Ctrl-C leaves it running; holdfast stop ends it"


@click.command(epilog="\b\nExample:\n  holdfast attach\n  holdfast attach r-1f3c --output jsonl")
@click.argument("run_id", metavar="[RUN]", required=False)
@file_option
@place_options
@json_option
def attach(
    run_id: str | None, plan: str | None, store: str | None, plan_id: str | None, *, as_json: bool
) -> int:
    """Look on while a run goes on elsewhere; end as it ends, with its exit code."""
    where = place(plan, store, plan_id)
    with_store = where.open(readonly=True)
    try:
        state = load_state(with_store, find_run(with_store, run_id, where.line()))
        if view().mode == "jsonl":
            for recorded in with_store.read(f"run:{state.run}"):
                if recorded.seq <= state.seq:
                    out_line(event_json(recorded))
        driven = True
        if state.status == "running":
            if view().mode != "jsonl":
                talk(headline(state, wire.now_ms(), driven=wire.is_driven(with_store, state)))
            with (
                leaving(
                    lambda: talk(again(f"{short(state.run)} goes on; to end it: holdfast stop"))
                ),
                following(with_store, hint=again(HINT)) as tell,
            ):
                tell.began(state)
                driven = look_on(with_store, where.location, state, tell)
        return conclude(with_store, state, where.file, as_json=as_json, driven=driven)
    finally:
        with_store.close()
