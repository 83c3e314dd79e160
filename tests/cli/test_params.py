"""A plan is given values; they are filled in, decide what runs again, and stay what they are."""

import json
import sys
from typing import Any

import pytest

from tests.cli.project import Project

pytestmark = pytest.mark.req("R180")

PARAMS = {
    "topic": {"type": "string"},
    "depth": {"type": "int", "default": 3},
    "deep": {"type": "bool", "default": False},
}


def step(project: Project, **values: Any) -> dict[str, Any]:
    return {"shell": project.sh('cat "$HOLDFAST_WITH"/*'), "with": values}


def test_values_are_given_by_type_and_decide_what_runs_again(project: Project) -> None:
    project.plan(
        {
            "a": step(project, v="${{ params.depth }}", w="<${{ params.deep }}>"),
            "b": step(project, v=["${{ params.topic }}", "${{ params.depth }}"]),
            "c": step(project, v="nothing"),
        },
        params=PARAMS,
    )
    first = project.run("--param", "topic=heat pumps", "--param", "deep=true")
    assert first.code == 0
    assert project.shown("a") == b"3<true>"
    assert json.loads(project.shown("b")) == ["heat pumps", 3]
    project.ran()
    second = project.run("--param", "topic=heat pumps", "--param", "deep=true")
    assert set(second.states.values()) == {"reused"}
    project.run("--param", "topic=heat pumps", "--param", "deep=true", "--param", "depth=-4")
    assert project.ran() == ["a", "b"]
    assert project.shown("a") == b"-4<true>"


def test_only_commands_that_load_the_plan_need_its_params(project: Project) -> None:
    project.plan(
        {"a": step(project, v="${{ params.topic }}"), "b": {"run": "false"}}, params=PARAMS
    )
    first = project.run("--param", "topic=x")
    assert first.code == 1
    for words in (["status"], ["show", "@"], ["trace"], ["logs", "b"], ["why", "a", "--run", "@"]):
        assert project.call(*words).code == 0, words
    resumed = project.call("resume")
    assert resumed.code == 1
    assert "changed since" not in resumed.err
    said = project.refused(2, "plan")
    assert "error[P062]: the param 'topic' has no default and was not given" in said
    assert "plan.yaml:4:3" in said
    assert "help: --param topic=…" in said
    project.plan({"a": step(project, v="${{ params.topic }}"), "b": {"run": "true"}}, params=PARAMS)
    assert "changed since" in project.call("resume").err


@pytest.mark.parametrize(
    "given, said, hint",
    [
        (["tpoic=x"], "the plan has no param 'tpoic'", "did you mean 'topic'?"),
        (["topic=x", "depth=many"], "'depth' is a whole number, and 'many' is not", "depth=N"),
        (["topic"], "--param 'topic' has no value", "--param topic=VALUE"),
        (["topic=a", "topic=b"], "the param 'topic' is given twice", ""),
    ],
)
def test_a_wrong_value_is_refused(project: Project, given: list[str], said: str, hint: str) -> None:
    project.plan({"a": {"run": "true"}}, params=PARAMS)
    words = [word for item in given for word in ("--param", item)]
    err = project.refused(2, "run", *words)
    assert said in err
    assert hint in err
    assert not project.store.exists()


def test_files_stand_for_their_paths_and_their_content_counts(project: Project) -> None:
    for name in ("b.md", "a.md", "no.txt", "ignored.md"):
        project.write(f"sources/{name}", name)
    project.write(".gitignore", "ignored.md\n")
    project.plan(
        {"a": step(project, v="${{ params.sources }}", w="of ${{ params.sources }}")},
        params={"sources": {"type": "files", "default": "./sources/*.md"}},
    )
    assert project.run().code == 0
    paths = ["sources/a.md", "sources/b.md"]
    assert project.shown("a") == f'{json.dumps(paths)}of ["sources/a.md","sources/b.md"]'.encode()
    project.write("sources/a.md", "changed")
    again = project.run()
    assert (again.codes["a"], again.because("a")) == ("input_changed", ["sources/a.md"])
    project.write("sources/c.md", "new")
    assert project.run().states == {"a": "done"}
    assert b"sources/c.md" in project.shown("a")
    assert project.run("--param", "sources=sources/b.md").states == {"a": "done"}
    assert json.loads(project.shown("a").partition(b"of")[0]) == ["sources/b.md"]
    err = project.refused(2, "check", "--param", "sources=none/*")
    assert "no file matches 'none/*', the value of the param 'sources'" in err
    assert "leads out of the project" in project.refused(2, "check", "--param", "sources=../*")


def test_files_that_a_step_makes_need_that_step(project: Project) -> None:
    project.write("out/x.md", "there already")
    project.plan(
        {"make": {"run": "true", "produces": "out/x.md"}, "a": step(project, v="${{ params.s }}")},
        params={"s": {"type": "files", "default": "out/*.md"}},
    )
    err = project.refused(2, "check")
    assert "error[P054]: 'a' reads 'out/*.md', which 'make' produces, without needing it" in err


HOSTILE = ["; touch MARK", "$(touch MARK)", "`touch MARK`", "a\nb", "-rf", "${{ steps.b.output }}"]


GATHER = """
import json, os, pathlib
there = pathlib.Path(os.environ["HOLDFAST_INPUTS"], "items")
listed = json.loads((there / "index.json").read_text())
print(json.dumps({item["key"]: (there / item["file"]).read_text() for item in listed}))
"""
KEYS = ["../../MARK", "..", "$(touch MARK)", "a\nb", "-rf", "index.json", ""]


@pytest.mark.req("D33")
def test_hostile_values_stay_literal_wherever_they_are_given(project: Project) -> None:
    names = {f"p{index}": value for index, value in enumerate(HOSTILE)}
    for value in HOSTILE:
        project.write(f"files/{value}", "")
    show = 'cat "$HOLDFAST_WITH"/*; echo; cat "$HOLDFAST_PROMPT"; printf "<%s>" "$E"'
    project.plan(
        {
            "values": {
                "run": ["sh", "-c", show],
                "with": {name: f"<${{{{ params.{name} }}}}>" for name in names},
                "prompt": "".join(f"<${{{{ params.{name} }}}}>" for name in names),
                "env": ["E"],
            },
            "argv": {"run": ["printf", "<%s>", *HOSTILE[:-1]]},
            "names": step(project, v="${{ params.names }}"),
            "b": {"run": "echo b"},
            "items": {
                "for_each": KEYS,
                "key": "${{ item }}",
                "with": {"v": "<${{ item }}>"},
                "run": ["sh", "-c", 'cat "$HOLDFAST_WITH"/v'],
            },
            "all": {"needs": ["items"], "run": [sys.executable, "-c", GATHER]},
        },
        params={
            **{name: {"type": "string"} for name in names},
            "names": {"type": "files", "default": "files/*"},
        },
    )
    words = [word for name, value in names.items() for word in ("--param", f"{name}={value}")]
    assert project.run(*words, env={"E": HOSTILE[0]}).code == 0
    literal = "".join(f"<{value}>" for value in HOSTILE)
    assert project.shown("values").decode() == f"{literal}\n{literal}<{HOSTILE[0]}>"
    assert project.shown("argv").decode() == "".join(f"<{value}>" for value in HOSTILE[:-1])
    assert json.loads(project.shown("names")) == sorted(f"files/{name}" for name in HOSTILE)
    assert json.loads(project.shown("all")) == {key: f"<{key}>" for key in KEYS}
    assert not list(project.folder.rglob("MARK"))
