"""What every store refuses, in the same words, and the one liberty of a run's first batch."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from holdfast.errors import ConflictError, FencedError, IntegrityError, PurgedError, UsageError
from holdfast.model.line import ContentPurged
from holdfast.model.plan import RunId
from holdfast.ports import Append, Batch, ClaimKey

RUN = "run:"  # journals of runs begin with this; they are written under the fence of the run


def check_end(append: Append, last: int) -> None:
    """ConflictError unless the journal ends where the writer thinks."""
    if last != append.expected:
        raise ConflictError(f"journal '{append.journal}' ends at {last}, not at {append.expected}")


def begun_meanwhile(append: Append) -> ConflictError:
    return ConflictError(f"journal '{append.journal}' was begun by another process meanwhile")


def check_fence(run: str, fence: int | None, append: Append) -> None:
    """FencedError unless the writer holds the run; one that is gone was taken over and removed."""
    if fence is None:
        raise FencedError(f"run '{run}' was taken over, ended and removed")
    if fence != append.fence:
        raise FencedError(f"run '{run}' was taken over: its fence is {fence}, not {append.fence}")


def not_there(engine: str) -> FencedError:
    return FencedError(
        f"engine '{engine}' was taken for dead and holds no line any more",
        hint="look at 'holdfast status'",
    )


def driven(run: str) -> FencedError:
    return FencedError(f"run '{run}' is driven by another engine", hint="look at 'holdfast status'")


def claim_lost(key: ClaimKey) -> FencedError:
    return FencedError(f"the claim on step '{key.step}' was given up or taken over")


def accepted_twice(detail: str) -> ConflictError:
    return ConflictError(f"a step can be accepted only once in a run: {detail}")


def no_run(run: str) -> UsageError:
    return UsageError(f"there is no run '{run}' in this store")


def is_history(run: str) -> UsageError:
    return UsageError(
        f"run '{run}' was imported: it is history and cannot be continued",
        hint="'holdfast accept STEP --from RUN' takes an artifact of it over",
    )


def run_exists(run: str) -> ConflictError:
    return ConflictError(f"there is a run '{run}' already")


def missing(digest: str) -> IntegrityError:
    return IntegrityError(f"content '{digest}' is missing")


def purged(digest: str, at: int, event: ContentPurged, because: str) -> PurgedError:
    day = datetime.fromtimestamp(at / 1000, UTC).strftime("%Y-%m-%d %H:%M")
    why = f": {because}" if because else ""
    return PurgedError(
        f"content '{digest[:12]}' was purged on {day} UTC by '{event.by}'{why}",
        hint="a run makes it again if a step needs it, but repeats no effect unasked",
    )


def damaged(digest: str) -> IntegrityError:
    return IntegrityError(f"content '{digest}' is damaged")


def first_batch(run: RunId, batch: Batch) -> Batch:
    """A run's first batch is written under its first fence, which nobody can know before."""
    journal = f"{RUN}{run}"
    appends = [
        replace(item, fence=1) if item.journal == journal and item.fence is None else item
        for item in batch.appends
    ]
    return replace(batch, appends=appends)
