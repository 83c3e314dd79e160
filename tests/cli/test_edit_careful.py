"""edit: what is cut off, unclear or mistaken for something else is refused; what is not named stays."""

import json
import subprocess

import pytest

from tests.cli.project import Project
from tests.cli.test_edit import digest, edit, files, told


@pytest.fixture
def ws(project: Project) -> Project:
    project.write("f.txt", "one\ntwo\nthree\n")
    return project


def refused(ws: Project, text: str, why: str, *words: str) -> str:
    """The one refusal of an edit, as message and guidance; nothing was written."""
    before = files(ws)
    answer = edit(ws, text, "--json", *words)
    assert answer.code == 1, answer.out
    assert files(ws) == before
    [refusal] = told(answer)["refusals"]
    assert refusal["why"] == why
    return f"{refusal['message']}; {refusal['guidance']}"


HEAD = "--- a/f.txt\n+++ b/f.txt\n"


@pytest.mark.req("R139")
@pytest.mark.parametrize(
    "text",
    [
        "*** Begin Patch\n*** Update File: f.txt\n@@\n-two\n+TWO\n*** Add File: n.txt\n+li",
        HEAD + "@@ -1,3 +1,3 @@\n one\n-two\n",
        HEAD + "@@ -1 +1 @@\n-one\n",
        HEAD + "@@ -1 +1 @@\n-one\n+ONE\n@@ -3,1 +3,2 @@\n three\n",
    ],
)
def test_an_edit_that_is_cut_off_is_refused(ws: Project, text: str) -> None:
    assert "cut off" in refused(ws, text, "malformed")


@pytest.mark.req("R139")
@pytest.mark.parametrize(
    "text",
    [
        "*** Update File: f.txt\n@@\n-two\n+TWO\n",
        HEAD + "@@ -1,9 +1,1 @@\n one\n-two\n+TWO\n",
        f"```diff\n{HEAD}@@ -1,9 +1,9 @@\n one\n-two\n+TWO\n```\n",
    ],
)
def test_counts_may_be_wrong_where_nothing_is_missing(ws: Project, text: str) -> None:
    assert edit(ws, text).code == 0
    assert ws.read("f.txt") == "one\nTWO\nthree\n"


WHOLE_README = "README.md\n```markdown\n# P\n{0}\nx\n```\n## Use\n\nlong text\n```\n"


@pytest.mark.req("R139")
@pytest.mark.parametrize(
    "text",
    [
        WHOLE_README.format("```"),
        WHOLE_README.format("```sh"),
        "README.md\n```\n# P\n```sh\nls\n```\n```\n",
        "README.md\n```\n# P\n```sh\nls\n```\nmain.py\n```\nx = 1\n```\n",
        "README.md\n```\n# P\n```\n\n```\nls\n```\n```\n",
    ],
)
def test_a_fence_inside_of_a_file_is_refused_unless_the_outer_is_longer(
    ws: Project, text: str
) -> None:
    ws.write("README.md", "# P\n\nold\n")
    assert "longer ones" in refused(ws, text, "malformed")
    whole = "# P\n```\nx\n```\n\n```sh\ny\n```\n"
    assert edit(ws, f"README.md\n````markdown\n{whole}````\n").code == 0
    assert ws.read("README.md") == whole


@pytest.mark.req("R139")
@pytest.mark.parametrize(
    "prose",
    [
        *("And run it:", "Run the tests", "Here is the output:", "1. Install", "Output:"),
        *("## Use", "**Run it:**", "Now see src/b.py:", "`f.txt` and then", "`make test`"),
    ],
)
def test_prose_above_a_fence_or_a_block_is_no_path(ws: Project, prose: str) -> None:
    fence = f"{prose}\n```\nls\n```\n"
    refused(ws, fence, "malformed")
    refused(ws, f"Sure:\n\n`f.txt`\n```\nfour\n```\n{fence}", "malformed")
    refused(ws, f"`f.txt`\n\n{fence}", "malformed")
    refused(ws, f"{prose}\n<<<<<<< SEARCH\n=======\nnew\n>>>>>>> REPLACE\n", "malformed")


@pytest.mark.req("R139")
@pytest.mark.parametrize(
    "line",
    [
        *("a.py", "**a.py**", "### a.py:", "`a.py`:", "**`a.py`**", "src/x", "`Makefile`"),
        *("`my notes.md`", '"my notes.md"', "there it is", "# there it is:", "word", ".x"),
    ],
)
def test_a_path_is_known_by_its_look_or_by_its_file(ws: Project, line: str) -> None:
    ws.write("there it is", "old\n")
    ws.write("word", "old\n")
    answer = edit(ws, f"Sure:\n\n{line}\n```\nnew\n```\n", "--json")
    assert answer.code == 0, answer.err
    [file] = told(answer)["files"]
    assert file["path"] == line.strip('#*`": ')


@pytest.mark.req("R139")
def test_empty_lines_of_a_new_file_in_v4a_stay(ws: Project) -> None:
    lines = "+import os\n\n\n+def f():\n+    pass\n"
    for below in ("", "\n", "*** End of File\n"):
        text = f"*** Begin Patch\n*** Add File: x.py\n{lines}{below}*** End Patch\n"
        assert edit(ws, text).code == 0
        assert ws.read("x.py") == "import os\n\n\ndef f():\n    pass\n"
        ws.ok("edit", "rollback", "last")


@pytest.mark.req("R139")
def test_a_base_that_guards_nothing_is_refused(ws: Project) -> None:
    ws.write("other.txt", "there, too\n")
    whole = "f.txt\n```\nnew\n```\n"
    for path in ("F.txt", "other.txt", "./f.txt"):
        told = refused(ws, whole, "malformed", "--if-unchanged", "--base", f"{path}={'0' * 64}")
        assert (
            told
            == f"'{path}' is what the author saw, and the edit does not touch it; it touches: f.txt"
        )
    new = json.dumps([{"path": "new.txt", "create": "x\n"}])
    refused(ws, new, "missing", "--base", f"new.txt={'0' * 64}")
    ws.write("../seen.json", json.dumps({"other.txt": "0" * 64}))
    assert edit(ws, whole, "--seen", "../seen.json").code == 0
    base = f"f.txt={digest('new' + chr(10))}"
    assert edit(ws, whole.replace("new", "newer"), "--if-unchanged", "--base", base).code == 0


@pytest.mark.req("R139")
def test_a_refusal_always_names_its_file(ws: Project) -> None:
    ws.write("bin", "\0")
    said = "<<<<<<< SEARCH\nx\n=======\ny\n>>>>>>> REPLACE\n"
    assert "error[binary]: bin: is binary" in edit(ws, f"bin\n{said}").err
    assert "error[missing]: file: there is no such file" in edit(ws, f"file\n{said}").err


@pytest.mark.req("R139")
def test_a_move_counts_and_shows_only_the_lines_that_change(ws: Project) -> None:
    ws.write("big", "".join(f"{n}\n" for n in range(10_001)))
    wanted = [
        {"path": "big", "move": "sub/big 2"},
        {"path": "f.txt", "move": "g.txt", "hunks": [{"old": "two\n", "new": "2\n"}]},
    ]
    body = json.dumps(wanted)
    before = files(ws)
    shown = edit(ws, body, "--max-files", "2", action="preview")
    assert shown.code == 0, shown.err
    assert shown.out == (
        "diff --git a/big b/sub/big 2\nrename from big\nrename to sub/big 2\n"
        "diff --git a/f.txt b/g.txt\nrename from f.txt\nrename to g.txt\n"
        "index 4cb29ea38f70..f04eb265ebd7\n--- a/f.txt\n+++ b/g.txt\n"
        "@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"
    )
    assert "would change 2 files, +1 -1" in shown.err
    linked = {one["path"]: one for one in told(edit(ws, body, "--json", action="preview"))["files"]}
    assert linked["big"]["moved_to"] == "sub/big 2"
    assert linked["sub/big 2"]["moved_from"] == "big"
    assert [one["added"] + one["removed"] for one in linked.values()] == [0, 0, 0, 2]
    done = edit(ws, body)
    assert "  R big -> sub/big 2  +0 -0\n  R f.txt -> g.txt  +1 -1 (exact)\n" in done.out
    after = files(ws)
    ws.ok("edit", "rollback", "last")
    assert files(ws) == before
    assert edit(ws, shown.out).code == 0, "a preview is an edit"
    assert files(ws) == after


@pytest.mark.req("R139")
def test_a_whole_file_in_a_fence_keeps_a_missing_final_newline(ws: Project) -> None:
    whole = "n\n```\n{0}\n```\n"
    for before, lines, after in (
        ("x\ny", "x\nz", "x\nz"),
        ("x\ny", "x\ny\nz", "x\ny\nz"),
        ("x\ny\n", "x\nz", "x\nz\n"),
        ("", "x", "x\n"),
        ("x\r\ny", "x\nz\n", "x\r\nz\r\n"),
    ):
        ws.write("n", before)
        assert edit(ws, whole.format(lines)).code == 0
        assert (ws.root / "n").read_bytes() == after.encode(), (before, lines)
    ws.write("n", "x\ny")
    assert edit(ws, json.dumps([{"path": "n", "whole": "x\nz\n"}])).code == 0
    assert ws.read("n") == "x\nz\n", "JSON says how the file ends"


@pytest.mark.req("R139")
def test_what_a_file_of_bytes_cannot_take_is_named_with_what_helps(ws: Project) -> None:
    (ws.root / "l.txt").write_bytes(b"caf\xe9\nb\n")
    text = "l.txt\n<<<<<<< SEARCH\nb\n=======\n\u00e9\n>>>>>>> REPLACE\n"
    said = refused(ws, text, "undecodable")
    assert "it cannot take '\u00e9'" in said
    assert '"encoding": "latin-1"' in said
    hunks = [{"old": "b\n", "new": "\u00e9\n"}]
    body = json.dumps([{"path": "l.txt", "encoding": "latin-1", "hunks": hunks}])
    assert edit(ws, body).code == 0
    assert (ws.root / "l.txt").read_bytes() == b"caf\xe9\n\xe9\n"


@pytest.mark.req("R139")
def test_every_refusal_says_what_would_help(ws: Project) -> None:
    (ws.root / "link").symlink_to("f.txt")
    ws.write("h", "h\n")
    ws.write("i", "i\n")
    (ws.root / "hard").hardlink_to(ws.root / "i")
    (ws.root / "bin").write_bytes(b"\0")
    (ws.root / "wide").write_bytes("x\n".encode("utf-32"))
    (ws.root / "folder").mkdir()
    hunks = [{"old": "x\n", "new": "y\n"}]
    for name in ("link", "hard", "bin", "wide", "folder", "nowhere", "f.txt/x", "f.txt"):
        answer = edit(ws, json.dumps([{"path": name, "hunks": hunks}]), "--json")
        assert [one["path"] for one in told(answer)["refusals"] if one["guidance"]] == [name]
    for text in ("", "[3]", "{", "words", '{"edits": 3}', '[{"path": "x", "create": 3}]'):
        assert not refused(ws, text, "malformed").endswith("; "), text
    both = [{"path": "f.txt", "move": "x"}, {"path": "h", "move": "x"}]
    for body in (both, [{"path": "f.txt", "mode": "644", "header": ""}]):
        answer = edit(ws, json.dumps(body), "--json")
        assert all(one["guidance"] for one in told(answer)["refusals"])


ODD = (b"caf\xe9\r\nb\r\n", b"\xef\xbb\xbfa\r\nb", "a\nb\n".encode("utf-16"), b"b\n\x1b[31m\n")


@pytest.mark.req("R139")
@pytest.mark.parametrize("content", ODD)
@pytest.mark.parametrize("form", ["unified", "search-replace", "v4a"])
def test_what_a_preview_prints_can_be_applied_whatever_the_file_is(
    ws: Project, content: bytes, form: str
) -> None:
    (ws.root / "f.txt").write_bytes(content)
    said = "f.txt\n<<<<<<< SEARCH\nb\n=======\nB\n>>>>>>> REPLACE\n"
    wanted = content.replace(b"b", b"B")

    def previewed(*words: str) -> bytes:
        done = ws.ended("edit", "preview", "-", "--as", form, *words, stdin=said.encode())
        assert done.code == 0, done.err
        return done.out

    there, back = previewed(), previewed("--reverse")
    assert ws.call("edit", "apply", "-", stdin=there).code == 0
    assert (ws.root / "f.txt").read_bytes() == wanted
    assert ws.call("edit", "apply", "-", stdin=back).code == 0
    assert (ws.root / "f.txt").read_bytes() == content
    if form == "unified" and b"\0" not in content:
        subprocess.run(["git", "apply", "-"], input=there, cwd=ws.root, check=True)
        assert (ws.root / "f.txt").read_bytes() == wanted


def test_a_format_that_has_no_words_for_an_edit_says_so(ws: Project) -> None:
    mode = json.dumps([{"path": "f.txt", "mode": "755"}])
    answer = edit(ws, mode, "--as", "v4a", action="preview")
    assert answer.code == 2
    assert 'what becomes of "f.txt" cannot be said as v4a' in answer.err
    assert "another format: unified, search-replace" in answer.err
    assert edit(ws, mode, "--as", "v4a", "--json", action="preview").code == 2
    assert edit(ws, mode, "--reverse", action="preview").out == (
        "diff --git a/f.txt b/f.txt\nold mode 100755\nnew mode 100644\n"
    )


@pytest.mark.req("R139")
def test_two_patches_in_one_text_are_both_applied(ws: Project) -> None:
    patch = "*** Begin Patch\n*** Add File: {0}\n+{0}\n*** End Patch\n"
    answer = edit(ws, patch.format("one") + "\nAnd then:\n\n" + patch.format("two"))
    assert answer.code == 0, answer.err
    assert (ws.read("one"), ws.read("two")) == ("one\n", "two\n")


def test_a_name_with_a_line_feed_is_told_on_one_line(ws: Project) -> None:
    answer = edit(ws, json.dumps([{"path": "a\nb\tc", "delete": True}]))
    assert answer.err.splitlines()[0].startswith('error[out_of_scope]: path "a\\nb\\tc" has')
    assert len([line for line in answer.err.splitlines() if not line.startswith(" ")]) == 2


def test_forgetting_takes_names_or_a_number_and_not_both(ws: Project) -> None:
    assert "not both" in ws.refused(2, "edit", "forget", "e-000001", "--keep", "1")
    assert "or how many to keep" in ws.refused(2, "edit", "forget")
