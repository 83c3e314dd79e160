"""A receipt that was purged: its effect is known to be done, and is repeated only if a person asks."""

import json
from contextlib import suppress
from pathlib import Path

import pytest

from tests.cli.project import Project, Run, kill, until
from tests.cli.test_pin_purge import digest

EXTERNAL = {"effects": "external"}
HANDOFF: dict[str, object] = {
    "attempted": "to pay",
    "observed": [],
    "changed": [],
    "not_done": [],
    "highest_impact_uncertainty": "",
    "next_agent_should_first": "",
}


def pays(project: Project, word: str = "one", **more: object) -> dict[str, object]:
    """A step that pays what its input says; what it prints is the receipt."""
    project.write("in.txt", word)
    pay = {"shell": project.sh("cat in.txt"), "inputs": ["in.txt"], **EXTERNAL, **more}
    project.plan({"pay": pay})
    return pay


def fails_at_second(project: Project) -> str:
    count = project.folder / "count"
    return project.sh(f"echo x >> {count}; test $(wc -l < {count}) -ne 2 && echo paid")


def purge(project: Project, text: str) -> None:
    project.ok("purge", digest(text), "--because", "a name", "--yes")


def is_held(project: Project, step: str = "pay") -> Run:
    """A run that waits for a person, foreseen as such, in which nothing was done."""
    seen = project.ok("plan", "--json").json["steps"][step]
    assert seen["decision"] == "wait", seen
    project.ran()
    run = project.run("--yes")
    assert (run.code, run.states[step]) == (3, "waiting"), run.err
    assert project.ran() == [], "nobody asked for it"
    return run


@pytest.mark.req("I17")
def test_a_purged_receipt_of_an_older_version_repeats_nothing(project: Project) -> None:
    pays(project, "one")
    project.run("--yes")
    project.write("in.txt", "two")
    assert project.run("--yes").states == {"pay": "done"}, "another input is another effect"
    project.write("in.txt", "one")
    purge(project, "one")
    is_held(project)
    is_held(project)
    project.ok("amend", "pay", "-", stdin=b"paid, they say\n")
    assert project.run("--yes").states == {"pay": "reused"}
    assert project.ran() == []
    project.write("in.txt", "two")
    assert project.run("--yes").states == {"pay": "reused"}, "the other receipt stands"
    project.ok("verify", "--all")


@pytest.mark.req("I17")
def test_a_purged_receipt_is_not_whole_again_by_equal_bytes(project: Project) -> None:
    pay = {"shell": project.sh("echo ok"), **EXTERNAL}
    project.plan({"pay": pay})
    project.run("--yes")
    purge(project, "ok\n")
    project.plan({"pay": pay, "other": {"shell": "echo ok"}})
    assert project.run("--yes").states == {"pay": "waiting", "other": "done"}
    assert project.shown("other") == b"ok\n"
    is_held(project)
    assert " changed" not in project.ok("why", "pay").out
    project.ok("verify", "--all")


def test_what_was_purged_is_made_again_for_that_though_equal_bytes_came(project: Project) -> None:
    make = {"shell": project.sh("echo ok")}
    project.plan({"make": make})
    project.run()
    purge(project, "ok\n")
    project.plan({"other": {"shell": "echo ok"}})
    project.run()
    project.plan({"make": make})
    assert project.why("make")["reason"]["code"] == "output_missing"
    assert " changed" not in project.ok("why", "make").out


@pytest.mark.req("I17")
@pytest.mark.parametrize("back", [False, True])
def test_other_guards_over_a_purged_receipt_repeat_nothing(project: Project, *, back: bool) -> None:
    pay = pays(project)
    project.run("--yes")
    project.plan({"pay": {**pay, "guards": [{"regex": {"pattern": "."}}]}})
    purge(project, "one")
    if back:
        project.plan(
            {"pay": {**pay, "guards": [{"regex": {"pattern": "."}}]}, "b": {"shell": "printf one"}}
        )
        project.run("--yes")
    is_held(project)
    project.ok("amend", "pay", "-", stdin=b"paid, they say\n")
    assert project.run("--yes").states["pay"] == "reused"
    assert project.ran() == []
    project.ok("verify", "--all")


@pytest.mark.req("I17")
def test_a_purged_receipt_is_not_repeated_because_what_it_read_was_made_again(
    project: Project,
) -> None:
    above = {"shell": "echo same"}
    pay = {"shell": project.sh("echo paid"), "needs": ["above"], "reuse": "content", **EXTERNAL}
    project.plan({"above": above, "pay": pay})
    project.run("--yes")
    purge(project, "paid\n")
    project.plan({"above": {"shell": "echo same; true"}, "pay": pay})
    project.ran()
    run = project.run("--yes")
    assert (run.states, project.ran()) == ({"above": "done", "pay": "waiting"}, [])
    is_held(project)


@pytest.mark.req("I17")
def test_a_purged_receipt_is_not_repeated_because_a_forced_try_failed(project: Project) -> None:
    project.plan({"pay": {"shell": fails_at_second(project), **EXTERNAL}})
    project.run("--yes")
    assert project.run("--yes", "--force-node", "pay").states == {"pay": "failed"}
    purge(project, "paid\n")
    is_held(project)
    project.ok("reject", "pay", "--because", "once is enough")
    assert project.resume("--yes").code == 1
    is_held(project)


@pytest.mark.req("I17")
def test_whoever_asks_for_it_by_name_repeats_it_with_its_own_retries(project: Project) -> None:
    project.plan({"pay": {"shell": fails_at_second(project), "retries": 1, **EXTERNAL}})
    project.run("--yes")
    purge(project, "paid\n")
    is_held(project)
    done = project.retry("pay", "--yes")
    assert (done.code, done.states) == (0, {"pay": "done"})
    assert project.ran() == ["pay"] * 2, "it failed once, and its own retries are its own"
    assert project.run("--yes").states == {"pay": "reused"}
    project.ok("verify", "--all")


@pytest.mark.req("I17", "R170")
def test_it_is_said_that_the_effect_was_done(project: Project) -> None:
    pays(project)
    project.run("--yes")
    purge(project, "one")
    held = is_held(project)
    assert held.codes["pay"] == "receipt_gone"
    screens = [
        project.call(*words)
        for words in (
            ("plan",),
            ("run", "--yes"),
            ("status",),
            ("approvals",),
            ("why", "pay"),
            ("why", "pay", "--wait"),
        )
    ]
    for screen in screens:
        said = f"{screen.out}{screen.err}"
        assert "never" not in said, said
        assert "confirmed" not in said, said
    assert "was done" in screens[0].out
    assert "was done" in screens[-1].out
    assert "holdfast amend pay FILE" in screens[-1].out
    assert "was purged or lost" in screens[-1].out
    assert "what it gave is gone" in project.ok("explain", "receipt_gone").out
    project.ok("logs", "pay")


@pytest.mark.req("I17")
def test_a_purge_takes_what_a_dead_engine_left_of_it_too(project: Project) -> None:
    reads = project.sh(f"cat $HOLDFAST_INPUTS/pay; {project.gate('go')}")
    pay = {"shell": project.sh("echo a secret"), **EXTERNAL}
    project.plan({"pay": pay, "after": {"shell": reads, "needs": ["pay"]}})
    engine = project.start("run", "--yes")
    until(lambda: "a secret" in "".join(_scratch(project).values()), "it is read")
    until(lambda: any("after.1.out" in path for path in _scratch(project)), "it is told")
    kill(engine)
    project.open("go")
    assert "a secret" in "".join(_scratch(project).values())
    purge(project, "a secret\n")
    assert "a secret" not in "".join(_scratch(project).values())
    resumed = project.resume("--yes")
    assert (resumed.code, resumed.states) == (1, {"pay": "done", "after": "failed"})
    assert "was purged" in project.refused(1, "show", "pay")
    project.ran()
    assert project.run("--yes").states["pay"] == "waiting"
    assert project.ran() == []
    project.ok("verify", "--all")


def _scratch(project: Project) -> dict[str, str]:
    """The files that engines left, with what is in them."""
    found: dict[str, str] = {}
    for path in project.store.glob("scratch/**/*"):
        with suppress(OSError):  # it may go meanwhile
            if path.is_file():
                found[str(path)] = path.read_text(errors="replace")
    return found


@pytest.mark.parametrize("gone", [False, True])
def test_a_yes_to_a_held_effect_is_told_wherever_it_waits(project: Project, *, gone: bool) -> None:
    held = _held_for_its_receipt(project) if gone else _held_in_the_middle(project)
    project.ok("approve", "pay", "--yes")
    for words in (("status",), ("why", "pay", "--wait")):
        said = project.ok(*words).out
        assert "approved: it goes on with holdfast resume" in said
        assert "next: holdfast resume" in said
    refused = project.refused(2, "run")
    assert "'pay' was approved in it" in refused
    assert f"holdfast resume {held.id[:10]}" in refused
    again = project.run("--yes")
    assert f"the yes to 'pay' was for {held.id[:10]} alone" in again.err
    assert "approved" not in project.ok("status", held.id).out, "it goes on no more"
    assert project.ran() == []
    project.ok("approve", "pay", "--yes")
    assert project.resume("--yes").states == {"pay": "done"}
    assert project.ran() == ["pay"]


def _held_for_its_receipt(project: Project) -> Run:
    pays(project)
    project.run("--yes")
    purge(project, "one")
    return is_held(project)


def _held_in_the_middle(project: Project) -> Run:
    project.plan({"pay": {"shell": project.sh(project.gate("go")), **EXTERNAL}})
    kill(project.begun_by("run", "--yes", step="pay"))
    project.open("go")
    project.ran()
    return project.resume("--yes")


@pytest.mark.req("I17")
def test_all_steps_by_force_is_no_wish_to_repeat_what_was_done(project: Project) -> None:
    pays(project, "one")
    project.run("--yes")
    purge(project, "one")
    is_held(project)
    seen = project.ok("plan", "--force", "--json").json["steps"]["pay"]
    assert (seen["decision"], seen["reason"]["code"]) == ("wait", "receipt_gone")
    forced = project.run("--force", "--yes")
    assert (forced.code, forced.states["pay"], project.ran()) == (3, "waiting", [])
    assert project.run("--force-node", "pay", "--yes").states == {"pay": "done"}
    assert project.ran() == ["pay"]


# --- what was done and is in doubt -------------------------------------------------------------------


def tooled(project: Project) -> Path:
    """A step whose key holds what a tool says; a tool that says nothing makes a hole in it."""
    tool = project.write("tool.sh", "echo 1")
    pays(project, tool_versions={"t": ["sh", str(tool)]})
    assert project.run("--yes").states == {"pay": "done"}
    return tool


@pytest.mark.req("I17")
def test_a_hole_in_its_key_repeats_no_effect(project: Project) -> None:
    tool = tooled(project)
    tool.write_text("exit 1")
    held = is_held(project)
    assert held.codes == {"pay": "effect_doubted"}
    assert "cannot be resolved" in held.err
    assert "may be the same" in project.ok("status").out
    assert "whether that still counts" in project.ok("approvals").out
    ways = project.ok("why", "pay", "--wait").out
    assert "retry does it again" in ways
    assert "holdfast skip pay" in ways
    assert "accept" not in ways, "nothing can stand under a key with a hole"
    amended = project.call("amend", "pay", "-", stdin=b"x\n")
    assert (amended.code, "'pay' waits" in amended.err) == (2, True), amended
    is_held(project)
    tool.write_text("echo 1")
    assert project.run("--yes").states == {"pay": "reused"}, "it can be told again"
    tool.write_text("exit 1")
    is_held(project)
    assert project.retry("pay", "--yes").states == {"pay": "done"}
    assert project.ran() == ["pay"]
    project.ok("verify", "--all")


@pytest.mark.req("I17")
@pytest.mark.parametrize("then", ["purged", "amended"])
def test_a_hole_in_its_key_is_no_way_around_a_purge_or_a_person(
    project: Project, then: str
) -> None:
    tool = tooled(project)
    if then == "purged":
        purge(project, "one")
    else:
        project.ok("amend", "pay", "-", stdin=b"paid, they say\n")
    project.run("--yes")
    tool.write_text("exit 1")
    is_held(project)
    assert project.run("--yes", "--force-node", "pay").states == {"pay": "done"}
    assert project.ran() == ["pay"]
    project.ok("verify", "--all")


@pytest.mark.req("I17")
def test_a_hole_in_the_key_of_what_is_new_changed_or_failed_holds_nobody(project: Project) -> None:
    tool = project.write("tool.sh", "exit 1")
    count = project.folder / "count"
    fails = project.sh(f"test -e {count} && echo paid; touch {count}; test -s in.txt")
    project.write("in.txt", "")
    step = {"shell": fails, "tool_versions": {"t": ["sh", str(tool)]}, **EXTERNAL}
    project.plan({"pay": step})
    assert project.run("--yes").states == {"pay": "failed"}
    project.write("in.txt", "now")
    assert project.run("--yes").states == {"pay": "done"}
    is_held(project)


@pytest.mark.req("I17")
def test_who_rejects_a_step_that_is_in_doubt_has_not_asked_for_it(project: Project) -> None:
    tool = tooled(project)
    tool.write_text("exit 1")
    is_held(project)
    project.ok("reject", "pay", "--because", "no")
    assert project.resume().states == {"pay": "failed"}, "nothing is touched, so nobody is asked"
    is_held(project)
    project.root.joinpath("in.txt").unlink()
    assert project.run("--yes").states == {"pay": "failed"}
    project.write("in.txt", "one")
    is_held(project)


@pytest.mark.req("I17")
def test_all_steps_by_force_is_no_wish_to_repeat_what_is_in_doubt(project: Project) -> None:
    tool = tooled(project)
    tool.write_text("exit 1")
    is_held(project)
    assert project.run("--force", "--yes").states == {"pay": "waiting"}
    assert project.run("--force-node", "pay", "--yes").states == {"pay": "done"}
    assert project.ran() == ["pay"]


@pytest.mark.req("I17")
def test_what_was_done_with_a_hole_in_its_key_is_not_repeated_when_that_is_mended(
    project: Project,
) -> None:
    tool = project.write("tool.sh", "exit 1")
    pays(project, tool_versions={"t": ["sh", str(tool)]})
    done = project.run("--yes").id
    is_held(project)
    tool.write_text("echo 1")
    held = is_held(project)
    assert "was not known when it was done" in held.err
    assert "holdfast accept pay --from RUN" in project.ok("why", "pay", "--wait").out
    project.ok("accept", "pay", "--from", done, "--because", "the same version")
    assert project.run("--yes").states == {"pay": "reused"}
    tool.write_text("echo 2")
    assert project.run("--yes").states == {"pay": "done"}, "another version"
    assert project.ran() == ["pay"]
    project.ok("verify", "--all")


@pytest.mark.req("I17")
def test_what_is_contested_is_not_repeated(project: Project) -> None:
    told = {**HANDOFF, "observed": [{"finding": "paid", "source": "bank"}]}
    hands = f"echo '{json.dumps(told)}' > $HOLDFAST_HANDOFF; echo paid"
    project.plan({"pay": {"shell": project.sh(hands), **EXTERNAL}})
    project.run("--yes")
    project.ok("ledger", "contest", "bank", "--because", "no")
    held = is_held(project)
    assert "is contested" in held.err
    assert project.run("--force", "--yes").states == {"pay": "waiting"}
    project.ok("ledger", "contest", "bank", "--take-back", "--because", "it is so")
    assert project.run("--yes").states == {"pay": "reused"}
    assert project.ran() == []
    project.ok("verify", "--all")


@pytest.mark.req("I17")
def test_what_was_made_again_after_it_was_held_waits_for_its_yes(project: Project) -> None:
    pay = {"shell": project.sh("echo paid"), "guards": ["human"], **EXTERNAL}
    project.plan({"pay": pay})
    first = project.run("--yes")
    assert first.states == {"pay": "waiting"}
    for held in (is_held(project), is_held(project)):
        assert f"what it made in {first.id[:10]} was not decided about" in held.err
    assert "its effect was done, and what it made" in project.ok("approvals").out
    assert "amend says what it gave" in project.ok("why", "pay", "--wait").out
    again = project.retry("pay", "--yes")
    assert (again.code, again.states, project.ran()) == (3, {"pay": "waiting"}, ["pay"])
    project.ok("approve", "pay", "--yes")
    assert project.resume("--yes").states == {"pay": "done"}
    assert project.ran() == []
    project.ok("verify", "--all")


@pytest.mark.req("I17")
def test_what_was_made_and_is_gone_on_without_is_held_in_the_next_run(project: Project) -> None:
    after = {"shell": project.sh("echo x"), "needs": ["pay"]}
    pay = {"shell": project.sh("echo paid"), "guards": ["human"], **EXTERNAL}
    project.plan({"pay": pay, "after": after})
    assert project.run("--yes").states["pay"] == "waiting"
    project.ok("skip", "pay", "--because", "later")
    assert project.ran() == ["after", "pay"]
    is_held(project)
    project.ok("verify", "--all")
    project.ok("amend", "pay", "-", stdin=b"paid, they say\n")
    assert project.run("--yes").states["pay"] in {"reused", "waiting"}
    assert "pay" not in project.ran()
    project.ok("verify", "--all")
