"""The bench of the worker: tickets with known answers, done by the command, judged by hidden tests."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast.worker.bench import samples
from holdfast.worker.written import read_plain
from tests.cli.project import Project
from tests.cli.tickets import block, edit, finish, git, repository, script

NAMES = [
    *("by-month", "csv", "exact-cents", "quoted-notes", "thousands"),
    *("below-datum", "daily-range", "feet", "midnight", "short-windows"),
]
BY_UNITTEST = ("--test", "python3 -m unittest {files}")


def benched(project: Project, *words: str) -> Any:
    """What a bench that ran tells, and its lines."""
    answer = project.call("bench", "worker", *words, "--json")
    assert answer.code == 0, answer.err
    return {**answer.json, "err": answer.err}


def by_name(told: Any) -> dict[str, Any]:
    return {one["name"]: one for one in told["tickets"]}


def reference(name: str) -> list[Any]:
    """The one attempt of the one cycle of a sample's script."""
    (path,) = Path(samples.__file__).parent.glob(f"samples/*/tickets/{name}/reference.yaml")
    read: Any = read_plain(path.read_text(), "a script")
    return list(read["cycles"][0])


def written(project: Project, turns: list[Any]) -> str:
    place = project.folder / "turns.json"
    place.write_text(json.dumps({"schema": "holdfast.script/1", "cycles": [turns]}))
    return str(place)


def test_the_reference_scripts_solve_some_of_both_samples(
    project: Project, require_part: Callable[[str], str]
) -> None:
    require_part("node")
    chosen = [word for name in ("exact-cents", "feet", "midnight") for word in ("--ticket", name)]
    told = benched(project, *chosen, "--script", "reference", "--jobs", str(os.cpu_count() or 1))
    assert told["dropped"] == []  # the hidden tests of each fail before
    found = by_name(told)
    assert {name: one["why"] for name, one in found.items() if not one["solved"]} == {}
    assert found["feet"]["cycles"] == 2
    assert found["midnight"]["attempts"] == 2
    total = told["total"]
    assert (total["solved"], total["cycles"], total["attempts"]) == (3, 4, 5)
    assert total["usd"] == 0
    assert (found["exact-cents"]["added"], found["exact-cents"]["removed"]) == (13, 2)


@pytest.mark.soak("other")
def test_the_reference_scripts_solve_ten_of_ten(
    project: Project, require_part: Callable[[str], str]
) -> None:
    require_part("node")
    told = benched(project, "--script", "reference", "--jobs", str(os.cpu_count() or 1))
    assert told["dropped"] == []  # the hidden tests of each fail before
    found = by_name(told)
    assert list(found) == NAMES
    assert {name: one["why"] for name, one in found.items() if not one["solved"]} == {}
    assert found["feet"]["cycles"] == 2
    assert found["midnight"]["attempts"] == 2
    total = told["total"]
    assert (total["solved"], total["cycles"], total["attempts"]) == (10, 11, 12)
    assert (total["usd"], total["commits"]) == (0, 16)
    assert found["csv"]["files"] == 4
    assert (found["exact-cents"]["added"], found["exact-cents"]["removed"]) == (13, 2)


def test_a_wrong_script_is_not_solved_whatever_it_makes_of_the_tests(project: Project) -> None:
    table = '        lines.append(f"{day}  " + "  ".join(cells))\n'
    seen = (
        '            said, "2031-04-02  03:00 high  4.00  09:00 low   1.00  15:00 high  4.00\\n"\n'
    )
    broken = edit(
        block("tidebook/show.py", table, table.replace('" + "', '|" + "')),
        block("tests/test_cli.py", seen, seen.replace("02  03", "02  |03")),
    )
    *before, last = reference("below-datum")
    turns = [*before, {"use": "edit", "with": broken[1]}, last]
    words = ("--ticket", "below-datum", "--ticket", "exact-cents", "--jobs", "2")
    told = benched(project, *words, "--script", written(project, turns))
    assert told["total"]["solved"] == 0
    found = by_name(told)
    assert found["below-datum"]["why"].startswith("visible tests fail: ")
    assert found["below-datum"]["status"] == "completed"
    assert found["exact-cents"]["why"].startswith("hidden tests fail: 4 failed of 4 tests: ")
    assert (found["exact-cents"]["commits"], found["exact-cents"]["files"]) == (0, 0)

    shown = project.call(
        "bench", "worker", "--ticket", "feet", "--script", script(project, [finish()])
    )
    assert shown.code == 0
    assert "all     0 of 1" in shown.out
    assert "feet: " in shown.out


def test_what_was_done_is_not_done_again_and_what_was_cut_short_goes_on(project: Project) -> None:
    words = ("--ticket", "midnight", "--script", "reference", "--out", "results")
    first = benched(project, *words)
    (place,) = (project.root / "results").glob("midnight-*")
    result = place / "result.json"
    kept = json.loads(result.read_text())
    result.write_text(json.dumps({**kept, "attempts": 7}))
    assert by_name(benched(project, *words))["midnight"]["attempts"] == 7

    result.unlink()  # as if it had been killed before it was known
    again = by_name(benched(project, *words))["midnight"]
    assert again == by_name(first)["midnight"]


def test_the_worker_never_sees_what_came_after_the_base(project: Project) -> None:
    fixed, _ = history(project)
    looks = [
        ("run", {"command": f"git cat-file -e {fixed} && touch seen; ls > seen-files"}),
        finish(),
    ]
    words = ("--history", str(project.root), "--ticket", fixed, *BY_UNITTEST)
    told = benched(project, *words, "--script", script(project, looks), "--out", "results")
    assert by_name(told)[fixed[:12]]["why"].startswith("hidden tests fail: ")
    (place,) = (project.root / "results").glob(f"{fixed[:12]}-*/repository")
    seen = git(project, "ls-tree", "-r", "--name-only", f"holdfast/{fixed[:12]}", cwd=place).split()
    assert "seen-files" in seen
    assert "seen" not in seen


def history(project: Project) -> tuple[str, str]:
    """A repository whose commits are a ticket, two that are none, and one that is not looked at."""
    repository(project, {
        "calc.py": "def double(x):\n    return x + x\n\n\ndef half(x):\n    return x // 2\n",
        "test_calc.py": "import unittest\n\nfrom calc import double\n\n\nclass Calc(unittest.TestCase):\n"
        "    def test_double(self):\n        self.assertEqual(double(2), 4)\n",
    })  # fmt: skip
    project.write("calc.py", project.read("calc.py").replace("x // 2", "x / 2"))
    tests = project.read("test_calc.py").replace("import double", "import double, half")
    more = "\n    def test_half(self):\n        self.assertEqual(half(3), 1.5)\n"
    project.write("test_calc.py", tests + more)
    git(
        project,
        "commit",
        "-qam",
        "Keep the fraction of a half (#12)\n\n3 // 2 is 1.\n\nSigned-off-by: Ann <a@b>",
    )
    fixed = git(project, "rev-parse", "HEAD").strip()
    project.write("calc.py", project.read("calc.py").replace("x + x", "2 * x"))
    project.write(
        "test_calc.py", project.read("test_calc.py").replace("double(2), 4", "double(3), 6")
    )
    git(project, "commit", "-qam", "Double by a product")
    same = git(project, "rev-parse", "HEAD").strip()
    project.write("calc.py", project.read("calc.py").replace("x / 2", "round(x / 2)"))
    project.write("test_calc.py", project.read("test_calc.py").replace("1.5", "2"))
    git(project, "commit", "-qam", "Round halves")
    project.write("notes.txt", "nothing\n")
    git(project, "add", "notes.txt")
    git(project, "commit", "-qm", "Note nothing")
    return fixed, same


def test_a_commit_that_changes_source_and_tests_is_a_ticket(project: Project) -> None:
    fixed, same = history(project)
    words = ("--history", str(project.root), *BY_UNITTEST, "--out", "results")
    told = benched(project, *words, "--script", "reference")
    assert [(one["name"], one["solved"]) for one in told["tickets"]] == [(fixed[:12], True)]
    rounded, doubled = told["dropped"]
    assert "as it was before refutes the commit: " in rounded["why"]
    why = "the hidden tests pass before anything is done"
    assert doubled == {"name": same[:12], "why": why}
    (place,) = (project.root / "results").glob(f"{fixed[:12]}-*")
    words_of_it = (place / "ticket.md").read_text()
    assert words_of_it == "# Keep the fraction of a half\n\n3 // 2 is 1.\n"

    issue = {"title": "Halves are wrong", "body": "3 gives 1", "number": 12}
    project.write("issues.json", json.dumps({fixed[:10]: issue, "0" * 10: issue}))
    listed = benched(project, *words, "--issues", "issues.json", "--list")
    assert [one["title"] for one in listed["tickets"]] == ["Halves are wrong"]
    assert listed["dropped"] == [
        {"name": "0" * 10, "why": "it is none of the newest 3000 commits with one parent"}
    ]


def test_an_agent_may_be_named_from_where_the_person_is(project: Project) -> None:
    project.write("coder.sh", "echo '# looked at' >> tidebook/cli.py\n")
    words = ("--ticket", "below-datum", "--agent", "sh ./coder.sh {prompt_file}")
    [one] = benched(project, *words)["tickets"]
    assert (one["status"], one["commits"], one["solved"]) == ("completed", 1, False), one


def test_what_cannot_be_benched_is_said(project: Project) -> None:
    def refused(*words: str) -> str:
        answer = project.call("bench", "worker", *words)
        assert (answer.code, answer.out) == (2, "")
        return answer.err

    assert "nobody said who works" in refused()
    assert "contradict each other" in refused("--model", "openai:x", "--script", "reference")
    assert "'no-such' was not found" in refused("--agent", "no-such {prompt}", "--out", "kept")
    assert not (project.root / "kept").exists()
    assert "'openai:x' costs money" in refused("--model", "openai:x")
    assert "there is no ticket 'tides'" in refused("--ticket", "tides", "--script", "reference")
    assert "there is no git directory 'gone'" in refused("--history", "gone", "--list")
    assert "are about a history" in refused("--test", "make test", "--list")
    project.write("issues.json", "[]")
    words = ("--history", ".", "--list", "--issues", "issues.json")
    git(project, "init", "-q")
    assert "no mapping of commits to issues" in refused(*words)
    assert "has no history" in refused("--history", ".", "--list")
