"""A worker that waits for errands keeps nobody from removing a content."""

from pathlib import Path

import pytest

from holdfast.model.digest import digest_bytes
from holdfast.store.sqlite import SqliteStore
from tests.cli.project import Project, until

PLAN = "name: said\nsteps:\n  say:\n    shell: echo said\n"


@pytest.mark.req("I16")
def test_a_content_is_purged_while_a_worker_waits(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.write("holdfast.yaml", PLAN)
    digest = digest_bytes(b"said\n")
    try:
        project.ok("run", "holdfast.yaml")
        worker = project.start("worker", "--queue", "far")
        with SqliteStore.open(str(project.store), create=False) as store:
            until(lambda: bool(store.held()))
            project.ok("purge", digest, "--because", "private", "--yes", "-f", "holdfast.yaml")
            assert store.held(), "the worker is still there"
            assert worker.poll() is None
            assert digest in store.absent([digest])
    finally:
        project.end()
