"""Failures: retries, feedback, skipping below, going on beside, trying again later."""

import json

import pytest

from tests.cli.project import Project, finish


@pytest.mark.req("R77", "R170")
def test_a_failed_command_is_tried_again_with_what_it_said(project: Project) -> None:
    body = (
        'if [ -z "$HOLDFAST_FEEDBACK" ]; then echo first >&2; exit 3; fi; '
        '[ $HOLDFAST_ATTEMPT -gt 2 ] || { echo second >&2; exit 4; }; cat "$HOLDFAST_FEEDBACK"'
    )
    project.plan({"s": {"shell": project.sh(body), "retries": 2}})
    run = project.run()
    assert run.code == 0
    assert run.data["steps"]["s"]["attempts"] == 3
    first, second = json.loads(project.shown("s"))
    assert first["digest"] is None
    assert "first" in first["feedback"]
    assert "exit code 3" in first["feedback"]
    assert "second" in second["feedback"]


def test_tests_that_fail_as_a_guard_are_named_and_counted(project: Project) -> None:
    """However much was said after them; a model that tries again is told the same."""
    report = "FAILED t.py::a - no\\n== 1 failed, 39 passed in 0.10s ==\\n"
    project.write("test.sh", f"printf '{report}'; seq 2000; exit 1\n")
    guards = [{"command": ["sh", "test.sh"]}]
    body = 'cat "${HOLDFAST_FEEDBACK:-/dev/null}" > told; echo x'
    project.plan({"s": {"shell": project.sh(body), "guards": guards, "retries": 1}})
    run = project.call("run")
    assert run.code == 1
    told = "1 failed of 40 tests: t.py::a"
    for said in (run.err, run.out, project.ok("why", "s", "--run", "@").out, project.read("told")):
        assert told in said


@pytest.mark.req("R59", "E10", "E17")
def test_what_stands_below_a_failure_is_skipped_and_other_branches_go_on(project: Project) -> None:
    project.plan(
        {
            "bad": {"shell": project.sh("exit 1")},
            "b1": {"shell": project.sh(), "needs": ["bad", "good"]},
            "b2": {"shell": project.sh(), "needs": ["b1"]},
            "b3": {"shell": project.sh(), "needs": [{"step": "b2", "type": "sequence"}]},
            "good": {"shell": project.sh()},
            "g2": {"shell": project.sh(), "needs": ["good"]},
        }
    )
    run = project.run()
    assert (run.code, run.data["status"]) == (1, "failed")
    assert project.ran() == ["bad", "g2", "good"]
    assert run.codes == {
        "bad": "command_failed",
        "b1": "dependency_failed",
        "b2": "dependency_skipped",
        "b3": "dependency_skipped",
        "good": "never_ran",
        "g2": "never_ran",
    }
    assert [run.because(step) for step in ("b1", "b2", "b3")] == [["bad"], ["b1"], ["b2"]]
    again = project.run()
    assert again.codes["bad"] == "command_failed"
    assert {again.states[step] for step in ("b1", "b2", "b3")} == {"skipped"}, "nothing was cached"
    assert project.ran() == ["bad"]


@pytest.mark.req("R73", "R93", "E12", "E13")
def test_resume_tries_failures_again_and_what_recovers_is_failed_no_more(project: Project) -> None:
    fixed = project.folder / "fixed"
    project.plan(
        {
            "top": {"shell": project.sh("echo precious $$")},
            "flaky": {
                "shell": project.sh(f"test -e {fixed} && cat $HOLDFAST_INPUTS/top"),
                "needs": ["top"],
            },
            "end": {"shell": project.sh("cat $HOLDFAST_INPUTS/*"), "needs": ["top", "flaky"]},
        }
    )
    failed = project.run()
    assert failed.states == {"top": "done", "flaky": "failed", "end": "skipped"}
    project.ran()
    still = project.resume()
    assert (still.code, still.id) == (1, failed.id)
    assert project.ran() == ["flaky"], "resume with only failures left does try them"

    fixed.touch()
    well = project.resume()
    assert (well.code, well.id, well.data["status"]) == (0, failed.id, "completed")
    assert project.ran() == ["end", "flaky"]
    assert well.states == {"top": "done", "flaky": "done", "end": "done"}
    assert well.data["totals"]["failed"] == 0
    assert well.digests["top"] == failed.digests["top"]
    top = project.shown("top")
    assert project.shown("end") == top + top, "resumed dependents get their inputs"
    assert "nothing to resume" in project.refused(2, "resume", well.id)
    assert "no unfinished run" in project.refused(2, "resume")
    assert project.run().data["totals"]["reused"] == 3


@pytest.mark.req("R93", "R170")
def test_retry_tries_one_step_and_what_waited_for_it(project: Project) -> None:
    a, b = project.folder / "a", project.folder / "b"
    project.plan(
        {
            "a": {"shell": project.sh(f"test -e {a}")},
            "b": {"shell": project.sh(f"test -e {b}")},
            "under_a": {"shell": project.sh(), "needs": ["a"]},
            "under_both": {"shell": project.sh(), "needs": ["a", "b"]},
        }
    )
    failed = project.run()
    a.touch()
    project.ran()
    one = project.retry("a")
    assert (one.code, one.id) == (1, failed.id)
    assert project.ran() == ["a", "under_a"]
    assert one.states == {"a": "done", "b": "failed", "under_a": "done", "under_both": "skipped"}
    assert one.codes["a"] == "retried"
    b.touch()
    both = project.retry("b")
    assert both.data["status"] == "completed"
    assert project.ran() == ["b", "under_both"]
    fresh = project.retry("a")
    assert fresh.id != failed.id, "a completed run never changes"
    assert fresh.codes["a"] == "forced"
    assert project.ran() == ["a"]
    assert "did you mean 'under_a'" in project.refused(2, "retry", "undr_a")


def test_fail_fast_starts_nothing_more(project: Project) -> None:
    steps = {name: {"shell": project.sh("exit 1" if name == "a" else "true")} for name in "abcd"}
    project.plan(steps)
    run = project.run("--fail-fast", "-j", "1")
    assert (run.code, run.data["status"]) == (1, "failed")
    assert project.ran() == ["a"]
    assert {run.states[step] for step in "bcd"} == {"pending"}
    project.plan({**steps, "a": {"shell": project.sh("true")}})
    done = project.run("--keep-going")
    assert done.code == 0
    assert project.ran() == ["a", "b", "c", "d"]


@pytest.mark.req("R170")
def test_a_timeout_spends_the_budget_of_lost_attempts(project: Project) -> None:
    project.plan(
        {
            "slow": {"shell": project.sh("exec sleep 300"), "timeout": "1s", "retries": 3},
            "dies": {"shell": project.sh("kill -9 $$"), "retries": 3},
        }
    )
    run = project.run()
    assert run.code == 8
    assert run.codes == {"slow": "timed_out", "dies": "lost"}
    assert run.field("attempts") == {"slow": 2, "dies": 2}
    assert run.field("duration_ms")["slow"] >= 2000  # both attempts, each to its end
    assert project.ran() == ["dies", "dies", "slow", "slow"]


def test_outputs_are_put_back_after_an_attempt_that_does_not_count(project: Project) -> None:
    project.write("out.txt", "before\n")
    project.write("bin/tool", "old\n", executable=True)
    body = "echo $HOLDFAST_ATTEMPT > out.txt; rm bin/tool; echo new > bin/fresh; "
    project.plan(
        {
            "fails": {"shell": project.sh(body + "exit 1"), "produces": ["out.txt", "bin"]},
        }
    )
    failed = project.run()
    assert failed.code == 1
    assert project.read("out.txt") == "before\n"
    assert project.read("bin/tool") == "old\n"
    assert (project.root / "bin/tool").stat().st_mode & 0o777 == 0o755
    assert not project.has("bin/fresh")
    assert "put back" in failed.err

    guard = {"regex": {"pattern": "never"}}
    project.plan(
        {"refused": {"shell": "echo mine > out.txt", "produces": "out.txt", "guards": [guard]}}
    )
    refused = project.run()
    assert refused.codes["refused"] == "guard_rejected"
    assert project.read("out.txt") == "before\n"
    assert project.shown("refused@1") == b"mine\n", "what it made is kept"


def test_a_promised_file_that_is_not_made_is_a_rejection(project: Project) -> None:
    project.plan({"s": {"run": ["true"], "produces": "out.txt"}})
    run = project.run()
    assert run.codes == {"s": "guard_rejected"}
    assert "out.txt" in project.ok("logs", "s").out


def test_retry_of_a_done_step_says_that_a_new_run_makes_it_again(project: Project) -> None:
    """What the new run would touch besides is named as such, with where it can be looked at."""
    steps = {
        "a": {"shell": project.sh("date +%N")},
        "x": {"shell": project.sh(), "effects": "external"},
    }
    project.plan(steps | {"x": steps["x"] | {"needs": ["a"]}})
    project.run("--yes")
    said = project.refused(2, "retry", "a")
    assert "'a' is made again in a new run, and these steps touch the outside world: x" in said
    assert "look at 'holdfast plan --force-node a', then say --yes" in said
    project.ran()
    answer = project.ok("retry", "a", "--yes")
    assert "a new run makes 'a' again" in answer.err
    assert "a" in project.ran()
    assert "is done" in " ".join(project.ok("retry", "--help").out.split())


def test_retry_of_a_done_step_leaves_a_run_that_waits_only_after_a_yes(project: Project) -> None:
    project.plan({"a": {"shell": project.sh()}, "b": {"shell": "true", "approve": "always"}})
    assert project.run().code == 3
    assert "waits for a person; a new run takes its place" in project.refused(2, "retry", "a")
    assert "takes its place" in project.call("retry", "a", "--yes").err


def test_retry_of_a_skipped_step_names_the_failure_that_keeps_it(project: Project) -> None:
    project.plan(
        {
            "a": {"shell": "false"},
            "b": {"shell": "true", "needs": ["a"]},
            "c": {"shell": "true", "needs": ["b"]},
        }
    )
    assert project.run().code == 1
    said = project.refused(2, "retry", "b")
    assert "'b' was skipped: Dependency 'a' failed" in said
    assert "holdfast retry a" in said
    assert "holdfast retry a" in project.refused(2, "retry", "c")


@pytest.mark.parametrize(
    "words", [("resume",), ("retry", "a"), ("replay",), ("resume", "--detach")]
)
def test_nothing_is_said_of_a_run_before_it_is_known_who_holds_it(
    project: Project, words: tuple[str, ...]
) -> None:
    project.plan({"a": {"shell": project.sh(project.gate("go"))}})
    engine = project.begun_by("run", step="a")
    said = project.refused(7, *words)
    assert said.startswith(f"error[held]: line 'demo' is held by process {engine.pid} on ")
    project.open("go")
    finish(engine)


def test_a_hint_at_the_end_stands_after_what_it_is_about(project: Project) -> None:
    said = "echo 'much before'; echo 'big.bin is stored through a filter'; echo 'hint: commit it'"
    project.plan({"a": {"shell": f"({said}) >&2; false"}})
    told = project.call("run").err
    assert "its command failed: big.bin is stored through a filter; hint: commit it\n" in told


def test_a_schema_that_refers_to_itself_alone_is_at_fault(project: Project) -> None:
    project.plan({"a": {"shell": "echo '[1]'", "schema": {"$ref": "#"}}})
    assert "the schema refers to itself without end" in project.refused(2, "check")
    # Through a keyword it is found out only when something is judged.
    round_about = {"allOf": [{"$ref": "#"}]}
    project.plan({"a": {"shell": "echo '[1]'", "schema": round_about}})
    assert "the schema refers to itself without end" in project.refused(1, "run")
    tree = {"type": "array", "items": {"$ref": "#"}}
    project.plan({"a": {"shell": "echo '[[], [[]]]'", "schema": tree}})
    assert project.run().code == 0
