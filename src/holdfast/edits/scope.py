"""Where an edit may write, and how much: globs, protected names, limits.

A path must match one of the globs of the scope, and no part of it may be a protected name. Names are
compared folded (case, compatibility forms, invisible letters, streams, short names as `GIT~1`), and also
where nothing has that name yet: a file that starts programs is as dangerous when it is new.

Protected is what other programs obey without being asked: version control, CI, build tools, agents, editors,
our own configuration. All of `.git*` counts, `.gitignore` too: what it hides from git, nobody sees in a diff.
`allowed_names` takes names out again. It is for a person at the command line or for a program that calls
this; nothing that lies in the workspace may fill it. `.git` and `.holdfast` themselves are never written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from holdfast.edits.outcome import Refusal, Why
from holdfast.edits.tree import disguises, fold, is_short, quoted, split_path
from holdfast.errors import EditError
from holdfast.model.glob import glob_regex

PROTECTED_NAMES = (
    # version control, and what it runs
    *(".git*", ".hg*", ".svn", ".jj", ".husky", ".pre-commit-config.y*ml", "lefthook.y*ml"),
    # this program
    *(".holdfast*", "holdfast.toml"),
    # secrets, and what a shell reads when it enters
    *(".env", ".env.*", ".envrc", ".netrc", ".npmrc", ".pypirc"),
    # what package managers and build tools run, or take their programs from
    *(".cargo", ".yarn", ".yarnrc*", ".pnpmfile.*", ".mise*", "mise.toml", ".tool-versions"),
    *(".bazelrc", ".direnv", "pyvenv.cfg"),
    # what debuggers and editors run when they are started there
    *(
        ".gdbinit",
        ".lldbinit",
        ".pdbrc",
        ".exrc",
        ".vimrc",
        ".nvimrc",
        ".nvim.lua",
        ".dir-locals.el",
    ),
    # CI; that of git hosts is above
    *(".circleci", ".ci", ".buildkite", ".teamcity", ".forgejo", ".azure*", "azure-pipelines*"),
    *(".travis.y*ml", ".drone.y*ml", ".cirrus.y*ml", ".woodpecker*", "*appveyor.y*ml"),
    *("jenkinsfile", "bitbucket-pipelines.y*ml", "cloudbuild.y*ml"),
    # agents and editors
    *(".mcp.json", ".claude*", ".cursor*", ".codex", ".gemini", ".aider*", ".cline*", ".roo*"),
    *(".windsurf*", ".continue", ".opencode", ".zed", ".kiro", ".junie", ".copilot"),
    *(".vscode", ".idea", ".devcontainer*"),
)
STARTERS = ("conftest.py", "sitecustomize.py", "usercustomize.py", "*.pth")
MOST_FILES = 100
MOST_LINES = 20_000


@dataclass(frozen=True, slots=True)
class Scope:
    """What one edit may do. `code_only` also protects files that Python runs without being asked."""

    globs: tuple[str, ...] = ("**",)
    more_names: tuple[str, ...] = ()
    allowed_names: tuple[str, ...] = ()
    code_only: bool = False
    max_files: int = MOST_FILES
    max_lines: int = MOST_LINES


def judge(scope: Scope, path: str) -> Refusal | None:
    """Why an edit may not write this path; judged as text, whatever lies there."""
    try:
        parts = split_path(path)
    except EditError as error:
        is_ours = any(word in error.message for word in ("protected", "reserved"))
        return _refusal(path, "protected" if is_ours else "out_of_scope", error.message, error.hint)
    for part in parts:
        if is_protected(scope, part):
            name = f"its part {quoted(part)}" if len(parts) > 1 else "its name"
            return _refusal(
                path, "protected", f"{quoted(path)} is protected: {name}", "a person may change it"
            )
    if not any(pattern.match(path) for pattern in _patterns(scope.globs)):
        allowed = ", ".join(quoted(glob) for glob in scope.globs) or "nothing"
        return _refusal(
            path, "out_of_scope", f"{quoted(path)} is outside the write scope", f"scope: {allowed}"
        )
    return None


def outside(scope: Scope, paths: Iterable[str]) -> tuple[Refusal, ...]:
    """Of paths that were changed, by whomever, those that the scope does not allow."""
    judged = (judge(scope, path) for path in paths)
    return tuple(refusal for refusal in judged if refusal is not None)


def is_protected(scope: Scope, part: str) -> bool:
    """Whether a component of a path is, or may be elsewhere, a name that an edit may not write."""
    if _fits(fold(part), scope.allowed_names):
        return False
    starters = STARTERS if scope.code_only else ()
    names = (*PROTECTED_NAMES, *starters, *scope.more_names)
    return is_short(part) or any(_fits(name, names) for name in disguises(part))


def check_size(scope: Scope, files: int, lines: int) -> tuple[Refusal, ...]:
    """Why an edit is too large."""
    found = []
    for what, count, most in (
        ("files", files, scope.max_files),
        ("lines", lines, scope.max_lines),
    ):
        if count > most:
            message = f"the edit changes {count} {what}, and may change {most}"
            found.append(_refusal("", "too_large", message, "make it in smaller edits"))
    return tuple(found)


def _fits(name: str, globs: tuple[str, ...]) -> bool:
    return any(pattern.match(f"x{name}") for pattern in _folded(globs))


@lru_cache(maxsize=64)
def _patterns(globs: tuple[str, ...]) -> tuple[re.Pattern[str], ...]:
    return tuple(glob_regex(glob) for glob in globs)


@lru_cache(maxsize=64)
def _folded(names: tuple[str, ...]) -> tuple[re.Pattern[str], ...]:
    """Globs over one folded name; a letter goes first, because no glob matches `.git` or `.holdfast`."""
    return tuple(glob_regex(f"x{fold(name)}") for name in names)


def _refusal(path: str, why: Why, message: str, guidance: str | None) -> Refusal:
    return Refusal(path, why, message, guidance=guidance or "")
