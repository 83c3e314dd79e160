"""edit: made whole, previewed, refused with help, kept, taken back; in any format, from a file or stdin."""

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.project import Answer, Project
from tests.edits.test_tree import manifest

ONE = "def one():\n    return 1\n\n\ndef two():\n    return 2\n"
BLOCK = """src/a.py
<<<<<<< SEARCH
    return 1
=======
    return 11
>>>>>>> REPLACE
"""
UNIFIED = """--- a/src/a.py
+++ b/src/a.py
@@ -1,2 +1,2 @@
 def one():
-    return 1
+    return 11
"""
V4A = """*** Begin Patch
*** Update File: src/a.py
@@ def one():
-    return 1
+    return 11
*** End Patch
"""
JSON = json.dumps(
    {
        "edits": [
            {"path": "src/a.py", "hunks": [{"old": "    return 1\n", "new": "    return 11\n"}]}
        ]
    }
)
WHOLE = f"src/a.py\n```python\n{ONE.replace('return 1', 'return 11')}```\n"
FORMS = {"search-replace": BLOCK, "unified": UNIFIED, "v4a": V4A, "json": JSON, "whole": WHOLE}
AFTER = ONE.replace("return 1\n", "return 11\n")


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.fixture
def ws(project: Project) -> Project:
    project.write("src/a.py", ONE)
    project.write("run.sh", "#!/bin/sh\n", executable=True)
    project.write("empty", "")
    return project


def edit(ws: Project, text: str, *words: str, action: str = "apply") -> Answer:
    return ws.call("edit", action, "-", *words, stdin=text.encode())


def told(answer: Answer) -> Any:
    assert answer.json["schema"] == "holdfast.edit/1"
    return answer.json


def files(ws: Project) -> dict[str, tuple[int, bytes]]:
    return {
        str(path.relative_to(ws.root)): (path.stat().st_mode & 0o777, path.read_bytes())
        for path in ws.root.rglob("*")
        if path.is_file() and ".holdfast" not in path.parts
    }


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.req("R139")
def test_every_format_makes_the_same_edit_and_is_taken_back(ws: Project, form: str) -> None:
    before = files(ws)
    preview = edit(ws, FORMS[form], action="preview")
    assert preview.code == 0, preview.err
    assert "-    return 1\n+    return 11\n" in preview.out
    assert files(ws) == before
    assert not ws.has(".holdfast"), "a preview makes nothing"
    answer = edit(ws, FORMS[form], "--json")
    assert answer.code == 0, answer.err
    body = told(answer)
    assert body["id"].startswith("e-000001-")
    [file] = body["files"]
    assert (file["path"], file["before"], file["after"]) == ("src/a.py", digest(ONE), digest(AFTER))
    assert (file["added"], file["removed"], file["diff"]) == (1, 1, preview.out)
    assert ws.read("src/a.py") == AFTER
    back = ws.ok("edit", "rollback", "last")
    assert back.out == f"rolled back {body['id']}: 1 file\n  put back  src/a.py\n"
    assert files(ws) == before


@pytest.mark.req("R139", "R140", "E19")
def test_files_are_created_moved_headed_and_deleted_and_all_of_it_is_undone(ws: Project) -> None:
    before = files(ws)
    wanted = [
        {"path": "src/new/b.py", "create": "b = 1\n", "mode": "755"},
        {"path": "run.sh", "move": "bin/go.sh"},
        {"path": "empty", "delete": True},
        {"path": "src/a.py", "header": "# licence\n"},
    ]
    ws.write("wanted.json", json.dumps(wanted))
    answer = ws.ok("edit", "apply", "wanted.json")
    (ws.root / "wanted.json").unlink()
    assert answer.out.startswith("applied e-000001-")
    assert "  A src/new/b.py  +1 -0 (created)\n" in answer.out
    assert "  D empty  +0 -0 (deleted)\n" in answer.out
    assert answer.out.splitlines()[-1].startswith("next: holdfast edit rollback e-000001-")
    after = files(ws)
    assert after["bin/go.sh"] == (0o755, b"#!/bin/sh\n"), "a move keeps the mode"
    assert after["src/new/b.py"] == (0o755, b"b = 1\n")
    assert after["src/a.py"][1] == b"# licence\n" + ONE.encode()
    assert not {"run.sh", "empty"} & after.keys()
    ws.ok("edit", "rollback", answer.out.split()[1].rstrip(":"))
    assert files(ws) == before
    assert not ws.has("bin")
    assert not ws.has("src/new")


@pytest.mark.req("R141")
def test_what_cannot_be_placed_is_refused_with_help_and_nothing_is_written(ws: Project) -> None:
    wrong = BLOCK.replace("    return 1\n=", "    return\n=")
    answer = edit(ws, wrong + BLOCK.replace("src/a.py", "src/none.py"), "--json")
    assert answer.code == 1
    assert [one["path"] for one in told(answer)["refusals"]] == ["src/a.py", "src/none.py"]
    assert told(answer)["id"] is None
    assert all(one["message"] for one in told(answer)["refusals"])
    assert "nothing was written" in answer.err
    assert ws.read("src/a.py") == ONE


@pytest.mark.req("R141")
def test_the_same_edit_again_is_refused_by_what_was_said_until_a_file_changes(ws: Project) -> None:
    wrong = BLOCK.replace("return 1\n=", "return 3\n=")
    first = told(edit(ws, wrong, "--json"))["refusals"]
    second = told(edit(ws, wrong, "--json"))["refusals"]
    third = told(edit(ws, wrong, "--json"))["refusals"]
    assert second[0]["why"] == third[0]["why"] == "repeated"
    assert "refused once before" in second[0]["message"]
    assert "refused 2 times before" in third[0]["message"]
    assert second[1:] == third[1:] == first, "with the earlier guidance"
    assert told(edit(ws, wrong, "--json", "--max-files", "7"))["refusals"] == first
    ws.write("src/a.py", ONE.replace("return 1", "return 3"))
    assert edit(ws, wrong).code == 0


@pytest.mark.req("R141", "C35")
def test_what_the_author_saw_is_compared_with_what_is_there(ws: Project) -> None:
    ws.write("src/a.py", ONE + "\n# by somebody else\n")
    base = f"src/a.py={digest(ONE)}"
    strict = edit(ws, BLOCK, "--base", base, "--if-unchanged", "--json")
    assert strict.code == 1
    [refusal] = told(strict)["refusals"]
    assert refusal["why"] == "stale"
    assert digest(ws.read("src/a.py")) in refusal["guidance"]
    whole = edit(ws, WHOLE, "--base", base, "--json")
    assert [one["why"] for one in told(whole)["refusals"]] == ["stale"], "it would undo theirs"
    ws.write("seen.json", json.dumps({"src/a.py": {"text": ONE}}))
    shown = edit(ws, WHOLE, "--seen", "seen.json", "--if-unchanged", "--json")
    assert "+# by somebody else\n" in told(shown)["refusals"][0]["guidance"], "a diff"
    merged = edit(ws, WHOLE, "--seen", "seen.json", "--json")
    assert merged.code == 0, merged.err
    assert told(merged)["files"][0]["levels"] == ["merged"]
    assert told(merged)["warnings"] == ["'src/a.py' was changed since its author saw it"]
    assert ws.read("src/a.py") == AFTER + "\n# by somebody else\n"


def test_a_content_that_an_earlier_edit_left_is_known_by_its_digest(ws: Project) -> None:
    assert edit(ws, BLOCK).code == 0
    ws.write("src/a.py", AFTER + "\n# by somebody else\n")
    text = WHOLE.replace("return 11", "return 12")
    answer = edit(ws, text, "--base", f"src/a.py={digest(AFTER)}", "--json")
    assert answer.code == 0, answer.err
    assert ws.read("src/a.py") == ONE.replace("return 1", "return 12") + "\n# by somebody else\n"


@pytest.mark.req("R145", "C35")
def test_scope_limits_and_protected_names_refuse_with_their_reason(ws: Project) -> None:
    new = "{0}\n```\nnew\n```\n".format

    def whys(text: str, *words: str) -> list[str]:
        answer = edit(ws, text, *words, "--json")
        assert answer.code == 1, answer.out
        return [one["why"] for one in told(answer)["refusals"]]

    assert whys(BLOCK, "--scope", "docs/**", "--scope", "*.py") == ["out_of_scope"]
    both = json.dumps([{"path": "x", "create": "1\n2\n3\n"}, {"path": "y", "create": "1\n"}])
    assert whys(both, "--max-files", "1") == ["too_large"]
    assert whys(both, "--max-lines", "3") == ["too_large"]
    assert whys(new(".github/workflows/ci.yml")) == ["protected"]
    assert whys(new("tests/conftest.py"), "--code-only") == ["protected"]
    assert whys(new("secret.key"), "--protect", "*.key") == ["protected"]
    ws.write("holdfast.toml", '[edits]\nprotected = ["*.lock"]\n')
    assert whys(new("sub/UV.LOCK")) == ["protected"]
    assert edit(ws, BLOCK, "--scope", "src/**").code == 0
    assert edit(ws, new(".gitignore"), "--unprotect", ".gitignore").code == 0
    ws.write("holdfast.toml", "[edits]\nunprotected = ['.env']\n")
    assert "unknown key 'edits.unprotected'" in ws.refused(2, "edit", "preview", "seen.json")


@pytest.mark.req("D37")
@pytest.mark.parametrize(
    "path",
    [
        *(".git/hooks/pre-commit", ".mcp.json", "holdfast.toml", ".holdfast/config.toml", ".env"),
        *(
            ".claude/settings.json",
            ".GITHUB/workflows/x.yml",
            "sub/.git/config",
            ".git\u200d/config",
        ),
    ],
    ids=ascii,
)
def test_what_an_obedient_model_would_write_is_denied_and_said(ws: Project, path: str) -> None:
    before = manifest(ws.root)
    body = json.dumps([{"path": path, "create": "auto_approve: true\n"}])
    for words in ((), ("--scope", "**"), ("--scope", path), ("--unprotect", ".git")):
        answer = edit(ws, body, *words, "--json")
        assert answer.code == 1
        assert [one["why"] for one in told(answer)["refusals"]] in (
            ["protected"],
            ["repeated", "protected"],
        )
        assert "error[protected]" in answer.err
    moved = json.dumps([{"path": "src/a.py", "move": path}])
    assert [one["why"] for one in told(edit(ws, moved, "--json"))["refusals"]] == ["protected"]
    after = manifest(ws.root)
    assert {name: one for name, one in after.items() if not name.startswith(".holdfast")} == before


ROOT_OF_SELF = ("", "proc", "self", "root", "MARK")
CORPUS = [
    *("../x", "a/../../x", "/MARK", "../ws-evil/x", "/".join(ROOT_OF_SELF), "/dev/fd/3", ".", ""),
    *("src/", "src/a.py ", "a\0b", "a" * 5000, "%2e%2e/x", "..\\x", ".GIT/config"),
    *(".git/hooks/pre-commit", ".ｇit/config", "/artifact/../../etc/passwd", "a//b", "a/./b"),  # noqa: RUF001 - a full-width letter, on purpose
    *("link", "dirlink/f", "dangling", "hard", "fifo", "device", "src/new/.."),
]


@pytest.mark.req("D22", "I8")
@pytest.mark.parametrize("operation", ["create", "delete", "move"])
def test_no_path_leads_out_and_each_has_its_own_error(ws: Project, operation: str) -> None:
    for name in ("outside", "ws-evil"):
        (ws.folder / name).mkdir()
        (ws.folder / name / "x").write_text("outside")
    outside = ws.folder / "outside/x"
    (ws.root / "link").symlink_to(outside)
    (ws.root / "dirlink").symlink_to(ws.folder / "outside")
    (ws.root / "dangling").symlink_to(ws.folder / "outside/none")
    (ws.root / "hard").hardlink_to(outside)
    os.mkfifo(ws.root / "fifo")
    if os.geteuid() == 0:
        os.mknod(ws.root / "device", 0o20666, os.makedev(1, 3))
    else:
        (ws.root / "device").symlink_to("/dev/null")
    before = manifest(ws.root)
    away = manifest(ws.folder / "outside") | manifest(ws.folder / "ws-evil")
    for path in CORPUS:
        entry: dict[str, object] = {"path": path, "mode": "644"}
        if operation == "move":
            entry = {"path": "src/a.py", "move": path}
        else:
            entry[operation] = True if operation == "delete" else "evil\n"
        answer = edit(ws, json.dumps([entry]), "--json", "--state", str(ws.folder / "state"))
        assert answer.code == 1, (path, answer.out)
        refusals = told(answer)["refusals"]
        assert refusals, path
        assert {one["why"] for one in refusals} <= {
            "out_of_scope",
            "protected",
            "special",
            "malformed",
        }
        assert "Traceback" not in answer.err
        assert manifest(ws.root) == before, path
    assert manifest(ws.folder / "outside") | manifest(ws.folder / "ws-evil") == away


@pytest.mark.req("D22")
def test_names_that_are_one_elsewhere_are_not_both_made(ws: Project) -> None:
    for one, other in (("caf\u00e9", "cafe\u0301"), ("ﬁle", "file"), ("Name", "name")):
        entries = [{"path": one, "create": "1\n"}, {"path": other, "create": "2\n"}]
        answer = edit(ws, json.dumps(entries), "--json")
        assert [refusal["why"] for refusal in told(answer)["refusals"]] == ["overlapping"]


@pytest.mark.req("R139", "R141")
def test_a_rollback_of_files_that_somebody_changed_names_them(ws: Project) -> None:
    key = told(edit(ws, BLOCK, "--json"))["id"]
    ws.write("src/a.py", "mine\n")
    err = ws.refused(1, "edit", "rollback", "last")
    assert f'the edit "{key}" cannot be taken back: changed since: "src/a.py"' in err
    assert ws.read("src/a.py") == "mine\n"
    ws.write("src/a.py", AFTER)
    ws.ok("edit", "rollback", key)
    listed = told(ws.ok("edit", "list", "--json"))["edits"]
    assert [(one["id"], one["state"]) for one in listed] == [(key, "rolled back")]
    assert "no edit to roll back" in ws.refused(2, "edit", "rollback", "last")


@pytest.mark.parametrize("words", [("rollback", "last"), ("rollback", "e-1"), ("forget", "e-1")])
def test_where_no_edit_is_kept_nothing_is_made(ws: Project, words: tuple[str, str]) -> None:
    before = sorted(ws.folder.rglob("*"))
    assert "hint: holdfast edit list" in ws.refused(2, "edit", *words)
    assert sorted(ws.folder.rglob("*")) == before


def test_a_dry_run_is_a_preview_and_another_place_can_be_named(ws: Project) -> None:
    shown = edit(ws, BLOCK, "--dry-run")
    assert shown == edit(ws, BLOCK, action="preview")
    assert shown.err == "would change 1 file, +1 -1\n"
    (ws.root / "edit.txt").write_text(BLOCK)
    where = ("--root", str(ws.root), "--state", str(ws.folder / "kept"))
    file = str(ws.root / "edit.txt")
    done = ws.call("edit", "apply", file, *where, cwd=ws.folder)
    assert done.code == 0, done.err
    assert not ws.has(".holdfast")
    assert "rollback e-000001-" in done.out
    assert ws.call("edit", "rollback", "last", *where, cwd=ws.folder).code == 0
    assert ws.read("src/a.py") == ONE


def test_what_git_shows_of_a_preview_is_what_is_applied(
    ws: Project, require_part: Callable[[str], str]
) -> None:
    patch = edit(ws, BLOCK, action="preview").out
    git = require_part("git")
    subprocess.run([git, "apply", "-"], input=patch.encode(), cwd=ws.root, check=True)
    assert ws.read("src/a.py") == AFTER


def test_syntax_errors_are_a_warning_or_a_refusal(ws: Project) -> None:
    pytest.importorskip("tree_sitter_python")
    broken = BLOCK.replace("return 11", "return (")
    warned = edit(ws, broken, "--dry-run")
    assert warned.code == 0
    assert "warning: 'src/a.py' would have" in warned.err
    refused = edit(ws, broken, "--syntax", "refuse", "--json")
    assert [one["why"] for one in told(refused)["refusals"]] == ["syntax"]
    assert edit(ws, broken, "--syntax", "off", "--dry-run").err == "would change 1 file, +1 -1\n"


WRONG = [
    ("edit", "apply", "none.diff"),
    ("edit", "apply", "--root", "none"),
    ("edit", "apply", "-", "--base", "a=b"),
    ("edit", "apply", "-", "--seen", "none.json"),
    ("edit", "apply", "-", "--seen", "run.sh"),
    ("edit", "apply", "-", "--format", "ed"),
    ("edit", "apply", "-", "--max-files", "0"),
    ("edit", "rollback"),
    ("edit", "rollback", ""),
    ("edit", "rollback", "../x"),
    ("edit", "undo"),
    ("edit", "forget"),
    ("edit", "forget", "e-1", "--keep", "1"),
    ("edit", "forget", "e-1"),
]


def test_wrong_usage_is_said_and_changes_nothing(ws: Project) -> None:
    before = files(ws)
    for words in WRONG:
        assert "error[usage]" in ws.refused(2, *words), words
    assert files(ws) == before
    answer = edit(ws, "hello", "--json")
    assert [one["why"] for one in told(answer)["refusals"]] == ["malformed"]


def test_an_edit_that_is_no_text_is_refused(ws: Project) -> None:
    for given in (b"\xff\xfe\0\0", b"", b"\0" * 100):
        answer = ws.call("edit", "apply", "-", "--json", stdin=given)
        assert answer.code == 1
        assert told(answer)["refusals"][0]["why"] == "malformed"


@pytest.mark.req("R139")
def test_two_commands_at_once_take_turns(ws: Project) -> None:
    texts = [json.dumps([{"path": f"f{number}", "create": f"{number}\n"}]) for number in range(6)]
    started = []
    for number, text in enumerate(texts):
        Path(ws.folder / f"{number}.json").write_text(text)
        started.append(ws.start("edit", "apply", f"../{number}.json"))
    assert [process.wait(60) for process in started] == [0] * 6
    edits = told(ws.ok("edit", "list", "--json"))["edits"]
    assert sorted(edit["id"][:9] for edit in edits) == [f"e-00000{n}-" for n in range(1, 7)]
    for _ in texts:
        ws.ok("edit", "rollback", "last")
    assert not [name for name in os.listdir(ws.root) if name.startswith("f")]


def test_what_is_kept_can_be_forgotten_and_numbers_go_on(ws: Project) -> None:
    for number in range(3):
        entry = {"path": f"f{number}", "create": "x\n"}
        assert edit(ws, json.dumps([entry])).code == 0
    ids = [one["id"] for one in told(ws.ok("edit", "list", "--json"))["edits"]]
    assert told(ws.ok("edit", "forget", ids[1][:8], "--json"))["forgotten"] == [ids[1]]
    assert ws.ok("edit", "forget", "--keep", "1").out == "forgot 1 edit\n"
    assert [one["id"] for one in told(ws.ok("edit", "list", "--json"))["edits"]] == ids[:1]
    assert ws.has("f1")
    last = told(edit(ws, BLOCK, "--json"))["id"]
    assert last.startswith("e-000004-")
    [own] = (ws.store / "edits").iterdir()
    assert sorted(os.listdir(own / "journals")) == sorted([ids[0], last])


def test_a_damaged_edit_is_named_and_forgotten_and_in_nobodys_way(ws: Project) -> None:
    for name in ("f1", "f2"):
        assert edit(ws, json.dumps([{"path": name, "create": "x\n"}])).code == 0
    [journals] = (ws.store / "edits").glob("*/journals")
    first, second = sorted(os.listdir(journals))
    (journals / second / "kept.json").write_text("garbage")
    states = [one["state"] for one in told(ws.ok("edit", "list", "--json"))["edits"]]
    assert states == ["damaged", "applied"]
    assert "damaged" in ws.ok("edit", "list").out.splitlines()[0]
    last = ws.call("edit", "rollback", "last")
    assert (last.code, last.err) == (
        2,
        f"error[usage]: the edit '{second}' is damaged\nhint: holdfast edit forget {second}\n",
    )
    ws.ok("edit", "rollback", first)
    assert edit(ws, BLOCK).code == 0
    assert ws.ok("edit", "forget", second).out == "forgot 1 edit\n"
    ws.ok("edit", "rollback", "last")
    assert ws.read("src/a.py") == ONE


@pytest.mark.parametrize("image", ["1.old", "0.new"])
def test_an_edit_whose_copies_are_damaged_is_not_taken_back_by_half(
    ws: Project, image: str
) -> None:
    entries = [{"path": "src/a.py", "whole": "a\n"}, {"path": "run.sh", "whole": "b\n"}]
    assert edit(ws, json.dumps(entries)).code == 0
    [place] = (ws.store / "edits").glob("*/journals/*")
    (place / image).write_text("garbage")
    answer = ws.call("edit", "rollback", "last")
    assert answer.code == 9
    assert answer.err.endswith(f"hint: nothing was changed; holdfast edit forget {place.name}\n")
    assert (ws.read("src/a.py"), ws.read("run.sh")) == ("a\n", "b\n")
    ws.ok("edit", "forget", place.name)
    assert edit(ws, json.dumps([{"path": "run.sh", "whole": "c\n"}])).code == 0


def test_an_edit_cut_short_whose_record_is_damaged_says_where_its_files_are(ws: Project) -> None:
    assert edit(ws, BLOCK).code == 0
    [place] = (ws.store / "edits").glob("*/journals/*")
    os.unlink(place / "kept.json")
    (place / "journal.json").write_text("garbage")
    answer = ws.call("edit", "list")
    assert answer.code == 9
    assert str(place) in answer.err
    assert "*.old" in answer.err
    shutil.rmtree(place)
    ws.ok("edit", "list")


def test_endless_json_and_thousands_of_refusals_are_told_in_a_few_lines(ws: Project) -> None:
    deep = edit(ws, '{"edits": ' + "[" * 100_000)
    assert (deep.code, deep.err.splitlines()[0]) == (
        1,
        "error[malformed]: the edit is no edit: its JSON is nested too deep",
    )
    ws.write("seen.json", "[" * 100_000)
    assert "nested too deep" in ws.refused(2, "edit", "preview", "seen.json", "--seen", "seen.json")
    ws.write("seen.json", json.dumps({"src/a.py": {"text": "\ud800"}}))
    assert "nothing usable" in ws.refused(2, "edit", "preview", "seen.json", "--seen", "seen.json")
    many = "".join(BLOCK.replace("return 1", f"return {n}") for n in range(100, 150))
    answer = edit(ws, many)
    assert answer.err.count("error[not_found]") == 20
    assert answer.err.endswith("and 30 more, which --json tells\nnothing was written\n")
    assert len(told(edit(ws, many, "--json"))["refusals"]) == 51, "and that it is a repetition"


@pytest.mark.req("D22", "D37", "I8")
@pytest.mark.parametrize("marker", ["journal.json", "undoing.json", "kept.json"])
def test_journals_that_a_clone_brings_are_never_obeyed(ws: Project, marker: str) -> None:
    theirs = {"HOME": str(ws.folder / "theirs")}
    entries = [{"path": "src/a.py", "whole": AFTER}, {"path": "empty", "delete": True}]
    made = ws.call("edit", "apply", "-", "--json", env=theirs, stdin=json.dumps(entries).encode())
    [state] = (ws.store / "edits").iterdir()
    (state / ".gitignore").unlink()
    (state / "journals" / told(made)["id"] / "kept.json").rename(
        state / "journals" / told(made)["id"] / marker
    )
    shutil.copytree(state / "journals", ws.store / "edits/journals")
    (ws.store / "edits/journals/e-000009-abcdefab").mkdir()
    (ws.store / "edits/journals/e-000009-abcdefab/0.old").write_text("litter")
    git = ("git", "-c", "user.name=x", "-c", "user.email=x@example.org")
    for words in (("init", "-q"), ("add", "-Af"), ("commit", "-qm", "one")):
        subprocess.run([*git, *words], cwd=ws.root, check=True)
    clone = ws.folder / "clone"
    private = "umask 077 && git clone -q project clone"
    subprocess.run(["sh", "-c", private], cwd=ws.folder, check=True)
    before = manifest(clone)
    listed = ws.call("edit", "list", cwd=clone)
    assert (listed.code, listed.out) == (0, "no edit is kept here\n")
    assert ("cut short, and that you did not make here" in listed.err) == (marker != "kept.json")
    assert manifest(clone) == before
    note = b"note.txt\n```\nhello\n```\n"
    applied = ws.call("edit", "apply", "-", "--scope", "note.txt", cwd=clone, stdin=note)
    assert applied.code == 0, applied.err
    assert ws.call("edit", "rollback", "last", cwd=clone).code == 0
    assert ws.call("edit", "rollback", "last", cwd=clone).code == 2
    after = manifest(clone)
    changed = {path for path in before if after.get(path) != before[path]}
    assert changed <= {".holdfast/edits"}, "a new directory lies beside theirs"
    assert all(path.startswith(".holdfast/edits/") for path in after.keys() - before)


@pytest.mark.parametrize(
    "name", ["a\u200bb.py", "\u202e.py", "x\u2028y", "\ufeffx.py", "d\u2060/x"]
)
def test_no_file_is_created_under_a_name_that_cannot_be_seen(ws: Project, name: str) -> None:
    made = json.dumps([{"path": name, "create": "1\n"}])
    answer = edit(ws, made, "--json")
    assert answer.code == 1, answer.out
    (refusal,) = told(answer)["refusals"]
    assert refusal["why"] == "protected"
    assert "has letters that nobody sees" in refusal["message"]
    assert not ws.has(name)
    ws.write(name, "1\n")
    assert edit(ws, json.dumps([{"path": name, "whole": "2\n"}])).code == 0
    assert ws.read(name) == "2\n"
