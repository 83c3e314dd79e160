"""The generated pages leave nothing out, and say values in words."""

from typing import get_args

import pytest

from holdfast.cli.catalogue import entries
from holdfast.cli.main import COMMANDS
from holdfast.formats.grammar import PLAN, STEP
from holdfast.model.digest import Json
from holdfast.model.event import RunEvent
from holdfast.model.line import LineEvent
from tools.reference import generated, kind_of, shape_words, table

PAGES = generated()


def test_every_command_key_code_and_event_has_its_place() -> None:
    commands = PAGES["reference/commands.md"]
    assert all(f"\n### {name}\n" in commands for name in COMMANDS)
    keys = PAGES["reference/plan-keys.md"]
    assert all(f"`{name}`" in keys for name in (*PLAN, *STEP))
    events = PAGES["reference/events.md"]
    nouns = (*get_args(RunEvent), *get_args(LineEvent))
    assert all(f"\n### {kind_of(noun)}\n" in events for noun in nouns)
    codes = "".join(PAGES[f"reference/{p}.md"] for p in ("reasons", "problems", "errors", "guards"))
    for entry in entries().values():
        assert f"| `{entry.code}` |" in codes or entry.group == "exit-codes"


def test_every_key_of_a_plan_says_what_it_means() -> None:
    for name, key in {**PLAN, **STEP}.items():
        assert key.words or key.shape is None, name


def test_what_would_end_a_cell_is_escaped() -> None:
    assert table(("A",), [("x | y\nz",)]) == "| A |\n| --- |\n| x \\| y z |"


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "string"}, "text"),
        ({"enum": ["a", "b"]}, "`a`, `b`"),
        ({"type": "integer", "minimum": 1}, "whole number from 1"),
        ({"type": "array", "items": {"$ref": "#/$defs/guard"}}, "list of guards"),
        (
            {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
            "text; or a list of such",
        ),
    ],
)
def test_a_schema_is_said_in_a_few_words(schema: Json, words: str) -> None:
    assert shape_words(schema) == words
