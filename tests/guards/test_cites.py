"""Quotes are found in their source, or shown with what is nearest to them."""

import asyncio
import json
from dataclasses import replace

import pytest

from holdfast import wire
from holdfast.guards.cites import CitesGuard
from holdfast.guards.quotes import Source, nearest
from holdfast.model.artifact import Verdict
from holdfast.model.digest import Json
from holdfast.model.plan import Guard, Step, StepId
from holdfast.ports import Given
from tests.generators.builders import Project, wait
from tests.guards.builders import accepted, candidate, rejected

KIND = CitesGuard(wire.project_files)
TEXT = (
    "Report\n\nIn Germany sales rose 24 %\n  in Q2, more than ever.\nCafé\u0301 owners liked it.\n"
)


def guard(**config: Json) -> Guard:
    return Guard("cites", {"field": "quote", **config}, name="cites")


def judge(project: Project, made: Json, how: Guard, **values: Json) -> Verdict:
    step = Step(StepId("step"), values=values)
    given = {StepId("up"): Given("bytes", TEXT.encode)}
    job = replace(project.job(step), given=given)
    return wait(KIND.judge(how, candidate(json.dumps(made)), job))


@pytest.mark.parametrize(
    "quote", ["sales rose 24 % in Q2", "ever. Cafe\u0301\u0301 owners", "Report"]
)
def test_a_quote_is_found_whatever_its_blanks_and_forms_of_letters(
    project: Project, quote: str
) -> None:
    how = guard(**{"in": "up"}, each="facts")
    assert judge(project, {"facts": [{"quote": quote}]}, how) == accepted(how)


def test_a_quote_that_is_not_there_is_shown_with_the_nearest_fragment(project: Project) -> None:
    how = guard(**{"in": "up"}, each="facts")
    facts = [{"quote": "more than ever"}, {"quote": "sales rose 34 % in Q2,"}, {"quote": "xyzzy"}]
    assert judge(project, {"facts": facts}, how) == rejected(
        how,
        "2 of 3 quotes are not in the source\n"
        'said    "sales rose 34 % in Q2,"\n'
        'nearest "sales rose 24 % in Q2," (up:3)\n'
        'said    "xyzzy"\n'
        "nearest nothing like it",
    )


def test_case_and_every_sign_count(project: Project) -> None:
    how = guard(**{"in": "up"})
    for quote in ("Sales rose 24 %", "sales rose 24%", "sales rose 24 % in Q2;"):
        assert not judge(project, [{"quote": quote}], how).passed


def test_sources_are_values_and_files_too(project: Project) -> None:
    how = guard(**{"in": "with.doc"}, field="said")
    doc = {"url": "x", "parts": ["one\ntwo", "three"]}
    assert judge(project, {"said": ["one two", "three"]}, how, doc=doc) == accepted(how)
    assert not judge(project, {"said": "two three"}, how, doc=doc).passed
    project.write("sources/a.md", "first\nsecond\n")
    project.write("sources/b.json", json.dumps({"text": 'he said "no"\nand left'}))
    how = guard(**{"in": "sources/*"})
    assert judge(project, ["second", 'said "no" and left'], how) == accepted(how)
    assert "(sources/a.md:1)" in judge(project, ["first secund"], how).feedback


@pytest.mark.parametrize(
    ("made", "told"),
    [
        ({"fact": []}, "the artifact has no 'facts' of 'facts'"),
        ({"facts": [{"q": "x"}]}, "there is no 'quote' with text in {'q': 'x'}"),
        ({"facts": [{"quote": " "}]}, "a 'quote' is empty"),
    ],
)
def test_an_artifact_without_quotes_where_they_should_be_is_rejected(
    project: Project, made: Json, told: str
) -> None:
    how = guard(**{"in": "up"}, each="facts")
    assert judge(project, made, how) == rejected(how, told)


def test_the_nearest_fragment_begins_where_the_quote_begins() -> None:
    source = Source("a", "one\n" * 50 + "The quick brown fox jumps\n" + "two\n" * 50)
    found = nearest([source], "A quick brown fox jumps")
    assert found is not None
    assert (found.fragment, found.place) == ("The quick brown fox jumps", "a:51")


def test_what_is_not_json_is_rejected(project: Project) -> None:
    how = guard(**{"in": "up"})
    verdict = wait(KIND.judge(how, candidate("no json"), project.job(Step(StepId("step")))))
    assert not verdict.passed
    assert "not JSON" in verdict.feedback


class Counted(Source):
    """A source that counts how often something of it is compared."""

    compared = 0

    def fragment(self, at: int, size: int) -> tuple[str, int]:
        Counted.compared += 1
        return super().fragment(at, size)


def test_however_many_sources_there_are_only_the_best_places_are_compared() -> None:
    texts = [f"sales rose {number} % in some town" for number in range(2000)]
    Counted.compared = 0
    found = nearest([Counted(f"s{at}", text) for at, text in enumerate(texts)], f"{texts[1500]}!")
    assert found is not None
    assert found.place == "s1500:1"
    assert Counted.compared <= 12


def test_quotes_are_looked_for_beside_the_loop(project: Project) -> None:
    """Whatever bounds its time can end it, and whatever else is to be done goes on."""
    how = guard(**{"in": "up"})
    job = replace(
        project.job(Step(StepId("step"))), given={StepId("up"): Given("bytes", TEXT.encode)}
    )

    async def at_once() -> None:
        async with asyncio.timeout(0):
            await KIND.judge(how, candidate(json.dumps(["not there"])), job)

    with pytest.raises(TimeoutError):
        asyncio.run(at_once())
