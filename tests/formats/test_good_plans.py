"""Good plan files give exactly the plan that was meant."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.errors import PlanError
from holdfast.formats.planfile import Asked, Loaded, load_plan, load_text
from holdfast.model.plan import (
    Guard,
    Input,
    Limits,
    Need,
    Plan,
    Step,
    StepId,
    plan_bytes,
    plan_from_bytes,
    plan_from_json,
    plan_json,
)

pytestmark = pytest.mark.req("R180")

EVERYTHING = """\
schema: holdfast.plan/1
name: market-brief
goal: Is the market growing?
description: Every key that this version can run.
project: market
params:
  topic: {type: string, default: heat pumps}
  years: {type: int, default: 2}
defaults:
  model: fast
  retries: 1
  timeout: 5m
  workspace: scratch
  reuse: content
  context_tokens: 3000
  guards: [{syntax: json}]
limits:
  {time: 2h, attempts: 100, parallel: 4, usd: 2.5, tokens: 9000, resources: {gpu: 2}, agents: {collector: 1}}
agents: {collector: {input_schema: {actions: {collect: {}}}}}
origin: {graph: {graph_id: GRAPH-20250114-a3f2}}
requirements: {R1: {description: a number with its source, priority: must}}
hypotheses:
  H1:
    {statement: It grows, assumptions: prices are real, testable_via: sales, status: testing, critical: true}
unknowns:
  known_knowns: sales are published
  known_unknowns: [who buys]
  unknown_unknowns: [a new law, {potential: a war, signal: news}]
  community_check: ask a trader
replan: {assumptions: false, gaps: 2, hypotheses: true, requests: false, rounds: 3, ask: false}
steps:
  collect:
    description: gets the sources
    contract: gives facts
    constraints: no guesses
    specification: see the goal
    agent: collector
    action: collect
    uses: shell
    run: [./collect.sh, --all, "a b", "$(touch /MARK)"]
    prompt: {role: r, constraints: c, task: t, feedback_wrapper: "{feedback}"}
    model: smart
    with: {topic: "${{ params.topic }}", years: [2025, 2026.5], deep: {no: on, none: ~, yes: true}}
    inputs: ["sources/**/*.md", {glob: ./extra.txt, optional: true}]
    produces: [./out//facts.json, out/log/]
    outputs: [facts, source_url]
    schema: {type: object, required: [facts]}
    guards:
      - command: [test, -s, out/facts.json]
        timeout: 90s
        fatal_on: [3, 4]
      - command: grep -q "two words" out/facts.json
        name: grep
      - python: checks.facts:complete
      - json-schema: {type: object}
      - regex: {pattern: "^x", must: absent}
      - regex: {pattern: y}
      - file: {path: out/facts.json, min_bytes: 1, max_bytes: 1000}
      - any:
          - syntax: json
          - all: [{syntax: yaml}, {majority: [{syntax: python}], name: most}]
    retries: 3
    timeout: 90s
    fresh_for: 7d
    priority: CRITICAL
    effects: none
    runs_on: lab
    workspace: scratch
    reuse: strict
    share: true
    env: [LANG, TZ]
    secrets: [TOKEN]
    tool_versions: {gcc: [gcc, --version], make: make -v}
  size:
    uses: python
    run: analysis.market:size
    needs: [collect]
    handoff: true
    context: false
    context_tokens: 500
    type: experiment
    mode: confirmatory
    hypotheses: H1
    requirements: [R1]
    preregistered: [one test only]
    evaluate_against: ["$${{ as it is }}"]
  brief:
    shell: cat a | sort > b
    needs:
      - {step: collect, type: data, key: facts}
      - {step: size, type: sequence}
    guards: []
    patience: 2
    escalate: size
    rounds: 3
    on_fatal: escalate
    resources: {gpu: 2, desk: 1, cpus: 0, memory: 512MB}
    effects: external
    idempotent: true
    workspace: shared
  check:
    uses: human
    prompt: Is it right?
    needs: [{step: brief, type: approval, from: lead}]
    approve: over_budget
    budget: {attempts: 2}
    guards: [{all: [human, {human: {from: lead}, name: second}]}]
  think:
    uses: agent
    prompt: what follows?
    model: {id: "fake:m", temperature: 0.5, seed: 7}
    tools: ["analysis.market:size", "analysis.market:growth"]
    turns: 9
    budget: {usd: 0.5, tokens: 1000}
    guards:
      - judge: {rubric: "Is it faithful?", votes: 3}
      - cites: {each: facts, in: "sources/*.md"}
  each:
    for_each: [{id: a b}]
    key: ${{ item.id }}
    with: {one: "${{ item }}"}
    run: "true"
    guards: []
    when: {steps.collect.output.facts: {exists: true}}
    optional: true
    within: part
"""

COLLECT = Step(
    id=StepId("collect"),
    description="gets the sources",
    contract="gives facts",
    constraints="no guesses",
    specification="see the goal",
    agent="collector",
    action="collect",
    uses="shell",
    run=("./collect.sh", "--all", "a b", "$(touch /MARK)"),
    prompt={"role": "r", "constraints": "c", "task": "t", "feedback_wrapper": "{feedback}"},
    model="smart",
    values={
        "topic": "heat pumps",
        "years": [2025, 2026.5],
        "deep": {"no": "on", "none": None, "yes": True},
    },
    inputs=(Input("sources/**/*.md"), Input("extra.txt", optional=True)),
    produces=("out/facts.json", "out/log"),
    outputs=("facts", "source_url"),
    schema={"type": "object", "required": ["facts"]},
    guards=(
        Guard("command", ["test", "-s", "out/facts.json"], "command", 90.0, (3, 4)),
        Guard("command", ["grep", "-q", "two words", "out/facts.json"], "grep"),
        Guard("python", "checks.facts:complete", "python"),
        Guard("json-schema", {"type": "object"}, "json-schema"),
        Guard("regex", {"pattern": "^x", "must": "absent"}, "regex-5"),
        Guard("regex", {"pattern": "y", "must": "match"}, "regex-6"),
        Guard("file", {"path": "out/facts.json", "min_bytes": 1, "max_bytes": 1000}, "file"),
        Guard(
            "any",
            name="any",
            items=(
                Guard("syntax", "json", "syntax"),
                Guard(
                    "all",
                    name="all",
                    items=(
                        Guard("syntax", "yaml", "syntax"),
                        Guard(
                            "majority", name="most", items=(Guard("syntax", "python", "syntax"),)
                        ),
                    ),
                ),
            ),
        ),
    ),
    retries=3,
    timeout=90.0,
    fresh_for=604800.0,
    priority="critical",
    effects="none",
    runs_on="lab",
    workspace="scratch",
    reuse="strict",
    context_tokens=3000,
    share=True,
    env=("LANG", "TZ"),
    secrets=("TOKEN",),
    tool_versions={"gcc": ("gcc", "--version"), "make": ("make", "-v")},
)

EACH = Step(
    id=StepId("each"),
    run=("true",),
    values={"one": "${{ item }}"},
    retries=1,
    timeout=300.0,
    workspace="scratch",
    reuse="content",
    context_tokens=3000,
    model="fast",
    needs=(Need(StepId("collect"), "sequence"),),
    when={"steps.collect.output.facts": {"exists": True}},
    optional=True,
    within="part",
)
PLAN = Plan(
    name="market-brief",
    goal="Is the market growing?",
    description="Every key that this version can run.",
    project="market",
    limits=Limits(
        time=7200.0,
        attempts=100,
        parallel=4,
        usd=2.5,
        tokens=9000,
        resources={"gpu": 2},
        agents={"collector": 1},
    ),
    origin={"graph": {"graph_id": "GRAPH-20250114-a3f2"}},
    contracts={"agents": {"collector": {"actions": {"collect": {}}}}},
    params={"topic": "heat pumps", "years": 2},
    premises={
        "requirements": {"R1": {"description": "a number with its source", "priority": "must"}},
        "hypotheses": {
            "H1": {
                "statement": "It grows",
                "assumptions": ["prices are real"],
                "testable_via": "sales",
                "status": "testing",
                "critical": True,
            }
        },
        "unknowns": {
            "known_knowns": ["sales are published"],
            "known_unknowns": ["who buys"],
            "unknown_unknowns": ["a new law", {"potential": "a war", "signal": "news"}],
            "community_check": "ask a trader",
        },
        "replan": {
            "assumptions": False,
            "gaps": 2,
            "hypotheses": True,
            "requests": False,
            "rounds": 3,
            "ask": False,
        },
    },
    steps={
        StepId("collect"): COLLECT,
        StepId("size"): Step(
            id=StepId("size"),
            uses="python",
            run=("analysis.market:size",),
            needs=(Need(StepId("collect")),),
            handoff=True,
            context=False,
            context_tokens=500,
            type="experiment",
            mode="confirmatory",
            hypotheses=("H1",),
            requirements=("R1",),
            preregistered=("one test only",),
            evaluate_against=("${{ as it is }}",),
            model="fast",
            retries=1,
            timeout=300.0,
            workspace="scratch",
            reuse="content",
            guards=(Guard("syntax", "json", "syntax"),),
        ),
        StepId("brief"): Step(
            id=StepId("brief"),
            shell="cat a | sort > b",
            needs=(
                Need(StepId("collect"), "data", "facts"),
                Need(StepId("size"), "sequence"),
            ),
            model="fast",
            retries=1,
            timeout=300.0,
            patience=2,
            escalate=("size",),
            rounds=3,
            on_fatal="escalate",
            resources={"gpu": 2, "desk": 1, "cpus": 0, "memory": 512_000_000},
            effects="external",
            idempotent=True,
            workspace="shared",
            reuse="content",
            context_tokens=3000,
        ),
        StepId("check"): Step(
            id=StepId("check"),
            uses="human",
            prompt="Is it right?",
            needs=(Need(StepId("brief"), "approval", approver="lead"),),
            approve="over_budget",
            budget={"attempts": 2},
            guards=(
                Guard(
                    "all",
                    name="all",
                    items=(
                        Guard("human", name="human"),
                        Guard("human", {"from": "lead"}, "second"),
                    ),
                ),
            ),
            model="fast",
            retries=1,
            timeout=300.0,
            workspace="scratch",
            reuse="content",
            context_tokens=3000,
        ),
        StepId("think"): Step(
            id=StepId("think"),
            uses="agent",
            prompt="what follows?",
            model="fake:m",
            parameters={"temperature": 0.5, "seed": 7},
            inputs=(Input("sources/*.md"),),
            tools=("analysis.market:size", "analysis.market:growth"),
            turns=9,
            budget={"usd": 0.5, "tokens": 1000},
            guards=(
                Guard(
                    "judge",
                    {"min": 0.8, "votes": 3, "rubric": "Is it faithful?", "model": "fake:m"},
                    "judge",
                ),
                Guard("cites", {"field": "quote", "each": "facts", "in": "sources/*.md"}, "cites"),
            ),
            retries=1,
            timeout=300.0,
            workspace="scratch",
            reuse="content",
            context_tokens=3000,
        ),
        StepId("each[a%20b]"): replace(
            EACH, id=StepId("each[a%20b]"), values={"one": {"id": "a b"}}
        ),
        StepId("each"): Step(
            id=StepId("each"),
            uses="gather",
            needs=(
                Need(StepId("collect"), "sequence"),
                Need(StepId("each[a%20b]"), optional=True),
            ),
            when=EACH.when,
            optional=True,
            for_each=[{"id": "a b"}],
            key="${{ item.id }}",
            template=EACH,
            has_items=True,
        ),
    },
)


def load(text: str, file: str = "plan.yaml") -> Loaded:
    return load_text(text.encode(), file, "/nowhere")


def test_every_key_is_read_into_the_plan() -> None:
    found = load(EVERYTHING)
    assert [told.code for told in found.warnings] == ["P916"], "it has a key of every kind"
    assert replace(found, warnings=()) == Loaded(PLAN, "plan.yaml", "/nowhere")


def test_the_plan_can_be_kept_as_a_snapshot() -> None:
    plan = load(EVERYTHING).plan
    snapshot = json.loads(plan_bytes(plan))
    assert plan_bytes(plan_from_json(snapshot)) == plan_bytes(plan)
    assert plan_from_bytes(plan_bytes(plan)) == plan_from_json(snapshot)
    assert plan_json(plan)["name"] == "market-brief"


@pytest.mark.parametrize("number", [0.5, 2])
def test_a_number_comes_back_from_a_snapshot_whole_or_not(number: float) -> None:
    text = f"name: p\nsteps: {{a: {{uses: python, run: 'm:f', with: {{x: [{{y: {number}}}]}}}}}}\n"
    found = plan_from_bytes(plan_bytes(load(text).plan)).steps[StepId("a")].values
    assert found == {"x": [{"y": number}]}


def test_the_same_plan_as_json_is_equal() -> None:
    text = """{
\t"name": "j", "steps": {
\t\t"a": {"run": ["echo", "\\ud83d\\ude00", "\\u00e9\\/\\\\ud83d"], "with": {"x": 1.5, "y": -0, "z": 1E2}}
\t}
}"""
    assert load(text, "plan.json").plan == Plan(
        "j",
        {
            StepId("a"): Step(
                StepId("a"),
                run=("echo", "\U0001f600", "é/\\ud83d"),
                values={"x": 1.5, "y": 0, "z": 100.0},
            )
        },
    )


@pytest.mark.req("D32")
def test_a_byte_order_mark_and_windows_line_ends_change_nothing() -> None:
    content = b"\xef\xbb\xbf" + EVERYTHING.replace("\n", "\r\n").encode()
    assert load_text(content, "plan.yaml", "/nowhere").plan == PLAN


def test_aliases_stand_for_what_they_name() -> None:
    plan = load("steps:\n  a: &a {run: x}\n  b: *a\n").plan
    assert plan.steps[StepId("b")] == Step(StepId("b"), run=("x",))


def test_the_line_is_the_argument_or_the_name_or_the_stem() -> None:
    text = b"name: named\nsteps: {a: {run: x}}"
    assert load_text(text, "dir/file.yaml", ".", Asked("given")).plan.name == "given"
    assert load_text(text, "dir/file.yaml", ".").plan.name == "named"
    assert load_text(text.split(b"\n")[1], "dir/file.yaml", ".").plan.name == "file"


def test_the_project_is_the_directory_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "plan.yaml"
    file.write_text("steps: {a: {run: x}}")
    loaded = load_plan(str(file))
    assert (loaded.file, loaded.root) == (str(file), str(tmp_path))


def test_prompts_and_schemas_are_read_from_their_files(tmp_path: Path) -> None:
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "a.md").write_bytes(b"\xef\xbb\xbfDo it.\r\n")
    (tmp_path / "s.json").write_text('{"type": "object"}')
    file = tmp_path / "plan.yaml"
    file.write_text(
        "steps:\n  a: {run: x, prompt: prompts/a.md, schema: s.json, guards: [{json-schema: s.json}]}\n"
        "  b: {run: x, prompt: Read the file notes.md}\n"
    )
    steps = load_plan(str(file)).plan.steps
    assert steps[StepId("a")].prompt == "Do it.\r\n"
    assert steps[StepId("a")].schema == {"type": "object"}
    assert steps[StepId("a")].guards == (Guard("json-schema", {"type": "object"}, "json-schema"),)
    assert steps[StepId("b")].prompt == "Read the file notes.md"


def test_a_file_outside_the_project_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_text("secret")
    project = tmp_path / "project"
    project.mkdir()
    (project / "link.md").symlink_to(tmp_path / "secret.md")
    file = project / "plan.yaml"
    for name in ("link.md", "../secret.md", str(tmp_path / "secret.md")):
        file.write_text(f"steps: {{a: {{run: x, prompt: {name}}}}}")
        with pytest.raises(PlanError) as caught:
            load_plan(str(file))
        assert [item.code for item in caught.value.problems] == ["P043"]


def test_a_bad_schema_file_is_reported_with_its_own_place(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text('{\n"type": }')
    file = tmp_path / "plan.yaml"
    file.write_text("steps: {a: {run: x, schema: s.json}}")
    with pytest.raises(PlanError) as caught:
        load_plan(str(file))
    (problem,) = caught.value.problems
    assert (problem.code, problem.line) == ("P015", 1)
    assert problem.message.startswith("s.json:2:9: this is not JSON")


def test_steps_in_order_may_produce_the_same_path() -> None:
    plan = load(
        "steps:\n"
        "  a: {run: x, produces: o}\n"
        "  b: {run: x, needs: [a]}\n"
        "  c: {run: x, needs: [b], produces: o}\n"
        "  d: {run: x, needs: [c], produces: o/part, inputs: ['o/*']}\n"
    ).plan
    assert len(plan.steps) == 4


def test_what_is_odd_but_legal_is_a_warning() -> None:
    loaded = load(
        "steps:\n"
        "  a: {run: make && make test}\n"
        "  b: {run: x, inputs: ['*.c'], produces: b.c}\n"
        "  c: {run: x, idempotent: true}\n"
    )
    assert [(item.code, item.line) for item in loaded.warnings] == [
        ("P901", 2),
        ("P902", 3),
        ("P903", 4),
    ]
    assert loaded.plan.steps[StepId("a")].run == ("make", "&&", "make", "test")


@pytest.mark.req("D33")
@pytest.mark.parametrize("value", ["; touch /MARK", "$(touch /MARK)", "a\nb", "-rf", "`x`", "*"])
def test_a_word_of_a_command_stays_what_it_is(value: str) -> None:
    text = json.dumps({"steps": {"a": {"run": ["echo", value], "with": {"v": value}}}})
    step = load(text, "plan.json").plan.steps[StepId("a")]
    assert (step.run, step.values) == (("echo", value), {"v": value})


@pytest.mark.parametrize(
    "text, value",
    [
        ("no", "no"),
        ("on", "on"),
        ("Yes", "Yes"),
        ("1:30", "1:30"),
        ("1_000", "1_000"),
        ("0b1", "0b1"),
        ("2026-01-01", "2026-01-01"),
        ("=", "="),
        ("'1'", "1"),
        ('"true"', "true"),
        ("TRUE", True),
        ("false", False),
        ("~", None),
        ("Null", None),
        ("", None),
        ("-12", -12),
        ("010", 10),
        ("0o10", 8),
        ("0xfF", 255),
        ("1.", 1.0),
        (".5", 0.5),
        ("-1e3", -1000.0),
        (".", "."),
        ("+", "+"),
        ("1e", "1e"),
    ],
)
def test_scalars_follow_the_core_schema(text: str, value: object) -> None:
    found = (
        load(f"steps: {{a: {{run: x, with: {{v: {text} }}}}}}").plan.steps[StepId("a")].values["v"]
    )
    assert (type(found), found) == (type(value), value)


@pytest.mark.req("R173")
def test_names_that_nobody_holds_are_warned_of_once() -> None:
    asked: list[str] = []

    def held(name: str) -> bool:
        asked.append(name)
        return name == "lead"

    text = """\
steps:
  a: {run: x, guards: [{human: {from: ops}}]}
  b: {run: x, needs: [{step: a, type: approval, from: lead}]}
  c: {run: x, needs: [{step: a, from: ops}]}
"""
    loaded = load_text(text.encode(), "plan.yaml", "/nowhere", Asked(held=held))
    assert [(item.code, item.line) for item in loaded.warnings] == [("P905", 2)]
    assert "ops" in loaded.warnings[0].message
    assert sorted(asked) == ["lead", "ops"]


ONCE = """
name: pay
defaults: {retries: 3}
steps:
  order: {shell: echo order}
  pay: {shell: echo paid, effects: external, needs: [order]}
  safe: {shell: echo paid, effects: external, idempotent: true, needs: [order]}
"""


def warned(tmp_path: Path, text: str) -> list[tuple[str, str]]:
    plan = tmp_path / "plan.yaml"
    plan.write_text(text)
    return [(item.code, item.message) for item in load_plan(str(plan)).warnings]


@pytest.mark.req("I17")
def test_retries_for_all_are_none_for_what_may_be_done_only_once(tmp_path: Path) -> None:
    plan = tmp_path / "plan.yaml"
    plan.write_text(ONCE)
    steps = load_plan(str(plan)).plan.steps
    found = {name: step.retries for name, step in steps.items()}
    assert found == {"order": 3, "pay": 0, "safe": 3}
    assert warned(tmp_path, ONCE) == []


@pytest.mark.req("I17")
def test_what_may_be_done_only_once_and_can_be_done_again_is_warned_of(tmp_path: Path) -> None:
    again = "'pay' may be done again outside: "
    own = ONCE.replace("external, needs", "external, retries: 1, needs")
    assert warned(tmp_path, own) == [("P906", again + "its effect is not idempotent")]
    itself = ONCE.replace("external, needs", "external, escalate: [order], needs")
    assert warned(tmp_path, itself) == [("P906", again + "'pay' can send 'order' back")]
    sent = ONCE + "  check: {shell: 'true', needs: [pay], escalate: [pay]}\n"
    assert warned(tmp_path, sent) == [("P906", again + "'check' can send it back")]
    beside = ONCE + "  check: {shell: 'true', needs: [order], escalate: [order]}\n"
    assert warned(tmp_path, beside) == [("P906", again + "'check' can send 'order' back")]
    below = ONCE + "  check: {shell: 'true', needs: [pay, safe], escalate: [safe]}\n"
    assert warned(tmp_path, below) == []
