"""One tree of errors; the class says whose fault it is.

HoldfastError
├── UsageError        the command line or a call asks for something that is not there
├── PlanError         the plan: every problem found, with its place
│   └── CyclicDependencyError  its steps need each other in a circle
├── CredentialsError  there is no key for a provider that would be asked
├── HeldError         another engine holds this line
├── StaleError        what was previewed is no longer what is there
├── StoreError        the outside world: disk, database, file system
│   ├── LockedError       another process has the store locked
│   ├── ConflictError     another writer appended first
│   └── FencedError       a newer engine took over; this one must stop
├── IntegrityError    the store contradicts itself: digest, chain, snapshot
│   └── PurgedError       a person had this content removed
├── ProcessError      a process could not be started or watched
│   └── GitError          git refused or failed; says how it ended and what it said
│       └── PushError         not everything arrived; says what became of each ref
├── EditError         a set of files cannot be changed as asked
├── AttemptError      an attempt ended without a candidate (a fact for the journal)
├── CallError         a model gave no answer, and whether asking again may help
├── GuardBroken       a guard could not give a verdict
└── BugError          Holdfast itself: an impossible event or state

Messages are lower case, name things in quotes, and end without a full stop.
A rejected artifact is a value, not an exception.
"""

from __future__ import annotations

import errno
from collections.abc import Sequence
from dataclasses import dataclass

_FEW = 8
_BUG = " [this is a bug]"


@dataclass(frozen=True, slots=True)
class Where:
    """The place an error is about, as far as it is known; lines and columns count from 1."""

    file: str = ""
    line: int = 0
    column: int = 0
    step: str = ""
    attempt: int = 0

    def text(self) -> str:
        """The place in words; nothing if it is not known."""
        place = ":".join(str(part) for part in (self.file, self.line, self.column) if part)
        step = f"step '{self.step}'" if self.step else ""
        attempt = f"attempt {self.attempt}" if self.attempt else ""
        return ", ".join(part for part in (place, step, attempt) if part)


class HoldfastError(Exception):
    """What happened, to which thing, and if known where and what to do about it.

    `retryable` says that the same command may succeed later without any change.
    """

    exit_code = 1
    code = "error"
    retryable = False

    def __init__(
        self, message: str, *, hint: str | None = None, where: Where | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.where = where

    def __str__(self) -> str:
        return f"{self.message}\nhint: {self.hint}" if self.hint else self.message


class UsageError(HoldfastError):
    """The command line, or a call, asks for something that is not there."""

    exit_code = 2
    code = "usage"


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with a plan, and where."""

    message: str
    file: str = ""
    line: int = 0
    column: int = 0
    hint: str = ""
    code: str = "P000"
    width: int = 0  # columns to mark; 0 marks the word at the place
    mark: str = ""  # said beside the mark
    note: str = ""  # said below it

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}:{self.column}: " if self.line else ""
        tail = f"\n  hint: {self.hint}" if self.hint else ""
        return f"{place}error[{self.code}]: {self.message}{tail}"


class PlanError(HoldfastError):
    """The plan is wrong; carries every problem found."""

    exit_code = 2
    code = "plan"

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = problems
        self.check = "holdfast check"  # says it all again
        self.width = 0  # columns of whoever looks at it; 0 means lines are never cut


class CyclicDependencyError(PlanError):
    """The steps of a plan need each other in a circle."""

    @classmethod
    def of(cls, names: Sequence[str]) -> CyclicDependencyError:
        """Of ids that all wait for each other."""
        few = ", ".join(f"'{name}'" for name in names[:_FEW])
        more = f" and {len(names) - _FEW} more" if len(names) > _FEW else ""
        return cls((Problem(f"these need each other in a circle: {few}{more}", code="P052"),))


class CredentialsError(HoldfastError):
    """There is no key for a provider that a run would ask; nothing was begun."""

    exit_code = 4
    code = "credentials_missing"


class StaleError(HoldfastError):
    """What was previewed is no longer what is there."""

    exit_code = 6
    code = "stale"


class HeldError(HoldfastError):
    """Another engine holds this line."""

    exit_code = 7
    code = "held"
    retryable = True


class StoreError(HoldfastError):
    """The outside world failed us: disk full, fsync refused, database locked."""

    exit_code = 74
    code = "store"
    retryable = True


_REFUSED_TO_ALL = {
    errno.EIO: "",
    errno.ENOSPC: "free some space, then resume",
    errno.EDQUOT: "free some space, then resume",
    errno.EMFILE: "let more files be open at once (ulimit -n), then resume",
    errno.ENFILE: "end what has many files open, then resume",
    errno.ENOMEM: "end what needs much memory, then resume",
    errno.EAGAIN: "end some processes, or let there be more (ulimit -u), then resume",
}
LET_IN = "let your user read and write there"
ELSEWHERE = "name a place where you can write"
_NO_THREAD = "can't start new thread"  # which Python gives no class of its own


def outside_fault(error: BaseException) -> StoreError | None:
    """The error as the outside world's, if that is what it is; None if it is about what was asked for.

    A disk that fails or is full, and a machine with no more memory, descriptors or processes, would
    have refused anybody: no step and no plan is to blame.
    """
    if isinstance(error, RuntimeError) and str(error) == _NO_THREAD:
        return StoreError(
            "the system refused: no room for another thread", hint=_REFUSED_TO_ALL[errno.EAGAIN]
        )
    if isinstance(error, MemoryError):
        return StoreError("there is no more memory", hint=_REFUSED_TO_ALL[errno.ENOMEM])
    if not isinstance(error, OSError) or error.errno not in _REFUSED_TO_ALL:
        return None
    place = f" ('{error.filename}')" if isinstance(error.filename, str) else ""
    said = (error.strerror or str(error)).lower()
    return StoreError(
        f"the system refused: {said}{place}", hint=_REFUSED_TO_ALL[error.errno] or None
    )


def shut_out(error: BaseException) -> StoreError | None:
    """A file or directory that is somebody else's: no bug, and nothing that was asked for wrongly."""
    if not isinstance(error, PermissionError):
        return None
    place = f" ('{error.filename}')" if isinstance(error.filename, str) else ""
    said = (error.strerror or str(error)).lower()
    return StoreError(f"the system refused: {said}{place}", hint=LET_IN)


class LockedError(StoreError):
    """Another process has the store locked."""

    code = "locked"


class ConflictError(StoreError):
    """Another writer appended to this journal first."""

    code = "conflict"


class FencedError(StoreError):
    """A newer engine took over; nothing this one writes counts any more."""

    exit_code = 7
    code = "fenced"
    retryable = False


class IntegrityError(HoldfastError):
    """The store contradicts itself: a digest, the chain, or a snapshot."""

    exit_code = 9
    code = "integrity"


class PurgedError(IntegrityError):
    """A person had this content removed for good; the store is as it should be."""

    exit_code = 1
    code = "purged"


class ProcessError(HoldfastError):
    """A process could not be started or watched."""

    code = "process"


class NotBegunError(ProcessError):
    """A process could not be started, and nothing of it ran."""


class GitError(ProcessError):
    """Git refused or failed. `ended` is its exit code (negative: the signal), `said` its own words."""

    code = "git"

    def __init__(
        self, message: str, *, ended: int = 1, said: str = "", hint: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.ended = ended
        self.said = said


class PushError(GitError):
    """Not everything arrived. `reason` says why in one word, `outcomes` what became of each ref.

    Reasons: rejected, auth, unreachable, no_repository, not_allowed, failed.
    """

    code = "push"

    def __init__(
        self,
        message: str,
        *,
        reason: str,
        ended: int,
        said: str,
        outcomes: tuple[tuple[str, str], ...],
        hint: str | None = None,
    ) -> None:
        super().__init__(message, ended=ended, said=said, hint=hint)
        self.reason = reason
        self.outcomes = outcomes


class EditError(HoldfastError):
    """A set of files cannot be changed as asked; nothing was changed."""

    code = "edit"


class AttemptError(HoldfastError):
    """An attempt ended without a candidate; `reason` is the code for the journal.

    `limit` names the limit that was reached, if that is the reason, and `wanted` what the call that it left
    no room for may use: micro-dollars, or tokens.
    """

    code = "attempt"

    def __init__(
        self, message: str, *, reason: str, log: bytes = b"", limit: str = "", wanted: int = 0
    ) -> None:
        super().__init__(message)
        self.reason = reason
        self.log = log
        self.limit = limit
        self.wanted = wanted


class CallError(HoldfastError):
    """A call of a model gave no answer; `reason` is the code for the journal.

    `again` says that the same call may succeed later, `after` in how many seconds the provider wants it.
    `read` are the tokens that came before it broke off; None if nothing can have been charged.
    """

    code = "call"

    def __init__(
        self,
        message: str,
        *,
        reason: str,
        again: bool = False,
        after: float | None = None,
        read: int | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.reason = reason
        self.again = again
        self.after = after
        self.read = read


class GuardBroken(HoldfastError):  # noqa: N818 - reads as the fact it is
    """A guard could not give a verdict; the attempt counts as lost."""

    code = "guard_broken"


class BugError(HoldfastError):
    """Holdfast itself is wrong. The message ends with the story that led here."""

    exit_code = 70
    code = "bug"

    def __init__(self, message: str) -> None:
        super().__init__(f"{message.removesuffix(_BUG)}{_BUG}")
