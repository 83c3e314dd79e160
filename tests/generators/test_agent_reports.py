"""What coding agents say of themselves, as it is read."""

import json

import pytest

from holdfast.generators.reports import Told, Used, read_report
from holdfast.model.cliagent import Tells


def lines(*events: object) -> str:
    return "".join(f"{json.dumps(event)}\n" for event in events)


GEMINI = {
    "response": "done",
    "stats": {"models": {"a": {"tokens": {"prompt": 10, "candidates": 2, "thoughts": 3}}}},
}
AIDER = """\
Tokens: 1.2k sent, 45 received. Cost: $0.0012 message, $0.0012 session.
Tokens: 12,345 sent, 1.1k cache hit, 2k received. Cost: $0.10 message, $0.1012 session.
"""
MINI = {"exit_status": "Submitted", "submission": "done", "model_stats": {"instance_cost": 9e-06}}
CASES: list[tuple[Tells, str, str, Told]] = [
    (
        "claude",
        'note\n{"result": "done", "total_cost_usd": 0.5, "usage": {"input_tokens": 3, "output_tokens": 4}}',
        "",
        Told("done", Used(3, 4, 500_000)),
    ),
    (
        "claude",
        '{"is_error": true, "subtype": "error_max_turns"}',
        "",
        Told(flaw="it says that it failed: error_max_turns"),
    ),
    (
        "codex",
        lines(
            {"type": "item.completed", "item": {"type": "agent_message", "text": "first"}},
            {"type": "turn.completed", "usage": {"input_tokens": 5, "output_tokens": 1}},
            {"type": "item.completed", "item": {"type": "agent_message", "text": "last"}},
            {"type": "turn.completed", "usage": {"input_tokens": 6, "output_tokens": 2}},
        ),
        "",
        Told("last", Used(11, 3)),
    ),
    (
        "codex",
        lines({"type": "turn.failed", "error": {"message": "no room"}}),
        "",
        Told(flaw="it says that it failed: no room"),
    ),
    ("gemini", json.dumps(GEMINI), "", Told("done", Used(10, 5))),
    (
        "aider",
        AIDER,
        "",
        Told(used=Used(13_545, 2_045, 101_200)),
    ),
    ("aider", "Tokens: 10 sent, 5 received.\n", "", Told(used=Used(10, 5))),
    (
        "opencode",
        lines(
            {"type": "text", "part": {"text": "done"}},
            {"type": "step_finish", "part": {"cost": 0.25, "tokens": {"input": 7, "output": 8}}},
        ),
        "",
        Told("done", Used(7, 8, 250_000)),
    ),
    (
        "mini",
        "",
        json.dumps({"info": MINI}),
        Told("done", Used(cost=9)),
    ),
    (
        "mini",
        "",
        '{"info": {"exit_status": "LimitsExceeded"}}',
        Told(flaw="it says that it ended as LimitsExceeded"),
    ),
    ("", "anything", "", Told()),
]


@pytest.mark.req("R184")
@pytest.mark.parametrize(("tells", "stdout", "report", "told"), CASES)
def test_a_report_is_read_in_the_form_of_its_agent(
    tells: Tells, stdout: str, report: str, told: Told
) -> None:
    assert read_report(tells, stdout.encode(), report.encode()) == told


FORMS: tuple[Tells, ...] = ("claude", "codex", "gemini", "aider", "opencode", "mini")
ODD = [
    "",
    "not json",
    "{",
    "[1]",
    '{"usage": 3, "item": [], "stats": "x", "info": 1, "part": 2, "total_cost_usd": "NaN"}',
    '{"total_cost_usd": true, "usage": {"input_tokens": -1, "output_tokens": "x"}}',
    '{"type": "step_finish", "part": {"cost": "Infinity", "tokens": null}}',
    "Tokens: . sent, 1 received.",
    "[" * 100_000,
]


@pytest.mark.parametrize("tells", FORMS)
def test_a_report_in_another_form_tells_no_number(tells: Tells) -> None:
    for odd in ODD:
        told = read_report(tells, odd.encode(), odd.encode())
        assert told.used.cost in {None, 0}
        assert (told.used.input or 0, told.used.output or 0) <= (1, 1)
