"""Events: facts in the past tense. A journal is nothing but these, in order.

Events hold ids, digests, numbers and codes, never text from outside: prompts, answers, feedback and
logs are blobs that an event names by digest. `Recorded` adds what the journal knows: the sequence
number and the time.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from holdfast.model.artifact import Form, Source
from holdfast.model.conflict import ConflictKind
from holdfast.model.digest import Digest
from holdfast.model.fixed import fixed
from holdfast.model.line import LineEvent
from holdfast.model.plan import RunId, StepId

RestStatus = Literal["failed", "waiting", "paused", "limit", "escalated", "blocked"]
EndStatus = Literal["completed", "superseded"]
Drift = Literal["adopt", "regenerate", "fail"]
Where = Literal["", "ray"]  # where attempts run: on this machine, or on a cluster of Ray
Agreed = Literal["nothing", "shown", "anything"]  # to pay for: what was shown, or whatever comes


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


class Used(NamedTuple):
    """One use of a tool that was answered."""

    use: Digest
    answer: Digest
    ok: bool = True


class Skipped(NamedTuple):
    """One step that cannot run, and the step it waited for."""

    step: StepId
    code: str
    because: StepId


class Shown(NamedTuple):
    """A step whose artifact a preview could read: the steps that come of it were seen."""

    step: StepId
    digest: Digest


@fixed
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
    max_cost: int | None = None  # what the run may spend in all, in micro-dollars
    max_ms: int | None = None  # what each start of it may take, in milliseconds
    resample: tuple[StepId, ...] = ()  # another artifact of these is wanted beside what stands
    executor: Where = ""  # where steps run that can leave this machine
    shown: tuple[Shown, ...] = ()  # whose items or added steps somebody saw who said yes

    def wants(self, step_id: StepId) -> bool:
        """Whether a step was asked for by name, whatever stands."""
        return step_id in self.force_steps or step_id in self.resample


@fixed
class RunStarted:
    """A run began: which plan, under which line, asked for how.

    One that was forked from another run takes what stands above and beside `forked_at` from there. What
    somebody `agreed` to pay models for is nothing, what he was shown, or anything; an older version left
    it out. `ready` is what may take the place of its plan without asking anybody, as it was then. `file` is
    the plan file, as seen from the project; empty if there was none, or an older version wrote this.
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
    agreed: Agreed | None = None
    ready: Digest | None = None
    file: str = ""


@fixed
class RunResumed:
    """Another engine, or the same one later, continues the run; a person may let it spend more.

    What was `agreed` before stays so.
    """

    engine: str
    max_cost: int | None = None
    agreed: Agreed = "nothing"


@fixed
class StepsReused:
    """Accepted artifacts stand for these steps. Two such events in a row equal one with both lists."""

    items: tuple[Reused, ...]


@fixed
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
    context: Digest | None = None  # what it is told of the work before it
    handoff: Digest | None = None  # what a person hands over with the content that is only guarded


@fixed
class AttemptAccepted:
    """The guards passed: this content is the step's artifact.

    `kept` is the manifest of what a person wrote to its output paths while it ran elsewhere. `score` is
    what judges gave it, in thousandths, the mean of them. A sample that they found worse than what stands
    does not stand.
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
    score: int | None = None
    stands: bool = True
    handoff: Digest | None = None  # what it tells its successors


@fixed
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
    handoff: Digest | None = None


@fixed
class EffectStarted:
    """The outside world is about to be changed under this key; stored before anything is done.

    `beside` names the attempts of other runs whose effect is open: it was allowed all the same.
    """

    step: StepId
    attempt: int
    key: Digest
    beside: tuple[str, ...] = ()


@fixed
class EffectConfirmed:
    """What was started under this key is known to have ended."""

    step: StepId
    attempt: int
    key: Digest


@fixed
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


@fixed
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


@fixed
class AttemptLost:
    """The attempt ended without an answer: its process died, timed out, or a guard broke.

    `kept` is the manifest of what lay at its output paths when they were put back: nobody's bytes are lost.
    `limit` names the limit that left no room for another call of a model, and `wanted` is what that call may
    use at most: micro-dollars, or tokens. `unsent` are calls that were under way and never left the machine:
    they cost nothing.
    """

    step: StepId
    attempt: int
    code: str
    feedback: Digest | None = None
    log: Digest | None = None
    kept: Digest | None = None
    limit: str = ""
    unsent: tuple[int, ...] = ()
    wanted: int = 0


@fixed
class CallStarted:
    """A model is about to be asked; nothing was sent before this was stored.

    `reserved` is what the call may cost at most, in micro-dollars, None if its price is not known; `tokens`
    what it may use at most. The number of a call counts within its attempt.
    """

    step: StepId
    attempt: int
    call: int
    model: str
    request: Digest
    reserved: int | None = None
    tokens: int = 0


@fixed
class CallAnswered:
    """A model answered, and the answer is stored: it is never asked for again.

    `cost` is None if the price is not known. `id` is the provider's own name of the answer.
    """

    step: StepId
    attempt: int
    call: int
    answer: Digest
    input: int
    output: int
    cached: int = 0
    cost: int | None = None
    took_ms: int = 0
    finish: str = "stop"
    id: str = ""


@fixed
class CallFailed:
    """A call gave no answer. `cost` is what it may have cost, `wait_ms` the time until it is tried again."""

    step: StepId
    attempt: int
    call: int
    code: str
    cost: int | None = 0
    tokens: int = 0
    feedback: Digest | None = None
    wait_ms: int | None = None


@fixed
class ToolStarted:
    """A tool that changes things is about to be used for a model; nothing was done before this was stored.

    `use` identifies it: the request whose answer wanted it, and which one of that answer it was.
    """

    step: StepId
    attempt: int
    use: Digest
    name: str
    arguments: Digest


@fixed
class ToolUsed:
    """A tool was used for a model, and what it answered is stored; `ok` is false if it could not.

    The name is that of a tool which the plan names, empty if the model wanted another one.
    """

    step: StepId
    attempt: int
    use: Digest
    name: str
    arguments: Digest
    answer: Digest
    ok: bool = True
    took_ms: int = 0


@fixed
class AnswersKept:
    """What an earlier run of the line paid for and never acted on; this run need not ask again.

    `used` are answers of tools, `left` uses of tools that were begun and of which nobody knows the end.
    """

    step: StepId
    items: tuple[tuple[Digest, Digest], ...]  # (request, answer)
    used: tuple[Used, ...] = ()
    left: tuple[Digest, ...] = ()


@fixed
class OutputsPlaced:
    """Accepted content was written to the step's output paths: a missing file, or an older version."""

    step: StepId
    digest: Digest
    form: Form
    paths: tuple[str, ...]
    kept: Digest | None = None


@fixed
class StepFailed:
    """The step's budgets are spent, or it may not be tried again; `because` are a person's words."""

    step: StepId
    reason: Reason
    because: Digest | None = None


@fixed
class StepHeld:
    """The step waits for a person."""

    step: StepId
    reason: Reason


@fixed
class StepsSkipped:
    """These steps cannot run because a step they need failed or was skipped."""

    items: tuple[Skipped, ...]


@fixed
class StepsReset:
    """Failed, held or skipped steps are pending again, with fresh budgets; a person `asked` for some."""

    steps: tuple[StepId, ...]
    code: str
    asked: tuple[StepId, ...] = ()


@fixed
class StepsReleased:
    """What these steps waited for has come; they are pending again, and their budgets stand."""

    steps: tuple[StepId, ...]
    code: str


@fixed
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


@fixed
class PlanExtended:
    """The run goes on with a plan that has further steps; those that it had are as they were.

    `step` is the one whose accepted attempt, or reused artifact, brought them; else `request` is the
    number of what a person asked for in the line's journal. With `agreed` somebody said yes to what these
    steps cost, when it was known how many they are.
    """

    plan: Digest
    w_ref: Digest
    parent: Digest
    added: tuple[StepId, ...]
    step: StepId = StepId("")
    request: int = 0
    agreed: bool = False


@fixed
class RequestRefused:
    """What a person asked of this run in the line's journal cannot be done; nothing has changed."""

    request: int
    because: Digest


@fixed
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


@fixed
class GapClosed:
    """A person wants the step made after all; `steps` are pending again: it, and what was made without it."""

    step: StepId
    steps: tuple[StepId, ...]


@fixed
class ConflictFound:
    """Positions that cannot all stand. `record` is the whole of it; `steps` take part in it.

    `paths` are the files it is about; of a set of changes that waits because of it, nothing is written.
    """

    conflict: str
    kind: ConflictKind
    record: Digest
    steps: tuple[StepId, ...]
    paths: tuple[str, ...] = ()


@fixed
class ConflictResolved:
    """It is settled: by rules, or by a person. `record` has the winner and who disagreed.

    `winner` is the step whose position stands; empty if it is what lies in the project.
    """

    conflict: str
    record: Digest
    winner: StepId


@fixed
class ReplanWanted:
    """What was learned up to a wave speaks against the plan: nothing more starts until that is decided.

    `triggers` are the ids of what does, `words` says it for a person.
    """

    triggers: tuple[str, ...]
    wave: int
    words: Digest


@fixed
class ReplanDecided:
    """The run goes on with its plan, or another plan takes its place.

    A person said that it goes on (`approved`), or what was learned no longer speaks against it
    (`withdrawn`). Another one was made (`planned`), or was ready (`prepared`): `plan`, with which the next
    run of the line begins.
    """

    triggers: tuple[str, ...]
    code: str
    by: str = ""
    plan: Digest | None = None


@fixed
class RunRested:
    """Nothing more can be done now; the run can be continued."""

    status: RestStatus
    reason: Reason


@fixed
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
    | CallStarted
    | CallAnswered
    | CallFailed
    | ToolStarted
    | ToolUsed
    | AnswersKept
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
    | ReplanWanted
    | ReplanDecided
    | RunRested
    | RunEnded
)


Event = RunEvent | LineEvent


class Recorded(NamedTuple):
    """An event in its place: sequence number from 1, and milliseconds since 1970 by the writer's clock."""

    seq: int
    at: int
    event: Event
