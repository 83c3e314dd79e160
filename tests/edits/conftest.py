"""Edits are kept under a name that comes from a person's key: these tests have a person of their own."""

import os

import pytest


@pytest.fixture(autouse=True, scope="session")
def _person(tmp_path_factory: pytest.TempPathFactory) -> None:
    os.environ["XDG_STATE_HOME"] = str(tmp_path_factory.mktemp("person"))
