"""Functions of the engine's own process."""

import asyncio
import functools
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.errors import AttemptError
from holdfast.generators.inline import InlineFunctions
from holdfast.model.plan import Need, Step, StepId
from holdfast.ports import Candidate, Job
from tests.generators.builders import Project, given, given_tree, made, refused


def inline(function: Callable[..., object]) -> InlineFunctions:
    return InlineFunctions({StepId("step"): function})


def step(*needs: str, **fields: object) -> Step:
    edges = tuple(Need(StepId(need)) for need in needs)
    return Step(StepId("step"), uses="python", needs=edges, **fields)  # type: ignore[arg-type]  # by name


def test_a_function_is_called_at_once_with_values_and_needs(project: Project) -> None:
    def function(n: int, text: str, raw: bytes, data: dict[str, int], other: int = 2) -> object:
        return [n, text, len(raw), data, other]

    job = project.job(
        step("text", "raw", "data", values={"n": 1}),
        given={"text": given("ü"), "raw": given(b"\xff"), "data": given('{"a": 1}')},
    )
    candidate = inline(function).at_once(job)
    assert candidate == Candidate("bytes", '[1, "ü", 1, {"a": 1}, 2]'.encode())


def test_another_version_of_the_step_is_prepared_anew(project: Project) -> None:
    functions = inline(lambda n: n)
    for n in ("1", "2"):
        assert functions.at_once(project.job(step(values={"n": n}))) == Candidate(
            "bytes", n.encode()
        )


def test_a_step_of_somebody_else_is_not_ours(project: Project) -> None:
    functions = inline(lambda: "x")
    assert functions.at_once(project.job(Step(StepId("other")))) is None
    assert StepId("other") not in functions
    assert StepId("step") in functions


def test_paths_need_a_room(project: Project) -> None:
    def function(one: Path, many: object) -> str:
        assert isinstance(many, Path)
        return one.read_text() + (many / "x").read_text()

    job = project.job(
        step("one", "many"), given={"one": given("1"), "many": given_tree({"x": b"2"})}
    )
    assert inline(function).at_once(replace(job, room="")) is None
    assert made(inline(function), job).content == b"12"


def test_a_coroutine_function_is_awaited_and_bounded(project: Project) -> None:
    async def function(wait: bool) -> str:
        if wait:
            await asyncio.Event().wait()
        return "awaited"

    job = project.job(step(values={"wait": False}))
    assert inline(function).at_once(job) is None
    assert made(inline(function), job).content == b"awaited"
    error = refused(inline(function), project.job(step(values={"wait": True}, timeout=0.01)))
    assert error.reason == "timed_out"


def test_an_exception_fails_the_attempt(project: Project) -> None:
    def function() -> None:
        raise ValueError("so")

    with pytest.raises(AttemptError) as caught:
        inline(function).at_once(project.job(step()))
    assert caught.value.reason == "command_failed"
    assert caught.value.message.endswith("ValueError: so\n")


def test_a_call_that_does_not_fit_is_said_clearly(project: Project) -> None:
    error = refused(inline(lambda x: x), project.job(step()))
    assert error.reason == "command_failed"
    assert error.message == (
        "the function of 'step': the parameter 'x' is neither a value of 'with' nor a need"
    )


def test_with_produces_the_files_count(project: Project) -> None:
    functions = inline(lambda: str(project.write("out", "made")))
    assert functions.at_once(project.job(step(produces=("out",)))) == Candidate("bytes", b"made")


def identity(function: Callable[..., object], root: str = "/nowhere") -> dict[str, object]:
    return dict(inline(function).identity(step(), root))


def test_the_code_of_a_function_is_its_identity() -> None:
    assert identity(lambda: 1) == identity(lambda: 1)
    assert identity(lambda: 1) != identity(lambda: 2)
    assert identity(lambda: len("a")) != identity(lambda: repr("a"))
    assert identity(lambda: [lambda: 1]) != identity(lambda: [lambda: 2])


def test_constants_that_a_function_holds_enter_and_collections_do_not() -> None:
    def holding(value: object) -> Callable[[], object]:
        return lambda: value

    assert identity(holding(1)) != identity(holding(2))
    assert identity(holding(lambda: 1)) != identity(holding(lambda: 2))
    assert identity(holding([1])) == identity(holding([2]))
    assert identity(lambda a=1: a) != identity(lambda a=2: a)
    assert identity(functools.partial(max, 1)) != identity(functools.partial(max, 2))


def test_a_function_that_holds_itself_has_an_identity() -> None:
    def outer() -> Callable[[int], int]:
        def count(n: int) -> int:
            return 0 if n == 0 else count(n - 1)

        return count

    assert identity(outer()) == identity(outer())


def test_a_function_in_the_project_brings_its_module(project: Project) -> None:
    root = Path(__file__).parent
    found = identity(test_the_code_of_a_function_is_its_identity, str(root))
    assert found.keys() >= {"code", "function"}
    assert "test_inline.py" in found["code"]  # type: ignore[operator]  # a mapping


def test_the_identity_is_equal_in_another_process(project: Project) -> None:
    project.write("mod.py", "def f(x={'a'}): return x in {'a', 'b', 'c'} or 'd'\n")
    program = (
        "import sys; sys.path.insert(0, sys.argv[1]); import mod\n"
        "from holdfast.generators.inline import InlineFunctions\n"
        "from holdfast.model.plan import Step\n"
        "print(InlineFunctions({'s': mod.f}).identity(Step('s'), '/nowhere'))"
    )
    seen = {
        subprocess.run(
            [sys.executable, "-c", program, str(project.root)],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(seen) == 1


def test_job_is_left_as_it_was(project: Project) -> None:
    job: Job = project.job(step())
    made(inline(lambda: "x"), job)
    assert list(Path(job.room).iterdir()) == []
