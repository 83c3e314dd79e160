"""A code base in a temporary folder, with git or without, and what an index of it says."""

import os
import subprocess
from pathlib import Path
from typing import Any

from holdfast.codebase.graph import graph_of
from holdfast.codebase.index import Index
from holdfast.codebase.mapping import map_of
from holdfast.codebase.relevance import relevant

ENVIRONMENT = {
    **{name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ},
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_AUTHOR_NAME": "A",
    "GIT_AUTHOR_EMAIL": "a@example.com",
    "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@example.com",
    "GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z",
    "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z",
}


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", "-c", "protocol.file.allow=always", *words],
        cwd=folder,
        env=ENVIRONMENT,
        check=True,
        capture_output=True,
    )
    return done.stdout.decode().strip()


def write(folder: Path, path: str, text: str | bytes) -> Path:
    place = folder / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(text if isinstance(text, bytes) else text.encode())
    return place


def commit(folder: Path, message: str) -> str:
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "--allow-empty", "-m", message)
    return git(folder, "rev-parse", "HEAD")


def repository(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "-q", "-b", "main")
    return folder


def told(index: Index, question: str = "open the session store") -> dict[str, Any]:
    """Everything that an index says, to be compared whole."""
    graph = graph_of(index)
    return {
        "files": index.files(),
        "symbols": index.symbols(),
        "imports": {path: sorted(found) for path, found in sorted(graph.imports.items())},
        "tests": {path: dict(sorted(of.items())) for path, of in sorted(graph.tests.items())},
        "relevant": relevant(index, question, limit=50),
        "map": map_of(index, 500),
    }


def fresh(root: Path, question: str = "open the session store") -> dict[str, Any]:
    """What an index says that was made from nothing."""
    with Index(str(root)) as index:
        index.update()
        return told(index, question)
