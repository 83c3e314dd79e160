"""A directory for the private rooms of attempts; in memory where the machine has such a place."""

import os
import tempfile
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session")
def root() -> Iterator[str]:
    memory = "/dev/shm"
    with tempfile.TemporaryDirectory(dir=memory if os.path.isdir(memory) else None) as path:
        yield path
