"""The syntax gate counts errors before and after, and only a rise matters."""

import pytest

from holdfast.edits.formats import read_edit
from holdfast.edits.outcome import Outcome
from holdfast.edits.places import work_out
from holdfast.edits.syntax import checked, error_lines

GOOD = {
    "a.py": (b"def f():\n    return 1\n", "    return 1\n", "    return (1\n"),
    "a.js": (b"function f() {\n  return 1\n}\n", "  return 1\n", "  return {\n"),
    "a.ts": (b"const x: number = 1\nlet y = 2\n", "let y = 2\n", "let = = 2\n"),
    "a.go": (b"package a\n\nfunc f() int {\n\treturn 1\n}\n", "\treturn 1\n", "\treturn 1 +\n"),
    "a.rs": (b"fn f() -> i32 {\n    1\n}\n", "    1\n", "    (1\n"),
    "A.java": (b"class A {\n  int x = 1;\n}\n", "  int x = 1;\n", "  int = 1;\n"),
}


def outcome_of(path: str, old: str, new: str, files: dict[str, bytes]) -> Outcome:
    text = f"{path}\n<<<<<<< SEARCH\n{old}=======\n{new}>>>>>>> REPLACE\n"
    return work_out(read_edit(text), files.get)


@pytest.mark.parametrize("path", GOOD)
def test_more_errors_are_a_warning_or_on_request_a_refusal(path: str) -> None:
    content, old, new = GOOD[path]
    files = {path: content}
    assert error_lines(path, content) == []
    outcome = outcome_of(path, old, new, files)
    warned = checked(outcome, files.get)
    assert warned.files == outcome.files
    (warning,) = warned.warnings
    assert warning.startswith(f"'{path}' would have ")
    refused = checked(outcome, files.get, refuse=True)
    assert refused.files == ()
    assert [(one.path, one.why) for one in refused.refusals] == [(path, "syntax")]


def test_errors_that_were_there_before_do_not_matter() -> None:
    files = {"a.py": b"def f(:\n    pass\n\nx = 1\n"}
    outcome = outcome_of("a.py", "x = 1\n", "x = 2\n", files)
    assert checked(outcome, files.get, refuse=True) == outcome


def test_other_languages_and_removed_files_are_not_judged() -> None:
    files = {"a.txt": b"(((\n"}
    outcome = outcome_of("a.txt", "(((\n", "((((\n", files)
    assert checked(outcome, files.get, refuse=True) == outcome
    deleted = work_out(read_edit('{"edits": [{"path": "a.txt", "delete": true}]}'), files.get)
    assert checked(deleted, files.get, refuse=True) == deleted


def test_a_new_file_must_have_no_errors() -> None:
    outcome = outcome_of("b.py", "", "def (\n", {})
    assert checked(outcome, {"": b""}.get, refuse=True).refusals[0].line == 1
