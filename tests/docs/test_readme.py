"""What the README and the first page of the docs show really works."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import holdfast
from holdfast.cli.main import COMMANDS, PANELS, SHORT
from holdfast.formats.grammar import plan_schema

TOP = Path(__file__).resolve().parents[2]
README = (TOP / "README.md").read_text(encoding="utf-8")
INDEX = (TOP / "docs" / "index.md").read_text(encoding="utf-8")


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


def test_the_plan_of_the_readme_runs(tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(block(README, "yaml"), encoding="utf-8")
    (tmp_path / "sources").mkdir()
    (tmp_path / "sources" / "a.txt").write_text("kelp tide\n", encoding="utf-8")
    (tmp_path / "fetch.sh").write_text(
        "cat sources/*.txt | tr ' ' '\\n' > words.txt\n", encoding="utf-8"
    )
    (tmp_path / "stats.py").write_text(
        "def count(fetch: str) -> dict:\n"
        "    words = fetch.split()\n"
        "    return {'total': len(words), 'longest': max(words, key=len)}\n",
        encoding="utf-8",
    )
    for words in ("check", "plan", "run -j 4", "why report", "run"):
        done = command(tmp_path, "-m", "holdfast", *words.split())
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "report.md").read_text(encoding="utf-8") == "kelp\ntide\n"


def test_the_python_of_the_readme_runs(tmp_path: Path) -> None:
    script = tmp_path / "words.py"
    script.write_text(block(README, "python"), encoding="utf-8")
    for _ in range(2):
        done = command(tmp_path, str(script))
        assert done.stdout == "completed b'{\"total\": 3}'\n", done.stderr


def test_the_smallest_plan_of_the_docs_does_what_the_page_says(tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(block(INDEX, "yaml"), encoding="utf-8")
    (tmp_path / "name.txt").write_text("ada\n", encoding="utf-8")
    first = command(tmp_path, "-m", "holdfast", "run")
    assert "0 reused, 2 ran" in first.stdout
    assert "2 reused, 0 ran" in command(tmp_path, "-m", "holdfast", "run").stdout
    (tmp_path / "name.txt").write_text("bob\n", encoding="utf-8")
    assert "name.txt" in command(tmp_path, "-m", "holdfast", "why", "draft").stdout
    assert "0 reused, 2 ran" in command(tmp_path, "-m", "holdfast", "run").stdout


def test_the_example_of_the_plan_file_page_runs(tmp_path: Path) -> None:
    page = (TOP / "docs" / "plan-file.md").read_text(encoding="utf-8")
    (tmp_path / "plan.yaml").write_text(block(page, "yaml"), encoding="utf-8")
    assert "2 ran" in command(tmp_path, "-m", "holdfast", "run").stdout
    assert command(tmp_path, "-m", "holdfast", "show", "second").stdout == "HELLO\n"


def test_the_plan_file_page_names_every_key_a_step_may_have() -> None:
    page = (TOP / "docs" / "plan-file.md").read_text(encoding="utf-8")
    properties = json.dumps(plan_schema())
    for name in re.findall(r"^\| `(\w+)`", page, re.MULTILINE):
        assert f'"{name}"' in properties or name.startswith("HOLDFAST"), name


def test_every_command_has_a_panel_a_sentence_and_a_place_in_the_readme() -> None:
    assert (
        sorted(COMMANDS) == sorted(SHORT) == sorted(n for names in PANELS.values() for n in names)
    )
    for name in COMMANDS:
        assert re.search(rf"\b{name}\b", README), name


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_explains_itself_with_an_example(name: str, tmp_path: Path) -> None:
    said = command(tmp_path, "-m", "holdfast", name, "--help").stdout
    assert "Example:" in said
    assert not list(tmp_path.glob(".holdfast"))


def test_the_names_of_the_package_are_pinned() -> None:
    assert holdfast.__all__ == ["Plan", "Result", "__version__", "load", "run"]
    assert all(hasattr(holdfast, name) for name in holdfast.__all__)
