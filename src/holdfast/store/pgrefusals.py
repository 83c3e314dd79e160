"""Why a PostgreSQL server that answers lets nobody in, and what helps."""

from __future__ import annotations

import re
from typing import Literal

import psycopg

Refusal = Literal["", "crowded", "starting", "stranger", "absent"]

_CODES: dict[str, Refusal] = {
    "53300": "crowded",
    "57P03": "starting",
    "28P01": "stranger",
    "28000": "stranger",
    "3D000": "absent",
}
# While connecting, libpq gives the server's words and no code.
_WORDS: tuple[tuple[str, Refusal], ...] = (
    ("too many clients|too many connections|remaining connection slots", "crowded"),
    (
        "is starting up|is shutting down|in recovery mode|not (yet )?accepting connections",
        "starting",
    ),
    ('database ".*" does not exist', "absent"),
    ("authentication failed|no password supplied|no pg_hba.conf entry", "stranger"),
    ('role ".*" (does not exist|is not permitted)', "stranger"),
)
REFUSED: dict[Refusal, tuple[str, str]] = {
    "crowded": (
        "has no connection left",
        "wait until others end, or let the server, or the role, have more",
    ),
    "starting": ("lets nobody in just now", "wait a moment, then try again"),
    "stranger": (
        "does not let you in",
        "PGPASSWORD, ~/.pgpass or the address itself hold the password; is the role right?",
    ),
    "absent": ("is not there", "createdb makes one; is its name right?"),
}


def refusal_of(error: psycopg.OperationalError) -> Refusal:
    """Why the server refused a connection; nothing if nobody answered, or for another reason."""
    if error.sqlstate is not None:
        return _CODES.get(error.sqlstate, "")
    said = str(error)
    return next((kind for words, kind in _WORDS if re.search(words, said)), "")
