"""The seams: what the engine asks of the world, as protocols.

A store is synchronous and safe to use from one thread at a time; the engine gives it one writer thread
and a reader of its own. Each port has a contract suite under `tests/contracts`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import field
from functools import partial
from typing import Literal, NamedTuple, Protocol

from holdfast.model.artifact import Artifact, Entry, Form, Status, Verdict, tree_entries
from holdfast.model.call import Answer, Offer, Request, ToolUse, Usage
from holdfast.model.changeset import Change, Settled
from holdfast.model.digest import Digest, Json
from holdfast.model.event import Event, Recorded
from holdfast.model.fixed import fixed, frozen
from holdfast.model.newest import Newest
from holdfast.model.plan import Guard, Limits, Plan, RunId, Step, StepId
from holdfast.model.walls import WALLS, Walls

# --- the store ---------------------------------------------------------------------------------


class ClaimKey(NamedTuple):
    """What two engines may not both run: one step under one config ref."""

    project: str
    line: str
    step: StepId
    config_ref: Digest


class Kept(NamedTuple):
    """An event as a store has it, which may be appended again as it is: to read it costs more."""

    noun: type[Event]
    body: str
    read: Callable[[], Event]


def event_of(told: Event | Kept) -> Event:
    """What was told, read if that was put off."""
    return told.read() if isinstance(told, Kept) else told


@fixed
class Append:
    """New events at the end of one journal; refused unless the journal ends at `expected`.

    Without events it only states that the journal ends there, whoever holds the run.
    """

    journal: str
    expected: int
    events: Sequence[tuple[int, Event | Kept]]  # (at, event)
    fence: int | None = None  # run journals: the fence under which this engine holds the run


@fixed
class Batch:
    """One transaction: everything in it becomes true together, or nothing does.

    `blobs` are small contents that go into the database with the facts that name them; large ones are
    put before by `put`. `withdrawn` are accepted rows that no longer count because a person says so,
    `superseded` those whose step the same run accepts again. `held` are claims that must still be ours,
    `released` are given up.
    """

    appends: Sequence[Append] = ()
    artifacts: Sequence[Artifact] = ()
    blobs: Sequence[tuple[Digest, bytes]] = ()
    held: Sequence[tuple[ClaimKey, int]] = ()
    released: Sequence[tuple[ClaimKey, int]] = ()
    withdrawn: Sequence[Artifact] = ()
    superseded: Sequence[Artifact] = ()


@fixed
class RunRow:
    """A run as the index of runs knows it."""

    run: RunId
    project: str
    line: str
    number: int  # order of creation over the whole store
    fence: int
    imported: bool = False  # history of another store: never continued, never reused by itself


class Stored(NamedTuple):
    """A content as the store has it: how large, and when it was last stored (ms since 1970)."""

    digest: Digest
    size: int
    at: int


@fixed
class Owner:
    """An engine process: enough to tell whether it still lives."""

    engine: str  # a fresh UUID for every process
    host: str
    boot: str
    pid: int
    started: str  # start time of the process as the kernel tells it
    since: int  # ms since 1970


@frozen
class Holder:
    """An engine that holds a line, and how often its heart has beaten."""

    owner: Owner
    run: RunId | None
    beat: int
    sharing: bool  # it writes claims, because it knows of the others
    silent: float | None = field(default=None, compare=False)  # seconds, by the clock of the store


class Errand(NamedTuple):
    """An attempt that an engine wants somebody else to make, and what became of that.

    `parcel` is the content that describes it, `report` the one that says how it ended.
    """

    id: int
    queue: str
    parcel: Digest
    engine: str
    worker: str | None = None
    fence: int = 0
    report: Digest | None = None


class Lock(Protocol):
    """A lock that ends with the process that has it, whatever the store says."""

    def try_lock(self) -> bool:
        """Take it if nobody has it; does not wait."""

    def release(self) -> None:
        """Give it back, if it was taken."""


class Stat(NamedTuple):
    """What tells that a file has not changed since it was hashed."""

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int


class Raw(NamedTuple):
    """An event as it lies there: its kind and its text."""

    seq: int
    at: int
    kind: str
    body: str


class Facts(Protocol):
    """What happened, to be read: journals, runs and contents, of a store or of an export."""

    def read(self, journal: str, after: int = 0) -> Iterator[Recorded]:
        """The events of a journal in order, the chain checked on the way."""

    def journals(self) -> Sequence[str]:
        """The names of all journals."""

    def runs(self, line: str | None = None, *, imported: bool = False) -> Sequence[RunRow]:
        """All runs, oldest first; of one line if named; with `imported` also those of other stores."""

    def get(self, digest: Digest) -> bytes:
        """Content by digest, verified; IntegrityError if missing or damaged, PurgedError if purged."""


class Store(Facts, Protocol):
    """Journals, artifact index, blobs, claims and holds in one place."""

    def commit(self, batch: Batch, *, wait: bool = True) -> None:
        """Make a batch true, durably. ConflictError, FencedError or StoreError: nothing of it is.

        Without `wait`, LockedError at once if another process has the store locked.
        """

    def told(
        self, journals: Iterable[str], kinds: Collection[type[Event]], since: int = 0
    ) -> Iterator[tuple[str, Recorded]]:
        """The events of these kinds in these journals, in order, from `since` on (ms since 1970).

        The rest of a journal is not looked at, so its chain is not checked.
        """

    def last(self, journal: str) -> int:
        """The last sequence number of a journal; 0 if there is none."""

    def kept(self, journal: str) -> Iterator[tuple[int, Kept]]:
        """The times and events of a journal in order as it has them, the chain checked on the way."""

    def raw(self, journal: str) -> Iterator[Raw]:
        """The events of a journal as they lie there, in order; nothing is checked."""

    def end(self, journal: str) -> tuple[int, Digest]:
        """The last sequence number of a journal and the hash of its chain there."""

    def open_run(
        self, run: RunId, project: str, line: str, batch: Batch, engine: str | None = None
    ) -> int:
        """Create a run and commit its first batch in one transaction; gives the fence (1).

        With `engine`, FencedError unless that engine holds a line.
        """

    def take_run(
        self, run: RunId, engine: str | None = None, *, unless_driven: bool = False
    ) -> int:
        """Take a run over: raises its fence, so that whoever had it can write no more.

        With `engine`, FencedError unless that engine holds a line; with `unless_driven` also if another
        one says that it drives the run.
        """

    def find(
        self, project: str, line: str, step: StepId, ref: Digest, *, content: bool = False
    ) -> Artifact | None:
        """The newest accepted, reusable artifact under this config ref (or input ref, if `content`)."""

    def newest(self, project: str, line: str, step: StepId) -> Artifact | None:
        """The newest accepted artifact of a step under any ref."""

    def newest_of_all(self, project: str, line: str) -> Newest:
        """The newest accepted artifact of every step of a line, in a map for the caller alone."""

    def artifacts(
        self,
        *,
        project: str | None = None,
        line: str | None = None,
        step: StepId | None = None,
        run: RunId | None = None,
        status: Status | None = None,
        source: str | None = None,
        digest: Digest | None = None,
    ) -> Iterator[Artifact]:
        """Rows of the artifact index in the order they were stored."""

    def replace_artifacts(self, rows: Callable[[], Iterable[Artifact]]) -> None:
        """Put a rebuilt index in the place of the present one, numbered in the order given.

        `rows` is called when nobody else can write any more: what it reads is what stands.
        """

    def put(self, content: bytes | Iterable[bytes]) -> Digest:
        """Store content durably and return its digest. After this a batch may name it."""

    def chunks(self, digest: Digest) -> Iterator[bytes]:
        """Content by digest in pieces, verified by the time the last piece is given."""

    def has(self, digest: Digest) -> bool:
        """Whether the content is there (its size is checked, not its bytes)."""

    def absent(self, digests: Iterable[Digest]) -> set[Digest]:
        """Which of these contents are not there; the same as asking one by one, in few questions."""

    def blobs(self) -> Iterator[Digest]:
        """The digests of everything stored."""

    def apart(self, digests: Iterable[Digest]) -> set[Digest]:
        """Of these contents those that could go without a trace, as large ones do that are files."""

    def stored(self) -> Iterator[Stored]:
        """Everything stored with its size and age."""

    def forget(self, digests: Iterable[Digest], before: int) -> None:
        """Remove contents that nothing names, except those stored again since `before` (ms)."""

    def remove_run(self, run: RunId, batch: Batch) -> None:
        """Commit a batch and remove a run with its journal and its rows of the index, in one transaction."""

    def add_runs(self, rows: Sequence[RunRow], batch: Batch) -> None:
        """Commit a batch and add whole runs with it, in one transaction; a number of 0 means the next."""

    def purge(self, digests: Sequence[Digest], numbers: Iterable[int], batch: Batch) -> None:
        """Commit a batch, make these rows of the index unfit for reuse, and remove the contents."""

    def claim(self, key: ClaimKey, engine: str) -> int | None:
        """Take a claim; gives its fence, or None while a live engine has it."""

    def claims(self) -> Sequence[tuple[ClaimKey, str, int]]:
        """All claims: key, engine, fence."""

    def enter(
        self, project: str, line: str, owner: Owner, *, alone: bool = False
    ) -> Sequence[Holder]:
        """Register as a holder of the line and tell who else is; with `alone` only if nobody else is."""

    def beat(self, engine: str, *, sharing: bool, run: RunId | None = None) -> bool:
        """One heartbeat; false if somebody removed this holder."""

    def leave(self, engine: str) -> None:
        """Stop holding; claims and errands of this engine are given up."""

    def bury(self, holder: Holder) -> bool:
        """Remove a holder that did not beat since, with its claims and errands; its run gets a new fence.

        The fence stays if another holder drives that run by now: it raised it, or is about to.

        All in one transaction; false, and nothing, if its heart has moved or it is not there any more.
        """

    def holders(self, project: str, line: str) -> Sequence[Holder]:
        """The engines that say they hold this line."""

    def held(self) -> Sequence[tuple[str, str, Holder]]:
        """All holders of all lines: project, line, holder."""

    def post(self, queue: str, parcel: Digest, engine: str) -> int:
        """Leave an errand to whoever takes from this queue; gives its id."""

    def take_errand(self, queues: Sequence[str], worker: str) -> Errand | None:
        """Take the oldest free errand of these queues; None if there is none, or this worker holds no line.

        Nobody else gets it after that. What it becomes is told with its fence.
        """

    def report(self, errand: Errand, report: Digest) -> bool:
        """Say how an errand that was taken ended; false, and nothing, if it is not this worker's any more."""

    def errands(self, engine: str | None = None, worker: str | None = None) -> Sequence[Errand]:
        """The errands of an engine, or of a worker, or all, oldest first."""

    def tell(self, errand: Errand, said: Sequence[tuple[str, bytes]]) -> bool:
        """Pass on what a step says while it runs; false, and nothing, if nobody wants it any more."""

    def heard(self, errand: int, after: int = 0) -> Sequence[tuple[int, str, bytes]]:
        """What was passed on after a number: number, stream, bytes."""

    def hints(self, wake: Callable[[], None]) -> AbstractContextManager[None]:
        """While it lasts, `wake` is called, from any thread, soon after others did something.

        That is a hint and may be missing: whoever must know looks by himself.
        """

    def call_off(self, errands: Collection[int]) -> None:
        """Let nobody take these any more; whoever has one ends it and takes it back. Its engine is ''."""

    def withdraw(self, errands: Collection[int]) -> None:
        """Take errands back, whatever became of them."""

    def stats(self, paths: Iterable[str]) -> Mapping[str, tuple[Stat, Digest, bool]]:
        """Cached digests (and executable bits) of files that were hashed before."""

    def remember_stats(self, items: Iterable[tuple[str, Stat, Digest, bool]]) -> None:
        """Cache digests of files; losing them costs time, never correctness."""

    def steady(self) -> AbstractContextManager[None]:
        """As long as it lasts, everything that is read is of one moment."""

    def assure(self) -> None:
        """IntegrityError if the tables that tell what was done do not hold together in themselves.

        What a store of another kind vouches for by itself is not looked at. It is cheap beside `check`:
        events and contents have hashes of their own.
        """

    def check(self) -> Iterator[str]:
        """Problems of the store's own making: damaged pages, broken chains, missing or changed blobs."""

    def close(self) -> None:
        """Give back files and locks."""


IgnoreRules = Callable[[str], bool | None]
"""What one `.gitignore` says about a path beneath it: leave it out, take it, or nothing."""

# --- attempts ----------------------------------------------------------------------------------


class Feedback(NamedTuple):
    """What an earlier attempt made and why it did not count."""

    digest: Digest | None
    guard: str
    text: str
    content: Callable[[], bytes] | None = None  # what it made, as it is stored


class Listed(NamedTuple):
    """What was gathered, in its order; nothing for a step that made several files."""

    contents: tuple[Callable[[], bytes] | Listed | None, ...]
    keys: tuple[str, ...] | None = (
        None  # names, if they are told apart by these and not by their place
    )


@fixed
class Given:
    """The artifact of a need, ready to be read; `items` if it was gathered, `digest` if it is stored."""

    form: Form
    content: Callable[[], bytes]
    files: tuple[
        tuple[str, bool, Callable[[], bytes]], ...
    ] = ()  # path, executable, content (form tree)
    items: Listed | None = None
    digest: Digest | None = None


def given_artifact(get: Callable[[Digest], bytes], digest: Digest, form: Form) -> Given:
    """A stored artifact whose bytes are read when somebody wants them."""
    content = partial(get, digest)
    if form != "tree":
        return Given(form, content, digest=digest)
    files = tuple(
        (entry.path, entry.executable, partial(get, entry.digest))
        for entry in tree_entries(content())
    )
    return Given(form, content, files, digest=digest)


class Calls(Protocol):
    """Asks models for an attempt. Every call is reserved and stored before it is sent, and after it."""

    async def ask(self, request: Request, listen: Callable[[str], None] | None = None) -> Answer:
        """The answer: the stored one if this was answered before and not acted on.

        AttemptError if there is none, with the code that says why.
        """

    async def use(
        self, wanted: Wanted, run: Callable[[], Awaitable[Said]], repeat: Repeat = "never"
    ) -> Said:
        """What a tool answers: as it was stored, or by running it.

        `repeat` says what to do after an attempt that was lost: "never" what was begun, "unanswered" what was
        begun and gave no answer, "always" also what did. "undone" is "unanswered" for what changes something
        and takes back whatever was left half done: that it began is stored first. AttemptError if it may not
        be run again.
        """


Repeat = Literal["never", "unanswered", "undone", "always"]


class Said(NamedTuple):
    """What a tool answered; `ok` is false if it could not do what was wanted."""

    text: str
    ok: bool = True


class Wanted(NamedTuple):
    """A use of a tool that a model wants: the request that it answered, and which one it is of the answer.

    `tool` is the name of a tool that there is; empty for any other.
    """

    after: Request
    place: int
    use: ToolUse
    tool: str


class Tool(Protocol):
    """What a model may use."""

    @property
    def offer(self) -> Offer:
        """What the model is told of it."""

    @property
    def reads_only(self) -> bool:
        """Whether it changes nothing, so that it may be used again."""

    async def call(self, arguments: Mapping[str, Json], job: Job) -> str:
        """Its answer; AttemptError in words for the model if it cannot."""


class ChatModel(Protocol):
    """Asks a model once: one request, one answer, nothing tried again."""

    def cost(self, model: str, usage: Usage) -> int | None:
        """What so many tokens of a model cost in micro-dollars; None if its price is not known."""

    def room(self, provider: str) -> Rates:
        """How fast a provider may be asked."""

    def load(self, provider: str) -> None:
        """Get ready to ask a provider, which may take seconds: for a thread beside the loop.

        CallError if it cannot be asked; whoever asks it gets the same.
        """

    async def ask(
        self, request: Request, listen: Callable[[str], None], leaves: Callable[[], None]
    ) -> Answer:
        """One call; CallError if there is no answer.

        `leaves` is called, from any thread, right before the first byte leaves this machine, if any does;
        `listen` gets the text as it comes.
        """

    async def close(self) -> None:
        """End what is kept between calls."""


class Rates(NamedTuple):
    """How fast a provider may be asked: calls at once, and calls in a minute (0 is no bound)."""

    at_once: int = 8
    per_minute: int = 0


@fixed
class Job:
    """Everything an attempt needs, and nothing it should not know.

    `folder` is where the step runs, `root` the project directory, `room` a private directory of the
    attempt for input files, feedback and home; all of them exist. `take` turns what a generator made into
    the candidate, if that is what the step changed in its copy of the project; AttemptError if it cannot.
    `effect` is the key under which a step changes the outside world: the same again if nobody knows
    whether the last attempt did. `place` is awaited before a process is started after a model was asked.
    """

    step: Step
    attempt: int
    folder: str
    root: str
    room: str
    mark: str
    given: Mapping[StepId, Given] = field(default_factory=dict)
    feedback: tuple[Feedback, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    on_output: Callable[[str, bytes], None] | None = None
    take: Callable[[Candidate], Candidate] | None = None
    effect: str = ""
    config_ref: str = ""
    calls: Calls | None = None
    place: Callable[[], Awaitable[None]] | None = None
    files: Mapping[str, StepId] = field(default_factory=dict)  # values that are files of needs
    told: frozenset[StepId] = frozenset()  # needs that the prompt or the values read by themselves
    context: str = ""  # what the handoffs of the steps above come to
    walls: Walls = WALLS  # how large may be what it makes and prints


@fixed
class File:
    """One file of a candidate, read from the folder where the step ran."""

    path: str
    content: bytes
    executable: bool = False


@fixed
class Candidate:
    """What a generator made: bytes, or files by path when the step says `produces`.

    `fragments` are files with steps that shall be added to the plan once it is accepted.
    `changes` are what it changed in a copy of the project; `files` hold the content of those it wrote.
    `settled` are paths about which people decided that their version, or another step's, stands.
    `entries` are files whose contents are stored already. `handoff` is what it tells its successors.
    `swept` says that no process of it can be alive, although it may not have been confined.
    """

    form: Form
    content: bytes = b""
    files: tuple[File, ...] = ()
    log: bytes = b""
    confined: bool = True
    fragments: tuple[File, ...] = ()
    changes: tuple[Change, ...] = ()
    settled: tuple[Settled, ...] = ()
    entries: tuple[Entry, ...] = ()
    handoff: bytes = b""
    swept: bool = False


class Generator(Protocol):
    """Makes a candidate. AttemptError says that it could not, and with which code."""

    def identity(self, step: Step, root: str) -> Mapping[str, Json]:
        """What else decides the result: source files by digest, things that cannot be resolved."""

    async def generate(self, job: Job) -> Candidate:
        """One try. Cancelling it ends every process it started before this returns."""

    async def close(self) -> None:
        """End what is kept between attempts."""


@fixed
class Flaw:
    """Why a guard as it is written can never judge: what is wrong, and where in its value.

    With `lacks`, nothing is known to be wrong: a library that the guard needs is not there.
    """

    message: str
    path: tuple[str | int, ...] = ()
    hint: str = ""
    lacks: str = ""
    is_key: bool = False  # what is wrong is the last key of the path, not the value there


class GuardKind(Protocol):
    """Checks a candidate. A verdict is a value; GuardBroken says that there is none."""

    def identity(self, guard: Guard, root: str) -> Mapping[str, Json]:
        """What else decides the verdict: source and schema files by digest."""

    async def judge(self, guard: Guard, candidate: Candidate, job: Job) -> Verdict:
        """Say accept, reject with feedback, or fatal."""


class Outcome(NamedTuple):
    """How an attempt ended, before the engine made it a fact."""

    ended: Literal["accepted", "asked", "rejected", "fatal", "failed", "lost"]
    code: str = ""
    candidate: Candidate | None = None
    verdict: Verdict | None = None
    verified: bool = False
    feedback: str = ""
    log: bytes = b""
    asks: tuple[str, ...] = ()  # the guards that leave it to a person
    limit: str = ""  # the limit that kept it from asking a model
    wanted: int = 0  # what that call may use: micro-dollars, or tokens


class Fragments(Protocol):
    """Reads steps that are to be added to a plan; PlanError says what keeps them from it."""

    def read(self, content: bytes, file: str, plan: Plan) -> Mapping[StepId, Step]:
        """The steps of a file in the grammar of plans; some of them may be in the plan already."""

    def check(self, plan: Plan, added: Mapping[StepId, Step]) -> None:
        """See that the plan can have these steps, none of which it has."""

    def held(self, plan: Plan, added: Mapping[StepId, Step]) -> tuple[dict[StepId, Step], Limits]:
        """The steps as the contracts of their agents want them, and the plan's limits with theirs."""


class Identifies(Protocol):
    """Knows what decides a step's result beside its own keys."""

    def identity(self, step: Step, root: str) -> Mapping[str, Json]:
        """What the step's generator and guards add to its key."""


class Executor(Identifies, Protocol):
    """Runs attempts somewhere: generate, then guard."""

    def at_once(self, job: Job) -> Outcome | None:
        """The outcome of a step that runs in this very process; None if it needs `run`."""

    async def run(self, job: Job) -> Outcome:
        """Generate and guard. Cancelling it ends every process it started before this returns."""

    async def judge(self, job: Job, candidate: Candidate) -> Outcome:
        """Only guard: a kept artifact under changed guards, or a person's version."""

    async def close(self) -> None:
        """End what is kept between attempts."""
