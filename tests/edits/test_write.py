"""An edit is made whole or refused with reasons, is kept, and can be taken back exactly."""

import hashlib
import json
import os
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import holdfast.edits
from holdfast.edits.outcome import Outcome, Planned
from holdfast.edits.scope import Scope, judge
from holdfast.edits.workspace import Workspace
from holdfast.edits.write import (
    history,
    read_file,
    recover_workspace,
    roll_back,
    survey,
    write,
)
from holdfast.errors import EditError, IntegrityError, StoreError, UsageError
from tests.crash.power import MEMORY
from tests.edits.test_apply import tree


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


ONE = b"one\ntwo\nthree\n"
TWO = b"one\n2\nthree\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "ws"
    (root / "d").mkdir(parents=True)
    for path, content, mode in (
        ("a.txt", ONE, 0o644),
        ("run.sh", b"#!/bin/sh\n", 0o755),
        ("empty", b"", 0o600),
        ("d/only", b"only\n", 0o640),
    ):
        (root / path).write_bytes(content)
        (root / path).chmod(mode)
    (root / "d").chmod(0o750)
    return root


def files(root: Path) -> dict[str, tuple[int, bytes | None]]:
    return {path: one for path, one in tree(root).items() if not path.startswith(".holdfast")}


def change(
    path: str, before: bytes | None, after: bytes | None, mode: int | None = None
) -> Planned:
    return Planned(path, None if before is None else digest(before), after, mode)


ALL = Outcome(
    (
        change("a.txt", ONE, TWO),
        change("new/deep/made", None, b"made\n", 0o755),
        change("run.sh", b"#!/bin/sh\n", b"#!/bin/sh\nexit 1\n"),
        change("empty", b"", None),
        change("d/only", b"only\n", None),
        change("d/other", None, b""),
    )
)


@pytest.mark.req("R139", "R140", "E19")
def test_an_edit_is_made_and_taken_back_to_the_byte(root: Path) -> None:
    before = files(root)
    workspace = Workspace(str(root))
    report = write(workspace, ALL)
    assert report.refusals == ()
    assert report.id.startswith("e-000001-")
    after = files(root)
    assert after["a.txt"] == (0o644, TWO)
    assert after["run.sh"] == (0o755, b"#!/bin/sh\nexit 1\n"), "the mode stays"
    assert after["new/deep/made"] == (0o755, b"made\n")
    assert after["d/other"] == (0o644, b"")
    assert not {"empty", "d/only"} & after.keys()
    assert [(edit.key, edit.state) for edit in history(workspace)] == [(report.id, "applied")]
    key, journal = roll_back(workspace, "last")
    assert key == report.id
    assert len(journal.rows) == 6
    assert files(root) == before, "empty files, modes and directories too"
    assert [edit.state for edit in history(workspace)] == ["rolled back"]
    with pytest.raises(UsageError, match="no edit to roll back"):
        roll_back(workspace, "last")
    with pytest.raises(UsageError, match="is rolled back"):
        roll_back(workspace, report.id)
    with pytest.raises(UsageError, match="there is no edit"):
        roll_back(workspace, "e-000009")


@pytest.mark.req("R139", "E19")
def test_a_directory_that_gave_way_to_a_file_stands_again_with_its_mode(root: Path) -> None:
    before = files(root)
    workspace = Workspace(str(root))
    outcome = Outcome((change("d/only", b"only\n", None), change("d", None, b"now a file\n")))
    assert survey(workspace, outcome).refusals == ()
    assert write(workspace, outcome).id
    assert (root / "d").read_bytes() == b"now a file\n"
    roll_back(workspace, "last")
    assert files(root) == before
    back = Outcome((change("empty", b"", None), change("empty/now/dir", None, b"x")))
    assert write(workspace, back).id
    roll_back(workspace, "last")
    assert files(root) == before


@pytest.mark.req("R139", "R141")
def test_a_later_change_keeps_an_edit_from_being_taken_back(root: Path) -> None:
    workspace = Workspace(str(root))
    first = write(workspace, ALL)
    (root / "a.txt").write_bytes(b"a person's\n")
    (root / "d/other").chmod(0o600)
    (root / "empty").write_bytes(b"somebody made it again")
    before = files(root)
    with pytest.raises(EditError, match=r'changed since: "a.txt", "d/other", "empty"'):
        roll_back(workspace, first.id)
    assert files(root) == before
    assert [edit.state for edit in history(workspace)] == ["applied"]


@pytest.mark.req("R139")
def test_edits_of_other_files_can_be_taken_back_in_any_order(root: Path) -> None:
    workspace = Workspace(str(root))
    before = files(root)
    first = write(workspace, Outcome((change("a.txt", ONE, TWO),)))
    second = write(workspace, Outcome((change("d/only", b"only\n", b"2"),)))
    third = write(workspace, Outcome((change("a.txt", TWO, b"3"),)))
    assert [edit.key for edit in history(workspace)] == [third.id, second.id, first.id]
    with pytest.raises(EditError, match=r'"a.txt"'):
        roll_back(workspace, first.id)
    for one in (second, third, first):
        roll_back(workspace, one.id[:9])
    assert files(root) == before


@pytest.mark.req("R141")
def test_a_file_that_moved_on_is_refused_with_what_changed(root: Path) -> None:
    workspace = Workspace(str(root))
    outcome = Outcome(
        (
            change("a.txt", b"one\n", TWO),
            change("gone", b"x", b"y"),
            change("run.sh", None, b""),
            change("ok", None, b"ok"),
        )
    )
    before = files(root)
    report = write(workspace, outcome, known={"a.txt": b"one\n"})
    assert [(one.path, one.why) for one in report.refusals] == [
        ("a.txt", "stale"),
        ("gone", "missing"),
        ("run.sh", "exists"),
    ]
    assert digest(ONE) in report.refusals[0].guidance
    assert "@@ -1,1 +1,3 @@\n one\n+two\n+three\n" in report.refusals[0].guidance
    assert report.id == ""
    assert files(root) == before
    assert history(workspace) == ()


@pytest.mark.req("D22", "I8")
def test_what_is_no_plain_file_is_refused_and_nothing_outside_changes(
    root: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "f").write_bytes(b"outside")
    (root / "link").symlink_to(outside / "f")
    (root / "dangling").symlink_to(outside / "none")
    (root / "dirlink").symlink_to(outside)
    os.link(outside / "f", root / "hard")
    os.mkfifo(root / "fifo")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(root / "socket"))
    if os.geteuid() == 0:
        os.mknod(root / "null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
    (root / "suid").write_bytes(b"x")
    (root / "suid").chmod(0o4755)
    names = ["link", "dangling", "dirlink/f", "dirlink/new", "hard", "fifo", "socket", "d", "suid"]
    names += ["null"] if os.geteuid() == 0 else []
    before = tree(outside)
    for name in names:
        for planned in (change(name, b"outside", b"evil"), change(name, None, b"evil")):
            report = write(Workspace(str(root)), Outcome((planned,)))
            assert [(one.path, one.why) for one in report.refusals] == [(name, "special")], name
            assert report.refusals[0].message
    assert tree(outside) == before
    for name in ("link", "dirlink/f", "fifo", "socket", "d"):
        with pytest.raises(EditError):
            read_file(Workspace(str(root)), name)


@pytest.mark.req("R145", "C35")
def test_a_scope_and_its_limits_refuse_before_anything_is_looked_at(root: Path) -> None:
    before = tree(root)
    tight = Workspace(str(root), Scope(("d/**",), max_files=1, max_lines=2))
    report = survey(tight, ALL)
    assert [(one.path, one.why) for one in report.refusals] == [
        ("a.txt", "out_of_scope"),
        ("new/deep/made", "out_of_scope"),
        ("run.sh", "out_of_scope"),
        ("empty", "out_of_scope"),
        ("", "too_large"),
    ]
    assert [file.path for file in report.files] == ["d/only", "d/other"]
    assert tree(root) == before, "a survey makes nothing, not even its state directory"


def test_what_changes_nothing_is_no_edit(root: Path) -> None:
    workspace = Workspace(str(root))
    report = write(workspace, Outcome((change("a.txt", ONE, ONE),)))
    assert report == survey(workspace, Outcome())
    assert history(workspace) == ()


def test_two_spellings_of_one_file_are_refused(root: Path) -> None:
    outcome = Outcome((change("x", None, b"1"), change("X", None, b"2")))
    report = write(Workspace(str(root)), outcome)
    assert [one.why for one in report.refusals] == ["overlapping"]


@pytest.mark.req("D22", "I8")
@pytest.mark.parametrize("above", range(4))
def test_a_workspace_cannot_choose_where_edits_are_kept(
    root: Path, tmp_path: Path, above: int
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    assert write(Workspace(str(other)), Outcome((change("f", None, b"theirs"),))).id
    kept = Path(Workspace(str(root)).journals)
    places = [*list(kept.parents)[:3][::-1], kept]
    link = places[above]
    link.parent.mkdir(0o700, parents=True, exist_ok=True)
    link.symlink_to(other / link.relative_to(root))
    before = tree(other)
    for act in (lambda ws: write(ws, ALL), recover_workspace, lambda ws: roll_back(ws, "last")):
        with pytest.raises(EditError, match="is a link or not a directory"):
            act(Workspace(str(root)))
    assert tree(other) == before
    assert (root / "a.txt").read_bytes() == ONE


def test_edits_can_be_kept_elsewhere(root: Path, tmp_path: Path) -> None:
    workspace = Workspace(str(root), state=str(tmp_path / "far/state"))
    assert write(workspace, ALL).id
    assert not (root / ".holdfast").exists()
    assert (tmp_path / "far/state/.gitignore").read_text() == "*\n"
    roll_back(workspace, "last")


PARTS = st.sampled_from(
    [
        "a",
        "d",
        "..",
        ".",
        "",
        ".git",
        "outside",
        "link",
        "/",
        "x\\y",
        ".env",
        "%2e%2e",
        "only",
        "ws",
    ]
)
PATHS = st.one_of(
    st.lists(PARTS, min_size=1, max_size=4).map("/".join),
    st.text(max_size=12),
)


@pytest.mark.req("D22", "I8", "C35", "R145")
@settings(max_examples=120)
@given(st.lists(st.tuples(PATHS, st.sampled_from([None, b"evil"])), min_size=1, max_size=4))
def test_nothing_outside_the_scope_ever_changes(wanted: list[tuple[str, bytes | None]]) -> None:
    base = Path(tempfile.mkdtemp(dir=MEMORY if MEMORY.is_dir() else None))
    root = base / "ws"
    for place in ("ws/d", "ws/.git", "outside"):
        (base / place).mkdir(parents=True)
    for place in ("ws/a", "ws/d/only", "ws/.git/config", "ws/.env", "outside/only"):
        (base / place).write_bytes(b"old")
    (root / "link").symlink_to(base / "outside")
    scope = Scope(("d/**", "link/**", "ws/**"))
    workspace = Workspace(str(root), scope, state=str(base / "state"))
    allowed = {path for path, _ in wanted if judge(scope, path) is None}
    before = tree(base)
    for old in (digest(b"old"), None):
        write(workspace, Outcome(tuple(Planned(path, old, new) for path, new in wanted)))
        for path, new in wanted:
            write(workspace, Outcome((Planned(path, old, new),)))
    after = tree(base)
    changed = {path for path in before.keys() | after if before.get(path) != after.get(path)}
    made = {path for path in changed if not path.startswith("state")}
    within = {f"ws/{path}" for path in allowed}
    assert all(any(one == path or one.startswith(f"{path}/") for one in within) for path in made)
    assert not {path for path in made if path.startswith("outside")}
    shutil.rmtree(base)


@pytest.mark.req("R141")
def test_a_file_that_moves_on_after_the_preview_is_a_refusal(root: Path) -> None:
    workspace = Workspace(str(root))
    outcome = Outcome((change("a.txt", ONE, TWO), change("late", None, b"x")))
    assert survey(workspace, outcome).refusals == ()
    (root / "a.txt").write_bytes(b"meanwhile")
    assert [one.why for one in write(workspace, outcome).refusals] == ["stale"]
    assert not (root / "late").exists()


def planted(state: Path, body: dict[str, object]) -> Path:
    """A state directory that somebody else filled."""
    place = state / "journals/e-000001-abcdefab"
    place.mkdir(0o700, parents=True)
    (place / "journal.json").write_text(json.dumps(body))
    (place / "0.old").write_bytes(b"evil")
    return place


ROW = {
    "path": "a.txt",
    "before": {"digest": digest(b"evil"), "mode": 0o644, "staged": "0.old"},
    "after": {"digest": digest(ONE), "mode": 0o644, "staged": "0.new"},
    "temp": ".holdfast-0123.tmp",
}
OLD_IMAGE = {"digest": digest(b"evil"), "mode": 0o644, "staged": "0.old"}


@pytest.mark.req("D22", "D37", "I8")
@pytest.mark.parametrize(
    "row",
    [
        {"temp": "../outside/f"},
        {"temp": "/etc/none"},
        {"path": "../outside/f"},
        {"path": ".git/config"},
        {"before": {**OLD_IMAGE, "staged": "../../../../../outside/f"}},
        {"before": {**OLD_IMAGE, "mode": 0o4755}},
    ],
)
def test_a_journal_that_somebody_trusts_still_does_nothing_outside(
    root: Path, tmp_path: Path, row: dict[str, object]
) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/f").write_bytes(b"outside")
    state = tmp_path / "state"
    planted(state, {"version": 1, "rows": [{**ROW, **row}], "made": [], "cleared": []})
    before = {**tree(tmp_path), "state/.gitignore": (0o644, b"*\n")}
    for act in (recover_workspace, lambda ws: write(ws, ALL), lambda ws: roll_back(ws, "last")):
        with pytest.raises(IntegrityError):
            act(Workspace(str(root), state=str(state)))
    assert tree(tmp_path) == before


@pytest.mark.req("D22", "D37", "I8")
def test_a_place_for_edits_that_others_may_write_is_refused(root: Path) -> None:
    workspace = Workspace(str(root))
    assert write(workspace, Outcome((change("a.txt", ONE, TWO),))).id
    Path(workspace.state_dir).chmod(0o720)
    with pytest.raises(EditError, match="can be written by others"):
        roll_back(workspace, "last")
    assert (root / "a.txt").read_bytes() == TWO


@pytest.mark.req("D22", "D37", "I8")
def test_edits_are_not_kept_under_a_key_that_came_with_the_files(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "holdfast").mkdir()
    (root / "holdfast/key").write_text("0" * 64)
    monkeypatch.setenv("XDG_STATE_HOME", str(root))
    before = tree(root)
    with pytest.raises(UsageError, match="its key is no secret"):
        write(Workspace(str(root)), ALL)
    assert history(Workspace(str(root))) == ()
    assert survey(Workspace(str(root)), ALL).refusals == (), "looking needs no key"
    assert tree(root) == before


def test_a_key_that_cannot_be_made_is_told_and_a_damaged_one_too(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file/state"))
    with pytest.raises(StoreError, match="XDG_STATE_HOME"):
        write(Workspace(str(root)), ALL)
    (tmp_path / "holdfast").mkdir()
    (tmp_path / "holdfast/key").write_text("not a key")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with pytest.raises(StoreError, match="is damaged"):
        write(Workspace(str(root)), ALL)


def test_what_is_no_edit_is_never_taken_for_litter(root: Path, tmp_path: Path) -> None:
    state = tmp_path / "diary"
    (state / "journals/monday").mkdir(parents=True)
    (state / "journals/monday/text").write_bytes(b"dear diary")
    for act in (recover_workspace, lambda ws: write(ws, ALL)):
        with pytest.raises(EditError, match="is no edit"):
            act(Workspace(str(root), state=str(state)))
    assert (state / "journals/monday/text").read_bytes() == b"dear diary"


def test_what_is_exported_is_there_and_loads_nothing_before(tmp_path: Path) -> None:
    code = (
        "import sys, holdfast.edits as e; early = set(sys.modules)\n"
        "assert not {m for m in early if m.startswith('holdfast.edits.')}, early\n"
        "assert all(getattr(e, name) for name in e.__all__)\n"
        "assert 'tree_sitter' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = holdfast.edits.nothing
