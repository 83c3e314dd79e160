"""Recorded answers: what was recorded once is replayed without the model, byte for byte."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.testing.server import ModelServer, Reply, Say
from tests.cli.models import LOADED
from tests.cli.project import Project, Run

KEY = "sk-never-in-a-recording"
TEXT: dict[str, dict[str, Any]] = {
    "draft": {"prompt": "Write a line about the sea.", "model": "maker:m"},
    "brief": {
        "prompt": "Shorten: ${{ steps.draft.output }}",
        "model": {"id": "maker:m", "temperature": 0.5, "max_tokens": 50},
        "produces": "brief.md",
        "retries": 1,
        "guards": [{"regex": {"pattern": "tide"}}],
    },
}
SAID: list[Reply] = [Say("The tide comes in.\n"), Say("short"), Say("a tide\n", input=33, output=7)]


def knows(project: Project, server: ModelServer) -> None:
    """Let the person's configuration name the server."""
    project.loaded = LOADED
    place = project.home / ".config/holdfast/config.toml"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(
        f'[providers.maker]\nkind = "openai"\nbase_url = "{server.url}"\napi_key_env = "MAKER_KEY"\n'
        '[prices."maker:m"]\ninput = 1\noutput = 2\n'
    )


def recorded(project: Project, said: list[Reply], *words: str) -> tuple[Run, ModelServer]:
    """A run against a server that says this, with every answer written down."""
    with ModelServer(said) as server:
        knows(project, server)
        run = project.run("--yes", "--record", "recorded", *words, env={"MAKER_KEY": KEY})
    return run, server


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Project]:
    """Another project of somebody who has neither a key nor a configuration."""
    (tmp_path / "elsewhere").mkdir()
    made = Project(tmp_path / "elsewhere")
    yield made
    made.end()


def takes_over(there: Project, project: Project, folder: str = "recorded") -> None:
    for file in (project.root / "recorded").iterdir():
        there.write(f"{folder}/{file.name}", file.read_text())


def calls(project: Project) -> list[dict[str, Any]]:
    return [event for event in project.events() if event["event"] == "call_answered"]


def test_a_replay_gives_the_same_bytes_and_refs_without_a_key(
    project: Project, elsewhere: Project
) -> None:
    project.plan(TEXT)
    first, server = recorded(project, SAID)
    assert first.code == 0, first.err
    assert len(server.requests) == 3
    elsewhere.plan(TEXT)
    takes_over(elsewhere, project)
    again = elsewhere.run("--provider", "recorded")
    assert again.code == 0, again.err
    assert again.refs == first.refs
    assert again.digests == first.digests
    assert elsewhere.read("brief.md") == project.read("brief.md") == "a tide\n"
    assert again.field("attempts") == first.field("attempts") == {"draft": 1, "brief": 2}
    paid, free = calls(project), calls(elsewhere)
    assert [call["input"] for call in free] == [call["input"] for call in paid]
    assert [call["cost"] for call in paid] == [20, 20, 47]
    assert [call["cost"] for call in free] == [0, 0, 0]
    assert elsewhere.ok("verify").code == 0


def test_a_recording_can_be_read_and_holds_neither_key_nor_address(project: Project) -> None:
    project.plan(TEXT)
    _, server = recorded(project, SAID)
    files = sorted((project.root / "recorded").iterdir())
    assert len(files) == 3
    assert all(re.fullmatch(r"[0-9a-f]{64}\.json", file.name) for file in files)
    whole = "".join(file.read_text() for file in files)
    assert KEY not in whole
    assert server.url.removeprefix("http://").removesuffix("/v1") not in whole
    assert "maker" not in whole
    (brief,) = (json.loads(f.read_text()) for f in files if "a tide" in f.read_text())
    assert brief["schema"] == "holdfast.recording/1"
    assert brief["request"]["model"] == "m"
    assert brief["request"]["parameters"] == {"temperature": 0.5, "max_tokens": 50}
    assert "Shorten: The tide comes in." in brief["request"]["messages"][-1]["text"]
    (answer,) = brief["answers"]
    assert answer["text"] == "a tide\n"
    assert answer["usage"] == {"input": 33, "output": 7, "cached": 0, "stored": 0}


def test_a_model_named_recorded_is_always_answered_from_there(
    project: Project, elsewhere: Project
) -> None:
    project.plan(TEXT)
    first, _ = recorded(project, SAID)
    elsewhere.write("plan.yaml", project.read("plan.yaml").replace("maker:m", "recorded:m"))
    takes_over(elsewhere, project)
    again = elsewhere.run("--record", "new")
    assert again.code == 0, again.err
    assert again.digests == first.digests
    assert not any((elsewhere.root / "new").iterdir())  # nothing was said that was not recorded


@pytest.mark.req("R104")
@pytest.mark.parametrize(
    "command", [["run", "--yes"], ["plan"], ["guard", "a"], ["amend", "a", "x"]]
)
def test_a_place_of_recordings_that_nobody_would_read_is_refused(
    project: Project, command: list[str]
) -> None:
    project.plan(TEXT)
    said = project.refused(2, *command, "--recorded", "answers")
    assert "models would be asked all the same" in said
    assert "--provider recorded" in said
    for words in (["--recorded", "answers", "--provider", "recorded"], ["--recorded", "answers"]):
        env = {} if "--provider" in words else {"HOLDFAST_PROVIDER": "recorded"}
        assert "asked all the same" not in project.call(*command, *words, env=env).err


def test_the_environment_can_say_it_for_a_whole_ci(project: Project, elsewhere: Project) -> None:
    project.plan(TEXT)
    first, _ = recorded(project, SAID)
    elsewhere.plan(TEXT)
    takes_over(elsewhere, project, "answers")
    said = {"HOLDFAST_PROVIDER": "recorded", "HOLDFAST_RECORDED": "answers"}
    again = elsewhere.run(env=said)
    assert again.code == 0, again.err
    assert again.digests == first.digests


def test_a_bound_for_want_of_money_is_no_part_of_what_was_asked(
    project: Project, elsewhere: Project
) -> None:
    steps = {"a": {"prompt": "x", "model": "maker:m", "budget": {"usd": 0.001}}}
    project.plan(steps)
    first, server = recorded(project, [Say("y")])
    assert first.code == 0, first.err
    sent = server.requests[0].body
    assert (sent.get("max_completion_tokens") or sent.get("max_tokens")) in range(16, 501)
    elsewhere.plan(steps)
    takes_over(elsewhere, project)
    again = elsewhere.run("--provider", "recorded")
    assert again.code == 0, again.err
    assert again.digests == first.digests


def test_answers_to_equal_requests_are_replayed_in_their_order(
    project: Project, elsewhere: Project
) -> None:
    same: dict[str, Any] = {"prompt": "Throw the dice.", "model": "maker:m"}
    steps: dict[str, dict[str, Any]] = {
        "one": same,
        "two": {**same, "needs": [{"step": "one", "type": "sequence"}]},
        "three": {**same, "needs": [{"step": "two", "type": "sequence"}]},
    }
    project.plan(steps)
    first, _ = recorded(project, [Say("6"), Say("1"), Say("6")])
    assert len(list((project.root / "recorded").iterdir())) == 1
    elsewhere.plan(steps)
    takes_over(elsewhere, project)
    again = elsewhere.run("--provider", "recorded")
    assert again.digests == first.digests
    assert [elsewhere.shown(step) for step in steps] == [b"6", b"1", b"6"]


def test_a_request_without_a_recorded_answer_says_so_and_is_not_tried_again(
    project: Project,
) -> None:
    project.plan(TEXT)
    recorded(project, SAID)
    changed = {**TEXT, "brief": {**TEXT["brief"], "prompt": "Sum up: ${{ steps.draft.output }}"}}
    project.plan(changed)
    run = project.run("--provider", "recorded")
    assert run.code == 1
    assert run.states == {"draft": "reused", "brief": "failed"}
    assert run.codes["brief"] == "not_recorded"
    assert run.field("attempts")["brief"] == 1
    told = project.call("status").out + project.call("logs", "brief").out + run.err
    assert "'m'" in told
    assert "'Shorten: The tide" in told
    assert "'Sum up: The tide" in told
    assert "holdfast run --record recorded" in told
    answer = project.call("explain", "not_recorded")
    assert "--record" in answer.out


def test_a_step_of_a_recorded_model_is_told_to_name_another_one(project: Project) -> None:
    project.plan({"a": {"prompt": "x", "model": "recorded:m"}})
    run = project.run()
    assert run.codes == {"a": "not_recorded"}
    assert "give the step a model that can be asked" in run.err


@pytest.mark.parametrize(
    "content, words",
    [
        ("{", "Expecting"),
        ("[]", "schema holdfast.recording/1"),
        ('{"schema": "holdfast.recording/1", "answers": []}', "holds no answers"),
        ('{"schema": "holdfast.recording/1", "answers": [{"text": 1}]}', "finish"),
        (
            """{"schema": "holdfast.recording/1", "answers":
            [{"text": "\\ud800", "finish": "stop", "usage": {}}]}""",
            "lone surrogate",
        ),
    ],
)
def test_a_file_that_is_no_recording_is_named(project: Project, content: str, words: str) -> None:
    steps = {"a": {"prompt": "x", "model": "maker:m"}}
    project.plan(steps)
    recorded(project, [Say("y")])
    (file,) = (project.root / "recorded").iterdir()
    file.write_text(content)
    answer = project.call("run", "--provider", "recorded", "--force")
    assert answer.code == 1
    assert f"'recorded/{file.name}' is not a recording" in answer.out
    assert words in answer.out


def test_what_contradicts_itself_is_refused(project: Project) -> None:
    project.plan({"a": {"prompt": "x", "model": "ollama:m"}})
    said = project.refused(2, "run", "--yes", "--record", "new", "--provider", "recorded")
    assert "nothing to record" in said
    assert not project.has("new")
    assert not project.has(".holdfast")
    said = project.refused(2, "run", "--yes", env={"HOLDFAST_PROVIDER": "openai"})
    assert "HOLDFAST_PROVIDER" in said
    project.write("file", "")
    assert "'file/x'" in project.refused(2, "run", "--yes", "--record", "file/x")
    assert project.call("status").code == 2


@pytest.mark.req("R107")
def test_a_preview_with_recordings_costs_nothing_and_says_what_is_not_recorded(
    project: Project,
) -> None:
    project.plan(TEXT)
    with ModelServer(SAID) as server:
        knows(project, server)
        said = project.ok("plan").out
        assert "recorded" not in said
        before = project.ok("plan", "--provider", "recorded", "--json").json
        assert before["totals"]["cost_usd"] == {"p50": 0.0, "p90": 0.0, "unknown": 0}
        assert before["steps"]["draft"]["recorded"] is False
        assert before["steps"]["brief"]["recorded"] is None, "it reads what draft will be"
        told = project.ok("plan", "--provider", "recorded").out
        assert "No answer is recorded for draft: holdfast run --record DIR asks a model" in told
        assert "Whether an answer is recorded shows when it is asked: brief" in told
    recorded(project, SAID)
    after = project.ok("plan", "--provider", "recorded", "--force", "--json").json
    assert after["steps"]["draft"]["recorded"] is True
    assert after["steps"]["brief"]["recorded"] is None
    told = project.ok("plan", "--force-node", "brief", "--provider", "recorded", "--json").json
    assert told["steps"]["brief"]["recorded"] is True, "draft stands, so its question is known"
    elsewhere = ["--provider", "recorded", "--recorded", "nowhere"]
    told = project.ok("plan", "--force-node", "brief", *elsewhere, "--json").json
    assert told["steps"]["brief"]["recorded"] is False
