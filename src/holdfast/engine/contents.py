"""Candidates as contents: what is stored of them, now or with the commit that names it."""

from __future__ import annotations

from holdfast.engine.outputs import SMALL
from holdfast.engine.recent import Recent
from holdfast.engine.taking import Taker
from holdfast.engine.unkept import tells
from holdfast.engine.world import World
from holdfast.model.artifact import Entry, Form, Verdict, tree_bytes, tree_entries
from holdfast.model.changeset import changes_in, changeset_bytes, settled_in
from holdfast.model.digest import Digest, digest_bytes
from holdfast.model.plan import Step
from holdfast.model.secret import holds, struck
from holdfast.ports import Candidate, File, Outcome


class Contents:
    """What attempts made, for one run."""

    def __init__(self, world: World, taker: Taker) -> None:
        self._world = world
        self._taker = taker
        self.recent = Recent()

    def kept(self, digest: Digest, form: Form) -> Candidate:
        """A candidate that was stored before."""
        get = self._world.store.get
        content = get(digest)
        if form != "tree":
            return Candidate(form, content)
        files = tuple(File(e.path, get(e.digest), e.executable) for e in tree_entries(content))
        changes, settled = changes_in(content), settled_in(content)
        return Candidate("tree", files=files, changes=changes, settled=settled)

    def stored(self, step: Step, candidate: Candidate) -> tuple[Digest, Form]:
        """The digest of a candidate, its content stored."""
        digest, blobs, _ = self.of(step, candidate)
        for _, content in blobs:
            self._world.store.put(content)
        return digest, candidate.form

    def of(
        self, step: Step, candidate: Candidate
    ) -> tuple[Digest, list[tuple[Digest, bytes]], tuple[Entry, ...]]:
        """The digest of a candidate, what is still to be stored of it, and its files."""
        blobs: list[tuple[Digest, bytes]] = []
        if candidate.form != "tree":
            content = candidate.content
            digest = self.put(blobs, content)
            if not step.produces:
                self.recent.made(digest, content)
                return digest, blobs, ()
            is_program = candidate.form == "program"
            return digest, blobs, (Entry(step.produces[0], digest, is_program, len(content)),)
        entries = tuple(
            Entry(f.path, self.put(blobs, f.content), f.executable, len(f.content))
            for f in candidate.files
        )
        if candidate.entries:
            entries += candidate.entries
        if not step.changes_copy:
            return self.put(blobs, tree_bytes(entries)), blobs, entries
        changed = {change.path for change in candidate.changes}
        made = tuple(entry for entry in entries if entry.path not in changed)
        digest = self.put(blobs, changeset_bytes(made, candidate.changes, candidate.settled))
        self._taker.note(digest, candidate)
        return digest, blobs, made

    def put(self, blobs: list[tuple[Digest, bytes]], content: bytes) -> Digest:
        """Store a large content now; a small one goes with the commit, as one of `blobs`."""
        if len(content) > SMALL:
            return self._world.store.put(content)
        digest = digest_bytes(content)
        blobs.append((digest, content))
        return digest

    def note(self, step: Step, blobs: list[tuple[Digest, bytes]], content: bytes) -> Digest | None:
        """Store a log or a feedback, without the values of the step's secrets."""
        if not content:
            return None
        return self.put(blobs, struck(content, self._secrets(step)))

    def fit(self, step: Step, outcome: Outcome) -> Outcome:
        """An outcome that can be stored: a candidate that holds a secret is rejected, and nothing of it kept.

        It cannot be struck out here: an artifact is what the step made, byte for byte.
        """
        if not (step.secrets or self._world.hidden()):
            return outcome
        made, secrets = outcome.candidate, self._secrets(step)
        if made is None or not secrets or outcome.ended in {"failed", "lost"}:
            return outcome
        files = (*made.files, *made.fragments)
        where = [file.path for file in files if holds([file.content], secrets)]
        in_words = tells(made.handoff, secrets)
        if not (where or in_words or holds([made.content], secrets)):
            return outcome
        if outcome.ended in {"rejected", "fatal"}:
            return outcome._replace(candidate=None)
        what = f"'{where[0]}'" if where else "the handoff" if in_words else "the artifact"
        words = f"{what} holds the value of a secret or of a key, and is stored as it is"
        return Outcome(
            "rejected",
            "guard_rejected",
            verdict=Verdict("reject", "secrets", words),
            feedback=words,
            log=outcome.log,
        )

    def _secrets(self, step: Step) -> tuple[str, ...]:
        env = self._world.env
        own = (env[name] for name in step.secrets if name in env)
        return (*own, *self._world.hidden())
