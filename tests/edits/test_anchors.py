"""A hunk that names the lines above it stands under them, or nowhere."""

import pytest

from tests.edits.test_places import CODE, after, diff, edit, patch, why


def test_an_anchor_chooses() -> None:
    text = patch("@@ def second():\n-    return value\n+    return 0\n")
    assert after(text, CODE) == CODE[: CODE.rindex(b"return")] + b"return 0\n"


@pytest.mark.req("R141")
@pytest.mark.parametrize(
    "anchor, guidance",
    [
        ("def first():", "its lines stand at line 10, which is not under 'def first():'"),
        ("def nowhere():", "no line of the file is its anchor 'def nowhere():'"),
        ("def sec", "no line of the file is its anchor 'def sec'"),
        (
            "import os\n@@ def first():",
            "its lines stand at line 10, which is not under 'def first():'",
        ),
    ],
)
def test_lines_that_stand_elsewhere_than_under_their_anchor_are_no_place(
    anchor: str, guidance: str
) -> None:
    text = patch(f"@@ {anchor}\n-    value = 2\n+    value = 3\n")
    (refusal,) = edit(text, CODE).refusals
    assert (refusal.why, refusal.message) == ("not_found", "hunk 1 was not found")
    assert refusal.guidance.startswith(guidance)
    kept_differ = patch(f"@@ {anchor}\n other\n-    value = 2\n+    value = 3\n     return value\n")
    assert why(kept_differ, CODE) == "not_found"


@pytest.mark.parametrize(
    "anchor",
    [
        "import os",
        "def second():",
        "def second",
        "import os\n@@ def second():",
        "value = 2",
        "-10,2 +10,2 @@ def nowhere():",
        "-10,2 +10,2 @@",
        "...",
    ],
)
def test_an_anchor_is_a_line_above_or_one_of_the_hunk_itself(anchor: str) -> None:
    text = patch(f"@@ {anchor}\n-    value = 2\n+    value = 3\n")
    assert after(text, CODE) == CODE.replace(b"= 2", b"= 3")


def test_a_surer_place_that_is_not_under_the_anchor_does_not_hide_one_that_is() -> None:
    content = CODE.replace(b"= 1", b"= 2  ")
    text = patch("@@ def first():\n-    value = 2\n+    value = 3\n")
    assert after(text, content) == content.replace(b"= 2  ", b"= 3")


@pytest.mark.req("R141")
def test_a_heading_is_not_the_beginning_of_another_line() -> None:
    content = CODE.replace(b"def first", b"def get").replace(b"def second", b"def getter")
    text = diff("@@ -90,1 +90,1 @@ def gett\n-    return value\n+    return 0\n")
    assert why(text, content) == "ambiguous"
    long = f"def getter(value={'x' * 90}):"
    cut = text.replace("def gett", long[:80])
    wide = content.replace(b"def getter():", long.encode())
    assert after(cut, wide) == wide[: wide.rindex(b"return")] + b"return 0\n"
    whole = text.replace("def gett", "def getter():")
    assert after(whole, content) == content[: content.rindex(b"return")] + b"return 0\n"


def test_an_anchor_may_be_that_of_the_first_line_of_a_hunk() -> None:
    text = patch(
        "@@ def first():\n     return value\n \n \n def second():\n-    value = 2\n+    value = 3\n"
    )
    assert after(text, CODE) == CODE.replace(b"= 2", b"= 3")
