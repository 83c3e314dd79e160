"""Bugs that are planted on purpose: the sweeps are good if each is found by the sweep that is there for it.

A bug is a few replacements in the text of a copy of the package. The tests it names run against that
copy, and must fail with the words it names: a bug that shows by luck, in another test or as another
fault, does not count as found. To add one, add it to `BUGS`.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "holdfast"
PATIENCE = 1800
D01 = "tests/crash/test_kill_sweep.py::test_killed_at_any_call_of_any_thread[40]"
AT_RENAME = (  # the moment between is short, and the numbers of calls of all threads vary by some
    "tests/crash/test_kill_sweep.py::"
    "test_killed_at_numbers_that_the_kernel_counts_until_the_run_ends_by_itself[rename]"
)
POWER = "tests/crash/test_power.py::test_nothing_told_is_lost_with_the_power[260]"
SHORT = "tests/crash/test_bad_disk.py"
STORE = "tests/contracts/test_store.py"


class Edit(NamedTuple):
    """One replacement; the old text is there exactly once."""

    file: str
    old: str
    new: str


@dataclass(frozen=True)
class Bug:
    """What is wrong, what finds it, and the words with which it is found."""

    name: str
    edits: tuple[Edit, ...]
    tests: str
    words: str
    soak: bool = False

    def __str__(self) -> str:
        return self.name


COMMIT = (
    "        texts, small = self._prepared(batch)\n"
    "        self._names.write(lambda cursor: self._apply(cursor, batch, texts, small), wait=wait)\n"
)

BUGS = (
    Bug(
        "content is not synced",
        (
            Edit(
                "store/blobs.py",
                "digest, size = self._fill(handle, pieces)\n                    self._sync(handle)",
                "digest, size = self._fill(handle, pieces)",
            ),
        ),
        POWER,
        "damaged|missing",
        soak=True,
    ),
    Bug(
        "the directory of a content is not synced",
        (
            Edit(
                "store/blobs.py",
                "            os.rename(temp, path)\n"
                "        self._sync_directory(os.path.dirname(path))",
                "            os.rename(temp, path)",
            ),
        ),
        POWER,
        "missing",
        soak=True,
    ),
    Bug(
        "the row is stored before the content it names",
        (
            Edit(
                "store/relational.py",
                COMMIT,
                f"{COMMIT}        for _, late in batch.blobs:\n            self._contents.put(late)\n",
            ),
            Edit(
                "store/relational.py",
                "            else:\n                self._contents.put(content)\n",
                "",
            ),
            Edit(
                "engine/contents.py",
                "        if len(content) > SMALL:\n            return self._world.store.put(content)\n",
                "",
            ),
        ),
        AT_RENAME,
        "is missing",
        soak=True,
    ),
    Bug(
        "event and artifact row in two transactions",
        (
            Edit(
                "store/relational.py",
                COMMIT,
                f"{COMMIT}        self._names.write(\n"
                "            lambda cursor: self._insert_artifacts(cursor, batch.artifacts)\n"
                "        )\n",
            ),
            Edit("store/relational.py", "        if batch.artifacts:\n", "        if False:\n"),
        ),
        D01,
        "right after: verify",
        soak=True,
    ),
    Bug(
        "a write is not continued",
        (Edit("store/blobs.py", "            while rest:\n", "            if rest:\n"),),
        f"{SHORT} -k short-",
        "damaged|missing",
        soak=True,
    ),
    Bug(
        "a sync that failed is taken for one that did not",
        (
            Edit(
                "store/blobs.py",
                "            self._poison(f\"a file of '{self._root}' could not be synced: {error}\")\n"
                '            raise StoreError(f"content cannot be stored durably: {error}") from error\n',
                "            del error\n",
            ),
        ),
        f"{SHORT}::test_a_sync_that_fails_is_noticed_wherever_it_is",
        "it ended with 0",
    ),
    Bug(
        "a content is given without a look at its digest",
        (Edit("store/blobs.py", "    if whole.hexdigest() != digest:\n", "    if False:\n"),),
        "tests/crash/test_rot.py::test_verify_names_what_is_damaged_and_nobody_is_given_it",
        "assert 0 == 9",
    ),
    Bug(
        "a process that cannot be started is the step's failure",
        (
            Edit(
                "process/launch.py",
                "is not None:  # no command could have been started\n",
                "is not None and not argv:\n",
            ),
        ),
        "tests/crash/test_errno.py::test_a_refused_call_is_nobodys_failure[18]",
        "could not be started",
        soak=True,
    ),
    Bug(
        "a transaction that reads first and takes the lock later",
        (Edit("store/database.py", 'execute("BEGIN IMMEDIATE")', 'execute("BEGIN")'),),
        "tests/store/test_crash.py::test_a_transaction_has_the_lock_before_it_reads",
        "DID NOT RAISE",
    ),
    Bug(
        "the fence of a claim is not asked for",
        (
            Edit(
                "store/holds.py",
                '_HELD = "SELECT 1 FROM claim WHERE fence = ? AND',
                '_HELD = "SELECT 1 FROM claim WHERE ? > 0 AND',
            ),
        ),
        f"{STORE} -k its_fence_never_counts_again",
        "DID NOT RAISE",
    ),
    Bug(
        "the fence of a run is not asked for",
        (Edit("store/refusals.py", "if fence != append.fence:", "if append.fence is None:"),),
        f"{STORE} -k whoever_lost_a_run",
        "DID NOT RAISE",
    ),
    Bug(
        "a step may be accepted twice in a run",
        (
            Edit(
                "store/migrate.py",
                "CREATE UNIQUE INDEX artifact_once ON artifact(maker, step)\n",
                "CREATE INDEX artifact_once ON artifact(maker, step)\n",
            ),
        ),
        f"{STORE} -k a_step_of_a_run_is_accepted_once",
        "DID NOT RAISE",
    ),
    Bug(
        "what a guard rejected is reused",
        (Edit("store/rows.py", " AND a.status = 'accepted' AND a.source", " AND a.source"),),
        f"{STORE} -k only_accepted_ones_are_found",
        "is None",
    ),
    Bug(
        "a key depends on the order in which something was written",
        (Edit("model/digest.py", "for key in sorted(value)])", "for key in value])"),),
        "tests/core/test_digest.py::test_the_order_of_keys_is_irrelevant",
        "assert canonical",
    ),
    Bug(
        "a lease is judged by the clock and not by the heart",
        (
            Edit(
                "engine/hearts.py",
                "still = before.still + passed if before is not None and is_still else 0.0",
                "still = (world.clock() - holder.owner.since) / 1000",
            ),
        ),
        "tests/crash/test_leases.py -k not_taken",
        "the heart beats, and it was taken over",
    ),
    Bug(
        "only the process group is killed",
        (
            Edit(
                "process/launch.py",
                "        while struck := self._family.strike():\n",
                "        while struck := []:\n",
            ),
        ),
        "tests/process/test_run.py -k timeout_ends_the_whole_tree",
        "survivors|assert",
    ),
    Bug(
        "a path is inside if it begins like the project",
        (
            Edit(
                "edits/tree.py",
                "    for part in parts:\n        fault = _fault(part)\n        if fault:\n",
                '    for fault in ("leads out",):\n'
                '        if not os.path.normpath(f"/project/{path}").startswith("/project"):\n',
            ),
        ),
        "tests/edits/test_tree.py -k leads_out",
        "DID NOT RAISE",
    ),
    Bug(
        "told before it is stored",
        (
            Edit(
                "engine/scribe.py",
                "        batch = self._batch(pending)\n",
                "        batch = self._batch(pending)\n        self._world.on_events(pending.events)\n",
            ),
        ),
        D01,
        "told as accepted, but not in the journal",
        soak=True,
    ),
    Bug(
        "what is finished is made again",
        (
            Edit(
                "engine/probe.py",
                "        found = self._own(step, ref, content=content)\n",
                "        found = None\n",
            ),
        ),
        D01,
        "accepted before, and executed again",
        soak=True,
    ),
    Bug(
        "outputs of a lost attempt are not put back",
        (
            Edit(
                "engine/putback.py",
                "    links = outputs.take_special(step.produces)\n",
                "    if outputs is not None:\n        return None\n"
                "    links = outputs.take_special(step.produces)\n",
            ),
        ),
        D01,
        "were not put back",
        soak=True,
    ),
    Bug(
        "files that were recorded are taken back",
        (
            Edit(
                "engine/losses.py",
                "frozenset(edit_of(state.run, event) for event in events_of(world, state.run))",
                "frozenset()",
            ),
        ),
        "tests/crash/test_recovery.py::test_killed_while_outputs_are_written_again_from_the_store",
        "other files|left as it is|ended with",
    ),
)


def plant(bug: Bug, folder: Path) -> Path:
    """A copy of the package with the bug in it; where Python finds it."""
    place = folder / "src"
    shutil.copytree(SOURCE, place / "holdfast", ignore=shutil.ignore_patterns("__pycache__"))
    for edit in bug.edits:
        target = place / "holdfast" / edit.file
        text = target.read_text()
        assert text.count(edit.old) == 1, f"{bug}: {edit.file} has {edit.old!r} not exactly once"
        target.write_text(text.replace(edit.old, edit.new))
    return place


class Finding(NamedTuple):
    """What the tests said about a package."""

    failed: bool
    output: str

    def shows(self, bug: Bug) -> bool:
        """Whether they failed, and in the words that belong to the bug."""
        return self.failed and re.search(bug.words, self.output) is not None


def look_for(bug: Bug, place: Path, folder: Path) -> Finding:
    """Run the tests that must find it against the package there; the first violation ends them."""
    words = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "0", "-p", "no:cacheprovider"]
    words += ["-m", "soak" if bug.soak else "not soak", f"--basetemp={folder / 'tests'}"]
    done = subprocess.run(
        [*words, *bug.tests.split()],
        cwd=ROOT,
        env=_environment(place),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode in {0, 1}, done.stdout + done.stderr  # else nothing was tested
    return Finding(done.returncode == 1, done.stdout + done.stderr)


def _environment(place: Path) -> Mapping[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    return {**kept, "PYTHONPATH": str(place), "HOLDFAST_PLANTED": str(place)}
