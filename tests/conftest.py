"""Fixtures that every test folder may use."""

import os
import shutil
import signal
from collections.abc import Callable

import pytest

PROGRAMS = {"bubblewrap": "bwrap"}

# A shell starts its background processes deaf to Ctrl-C, and what they start inherits that.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def require_part() -> Callable[[str], str]:
    """Return the path of a system program; without it, skip, or fail where parts are required.

    `HOLDFAST_REQUIRE_PARTS=1` is how CI says that a skip is a hole in the gate.
    """

    def require(name: str) -> str:
        found = shutil.which(PROGRAMS.get(name, name))
        if found is not None:
            return found
        if os.environ.get("HOLDFAST_REQUIRE_PARTS") == "1":
            pytest.fail(f'required part "{name}" was not found')
        pytest.skip(f'part "{name}" was not found')

    return require
