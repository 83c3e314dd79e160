"""Snapshots of folded ledgers: caches beside the store, so that a long line is not read and folded each time.

A ledger is a function of the journal of its run and of the journals of lines, so a snapshot is named by where
these end, by the hashes of their chains, and by the version of Holdfast. It is used only if all of that is
equal and its own digest holds; else the ledger is folded from the handoffs, and left again. Nothing is lost
with it: `gc` removes all of them, so may anybody, and `purge` does, because they hold what was told.

    <store>/ledgers/<line>      "<key> <digest of the body>", a line break, and the body, which is JSON:
                                rows of values in the order of the fields of their nouns

A small ledger is folded faster than a file is written, so it leaves none.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from operator import attrgetter
from typing import NamedTuple, TypeVar, cast

from holdfast.core.evidence import Evidence
from holdfast.core.ledger import Gap, Hypothesis, Ledger, Registered
from holdfast.core.questions import Raised, Uncertainty
from holdfast.core.said import Said
from holdfast.core.told import Told
from holdfast.model.digest import Digest, Json, digest_bytes, digest_json
from holdfast.model.handoff import Change, Handoff, Observation, Trial, Undone
from holdfast.model.plan import RunId, StepId
from holdfast.model.version import VERSION
from holdfast.ports import Store

LEAST = 1_000  # handoffs and findings that are worth a file
_FOLDER = "ledgers"
_FORM = 7  # of the rows, and of the rules by which a ledger is folded
T = TypeVar("T")
_Row = Sequence[Json]


class Learned(NamedTuple):
    """What a run has learned, what people said of it, and which steps were told what fell since."""

    ledger: Ledger
    said: tuple[Said, ...]
    stale: Mapping[StepId, tuple[str, ...]]


def learned(store: Store, home: str, run: RunId, line: str, fold: Callable[[], Learned]) -> Learned:
    """From the snapshot of the line, or folded; a large one leaves a snapshot then."""
    place = os.path.join(home, _FOLDER, digest_json([line])[:32])
    key = _key(store, run)
    found = _kept(place, key)
    if found is not None:
        return found
    found = fold()
    if len(found.ledger.handoffs) + len(found.ledger.evidence) >= LEAST:
        with contextlib.suppress(OSError):
            _leave(place, key, found)
            if _key(store, run) != key:  # a purge, perhaps, of something that it holds
                os.remove(place)
    return found


def drop_snapshots(home: str) -> None:
    """Remove them all."""
    shutil.rmtree(os.path.join(home, _FOLDER), ignore_errors=True)


def _key(store: Store, run: RunId) -> Digest:
    journals = [name for name in store.journals() if name.startswith("line:")]
    ends: list[Json] = [[name, *store.end(name)] for name in sorted([*journals, f"run:{run}"])]
    return digest_json([_FORM, VERSION, ends])


def _kept(place: str, key: Digest) -> Learned | None:
    with contextlib.suppress(OSError, ValueError, TypeError, IndexError, KeyError, RecursionError):
        with open(place, "rb", opener=_plain) as file:
            head = file.readline(200).split()
            if head[0] != key.encode():
                return None
            body = file.read()
        return read(body) if head[1] == digest_bytes(body).encode() else None
    return None


def _leave(place: str, key: Digest, found: Learned) -> None:
    body = written(found)
    os.makedirs(os.path.dirname(place), 0o700, exist_ok=True)
    draft = f"{place}.{os.getpid()}.draft"
    try:
        with open(draft, "wb", opener=_private) as file:
            file.write(f"{key} {digest_bytes(body)}\n".encode() + body)
        os.replace(draft, place)
    except OSError:
        with contextlib.suppress(OSError):
            os.remove(draft)
        raise


def _plain(path: str, flags: int) -> int:
    """Open a file and nothing else: a pipe would wait for whoever writes to it."""
    found = os.open(path, flags | os.O_NONBLOCK)
    if stat.S_ISREG(os.fstat(found).st_mode):
        return found
    os.close(found)
    raise OSError(f"'{path}' is no file")


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


# --- rows -----------------------------------------------------------------------------------------


def written(found: Learned) -> bytes:
    """What was learned as the body of a snapshot."""
    ledger = found.ledger
    body: dict[str, object] = {
        "handoffs": [_told_row(one) for one in ledger.handoffs],
        "superseded": [_told_row(one) for one in ledger.superseded],
        "evidence": _rows(Evidence, ledger.evidence),
        "uncertainties": [_question_row(one) for one in ledger.uncertainties],
        "artifacts": _rows(Registered, ledger.artifacts),
        "gaps": _rows(Gap, ledger.gaps),
        "hypotheses": _rows(Hypothesis, list(ledger.hypotheses.values())),
        "stale": ledger.stale,
        "unmatched": ledger.unmatched,
        "found_by": ledger.found_by,
        "past": _rows(Evidence, ledger.past),
        "contested": dict(ledger.contested),
        "said": _rows(Said, found.said),
        "stale_steps": found.stale,
    }
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


def read(body: bytes) -> Learned:
    """The other way round."""
    given = json.loads(body)
    hypotheses = _made(Hypothesis, given["hypotheses"])
    ledger = Ledger(
        handoffs=tuple([_told(row) for row in given["handoffs"]]),
        superseded=tuple([_told(row) for row in given["superseded"]]),
        evidence=_made(Evidence, given["evidence"]),
        uncertainties=tuple([_question(row) for row in given["uncertainties"]]),
        artifacts=_made(Registered, given["artifacts"]),
        gaps=_made(Gap, given["gaps"]),
        hypotheses={one.id: one for one in hypotheses},
        stale=tuple(given["stale"]),
        unmatched=tuple([(step, name) for step, name in given["unmatched"]]),
        found_by={name: tuple(ids) for name, ids in given["found_by"].items()},
        past=_made(Evidence, given["past"]),
        contested=given["contested"],
    )
    stale = {step: tuple(held) for step, held in given["stale_steps"].items()}
    return Learned(ledger, _made(Said, given["said"]), stale)


def _rows(noun: type, ones: Sequence[object]) -> list[object]:
    values = attrgetter(*(field.name for field in fields(noun)))
    return [values(one) for one in ones]


def _made(noun: Callable[..., T], rows: Sequence[_Row]) -> tuple[T, ...]:
    """Nouns of rows; what was a tuple comes back as a list, and no field is a list."""
    return tuple([noun(*[tuple(v) if type(v) is list else v for v in row]) for row in rows])


def _question_row(one: Uncertainty) -> list[object]:
    """Its last field holds rows of its own."""
    (row,) = _rows(Uncertainty, [one])
    return [*cast("tuple[object, ...]", row)[:-1], _rows(Raised, one.merged)]


def _question(row: _Row) -> Uncertainty:
    *rest, merged = row
    (one,) = _made(Uncertainty, [rest])
    return replace(one, merged=_made(Raised, cast("list[_Row]", merged)))


def _told_row(one: Told) -> list[object]:
    told = one.handoff
    handoff = [
        told.attempted,
        _rows(Observation, told.observed),
        _rows(Change, told.changed),
        _rows(Undone, told.not_done),
        told.uncertainty,
        told.first,
        told.payload,
        told.resolves,
        told.testing,
        {name: [trial.status, trial.evidence] for name, trial in told.hypotheses.items()},
        told.replan,
        told.refers_to,
    ]
    rest = (one.at, one.run, one.attempt, one.place, one.failed, one.tests, one.serves)
    return [one.id, one.step, one.wave, handoff, *rest]


def _told(row: _Row) -> Told:
    name, step, wave, given, *rest = cast("list[object]", row)
    (
        attempted,
        observed,
        changed,
        not_done,
        uncertainty,
        first,
        payload,
        resolves,
        testing,
        tried,
        replan,
        refers_to,
    ) = cast("list[object]", given)
    handoff = Handoff(
        cast("str", attempted),
        _made(Observation, cast("list[_Row]", observed)),
        _made(Change, cast("list[_Row]", changed)),
        _made(Undone, cast("list[_Row]", not_done)),
        cast("str", uncertainty),
        cast("str", first),
        cast("dict[str, Json]", payload),
        tuple(cast("list[str]", resolves)),
        tuple(cast("list[str]", testing)),
        {name: _made(Trial, [one])[0] for name, one in cast("dict[str, _Row]", tried).items()},
        cast("str", replan),
        tuple(cast("list[str]", refers_to)),
    )
    rest = [tuple(value) if type(value) is list else value for value in rest]
    return Told(name, step, wave, handoff, *rest)  # type: ignore[arg-type]  # as it was written
