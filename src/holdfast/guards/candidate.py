"""A candidate as guards look at it: as text, as a file of its own, under a name."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from holdfast.model.artifact import Verdict
from holdfast.model.digest import Json
from holdfast.model.plan import Guard
from holdfast.model.strict import strict_json
from holdfast.ports import Candidate, Job
from holdfast.process.gitplaces import own_objects
from holdfast.process.room import clean_environment, put_file, put_tree


def name_of(guard: Guard) -> str:
    """How a verdict calls its guard."""
    return guard.name or guard.kind


def accept(guard: Guard, score: float | None = None) -> Verdict:
    return Verdict("accept", name_of(guard), score=score)


def reject(guard: Guard, feedback: str) -> Verdict:
    return Verdict("reject", name_of(guard), feedback)


async def place_of(job: Job) -> None:
    """Until the attempt has a place on this machine, where a process is about to start."""
    if job.place is not None:
        await job.place()


def text_of(candidate: Candidate) -> str | None:
    """The candidate as text; None if it is several files or not UTF-8."""
    if candidate.form == "tree":
        return None
    try:
        return candidate.content.decode()
    except UnicodeDecodeError:
        return None


def no_text(guard: Guard, candidate: Candidate) -> Verdict:
    """The verdict on a candidate that `text_of` cannot read."""
    problem = "several files" if candidate.form == "tree" else "not UTF-8"
    return reject(guard, f"the artifact is {problem}")


def put_candidate(candidate: Candidate, job: Job) -> str:
    """Write a copy of the candidate that one guard may have for itself; returns its path.

    A single file keeps the name that the step gave it, because tools read the suffix.
    """
    folder = Path(tempfile.mkdtemp(prefix="guard-", dir=job.room))
    if candidate.form == "tree":
        files = ((file.path, file.content, file.executable) for file in candidate.files)
        return put_tree(str(folder / "artifact"), files)
    name = PurePosixPath(job.step.produces[0]).name if job.step.produces else "artifact"
    return put_file(str(folder / name), candidate.content, executable=candidate.form == "program")


def environment(candidate: Candidate, job: Job, engine: Mapping[str, str]) -> dict[str, str]:
    """What a guard's process is given; HOLDFAST_ARTIFACT names its copy of the candidate."""
    return {
        **clean_environment(job.room, engine, job.env),
        **(own_objects(job.folder, job.room) if job.step.workspace == "worktree" else {}),
        "HOLDFAST_STEP": job.step.id,
        "HOLDFAST_ATTEMPT": str(job.attempt),
        "HOLDFAST_ROOT": job.root,
        "HOLDFAST_ARTIFACT": put_candidate(candidate, job),
    }


def json_of(candidate: Candidate) -> Json:
    """The candidate read as strict JSON; ValueError says why it is none."""
    if candidate.form == "tree":
        raise ValueError("the artifact is several files, not JSON")
    return parse_json(candidate.content)


def parse_json(content: bytes) -> Json:
    """Strict JSON in UTF-8: no NaN, no infinities, no key twice; ValueError says why it is none."""
    try:
        return strict_json(content.decode())
    except UnicodeDecodeError as error:
        raise ValueError("not JSON: not UTF-8") from error
    except ValueError as error:
        raise ValueError(f"not JSON: {error}") from error
