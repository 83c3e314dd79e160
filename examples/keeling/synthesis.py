"""What follows from the experiments: every sentence names the evidence in the ledger that it stands on."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, NamedTuple

import experiments

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


def conclude(
    look: Made,
    straight: Made,
    decades: Made,
    curve: Made | None = None,
    forecast: Made | None = None,
) -> dict[str, Any]:
    """Say what follows from the findings that nobody contests; the first sentence is the answer."""
    at = known()
    data, line, grown = at.id_of(look), at.id_of(straight), at.id_of(decades)
    span = f"From {look['first'][0]} to {look['last'][0]}"
    rates = list(decades["growth"].values())
    pace = f"the first of six decades added {rates[0]:.1f} ppm a year, the last {rates[-1]:.1f}"
    if curve is None or forecast is None:
        said = [
            (
                f"{span} it grew by {straight['slope']:.2f} ppm a year, in a straight line.",
                [line, data],
            ),
            (f"{pace.capitalize()}.", [grown]),
        ]
    else:
        bend, told = at.id_of(curve), at.id_of(forecast)
        said = [
            (
                f"{span} it grew faster and faster: a straight line does not describe it, and {pace}.",
                [line, data, grown],
            ),
            (
                f"A parabola describes it to within {curve['worst']:.1f} ppm in every year: the growth of "
                f"a year is {curve['rise']:.3f} ppm more than that of the year before.",
                [bend],
            ),
            (
                f"That is no accident of the fit: from the years before {forecast['split']} alone, the "
                f"parabola tells the twenty years after to {forecast['missed']['parabola']:.1f} ppm "
                "(root mean square).",
                [told],
            ),
            (
                f"It did not rise in every decade: {decades['rises']} of {decades['pairs']} grew faster than "
                "the one before.",
                [grown],
            ),
        ]
    sentences: list[Made] = [
        {"text": text, "cites": [name for name in cites if name]}
        for text, cites in said
        if cites[0]
    ]
    _hand_over(sentences)
    return {"sentences": sentences}


def _hand_over(sentences: list[Made]) -> None:
    """Each conclusion is a finding that stands on the evidence it cites first, and falls with it."""
    findings = [
        {"finding": one["text"], "source": one["cites"][0], "confidence": 0.85} for one in sentences
    ]
    payload = {"sentences": sentences}
    experiments.hand_over("put the findings together", observed=findings, payload=payload)
