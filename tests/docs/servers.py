"""What the reader of a page has: servers are real ones, on loopback, for as long as the page is played."""

import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.postgres import programs, server
from tests.store import s3

BUCKET = "kelp-contents"


@contextmanager
def no_servers() -> Iterator[Mapping[str, str]]:
    """Most pages need none."""
    yield {}


@contextmanager
def clone() -> Iterator[Mapping[str, str]]:
    """A clone of the repository, beside the directory in which the reader works."""
    yield {"CLONE": str(Path(__file__).resolve().parents[2])}


@contextmanager
def team_servers() -> Iterator[Mapping[str, str]]:
    """A database that asks for passwords, with its programs, and a bucket: variables that lead there."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with server(port=port), s3.server() as address:
        s3.ask(f"{address}/{BUCKET}", "PUT")
        yield {
            "PGHOST": "127.0.0.1",
            "PGPORT": str(port),
            "PATH": f"{programs()}:{os.environ['PATH']}",
            **s3.variables(address),
        }
