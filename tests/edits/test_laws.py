"""Laws of edits: what is done can be undone to the byte, and no format says it differently."""

import json
from contextlib import suppress

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from holdfast.edits.formats import read_edit
from holdfast.edits.inverse import inverted
from holdfast.edits.lines import Text, decoded, encoded, split
from holdfast.edits.outcome import Outcome
from holdfast.edits.places import work_out
from holdfast.edits.render import hunks_between, search_replace, unified, v4a
from holdfast.errors import EditError

WORDS = (
    "",
    "a",
    "b",
    "    a",
    "\tb",
    "x = 1",
    "}",
    "a ",
    "é",
    "=======",
    "$1\\n",
    "- a",
    "+ b",
    "@@ a",
)
LINES = st.lists(st.sampled_from(WORDS), max_size=12)
CONTENT = st.builds(
    lambda lines, endings, last, mark: (
        mark + "".join(a + b for a, b in zip(lines, endings, strict=False)).encode() + last.encode()
    ),
    st.lists(st.sampled_from(WORDS), max_size=12),
    st.lists(st.sampled_from(["\n", "\r\n"]), min_size=12, max_size=12),
    st.sampled_from(["", "end"]),
    st.sampled_from([b"", b"\xef\xbb\xbf"]),
)


def applied(outcome: Outcome, files: dict[str, bytes]) -> dict[str, bytes]:
    """The files after an outcome; deletions first, as where only case changes."""
    assert outcome.refusals == ()
    left = {p: c for p, c in files.items() if p not in {file.path for file in outcome.files}}
    return left | {file.path: file.after for file in outcome.files if file.after is not None}


@given(st.binary(max_size=60))
@example(b"\xff\xfea\0\r\0\n\0")
@example(b"a\rb\r")
@example(b"caf\xe9\n\xc3\xa9")
def test_what_is_read_as_text_is_written_as_it_was(content: bytes) -> None:
    text = decoded(content)
    if isinstance(text, Text):
        assert encoded(text) == content


@given(st.text(alphabet="ab\r\n", max_size=30))
def test_lines_and_endings_are_all_there_is(text: str) -> None:
    lines, endings = split(text)
    assert "".join(a + b for a, b in zip(lines, endings, strict=True)) == text


@pytest.mark.req("R139")
@given(CONTENT, LINES)
def test_an_edit_and_its_inverse_leave_the_original_bytes(content: bytes, lines: list[str]) -> None:
    files = {"f": content, "gone": b"\0", "old": content}
    wanted = [
        {"path": "f", "whole": "".join(f"{line}\n" for line in lines)},
        {"path": "new", "create": "x"},
        {"path": "gone", "delete": True},
        {"path": "old", "move": "dir/name", "hunks": []},
    ]
    outcome = work_out(read_edit(json.dumps({"edits": wanted})), files.get)
    after = applied(outcome, files)
    back = work_out(inverted(outcome, files.get), after.get)
    assert applied(back, after) == files


@pytest.mark.req("R139")
@pytest.mark.parametrize(
    "edits, files",
    [
        ([{"path": "a", "move": "b"}, {"path": "b", "move": "a"}], {"a": b"A\n", "b": b"\0"}),
        ([{"path": "a", "move": "A", "hunks": [{"old": "x\n", "new": "y\n"}]}], {"a": b"w\nx\n"}),
        ([{"path": "a", "whole": ""}], {"a": b"\xef\xbb\xbfx\r\ny"}),
        ([{"path": "a", "delete": True}], {"a": b"\xff\0"}),
        ([{"path": "a", "create": "x\n"}], {"a": b""}),
        ([{"path": "a", "header": "# h\n"}], {"a": "#!x\né".encode("utf-16")}),
    ],
)
def test_whatever_is_done_to_files_is_undone(
    edits: list[dict[str, object]], files: dict[str, bytes]
) -> None:
    outcome = work_out(read_edit(json.dumps({"edits": edits})), files.get)
    after = applied(outcome, files)
    assert after != files
    assert applied(work_out(inverted(outcome, files.get), after.get), after) == files


def test_undoing_keeps_what_others_did_meanwhile() -> None:
    files = {"a": b"1\n2\n3\n4\n5\n6\n7\n8\n9\n"}
    said = json.dumps({"edits": [{"path": "a", "hunks": [{"old": "2\n", "new": "two\n"}]}]})
    outcome = work_out(read_edit(said), files.get)
    now = {"a": applied(outcome, files)["a"].replace(b"9\n", b"nine\n")}
    back = applied(work_out(inverted(outcome, files.get), now.get), now)
    assert back == {"a": files["a"].replace(b"9\n", b"nine\n")}


@pytest.mark.req("R139")
@settings(max_examples=150)
@given(LINES, LINES, st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_three_formats_say_one_change(
    old: list[str], new: list[str], ending: str, is_closed: bool
) -> None:
    def text_of(lines: list[str]) -> Text:
        endings = [ending] * len(lines)
        if lines and not is_closed and lines[-1]:
            endings[-1] = ""
        return Text(lines, endings)

    before, after = text_of(["top", *old, "bottom"]), text_of(["top", *new, "bottom"])
    content, wanted = encoded(before), encoded(after)
    assert isinstance(content, bytes)
    files = {"f": content}
    hunks = hunks_between(before, after, unique=True)
    if not hunks:
        return
    for render, form in ((unified, "unified"), (search_replace, "search-replace"), (v4a, "v4a")):
        said = read_edit(render("f", hunks), form)
        outcome = work_out(said, files.get, {"f": content})
        assert applied(outcome, files) == {"f": wanted}, form


@pytest.mark.req("R139")
@given(LINES, LINES, st.integers(0, 5))
def test_other_peoples_lines_above_and_below_stay(
    old: list[str], new: list[str], above: int
) -> None:
    base = Text(["top", *old, "bottom"], ["\n"] * (len(old) + 2))
    after = Text(["top", *new, "bottom"], ["\n"] * (len(new) + 2))
    hunks = hunks_between(base, after, unique=True)
    others = "".join(f"other {number}\n" for number in range(above)).encode()
    seen, wanted = encoded(base), encoded(after)
    assert isinstance(seen, bytes)
    assert isinstance(wanted, bytes)
    files = {"f": others + seen + others}
    if hunks:
        outcome = work_out(read_edit(unified("f", hunks)), files.get, {"f": seen})
        if not outcome.refusals:
            assert applied(outcome, files) == {"f": others + wanted + others}


PIECES = (
    *("a.py", "```", "<<<<<<< SEARCH", "=======", ">>>>>>> REPLACE", "a", "b", "", "\r"),
    *("diff --git a/a.py b/a.py", "rename from a.py", "rename to b.py", "new file mode 100644"),
    *("--- a/a.py", "+++ b/a.py", "+++ /dev/null", "--- /dev/null", "@@ -1,2 +1,2 @@ x", "@@"),
    *("@@ -0,0 +1 @@", " a", "-a", "+b", "\\ No newline at end of file", "-- ", "-", "+"),
    *("*** Begin Patch", "*** Update File: a.py", "*** Add File: a.py", "*** Delete File: a.py"),
    *("*** Move to: c.py", "*** End of File", "*** End Patch", "deleted file mode 100644"),
    *("{", '{"edits": [{"path": "a.py", "hunks": []}]}'),
)


@settings(max_examples=200)
@given(st.lists(st.sampled_from(PIECES), max_size=14), CONTENT)
def test_nonsense_is_refused_and_nothing_else(pieces: list[str], content: bytes) -> None:
    with suppress(EditError):
        outcome = work_out(read_edit("\n".join(pieces)), {"a.py": content}.get)
        assert not (outcome.files and outcome.refusals)
