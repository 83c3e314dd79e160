"""The Python of the README runs, the plan file page is true, the names of the package are pinned."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import holdfast
from holdfast.formats.grammar import plan_schema

TOP = Path(__file__).resolve().parents[2]
README = (TOP / "README.md").read_text(encoding="utf-8")


def block(page: str, language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", page, re.DOTALL)
    assert found is not None
    return found[1]


def command(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    home = folder / "home"
    home.mkdir(exist_ok=True)
    env = {**os.environ, "HOME": str(home), "PYTHONPATH": str(TOP / "src")}
    return subprocess.run(
        [sys.executable, *words], cwd=folder, env=env, check=False, capture_output=True, text=True
    )


def test_the_python_of_the_readme_runs(tmp_path: Path) -> None:
    script = tmp_path / "words.py"
    script.write_text(block(README, "python"), encoding="utf-8")
    for _ in range(2):
        done = command(tmp_path, str(script))
        assert done.stdout == "completed {'total': 3}\n", done.stderr


def test_the_plan_file_page_names_every_key_a_step_may_have() -> None:
    page = (TOP / "docs" / "plan-file.md").read_text(encoding="utf-8")
    properties = json.dumps(plan_schema())
    for name in re.findall(r"^\| `(\w+)`", page, re.MULTILINE):
        assert f'"{name}"' in properties or name.startswith("HOLDFAST"), name


def test_the_names_of_the_package_are_pinned() -> None:
    assert holdfast.__all__ == [
        "Guarded",
        "Plan",
        "Result",
        "__version__",
        "add",
        "guard",
        "load",
        "plan",
        "run",
        "step",
    ]
    assert all(hasattr(holdfast, name) for name in holdfast.__all__)
