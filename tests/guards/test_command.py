"""The command guard: exit codes, output, and what makes it break."""

import pytest

from holdfast.guards.command import CommandGuard
from holdfast.model.artifact import Verdict
from holdfast.model.plan import Guard, Step, StepId
from holdfast.ports import Candidate
from holdfast.process.run import sweep
from tests.generators.builders import ENGINE, Project, wait
from tests.guards.builders import accepted, broken, candidate, identity, judge, rejected, tree

COMMAND = CommandGuard(ENGINE)


def sh(line: str, **fields: object) -> Guard:
    return Guard("command", ["/bin/sh", "-c", line], **fields)  # type: ignore[arg-type]  # by name


def test_exit_code_0_accepts(project: Project) -> None:
    guard = sh('test "$(cat "$HOLDFAST_ARTIFACT")" = x', name="is x")
    assert judge(project, COMMAND, guard, candidate("x")) == accepted(guard)


def test_another_code_rejects_with_the_last_8_kb_of_both_streams(project: Project) -> None:
    guard = sh("yes 123456789 | head -n 2000; echo end >&2; exit 9")
    verdict = judge(project, COMMAND, guard, candidate(""))
    assert verdict.call == "reject"
    assert verdict.feedback.endswith("123456789\nend\n")
    assert 8000 < len(verdict.feedback) <= 8192


PYTEST = "FAILED t.py::a - no\\nERROR t.py::b\\n== 1 failed, 38 passed, 1 error in 0.10s ==\\n"


@pytest.mark.req("R142")
def test_a_rejection_by_a_test_program_begins_with_what_failed(project: Project) -> None:
    guard = sh(f"printf '{PYTEST}'; yes 123456789 | head -n 2000; exit 1")
    verdict = judge(project, COMMAND, guard, candidate(""))
    first, _, rest = verdict.feedback.partition("\n\n")
    assert first == "1 failed, 1 broken of 40 tests: t.py::a, t.py::b"
    assert "FAILED" not in rest, "of the output itself the end alone is kept"
    fatal = judge(project, COMMAND, sh(f"printf '{PYTEST}'; exit 3", fatal_on=(3,)), candidate(""))
    assert (fatal.call, fatal.feedback.partition("\n\n")[0]) == ("fatal", first)


def test_a_rejection_without_output_says_its_code(project: Project) -> None:
    guard = Guard("command", "false")
    assert judge(project, COMMAND, guard, candidate("")) == rejected(
        guard, "'command' ended with exit code 1"
    )


@pytest.mark.req("R77")
@pytest.mark.parametrize("code", [3, 126])
def test_a_code_of_fatal_on_is_fatal(project: Project, code: int) -> None:
    guard = sh(f"echo never; exit {code}", fatal_on=(3, 126))
    assert judge(project, COMMAND, guard, candidate("")) == Verdict("fatal", "command", "never\n")


@pytest.mark.parametrize(
    "line, says",
    [
        ("exit 126", "'command' could not run: exit code 126"),
        ("no-such-program 2>/dev/null", "'command' could not run: exit code 127"),
        ("kill -9 $$", "'command' was ended by signal 9"),
    ],
)
def test_a_guard_that_could_not_judge_is_broken(project: Project, line: str, says: str) -> None:
    assert broken(project, COMMAND, sh(line), candidate("")) == says


def test_a_program_that_is_not_there_breaks_the_guard(project: Project) -> None:
    says = broken(project, COMMAND, Guard("command", ["no-such"], name="lint"), candidate(""))
    assert says == "'no-such' of 'lint' is not found"


def test_a_config_that_is_no_command_breaks_the_guard(project: Project) -> None:
    assert broken(project, COMMAND, Guard("command", {"a": 1}), candidate("")) == (
        "'command' needs an argv list"
    )


def test_a_timeout_breaks_the_guard_and_ends_its_processes(project: Project) -> None:
    guard = sh("setsid sleep 999 & sleep 999", timeout=0.3)
    assert (
        broken(project, COMMAND, guard, candidate("")) == "'command' gave no verdict within 0.3 s"
    )
    assert sweep(project.mark) == 0


def test_the_environment_is_exactly_this(project: Project) -> None:
    job = project.job(Step(StepId("step")), attempt=3, env={"TOKEN": "t"})
    guard = sh("env -0; exit 1")
    verdict = wait(COMMAND.judge(guard, candidate("x"), job))
    found = dict(line.split("=", 1) for line in verdict.feedback.split("\0") if line)
    artifact = found.pop("HOLDFAST_ARTIFACT")
    assert artifact.startswith(f"{job.room}/guard-")
    assert found.pop("HOLDFAST_MARK").startswith(job.mark)
    assert found == {
        "PATH": ENGINE["PATH"],
        "LANG": "C.UTF-8",
        "HOME": f"{job.room}/home",
        "TMPDIR": f"{job.room}/tmp",
        "PWD": str(project.root),
        "TOKEN": "t",
        "HOLDFAST_STEP": "step",
        "HOLDFAST_ATTEMPT": "3",
        "HOLDFAST_ROOT": str(project.root),
    }


def test_several_files_are_a_directory(project: Project) -> None:
    guard = sh('cd "$HOLDFAST_ARTIFACT"; cat a.txt b.txt; exit 1')
    verdict = judge(project, COMMAND, guard, tree(a_txt="1", b_txt="2"))
    assert verdict == rejected(guard, "12")


def test_a_file_keeps_its_name_and_a_program_can_be_run(project: Project) -> None:
    guard = sh('basename "$HOLDFAST_ARTIFACT"; "$HOLDFAST_ARTIFACT"; exit 1')
    made = Candidate("program", b"#!/bin/sh\necho ran\n")
    verdict = judge(project, COMMAND, guard, made, produces=("bin/tool.sh",))
    assert verdict == rejected(guard, "tool.sh\nran\n")


def test_a_guard_cannot_change_the_candidate_for_the_next(project: Project) -> None:
    guard = sh('cat "$HOLDFAST_ARTIFACT"; echo changed > "$HOLDFAST_ARTIFACT"; exit 1')
    made = candidate("as it was")
    for _ in range(2):
        assert judge(project, COMMAND, guard, made) == rejected(guard, "as it was")


@pytest.mark.req("D33")
@pytest.mark.parametrize("text", ["; touch MARK", "$(touch MARK)", "a\ntouch MARK", "-n"])
def test_hostile_words_stay_text(project: Project, text: str) -> None:
    guard = Guard("command", ["/bin/sh", "-c", 'printf %s "$1"; exit 1', "sh", text])
    assert judge(project, COMMAND, guard, candidate("")) == rejected(guard, text)
    assert list(project.root.iterdir()) == []


@pytest.mark.req("R4", "E2")
def test_editing_the_script_of_a_guard_changes_its_identity(project: Project) -> None:
    project.write("check.sh", "exit 0", executable=True)
    before = identity(COMMAND, ["./check.sh"], str(project.root))
    project.write("check.sh", "exit 1", executable=True)
    assert identity(COMMAND, ["./check.sh"], str(project.root)) != before
    assert identity(COMMAND, "sh check.sh", str(project.root)).keys() == {"files"}
