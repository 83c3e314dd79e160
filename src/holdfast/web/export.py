"""A run as one file: everything in it, nothing from elsewhere, no script; for CI, for a mail, for an archive.

It is bounded whatever the size of the run: a picture of at most so many boxes, so many rows, the end of so
many outputs. What was left out is said, with the command that shows it. Secrets were struck out of what is
stored; what this machine knows to be secret is struck out of the file once more.
"""

from __future__ import annotations

import importlib.resources
import os
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from holdfast.cli.cost import BY
from holdfast.cli.foreign import write_new
from holdfast.cli.measure import size_words
from holdfast.cli.place import find_run
from holdfast.cli.say import out, out_json, short
from holdfast.core.collapse import families
from holdfast.core.layout import Box
from holdfast.core.state import State
from holdfast.core.views import shown_phase
from holdfast.errors import UsageError
from holdfast.model.plan import StepId
from holdfast.web.cost import expected, run_bill, shown
from holdfast.web.graph import View, draw, sketched, states_of
from holdfast.web.ledger import Wanted as Asked
from holdfast.web.ledger import groups_of, learned_of
from holdfast.web.log import Said, endings_in, said_by
from holdfast.web.look import Look
from holdfast.web.run import strip_of
from holdfast.web.screens import rendered
from holdfast.web.steps import PAGE, Row, listing, mark_of, rows_of
from holdfast.web.timeline import DRAWN, LONGEST, Wanted, chart_of

MARK = "<!-- a run, exported by holdfast -->"  # by which a file of ours is known again
MOST_ROWS = 2000  # steps in the list
MOST_TROUBLES = 200  # steps that failed or wait, each with the end of what it wrote
MOST_SAID = 30  # other attempts whose output is in the file, the last ones
EACH = 4 * 1024  # bytes of each
_TROUBLED = frozenset({"failed", "waiting", "running"})


@dataclass(frozen=True, slots=True)
class Trouble:
    """A step that wants attention, with how its last attempt ended."""

    row: Row
    said: Said | None


def exported(look: Look, state: State, secrets: Sequence[str] = ()) -> str:
    """The whole file."""
    with look.speaking(state.line, state.file):
        rows = _rows(look, state)
        there = {row.step for row in rows}
        troubles = _troubles(look, state)
        sketch = sketched(state, families(state.plan.steps), View())

        def box_link(box: Box) -> str:
            return _link(box.steps[0], there) if len(box.steps) == 1 else "#steps"

        context = {
            "state": state,
            "strip": strip_of(look, state),
            "look": look,
            "styles": _styles(),
            "rows": rows,
            "troubles": troubles,
            "most_troubles": MOST_TROUBLES,
            "said": _last_said(look, state),
            "drawing": draw(sketch, states_of(state), box_link),
            "chart": chart_of(look, state, Wanted()),
            "drawn": DRAWN,
            "longest": LONGEST,
            "step_link": lambda step: _link(step, there),
            "bills": [shown(run_bill(look, state, by), look.now) for by in BY[:-1]],
            "expected": expected(look, state),
            "groups": groups_of(learned_of(look, state), Asked(run=state.run), ()),
            "mark": Markup(MARK),  # noqa: S704 - a word of ours
        }
        return rendered("export.html", context, secrets=secrets)


def write_export(look: Look, given: str | None, file: str, *, as_json: bool) -> None:
    """Write a run into a file; one that somebody else wrote is never overwritten."""
    if not look.where.exists():
        raise UsageError("there is no run yet", hint="holdfast run")
    if os.path.lexists(file) and not _is_ours(file):
        raise UsageError(f"'{file}' is there, and is no exported run", hint="name another file")
    try:
        run = find_run(look.store, given, look.where.line())
        state = look.find(run)
        text = exported(look, state, look.where.hidden(look.store)())
    finally:
        look.close()
    write_new(file, text, force=True)
    if as_json:
        size = len(text.encode())
        out_json({"schema": "holdfast.ui-export/1", "run": run, "file": file, "bytes": size})
    else:
        out(f"wrote {file}: {short(run)}, {size_words(len(text.encode()))}")


def _is_ours(file: str) -> bool:
    try:
        with open(file, encoding="utf-8", errors="replace") as opened:
            return MARK in opened.read(len(MARK) + 32)
    except OSError:
        return False


def _link(step: StepId, there: set[StepId]) -> str:
    return f"#{mark_of(step)}" if step in there else "#steps"


def _rows(look: Look, state: State) -> list[Row]:
    """The steps in the order of the plan, groups folded."""
    found: list[Row] = []
    for number in range(1, MOST_ROWS // PAGE + 1):
        page = listing(look, state, page=number)
        found += page.rows
        if page.first + PAGE >= page.known:
            break
    return found


def _troubles(look: Look, state: State) -> list[Trouble]:
    wanted = [step for step in state.graph.order if shown_phase(state, step) in _TROUBLED]
    chosen = wanted[:MOST_TROUBLES]
    last = {one.step: one for one in endings_in(look, state)}
    rows = rows_of(look, state, [(step, 0) for step in chosen], flat=True)
    return [
        Trouble(row, said_by(look, last[row.step], EACH) if row.step in last else None)
        for row in rows
    ]


def _last_said(look: Look, state: State) -> list[Said]:
    return [said_by(look, one, EACH) for one in endings_in(look, state)[-MOST_SAID:]]


def _styles() -> Markup:
    """The styles of the page, which are ours."""
    folder = importlib.resources.files("holdfast.web") / "static"
    return Markup("\n").join(
        Markup((folder / name).read_text("utf-8"))  # noqa: S704 - files of ours
        for name in ("page.css", "charts.css")
    )
