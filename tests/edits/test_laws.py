"""Laws of edits: what is done is undone by what says the contrary, and no format says it differently."""

import json
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from holdfast.edits.editing import Edit, apply_edit
from holdfast.edits.formats import read_edit
from holdfast.edits.lines import Text, decoded, encoded, split
from holdfast.edits.outcome import Outcome
from holdfast.edits.places import work_out
from holdfast.edits.render import hunks_between, search_replace, unified, updated, v4a
from holdfast.edits.retell import RETOLD, retold
from holdfast.edits.workspace import Workspace
from holdfast.edits.write import Report, roll_back
from holdfast.errors import EditError
from tests.crash.power import MEMORY

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


def made(workspace: Workspace, text: str, form: str | None = None) -> Report:
    report = apply_edit(workspace, Edit(text, form, syntax="off"))
    assert report.refusals == (), text
    return report


def files_in(root: Path) -> dict[str, tuple[bytes, int]]:
    return {
        str(path.relative_to(root)): (path.read_bytes(), path.stat().st_mode & 0o777)
        for path in root.rglob("*")
        if path.is_file()
    }


@pytest.mark.req("R139")
@settings(max_examples=60)
@given(CONTENT, LINES)
def test_an_edit_said_the_other_way_round_takes_it_back(content: bytes, lines: list[str]) -> None:
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as place:
        root, state = Path(place, "root"), Path(place, "state")
        root.mkdir()
        for name in ("f", "old"):
            (root / name).write_bytes(content)
        (root / "gone").write_bytes(b"caf\xe9\r\n")
        (root / "gone").chmod(0o755)
        before = files_in(root)
        wanted = [
            {"path": "f", "whole": "".join(f"{line}\n" for line in lines)},
            {"path": "new", "create": "x", "mode": "755"},
            {"path": "gone", "delete": True},
            {"path": "old", "move": "dir/name", "hunks": []},
        ]
        workspace = Workspace(str(root), state=str(state))
        report = made(workspace, json.dumps({"edits": wanted}))
        after = files_in(root)
        made(workspace, retold(report.files, "unified", reverse=True))
        assert files_in(root) == before
        made(workspace, retold(report.files, "unified"))
        assert files_in(root) == after


@pytest.mark.req("R139")
@pytest.mark.parametrize(
    "edits, files, forms",
    [
        ([{"path": "a", "move": "b"}, {"path": "b", "move": "a"}], {"a": b"A\n", "b": b"B\n"}, 2),
        ([{"path": "a", "move": "c", "hunks": [{"old": "x", "new": "y"}]}], {"a": b"w\nx\n"}, 2),
        ([{"path": "a", "whole": ""}], {"a": b"\xef\xbb\xbfx\r\ny"}, 3),
        ([{"path": "a", "delete": True}], {"a": b"a\n"}, 2),
        ([{"path": "a", "delete": True}], {"a": b"\xff\0"}, 1),
        ([{"path": "a", "create": "x\n"}], {"a": b""}, 3),
        ([{"path": "a", "create": "x\n"}], {}, 3),
        ([{"path": "a", "mode": "755"}], {"a": b"x\n"}, 1),
        ([{"path": "a", "mode": "600"}], {"a": b"x\n"}, 0),
        ([{"path": "a", "header": "# h\n"}], {"a": "#!x\né".encode("utf-16")}, 3),
        ([{"path": "a", "header": "# h\n"}], {"a": b"\xef\xbb\xbfx\n"}, 3),
        ([{"path": "a", "hunks": [{"old": "x", "new": "y"}]}], {"a": b"x\r\nz\n\nx1"}, 3),
    ],
)
def test_a_format_says_the_same_or_that_it_cannot(
    tmp_path: Path, edits: list[dict[str, object]], files: dict[str, bytes], forms: int
) -> None:
    (tmp_path / "root").mkdir()
    for path, content in files.items():
        (tmp_path / "root" / path).write_bytes(content)
    workspace = Workspace(str(tmp_path / "root"), state=str(tmp_path / "state"))
    before = files_in(tmp_path / "root")
    report = made(workspace, json.dumps({"edits": edits}))
    after = files_in(tmp_path / "root")
    roll_back(workspace, "last")
    able = 0
    for form in RETOLD:
        with suppress(EditError):
            said = retold(report.files, form)
            made(workspace, said, form)
            assert files_in(tmp_path / "root") == after, form
            roll_back(workspace, "last")
            able += 1
    assert able == forms
    assert files_in(tmp_path / "root") == before


def test_taking_back_keeps_what_others_did_meanwhile(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_text("1\n2\n3\n4\n5\n6\n7\n8\n9\n")
    workspace = Workspace(str(tmp_path), state=str(tmp_path / "state"))
    said = json.dumps([{"path": "a", "hunks": [{"old": "2\n", "new": "two\n"}]}])
    report = made(workspace, said)
    file.write_text("0\n" + file.read_text().replace("9\n", "nine\n"))
    for form in RETOLD:
        made(workspace, retold(report.files, form, reverse=True), form)
        assert file.read_text() == "0\n1\n2\n3\n4\n5\n6\n7\n8\nnine\n"
        roll_back(workspace, "last")


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
    texts = {
        "unified": unified("f", hunks),
        "search-replace": search_replace("f", hunks),
        "v4a": v4a(updated("f", hunks)),
    }
    for form, text in texts.items():
        said = read_edit(text, form)
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
