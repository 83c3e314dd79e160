"""An effect that may be done only once, under everything that could do it again unasked."""

import pytest

from tests.cli.project import Project, finish, kill, until
from tests.cli.test_onward import as_run

NEVER = {"regex": {"pattern": "never"}}


def done(project: Project) -> list[str]:
    """The keys of the payments that were really made."""
    made = project.folder / "made"
    return made.read_text().split() if made.exists() else []


def pay(project: Project, **more: object) -> dict[str, object]:
    """A payment that is made, and then does not come back before its gate opens."""
    words = f"echo $HOLDFAST_EFFECT_KEY >> {project.folder}/made; {project.gate('go')}; echo paid"
    return {"shell": project.sh(words), "effects": "external", **more}


def cut_off(project: Project) -> None:
    """The payment was made, and its engine is dead."""
    engine = project.begun_by("run", "--yes", step="pay")
    until(lambda: len(done(project)) == 1, "it was made")
    kill(engine)
    project.open("go")


def tower(project: Project, *escalate: str) -> None:
    """`spec` above the payment, and `code`, which is never good and sends steps back."""
    project.plan(
        {
            "spec": {"shell": project.sh()},
            "pay": pay(project, needs=["spec"]),
            "late": {"shell": project.sh(f"{project.gate('late')}; echo late")},
            "code": {
                "shell": project.sh(),
                "needs": ["spec", "late", *(name for name in escalate if name != "spec")],
                "guards": [NEVER],
                "escalate": list(escalate),
            },
        }
    )


@pytest.mark.req("I17", "R95")
@pytest.mark.parametrize("word", ["reject", "skip"])
def test_a_step_that_is_sent_back_does_not_repeat_what_people_left(
    project: Project, word: str
) -> None:
    tower(project, "spec")
    cut_off(project)
    project.open("late")
    if word == "reject":
        project.ok("reject", "pay", "--because", "nobody knows")
        run = project.resume()
    else:
        run = as_run(project, "skip", "pay", "--because", "nobody knows")
    assert (run.code, run.codes["code"]) == (3, "stuck")
    assert "steps_reopened" in [event["event"] for event in project.events()]
    assert len(done(project)) == 1
    left = {"reject": "rejected_by_person", "skip": "skipped_by_person"}[word]
    assert run.codes["pay"] == left
    project.ok("verify")


@pytest.mark.req("I17", "R95")
def test_what_a_person_gave_is_not_done_again_because_a_step_sends_it_back(
    project: Project,
) -> None:
    tower(project, "pay")
    cut_off(project)
    project.open("late")
    project.ok("amend", "pay", "-", "--because", "it went out", stdin=b"paid\n")
    run = project.resume("--yes")
    assert (run.code, run.codes["pay"]) == (3, "effect_unconfirmed")
    assert len(done(project)) == 1
    project.ok("verify")
    assert project.retry("pay", "--yes").code == 3, "who names it wants it"
    assert len(done(project)) == 2


@pytest.mark.req("I17")
def test_replay_leaves_a_rejected_effect_as_it_is(project: Project) -> None:
    broken = {"shell": project.sh("cat there")}
    project.plan({"pay": pay(project), "beside": broken, "fine": {"shell": project.sh()}})
    cut_off(project)
    project.ok("reject", "pay", "--because", "nobody knows")
    assert project.resume().code == 1
    project.write("there", "text")
    again = as_run(project, "replay")
    assert (again.states, again.codes["pay"]) == (
        {"pay": "failed", "beside": "done", "fine": "done"},
        "rejected_by_person",
    )
    assert len(done(project)) == 1
    said = project.refused(2, "replay")
    assert "but what a person rejected, pay" in said
    assert "holdfast retry pay" in said


@pytest.mark.req("I17", "R95")
def test_a_stuck_step_is_not_tried_again_by_going_on(project: Project) -> None:
    project.plan(
        {
            "spec": {"shell": project.sh()},
            "pay": pay(project, needs=["spec"], guards=[NEVER], escalate=["spec"]),
        }
    )
    project.open("go")
    run = project.run("--yes")
    assert (run.code, run.codes["pay"]) == (3, "stuck")
    made = len(done(project))
    assert project.resume("--yes").code == 3, "nobody decided anything"
    assert len(done(project)) == made
    project.ok("approve", "pay", "--yes")
    assert project.resume("--yes").code == 3
    assert len(done(project)) > made


# --- one yes for the repetition -----------------------------------------------------------------------


def asking(project: Project) -> None:
    """A payment by a script, about which people are asked each time; it was made, and cut off."""
    project.write("pay.sh", f"echo one >> {project.folder}/made\n{project.gate('go')}\n")
    project.plan({"pay": {"run": ["sh", "pay.sh"], "effects": "external", "approve": "always"}})
    assert project.run("--yes").code == 3
    project.ok("approve", "pay", "--yes")
    engine = project.start("resume", "--yes")
    until(lambda: len(done(project)) == 1, "it was made")
    kill(engine)
    project.open("go")
    assert project.resume("--yes").codes["pay"] == "effect_unconfirmed"


@pytest.mark.req("I17", "R173")
def test_one_yes_repeats_what_was_approved_and_verify_knows_it(project: Project) -> None:
    asking(project)
    project.ok("approve", "pay", "--yes")
    assert project.resume("--yes").code == 0
    assert done(project) == ["one", "one"]
    project.ok("verify")


@pytest.mark.req("I17", "R173")
def test_a_yes_to_the_repetition_does_not_cover_what_changed_since(project: Project) -> None:
    asking(project)
    project.ok("approve", "pay", "--yes")
    project.write("pay.sh", f"echo other >> {project.folder}/made\n")
    run = project.resume("--yes")
    assert (run.code, run.codes["pay"]) == (3, "awaiting_approval")
    assert done(project) == ["one"]
    said = project.ok("approvals").out
    assert "may have happened" in said
    assert "begun" in said
    project.ok("approve", "pay", "--yes")
    assert project.resume("--yes").code == 0
    assert done(project) == ["one", "other"]
    project.ok("verify")


@pytest.mark.req("I17", "R173")
@pytest.mark.parametrize("how", ["revoked", "ended"])
def test_a_held_effect_is_asked_about_again_when_its_yes_is_none(
    project: Project, how: str
) -> None:
    project.plan({"pay": pay(project)})
    cut_off(project)
    assert project.resume("--yes").code == 3
    if how == "revoked":
        project.ok("approve", "pay", "--yes")
        (asked,) = project.ok("approvals", "--all", "--json").json["approvals"]
        project.ok("revoke", asked["approval"], "--because", "wait")
    else:
        project.ok("approve", "pay", "--yes", "--until", "0.001s")
    assert project.resume("--yes").code == 3
    (asked,) = project.ok("approvals", "--json").json["approvals"]
    assert (asked["step"], asked["gate"]) == ("pay", "effect")
    project.ok("approve", "pay", "--yes")
    assert project.resume("--yes").code == 0
    assert len(done(project)) == 2
    project.ok("verify")


@pytest.mark.req("I17", "R172")
def test_a_fork_says_that_an_effect_may_have_happened(project: Project) -> None:
    project.plan({"spec": {"shell": project.sh()}, "pay": pay(project, needs=["spec"])})
    cut_off(project)
    assert project.resume("--yes").code == 3
    answer = project.call("fork", "@", "--from", "spec", "--yes")
    assert answer.code == 0, answer.err
    assert "pay: its effect may have happened in" in answer.err


# --- over runs ----------------------------------------------------------------------------------------


@pytest.mark.req("I17", "D18")
def test_an_engine_that_joined_does_not_repeat_what_a_dead_one_began(project: Project) -> None:
    project.plan({"pay": pay(project)})
    first = project.begun_by("run", "--yes", "--join", "--lease", "1", "--beat", "0.1", step="pay")
    until(lambda: len(done(project)) == 1, "it was made")
    second = project.start("run", "--yes", "--join", "--lease", "1", "--beat", "0.1", "--json")
    until(lambda: len(project.ok("history", "--json").json["runs"]) == 2, "the other one joined")
    kill(first)
    project.open("go")
    assert finish(second).code == 3
    assert len(done(project)) == 1
    project.ok("verify")


@pytest.mark.req("I17")
@pytest.mark.parametrize("lacks", ["input", "key"])
def test_an_effect_stays_held_over_a_run_that_cannot_begin_it(project: Project, lacks: str) -> None:
    project.write("invoice.txt", "seven")
    project.write("up.json", '{"id": 7}')
    project.plan(
        {
            "up": {"shell": project.sh("cat up.json"), "inputs": "up.json"},
            "pay": pay(project, needs=[{"step": "up", "key": "id"}], inputs="invoice.txt"),
        }
    )
    cut_off(project)
    assert project.resume("--yes").code == 3
    there = {"input": "invoice.txt", "key": "up.json"}[lacks]
    before = project.read(there)
    if lacks == "input":
        (project.root / there).unlink()
    else:
        project.write(there, "{}")
    assert project.run("--yes").states["pay"] == "failed"
    project.write(there, before)
    run = project.run("--yes")
    assert (run.code, run.codes["pay"]) == (3, "effect_unconfirmed")
    assert len(done(project)) == 1


@pytest.mark.req("I17")
def test_what_a_person_gave_is_kept_when_a_gap_above_is_closed(project: Project) -> None:
    project.plan(
        {
            "up": {"shell": project.sh("cat there")},
            "pay": pay(project, needs=["up"]),
            "beside": {"shell": "exit 1"},
        }
    )
    assert project.run("--yes").states["pay"] == "skipped"
    skip = project.start("skip", "up", "--because", "later", "--yes")
    until(lambda: len(done(project)) == 1, "it was made")
    kill(skip)
    project.open("go")
    project.ok("amend", "pay", "-", "--because", "it went out", stdin=b"mine\n")
    assert project.resume("--yes").states["pay"] == "reused"
    project.write("there", "text")
    run = project.retry("up", "--yes")
    assert (run.states["up"], run.codes["pay"]) == ("done", "effect_unconfirmed")
    assert len(done(project)) == 1
    project.ok("verify")


@pytest.mark.req("I17")
def test_what_was_made_and_waits_is_not_made_again_by_a_new_run(project: Project) -> None:
    project.open("go")
    project.plan({"pay": pay(project, guards=[{"human": {}}])})
    assert project.run("--yes").code == 3
    again = project.run("--yes")
    assert (again.code, again.codes["pay"]) == (3, "effect_unconfirmed")
    assert len(done(project)) == 1


@pytest.mark.req("I17")
def test_gc_keeps_the_run_that_knows_of_a_skipped_effect(project: Project) -> None:
    project.plan({"pay": pay(project), "other": {"shell": project.sh()}})
    cut_off(project)
    as_run(project, "skip", "pay", "--because", "later")
    for _ in range(2):
        assert project.run("--force-node", "other", "-s", "other").code == 0
    project.ok("gc", "--keep-runs", "1", "--yes")
    run = project.run("--yes")
    assert (run.code, run.codes["pay"]) == (3, "effect_unconfirmed")
    assert len(done(project)) == 1


@pytest.mark.req("I17")
def test_an_effect_that_was_idempotent_when_it_began_is_held_if_it_is_not_now(
    project: Project,
) -> None:
    project.plan({"pay": pay(project, idempotent=True)})
    cut_off(project)
    project.plan({"pay": pay(project)})
    run = project.run("--yes")
    assert (run.code, run.codes["pay"]) == (3, "effect_unconfirmed")
    assert len(done(project)) == 1


@pytest.mark.req("I17", "R172")
def test_a_fork_asks_about_an_effect_beside_it(project: Project) -> None:
    project.plan({"spec": {"shell": project.sh()}, "pay": pay(project)})
    cut_off(project)
    assert project.resume("--yes").code == 3
    assert "pay" in project.refused(2, "fork", "@", "--from", "spec")
    assert len(done(project)) == 1
