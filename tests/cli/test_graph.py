"""graph: the plan as text, Mermaid, DOT, SVG and JSON; hostile words stay words."""

import re
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from tests.cli.project import Project
from tests.cli.screens import Screen

HOSTILE = '</title><script>alert("x")</script> & ]] --> \\N "end" `x` #35; %%'
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def diamond(project: Project) -> Project:
    project.plan(
        {
            "first": {"shell": "echo 1", "description": HOSTILE},
            "left": {"shell": "echo 2", "needs": ["first"]},
            "right": {"shell": "exit 1", "needs": ["first"]},
            "end": {"shell": "echo 3", "needs": ["left", "right", "first"]},
        }
    )
    return project


def wide(project: Project, count: int) -> None:
    steps: dict[str, Any] = {f"s{n}": {"run": ["true"]} for n in range(count)}
    steps["join"] = {"run": ["true"], "needs": list(steps)}
    project.plan(steps)


def svg_of(project: Project, *words: str) -> ET.Element:
    text = project.ok("graph", "--format", "svg", *words).out
    assert "script" not in re.sub(r"&lt;/?script", "", text)
    return ET.fromstring(text)


def test_screens(diamond: Project, screen: Screen) -> None:
    screen("graph", name="graph-no-run")
    diamond.call("run")
    screen("graph", name="graph-after-run")
    screen("graph", "--depth", "1", name="graph-depth")
    screen("graph", "--format", "mermaid", name="graph-mermaid", modes=("plain",))
    screen("graph", "--format", "dot", name="graph-dot", modes=("plain",))
    screen("graph", "--format", "svg", name="graph-svg", modes=("plain",))


def test_json_tells_the_whole_graph_with_the_states_of_the_last_run(diamond: Project) -> None:
    bare = diamond.ok("graph", "--json").json
    assert bare["schema"] == "holdfast.graph/1"
    assert bare["run"] is None
    assert bare["waves"] == [["first"], ["left", "right"], ["end"]]
    run = diamond.run()
    seen = diamond.ok("graph", "--format", "json").json
    assert seen["run"] == run.id
    assert {s: v["state"] for s, v in seen["steps"].items()} == run.states
    assert seen["steps"]["end"]["needs"][0] == {"step": "left", "type": "data"}
    assert seen["steps"]["first"]["description"] == HOSTILE
    part = diamond.ok("graph", "--json", "--state", "@", "--depth", "3", "-s", "left+").json
    assert part["waves"] == [["left"], ["end"]]
    assert part["left_out"] == 2
    assert diamond.ok("graph", "--json", "--no-state").json["run"] is None


def test_asking_for_a_run_that_is_not_there_is_an_error_and_makes_no_store(
    diamond: Project,
) -> None:
    diamond.refused(2, "graph", "--state", "r-1234")
    diamond.refused(2, "graph", "--state", "@", "--no-state")
    assert not diamond.store.exists()


def test_the_svg_is_xml_and_draws_every_step_with_word_and_sign(diamond: Project) -> None:
    run = diamond.run()
    root = svg_of(diamond)
    texts = [element.text for element in root.iter(f"{SVG}text")]
    assert {"✓ first", "✗ right", "– end", "done", "failed", "skipped"} <= set(texts)
    assert run.states["left"] == "done"
    titles = [element.text or "" for element in root.iter(f"{SVG}title")]
    assert any("<script>" in title for title in titles)
    assert {element.tag.removeprefix(SVG) for element in root.iter()} == {
        "svg", "title", "rect", "text", "g", "path",
    }  # fmt: skip
    assert len(list(root.iter(f"{SVG}path"))) == 5


def test_boxes_of_an_svg_do_not_lie_on_each_other_and_stay_inside(diamond: Project) -> None:
    root = svg_of(diamond)
    boxes = [
        tuple(float(rect.attrib[name]) for name in ("x", "y", "width", "height"))
        for rect in root.iter(f"{SVG}rect")
        if "x" in rect.attrib
    ]
    assert len(boxes) == 4
    for x, y, width, height in boxes:
        assert x >= 0
        assert x + width <= float(root.attrib["width"])
        assert y + height <= float(root.attrib["height"])
        for other in boxes:
            apart = x + width <= other[0] or other[0] + other[2] <= x
            apart = apart or y + height <= other[1] or other[1] + other[3] <= y
            assert apart or other == (x, y, width, height)


def test_text_from_the_plan_is_never_syntax_of_mermaid_or_dot(diamond: Project) -> None:
    mermaid = diamond.ok("graph", "--format", "mermaid").out
    for line in mermaid.splitlines()[1:]:
        assert re.fullmatch(r'  n\d+(\["[^"`\\%]*"\])?(:::\w+)?( --> n\d+)?', line), line
    dot = diamond.ok("graph", "--format", "dot").out
    for line in dot.splitlines():
        assert line.replace("\\\\", "").replace('\\"', "").count('"') % 2 == 0, line


@pytest.mark.parametrize(("form", "boxes"), [("svg", f"{SVG}g"), ("mermaid", r'(?m)^  n\d+\["')])
def test_a_thousand_steps_are_drawn_as_few_boxes_that_say_how_many(
    project: Project, form: str, boxes: str
) -> None:
    wide(project, 1000)
    drawn = project.ok("graph", "--format", form).out
    if form == "svg":
        count = len(list(ET.fromstring(drawn).iter(boxes))) - 1
    else:
        count = len(re.findall(boxes, drawn))
        assert drawn.count("-->") <= 500
        assert len(drawn) <= 50_000
    assert count == 2
    assert "s0 and 999 more" in drawn
    assert len(project.ok("graph", "--json").json["steps"]) == 1001


@pytest.mark.parametrize("form", ["mermaid", "dot", "svg"])
def test_a_long_item_is_drawn_with_its_key_as_it_is(project: Project, form: str) -> None:
    project.write("manual/calibration.md", "")
    files = {"files": "manual/*.md"}
    project.plan({"translate": {"for_each": files, "shell": "echo $HOLDFAST_STEP"}})
    drawn = project.ok("graph", "--format", form).out
    assert "manual/calibrat" in drawn
    assert "2F" not in drawn
