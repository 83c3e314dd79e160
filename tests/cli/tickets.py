"""Repositories and tickets for tests of the worker."""

import json
import os
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from holdfast.testing.server import Asked, Say
from tests.cli.project import Answer, Project

ANN = {"name": "Ann Example", "email": "ann@example.org"}
Turn = tuple[str, Mapping[str, Any]]


def git(project: Project, *words: str, cwd: Path | None = None) -> str:
    """What git says, as the person calls it."""
    done = subprocess.run(
        ["git", *words],
        cwd=cwd or project.root,
        env={"PATH": os.environ["PATH"], "HOME": str(project.home)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def repository(project: Project, files: Mapping[str, str]) -> str:
    """Make the project a repository with one commit; its name."""
    for path, text in files.items():
        project.write(path, text)
    rows = "".join(f"\t{key} = {value}\n" for key, value in ANN.items())
    (project.home / ".gitconfig").write_text(f"[user]\n{rows}[init]\n\tdefaultBranch = main\n")
    git(project, "init", "-q")
    git(project, "add", "-A")
    git(project, "commit", "-qm", "begin")
    return git(project, "rev-parse", "HEAD").strip()


def block(path: str, old: str, new: str) -> str:
    """One search/replace block."""
    return f"{path}\n<<<<<<< SEARCH\n{old}=======\n{new}>>>>>>> REPLACE\n"


def edit(*blocks: str) -> Turn:
    return ("edit", {"edit": "".join(blocks)})


def finish(*, ready: bool = True, summary: str = "it is done", **more: Any) -> Turn:
    return ("finish", {"summary": summary, "ready": ready, **more})


def script(project: Project, *cycles: Any, name: str = "script") -> str:
    """A script outside of the repository: cycles of turns, or of attempts of turns."""
    written: list[Any] = []
    for cycle in cycles:
        items = list(cycle)
        if items and isinstance(items[0], tuple):
            written.append(_turns(items))
        else:
            written.append({"attempts": [_turns(attempt) for attempt in items]})
    place = project.folder / f"{name}.json"
    place.write_text(json.dumps({"schema": "holdfast.script/1", "cycles": written}))
    return str(place)


def _turns(turns: Iterable[Any]) -> list[Any]:
    return [{"use": tool, "with": given} for tool, given in turns]


def playing(*turns: Any) -> Any:
    """A model of the scripted server that plays turns, one for each answer it gave before."""

    def said(asked: Asked) -> Say:
        messages: Any = asked.body["messages"]
        number = sum(1 for message in messages if message["role"] == "assistant")
        return Say(tools=[turns[min(number, len(turns) - 1)]])

    return said


def ticket(project: Project, text: str, name: str = "ticket.md") -> str:
    """A ticket as a file outside of the repository."""
    place = project.folder / name
    place.write_text(text)
    return str(place)


def work(project: Project, *words: str) -> Answer:
    return project.call("work", *words, "--quiet")


def worked(project: Project, *words: str) -> Any:
    """A ticket that comes to an end; what is told of it."""
    answer = project.call("work", *words, "--quiet", "--json")
    assert answer.out, answer.err
    return {**answer.json, "exit": answer.code, "err": answer.err}


def log_of(found: Mapping[str, Any]) -> Any:
    """The run log that a ticket names."""
    return json.loads(Path(found["log"]).read_text())


def at(project: Project, branch: str, path: str) -> str:
    """A file as a branch has it."""
    return git(project, "show", f"{branch}:{path}")


def files_at(project: Project, branch: str) -> str:
    """Everything that a branch holds but the task trees, as one text that differs if anything does."""
    rows = git(project, "ls-tree", "-r", branch).splitlines()
    return "\n".join(row for row in rows if "\ttickets/" not in row)
