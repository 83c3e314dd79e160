"""What every executor does with a job. A new executor is one more line in `EXECUTORS`.

Each act is there twice, as a line of shell and as a function; `inline` functions are of this very process,
so nothing that must be ended from outside is asked of them.
"""

import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Coroutine, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple, TypeVar

import pytest

from holdfast.executors.local import LocalExecutor
from holdfast.model.digest import Digest
from holdfast.model.plan import Guard, Step, StepId
from holdfast.ports import Candidate, Executor, Feedback, File, Given, Job, Outcome, Store
from holdfast.process.terms import Terms
from holdfast.store.host import gone, this_process
from holdfast.store.sqlite import SqliteStore
from holdfast.wire import executor_for
from holdfast.wire.remote import Watching, queue_executor, ray_executor
from tests.cluster import Cluster

T = TypeVar("T")
STEP = StepId("act")
LARGE = 3_000_000
TERMS = Terms()


class Act(NamedTuple):
    """One thing to do, in both languages."""

    shell: str
    code: str


ACTS = {
    "good": Act("printf good", "return 'good'"),
    "bad": Act("printf bad", "return 'bad'"),
    "prints": Act("echo FAILED x; exit 1", "print('FAILED x'); raise SystemExit(1)"),
    "fails": Act("echo so far >&2; exit 3", "raise ValueError('so far')"),
    "reads": Act('cat "$HOLDFAST_INPUTS/above"', "return above"),
    "value": Act('cat "$HOLDFAST_WITH/topic"', "return topic"),
    "large": Act(f"head -c {LARGE} /dev/zero | tr '\\0' x", f"return 'x' * {LARGE}"),
    "files": Act(
        "mkdir -p out/in; printf one > out/a; printf two > out/in/b; chmod +x out/in/b",
        "import pathlib; out = pathlib.Path('out'); (out / 'in').mkdir(parents=True);"
        " (out / 'a').write_text('one'); (out / 'in/b').write_text('two');"
        " (out / 'in/b').chmod(0o755)",
    ),
    "nothing": Act("true", "return None"),
    "sleeps": Act("sleep 600", "import time; time.sleep(600)"),
    "dies": Act("kill -9 $$", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"),
    "tells": Act(
        'printf good; echo "{}" > "$HOLDFAST_HANDOFF"; echo "steps: {}" > "$HOLDFAST_ADD/more.yaml"',
        "import os, pathlib; e = os.environ; pathlib.Path(e['HOLDFAST_HANDOFF']).write_text('{}\\n');"
        " pathlib.Path(e['HOLDFAST_ADD'], 'more.yaml').write_text('steps: {}\\n'); return 'good'",
    ),
    "input": Act("cat in/data.txt; test -x in/run.sh", "return open('in/data.txt').read()"),
    "history": Act(
        'cat "$HOLDFAST_FEEDBACK"', "import os; return open(os.environ['HOLDFAST_FEEDBACK']).read()"
    ),
    "secret": Act(
        'for i in 1 2 3 4 5 6 7; do printf "%s%08192d" "$TOKEN" 0; done',
        "import os; return (os.environ['TOKEN'] + '0' * 8192) * 7",
    ),
    "changes": Act(
        "printf new > in/data.txt; rm in/run.sh; mkdir more; printf made > more/x; printf log",
        "import os, pathlib; pathlib.Path('in/data.txt').write_text('new'); os.unlink('in/run.sh');"
        " os.mkdir('more'); pathlib.Path('more/x').write_text('made'); return 'log'",
    ),
}
GIVEN = {"reads": "above", "value": "topic"}
MODULE = "".join(
    f"def {name}({GIVEN.get(name, '')}):\n    {act.code}\n\n" for name, act in ACTS.items()
)


class Bed:
    """One executor in one language, with a project, a store and an event loop."""

    def __init__(
        self, folder: Path, store: Store, executor: Executor, language: str, runs_on: str = ""
    ) -> None:
        self.folder = folder
        self.store = store
        self.executor = executor
        self.language = language
        self.runs_on = runs_on
        self.runner = asyncio.Runner()

    def step(self, act: str, **fields: object) -> Step:
        fields.setdefault("runs_on", self.runs_on)
        if self.language == "shell":
            return Step(STEP, shell=ACTS[act].shell, **fields)  # type: ignore[arg-type]  # by name
        return Step(STEP, uses="python", run=(f"acts:{act}",), **fields)  # type: ignore[arg-type]

    def job(self, step: Step, **fields: object) -> Job:
        room = Path(tempfile.mkdtemp(prefix="room-", dir=self.folder))
        work = room / "work"
        (work / "in").mkdir(parents=True)
        (work / "in/data.txt").write_text("data")
        (work / "in/run.sh").write_text("#!/bin/sh\n")
        (work / "in/run.sh").chmod(0o755)
        return Job(
            step=step,
            attempt=1,
            folder=str(work),
            root=str(self.folder / "project"),
            room=str(room),
            mark=f"test-{os.getpid()}-{room.name}",
            **fields,  # type: ignore[arg-type]  # by name
        )

    def wait(self, work: Coroutine[object, object, T]) -> T:
        async def bounded() -> T:
            async with asyncio.timeout(120):
                return await work

        return self.runner.run(bounded())

    def run(
        self, act: str, *, job: Mapping[str, object] | None = None, **fields: object
    ) -> Outcome:
        return self.wait(self.executor.run(self.job(self.step(act, **fields), **(job or {}))))


def project(folder: Path) -> None:
    (folder / "project").mkdir()
    (folder / "project/acts.py").write_text(MODULE)
    (folder / "project/check.py").write_text(
        "def good(artifact: str):\n    return True if 'good' in artifact else 'not good'\n"
        "def never(artifact: str):\n    return {'fatal': True, 'feedback': 'never'}\n"
        "def broken(artifact: str):\n    raise ValueError('no verdict')\n"
    )


def inline(folder: Path) -> LocalExecutor:
    space: dict[str, Callable[..., object]] = {}
    exec(MODULE, space)  # the very functions that the others import
    found = {StepId(name): space[name] for name in ACTS}
    return executor_for(None, found, terms=TERMS)


Make = Callable[[Path, Store, pytest.FixtureRequest], Executor]


def on_ray(folder: Path, store: Store, request: pytest.FixtureRequest) -> Executor:
    cluster: Cluster = request.getfixturevalue("cluster")
    local, location = executor_for(None, terms=TERMS), str(folder / ".holdfast")
    return ray_executor(local, store, location, TERMS, cluster.address, 2, lambda _: None)


def by_worker(folder: Path, store: Store, request: pytest.FixtureRequest) -> Executor:
    words = ("worker", "--queue", QUEUE, "-j", "2", "--poll", "0.05", "--beat", "0.5", "--network")
    env = {**os.environ, "HOLDFAST_STORE": str(folder / ".holdfast")}
    worker = subprocess.Popen(
        [sys.executable, "-m", "holdfast", *words, "--no-sandbox"],
        cwd=folder,
        env=env,
        stderr=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )

    def end() -> None:
        worker.terminate()
        worker.wait()

    request.addfinalizer(end)
    local = executor_for(None, terms=TERMS)
    return queue_executor(
        local, store, TERMS, Watching(this_process(), gone, 0.05, 5.0), lambda _: None
    )


EXECUTORS: dict[str, Make] = {
    "local": lambda *_: executor_for(None, terms=TERMS),
    "worker": by_worker,
    "ray": on_ray,
}
QUEUE = "far"
BEDS = [f"{name}-{language}" for name in EXECUTORS for language in ("shell", "python")]
# A function starts no processes that a command does not, and what it prints comes when it has ended.
COMMANDS = pytest.mark.parametrize(
    "bed", [f"{name}-shell" for name in EXECUTORS], indirect=True, scope="module"
)


@pytest.fixture(scope="module", params=BEDS)
def bed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bed]:
    name, _, language = str(request.param).partition("-")
    folder = tmp_path_factory.mktemp(name)
    project(folder)
    store = SqliteStore.open(str(folder / ".holdfast"), create=True)
    runs_on = QUEUE if name == "worker" else ""
    made = Bed(folder, store, EXECUTORS[name](folder, store, request), language, runs_on)
    yield made
    made.wait(made.executor.close())
    made.runner.close()
    store.close()


def content(outcome: Outcome) -> bytes:
    assert outcome.candidate is not None, outcome
    return outcome.candidate.content


def guard(kind: str, config: object = None, **fields: object) -> Guard:
    return Guard(kind, config, **fields)  # type: ignore[arg-type]  # by name


GOOD = guard("python", "check:good")
GREP = guard("command", ["sh", "-c", 'grep good "$HOLDFAST_ARTIFACT" || { echo no good; exit 1; }'])


class TestMaking:
    @pytest.mark.req("R177")
    def test_what_it_makes_is_the_candidate(self, bed: Bed) -> None:
        outcome = bed.run("good")
        assert (outcome.ended, content(outcome), outcome.verified) == ("accepted", b"good", False)

    def test_a_failed_command_says_why(self, bed: Bed) -> None:
        outcome = bed.run("fails")
        assert (outcome.ended, outcome.code, outcome.candidate) == (
            "failed",
            "command_failed",
            None,
        )
        assert "so far" in outcome.feedback

    def test_what_a_failed_attempt_printed_comes_back(self, bed: Bed) -> None:
        outcome = bed.run("prints")
        assert (outcome.ended, outcome.log) == ("failed", b"FAILED x\n")
        said = "FAILED x" if bed.language == "shell" else "SystemExit: 1"
        assert outcome.feedback.rstrip().endswith(said)

    def test_it_reads_what_it_is_given(self, bed: Bed) -> None:
        given = {StepId("above"): Given("bytes", lambda: b"from above")}
        assert content(bed.run("reads", job={"given": given})) == b"from above"

    def test_it_reads_its_values(self, bed: Bed) -> None:
        assert content(bed.run("value", values={"topic": "tides"})) == b"tides"

    def test_it_finds_its_inputs(self, bed: Bed) -> None:
        assert content(bed.run("input")) == b"data"

    def test_a_large_artifact_comes_whole(self, bed: Bed) -> None:
        assert content(bed.run("large")) == b"x" * LARGE

    def test_several_files_keep_their_paths_and_executable_bits(self, bed: Bed) -> None:
        outcome = bed.run("files", produces=("out",))
        assert outcome.candidate is not None
        assert outcome.candidate.files == (
            File("out/a", b"one"),
            File("out/in/b", b"two", executable=True),
        )

    def test_what_it_promised_and_did_not_make_is_a_rejection(self, bed: Bed) -> None:
        outcome = bed.run("nothing", produces=("out",))
        assert (outcome.ended, outcome.code) == ("rejected", "guard_rejected")
        assert "'out'" in outcome.feedback

    def test_a_handoff_and_further_steps_come_along(self, bed: Bed) -> None:
        made = bed.run("tells").candidate
        assert made is not None
        assert (made.handoff, made.fragments) == (b"{}\n", (File("more.yaml", b"steps: {}\n"),))

    def test_it_is_told_what_was_wrong_before(self, bed: Bed) -> None:
        before = Feedback(Digest("d"), "check", "too short")
        made = content(bed.run("history", job={"feedback": (before,)}))
        assert made == b'[{"digest": "d", "guard": "check", "feedback": "too short"}]'


class TestGuarding:
    @pytest.mark.parametrize("judge", [GOOD, GREP], ids=["python", "command"])
    def test_guards_accept_and_verify(self, bed: Bed, judge: Guard) -> None:
        outcome = bed.run("good", guards=(judge,))
        assert (outcome.ended, outcome.verified) == ("accepted", True)

    @pytest.mark.parametrize(
        "judge, words", [(GOOD, "not good"), (GREP, "no good\n")], ids=["python", "command"]
    )
    def test_a_rejection_brings_its_feedback(self, bed: Bed, judge: Guard, words: str) -> None:
        outcome = bed.run("bad", guards=(judge,))
        assert (outcome.ended, outcome.code) == ("rejected", "guard_rejected")
        assert outcome.feedback == words
        assert content(outcome) == b"bad"

    def test_a_fatal_verdict_is_fatal(self, bed: Bed) -> None:
        outcome = bed.run("good", guards=(guard("python", "check:never"),))
        assert (outcome.ended, outcome.code, outcome.feedback) == ("fatal", "guard_fatal", "never")

    def test_a_broken_guard_loses_the_attempt(self, bed: Bed) -> None:
        outcome = bed.run("good", guards=(guard("python", "check:broken"),))
        assert (outcome.ended, outcome.code) == ("lost", "guard_broken")
        assert "no verdict" in outcome.feedback

    def test_a_person_is_left_to_decide(self, bed: Bed) -> None:
        outcome = bed.run("good", guards=(GOOD, guard("human", name="human")))
        assert (outcome.ended, outcome.asks) == ("asked", ("human",))

    def test_only_guarding_makes_nothing(self, bed: Bed) -> None:
        job = bed.job(bed.step("fails", guards=(GOOD,)))
        outcome = bed.wait(bed.executor.judge(job, Candidate("bytes", b"good")))
        assert (outcome.ended, outcome.verified) == ("accepted", True)

    def test_implied_guards_are_asked(self, bed: Bed) -> None:
        outcome = bed.run("good", outputs=("a",))
        assert (outcome.ended, outcome.verdict and outcome.verdict.guard) == ("rejected", "outputs")


class TestChangingTheProject:
    def test_what_changed_in_its_copy_is_there_to_be_taken_over(self, bed: Bed) -> None:
        step = bed.step("changes", effects="workspace", workspace="scratch", guards=(GREP,))
        seen: dict[str, bytes] = {}
        folder = ""

        def take(made: Candidate) -> Candidate:
            seen.update(
                {
                    str(p.relative_to(folder)): p.read_bytes()
                    for p in Path(folder).rglob("*")
                    if p.is_file()
                }
            )
            return Candidate("bytes", b"good", log=made.content)

        job = bed.job(step, take=take)
        folder = job.folder
        outcome = bed.wait(bed.executor.run(job))
        assert seen == {"in/data.txt": b"new", "more/x": b"made"}
        assert (outcome.ended, outcome.log) == ("accepted", b"log")


class TestEnding:
    def test_a_timeout_loses_the_attempt(self, bed: Bed) -> None:
        outcome = bed.run("sleeps", timeout=0.5)
        assert (outcome.ended, outcome.code) == ("lost", "timed_out")

    def test_a_process_that_dies_loses_the_attempt(self, bed: Bed) -> None:
        outcome = bed.run("dies")
        assert (outcome.ended, outcome.code) == ("lost", "lost")

    @pytest.mark.req("R177")
    @COMMANDS
    def test_it_is_heard_while_it_runs_and_cancelling_ends_the_whole_tree(self, bed: Bed) -> None:
        line = (
            "trap '' TERM; setsid sh -c 'trap \"\" TERM; sleep 601' & (sleep 602 &);"
            " echo begun >&2; sleep 603"
        )
        heard = asyncio.Event()
        job = bed.job(Step(STEP, shell=line), on_output=lambda *_: heard.set())

        async def cancel() -> None:
            task = asyncio.create_task(bed.executor.run(job))
            await heard.wait()
            assert marked(job.mark)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        bed.wait(cancel())
        assert marked(job.mark) == []

    def test_after_a_cancelled_attempt_the_next_one_runs(self, bed: Bed) -> None:
        async def cancel() -> None:
            task = asyncio.create_task(bed.executor.run(bed.job(bed.step("sleeps"))))
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait({task})

        bed.wait(cancel())
        assert content(bed.run("good")) == b"good"


class TestListening:
    @COMMANDS
    def test_all_that_it_says_is_heard_in_its_order(self, bed: Bed) -> None:
        step = Step(STEP, shell="echo first >&2; sleep 0.3; echo last >&2")
        heard: list[tuple[str, bytes]] = []
        outcome = bed.wait(
            bed.executor.run(bed.job(step, on_output=lambda *said: heard.append(said)))
        )
        assert heard == [("stderr", b"first\n"), ("stderr", b"last\n")]
        assert (outcome.ended, outcome.log) == ("accepted", b"first\nlast\n")

    @COMMANDS
    def test_a_flood_is_heard_in_bounds_and_kept_to_its_end(self, bed: Bed) -> None:
        step = Step(STEP, shell="seq 1 300000 >&2; printf good")
        outcome = bed.wait(bed.executor.run(bed.job(step, on_output=lambda *_: None)))
        assert outcome.log.endswith(b"299999\n300000\n")
        assert content(outcome) == b"good"


class TestSecrets:
    def test_no_store_gets_what_holds_a_secret(self, bed: Bed) -> None:
        token = "sesame-0123456789"
        job = {"env": {"TOKEN": token}}
        outcome = bed.run("secret", job=job, secrets=("TOKEN",))
        if bed.runs_on:  # what goes through the store is in the store
            assert outcome.candidate is None
            assert "a step that sees secrets is not left to workers" in outcome.feedback
            return
        made = content(outcome)
        assert made.count(token.encode()) == 7, "the engine sees it, and refuses it"
        assert not any(token.encode() in bed.store.get(digest) for digest in bed.store.blobs())

    def test_it_sees_no_variable_that_it_did_not_declare(self, bed: Bed) -> None:
        step = Step(STEP, shell='printf "%s" "${RAY_AUTH_TOKEN:-none}${OTHER:-}"')
        outcome = bed.wait(bed.executor.run(bed.job(step)))
        assert content(outcome) == b"none"


def marked(mark: str) -> list[int]:
    """The processes of an attempt."""
    found = []
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                environment = Path(entry.path, "environ").read_bytes()
            except OSError:
                continue
            if f"HOLDFAST_MARK={mark}".encode() in environment:
                found.append(int(entry.name))
    return found


def test_functions_of_this_process_are_made_and_guarded_alike(tmp_path: Path) -> None:
    project(tmp_path)
    store = SqliteStore.open(str(tmp_path / ".holdfast"), create=True)
    bed = Bed(tmp_path, store, inline(tmp_path), "inline")
    for act, judged in (("good", "accepted"), ("bad", "rejected"), ("fails", "failed")):
        step = Step(StepId(act), uses="python", guards=(GOOD,))
        assert bed.wait(bed.executor.run(bed.job(step))).ended == judged
    bed.wait(bed.executor.close())
    bed.runner.close()
    store.close()
