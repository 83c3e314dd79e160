"""The tools of a cycle: each does one thing at the desk and says what came of it, within bounds."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar, cast

from holdfast.codebase.impact import impact
from holdfast.codebase.search import Hits, Query, search
from holdfast.codebase.symbols import find_symbols
from holdfast.edits.beneath import read_beneath
from holdfast.edits.editing import Edit, Saw, apply_edit
from holdfast.edits.write import Report
from holdfast.errors import BugError, EditError, HoldfastError, IntegrityError, StoreError
from holdfast.gitrepo.diff import diff_files_text
from holdfast.gitrepo.state import status
from holdfast.model.digest import Json
from holdfast.model.text import one_line
from holdfast.ports import Job, Said
from holdfast.process.room import clean_environment
from holdfast.process.run import Command, Completed, run
from holdfast.process.terms import Terms
from holdfast.process.tools import toolchains
from holdfast.worker.desk import Desk
from holdfast.worker.memory import TAKEN_BACK, Memory

MOST = 12_000  # characters of an answer
_HEAD = 3_000  # of them, from the beginning
_LINES = 400  # of a file at once
_HITS = 60
_FEW = 40
_KEPT = 16 << 20  # bytes of what a command says
_ENDINGS = {
    "signalled": "ended by signal {0}",
    "timed_out": "ended: it took more than {1:g} s",
    "idle": "ended: it said nothing for too long",
    "overflow": "ended: it wrote too much",
    "no_room": "ended: it left too little room on the disk",
    "not_found": "not found",
    "not_executable": "cannot be executed",
}

Given = Mapping[str, Json]
T = TypeVar("T")


class Tools:
    """The tools of one attempt; `memory` is what it knows so far."""

    def __init__(self, desk: Desk, memory: Memory, job: Job, terms: Terms | None) -> None:
        self._desk = desk
        self._memory = memory
        self._job = job
        self._terms = terms
        self._by_name: dict[str, Callable[[Given], str]] = {
            "search": self._search,
            "read": self._read,
            "symbols": self._symbols,
            "impact": self._impact,
            "edit": self._edit,
            "status": self._status,
            "diff": self._diff,
            "tree": self._tree,
            "plan": self._plan,
            "commit": self._commit,
            "ask": lambda _: "the question is put to a person; the cycle ends here",
            "finish": lambda _: "the cycle ends here; the checks decide",
        }

    async def use(self, name: str, given: Given) -> Said:
        """Do it, at the state that is known; whatever it cannot do it says in words."""
        try:
            await in_thread(lambda: self._desk.go_to(self._memory.state))
            if name == "run":
                return await self._run(given)
            return Said(_bounded(await in_thread(lambda: self._by_name[name](given))))
        except (StoreError, IntegrityError, BugError):  # not the model's doing
            raise
        except HoldfastError as error:
            return Said(f"refused: {error.message}{_hint(error)}", ok=False)

    # --- looking -------------------------------------------------------------------------------------

    def _search(self, given: Given) -> str:
        query = Query(
            pattern=str(given["pattern"]),
            globs=_texts(given, "globs"),
            languages=_texts(given, "types"),
            before=_number(given, "context", 0),
            after=_number(given, "context", 0),
            ignore_case=bool(given.get("ignore_case")),
            fixed=bool(given.get("fixed")),
            limit=_HITS,
        )
        return _hits(search(self._desk.folder, query))

    def _read(self, given: Given) -> str:
        path = str(given["path"])
        seen = read_beneath(self._desk.folder, path)
        if seen is None:
            raise EditError(f"there is no file '{one_line(path)}'", hint="use search to find it")
        digest = self._desk.remember(seen.content)
        lines = seen.content.decode("utf-8", "replace").splitlines()
        first = max(1, _number(given, "first", 1))
        last = min(len(lines), _number(given, "last", first + _LINES - 1), first + _LINES - 1)
        shown = [f"{at:5} {lines[at - 1]}" for at in range(first, last + 1)]
        if last < len(lines):
            shown.append(f"[{len(lines) - last} more lines: read it from line {last + 1}]")
        head = f"file {path} {digest}\n" if "\n" not in path else ""
        return head + f"lines {first}-{last} of {len(lines)}\n" + "\n".join(shown)

    def _symbols(self, given: Given) -> str:
        files = (str(given["file"]),) if given.get("file") else ()
        name = str(given["name"]) if given.get("name") else None
        with self._desk.index() as index:
            index.update()
            found = find_symbols(index, name, files=files)
        rows = [
            f"{path}:{symbol.line}-{symbol.end} {symbol.kind} {symbol.signature}"
            for path, symbol in found[:_FEW]
        ]
        return _listed(rows, len(found), "say more of the name, or a file")

    def _impact(self, given: Given) -> str:
        with self._desk.index() as index:
            index.update()
            found = impact(index, list(_texts(given, "things")))
        rows = [f"{one.path}: {'; '.join(one.reasons)}" for one in found[:_FEW]]
        return _listed(rows, len(found), "name fewer things")

    def _status(self, _: Given) -> str:
        rows = [f"{entry.kind} {entry.path}" for entry in status(self._desk.tree).entries]
        return _listed(rows[:_FEW], len(rows), "look at the diff of one file")

    def _diff(self, given: Given) -> str:
        paths = (str(given["path"]),) if given.get("path") else ()
        text = diff_files_text(self._desk.tree, *paths).decode("utf-8", "replace")
        return text or "nothing differs from the last commit"

    # --- changing ------------------------------------------------------------------------------------

    def _edit(self, given: Given) -> str:
        before, desk = self._memory.state, self._desk
        contents = {
            path: content
            for path, digest in self._memory.saw.items()
            if digest is not None and (content := desk.recall(digest)) is not None
        }
        desk.stir()
        report = apply_edit(
            desk.workspace, Edit(str(given["edit"]), saw=Saw(self._memory.saw, contents))
        )
        if report.refusals:
            desk.go_to(before)
            raise EditError(_refusals(report))
        state = desk.keep("an edit")
        if too_far := desk.over(before, state):
            desk.go_to(before)
            raise EditError(f"{too_far}; nothing was changed")
        rows = [f"file {file.path} {self._after(file.contents[1])}" for file in report.files]
        done = [
            f"{'deleted' if file.after is None else 'new' if file.before is None else 'changed'}"
            f" {file.path}: {', '.join(dict.fromkeys(file.levels)) or 'whole'}"
            for file in report.files
        ]
        return "\n".join([f"state {state}", *rows, *done, *report.warnings])

    def _after(self, content: bytes | None) -> str:
        return "-" if content is None else self._desk.remember(content)

    async def _run(self, given: Given) -> Said:
        before, desk = self._memory.state, self._desk
        limit = min(float(_number(given, "seconds", 0)) or desk.bounds.seconds, desk.bounds.seconds)
        desk.stir()
        done = await run_in(desk, self._job, self._terms, str(given["command"]), limit)
        state = await in_thread(lambda: desk.keep("a command"))
        words = [f"exit code {done.code}" if done.ended == "exited" else _ending(done, limit)]
        if too_far := await in_thread(lambda: desk.over(before, state)):
            await in_thread(lambda: desk.go_to(before))
            words.append(f"{TAKEN_BACK}{too_far}")
            state = before
        changed = [item.path for item in desk.touched(before, state)]
        if changed:
            words.append(f"it changed {', '.join(changed[:_FEW])}")
        streams = [
            f"{name}:\n{text}"
            for name, content in (("stdout", done.stdout), ("stderr", done.stderr))
            if (text := content.decode("utf-8", "replace").rstrip())
        ]
        whole = "\n".join([f"state {state}", *words, *streams])
        return Said(_bounded(whole), ok=True)

    # --- telling -------------------------------------------------------------------------------------

    def _tree(self, given: Given) -> str:
        nodes = cast("list[Given]", given["nodes"])
        return f"noted: {', '.join(one_line(str(node['id'])) for node in nodes) or 'nothing'}"

    def _plan(self, given: Given) -> str:
        steps = _texts(given, "steps") or self._memory.plan
        return (
            "\n".join(f"{at}. {one_line(step)}" for at, step in enumerate(steps, 1))
            or "no plan yet"
        )

    def _commit(self, given: Given) -> str:
        if not one_line(str(given["message"])).strip():
            raise EditError("a commit needs a message")
        last = self._memory.marks[-1].state if self._memory.marks else ""
        if last == self._memory.state:
            raise EditError("nothing changed since the last commit")
        return "noted: it is committed when the checks of this cycle pass"


async def run_in(
    desk: Desk, job: Job, terms: Terms | None, command: str, seconds: float
) -> Completed:
    """Run a shell command at the desk, on the terms of commands that nobody here wrote."""
    if job.place is not None:
        await job.place()
    env = clean_environment(job.room, os.environ, job.env)
    env |= toolchains(env["PATH"])
    sandbox = None
    if terms is not None:
        sandbox = terms.sandbox_for(desk.folder, desk.folder, job.room, env["PATH"])
    wanted = Command(
        argv=("/bin/sh", "-c", command),
        cwd=desk.folder,
        env=env,
        timeout=seconds,
        mark=job.mark,
        keep=_KEPT,
        sandbox=sandbox,
    )
    return await run(wanted)


async def in_thread(call: Callable[[], T]) -> T:
    """Call beside the loop, to its end whatever happens: half of it would be worse."""
    doing = asyncio.ensure_future(asyncio.to_thread(call))
    try:
        return await asyncio.shield(doing)
    except asyncio.CancelledError:
        await asyncio.wait([doing])
        doing.exception()  # whoever was cancelled has no use for it, and nobody else asks
        raise


def _ending(done: Completed, limit: float) -> str:
    return _ENDINGS[done.ended].format(done.signal, limit)


def _hits(hits: Hits) -> str:
    if not hits.total:
        return "nothing was found"
    rows = [
        f"{line.path}{':' if line.is_match else '-'}{line.number}: {line.text}"
        for line in hits.lines
    ]
    return _listed(rows, len(rows) + max(0, hits.total - hits.shown), "narrow it by globs or types")


def _listed(rows: Sequence[str], total: int, narrow: str) -> str:
    if not rows:
        return "nothing was found"
    more = [f"[{total - len(rows)} more: {narrow}]"] if total > len(rows) else []
    return "\n".join([*rows, *more])


def _refusals(report: Report) -> str:
    told = []
    for refusal in report.refusals[:5]:
        place = f"{refusal.path}, hunk {refusal.hunk}" if refusal.hunk else refusal.path
        told.append(f"{place}: {refusal.message}\n{refusal.guidance}".strip())
    return "nothing was changed\n" + "\n".join(told)


def _hint(error: HoldfastError) -> str:
    return f"\n{error.hint}" if error.hint else ""


def _bounded(text: str) -> str:
    if len(text) <= MOST:
        return text
    left = MOST - _HEAD
    cut = len(text) - MOST
    return f"{text[:_HEAD]}\n[cut: {cut} characters; ask for less]\n{text[-left:]}"


def _texts(given: Given, key: str) -> tuple[str, ...]:
    return tuple(cast("Sequence[str]", given.get(key) or ()))


def _number(given: Given, key: str, usual: int) -> int:
    value = given.get(key)
    return value if isinstance(value, int) else usual
