"""The step that is selected: its result, its attempts, why it ran, what it wrote, what it found."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from holdfast import wire
from holdfast.cli.onlook import Glass
from holdfast.cli.people import decided_in
from holdfast.cli.pieces import Contents, Piece, pieces
from holdfast.cli.place import known_step
from holdfast.cli.say import named, short
from holdfast.cli.sides import entries_of
from holdfast.cli.status import step_notes
from holdfast.cli.succession import with_successor
from holdfast.cli.why import told_of_run, with_commands
from holdfast.cli.whytext import told_lines
from holdfast.core.evidence import Evidence
from holdfast.core.ledger import Ledger
from holdfast.core.state import COMPLETE, State
from holdfast.core.told import Told
from holdfast.core.views import shown_phase
from holdfast.engine.elsewhere import handoffs_of
from holdfast.engine.journals import runs_of
from holdfast.engine.ledgers import ledger_of
from holdfast.engine.words import maker
from holdfast.errors import IntegrityError, UsageError
from holdfast.model.artifact import Entry, Form
from holdfast.model.digest import Digest
from holdfast.model.plan import StepId
from holdfast.ports import Store
from holdfast.web.look import Look
from holdfast.web.markdown import is_markdown, rendered
from holdfast.web.screens import number, screen
from holdfast.web.screens import rendered as drawn
from holdfast.web.steps import mark_of
from holdfast.web.tries import Shown, shown_tries, tries_of

MOST_SHOWN = 128 * 1024  # characters of one content on a page
MOST_RUNS = 20  # that are looked at for what stood before
LOG_PAGE = 400  # lines of a log at once
_DIGEST = re.compile(r"[0-9a-f]{64}")
VIEWS = (
    ("result", "Result"),
    ("attempts", "Attempts"),
    ("diff", "Diff"),
    ("why", "Why"),
    ("logs", "Logs"),
    ("evidence", "Evidence"),
)


@dataclass(frozen=True, slots=True)
class Content:
    """One content: as prose, or as text; of a long one the beginning. Bytes that are no text have neither."""

    name: str
    digest: Digest
    size: int
    text: str | None = None
    prose: Markup | None = None
    rest: int = 0  # characters that are not shown
    hidden: str = ""  # why nothing of it is shown


@dataclass(frozen=True, slots=True)
class Log:
    """Some lines of what an attempt wrote."""

    attempt: int
    lines: tuple[str, ...]
    first: int
    known: int
    running: bool
    attempts: tuple[int, ...]


def show(look: Look, request: Request) -> Response:
    """The drawer alone, for a page that is there already."""
    state = look.find(request.path_params["run"])
    with look.speaking(state.line, state.file):
        return HTMLResponse(drawer(look, state, request.query_params))


def drawer(look: Look, state: State, query: Mapping[str, str]) -> Markup:
    """The drawer of the step that a query names."""
    return drawn("drawer.html", {"look": look, "state": state, **drawer_of(look, state, query)})


def drawer_of(look: Look, state: State, query: Mapping[str, str]) -> dict[str, object]:
    """What the drawer is made of."""
    step_id = known_step(state.plan, query.get("step", ""))
    here = state.steps[step_id]
    views = dict(VIEWS)
    usual = "attempts" if here.phase == "failed" and here.attempts else "result"
    view = query.get("view", "")
    view = view if view in views else usual
    now = look.now if state.status == "running" and look.is_driven(state) else 0
    made: Mapping[str, Callable[[], object]] = {
        "result": lambda: result_of(look, state, step_id),
        "attempts": lambda: _attempts(look, state, step_id),
        "diff": lambda: diffs_of(look, state, step_id),
        "why": lambda: why_of(look, state, step_id),
        "logs": lambda: log_of(look, state, step_id, query),
        "evidence": lambda: evidence_of(look, state, step_id),
    }
    word = decided_in(look.store, state).get(step_id)
    return {
        "step": state.plan.steps[step_id],
        "here": here,
        "mark": mark_of(step_id),
        "phase": shown_phase(state, step_id),
        "notes": step_notes(state, step_id, now, f"by {word.words()}" if word else ""),
        "views": VIEWS,
        "view": view,
        "content": made[view](),
        "query": query,
        "acts": acts_of(state, step_id),
        "commands": commands_of(state, step_id, view),
    }


def acts_of(state: State, step_id: StepId) -> tuple[str, ...]:
    """What can be done with a step of a run, whoever may do it."""
    phase = state.steps[step_id].phase
    found = []
    if phase in {"failed", "done", "reused"} or step_id in state.gaps:
        found.append("retry")
    if not state.ended and phase in {"pending", "failed", "waiting", "skipped"}:
        found.append("skip")
    if phase in COMPLETE and step_id not in state.gaps:
        found.append("accept")
    return tuple(found)


def commands_of(state: State, step_id: StepId, view: str) -> tuple[str, ...]:
    """The command that shows the same."""
    run, name = short(state.run), named(step_id)
    told = {
        "result": f"holdfast show {name}",
        "attempts": f"holdfast diff {name}@{max(1, state.steps[step_id].attempts - 1)}",
        "diff": f"holdfast diff {short(state.previous or state.run)} {run} --outputs -s {name}",
        "why": f"holdfast why {name} --run {run}",
        "logs": f"holdfast logs {name} --run {run}",
        "evidence": f"holdfast ledger --step {name}",
    }
    return (told[view],)


# --- result -----------------------------------------------------------------------------------------


def result_of(look: Look, state: State, step_id: StepId) -> list[Content]:
    """What stands of the step in this run; what is parked, if people still decide about it."""
    here, step = state.steps[step_id], state.plan.steps[step_id]
    digest, form = here.digest, here.form
    if here.parked is not None:
        digest, form = here.parked.digest, here.parked.form
    if digest is None or (here.phase not in COMPLETE and here.parked is None):
        return []
    return contents_of(
        look.store, step_id, entries(look.store, state, step_id, digest, form), step.asks_model
    )


def entries(
    store: Store, state: State, step_id: StepId, digest: Digest, form: Form
) -> Mapping[str, Entry]:
    """The files of an artifact by path; nothing if it is not kept any more."""
    try:
        return entries_of(store, state.plan.steps[step_id], digest, form)
    except IntegrityError:
        return {}


def contents_of(
    store: Store,
    step_id: StepId,
    found: Mapping[str, Entry],
    by_model: bool,
) -> list[Content]:
    """Contents as a page shows them; of many files only some are opened."""
    room, shown = MOST_SHOWN, []
    for path, entry in found.items():
        one = content_of(store, entry, path or step_id, by_model=by_model, room=room)
        room -= len(one.text or "")
        shown.append(one)
    return shown


def content_of(store: Store, entry: Entry, name: str, *, by_model: bool, room: int) -> Content:
    """One content; `room` is how much of it may be shown."""
    try:
        content = store.get(entry.digest)
    except IntegrityError:
        return Content(name, entry.digest, entry.size, hidden="it is not kept any more")
    text = _text(content)
    if text is None or room <= 0:
        hidden = "it is no text" if text is None else "there is too much before it"
        return Content(name, entry.digest, len(content), hidden=hidden)
    shown = _pretty(text[:room]) if len(text) <= room else text[:room]
    prose = rendered(text) if is_markdown(entry.path, text, by_model=by_model) else None
    return Content(name, entry.digest, len(content), shown, prose, max(0, len(text) - room))


def _text(content: bytes) -> str | None:
    if b"\0" in content:
        return None
    try:
        return content.decode()
    except UnicodeDecodeError:
        return None


def _pretty(text: str) -> str:
    """JSON with its lines apart; anything else as it is."""
    if text.lstrip()[:1] not in {"{", "["}:
        return text
    try:
        return json.dumps(json.loads(text), ensure_ascii=False, indent=2)
    except (ValueError, RecursionError):
        return text


def download(look: Look, request: Request) -> Response:
    """A content as it is, to be saved: never shown by a browser as anything but text."""
    digest = request.path_params["digest"]
    if not _DIGEST.fullmatch(digest) or not look.store.has(Digest(digest)):
        raise UsageError("there is no such content")
    headers = {"Content-Disposition": f'attachment; filename="{digest[:12]}.txt"'}
    return Response(look.store.get(Digest(digest)), media_type="text/plain", headers=headers)


# --- attempts, why ------------------------------------------------------------------------------------


def _attempts(look: Look, state: State, step_id: StepId) -> Sequence[Shown]:
    """The attempts of this run; of a step that is reused, those of the run that made it."""
    found = shown_tries(look, state, step_id)
    if found or state.steps[step_id].phase != "reused":
        return found
    origin = maker(look.store, state, step_id)
    made = look.state(origin.run) if origin is not None and origin.run else None
    return shown_tries(look, made, step_id) if made is not None and step_id in made.steps else ()


@dataclass(frozen=True, slots=True)
class Diff:
    """How something that a step made differs from something that it made before."""

    title: str
    pieces: tuple[Piece, ...]


def diffs_of(look: Look, state: State, step_id: StepId) -> list[Diff]:
    """The last attempt beside the one before it, and what stands beside what stood in an earlier run."""
    tried = [one for one in _attempts(look, state, step_id) if one.diff]
    found = [Diff(f"attempt {one.number} and the one before it", one.diff) for one in tried[-1:]]
    earlier = _stood_before(look, state, step_id)
    here = state.steps[step_id]
    if earlier is None or here.digest is None or here.phase not in COMPLETE:
        return found
    there = earlier.steps[step_id]
    assert there.digest is not None
    sides = (
        entries(look.store, earlier, step_id, there.digest, there.form),
        entries(look.store, state, step_id, here.digest, here.form),
    )
    contents, names = (Contents(look.store), Contents(look.store)), (short(earlier.run), "now")
    title = f"what stands in this run and what stood in {short(earlier.run)}"
    return [*found, Diff(title, tuple(pieces(step_id, *sides, contents, names)))]


def _stood_before(look: Look, state: State, step_id: StepId) -> State | None:
    """The nearest earlier run of the line in which something of the step stood."""
    rows = [row.run for row in runs_of(look.store, state.project, state.line)]
    before = rows[: rows.index(state.run)] if state.run in rows else []
    for run in [*reversed(before)][:MOST_RUNS]:
        past = look.state(run)
        here = past.steps.get(step_id) if past is not None else None
        if here is not None and here.phase in COMPLETE and here.digest is not None:
            return past
    return None


def why_of(look: Look, state: State, step_id: StepId) -> list[tuple[str, bool]]:
    """The words of `holdfast why`."""

    def lines() -> list[tuple[str, bool]]:
        told = told_of_run(look.store, look.where.root, state, step_id)
        told = with_commands(with_successor(look.where, told))
        return [(line.text, line.raw) for line in told_lines(told)]

    return look.made(state, f"why {step_id}", lines)


# --- logs ---------------------------------------------------------------------------------------------


def log_of(look: Look, state: State, step_id: StepId, query: Mapping[str, str]) -> Log | None:
    """A piece of the log of an attempt: the last one, to its end, unless others are asked for."""
    found = tries_of(look, state).found.get(step_id, {})
    if not found:
        return None
    asked = number(query.get("attempt"), 0)
    which = asked if asked in found else max(found)
    past = found[which]
    if past.ended is None:
        text = Glass(look.where.location, state.run).rest(step_id, which)
    else:
        log = past.ended.log
        text = look.store.get(log) if log is not None and look.store.has(log) else b""
    lines = text.decode("utf-8", "replace").rstrip("\n").split("\n") if text else []
    last = max(0, len(lines) - LOG_PAGE)
    first = min(last, number(query.get("from"), last))
    shown = tuple(lines[first : first + LOG_PAGE])
    return Log(which, shown, first, len(lines), past.ended is None, tuple(found))


# --- evidence -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Found:
    """What a step handed over, and what of it stands in the ledger."""

    told: Told | None
    evidence: tuple[Evidence, ...]


def evidence_of(look: Look, state: State, step_id: StepId) -> Found:
    """What a step found, and whether that stands."""
    ledger = look.made(state, "ledger", lambda: _ledger(look, state))
    told = next((one for one in ledger.handoffs if one.step == step_id), None)
    return Found(told, tuple(one for one in ledger.evidence if one.step == step_id))


def _ledger(look: Look, state: State) -> Ledger:
    handoffs = handoffs_of(look.store, state)
    return ledger_of(state, handoffs, wire.alike, handoffs.said)


ROUTES = [screen("/runs/{run}/step", show), screen("/content/{digest}", download)]
