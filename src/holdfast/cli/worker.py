"""worker: take steps of a queue and carry them out on this machine."""

from __future__ import annotations

import os

import click

from holdfast import wire
from holdfast.cli.confined import sandbox_options
from holdfast.cli.place import json_option
from holdfast.cli.say import out, out_json, talk
from holdfast.wire.shared import refuse_password
from holdfast.wire.worker import Employment, queues_of, work


@click.command(
    epilog="\b\nExample:\n  holdfast worker --queue gpu --store postgresql://runner@db/team\n"
    "  holdfast worker --queue gpu --queue big -j 4"
)
@click.option(
    "--queue",
    "queues",
    multiple=True,
    required=True,
    metavar="NAME",
    help="Take steps that say runs_on: NAME.",
)
@click.option("-j", "--jobs", type=click.IntRange(min=1), default=1, help="How many at once.")
@click.option("--once", is_flag=True, help="End when there is nothing to take.")
@click.option(
    "--store", metavar="DIR", help="The store of the engines: a directory, or postgresql://…"
)
@click.option("--beat", type=float, default=10.0, hidden=True)
@click.option("--poll", type=float, default=1.0, hidden=True)
@sandbox_options
@json_option
def worker(
    queues: tuple[str, ...],
    jobs: int,
    store: str | None,
    beat: float,
    poll: float,
    *,
    once: bool,
    network: bool,
    no_sandbox: bool,
    as_json: bool,
) -> int:
    """Take steps of a queue from engines that share the store, and carry them out here.

    For machines with special tools, GPUs or another network. --network and --no-sandbox let steps have what
    whoever runs their plan granted; without them they do not get it on this machine.
    """
    refuse_password(store or "")
    location = wire.store_location(os.getcwd(), store)
    employment = Employment(
        queues_of(queues),
        parallel=jobs,
        network=network,
        sandbox=not no_sandbox,
        once=once,
        beat_seconds=beat,
        poll_seconds=poll,
        say=talk,
    )
    done = work(location, employment)
    if as_json:
        out_json({"schema": "holdfast.worker/1", "queues": list(employment.queues), "done": done})
    else:
        out(f"{done} {'errand' if done == 1 else 'errands'} done")
    return 0
