"""history and ls: what there was, newest first; what there is, one a line."""

import pytest

from holdfast.model.event import Options
from holdfast.model.plan import StepId
from tests.cli.here import run_here
from tests.cli.project import Project, kill


def test_runs_are_told_newest_first(project: Project) -> None:
    project.plan({"a": {"shell": project.sh()}, "b": {"shell": project.sh("exit 3")}})
    first = run_here(project)
    project.plan({"a": {"shell": project.sh()}, "b": {"shell": project.sh()}})
    second = run_here(project, Options(force_steps=(StepId("a"),)))
    told = project.ok("history", "--json").json
    assert [item["run"] for item in told["runs"]] == [second.run, first.run]
    newest, oldest = told["runs"]
    assert (newest["status"], newest["steps"], newest["done"]) == ("completed", 2, 2)
    assert newest["asked"] == "run --force-node a"
    assert newest["previous"] == first.run
    assert oldest["status"] == "superseded"
    assert oldest["failure"] == "b: its command failed"
    only = project.ok("history", "-n", "1", "--json").json
    assert [item["run"] for item in only["runs"]] == [second.run]
    assert only["known"] == 2


def test_failed_and_recent_ones_are_found(project: Project) -> None:
    project.plan({"a": {"shell": project.sh("exit 3")}})
    run_here(project)
    failed = project.ok("history", "--failed", "--since", "1h", "--json").json["runs"]
    assert [item["status"] for item in failed] == ["failed"]
    assert project.ok("history", "--since", "0s", "--json").json["runs"] == []
    assert "no run fits" in project.ok("history", "--since", "0s").out
    assert "is not an age" in project.refused(2, "history", "--since", "yesterday")


def test_a_run_whose_engine_died_is_told_so(project: Project) -> None:
    project.plan({"a": {"shell": project.sh(project.gate("never"))}})
    kill(project.begun_by("run", step="a"))
    (run,) = project.ok("history", "--json").json["runs"]
    assert run["status"] == "interrupted"


def test_a_run_took_the_time_of_all_its_starts_wherever_that_is_told(project: Project) -> None:
    project.plan({"a": {"shell": project.sh("test -e fixed")}})
    assert project.run().code == 1
    first = project.status().data["totals"]["duration_ms"]
    project.write("fixed", "")
    project.resume()
    took = project.status().data["totals"]["duration_ms"]
    (run,) = project.ok("history", "--json").json["runs"]
    assert run["duration_ms"] == took > first
    project.ok("ci", "report", "-o", "report")
    assert f'time="{took / 1000:.3f}"' in project.read("report/junit.xml")


def test_lines_are_told_apart(project: Project) -> None:
    project.plan({"a": {"shell": project.sh()}})
    run_here(project)
    project.plan({"a": {"shell": project.sh()}}, name="other")
    run_here(project)
    assert len(project.ok("history", "--json").json["runs"]) == 1
    assert len(project.ok("history", "--all", "--json").json["runs"]) == 2


def test_steps_are_listed_one_a_line(project: Project) -> None:
    project.plan(
        {
            "fetch": {"shell": project.sh()},
            "build": {"shell": "echo > out.txt", "needs": ["fetch"], "produces": ["out.txt"]},
        }
    )
    assert project.ok("ls").out == "fetch\nbuild\n"
    assert project.ok("ls", "--paths").out == "out.txt\n"
    state = run_here(project)
    keys = dict(line.split() for line in project.ok("ls", "--keys").out.splitlines())
    assert keys == {step: found.config_ref for step, found in state.steps.items()}
    told = project.ok("ls", "--output-format", "json").json["steps"]
    assert [step["digest"] for step in told] == [s.digest for s in state.steps.values()]
    assert project.ok("ls", "--runs").out == f"{state.run}\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell_is_printed(project: Project, shell: str) -> None:
    answer = project.ok("completion", shell)
    assert f"_HOLDFAST_COMPLETE={shell}_complete" in answer.out
    assert "add this line" in answer.err


def test_steps_and_runs_are_completed(project: Project) -> None:
    project.plan({"fetch": {"shell": project.sh()}, "build": {"shell": project.sh()}})
    run = run_here(project).run

    def completed(words: str) -> list[str]:
        env = {"_HOLDFAST_COMPLETE": "bash_complete", "COMP_WORDS": words}
        count = str(len(words.split(" ")) - 1)
        answer = project.call(env={**env, "COMP_CWORD": count})
        assert answer.err == ""
        return [line.partition(",")[2] for line in answer.out.splitlines() if line]

    assert completed("holdfast why ") == ["fetch", "build"]
    assert completed("holdfast logs f") == ["fetch"]
    assert completed("holdfast status r-") == [run]
    assert "--failed" in completed("holdfast history --")
    (project.root / "plan.yaml").write_text("steps: [")
    assert completed("holdfast why ") == []
