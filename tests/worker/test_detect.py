"""The commands that check a repository are found in what it says of itself."""

import json
from pathlib import Path

import pytest

from holdfast.worker.detect import detect


@pytest.mark.req("R136")
@pytest.mark.parametrize(
    ("files", "commands"),
    [
        ({"Cargo.toml": ""}, ["cargo test --offline"]),
        ({"go.mod": ""}, ["go test ./..."]),
        ({"package.json": json.dumps({"scripts": {"test": "node --test"}})}, ["npm test --silent"]),
        ({"package.json": json.dumps({"scripts": {"test": "echo 'Error: no test specified'"}})}, []),
        ({"package.json": "[1]"}, []),
        ({"package.json": "{"}, []),
        ({"tests/test_a.py": "import pytest"}, ["python3 -m pytest -q"]),
        ({"pyproject.toml": "[tool.pytest.ini_options]", "test_a.py": ""}, ["python3 -m pytest -q"]),
        ({"test_a.py": "import unittest"}, ["python3 -m unittest"]),
        ({"tests/test_a.py": ""}, ["python3 -m unittest discover -s tests"]),
        ({"tests/test_a.py": "", "tests/__init__.py": ""}, ["python3 -m unittest"]),
        ({"Makefile": "all:\n\ntest: all\n\ttrue\n"}, ["make test"]),
        ({"Makefile": "test:\n", "go.mod": ""}, ["go test ./..."]),
        ({"a.txt": ""}, []),
        ({}, []),
    ],
)  # fmt: skip
def test_checks_by_what_is_there(
    tmp_path: Path, files: dict[str, str], commands: list[str]
) -> None:
    for path, text in files.items():
        place = tmp_path / path
        place.parent.mkdir(exist_ok=True)
        place.write_text(text)
    found = detect(str(tmp_path))
    assert [check.command for check in found] == commands
    assert all(check.why for check in found)
