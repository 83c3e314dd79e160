"""What a model is told of a function, and which arguments the function takes."""

from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import AttemptError
from holdfast.generators.offers import arguments_of, offer_of

SOURCE = '''
from typing import Any, Literal, Optional
async def many(a: str, b: "int | None" = None, *, c: list[float], d: dict[str, bool], e: Any, f=1,
               g: Optional[Literal["x", 2]] = None, **more) -> str:
    """Does many things.

    At length.
    """
def first(a, /): ...
def none(): ...
'''


@pytest.fixture
def root(tmp_path: Path) -> str:
    (tmp_path / "work.py").write_text(SOURCE)
    return str(tmp_path)


def test_annotations_become_a_schema(root: str) -> None:
    offer = offer_of("work:many", root)
    assert offer.words == "Does many things.\n\nAt length."
    assert offer.schema == {
        "type": "object",
        "properties": {
            "a": {"type": "string"},
            "b": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None},
            "c": {"type": "array", "items": {"type": "number"}},
            "d": {"type": "object", "additionalProperties": {"type": "boolean"}},
            "e": {},
            "f": {"default": 1},
            "g": {"anyOf": [{"enum": ["x", 2]}, {"type": "null"}], "default": None},
        },
        "required": ["a", "c", "d", "e"],
        "additionalProperties": True,
    }


GOOD: dict[str, Any] = {"a": "x", "c": [1, 2.5], "d": {"k": True}, "e": None, "z": 1}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ('{"a": ', "not JSON"),
        ("[]", "not a JSON object"),
        ('{"a": 1}', "'c' is missing"),
        ('{"a": 1, "c": [], "d": {}, "e": 1}', "'a' must be of type string"),
        ('{"a": "", "c": [true], "d": {}, "e": 1}', "item 0 of 'c' must be of type number"),
        ('{"a": "", "c": [], "d": {"k": 1}, "e": 1}', "'k' of 'd' must be of type boolean"),
        ('{"a": "", "b": "x", "c": [], "d": {}, "e": 1}', "'b': must be of type integer"),
    ],
)
def test_arguments_that_do_not_fit_are_told(root: str, change: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        arguments_of(change, offer_of("work:many", root).schema)


def test_arguments_that_fit_are_taken(root: str) -> None:
    text = '{"a": "x", "c": [1, 2.5], "d": {"k": true}, "e": null, "z": 1}'
    assert arguments_of(text, offer_of("work:many", root).schema) == GOOD
    assert arguments_of("", offer_of("work:none", root).schema) == {}


@pytest.mark.parametrize("target", ["work:first", "work:missing", "os:getcwd", "nowhere:f"])
def test_what_cannot_be_a_tool_is_refused(root: str, target: str) -> None:
    with pytest.raises(AttemptError):
        offer_of(target, root)
