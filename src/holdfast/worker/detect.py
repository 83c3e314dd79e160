"""Which commands check a repository: found in what it says of itself, shown to the person before they run."""

from __future__ import annotations

import json
import os
import re

from holdfast.model.fixed import fixed

_MOST = 1 << 20
_PYTHON = ("pyproject.toml", "setup.cfg", "setup.py", "tox.ini", "pytest.ini", "requirements.txt")
_PYTEST = ("pytest.ini", "conftest.py", "tests/conftest.py", "test/conftest.py")
_TEST_FILE = re.compile(r"test_.*\.py|.*_test\.py")
_TARGET = re.compile(r"^(test|check)\s*:", re.MULTILINE)


@fixed
class Check:
    """A command, and why it is taken for one that checks the repository."""

    command: str
    why: str


def detect(folder: str) -> tuple[Check, ...]:
    """The checks of the repository in a folder; none if nothing tells of any."""
    found = [
        check for check in (_cargo(folder), _go(folder), _node(folder), _python(folder)) if check
    ]
    if not found and (target := _TARGET.search(_text(folder, "Makefile"))):
        again = "-B " if os.path.exists(os.path.join(folder, target[1])) else ""
        found.append(Check(f"make {again}{target[1]}", f"Makefile has a target '{target[1]}'"))
    return tuple(found)


def _cargo(folder: str) -> Check | None:
    if not _has(folder, "Cargo.toml"):
        return None
    return Check("cargo test --offline", "Cargo.toml is there")


def _go(folder: str) -> Check | None:
    return Check("go test ./...", "go.mod is there") if _has(folder, "go.mod") else None


def _node(folder: str) -> Check | None:
    try:
        scripts = json.loads(_text(folder, "package.json") or "{}").get("scripts", {})
    except (ValueError, AttributeError, RecursionError):
        return None
    command = scripts.get("test") if isinstance(scripts, dict) else None
    if not isinstance(command, str) or "no test specified" in command:
        return None
    return Check("npm test --silent", f"package.json says: {command[:60]}")


def _python(folder: str) -> Check | None:
    tests = sorted(_tests(folder))
    if not tests and not any(_has(folder, name) for name in _PYTEST):
        return None
    uses_pytest = any(_has(folder, name) for name in _PYTEST) or any(
        "pytest" in _text(folder, name) for name in (*_PYTHON, *tests[:20])
    )
    if uses_pytest:
        return Check("python3 -m pytest -q", "it has tests for pytest")
    place = os.path.dirname(tests[0])
    if place and not _has(
        folder, f"{place}/__init__.py"
    ):  # no package: it is not looked into by itself
        return Check(f"python3 -m unittest discover -s {place}", f"it has tests: {tests[0]}")
    return Check("python3 -m unittest", f"it has tests: {tests[0]}")


def _tests(folder: str) -> list[str]:
    found = []
    for place in ("", "tests", "test"):
        try:
            names = os.listdir(os.path.join(folder, place))
        except OSError:
            continue
        found += [os.path.join(place, name) for name in names if _TEST_FILE.fullmatch(name)]
    return found


def _has(folder: str, path: str) -> bool:
    return os.path.isfile(os.path.join(folder, path))


def _text(folder: str, path: str) -> str:
    try:
        with open(os.path.join(folder, path), "rb") as file:
            return file.read(_MOST).decode("utf-8", "replace")
    except OSError:
        return ""
