"""The live view on a real pseudo terminal: what a person sees, and what is left on the screen."""

import re
import signal

import pytest

from tests.cli.project import Project, until
from tests.cli.terminal import Screen, Terminal

PICTURE = re.compile(r"(?:\r\x1b\[2K\x1b\[1A)*\r\x1b\[2K")  # taking a footer away
HINT = "Ctrl-C stops after the running steps"
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def heights(text: str) -> list[int]:
    """How many lines each footer had that was taken away."""
    return [found.group().count("\x1b[1A") + 1 for found in PICTURE.finditer(text)]


def clean_end(screen: Screen) -> None:
    """No footer is left, and nothing was asked of the terminal but moving up and erasing lines."""
    assert not screen.strange
    assert not any(line.startswith("────") or HINT in line for line in screen.text), screen.text


def crowd(project: Project) -> None:
    """More steps at once than a footer has lines, behind a gate, and one below them that fails."""
    steps = {
        f"step-with-a-rather-long-name-{n}": {
            "shell": f"echo working on it with a line of words that goes on and on >&2; {project.gate('go')}"
        }
        for n in range(15)
    }
    last = {"shell": "echo broken >&2; exit 3", "needs": ["step-with-a-rather-long-name-0"]}
    project.plan({**steps, "last": last, "never": {"shell": "true", "needs": ["last"]}})


@pytest.mark.parametrize("columns, rows", [(80, 24), (120, 40)])
def test_a_run_on_a_terminal(project: Project, columns: int, rows: int) -> None:
    crowd(project)
    terminal = Terminal(project, "run", "-j", "15", columns=columns, rows=rows)
    terminal.read(lambda text: "working on it" in text and "more" in text)
    project.open("go")
    screen = terminal.finish()
    assert terminal.process.returncode == 1
    most = min(12, rows // 2)
    assert max(heights(terminal.bytes.decode())) == most
    assert not screen.broken
    clean_end(screen)
    text = "\n".join(screen.text)
    assert len(re.findall(r"^✓ step-with-a-rather-long-name-\d+", text, re.MULTILINE)) == 15
    assert re.search(r"^r-[0-9a-f]{8} failed · 15 of 17\s+done", text, re.MULTILINE)
    assert "✗ last: its command failed" in screen.text
    assert "next: holdfast logs last" in text


def test_what_a_step_writes_is_shown_and_obeyed_by_nobody(project: Project) -> None:
    hostile = r"\033[2Jx\033]0;t\007\033]52;c;QQ==\007\302\233m\342\200\256y"
    project.plan({"a": {"shell": f"printf '{hostile}\\n' >&2; {project.gate('go')}"}})
    terminal = Terminal(project, "run", columns=120, rows=40)
    text = terminal.read(lambda text: "]52;c" in text)
    assert r"\u{1b}[2Jx\u{1b}]0;t\u{7}\u{1b}]52;c;QQ==\u{7}\u{9b}m\u{202e}y" in COLOUR.sub("", text)
    project.open("go")
    clean_end(terminal.finish())
    assert b"\x1b[2J" not in terminal.bytes
    assert b"\x07" not in terminal.bytes
    assert b"\xc2\x9b" not in terminal.bytes


@pytest.mark.req("R87")
def test_ctrl_c_stops_after_the_running_steps_and_says_how_to_go_on(project: Project) -> None:
    project.plan(
        {"a": {"shell": project.sh(project.gate("go"))}, "b": {"shell": "true", "needs": ["a"]}}
    )
    terminal = Terminal(project, "run")
    terminal.read(lambda text: HINT in text)
    terminal.press(b"\x03")
    terminal.read(lambda text: "stopping after the running steps" in text)
    project.open("go")
    screen = terminal.finish()
    assert terminal.process.returncode == 130
    clean_end(screen)
    assert re.match(r"r-[0-9a-f]{8} paused · 1 of 2 done", screen.text[-4])
    assert screen.text[-2] == "next: holdfast resume    holdfast status"
    assert project.status().data["status"] == "paused"


@pytest.mark.parametrize("how", ["twice", "terminated"])
def test_stopping_now_leaves_a_clean_screen(project: Project, how: str) -> None:
    project.plan({"a": {"shell": project.gate("never")}})
    terminal = Terminal(project, "run")
    terminal.read(lambda text: HINT in text)
    if how == "twice":
        terminal.press(b"\x03")
        terminal.read(lambda text: "press Ctrl-C again" in text)
        terminal.press(b"\x03")
    else:
        terminal.signal(signal.SIGTERM)
    screen = terminal.finish()
    assert terminal.process.returncode == 130
    clean_end(screen)
    assert any("attempt 1 was interrupted" in line for line in screen.text)


def test_a_narrower_terminal_gets_a_narrower_footer(project: Project) -> None:
    project.plan({"a": {"shell": f"echo {'word ' * 30} >&2; {project.gate('go')}"}})
    terminal = Terminal(project, "run", columns=100, rows=30)
    terminal.read(lambda text: "word word" in text)
    terminal.resize(50, 30)
    narrow = re.compile(r"▸ a [^\r\n]{10,46}…\n")
    terminal.read(lambda text: bool(narrow.search(COLOUR.sub("", text))))
    project.open("go")
    clean_end(terminal.finish())
    last = COLOUR.sub("", terminal.bytes.decode()).rpartition("──── ")[2]
    assert max(len(line) for line in last.splitlines()) < 50


def test_under_nohup_a_run_goes_on_when_its_terminal_goes_away(project: Project) -> None:
    project.plan({"a": {"shell": project.gate("go")}, "b": {"shell": "echo b", "needs": ["a"]}})
    terminal = Terminal(project, "run", deaf=True)
    terminal.read(lambda text: HINT in text)
    terminal.hang_up()
    project.open("go")
    until(lambda: terminal.process.poll() is not None, "the run ends")
    assert terminal.process.returncode == 0
    assert project.status().data["status"] == "completed"


def test_the_end_of_a_session_pauses_the_run(project: Project) -> None:
    project.plan({"a": {"shell": project.gate("go")}})
    terminal = Terminal(project, "run")
    terminal.read(lambda text: HINT in text)
    terminal.hang_up()
    until(lambda: terminal.process.poll() is not None, "the run ends")
    assert project.status().data["status"] == "paused"


def test_reused_steps_share_one_line(project: Project) -> None:
    project.plan({f"s{n}": {"shell": f"echo {n}"} for n in range(9)})
    project.run()
    screen = Terminal(project, "run")
    left = screen.finish()
    assert left.text[0] == "= 9 reused: s0, s1, s2 and 6 more"
    assert re.match(r"r-[0-9a-f]{8} completed · 9 of 9 done · 9 reused, 0 ran", left.text[1])
