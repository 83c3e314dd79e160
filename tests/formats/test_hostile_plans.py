"""Hostile files are answered by PlanError, soon; nothing else ever comes out."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from yaml import SafeLoader

from holdfast.errors import PlanError
from holdfast.formats.nodes import FASTEST, Node, read
from holdfast.formats.planfile import load_plan, load_text
from holdfast.formats.problems import Problems
from holdfast.formats.render import render
from holdfast.model.plan import Need, Plan, Step, StepId
from tests.formats.test_good_plans import EVERYTHING

pytestmark = pytest.mark.req("R16", "R180", "D32", "D33")

PROMISED = 2.0


def codes(content: bytes | str, file: str = "plan.yaml") -> list[str]:
    data = content if isinstance(content, bytes) else content.encode()
    with pytest.raises(PlanError) as caught:
        load_text(data, file, "/nowhere")
    assert render(caught.value.problems, data)
    return [item.code for item in caught.value.problems]


@pytest.fixture
def _soon() -> Iterator[None]:
    """Three times the promise, in processor time: other work on the machine does not count."""
    started = time.thread_time()
    yield
    assert time.thread_time() - started < 3 * PROMISED


def bomb(levels: int, width: int, leaf: str) -> str:
    rows = [f"  l0: &l0 {leaf}"]
    rows.extend(
        f"  l{level}: &l{level} [{', '.join([f'*l{level - 1}'] * width)}]"
        for level in range(1, levels)
    )
    return "steps:\n  a:\n    run: x\n    with:\n" + "\n".join("    " + row for row in rows) + "\n"


def junk(piece: bytes, size: int = 16_000_000) -> bytes:
    return piece * (size // len(piece))


HOSTILE: dict[str, tuple[Callable[[], bytes], str]] = {
    "object": (lambda: b'a: !!python/object/apply:os.system ["touch /MARK"]', "P017"),
    "alias bomb": (lambda: bomb(9, 9, "[x, x, x, x, x, x, x, x, x]").encode(), "P018"),
    "alias bomb below the count": (lambda: bomb(7, 14, "[x, x]").encode(), "P018"),
    "steps by aliases": (
        lambda: (
            b"steps:\n  a: &a {run: x, with: &w ["
            + b"1," * 99_999
            + b"1]}\n"
            + b"".join(b"  s%d: *a\n" % i for i in range(99))
        ),
        "P018",
    ),
    "depth of lists": (lambda: b"a: " + b"[" * 3000, "P019"),
    "depth of mappings": (lambda: b"{a: " * 3000, "P019"),
    "depth of blocks": (lambda: b"- " * 3000, "P019"),
    "depth of keys": (lambda: b"? " * 3000, "P019"),
    "depth by aliases": (
        lambda: (
            b"steps: {a: {run: x, with: {a: &a "
            + b"[" * 40
            + b"]" * 40
            + b", b: "
            + b"[" * 40
            + b"*a"
            + b"]" * 40
            + b"}}}"
        ),
        "P019",
    ),
    "long integer": (lambda: b"steps: {a: {run: x, with: {v: " + b"9" * 5000 + b"}}}", "P023"),
    "long hexadecimal": (
        lambda: b"steps: {a: {run: x, with: {v: 0x" + b"f" * 5000 + b"}}}",
        "P023",
    ),
    "lone surrogate in an escape": (lambda: b'a: "\\ud800"', "P014"),
    "lone surrogate in bytes": (lambda: b"a: \xed\xa0\x80", "P013"),
    "zero byte": (lambda: b"steps:\n  a: x\0y", "P014"),
    "zero byte in an escape": (lambda: b'a: "\\0"', "P014"),
    "escape character": (lambda: b"a: \x1b[31m", "P014"),
    "line separator": ("steps:\n a: x\u2028y".encode, "P014"),
    "broken utf-8": (lambda: b"a: \xff", "P013"),
    "broken utf-8 behind a mark": (lambda: b"\xef\xbb\xbfa: \xff", "P013"),
    "utf-16": (lambda: "a: b".encode("utf-16"), "P013"),
    "utf-16 without mark": (lambda: "a: b".encode("utf-16-le"), "P013"),
    "utf-32": (lambda: "a: b".encode("utf-32"), "P013"),
    "nothing": (lambda: b"", "P020"),
    "a mark alone": (lambda: b"\xef\xbb\xbf", "P020"),
    "one byte": (lambda: b"\0", "P014"),
    "too many bytes": (lambda: junk(b"x", 64_000_001), "P011"),
    "50 MB of steps": (lambda: b"steps:\n" + junk(b"  a: {run: x}\n", 50_000_000), "P016"),
    "16 MB of letters": (lambda: junk(b"x"), "P032"),
    "16 MB of lines": (lambda: junk(b"\n"), "P020"),
    "16 MB of comments": (lambda: junk(b"# x\n"), "P020"),
    "16 MB of digits": (lambda: junk(b"7"), "P023"),
    "16 MB of quotes": (lambda: junk(b'"x'), "P015"),
    "16 MB of pairs": (lambda: junk(b"a: b\n"), "P016"),
    "16 MB of brackets": (lambda: junk(b"["), "P019"),
    "16 MB of anchors": (lambda: junk(b"&a "), "P015"),
    "16 MB of items": (lambda: b"steps: {a: {run: x, with: {v: [" + junk(b"1,") + b"]}}}", "P011"),
    "16 MB of chance": (lambda: random.Random(1).randbytes(16_000_000), "P013"),
    "16 MB of zeros": (lambda: junk(b"\0"), "P013"),
    "16 MB of invalid text": (lambda: junk(b"a\xff"), "P013"),
}


@pytest.mark.usefixtures("_soon")
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_refused(name: str) -> None:
    content, code = HOSTILE[name]
    assert code in codes(content())


@pytest.mark.usefixtures("_soon")
@pytest.mark.parametrize(
    "content, code",
    [
        (b"[" * 100_000, "P019"),
        (b'{"a":' * 100_000, "P019"),
        (b'{"steps": {"a": {"run": "x", "with": {"v": ' + b"1" * 5000 + b"}}}}", "P023"),
        (b'{"a": "\\ud800"}', "P014"),
        (b'{"a": NaN}', "P023"),
        (b'{"a": -Infinity}', "P023"),
        (b"{} {}", "P015"),
        (b"{", "P015"),
    ],
)
def test_a_hostile_json_file_is_refused(content: bytes, code: str) -> None:
    assert code in codes(content, "plan.json")


@pytest.mark.usefixtures("_soon")
def test_a_circle_of_a_thousand_is_shown_once_by_a_few_names() -> None:
    rows = [f"  s{i}: {{run: x, needs: [s{(i + 1) % 1000}]}}\n" for i in range(1000)]
    with pytest.raises(PlanError) as caught:
        load_text(("steps:\n" + "".join(rows)).encode(), "plan.yaml", ".")
    (problem,) = caught.value.problems
    names = "s0 → s1 → s2 → s3 → … 993 more … → s997 → s998 → s999 → s0"
    assert problem.message == f"these steps need each other: {names}"
    assert (problem.code, problem.line) == ("P052", 2)


@pytest.mark.usefixtures("_soon")
@pytest.mark.parametrize(
    "row, code",
    [
        ("  s{i}: {{run: x, needs: [s{j}, s0, s1, s2]}}\n", "P052"),
        ("  s{i}: {{run: x, produces: o}}\n", "P053"),
        ("  s{i}: {{run: x, produces: o/{i}, inputs: ['o/*']}}\n", "P054"),
        ("  s{i}: {{run: x, nedes: [], needs: [t{i}]}}\n", "P030"),
        ("  s{i}: {{run: x, produces: 'o{i}', inputs: ['*{i}*{i}*']}}\n", "P054"),
    ],
)
def test_many_steps_that_are_all_wrong_are_refused_soon(row: str, code: str) -> None:
    rows = [row.format(i=i, j=(i + 1) % 5000) for i in range(5000)]
    assert code in codes("steps:\n" + "".join(rows))


@pytest.mark.usefixtures("_soon")
def test_globs_that_compare_with_everything_are_bounded() -> None:
    made = "".join(f"  s{i}: {{run: x, produces: d{i}/f{i}.txt}}\n" for i in range(3000))
    globs = ", ".join(f"'*/*{i}*z'" for i in range(3000))
    assert codes(f"steps:\n{made}  reader: {{run: x, inputs: [{globs}]}}\n") == ["P055"]


def test_files_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    for path in (
        tmp_path / "none.yaml",
        tmp_path,
        Path("/dev/zero"),
        Path("a\0b"),
        Path("x" * 5000),
    ):
        with pytest.raises(PlanError) as caught:
            load_plan(str(path))
        assert [item.code for item in caught.value.problems] == ["P010"]


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200))
def test_random_bytes_only_ever_raise_a_plan_error(content: bytes) -> None:
    for file in ("plan.yaml", "plan.json"):
        survives(content, file)


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="ab:-[]{}&*!|>'\"%@`#,?~\n\t \r\\u0$.<=", max_size=60))
def test_random_marks_only_ever_raise_a_plan_error(text: str) -> None:
    survives(text.encode(), "plan.yaml")
    survives(b"steps:\n  a:\n    run: x\n    with: " + text.encode(), "plan.yaml")


PIECES = [
    *EVERYTHING.split(),
    "null",
    "[]",
    "{}",
    "''",
    "&a",
    "*a",
    "!!int",
    "${{ x }}",
    "-1",
    "1e9",
]


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_a_changed_plan_only_ever_raises_a_plan_error(data: st.DataObject) -> None:
    text = EVERYTHING
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(start, min(len(text), start + 12)))
        text = text[:start] + data.draw(st.sampled_from(PIECES) | st.text(max_size=3)) + text[end:]
    survives(text.encode("utf-8", "surrogatepass"), "plan.yaml")


def survives(content: bytes, file: str) -> None:
    problems = None
    try:
        load_text(content, file, "/nowhere")
    except PlanError as error:
        problems = error.problems
    assert problems is None or render(problems, content)


def parsed(content: bytes, *, pure: bool) -> Node | str:
    try:
        return read(content, Problems("x"), loader=SafeLoader if pure else FASTEST)
    except PlanError as error:
        return error.problems[0].code


@pytest.mark.parametrize(
    "file", sorted((Path(__file__).parent / "bad").glob("*.yaml")), ids=lambda file: file.name
)
def test_both_parsers_give_the_same_answer(file: Path) -> None:
    content = file.read_bytes()
    assert parsed(content, pure=True) == parsed(content, pure=False)


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="ab:-[]{}&*!|>'\"%@`#,?~\n \\uxU0f1.<", max_size=40))
def test_the_parser_in_python_only_ever_raises_a_plan_error(text: str) -> None:
    parsed(text.encode(), pure=True)
    parsed(b'"\\U' + text.encode(), pure=True)


@pytest.mark.parametrize("count", [10_000, pytest.param(100_000, marks=pytest.mark.soak("other"))])
def test_a_large_plan_is_the_plan_built_by_hand(count: int) -> None:
    rows = ["name: large\nsteps:\n"]
    steps = {}
    for i in range(count):
        needs = f", needs: [s{i - 1}]" if i else ""
        rows.append(f"  s{i}: {{run: [echo, hi], produces: o/{i % 7}{needs}}}\n")
        steps[StepId(f"s{i}")] = Step(
            StepId(f"s{i}"),
            run=("echo", "hi"),
            produces=(f"o/{i % 7}",),
            needs=(Need(StepId(f"s{i - 1}")),) if i else (),
        )
    loaded = load_text("".join(rows).encode(), "plan.yaml", "/nowhere")
    assert loaded.plan == Plan("large", steps)
    assert list(loaded.plan.steps) == list(steps)
