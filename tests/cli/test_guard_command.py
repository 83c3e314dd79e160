"""guard: every verdict on what stands, on a file or on an earlier result; nothing is recorded."""

from typing import Any

from tests.cli.project import Project

WORD = {"regex": {"pattern": "^[a-z]+\n$"}, "name": "one word"}
SHORT = {"command": ["/bin/sh", "short.sh"], "name": "short"}


def make(project: Project, text: str = "made", guards: Any = (WORD, SHORT), **more: Any) -> None:
    project.write(
        "short.sh", 'test "$(wc -c < "$HOLDFAST_ARTIFACT")" -lt 9 || { wc -c < out.txt; exit 1; }\n'
    )
    body = project.sh(f"echo {text} > out.txt")
    project.plan({"a": {"shell": body, "produces": "out.txt", "guards": list(guards), **more}})


def events(project: Project) -> int:
    return int(project.database().execute("SELECT count(*) FROM event").fetchone()[0])  # type: ignore[index]


def verdicts(answer: Any) -> dict[str, str]:
    return {item["guard"]: item["verdict"] for item in answer["verdicts"]}


def test_all_guards_look_and_nothing_is_recorded(project: Project) -> None:
    make(project)
    first = project.run()
    before = events(project)
    good = project.ok("guard", "a", "--json").json
    assert (good["passed"], good["in_project"]) == (True, True)
    assert (good["digest"], verdicts(good)) == (
        first.digests["a"],
        {"one word": "accept", "short": "accept"},
    )
    project.write("draft.txt", "Too Many Words\n")
    bad = project.call("guard", "a", "--on", "draft.txt", "--json")
    assert bad.code == 1
    assert verdicts(bad.json) == {"one word": "reject", "short": "reject"}, "not only the first"
    assert bad.json["verdicts"][1]["feedback"].strip() == "15", "it saw the draft at its path"
    assert project.read("out.txt") == "made\n"
    piped = project.call("guard", "a", "--on", "-", stdin=b"fine\n")
    assert (piped.code, piped.out.count("accepts")) == (0, 2)
    assert events(project) == before
    assert project.run().codes == {"a": "unchanged"}


def test_the_guards_of_the_present_plan_judge_an_earlier_result(project: Project) -> None:
    make(project, guards=[WORD])
    first = project.run()
    strict = {"regex": {"pattern": "^other"}, "name": "other"}
    broken = {"command": ["no-such-program"], "name": "missing"}
    make(project, "other", guards=[strict, {"regex": {"pattern": "mad"}, "name": "mad"}, broken])
    answer = project.call("guard", "a", "--on", first.id, "--json")
    assert answer.code == 1
    assert verdicts(answer.json) == {"other": "reject", "mad": "accept", "missing": "broken"}
    said = project.call("guard", "a")
    assert "missing broke: no verdict" in said.out
    assert "no-such-program" in said.out


def test_what_cannot_be_judged_is_said(project: Project) -> None:
    make(project, guards=[])
    assert "no store" in project.refused(2, "guard", "a")
    project.plan({"a": {"shell": "exit 1", "guards": [WORD]}, "b": {"shell": project.sh()}})
    project.run()
    assert "no accepted artifact yet" in project.refused(2, "guard", "a")
    assert "no artifact in r-" in project.refused(2, "guard", "a", "--on", "@")
    assert "no file 'nowhere'" in project.refused(2, "guard", "a", "--on", "nowhere")
    assert "did you mean 'a'" in project.refused(2, "guard", "aa")
    assert "it has no guards" in project.ok("guard", "b").out
