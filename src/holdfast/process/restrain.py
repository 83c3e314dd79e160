"""The words that start a command under Landlock, as far as that can hold what a sandbox asks for."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterator

from holdfast.process import landlock
from holdfast.process.confine import Sandbox, is_within, places
from holdfast.process.limits import bounds
from holdfast.process.syscalls import call_filter

_DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts")


def words(wanted: Sandbox) -> tuple[str, ...]:
    """What stands before the command; nothing where the kernel has no Landlock."""
    if not landlock.version():
        return ()
    found = places(wanted)
    own = (sys.base_prefix, sys.base_exec_prefix, landlock.__file__)
    masked = [place.path for place in found if place.kind == "masked"]
    asked = {
        "readable": [
            *_shown("/", masked),
            *(place.path for place in found if place.kind in {"readable", "protected"}),
            *own,
        ],
        "writable": [
            *(place.path for place in found if place.kind == "writable"),
            *(os.path.join("/dev", name) for name in _DEVICES),
        ],
        "network": wanted.network,
        "calls": call_filter().hex(),
        "limits": bounds(wanted.limits, processes=False),
    }
    python = os.path.realpath(sys.executable)
    return (python, "-I", "-S", "-E", landlock.__file__, json.dumps(asked))


def _shown(folder: str, masked: list[str]) -> Iterator[str]:
    """What lies in a folder and is not masked; whole where nothing in it is."""
    if folder in masked:
        return
    if not any(is_within(path, folder) for path in masked):
        yield folder
        return
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if not entry.is_symlink():  # where it leads is shown by itself, or hidden
                yield from _shown(entry.path, masked)
