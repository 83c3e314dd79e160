"""What a person sees before deciding: what would happen, what it covers, what it blocks."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence

from holdfast.cli.again import again
from holdfast.cli.gates import is_paid
from holdfast.cli.measure import moment
from holdfast.cli.pieces import Contents, Piece, pieces
from holdfast.cli.say import named, short
from holdfast.cli.sides import entries_of
from holdfast.cli.since import since_row
from holdfast.cli.view import width_now
from holdfast.core.approvals import Approval
from holdfast.core.effects import DOUBTED, RECEIPT_GONE, UNCONFIRMED
from holdfast.core.estimate import asked_models
from holdfast.core.reasons import sentence
from holdfast.core.state import State
from holdfast.core.values import filled, has_expressions
from holdfast.engine.decisions import Decisions, Wanted
from holdfast.engine.outputs import Outputs
from holdfast.engine.overtaken import since
from holdfast.errors import AttemptError, EditError, IntegrityError
from holdfast.model.artifact import Entry, Form
from holdfast.model.digest import Digest, Json
from holdfast.model.fixed import frozen
from holdfast.model.plan import Step, StepId
from holdfast.model.text import cells, clean, cut, one_line, wrap
from holdfast.ports import Store

MOST_DIFF = 40  # lines that are shown of what differs
MOST_FILES = 8
MOST_BLOCKED = 8
_LEAST = 20  # columns that are worth breaking a line for
_WHAT = {
    "step": "an approval",
    "edge": "an approval",
    "budget": "an approval to go on beyond its budget",
    "guard": "an approval of what it made",
    "answer": "a person to give its content",
    "effect": "a decision: its effect was started and never confirmed",
    "stuck": "a decision: it cannot get through",
}
_DONE = {
    RECEIPT_GONE: "a decision: its effect was done, and what it gave is gone",
    DOUBTED: "a decision: its effect was done, and whether that still counts cannot be told",
}


@frozen
class Card:
    """A question in words: a headline, rows with a label, and lines of a text that differs."""

    head: str
    rows: Sequence[tuple[str, str]]
    diff: Sequence[str] = ()

    def lines(self) -> list[tuple[str, bool]]:
        """The lines, and whether each is somebody else's words. What is too wide goes on below, whole."""
        width = width_now()
        shown = [(piece, False) for piece in wrap(one_line(f"⏸ {self.head}"), width)]
        for label, text in self.rows:
            for number, line in enumerate(clean(text).splitlines() or [""]):
                lead = f"  {label if not number else '':<9} "
                shown += [(piece, False) for piece in _hung(lead, one_line(line), width)]
        for line in self.diff:
            text = f"    {one_line(line.expandtabs(4))}"
            shown.append((cut(text, width) if width else text, True))
        return shown


def _hung(lead: str, text: str, width: int) -> list[str]:
    """A text beside its label, broken where the screen ends; nothing of it is left out."""
    room = width - len(lead) if width else 0
    if room < _LEAST or cells(text) <= room:
        return [f"{lead}{text}".rstrip()]
    pieces = wrap(text, room, indent=0)
    return [
        f"{lead if not number else ' ' * len(lead)}{piece}" for number, piece in enumerate(pieces)
    ]


def words_of(argv: Sequence[Json]) -> str:
    """A command as the system gets it: each word by itself, everything else than ASCII spelled out."""
    return json.dumps(list(argv), ensure_ascii=True)


def card(decisions: Decisions, store: Store, wanted: Wanted, root: str) -> Card:
    """The card of a question; `root` is the project directory."""
    request, state = wanted.approval.request, decisions.state_of(wanted)
    step, document = state.plan.steps[wanted.step], decisions.document(wanted.approval)
    names = f" from {' or '.join(request.names)}" if request.names else ""
    after = f" after {document['after']}" if document.get("after") else ""
    held = state.steps[step.id].reason if request.gate == "effect" else None
    done = _DONE.get(held.code, "") if held is not None else ""
    if held is not None and held.code == UNCONFIRMED and held.because:
        done = f"a decision: its effect was done, and {', '.join(held.because)}"
    what = done or _WHAT[request.gate]
    head = f"{request.step} waits for {what}{names}{after}"
    rows = [("id", f"{request.approval} in {short(wanted.run)}")]
    if step.description:
        rows.append(("is", step.description.strip()))
    rows += _since(store, decisions, wanted.approval, document, root)
    rows += _asked(state, store, step) if request.gate == "answer" else []
    rows += _effect(decisions, wanted, was_done=bool(done)) if request.gate == "effect" else []
    if request.gate == "step" and step.done_once and state.steps[step.id].effect is not None:
        rows += [("effect", "it began before and may have happened"), *_begun(decisions, wanted)]
    rows += _stuck(state, wanted.step) if request.gate == "stuck" else []
    if "items" in document:
        rows.append(("items", f"{document['items']:,} that are new or changed"))
    rows += _does(step, document, root)
    found = _differing(state, store, step, document, root)
    rows += [("differs", _counted(piece)) for piece in found]
    rows += [("cost", _price(step, root))]
    if wanted.blocks:
        more = len(wanted.blocks) - MOST_BLOCKED
        rest = f" and {more} more" if more > 0 else ""
        rows.append(("blocks", ", ".join(wanted.blocks[:MOST_BLOCKED]) + rest))
    rows.append(("digest", request.subject))
    return Card(head, rows, _diff(found))


def _price(step: Step, root: str) -> str:
    models = ", ".join(asked_models(step))
    each = " for each" if step.awaits_items else ""
    return f"asks {models}{each}, which costs money" if is_paid(root, step) else "$0"


def _since(
    store: Store, decisions: Decisions, approval: Approval, document: Mapping[str, Json], root: str
) -> list[tuple[str, str]]:
    """Why an earlier yes does not count, and what is other already than when this was asked."""
    found = since(store, decisions.book, approval)
    rows = [since_row(found)] if found is not None else []
    if stale := stale_files(document, root):
        now = ", ".join(stale[:MOST_FILES])
        rows.append(("stale", f"changed since this was asked: {now}; a yes is for what it was"))
    return rows


def stale_files(document: Mapping[str, Json], root: str) -> list[str]:
    """The files of a question that are not any more as they were when it was asked."""
    files = document.get("files")
    return [
        path
        for path, seen in sorted(files.items() if isinstance(files, Mapping) else ())
        if _digest_of(seen) != _digest_now(os.path.join(root, path))
    ]


def _digest_of(seen: Json) -> str:
    """The content in what is known of a file: a digest (`+x` if it is a program), or a list with one."""
    digest = seen[0] if isinstance(seen, list) and seen else seen
    return digest.removesuffix("+x") if isinstance(digest, str) else ""


def _digest_now(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""


def _does(step: Step, document: Mapping[str, Json], root: str) -> list[tuple[str, str]]:
    """What the kernel will get, and what it is made of."""
    rows: list[tuple[str, str]] = []
    run, shell = document.get("run"), document.get("shell")
    if document.get("gate") in {"effect", "stuck"}:  # about what was tried, not what would be
        run, shell = list(step.run), step.shell
    if isinstance(run, list) and run:
        rows.append(("runs", words_of(run)))
    elif shell:
        rows.append(("runs", f"/bin/sh: {json.dumps(shell)}"))
    if rows:
        fresh = step.workspace == "scratch"
        rows.append(("in", "a fresh directory" if fresh else os.path.abspath(root)))
    effects = document.get("effects", step.effects)
    again = ", may be repeated" if step.idempotent else ""
    rows += [("effects", f"{effects}{again}")] if effects != "none" else []
    for key, label in (("env", "env"), ("secrets", "secrets"), ("produces", "writes")):
        value = document.get(key)
        if isinstance(value, list) and value:
            rows.append((label, ", ".join(str(item) for item in value)))
    values = document.get("with")
    if isinstance(values, Mapping) and values:
        rows.append(("with", json.dumps(values, ensure_ascii=True, sort_keys=True)))
    files = document.get("files")
    if isinstance(files, Mapping) and files:
        shown = [_file_words(path, seen) for path, seen in sorted(files.items())]
        more = f" and {len(shown) - MOST_FILES} more" if len(shown) > MOST_FILES else ""
        rows.append(("reads", ", ".join(shown[:MOST_FILES]) + more))
    return rows


def _file_words(path: str, seen: Json) -> str:
    """A file and the beginning of its digest."""
    digest = _digest_of(seen)
    return f"{path} {digest[:12]}" if digest else f"{path} (not there)"


def _asked(state: State, store: Store, step: Step) -> list[tuple[str, str]]:
    """What a person is to give, and why an earlier version was refused."""
    rows = []
    text = prompt_words(state, store, step)
    if text:
        rows.append(("asks", text))
    for fed in state.steps[step.id].fed[-1:]:
        said = store.get(fed.feedback).decode("utf-8", "replace") if fed.feedback else ""
        rows.append(("refused", f"by guard '{fed.guard}': {said}".rstrip(": ")))
    file = "" if step.produces else " FILE"
    rows.append(("answer", again(f"holdfast answer {named(step.id)}{file}")))
    return rows


def prompt_words(state: State, store: Store, step: Step) -> str:
    """The prompt of a step as text, with what it reads filled in as far as that is there."""

    def read(need: StepId) -> bytes | None:
        above = state.steps[need]
        if above.digest is None or above.form == "tree":
            return None
        return store.get(above.digest)

    if has_expressions(step):
        try:
            step = filled(step, read)
        except (AttemptError, IntegrityError) as error:
            return f"({error.message})"
    prompt = step.prompt
    if isinstance(prompt, Mapping):
        return "\n".join(str(part) for part in prompt.values())
    return str(prompt or "").strip()


def _effect(decisions: Decisions, wanted: Wanted, *, was_done: bool) -> list[tuple[str, str]]:
    rows = _begun(decisions, wanted, "last try" if was_done else "begun")
    first = decisions.asked_before(wanted)
    if first is not None:
        both = again(f"holdfast approve {named(wanted.step)}")
        rows.append(("same", f"the open effect of {first.approval.id}; one yes for both: {both}"))
    return [*rows, ("approve", "does it again"), ("reject", "fails the step")]


def _begun(decisions: Decisions, wanted: Wanted, label: str = "begun") -> list[tuple[str, str]]:
    begun = decisions.begun(wanted)
    rows = [(label, f"attempt {begun.attempt} of {short(begun.run)}, {moment(begun.at)}")]
    return [*rows, ("key", begun.key)] if begun.key else rows


def _stuck(state: State, step_id: StepId) -> list[tuple[str, str]]:
    here, step = state.steps[step_id], state.plan.steps[step_id]
    rows = [("tried", f"{here.attempts} attempts")]
    rows += [("refused", sentence(here.last))] if here.last is not None else []
    rows += (
        [("sent back", f"{', '.join(step.escalate)}: {here.reopened}×")] if here.reopened else []
    )
    return [*rows, ("approve", "begins its tries anew"), ("reject", "fails the step")]


# --- what differs ---------------------------------------------------------------------------------


def _differing(
    state: State, store: Store, step: Step, document: Mapping[str, Json], root: str
) -> list[Piece]:
    """What would stand against what stands now: files against files, else what was accepted last."""
    artifact = document.get("artifact")
    if not isinstance(artifact, str):
        return []
    if document.get("gate") == "guard":
        form: Form = _form(document.get("form"))
        made = entries_of(store, step, Digest(artifact), form)
        if step.produces:
            return _compared(step.id, _on_disk(root, store, step), made, store, root)
        return _compared(step.id, _last(store, state, step, made), made, store)
    above = state.plan.steps[StepId(str(document["after"]))]
    here = state.steps[above.id]
    if here.digest != artifact:
        return []
    made = entries_of(store, above, Digest(artifact), here.form)
    return _compared(above.id, _last(store, state, above, made), made, store)


def _form(value: Json) -> Form:
    return "tree" if value == "tree" else "program" if value == "program" else "bytes"


def _on_disk(root: str, store: Store, step: Step) -> dict[str, Entry]:
    try:
        return {entry.path: entry for entry in Outputs(root, "", store).read(step)}
    except EditError:
        return {}


def _last(store: Store, state: State, step: Step, made: Mapping[str, Entry]) -> dict[str, Entry]:
    """What was accepted last and is not this very content."""
    found: dict[str, Entry] = {}
    rows = store.artifacts(project=state.project, line=state.line, step=step.id, status="accepted")
    for row in rows:
        try:
            entries = entries_of(store, step, row.digest, row.form)
        except IntegrityError:
            continue
        if entries != made:
            found = entries
    return found


def _compared(
    step: StepId,
    before: Mapping[str, Entry],
    after: Mapping[str, Entry],
    store: Store,
    root: str = "",
) -> list[Piece]:
    contents = (Contents(store, root), Contents(store))
    found = pieces(step, before, after, contents, ("stands", "new"))
    return [_with_text(piece, after, contents[1]) for piece in found]


def _with_text(piece: Piece, after: Mapping[str, Entry], contents: Contents) -> Piece:
    """What is wholly new is shown as it is, if it is text."""
    if piece.how != "added":
        return piece
    content = contents.get(after[piece.path])
    try:
        text = "" if content is None or b"\0" in content else content.decode()
    except UnicodeDecodeError:
        return piece
    return piece._replace(lines=tuple(f"+{line}" for line in text.splitlines()))


def _counted(piece: Piece) -> str:
    return f"{piece.name}: {piece.words()}"


def _diff(found: Sequence[Piece]) -> list[str]:
    lines: list[str] = []
    for piece in found:
        lines += piece.lines
        lines += [
            f"{change.path}: {change.before!r} → {change.after!r}" for change in piece.changes
        ]
    if len(lines) <= MOST_DIFF:
        return lines
    hidden = len(lines) - MOST_DIFF
    shown = [piece.after[:12] for piece in found if piece.after]
    whole = f": holdfast show {shown[0]}" if shown else ""
    return [*lines[:MOST_DIFF], f"… {hidden} more lines{whole}"]
