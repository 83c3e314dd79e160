"""Git repositories for tests, made the same way every time."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

WHO = {
    "GIT_AUTHOR_NAME": "ann",
    "GIT_AUTHOR_EMAIL": "ann@example.org",
    "GIT_COMMITTER_NAME": "ann",
    "GIT_COMMITTER_EMAIL": "ann@example.org",
    "GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z",
    "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
}


def git(root: Path, *words: str) -> str:
    env = {"PATH": os.environ["PATH"], "HOME": str(root), **WHO}
    done = subprocess.run(
        ["git", *words], cwd=root, env=env, capture_output=True, check=True, text=True
    )
    return done.stdout


def repository(root: Path, files: Mapping[str, str]) -> Path:
    """A repository with one commit of these files."""
    root.mkdir(parents=True, exist_ok=True)
    git(root, "init", "-q", "-b", "main")
    for path, text in files.items():
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "first")
    return root


def inside(root: Path) -> dict[str, bytes]:
    """Every file of the repository itself."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted((root / ".git").rglob("*"))
        if path.is_file()
    }
