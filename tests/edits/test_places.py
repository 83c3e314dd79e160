"""An edit lands where it was meant, to the byte, or nowhere."""

import hashlib
import json

import pytest

from holdfast.edits.formats import read_edit
from holdfast.edits.outcome import Outcome, Planned
from holdfast.edits.places import work_out
from holdfast.errors import EditError
from holdfast.model.digest import digest_bytes

CODE = b"""import os


def first():
    value = 1
    return value


def second():
    value = 2
    return value
"""


def block(old: str, new: str, path: str = "a.py") -> str:
    return f"{path}\n<<<<<<< SEARCH\n{old}=======\n{new}>>>>>>> REPLACE\n"


def diff(*hunks: str, path: str = "a.py") -> str:
    return f"--- a/{path}\n+++ b/{path}\n" + "".join(hunks)


def patch(*hunks: str, path: str = "a.py") -> str:
    return f"*** Begin Patch\n*** Update File: {path}\n" + "".join(hunks) + "*** End Patch\n"


def edit(text: str, content: bytes | dict[str, bytes], base: bytes | None = None) -> Outcome:
    files = content if isinstance(content, dict) else {"a.py": content}
    return work_out(read_edit(text), files.get, {} if base is None else {"a.py": base})


def after(text: str, content: bytes, base: bytes | None = None) -> bytes | None:
    """What becomes of the one file; the edit must not be refused."""
    outcome = edit(text, content, base)
    assert outcome.refusals == ()
    (file,) = outcome.files
    assert (file.path, file.before) == ("a.py", digest_bytes(content))
    return file.after


def level(text: str, content: bytes, base: bytes | None = None) -> str:
    (file,) = edit(text, content, base).files
    return file.levels[0]


def why(text: str, content: bytes | dict[str, bytes], base: bytes | None = None) -> str:
    outcome = edit(text, content, base)
    assert outcome.files == ()
    return outcome.refusals[0].why


# The ladder.


def test_exact_and_unique() -> None:
    text = block("    value = 1\n", "    value = 10\n")
    assert after(text, CODE) == CODE.replace(b"= 1", b"= 10")
    assert level(text, CODE) == "exact"


def test_what_stands_twice_is_refused_with_its_places_and_what_tells_them_apart() -> None:
    (refusal,) = edit(block("    return value\n", "    return 0\n"), CODE).refusals
    assert (refusal.why, refusal.hunk, refusal.line) == ("ambiguous", 1, 6)
    assert refusal.message == "hunk 1 fits at 2 places"
    assert refusal.guidance.splitlines() == [
        "it fits at the lines 6, 11",
        "for the place at line 6, add line 5:     value = 1",
        "for the place at line 11, add line 10:     value = 2",
    ]


def test_a_line_number_alone_does_not_choose() -> None:
    text = diff("@@ -11,1 +11,1 @@\n-    return value\n+    return 0\n")
    assert why(text, CODE) == "ambiguous"


def test_a_line_number_chooses_in_the_file_that_the_author_saw() -> None:
    text = diff("@@ -11,1 +11,1 @@\n-    return value\n+    return 0\n")
    wanted = CODE[: CODE.rindex(b"return")] + b"return 0\n"
    assert after(text, CODE, base=CODE) == wanted
    named = "diff --git a/a.py b/a.py\nindex f6cf8c9..0000000 100644\n" + text
    assert edit(named, CODE).refusals[0].why == "ambiguous"  # another file than the diff is of
    blob = hashlib.sha1(b"blob %d\0%b" % (len(CODE), CODE)).hexdigest()[:7]
    assert after(named.replace("f6cf8c9", blob), CODE) == wanted


@pytest.mark.parametrize("name", ["", "f6", "F6CF8C9", "0000000"])
def test_a_diff_that_does_not_say_what_its_author_saw_is_no_proof_of_it(name: str) -> None:
    head = f"diff --git a/a.py b/a.py\nindex {name}..0000000 100644\n"
    twice = diff("@@ -11,1 +11,1 @@\n-    return value\n+    return 0\n")
    assert why(head + twice, CODE) == "ambiguous"


def test_neighbours_that_were_moved_as_far_choose() -> None:
    text = diff(
        "@@ -1,1 +1,1 @@\n-import os\n+import sys\n",
        "@@ -11,1 +11,1 @@\n-    return value\n+    return 0\n",
    )
    moved = b"# new\n# new\n" + CODE
    assert after(text, moved) == (
        moved.replace(b"os", b"sys")[: moved.rindex(b"return") + 1] + b"return 0\n"
    )
    outcome = edit(text, moved)
    assert outcome.files[0].levels == ("exact", "hinted")


def test_as_many_equal_blocks_as_places_take_one_each() -> None:
    text = block("    return value\n", "    return 0\n") * 2
    assert after(text, CODE) == CODE.replace(b"return value", b"return 0")


def test_blanks_at_line_ends_do_not_matter_and_stay() -> None:
    content = CODE.replace(b"def first():\n", b"def first():  \n").replace(b"= 1\n", b"= 1\t\n")
    old = "def first():\n    value = 1\n    return value\n"
    text = block(old, old.replace("1", "3"))
    assert after(text, content) == content.replace(b"value = 1\t\n", b"value = 3\n")
    assert level(text, content) == "trailing"


def test_what_is_added_is_indented_as_the_file_is() -> None:
    text = block("value = 1\nreturn value\n", "value = 1\nif value:\n    value = 3\nreturn value\n")
    wanted = CODE.replace(b"= 1\n", b"= 1\n    if value:\n        value = 3\n")
    assert after(text, CODE) == wanted
    assert level(text, CODE) == "indented"
    deep = block("        value = 1\n", "        value = 3\n")
    assert after(deep, CODE) == CODE.replace(b"= 1", b"= 3")


def test_tabs_stand_for_spaces() -> None:
    tabs = CODE.replace(b"    ", b"\t")
    text = block("def first():\n    value = 1\n", "def first():\n    if True:\n        value = 1\n")
    assert after(text, tabs) == tabs.replace(b"\tvalue = 1", b"\tif True:\n\t\tvalue = 1")


def test_lines_indented_in_two_ways_have_no_place() -> None:
    content = b"def f():\n  a = 1\n     b = 2\n"
    assert why(block("a = 1\nb = 2\n", "a = 2\nb = 2\n"), content) == "not_found"


def test_kept_lines_that_changed_are_outvoted_and_not_written() -> None:
    content = CODE.replace(b"import os", b"import sys").replace(b"def first", b"async def first")
    text = diff(
        "@@ -1,7 +1,7 @@\n import os\n \n \n def first():\n-    value = 1\n+    value = 9\n",
        "     return value\n \n \n def second():\n",
    )
    assert after(text, content) == content.replace(b"= 1", b"= 9")
    assert level(text, content) == "voted"


def test_half_of_the_kept_lines_must_be_there() -> None:
    rows = " p1\n p2\n keep\n-old\n+new\n p3\n p4\n"
    text = diff(f"@@ -1,6 +1,6 @@\n{rows}")
    assert why(text, b"q1\nq2\nkeep\nold\nq3\nq4\n") == "not_found"
    assert after(text, b"q1\np2\nkeep\nold\np3\nq4\n") == b"q1\np2\nkeep\nnew\np3\nq4\n"


def test_lines_on_both_sides_of_an_insertion_must_be_there() -> None:
    text = diff("@@ -1,6 +1,7 @@\n a\n b\n c\n+new\n d\n e\n f\n")
    assert why(text, b"a\nb\nc\nx\ny\nz\n") == "not_found"
    assert after(text, b"a\nb\nc\nx\ne\nf\n") == b"a\nb\nc\nnew\nx\ne\nf\n"
    others_came_first = b"a\nb\nc\nother\nd\ne\nf\n"
    assert why(text, others_came_first) == "not_found"
    assert why(text, others_came_first, base=b"a\nb\nc\nd\ne\nf\n") == "not_found"


@pytest.mark.req("R141")
def test_a_removed_line_that_somebody_changed_is_not_sought_elsewhere() -> None:
    jar = b"<plugin>\n<name>jar</name>\n<version>2.4</version>\n<runs>\n</plugin>\n"
    seen = b"<plugin>\n<name>zip</name>\n<version>2.4</version>\n<configuration>\n</plugin>\n"
    text = diff(
        "@@ -6,5 +6,5 @@\n <plugin>\n <name>zip</name>\n-<version>2.4</version>\n"
        "+<version>2.5</version>\n <configuration>\n </plugin>\n"
    )
    theirs = seen.replace(b"2.4", b"3.0")
    assert why(text, jar + theirs) == "not_found"
    assert after(text, jar + seen) == jar + seen.replace(b"2.4", b"2.5")
    function = b"def a():\n    setup(a)\n    return x\n\ndef b():\n    %b\n    return x\n"
    text = block("def b():\n    one(b)\n    return x\n", "def b():\n    one(b)\n    return y\n")
    changed = (function % b"one(b)").replace(b"one(b)\n    return x", b"one(b)\n    return z")
    assert why(text, changed) == "not_found"


@pytest.mark.req("R141")
def test_an_insertion_is_not_made_where_only_the_lines_above_are_alike() -> None:
    content = (
        b"it(1)\n  done();\n  }, 0);\n});\n\nit(2)\n  done();\n  }, 0);\n}); // theirs\n\nend()\n"
    )
    text = diff("@@ -7,4 +7,5 @@\n   done();\n   }, 0);\n });\n+it(3)\n }\n")
    assert why(text, content) == "not_found"
    far = diff("@@ -1,4 +1,5 @@\n c\n h\n+new\n a\n h\n")
    assert why(far, b"c\na\nh\na\nh\n") == "not_found"


@pytest.mark.req("R141")
def test_the_parts_of_a_hunk_stay_together() -> None:
    far = "".join(f"line {n}\n" for n in range(40))
    content = f"r\na\nb1\nc\nd\ntheirs\n{far}c\nd\nf2\ng\nh\n".encode()
    text = diff("@@ -1,8 +1,8 @@\n r\n a\n-b1\n+B\n c\n d\n-f2\n+F\n g\n h\n")
    assert why(text, content) == "not_found"
    glued = block(
        "run(80)\n}\n```\n\n\n# Routes\n```go\n",
        "run(80)\n}\n```\n# Form\n\ncall()\n\n# Routes\n```go\n",
    )
    assert why(glued, b"run(80)\n}\n```\n\n# Routes\n```go\n") == "not_found"


@pytest.mark.req("R141")
def test_a_blank_line_that_is_gone_already_takes_no_other_along() -> None:
    content = b"a()\nb()\n\ndef f():\n    return x\n    their()\n    return y\n"
    text = block(
        "a()\nb()\n\n\ndef f():\n    return x\n    return y\n",
        "a()\nb()\n\ndef f():\n    return x\n    return y\n",
    )
    assert edit(text, content).files == ()


def test_two_places_side_by_side_are_told_apart_by_no_neighbour() -> None:
    text = diff(
        "@@ -1,1 +1,1 @@\n-top\n+TOP\n",
        "@@ -4,2 +4,2 @@\n x\n-y\n+Y\n",
    )
    apart = b"top\n1\n2\nx\ny\n" + b"3\n" * 9 + b"x\ny\n"
    assert after(text, apart) == b"TOP\n1\n2\nx\nY\n" + b"3\n" * 9 + b"x\ny\n"
    assert why(text, b"top\n1\n2\nx\ny\nx\ny\n3\n") == "ambiguous"


def test_removed_lines_must_be_there() -> None:
    content = CODE.replace(b"value = 1", b"value = 1.5")
    text = diff(
        "@@ -4,3 +4,3 @@\n def first():\n-    value = 1\n+    value = 9\n     return value\n"
    )
    (refusal,) = edit(text, content).refusals
    assert refusal.why == "not_found"
    assert "    5      value = 1.5" in refusal.guidance
    assert "-    value = 1\n+    value = 1.5" in refusal.guidance


def test_missing_blank_lines_do_not_matter() -> None:
    content = CODE.replace(b"\n\n\n", b"\n")
    text = diff(
        "@@ -1,6 +1,7 @@\n import os\n \n \n+import re\n def first():\n     value = 1\n     return value\n"
    )
    assert after(text, content) == content.replace(b"import os\n", b"import os\nimport re\n")


def test_an_insertion_between_blank_lines_nobody_mentioned_is_refused() -> None:
    text = diff("@@ -1,2 +1,3 @@\n import os\n+import re\n def first():\n")
    assert why(text, CODE) == "not_found"


# What is there already, or elsewhere.


def test_what_is_applied_already_is_said() -> None:
    text = diff(
        "@@ -4,3 +4,4 @@\n def first():\n     value = 1\n+    value += 1\n     return value\n"
    )
    done = after(text, CODE)
    assert done is not None
    (refusal,) = edit(text, done).refusals
    assert (refusal.why, refusal.line) == ("already_applied", 4)
    assert why(text, done, base=CODE) == "already_applied"
    one_sided = block("import os\n", "import os\nimport re\n")
    again = after(one_sided, CODE)
    assert again is not None
    assert why(one_sided, again) == "already_applied"


def test_another_file_that_has_the_lines_is_named() -> None:
    files = {"a.py": b"x\n", "b.py": CODE}
    outcome = work_out(
        read_edit(block("    value = 1\n", "    value = 3\n")), files.get, others=["b.py"]
    )
    assert "'b.py' has these lines, at line 5" in outcome.refusals[0].guidance
    missing = work_out(read_edit(block("    value = 1\n", "", "c.py")), files.get, others=["b.py"])
    assert missing.refusals[0].why == "missing"
    assert missing.refusals[0].guidance == "'b.py' has these lines, at line 5"


# Hunks together.


def test_hunks_in_any_order() -> None:
    text = block("    value = 2\n", "    value = 20\n") + block(
        "    value = 1\n", "    value = 10\n"
    )
    assert after(text, CODE) == CODE.replace(b"= 2", b"= 20").replace(b"= 1", b"= 10")


def test_hunks_of_the_same_lines_are_refused() -> None:
    text = diff(
        "@@ -4,2 +4,2 @@\n def first():\n-    value = 1\n+    value = 5\n",
        "@@ -5,2 +5,2 @@\n-    value = 1\n+    value = 6\n     return value\n",
    )
    (refusal,) = edit(text, CODE).refusals
    assert (refusal.why, refusal.message) == (
        "overlapping",
        "hunks 1 and 2 change the same lines",
    )


def test_hunks_whose_kept_lines_overlap_are_fine() -> None:
    text = diff(
        "@@ -4,3 +4,3 @@\n def first():\n-    value = 1\n+    value = 5\n     return value\n",
        "@@ -5,3 +5,3 @@\n     value = 1\n-    return value\n+    return 0\n \n",
    )
    assert after(text, CODE) == CODE.replace(b"= 1\n    return value", b"= 5\n    return 0")


def test_a_block_may_build_on_the_one_before() -> None:
    text = block("    value = 1\n", "    value = 5\n") + block("    value = 5\n", "    value = 6\n")
    assert after(text, CODE) == CODE.replace(b"= 1", b"= 6")


def test_hunks_that_change_nothing_are_skipped() -> None:
    text = block("    value = 1\n", "    value = 1\n") + block("    value = 2\n", "    value = 3\n")
    outcome = edit(text, CODE)
    assert outcome.skipped == (("a.py", 1),)
    assert outcome.files[0].after == CODE.replace(b"= 2", b"= 3")
    assert edit(block("x\n", "x\n"), CODE) == Outcome(skipped=(("a.py", 1),))


# Bytes.


@pytest.mark.parametrize("ending", [b"\r\n", b"\n", b"\r"])
def test_lines_end_as_the_file_does(ending: bytes) -> None:
    content = CODE.replace(b"\n", ending)
    text = block("    value = 1\n", "    value = 3\n    value = 4\n")
    assert after(text, content) == content.replace(b"= 1", b"= 3" + ending + b"    value = 4")


def test_each_line_keeps_its_own_ending() -> None:
    content = b"a\r\nb\nc\r\nd\n"
    assert after(block("b\nc\n", "B\nC\n"), content) == b"a\r\nB\nC\r\nd\n"
    assert after(block("a\n", "a\nnew\n"), content) == b"a\r\nnew\r\nb\nc\r\nd\n"
    assert after("a.py\n```\na\nb\nnew\nd\n```\n", content) == b"a\r\nb\nnew\r\nd\n"


def test_a_block_that_repeats_its_last_line_is_added_below() -> None:
    content = b"f {\r\n}  \r\nend\n"
    wanted = b"f {\r\n}  \r\ng {\r\n}\r\nend\n"
    assert after(block("f {\n}\n", "f {\n}\ng {\n}\n"), content) == wanted
    text = block("x\nf {\n}\nend\n", "X\nf {\n}\ng {\n}\nend\n")
    assert after(text, b"x\r\n" + content) == b"X\r\n" + wanted


def test_a_diff_may_change_the_endings_themselves() -> None:
    text = diff("@@ -1,2 +1,2 @@\n-a\r\n+a\n b\r\n")
    assert after(text, b"a\r\nb\r\n") == b"a\nb\r\n"


def test_a_final_newline_that_is_missing_stays_so() -> None:
    content = CODE[:-1]
    appended = block(
        "    value = 2\n    return value\n", "    value = 2\n    return value\n\nend()\n"
    )
    assert after(appended, content) == content + b"\n\nend()"
    assert after(block("import os\n", "import re\n"), content) == content.replace(b"os", b"re")
    last = block("    value = 2\n    return value\n", "    value = 2\n    return 0\n")
    assert after(last, content) == content[: content.rindex(b"value")] + b"0"


def test_a_diff_may_say_what_becomes_of_the_final_newline() -> None:
    none = "\\ No newline at end of file\n"
    assert after(diff(f"@@ -1 +1 @@\n-a\n{none}+a\n"), b"a") == b"a\n"
    assert after(diff(f"@@ -1 +1 @@\n-a\n+a\n{none}"), b"a\n") == b"a"
    assert after(diff(f"@@ -1 +1,2 @@\n a\n{none.replace('No', 'No')}+b\n"), b"a") == b"a\nb\n"


def test_the_only_line_of_a_file_may_get_an_ending() -> None:
    none = "\\ No newline at end of file\n"
    assert after(diff(f"@@ -1 +1,2 @@\n-a\n{none}+a\r\n+b\r\n"), b"a") == b"a\r\nb\r\n"


@pytest.mark.parametrize("above", ["", "x\n"])
def test_a_carriage_return_at_the_end_of_a_file_is_part_of_its_line(above: str) -> None:
    none = "\\ No newline at end of file\n"
    kept = f" {above}" if above else ""
    text = diff(f"@@ -1 +1 @@\n{kept}-a\r\n{none}+b\r\n{none}")
    assert after(text, f"{above}a\r".encode()) == f"{above}b\r".encode()
    ended = diff(f"@@ -1 +1 @@\n{kept}-a\r\n{none}+a\r\n")
    assert after(ended, f"{above}a\r".encode()) == f"{above}a\r\n".encode()


@pytest.mark.parametrize(
    "encoding, mark",
    [("utf-8", b"\xef\xbb\xbf"), ("utf-16-le", b"\xff\xfe"), ("utf-16-be", b"\xfe\xff")],
)
def test_a_byte_order_mark_and_its_encoding_stay(encoding: str, mark: bytes) -> None:
    content = mark + "first é\nsecond\n".encode(encoding)
    wanted = mark + "erste ü\nsecond\n".encode(encoding)
    assert after(block("first é\n", "erste ü\n"), content) == wanted


def test_latin_1_as_declared() -> None:
    content = "# -*- coding: latin-1 -*-\nname = 'é'\nx = 1\n".encode("latin-1")
    wanted = "# -*- coding: latin-1 -*-\nname = 'ü'\nx = 1\n".encode("latin-1")
    assert after(block("name = 'é'\n", "name = 'ü'\n"), content) == wanted
    (refusal,) = edit(block("x = 1\n", "x = '€'\n"), content).refusals
    assert (refusal.why, refusal.message) == (
        "undecodable",
        "cannot hold '\\u20ac' in its encoding 'iso8859-1'",
    )


def test_bytes_that_are_no_text_stay_as_they_are() -> None:
    content = b"caf\xe9\nx = 1\n"
    assert after(block("x = 1\n", "x = 2\n"), content) == b"caf\xe9\nx = 2\n"
    assert why(block("x = 1\n", "x = 'é'\n"), content) == "undecodable"
    said = json.dumps(
        {
            "edits": [
                {
                    "path": "a.py",
                    "encoding": "latin-1",
                    "hunks": [{"old": "café\n", "new": "thé\n"}],
                }
            ]
        }
    )
    assert after(said, content) == b"th\xe9\nx = 1\n"


@pytest.mark.parametrize(
    "content, reason",
    [
        (b"x = 1\n\0\n", "binary"),
        (b"\xff\xfe\0\0x\0\0\0", "undecodable"),
        (b"\xff\xfex\0\n\0y", "undecodable"),
        (b"# coding: nonsense\nx = 1\n\xe9", "undecodable"),
        (b"# coding: idna\nx = 1\n", "undecodable"),
        (b"# coding: rot13\nx = 1\n", "undecodable"),
        (b"# coding: utf-7\nx = 1\n", "undecodable"),
        (b"# coding: cp037\nx = 1\n", "undecodable"),
    ],
)
def test_what_cannot_be_read_without_a_loss_is_refused(content: bytes, reason: str) -> None:
    assert why(block("x = 1\n", "x = 2\n"), content) == reason


@pytest.mark.parametrize("encoding", ["hex", "idna", "utf-32", "unicode_escape", "a\0b"])
def test_an_encoding_that_does_not_write_line_by_line_is_refused(encoding: str) -> None:
    hunk = {"old": "x = 1\n", "new": "x = 2\n"}
    said = json.dumps({"edits": [{"path": "a.py", "encoding": encoding, "hunks": [hunk]}]})
    assert why(said, b"Plain\nx = 1\n") == "undecodable"


@pytest.mark.parametrize("encoding", ["shift_jis", "euc-jp", "gb18030", "big5", "cp1251", "koi8-r"])
def test_encodings_that_people_use_are_kept(encoding: str) -> None:
    content = "Ж = 1\nx = 1\n".encode(encoding)
    hunk = {"old": "x = 1\n", "new": "x = Ж\n"}
    said = json.dumps({"edits": [{"path": "a.py", "encoding": encoding, "hunks": [hunk]}]})
    assert after(said, content) == "Ж = 1\nx = Ж\n".encode(encoding)


def test_a_no_break_space_is_named() -> None:
    content = "a = 1\nb\u00a0= 2\nc = 3\nd = 4\n".encode()
    kept = diff("@@ -2,3 +2,3 @@\n b = 2\n c = 3\n-d = 4\n+d = 5\n")
    assert after(kept, content) == content.replace(b"4", b"5")
    (refusal,) = edit(block("b = 2\n", "b = 3\n"), content).refusals
    assert "line 2 of the file has a no-break space (U+00A0)" in refusal.guidance


def test_an_empty_file_can_be_filled() -> None:
    assert after(block("", "x\n"), b"") == b"x\n"
    assert after(diff("@@ -0,0 +1,1 @@\n+x\n"), b"") == b"x\n"
    assert why(block("x\n", "y\n"), b"") == "not_found"


def test_a_file_can_be_emptied() -> None:
    assert after(block("a\nb\n", ""), b"a\nb\n") == b""


def test_a_hundred_thousand_lines_and_a_line_of_a_megabyte() -> None:
    many = b"".join(b"line %d\n" % number for number in range(100_000))
    assert after(block("line 50000\n", "here\n"), many) == many.replace(b"line 50000\n", b"here\n")
    long = b"a\n" + b"x" * 1_000_000 + b"\nb\n"
    assert after(block("b\n", "c\n"), long) == long[:-2] + b"c\n"
    (refusal,) = edit(block("d\n", "c\n"), long).refusals
    assert len(refusal.guidance) < 10_000


# Operations.


@pytest.mark.req("R140")
def test_create_refuses_what_is_there_and_skips_what_is_the_same() -> None:
    text = block("", "x\n")
    assert edit(text, {}).files == (Planned("a.py", None, b"x\n", None, ("created",)),)
    assert why(text, b"y\n") == "exists"
    assert edit(text, b"x\n") == Outcome(skipped=(("a.py", 0),))


@pytest.mark.req("R140")
def test_move_with_and_without_a_change() -> None:
    head = "*** Begin Patch\n*** Update File: a.py\n*** Move to: b.py\n"
    text = f"{head}@@\n-import os\n+import re\n*** End Patch\n"
    outcome = edit(text, CODE)
    assert outcome.files == (
        Planned("a.py", digest_bytes(CODE), None, None, ("deleted",)),
        Planned("b.py", None, CODE.replace(b"os", b"re"), None, ("exact",), moved_from="a.py"),
    )
    assert why(text, {"a.py": CODE, "b.py": b"there\n"}) == "exists"
    only = json.dumps({"edits": [{"path": "a.py", "move": "A.py"}]})
    assert [file.path for file in edit(only, CODE).files] == ["a.py", "A.py"]
    assert why(only, {"a.py": CODE, "A.py": b"other\n"}) == "exists"
    same_file = edit(only, {"a.py": CODE, "A.py": CODE})  # as where case makes no difference
    assert [file.path for file in same_file.files] == ["a.py", "A.py"]
    assert edit(only, {"a.py": b"\0\1"}).files[1].after == b"\0\1"


@pytest.mark.req("R140")
def test_two_files_can_change_places() -> None:
    text = json.dumps({"edits": [{"path": "a", "move": "b"}, {"path": "b", "move": "a"}]})
    outcome = edit(text, {"a": b"A", "b": b"B"})
    assert outcome.refusals == ()
    assert {file.path: (file.before, file.after) for file in outcome.files} == {
        "a": (digest_bytes(b"A"), b"B"),
        "b": (digest_bytes(b"B"), b"A"),
    }


@pytest.mark.req("R140")
def test_delete_only_what_was_seen() -> None:
    text = diff("@@ -1,2 +0,0 @@\n-a\n-b\n").replace("b/a.py", "/dev/null")
    assert edit(text, b"a\nb\n").files == (
        Planned("a.py", digest_bytes(b"a\nb\n"), None, None, ("deleted",)),
    )
    assert why(text, b"a\nb\nc\n") == "stale"
    assert why(text, {}) == "missing"


@pytest.mark.req("R140")
@pytest.mark.parametrize(
    "first",
    [
        b"",
        b"\xef\xbb\xbf",
        b"#!/bin/sh\n",
        b"#!/usr/bin/python\n# -*- coding: utf-8 -*-\n",
        b"# vim: set fileencoding=utf-8\n",
        b'<?xml version="1.0"?>\n',
        b"<?php\n",
    ],
)
def test_a_header_stands_below_what_must_be_first(first: bytes) -> None:
    text = json.dumps({"edits": [{"path": "a.py", "header": "# licence\n"}]})
    wanted = first + b"# licence\nbody\n"
    assert after(text, first + b"body\n") == wanted
    assert edit(text, wanted) == Outcome(skipped=(("a.py", 0),))
    crlf = (first + b"body\n").replace(b"\n", b"\r\n")
    assert after(text, crlf) == wanted.replace(b"\n", b"\r\n")


def test_all_refusals_are_told_and_nothing_is_planned() -> None:
    text = (
        block("    value = 1\n", "    value = 3\n")
        + block("no\n", "yes\n")
        + block("x\n", "y\n", "b.py")
    )
    outcome = edit(text, CODE)
    assert outcome.files == ()
    assert [(one.path, one.why, one.hunk) for one in outcome.refusals] == [
        ("a.py", "not_found", 2),
        ("b.py", "missing", 0),
    ]


def test_what_is_no_file_is_refused() -> None:
    def read(path: str) -> bytes | None:
        raise EditError(f"'{path}' is a symbolic link")

    (refusal,) = work_out(read_edit(block("x\n", "y\n")), read).refusals
    assert (refusal.why, refusal.message) == ("special", "'a.py' is a symbolic link")
