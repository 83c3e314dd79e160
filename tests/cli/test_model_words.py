"""The words of models as they come: on the live view, in plain lines, and for whoever looks on."""

import re
import threading

import pytest

from holdfast.testing.server import Asked, Fail, Reply, Say
from tests.cli.models import served, step
from tests.cli.project import Project, finish, until
from tests.cli.terminal import Terminal
from tests.cli.test_live import COLOUR, clean_end

PATIENCE = 240.0  # seconds: an engine of its own loads the library first
HALF = re.compile(r"▸ a +\d+:\d\d  writing, \d{3} characters  line \d\d")
HOSTILE = "\x1b[2Jx\x1b]0;t\x07"


def long_answer(lines: int = 60) -> str:
    return "".join(f"line {n} of what the model says\n" for n in range(lines))


def test_a_terminal_shows_how_far_an_answer_is_and_its_last_line(project: Project) -> None:
    project.plan({"a": step()})
    half = threading.Event()
    with served(project, lambda _: Say(HOSTILE + long_answer(), pause=half)):
        terminal = Terminal(project, "run", "--yes", columns=120, rows=40)
        terminal.read(lambda text: "▸" in text)  # the library is loaded
        terminal.read(lambda text: bool(HALF.search(COLOUR.sub("", text))))
        half.set()
        clean_end(terminal.finish())
    assert b"\x1b[2J" not in terminal.bytes
    assert b"\x07" not in terminal.bytes
    assert terminal.process.returncode == 0


def test_plain_lines_tell_now_and_then_of_a_long_answer(project: Project) -> None:
    project.plan({"long": step("long"), "short": step("short")})

    def say(asked: Asked) -> Reply:
        return Say(long_answer(150) if "long" in asked.last else HOSTILE + "short")

    with served(project, say):
        run = project.run("--yes")
        quiet = project.ok("run", "--force", "--yes", "-q")
    told = [line for line in run.err.splitlines() if "characters so far" in line]
    sizes = [int(re.findall(r"([\d,]+) characters", line)[0].replace(",", "")) for line in told]
    assert [size // 100 for size in sizes] == [10, 20, 40], run.err
    assert all(re.match(r"  long: writing, .* so far: l", line) for line in told)
    assert "characters so far" not in quiet.err


@pytest.mark.req("R107")
def test_a_wait_is_told_with_its_reason(project: Project) -> None:
    project.plan({"a": step()})
    with served(project, [Fail(429, headers={"retry-after": "1"}), Say("ok")]):
        run = project.run("--yes")
    assert run.code == 0
    (line,) = [line for line in run.err.splitlines() if "asks again" in line]
    assert re.fullmatch(
        r"  a: 'fake' wants to be asked less often; asks again in [12] s, nothing is lost", line
    )
    again = project.ok("attach", "@").out
    assert "completed" in again


def test_a_terminal_shows_who_is_waited_for(project: Project) -> None:
    project.plan({"a": step("first"), "b": step("second")})
    with served(
        project, lambda _: Fail(429, headers={"retry-after": "500"}), provider="at_once = 2"
    ):
        terminal = Terminal(project, "run", "--yes", columns=120, rows=40)
        terminal.read(lambda text: "▸" in text)
        text = terminal.read(lambda text: "asks again in" in text)
        terminal.press(b"\x03")
        terminal.read(lambda text: "press Ctrl-C again" in text)
        terminal.press(b"\x03")
        clean_end(terminal.finish())
    drawn = COLOUR.sub("", text)
    assert re.search(r"▸ [ab] +\d+:\d\d .*asks again in (500|49\d) s \(rate limited\)", drawn), (
        drawn
    )


@pytest.mark.req("D39")
def test_whoever_looks_on_reads_the_words_without_keys_and_sees_what_broke_off(
    project: Project,
) -> None:
    key = "sk-very-secret-key-0123456789"
    project.plan({"a": step()})
    half = threading.Event()
    replies = iter(
        [
            Say("a first line\nand a second that never ends", cut=3),
            Say(f"the key is {key} or not\n{HOSTILE}\n{long_answer()}the end", pause=half),
        ]
    )
    with served(project, lambda _: next(replies), provider='api_key_env = "FAKE_KEY"'):
        engine = project.start("run", "--yes", env={"FAKE_KEY": key})
        until(lambda: "line 20 of" in peeked(project), "half of it is there", PATIENCE)
        follower = project.start("logs", "a", "-f")
        assert follower.stdout is not None
        first = follower.stdout.readline().decode()
        now = project.call("logs", "a")
        assert "still runs" in now.err
        half.set()
        assert finish(engine).code == 0
        whole = first + follower.stdout.read().decode()
    assert whole.startswith(
        "a first line\nand a second that n\n['fake:m' broke off its answer; asks"
    )
    assert "\nthe key is [secret] or not\n" in whole
    assert key not in whole
    assert "\x1b" not in whole
    assert whole.endswith("what the model says\nthe end\n")
    *so_far, _ = now.out.splitlines()  # the last one may have been cut
    assert so_far == whole.splitlines()[: len(so_far)]
    assert project.shown("a").endswith(b"the end"), "what broke off is no part of the answer"
    assert not project.shown("a").startswith(b"a first line")


def peeked(project: Project) -> str:
    """What a running attempt has written so far, as it lies there."""
    return "".join(
        place.read_text("utf-8", "replace") for place in project.store.glob("scratch/*/*.out")
    )
