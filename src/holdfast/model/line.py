"""What is said on a line, outside any one run: plans, requests, people's versions and decisions, clearing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

from holdfast.model.artifact import Form
from holdfast.model.digest import Digest
from holdfast.model.fixed import fixed
from holdfast.model.plan import RunId, StepId

Gate = Literal["step", "edge", "budget", "guard", "answer", "effect", "stuck", "plan"]
Scope = Literal["once", "run", "content"]
PinKind = Literal["run", "step", "content"]
LedgerWord = Literal[
    "evidence",
    "uncertainty",
    "gap",
    "resolve",
    "contest",
    "apart",
    "withdraw",
    "uphold",
    "rejoin",
]


@fixed
class PlanVersioned:
    """A version of the line's plan was seen for the first time, or again after another one.

    Without `reason` it is the plan that a run began with. A model made it in `run` for the goal of the line
    (`planned`), or another one after it (`replanned`). It was ready to take the place of the one before it
    (`prepared`). Else `run` goes on with it, because one of its steps
    added further ones (`added_by_step`), or a person did (`added_by_person`).
    """

    plan: Digest
    w_ref: Digest
    parent: Digest | None
    reason: str = ""
    run: RunId = RunId("")
    step: StepId = StepId("")
    by: str = ""
    because: Digest | None = None


@fixed
class PlansForgotten:
    """A person had the versions of the line's plan forgotten: a goal is planned again, as if it were new."""

    by: str


@fixed
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


@fixed
class HandoffGiven:
    """An accepted attempt told its successors something; whoever reuses its artifact tells it again.

    The ref and the digest are those of the artifact.
    """

    run: RunId
    step: StepId
    attempt: int
    input_ref: Digest
    digest: Digest
    handoff: Digest


class Doubted(NamedTuple):
    """One row of the artifact index that stands for no reuse while what its step told is contested."""

    step: StepId
    config_ref: Digest
    digest: Digest
    run: RunId
    attempt: int
    at: int


@fixed
class LedgerSaid:
    """A person said something about the ledger of the line.

    An entry of their own is in `text`; else `entry` is the id that the word is about, and `other` the one
    that it is kept apart from. A contest names in `rows` the artifacts that it puts in doubt; `uphold` takes
    back that the same entry is contested or resolved, `rejoin` that two are kept apart, and `withdraw` an
    entry of their own.
    """

    word: LedgerWord
    by: str
    entry: str = ""
    other: str = ""
    text: Digest | None = None
    because: Digest | None = None
    rows: tuple[Doubted, ...] = ()
    terminal: bool = False


@fixed
class AdditionRequested:
    """A person asked to add the steps of `fragment` to a run that has not ended."""

    run: RunId
    fragment: Digest
    by: str
    because: Digest | None = None


@fixed
class SkipRequested:
    """A person decided that a run goes on without a step."""

    run: RunId
    step: StepId
    by: str
    because: Digest


@fixed
class RunOpened:
    """A run of this line exists; its own journal begins with the same transaction."""

    run: RunId
    key: str = ""


@fixed
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
    handoff: Digest | None = None  # what the person hands over with it


@fixed
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
    handoff: Digest | None = (
        None  # what came with it, if its run was imported: this line does not know
    )


class Withdrawn(NamedTuple):
    """One row of the artifact index that no longer counts: enough to find exactly this one."""

    config_ref: Digest
    digest: Digest
    run: RunId
    attempt: int
    at: int


@fixed
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


@fixed
class StopRequested:
    """A person asked the run to stop, after the running steps or at once."""

    run: RunId
    now: bool
    by: str


@fixed
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


@fixed
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
    handoff: Digest | None = None  # what the person hands over with it


@fixed
class ApprovalUsed:
    """An attempt is about to run under this approval."""

    approval: str
    run: RunId
    step: StepId
    attempt: int


@fixed
class ApprovalRevoked:
    """A person took a yes back; nothing starts under it any more."""

    approval: str
    by: str
    because: Digest | None = None


@fixed
class ConflictDecided:
    """A person settled a conflict: the position of this step stands, or what lies in the project (empty)."""

    conflict: str
    take: StepId
    by: str
    because: Digest | None = None
    terminal: bool = False


@fixed
class ReplanAnswered:
    """What speaks against the plan of a run was answered.

    It goes on as it is, or another plan took its place: `plan`, which was made since, or was prepared.
    `terminal` says that it was typed at one.
    """

    run: RunId
    triggers: tuple[str, ...]
    choice: Literal["go_on", "planned", "prepared"]
    by: str = ""
    plan: Digest | None = None
    because: Digest | None = None
    terminal: bool = False


@fixed
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


@fixed
class Unpinned:
    """It may be removed again when it is old."""

    kind: PinKind
    name: str
    by: str
    because: Digest | None = None


class PaidThen(NamedTuple):
    """What calls of models cost in micro-dollars within the quarter of an hour that began then."""

    at: int
    cost: int


@fixed
class RunCollected:
    """An ended run was removed as a whole; what is left of it is how its journal ended, and what it paid.

    `number` is its place in the order of runs, so that what came after it keeps its place.
    """

    run: RunId
    number: int
    last: int
    hash: Digest
    by: str
    paid: tuple[PaidThen, ...] = ()


class UpTo(NamedTuple):
    """A journal up to one of its events."""

    journal: str
    seq: int


@fixed
class ContentPurged:
    """A person had these contents removed for good.

    No artifact that an event up to `upto` made of them may be reused; the same content made later may.
    """

    digests: tuple[Digest, ...]
    by: str
    because: Digest | None = None
    upto: tuple[UpTo, ...] = ()


class ToldThen(NamedTuple):
    """A handoff that the line of an imported run knew: where its journal had it, and of which attempt."""

    seq: int
    at: int
    run: RunId
    step: StepId
    attempt: int
    input_ref: Digest
    digest: Digest
    handoff: Digest


class SaidThen(NamedTuple):
    """What a person had said about the ledger where an imported run comes from."""

    seq: int
    at: int
    word: LedgerWord
    by: str
    entry: str
    other: str
    text: Digest | None
    because: Digest | None


class PageThen(NamedTuple):
    """What a step had been told whose artifact an imported run reused."""

    step: StepId
    page: Digest


class VouchedThen(NamedTuple):
    """A person's yes under which an attempt began or was accepted, and what it was about."""

    approval: str
    gate: Gate
    step: StepId
    subject: Digest
    by: str
    because: Digest | None
    rule: Digest | None
    at: int
    run: RunId
    attempt: int


class StoodThen(NamedTuple):
    """What a reuse by content stood on where a run comes from; its journal does not say."""

    step: StepId
    config_ref: Digest
    input_ref: Digest
    own_ref: Digest
    digest: Digest
    form: Form
    verified: bool
    made_at: int


@fixed
class RunImported:
    """A run that another store made was added as history; `absent` are contents that it came without.

    `told` is what had come with the artifacts that it reused, `said` what people had said of its ledger,
    `pages` what steps had been told, `vouched` what people had approved. All of it counts for this run alone.

    With `store`, a person brought it from there who may write both: what it made is reused here, but for
    the rows that are `barred`. Of these, `gone` are those that tell all the same of something that was done:
    their content was purged or lost, they are contested, or nobody knows what they were made from. `stood` is
    what its reuses by content stood on.
    """

    run: RunId
    last: int
    hash: Digest
    by: str
    absent: tuple[Digest, ...] = ()
    told: tuple[ToldThen, ...] = ()
    said: tuple[SaidThen, ...] = ()
    pages: tuple[PageThen, ...] = ()
    store: str = ""
    barred: tuple[Doubted, ...] = ()
    stood: tuple[StoodThen, ...] = ()
    vouched: tuple[VouchedThen, ...] = ()
    gone: tuple[Doubted, ...] = ()


LineEvent = (
    PlanVersioned
    | PlansForgotten
    | StepsAdded
    | HandoffGiven
    | LedgerSaid
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
    | ReplanAnswered
    | Pinned
    | Unpinned
    | RunCollected
    | ContentPurged
    | RunImported
)


def named_in(came: RunImported) -> Iterator[Digest]:
    """The contents that an imported run brings beside its own."""
    yield from (one.handoff for one in came.told)
    yield from (text for one in came.said for text in (one.text, one.because) if text is not None)
    yield from (one.page for one in came.pages)
    yield from (one.own_ref for one in came.stood)
    for one in came.vouched:
        yield from (digest for digest in (one.subject, one.because, one.rule) if digest is not None)
