"""Wrong usage: one clear message with its place, nothing written, nothing guessed."""

import json

import pytest

from tests.cli.project import Project

BAD = """\
name: demo
steps:
  build:
    run: [make]
    needs: [compile]
  test:
    run: [make]
    rum: [make]
    retries: many
"""


@pytest.mark.req("R16")
def test_a_bad_plan_is_refused_with_every_place_and_nothing_is_written(project: Project) -> None:
    project.write("plan.yaml", BAD)
    for words in (("run",), ("check",), ("plan",), ("why", "build"), ("run", "--join")):
        said = project.refused(2, *words)
        assert "plan.yaml:5:13" in said
        assert "plan.yaml:8:5" in said
        assert "plan.yaml:9:14" in said
        assert "did you mean 'run'" in said
    listed = project.call("check", "--json")
    assert listed.code == 2
    assert [(p["line"], p["column"]) for p in listed.json["problems"]] == [(5, 13), (8, 5), (9, 14)]
    error = project.call("run", "--json").json["error"]
    assert [p["where"]["line"] for p in error["problems"]] == [5, 8, 9]
    assert [path.name for path in project.root.iterdir()] == ["plan.yaml"]


@pytest.mark.req("R16")
def test_a_cycle_is_refused_with_its_path(project: Project) -> None:
    needs = {"a": ["c"], "b": ["a"], "c": ["b"]}
    project.plan({name: {"run": ["true"], "needs": above} for name, above in needs.items()})
    said = project.refused(2, "run")
    assert "a" in said
    assert "→" in said or "->" in said
    assert not project.store.exists()


def test_looking_never_creates_a_store(project: Project) -> None:
    project.plan({"s": {"shell": project.sh()}})
    assert "1 step" in project.ok("check").out
    assert project.ok("plan", "--json").json["steps"]["s"]["decision"] == "run"
    assert project.why("s")["reason"]["code"] == "never_ran"
    for words in (("status",), ("show", "s"), ("trace",), ("verify",), ("resume",), ("retry", "s")):
        project.refused(2, *words)
    assert [path.name for path in project.root.iterdir()] == ["plan.yaml"]


def test_what_is_not_there_is_said_with_the_nearest_name(project: Project) -> None:
    project.plan({"build": {"shell": project.sh()}, "test": {"shell": project.sh()}})
    project.run()
    for words in (("why", "biuld"), ("retry", "biuld"), ("logs", "biuld"), ("amend", "biuld", "-")):
        said = project.refused(2, *words)
        assert "did you mean 'build'" in said
    assert "no artifact 'biuld'" in project.refused(2, "show", "biuld")
    assert "did you mean 'holdfast run'" in project.refused(2, "rum")
    assert "no plan file" in project.refused(2, "run", "other.yaml")
    assert "nobody said which model plans" in project.refused(2, "run", "make the tests pass")
    (project.root / "plan.yaml").unlink()
    assert "plan.yaml" in project.refused(2, "run")
    assert "cannot work in" in project.refused(2, "-C", "nowhere", "run")


def test_logs_say_that_their_f_does_not_name_the_plan(project: Project) -> None:
    project.plan({"build": {"shell": project.sh()}})
    hint = "hint: -f means --follow here; name the plan file with --file"
    assert hint in project.refused(2, "logs", "build", "-f", "plan.yaml")
    assert "hint: holdfast logs --help" in project.refused(2, "logs", "build", "plan.yaml")
    assert "hint: holdfast why --help" in project.refused(2, "why", "build", "x", "-f", "plan.yaml")


SECRET = "hunter2-and-more"


def test_a_secret_is_given_only_when_allowed_and_never_written_down(project: Project) -> None:
    project.plan(
        {
            "s": {
                "shell": project.sh('printf %s "$TOKEN" | wc -c'),
                "secrets": ["TOKEN"],
                "env": ["COLOUR"],
            }
        }
    )
    env = {"TOKEN": SECRET, "COLOUR": "unmistakable-red"}
    said = project.refused(2, "run", env=env)
    assert "--secret TOKEN" in said
    assert not project.store.exists()
    run = project.run("--secret", "TOKEN", env=env)
    assert run.code == 0
    assert project.shown("s").strip() == str(len(SECRET)).encode()
    other = project.run("--secret", "TOKEN", env={**env, "TOKEN": "another"})
    assert other.codes == {"s": "unchanged"}, "values of secrets are not part of the key"
    written = b"".join(p.read_bytes() for p in project.store.rglob("*") if p.is_file())
    assert SECRET.encode() not in written
    assert b"unmistakable-red" not in written, "values of declared variables enter by digest"
    assert b"TOKEN" in written


def test_a_missing_input_fails_its_step_and_says_which(project: Project) -> None:
    project.plan(
        {
            "s": {"shell": project.sh(), "inputs": ["nothing/*.txt"]},
            "t": {"shell": project.sh(), "inputs": [{"glob": "no/*", "optional": True}]},
        }
    )
    run = project.run()
    assert run.states == {"s": "failed", "t": "done"}
    assert "nothing/*.txt" in " ".join(run.because("s"))


def test_json_plans_and_other_names_work_too(project: Project) -> None:
    steps = {"s": {"shell": project.sh()}}
    project.write("plan.json", json.dumps({"steps": steps}))
    run = project.run()
    assert (run.code, run.data["plan"]["line"]) == (0, "plan")
    project.write("other.yml", json.dumps({"steps": steps}))
    assert project.run("other.yml").data["plan"]["line"] == "other"
