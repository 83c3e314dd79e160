"""Ten thousand changes of hostile lines: what the rules let through is run, and leaves no mark."""

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holdfast.errors import ProcessError
from holdfast.process.allow import allowed, parse_line
from holdfast.process.confine import Sandbox
from holdfast.process.front import call
from tests.crash.report import Report
from tests.process.test_allow import HOSTILE, ODD, RULES, WIDE, WITH_RG

PIECES = (
    ";",
    "\n",
    "&",
    "|",
    "$(",
    ")",
    "`",
    "'",
    '"',
    "\\",
    "\r",
    "\t",
    " ",
    ">",
    "<",
    "{}",
    "--",
)
MOST_RUN = 400  # commands that are really started


def changed(count: int) -> Iterator[str]:
    """Seeded changes of both corpora, now and then one after another."""
    kept = [*HOSTILE, *ODD]
    for number in range(count):
        dice = random.Random(f"line {number}")
        text = dice.choice(kept)[:300]
        for _ in range(dice.choice((0, 1, 1, 2, 4))):
            at = dice.randrange(len(text) + 1)
            match dice.randrange(5):
                case 0:
                    text = text[:at] + dice.choice(PIECES) + text[at:]
                case 1:
                    text = text[:at] + text[at + dice.randrange(6) :]
                case 2:
                    text = text.replace(dice.choice(PIECES), dice.choice(PIECES), 1)
                case 3:
                    text = f"{text} {dice.choice(dice.choice(kept).split() or [''])}"
                case _:
                    text = f"{dice.choice(('ls', 'cat f', 'git status', 'echo'))} {text}"
        yield text


def tried(lines: Iterator[str], workspace: Path, outside: Path, report: Report) -> None:
    """Ask the rules; run what passes where a mark could be made, and look."""
    mark = outside / "MARK"
    (workspace / "f").write_text("a\nb\n")
    (workspace / "ls").write_text(f"#!/bin/sh\ntouch {mark}\n")
    (workspace / "ls").chmod(0o755)
    room = Sandbox(writable=(str(workspace), str(outside)))  # the rules alone keep it from the mark
    for line in lines:
        report.tried += 1
        aimed = line.replace("MARK", str(mark))
        rules = RULES if report.tried % 2 else WIDE
        try:
            allowed(parse_line(aimed), rules, str(workspace), WITH_RG)
        except ProcessError:
            report.fired += 1
            continue
        if report.work >= MOST_RUN:
            continue
        call(
            aimed,
            cwd=str(workspace),
            env=WITH_RG,
            allow=rules,
            sandbox=room,
            timeout=20,
            keep=1 << 20,
        )
        report.work += 1
        if mark.exists() or not (workspace / "f").exists():
            report.violations.append(f"{line!r} was let through and left a mark")
            mark.unlink(missing_ok=True)


def settled(report: Report) -> None:
    assert report.fired > report.tried // 2, "most are refused"
    assert report.work > 0, "some pass, and are run"
    assert not report.violations, report.violations[:10]


@pytest.mark.req("D38")
def test_a_few_changed_lines_leave_no_mark(
    tmp_path: Path, sweep: Callable[[Report], None], require_part: Callable[[str], str]
) -> None:
    require_part("bubblewrap")
    report = Report("changed lines", "other")
    (tmp_path / "w").mkdir()
    (tmp_path / "o").mkdir()
    tried(changed(60), tmp_path / "w", tmp_path / "o", report)
    sweep(report)
    settled(report)


@pytest.mark.soak("other")
@pytest.mark.req("D38")
def test_ten_thousand_changed_lines_leave_no_mark(
    tmp_path: Path, sweep: Callable[[Report], None], require_part: Callable[[str], str]
) -> None:
    require_part("bubblewrap")
    report = Report("changed lines", "other", total=10_000)
    (tmp_path / "w").mkdir()
    (tmp_path / "o").mkdir()
    tried(changed(10_000), tmp_path / "w", tmp_path / "o", report)
    sweep(report)
    settled(report)
