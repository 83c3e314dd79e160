"""The project of a test, and servers for it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.project import Project
from tests.mcp.bare import Bare


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    made = Project(tmp_path)
    yield made
    made.end()


@pytest.fixture
def bare(project: Project) -> Iterator[Bare]:
    """A server of the project, and a client that knows nothing but JSON and lines."""
    with Bare(project) as client:
        client.shake_hands()
        yield client
