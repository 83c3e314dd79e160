"""How an attempt elsewhere ended, as bytes on the way back; of the same make as a parcel."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import NamedTuple, cast

from holdfast.errors import BugError, HoldfastError, IntegrityError, StoreError
from holdfast.executors.parcel import Get, Laid, Packer, Piece, content, laid_from, laid_json
from holdfast.model.artifact import Call, Form, Verdict
from holdfast.model.digest import Json, canonical
from holdfast.ports import Candidate, File, Outcome

ANSWER = "holdfast.answer/1"


class Changes(NamedTuple):
    """What is other in the folder of an attempt than it was: files, what is gone, and links."""

    written: tuple[Laid, ...] = ()
    removed: tuple[str, ...] = ()
    links: tuple[tuple[str, str], ...] = ()  # path, target


def pack_answer(outcome: Outcome, changes: Changes, packer: Packer) -> bytes:
    """An outcome as bytes."""
    made, verdict = outcome.candidate, outcome.verdict
    return canonical(
        {
            "schema": ANSWER,
            "ended": outcome.ended,
            "code": outcome.code,
            "candidate": None if made is None else _candidate_json(made, outcome.log, packer),
            "verdict": None if verdict is None else _verdict_json(verdict),
            "verified": outcome.verified,
            "feedback": outcome.feedback.encode("utf-8", "replace").decode(),
            "log": packer.piece(outcome.log),
            "asks": outcome.asks,
            "written": [laid_json(laid) for laid in changes.written],
            "removed": changes.removed,
            "links": changes.links,
        }
    )


def pack_fault(error: HoldfastError) -> bytes:
    """What kept an attempt from being one, and is not the step's doing."""
    kind = "integrity" if isinstance(error, IntegrityError) else "store"
    return canonical(
        {"schema": ANSWER, "fault": kind, "message": error.message, "hint": error.hint or ""}
    )


def unpack_answer(answer: bytes, get: Get) -> tuple[Outcome, Changes]:
    """How it ended; what is wrong with the machine there is raised here."""
    data = json.loads(answer)
    if data["schema"] != ANSWER:
        raise BugError(f"'{data['schema']}' is no answer")
    if "fault" in data:
        fault = IntegrityError if data["fault"] == "integrity" else StoreError
        raise fault(data["message"], hint=data["hint"] or None)
    log = content(data["log"], get)
    made = data["candidate"]
    outcome = Outcome(
        data["ended"],
        data["code"],
        None if made is None else _candidate_from(made, log, get),
        None if data["verdict"] is None else _verdict_from(data["verdict"]),
        data["verified"],
        data["feedback"],
        log,
        tuple(data["asks"]),
    )
    links = tuple((path, target) for path, target in data["links"])
    return outcome, Changes(laid_from(data["written"]), tuple(data["removed"]), links)


def _candidate_json(made: Candidate, log: bytes, packer: Packer) -> Json:
    return {
        "form": made.form,
        "content": packer.piece(made.content),
        "files": [_file_json(file, packer) for file in made.files],
        "fragments": [_file_json(file, packer) for file in made.fragments],
        "handoff": packer.piece(made.handoff),
        "confined": made.confined,
        "log": None if made.log == log else packer.piece(made.log),
    }


def _candidate_from(data: Mapping[str, Json], log: bytes, get: Get) -> Candidate:
    own = cast("Piece | None", data["log"])
    return Candidate(
        form=cast("Form", data["form"]),
        content=content(cast("Piece", data["content"]), get),
        files=_files(data["files"], get),
        log=log if own is None else content(own, get),
        confined=bool(data["confined"]),
        fragments=_files(data["fragments"], get),
        handoff=content(cast("Piece", data["handoff"]), get),
    )


def _file_json(file: File, packer: Packer) -> Json:
    return [file.path, file.executable, packer.piece(file.content)]


def _files(data: Json, get: Get) -> tuple[File, ...]:
    listed = cast("Iterable[tuple[str, bool, Piece]]", data)
    return tuple(File(path, content(piece, get), executable) for path, executable, piece in listed)


def _verdict_json(verdict: Verdict) -> Json:
    return {
        "call": verdict.call,
        "guard": verdict.guard,
        "feedback": verdict.feedback.encode("utf-8", "replace").decode(),
        "items": [_verdict_json(item) for item in verdict.items],
    }


def _verdict_from(data: Mapping[str, Json]) -> Verdict:
    items = cast("Iterable[Mapping[str, Json]]", data["items"])
    return Verdict(
        cast("Call", data["call"]),
        str(data["guard"]),
        str(data["feedback"]),
        tuple(_verdict_from(item) for item in items),
    )
