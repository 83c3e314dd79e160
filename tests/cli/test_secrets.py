"""Secrets in what steps make: never stored, so what holds one is refused, and stays where it lies."""

import base64
from pathlib import Path

import pytest

from holdfast import api
from holdfast.errors import UsageError
from tests.cli.project import Project, kill, until
from tests.cli.served import served, verdict

WORD = "Kanarie-in-an-artifact"
ALLOW = ("--secret", "WORD")
SEES = {"shell": "true", "secrets": ["WORD"]}


def stored(project: Project) -> list[Path]:
    """The files of the store that hold the secret."""
    files = [place for place in project.store.rglob("*") if place.is_file()]
    return [place for place in files if WORD.encode() in place.read_bytes()]


@pytest.mark.req("I13")
@pytest.mark.parametrize("how", ["printf %s $WORD", "printf %s $WORD | base64"])
def test_an_artifact_that_holds_a_secret_is_rejected_and_not_kept(
    project: Project, how: str
) -> None:
    project.plan({"a": {"shell": how, "secrets": ["WORD"]}, "b": {"shell": "true", "needs": ["a"]}})
    run = project.run(*ALLOW, env={"WORD": WORD})
    assert (run.code, run.codes["a"]) == (1, "guard_rejected")
    [event] = [each for each in project.events() if each["event"] == "attempt_rejected"]
    assert event["guard"] == "secrets"
    assert b"holds the value of a secret" in project.shown(event["feedback"])
    assert not stored(project)
    project.plan({"a": {"shell": "test -n $WORD && echo fine", "secrets": ["WORD"]}})
    assert project.run(*ALLOW, env={"WORD": WORD}).code == 0


@pytest.mark.req("I13")
def test_a_file_that_holds_a_secret_stays_where_it_is(project: Project) -> None:
    project.plan(
        {"a": {"shell": "echo $WORD > out.txt", "secrets": ["WORD"], "produces": "out.txt"}}
    )
    run = project.run(*ALLOW, env={"WORD": WORD})
    assert (run.code, run.codes) == (1, {"a": "guard_rejected"})
    assert "'out.txt' is not put back" in run.err
    assert project.read("out.txt") == f"{WORD}\n"
    again = project.run(*ALLOW, env={"WORD": WORD})
    assert again.codes == {"a": "command_failed"}
    assert "remove it from there" in " ".join(again.because("a"))
    assert not stored(project)


@pytest.mark.req("I13")
def test_what_a_killed_step_left_is_not_stored_if_it_holds_a_secret(project: Project) -> None:
    body = f"echo $WORD > out.txt; {project.gate('end')}"
    project.plan({"a": {"shell": project.sh(body), "secrets": ["WORD"], "produces": "out.txt"}})
    engine = project.start("run", *ALLOW, env={"WORD": WORD})
    until(lambda: project.has("out.txt") and WORD in project.read("out.txt"), "it was written")
    kill(engine)
    answer = project.call("resume", *ALLOW, env={"WORD": WORD})
    assert answer.code == 1, answer
    assert project.read("out.txt") == f"{WORD}\n"
    assert not stored(project)
    assert WORD not in answer.out + answer.err


@pytest.mark.req("I13")
def test_a_plan_that_holds_a_key_does_not_begin(project: Project) -> None:
    project.plan({"a": {"shell": "true", "with": {"key": WORD}}})
    said = project.refused(2, "run", env={"OPENAI_API_KEY": WORD})
    assert "the plan holds the value of a secret or of a key" in said
    assert WORD not in said
    assert not stored(project)


@pytest.mark.req("I13")
def test_a_file_that_decides_a_step_is_not_kept_if_it_holds_a_key(project: Project) -> None:
    project.write("settings.ini", f"key = {base64.b64encode(WORD.encode()).decode()}\n")
    project.plan({"a": {"shell": "true", "inputs": ["settings.ini"]}})
    assert project.run(env={"MISTRAL_API_KEY": WORD}).code == 0
    coded = base64.b64encode(WORD.encode())
    files = [place for place in project.store.rglob("*") if place.is_file()]
    assert not [place for place in files if coded in place.read_bytes()]


@pytest.mark.req("I13")
def test_a_variable_that_holds_no_key_blackens_nothing(project: Project) -> None:
    project.plan({"a": {"shell": "echo none >&2; echo none"}})
    assert project.run(env={"OPENAI_API_KEY": "none"}).code == 0
    assert project.shown("a") == b"none\n"
    assert "none" in project.ok("logs", "a").out


def waiting_for_people(project: Project, *secrets: str) -> None:
    """A run in which one step is done, one waits for content, one for files, and one for a yes.

    Another one sees the `secrets`.
    """
    project.plan(
        {
            "a": {"shell": "echo one > a.txt", "produces": "a.txt"},
            "h": {"uses": "human"},
            "draw": {"uses": "human", "produces": ["logo.txt"]},
            "deploy": {"shell": "true", "needs": [{"step": "a", "type": "approval"}]},
            "other": {"shell": "true", "secrets": [*secrets]},
        }
    )
    assert project.run(*(word for name in secrets for word in ("--secret", name))).code == 3
    project.write("given.txt", f"the key is {WORD}\n")
    project.write("more.yaml", f"steps: {{x: {{shell: 'echo {WORD}'}}}}\n")
    project.write("fine.yaml", "steps: {x: {shell: 'true'}}\n")


SAID = ("--because", f"it is {WORD}")


@pytest.mark.req("I13")
@pytest.mark.parametrize("name", ["OPENAI_API_KEY", "WORD"])
@pytest.mark.parametrize(
    "words",
    [
        ("amend", "a", "given.txt"),
        ("amend", "a", "given.txt", *SAID),
        ("answer", "h", "given.txt"),
        ("answer", "h", "more.yaml", "--json"),
        ("add", "--yes", "more.yaml"),
        ("add", "--yes", "fine.yaml", *SAID),
        ("accept", "a", "--from", "@", *SAID),
        ("approve", "deploy", "--yes", *SAID),
        ("reject", "deploy", *SAID),
        ("skip", "h", "--yes", *SAID),
        ("skip", "h", "--yes", *ALLOW, *SAID),
        ("undo", "a", *SAID),
        ("pin", "a", *SAID),
        ("purge", "12345678", *SAID),
    ],
)
def test_what_people_give_is_refused_if_it_holds_a_key_or_a_secret(
    project: Project, words: tuple[str, ...], name: str
) -> None:
    waiting_for_people(project, *(["WORD"] if name == "WORD" else []))
    before = project.ok("history", "--json").out, project.ok("approvals", "--json").out
    answer = project.call(*words, env={name: WORD})
    assert answer.code == 2, answer
    assert "holds the value of a secret or of a key" in answer.out + answer.err
    assert WORD not in answer.out + answer.err
    assert not stored(project)
    assert before == (project.ok("history", "--json").out, project.ok("approvals", "--json").out)


@pytest.mark.req("I13")
@pytest.mark.parametrize(("step", "path"), [("amend a", "a.txt"), ("answer draw", "logo.txt")])
def test_what_people_put_in_place_is_refused_if_it_holds_a_key(
    project: Project, step: str, path: str
) -> None:
    waiting_for_people(project)
    project.write(path, f"{WORD}\n")
    said = project.refused(2, *step.split(), env={"OPENAI_API_KEY": WORD})
    assert f"'{path}' holds the value of a secret or of a key" in said
    assert WORD not in said
    assert project.read(path) == f"{WORD}\n"
    assert not stored(project)


@pytest.mark.req("I13")
def test_a_reason_is_refused_if_it_holds_a_secret_that_only_the_run_or_only_the_file_knows(
    project: Project,
) -> None:
    seen = {"shell": "echo good", "secrets": ["WORD"]}
    project.plan({"a": seen, "b": {"shell": "echo b"}})
    assert project.run(*ALLOW, env={"WORD": WORD}).code == 0
    project.plan({"a": {"shell": "echo good # edited"}, "b": {"shell": "echo b"}})
    earlier = ("accept", "a", "--from", "@", *SAID)
    assert "the value of a secret" in project.refused(2, *earlier, env={"WORD": WORD})
    assert project.run().code == 0
    project.plan({"a": {**seen, "shell": "echo new"}, "b": {"shell": "echo b"}})
    for words in (("accept", "b", "--from", "@-1", *SAID), ("pin", "b", *SAID)):
        assert "the value of a secret" in project.refused(2, *words, env={"WORD": WORD})
    assert not stored(project)


@pytest.mark.req("I13")
def test_a_step_that_is_accepted_is_not_stored_if_it_holds_a_secret(project: Project) -> None:
    project.plan({"a": {"shell": "echo good", "secrets": ["WORD"]}})
    assert project.run(*ALLOW, env={"WORD": WORD}).code == 0
    project.plan({"a": {"shell": f"echo good # {WORD}", "secrets": ["WORD"]}})
    words = ("accept", "a", "--from", "@", "--because", "the same")
    assert "the value of a secret" in project.refused(2, *words, env={"WORD": WORD})
    assert not stored(project)


@pytest.mark.req("I13")
def test_a_skip_that_cannot_go_on_is_not_written_down(project: Project) -> None:
    project.plan({"h": {"shell": "false"}, "other": {"shell": "true", "secrets": ["WORD"]}})
    assert project.run(*ALLOW).code == 1
    skip = ("skip", "h", "--because", "it is down")
    assert "--secret WORD" in project.refused(2, *skip)
    assert "no terminal" in project.refused(2, *skip, *ALLOW, "--approve", "ask")
    assert project.resume(*ALLOW).states["h"] == "failed", "nobody goes on without it"
    assert project.call(*skip, *ALLOW).code == 0


@pytest.mark.req("I13")
def test_no_conflict_is_settled_with_a_secret(project: Project) -> None:
    project.write("a", "a\n")
    copied = {"inputs": "a", "workspace": "scratch", "effects": "workspace"}
    both = {name: {"shell": f"echo {name} > a", **copied} for name in ("left", "right")}
    project.plan({**both, "other": SEES})
    (found,) = project.run("-j", "1", *ALLOW).data["conflicts"]
    settle = ("resolve", found["conflict"], "--take", "mine")
    assert "the value of a secret" in project.refused(2, *settle, *SAID, env={"WORD": WORD})
    assert not stored(project)
    project.ok(*settle)


@pytest.mark.req("I13")
def test_a_guard_tells_no_judge_a_secret(project: Project) -> None:
    with served(project, verdict(0.9)) as server:
        judge = {"judge": {"rubric": "is it nice?", "model": "fake:m"}}
        project.plan({"a": {"shell": "echo good", "guards": [judge]}, "b": SEES})
        project.write("f.txt", f"it connects with {WORD} and sk-0123456789\n")
        env = {"WORD": WORD, "OPENAI_API_KEY": "sk-0123456789"}
        assert project.call("guard", "a", "--on", "f.txt", "--yes", env=env).code == 0
        (asked,) = server.requests
        assert "it connects with [secret] and [secret]" in " ".join(asked.texts)
    assert not stored(project)


@pytest.mark.req("I13")
def test_programs_say_no_secret_either(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    waiting_for_people(project, "WORD")
    monkeypatch.chdir(project.root)
    monkeypatch.setenv("WORD", WORD)
    place, said = str(project.store), f"it is {WORD}"
    run = str(project.status().id)
    for give in (
        lambda: api.approve(place, "deploy", because=said),
        lambda: api.reject(place, "deploy", because=said),
        lambda: api.answer(place, "h", said),
        lambda: api.add("fine.yaml", run, because=said),
        lambda: api.add("more.yaml", run),
    ):
        with pytest.raises(UsageError, match="the value of a secret"):
            give()
    assert not stored(project)
