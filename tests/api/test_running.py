"""Plans of functions run in processes of their own, and tell what came of it."""

import asyncio
import json
import os
import py_compile
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import holdfast
from holdfast import wire
from holdfast.api import Result
from holdfast.engine.journals import read_state
from holdfast.errors import UsageError
from holdfast.model.plan import RunId
from holdfast.testing.server import ModelServer, Say
from tests.api.flows import FLOW, imported
from tests.cli.project import DEADLINE, until


@pytest.fixture
def flow(tmp_path: Path) -> Iterator[ModuleType]:
    (tmp_path / "flow.py").write_text(FLOW)
    with imported(tmp_path, "flow") as module:
        yield module


def states(result: Result) -> dict[str, str]:
    return {name: result[name].state for name in result}


@pytest.mark.req("R181")
def test_values_flow_from_step_to_step_with_their_types(flow: ModuleType, tmp_path: Path) -> None:
    result = flow.shore.build().run()
    assert result.status == "completed"
    assert result["fetch"].value == "tide rock kelp"
    assert result[flow.count].value == flow.Count(3, ["tide", "rock", "kelp"])
    assert result["report"].value == tmp_path / "report.md"
    assert result["report"].content == b"# 3 words of tide\n3 words, first tide\n"
    assert result["size"].value == 38
    assert result.cost_usd == result["count"].cost_usd == 0.0
    assert [attempt.status for attempt in result["count"].attempts] == ["accepted"]
    assert str(result.why("count")).startswith("count ran in r-")
    assert result["count"].why().code == "never_ran"
    with pytest.raises(KeyError):
        result["nothing"]


def test_text_that_a_step_made_never_names_a_file(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("of the host")
    (tmp_path / "flow.py").write_text("""
import os
from holdfast import Guarded, guard, plan, step

@step
def ask() -> dict:
    return {"up": "HOLDFAST_INPUTS/../" * 12 + os.getcwd() + "/secret", "other": "HOLDFAST_INPUTS/ask"}

@guard
def exact(out: str, data: bytes) -> Guarded:
    return Guarded.ok() if data.decode() == out else Guarded.reject(data.decode())

@step(guards=[exact])
def size(data: bytes) -> str:
    return data.decode()

@step
def whole(it: bytes) -> str:
    return it.decode()[:7]

@plan
def reads():
    found = ask()
    size(found["up"]), size(found["other"]), whole(found)
""")
    with imported(tmp_path, "flow") as module:
        result = module.reads.build().run()
    assert result["size"].value == "HOLDFAST_INPUTS/../" * 12 + f"{tmp_path}/secret"
    assert result["size-2"].value == "HOLDFAST_INPUTS/ask"
    assert result["whole"].value == '{"other'


@pytest.mark.req("R54")
def test_bytecode_that_looks_as_old_as_its_source_is_not_believed(tmp_path: Path) -> None:
    source, second = tmp_path / "flow.py", 1_700_000_000
    source.write_text(FLOW)
    os.utime(source, (second, second))
    py_compile.compile(str(source))
    source.write_text(FLOW.replace("tide rock", "tide sand"))  # as long, in the same second
    os.utime(source, (second, second))
    with imported(tmp_path, "flow") as module:
        result = module.shore.build().run()
    assert result["fetch"].value == "tide sand kelp"


@pytest.mark.req("R54", "R181")
def test_the_source_of_a_function_decides_its_step(tmp_path: Path) -> None:
    (tmp_path / "flow.py").write_text(FLOW)
    with imported(tmp_path, "flow") as module:
        assert set(states(module.shore.build().run()).values()) == {"done"}
        again = module.shore.build()
        assert set(states(again.run()).values()) == {"reused"}
        assert not again.preview().is_work
        assert again.find_invalidated() == frozenset()
        assert again.find_invalidated(["report"]) == {"report", "size"}
        with pytest.raises(UsageError, match="no step 'x'"):
            again.find_invalidated(["x"])
    (tmp_path / "flow.py").write_text(FLOW.replace("tide rock", "tide sand"))
    with imported(tmp_path, "flow") as module:
        made = module.shore.build()
        assert made.preview().decisions["fetch"] == "run"
        result = made.run()
        assert result["fetch"].why().code == "command_changed"
        assert result["fetch"].value == "tide sand kelp"


def test_what_a_guard_says_goes_to_the_attempts(tmp_path: Path) -> None:
    short = FLOW.replace("least: int = 2", "least: int = 9").replace('timeout="1m"', "retries=1")
    (tmp_path / "flow.py").write_text(short)
    with imported(tmp_path, "flow") as module:
        result = module.shore.build().run()
    assert result.status == "failed"
    assert [attempt.status for attempt in result["count"].attempts] == ["rejected", "rejected"]
    first = result["count"].attempts[0]
    assert (first.guard, first.feedback) == ("long_enough", "only 3 of 9 words")
    assert json.loads(first.content or b"")["total"] == 3
    assert states(result)["report"] == "skipped"
    with pytest.raises(UsageError, match="'count' made nothing: it is failed"):
        _ = result["count"].value


def test_an_error_of_a_function_is_told(tmp_path: Path) -> None:
    (tmp_path / "flow.py").write_text(
        FLOW.replace("return len(written", "return undefined(written")
    )
    with imported(tmp_path, "flow") as module:
        result = module.shore.build().run()
    (attempt,) = result["size"].attempts
    assert attempt.status == "failed"
    lines = attempt.feedback.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[1].startswith(f'  File "{tmp_path}/flow.py", line ')
    assert lines[-1] == "NameError: name 'undefined' is not defined"


FITS = """
from __future__ import annotations

import enum
from typing import Annotated, Literal, Optional

from holdfast import plan, step


class Depth(enum.Enum):
    LOW = 1


@step
def number() -> str:
    return "3"


@step
def low() -> Depth:
    return Depth.LOW


@step
def missing() -> Optional[str]:
    return None


@step
def is_missing(what: Optional[str]) -> bool:
    return what is None


@step
def maybe() -> Optional[str]:
    return "3"


@step
def kinds(number: Optional[str], text: Annotated[str | None, "same"], low: Depth) -> list[str]:
    return [type(number).__name__, type(text).__name__, low.name]


@step
def wrong(low: Literal["a"], depth: Depth) -> None: ...


@plan
def fits() -> None:
    found = number()
    kinds(found, found, low())
    is_missing(missing())
    maybe()
    wrong("a", 7)
"""


def test_text_stays_text_wherever_it_may_be(tmp_path: Path) -> None:
    (tmp_path / "fits.py").write_text(FITS)
    with imported(tmp_path, "fits") as module:
        result = module.fits.build().run()
    assert result["kinds"].value == ["str", "str", "LOW"]
    assert result["is_missing"].value is True
    assert (result["missing"].value, result["maybe"].value) == (None, "3")
    (attempt,) = result["wrong"].attempts
    message = "TypeError: the argument 'depth' of 'wrong' is no 'Depth': 7 is not a valid Depth"
    assert attempt.feedback.strip().splitlines()[-1] == message


SLOW = """
import os
import time

from holdfast import plan, step


@step
def first() -> int:
    return 1


@step
def second(first: int) -> int:
    while not os.path.exists("gate"):
        time.sleep(0.02)
    return first + 1


@plan
def slow() -> None:
    second(first())
"""


def test_a_run_goes_on_beside_the_program_and_can_be_stopped(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    with imported(tmp_path, "slow") as module:
        handle = module.slow.build().start()
        assert handle.run.startswith("r-")
        assert handle.status == "running"
        with pytest.raises(TimeoutError):
            handle.wait(timeout=0)
        handle.stop(now=True)
        rested = handle.wait(timeout=DEADLINE)
        assert rested.status == handle.status == "paused"
        assert rested.run == handle.run
        (tmp_path / "gate").touch()
        handle = module.slow.build().start()
        ended = handle.wait(timeout=DEADLINE)
        assert ended["second"].value == 2
        assert ended["first"].state in {"done", "reused"}
        handle.stop()


def test_a_program_with_an_event_loop_waits_for_a_run(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SLOW)

    async def cancelled(made: holdfast.Plan) -> None:
        task = asyncio.create_task(made.arun())
        await asyncio.to_thread(until, (tmp_path / ".holdfast").exists, "it begins")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with imported(tmp_path, "slow") as module:
        asyncio.run(cancelled(module.slow.build()))
        (tmp_path / "gate").touch()
        assert asyncio.run(module.slow.build().arun())["second"].value == 2


def test_a_plan_runs_where_an_event_loop_goes_round(flow: ModuleType, tmp_path: Path) -> None:
    """As in every cell of a notebook."""
    (tmp_path / "flow.py").write_text(
        FLOW.replace(
            "@step(guards=[long", '@step(tool_versions={"sh": ["echo", "1"]}, guards=[long'
        )
    )

    async def cell(module: ModuleType) -> list[Result]:
        assert module.shore.build().preview().is_work
        return [module.shore.build().run(), module.shore.build().run()]

    del sys.modules["flow"]
    with imported(tmp_path, "flow") as module:
        first, second = asyncio.run(cell(module))
    assert set(states(first).values()) == {"done"}
    assert set(states(second).values()) == {"reused"}


def test_what_a_run_is_told_is_heeded_or_refused(flow: ModuleType, tmp_path: Path) -> None:
    made = flow.shore.build()
    with pytest.raises(
        UsageError, match=r"no 'max_costs' to be told.*\nhint: did you mean 'max_cost'"
    ):
        made.run(max_costs=1)
    with pytest.raises(UsageError, match=r"no 'quick' to be told.*\nhint: there are store, jobs"):
        made.start(quick=True)
    with pytest.raises(UsageError, match="no 'forced' to be told"):
        made.preview(forced=True)
    with pytest.raises(UsageError, match="give one of them"):
        made.run(max_cost=1, max_cost_usd=1)
    for odd in (-1, float("nan"), float("inf"), "5", True):
        with pytest.raises(UsageError, match="dollars, 0 or more"):
            made.run(max_cost_usd=odd)
    wrong = {
        "jobs": (-1, 0, 1025, "x", True),
        "on_drift": ("bogus", None),
        "force": ("no", 1),
        "cutoff": ("yes",),
        "store": (5,),
        "force_steps": ("count", 5, ["nope"], [5], flow.count),
    }
    for name, values in wrong.items():
        for value in values:
            for call in (made.run, made.start, made.preview):
                with pytest.raises(UsageError, match=f"{name} is|no step 'nope'|a step is 5"):
                    call(**{name: value})
    with pytest.raises(UsageError, match="no step 'nope'"):
        made.run(resample=["nope"])
    assert not (tmp_path / ".holdfast").exists()
    assert made.run(max_cost_usd=0.25).state.options.max_cost == 250_000
    again = made.run(force_steps=[flow.count], jobs=1)
    assert states(again)["count"] == "done"
    assert again.why(flow.count).code == "forced"
    with pytest.raises(UsageError, match="no step 'nope'"):
        again.why("nope")


def began(folder: Path, after: str) -> subprocess.Popen[str]:
    """A program that starts a run beside it, says its id and goes on with `after`."""
    main = "if __name__ == '__main__':\n    h = slow.build().start()\n    print(h.run, flush=True)"
    (folder / "slow.py").write_text(f"{SLOW}\n\n{main}\n    {after}\n")
    argv = [sys.executable, str(folder / "slow.py")]
    pipe = subprocess.PIPE
    return subprocess.Popen(argv, cwd=folder, stdout=pipe, stderr=pipe, text=True)


def stands(folder: Path, run: str) -> str:
    store = wire.open_store(str(folder / ".holdfast"), readonly=True)
    try:
        state = read_state(store, RunId(run))
    finally:
        store.close()
    assert state is not None
    return str(state.status)


@pytest.mark.parametrize("after", ["h.wait()", "while True: pass"])
def test_ctrl_c_ends_the_steps_of_a_run_that_goes_on_beside_the_program(
    tmp_path: Path, after: str
) -> None:
    with began(tmp_path, after) as program:
        assert program.stdout is not None
        run = program.stdout.readline().strip()
        program.send_signal(signal.SIGINT)
        _, said = program.communicate(timeout=DEADLINE)
    assert "KeyboardInterrupt" in said
    assert stands(tmp_path, run) == "paused"


def test_a_run_outlives_the_last_line_of_its_program(tmp_path: Path) -> None:
    with began(tmp_path, "open('gate', 'w')") as program:
        out, said = program.communicate(timeout=DEADLINE)
    assert (program.returncode, said) == (0, "")
    assert stands(tmp_path, out.strip()) == "completed"


def test_a_module_that_runs_its_plan_while_imported_is_refused(tmp_path: Path) -> None:
    (tmp_path / "flow.py").write_text(FLOW + "\nresult = shore.build().run()\n")
    message = "'flow.py' runs its plan while it is imported\nhint: put that under: if __name__"
    with pytest.raises(UsageError, match=message), imported(tmp_path, "flow"):
        pass
    assert not (tmp_path / ".holdfast").exists()


def test_a_script_runs_its_own_steps(tmp_path: Path) -> None:
    script = FLOW + '\nif __name__ == "__main__":\n    print(shore.build().run()["size"].value)\n'
    (tmp_path / "script.py").write_text(script)
    argv = [sys.executable, str(tmp_path / "script.py")]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, cwd="/")
    assert (done.returncode, done.stdout) == (0, "38\n"), done.stderr
    typed_in = FLOW + "\nshore.build()\n"
    argv = [sys.executable, "-c", typed_in]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert "no other process can import 'fetch'" in done.stderr


@pytest.mark.parametrize("first", ["print(len(p.preview().decisions))", "p.start().wait()", ""])
def test_a_script_needs_no_question_for_its_name(tmp_path: Path, first: str) -> None:
    end = f"\np = shore.build()\n{first}\nrun = p.run(max_cost_usd=5)\nprint(run['size'].value)\n"
    (tmp_path / "script.py").write_text(FLOW + end)
    argv = [sys.executable, str(tmp_path / "script.py")]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (done.returncode, done.stdout.split()[-1]) == (0, "38"), done.stderr


CELL = """
from dataclasses import dataclass

from holdfast import plan, step

DEPTH = {depth}


@dataclass
class Spot:
    depth: int


def deeper(depth):
    return depth + DEPTH


@step(inline=True)
def dive(start: int) -> Spot:
    return Spot(deeper(start))


@step(inline=True)
def twice(spot: Spot) -> int:
    return spot.depth * 2


@plan
def reef():
    twice(dive(1))


run = reef.build().run()
print(run["twice"].state, run["twice"].value)
assert not reef.build().preview().is_work
assert not reef.build().find_invalidated()
"""


@pytest.mark.req("R181")
def test_a_cell_of_a_notebook_runs_again_when_another_one_changed(tmp_path: Path) -> None:
    said = []
    for depth in (1, 1, 2):
        argv = [sys.executable, "-c", CELL.format(depth=depth)]
        done = subprocess.run(argv, capture_output=True, text=True, check=False, cwd=tmp_path)
        assert not done.stderr
        said.append(done.stdout)
    assert said == ["done 4\n", "reused 4\n", "done 6\n"]


MODELS = '''
from dataclasses import dataclass

from holdfast import Guarded, guard, plan, step


@dataclass
class Facts:
    facts: list[str]


@guard
def cites(out: Facts, text: str) -> Guarded:
    bad = [fact for fact in out.facts if fact not in text]
    return Guarded.reject(f"not in the source: {bad}") if bad else Guarded.ok()


@step.llm(model="fake:m", guards=[cites])
def extract(text: str, most: int = 3) -> Facts:
    """List the facts."""
    raise NotImplementedError


@step
def first(found: Facts) -> str:
    return found.facts[0]


@plan
def facts(text: str = "kelp grows fast") -> str:
    return first(extract(text))
'''


def test_a_model_fills_the_type_and_hears_the_guard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    config = tmp_path / ".config" / "holdfast" / "config.toml"
    config.parent.mkdir(parents=True)
    (tmp_path / "facts.py").write_text(MODELS)
    answers = [Say('{"facts": ["kelp sings"]}'), Say('{"facts": ["kelp grows"]}')]
    with ModelServer(answers) as server, imported(tmp_path, "facts") as module:
        config.write_text(f'[providers.fake]\nkind = "openai"\nbase_url = "{server.url}"\n')
        result = module.facts.build().run()
        assert result["first"].value == "kelp grows"
        assert result["extract"].value == module.Facts(["kelp grows"])
        first, second = result["extract"].attempts
        assert (first.status, second.status) == ("rejected", "accepted")
        assert first.feedback == "not in the source: ['kelp sings']"
        said = [str(request) for request in server.requests]
    assert "List the facts." in said[0]
    assert "kelp grows fast" in said[0]
    assert "kelp sings" in said[1]
    with pytest.raises(UsageError, match="'extract' is done by a model"):
        module.extract("x")


def test_a_notebook_shows_tables_and_no_markup_of_others(tmp_path: Path) -> None:
    @holdfast.plan(root=str(tmp_path), name="<b>plan</b>")
    def here() -> None:
        one = holdfast.step(inline=True)(lambda: "1").named("one")()
        holdfast.step(inline=True, description="<script>")(lambda one: one).named("two")(one)

    made = here.build()
    shown = [made._repr_mimebundle_(), made.preview()._repr_mimebundle_()]
    shown.append(made.run()._repr_mimebundle_())
    for bundle in shown:
        assert set(bundle) == {"text/plain", "text/html", "application/json"}
        html = bundle["text/html"]
        assert isinstance(html, str)
        assert "<b>plan</b>" not in html
        assert "<script>" not in html
        assert "&lt;b&gt;plan&lt;/b&gt;" in html
        json.dumps(bundle["application/json"])
        assert "two" in html
    assert "<svg" in str(shown[0]["text/html"])
    assert "first time" in str(shown[1]["text/html"])
    assert "completed" in str(shown[2]["text/html"])
