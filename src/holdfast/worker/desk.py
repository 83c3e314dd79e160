"""The worktree of a ticket as a model works in it: always at a state that has a name."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from holdfast.codebase.index import Index
from holdfast.edits.scope import Scope, outside
from holdfast.edits.workspace import Workspace
from holdfast.errors import EditError, StoreError
from holdfast.gitrepo.commits import commit, reset
from holdfast.gitrepo.greens import rollback
from holdfast.gitrepo.history import list_files
from holdfast.gitrepo.laying import MODULE
from holdfast.gitrepo.names import Identity
from holdfast.gitrepo.state import status
from holdfast.gitrepo.states import (
    Touched,
    grown,
    keep_state,
    left_out,
    put_back,
    restore_state,
    touched,
)
from holdfast.gitrepo.trees import Worktree, head_of
from holdfast.model.digest import digest_bytes
from holdfast.model.fixed import fixed
from holdfast.process.removal import discard

_NOBODY = Identity("Holdfast", "holdfast@localhost")


@fixed
class Bounds:
    """How much a cycle may do: turns of the model, and what may change since the ticket began."""

    turns: int = 40
    files: int = 100
    lines: int = 5_000
    seconds: float = 600.0  # of one command
    agent: float = 3600.0  # seconds of a command-line agent
    refusals: int = 5  # uses in a row that were tried before in the same state
    prompt: int = 24_000  # tokens that a cycle begins with
    bytes: int = 5_000_000  # of new content


@dataclass(slots=True)
class Desk:
    """A worktree, what may be written in it, and where things about it are kept."""

    tree: Worktree
    home: str
    scope: Scope
    bounds: Bounds
    base: str = ""  # the state that the ticket began with
    reserved: str = ""  # a folder that only deliveries write
    at: str = field(default="", init=False)  # the state that the files are known to be in

    @property
    def folder(self) -> str:
        return self.tree.folder

    @property
    def workspace(self) -> Workspace:
        """The folder for edits; they are kept outside of it."""
        return Workspace(self.folder, self.scope, os.path.join(self.home, "edits"))

    def index(self) -> Index:
        """The index of the code base, as it is now."""
        return Index(self.folder, os.path.join(self.home, "code.db"))

    def begin(self, commit: str) -> str:
        """The files as a commit has them, and nothing beside: a kill may have left anything; their state."""
        self._clear(
            self.keep(f"before {commit}")
        )  # by the rules that lie there: a kill may have left others
        rollback(self.tree, to=commit)
        return self.keep(f"at {commit}")

    def keep(self, why: str) -> str:
        """Store the files as they are; their state."""
        self.at = keep_state(self.tree, why=why)
        return self.at

    def go_to(self, state: str) -> None:
        """Bring the files to a state. Afterwards only `keep` may say that they are elsewhere."""
        if self.at != state:
            restore_state(self.tree, state)
            self.at = state

    def lay_bare(self, state: str) -> None:
        """Bring the files to a state, and remove what lies beside it: a kill may have left anything."""
        self.go_to(state)
        self._clear(state)

    def take_back(self, before: str, paths: Collection[str]) -> str:
        """Bring some paths back to what they were in a state; the state then."""
        put_back(self.tree, self.at, before, paths)
        return self.keep("what went too far was taken back")

    def spare_tree(self, laid: str) -> str:
        """Let the reserved folder be what it is in a state, whatever lies there now; the state then."""
        changed = {item.path for item in self.touched(laid, self.at)}
        mine = {path for path in changed if path.startswith(f"{self.reserved}/")}
        return self.take_back(laid, mine) if mine else self.at

    def stir(self) -> None:
        """Something is about to change the files: nobody knows their state until they are kept."""
        self.at = ""

    def touched(self, before: str, after: str) -> tuple[Touched, ...]:
        """The paths that differ between two states."""
        return touched(self.tree.client, before, after)

    def over(self, before: str, after: str) -> str:
        """Why a change goes too far, in words; empty if it may stand."""
        changed = [item.path for item in self.touched(before, after)]
        if refused := self.refused(changed):
            return "; ".join(list(refused.values())[:5])
        return self._too_much(self.touched(self.base, after), after)

    def refused(self, paths: Collection[str]) -> dict[str, str]:
        """Those of some paths that may not be written, and why."""
        found = {refusal.path: refusal.message for refusal in outside(self.scope, paths)}
        top, own = self.reserved.partition("/")[0], f"{self.reserved}/"
        for path in paths:
            if self.reserved and (path in {top, self.reserved} or path.startswith(own)):
                found[path] = (
                    f"'{path}' belongs to the task tree, which the tool `tree` and deliveries write"
                )
        return found

    def settle(self) -> str:
        """The files as a commit of them holds them, and nothing beside: what is checked is delivered.

        Line endings and modes become what git stores. What git ignores and repositories inside go: they are
        not committed. Empty folders, pipes and the like stay: git does not see them.
        """
        head = head_of(self.tree)
        self._clear(self.keep("before it is settled"))
        try:
            made = commit(self.tree, "as it would be committed", identity=_NOBODY)
        except EditError:  # nothing differs
            return self.keep("as it is committed")
        rollback(self.tree, to=made.oid)
        reset(self.tree, str(head), keep="files")
        return self.keep("as it would be committed")

    def _clear(self, state: str) -> None:
        """Remove what no state holds: what git ignores, and repositories inside that it does not know."""
        head = str(head_of(self.tree))
        known = {file.path for file in list_files(self.tree.client, head) if file.mode == MODULE}
        found = status(self.tree, ignored=True).entries
        beside = {entry.path for entry in found if entry.kind == "ignored"}
        for path in (beside | set(left_out(self.tree, state))) - known:
            discard(os.path.join(self.folder, path.rstrip("/")))

    def _too_much(self, changed: Sequence[Touched], after: str) -> str:
        lines = sum((item.added or 0) + (item.removed or 0) for item in changed)
        if len(changed) > self.bounds.files:
            return f"{len(changed)} files of the ticket differ, and {self.bounds.files} may"
        if lines > self.bounds.lines:
            return f"{lines} lines of the ticket differ, and {self.bounds.lines} may"
        new = grown(self.tree.client, self.base, after)
        if new > self.bounds.bytes:
            return f"{new} bytes of the ticket are new, and {self.bounds.bytes} may be"
        return ""

    def remember(self, content: bytes) -> str:
        """Keep what the model was shown, so that an edit of it can be merged; its digest."""
        digest = digest_bytes(content)
        folder = os.path.join(self.home, "seen")
        place = os.path.join(folder, digest)
        if not os.path.exists(place):
            try:
                os.makedirs(folder, 0o700, exist_ok=True)
                fresh = f"{place}.{os.getpid()}"
                with open(fresh, "wb") as file:
                    file.write(content)
                os.replace(fresh, place)
            except OSError as error:
                raise StoreError(f"'{folder}' cannot be written: {error.strerror}") from error
        return digest

    def recall(self, digest: str) -> bytes | None:
        """What was kept under a digest, if it is still what it was."""
        try:
            with open(os.path.join(self.home, "seen", digest), "rb") as file:
                content = file.read()
        except OSError:
            return None
        return content if digest_bytes(content) == digest else None
