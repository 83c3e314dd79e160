"""A job as bytes, which another process, perhaps on another machine, makes a job of again.

Canonical JSON. Contents do not travel with it: the store has them, and the parcel names their digests. Only
what is small stands in the parcel itself, as the store keeps such contents with the facts that name them;
and what holds a secret, which no store may have.

    {"text": "…"}       a small content
    {"base64": "…"}     one that is no text
    {"digest": "…"}     one that the store has
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple, cast

from holdfast.errors import UsageError
from holdfast.model.artifact import Entry, Form, tree_bytes
from holdfast.model.digest import Digest, Json, canonical
from holdfast.model.fixed import fixed
from holdfast.model.plan import Step, StepId, fragment_bytes, fragment_steps
from holdfast.model.secret import holds
from holdfast.model.walls import WALLS, Walls
from holdfast.ports import Feedback, Given, Job, given_artifact
from holdfast.process.inside import open_inside

PARCEL = "holdfast.parcel/1"
SMALL = 16 * 1024  # bytes of a content that may travel along
MOST_SMALL = 64 * 1024  # bytes of all of them

Put = Callable[[bytes], Digest]
Get = Callable[[Digest], bytes]
Piece = Mapping[str, str]


class Wish(NamedTuple):
    """What the person wants of the sandbox; everything else in it is the affair of the machine there."""

    network: bool = False
    sandbox: bool = True
    written_here: bool = True


class Laid(NamedTuple):
    """A file that is laid out for an attempt, or that one left."""

    path: str
    mode: int
    piece: Piece


@fixed
class Parcel:
    """A job that was sent; `content` reads the pieces of it.

    Without `guarded`, what is made comes back as it is, with all that changed in the folder. `files` lie in
    the folder, `code` in what stands for the project directory: modules, and schemas of guards.
    """

    step: Step
    attempt: int
    mark: str
    effect: str
    config_ref: str
    wish: Wish
    guarded: bool
    listens: bool
    files: tuple[Laid, ...]
    code: tuple[Laid, ...]
    given: Mapping[StepId, tuple[Form, Digest]]
    feedback: tuple[tuple[Digest | None, str, Piece], ...]
    env: Mapping[str, str]
    from_needs: Mapping[str, StepId]
    told: tuple[StepId, ...]
    context: Piece

    @property
    def secrets(self) -> tuple[str, ...]:
        """The values that nothing which is stored may hold."""
        return secret_values(self.step, self.env)

    def job(
        self,
        get: Get,
        folder: str,
        root: str,
        room: str,
        on_output: Callable[[str, bytes], None] | None,
        walls: Walls = WALLS,
    ) -> Job:
        """The job again, in directories of this machine."""
        return Job(
            step=self.step,
            attempt=self.attempt,
            folder=folder,
            root=root,
            room=room,
            mark=self.mark,
            given={
                n: given_artifact(get, digest, form) for n, (form, digest) in self.given.items()
            },
            feedback=tuple(
                Feedback(
                    digest,
                    guard,
                    content(piece, get).decode("utf-8", "replace"),
                    None if digest is None else partial(get, digest),
                )
                for digest, guard, piece in self.feedback
            ),
            env=self.env,
            on_output=on_output,
            effect=self.effect,
            config_ref=self.config_ref,
            files=self.from_needs,
            told=frozenset(self.told),
            context=content(self.context, get).decode(),
            walls=walls,
        )


class Packer:
    """Makes pieces of contents, the large ones by way of the store."""

    def __init__(self, put: Put, secrets: Sequence[str] = ()) -> None:
        self.put = put
        self._secrets = secrets
        self._left = MOST_SMALL

    def piece(self, content: bytes) -> Piece:
        """A content, or the digest under which the store has it."""
        size = len(content)
        if size <= min(SMALL, self._left):
            self._left -= size
            return inline(content)
        if self._secrets and holds([content], self._secrets):
            return inline(content)
        return {"digest": self.put(content)}


def inline(content: bytes) -> Piece:
    """A content that travels along."""
    try:
        return {"text": content.decode()}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(content).decode()}


def content(piece: Piece, get: Get) -> bytes:
    """What a piece stands for."""
    if "text" in piece:
        return piece["text"].encode()
    return base64.b64decode(piece["base64"]) if "base64" in piece else get(Digest(piece["digest"]))


def secret_values(step: Step, env: Mapping[str, str]) -> tuple[str, ...]:
    """The values of the secrets that a step sees."""
    return tuple(env[name] for name in step.secrets if name in env)


def pack(job: Job, code: Iterable[str], wish: Wish, put: Put, *, guarded: bool) -> bytes:
    """A job as bytes; `code` are the files of the project that its modules and guards are made of."""
    packer = Packer(put, secret_values(job.step, job.env))
    data: dict[str, Json] = {
        "schema": PARCEL,
        "step": packer.piece(fragment_bytes({job.step.id: job.step})),
        "attempt": job.attempt,
        "mark": job.mark,
        "effect": job.effect,
        "config_ref": job.config_ref,
        "wish": wish._asdict(),
        "guarded": guarded,
        "listens": job.on_output is not None,
        "files": [laid_json(laid) for laid in found_in(job.folder, packer)],
        "code": [laid_json(laid) for laid in _read(job.root, sorted(code), packer)],
        "given": {need: [got.form, _stored(got, put)] for need, got in job.given.items()},
        "feedback": [
            [one.digest, one.guard, packer.piece(one.text.encode("utf-8", "replace"))]
            for one in job.feedback
        ],
        "env": {name: inline(os.fsencode(value)) for name, value in job.env.items()},
        "from_needs": dict(job.files),
        "told": sorted(job.told),
        "context": packer.piece(job.context.encode()),
    }
    return canonical(data)


def unpack(parcel: bytes, get: Get) -> Parcel:
    """What was packed; UsageError if another version packed it."""
    data = json.loads(parcel)
    if data["schema"] != PARCEL:
        raise UsageError(
            f"'{data['schema']}' is no parcel that this version can open",
            hint="install the same version of holdfast on both machines",
        )
    (step,) = fragment_steps(content(data["step"], get)).values()
    return Parcel(
        step=step,
        attempt=data["attempt"],
        mark=data["mark"],
        effect=data["effect"],
        config_ref=data["config_ref"],
        wish=Wish(**data["wish"]),
        guarded=data["guarded"],
        listens=data["listens"],
        files=laid_from(data["files"]),
        code=laid_from(data["code"]),
        given={
            StepId(need): (cast("Form", form), Digest(digest))
            for need, (form, digest) in data["given"].items()
        },
        feedback=tuple((digest, guard, piece) for digest, guard, piece in data["feedback"]),
        env={name: os.fsdecode(content(piece, get)) for name, piece in data["env"].items()},
        from_needs=data["from_needs"],
        told=tuple(data["told"]),
        context=data["context"],
    )


def found_in(folder: str, packer: Packer) -> Iterator[Laid]:
    """The files of a directory, in the order of their paths; links are left out."""
    for path, full in sorted(paths_in(folder)):
        if not os.path.islink(full):
            with open(full, "rb") as file:
                mode = os.fstat(file.fileno()).st_mode & 0o777
                yield Laid(path, mode, packer.piece(file.read()))


def paths_in(folder: str) -> Iterator[tuple[str, str]]:
    """All that is no directory beneath one: its path from there, and the whole."""
    for top, names, files in os.walk(folder):
        linked = [name for name in names if os.path.islink(os.path.join(top, name))]
        for name in (*files, *linked):
            full = os.path.join(top, name)
            yield os.path.relpath(full, folder), full


def lay(folder: str, files: Iterable[Laid], get: Get) -> None:
    """Write files beneath a private directory."""
    for path, mode, piece in files:
        target = os.path.join(folder, path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "wb") as file:
            file.write(content(piece, get))
        os.chmod(target, mode)


def laid_json(laid: Laid) -> Json:
    """A file as it stands in a parcel."""
    return [laid.path, f"{laid.mode:o}", laid.piece]


def laid_from(data: Iterable[tuple[str, str, Piece]]) -> tuple[Laid, ...]:
    """Files as they stood in a parcel."""
    return tuple(Laid(path, int(mode, 8), piece) for path, mode, piece in data)


def _read(root: str, paths: Iterable[str], packer: Packer) -> Iterator[Laid]:
    for path in paths:
        with open_inside(root, path) as file:
            mode = os.fstat(file.fileno()).st_mode & 0o777
            yield Laid(path, mode, packer.piece(file.read()))


def _stored(given: Given, put: Put) -> Digest:
    """The digest of an artifact; one that nobody stored yet is stored now."""
    if given.digest is not None:
        return given.digest
    if given.form != "tree":
        return put(given.content())
    entries = []
    for path, executable, read in given.files:
        held = read()
        entries.append(Entry(path, put(held), executable, len(held)))
    return put(tree_bytes(tuple(entries)))
