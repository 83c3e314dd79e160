"""A run is told to a collector as spans, one trace however often it was killed; it feels nothing of that."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from holdfast import wire
from holdfast.core.spans import Span, Spans, trace_of
from holdfast.engine.journals import read_state
from holdfast.model.digest import Digest
from holdfast.model.event import Recorded
from holdfast.model.plan import RunId
from holdfast.testing.server import Say
from holdfast.wire.telemetry import Contents, Telling
from tests.cli.models import served, step
from tests.cli.project import Project, finish, kill, until
from tests.collector import Collector, Got, collector

WORK = 'def add(a: int, b: int) -> int:\n    """Add."""\n    return a + b\n'
SECRET = "s3cr3t-v4lue-of-a-key"
LOADS = """
import atexit, sys
atexit.register(lambda: print([m for m in sys.modules if "telemetry" in m], file=sys.stderr))
from holdfast.cli.main import main
main()
"""


@pytest.fixture
def listening(project: Project) -> Iterator[Collector]:
    with collector(project.folder) as found:
        yield found


def named(spans: list[Got]) -> dict[str, Got]:
    return {span.name: span for span in spans}


def times(project: Project, event: str, step_id: str = "") -> list[int]:
    """When the journal says that something happened, in milliseconds."""
    from datetime import datetime

    return [
        round(datetime.fromisoformat(one["ts"]).timestamp() * 1000)
        for one in project.events()
        if one["event"] == event and step_id in {"", one.get("step")}
    ]


def whole(spans: list[Got]) -> None:
    """One trace, no span twice, every parent there, times in order."""
    ids = [span.id for span in spans]
    assert len(ids) == len(set(ids))
    assert len({span.trace for span in spans}) == 1
    assert [span.name.partition(" ")[0] for span in spans if not span.parent] == ["invoke_workflow"]
    assert {span.parent for span in spans if span.parent} <= set(ids)
    assert all(span.start <= span.end for span in spans)


@pytest.mark.req("R183")
def test_a_run_is_one_trace_with_the_names_and_times_of_its_journal(
    project: Project, listening: Collector
) -> None:
    project.write("work.py", WORK)
    guard: dict[str, Any] = {"name": "good", "regex": {"pattern": "5"}}
    agent = {"uses": "agent", "tools": ["work:add"], "retries": 1, "guards": [guard]}
    project.plan({"sum": step("what is 2 + 3?", **agent), "note": {"shell": "echo x"}})
    answers = [Say("hm", tools=[("add", {"a": 2, "b": 3})]), Say("it is 6"), Say("it is 5")]
    with served(project, answers):
        run = project.run("--yes", env=listening.env)
    assert run.states == {"sum": "done", "note": "done"}
    found = listening.spans
    whole(found)
    assert sorted(span.name for span in found) == [
        "chat m",
        "chat m",
        "chat m",
        "execute_tool add",
        "invoke_agent sum",
        "invoke_agent sum",
        "invoke_workflow demo",
        "step note",
    ]
    top = named(found)["invoke_workflow demo"]
    assert top.service == "holdfast"
    assert top.trace == trace_of(run.id)
    assert top.values["holdfast.run.id"] == run.id
    assert top.values["holdfast.plan.ref"] == run.data["plan"]["ref"]
    assert top.values["holdfast.run.status"] == "completed"
    assert [top.start, top.end] == [*times(project, "run_started"), *times(project, "run_ended")]
    first, second = sorted(
        (span for span in found if span.name == "invoke_agent sum"),
        key=lambda span: span.values["holdfast.attempt"],
    )
    assert (first.error, second.error) == ("guard_rejected", "")
    assert [[name, values] for name, _, values in first.events] == [
        [
            "gen_ai.evaluation.result",
            {"gen_ai.evaluation.name": "good", "gen_ai.evaluation.score.label": "fail"},
        ]
    ]
    assert second.events[0][2]["gen_ai.evaluation.score.label"] == "pass"
    assert [first.start, second.start] == times(project, "attempt_started", "sum")
    assert second.values["holdfast.artifact"] == run.digests["sum"]
    calls = [span for span in found if span.name == "chat m"]
    assert {call.parent for call in calls} == {first.id, second.id}
    assert sorted(call.start for call in calls) == times(project, "call_started")
    assert sorted(call.end for call in calls) == times(project, "call_answered")
    assert all(call.kind == 3 for call in calls), "CLIENT"
    assert calls[0].values["gen_ai.operation.name"] == "chat"
    assert calls[0].values["gen_ai.provider.name"] == "fake"
    assert calls[0].values["gen_ai.request.model"] == "m"
    assert calls[0].values["gen_ai.usage.input_tokens"] > 0
    assert named(found)["execute_tool add"].values["gen_ai.tool.name"] == "add"
    text = json.dumps([span.values for span in found])
    assert "what is" not in text, "content is not sent unless somebody asks for it"
    assert "it is" not in text


@pytest.mark.req("R183")
def test_content_is_sent_if_wanted_and_never_a_secret(
    project: Project, listening: Collector
) -> None:
    project.write("guard.sh", 'grep -q good "$HOLDFAST_ARTIFACT" || { echo not good; exit 1; }\n')
    guard = {"command": ["sh", "guard.sh"]}
    project.plan({"say": step("say a word", retries=1, guards=[guard])})
    own = {**listening.env, "HOLDFAST_OTEL_CONTENT": "1", "FAKE_KEY": SECRET}
    answers = [Say(f"the key is {SECRET}"), Say("good")]
    with served(project, answers, provider='api_key_env = "FAKE_KEY"'):
        assert project.run("--yes", env=own).states == {"say": "done"}
    assert SECRET not in listening.file.read_text()
    calls = [span for span in listening.spans if span.name == "chat m"]
    for call in calls:
        asked = json.loads(call.values["gen_ai.input.messages"])
        assert "say a word" in json.dumps(asked)
        assert json.loads(call.values["gen_ai.output.messages"])[0]["role"] == "assistant"
    assert len(calls) == 2
    refused = [span for span in listening.spans if span.error == "guard_rejected"]
    assert refused[0].events[0][2]["gen_ai.evaluation.explanation"] == "not good\n"
    kept = wire.empty_store()
    said = kept.put(f"a {SECRET} b".encode())
    assert Contents(kept, [SECRET]).texts({"x": said, "gone": Digest("0" * 64)}).keys() == {"x"}
    assert SECRET not in str(Contents(kept, [SECRET]).texts({"x": said}))


@pytest.mark.req("R183")
def test_a_run_that_was_killed_and_resumed_is_one_trace(
    project: Project, listening: Collector
) -> None:
    project.plan(
        {
            "one": {"shell": "echo 1"},
            "two": {"shell": project.sh(f"{project.gate('two')}; echo 2"), "needs": ["one"]},
        }
    )
    engine = project.start("run", env=listening.env)
    until(lambda: "two" in project.begun(), "it begins")
    until(lambda: named(listening.spans).get("step one"), "what ended is told while it runs")
    kill(engine)
    assert "invoke_workflow demo" not in named(listening.spans)
    project.open("two")
    assert project.resume(env=listening.env).code == 0
    found = listening.spans
    whole(found)
    lives = [span for span in found if span.name == "invoke_workflow demo"]
    assert [(span.error, span.values["holdfast.run.resumed"]) for span in lives] == [
        ("engine_died", False),
        ("", True),
    ]
    assert lives[1].parent == lives[0].id
    twos = sorted((s for s in found if s.name == "step two"), key=lambda s: s.start)
    assert [span.values["holdfast.outcome"] for span in twos] == ["lost", "accepted"]
    assert [span.parent for span in twos] == [lives[0].id, lives[1].id]
    assert [span.start for span in twos] == times(project, "attempt_started", "two")


def test_waiting_for_a_person_is_a_span_from_the_question_to_the_answer(
    project: Project, listening: Collector
) -> None:
    project.plan({"deploy": {"shell": "echo up", "approve": "always"}})
    assert project.run(env=listening.env).code == 3
    project.ok("approve", "deploy", "--yes")
    assert project.resume(env=listening.env).code == 0
    whole(listening.spans)
    waited = named(listening.spans)["holdfast.approval deploy"]
    assert [waited.start] == times(project, "step_held")
    assert waited.values["holdfast.outcome"] == "approved"


def test_a_run_of_nothing_but_reuse_is_told_too(project: Project, listening: Collector) -> None:
    project.plan({"a": {"shell": "echo 1"}})
    project.run(env=listening.env)
    again = project.run(env=listening.env)
    last = listening.spans[-1]
    assert last.trace == trace_of(again.id)
    assert last.values["holdfast.steps.reused"] == 1


def test_a_program_that_runs_a_plan_is_told_of_too(project: Project, listening: Collector) -> None:
    script = (
        "import holdfast\nplan = holdfast.Plan('words')\n"
        "plan.step('one', lambda: 'x', inline=True)\nprint(holdfast.run(plan).status)\n"
    )
    done = subprocess.run(
        [sys.executable, project.write("script.py", script)],
        cwd=project.root,
        env=project.environment(listening.env),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("completed\n", "")
    assert [span.name for span in listening.spans] == ["step one", "invoke_workflow words"]


def test_nothing_is_loaded_unless_the_environment_names_a_collector(project: Project) -> None:
    project.plan({"a": {"shell": "echo 1"}})
    for extra in (
        {},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "OTEL_SDK_DISABLED": "true"},
    ):
        done = subprocess.run(
            [sys.executable, "-c", LOADS, "run", "--force"],
            cwd=project.root,
            env=project.environment(extra),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert done.stderr.splitlines()[-1] == "[]"


def test_a_collector_that_is_not_there_costs_a_sentence(project: Project) -> None:
    project.plan({f"s{n}": {"shell": "echo 1"} for n in range(4)})
    own = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}
    answer = project.call("run", env=own)
    assert answer.code == 0
    told = [line for line in answer.err.splitlines() if "telemetry" in line or "retry" in line]
    assert told == [
        "telemetry is not sent: the collector cannot be reached; the run goes on without it"
    ]
    bad = project.call("run", "--force", env={"OTEL_EXPORTER_OTLP_ENDPOINT": "nonsense"})
    assert bad.code == 0
    assert bad.err.count("telemetry") == 1


def test_what_is_not_installed_is_said(project: Project) -> None:
    project.plan({"a": {"shell": "echo 1"}})
    block = "import sys; sys.modules['opentelemetry'] = None; from holdfast.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", block, "run"],
        cwd=project.root,
        env=project.environment({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    assert "pip install 'holdfast[otel]'" in done.stderr


def test_whoever_dies_where_he_may_the_spans_are_the_same(project: Project) -> None:
    """An engine that is killed after any event and one that takes the run up tell what one would."""
    project.plan(
        {
            "bad": {"shell": "exit 1", "retries": 1},
            "ask": {"shell": "echo 1", "approve": "always"},
            "good": {"shell": "echo 2", "guards": [{"regex": {"pattern": "2"}}]},
        }
    )
    run = project.run()
    project.ok("approve", "ask", "--yes")
    project.resume()
    with_store = wire.open_store(str(project.store), readonly=True)
    try:
        state = read_state(with_store, RunId(run.id))
        assert state is not None
        events = list(with_store.read(f"run:{run.id}"))

        def told(news: list[Recorded]) -> dict[str, tuple[str, int, int]]:
            memory = InMemorySpanExporter()
            telling = Telling(lambda _: None, with_store, tuple, print, memory)
            telling(news)
            telling.began(state)
            telling.close()
            spans = memory.get_finished_spans()
            assert len({span.context.span_id for span in spans if span.context}) == len(spans)
            return {
                f"{span.context.span_id:016x}": (
                    span.name,
                    span.start_time or 0,
                    span.end_time or 0,
                )
                for span in spans
                if span.context
            }

        once = told(events)
        assert len(once) > 6
        for at in range(1, len(events)):
            before = _fold(events[:at], state.plan.steps.get)
            after = told(events[at:])
            assert before.keys().isdisjoint(after.keys())
            assert before.keys() | after.keys() == once.keys()
            assert after.items() <= once.items()
    finally:
        with_store.close()


def _fold(events: list[Recorded], steps: Any) -> dict[str, Span]:
    spans = Spans(steps)
    return {span.id: span for recorded in events for span in spans.take(recorded)}


def test_it_goes_on_while_the_collector_hangs(project: Project) -> None:
    """A collector that takes a connection and never answers holds the end up for a moment only."""
    import socket

    with socket.create_server(("127.0.0.1", 0)) as door:
        url = f"http://127.0.0.1:{door.getsockname()[1]}"
        project.plan({"a": {"shell": "echo 1"}})
        process = project.start("run", env={"OTEL_EXPORTER_OTLP_ENDPOINT": url})
        answer = finish(process)
    assert answer.code == 0
    assert "telemetry is not sent: the collector does not answer" in answer.err
