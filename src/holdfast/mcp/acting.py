"""run_start, run_control, ledger_add: the tools that act, each by the command that a person would say."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import cast

from holdfast.cli.again import quoted
from holdfast.cli.foreign import write_new
from holdfast.cli.money import exact
from holdfast.cli.place import received
from holdfast.cli.say import short
from holdfast.cli.words import known
from holdfast.core.said import own_entry, upheld
from holdfast.engine.speaker import check_text
from holdfast.errors import HoldfastError, StaleError, UsageError
from holdfast.mcp.answer import Answer, Next, failed, with_next
from holdfast.mcp.desk import Asked, Desk, said_words
from holdfast.mcp.given import Given
from holdfast.mcp.previews import Previews, Shown, changed_since
from holdfast.mcp.statuses import WAIT
from holdfast.model.digest import Json
from holdfast.model.line import LedgerWord

_LEAST = 1  # micro-dollars: a run that may spend nothing still has a bound
_MICRO = 1_000_000


def run_start(desk: Desk, previews: Previews, given: Given) -> Answer:
    """Begin a run of what was previewed, in a process of its own; its id, at once."""
    digest, select = given.text("plan_hash"), given.texts("select")
    shown = previews.find(digest)
    if shown is not None:
        if select and select != shown.select:
            raise UsageError("the preview with this plan_hash was of another selection")
        select = shown.select
    file = _file(desk, shown)
    options = ["--detach", f"--preview={digest}", *_most(given)]
    options += ["--yes"] if given.flag("replace_waiting") else []
    options += [f"--key={key}"] if (key := given.maybe("key")) is not None else []
    options += [f"--select={name}" for name in select]
    try:
        return _begun(desk, Asked(["run"], options, file=file))
    except StaleError as error:
        raise _explained(desk, shown, error) from error


def _file(desk: Desk, shown: Shown | None) -> str | None:
    """The plan file to run; a plan that was sent is put where a person finds it."""
    if shown is None or not shown.text:
        return None
    with desk.here() as where:
        path = received(where, shown.text).file
    assert path is not None
    if not os.path.exists(path):
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        write_new(path, shown.text, force=False)
    return path


def _explained(desk: Desk, shown: Shown | None, error: StaleError) -> HoldfastError:
    """Say what changed since the preview, if it is still known."""
    if shown is None:
        return error
    return StaleError(f"the preview is stale: {changed_since(desk, shown)}", hint="holdfast plan")


def _most(given: Given) -> list[str]:
    """What a run may spend: who names it agrees to that, and to nothing beyond."""
    most = given.number("max_cost_usd")
    return [] if most is None else [f"--max-cost={exact(max(_LEAST, int(most * _MICRO)))}"]


def _begun(desk: Desk, asked: Asked) -> Answer:
    code, said = desk.command(asked)
    told = said.objects[-1] if said.objects else {}
    run = told.get("run")
    if code or not isinstance(run, str):
        lines = said_words(said) or [f"it ended with exit code {code}"]
        return Answer(lines, {"exit_code": code}, [Next("run_status", {})], is_error=True)
    pid = told.get("pid")
    now = "was begun under this key and has ended" if pid is None else f"runs in process {pid}"
    lines = [*said.beside, f"{short(run)} {now}"]
    data: dict[str, Json] = {"run_id": run, "pid": pid, "log": told.get("log")}
    return Answer(lines, data, [Next("run_status", {"run_id": run, "wait_s": WAIT})])


def run_control(desk: Desk, given: Given) -> Answer:
    """Go on with a run, stop it, or try a step of it again."""
    run, action, step = given.text("run_id"), given.text("action"), given.maybe("step")
    if (action == "retry") != (step is not None):
        raise UsageError("'retry' names a 'step', and nothing else does")
    if action in {"pause", "stop"}:
        return _stopped(desk, run, now=action == "stop")
    asked = Asked(["resume"], ["--detach", *_most(given)], [run])
    if step is not None:
        _check_last(desk, run)
        asked = Asked(["retry"], ["--detach", *_most(given)], [step])
    try:
        return _begun(desk, asked)
    except UsageError as error:
        if "--max-cost" not in (error.hint or ""):
            raise
        more: Mapping[str, Json] = {**given.values, "max_cost_usd": 1.0}
        return with_next(failed(error), Next("run_control", more))


def _check_last(desk: Desk, run: str) -> None:
    """`retry` is about the last run of the line: another one cannot be meant."""
    code, said = desk.command(Asked(["status"]))
    last = said.objects[-1].get("run") if not code and said.objects else None
    if not isinstance(last, str) or not last.startswith(run if run != "@" else ""):
        raise UsageError(f"'{run}' is not the last run of its line", hint="holdfast status")


def _stopped(desk: Desk, run: str, *, now: bool) -> Answer:
    """Stop a run: after its running steps, or at once. Both can be resumed."""
    code, said = desk.command(Asked(["stop"], ["--now"] if now else [], [run]))
    told = cast("Mapping[str, Json]", said.objects[-1] if said.objects else {})
    found = str(told.get("run", run))
    line = f"asked {short(found)} to stop " + ("now" if now else "after its running steps")
    return Answer(
        [*said.beside, line],
        {"run_id": found, "exit_code": code},
        [Next("run_status", {"run_id": found, "wait_s": WAIT})],
    )


def ledger_add(desk: Desk, given: Given) -> Answer:
    """Add evidence or a gap; whether it is true is for people and for guards to say."""
    kind, text = given.text("kind"), given.text("text")
    refs = given.texts("refs")
    what, part = ("evidence", "evidence") if kind == "evidence" else ("a gap", "gaps")
    following = [Next("ledger_query", {"kind": part})]
    if own := _known(desk, kind, text):
        return Answer([f"the ledger has that already: {own}"], {"entry": own}, following)
    because = "said by an agent" + (f", from {', '.join(refs)}" if refs else "")
    asked = Asked(["ledger", "add"], [f"--because={because}"], [kind, text])
    code, said = desk.command(asked)
    data = dict(said.objects[-1]) if said.objects else {}
    lines = [*said.beside, f"added {what}: {quoted(text)}"]
    return Answer(lines, {**data, "exit_code": code}, following)


def _known(desk: Desk, kind: str, text: str) -> str:
    """The id of an entry that says exactly this; empty if there is none."""
    with desk.here() as where, known(where, readonly=True) as here:
        word: LedgerWord = "evidence" if kind == "evidence" else "gap"
        own = here.speaker().own(word, check_text(text, "the text"))
        return own if own in map(own_entry, upheld(here.said)) else ""
