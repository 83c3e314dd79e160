"""The checks are able to fail: engines with a planted bug, and scenes with planted damage."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import pytest

from tests.crash import looks
from tests.crash.faults import KILLED, Case, Reference, Report, Scene, Shim, each, lay

# Each is put before the real command: the engine is the real one but for one thing.
BUGS = {
    "tells before it stores": """
import holdfast.engine.loop as loop
flush = loop.Engine._flush
def early(self):
    if not self._scribe.committing and self._scribe.pending.events:
        self._world.on_events(self._scribe.pending.events)
    flush(self)
loop.Engine._flush = early
""",
    "does finished work again": """
sys.argv[1:2] = ["run", "--force"] if sys.argv[1] == "resume" else sys.argv[1:2]
""",
    "leaves the rooms of dead attempts": """
import holdfast.engine.attempt as attempt
import holdfast.engine.losses as losses
losses.leftovers = lambda world, state: None
attempt.Bench.leave = lambda self: None
""",
    "takes back files that were accepted": """
import holdfast.engine.losses as losses
losses.edit_of = lambda run, event: ""
""",
    "forgets the journals of edits": """
import holdfast.engine.outputs as outputs
outputs.Outputs.recover = lambda self, committed: []
outputs.Outputs.all_placed = lambda self: None
""",
    "names content before it is there": """
import holdfast.store.contents as contents
put = contents.Contents.put
late = []
def promised(self, content):
    whole = content if isinstance(content, bytes) else b"".join(content)
    if len(whole) <= 16384:
        return put(self, whole)
    import hashlib
    late.append((self, whole))
    return hashlib.sha256(whole).hexdigest()
contents.Contents.put = promised
import holdfast.engine.loop as loop
stored = loop.Engine._stored
def after(self, done, pending):
    while late:
        put(*late.pop())
    stored(self, done, pending)
loop.Engine._stored = after
""",
}
FOUND = {
    "tells before it stores": "told as accepted, but not in the journal",
    "does finished work again": "accepted before, and executed again",
    "leaves the rooms of dead attempts": "a directory is left: .holdfast/scratch",
    "takes back files that were accepted": "other files",
    "forgets the journals of edits": "a journal of an edit is left",
    "names content before it is there": "is missing",
}


def last_calls(*names: str) -> Callable[[list[str]], list[int]]:
    """The last calls of these kinds, the latest first."""
    return lambda calls: [n for n in range(len(calls), 0, -1) if calls[n - 1] in names][:24:2]


def commits(calls: list[str]) -> list[int]:
    """Writes to the database in the middle of the run."""
    writes = [n for n, name in enumerate(calls, 1) if name == "pwrite64"]
    return writes[len(writes) // 3 : -len(writes) // 3 : 5]


def placed(calls: list[str]) -> list[int]:
    """The calls around the commit that records the last placed files: few come before them or not."""
    last = max(n for n, name in enumerate(calls) if name == "renameat")
    stored = calls.index("fdatasync", last) + 1
    return sorted(range(stored - 4, stored + 9), key=lambda number: abs(number - stored - 1))


# At which calls of a run the bug shows.
SHOWN: dict[str, Callable[[list[str]], list[int]]] = {
    "tells before it stores": commits,
    "does finished work again": last_calls("fdatasync"),
    "leaves the rooms of dead attempts": last_calls("mkdir"),
    "takes back files that were accepted": placed,
    "forgets the journals of edits": placed,
    "names content before it is there": last_calls("fsync", "mkdir"),
}
QUICK = ("leaves the rooms of dead attempts", "takes back files that were accepted")
SCRIPT = """import sys
{bug}
from holdfast.cli.main import main
main()
"""


@pytest.mark.parametrize(
    "bug",
    [pytest.param(bug, marks=[] if bug in QUICK else pytest.mark.soak("planted")) for bug in BUGS],
)
def test_a_planted_bug_is_found(
    bug: str, tmp_path: Path, shim: Shim, reference: Callable[[str], Reference]
) -> None:
    script = tmp_path / "engine.py"
    script.write_text(SCRIPT.format(bug=BUGS[bug]))
    command = (sys.executable, str(script))
    calls = shim.count(lay(tmp_path / "count", "small", command), "run", "-j", "1")
    report = Report(bug)

    def kill(number: int) -> None:
        if any(FOUND[bug] in violation for violation in report.violations):
            return
        scene = lay(tmp_path / f"case-{number}", "small", command)
        case = Case(scene, reference("small"), report, f"call {number}")
        answer = scene.call("run", "-j", "1", fault=shim.fault(number))
        if answer.code == KILLED:
            case.fired()
        case.broken(answer)
        case.recovered()

    reference("small")  # found before two threads ask for it
    each(kill, SHOWN[bug](calls))
    assert report.fired > 0
    assert [violation for violation in report.violations if FOUND[bug] in violation]


def _edit(scene: Scene) -> None:
    (scene.root / "d.txt").write_text("half\n")


def _drop(scene: Scene) -> None:
    (scene.root / "e.txt").unlink()


def _temporary(scene: Scene) -> None:
    (scene.root / ".holdfast-0123.tmp").touch()


def _room(scene: Scene) -> None:
    (scene.store / "scratch" / "r-1" / "a.1").mkdir(parents=True)


def _journal(scene: Scene) -> None:
    (scene.store / "apply" / "r-1" / "k").mkdir(parents=True)
    (scene.store / "apply" / "r-1" / "k" / "journal.json").touch()


def _blob(scene: Scene) -> None:
    found = next(path for path in scene.store.glob("blobs/??/*") if path.is_file())
    found.write_bytes(found.read_bytes()[:-1] + b"x")


def _no_blob(scene: Scene) -> None:
    next(path for path in scene.store.glob("blobs/??/*") if path.is_file()).unlink()


def _sql(scene: Scene, *statements: str) -> None:
    connection = apsw.Connection(str(scene.store / "state.db"))
    connection.execute("DROP TRIGGER event_is_kept")
    for statement in statements:
        connection.execute(statement)
    connection.close()


LAST_ACCEPTED = "(SELECT max(place) FROM event WHERE kind = 'attempt_accepted')"


def _lost_event(scene: Scene) -> None:
    _sql(scene, f"DELETE FROM event WHERE place = {LAST_ACCEPTED}")


def _twice(scene: Scene) -> None:
    _sql(
        scene,
        "INSERT INTO event SELECT (SELECT max(place) + 1 FROM event WHERE place >> 40 ="
        f" e.place >> 40), at, kind, body, hash FROM event e WHERE place = {LAST_ACCEPTED}",
    )


def _unfinished(scene: Scene) -> None:
    _sql(scene, "DELETE FROM event WHERE kind = 'run_ended'")


def _holder(scene: Scene) -> None:
    _sql(scene, "INSERT INTO holder VALUES('e', 1, 'h', 'b', 1, '1', 1, NULL, 0, 0)")


def _again(scene: Scene) -> None:
    with open(scene.log, "a") as log:
        log.write("begin a\n")


DAMAGES: dict[str, tuple[Callable[[Scene], None], str]] = {
    "a file is half written": (_edit, "other files"),
    "a file is missing": (_drop, "other files"),
    "a temporary file is left": (_temporary, "a temporary file is left"),
    "a room is left": (_room, "a directory is left"),
    "a journal is left": (_journal, "a journal of an edit is left"),
    "content is damaged": (_blob, "is damaged"),
    "content is missing": (_no_blob, "is missing"),
    "an event is lost": (_lost_event, "accepted before, and no longer"),
    "accepted twice": (_twice, "accepted twice in one run"),
    "the end is missing": (_unfinished, "runs are left open"),
    "the line is held": (_holder, "the line is still held"),
    "a finished step ran again": (_again, "accepted before, and executed again"),
}


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    """A run that nobody disturbed."""
    scene = lay(tmp_path_factory.mktemp("done") / "scene", "small")
    assert scene.call("run").code == 0
    return scene


@pytest.fixture
def case(done: Scene, reference: Callable[[str], Reference]) -> Iterator[tuple[Case, Report]]:
    """Its copy, looked at once before the damage."""
    report = Report("damage")
    case = Case(done.copied("case"), reference("small"), report, "copy")
    case.broken(case.scene.said(0))
    yield case, report
    shutil.rmtree(case.scene.folder)


def test_an_undisturbed_run_has_no_violation(case: tuple[Case, Report]) -> None:
    checked, report = case
    checked.finished(checked.scene.said(0))
    assert report.violations == []
    assert report.work == 6


@pytest.mark.parametrize("name", DAMAGES)
def test_planted_damage_is_found(name: str, case: tuple[Case, Report]) -> None:
    checked, report = case
    damage, words = DAMAGES[name]
    damage(checked.scene)
    checked.finished(checked.scene.said(0))
    assert [violation for violation in report.violations if words in violation]


def test_a_process_that_is_left_is_found(
    case: tuple[Case, Report], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(looks, "GONE", 0.0)
    checked, report = case
    run = checked.scene.journal().runs[-1]
    read, write = os.pipe()
    with subprocess.Popen(
        ["cat"], stdin=read, env={**os.environ, "HOLDFAST_MARK": f"{run}/a/1"}
    ) as process:
        os.close(read)
        checked.finished(checked.scene.said(0))
        os.close(write)
    assert any(f"a process is left: {process.pid}" in text for text in report.violations)


def test_words_that_the_journal_does_not_hold_are_found(case: tuple[Case, Report]) -> None:
    checked, report = case
    run = "r-00000000-0000-0000-0000-000000000000"
    said = "✓ never: 0.1 s\n= 9 reused: a, nor_this and 7 more\n✓ cut: 0.1"
    checked.finished(checked.scene.said(0)._replace(err=said, out=f"{run} completed"))
    assert any("journal: ['never', 'nor_this']" in text for text in report.violations)
    assert any("told as a run" in text for text in report.violations)
