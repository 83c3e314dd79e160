"""A plan is kept as a template, and projects are made from it with values for its params."""

import json

import pytest

from tests.cli.project import Project

pytestmark = pytest.mark.req("R153", "R182")

PLAN = """\
# what a reader should know
name: review
params:
  topic: {type: string}   # asked for
  years: {type: int, default: 2}
  who:
    type: list
    default: [a]

# the work
steps:
  write:
    for_each: ${{ params.who }}
    with: {topic: "${{ params.topic }}", years: "${{ params.years }}"}
    shell: echo "$(cat $HOLDFAST_WITH/topic) $(cat $HOLDFAST_WITH/years)"
"""


def test_only_a_plan_file_becomes_a_template(project: Project) -> None:
    project.write("shore.py", "from holdfast import plan\n")
    told = project.refused(2, "plans", "save-as-template", "t", "shore.py")
    assert "'shore.py' is Python, and a template is a plan file" in told
    assert "to_yaml()" in told
    told = project.refused(2, "plans", "save-as-template", "t", "Build a REST API")
    assert "not of a goal" in told


def saved(project: Project, *words: str) -> str:
    project.write("plan.yaml", PLAN)
    return project.ok("plans", "save-as-template", "review", *words).out


def test_a_plan_becomes_a_template_of_the_person_and_a_project_of_its_own(project: Project) -> None:
    place = project.home / ".config" / "holdfast" / "templates" / "review.yaml"
    told = saved(project)
    assert told.startswith(f"review: {place}\nparams: topic, years, who\n")
    assert place.read_text() == PLAN
    made = project.ok(
        "init",
        "notes",
        "--template",
        "review",
        "--param",
        "topic=heat: pumps",
        "--param",
        'who=["x", "y"]',
    )
    assert "a project from the template 'review'" in made.out
    text = project.read("notes/plan.yaml")
    assert text.startswith("# what a reader should know\nname: notes\n")
    assert "# the work\nsteps:\n" in text
    found = project.call("run", "notes/plan.yaml", "--json").json
    assert list(found["steps"]) == ["write[x]", "write[y]", "write"] or set(found["steps"]) == {
        "write[x]",
        "write[y]",
        "write",
    }
    shown = project.call("show", "-f", "notes/plan.yaml", "write[x]")
    assert shown.out == "heat: pumps 2\n"


def test_what_is_not_given_is_refused_where_nobody_can_be_asked(project: Project) -> None:
    saved(project)
    said = project.refused(2, "init", "notes", "--template", "review")
    assert "the template wants a value for 'topic' (string)" in said
    assert "--param topic=…" in said
    assert not project.has("notes")
    said = project.refused(2, "init", "notes", "--template", "review", "--param", "topc=x")
    assert "the template has no param 'topc'" in said
    words = ["--param", "topic=x", "--param", "years=two"]
    assert "'years' is a whole number" in project.refused(
        2, "init", "notes", "--template", "review", *words
    )
    assert not project.has("notes")


def test_a_project_names_a_folder_of_its_own(project: Project) -> None:
    project.write("holdfast.toml", 'templates = "parts/templates"\n')
    assert "parts/templates/review.yaml" in saved(project)
    assert project.has("parts/templates/review.yaml")
    project.ok("init", "notes", "--template", "review", "--param", "topic=x")
    project.write("holdfast.toml", 'templates = "../elsewhere"\n')
    assert "must be a folder of the project" in project.refused(
        2, "init", "n", "--template", "review"
    )


def test_a_template_is_not_overwritten_unless_that_is_said(project: Project) -> None:
    saved(project)
    assert "is there already" in project.refused(2, "plans", "save-as-template", "review")
    told = json.loads(saved(project, "--replace", "--json"))
    assert told["params"] == ["topic", "years", "who"]
    assert "no name of a template" in project.refused(2, "plans", "save-as-template", "../x")


def test_what_is_no_plan_is_no_template(project: Project) -> None:
    project.write("plan.yaml", "steps: {a: {shell: x, nothing: 1}}\n")
    assert "error[P030]" in project.refused(2, "plans", "save-as-template", "review")
    assert not (project.home / ".config").exists()


def test_a_template_that_is_not_there_names_those_that_are(project: Project) -> None:
    saved(project)
    said = project.refused(2, "init", "notes", "--template", "revew")
    assert "there is no template 'revew'" in said
    assert "there are: review, basic, python, minimal" in said


def test_a_template_in_json_stays_json(project: Project) -> None:
    steps = {"a": {"shell": "cat $HOLDFAST_WITH/v", "with": {"v": "${{ params.v }}"}}}
    project.plan(steps, file="plan.json", params={"v": {"type": "int"}})
    project.ok("plans", "save-as-template", "small")
    project.ok("init", "made", "--template", "small", "--param", "v=7")
    assert json.loads(project.read("made/plan.json"))["params"] == {
        "v": {"type": "int", "default": 7}
    }


@pytest.mark.parametrize("file", ["plan.yaml", "plan.json"])
def test_a_value_that_looks_like_an_expression_is_text(project: Project, file: str) -> None:
    plan = {
        "name": "review",
        "params": {"topic": {"type": "string"}, "who": {"type": "list", "default": ["a"]}},
        "steps": {
            "write": {
                "for_each": "${{ params.who }}",
                "with": {"v": "${{ params.topic }} ${{ item }}", "w": "${{ params.topic }}"},
                "shell": "cat $HOLDFAST_WITH/v $HOLDFAST_WITH/w",
            }
        },
    }
    project.write(file, json.dumps(plan))
    project.ok("plans", "save-as-template", "review")
    who = json.dumps(["${{ params.n }}"])
    text = "${{ params.n }} $${{ x"
    words = ("--param", f"topic={text}", "--param", f"who={who}")
    project.ok("init", "made", "--template", "review", *words)
    project.ok("check", f"made/{file}")
    assert project.call("run", f"made/{file}").code == 0
    shown = project.ok("show", "-f", f"made/{file}", "write[${{ params.n }}]").out
    assert shown == f"{text} ${{{{ params.n }}}}{text}"
