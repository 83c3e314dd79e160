"""Events: facts in the past tense. A journal is nothing but these, in order.

Events hold ids, digests, numbers and codes, never text from outside: prompts, answers, feedback and
logs are blobs that an event names by digest. `Recorded` adds what the journal knows: the sequence
number and the time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from holdfast.model.artifact import Form, Source
from holdfast.model.conflict import ConflictKind
from holdfast.model.digest import Digest
from holdfast.model.fixed import fixed
from holdfast.model.plan import RunId, StepId

RestStatus = Literal["failed", "waiting", "paused", "limit", "escalated", "blocked"]
EndStatus = Literal["completed", "superseded"]
Drift = Literal["adopt", "regenerate", "fail"]


class Reason(NamedTuple):
    """Why a step runs, is reused, waits or failed: a code of the closed list and what is behind it."""

    code: str
    because: tuple[str, ...] = ()


class Reused(NamedTuple):
    """One step whose accepted artifact stands."""

    step: StepId
    config_ref: Digest
    digest: Digest
    form: Form = "bytes"
    code: str = "unchanged"


class Taken(NamedTuple):
    """One step whose artifact a fork takes from another run, with everything that the index knows of it."""

    step: StepId
    config_ref: Digest
    input_ref: Digest
    own_ref: Digest
    digest: Digest
    form: Form
    source: Source
    verified: bool
    reusable: bool
    made_at: int


class Skipped(NamedTuple):
    """One step that cannot run, and the step it waited for."""

    step: StepId
    code: str
    because: StepId


@dataclass(frozen=True, slots=True)
class Options:
    """What the person asked of a run."""

    force: bool = False
    force_steps: tuple[StepId, ...] = ()
    cutoff: bool = False
    on_drift: Drift = "adopt"
    joined: bool = False
    fail_fast: bool = False
    barrier: bool = False  # a wave starts after the one before is settled
    select: tuple[StepId, ...] = ()  # only these may run; none named means all


@dataclass(frozen=True, slots=True)
class RunStarted:
    """A run began: which plan, under which line, asked for how.

    One that was forked from another run takes what stands above and beside `forked_at` from there.
    """

    run: RunId
    line: str
    project: str
    plan: Digest
    w_ref: Digest
    options: Options
    engine: str
    previous: RunId | None = None
    forked: RunId | None = None  # the run whose results it began with
    forked_at: StepId = StepId("")  # the first step that it makes again


@dataclass(frozen=True, slots=True)
class RunResumed:
    """Another engine, or the same one later, continues the run."""

    engine: str


@dataclass(frozen=True, slots=True)
class StepsReused:
    """Accepted artifacts stand for these steps. Two such events in a row equal one with both lists."""

    items: tuple[Reused, ...]


@dataclass(frozen=True, slots=True)
class StepsTaken:
    """A fork begins with what these steps had in the run that it was forked from."""

    items: tuple[Taken, ...]


@fixed
class AttemptStarted:
    """An attempt is about to begin; nothing of it happened before this was stored.

    `before` is the manifest of what lay at the output paths of a step that works in the project directory,
    so that they can be put back. `reguard` names content that is only guarded, not made: an accepted
    artifact under changed guards, or what a person wrote in its place (`source` says which). `reusable`
    is false when a part of the key could not be computed. `edited` names the files of `before` that a
    person wrote. `approvals` are the ids of those it runs under.
    """

    step: StepId
    attempt: int
    config_ref: Digest
    input_ref: Digest
    own_ref: Digest
    reason: Reason
    before: Digest | None = None
    fence: int = 0
    reguard: Digest | None = None
    form: Form = "bytes"
    source: Source = "generated"
    reusable: bool = True
    edited: tuple[str, ...] = ()
    approvals: tuple[str, ...] = ()


@fixed
class AttemptAccepted:
    """The guards passed: this content is the step's artifact.

    `kept` is the manifest of what a person wrote to its output paths while it ran elsewhere.
    """

    step: StepId
    attempt: int
    digest: Digest
    form: Form = "bytes"
    source: Source = "generated"
    verified: bool = False
    reusable: bool = True
    log: Digest | None = None
    duration_ms: int = 0
    confined: bool = True
    kept: Digest | None = None


@dataclass(frozen=True, slots=True)
class AttemptParked:
    """Every other guard passed; the candidate is kept until people have decided about it.

    `guards` are those that leave it to a person, `approvals` the ids of what is asked for them.
    """

    step: StepId
    attempt: int
    digest: Digest
    guards: tuple[str, ...]
    approvals: tuple[str, ...]
    form: Form = "bytes"
    log: Digest | None = None
    duration_ms: int = 0
    confined: bool = True
    reusable: bool = True
    fragment: Digest | None = None  # the steps that it adds once it is accepted


@dataclass(frozen=True, slots=True)
class EffectStarted:
    """The outside world is about to be changed under this key; stored before anything is done."""

    step: StepId
    attempt: int
    key: Digest


@dataclass(frozen=True, slots=True)
class EffectConfirmed:
    """What was started under this key is known to have ended."""

    step: StepId
    attempt: int
    key: Digest


@dataclass(frozen=True, slots=True)
class AttemptRejected:
    """A guard refused the candidate; the feedback goes to the next attempt. Fatal ends the step.

    `alike` is equal for feedback that says the same; only kept for steps whose patience ends.
    """

    step: StepId
    attempt: int
    guard: str
    digest: Digest | None = None
    form: Form = "bytes"
    feedback: Digest | None = None
    fatal: bool = False
    log: Digest | None = None
    duration_ms: int = 0
    alike: Digest | None = None


@dataclass(frozen=True, slots=True)
class AttemptFailed:
    """The generator gave no candidate (exit code, exception); counts like a rejection."""

    step: StepId
    attempt: int
    code: str
    feedback: Digest | None = None
    log: Digest | None = None
    duration_ms: int = 0
    kept: Digest | None = None
    alike: Digest | None = None


@dataclass(frozen=True, slots=True)
class AttemptLost:
    """The attempt ended without an answer: its process died, timed out, or a guard broke.

    `kept` is the manifest of what lay at its output paths when they were put back: nobody's bytes are lost.
    """

    step: StepId
    attempt: int
    code: str
    feedback: Digest | None = None
    log: Digest | None = None
    kept: Digest | None = None


@dataclass(frozen=True, slots=True)
class OutputsPlaced:
    """Accepted content was written to the step's output paths: a missing file, or an older version."""

    step: StepId
    digest: Digest
    form: Form
    paths: tuple[str, ...]
    kept: Digest | None = None


@dataclass(frozen=True, slots=True)
class StepFailed:
    """The step's budgets are spent, or it may not be tried again; `because` are a person's words."""

    step: StepId
    reason: Reason
    because: Digest | None = None


@dataclass(frozen=True, slots=True)
class StepHeld:
    """The step waits for a person."""

    step: StepId
    reason: Reason


@dataclass(frozen=True, slots=True)
class StepsSkipped:
    """These steps cannot run because a step they need failed or was skipped."""

    items: tuple[Skipped, ...]


@dataclass(frozen=True, slots=True)
class StepsReset:
    """Failed, held or skipped steps are pending again, with fresh budgets."""

    steps: tuple[StepId, ...]
    code: str


@dataclass(frozen=True, slots=True)
class StepsReleased:
    """What these steps waited for has come; they are pending again, and their budgets stand."""

    steps: tuple[StepId, ...]
    code: str


@dataclass(frozen=True, slots=True)
class StepsReopened:
    """A step that cannot get through sends `step`, which it stands on, back to be made again.

    `steps` are all that are pending again: `step`, and what stands on it. `guard`, `digest` and `feedback`
    tell what went wrong below.
    """

    step: StepId
    by: StepId
    steps: tuple[StepId, ...]
    guard: str = ""
    digest: Digest | None = None
    feedback: Digest | None = None


@dataclass(frozen=True, slots=True)
class PlanExtended:
    """The run goes on with a plan that has further steps; those that it had are as they were.

    `step` is the one whose accepted attempt, or reused artifact, brought them; else `request` is the
    number of what a person asked for in the line's journal.
    """

    plan: Digest
    w_ref: Digest
    parent: Digest
    added: tuple[StepId, ...]
    step: StepId = StepId("")
    request: int = 0


@dataclass(frozen=True, slots=True)
class RequestRefused:
    """What a person asked of this run in the line's journal cannot be done; nothing has changed."""

    request: int
    because: Digest


@dataclass(frozen=True, slots=True)
class StepWaived:
    """A person goes on without this step: an empty artifact stands in its place, and that is a gap.

    Its ref is like that of no attempt, so whatever is made below is never taken for the real thing.
    """

    step: StepId
    config_ref: Digest
    digest: Digest
    form: Form
    by: str
    because: Digest
    request: int


@dataclass(frozen=True, slots=True)
class GapClosed:
    """A person wants the step made after all; `steps` are pending again: it, and what was made without it."""

    step: StepId
    steps: tuple[StepId, ...]


@dataclass(frozen=True, slots=True)
class ConflictFound:
    """Positions that cannot all stand. `record` is the whole of it; `steps` take part in it.

    `paths` are the files it is about; of a set of changes that waits because of it, nothing is written.
    """

    conflict: str
    kind: ConflictKind
    record: Digest
    steps: tuple[StepId, ...]
    paths: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ConflictResolved:
    """It is settled: by rules, or by a person. `record` has the winner and who disagreed.

    `winner` is the step whose position stands; empty if it is what lies in the project.
    """

    conflict: str
    record: Digest
    winner: StepId


@dataclass(frozen=True, slots=True)
class RunRested:
    """Nothing more can be done now; the run can be continued."""

    status: RestStatus
    reason: Reason


@dataclass(frozen=True, slots=True)
class RunEnded:
    """The run never changes again."""

    status: EndStatus


RunEvent = (
    RunStarted
    | RunResumed
    | StepsReused
    | StepsTaken
    | AttemptStarted
    | AttemptAccepted
    | AttemptParked
    | AttemptRejected
    | AttemptFailed
    | AttemptLost
    | EffectStarted
    | EffectConfirmed
    | OutputsPlaced
    | StepFailed
    | StepHeld
    | StepsSkipped
    | StepsReset
    | StepsReleased
    | StepsReopened
    | PlanExtended
    | RequestRefused
    | StepWaived
    | GapClosed
    | ConflictFound
    | ConflictResolved
    | RunRested
    | RunEnded
)


@dataclass(frozen=True, slots=True)
class PlanVersioned:
    """A version of the line's plan was seen for the first time, or again after another one.

    Without `reason` it is the plan that a run began with. Else `run` goes on with it, because one of its
    steps added further ones (`added_by_step`), or a person did (`added_by_person`).
    """

    plan: Digest
    w_ref: Digest
    parent: Digest | None
    reason: str = ""
    run: RunId = RunId("")
    step: StepId = StepId("")
    by: str = ""
    because: Digest | None = None


@dataclass(frozen=True, slots=True)
class StepsAdded:
    """An accepted attempt added steps; whoever reuses its artifact has them added again.

    They are the `added` ones of `plan`. The refs and the digest are those of the artifact.
    """

    run: RunId
    step: StepId
    attempt: int
    input_ref: Digest
    digest: Digest
    plan: Digest
    added: tuple[StepId, ...]


@dataclass(frozen=True, slots=True)
class AdditionRequested:
    """A person asked to add the steps of `fragment` to a run that has not ended."""

    run: RunId
    fragment: Digest
    by: str
    because: Digest | None = None


@dataclass(frozen=True, slots=True)
class SkipRequested:
    """A person decided that a run goes on without a step."""

    run: RunId
    step: StepId
    by: str
    because: Digest


@dataclass(frozen=True, slots=True)
class RunOpened:
    """A run of this line exists; its own journal begins with the same transaction."""

    run: RunId
    key: str = ""


@dataclass(frozen=True, slots=True)
class StepAmended:
    """A person put other content in the place of a step's accepted artifact.

    `after_run` and `after_seq` say how far the line's latest run had come: the order of acceptance does
    not depend on clocks.
    """

    step: StepId
    config_ref: Digest
    input_ref: Digest
    own_ref: Digest
    digest: Digest
    form: Form
    verified: bool
    by: str
    because: Digest | None
    replaces: Digest | None
    after_run: RunId
    after_seq: int


@dataclass(frozen=True, slots=True)
class StepAccepted:
    """A person let the artifact that a step had in an earlier run stand under the present refs.

    No guard looked at it. `after_run` and `after_seq` as in an amendment.
    """

    step: StepId
    config_ref: Digest
    input_ref: Digest
    own_ref: Digest
    digest: Digest
    form: Form
    origin: RunId
    by: str
    because: Digest | None
    replaces: Digest | None
    after_run: RunId
    after_seq: int


class Withdrawn(NamedTuple):
    """One row of the artifact index that no longer counts: enough to find exactly this one."""

    config_ref: Digest
    digest: Digest
    run: RunId
    attempt: int
    at: int


@dataclass(frozen=True, slots=True)
class StepUndone:
    """A person undid a step: its artifact is withdrawn, its files are as they were before it.

    `kept` is the manifest of what lay at the output paths until then; `paths` are the files that were
    written or removed, `left` those a person had changed and that stay. `edit` is the key of the change of
    files; several steps that are undone together share it.
    """

    step: StepId
    rows: tuple[Withdrawn, ...]
    by: str
    because: Digest | None = None
    run: RunId = RunId("")
    kept: Digest | None = None
    paths: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    edit: str = ""
    after_run: RunId = RunId("")
    after_seq: int = 0


@dataclass(frozen=True, slots=True)
class StopRequested:
    """A person asked the run to stop, after the running steps or at once."""

    run: RunId
    now: bool
    by: str


Gate = Literal["step", "edge", "budget", "guard", "answer", "effect", "stuck", "plan"]
Scope = Literal["once", "run", "content"]


@dataclass(frozen=True, slots=True)
class ApprovalRequested:
    """A person is asked. `subject` is the digest of `document`: everything that decides what would happen.

    `names` are those that an approver may hold; none means anybody.
    """

    approval: str
    gate: Gate
    step: StepId
    run: RunId
    subject: Digest
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ApprovalDecided:
    """A person decided, once. `until` is when a yes ends (ms since 1970; 0 is never).

    `names` are those under which the person could decide. `content` is what a person gave as the step's
    artifact, if that was asked for. `terminal` says that it was typed at one. `run` is the run that a yes
    of the scope `run` is for. `rule` is the rule of the person's own policy that decided in his place.
    """

    approval: str
    subject: Digest
    yes: bool
    by: str
    scope: Scope = "once"
    until: int = 0
    names: tuple[str, ...] = ()
    because: Digest | None = None
    content: Digest | None = None
    form: Form = "bytes"
    terminal: bool = False
    run: RunId = RunId("")
    rule: Digest | None = None


@dataclass(frozen=True, slots=True)
class ApprovalUsed:
    """An attempt is about to run under this approval."""

    approval: str
    run: RunId
    step: StepId
    attempt: int


@dataclass(frozen=True, slots=True)
class ApprovalRevoked:
    """A person took a yes back; nothing starts under it any more."""

    approval: str
    by: str
    because: Digest | None = None


@dataclass(frozen=True, slots=True)
class ConflictDecided:
    """A person settled a conflict: the position of this step stands, or what lies in the project (empty)."""

    conflict: str
    take: StepId
    by: str
    because: Digest | None = None
    terminal: bool = False


PinKind = Literal["run", "step", "content"]


@dataclass(frozen=True, slots=True)
class Pinned:
    """A person wants this kept whatever its age: a run, a step's present artifact, or a content.

    `name` is what was pinned (a run id, a step id, a digest); for a step `digest` and `run` say which
    artifact it had then.
    """

    kind: PinKind
    name: str
    by: str
    because: Digest | None = None
    digest: Digest | None = None
    run: RunId | None = None


@dataclass(frozen=True, slots=True)
class Unpinned:
    """It may be removed again when it is old."""

    kind: PinKind
    name: str
    by: str
    because: Digest | None = None


@dataclass(frozen=True, slots=True)
class RunCollected:
    """An ended run was removed as a whole; what is left of it is how its journal ended.

    `number` is its place in the order of runs, so that what came after it keeps its place.
    """

    run: RunId
    number: int
    last: int
    hash: Digest
    by: str


class UpTo(NamedTuple):
    """A journal up to one of its events."""

    journal: str
    seq: int


@dataclass(frozen=True, slots=True)
class ContentPurged:
    """A person had these contents removed for good.

    No artifact that an event up to `upto` made of them may be reused; the same content made later may.
    """

    digests: tuple[Digest, ...]
    by: str
    because: Digest | None = None
    upto: tuple[UpTo, ...] = ()


@dataclass(frozen=True, slots=True)
class RunImported:
    """A run that another store made was added as history; `absent` are contents that it came without."""

    run: RunId
    last: int
    hash: Digest
    by: str
    absent: tuple[Digest, ...] = ()


LineEvent = (
    PlanVersioned
    | StepsAdded
    | AdditionRequested
    | SkipRequested
    | RunOpened
    | StepAmended
    | StepAccepted
    | StepUndone
    | StopRequested
    | ApprovalRequested
    | ApprovalDecided
    | ApprovalUsed
    | ApprovalRevoked
    | ConflictDecided
    | Pinned
    | Unpinned
    | RunCollected
    | ContentPurged
    | RunImported
)
Event = RunEvent | LineEvent


class Recorded(NamedTuple):
    """An event in its place: sequence number from 1, and milliseconds since 1970 by the writer's clock."""

    seq: int
    at: int
    event: Event
