"""Getting on with a run in which something failed: replay, skip, fork."""

import json

import pytest

from tests.cli.project import Project, Run, finish_run


def as_run(project: Project, *words: str) -> Run:
    answer = project.call(*words, "--json")
    assert answer.out, answer.err
    return Run(answer.code, answer.json, answer.err)


def two_failures(project: Project) -> None:
    """a, then b that fails, then c, d; beside it e that fails; f after both."""
    project.plan(
        {
            "a": {"shell": project.sh("echo a")},
            "b": {"shell": project.sh("test -e b-may && echo b"), "needs": ["a"]},
            "c": {"shell": project.sh("cat $HOLDFAST_INPUTS/b; echo c"), "needs": ["b"]},
            "d": {"shell": project.sh("cat $HOLDFAST_INPUTS/c; echo d"), "needs": ["c"]},
            "e": {"shell": project.sh("test -e e-may && echo e"), "needs": ["a"]},
            "f": {"shell": project.sh("echo f"), "needs": ["b", "e"]},
        }
    )


@pytest.mark.req("R84", "R88", "R89", "C21", "E17")
def test_replay_tries_all_that_failed_with_all_that_was_skipped(project: Project) -> None:
    two_failures(project)
    first = project.run()
    assert first.states == {
        "a": "done",
        **dict.fromkeys("be", "failed"),
        **dict.fromkeys("cdf", "skipped"),
    }
    project.write("b-may", "")
    project.ran()
    again = as_run(project, "replay")
    assert again.id == first.id
    assert again.states == {**dict.fromkeys("abcd", "done"), "e": "failed", "f": "skipped"}
    assert project.ran() == ["b", "c", "d", "e"], "what is done stays done"
    project.write("e-may", "")
    assert as_run(project, "replay").states == dict.fromkeys("abcdef", "done")
    assert "completed and never changes" in project.refused(2, "replay")
    project.ok("verify")


def test_replay_needs_a_failure(project: Project) -> None:
    project.plan(
        {"a": {"shell": "echo a"}, "b": {"shell": "echo b", "needs": ["a"]}}, limits={"attempts": 1}
    )
    assert project.run().data["status"] == "limit"
    assert "nothing failed" in project.refused(2, "replay")


# --- skip ---------------------------------------------------------------------------------------------


@pytest.mark.req("R174", "C34")
def test_a_run_goes_on_without_a_step_and_the_gap_is_listed(project: Project) -> None:
    two_failures(project)
    project.run()
    project.ran()
    run = as_run(project, "skip", "b", "--because", "the tool is down")
    assert run.states == {
        "a": "done",
        "b": "skipped",
        "c": "done",
        "d": "done",
        "e": "failed",
        "f": "skipped",
    }
    assert project.ran() == ["c", "d"], "nothing else is tried again"
    assert project.shown("d") == b"c\nd\n", "an empty artifact stands in its place"
    (gap,) = run.data["gaps"]
    assert (gap["step"], bool(gap["by"])) == ("b", True)
    assert project.shown(gap["because"]) == b"the tool is down"
    assert run.codes["b"] == "skipped_by_person"
    assert run.data["totals"]["skipped"] == 2
    for words in (("status",), ("why", "b", "--run", "@")):
        assert "the tool is down" in project.ok(*words).out
    assert "0 reused  1 gap  " in project.ok("history").out
    assert "gaps: b" in project.ok("history").out
    seen = project.ok("history", "--json").json["runs"][0]
    assert (seen["reused"], seen["gaps"]) == (run.data["totals"]["reused"], ["b"])
    project.ok("verify")


@pytest.mark.req("R174")
def test_retry_closes_a_gap_and_makes_again_what_was_made_without_it(project: Project) -> None:
    two_failures(project)
    project.run()
    as_run(project, "skip", "b", "--because", "later")
    project.write("b-may", "")
    project.ran()
    run = project.retry("b")
    assert run.data["gaps"] == []
    assert project.ran() == ["b", "c", "d"]
    assert project.shown("d") == b"b\nc\nd\n"
    project.ok("verify")
    assert "index" not in project.ok("rebuild").err


def test_a_later_run_tries_the_step_as_ever(project: Project) -> None:
    project.plan(
        {
            "b": {"shell": project.sh("test -e b-may && echo b")},
            "c": {"shell": project.sh("cat $HOLDFAST_INPUTS/b"), "needs": ["b"]},
        }
    )
    project.run()
    done = as_run(project, "skip", "b", "--because", "later")
    assert (done.code, done.data["status"]) == (0, "completed")
    project.ran()
    assert project.run().states == {"b": "failed", "c": "skipped"}
    project.write("b-may", "")
    project.run()
    assert project.shown("c") == b"b\n", "what was made without it is not taken for the real thing"


def test_a_step_with_files_leaves_them_alone_when_it_is_skipped(project: Project) -> None:
    project.plan(
        {
            "b": {"shell": "exit 1", "produces": "b.txt"},
            "c": {"shell": "ls $HOLDFAST_INPUTS", "needs": ["b"]},
        }
    )
    project.write("b.txt", "mine\n")
    project.run()
    assert as_run(project, "skip", "b", "--because", "mine will do").code == 0
    assert project.read("b.txt") == "mine\n"
    project.ok("verify")


def test_a_step_can_be_skipped_while_the_run_goes_on(project: Project) -> None:
    project.plan(
        {
            "slow": {"shell": project.sh(f"{project.gate('go')}; echo slow")},
            "next": {"shell": project.sh(), "needs": ["slow"]},
            "last": {"shell": project.sh(), "needs": ["next"]},
        }
    )
    engine = project.begun_by("run", "--json", "--poll", "0.05", step="slow")
    answer = project.ok("skip", "last", "--because", "not needed", "--json").json
    assert answer["state"] == "skipped"
    assert "'slow' is running" in project.refused(2, "skip", "slow", "--because", "no")
    project.open("go")
    run = finish_run(engine)
    assert (run.code, run.states) == (0, {"slow": "done", "next": "done", "last": "skipped"})
    assert project.begun() == ["slow", "next"]
    project.ok("verify")


def test_what_cannot_be_skipped_is_refused(project: Project) -> None:
    two_failures(project)
    project.run()
    assert "has no step 'x'" in project.refused(2, "skip", "x", "--because", "y")
    assert "'a' is done" in project.refused(2, "skip", "a", "--because", "y")
    assert "--because is empty" in project.refused(2, "skip", "b", "--because", " ")
    as_run(project, "skip", "b", "--because", "y")
    assert "without 'b' already" in project.refused(2, "skip", "b", "--because", "y")


# --- fork ---------------------------------------------------------------------------------------------


def chained(project: Project) -> None:
    """Three steps that write files, the second of them differently each time."""
    project.write("in.txt", "1\n")
    project.plan(
        {
            "a": {
                "shell": project.sh("cat in.txt > a.txt"),
                "inputs": "in.txt",
                "produces": "a.txt",
            },
            "b": {
                "shell": project.sh("cat a.txt > b.txt; wc -l < " + str(project.log) + " >> b.txt"),
                "needs": ["a"],
                "produces": "b.txt",
            },
            "c": {"shell": project.sh("cat b.txt"), "needs": ["b"]},
        }
    )


@pytest.mark.req("R172")
def test_a_fork_takes_what_is_not_below_and_makes_the_rest_again(project: Project) -> None:
    chained(project)
    first = project.run()
    project.write("in.txt", "2\n")
    second = project.run()
    assert project.read("a.txt") == "2\n"
    journal = project.events(first.id)
    project.ran()
    forked = as_run(project, "fork", first.id, "--from", "b")
    assert forked.code == 0
    assert project.ran() == ["b", "c"]
    assert forked.states == {"a": "reused", "b": "done", "c": "done"}
    assert forked.digests["a"] == first.digests["a"] != second.digests["a"]
    assert forked.digests["b"] != first.digests["b"]
    assert project.read("a.txt") == "1\n", "the files are as they were in that run"
    assert forked.data["forked"] == {"run": first.id, "step": "b"}
    assert forked.data["plan"]["line"] == "demo.fork-1"
    assert project.events(first.id) == journal, "history is only ever added to"
    told = project.ok("diff", first.id, forked.id).out
    assert "2 of 3 differ" in told
    project.ok("verify")


@pytest.mark.req("R172")
def test_later_runs_of_the_line_do_not_see_the_fork(project: Project) -> None:
    chained(project)
    first = project.run()
    forked = as_run(project, "fork", "@", "--from", "b", "--as", "bolder")
    assert project.read("b.txt") != project.shown("b").decode(), "the fork wrote its own version"
    project.ran()
    again = project.run()
    assert again.digests == first.digests
    assert set(again.codes.values()) == {"unchanged"}, "what the fork wrote is nobody's edit"
    assert again.data["steps"].keys() == first.data["steps"].keys()
    assert (project.ran(), project.read("b.txt")) == ([], project.shown("b").decode())
    assert [row["line"] for row in project.ok("history", "--json").json["runs"]] == ["demo", "demo"]
    later = project.run("--plan-id", "bolder")
    assert later.digests == forked.digests, "and the fork has a line of its own to go on in"
    assert project.ran() == []
    project.ok("verify")


def test_what_follows_a_fork_names_its_line(project: Project) -> None:
    chained(project)
    project.run()
    said = project.ok("fork", "@", "--from", "b", "--as", "bolder").out
    assert "next: holdfast show --plan-id bolder c    holdfast plan --plan-id bolder" in said
    forked = project.ok("history", "--all", "--json").json["runs"][0]["run"]
    assert "next: holdfast show --plan-id bolder c" in project.ok("status", forked).out
    assert "next: holdfast show c" in project.ok("status").out
    assert project.ok("show", "--plan-id", "bolder", "c").out != project.ok("show", "c").out


def test_a_fork_can_be_continued(project: Project) -> None:
    two_failures(project)
    first = project.run()
    project.write("b-may", "")
    forked = as_run(project, "fork", first.id, "--from", "b")
    assert (forked.code, forked.states["e"]) == (1, "failed")
    project.write("e-may", "")
    resumed = as_run(project, "resume", forked.id)
    assert resumed.states == {"a": "reused", **dict.fromkeys("bcdef", "done")}
    assert project.status().id == first.id, "the line's last run is still its own"
    project.ok("verify")


def test_a_fork_is_refused_where_it_cannot_be(project: Project) -> None:
    chained(project)
    run = project.run()
    assert "has no step 'x'" in project.refused(2, "fork", "@", "--from", "x")
    assert "line 'demo' already" in project.refused(2, "fork", "@", "--from", "b", "--as", "demo")
    project.write("a.txt", "by hand\n")
    assert "'a.txt' of 'a' was changed by hand" in project.refused(2, "fork", "@", "--from", "b")
    assert project.read("a.txt") == "by hand\n"
    (project.root / "a.txt").unlink()
    digest = run.digests["a"]
    assert digest is not None
    project.ok("purge", digest, "--because", "secret", "--yes")
    assert "'a' in that run is no longer kept" in project.refused(2, "fork", "@", "--from", "b")
    assert as_run(project, "fork", "@", "--from", "a").code == 0, "it is made again anyway"


def test_a_fork_does_not_change_files_twice(project: Project) -> None:
    project.write("f", "base\n")
    copy = {"workspace": "scratch", "effects": "workspace", "inputs": "f"}
    project.plan(
        {
            "s": {"shell": "echo s"},
            "change": {"shell": "echo more >> f", "needs": ["s"], **copy},
            "below": {"shell": project.sh(), "needs": ["change"]},
        }
    )
    project.run()
    for step in ("s", "change"):
        said = project.refused(2, "fork", "@", "--from", step)
        assert "what 'change' changed in the project stands" in said
        assert "hint: undo 'change' first, or fork from a step below" in said
    assert project.read("f") == "base\nmore\n"
    assert len(project.ok("history", "--all", "--json").json["runs"]) == 1
    assert as_run(project, "fork", "@", "--from", "below").code == 0
    assert project.read("f") == "base\nmore\n"
    project.ok("undo", "change")
    assert as_run(project, "fork", "@", "--from", "s").code == 0
    assert project.read("f") == "base\nmore\n", "once"
    project.ok("verify")


def test_a_fork_at_a_step_that_adds_steps_lets_it_add_anew(project: Project) -> None:
    more = json.dumps(
        {"steps": {"x": {"shell": "echo x"}, "y": {"shell": "echo y", "needs": ["x"]}}}
    )
    less = json.dumps({"steps": {"x": {"shell": "echo other"}}})
    body = f"if [ -e less ]; then printf '%s' '{less}'; else printf '%s' '{more}'; fi > $HOLDFAST_ADD/m.json"
    project.plan({"top": {"shell": "echo top"}, "scan": {"shell": body, "needs": ["top"]}})
    first = project.run()
    assert first.states.keys() == {"top", "scan", "x", "y"}
    project.write("less", "")
    forked = as_run(project, "fork", "@", "--from", "scan")
    assert forked.states == {"top": "reused", "scan": "done", "x": "done"}
    whole = as_run(project, "fork", first.id, "--from", "x")
    assert whole.states == {"top": "reused", "scan": "reused", "x": "done", "y": "done"}
    project.ok("verify")


@pytest.mark.req("R172")
def test_a_fork_takes_gaps_as_they_were(project: Project) -> None:
    two_failures(project)
    project.run()
    as_run(project, "skip", "b", "--because", "down")
    project.write("e-may", "")
    forked = as_run(project, "fork", "@", "--from", "c")
    assert (forked.states["b"], forked.data["gaps"][0]["step"]) == ("skipped", "b")
    assert forked.code == 0
    project.ok("verify")
