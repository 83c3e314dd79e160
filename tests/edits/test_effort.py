"""However many lines and blocks there are, an edit is worked out or refused in a bounded number of steps."""

import json

import pytest

from holdfast.edits.effort import MOST_HUNKS, MOST_SAID, TooMuchError
from holdfast.edits.formats import read_edit
from holdfast.edits.places import work_out
from holdfast.errors import EditError

BLOCK = "f\n<<<<<<< SEARCH\n{old}\n=======\n{new}\n>>>>>>> REPLACE\n"


def test_blocks_share_the_work_of_looking() -> None:
    files = {"f": b"".join(b"line %d\n" % number for number in range(20_000))}
    missing = read_edit("".join(BLOCK.format(old=f"no {n} here", new="x") for n in range(400)))
    outcome = work_out(missing, files.get, most_steps=200_000)  # a look at all lines takes 500
    assert [one.why for one in outcome.refusals] == ["not_found"] * 400
    assert all(one.guidance for one in outcome.refusals[:20])
    assert not any(one.guidance for one in outcome.refusals[20:]), "the rest is only named"
    found = read_edit("".join(BLOCK.format(old=f"line {n}", new=f"new {n}") for n in range(400)))
    [file] = work_out(found, files.get, most_steps=100_000).files
    assert file.after is not None
    assert file.after.count(b"new ") == 400


def test_too_many_blocks_are_refused() -> None:
    for form in (BLOCK.format(old="a", new="b"), "*** Add File: f{}\n+x\n"):
        with pytest.raises(TooMuchError, match="more than 5000 hunks"):
            read_edit("".join(form.replace("{}", str(n)) for n in range(MOST_HUNKS + 1)))
    entries = [{"path": "f", "hunks": [{"old": "a", "new": "b"}] * (MOST_HUNKS + 1)}]
    with pytest.raises(TooMuchError, match="more than 5000 hunks"):
        read_edit(json.dumps(entries))
    with pytest.raises(TooMuchError, match="500001 lines, and may have 500000"):
        read_edit("\n" * MOST_SAID)
    with pytest.raises(TooMuchError, match="may have 500000"):
        read_edit(json.dumps([{"path": "f", "create": "\n" * (MOST_SAID + 1)}]))


def test_lines_that_stand_almost_everywhere_are_not_compared_for_ever() -> None:
    files = {"f": b"a\n" * 50_000}
    [one] = work_out(read_edit(BLOCK.format(old="a", new="b")), files.get).refusals
    assert (one.why, one.message) == ("ambiguous", "hunk 1 fits at more than 1000 places")
    said = [{"path": "f", "hunks": [{"old": "a\n", "new": "b\n", "line": 40_000}]}]
    [file] = work_out(read_edit(json.dumps(said)), files.get, files).files
    assert file.after == b"a\n" * 39_999 + b"b\n" + b"a\n" * 10_000, "unless a line says which"
    many = read_edit("".join(BLOCK.format(old="a", new=f"b {n}") for n in range(9)))
    [one] = work_out(many, files.get, most_steps=100_000).refusals
    assert (one.why, one.guidance) == ("too_large", "make it in smaller edits")


def test_a_file_of_millions_of_lines_is_not_edited_as_text() -> None:
    refusals = work_out(
        read_edit(BLOCK.format(old="a", new="b")), {"f": b"\n" * 2_000_001}.get
    ).refusals
    assert [(one.why, one.message) for one in refusals] == [
        ("too_large", "has more than 2000000 lines")
    ]


@pytest.mark.parametrize("text", ['{"edits": ' + "[" * 100_000, "[" * 100_000 + "]" * 100_000])
def test_json_that_is_nested_without_end_is_refused(text: str) -> None:
    with pytest.raises(EditError, match="nested too deep"):
        read_edit(text)
