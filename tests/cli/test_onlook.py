"""Looking on from another process: attach, status --watch, logs -f."""

import json
import re
import signal

from tests.cli.project import Project, finish, kill, until
from tests.cli.terminal import Terminal


def slow(project: Project) -> None:
    project.plan(
        {
            "a": {"shell": project.sh(f"echo begun >&2; {project.gate('one')}; echo more >&2")},
            "b": {"shell": f"{project.gate('two')}; exit 3", "needs": ["a"]},
        }
    )


def test_attach_tells_the_rest_and_ends_as_the_run_ends(project: Project) -> None:
    slow(project)
    engine = project.begun_by("run", step="a")
    onlooker = project.start("attach")
    lines = project.start("attach", "--output", "jsonl")
    assert onlooker.stderr is not None
    assert re.match(rb"r-\w{8} running \xc2\xb7 0 of 2 done", onlooker.stderr.readline())
    project.open("one")
    assert onlooker.stderr.readline().startswith("✓ a: ".encode())
    project.open("two")
    mine, theirs = finish(engine), finish(onlooker)
    assert (theirs.code, theirs.out) == (mine.code, mine.out)
    assert mine.code == 1
    *events, run = [json.loads(line) for line in finish(lines).out.splitlines()]
    assert events == project.events()
    assert run["status"] == "failed"
    ended = project.call("attach")
    assert (ended.code, ended.out, ended.err) == (mine.code, mine.out, "")


def test_attach_on_a_terminal_draws_and_leaves_the_run_alone(project: Project) -> None:
    slow(project)
    engine = project.begun_by("run", step="a")
    terminal = Terminal(project, "attach")
    terminal.read(lambda text: "begun" in text and "Ctrl-C leaves it running" in text)
    terminal.press(b"\x03")
    screen = terminal.finish()
    assert terminal.process.returncode == 130
    assert not screen.strange
    assert not any(line.startswith("────") for line in screen.text)
    assert engine.poll() is None
    ended = Terminal(project, "status", "--watch")
    ended.read(lambda text: "Ctrl-C ends the watching" in text)
    ended.signal(signal.SIGTERM)
    assert not any(line.startswith("────") for line in ended.finish().text)
    assert ended.process.returncode == 143
    project.open("one")
    project.open("two")
    assert finish(engine).code == 1


def test_attach_notices_that_the_engine_is_gone(project: Project) -> None:
    slow(project)
    engine = project.begun_by("run", step="a")
    onlooker = project.start("attach")
    assert onlooker.stderr is not None
    onlooker.stderr.readline()
    kill(engine)
    said = finish(onlooker)
    assert "running, engine gone" in said.out
    assert said.out.splitlines()[-1] == "next: holdfast resume"
    assert said.code == 130


def test_the_log_of_a_running_attempt_is_followed_to_its_end(project: Project) -> None:
    slow(project)
    engine = project.begun_by("run", step="a")
    follower = project.start("logs", "a", "-f")
    only = project.start("logs", "a", "-f", "--grep", "^mo")
    assert follower.stdout is not None
    assert follower.stdout.readline() == b"begun\n"
    now = project.call("logs", "a")
    assert now.out == "begun\n"
    assert "still runs" in now.err
    project.open("one")
    assert finish(follower).out == "more\n"
    assert finish(only).out == "more\n"
    project.open("two")
    finish(engine)
    assert project.ok("logs", "a").out == "begun\nmore\n"
    assert project.ok("logs", "a", "--grep", "more").out == "more\n"
    assert project.ok("logs", "a", "--since", "1h", "--attempt", "1").out == "begun\nmore\n"
    assert not list((project.store / "scratch").rglob("*.out"))


def test_logs_say_what_is_not_there(project: Project) -> None:
    project.plan({"a": {"shell": "echo a"}})
    project.run()
    assert "has no attempt 7" in project.refused(2, "logs", "a", "--attempt", "7")
    assert "is no span of time" in project.refused(2, "logs", "a", "--since", "soon")
    assert "is no pattern" in project.refused(2, "logs", "a", "--grep", "(")


def test_logs_name_the_artifact_that_a_command_printed(project: Project) -> None:
    project.plan({"a": {"shell": "echo a"}, "b": {"shell": "true"}})
    project.run()
    told, _, command = project.ok("logs", "a").out.strip().rpartition(": holdfast ")
    assert told == "what attempt 1 of 'a' printed is its artifact; to show it"
    assert project.ok(*command.split()).out == "a\n"
    assert project.ok("logs", "b").out == "attempt 1 of 'b' wrote nothing\n"


def test_logs_and_the_next_try_have_what_a_failed_command_printed(project: Project) -> None:
    said = "FAILED test_x: assert 1 == 2"
    line = f'test -z "$HOLDFAST_FEEDBACK" || cp "$HOLDFAST_FEEDBACK" again; echo \'{said}\'; exit 1'
    project.plan({"t": {"shell": line, "retries": 1}})
    run = project.call("run")
    assert said in run.err + run.out
    log, _, feedback = project.ok("logs", "t").out.partition("--- feedback\n")
    assert log == f"{said}\n"
    assert feedback.endswith(f"ended with exit code 1\n{said}\n")
    assert said in (project.root / "again").read_text()


def test_what_a_step_with_secrets_writes_is_shown_only_when_they_are_struck_out(
    project: Project,
) -> None:
    line = f"echo $KEY >&2; {project.sh(project.gate('go'))}"
    project.plan({"a": {"shell": line, "secrets": ["KEY"]}})
    engine = project.start("run", "--secret", "KEY", env={"KEY": "sesame-open"})
    until(lambda: project.begun() == ["a"], "it begins")
    now = project.call("logs", "a")
    assert now.out == ""
    assert "still runs" in now.err
    follower = project.start("logs", "a", "-f")
    project.open("go")
    assert finish(engine).code == 0
    assert finish(follower).out == "[secret]\n"


def test_the_log_of_a_reused_step_is_that_of_the_run_that_made_it(project: Project) -> None:
    project.plan({"a": {"shell": "echo working >&2"}})
    made = project.run()
    project.run()
    assert "working" in project.ok("logs", "a").out
    assert project.ok("logs", "a", "--json").json["run"] == made.id
