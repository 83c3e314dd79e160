"""Python steps: functions called in child processes that can be killed."""

import asyncio
import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from holdfast.errors import AttemptError, StoreError
from holdfast.generators.python import Pool, PythonGenerator
from holdfast.model.plan import Step, StepId
from holdfast.ports import Candidate, Feedback, File, Given, Job
from holdfast.process.limits import Limits
from holdfast.process.run import sweep
from holdfast.process.terms import Terms
from tests.generators.builders import (
    ENGINE,
    Project,
    given,
    given_tree,
    made,
    refused,
    wait,
)
from tests.scarce import no_room_for_threads


def step(target: str, **fields: object) -> Step:
    return Step(StepId("step"), uses="python", run=(target,), **fields)  # type: ignore[arg-type]  # by name


def python() -> PythonGenerator:
    return PythonGenerator(Pool(), engine=ENGINE)


def called(
    project: Project,
    source: str,
    *,
    needs: Mapping[str, Given] | None = None,
    values: Mapping[str, object] | None = None,
    **fields: object,
) -> Candidate:
    project.write("mod.py", source)
    return made(python(), project.job(step("mod:f", values=values or {}, **fields), given=needs))


def failed(
    project: Project,
    source: str,
    *,
    needs: Mapping[str, Given] | None = None,
    values: Mapping[str, object] | None = None,
    **fields: object,
) -> AttemptError:
    project.write("mod.py", source)
    job = project.job(step("mod:f", values=values or {}, **fields), given=needs)
    error = refused(python(), job)
    assert sweep(job.mark) == 0
    return error


@pytest.mark.parametrize(
    "result, content",
    [
        ("'text ü'", "text ü".encode()),
        ("b'\\x00\\xff'", b"\0\xff"),
        ("{'b': 1, 'a': ['ü', None, True, 1.5]}", '{"a": ["ü", null, true, 1.5], "b": 1}'.encode()),
        ("None", b"null"),
    ],
)
def test_a_result_becomes_an_artifact(project: Project, result: str, content: bytes) -> None:
    assert called(project, f"def f(): return {result}").content == content


def test_of_a_function_that_forks_only_one_answers(project: Project) -> None:
    source = """
import os
def f():
    if os.fork() == 0:
        return "copy"
    os.wait()
    return "original"
def g():
    return "next"
"""
    project.write("mod.py", source)
    generator = python()

    async def both() -> list[bytes]:
        first = await generator.generate(project.job(step("mod:f", timeout=30)))
        second = await generator.generate(project.job(step("mod:g", timeout=30)))
        await generator.close()
        return [first.content, second.content]

    assert asyncio.run(both()) == [b"original", b"next"]


def test_values_and_needs_are_given_by_name(project: Project) -> None:
    candidate = called(
        project,
        "def f(n, names, a_b_c, d=4, *, e): return [n, names, a_b_c, d, e]",
        values={"n": 1, "names": {"x": [1]}, "e": "; touch MARK"},
        needs={"a-b.c": given("text ü"), "unused": given("x")},
    )
    assert json.loads(candidate.content) == [1, {"x": [1]}, "text ü", 4, "; touch MARK"]


def test_an_annotation_says_how_an_artifact_is_wanted(project: Project) -> None:
    source = """
from __future__ import annotations
from pathlib import Path
from typing import Any
def f(a, b: str, c: bytes, d: dict, e: list[int], p: Path, t: Any):
    return [a, b, c.decode(), d, e, p.read_text(), sorted(x.name for x in t.iterdir())]
"""
    needs = {"d": given('{"k": 1}'), "e": given("[1]"), "t": given_tree({"x": b"1", "y/z": b"2"})}
    needs |= {name: given(f"is {name}") for name in "abcp"}
    assert json.loads(called(project, source, needs=needs).content) == [
        "is a",
        "is b",
        "is c",
        {"k": 1},
        [1],
        "is p",
        ["x", "y"],
    ]


def test_annotations_that_are_types_mean_the_same(project: Project) -> None:
    source = (
        "from pathlib import Path\ndef f(c: bytes, p: Path, j: int): return [len(c), p.name, j]"
    )
    needs = {"c": given(b"\xff\0"), "p": given("x"), "j": given("7")}
    assert json.loads(called(project, source, needs=needs).content) == [2, "p", 7]


def test_an_artifact_that_is_no_json_is_given_as_text(project: Project) -> None:
    assert called(project, "def f(j: dict): return j", needs={"j": given("{no")}).content == b"{no"


@pytest.mark.parametrize(
    "source, says",
    [
        ("def f(x): pass", "the parameter 'x' is neither a value of 'with' nor a need"),
        ("def f(): pass", "there is no parameter for 'v'"),
        ("def f(v, /): pass", "the parameter 'v' cannot be given by name"),
        ("def g(): pass", "the module 'mod' has no function 'f'"),
        ("f = 1", "the module 'mod' has no function 'f'"),
        ("def f(v): return {1, 2}", "the result of type 'set' is no JSON"),
        ("def f(v): return float('nan')", "the result of type 'float' is no JSON"),
        ("def f(v, need): pass", "the artifact of 'need' is not UTF-8; annotate it as bytes"),
    ],
)
def test_a_call_that_does_not_fit_is_said_clearly(project: Project, source: str, says: str) -> None:
    error = failed(project, source, values={"v": 1}, needs={"need": given(b"\xff")})
    assert error.reason == "command_failed"
    assert error.message.startswith(f"'mod:f': {says}")


def test_keyword_parameters_take_any_value(project: Project) -> None:
    candidate = called(project, "def f(**rest): return rest", values={"b": 1, "a": 2})
    assert candidate.content == b'{"a": 2, "b": 1}'


def test_a_coroutine_function_is_awaited(project: Project) -> None:
    source = "import asyncio\nasync def f():\n    await asyncio.sleep(0)\n    return 'awaited'"
    assert called(project, source).content == b"awaited"


def test_an_exception_fails_the_attempt_with_the_end_of_its_traceback(project: Project) -> None:
    error = failed(project, "def g(): raise ValueError('so')\ndef f():\n    print('hi')\n    g()")
    assert (error.reason, error.log) == ("command_failed", b"hi\n")
    assert error.message.startswith("Traceback")
    assert error.message.endswith("ValueError: so\n")
    assert "generators/child.py" not in error.message


@pytest.mark.parametrize("source", ["import nothing_there\ndef f(): pass", "def f(: pass"])
def test_a_module_that_cannot_be_imported_fails_the_attempt(project: Project, source: str) -> None:
    error = failed(project, source)
    assert error.reason == "command_failed"
    assert error.message.splitlines()[-1].startswith(("ModuleNotFoundError", "SyntaxError"))


def test_sys_exit_is_an_exception_like_another(project: Project) -> None:
    error = failed(project, "import sys\ndef f(): sys.exit(3)")
    assert (error.reason, error.message.splitlines()[-1]) == ("command_failed", "SystemExit: 3")


@pytest.mark.parametrize(
    "death", ["os._exit(0)", "os.kill(os.getpid(), 9)", "os.kill(os.getpid(), 11)"]
)
def test_a_process_that_dies_is_a_lost_attempt_with_its_log(project: Project, death: str) -> None:
    error = failed(project, f"import os\ndef f():\n    print('last', flush=True)\n    {death}")
    assert (error.reason, error.log) == ("lost", b"last\n")
    assert error.message == "the process of 'mod:f' ended before it answered\nlast"


def test_a_timeout_kills_the_function_and_all_it_started(project: Project) -> None:
    source = """
import subprocess
def f():
    subprocess.Popen(["setsid", "sleep", "999"])
    print("started", flush=True)
    while True: pass
"""
    error = failed(project, source, timeout=0.7)
    assert (error.reason, error.message) == (
        "timed_out",
        "'mod:f' did not end within 0.7 s\nstarted",
    )


def test_what_the_function_prints_is_the_log(project: Project) -> None:
    source = """
import os, subprocess, sys
def f():
    print("one", flush=True); print("two", file=sys.stderr, flush=True)
    os.write(1, b"three\\n"); subprocess.run(["echo", "four"]); print("five", end="")
    return sys.stdin.read()
"""
    heard: list[tuple[str, bytes]] = []
    project.write("mod.py", source)
    job = project.job(step("mod:f"), on_output=lambda stream, chunk: heard.append((stream, chunk)))
    candidate = made(python(), job)
    assert candidate.content == b""
    assert candidate.log == b"one\ntwo\nthree\nfour\nfive"
    assert heard == [("stdout", candidate.log)]


def test_the_function_has_the_environment_and_folder_of_a_command(project: Project) -> None:
    source = "import os, sys\ndef f(): return [dict(os.environ), os.getcwd(), sys.path[0] == '']"
    project.write("mod.py", source)
    job = project.job(
        step("mod:f"), attempt=2, env={"TOKEN": "t"}, feedback=(Feedback(None, "g", "no"),)
    )
    env, folder, here = json.loads(made(python(), job).content)
    assert (folder, here) == (str(project.root), False)
    assert env.pop("HOLDFAST_MARK").startswith(job.mark)
    assert env == {
        "PATH": ENGINE["PATH"],
        "LANG": "C.UTF-8",
        "HOME": f"{job.room}/home",
        "TMPDIR": f"{job.room}/tmp",
        "PWD": str(project.root),
        "TOKEN": "t",
        "HOLDFAST_STEP": "step",
        "HOLDFAST_ATTEMPT": "2",
        "HOLDFAST_ROOT": str(project.root),
        "HOLDFAST_INPUTS": f"{job.room}/inputs",
        "HOLDFAST_WITH": f"{job.room}/with",
        "HOLDFAST_HANDOFF": f"{job.room}/handoff.json",
        "HOLDFAST_ADD": f"{job.room}/add",
        "HOLDFAST_CONTEXT": "/dev/null",
        "HOLDFAST_FEEDBACK": f"{job.room}/feedback.json",
    }


def test_with_produces_the_files_count(project: Project) -> None:
    source = (
        "from pathlib import Path\ndef f(): Path('a').write_text('1'); Path('b').write_text('2')"
    )
    candidate = called(project, source, produces=("a", "b"))
    assert (candidate.form, candidate.files) == ("tree", (File("a", b"1"), File("b", b"2")))


def test_with_produces_a_missing_file_is_a_rejection(project: Project) -> None:
    error = failed(project, "def f(): print('x')", produces=("a",))
    assert (error.reason, error.log) == ("guard_rejected", b"x\n")


def test_the_project_goes_after_the_standard_library(project: Project) -> None:
    project.write("string.py", "whitespace = 'ours'")
    project.write("pkg/__init__.py", "")
    project.write("pkg/inner.py", "WORD = 'inner'")
    source = "import string\nfrom pkg.inner import WORD\ndef f(): return [len(string.digits), WORD]"
    assert called(project, source).content == b'[10, "inner"]'


FORGER = """
import json, os, struct, sys
def f(states=()):
    frame = sys._getframe()
    while "outgoing" not in frame.f_locals:
        frame = frame.f_back
    for state in states:
        said = {"state": state, "message": "can't start new thread", "again": True}
        content = json.dumps(said).encode()
        os.write(frame.f_locals["outgoing"], struct.pack(">I", len(content)) + content)
    return "here"
"""


@pytest.mark.req("D03")
@pytest.mark.parametrize("state", ["refused", "stale", "begun", "other", ["refused"]])
def test_what_a_function_says_in_our_name_is_its_own_lost_attempt(
    project: Project, state: object
) -> None:
    error = failed(project, FORGER, values={"states": [state]})
    assert (error.reason, error.log) == ("lost", b"")


@pytest.mark.req("D03")
@pytest.mark.parametrize("size", [1, 2**20])
def test_a_process_that_is_refused_its_thread_says_so_whatever_it_is_sent(
    project: Project, size: int
) -> None:
    project.write("mod.py", "def f(text): return 'here'")
    job = project.job(step("mod:f", values={"text": "x" * size}))
    with no_room_for_threads(), pytest.raises(StoreError, match="no room for another thread"):
        made(python(), job)
    assert sweep(job.mark) == 0


class Session:
    """Several attempts with one generator in one event loop."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self.generator = python()

    def job(self, target: str = "mod:f", **fields: object) -> Job:
        return self._project.job(step(target, **fields))

    async def content(self, target: str = "mod:f") -> str:
        return (await self.generator.generate(self.job(target))).content.decode()


@pytest.fixture
def session(project: Project) -> Iterator[Session]:
    yield Session(project)
    assert sweep(project.mark) == 0


def aged(path: Path) -> None:
    """Make a file look as if it had been there for a while."""
    os.utime(path, ns=(10**18, 10**18))


PID = "import os\nX = 1\ndef f(): return os.stat('/proc/self').st_ino, X\n"


def test_a_process_is_used_again(project: Project, session: Session) -> None:
    aged(project.write("mod.py", PID))

    async def work() -> list[str]:
        answers = [await session.content() for _ in range(3)]
        await session.generator.close()
        return answers

    assert len(set(wait(work()))) == 1


def test_nothing_of_an_earlier_room_is_kept(project: Project, session: Session) -> None:
    source = "import os, tempfile\ndef f(): return tempfile.gettempdir() == os.environ['TMPDIR']"
    aged(project.write("mod.py", source))

    async def work() -> list[str]:
        answers = [await session.content() for _ in range(2)]
        await session.generator.close()
        return answers

    assert wait(work()) == ["true", "true"]


def test_a_module_that_comes_later_is_found(project: Project, session: Session) -> None:
    aged(project.write("mod.py", "def f():\n    import late\n    return late.X"))
    aged(project.root)

    async def work() -> str:
        with pytest.raises(AttemptError, match="No module named 'late'"):
            await session.content()
        project.write("late.py", "X = 'here'")
        aged(project.root)  # its time stamp does not tell
        answer = await session.content()
        await session.generator.close()
        return answer

    assert wait(work()) == "here"


def test_calls_at_the_same_time_have_processes_of_their_own(
    project: Project, session: Session
) -> None:
    project.write(
        "mod.py",
        "from pathlib import Path\ndef f(mine, other):\n"
        "    Path(mine).touch()\n    while not Path(other).exists(): pass\n    return 'met'",
    )

    async def work() -> list[bytes]:
        jobs = [session.job(values={"mine": mine, "other": other}) for mine, other in ("ab", "ba")]
        both = await asyncio.gather(*(session.generator.generate(job) for job in jobs))
        await session.generator.close()
        return [candidate.content for candidate in both]

    assert wait(work()) == [b"met", b"met"]


def test_edited_source_is_loaded_again(project: Project, session: Session) -> None:
    aged(project.write("mod.py", PID))

    async def work() -> tuple[str, str]:
        before = await session.content()
        project.write("mod.py", PID.replace("X = 1", "X = 2"))
        after = await session.content()
        await session.generator.close()
        return before, after

    before, after = wait(work())
    assert (before[-2:], after[-2:]) == ("1]", "2]")


def test_a_process_that_a_call_leaves_behind_ends_with_it(
    project: Project, session: Session
) -> None:
    aged(
        project.write(
            "mod.py",
            "import subprocess\ndef f():\n"
            "    subprocess.Popen(['sh', '-c', 'setsid sleep 999 & exit'])\n"
            "    subprocess.Popen(['sleep', '999'])\n    return 'left'",
        )
    )

    async def work() -> int:
        assert await session.content() == "left"
        left = sweep(project.mark)
        await session.generator.close()
        return left

    assert wait(work()) == 0


def test_a_cancelled_attempt_leaves_no_process(project: Project, session: Session) -> None:
    project.write(
        "mod.py",
        "import subprocess\nfrom pathlib import Path\ndef f():\n"
        "    subprocess.Popen(['setsid', 'sleep', '999'])\n    Path('ready').touch()\n"
        "    while True: pass",
    )

    async def work() -> int:
        task = asyncio.create_task(session.generator.generate(session.job()))
        while not (project.root / "ready").exists():  # noqa: ASYNC110 - it is another process that says so
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return sweep(project.mark)

    assert wait(work()) == 0


@pytest.mark.parametrize("state", ["refused", "done", "failed", "stale"])
def test_what_a_function_leaves_to_be_read_later_costs_others_nothing(
    project: Project, session: Session, state: str
) -> None:
    aged(project.write("mod.py", FORGER))

    async def work() -> str:
        with pytest.raises(AttemptError):
            await session.generator.generate(session.job(values={"states": ["failed", state]}))
        answer = await session.content()
        await session.generator.close()
        return answer

    assert wait(work()) == "here"


def test_a_process_that_died_while_idle_costs_nothing(project: Project, session: Session) -> None:
    aged(project.write("mod.py", "def f(): return 'here'"))

    async def work() -> str:
        await session.content()
        assert sweep(project.mark) > 0
        answer = await session.content()
        await session.generator.close()
        return answer

    assert wait(work()) == "here"


def test_of_a_process_that_never_began_it_is_said_what_kept_it(
    project: Project, require_part: Callable[[str], str]
) -> None:
    require_part("bwrap")
    lost = Limits(memory=2**23)  # with less some interpreters cannot even say what is missing
    python = PythonGenerator(Pool(Terms(limits=lost)), engine=ENGINE)
    project.write("mod.py", "def f(): return 1")
    error = refused(python, project.job(step("mod:f")))
    assert error.reason == "lost"
    first, *said = error.message.splitlines()
    assert first == "the process of 'mod:f' ended before it answered"
    assert said, "what the loader says of it"
