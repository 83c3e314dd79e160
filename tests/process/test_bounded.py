"""Work that may never end is done elsewhere: what is too much costs its own answer and no other."""

import os

import pytest

from holdfast.process.bounded import Work, each


def _done(item: str) -> bytes:
    match item:
        case "for ever":
            while True:
                pass
        case "all memory":
            return b"x" * (1 << 40)
        case "a crash":
            os.abort()
        case "who":
            return b"%d" % os.getpid()
        case "a mistake":
            raise KeyError(item)
        case _:
            return item.encode()


WORK = Work(_done, seconds=lambda _: 0.02, memory=64 << 20)


@pytest.mark.parametrize("much", ["for ever", "all memory", "a crash"])
def test_an_item_that_is_too_much_has_no_answer_and_the_others_have_theirs(much: str) -> None:
    assert list(each(WORK, ["a", much, "b", much])) == [b"a", None, b"b", None]


def test_what_the_work_raises_is_raised_here() -> None:
    answers = each(WORK, ["a", "a mistake"])
    assert next(answers) == b"a"
    with pytest.raises(KeyError, match="a mistake"):
        next(answers)


def test_no_process_is_left_behind() -> None:
    for process in each(WORK, ["who", "for ever", "who"]):
        if process is not None:
            with pytest.raises(ChildProcessError):
                os.waitpid(int(process), os.WNOHANG)
