"""What follows from the experiments: every sentence names the evidence in the ledger that it stands on."""

from __future__ import annotations

import math
import os
import re
from pathlib import Path
from typing import Any, NamedTuple

import experiments
from experiments import GOOD

Made = dict[str, Any]
_SECTION = re.compile(r"^## (?P<title>.+)\n(?P<lines>(?:.+\n?)*)", re.MULTILINE)
_EVIDENCE = re.compile(
    r"- (?P<text>.*) \((?P<source>\S+), (?P<sure>[\d.]+).*\) (?P<id>e-[0-9a-f]+)"
)
_HYPOTHESIS = re.compile(r"- (?P<id>\S+) \((?P<text>.*)\) is (?P<state>\w+): (?P<sides>.*)")
_OPEN = re.compile(r"- (?P<text>.*) \((?P<state>\w+)\) (?P<id>u-[0-9a-f]+)")


class Known(NamedTuple):
    """What a step was told of the work before it."""

    evidence: dict[str, dict[str, str]]  # by id
    hypotheses: dict[str, dict[str, str]]  # by id
    questions: list[dict[str, str]]

    def id_of(self, made: Made) -> str:
        """The id of the evidence that an experiment gave; '' if somebody contested it."""
        finding = made["finding"]
        return next((name for name, one in self.evidence.items() if one["text"] == finding), "")


def known() -> Known:
    """The page of context that Holdfast wrote for this step, in parts."""
    page = Path(os.environ["HOLDFAST_CONTEXT"]).read_text(encoding="utf-8")
    lines = {one["title"]: one["lines"].splitlines() for one in _SECTION.finditer(page)}

    def found(title: str, shape: re.Pattern[str]) -> list[dict[str, str]]:
        matches = [shape.fullmatch(line) for line in lines.get(title, [])]
        return [match.groupdict() for match in matches if match is not None]

    return Known(
        {one["id"]: one for one in found("Evidence", _EVIDENCE)},
        {one["id"]: one for one in found("Hypotheses", _HYPOTHESIS)},
        found("Open questions", _OPEN),
    )


class Claim(NamedTuple):
    """What can be said, and the evidence that says so: '' if somebody contested it."""

    text: str
    id: str


def conclude(
    look: Made,
    straight: Made,
    decades: Made,
    curve: Made | None = None,
    forecast: Made | None = None,
) -> dict[str, Any]:
    """Say what follows from the findings that nobody contests; the first sentence is the answer."""
    at = known()
    span = Claim(f"from {look['first'][0]} to {look['last'][0]}", at.id_of(look))
    grown = at.id_of(decades)
    first = [_line(straight, at.id_of(straight)), _pace(decades, grown)]
    bend = [_described(curve, at.id_of(curve))] if curve else []
    is_backed = bool(curve and curve["fits"] and bend[0].id)
    told = [_foretold(forecast, at.id_of(forecast), is_backed)] if forecast else []
    drafts = [first, bend, told, [_each_decade(decades, grown)]]
    kept = [[claim for claim in claims if claim.id] for claims in drafts]
    sentences = [
        _sentence(claims, span if claims[0] in first and span.id else None)
        for claims in kept
        if claims
    ]
    _hand_over(sentences, [claim for claims in kept for claim in claims])
    return {"sentences": sentences}


def _line(straight: Made, line: str) -> Claim:
    """Whether a straight line describes it."""
    if straight["is_refuted"]:
        turned = "rose" if straight["bent"] > 0 else "fell"
        return Claim(f"its growth {turned}: a straight line does not describe it", line)
    grew = "grew" if straight["slope"] >= 0 else "fell"
    return Claim(f"it {grew} by {abs(straight['slope']):.2f} ppm a year, in a straight line", line)


def _pace(decades: Made, grown: str) -> Claim:
    """How fast the first decade grew, and the last."""
    rates = list(decades["growth"].values())
    ends = f"{rates[0]:.1f} ppm a year, the last {rates[-1]:.1f}"
    return Claim(f"the first of {len(rates)} decades added {ends}", grown)


def _described(curve: Made, bend: str) -> Claim:
    """Whether a parabola describes it."""
    if curve["fits"]:
        bound = math.ceil(curve["worst"] * 10) / 10  # never less than it is
        more = "more" if curve["rise"] > 0 else "less"
        return Claim(
            f"a parabola describes it to within {bound:.1f} ppm in every year: the growth of a year is "
            f"{abs(curve['rise']):.3f} ppm {more} than that of the year before",
            bend,
        )
    how = "does not describe it well" if curve["spread"] > GOOD else "describes it not much better"
    return Claim(
        f"a parabola {how}: it leaves {curve['spread']:.2f} ppm (root mean square), a straight line "
        f"{curve['plain']:.2f} ppm",
        bend,
    )


def _foretold(forecast: Made, told: str, is_backed: bool) -> Claim:
    """Whether a parabola tells unseen years; with `is_backed` the sentence before says that it fits."""
    missed, years = forecast["missed"], f"the {forecast['years']} years after"
    early = f"from the years before {forecast['split']} alone"
    if not forecast["is_close"]:
        return Claim(
            f"{early}, a parabola misses {years} by {missed['parabola']:.2f} ppm (root mean square), a "
            f"straight line by {missed['straight line']:.2f} ppm",
            told,
        )
    tells = f"parabola tells {years} to {missed['parabola']:.1f} ppm (root mean square)"
    if is_backed:
        return Claim(f"that is no accident of the fit: {early}, the {tells}", told)
    return Claim(f"{early}, a {tells}", told)


def _each_decade(decades: Made, grown: str) -> Claim:
    """Whether each decade grew faster than the one before."""
    rises, pairs = decades["rises"], decades["pairs"]
    every = "every" if rises == pairs else "not every"
    return Claim(f"{every} decade grew faster than the one before: {rises} of {pairs} did", grown)


def _sentence(claims: list[Claim], span: Claim | None) -> Made:
    """Claims in one sentence that cites them all, after the years that they are about."""
    text = " and ".join(claim.text + "," * (claim is not claims[-1]) for claim in claims)
    text = f"{span.text} {text}" if span else text
    cites = [claims[0].id, *([span.id] if span else []), *(claim.id for claim in claims[1:])]
    return {"text": f"{text[0].upper()}{text[1:]}.", "cites": cites}


def _hand_over(sentences: list[Made], claims: list[Claim]) -> None:
    """Each conclusion is a finding that stands on the evidence that says so, and falls with it."""
    findings = [
        {"finding": f"{claim.text}.", "source": claim.id, "confidence": 0.85} for claim in claims
    ]
    payload = {"sentences": sentences}
    experiments.hand_over("put the findings together", observed=findings, payload=payload)
