"""A hostile plan file given to the command: one typed answer, soon, and nothing is written."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.project import COMMAND, Answer, Project

pytestmark = pytest.mark.req("R16", "R180", "D32", "D33")

SECONDS = 6  # three times the promise, of processor time: other work on the machine does not count


def check(project: Project, file: str) -> Answer:
    done = subprocess.run(
        ["sh", "-c", f'ulimit -t {SECONDS}; exec "$@"', "sh", *COMMAND, "check", file],
        cwd=project.root,
        env=project.environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=120,
        check=False,
    )
    return Answer(done.returncode, done.stdout.decode(), done.stderr.decode())


def files(project: Project) -> dict[Path, int]:
    places = project.folder.rglob("*")
    return {place: place.stat().st_mtime_ns for place in places if place.is_file()}


def bomb() -> bytes:
    rows = [b"a0: &a0 [x,x,x,x,x,x,x,x,x]"]
    rows += [b"a%d: &a%d [%s]" % (i, i, b",".join([b"*a%d" % (i - 1)] * 9)) for i in range(1, 9)]
    return b"\n".join(rows) + b"\n"


def many_steps() -> bytes:
    values = b"[" + b"1," * 99_999 + b"1]"
    aliases = b"".join(b"  s%d: *a\n" % i for i in range(99))
    return b"steps:\n  a: &a {run: x, with: {v: " + values + b"}}\n" + aliases


def circle() -> bytes:
    rows = (b"  s%d: {run: x, needs: [s%d]}\n" % (i, (i + 1) % 1000) for i in range(1000))
    return b"steps:\n" + b"".join(rows)


def expressions() -> bytes:
    return b"steps:\n  a: {run: x, with: {v: '" + b"${{ x }} " * 300_000 + b"'}}\n"


def growth() -> bytes:
    large, uses = b"x" * 1_000_000, b"${{ params.p }}" * 9_000
    head = b"params: {p: {type: string, default: '" + large + b"'}}\n"
    return head + b"steps:\n  a:\n    with: {v: '" + uses + b"'}\n    run: x\n"


HOSTILE: dict[str, tuple[Callable[[], bytes], str, str]] = {
    "tag": (lambda: b'a: !!python/object/apply:os.system ["touch MARK"]', "P017", ":1:4"),
    "bomb": (bomb, "P018", ":"),
    "depth": (lambda: b"steps: " + b"[" * 3000, "P019", ":1:"),
    "twice": (lambda: b"steps:\n  a: {run: x}\n  a: {run: y}\n", "P016", ":3:3"),
    "nan": (lambda: b"steps:\n  a: {run: x, with: {v: .nan}}\n", "P023", ":2:"),
    "digits": (lambda: b"steps:\n  a: {run: x, with: {v: " + b"9" * 5000 + b"}}", "P023", ":2:"),
    "surrogate": (lambda: b'steps:\n  a: {run: "\\ud800"}\n', "P014", ":2:"),
    "nul": (lambda: b"steps:\n  a: {run: x\0y}\n", "P014", ":2:"),
    "utf-16": (lambda: "steps: {a: {run: x}}".encode("utf-16"), "P013", ":1:1"),
    "50 MB": (lambda: b"a: b\n" * 10_000_000, "P016", ":2:1"),
    "70 MB": (lambda: b"a: b\n" * 14_000_000, "P011", ""),
    "id": (lambda: b"steps:\n  ../../x: {run: x}\n", "P002", ":2:3"),
    "spelling": ("steps:\n  fi: {run: x}\n  ﬁ: {run: x}\n".encode, "P050", ":3:3"),
    "case": (lambda: b"steps:\n  a: {run: x}\n  A: {run: x}\n", "P050", ":3:3"),
    "itself": (lambda: b"steps:\n  a: {run: x, needs: [a]}\n", "P051", ":2:"),
    "circle": (circle, "P052", ":2:"),
    "unknown": (lambda: b"steps:\n  a: {run: x, needs: [b]}\n", "P003", ":2:"),
    "aliases": (many_steps, "P018", ":"),
    "expressions": (expressions, "P011", ":2:"),
    "growth": (growth, "P011", ":4:"),
    "splice": (lambda: b"steps:\n  a: {shell: 'echo ${{ params.x }}'}\n", "P039", ":2:"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_gets_one_answer(project: Project, name: str) -> None:
    content, code, place = HOSTILE[name]
    (project.root / "bad.yaml").write_bytes(content())
    before = files(project)
    answer = check(project, "bad.yaml")
    assert (answer.code, answer.out) == (2, ""), answer.err[-2000:]
    assert f"error[{code}]" in answer.err
    assert f"bad.yaml{place}" in answer.err
    assert "Traceback" not in answer.err
    assert len(answer.err) < 100_000
    assert files(project) == before


@pytest.mark.parametrize("name", ["bom", "crlf"])
def test_a_plan_that_is_only_unusual_is_read(project: Project, name: str) -> None:
    text = b"name: x\r\nsteps:\r\n  a: {run: x}\r\n"
    (project.root / "odd.yaml").write_bytes(b"\xef\xbb\xbf" + text if name == "bom" else text)
    assert check(project, "odd.yaml").code == 0


@pytest.mark.parametrize("place", ["none.yaml", ".", "/dev/zero"])
def test_what_is_no_file_is_refused(project: Project, place: str) -> None:
    answer = check(project, place)
    assert answer.code == 2
    assert "Traceback" not in answer.err
