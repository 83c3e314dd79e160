"""The contest of edit engines says what became of each case, from any git history."""

import subprocess
from pathlib import Path

from bench.edits.__main__ import hold
from bench.edits.commits import changes
from bench.edits.contest import Contest, read, verdict
from bench.edits.disturb import Case, cases
from bench.edits.engines import OURS, Answer, diff_of
from bench.edits.page import page

LINES = [f"    line {number}" for number in range(40)]


def history(folder: Path) -> str:
    """A repository with one commit of the kind that is taken, and one that is not."""

    def git(*words: str) -> None:
        identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True)

    def write(name: str, lines: list[str]) -> None:
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")

    git("init", "-q")
    write("a.txt", LINES)
    write("b.txt", LINES)
    git("add", ".")
    git("commit", "-q", "-m", "first")
    write("a.txt", [*LINES[:10], "    new line", *LINES[11:]])
    git("commit", "-q", "-a", "-m", "one file")
    write("a.txt", LINES)
    write("b.txt", LINES[1:])
    git("commit", "-q", "-a", "-m", "two files")
    return str(folder / ".git")


def test_single_file_commits_become_cases(tmp_path: Path) -> None:
    (change,) = changes(history(tmp_path), 10)
    assert change.path == "a.txt"
    made = {case.kind: case for case in cases(change)}
    assert made["as it is"].target == change.before
    assert made["as it is"].truth == change.after
    assert made["CRLF"].truth == change.after.replace(b"\n", b"\r\n")
    assert made["conflict"].truth is None
    assert made["copied"].target == change.before * 2
    assert "index " in diff_of(made["as it is"])


def test_a_verdict_is_about_bytes(tmp_path: Path) -> None:
    (change,) = changes(history(tmp_path), 10)
    made = {case.kind: case for case in cases(change)}
    case, conflict = made["as it is"], made["conflict"]
    assert case.truth is not None

    def said(of: Case, after: bytes, *, done: bool = True) -> str:
        return verdict(of, Answer(after, done, 0.0))

    assert said(case, case.truth) == "exact"
    assert said(case, case.truth.replace(b"\n", b"\r\n")) == "damaged"
    assert said(case, case.target) == "refused"
    assert said(case, case.target + b"x\n") == "wrong"
    assert said(case, case.target + b"x\n", done=False) == "partial"
    assert said(conflict, conflict.target) == "refused"
    assert said(conflict, conflict.target + b"x\n") == "wrong"


def test_our_engines_are_never_wrong_on_it(tmp_path: Path) -> None:
    (change,) = changes(history(tmp_path), 10)
    for name, engine in OURS.items():
        for case in cases(change):
            expected = "refused" if case.truth is None else "exact"
            assert verdict(case, engine(case)) == expected, (name, case.kind)


def test_a_contest_is_kept_and_becomes_a_page(tmp_path: Path) -> None:
    repository = tmp_path / "history"
    repository.mkdir()
    found = hold(
        [history(repository)], 5, ("holdfast unified", "git apply"), tmp_path, tmp_path / "r.json"
    )
    assert read(tmp_path / "r.json") == found
    text = page(found)
    assert "| holdfast unified diff | 100.0 |" in text
    assert "{{" not in text
    assert "not measured" in page(Contest())
