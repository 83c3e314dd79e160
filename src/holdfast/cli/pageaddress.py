"""Where the page of a store is served, as whoever serves it says in a file beside the store."""

from __future__ import annotations

import json
import os
import re
import socket

FILE = "ui.json"
APPROVALS = "/approvals"  # the screen on which a person decides
_PATIENCE = 1.0  # seconds: it is on this machine
_ADDRESS = re.compile(r"http://(127\.0\.0\.1|localhost|\[::1\]):(\d{1,5})")


def announced(location: str) -> dict[str, object]:
    """What the server of a store says of itself; nothing if the file is not of this user."""
    try:
        file = os.open(os.path.join(location, FILE), os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return {}
    try:
        with os.fdopen(file, encoding="utf-8") as opened:
            is_ours = os.fstat(opened.fileno()).st_uid == os.getuid()
            found = json.load(opened)
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) and is_ours else {}


def page_address(location: str) -> str:
    """The address of the page of a store, without a way in; empty unless somebody listens there.

    A server that was killed leaves its file behind, so the port is knocked at. Whoever opens the address
    needs a session, which 'holdfast ui' gives.
    """
    found = _ADDRESS.fullmatch(str(announced(location).get("address")))
    if found is None:
        return ""
    try:
        socket.create_connection((found[1].strip("[]"), int(found[2])), _PATIENCE).close()
    except (OSError, OverflowError):  # the second of a port that no machine has
        return ""
    return found[0]
