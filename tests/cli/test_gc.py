"""gc: what nothing stands on goes, what is named stays, and the store is whole at every moment."""

import hashlib
import os
from pathlib import Path
from typing import Any

import pytest

from holdfast import wire
from holdfast.engine.collect import Bounds, Sweep, look
from holdfast.model.event import Options
from holdfast.model.plan import StepId
from tests.cli.here import PLAIN, run_here
from tests.cli.project import Project, finish, kill

LARGE = "head -c 40000 /dev/zero | tr '\\0' "


def versions(project: Project, *words: str) -> list[str]:
    """One run for each word, which is what step 'a' says; 'b' reads it and is large."""
    runs = []
    for word in words:
        project.plan(
            {
                "a": {"shell": project.sh(f"echo {word}")},
                "b": {"shell": project.sh(f"{LARGE}{word[0]}"), "needs": ["a"]},
            }
        )
        state = run_here(project)
        assert state.status == "completed"
        runs.append(str(state.run))
    project.ran()
    return runs


def looked(
    project: Project,
    *,
    keep_ms: int | None = None,
    keep_runs: int | None = None,
    max_bytes: int | None = None,
) -> Sweep:
    """What gc would do within these bounds."""
    store = wire.open_store(str(project.store), readonly=True)
    try:
        return look(store, Bounds(wire.now_ms() + 1, keep_ms, keep_runs, max_bytes))
    finally:
        store.close()


def why(sweep: Sweep) -> dict[str, str]:
    return {str(told.row.run): reason for told, reason in sweep.stays}


def goes(sweep: Sweep) -> list[str]:
    return [str(told.row.run) for told in sweep.goes]


def age(project: Project) -> None:
    """Make every stored content two hours old."""
    with project.database() as database:
        database.execute("UPDATE blob SET at = at - 7200")
    for path in project.store.glob("blobs/??/*"):
        old = path.stat().st_mtime - 7200
        os.utime(path, (old, old))


def gc(project: Project, *words: str) -> Any:
    return project.ok("gc", *words, "--json").json


def removed(answer: Any) -> list[str]:
    return [item["run"] for item in answer["removed"]]


def contents(project: Project) -> int:
    return int(project.ok("verify", "--json").json["blobs"])


def files(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.endswith(("-shm", "-wal"))
    }


@pytest.mark.req("R187")
def test_old_runs_go_with_what_only_they_name(project: Project) -> None:
    first, second, third = versions(project, "alpha", "beta", "gamma")
    before, journal = contents(project), project.events(first)
    age(project)
    answer = gc(project, "--keep", "0s", "--yes")
    assert removed(answer) == [first, second]
    assert [(item["run"], item["why"]) for item in answer["kept"]] == [(third, "newest")]
    assert {item["step"] for item in answer["repay"]["artifacts"]} == {"a", "b"}
    assert len(answer["repay"]["artifacts"]) == 4
    assert answer["contents"]["count"] > 0
    assert answer["contents"]["bytes"] > 80_000
    assert contents(project) == before - answer["contents"]["count"]
    assert project.ok("rebuild", "--json").json["changed"] is False
    with project.database() as database:
        (left,) = database.execute(
            "SELECT body FROM event WHERE kind = 'run_collected' ORDER BY place LIMIT 1"
        ).fetchone() or ("",)
    assert first in str(left)
    assert f'"last":{len(journal)}' in str(left)
    assert "there is no run" in project.refused(2, "status", first)
    assert set(project.run().states.values()) == {"reused"}
    assert project.ran() == []


@pytest.mark.req("R187")
def test_what_is_young_pinned_or_stands_stays(project: Project) -> None:
    first, second, third = versions(project, "alpha", "beta", "gamma")
    fourth = str(run_here(project, Options(force_steps=(StepId("b"),))).run)
    young = looked(project, keep_ms=3_600_000)
    assert goes(young) == []
    assert why(young)[first] == "young"
    project.ok("pin", first, "--because", "shipped")
    sweep = looked(project, keep_ms=0)
    assert goes(sweep) == [second]
    assert why(sweep) == {first: "pinned", third: "stands", fourth: "newest"}
    project.ok("pin", first, "--remove")
    assert goes(looked(project, keep_ms=0)) == [first, second]


@pytest.mark.req("R187")
def test_what_a_kept_run_reuses_stays(project: Project) -> None:
    first, _ = versions(project, "alpha", "beta")
    (again,) = versions(project, "alpha")  # everything of it comes from the first
    versions(project, "gamma")
    assert first in goes(looked(project, keep_ms=0))
    project.ok("pin", again)
    assert why(looked(project, keep_ms=0))[first] == "reused"


@pytest.mark.req("R187")
def test_an_unfinished_run_stays(project: Project) -> None:
    versions(project, "alpha")
    project.plan({"a": {"shell": project.sh("exit 1")}})
    assert run_here(project).status == "failed"
    assert sorted(why(looked(project, keep_ms=0)).values()) == ["stands", "unfinished"]


def test_a_pinned_content_stays_when_its_runs_would_go(project: Project) -> None:
    first, _, _ = versions(project, "alpha", "beta", "gamma")
    project.ok("pin", hashlib.sha256(b"alpha\n").hexdigest()[:10])
    assert why(looked(project, keep_ms=0))[first] == "pinned"


@pytest.mark.req("R187")
def test_bounds_by_number_and_by_size(project: Project) -> None:
    runs = versions(project, "alpha", "beta", "gamma", "delta")
    assert goes(looked(project, keep_runs=3)) == runs[:1]
    assert goes(looked(project, max_bytes=10**9)) == []
    total = looked(project, max_bytes=10**9).total
    assert goes(looked(project, max_bytes=total - 50_000)) == runs[:2]
    assert goes(looked(project, max_bytes=1)) == runs[:3]


@pytest.mark.req("R187")
def test_young_contents_stay(project: Project) -> None:
    versions(project, "alpha", "beta")
    sweep = looked(project, keep_ms=0)
    assert len(sweep.goes) == 1
    assert not list(sweep.contents.digests())
    assert sweep.young > 0


@pytest.mark.req("R110")
def test_without_a_yes_nothing_goes(project: Project) -> None:
    versions(project, "alpha", "beta")
    age(project)
    before = files(project.store)
    assert "--yes" in project.refused(2, "gc", "--keep", "0s")
    assert "r-" in project.ok("gc", "--keep", "0s", "--dry-run").out
    assert "is not an age" in project.refused(2, "gc", "--keep", "soon")
    assert "is not a size" in project.refused(2, "gc", "--max-size", "much")
    assert files(project.store) == before


def test_a_line_that_an_engine_holds_is_left_alone(project: Project) -> None:
    versions(project, "alpha", "beta")
    age(project)
    project.plan({"a": {"shell": project.sh(project.gate("go"))}})
    engine = project.begun_by("run", step="a")
    answer = gc(project, "--keep", "0s", "--yes")
    assert removed(answer) == []
    assert answer["contents"]["count"] == 0
    assert answer["held"][0]["pid"] == engine.pid
    project.open("go")
    assert finish(engine).code == 0


def test_a_dead_engine_holds_nothing_and_its_run_can_go_on(project: Project) -> None:
    first, _ = versions(project, "alpha", "beta")
    project.plan({"a": {"shell": project.sh(project.gate("go"))}})
    kill(project.begun_by("run", step="a"))
    age(project)
    assert removed(gc(project, "--keep", "0s", "--yes")) == [first]
    project.open("go")
    assert project.resume().code == 0


def test_versions_of_people_keep_their_place(project: Project) -> None:
    project.plan({"a": {"shell": project.sh("echo one")}})
    first = str(run_here(project).run)
    project.ok("pin", first)
    run_here(project, Options(force=True))
    project.ok("amend", "a", "-", stdin=b"mine\n")
    project.plan({"a": {"shell": project.sh("echo two")}})
    run_here(project)
    assert len(removed(gc(project, "--keep", "0s", "--yes"))) == 1
    assert project.ok("rebuild", "--json").json["changed"] is False
    project.plan({"a": {"shell": project.sh("echo one")}})
    state = run_here(project)
    assert state.steps[StepId("a")].digest == hashlib.sha256(b"mine\n").hexdigest()


def test_an_effect_that_nobody_confirmed_is_not_forgotten(project: Project) -> None:
    step = {"shell": project.sh(project.gate("never")), "effects": "external"}
    project.plan({"a": {"shell": project.sh()}, "out": {**step, "needs": ["a"]}})
    kill(project.begun_by("run", "--yes", step="out"))
    project.plan({"a": {"shell": project.sh("exit 1")}, "out": {**step, "needs": ["a"]}})
    run_here(project)
    run_here(project)
    sweep = looked(project, keep_ms=0)
    assert goes(sweep) == []
    assert "effect" in why(sweep).values()


def test_what_a_person_wrote_stays_when_nothing_else_has_it(project: Project) -> None:
    def plan(word: str) -> None:
        guard = {"regex": {"pattern": "^[a-z]+\n$"}, "name": "one word"}
        body = project.sh(f"echo {word} > a.txt")
        project.plan({"a": {"shell": body, "produces": "a.txt", "guards": [guard]}})

    def again(options: Options = PLAIN) -> str:
        return str(run_here(project, options).run)

    plan("one")
    first = again()
    project.write("a.txt", "mine\n")
    adopted = again()
    project.write("a.txt", "mine, bad\n")
    refused = again()
    project.write("a.txt", "replaced\n")
    replaced = again(Options(on_drift="regenerate"))
    for word in ("two", "three", "four"):
        plan(word)
        again()
    age(project)
    sweep = looked(project, keep_ms=0)
    kept = {run: reason for run, reason in why(sweep).items() if reason == "written"}
    assert kept == dict.fromkeys((adopted, refused, replaced), "written")
    answer = gc(project, "--keep", "0s", "--yes")
    assert first in removed(answer)
    assert {tuple(item["wrote"]) for item in answer["kept"]} == {(), ("a.txt",)}
    assert why(looked(project, max_bytes=1))[adopted] == "written"
    for text in (b"mine\n", b"mine, bad\n", b"replaced\n"):
        assert project.shown(hashlib.sha256(text).hexdigest()) == text
    assert "kept: what you wrote to a.txt (r-" in project.ok("gc", "--dry-run", "--keep", "0s").out
    assert project.ok("rebuild", "--json").json["changed"] is False
    for text in (b"mine\n", b"replaced\n"):
        project.ok("purge", hashlib.sha256(text).hexdigest(), "--because", "no", "--yes")
    assert goes(looked(project, keep_ms=0)) == [adopted, replaced], "nothing is left to keep"


def test_an_edit_that_a_changed_step_replaced_stays(project: Project) -> None:
    def plan(word: str) -> None:
        project.plan({"a": {"shell": f"echo {word} > a.txt", "produces": "a.txt"}})

    plan("one")
    run_here(project)
    project.write("a.txt", "mine\n")
    plan("two")
    replaced = run_here(project)
    for word in ("three", "four"):
        plan(word)
        run_here(project)
    age(project)
    assert why(looked(project, keep_ms=0))[replaced.run] == "written"
    assert "kept: what you wrote to a.txt (r-" in project.ok("gc", "--dry-run", "--keep", "0s").out
