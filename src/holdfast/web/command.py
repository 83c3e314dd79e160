"""ui: the page of a store, in a browser on this machine."""

from __future__ import annotations

import json
import os
import shlex
import signal
import sys
import urllib.request
import webbrowser
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import click

from holdfast import wire
from holdfast.cli.pageaddress import FILE, announced
from holdfast.cli.place import Place, file_option, json_option, place, place_options
from holdfast.cli.say import out, out_json, talk
from holdfast.cli.view import view
from holdfast.errors import UsageError
from holdfast.web.knock import CODE, KEY_HEADER, OPEN

if TYPE_CHECKING:
    from holdfast.web.door import Keys
    from holdfast.web.server import Bound

_PATIENCE = 5  # seconds


@click.command(
    epilog="\b\nExample:\n  holdfast ui\n  holdfast ui --no-browser --port 8000\n  holdfast ui --read-only\n"
    "  holdfast ui --export run.html @-1\n  holdfast ui run.zip"
)
@click.argument("run", required=False, metavar="[RUN|FILE]")
@click.option(
    "--export", "file", metavar="HTML", help="Write RUN (the last) into one HTML file instead."
)
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, help="Which port (0: any free one)."
)
@click.option(
    "--host", default="127.0.0.1", metavar="HOST", help="127.0.0.1 or ::1; no other machine."
)
@click.option("--no-browser", is_flag=True, help="Only print the address.")
@click.option("--read-only", is_flag=True, help="Show everything, decide and start nothing.")
@file_option
@place_options
@json_option
def ui(
    run: str | None,
    file: str | None,
    port: int,
    host: str,
    plan: str | None,
    store: str | None,
    plan_id: str | None,
    *,
    no_browser: bool,
    read_only: bool,
    as_json: bool,
) -> int:
    """Show runs, steps and approvals in a browser, live, and act on them; until Ctrl-C.

    FILE is what 'holdfast export' wrote: it is looked at apart, and nothing of it is kept. With --export
    nothing is served: a run is written into one file that needs nothing else to be read.
    """
    asked = Asked(host, port, browser=not no_browser, read_only=read_only, as_json=as_json)
    if run is not None and os.path.isfile(run):
        from holdfast.cli.archive import opened_apart

        signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # tidy up first
        with opened_apart(run) as where:
            return _show(where, "@", file, replace(asked, read_only=True))
    if run is not None and file is None:
        raise UsageError(
            f"there is no file '{run}', and a run is named for --export alone",
            hint=f"holdfast ui --export run.html {shlex.quote(run)}",
        )
    return _show(place(plan, store, plan_id), run, file, asked)


@dataclass(frozen=True, slots=True)
class Asked:
    """Where the page listens, what it lets a person do, and how its address is given."""

    host: str
    port: int
    browser: bool
    read_only: bool
    as_json: bool


def _show(where: Place, run: str | None, file: str | None, asked: Asked) -> int:
    """Serve the page of a store, or write a run of it into a file."""
    try:  # parts that are not everybody's, and that no other command may wait for
        from holdfast.web.door import Keys
        from holdfast.web.export import write_export
        from holdfast.web.look import Look
        from holdfast.web.server import Moments, bind, serve
    except ImportError as error:
        raise UsageError(
            f"the page needs '{error.name}', which is not installed",
            hint="pip install 'holdfast[ui]'",
        ) from error
    meta = dict(click.get_current_context().meta)
    if file is not None:
        write_export(Look(where, meta, read_only=True), run, file, as_json=asked.as_json)
        return 0
    if (running := _running(where)) is not None and not asked.port:
        _tell(f"{running.address}{OPEN}?code={_new_code(running)}", asked, first=False)
        return 0
    bound, keys = bind(asked.host, asked.port), Keys(wire.now_ms)
    _announce(where, bound, keys)
    serve(
        bound,
        Look(where, meta, read_only=asked.read_only),
        keys,
        Moments(
            ready=lambda: _tell(f"{bound.address}{OPEN}?code={keys.new_code()}", asked),
            over=lambda: _withdraw(where),
        ),
        wire.walls_at(where.root),
    )
    return 0


def _tell(address: str, asked: Asked, *, first: bool = True) -> None:
    """Say where the page is; the code in the address works once, within a minute."""
    if asked.as_json:
        out_json({"schema": "holdfast.ui/1", "address": address, "started": first})
    else:
        out(address)
    sys.stdout.flush()
    if not view().quiet:
        talk("the address works once, within a minute; 'holdfast ui' gives another one")
        if first:
            talk("Ctrl-C ends the page; runs go on without it")
    if asked.browser:
        webbrowser.open(address)


@dataclass(frozen=True, slots=True)
class Running:
    """A server of this store that is there already."""

    address: str
    key: str


def _path(where: Place) -> str:
    return os.path.join(where.location, FILE)


def _announce(where: Place, bound: Bound, keys: Keys) -> None:
    """Leave the key where only this user can read it, if something can be written beside the store."""
    if not os.path.isdir(where.location):
        return
    text = json.dumps({"address": bound.address, "pid": os.getpid(), "key": keys.key})
    path = f"{_path(where)}.{os.getpid()}"
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(file, "w") as opened:
            opened.write(text)
        os.replace(path, _path(where))
    except OSError as error:
        with suppress(OSError):
            os.unlink(path)
        talk(
            f"{_path(where)} cannot be written ({error.strerror}): no other 'holdfast ui' finds it"
        )


def _withdraw(where: Place) -> None:
    """Take the key away, if it is still ours."""
    found = announced(where.location)
    if found.get("pid") == os.getpid():
        os.unlink(_path(where))


def _running(where: Place) -> Running | None:
    """The server of this store, if one answers."""
    found = announced(where.location)
    address, key = found.get("address"), found.get("key")
    if not isinstance(address, str) or not isinstance(key, str):
        return None
    running = Running(address, key)
    return running if _new_code(running) else None


def _new_code(running: Running) -> str:
    """Another code of a server that runs; empty if it does not answer."""
    request = urllib.request.Request(  # noqa: S310 - an address of ours on this machine
        running.address + CODE,
        method="POST",
        headers={KEY_HEADER: running.key},
    )
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(request, timeout=_PATIENCE) as answer:
            return str(json.load(answer)["code"])
    except (OSError, ValueError, KeyError):
        return ""
