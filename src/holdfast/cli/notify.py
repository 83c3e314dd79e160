"""Tells a program of the person's choice how a run came out."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence

from holdfast import wire
from holdfast.cli.say import talk
from holdfast.model.digest import Json
from holdfast.process.tree import MARK

SECONDS = 30
_TOLD = frozenset({"completed", "failed", "waiting", "limit", "escalated", "blocked"})


def notify(command: Sequence[str], run: Mapping[str, Json]) -> None:
    """Start the command with the run as JSON on its stdin. It cannot change how the run came out."""
    status = str(run["status"])
    if not command or status not in _TOLD:
        return
    body = json.dumps({**run, "schema": "holdfast.notify/1"}, ensure_ascii=False)
    try:
        done = subprocess.run(  # noqa: S603 - the person chose it in a file of their own
            [*command],
            input=body.encode("utf-8", "replace"),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=SECONDS,
            check=False,
            env=_environment(),
        )
    except (OSError, subprocess.TimeoutExpired, ValueError) as error:
        talk(f"the notify command '{command[0]}' did not work: {error}")
        return
    if done.returncode:
        last = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
        talk(f"the notify command '{command[0]}' ended with {done.returncode}: {' '.join(last)}")


def _environment() -> dict[str, str]:
    """The person's variables without keys of providers; what an engine starts decides no approvals."""
    keys = wire.market.Vault(os.getcwd()).values()
    return {
        **{name: value for name, value in os.environ.items() if value not in keys},
        MARK: "notify",
    }
