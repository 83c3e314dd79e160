"""Every format is read for what its author meant, also where the author was careless."""

import json

import pytest

from holdfast.edits.formats import read_edit
from holdfast.edits.places import work_out
from holdfast.edits.wanted import Hunk, Row, Wanted
from holdfast.errors import EditError

FILE = b"one\ntwo\nthree\nfour\nfive\n"
WANTED = b"one\ntwo\n3\nfour\nfive\n"

BLOCK = """a.txt
<<<<<<< SEARCH
two
three
=======
two
3
>>>>>>> REPLACE
"""
DIFF = """--- a/a.txt
+++ b/a.txt
@@ -2,3 +2,3 @@
 two
-three
+3
 four
"""
V4A = """*** Begin Patch
*** Update File: a.txt
@@
 two
-three
+3
 four
*** End Patch
"""
JSON = json.dumps({"edits": [{"path": "a.txt", "hunks": [{"old": "three\n", "new": "3\n"}]}]})
WHOLE = "a.txt\n```\none\ntwo\n3\nfour\nfive\n```\n"


def result(text: str, files: dict[str, bytes], form: str | None = None) -> dict[str, bytes | None]:
    """The files after an edit, by path; it must not be refused."""
    outcome = work_out(read_edit(text, form), files.get)
    assert outcome.refusals == ()
    return {file.path: file.after for file in outcome.files}


@pytest.mark.req("R139")
@pytest.mark.parametrize(
    "text",
    [
        BLOCK,
        f"Here it is:\n\n```python\n{BLOCK}```\n",
        BLOCK.replace("a.txt\n", "a.txt\n```text\n") + "```\n",
        BLOCK.replace("a.txt", "`a.txt`:"),
        BLOCK.replace("a.txt", "### a.txt"),
        BLOCK.replace("a.txt", "./a.txt"),
        BLOCK.replace("<<<<<<<", "<<<<<").replace(">>>>>>>", ">>>>>>").replace("=======", "======"),
        BLOCK.replace("\n", "\r\n"),
        DIFF,
        f"diff --git a/a.txt b/a.txt\nindex 1234567..89abcde 100644\n{DIFF}",
        f"```diff\n{DIFF}```\n",
        DIFF.replace("a/a.txt", "a.txt").replace("b/a.txt", "a.txt"),
        DIFF.replace("-2,3 +2,3", "-90,7 +1"),
        DIFF.replace("@@ -2,3 +2,3 @@", "@@ ... @@"),
        DIFF.replace("@@ -2,3 +2,3 @@", "@@"),
        DIFF.replace("a/a.txt", "a/a.txt\t2026-01-01 00:00:00"),
        f"{DIFF}-- \n2.39.0\n",
        V4A,
        V4A.replace("*** Begin Patch\n", "").replace("*** End Patch\n", ""),
        JSON,
        WHOLE,
        WHOLE.replace("a.txt", "**a.txt**"),
    ],
)
def test_all_ways_to_say_a_change_come_to_one_result(text: str) -> None:
    assert result(text, {"a.txt": FILE}) == {"a.txt": WANTED}


def test_a_named_format_is_not_guessed() -> None:
    holds_a_diff = f"notes.md\n```\n{DIFF}```\n"
    assert result(holds_a_diff, {}, "whole") == {"notes.md": DIFF.encode()}
    with pytest.raises(EditError, match="no edit format 'xml'"):
        read_edit(BLOCK, "xml")


def test_blocks_of_several_files_and_several_of_one_are_one_edit() -> None:
    second = BLOCK.replace("a.txt", "b.txt")
    third = "<<<<<<< SEARCH\nfive\n=======\n5\n>>>>>>> REPLACE\n"
    assert result(BLOCK + second + third, {"a.txt": FILE, "b.txt": FILE}) == {
        "a.txt": WANTED,
        "b.txt": WANTED.replace(b"five", b"5"),
    }


TWO = """diff --git {0}a.txt {1}a.txt
index 1234567..89abcde 100644
--- {0}a.txt
+++ {1}a.txt
@@ -1 +1 @@
-one
+1
diff --git {0}b c.txt {1}b c.txt
old mode 100644
new mode 100755
diff --git {0}new {1}new
new file mode 100755
--- /dev/null
+++ {1}new
@@ -0,0 +1 @@
+x
diff --git {0}gone {1}gone
deleted file mode 100644
--- {0}gone
+++ /dev/null
@@ -1 +0,0 @@
-x
"""


@pytest.mark.req("R140")
@pytest.mark.parametrize("prefixes", [("a/", "b/"), ("", ""), ("i/", "w/"), ("w/", "c/")])
def test_what_git_says_of_a_file_is_never_taken_for_the_one_before(
    prefixes: tuple[str, str],
) -> None:
    files = {"a.txt": b"one\n", "b c.txt": b"b\n", "gone": b"x\n"}
    outcome = work_out(read_edit(TWO.format(*prefixes)), files.get)
    assert outcome.refusals == ()
    assert [(file.path, file.after, file.mode) for file in outcome.files] == [
        ("a.txt", b"1\n", None),
        ("b c.txt", b"b\n", 0o755),
        ("new", b"x\n", 0o755),
        ("gone", None, None),
    ]


@pytest.mark.parametrize(
    "text, what",
    [
        (DIFF.replace("a/a.txt", "a.txt.orig").replace("b/a.txt", "a.txt"), "names two files"),
        (DIFF.replace("a/a.txt", "old/a.txt").replace("b/a.txt", "new/a.txt"), "names two files"),
        (f"{DIFF}Only in new: z.txt\n", "leaves something out"),
        (f"Only in old/sub: z.txt\n{DIFF}", "leaves something out"),
        (f"{DIFF}Binary files old/x and new/x differ\n", "leaves something out"),
    ],
)
def test_a_plain_diff_is_about_all_files_and_one_at_a_time(text: str, what: str) -> None:
    with pytest.raises(EditError, match=what):
        read_edit(text)


@pytest.mark.req("R140")
def test_git_headers_create_delete_move_and_change_modes() -> None:
    text = """diff --git a/new.sh b/new.sh
new file mode 100755
index 0000000..1111111
--- /dev/null
+++ b/new.sh
@@ -0,0 +1,2 @@
+#!/bin/sh
+true
diff --git a/old.txt b/old.txt
deleted file mode 100644
index 1111111..0000000
--- a/old.txt
+++ /dev/null
@@ -1 +0,0 @@
-gone
diff --git a/from here.txt b/to there.txt
similarity index 90%
rename from from here.txt
rename to to there.txt
diff --git a/run b/run
old mode 100644
new mode 100755
diff --git "a/caf\\303\\251" "b/caf\\303\\251"
--- "a/caf\\303\\251"
+++ "b/caf\\303\\251"
@@ -1 +1 @@
-x
+y
"""
    assert read_edit(text) == (
        Wanted("new.sh", "create", content=b"#!/bin/sh\ntrue\n", mode=0o755),
        Wanted(
            "old.txt", "delete", hunks=(Hunk((Row("-", "gone", "\n"),), line=1),), blob="1111111"
        ),
        Wanted("from here.txt", to="to there.txt"),
        Wanted("run", mode=0o755),
        Wanted("café", hunks=(Hunk((Row("-", "x", "\n"), Row("+", "y", "\n")), line=1),)),
    )


@pytest.mark.req("R140")
def test_v4a_adds_deletes_and_moves() -> None:
    text = """*** Begin Patch
*** Add File: new.txt
+first
+
+third
*** Delete File: old.txt
*** Update File: a.txt
*** Move to: sub/b.txt
@@ class A:
@@ def f
-three
+3
*** End of File
*** End Patch
"""
    change = Hunk(
        (Row("-", "three", "\n"), Row("+", "3", "\n")), anchors=("class A:", "def f"), at_end=True
    )
    assert read_edit(text) == (
        Wanted("new.txt", "create", content=b"first\n\nthird\n"),
        Wanted("old.txt", "delete"),
        Wanted("a.txt", hunks=(change,), to="sub/b.txt"),
    )


@pytest.mark.req("R140")
def test_the_json_form_says_everything() -> None:
    edits = [
        {"path": "a", "base": "0" * 64, "hunks": [{"old": "x\n", "new": "y\n", "line": 3}]},
        {"path": "b", "create": "#!/bin/sh\n", "mode": "755"},
        {"path": "c", "move": "d"},
        {"path": "e", "header": "# licence\n"},
        {"path": "f", "whole": "all\n", "encoding": "latin-1"},
        {"path": "g", "delete": True},
    ]
    rows = (Row("-", "x", "\n"), Row("+", "y", "\n"))
    assert read_edit(json.dumps({"edits": edits})) == (
        Wanted("a", hunks=(Hunk(rows, line=3),), base="0" * 64),
        Wanted("b", "create", content=b"#!/bin/sh\n", mode=0o755),
        Wanted("c", to="d"),
        Wanted("e", "header", content=b"# licence\n"),
        Wanted("f", "whole", content=b"all\n", encoding="latin-1"),
        Wanted("g", "delete"),
    )


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "no known format"),
        ("please change line 3", "no known format"),
        ("<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n", "names no file"),
        ("a.txt\n<<<<<<< SEARCH\na\n=======\nb\n", "has no end"),
        ("a.txt\n<<<<<<< SEARCH\na\n>>>>>>> REPLACE\n", "has no divider"),
        ("@@ -1 +1 @@\n-a\n+b\n", "belongs to no file"),
        ("--- a/x\n+++ b/x\n", "changes nothing in 'x'"),
        ("diff --git a/x b/x\nBinary files a/x and b/x differ\n", "is binary"),
        (
            "diff --git a/x b/x\nnew file mode 120000\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+y\n",
            "link",
        ),
        ("diff --git a/x b/y\ncopy from x\ncopy to y\n", "copies"),
        ("*** Begin Patch\n*** End Patch\n", "names no file"),
        ("*** Begin Patch\n*** Update File: x\n*** End Patch\n", "changes nothing in 'x'"),
        (
            "*** Begin Patch\n*** Update File: x\nwhat\n*** End Patch\n",
            "neither kept, added nor removed",
        ),
        ("*** Begin Patch\n*** Add File: x\nwhat\n*** End Patch\n", "not part of the new file"),
        ("x.txt\n```\nno end\n", "has no end"),
        ("```\nwhose\n```\n", "names no file"),
        (f"--- a/x\n+++ b/x\n@@ -{'9' * 5000} +1 @@\n-a\n+b\n", "line 3 .* a number that no file"),
        ('--- "a/\\777"\n+++ "b/x"\n@@ -1 +1 @@\n-a\n+b\n', "which is no byte"),
        ("{", "is not JSON"),
        ('{"edits": [], "edits": []}', "the key 'edits' twice"),
        ('{"edits": [{"path": "x", "hunks": [], "hunks": []}]}', "the key 'hunks' twice"),
        ('{"edits": 3}', "no list 'edits'"),
        ('{"edits": [3]}', "is not an object"),
        ('{"edits": [{"path": "x"}]}', "must say one of"),
        ('{"edits": [{"path": "x", "patch": "y"}]}', "unknown key 'patch'"),
        ('{"edits": [{"path": "x", "delete": true, "whole": "y"}]}', "must say one of"),
        ('{"edits": [{"path": "x", "create": "", "mode": "99"}]}', "has the mode '99'"),
        (
            '{"edits": [{"path": "x", "hunks": [{"old": "a", "new": "b", "line": -1}]}]}',
            "no number",
        ),
        ('{"edits": [{"path": "x", "hunks": [{"old": "a"}]}]}', "'new' of hunk 1"),
        ('{"edits": []}', "changes no file"),
        (
            '{"edits": [{"path": "x", "delete": true}, {"path": "./x", "whole": ""}]}',
            "two things of 'x'",
        ),
    ],
)
def test_what_cannot_be_read_is_said_in_one_line(text: str, message: str) -> None:
    with pytest.raises(EditError, match=message) as raised:
        read_edit(text)
    assert "\n" not in raised.value.message


LITERAL = [
    "$1 ${name} $(rm -rf /) `id`",
    "\\n \\1 \\g<0> \\x41",
    "\x1b[31mred\x1b[0m",
    "<<<<<<< HEAD",
    "=======",
    ">>>>>>> branch",
    "<<<<<<< SEARCH",
    ">>>>>>> REPLACE",
    "@@ -1,2 +1,2 @@",
    "--- a/x",
    "+++ b/x",
    "*** End Patch",
    "```",
    "%s {} {0}",
]


@pytest.mark.parametrize("line", LITERAL)
@pytest.mark.parametrize("form", ["search-replace", "unified", "v4a", "json"])
def test_content_stays_literal(line: str, form: str) -> None:
    from holdfast.edits.lines import Text
    from holdfast.edits.render import hunks_between, search_replace, unified, updated, v4a

    old, new = (
        ["above", f"{line} old", line, "below"],
        ["above", f"{line} new", line, line, "below"],
    )
    hunks = hunks_between(Text(old, ["\n"] * 4), Text(new, ["\n"] * 5))
    texts = {
        "search-replace": search_replace("f", hunks),
        "unified": unified("f", hunks),
        "v4a": v4a(updated("f", hunks)),
        "json": json.dumps(
            {"edits": [{"path": "f", "hunks": [{"old": "\n".join(old), "new": "\n".join(new)}]}]}
        ),
    }
    after = result(texts[form], {"f": "".join(f"{row}\n" for row in old).encode()}, form)
    assert after == {"f": "".join(f"{row}\n" for row in new).encode()}


def test_conflict_markers_may_be_what_is_edited() -> None:
    conflict = "<<<<<<< HEAD\nours\n=======\ntheirs\n>>>>>>> branch\n"
    text = f"a.txt\n<<<<<<< SEARCH\n{conflict}=======\nboth\n>>>>>>> REPLACE\n"
    assert result(text, {"a.txt": f"x\n{conflict}y\n".encode()}) == {"a.txt": b"x\nboth\ny\n"}


def test_the_file_decides_which_divider_is_meant() -> None:
    text = "a.rst\n<<<<<<< SEARCH\nTitle 1\n=======\n=======\nTitle 2\n=======\n>>>>>>> REPLACE\n"
    assert result(text, {"a.rst": b"Title 1\n=======\n\ntext\n"}) == {
        "a.rst": b"Title 2\n=======\n\ntext\n"
    }
    assert (
        result(text, {"a.rst": b"Title 1\n\ntext\n"})["a.rst"]
        == b"=======\nTitle 2\n=======\n\ntext\n"
    )


def test_a_removed_line_may_look_like_the_header_of_a_file() -> None:
    text = "--- a/a.sql\n+++ b/a.sql\n@@ -1,3 +1,3 @@\n x\n--- old\n+++ new\n y\n"
    assert result(text, {"a.sql": b"x\n-- old\ny\n"}) == {"a.sql": b"x\n++ new\ny\n"}


def test_such_a_line_may_be_the_last_of_its_hunk() -> None:
    text = "--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n x\n--- old\n+++ new\n@@ -4 +4 @@\n-y\n+z\n"
    assert result(text, {"a": b"x\n-- old\n\ny\n"}) == {"a": b"x\n++ new\n\nz\n"}


@pytest.mark.parametrize("counts", ["-2,3 +2,3", "-2,9 +2,9", "-2,1 +2,1"])
def test_two_files_in_a_plain_diff_are_told_apart(counts: str) -> None:
    text = DIFF.replace("-2,3 +2,3", counts) + DIFF.replace("a.txt", "b.txt")
    files = {"a.txt": FILE, "b.txt": FILE}
    assert result(text, files) == {"a.txt": WANTED, "b.txt": WANTED}


def test_what_is_written_below_a_diff_is_no_part_of_it() -> None:
    text = f"{DIFF}\nThis changes the third line.\n"
    assert result(text, {"a.txt": FILE}) == {"a.txt": WANTED}


@pytest.mark.req("R139")
@pytest.mark.parametrize("half", ["\\ud800", "\\udce9"])
@pytest.mark.parametrize(
    "said",
    ['"create": "?"', '"whole": "?"', '"header": "?"', '"hunks": [{"old": "a", "new": "?"}]'],
)
def test_half_a_character_in_json_is_refused(said: str, half: str) -> None:
    with pytest.raises(EditError, match="has half a character") as caught:
        read_edit(f'[{{"path": "n", {said}}}]'.replace("?", half))
    assert half in str(caught.value)


@pytest.mark.req("R139")
@pytest.mark.parametrize(
    "text",
    [
        "--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+?\n",
        "*** Begin Patch\n*** Add File: n\n+?\n*** End Patch\n",
        "n.txt\n```\n?\n```\n",
        "n.txt\n<<<<<<< SEARCH\n=======\n?\n>>>>>>> REPLACE\n",
    ],
)
def test_half_a_character_is_refused_unless_it_stands_for_a_byte(text: str) -> None:
    with pytest.raises(EditError, match="the edit has half a character"):
        read_edit(text.replace("?", "\ud800"))
    (wanted,) = read_edit(text.replace("?", "\udce9"))
    assert wanted.content == b"\xe9\n"
