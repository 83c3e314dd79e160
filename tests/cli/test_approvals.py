"""Steps that wait for people: before an attempt, after it, and in its place."""

import json
import os
import pwd
from typing import Any

import pytest

from tests.cli.project import Project, finish, finish_run, kill, until

ALWAYS = {"approve": "always"}


def gated(project: Project, **deploy: Any) -> None:
    project.plan(
        {
            "build": {"shell": project.sh("cat src.txt"), "inputs": "src.txt"},
            "deploy": {
                "shell": project.sh("echo deployed"),
                "needs": [{"step": "build", "type": "approval", "from": "lead"}],
                **deploy,
            },
            "tell": {"shell": project.sh(), "needs": "deploy"},
        }
    )
    project.write("src.txt", "1")


def people(project: Project, text: str) -> None:
    folder = project.home / ".config/holdfast"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.toml").write_text(text)


def listed(project: Project, *words: str) -> list[Any]:
    found: list[Any] = project.ok("approvals", *words, "--json").json["approvals"]
    return found


def deciding(project: Project, *words: str) -> Any:
    (made,) = project.ok(*words, "--json").json["approvals"]
    return made


@pytest.mark.req("R29", "R173", "C20")
def test_an_approval_edge_waits_for_completion_and_for_a_person(project: Project) -> None:
    gated(project, effects="external")
    run = project.run()
    assert run.code == 3
    assert run.states == {"build": "done", "deploy": "waiting", "tell": "pending"}
    (waiting,) = run.data["waiting"]
    assert waiting["step"] == "deploy"
    assert waiting["from"] == "lead"
    (asked,) = listed(project)
    assert (asked["approval"], asked["subject"]) == (waiting["approval"], waiting["subject"])
    assert asked["state"] == "open"
    assert asked["gate"] == "edge"
    assert asked["blocks"] == ["tell"]
    assert asked["covers"]["shell"].endswith("echo deployed")
    assert asked["covers"]["artifact"] == run.digests["build"]
    assert project.ran() == ["build"]
    made = deciding(project, "approve", "deploy", "--yes", "--because", "fine")
    assert made["decision"]["because"] == "fine"
    assert made["decision"]["terminal"] is False
    assert made["decision"]["names"] == ["lead"], "nobody holds the name, so both are recorded"
    assert made["decision"]["by"] not in {"", "lead"}
    run = project.resume()
    assert run.code == 0
    assert run.codes["deploy"] == "never_ran"
    assert project.ran() == ["deploy", "tell"]
    assert listed(project) == []
    assert [item["state"] for item in listed(project, "--all")] == ["used"]
    assert project.run().code == 0, "what stands is reused, and nobody is asked"
    project.ok("verify")


@pytest.mark.req("R27")
def test_a_data_edge_starts_only_when_the_named_output_exists(project: Project) -> None:
    reads = {"shell": project.sh("cat $HOLDFAST_INPUTS/*")}
    project.plan(
        {
            "text": {"shell": "echo plain text"},
            "json": {"shell": "cat data.json", "inputs": "data.json"},
            "files": {"shell": "echo '{\"a\": 1}' > a; echo b > b", "produces": ["a", "b"]},
            "good": {**reads, "needs": [{"step": "json", "key": "a"}]},
            "bad": {**reads, "needs": [{"step": "json", "key": "b"}]},
            "none": {**reads, "needs": [{"step": "text", "key": "a"}]},
            "tree": {**reads, "needs": [{"step": "files", "key": "a"}]},
            "below": {**reads, "needs": "bad"},
        }
    )
    project.write("data.json", '{"a": null}')
    run = project.run()
    assert run.code == 1
    assert project.ran() == ["good"], "a key that is there may hold nothing"
    assert {s: run.states[s] for s in ("good", "bad", "none", "tree", "below")} == {
        "good": "done",
        "bad": "failed",
        "none": "failed",
        "tree": "failed",
        "below": "skipped",
    }
    assert run.codes["bad"] == "key_missing"
    assert run.because("bad") == ["'b' of json"]
    assert run.field("attempts")["bad"] == 0
    steps = project.ok("plan", "--json").json["steps"]
    assert steps["bad"]["decision"] == "wait"
    assert "'b' of json" in steps["bad"]["reason"]["text"]
    project.write("data.json", '{"a": 1, "b": 2}')
    run = project.run()
    assert run.states["bad"] == run.states["below"] == "done"


@pytest.mark.req("R28")
def test_a_sequence_edge_waits_for_completion_whatever_is_delivered(project: Project) -> None:
    project.plan(
        {
            "first": {"shell": project.sh("true")},
            "then": {
                "shell": project.sh("ls $HOLDFAST_INPUTS"),
                "needs": [{"step": "first", "type": "sequence"}],
            },
        }
    )
    assert project.run().code == 0
    assert project.begun() == ["first", "then"]
    assert project.shown("then") == b"", "nothing is handed over"


@pytest.mark.req("R173")
def test_a_change_of_anything_covered_asks_again(project: Project) -> None:
    gate: dict[str, Any] = {
        "shell": project.sh("cat run.txt"),
        "inputs": "run.txt",
        "env": ["ONE"],
        "needs": ["above"],
        "approve": "on_change",
    }
    steps = {"above": {"shell": "cat above.txt", "inputs": "above.txt"}, "gate": gate}
    subjects: set[str] = set()

    def asks_anew(change: str) -> None:
        project.plan(steps)
        run = project.run("--force")
        assert (run.code, run.states["gate"]) == (3, "waiting"), change
        assert "gate" not in project.ran(), change
        (asked,) = listed(project)
        assert asked["subject"] not in subjects, change
        subjects.add(asked["subject"])
        project.ok("approve", "gate", "--yes")
        assert project.resume().code == 0, change
        project.ran()

    project.write("above.txt", "1")
    project.write("run.txt", "1")
    asks_anew("never asked")
    assert project.run("--force").code == 0, "the same content was approved before"
    assert project.ran() == ["gate"]
    project.write("run.txt", "2")
    asks_anew("a file")
    project.write("above.txt", "2")
    asks_anew("what it needs")
    gate["shell"] = project.sh("cat  run.txt")
    asks_anew("the command")
    gate["env"] = ["TWO"]
    asks_anew("the name of a variable")
    steps["other"] = {"shell": "true"}
    asks_anew("the structure of the plan")
    project.ok("verify")


@pytest.mark.req("R173")
def test_an_open_question_is_about_what_is_there_when_the_run_goes_on(project: Project) -> None:
    gated(project, inputs="live.txt")
    project.write("live.txt", "1")
    project.run()
    (before,) = listed(project)
    project.write("live.txt", "2")
    run = project.resume()
    (now,) = listed(project)
    assert run.data["waiting"][0]["subject"] == now["subject"] != before["subject"]
    every = {item["approval"]: item["state"] for item in listed(project, "--all")}
    assert every == {before["approval"]: "abandoned", now["approval"]: "open"}
    assert "asks about something else now" in project.refused(
        2, "approve", before["approval"], "--yes"
    )


@pytest.mark.req("R173")
def test_a_yes_for_one_attempt_covers_one_attempt(project: Project) -> None:
    project.plan({"deploy": {"shell": project.sh("test -e ok"), "retries": 1, **ALWAYS}})
    project.run()
    project.ok("approve", "deploy", "--yes")
    run = project.resume()
    assert run.states == {"deploy": "waiting"}, "the second attempt needs another yes"
    assert project.ran() == ["deploy"]
    project.ok("approve", "deploy", "--yes", "--scope", "run")
    assert project.resume().code == 1
    assert project.ran() == ["deploy"]
    assert project.retry("deploy").code == 1, "the same run goes on under the same yes"
    assert project.ran() == ["deploy", "deploy"]
    project.write("ok", "")
    assert project.run("--yes").code == 3, "another run is not covered"
    states = [item["state"] for item in listed(project, "--all")]
    assert states == ["used", "approved", "open"]
    project.ok("verify")


@pytest.mark.req("R173")
def test_what_is_to_be_asked_always_is_never_covered_by_content(project: Project) -> None:
    project.plan({"deploy": {"shell": project.sh(), **ALWAYS}})
    project.run()
    said = project.refused(2, "approve", "deploy", "--yes", "--scope", "content")
    assert "each time" in said
    assert "--scope once or run" in said
    assert listed(project)[0]["state"] == "open", "nothing was recorded"
    project.ok("approve", "deploy", "--yes")
    assert project.resume().code == 0
    assert project.run("--force").code == 3


@pytest.mark.req("R173")
def test_a_yes_may_end_and_may_be_taken_back(project: Project) -> None:
    project.plan({"deploy": {"shell": project.sh(), "approve": "on_change"}})
    project.run()
    assert "not a duration" in project.refused(2, "approve", "deploy", "--yes", "--until", "soon")
    made = deciding(project, "approve", "deploy", "--yes", "--until", "1h")
    assert made["decision"]["until"] > made["decision"]["at"]
    assert made["decision"]["scope"] == "content"
    taken = deciding(project, "revoke", made["approval"], "--because", "by mistake")
    assert taken["state"] == "revoked"
    assert "no yes to take back" in project.refused(2, "revoke", made["approval"])
    assert project.resume().code == 3, "it asks anew"
    (asked,) = listed(project)
    assert asked["approval"] != made["approval"]
    assert "not decided yet" in project.refused(2, "revoke", asked["approval"])
    project.ok("approve", "deploy", "--yes", "--until", "0.001s")
    until(lambda: listed(project, "--all")[1]["state"] == "expired", "the yes ends")
    assert project.resume().code == 3
    assert project.ran() == []
    project.ok("approve", "deploy", "--yes")
    assert project.resume().code == 0
    project.ok("verify")


@pytest.mark.req("R173", "R92")
def test_a_no_fails_the_step_with_the_words_of_the_person(project: Project) -> None:
    gated(project)
    project.run()
    assert "needs a reason" in project.refused(2, "reject", "deploy", "--because", " ")
    made = deciding(project, "reject", "deploy", "--because", "the release is frozen")
    assert made["state"] == "rejected"
    answer = project.call("resume")
    assert answer.code == 1
    assert "a person rejected it" in answer.out
    assert "the release is frozen" in answer.out
    assert "already" in project.refused(2, "approve", made["approval"], "--yes")
    run = project.resume()
    assert run.states["deploy"] == "waiting", "tried again, it asks again"
    assert project.ran() == ["build"]


@pytest.mark.req("R173")
def test_over_the_budget_a_person_is_asked(project: Project) -> None:
    step = {"shell": project.sh("test -e ok"), "retries": 4, "approve": "over_budget"}
    project.plan({"try": {**step, "budget": {"attempts": 2}}})
    assert project.run().code == 3
    assert project.ran() == ["try", "try"]
    (asked,) = listed(project)
    assert asked["gate"] == "budget"
    assert asked["covers"]["attempts"] == 2
    project.ok("approve", "try", "--yes")
    assert project.resume().code == 3
    assert project.ran() == ["try", "try"], "a yes is for as many attempts again"
    project.ok("verify")


@pytest.mark.req("R173")
def test_only_who_holds_the_name_may_answer(project: Project) -> None:
    gated(project)
    assert "P905" in project.ok("check").err
    people(project, '[people]\nlead = ["somebody-else"]\n')
    assert "P905" not in project.ok("check").err
    project.run()
    for words in (("approve", "deploy", "--yes"), ("reject", "deploy", "--because", "no")):
        said = project.refused(2, *words)
        assert "does not hold that name" in said
        assert "somebody-else" in said
    (asked,) = listed(project)
    assert asked["state"] == "open"
    people(project, f'[people]\nlead = ["somebody-else", "{_user()}"]\n')
    made = deciding(project, "approve", "deploy", "--yes")
    assert (made["decision"]["by"], made["decision"]["names"]) == (_user(), ["lead"])
    people(project, '[people]\nlead = "x"\nother = 3\n')
    assert "people.other" in project.refused(2, "approve", "deploy", "--yes")


@pytest.mark.req("R173")
def test_nothing_is_decided_if_one_of_the_questions_is_somebody_else_s(project: Project) -> None:
    needs = [{"step": "build", "type": "approval", "from": "lead"}]
    ship = {"shell": project.sh(), "needs": needs, "approve": "on_change"}
    project.plan({"build": {"shell": project.sh()}, "ship": ship})
    people(project, '[people]\nlead = ["somebody-else"]\n')
    assert project.run().code == 3
    project.refused(2, "approve", "ship", "--yes")
    asked = project.ok("approvals", "--all", "--json").json["approvals"]
    assert [item["state"] for item in asked] == ["open", "open"]


def _user() -> str:
    return pwd.getpwuid(os.getuid()).pw_name


@pytest.mark.req("R92", "R173")
def test_without_a_terminal_a_yes_has_to_be_said(project: Project) -> None:
    gated(project)
    project.run()
    answer = project.call("approve", "deploy")
    assert answer.code == 2
    assert "deploy waits for an approval from lead after build" in answer.out
    assert "nobody is there to ask" in answer.err
    assert listed(project)[0]["state"] == "open"
    assert "no terminal" in project.refused(2, "run", "--approve", "ask", "--yes")
    assert "contradict" in project.refused(2, "approve", "deploy", "--all", "--yes")
    assert "nothing called" in project.refused(2, "approve", "deplyo", "--yes")


@pytest.mark.req("R29", "R173")
def test_a_run_that_stays_goes_on_when_somebody_elsewhere_decides(project: Project) -> None:
    gated(project)
    engine = project.start("run", "--wait", "--json", "--poll", "0.05")
    until(lambda: project.store.exists() and _waiting(project), "it waits")
    assert project.status().data["status"] == "running"
    said = project.ok("approve", "deploy", "--yes").out
    assert "goes on by itself" in said
    run = finish_run(engine)
    assert run.code == 0
    assert "waiting for a person: deploy" in run.err
    assert project.ran() == ["build", "deploy", "tell"]


def _waiting(project: Project) -> bool:
    answer = project.call("approvals", "--json")
    return answer.code == 0 and len(answer.json["approvals"]) == 1


@pytest.mark.req("R173")
def test_a_policy_decides_what_its_rules_fit_and_leaves_the_rest(project: Project) -> None:
    project.plan(
        {
            "lint": {"shell": project.sh(), **ALWAYS},
            "deploy": {"shell": project.sh(), "effects": "external", **ALWAYS},
            "drop": {"shell": project.sh(), **ALWAYS},
        }
    )
    assert "no rule" in project.refused(2, "run", "--approve", "policy")
    people(
        project,
        """
[[approvals]]
step = "drop"
decide = "reject"
because = "never here"

[[approvals]]
line = "demo"
effects = "none"
scope = "run"
because = "nothing outside is touched"
""",
    )
    run = project.run("--approve", "policy")
    assert run.states == {"lint": "done", "deploy": "waiting", "drop": "failed"}
    assert project.ran() == ["lint"]
    assert run.codes["drop"] == "rejected_by_person"
    assert run.because("drop")[0].startswith("a rule of ")
    lint = next(item for item in listed(project, "--all") if item["step"] == "lint")
    assert lint["decision"]["terminal"] is False
    assert json.loads(lint["decision"]["rule"]) == {
        "line": "demo",
        "effects": "none",
        "scope": "run",
        "because": "nothing outside is touched",
        "decide": "approve",
    }
    assert "by policy" in project.ok("approvals", "--all").out
    project.ok("verify")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[approvals]]\nscope = 'once'", "would decide everything"),
        ("[[approvals]]\nstep = 'a'\ngate = 'answer'", "'gate' of rule 1"),
        ("[[approvals]]\nstep = 3", "must be text"),
        ("[[approvals]]\nsteps = 'a'", "unknown key 'steps'"),
        ("approvals = 'all'", "list of tables"),
    ],
)
def test_a_rule_that_is_wrong_is_refused(project: Project, text: str, said: str) -> None:
    gated(project)
    people(project, text)
    assert said in project.refused(2, "run", "--approve", "policy")
    assert project.ran() == []


def test_a_project_cannot_grant_approvals(project: Project) -> None:
    gated(project)
    project.write("holdfast.toml", "[[approvals]]\nstep = 'deploy'\n")
    assert "belongs to a person" in project.refused(2, "run", "--approve", "policy")


@pytest.mark.req("R92", "R173")
@pytest.mark.parametrize("workspace", ["shared", "scratch"])
def test_what_a_person_must_accept_stays_out_of_the_project(
    project: Project, workspace: str
) -> None:
    made = "echo new > out.txt; mkdir -p more; cp ${HOLDFAST_FEEDBACK:-out.txt} more/said"
    project.plan(
        {
            "make": {
                "shell": project.sh(made),
                "produces": ["out.txt", "more"],
                "workspace": workspace,
                "retries": 1,
                "guards": [{"human": {"from": "editor"}}, {"file": {"path": "out.txt"}}],
            },
            "use": {"shell": project.sh("cat out.txt"), "needs": "make"},
        }
    )
    project.write("out.txt", "old\n")
    run = project.run()
    assert run.code == 3
    assert run.states == {"make": "waiting", "use": "pending"}
    assert project.read("out.txt") == "old\n"
    assert not project.has("more/said")
    card = project.ok("approvals").out
    assert "out.txt: +1 −1 lines" in card
    assert "-old" in card
    assert "+new" in card
    deciding(project, "reject", "make", "--because", "say more")
    run = project.resume()
    assert run.code == 3, "the next attempt was told, and is asked about again"
    assert project.read("out.txt") == "old\n"
    project.ok("approve", "make", "--yes")
    assert project.resume().code == 0
    assert project.read("out.txt") == "new\n"
    assert "say more" in project.read("more/said")
    assert project.ran() == ["make", "make", "use"]
    assert project.run("--force-node", "make").code == 3, "other content is another question"
    project.ok("verify")


@pytest.mark.req("R173")
def test_the_same_content_is_asked_about_once(project: Project) -> None:
    project.plan({"make": {"shell": project.sh("echo same"), "guards": ["human"]}})
    project.run()
    project.ok("approve", "make", "--yes")
    assert project.resume().code == 0
    assert project.run("--force").code == 0
    assert project.ran() == ["make", "make"]
    (asked,) = listed(project, "--all")
    assert len(asked["uses"]) == 2
    project.ok("verify")


@pytest.mark.parametrize(
    ("guards", "asks"),
    [
        ([{"any": ["human", {"regex": {"pattern": "made"}}]}], False),
        ([{"any": ["human", {"regex": {"pattern": "other"}}]}], True),
        ([{"all": ["human", {"regex": {"pattern": "made"}}]}], True),
        ([{"all": [{"human": {"from": "a"}}, {"human": {"from": "b"}}]}, "human"], True),
    ],
)
@pytest.mark.req("R173")
def test_people_are_asked_about_what_other_guards_leave_open(
    project: Project, guards: list[Any], asks: bool
) -> None:
    project.plan({"make": {"shell": project.sh("echo made"), "guards": guards}})
    assert project.run().code == (3 if asks else 0)
    for item in listed(project):
        project.ok("approve", item["approval"], "--yes")
    if asks:
        assert project.resume().code == 0
    assert project.ran() == ["make"]
    project.ok("verify")


def test_nobody_is_asked_about_what_another_guard_refuses(project: Project) -> None:
    guards = ["human", {"regex": {"pattern": "other"}}]
    project.plan({"make": {"shell": project.sh("echo made"), "guards": guards}})
    run = project.run()
    assert run.codes == {"make": "guard_rejected"}
    assert listed(project, "--all") == []


@pytest.mark.req("R92", "R173")
def test_a_step_that_only_a_person_can_do(project: Project) -> None:
    project.plan(
        {
            "draft": {"shell": "echo the draft"},
            "review": {
                "uses": "human",
                "description": "Somebody reads it.",
                "prompt": "Judge this: ${{ steps.draft.output }}",
                "guards": [{"regex": {"pattern": "ok"}}],
            },
            "use": {"shell": project.sh("cat $HOLDFAST_INPUTS/review"), "needs": "review"},
        }
    )
    assert project.ok("plan", "--json").json["steps"]["review"]["decision"] == "wait"
    run = project.run()
    assert (run.code, run.codes["review"]) == (3, "awaiting_person")
    card = project.ok("approvals").out
    assert "Judge this: the draft" in card
    assert "Somebody reads it." in card
    assert "waits for its content" in project.refused(2, "approve", "review", "--yes")
    assert "name a FILE" in project.refused(2, "answer", "review")
    assert "the content for 'review' is empty" in project.refused(2, "answer", "review", "-")
    project.ok("answer", "review", "-", stdin=b"bad")
    run = project.resume()
    assert run.states["review"] == "waiting", "refused content is asked for again"
    assert "nothing matches 'ok'" in project.ok("approvals").out
    project.write("notes.md", "all ok\n")
    project.ok("answer", "review", "notes.md")
    run = project.resume()
    assert run.states == {"draft": "done", "review": "done", "use": "done"}
    assert project.shown("use") == b"all ok\n"
    (row,) = [
        e for e in project.events() if e["event"] == "attempt_accepted" and e["step"] == "review"
    ]
    assert row["source"] == "human"
    run = project.run()
    assert (run.code, run.codes["review"]) == (0, "unchanged")
    project.ok("verify")


@pytest.mark.req("R92")
def test_a_person_may_put_files_in_place(project: Project) -> None:
    project.plan(
        {
            "draw": {"uses": "human", "produces": ["logo.txt", "art"]},
            "use": {"shell": "cat logo.txt art/a", "needs": "draw"},
        }
    )
    project.run()
    assert "nothing lies at logo.txt, art" in project.refused(2, "answer", "draw")
    project.write("logo.txt", "L")
    project.write("art/a", "A")
    project.write("x", "1")
    assert "can only be one" in project.refused(2, "answer", "draw", "x")
    project.ok("answer", "draw")
    assert project.resume().code == 0
    assert project.shown("use") == b"LA"
    assert project.run().code == 0
    project.ok("verify")


@pytest.mark.req("R92")
def test_a_run_that_was_left_waiting_keeps_its_question(project: Project) -> None:
    gated(project)
    project.run()
    (first,) = listed(project)
    assert "waits for a person" in project.refused(2, "run")
    assert project.run("--yes").code == 3, "the new run asks the same"
    (second,) = listed(project)
    assert second["approval"] == first["approval"]
    project.ok("approve", "deploy", "--yes", "--scope", "run")
    assert project.resume().code == 0, "the run that waits is the one it is for"


@pytest.mark.req("R173")
def test_the_notify_command_is_told_what_waits(project: Project) -> None:
    gated(project)
    told = project.folder / "told.json"
    people(project, f'[notify]\ncommand = ["sh", "-c", "cat > {told}"]\n')
    run = project.run()
    data = json.loads(told.read_text())
    assert data["waiting"] == run.data["waiting"]
    assert data["waiting"][0]["approval"].startswith("a-")


def test_a_command_is_shown_as_the_system_gets_it(project: Project) -> None:
    argv = ["echo", "a b", "\u202egnp.exe", "\u0430", "tab\there"]
    project.plan({"run": {"run": argv, **ALWAYS}})
    project.run()
    card = project.ok("approvals").out
    assert '["echo", "a b", "\\u202egnp.exe", "\\u0430", "tab\\there"]' in card
    assert "\u202e" not in card


@pytest.mark.req("R174")
def test_what_people_do_to_a_waiting_step(project: Project) -> None:
    gated(project)
    project.run()
    project.ok("approve", "deploy", "--yes")
    done = project.resume()
    project.write("src.txt", "2")
    run = project.run()
    assert run.states["deploy"] == "reused", "an approval need hands nothing over"
    run = project.run("--force-node", "deploy")
    assert run.states["deploy"] == "waiting"
    project.ok("accept", "deploy", "--from", done.id, "--because", "as before")
    assert project.resume().states["deploy"] == "waiting", "it was forced, and still is"
    project.ok("undo", "deploy")
    assert project.run("--yes").states["deploy"] == "waiting", "undone, it would run, so it asks"
    project.ok("amend", "build", "src.txt")
    project.ok("verify")


@pytest.mark.req("R173")
def test_what_approvals_name_is_kept_and_carried(project: Project) -> None:
    project.plan({"make": {"shell": "echo made", "guards": ["human"]}})
    project.run()
    (asked,) = listed(project)
    project.ok("gc", "--keep", "0d", "--yes")
    project.ok("verify")
    assert listed(project) == [asked]
    project.ok("export", "--all", "all.holdfast")
    project.ok("import", "all.holdfast", "--store", "other", "--yes")
    found = project.ok("approvals", "--store", "other", "--json").json["approvals"]
    assert [item["approval"] for item in found] == [asked["approval"]]
    assert found[0]["covers"] == asked["covers"]
    project.ok("approve", "make", "--yes", "--store", "other")
    assert project.call("resume", "--store", "other").code == 0
    project.ok("verify", "--store", "other")
    assert listed(project)[0]["state"] == "open"


# --- what a person reads --------------------------------------------------------------------------


def scripted(project: Project) -> None:
    project.plan(
        {
            "deploy": {
                "run": ["sh", "dep.sh"],
                "inputs": "x.txt",
                "env": ["TARGET"],
                "approve": "on_change",
            }
        }
    )
    project.write("dep.sh", "echo 1")
    project.write("x.txt", "1")


def test_the_card_names_declared_inputs_by_their_digests(project: Project) -> None:
    scripted(project)
    project.run()
    (asked,) = listed(project)
    (row,) = [x for x in project.ok("approvals").out.splitlines() if x.startswith("  reads ")]
    script, data = asked["covers"]["files"]["dep.sh"], asked["covers"]["files"]["x.txt"][0]
    assert row == f"  reads     dep.sh {script[:12]}, x.txt {data[:12]}"


@pytest.mark.req("R173")
def test_a_yes_that_no_longer_counts_says_what_differs(project: Project) -> None:
    scripted(project)
    project.run(env={"TARGET": "here"})
    first = deciding(project, "approve", "deploy", "--yes")["approval"]
    project.write("dep.sh", "echo 2")
    resumed = project.call("resume", env={"TARGET": "there"})
    assert resumed.code == 3
    words = "changed since your yes: dep.sh, env TARGET"
    assert f"⏸ deploy: needs an approval; {words}; holdfast approve deploy" in resumed.err
    assert f"⏸ deploy: needs an approval, {words}" in resumed.out
    assert f"needs an approval, {words}" in project.ok("status").out
    assert "  changed   dep.sh, env TARGET (since your yes)\n" in project.ok("approvals").out
    assert "there" not in project.ok("approvals").out, "of values only the names are told"
    (second,) = [item["approval"] for item in listed(project)]
    states = {item["approval"]: item["state"] for item in listed(project, "--all")}
    assert states == {first: "overtaken", second: "open"}
    assert f"{first}  overtaken  deploy" in project.ok("approvals", "--all").out
    said = project.refused(2, "approve", first, "--yes")
    assert "approved already, and 'deploy' asks about something else now (dep.sh, env" in said
    assert f"holdfast approve {second}" in said
    project.ok("approve", second, "--yes")
    assert project.call("resume", env={"TARGET": "there"}).code == 0


def test_a_question_about_what_changed_meanwhile_says_so(project: Project) -> None:
    scripted(project)
    project.run()
    first = listed(project)[0]["approval"]
    assert "stale" not in project.ok("approvals").out
    project.write("x.txt", "2")
    assert "  stale     changed since this was asked: x.txt;" in project.ok("approvals").out
    project.resume()
    said = project.refused(2, "approve", first, "--yes")
    assert f"'{first}' is out of date: 'deploy' asks about something else now (x.txt)" in said
    project.write("x.txt", "3")
    said = project.ok("approve", "deploy", "--yes").out
    assert "changed since this was asked: x.txt; the run will ask about that" in said


def test_the_card_says_how_to_answer_from_where_the_person_is(project: Project) -> None:
    project.plan({"check": {"uses": "human", "prompt": "fit?"}}, file="review.yaml")
    project.run("review.yaml")
    shown = project.ok("approvals", "-f", "review.yaml").out
    assert "  answer    holdfast answer -f review.yaml check FILE\n" in shown


def test_a_command_is_written_in_one_form_on_every_card(project: Project) -> None:
    shell = project.sh(project.gate("sent"))
    project.plan({"pay": {"shell": shell, "effects": "external"}})
    kill(project.begun_by("run", "--yes", step="pay"))
    project.open("sent")
    project.call("resume", "--yes")
    shown = project.ok("approvals").out
    assert f"  runs      /bin/sh: {json.dumps(shell)}\n" in shown


def test_empty_content_is_taken_only_if_it_is_said_to_be_meant(project: Project) -> None:
    project.plan({"note": {"uses": "human"}})
    project.run()
    project.write("empty.txt", "")
    said = project.refused(2, "answer", "note", "empty.txt")
    assert "the content for 'note' is empty" in said
    assert "--empty" in said
    assert listed(project)[0]["state"] == "open", "nothing was decided"
    project.ok("answer", "note", "empty.txt", "--empty")
    assert project.resume().code == 0
    assert project.shown("note") == b""


def test_what_ended_is_told_before_the_waiting(project: Project) -> None:
    gated(project)
    engine = project.start("run", "--wait")
    until(lambda: project.store.exists() and listed_now(project), "it asks")
    project.ok("reject", "deploy", "--because", "no")
    lines = finish(engine).err.splitlines()
    (waits,) = [n for n, line in enumerate(lines) if line.startswith("waiting for a person")]
    (done,) = [n for n, line in enumerate(lines) if line.startswith("✓ build")]
    (held,) = [n for n, line in enumerate(lines) if line.startswith("⏸ deploy")]
    assert done < held < waits


def listed_now(project: Project) -> bool:
    answer = project.call("approvals", "--json")
    return answer.code == 0 and bool(answer.json["approvals"])
