"""An edit writes where it may, and nowhere that another program obeys."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.edits.outcome import Refusal
from holdfast.edits.scope import Scope, check_size, judge, outside

PROTECTED = [
    *(".git/config", ".GIT/config", "sub/.git/hooks/pre-commit", ".gitignore", ".gitattributes"),
    *(".gitmodules", ".github/workflows/ci.yml", ".GitHub/workflows/ci.yml", ".gitlab-ci.yml"),
    *(".holdfast/state.db", "holdfast.toml", "HOLDFAST.toml", ".mcp.json", "a/.mcp.json", ".env"),
    *(".ENV", ".env.local", ".envrc", ".circleci/config.yml", "Jenkinsfile", ".travis.yml"),
    *(".claude/settings.json", ".cursor/rules", ".cursorrules", ".codex/config.toml", ".vscode/x"),
    *(".cargo/config.toml", ".venv/pyvenv.cfg", ".yarnrc.yml", "mise.toml", ".zed/tasks.json"),
    *("git~1/config", "GIT~1/hooks/x", "a/gi7eba~1/x", "HOLDFA~1/x", "JENKIN~1", "PRE-CO~1.YAM"),
    *(".git::$INDEX_ALLOCATION/config", ".git:x", ".git ./x", ".env::$DATA", ".envrc:a"),
    *(".g\u034fit/x", ".g\ufe0fit/x", ".\U000e0100git/x", ".gi\u3164t/x", ".g\u0131t/x"),
    *("．env", ".ｅnv", ".e\u200cnv", ".env.", ".pre-commit-config.yaml"),  # noqa: RUF001 - full-width, on purpose
]


def why(scope: Scope, path: str) -> str:
    found = judge(scope, path)
    return found.why if found else ""


@pytest.mark.parametrize("path", PROTECTED, ids=ascii)
@pytest.mark.req("D22", "D37", "I8")
def test_a_protected_name_is_refused_in_every_spelling(path: str) -> None:
    assert why(Scope(("**",)), path) == "protected"
    assert why(Scope((path,)), path) == "protected", "naming it in the scope is no way around"


@pytest.mark.parametrize(
    "path",
    [
        *("src/a.py", "git/config", "environment.py", "a.env", "conftest.py", "cursor/x", "12:30"),
        *("a.py~", "a.~1~", "longname~1", "cargo/config.toml"),
    ],
)
def test_a_plain_name_is_not_protected(path: str) -> None:
    assert judge(Scope(), path) is None


@pytest.mark.req("D22", "I8")
def test_what_git_refuses_to_check_out_is_refused(
    tmp_path: Path, require_part: Callable[[str], str]
) -> None:
    git = (require_part("git"), "-c", "core.protectNTFS=true", "-c", "core.protectHFS=true")
    subprocess.run([*git, "init", "-q"], cwd=tmp_path, check=True)
    ends = ("", " ", ".", ". .", ":", "::$INDEX_ALLOCATION", ":a", "\\b", "x", "~1", "-x")
    hidden = ("\u200c", "\u200f", "\u202a", "\u206a", "\ufeff")
    names = [f"{head}{end}" for head in (".git", ".GIT", "git~1", "GIT~1") for end in ends]
    names += [f".g{sign}it" for sign in hidden] + ["..", ".", "", "a/../b", "/a", "a//b", "git~2"]
    refused = set()
    for name in names:
        entry = f"100644,{'0' * 39}1,{name}"
        words = [*git, "update-index", "--add", "--cacheinfo", entry]
        if subprocess.run(words, cwd=tmp_path, capture_output=True, check=False).returncode:
            refused.add(name)
    assert len(refused) > 30
    assert {name for name in refused if judge(Scope(), name) is None} == set()


@pytest.mark.req("D37")
def test_files_that_python_runs_unasked_are_protected_where_only_code_may_change() -> None:
    for path in ("conftest.py", "a/sitecustomize.py", "usercustomize.py", "x.pth"):
        assert why(Scope(code_only=True), path) == "protected"
        assert judge(Scope(), path) is None


@pytest.mark.req("R145", "C35")
def test_only_what_the_globs_match_may_be_written() -> None:
    scope = Scope(("src/**/*.py", "README.md"))
    assert judge(scope, "src/a/b.py") is None
    assert judge(scope, "README.md") is None
    for path in ("src", "src/a.txt", "docs/README.md", "srcs/a.py", "SRC/a.py"):
        refusal = judge(scope, path)
        assert refusal is not None
        assert (refusal.path, refusal.why) == (path, "out_of_scope")
        assert "src/**/*.py" in refusal.guidance
    assert why(Scope(()), "a") == "out_of_scope"
    found = outside(scope, ["src/a.py", "x", ".env"])
    assert [(one.path, one.why) for one in found] == [("x", "out_of_scope"), (".env", "protected")]


def test_names_can_be_added_and_only_a_caller_takes_some_out() -> None:
    assert why(Scope(more_names=("*.lock", "Secret*")), "a/UV.lock") == "protected"
    assert why(Scope(more_names=("Secret*",)), "secrets/x") == "protected"
    opened = Scope(allowed_names=(".gitignore",))
    assert judge(opened, ".gitignore") is None
    assert why(opened, ".gitattributes") == "protected"
    for path in (".git/config", ".holdfast/x"):
        assert why(Scope(allowed_names=("*",)), path) == "protected", "never"


@pytest.mark.req("R145")
def test_an_edit_may_be_too_large() -> None:
    scope = Scope(max_files=2, max_lines=10)
    assert check_size(scope, 2, 10) == ()
    assert [(one.why, one.message) for one in check_size(scope, 3, 11)] == [
        ("too_large", "the edit changes 3 files, and may change 2"),
        ("too_large", "the edit changes 11 lines, and may change 10"),
    ]


@given(st.text(max_size=40))
def test_no_text_breaks_the_judge(path: str) -> None:
    assert isinstance(judge(Scope(), path), Refusal | None)
