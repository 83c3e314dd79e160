"""Steps of models by the Python API are those of a plan file."""

from pathlib import Path

import pytest

import holdfast
from holdfast.errors import PlanError, UsageError
from holdfast.model.plan import Guard, StepId
from holdfast.testing.server import ModelServer


def test_a_program_makes_the_same_steps_as_a_plan_file(tmp_path: Path) -> None:
    (tmp_path / "work.py").write_text("def add(a: int) -> int:\n    return a\n")
    (tmp_path / "task.md").write_text("Do ${{ steps.first.output }}.")
    (tmp_path / "plan.yaml").write_text(
        """
name: both
steps:
  first: {prompt: hello, model: {id: "fake:m", temperature: 0.5}, retries: 0, budget: {usd: 0.5}}
  then:
    uses: agent
    prompt: task.md
    model: "fake:m"
    with: {topic: cats}
    tools: ["work:add"]
    turns: 3
    timeout: 5m
    schema: {type: object}
    guards: [{judge: {rubric: good?, min: 0.5}}]
"""
    )
    made = holdfast.Plan("both", str(tmp_path))
    made.llm(
        "first",
        "hello",
        model={"id": "fake:m", "temperature": 0.5},
        retries=0,
        budget={"usd": 0.5},
    )
    made.agent(
        "then",
        "task.md",
        model="fake:m",
        values={"topic": "cats"},
        tools=["work:add"],
        turns=3,
        timeout="5m",
        schema={"type": "object"},
        guards=[Guard("judge", {"rubric": "good?", "min": 0.5})],
    )
    loaded = holdfast.load(str(tmp_path / "plan.yaml"))
    assert made.build() == loaded.build()
    assert made.build().steps[StepId("then")].data_needs == ("first",)
    (tmp_path / "again.yaml").write_text(made.to_yaml())
    assert holdfast.load(str(tmp_path / "again.yaml")).build() == made.build()


def test_what_a_plan_file_would_be_refused_for_is_refused(tmp_path: Path) -> None:
    made = holdfast.Plan("bad", str(tmp_path))
    with pytest.raises(PlanError, match="no model"):
        made.llm("a", "hello")
    with pytest.raises(PlanError, match="nowhere"):
        made.agent("a", "hello", model="fake:m", tools=["nowhere:add"])
    made.llm("a", "hello", model="fake:m")
    with pytest.raises(UsageError, match="already"):
        made.llm("a", "hello", model="fake:m")


@pytest.mark.req("R107")
def test_a_program_records_answers_and_takes_them_from_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    config = tmp_path / ".config" / "holdfast" / "config.toml"
    config.parent.mkdir(parents=True)
    for name in ("one", "two"):
        (tmp_path / name).mkdir()

    def made(name: str) -> holdfast.Plan:
        plan = holdfast.Plan("demo", str(tmp_path / name))
        plan.llm("a", "say a", model="fake:m")
        return plan

    kept = str(tmp_path / "kept")
    with ModelServer("an answer") as server:
        config.write_text(f'[providers.fake]\nkind = "openai"\nbase_url = "{server.url}"\n')
        asked = holdfast.run(made("one"), record=kept)
        assert len(server.requests) == 1
    again = holdfast.run(made("two"), provider="recorded", recorded=kept)
    assert again["a"].value == asked["a"].value == "an answer"
    with pytest.raises(UsageError, match="nothing to record"):
        holdfast.run(made("two"), provider="recorded", record=kept)
    lacking = holdfast.run(made("two"), provider="recorded", force=True)
    reason = lacking.state.steps[StepId("a")].reason
    assert lacking.status == "failed"
    assert reason is not None
    assert reason.code == "not_recorded"
