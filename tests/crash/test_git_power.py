"""The power goes while git directories of our own are made and filled: what has a name there is whole."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.faults import Scene
from tests.crash.power_disk import ENDS, Cut, Draw, State, states
from tests.crash.power_trace import Recording, record
from tests.gitrepo.repository import repository

SNAPSHOT = """
from holdfast import gitrepo

client = gitrepo.open_client(".", "../home/above/held")
print(gitrepo.take_snapshot(client).oid)
"""
WORKTREE = 'tree = gitrepo.add_worktree(client, "tree", "branch")\n'
ROLLBACK = 'gitrepo.rollback(tree, to="HEAD")'
BUSY = "home/above/held/busy"
EVERY: tuple[Draw, ...] = (*ENDS, 1, 2, 3)
MADE = ("home/above/held/work.git/", "home/above/held/snapshots.git/")
OBJECTS = "home/above/held/snapshots.git/objects/"
READY = "home/above/held/work.git/worktrees/tree/holdfast-ready"
TREE = "home/above/held/worktrees/tree/folder/"
REFS = "home/above/held/snapshots.git/refs/holdfast/snapshots/"
FEW = 3
ROLLED = 4  # files of which a worktree is rolled back
MANY = 80  # files: they are stored in one pack


@pytest.fixture(params=[FEW, MANY])
def recording(tmp_path: Path, strace: str, request: pytest.FixtureRequest) -> Recording:
    """A client that is opened for the first time, and its first snapshot."""
    scene = Scene(tmp_path, (sys.executable, "-c"))
    files = {f"folder/{number}.txt": f"{number}\n" * 40 for number in range(request.param)}
    repository(scene.root, files)
    (scene.folder / "home").mkdir()
    words = SNAPSHOT + (WORKTREE if request.param < MANY else "")
    words += ROLLBACK if request.param == ROLLED else ""
    found = record(strace, scene, words, env={}, root=scene.folder)
    assert found.answer.code == 0, found.answer.err
    return found


def cuts(recording: Recording, draws: tuple[Draw, ...] = EVERY) -> Iterator[Cut]:
    """What a disk may hold."""
    ours = tuple(op for op in recording.ops if not op.path.startswith("project"))
    yield from states(recording._replace(ops=ours), lambda _: draws)


def stored(state: State) -> dict[str, bytes]:
    """Objects and packs with their last name; folders and what is still being written are none."""
    return {
        path: file.content
        for path, file in state.items()
        if path.startswith(OBJECTS)
        and file.content is not None
        and "tmp_" not in path
        and "/info/" not in path
    }


def files(state: State) -> dict[str, bytes | None]:
    return {path: file.content for path, file in state.items() if path.startswith(TREE)}


def named(state: State) -> bool:
    return any(path.startswith(REFS) and file.content for path, file in state.items())


@pytest.mark.req("D02", "I5", "I6")
def test_what_git_keeps_for_us_is_whole_when_it_has_its_name(recording: Recording) -> None:
    *_, last = cuts(recording, ("all",))
    whole = stored(last.state)
    made = {
        path: file.content
        for path, file in last.state.items()
        if path
        in {f"{place}{name}" for place in MADE for name in ("HEAD", "config", "objects", "refs")}
    }
    laid = files(last.state)
    assert bool(laid) == (READY in last.state) == (len(recording.before) < MANY)
    assert whole
    assert len(made) == 4 * len(MADE)
    tried = 0
    for cut in cuts(recording):
        tried += 1
        for place in (place for place in MADE if place.rstrip("/") in cut.state):
            for path in (path for path in made if path.startswith(place)):
                found = cut.state.get(path)
                assert found is not None, f"{cut.title}: no '{path}'"
                assert found.content == made[path], f"{cut.title}: '{path}' is not whole"
        there = stored(cut.state)
        for path, content in there.items():
            assert content == whole[path], f"{cut.title}: '{path}' is not whole"
        if named(cut.state):
            assert there.keys() == whole.keys(), f"{cut.title}: objects of a snapshot are lost"
        if READY in cut.state:
            assert files(cut.state) == laid, f"{cut.title}: files of a worktree are not whole"
        if cut.told.out:
            assert named(cut.state), f"{cut.title}: a snapshot that was told of is lost"
    assert tried > 1_000
    assert named(last.state)
    assert cut.told.out


@pytest.mark.req("D02", "I9")
@pytest.mark.parametrize("recording", [ROLLED], indirect=True)
def test_a_lock_that_git_left_is_known_as_ours(recording: Recording) -> None:
    """Whoever comes next removes locks only if somebody died at work: the word of that outlasts them."""
    seen = 0
    for cut in cuts(recording):
        locks = [path for path in cut.state if path.startswith(MADE) and path.endswith(".lock")]
        seen += len(locks)
        assert not locks or BUSY in cut.state, (cut.title, locks)
    assert seen
