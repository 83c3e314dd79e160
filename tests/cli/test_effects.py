"""Steps that touch the outside world: shown first, never silently repeated."""

import json
import signal

import pytest

from tests.cli.project import Project, finish, kill, until
from tests.cli.test_onward import as_run


def publish(project: Project, *, idempotent: bool = False) -> None:
    """The note of the execution is the effect."""
    project.plan(
        {
            "make": {"shell": project.sh("echo text")},
            "publish": {
                "shell": project.sh(f"{project.gate('sent')}; echo receipt"),
                "needs": ["make"],
                "effects": "external",
                "idempotent": idempotent,
            },
        }
    )


def test_nothing_outside_is_touched_unasked(project: Project) -> None:
    publish(project)
    said = project.refused(2, "run")
    assert "publish" in said
    assert "--yes" in said
    assert project.ran() == []
    assert not project.store.exists()
    project.open("sent")
    assert project.run("--yes").code == 0
    project.ran()
    again = project.run("--yes")
    assert again.states == {"make": "reused", "publish": "reused"}, "the artifact is the receipt"
    assert project.ran() == []


@pytest.mark.req("R170")
def test_an_effect_that_was_cut_off_is_held_for_a_person(project: Project) -> None:
    publish(project)
    kill(project.begun_by("run", "--yes", step="publish"))
    project.open("sent")
    assert project.ran() == ["make", "publish"]

    held = project.resume("--yes")
    assert (held.code, held.data["status"]) == (3, "waiting")
    assert held.states == {"make": "done", "publish": "waiting"}
    assert held.codes["publish"] == "effect_unconfirmed"
    assert [item["step"] for item in held.data["waiting"]] == ["publish"]
    again = project.resume("--yes")
    assert again.code == 3, "asking twice is no answer"
    assert project.ran() == []

    done = project.retry("publish", "--yes")
    assert (done.code, done.data["status"]) == (0, "completed")
    assert done.codes["publish"] == "retried"
    assert project.ran() == ["publish"]


def test_a_new_run_of_the_line_begins_with_the_effect_held(project: Project) -> None:
    publish(project)
    kill(project.begun_by("run", "--yes", step="publish"))
    project.open("sent")
    project.ran()
    assert project.status().data["status"] == "running", "nobody has looked at the dead engine yet"
    fresh = project.run("--yes")
    assert project.ran() == [], "it may have happened: a new run may not repeat it unasked"
    assert (fresh.code, fresh.codes["publish"]) == (3, "effect_unconfirmed")
    assert project.why("publish")["decision"] == "wait"
    assert project.run("--yes").code == 3
    done = project.retry("publish", "--yes")
    assert done.code == 0
    assert project.ran() == ["publish"]
    assert project.run("--yes").data["totals"]["reused"] == 2


def test_a_held_effect_stays_held_over_runs_that_do_not_come_to_it(project: Project) -> None:
    publish(project)
    kill(project.begun_by("run", "--yes", step="publish"))
    project.open("sent")
    steps = json.loads(project.read("plan.yaml"))["steps"]
    project.plan({**steps, "make": {"shell": project.sh("exit 1")}})
    assert project.run("--yes").states == {"make": "failed", "publish": "skipped"}
    project.ran()
    publish(project)
    assert project.run("--yes").codes["publish"] == "effect_unconfirmed"
    assert project.ran() == []
    asked = project.run("--yes", "--force-node", "publish")
    assert (asked.code, asked.codes["publish"]) == (0, "forced")
    assert project.ran() == ["publish"]


def test_an_idempotent_effect_is_repeated(project: Project) -> None:
    publish(project, idempotent=True)
    kill(project.begun_by("run", "--yes", step="publish"))
    project.open("sent")
    project.ran()
    done = project.resume("--yes")
    assert done.code == 0
    assert project.ran() == ["publish"]


def test_a_killed_external_command_is_held_too(project: Project) -> None:
    publish(project)
    engine = project.begun_by("run", "--yes", step="publish")
    project.ok("stop", "--now")
    stopped = finish(engine)
    assert stopped.code == 3
    assert project.status().codes["publish"] == "effect_unconfirmed"


@pytest.mark.parametrize("stop", ["command", "SIGTERM", "SIGHUP"])
@pytest.mark.parametrize("more", [False, True])
def test_a_stop_that_cuts_an_effect_off_is_a_wait_unless_more_is_to_do(
    project: Project, stop: str, *, more: bool
) -> None:
    publish(project)
    if more:
        plan = json.loads(project.read("plan.yaml"))["steps"]
        project.plan(plan | {"after": {"shell": project.sh(), "needs": ["publish"]}})
    engine = project.begun_by("run", "--yes", step="publish")
    if stop == "command":
        project.ok("stop", "--now")
    else:
        engine.send_signal(getattr(signal, stop))
    assert finish(engine).code == (130 if more else 3)
    found = project.status()
    assert found.data["status"] == ("paused" if more else "waiting")
    assert found.codes["publish"] == "effect_unconfirmed"


def test_a_run_that_waits_for_a_person_is_not_left_unasked(project: Project) -> None:
    publish(project)
    kill(project.begun_by("run", "--yes", step="publish"))
    project.open("sent")
    waiting = project.resume("--yes")
    assert waiting.data["status"] == "waiting"
    project.ran()
    project.plan({"make": {"shell": project.sh()}})
    said = project.refused(2, "run")
    assert f"{waiting.id[:10]} waits for a person; a new run takes its place" in said
    assert project.ran() == []
    fresh = project.run("--yes")
    assert "was left waiting; this run takes its place" in fresh.err
    assert project.status(waiting.id).data["status"] == "superseded"


def keyed(project: Project, body: str, **more: object) -> None:
    """A step that writes the key of its effect down, and then this."""
    note = f"echo $HOLDFAST_EFFECT_KEY >> {project.folder}/keys; "
    project.plan({"send": {"shell": project.sh(note + body), "effects": "external", **more}})


def keys(project: Project) -> list[str]:
    return (project.folder / "keys").read_text().split()


@pytest.mark.req("I17")
def test_the_key_is_the_same_until_the_effect_is_confirmed(project: Project) -> None:
    keyed(project, f"{project.gate('go')}; echo receipt", idempotent=True)
    kill(project.begun_by("run", "--yes", step="send"))
    project.open("go")
    assert project.resume("--yes").code == 0
    first, second = keys(project)
    assert first == second, "the other side can tell that it is the same again"
    kinds = [e["event"] for e in project.events()]
    assert kinds.count("effect_started") == 2
    assert kinds.index("attempt_accepted") > kinds.index("effect_confirmed")
    assert project.run("--yes", "--force-node", "send").code == 0
    assert keys(project)[-1] != first, "a new effect has a new key"


@pytest.mark.req("I17")
def test_a_failed_attempt_keeps_the_key_and_a_rejected_one_does_not(project: Project) -> None:
    keyed(project, "[ $HOLDFAST_ATTEMPT -gt 1 ] && echo receipt", retries=1)
    assert project.run("--yes").code == 0
    assert len(set(keys(project))) == 1
    (project.folder / "keys").unlink()
    receipt = {"command": ["sh", "-c", "grep -q 2 $HOLDFAST_ARTIFACT"]}
    keyed(project, "echo receipt $HOLDFAST_ATTEMPT", retries=1, guards=[receipt])
    assert project.run("--yes").code == 0
    assert len(set(keys(project))) == 2, "the command had ended well: it had happened"


@pytest.mark.req("I17")
def test_a_later_run_repeats_an_unconfirmed_effect_under_its_key(project: Project) -> None:
    keyed(project, f"{project.gate('go')}; echo receipt")
    kill(project.begun_by("run", "--yes", step="send"))
    project.open("go")
    assert project.run("--yes").code == 3
    assert project.run("--yes").code == 3
    assert project.retry("send", "--yes").code == 0
    first, second = keys(project)
    assert first == second
    keyed(project, "echo something else")
    assert project.run("--yes").code == 0
    assert keys(project)[-1] != first


def held(project: Project) -> None:
    """An effect that was cut off; it had said something before."""
    body = f"echo contacting the server; {project.gate('go')}; echo receipt"
    project.plan(
        {
            "send": {"shell": project.sh(body), "effects": "external"},
            "after": {"shell": project.sh("cat $HOLDFAST_INPUTS/send"), "needs": ["send"]},
        }
    )
    engine = project.begun_by("run", "--yes", "-j", "1", step="send")
    until(lambda: "contacting" in project.call("logs", "send").out, "its first words")
    kill(engine)
    project.open("go")
    assert project.resume("--yes").code == 3
    project.ran()


@pytest.mark.req("I17", "R169")
def test_a_held_effect_shows_what_is_known(project: Project) -> None:
    held(project)
    key = next(e["key"] for e in project.events() if e["event"] == "effect_started")
    said = project.ok("why", "send", "--wait").out
    assert key in said
    assert "attempt" in said
    assert "1 of r-" in said
    assert "contacting the server" in said, "its log as far as it came"
    assert "contacting the server" in project.ok("logs", "send").out
    (asked,) = project.ok("approvals", "--json").json["approvals"]
    assert (asked["gate"], asked["step"]) == ("effect", "send")
    assert project.status().data["waiting"][0]["step"] == "send"


@pytest.mark.req("I17")
@pytest.mark.parametrize("answer", ["approve", "reject", "amend", "revoke"])
def test_a_person_settles_a_held_effect(project: Project, answer: str) -> None:
    held(project)
    if answer == "approve":
        project.ok("approve", "send", "--yes")
        done = project.resume("--yes")
        assert (done.code, done.data["status"]) == (0, "completed")
        assert project.ran() == ["after", "send"]
    elif answer == "reject":
        words = "it went out, to the wrong place"
        project.ok("reject", "send", "--because", words)
        done = project.resume("--yes")
        assert f"  because     {words}\n" in project.call("resume", "--yes").out
        assert (done.code, done.codes["send"]) == (1, "rejected_by_person")
        assert done.states["after"] == "skipped"
        assert project.ran() == []
    elif answer == "amend":
        project.ok("amend", "send", "-", "--because", "it did go out", stdin=b"receipt 7\n")
        done = project.resume("--yes")
        assert (done.code, done.codes["send"]) == (0, "amended")
        assert project.ran() == ["after"], "it is not done again"
        assert project.shown("after") == b"receipt 7\n"
    else:
        project.ok("approve", "send", "--yes")
        approval = project.ok("approvals", "--all", "--json").json["approvals"][0]["approval"]
        project.ok("revoke", approval, "--because", "wait")
        again = project.resume("--yes")
        assert again.code == 3, "a yes that was taken back is none"
        assert project.ran() == []
    assert project.call("verify").code == 0


@pytest.mark.req("I17")
def test_a_new_run_says_that_a_yes_was_for_the_one_that_waits(project: Project) -> None:
    held(project)
    project.ok("approve", "send", "--yes")
    waits = project.status().id[:10]
    said = project.refused(2, "run")
    assert f"{waits} waits, and 'send' was approved in it; a new run takes its place" in said
    assert f"holdfast resume {waits}, or say --yes" in said
    fresh = project.run("--yes")
    assert (fresh.code, project.ran()) == (3, []), "no yes is used for another run"
    assert f"the yes to 'send' was for {waits} alone: this run asks again" in fresh.err
    given = project.ok("approve", "send", "--yes", "--json").json["approvals"][0]["approval"]
    project.ok("revoke", given)
    assert "changed" not in project.ok("approvals").out, "an effect of another run is another one"


@pytest.mark.req("I17")
def test_what_a_person_gave_stands_although_the_effect_was_forced(project: Project) -> None:
    keyed(project, "echo receipt")
    assert project.run("--yes").code == 0
    keyed(project, f"{project.gate('go')}; echo receipt")
    kill(project.begun_by("run", "--yes", "--force-node", "send", step="send"))
    project.open("go")
    assert project.resume("--yes").code == 3
    project.ran()
    project.ok("amend", "send", "-", stdin=b"receipt\n")
    assert project.resume("--yes").code == 0
    assert project.ran() == []


# --- what a person gave, or an attempt changed --------------------------------------------------------


def paid(project: Project, *, body: str = "", **more: object) -> None:
    """A payment whose words name a file that it makes itself, so that its key is another afterwards."""
    note = f"echo $HOLDFAST_EFFECT_KEY >> {project.folder}/keys; touch began"
    shell = project.sh(f"{note}; {body}{project.gate('go')}; echo receipt")
    project.plan(
        {
            "pay": {"shell": shell, "effects": "external", **more},
            "after": {"shell": project.sh("cat $HOLDFAST_INPUTS/pay"), "needs": ["pay"]},
        }
    )


def cut_off(project: Project, *, body: str = "", said: str = "", **more: object) -> None:
    """The payment was begun and its log holds what it `said`; its engine is dead."""
    paid(project, body=body, **more)
    engine = project.begun_by("run", "--yes", "-j", "1", step="pay")
    until(lambda: project.has("began") and (project.folder / "keys").exists(), "it was begun")
    until(lambda: said in project.call("logs", "pay").out, "the engine heard it")
    kill(engine)
    project.open("go")
    assert project.ran() == ["pay"]


@pytest.mark.req("I17")
@pytest.mark.parametrize("goes_on", ["resume", "run"])
@pytest.mark.parametrize("when", ["held", "dead"])
def test_what_a_person_gave_stands_whatever_became_of_the_key(
    project: Project, goes_on: str, when: str
) -> None:
    cut_off(project)
    if when == "held":
        assert project.resume("--yes").code == 3
    project.ok("amend", "pay", "-", "--because", "it went out", stdin=b"receipt 7\n")
    foreseen = project.ok("plan", "--json").json["steps"]["pay"]
    assert (foreseen["decision"], foreseen["reason"]["code"]) == ("reuse", "amended")
    done = project.resume() if goes_on == "resume" else project.run("--yes")
    assert (done.code, done.states["pay"], done.codes["pay"]) == (0, "reused", "amended")
    assert project.ran() == ["after"], "it is not done again"
    assert project.shown("after") == b"receipt 7\n"
    assert len(keys(project)) == 1
    again = project.run("--yes")
    assert again.states == {"pay": "reused", "after": "reused"}
    assert project.ran() == []
    assert project.call("verify").code == 0


@pytest.mark.req("I17")
@pytest.mark.parametrize("goes_on", ["resume", "run"])
def test_a_change_after_the_amend_repeats_no_effect(project: Project, goes_on: str) -> None:
    project.write("pay.sh", "echo 5")
    cut_off(project, body="cat pay.sh; ")
    assert project.resume("--yes").code == 3
    project.ok("amend", "pay", "-", stdin=b"receipt 7\n")
    project.write("pay.sh", "echo 6")
    done = project.resume("--yes") if goes_on == "resume" else project.run("--yes")
    assert (done.code, done.codes["pay"]) == (0, "amended")
    assert project.ran() == ["after"]
    assert project.run("--yes").states == {"pay": "reused", "after": "reused"}
    assert project.ran() == []


@pytest.mark.req("I17")
def test_what_a_person_gave_is_held_again_if_a_guard_refuses_it(project: Project) -> None:
    project.write("must", "receipt")
    guard = {"command": ["sh", "-c", 'grep -q "$(cat must)" $HOLDFAST_ARTIFACT']}
    cut_off(project, guards=[guard])
    assert project.resume("--yes").code == 3
    project.ok("amend", "pay", "-", stdin=b"receipt 7\n")
    project.write("must", "another")
    again = project.resume("--yes")
    assert (again.code, again.codes["pay"]) == (3, "effect_unconfirmed")
    assert project.run("--yes").codes["pay"] == "effect_unconfirmed"
    assert project.ran() == []
    project.ok("amend", "pay", "-", stdin=b"another receipt\n")
    assert project.resume().codes["pay"] == "amended"
    assert project.ran() == ["after"]


@pytest.mark.req("I17")
@pytest.mark.parametrize("goes_on", ["resume", "run"])
def test_an_idempotent_effect_keeps_its_key_though_it_changed_its_inputs(
    project: Project, goes_on: str
) -> None:
    cut_off(project, idempotent=True)
    done = project.resume("--yes") if goes_on == "resume" else project.run("--yes")
    assert done.code == 0
    assert project.ran() == ["after", "pay"]
    first, second = keys(project)
    assert first == second


@pytest.mark.req("I17")
def test_a_rejected_effect_is_repeated_only_by_name(project: Project) -> None:
    cut_off(project)
    assert project.resume().code == 3
    project.ok("reject", "pay", "--because", "it went to the wrong place")
    failed = project.resume()
    assert (failed.code, failed.codes["pay"]) == (1, "rejected_by_person")
    again = project.resume()
    assert (again.code, again.codes["pay"]) == (1, "rejected_by_person")
    assert "it stays so" in again.err
    assert project.run("--yes").codes["pay"] == "effect_unconfirmed"
    assert project.ran() == []
    assert project.retry("pay", "--yes").code == 0
    assert project.ran() == ["after", "pay"]
    assert len(set(keys(project))) == 1, "it may be the same: it has the same key"


@pytest.mark.req("I17")
def test_a_resume_after_a_failure_above_does_not_repeat_a_held_effect(project: Project) -> None:
    publish(project)
    kill(project.begun_by("run", "--yes", step="publish"))
    project.open("sent")
    steps = json.loads(project.read("plan.yaml"))["steps"]
    project.plan({**steps, "make": {"shell": project.sh("cat there")}})
    assert project.run("--yes").states == {"make": "failed", "publish": "skipped"}
    project.write("there", "text")
    project.ran()
    again = project.resume("--yes")
    assert (again.code, again.codes["publish"]) == (3, "effect_unconfirmed")
    assert project.ran() == ["make"]


@pytest.mark.req("I17")
def test_a_retry_above_a_held_effect_that_was_skipped_does_not_repeat_it(project: Project) -> None:
    publish(project)
    kill(project.begun_by("run", "--yes", step="publish"))
    project.open("sent")
    steps = json.loads(project.read("plan.yaml"))["steps"]
    broken = {"make": {"shell": project.sh("cat there")}, "beside": {"shell": "exit 1"}}
    project.plan({**steps, **broken})
    assert project.run("--yes").states["publish"] == "skipped"
    without = as_run(project, "skip", "make", "--because", "later", "--yes")
    assert (without.code, without.codes["publish"]) == (3, "effect_unconfirmed")
    assert as_run(project, "skip", "publish", "--because", "nobody knows").code == 1
    project.write("there", "text")
    project.ran()
    again = project.retry("make", "--yes")
    assert (again.code, again.codes["publish"]) == (1, "skipped_by_person")
    assert project.ran() == ["make"]
    assert project.retry("publish", "--yes").states["publish"] == "done"
    assert project.ran() == ["publish"], "who names it wants it"


def test_going_on_without_a_step_asks_only_about_effects_that_would_happen(
    project: Project,
) -> None:
    publish(project)
    kill(project.begun_by("run", "--yes", step="publish"))
    project.open("sent")
    steps = json.loads(project.read("plan.yaml"))["steps"]
    tell = {"shell": project.sh(), "effects": "external", "needs": ["publish"]}
    project.plan({**steps, "make": {"shell": project.sh("exit 1")}, "tell": tell})
    assert project.run("--yes").states["publish"] == "skipped"
    without = as_run(project, "skip", "make", "--because", "later")
    assert (without.code, without.codes["publish"]) == (3, "effect_unconfirmed")
    told = project.refused(2, "skip", "publish", "--because", "nobody knows")
    assert "outside world: tell\n" in told, "what stands on the held step would happen"


# --- the truth about a dead engine --------------------------------------------------------------------


@pytest.mark.req("I17", "R169")
def test_after_a_kill_everything_says_that_the_effect_is_held(project: Project) -> None:
    cut_off(project)
    told = project.why("pay", "--wait")
    assert (told["decision"], told["reason"]["code"]) == ("wait", "effect_unconfirmed")
    said = project.ok("why", "pay", "--wait").out
    assert "engine is gone" in said
    assert keys(project)[0] in said
    (asked,) = project.ok("approvals", "--json").json["approvals"]
    assert (asked["gate"], asked["step"]) == ("effect", "pay")
    assert project.why("pay")["reason"]["code"] == "effect_unconfirmed"
    assert project.resume().code == 3, "nothing outside would be touched: no yes is needed"
    assert project.ran() == []


@pytest.mark.req("I17")
@pytest.mark.parametrize("answer", ["approve", "reject", "retry", "run"])
def test_a_dead_effect_is_settled_before_anybody_resumed(project: Project, answer: str) -> None:
    cut_off(project)
    if answer == "run":
        assert project.run().code == 3, "it is held: no yes is needed"
        assert project.ran() == []
    elif answer == "retry":
        project.refused(2, "retry", "pay")
        assert project.retry("pay", "--yes").code == 0
        assert project.ran() == ["after", "pay"]
    elif answer == "reject":
        project.ok("reject", "pay", "--because", "lost")
        assert project.resume().codes["pay"] == "rejected_by_person"
        assert project.ran() == []
    else:
        project.ok("approve", "pay", "--yes")
        project.refused(2, "resume")
        assert project.resume("--yes").code == 0
        assert project.ran() == ["after", "pay"]
        assert len(set(keys(project))) == 1


@pytest.mark.req("I17")
def test_one_yes_is_enough_for_an_effect_that_is_always_asked_about(project: Project) -> None:
    project.write("began", "")  # what is approved stays the same: it is there before
    paid(project, approve="always")
    assert project.run().code == 3
    project.ok("approve", "pay", "--yes")
    kill(project.begun_by("resume", "-j", "1", step="pay"))
    project.open("go")
    assert project.resume().code == 3
    project.ran()
    project.ok("approve", "pay", "--yes")
    assert project.resume().code == 0
    assert project.ran() == ["after", "pay"]
    changed = project.run("--force-node", "pay")
    assert (changed.code, changed.codes["pay"]) == (3, "awaiting_approval"), "for that attempt only"


@pytest.mark.req("R169")
def test_the_log_of_a_held_effect_is_found_where_it_was_begun(project: Project) -> None:
    cut_off(project, body="echo contacting the server; ", said="contacting the server")
    assert project.run("--yes").code == 3
    assert "contacting the server" in project.ok("logs", "pay").out
