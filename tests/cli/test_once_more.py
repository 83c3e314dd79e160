"""An effect that may be done only once, where engines, versions and people come between."""

import pytest

from tests.cli.project import Project, finish, kill, until
from tests.cli.test_once import NEVER, cut_off, done, pay

QUICK = ("--lease", "1", "--beat", "0.1", "--poll", "0.1")


@pytest.mark.req("I17", "D18")
@pytest.mark.parametrize("how", ["joined", "was joined", "a third came between"])
def test_an_engine_that_was_busy_does_not_repeat_what_a_dead_one_began(
    project: Project, how: str
) -> None:
    busy = project.sh(f"{project.gate('busy')}; echo busy")
    project.plan(
        {
            "busy": {"shell": busy, "workspace": "scratch", "priority": "CRITICAL"},
            "pay": pay(project, workspace="scratch"),
            "other": {"shell": "echo other", "workspace": "scratch", "priority": "LOW"},
        }
    )
    join = () if how == "was joined" else ("--join",)
    one = project.begun_by("run", "--yes", "--json", *join, "-j", "1", *QUICK, step="busy")
    two = project.begun_by("run", "--yes", "--join", "-j", "1", *QUICK, step="pay")
    until(lambda: len(done(project)) == 1, "it was made")
    kill(two)
    project.open("go")
    if how == "a third came between":
        third = project.start("run", "--yes", "--json", "--join", *QUICK, "-s", "other")
        assert finish(third).code == 0
    project.open("busy")
    assert finish(one).code == 3
    assert len(done(project)) == 1
    project.ok("verify")


@pytest.mark.req("I17", "R83")
@pytest.mark.parametrize("amended", [False, True])
def test_another_version_of_a_step_does_not_settle_what_was_cut_off(
    project: Project, amended: bool
) -> None:
    before = {"pay": {"shell": project.sh("echo before"), "effects": "external"}}
    project.plan(before)
    assert project.run("--yes").code == 0
    if amended:
        project.ok("amend", "pay", "-", "--because", "another one", stdin=b"mine\n")
        assert project.run("--yes").code == 0
    project.plan({"pay": pay(project)})
    cut_off(project)
    assert project.run("--yes").code == 3
    project.plan(before)
    back = project.run("--yes")
    assert (back.code, back.states) == (0, {"pay": "reused"})
    project.plan({"pay": pay(project)})
    again = project.run("--yes")
    assert (again.code, again.codes) == (3, {"pay": "effect_unconfirmed"})
    assert len(done(project)) == 1
    project.ok("gc", "--keep-runs", "1", "--yes")
    assert project.run("--yes").code == 3
    project.ok("amend", "pay", "-", "--because", "it went out", stdin=b"paid\n")
    assert project.run("--yes").code == 0
    project.plan(before)
    assert project.run("--yes").code == 0
    project.plan({"pay": pay(project)})
    assert project.run("--yes").code == 0, "a person settled it"
    assert len(done(project)) == 1
    project.ok("verify")


@pytest.mark.req("I17", "R95")
def test_what_a_person_gave_is_not_done_again_though_the_run_was_forced(project: Project) -> None:
    project.plan(
        {
            "pay": pay(project),
            "late": {"shell": project.sh(f"{project.gate('late')}; echo late")},
            "code": {
                "shell": project.sh(),
                "needs": ["pay", "late"],
                "guards": [NEVER],
                "escalate": ["pay"],
            },
        }
    )
    engine = project.begun_by("run", "--yes", "--force-node", "pay", step="pay")
    until(lambda: len(done(project)) == 1, "it was made")
    kill(engine)
    project.open("go")
    project.open("late")
    project.ok("amend", "pay", "-", "--because", "it went out", stdin=b"paid\n")
    run = project.resume("--yes")
    assert (run.code, run.codes["pay"]) == (3, "effect_unconfirmed")
    assert len(done(project)) == 1


@pytest.mark.req("I17")
def test_a_kill_beneath_a_shell_is_no_end_of_its_own(project: Project) -> None:
    words = f"echo x >> {project.folder}/made; sh -c 'kill -9 $$'"
    project.plan({"pay": {"shell": words, "effects": "external"}})
    run = project.run("--yes")
    assert (run.code, run.codes["pay"]) == (3, "effect_unconfirmed")
    assert project.resume("--yes").code == 3
    assert len(done(project)) == 1


@pytest.mark.req("I17", "R82")
def test_a_watch_asks_before_an_effect_that_nobody_saw(project: Project) -> None:
    project.write("in.txt", "one")
    pure = {"shell": project.sh("cat in.txt"), "inputs": "in.txt"}
    project.plan({"pure": pure})
    watcher = project.begun_by("run", "--watch", step="pure")
    assert watcher.stderr is not None
    while b"watching" not in watcher.stderr.readline():
        pass
    outside = f"echo x >> {project.folder}/made"
    project.plan({"pure": pure, "pay": {"shell": outside, "effects": "external"}})
    while b"outside world: pay" not in watcher.stderr.readline():
        pass
    project.plan({"pure": pure})
    project.write("in.txt", "two")
    until(lambda: project.begun().count("pure") > 1, "it goes on without it")
    assert not done(project)
    kill(watcher)


@pytest.mark.req("R175")
def test_resuming_a_fork_does_not_say_that_the_plan_changed(project: Project) -> None:
    project.plan({"a": {"shell": project.sh()}, "b": {"shell": project.sh("exit 3")}})
    assert project.run().code == 1
    project.call("fork", "@", "--from", "b")
    newest = project.ok("history", "--json").json["runs"][0]
    told = project.call("resume", newest["run"])
    assert told.code == 1, told.err
    assert "changed since" not in told.err
