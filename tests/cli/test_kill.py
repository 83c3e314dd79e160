"""kill -9: nothing finished runs again, nothing is left running, and one engine holds a line."""

import json
import os
import re
import shutil
import signal
from pathlib import Path

import pytest

from tests.cli.project import Project, alive, finish, finish_run, kill, until


def chain(project: Project) -> None:
    """Three done, one that hangs with a child of its own, one below and one beside."""
    pids = project.folder / "pids"
    hang = f"sleep 600 & echo $! >> {pids}; echo $$ >> {pids}; {project.gate('go')}; kill $!; wait"
    project.plan(
        {
            "a": {"shell": project.sh("echo a $$")},
            "b": {"shell": project.sh("cat $HOLDFAST_INPUTS/a"), "needs": ["a"]},
            "f": {"shell": project.sh("echo file > out.txt"), "produces": "out.txt"},
            "hang": {
                "shell": project.sh(f"{hang}; cat $HOLDFAST_INPUTS/b"),
                "needs": ["b", {"step": "f", "type": "sequence"}],
                "workspace": "shared",
            },
            "end": {"shell": project.sh("cat $HOLDFAST_INPUTS/*"), "needs": ["hang", "a"]},
        }
    )


def marked(project: Project, run: str) -> list[int]:
    """Processes that carry the mark of a run in their environment."""
    found = []
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            try:
                environment = (place / "environ").read_bytes()
            except OSError:
                continue
            if run.encode() in environment and alive(int(place.name)):
                found.append(int(place.name))
    return found


@pytest.mark.req("R73", "R74", "R88")
def test_resume_after_a_kill_runs_only_what_was_not_finished(project: Project) -> None:
    chain(project)
    engine = project.begun_by("run", step="hang")
    until((project.folder / "pids").exists)
    left = project.status()
    assert left.data["status"] == "running"
    kill(engine)
    assert sorted(project.ran()) == ["a", "b", "f", "hang"]
    first = project.shown("a")
    assert "engine gone" in project.ok("status").out
    assert "gone already" in project.refused(2, "stop")
    project.open("go")
    resumed = project.resume()
    assert (resumed.code, resumed.data["status"], resumed.id) == (0, "completed", left.id)
    assert project.ran() == ["end", "hang"]
    assert resumed.field("attempts") == {"a": 1, "b": 1, "f": 1, "hang": 2, "end": 1}
    assert project.shown("end") == first + first, "the same bytes as before the kill"
    assert marked(project, left.id) == []
    assert project.call("verify").code == 0
    assert project.run().data["totals"]["reused"] == 5


@pytest.mark.req("R73", "R74")
def test_a_new_run_after_a_kill_supersedes_the_old_one_and_reuses_it(project: Project) -> None:
    chain(project)
    engine = project.begun_by("run", step="hang")
    old = project.status().id
    kill(engine)
    project.ran()
    project.open("go")
    fresh = project.run()
    assert fresh.code == 0
    assert fresh.id != old
    assert project.ran() == ["end", "hang"]
    assert fresh.states == {
        "a": "reused",
        "b": "reused",
        "f": "reused",
        "hang": "done",
        "end": "done",
    }
    assert fresh.codes["hang"] == "previous_interrupted"
    assert project.status("@-1").data["status"] == "superseded"
    assert marked(project, old) == []
    assert "superseded" in project.refused(2, "resume", old)
    assert project.call("verify").code == 0


@pytest.mark.req("R74")
def test_what_outlives_a_dead_engine_is_ended_before_the_step_runs_again(project: Project) -> None:
    """Without bubblewrap and without its watch: a process that left its group goes on."""
    tools = project.folder / "bin"
    tools.mkdir()
    for name in ("sleep", "setsid", "cat"):
        found = shutil.which(name)
        assert found is not None
        (tools / name).symlink_to(found)
    env = {"PATH": str(tools)}
    pid = project.folder / "pid"
    alone = f"setsid /bin/sh -c 'echo $$ > {pid}; exec sleep 600' >/dev/null 2>&1 &"
    body = f"[ -e {pid} ] || {{ {alone} }}; {project.gate('go')}"
    project.plan({"s": {"shell": project.sh(f"{body}; echo done")}})
    engine = project.start("run", env=env)
    until(lambda: pid.exists() and pid.read_text().strip(), "the process says who it is")
    for child in Path(f"/proc/{engine.pid}/task/{engine.pid}/children").read_text().split():
        if b"process/watch.py" in Path(f"/proc/{child}/cmdline").read_bytes():
            os.kill(int(child), signal.SIGKILL)
    kill(engine)
    left = int(pid.read_text())
    project.watch(left)
    assert alive(left), "this is the hard case"
    project.open("go")
    resumed = project.call("resume", "--json", env=env)
    assert resumed.json["status"] == "completed"
    assert resumed.err.count("unconfined") == 1
    assert not alive(left)
    accepted = [e for e in project.events() if e["event"] == "attempt_accepted"]
    assert [e["confined"] for e in accepted] == [False]


@pytest.mark.req("R74")
def test_the_processes_of_a_function_end_with_the_engine(project: Project) -> None:
    (project.gates / "go").touch()
    project.write(
        "work.py",
        "import os, pathlib, subprocess, time\n\n\ndef make(log, wait):\n"
        "    with open(log, 'a') as file:\n"
        "        file.write('s\\n')\n"
        "    if pathlib.Path(wait).exists():\n"
        "        subprocess.run(['sleep', '600'])\n"
        "    return 'made'\n",
    )
    values = {"log": str(project.log), "wait": str(project.gates / "go")}
    project.plan({"s": {"uses": "python", "run": "work:make", "with": values}})
    engine = project.begun_by("run", step="s")
    run = project.status().id
    kill(engine)
    (project.gates / "go").unlink()
    resumed = project.resume()
    assert (resumed.code, resumed.id) == (0, run)
    assert project.shown("s") == b"made"
    assert marked(project, run) == []


@pytest.mark.req("R88")
def test_a_resumed_run_goes_on_with_the_plan_it_began_with(project: Project) -> None:
    chain(project)
    kill(project.begun_by("run", step="hang"))
    project.plan({"other": {"shell": project.sh()}})
    project.open("go")
    project.ran()
    resumed = project.resume()
    assert resumed.code == 0
    assert project.ran() == ["end", "hang"]
    assert project.run().states == {"other": "done"}


def test_what_a_killed_attempt_left_is_kept_and_put_back(project: Project) -> None:
    project.write("out.txt", "before\n")
    body = f"echo half > out.txt; {project.sh(project.gate('go'))}; echo whole > out.txt"
    project.plan({"s": {"shell": body, "produces": "out.txt"}})
    kill(project.begun_by("run", step="s"))
    assert project.read("out.txt") == "half\n"
    project.open("go")
    resumed = project.resume()
    assert resumed.code == 0
    assert project.read("out.txt") == "whole\n"
    kept = re.search(r"put back out\.txt; what it left is kept as ([0-9a-f]+)", resumed.err)
    assert kept, resumed.err
    assert project.shown(kept.group(1)) == b"half\n"
    started = [e for e in project.events() if e["event"] == "attempt_started"]
    assert started[0]["before"] == started[1]["before"], "it was put back before the second try"


@pytest.mark.req("R67")
def test_a_line_that_is_held_refuses_a_second_engine_and_says_by_whom(project: Project) -> None:
    chain(project)
    engine = project.begun_by("run", "--json", step="hang")
    run = project.status().id
    for words in (("run",), ("resume",), ("resume", run)):
        said = project.refused(7, *words)
        assert str(engine.pid) in said
        assert re.search(r"since \d+ min \d+ s", said)
        assert run in said
        assert "--join" in said
    assert project.call("run", "--json").json["error"]["code"] == "held"
    project.open("go")
    assert finish_run(engine).id == run
    assert sorted(project.ran()) == ["a", "b", "end", "f", "hang"]


@pytest.mark.req("R67")
def test_two_runs_started_at_once_are_one_that_runs_and_one_that_is_refused(
    project: Project,
) -> None:
    project.plan({"s": {"shell": project.sh(project.gate("go"))}})
    engines = [project.start("run", "--json") for _ in range(3)]
    until(lambda: sum(engine.poll() is not None for engine in engines) == 2, "two give up")
    project.open("go")
    codes = sorted(finish(engine).code for engine in engines)
    assert codes == [0, 7, 7]
    assert project.ran() == ["s"]


@pytest.mark.req("R67")
def test_an_engine_that_is_taken_for_dead_still_keeps_others_out(project: Project) -> None:
    project.plan({"s": {"shell": project.sh(project.gate("go"))}})
    engine = project.begun_by("run", step="s")
    engine.send_signal(signal.SIGSTOP)  # its heart stands still
    project.database().execute("DELETE FROM holder")
    assert "locked by a process" in project.refused(7, "run", "--poll", "0.05")
    assert project.ran() == ["s"]
    kill(engine)
    project.open("go")
    assert project.run("--poll", "0.05").code == 0, "the lock ended with its process"


def test_a_store_whose_making_was_cut_off_counts_as_none(project: Project) -> None:
    project.plan({"s": {"shell": project.sh()}})
    project.store.mkdir()
    (project.store / "state.db").touch()
    assert "first time" in project.ok("plan").out
    assert project.run().code == 0
    assert project.ran() == ["s"]


@pytest.mark.req("D02")
def test_the_private_directories_of_an_ended_run_do_not_come_back_for_good(
    project: Project,
) -> None:
    """What was removed last before the power went is there again, and its run has ended."""
    project.plan({"a": {"shell": "echo a"}})
    run = json.loads(project.ok("run", "--json").out)["run"]
    room = project.store / "scratch" / run / "a.1"
    room.mkdir(parents=True)
    project.ok("run", "--force")
    assert not room.exists()
