"""Items that are found while a run goes on: what they are made of is looked at, whichever way a run takes."""

from collections.abc import Callable

import pytest

from tests.cli.project import Project
from tests.cli.tomorrow import run_tomorrow

ITEM = "${{ item }}"
CHANGES: dict[str, Callable[[Project, pytest.MonkeyPatch], object]] = {
    "function": lambda at, _: at.write("reader.py", "def read(n):\n    return {'new': n}\n"),
    "guard": lambda at, _: at.write("check.sh", "exit 0 # changed\n"),
    "schema": lambda at, _: at.write("schema.json", '{"type": ["object", "array"]}'),
    "tool": lambda at, _: at.write("tool.sh", "echo 2\n"),
    "environment": lambda _, patch: patch.setenv("LAW_OF_ITEMS", "other"),
}


@pytest.mark.req("R54", "R182")
@pytest.mark.parametrize("change", CHANGES)
def test_a_change_of_what_found_items_are_made_of_is_seen(
    project: Project, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAW_OF_ITEMS", "one")
    project.write("reader.py", "def read(n):\n    return {'old': n}\n")
    project.write("check.sh", "exit 0\n")
    project.write("schema.json", '{"type": "object"}')
    project.write("tool.sh", "echo 1\n")
    each = {"for_each": "${{ steps.list.output }}", "with": {"n": ITEM}}
    project.plan(
        {
            "list": {"shell": """echo '["a", "b"]'"""},
            "read": {**each, "uses": "python", "run": "reader:read", "schema": "schema.json"},
            "look": {
                **each,
                "shell": "cat $HOLDFAST_WITH/n",
                "env": ["LAW_OF_ITEMS"],
                "guards": [{"command": ["sh", "check.sh"]}],
                "tool_versions": {"tool": ["sh", "tool.sh"]},
            },
        }
    )
    ways = [run_tomorrow(project) for _ in range(3)]
    assert [short for _, short in ways] == [False, False, True]
    CHANGES[change](project, monkeypatch)
    state, short = run_tomorrow(project)
    assert not short
    assert state.status == "completed"
    base = "read" if change in {"function", "schema"} else "look"
    codes = {s: here.reason.code for s, here in state.steps.items() if here.reason is not None}
    changed = {s for s, code in codes.items() if code != "unchanged"}
    assert changed >= {f"{base}[a]", f"{base}[b]"}
    assert not any(name.startswith(("list", *({"read", "look"} - {base}))) for name in changed)
