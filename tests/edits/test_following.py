"""An edit goes where its author saw its lines, whatever others did to the file since."""

import json

import pytest

from holdfast.model.digest import digest_bytes
from tests.edits.test_places import CODE, after, block, diff, edit, level, patch, why


@pytest.mark.req("R141")
def test_a_merge_with_what_the_author_saw_finds_the_place() -> None:
    base = b"a\nb\nc\nd\ne\nf\n"
    now = b"new\na\nb\nC\nd\ne\nf\nnew\n"
    text = diff("@@ -1,6 +1,6 @@\n a\n b\n c\n d\n-e\n+E\n f\n")
    assert after(text, now, base) == b"new\na\nb\nC\nd\nE\nf\nnew\n"
    whole = "a.py\n```\na\nb\nc\nd\nE\nf\n```\n"
    assert after(whole, now, base) == b"new\na\nb\nC\nd\nE\nf\nnew\n"
    assert level(whole, now, base) == "merged"


@pytest.mark.req("R141")
def test_a_merge_loses_no_blanks_that_the_edit_is_about() -> None:
    base = b"a  \nb\nc\nd\ne\nf\ng\n"
    now = b"a  \nb  \nC by others\nd\ne\nf\ng\n"
    text = diff("@@ -1,7 +1,7 @@\n-a  \n+a\n b\n-c\n+c\n d\n e\n f\n-g\n+G\n")
    assert why(text, now, base) == "not_found"


@pytest.mark.req("R141")
def test_a_contradiction_is_refused() -> None:
    base, now = b"a\nb\nc\n", b"a\nB by others\nc\n"
    assert why(diff("@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n"), now, base) == "not_found"
    assert why("a.py\n```\na\nB\nc\n```\n", now, base) == "stale"


@pytest.mark.req("R141")
def test_a_place_whose_likes_are_gone_is_not_taken_for_the_one_that_was_meant() -> None:
    pair = b"x\nreturn a\n1\n2\n3\n4\n5\n6\n7\n8\ny\nreturn a\n"
    now = pair.replace(b"x\nreturn a", b"x\nreturn other")
    text = diff("@@ -2,1 +2,1 @@\n-return a\n+return b\n")
    assert why(text, now, base=pair) == "not_found"
    other = diff("@@ -12,1 +12,1 @@\n-return a\n+return b\n")
    assert after(other, now, base=pair) == now.replace(b"y\nreturn a", b"y\nreturn b")
    assert level(other, now, base=pair) == "exact"


@pytest.mark.req("R141")
def test_votes_do_not_prefer_the_copy_that_nobody_touched() -> None:
    pair = b"f\nreturn a\n1\n2\n3\n4\n5\n6\n7\n8\nf\nreturn a\n"
    text = diff("@@ -1,2 +1,2 @@\n f\n-return a\n+return b\n")
    assert after(text, b"0\n" + pair, base=pair) == b"0\n" + pair.replace(
        b"return a", b"return b", 1
    )
    assert why(text, b"g" + pair[1:], base=pair) == "not_found"


@pytest.mark.req("R141")
def test_votes_do_not_take_a_line_that_somebody_else_wrote() -> None:
    load = b"def load():\n    open()\n    check()\n    close()\n"
    lines = b"    data = read()\n    setup(data)\n    log()\n"
    base = load + b"def save():\n" + lines + b"    debug(data)\n    write(data)\n"
    theirs = b"def fresh():\n" + lines + b"    debug(data)\n    return data\n"
    now = theirs + base.replace(lines, b"    data = fresh()\n")
    text = diff(
        "@@ -6,5 +6,4 @@\n     data = read()\n     setup(data)\n     log()\n",
        "-    debug(data)\n     write(data)\n",
    )
    assert after(text, now, base=base) == theirs + (
        load + b"def save():\n    data = fresh()\n    write(data)\n"
    )


@pytest.mark.req("R141")
@pytest.mark.parametrize(
    "hunk, now, wanted",
    [
        pytest.param(
            "@@ -1,4 +1,5 @@\n a\n b\n+new\n c\n d\n",
            "a\nb\nC\nd\n\ne\n",
            "a\nb\nnew\nC\nd\n\ne\n",
            id="below",
        ),
        pytest.param(
            "@@ -1,4 +1,5 @@\n a\n b\n+new\n c\n d\n",
            "a\nB\nc\nd\n\ne\n",
            "a\nB\nnew\nc\nd\n\ne\n",
            id="above",
        ),
        pytest.param(
            "@@ -2,4 +2,5 @@\n b\n c\n d\n \n+new\n e\n",
            "a\nb\nc\nd\n\nE\n",
            "a\nb\nc\nd\n\nnew\nE\n",
            id="below a blank line",
        ),
        pytest.param(
            "@@ -3,4 +3,5 @@\n c\n d\n \n e\n+new\n",
            "a\nb\nc\nd\n\nE\n",
            "a\nb\nc\nd\n\nE\nnew\n",
            id="at the end",
        ),
        pytest.param(
            "@@ -1,2 +1,3 @@\n+new\n a\n b\n",
            "A\nb\nc\nd\n\ne\n",
            "new\nA\nb\nc\nd\n\ne\n",
            id="at the start",
        ),
        pytest.param(
            "@@ -1,3 +1,5 @@\n a\n+new\n b\n+more\n c\n",
            "a\nc\nd\n\ne\n",
            "a\nnew\nmore\nc\nd\n\ne\n",
            id="around one that is gone",
        ),
        pytest.param(
            "@@ -1,3 +1,3 @@\n a\n-b\n+new\n c\n",
            "A\nb\nC\nd\n\ne\n",
            "A\nnew\nC\nd\n\ne\n",
            id="on both sides",
        ),
    ],
)
def test_a_hunk_next_to_lines_that_somebody_changed_has_its_place(
    hunk: str, now: str, wanted: str
) -> None:
    base = b"a\nb\nc\nd\n\ne\n"
    assert after(diff(hunk), now.encode(), base) == wanted.encode()
    assert level(diff(hunk), now.encode(), base) == "merged"


@pytest.mark.req("R141")
@pytest.mark.parametrize(
    "hunk, now",
    [
        pytest.param(
            "@@ -1,4 +1,5 @@\n a\n b\n+new\n c\n d\n", "a\nb\ntheirs\nc\nd\n\ne\n\n", id="between"
        ),
        pytest.param(
            "@@ -1,4 +1,5 @@\n a\n b\n+new\n c\n d\n", "a\n  b\nC\nd\n\ne\n\n", id="indented"
        ),
        pytest.param(
            "@@ -4,4 +4,5 @@\n d\n \n e\n+new\n \n", "a\nb\nc\nd\n\ne\ntheirs\n\n", id="at the end"
        ),
        pytest.param("@@ -4,4 +4,3 @@\n d\n \n-e\n-\n+new\n", "a\nb\nc\nD\n\ne\n", id="shorter"),
        pytest.param("@@ -3,3 +3,2 @@\n c\n-d\n-\n e\n", "a\nb\nC\nd\nE\n\n", id="another line"),
        pytest.param(
            "@@ -4,3 +4,4 @@\n d\n \n+new\n e\n", "a\nb\nc\nd\ntheirs\nE\n\n", id="no blank line"
        ),
        pytest.param("@@ -3,4 +3,5 @@\n c\n d\n \n+new\n e\n", "a\nb\nC\nd\n", id="cut off"),
        pytest.param(
            "@@ -3,4 +3,3 @@\n c\n d\n-\n e\n", "a\nb\nC\nd\n\ntheirs\n\ne\n\n", id="blank lines"
        ),
    ],
)
def test_two_changes_of_one_place_are_a_contradiction(hunk: str, now: str) -> None:
    base = b"a\nb\nc\nd\n\ne\n\n"
    assert why(diff(hunk), now.encode(), base) == "not_found"


@pytest.mark.req("R141")
@pytest.mark.parametrize(
    "hunk, base, now, wanted",
    [
        pytest.param(
            "@@ -12,7 +12,6 @@\n r\n q\n x\n-old\n else\n s\n t\n",
            "a\n3\nx\n3\n4\nold\nr\n}\n}\nb\nr\nq\nx\nold\nelse\ns\nt\n",
            "a\nb\nr\nq\n3\nx\n3\n4\nold\nr\n}\n}\nx\nold\nelse\ns\nt\n",
            "a\nb\nr\nq\n3\nx\n3\n4\nold\nr\n}\n}\nx\nelse\ns\nt\n",
            id="the kept lines were moved away",
        ),
        pytest.param(
            "@@ -12,5 +12,7 @@\n s\n t\n u\n+new\n \n+end\n a\n",
            "a\nb\nc\n1\n2\n3\nu\n4\n5\n6\nr\ns\nt\nu\n\na\n",
            "a\nu\nr\ns\nt\nb\n1\n2\n3\nu\n4\n5\n6\nu\n\na\n",
            "a\nu\nr\ns\nt\nb\n1\n2\n3\nu\n4\n5\n6\nu\nnew\n\nend\na\n",
            id="the lines above were moved away",
        ),
        pytest.param(
            "@@ -3,4 +3,7 @@\n 0\n 25\n+16\n+pass\n+25\n 16\n pass\n 10\n",
            "a\nb\n0\n25\n16\npass\n10\nc\n",
            "a\nb\n0\n25\n16\nx\ny\npass\n10\nc\n",
            "a\nb\n0\n25\n16\nx\ny\npass\n25\n16\npass\n10\nc\n",
            id="it could stand on both sides of somebody's lines",
        ),
    ],
)
def test_what_a_merge_places_elsewhere_is_not_settled_by_votes(
    hunk: str, base: str, now: str, wanted: str
) -> None:
    assert after(diff(hunk), now.encode(), base.encode()) == wanted.encode()
    assert level(diff(hunk), now.encode(), base.encode()) == "merged"


@pytest.mark.req("R141")
def test_a_copy_is_no_place_while_the_lines_stand_where_they_were() -> None:
    base = b"1\n2\n3\na\nb\nc\nd\n4\n5\n6\n"
    text = diff("@@ -4,4 +4,5 @@\n a\n b\n+new\n c\n d\n")
    now = b"a\nb\nc\nd\n" + base.replace(b"d\n", b"D\n")
    assert after(text, now, base) == now.replace(b"c\nD", b"new\nc\nD")


@pytest.mark.req("R141")
def test_of_two_equal_lines_one_is_removed_once() -> None:
    base = b"p\nq\nr\nx\nx\ns\nt\nu\n"
    text = diff("@@ -1,8 +1,7 @@\n p\n q\n r\n-x\n x\n s\n t\n u\n")
    assert why(text, b"p\nq\nr\nx\ns\nt\nU\n", base) == "already_applied"


@pytest.mark.req("R141")
def test_a_block_that_is_gone_is_not_the_other_one_like_it() -> None:
    pair = b"a\nb\nc\n1\n2\n3\na\nb\nc\n4\n"
    text = diff("@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n")
    (refusal,) = edit(text, pair[6:], base=pair).refusals
    assert refusal.message == "hunk 1 was not found where its author saw it"
    assert refusal.guidance == (
        "such lines stand at line 4, but they are others than those that its author saw;"
        " read the file again"
    )
    assert after(text.replace("-1", "-7"), pair[6:], base=pair) == pair[6:].replace(b"b", b"B")


@pytest.mark.req("R141")
def test_lines_that_were_moved_together_are_followed() -> None:
    text = block("    value = 2\n", "    value = 3\n")
    second = CODE[CODE.index(b"def second") :]
    now = second + b"\n\n" + CODE[: CODE.index(b"def second")]
    assert after(text, now, base=CODE) == now.replace(b"= 2", b"= 3")


@pytest.mark.req("R141")
@pytest.mark.parametrize("new", ["", "call(new)\n"])
def test_a_line_that_somebody_wrote_elsewhere_is_not_the_one_that_is_gone(new: str) -> None:
    base = b"one\ncall(x)\ntwo\nthree\nfour\n"
    now = b"one\ntwo\nthree\nif y:\ncall(x)\nfour\n"
    (refusal,) = edit(block("call(x)\n", new), now, base).refusals
    assert refusal.why == ("not_found" if new else "already_applied")


@pytest.mark.req("R141")
def test_votes_do_not_take_the_copy_that_is_left() -> None:
    base = b"print command\nargs\nrun\nsay(print)\n\necho command\nargs\nrun\nsay(print)\n"
    now = base[: base.rindex(b"say")] + b"say(other)\n"
    text = diff("@@ -6,4 +6,4 @@\n echo command\n args\n run\n-say(print)\n+say(echo)\n")
    assert after(text, base) == base[: base.rindex(b"say")] + b"say(echo)\n"
    assert why(text, now, base) == "not_found"


@pytest.mark.req("R141")
def test_brackets_are_followed_like_other_lines() -> None:
    base = b"open {\n  a {\n    one\n  }\n}\nclose {\n  b {\n    two\n  }\n}\n"
    text = diff("@@ -9,2 +9,2 @@ close {\n   }\n-}\n+} once\n")
    assert after(text, b"0\n" + base, base) == b"0\n" + base[: base.rindex(b"}")] + b"} once\n"
    now = base.replace(b"  b {\n    two\n  }\n", b"  both\n")
    assert why(text, now, base) == "not_found"


LOAD = b"def load(d):\n    read(d)\n"
SAVE = b"def save(d):\n    check(d)\n    write(d)\n"
DROP = SAVE.replace(b"save", b"drop")


@pytest.mark.req("R141")
def test_lines_with_other_blank_lines_are_no_place_if_somebody_else_wrote_them() -> None:
    text = diff(
        "@@ -2,5 +2,6 @@\n     check(d)\n     write(d)\n \n+    close(d)\n \n def load(d):\n"
    )
    base = SAVE + b"\n\n" + LOAD
    now = SAVE + b"\n\n" + DROP + LOAD
    assert after(text, now, base) == SAVE + b"\n    close(d)\n\n" + DROP + LOAD
    assert why(text, SAVE + DROP + LOAD, base) == "not_found"


@pytest.mark.req("R141")
def test_a_merge_that_is_clean_comes_before_a_vote() -> None:
    text = diff("@@ -1,4 +1,5 @@\n one\n two\n \n+new\n \n three\n")
    base, now = b"one\ntwo\n\n\nthree\nfour\n", b"one\n\ntwo\n\n\nthree\nfour\n"
    assert after(text, now, base) == b"one\n\ntwo\n\nnew\n\nthree\nfour\n"
    assert (level(text, now, base), level(text, now)) == ("merged", "voted")


@pytest.mark.req("R141")
def test_a_copy_made_since_is_not_edited() -> None:
    now = CODE + CODE
    assert why(block("    value = 1\n", "    value = 3\n"), now, base=CODE) == "ambiguous"


@pytest.mark.req("R141")
def test_a_formatter_in_between_does_not_matter() -> None:
    base = b"def f( a ):\n  x = 1\n  y = 2\n  return x\n\ndef g():\n  pass\n"
    now = b"def f(a):\n    x = 1\n    y = 2\n    return x\n\n\ndef g():\n    pass\n"
    text = block("  x = 1\n  y = 2\n  return x\n", "  x = 1\n  if y:\n    y = 2\n  return x\n")
    assert after(text, now, base) == now.replace(b"    y = 2\n", b"    if y:\n        y = 2\n")


@pytest.mark.req("R141")
def test_a_whole_file_or_a_deletion_of_what_nobody_saw_is_stale() -> None:
    for said in ({"whole": "x\n"}, {"delete": True}):
        text = json.dumps({"edits": [{"path": "a.py", "base": digest_bytes(b"old\n"), **said}]})
        assert why(text, b"new\n") == "stale"


# Hunks that speak of one another.


@pytest.mark.req("R141")
def test_hunks_of_a_diff_speak_of_the_file_as_it_was() -> None:
    hunks = "@@ -1,1 +1,2 @@\n import os\n+one = two\n", "@@ -9,1 +10,1 @@\n-one = two\n+one = 2\n"
    for text in (diff(*hunks), patch(*(f"@@\n{hunk.partition(chr(10))[2]}" for hunk in hunks))):
        assert why(text, CODE) == "not_found"
        assert why(text, CODE, base=CODE + b"one = two\n") == "not_found"


@pytest.mark.req("R141")
def test_a_block_does_not_build_on_lines_if_its_author_saw_such_lines() -> None:
    text = block("import os\n", "import os\none = two\n") + block("one = two\n", "one = 2\n")
    assert after(text, CODE, base=CODE + b"end\n") == CODE.replace(b"os\n", b"os\none = 2\n")
    assert why(text, CODE, base=CODE + b"one = two\n") == "not_found"
