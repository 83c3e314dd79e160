"""Fixtures of the generator tests."""

from pathlib import Path

import pytest

from tests.generators.builders import Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)
