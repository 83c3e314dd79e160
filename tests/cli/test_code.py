"""code: a code base through the command."""

import contextlib
import json
import os
import shlex
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.project import LIBRARY, Project
from tests.cli.test_hostile import harmless
from tests.codebase.repository import commit, git, repository, write


@pytest.fixture
def root(project: Project) -> Path:
    root = repository(project.root)
    write(root, "app/__init__.py", "")
    write(
        root,
        "app/session.py",
        "from app.store import Store\n\nclass Session:\n    def open(self): ...\n",
    )
    write(root, "app/store.py", "class Store:\n    def read(self): ...\n")
    write(root, "app/web.py", "from app.session import Session\n")
    write(root, "tests/test_session.py", "from app.session import Session\n")
    write(root, "README.md", "An example.\n")
    commit(root, "keep cookies of sessions")
    write(root, "app/store.py", "class Store:\n    def read(self): return 1\n")
    commit(root, "speed up the disk")
    return root


@pytest.mark.req("R138")
def test_index_says_what_it_holds_and_what_it_left_out(project: Project, root: Path) -> None:
    write(root, "logo.png", b"\x89\0")
    write(root, "broken.py", "def (:\n")
    first = project.ok("code", "index")
    assert first.out.splitlines()[0] == "8 files, 4 symbols; 8 read now"
    assert "logo.png: no text" in first.out
    assert "broken.py: 1 place" in first.out
    data = project.ok("code", "index", "--json").json
    assert (data["schema"], data["files"], data["parsed"]) == ("holdfast.code.index/1", 8, 0)
    assert data["languages"] == {"markdown": 1, "other": 1, "python": 6}
    assert data["left_out"] == [{"path": "logo.png", "why": "no text"}]
    assert git(root, "status", "--porcelain", "--untracked-files=all").split() == [
        "??",
        "broken.py",
        "??",
        "logo.png",
    ]


@pytest.mark.req("R137")
def test_search_prints_lines_files_or_counts(project: Project, root: Path) -> None:
    assert project.ok("code", "search", r"class \w+:").out.splitlines() == [
        "app/session.py:3:class Session:",
        "app/store.py:1:class Store:",
    ]
    assert project.ok("code", "search", "Session", "-l", "app").out.split() == [
        "app/session.py",
        "app/web.py",
    ]
    counted = project.ok("code", "search", "-w", "Session", "--count", "-g", "!tests/**")
    assert counted.out.split() == ["app/session.py:1", "app/web.py:1"]
    shown = project.ok("code", "search", "class Session", "-B", "1", "-A", "1")
    assert shown.out.splitlines() == [
        "app/session.py-2-",
        "app/session.py:3:class Session:",
        "app/session.py-4-    def open(self): ...",
    ]
    cut = project.ok("code", "search", "Session", "-n", "1")
    assert len(cut.out.splitlines()) == 1
    assert cut.err == "2 lines more: narrow by a path, -g GLOB or --type, or raise -n\n"
    data = project.ok("code", "search", "Session", "-n", "1", "--json").json
    assert (data["schema"], data["total"], len(data["lines"])) == ("holdfast.code.search/1", 3, 1)
    assert not (root / ".holdfast").exists()  # nobody needs an index to search


def test_a_search_for_nothing_ends_with_1_and_a_wrong_one_with_2(
    project: Project, root: Path
) -> None:
    assert project.call("code", "search", "nowhere to be found").code == 1
    assert "does not take the pattern: unclosed group" in project.refused(2, "code", "search", "(")
    assert "no pattern" in project.refused(2, "code", "search")
    write(root, "flags.txt", "use --force\n")
    for words in (["-e", "--force"], ["--", "--force"]):
        assert project.ok("code", "search", *words).out == "flags.txt:1:use --force\n"


@pytest.mark.req("R138")
def test_symbols_are_found_by_name_beginning_kind_and_file(project: Project, root: Path) -> None:
    assert project.ok("code", "symbols", "Session").out == (
        "app/session.py:3  class  class Session\n"
    )
    assert project.call("code", "symbols", "Session\udcff").code == 1
    methods = project.ok("code", "symbols", "--kind", "method", "--json").json
    assert [one["name"] for one in methods["symbols"]] == ["open", "read"]
    assert methods["symbols"][0]["scope"] == "Session"
    both = project.ok("code", "symbols", "s", "--prefix", "--file", "app/*")
    assert len(both.out.splitlines()) == 2
    assert project.ok("code", "symbols", "Store.read").out.startswith(
        "app/store.py:2  method in Store"
    )
    assert project.call("code", "symbols", "nobody").code == 1
    assert "no kind 'verb'" in project.refused(2, "code", "symbols", "--kind", "verb")


@pytest.mark.req("R138")
def test_impact_walks_to_tests_and_importers_each_with_its_reason(
    project: Project, root: Path
) -> None:
    assert project.ok("code", "impact", "app/session.py").out.splitlines() == [
        "1.00  app/session.py  named",
        "0.80  tests/test_session.py  tests app/session.py",
        "0.50  app/web.py  imports app/session.py",
    ]
    data = project.ok("code", "impact", "Store.read", "--json").json
    assert {one["path"]: one["score"] for one in data["files"]} == {
        "app/store.py": 1.0,
        "app/session.py": 0.5,
        "tests/test_session.py": 0.4,
        "app/web.py": 0.25,
    }
    near = project.ok("code", "impact", "app/session.py").out
    assert project.ok("code", "impact", str(root / "app/session.py")).out == near
    assert project.ok("code", "impact", str(root / "app/../app/session.py")).out == near
    assert "in 'app'" in project.ok("code", "impact", f"{root}/app").out
    assert "no file or symbol" in project.refused(2, "code", "impact", "/etc/passwd")
    text = project.ok("code", "impact", "--text", "cookies of the session").out
    assert "app/web.py" in text
    assert "no file or symbol 'nothing'" in project.refused(2, "code", "impact", "nothing")
    assert "say what changes" in project.refused(2, "code", "impact")


def test_relevant_hears_earlier_commits(project: Project, root: Path) -> None:
    found = project.ok("code", "relevant", "make the disk faster", "--json").json
    assert found["files"][0] == {
        "path": "app/store.py",
        "score": 1.0,
        "reasons": ["changed by commits with such words", "changed lately"],
    }
    assert "the text is empty" in project.refused(2, "code", "relevant", " ")
    for text in ('" OR * NEAR(', "path : x", "; DROP TABLE file"):
        assert project.call("code", "relevant", text).code in {0, 1}


def test_the_example_of_the_help_of_search_works(project: Project, root: Path) -> None:
    said = project.ok("code", "search", "--help").out
    lines = [line.strip() for line in said.splitlines()]
    examples = [line for line in lines if line.startswith("holdfast code search")]
    assert len(examples) == 3
    for line in examples:
        assert project.call(*shlex.split(line)[1:]).code in {0, 1}


def test_an_empty_directory_has_no_languages(project: Project) -> None:
    (project.root / "plan.yaml").unlink(missing_ok=True)
    said = project.ok("code", "index").out.splitlines()
    assert said[0] == "0 files, 0 symbols; 0 read now"
    assert "" not in said


def test_the_library_example_of_the_page_works_in_a_fresh_directory(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs/howto/code.md").read_text()
    example = page.partition("```python\nfrom holdfast.codebase")[2].partition("```")[0]
    write(tmp_path, "app/store.py", "class Store: ...\n")
    done = subprocess.run(
        [sys.executable, "-c", "from holdfast.codebase" + example],
        cwd=tmp_path,
        env={**os.environ, **LIBRARY},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "app/store.py" in done.stdout


@pytest.mark.req("R144")
def test_a_map_fits_its_budget_and_is_always_the_same(project: Project, root: Path) -> None:
    for tokens in (50, 80, 120, 1000):
        data = project.ok("code", "map", "--tokens", str(tokens), "--json").json
        assert data["tokens"] <= tokens
        assert (len(data["text"]) + 3) // 4 == data["tokens"]
    whole = project.ok("code", "map").out
    assert "app/session.py\n  3: class Session\n" in whole
    (root / ".holdfast/code.db").unlink()
    assert project.ok("code", "map").out == whole


def test_hostile_names_and_texts_reach_no_terminal(project: Project, root: Path) -> None:
    write(root, "app/\x1b[2J\u202e\nfake.py", "class Evil: pass # \x1b]0;gotcha\x07\r\n")
    commit(root, "hostile \x1b[31m class")
    for words in (
        ["search", "class"],
        ["search", "class", "-l"],
        ["symbols"],
        ["relevant", "hostile class evil"],
        ["impact", "Evil"],
        ["map"],
        ["index"],
    ):
        said = project.call("code", *words)
        harmless(said.out + said.err)
        assert not any(line.startswith("fake.py") for line in said.out.splitlines())
        parsed = project.call("code", *words, "--json")
        harmless(parsed.out)
        json.loads(parsed.out)


def test_without_the_grammars_it_works_by_text_and_says_so(project: Project, root: Path) -> None:
    hide = write(
        project.folder,
        "hide/sitecustomize.py",
        "import sys\n"
        "class Hide:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0].startswith('tree_sitter'):\n"
        "            raise ModuleNotFoundError(name=name)\n"
        "sys.meta_path.insert(0, Hide())\n",
    )
    process = project.start(
        "code", "relevant", "session cookies", "--json", env={"PYTHONPATH": str(hide.parent)}
    )
    out, err = process.communicate()
    assert process.returncode == 0
    assert "app/session.py" in {one["path"] for one in json.loads(out)["files"][:2]}
    assert b"python: not parsed" in err
    found = project.ok("code", "symbols", "Session")  # now they are installed
    assert found.out == "app/session.py:3  class  class Session\n"


def test_where_nothing_can_be_written_the_index_is_made_in_memory(
    project: Project, root: Path
) -> None:
    write(root, ".holdfast", "a file where a directory should be\n")
    said = project.ok("code", "symbols", "Session")
    assert said.out == "app/session.py:3  class  class Session\n"
    assert "it is made in memory" in said.err
    assert "there is no directory" in project.refused(
        2, "code", "symbols", "--index", "nowhere/x.db"
    )


def test_the_index_may_lie_elsewhere(project: Project, root: Path) -> None:
    place = os.path.join(project.folder, "elsewhere.db")
    project.ok("code", "symbols", "Session", "--index", place)
    assert os.path.exists(place)
    assert not (root / ".holdfast").exists()


@pytest.mark.parametrize("kind", ["text", "byte", "SQLite", "journal beside", "pipe", "link"])
@pytest.mark.parametrize("command", [("index",), ("symbols", "x")])
def test_a_file_that_is_no_index_is_never_overwritten(
    project: Project, root: Path, kind: str, command: tuple[str, ...]
) -> None:
    folder = project.folder / "mine"
    folder.mkdir()
    place, kept = folder / "notes", folder / "notes"
    match kind:
        case "text":
            kept.write_bytes(b"precious\n")
        case "byte":
            kept.write_bytes(b"x")
        case "SQLite":
            with contextlib.closing(sqlite3.connect(kept)) as database:
                database.execute("CREATE TABLE t (a)")
                database.commit()
        case "journal beside":
            kept = folder / "notes-journal"
            kept.write_bytes(b"precious\n")
        case "pipe":
            os.mkfifo(kept)
        case _:
            kept = folder / "real"
            kept.write_bytes(b"precious\n")
            place.symlink_to(kept)
    before = b"" if kind == "pipe" else kept.read_bytes()
    names = sorted(os.listdir(folder))
    said = project.refused(74 if kind == "pipe" else 2, "code", *command, "--index", str(place))
    assert "notes'" in said
    assert len(said.splitlines()) == (1 if kind == "pipe" else 2)
    assert sorted(os.listdir(folder)) == names
    if kind != "pipe":
        assert "is no index of a code base" in said
        assert kept.read_bytes() == before


def test_check_trace_lists_what_a_command_opens_beyond_its_inputs(project: Project) -> None:
    write(project.root, "tool.sh", "#!/bin/sh\ncat words.txt settings.ini\n").chmod(0o755)
    write(project.root, "words.txt", "words\n")
    write(project.root, "settings.ini", "x\n")
    write(project.root, "notes.txt", "mine\n")
    steps: dict[str, dict[str, object]] = {
        "build": {
            "shell": "./tool.sh > out.txt; echo overwritten > notes.txt",
            "inputs": ["words.txt"],
            "produces": ["out.txt"],
        },
        "send": {"shell": "true", "effects": "external"},
    }
    project.plan(steps)
    said = project.call("check", "--trace", "build")
    assert said.code == 1
    assert "not named by its inputs (1)\n  settings.ini\n" in said.out
    data = project.call("check", "--trace", "build", "--json").json
    assert data["unnamed"] == ["settings.ini"]
    assert data["opened"] == ["settings.ini", "tool.sh", "words.txt"]
    assert project.read("notes.txt") == "mine\n"
    assert not project.has("out.txt")
    assert not project.has(".holdfast")
    steps["build"]["inputs"] = ["words.txt", "settings.ini"]
    project.plan(steps)
    assert "its inputs name them all" in project.ok("check", "--trace", "build").out
    assert "changes the outside world" in project.refused(2, "check", "--trace", "send")
    assert "no step 'nothing'" in project.refused(2, "check", "--trace", "nothing")
    lost = project.call("check", "--trace", "build", env={"PATH": "/nowhere"})
    assert (lost.code, "strace was not found" in lost.err) == (2, True)


def test_check_trace_runs_a_command_in_the_sandbox_of_a_run(
    project: Project, require_part: Callable[[str], str]
) -> None:
    require_part("strace")
    require_part("bubblewrap")
    write(project.home, "key", "secret\n")
    write(project.root, "words.txt", "words\n")
    beside = project.folder / "beside"
    beside.mkdir()
    script = f"cat words.txt; cat {project.home}/key; cat {project.home}/key > {beside}/key; true"
    project.plan({"peek": {"shell": script}})
    bare = {"HOLDFAST_WRITABLE": ""}
    said = project.call("check", "--trace", "peek", "--json", env=bare)
    assert (said.code, said.json["opened"]) == (0, ["words.txt"])
    assert list(beside.iterdir()) == []
    said = project.call("check", "--trace", "peek", "--json", "--no-sandbox", env=bare)
    assert (said.code, said.json["opened"]) == (0, ["words.txt"])
    assert (beside / "key").read_text() == "secret\n"
    assert "are for --trace" in project.refused(2, "check", "--network")


def test_check_trace_of_a_step_that_fails_says_so_and_ends_with_1(project: Project) -> None:
    write(project.root, "here.txt", "1\n")
    steps: dict[str, dict[str, object]] = {"f": {"shell": "cat here.txt; exit 3"}}
    project.plan(steps)
    said = project.call("check", "--trace", "f")
    assert said.code == 1
    assert (
        "the step failed, so it may open more than this: 'cat here.txt; exit 3' ended" in said.out
    )
    assert "with exit code 3\n" in said.out
    assert "its inputs name" not in said.out
    assert project.call("check", "--trace", "f", "--json").code == 1
    steps["f"]["shell"] = "cat here.txt"
    project.plan(steps)
    assert "what its key is made of names them all" in project.ok("check", "--trace", "f").out
