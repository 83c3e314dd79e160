"""The screens of maintenance."""

import os

from holdfast.model.event import Options
from holdfast.model.plan import StepId
from tests.cli.here import run_here
from tests.cli.project import Project
from tests.cli.screens import Screen


def lay(project: Project) -> None:
    """Four runs of one line, one of them failed, with old contents."""
    for word in ("alpha", "beta"):
        project.plan(
            {
                "fetch": {"shell": f"echo {word}"},
                "report": {
                    "shell": f"head -c 40000 /dev/zero | tr '\\0' {word[0]} > report.txt",
                    "needs": ["fetch"],
                    "produces": ["report.txt"],
                    "description": "What the reader sees.",
                },
            }
        )
        run_here(project)
    run_here(project, Options(force_steps=(StepId("report"),)))
    report = {"shell": "exit 3", "needs": ["fetch"], "description": "What the reader sees."}
    project.plan({"fetch": {"shell": "echo beta"}, "report": report})
    run_here(project)
    with project.database() as database:
        database.execute("UPDATE blob SET at = 0")
    for path in project.store.glob("blobs/??/*"):
        os.utime(path, (0, 0))


def test_what_maintenance_shows(project: Project, screen: Screen) -> None:
    lay(project)
    screen("history")
    screen("history", "--failed", "--since", "0s", name="history-none")
    screen("ls", "--long")
    screen("gc", "--keep", "0s", "--dry-run", name="gc")
    screen("gc", name="gc-nothing")
    project.ok("pin", "@-1", "--because", "what we shipped in spring")
    screen("pin", "fetch")
    screen("pin", "--list", name="pin-list")
    project.ok("export", "@", "run.zip")
    screen("import", "run.zip", name="import-known")
    screen("import", "plan.yaml", name="import-foreign")


def test_what_a_purge_shows(project: Project, screen: Screen) -> None:
    project.plan({"fetch": {"shell": "echo secret"}})
    digest = run_here(project).steps[StepId("fetch")].digest
    assert digest is not None
    screen("purge", digest[:12], "--because", "a password", name="purge-unasked")
    words = ("purge", digest[:12], "--because", "a password", "--yes")
    screen(*words, name="purge")
    screen("show", "fetch", name="show-purged")
