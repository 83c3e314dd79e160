"""The project of a test."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.cli.project import Project
from tests.cli.screens import Screen, screen_of


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    made = Project(tmp_path)
    yield made
    made.end()


@pytest.fixture
def screen(project: Project, snapshot: SnapshotAssertion) -> Screen:
    return screen_of(project, snapshot)
