"""Command steps: the command contract, line by line, with real processes."""

import asyncio
import json
from pathlib import Path

import pytest

from holdfast.errors import AttemptError
from holdfast.generators.contract import collect
from holdfast.generators.shell import ShellGenerator
from holdfast.model.digest import Digest
from holdfast.model.plan import Step, StepId
from holdfast.model.walls import Walls
from holdfast.ports import Feedback, File, Job
from holdfast.process.run import sweep
from tests.generators.builders import (
    ENGINE,
    Project,
    given,
    given_program,
    given_tree,
    made,
    refused,
    wait,
)

SHELL = ShellGenerator(ENGINE)
HOSTILE = ["; touch MARK", "$(touch MARK)", "`touch MARK`", "a\ntouch MARK", "-rf", "* ~ $HOME '\""]


def shell(line: str, **fields: object) -> Step:
    return Step(StepId("build"), shell=line, **fields)  # type: ignore[arg-type]  # fields by name


def argv(*words: str, **fields: object) -> Step:
    return Step(StepId("build"), run=words, **fields)  # type: ignore[arg-type]  # fields by name


def environment(job: Job) -> dict[str, str]:
    content = made(SHELL, job).content
    return dict(line.split("=", 1) for line in content.decode().split("\0") if line)


def test_stdout_is_the_artifact_byte_for_byte(project: Project) -> None:
    candidate = made(SHELL, project.job(shell(r"printf 'a\000\377\n'; echo noise >&2")))
    assert (candidate.form, candidate.content) == ("bytes", b"a\0\xff\n")
    assert candidate.log == b"noise\n"


def test_the_first_attempt_has_exactly_this_environment(project: Project) -> None:
    job = project.job(argv("env", "-0"), env={"TOKEN": "t"})
    room = job.room
    found = environment(job)
    assert found.pop("HOLDFAST_MARK").startswith(job.mark)
    assert found == {
        "PATH": ENGINE["PATH"],
        "LANG": "C.UTF-8",
        "HOME": f"{room}/home",
        "TMPDIR": f"{room}/tmp",
        "PWD": str(project.root),
        "TOKEN": "t",
        "HOLDFAST_STEP": "build",
        "HOLDFAST_ATTEMPT": "1",
        "HOLDFAST_ROOT": str(project.root),
        "HOLDFAST_INPUTS": f"{room}/inputs",
        "HOLDFAST_WITH": f"{room}/with",
        "HOLDFAST_HANDOFF": f"{room}/handoff.json",
        "HOLDFAST_ADD": f"{room}/add",
        "HOLDFAST_CONTEXT": "/dev/null",
    }
    assert Path(found["HOME"]).is_dir()
    assert Path(found["TMPDIR"]).is_dir()
    assert not Path(found["HOLDFAST_HANDOFF"]).exists()


def test_a_declared_variable_goes_before_the_private_one_but_not_before_ours(
    project: Project,
) -> None:
    found = environment(
        project.job(argv("env", "-0"), env={"HOME": "/mine", "HOLDFAST_STEP": "other"})
    )
    assert (found["HOME"], found["HOLDFAST_STEP"]) == ("/mine", "build")


def test_the_command_runs_in_its_folder_with_closed_stdin(project: Project) -> None:
    assert made(SHELL, project.job(shell("pwd; cat"))).content == f"{project.root}\n".encode()


def test_every_data_need_is_an_entry_of_inputs(project: Project) -> None:
    job = project.job(
        shell(
            'cd "$HOLDFAST_INPUTS"; ls; cat a-1; ./tool; cat many/x/one many/two',
        ),
        given={
            "a-1": given("text\n"),
            "tool": given_program(b"#!/bin/sh\necho ran\n"),
            "many": given_tree({"x/one": b"1\n", "two": b"2\n"}),
        },
    )
    assert made(SHELL, job).content == b"a-1\nmany\ntool\ntext\nran\n1\n2\n"


def test_every_value_is_a_file_text_as_it_is_and_the_rest_as_json(project: Project) -> None:
    step = shell(
        'cd "$HOLDFAST_WITH"; for f in *; do printf "%s<" "$f"; cat "$f"; echo ">"; done',
        values={"text": "a b", "flag": True, "list": [1, {"b": 1, "a": "ü"}]},
    )
    lines = made(SHELL, project.job(step)).content.decode().splitlines()
    assert lines == ["flag<true>", 'list<[1, {"a": "ü", "b": 1}]>', "text<a b>"]


def test_a_name_that_would_leave_the_folder_becomes_a_harmless_one(project: Project) -> None:
    step = shell('ls -A "$HOLDFAST_WITH"', values={"../../x": "1", "..": "2", "a%b": "3"})
    assert made(SHELL, project.job(step)).content == b"%2E%2E\n..%2F..%2Fx\na%25b\n"


@pytest.mark.req("R77")
def test_the_second_attempt_reads_the_feedback_of_the_first(project: Project) -> None:
    job = project.job(
        shell('cat "$HOLDFAST_FEEDBACK"; echo "$HOLDFAST_ATTEMPT"'),
        attempt=2,
        feedback=(Feedback(Digest("d1"), "lint", "line 3 is ü"), Feedback(None, "", "exit 1")),
    )
    content, number = made(SHELL, job).content.decode().rsplit("]", 1)
    assert number == "2\n"
    assert json.loads(f"{content}]") == [
        {"digest": "d1", "guard": "lint", "feedback": "line 3 is ü"},
        {"digest": None, "guard": "", "feedback": "exit 1"},
    ]


def test_a_text_prompt_is_in_a_file(project: Project) -> None:
    step = shell('cat "$HOLDFAST_PROMPT"', prompt="do $(it)\n")
    assert made(SHELL, project.job(step)).content == b"do $(it)\n"


def test_a_prompt_in_parts_is_rendered_in_order_with_wrapped_feedback(project: Project) -> None:
    prompt = {
        "task": "write",
        "role": "you are",
        "constraints": "short",
        "feedback_wrapper": "It was: {feedback}!",
    }
    step = shell('cat "$HOLDFAST_PROMPT"', prompt=prompt)
    first = made(SHELL, project.job(step)).content.decode()
    assert first == "# ROLE\nyou are\n\n# CONSTRAINTS\nshort\n\n# TASK\nwrite\n"
    again = project.job(step, attempt=2, feedback=(Feedback(None, "g", "wrong {x}"),))
    assert made(SHELL, again).content.decode() == (
        "# ROLE\nyou are\n\n# CONSTRAINTS\nshort\n\n# HISTORY\nIt was: wrong {x}!\n\n# TASK\nwrite\n"
    )


@pytest.mark.req("D33")
@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_text(project: Project, text: str) -> None:
    step = argv(
        "/bin/sh",
        "-c",
        'printf %s "$1"; printf %s "$WORD"; cat "$HOLDFAST_WITH/v" "$HOLDFAST_INPUTS/need"',
        "sh",
        text,
        values={"v": text},
    )
    job = project.job(step, env={"WORD": text}, given={"need": given(text)})
    assert made(SHELL, job).content.decode() == text * 4
    assert list(project.root.iterdir()) == []


@pytest.mark.req("D33")
@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_argv_words_reach_the_program_as_they_are(project: Project, text: str) -> None:
    project.write("show", '#!/bin/sh\nprintf %s "$1"\n', executable=True)
    assert made(SHELL, project.job(argv("./show", text))).content.decode() == text
    assert [path.name for path in project.root.iterdir()] == ["show"]


def test_an_exit_code_fails_the_attempt_with_the_end_of_stderr(project: Project) -> None:
    line = (
        "i=0; while [ $i -lt 2000 ]; do echo 123456789 >&2; i=$((i+1)); done; echo end >&2; exit 3"
    )
    error = refused(SHELL, project.job(shell(line)))
    assert error.reason == "command_failed"
    first, _, rest = error.message.partition("\n")
    assert first.endswith("ended with exit code 3")
    assert rest.endswith("\n123456789\nend")
    assert 8000 < len(rest) <= 8192
    assert len(error.log) == 20004


@pytest.mark.parametrize("produces", [(), ("made",)])
def test_a_failed_attempt_keeps_both_streams_whatever_it_makes(
    project: Project, produces: tuple[str, ...]
) -> None:
    line = "echo 'FAILED test_x: assert 1 == 2'; echo hint >&2; exit 1"
    error = refused(SHELL, project.job(shell(line, produces=produces)))
    assert error.message == f"'{line}' ended with exit code 1\nhint"
    assert sorted(error.log.splitlines()) == [b"FAILED test_x: assert 1 == 2", b"hint"]


@pytest.mark.parametrize("stderr", ["", "echo ' ' >&2; "])
def test_where_stderr_is_blank_the_feedback_is_the_end_of_stdout(
    project: Project, stderr: str
) -> None:
    line = f"{stderr}echo 'FAILED test_x: assert 1 == 2'; exit 1"
    error = refused(SHELL, project.job(shell(line)))
    assert error.message == (f"'{line}' ended with exit code 1\nFAILED test_x: assert 1 == 2")


def test_a_fragment_that_cannot_be_read_leaves_what_was_printed_in_the_log(
    project: Project,
) -> None:
    line = 'echo said; mkdir -p "$HOLDFAST_ADD"; ln -s /etc/passwd "$HOLDFAST_ADD/f.yaml"'
    assert refused(SHELL, project.job(shell(line))).log == b"said\n"


@pytest.mark.parametrize(
    "name, says",
    [
        ("no-such-program", "'no-such-program' was not found on PATH"),
        ("./missing", "'./missing' was not found"),
        ("./plain", "'./plain' cannot be executed"),
    ],
)
def test_a_program_that_cannot_start_is_said_clearly(
    project: Project, name: str, says: str
) -> None:
    project.write("plain", "text")
    error = refused(SHELL, project.job(argv(name)))
    assert (error.reason, error.message) == ("command_failed", says)


def test_a_null_character_is_refused_as_a_failed_attempt(project: Project) -> None:
    assert refused(SHELL, project.job(argv("echo", "a\0b"))).reason == "command_failed"


def test_death_by_a_signal_is_a_lost_attempt(project: Project) -> None:
    error = refused(SHELL, project.job(shell("kill -KILL $$")))
    assert (error.reason, error.message) == (
        "lost",
        "'kill -KILL $$' was ended by signal 9",
    )


def test_a_timeout_ends_the_whole_tree(project: Project) -> None:
    job = project.job(shell("setsid sleep 999 & (sleep 999 &); sleep 999", timeout=0.3))
    assert refused(SHELL, job).reason == "timed_out"
    assert sweep(job.mark) == 0


def test_a_cancelled_attempt_leaves_no_process(project: Project) -> None:
    async def cancel() -> Job:
        ready = asyncio.Event()
        job = project.job(
            shell("setsid sleep 999 & echo ready; sleep 999"), on_output=lambda *_: ready.set()
        )
        task = asyncio.create_task(SHELL.generate(job))
        await ready.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return job

    assert sweep(wait(cancel()).mark) == 0


def test_one_produced_file_is_its_bytes_and_stdout_is_the_log(project: Project) -> None:
    step = shell("mkdir out; printf x > out/f; echo said; echo late >&2", produces=("out/f",))
    heard: list[tuple[str, bytes]] = []
    job = project.job(step, on_output=lambda stream, chunk: heard.append((stream, chunk)))
    candidate = made(SHELL, job)
    assert (candidate.form, candidate.content, candidate.files) == ("bytes", b"x", ())
    assert sorted(candidate.log.splitlines()) == [b"late", b"said"]
    assert sorted(heard) == [("stderr", b"late\n"), ("stdout", b"said\n")]


def test_one_executable_file_is_a_program(project: Project) -> None:
    candidate = made(SHELL, project.job(shell("echo x > p; chmod +x p", produces=("./p",))))
    assert (candidate.form, candidate.content) == ("program", b"x\n")


def test_several_files_or_a_directory_are_a_sorted_tree(project: Project) -> None:
    step = shell(
        "mkdir -p d/e; printf 2 > d/e/f; printf 1 > d/b; chmod +x d/b; printf 3 > a",
        produces=("d/", "a"),
    )
    candidate = made(SHELL, project.job(step))
    assert (candidate.form, candidate.content) == ("tree", b"")
    assert candidate.files == (
        File("a", b"3"),
        File("d/b", b"1", executable=True),
        File("d/e/f", b"2"),
    )


def test_a_directory_of_one_file_is_still_a_tree(project: Project) -> None:
    candidate = made(SHELL, project.job(shell("mkdir d; printf 1 > d/x", produces=("d",))))
    assert (candidate.form, candidate.files) == ("tree", (File("d/x", b"1"),))


@pytest.mark.parametrize(
    "line, says",
    [
        ("true", "the step made no file at 'a', 'b'"),
        ("touch a", "the step made no file at 'b'"),
        ("touch a; mkdir b", "the step made no file at 'b'"),
        ("touch a; ln -s /etc/passwd b", '"b" is a symbolic link'),
        ("touch a; mkdir b; ln -s .. b/up", '"b/up" is a symbolic link'),
        ("touch a; mkfifo b", '"b" is not a regular file'),
    ],
)
def test_what_is_promised_and_not_made_is_a_rejection(
    project: Project, line: str, says: str
) -> None:
    error = refused(SHELL, project.job(shell(f"echo log; {line}", produces=("a", "b"))))
    assert (error.reason, error.message, error.log) == ("guard_rejected", says, b"log\n")


def identity(project: Project, step: Step) -> dict[str, object]:
    return dict(SHELL.identity(step, str(project.root)))


@pytest.mark.req("E2")
def test_editing_a_script_that_argv_names_changes_the_identity(project: Project) -> None:
    project.write("do.sh", "echo 1", executable=True)
    step = argv("./do.sh", "--flag")
    before = identity(project, step)
    assert list(before["files"]) == ["do.sh"]  # type: ignore[call-overload]  # a mapping
    project.write("do.sh", "echo 2", executable=True)
    edited = identity(project, step)
    project.write("do.sh", "echo 2")
    assert len({json.dumps(one) for one in (before, edited, identity(project, step))}) == 3


def test_only_regular_files_inside_the_project_count(project: Project, tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("x")
    (project.root / "link").symlink_to(tmp_path / "outside")
    (project.root / "folder").mkdir()
    inside = project.write("in/file", "x")
    step = argv(
        "cat", "../outside", str(tmp_path / "outside"), "link", "folder", str(inside), "", "."
    )
    assert list(SHELL.identity(step, str(project.root))["files"]) == ["in/file"]  # type: ignore[arg-type]  # a mapping


def test_what_the_step_makes_is_no_part_of_its_identity(project: Project) -> None:
    project.write("out/made", "x")
    project.write("also", "x")
    step = argv("tool", "out/made", "also", produces=("out", "./also"))
    assert identity(project, step) == {}


def test_a_shell_line_names_files_too(project: Project) -> None:
    project.write("a.sh", "x")
    project.write("b.txt", "x")
    found = identity(project, shell("sh ./a.sh<b.txt;echo 'it"))
    assert found == {}, "an unbalanced quote hides the words"
    files = identity(project, shell("sh ./a.sh<b.txt; echo 'it'"))["files"]
    assert list(files) == ["a.sh", "b.txt"]  # type: ignore[call-overload]  # a mapping


def test_an_unbalanced_line_is_split_at_blanks(project: Project) -> None:
    project.write("a.sh", "x")
    assert list(identity(project, shell("sh a.sh 'it"))["files"]) == ["a.sh"]  # type: ignore[call-overload]  # a mapping


def test_files_above_the_limit_are_a_rejection(project: Project) -> None:
    project.write("a", "123")
    project.write("b", "45")
    assert collect(str(project.root), ("a", "b"), Walls(artifact=5)).form == "tree"
    with pytest.raises(AttemptError, match="more than 4 bytes") as caught:
        collect(str(project.root), ("a", "b"), Walls(artifact=4))
    assert caught.value.reason == "guard_rejected"
