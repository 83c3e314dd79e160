"""A run that grows: steps added from the command line, and by its own steps."""

import json
from typing import Any

import pytest

import holdfast
from holdfast.errors import PlanError, UsageError
from holdfast.model.plan import Step, StepId
from tests.cli.project import Project, finish, finish_run
from tests.cli.test_stop import heard

Steps = dict[str, dict[str, Any]]


def fragment(project: Project, steps: Steps, name: str = "more.json") -> str:
    project.write(name, json.dumps({"steps": steps}))
    return name


def adds(project: Project, steps: Steps, name: str = "more.json", body: str = "echo found") -> str:
    """A shell line that adds steps, and then does this."""
    text = json.dumps({"steps": steps}).replace("'", "'\"'\"'")
    return project.sh(f"printf '%s' '{text}' > $HOLDFAST_ADD/{name}; {body}")


def growing(project: Project) -> None:
    """A step that adds two, one after the other, and a step beside."""
    more = {
        "lint": {"shell": project.sh("cat $HOLDFAST_INPUTS/scan"), "needs": ["scan"]},
        "unit": {"shell": project.sh(), "needs": ["lint"]},
    }
    project.plan(
        {
            "scan": {"shell": adds(project, more)},
            "beside": {"shell": project.sh(), "needs": ["scan"]},
        }
    )


def patient(project: Project) -> None:
    """A step that waits for the gate, and one after it."""
    project.plan(
        {
            "slow": {"shell": project.sh(f"{project.gate('go')}; echo slow")},
            "after": {"shell": project.sh(), "needs": ["slow"]},
        }
    )


def kinds(project: Project, run: str = "@") -> list[str]:
    return [event["event"] for event in project.events(run)]


def sound(project: Project) -> None:
    project.ok("verify")


# --- from inside a step -------------------------------------------------------------------------------


@pytest.mark.req("R32", "C24")
def test_a_step_adds_steps_and_a_later_run_has_them_without_running_it(project: Project) -> None:
    growing(project)
    first = project.run()
    assert first.code == 0
    assert first.states == dict.fromkeys(("scan", "beside", "lint", "unit"), "done")
    assert project.ran() == ["beside", "lint", "scan", "unit"]
    assert {s: o and o["step"] for s, o in first.field("added").items()} == {
        "scan": None,
        "beside": None,
        "lint": "scan",
        "unit": "scan",
    }
    again = project.run()
    assert set(again.states.values()) == {"reused"}
    assert (again.digests, again.refs) == (first.digests, first.refs)
    assert project.ran() == []
    preview = project.ok("plan", "--json").json
    assert {s: step["decision"] for s, step in preview["steps"].items()} == dict.fromkeys(
        first.states, "reuse"
    )
    assert preview["steps"]["unit"]["added_by"] == "scan"
    sound(project)


@pytest.mark.req("C24")
def test_every_change_of_the_plan_is_a_version_with_its_parent_and_its_reason(
    project: Project,
) -> None:
    growing(project)
    run = project.run()
    events = project.events()
    begun = next(event for event in events if event["event"] == "run_started")
    grown = next(event for event in events if event["event"] == "plan_extended")
    assert (grown["parent"], grown["added"], grown["step"]) == (
        begun["plan"],
        ["lint", "unit"],
        "scan",
    )
    assert run.data["plan"]["ref"] == grown["w_ref"] != begun["w_ref"]
    assert json.loads(project.shown(grown["plan"]))["steps"].keys() == run.states.keys()
    place = kinds(project).index("plan_extended")
    accepted = next(e for e in events if e["event"] == "attempt_accepted" and e["step"] == "scan")
    assert events[place - 1] == accepted, "in the same transaction, right after what caused it"
    rows = project.database().execute(
        "SELECT body FROM event WHERE kind = 'plan_versioned' ORDER BY place"
    )
    versions = [json.loads(body) for (body,) in rows]
    assert [v.get("reason", "") for v in versions] == ["", "added_by_step"]
    assert versions[1]["parent"] == versions[0]["plan"]


@pytest.mark.parametrize(
    "bad, words",
    [
        ({"scan": {"shell": "echo"}}, "another step 'scan'"),
        ({"x": {"shell": "echo", "needs": ["ghost"]}}, "'ghost', which is no step"),
        ({"x": {"shell": "echo", "nedds": []}}, "'nedds' is not a key"),
        ({"x": {"shell": "echo", "secrets": ["TOKEN"]}}, "which nobody allowed"),
        ({"x": {"shell": "echo", "effects": "external"}}, "nobody was shown it"),
        ({"x": {"shell": "echo", "produces": "b.txt"}}, "both produce 'b.txt'"),
    ],
)
def test_what_does_not_fit_rejects_the_attempt_and_is_its_feedback(
    project: Project, bad: Steps, words: str
) -> None:
    good = {"fine": {"shell": "echo fine"}}
    text = json.dumps({"steps": bad}).replace("'", "'\"'\"'")
    first = f"[ -n \"$HOLDFAST_FEEDBACK\" ] || printf '%s' '{text}' > $HOLDFAST_ADD/more.json"
    body = f"{first}; cat $HOLDFAST_FEEDBACK"
    project.plan(
        {
            "scan": {"shell": adds(project, good, body=body), "retries": 1},
            "beside": {"shell": "echo b > b.txt", "produces": "b.txt"},
        }
    )
    run = project.run()
    assert (run.code, run.states["fine"]) == (0, "done")
    assert "x" not in run.states
    feedback = json.loads(project.shown("scan"))
    assert [item["guard"] for item in feedback] == ["add"]
    assert words in feedback[0]["feedback"]
    assert "Traceback" not in run.err
    sound(project)


def test_what_is_no_fragment_rejects_the_attempt(project: Project) -> None:
    project.plan(
        {
            "a": {"shell": "echo hi > $HOLDFAST_ADD/notes.txt"},
            "b": {"shell": "mkdir $HOLDFAST_ADD/d; ln -s x $HOLDFAST_ADD/y.yaml"},
        }
    )
    run = project.run()
    assert run.states == {"a": "failed", "b": "failed"}
    said = project.ok("status").out
    assert "'notes.txt' in HOLDFAST_ADD is no fragment" in said
    assert "in HOLDFAST_ADD" in said.split("b failed")[1]


def test_an_attempt_that_does_not_count_adds_nothing(project: Project) -> None:
    more = {"x": {"shell": "echo x"}}
    project.plan(
        {
            "fails": {"shell": adds(project, more, body="exit 1")},
            "refused": {
                "shell": adds(project, more),
                "guards": [{"regex": {"pattern": "other"}}],
            },
        }
    )
    assert project.run().states == {"fails": "failed", "refused": "failed"}
    assert "plan_extended" not in kinds(project)


@pytest.mark.req("C24")
def test_steps_that_no_longer_fit_are_no_longer_reused(project: Project) -> None:
    """The adding step runs again when the file has got another step of that id, and says why."""
    growing(project)
    project.run()
    plan = json.loads(project.read("plan.yaml"))
    plan["steps"]["unit"] = {"shell": "echo mine"}
    project.write("plan.yaml", json.dumps(plan))
    assert project.ok("plan", "--json").json["steps"]["scan"]["reason"]["code"] == "additions_unfit"
    run = project.run()
    assert run.states["scan"] == "failed"
    assert "another step 'unit'" in project.ok("status").out
    plan["steps"]["unit"] = {"shell": project.sh(), "needs": ["lint"]}
    plan["steps"]["lint"] = {"shell": project.sh("cat $HOLDFAST_INPUTS/scan"), "needs": ["scan"]}
    project.write("plan.yaml", json.dumps(plan))
    assert project.run().code == 0, "the same steps may as well stand in the file"
    sound(project)


def test_an_added_step_is_explained_like_any_other(project: Project) -> None:
    growing(project)
    project.run()
    assert project.ok("explain", "lint").out.startswith("lint is reused")
    assert "neither a code nor a step" in project.refused(2, "explain", "lintel")


def test_a_person_s_version_of_the_adding_step_keeps_what_it_added(project: Project) -> None:
    growing(project)
    project.run()
    project.ok("amend", "scan", "-", stdin=b"mine\n")
    project.ran()
    run = project.run()
    assert (run.codes["scan"], run.states["lint"]) == ("amended", "done")
    assert project.ran() == ["beside", "lint", "unit"]


def test_changed_guards_of_the_adding_step_keep_what_it_added(project: Project) -> None:
    growing(project)
    project.run()
    plan = json.loads(project.read("plan.yaml"))
    plan["steps"]["scan"]["guards"] = [{"regex": {"pattern": "found"}}]
    project.write("plan.yaml", json.dumps(plan))
    project.ran()
    run = project.run()
    assert run.states["unit"] in {"done", "reused"}
    assert "scan" not in project.ran()
    assert set(project.run().states.values()) == {"reused"}


def test_files_of_added_steps_do_not_count_as_left_behind(project: Project) -> None:
    more = {"doc": {"shell": "echo doc > doc.txt", "produces": "doc.txt"}}
    project.plan({"scan": {"shell": adds(project, more)}})
    project.run()
    answer = project.call("run", "--removed", "prune")
    assert (answer.code, project.has("doc.txt")) == (0, True), answer.err
    (project.root / "doc.txt").unlink()
    project.run()
    assert project.read("doc.txt") == "doc\n", "put back like any other"


def test_an_added_step_uses_guards_and_tools_that_the_plan_did_not_have(project: Project) -> None:
    more: Steps = {
        "data": {
            "shell": "echo '{\"a\": 1}'",
            "outputs": ["a"],
            "guards": [{"regex": {"pattern": "a"}}],
            "tool_versions": {"sh": ["echo", "1"]},
        }
    }
    project.plan({"scan": {"shell": adds(project, more)}})
    assert project.run().states == {"scan": "done", "data": "done"}
    assert project.run().states == {"scan": "reused", "data": "reused"}


@pytest.mark.req("C27")
def test_what_an_added_step_changed_does_not_count_against_it_or_its_origin(
    project: Project,
) -> None:
    upper = "tr a-z A-Z < doc.txt > new && mv new doc.txt"
    more = {
        "tidy": {
            "shell": project.sh(upper),
            "inputs": "doc.txt",
            "effects": "workspace",
            "workspace": "scratch",
        }
    }
    project.plan({"scan": {"shell": adds(project, more, body="cat doc.txt"), "inputs": "doc.txt"}})
    project.write("doc.txt", "words\n")
    assert project.run().states == {"scan": "done", "tidy": "done"}
    assert project.read("doc.txt") == "WORDS\n"
    project.ran()
    outlooks = project.ok("plan", "--json").json["steps"]
    assert {item["decision"] for item in outlooks.values()} == {"reuse"}
    assert project.run().states == {"scan": "reused", "tidy": "reused"}
    assert project.ran() == []
    project.write("doc.txt", "other words\n")
    assert project.run().states == {"scan": "done", "tidy": "done"}
    assert project.read("doc.txt") == "OTHER WORDS\n"


@pytest.mark.req("C28")
@pytest.mark.parametrize(("take", "text"), [("one", "one\n"), ("two", "two\n")])
def test_a_settled_conflict_of_added_steps_is_not_asked_about_again(
    project: Project, take: str, text: str
) -> None:
    project.write("F", "old\n")
    copy = {"inputs": ["F"], "workspace": "scratch", "effects": "workspace"}
    more: Steps = {n: {"shell": f"echo {n} > F", **copy} for n in ("one", "two")}
    project.plan({"scan": {"shell": adds(project, more)}})
    assert project.run("-j", "1", "--yes").code == 3
    project.ok("resolve", "two", "--take", take)
    assert project.resume().code == 0
    for _ in range(2):
        run = project.run()
        assert (run.code, set(run.states.values())) == (0, {"reused"})
        assert project.read("F") == text


def test_a_python_step_adds_too_and_an_added_step_adds_in_its_turn(project: Project) -> None:
    inner = json.dumps({"steps": {"deep": {"shell": "echo deep"}}})
    outer = {"steps": {"mid": {"shell": f"printf '%s' '{inner}' > $HOLDFAST_ADD/a.json"}}}
    project.write(
        "makes.py",
        "import json, os, pathlib\ndef plan():\n"
        f"    pathlib.Path(os.environ['HOLDFAST_ADD'], 'p.json').write_text({json.dumps(outer)!r})\n"
        "    return 'ok'\n",
    )
    project.plan({"top": {"uses": "python", "run": "makes:plan"}})
    first = project.run()
    assert first.states == dict.fromkeys(("top", "mid", "deep"), "done")
    assert project.run().states == dict.fromkeys(("top", "mid", "deep"), "reused")
    sound(project)


def test_what_an_unselected_step_adds_is_left_out_and_can_be_selected(project: Project) -> None:
    growing(project)
    project.run()
    project.ran()
    assert project.run("-s", "lint", "--force-node", "lint").code == 0
    assert project.ran() == ["lint"]
    assert project.retry("unit").states["unit"] == "done"
    assert project.ran() == ["unit"]


# --- from the command line ------------------------------------------------------------------------------


@pytest.mark.req("R32", "C24")
def test_a_step_is_added_to_a_run_that_goes_on(project: Project) -> None:
    patient(project)
    engine = project.begun_by("run", "--json", "--poll", "0.05", step="slow")
    name = fragment(
        project, {"x": {"shell": project.sh("cat $HOLDFAST_INPUTS/slow"), "needs": ["slow"]}}
    )
    answer = project.ok("add", name, "--after", "after", "--because", "wanted", "--json").json
    assert (answer["added"], answer["state"]) == (["x"], "added")
    assert project.status().states["x"] == "pending"
    project.open("go")
    run = finish_run(engine)
    assert run.states == {"slow": "done", "after": "done", "x": "done"}
    assert project.begun() == ["slow", "after", "x"], "after the step that was named"
    assert "added by a person" in project.ok("status").out
    row = project.database().execute(
        "SELECT body FROM event WHERE kind = 'plan_versioned' ORDER BY place DESC LIMIT 1"
    )
    version = json.loads(next(iter(row))[0])
    assert version["reason"] == "added_by_person"
    assert project.shown(version["because"]) == b"wanted"
    sound(project)


@pytest.mark.req("R32", "R90")
def test_a_run_at_rest_takes_it_up_when_it_is_resumed(project: Project) -> None:
    project.plan({"a": {"shell": "echo a"}, "b": {"shell": "test -e go", "needs": ["a"]}})
    project.run()
    name = fragment(project, {"x": {"shell": "cat $HOLDFAST_INPUTS/a", "needs": ["a"]}})
    assert project.ok("add", name, "--json").json["state"] == "requested"
    assert "x" not in project.status().states
    assert "has a step 'x' already" in project.refused(2, "add", name), "it was asked for"
    project.write("go", "")
    run = project.resume()
    assert (run.code, run.states) == (0, dict.fromkeys("abx", "done"))
    assert "plan.yaml changed" not in run.err, "what was added is no edit of the file"
    assert "completed; nothing can be added" in project.refused(2, "add", name)
    sound(project)


@pytest.mark.parametrize(
    "bad, words",
    [
        ({"a": {"shell": "echo"}}, "more.json:1:12"),
        ({"x": {"shell": "echo", "needs": ["ghost"]}}, "'ghost', which is no step"),
        ({"x": {"shell": "echo", "nedds": []}}, "did you mean 'needs'"),
        ({"x": {"shell": "echo", "needs": ["b"]}}, "'b', which failed in this run"),
        ({"x": {"shell": "echo", "needs": ["c"]}}, "'c', which was skipped in this run"),
    ],
)
def test_a_bad_fragment_is_refused_and_changes_nothing(
    project: Project, bad: Steps, words: str
) -> None:
    project.plan(
        {
            "a": {"shell": "echo a"},
            "b": {"shell": "exit 1", "needs": ["a"]},
            "c": {"shell": "echo c", "needs": ["b"]},
        }
    )
    project.run()
    before = list(project.database().execute("SELECT count(*) FROM event"))
    assert words in project.refused(2, "add", fragment(project, bad))
    assert list(project.database().execute("SELECT count(*) FROM event")) == before


def test_what_the_engine_cannot_add_any_more_is_refused_by_it(project: Project) -> None:
    patient(project)
    engine = project.begun_by("run", "--json", "--poll", "0.05", step="slow")
    name = fragment(project, {"x": {"shell": "echo x", "secrets": ["TOKEN"]}})
    said = project.refused(2, "add", name)
    assert "asks for the secret 'TOKEN', which nobody allowed" in said
    project.open("go")
    run = finish_run(engine)
    assert "x" not in run.states
    assert "request_refused" in kinds(project)
    sound(project)


def test_external_effects_are_asked_for_before_they_are_added(project: Project) -> None:
    patient(project)
    engine = project.begun_by("run", "--json", "--poll", "0.05", step="slow")
    name = fragment(project, {"x": {"shell": "echo x", "effects": "external"}})
    assert "touch the outside world: x" in project.refused(2, "add", name)
    project.ok("add", name, "--yes")
    project.open("go")
    assert finish_run(engine).states["x"] == "done"


def test_steps_are_added_through_the_python_api(project: Project) -> None:
    project.plan({"a": {"shell": "echo a"}, "b": {"shell": "test -e go", "needs": ["a"]}})
    run = project.run()
    root = str(project.root)
    one = Step(StepId("x"), shell="echo x")
    holdfast.add([one], run.id, root=root, after="a", because="by hand")
    with pytest.raises(PlanError, match="has a step 'x' already"):
        holdfast.add([one], run.id, root=root)
    with pytest.raises(UsageError, match="no step 'ghost'"):
        holdfast.add([Step(StepId("y"), shell="echo")], run.id, root=root, after="ghost")
    file = project.write("y.yaml", "steps: {y: {shell: cat $HOLDFAST_INPUTS/x, needs: [x]}}\n")
    holdfast.add(str(file), run.id, root=root)
    project.write("go", "")
    assert project.resume().states == dict.fromkeys("abxy", "done")


def test_many_people_may_add_at_once(project: Project) -> None:
    patient(project)
    engine = project.begun_by("run", "--json", "--poll", "0.05", step="slow")
    names = [fragment(project, {f"x{n}": {"shell": "echo x"}}, f"x{n}.json") for n in range(4)]
    asked = [project.start("add", name, "--json") for name in (*names, names[0])]
    answers = [finish(process) for process in asked]
    assert sorted(answer.code for answer in answers) == [0, 0, 0, 0, 2], answers
    project.open("go")
    run = finish_run(engine)
    assert {f"x{n}" for n in range(4)} <= run.states.keys()
    assert run.code == 0
    sound(project)


def test_a_screen_that_looks_on_shows_what_is_added(project: Project) -> None:
    patient(project)
    engine = project.begun_by("run", "--json", "--poll", "0.05", step="slow")
    watching = project.start("attach")
    heard(watching, b"running")
    project.ok("add", fragment(project, {"x": {"shell": "echo x"}}))
    project.open("go")
    finish_run(engine)
    seen = finish(watching)
    assert seen.code == 0
    assert "added by a person: x" in seen.err
    assert "x: first time" in seen.err


def test_the_history_and_the_graph_say_where_steps_come_from(project: Project) -> None:
    growing(project)
    project.run()
    assert "added by scan: lint, unit" in project.ok("history").out
    drawn = project.ok("graph").out
    assert "unit" in drawn
    assert "(added by scan)" in drawn
    assert "lint" not in project.ok("graph", "--no-state").out
    assert ["added", "by scan"] in [list(row) for row in rows_of(project, "lint")]
    assert "added       by scan" in project.ok("why", "lint", "--run", "@").out


def rows_of(project: Project, step: str) -> list[list[str]]:
    return [
        line.split(None, 1) for line in project.ok("why", step).out.splitlines() if line.strip()
    ]


def test_what_people_were_asked_stays_asked_when_the_run_grows(project: Project) -> None:
    project.plan(
        {
            "a": {"shell": project.sh()},
            "gate": {"shell": project.sh(), "approve": "always", "needs": ["a"]},
        }
    )
    run = project.run()
    assert run.data["status"] == "waiting"
    project.ok("add", fragment(project, {"x": {"shell": project.sh(), "needs": ["a"]}}))
    assert project.resume().states == {"a": "done", "gate": "waiting", "x": "done"}
    project.ok("approve", "gate", "--yes")
    again = project.resume()
    assert (again.code, again.states["gate"]) == (0, "done"), "the yes was for this very step"
    sound(project)


# --- what a run at rest was asked for --------------------------------------------------------------------


def resting(project: Project) -> str:
    """A run that failed, and can go on when there is a file `go`; its id."""
    project.plan({"a": {"shell": "echo a"}, "b": {"shell": "test -e go", "needs": ["a"]}})
    return project.run().id


@pytest.mark.req("R32", "R90")
def test_a_secret_that_nobody_allowed_keeps_the_request_open(project: Project) -> None:
    resting(project)
    name = fragment(
        project, {"x": {"shell": 'echo "$TOKEN"', "needs": ["a"], "secrets": ["TOKEN"]}}
    )
    said = project.ok("add", name).out
    assert "asks for the secret 'TOKEN'" in said
    assert "next: holdfast resume --secret TOKEN" in said
    project.write("go", "")
    before = kinds(project)
    skip = ["skip", "b", "--because", "it is down"]
    for words in (["resume"], ["retry", "b"], ["replay"], skip):
        refused = project.refused(2, *words)
        assert "'x', which is to be added, asks for the secret 'TOKEN'" in refused
        assert "hint: --secret TOKEN" in refused
    assert kinds(project) == before, "nothing was begun, and nothing answered"
    assert "to be added: x" in project.ok("status").out
    answer = project.call("resume", "--secret", "TOKEN", "--json", env={"TOKEN": "z"})
    assert (answer.code, answer.json["gaps"]) == (0, [])
    assert answer.json["steps"]["x"]["state"] == "done"
    sound(project)


@pytest.mark.req("R32")
def test_a_request_that_was_refused_is_shown(project: Project) -> None:
    patient(project)
    engine = project.begun_by("run", "--json", "--poll", "0.05", step="slow")
    name = fragment(project, {"x": {"shell": "echo x", "secrets": ["TOKEN"]}})
    said = project.refused(2, "add", name)
    assert "holdfast stop, add it again, then holdfast resume --secret TOKEN" in said
    project.open("go")
    run = finish_run(engine)
    (refused,) = run.data["additions"]
    assert (refused["state"], refused["steps"]) == ("refused", ["x"])
    assert "which nobody allowed" in refused["said"]
    for command in ("status", "history"):
        assert "not added: x (" in project.ok(command).out
        assert "asks for the secret 'TOKEN'" in project.ok(command).out


@pytest.mark.req("R32", "R90")
def test_what_waits_to_be_added_is_listed_until_it_is_taken_up(project: Project) -> None:
    run = resting(project)
    name = fragment(project, {"x": {"shell": "echo x", "needs": ["a"]}})
    project.ok("add", name, "--because", "for the audit")
    for command in ("status", "history"):
        said = project.ok(command).out
        assert "to be added: x (" in said
        assert ": for the audit); taken up by: holdfast resume" in said
    (waiting,) = project.status().data["additions"]
    assert (waiting["state"], waiting["steps"]) == ("open", ["x"])
    assert (waiting["because"], bool(waiting["by"])) == ("for the audit", True)
    preview = project.ok("plan").out
    assert "left out: x (" in preview
    assert "'holdfast resume' before a new run, or 'holdfast add' it again" in preview
    (left,) = project.ok("plan", "--json").json["left_out"]
    assert (left["run"], left["steps"]) == (run, ["x"])
    project.write("go", "")
    resumed = project.resume()
    assert "added now: x (" in resumed.err
    assert [found["state"] for found in resumed.data["additions"]] == ["added"]
    assert "left out" not in project.ok("plan").out


@pytest.mark.req("R32")
@pytest.mark.parametrize("words", [["run"], ["run", "--key", "k"], ["retry", "a"]])
def test_a_new_run_says_what_it_leaves_out(project: Project, words: list[str]) -> None:
    resting(project)
    project.ok("add", fragment(project, {"x": {"shell": "echo x", "needs": ["a"]}}))
    project.write("go", "")
    answer = project.call(*words, "-q")
    assert (answer.code, "left out: x (" in answer.err) == (0, True), answer.err
    assert "'holdfast resume' before a new run, or 'holdfast add' it again" in answer.err
    assert "never added: x (" in project.ok("status", "@-1").out
    assert "never added: x (" in project.ok("history").out
    assert "left out" not in project.call(*words, "-q").err


@pytest.mark.req("R32", "C24")
def test_who_added_a_step_and_why_is_said_wherever_it_is_shown(project: Project) -> None:
    resting(project)
    name = fragment(project, {"x": {"shell": "echo x", "needs": ["a"]}})
    project.ok("add", name, "--because", "for the audit")
    project.write("go", "")
    origin = project.resume().field("added")["x"]
    assert (origin["because"], bool(origin["by"]), origin["step"]) == ("for the audit", True, None)
    for command in (["status"], ["history"], ["why", "x"], ["why", "x", "--run", "@"]):
        assert f"by a person ({origin['by']}: for the audit)" in project.ok(*command).out
    assert project.ok("history", "--json").json["runs"][0]["added"]["x"] == origin


@pytest.mark.req("R32")
def test_why_finds_a_step_that_a_person_added_to_an_earlier_run(project: Project) -> None:
    run = resting(project)
    project.ok("add", fragment(project, {"x": {"shell": "echo x", "needs": ["a"]}}))
    project.write("go", "")
    project.resume()
    project.run()
    told = project.why("x")
    assert (told["run"], told["decision"]) == (run, "done")
    assert "the plan has no 'x'" in told["notes"]["now"]
    assert not any("why" in command for command in told["next"])
    assert "the plan has no step 'y'" in project.refused(2, "why", "y")


def test_the_hint_about_external_effects_names_the_file_to_look_at(project: Project) -> None:
    resting(project)
    name = fragment(project, {"x": {"shell": "echo x", "effects": "external", "needs": ["a"]}})
    assert f"hint: look at {name}, then say --yes" in project.refused(2, "add", name)
