"""The footer stays small whatever a run is like."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.cli.footer import Size, footer_lines
from holdfast.cli.tally import Running, Tally, counted
from holdfast.model.digest import Digest
from holdfast.model.event import CallAnswered, CallFailed, Reason, Recorded
from holdfast.model.plan import StepId
from holdfast.model.text import cells


def tally(running: int, waiting: int, done: int = 0) -> Tally:
    made = Tally(run="r-00000000-rest", since=0)
    for n in range(running):
        made.running[StepId(f"run{n}")] = Running(1 + n % 2, n)
        made.phases[StepId(f"run{n}")] = "running"
    for n in range(waiting):
        made.waiting[StepId(f"wait{n}")] = Reason("awaiting_person")
        made.phases[StepId(f"wait{n}")] = "waiting"
    for n in range(done):
        made.phases[StepId(f"done{n}")] = "done"
    made.counts |= {"running": running, "waiting": waiting, "done": done}
    return made


@given(st.integers(0, 50), st.integers(0, 50), st.integers(1, 200), st.integers(1, 100), st.text())
def test_it_never_has_more_lines_than_it_may_nor_wider_ones(
    running: int, waiting: int, columns: int, rows: int, output: str
) -> None:
    said = {StepId("run0"): output.encode("utf-8", "surrogatepass")}
    lines = footer_lines(tally(running, waiting), said, {}, 5000, Size(columns, rows), "a hint")
    assert 1 <= len(lines) <= max(1, min(12, rows // 2))
    assert all(cells(line) <= max(1, columns - 1) for line in lines)


def test_ten_thousand_steps_are_counted_not_listed() -> None:
    lines = footer_lines(tally(5000, 300, 10_000), {}, {}, 61_000, Size(80, 24), "hint")
    assert len(lines) == 12
    assert (
        lines[0]
        == ("──── r-00000000 ── 10000/15300 ── 10000 ran · 5000 running · 300 waiting ── 1:01")[:78]
        + "…"
    )
    assert lines[-2] == "  and 5291 more"


def test_each_line_says_how_long_and_what_came_last() -> None:
    made = tally(2, 1, 3)
    said = {StepId("run1"): b"10 %\r20 %\x1b[32m done\x1b[0m"}
    usual = {StepId("run0"): 45_000}
    assert footer_lines(made, said, usual, 21_000, Size(80, 24), "hint") == [
        "──── r-00000000 ── 3/6 ── 3 ran · 2 running · 1 waiting ── 0:21",
        "▸ run0   0:21 of ~0:45",
        "▸ run1   attempt 2  0:20  20 % done",
        "⏸ wait0  it waits for a person",
        "  hint",
    ]


def test_only_what_is_there_is_counted() -> None:
    assert counted(tally(0, 0).counts) == ""
    assert counted(tally(0, 2, 1).counts) == "1 ran · 2 waiting"


@pytest.mark.req("R165")
def test_money_stands_beside_what_may_be_spent() -> None:
    made = tally(1, 0)
    step = next(iter(made.running))
    assert "$" not in footer_lines(made, {}, {}, 5000, Size(80, 24), "")[0]
    answered = CallAnswered(step, 1, 1, Digest(""), 10, 5, cost=50_000)
    made.take(Recorded(1, 1, answered))
    head, line = footer_lines(made, {}, {}, 5000, Size(80, 24), "")
    assert " ── $0.05 ── " in head
    assert "$0.05" in line
    made.most = 5_000_000
    made.take(Recorded(2, 2, CallFailed(step, 1, 2, "cut_off", None)))
    head = footer_lines(made, {}, {}, 5000, Size(120, 24), "")[0]
    assert "$0.05 and 1 call of unknown price of $5.00" in head
