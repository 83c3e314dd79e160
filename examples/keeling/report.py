"""The report of the example: one text, written as Markdown and as a page that needs nothing else."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Sequence
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from experiments import BENT, SOURCE, origin, rows
from plots import STYLE, Plot, Series, svg
from synthesis import Known, known

Made = dict[str, Any]
TITLE = "How carbon dioxide over Mauna Loa grows"
ALL_CONTESTED = "None: all that was found is contested."
QUESTION = "How does carbon dioxide in the air over Mauna Loa grow?"
_CITES = re.compile(r"\{(e-[0-9a-f]+)\}")
_LINKS = re.compile(r"\]\(#(e-[0-9a-f]+)\)")
_ANCHORS = re.compile(r'<a id="(e-[0-9a-f]+)">')


class Table(NamedTuple):
    """Rows under headings."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]


class Items(NamedTuple):
    """A list; with ids, each item can be linked to."""

    lines: Sequence[str]
    ids: Sequence[str] = ()


Block: TypeAlias = (
    str | Table | Items | Plot
)  # a text is a paragraph; {e-…} in a text cites evidence
Part = tuple[str, Sequence[Block]]


def write(
    look: Made,
    straight: Made,
    decades: Made,
    conclude: Made,
    curve: Made | None = None,
    forecast: Made | None = None,
) -> None:
    """Write report.md, report.html and the plots; nothing in them depends on when that is."""
    at = known()
    steps = {"look": look, "straight": straight, "decades": decades}
    steps |= {"curve": curve} if curve else {}
    steps |= {"forecast": forecast} if forecast else {}
    parts: list[Part] = [
        ("Question", [QUESTION]),
        ("Answer", _answer(conclude)),
        ("Data", _data(look, at)),
        ("Hypotheses", [_hypotheses(at, steps)]),
        ("What was measured", _measured(steps, at)),
        *([("How the plan changed", _changed(look, straight, at))] if curve else []),
        ("What is open", _open(at)),
        ("How it was made", _MADE),
        ("Evidence", [_evidence(at, steps)]),
    ]
    _draw([block for _, blocks in parts for block in blocks if isinstance(block, Plot)])
    order = _order(at, steps)
    Path("report.md").write_text(as_markdown(parts, order), encoding="utf-8")
    Path("report.html").write_text(as_page(parts, order), encoding="utf-8")


def _draw(plots: Sequence[Plot]) -> None:
    """Write these plots, and leave none of another report beside them."""
    folder = Path("plots")
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir()
    for plot in plots:
        (folder / f"{plot.name}.svg").write_text(svg(plot, alone=True), encoding="utf-8")


def is_whole(report: Path) -> str | bool:
    """A guard: every citation leads to evidence that the report lists, and all of that is cited.

    One that cites nothing says that all of it is contested.
    """
    text = (report / "report.md").read_text(encoding="utf-8")
    cited, listed = set(_LINKS.findall(text)), set(_ANCHORS.findall(text))
    if lost := cited - listed:
        return f"it cites what it does not list: {', '.join(sorted(lost))}"
    if idle := listed - cited:
        return f"it lists what it never cites: {', '.join(sorted(idle))}"
    return bool(cited) or ALL_CONTESTED in text or "it cites nothing"


# --- what it says -----------------------------------------------------------------------------------

_LIMITS = (
    "The table says nothing of causes: neither what people burn nor what plants and the sea take up is in "
    "it. Every fit here takes the means of single years as if they were exact."
)
_MADE: Sequence[Block] = [
    "By `holdfast run` in this directory, from `plan.yaml`, without a network. Each experiment is a step "
    "that hands over what it found, to a ledger; each conclusion names the entries of it that it stands "
    "on, and what is contested there is left out. `holdfast ledger` shows it, `holdfast show STEP "
    "--handoff` what a step told, and `holdfast show STEP --context` what it knew. Run it again and "
    "everything is reused; kill it at any "
    "moment, run it again, and this report is the same to the byte.",
]


def _answer(conclude: Made) -> list[Block]:
    said: list[Block] = [f"{one['text']} {_cited(one['cites'])}" for one in conclude["sentences"]]
    return said or [ALL_CONTESTED]


def _data(look: Made, at: Known) -> list[Block]:
    (first, low), (last, high) = look["first"], look["last"]
    table = rows()
    higher = sum(later[1] > earlier[1] for earlier, later in pairwise(table))
    if higher == len(table) - 1:
        rises = "each is higher than the one before"
    else:
        rises = f"{higher} of {len(table) - 1} are higher than the one before"
    told = origin()
    return [
        *([f"`{SOURCE}` says of itself: “{told}”"] if told else []),
        f"`{SOURCE}` has {look['finding']}. {_cited([at.id_of(look)])}",
        Plot(
            "means",
            "Yearly means",
            f"From {low:.0f} ppm in {first} to {high:.0f} ppm in {last}; {rises}.",
            "year",
            "carbon dioxide, ppm",
            [Series("yearly mean", _points(rows()), "dot")],
        ),
    ]


def _hypotheses(at: Known, steps: dict[str, Made]) -> Table:
    tests = {
        "linear": ["straight"],
        "faster": ["decades"],
        "curved": ["curve", "forecast"],
    }
    lines = []
    for name, one in at.hypotheses.items():
        ids = [at.id_of(steps[step]) for step in tests.get(name, []) if step in steps]
        state = f"**{one['state']}**" + ("" if all(ids) else ", in part by what is contested")
        state = f"**{one['state']}**, by what is contested" if not any(ids) else state
        lines.append([f"`{name}`", one["text"], state, one["sides"], _cited(ids)])
    return Table(["", "Hypothesis", "State", "Evidence", "Tested by"], lines)


def _measured(steps: dict[str, Made], at: Known) -> list[Block]:
    straight, decades = steps["straight"], steps["decades"]
    curve, forecast = steps.get("curve"), steps.get("forecast")
    blocks: list[Block] = [
        _fits(straight, curve, at),
        _fit_plot(straight, curve),
        _left_plot(straight, curve),
    ]
    grown = decades["growth"]
    blocks += [
        f"{_sentence(decades)} {_cited([at.id_of(decades)])}",
        Plot(
            "decades",
            "Growth in whole decades",
            "; ".join(f"{name}: {rate:.2f} ppm a year" for name, rate in grown.items()) + ".",
            "decade",
            "growth, ppm a year",
            [Series("growth", [(float(n), rate) for n, rate in enumerate(grown.values())], "bar")],
            labels=list(grown),
            from_zero=True,
        ),
    ]
    return blocks + (_told(forecast, at) if forecast else [])


def _fits(straight: Made, curve: Made | None, at: Known) -> Table:
    lines = [_fit_row("straight line", straight, f"{straight['slope']:.3f} ppm a year", at)]
    if curve:
        more = "more" if curve["rise"] > 0 else "less"
        rise = f"{abs(curve['rise']):.4f} ppm a year {more} every year"
        lines.append(_fit_row("parabola", curve, rise, at))
    head = ["Fit to all years", "Growth", "Leaves (root mean square)", "Leaves at most", "Evidence"]
    return Table(head, lines)


def _fit_row(name: str, made: Made, growth: str, at: Known) -> list[str]:
    spread, worst = f"{made['spread']:.2f} ppm", f"{made['worst']:.2f} ppm"
    return [name, growth, spread, worst, _cited([at.id_of(made)])]


def _fit_plot(straight: Made, curve: Made | None) -> Plot:
    series = [
        Series("yearly mean", _points(rows()), "dot", "four"),
        Series("straight line", _points(straight["line"]), "dash", "two"),
    ]
    if curve:
        series.append(Series("parabola", _points(curve["line"])))
    words = _lies(straight)
    if curve:
        words += f" The parabola is never farther from them than {curve['worst']:.2f} ppm."
    return Plot("fits", "The years and the fits", words, "year", "carbon dioxide, ppm", series)


def _lies(straight: Made) -> str:
    """Where the straight line lies, if what it leaves is bent as clearly as that."""
    left = [value for _, value in straight["left"]]
    ends, middle = (left[0], left[-1]), left[len(left) // 2]
    if straight["bent"] > BENT and min(ends) > 0 > middle:
        return "The straight line lies below the years at both ends and above them in the middle."
    if straight["bent"] < -BENT and max(ends) < 0 < middle:
        return "The straight line lies above the years at both ends and below them in the middle."
    return f"The straight line is never farther from the years than {straight['worst']:.2f} ppm."


def _left_plot(straight: Made, curve: Made | None) -> Plot:
    series = [Series("left by the straight line", _points(straight["left"]), "dash", "two")]
    if curve:
        series.append(Series("left by the parabola", _points(curve["left"])))
    bent = straight["bent"]
    shape = "a bowl" if bent > BENT else "a hill" if bent < -BENT else "neither a bowl nor a hill"
    words = (
        f"What the straight line leaves is {shape} (r = {bent:.2f} with the square of time) and at most "
        f"{straight['worst']:.2f} ppm."
    )
    if curve:
        words += f" What the parabola leaves is at most {curve['worst']:.2f} ppm."
    return Plot("left", "What the fits leave", words, "year", "mean less fit, ppm", series)


def _told(forecast: Made, at: Known) -> list[Block]:
    split, missed = forecast["split"], forecast["missed"]
    lines = [[name, f"{value:.2f} ppm"] for name, value in missed.items()]
    colours = {"straight line": "two", "parabola": "one", "fixed percentage": "three"}
    series = [Series("yearly mean", _points(rows()), "dot", "four")]
    series += [
        Series(name, _points(line), "line" if name == "parabola" else "dash", colours[name])
        for name, line in forecast["told"].items()
    ]
    return [
        f"{_sentence(forecast)} {_cited([at.id_of(forecast)])}",
        Table([f"Fit to the years before {split}", f"Misses those from {split} on by"], lines),
        Plot(
            "forecast",
            f"The years from {split} on, told from those before",
            f"To the right of the upright line the years were unseen: {_passes(forecast)}.",
            "year",
            "carbon dioxide, ppm",
            series,
            mark=float(split),
        ),
    ]


def _passes(forecast: Made) -> str:
    """Where the fits pass the years that they were not made from."""
    means, split = dict(rows()), forecast["split"]
    said = []
    for name, line in forecast["told"].items():
        over = [value - means[year] for year, value in line if year >= split]
        where = "above" if min(over) > 0 else "below" if max(over) < 0 else "among"
        said.append(f"the {name} runs {where} them ({forecast['missed'][name]:.2f} ppm off)")
    return ", ".join(said)


def _changed(look: Made, straight: Made, at: Known) -> list[Block]:
    """Why the second plan took over: of both reasons the hole is found first."""
    assumed, made = "the growth is a straight line", straight
    if look["missing"]:
        assumed, made = "the table has no holes", look
    return [
        f"The first plan, `plan.yaml`, took it for granted that {assumed}. {_sentence(made)} "
        f"{_cited([at.id_of(made)])} So what it stood on was refuted before anything was concluded, and "
        "`second.yaml`, written for that case, took its place: with two further experiments, `curve` and "
        "`forecast`. What was finished kept its results. `holdfast plans show` and `holdfast plans diff` "
        "tell the same.",
    ]


def _open(at: Known) -> list[Block]:
    asked: list[Block] = [Items([one["text"] for one in at.questions])] if at.questions else []
    return [*asked, _LIMITS]


def _evidence(at: Known, steps: dict[str, Made]) -> Block:
    ids = _order(at, steps)
    if not ids:
        return ALL_CONTESTED
    makers = {at.id_of(made): step for step, made in steps.items()}
    lines = [
        f"{_sentence(steps[makers[name]])} From step `{makers[name]}`, "
        f"source `{at.evidence[name]['source']}`, confidence {at.evidence[name]['sure']}. `{name}`"
        for name in ids
    ]
    return Items(lines, ids)


def _order(at: Known, steps: dict[str, Made]) -> list[str]:
    """The evidence in the order of the steps that gave it; what was contested is none."""
    return [name for made in steps.values() if (name := at.id_of(made))]


def _sentence(made: Made) -> str:
    finding = str(made["finding"])
    return f"{finding[0].upper()}{finding[1:]}."


def _cited(ids: Sequence[str]) -> str:
    return " ".join(f"{{{name}}}" if name else "(contested)" for name in ids)


def _points(pairs: Sequence[Sequence[float]]) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in pairs]


# --- Markdown ---------------------------------------------------------------------------------------


def as_markdown(parts: Sequence[Part], order: Sequence[str]) -> str:
    """The report as Markdown; the plots are files beside it."""

    def said(text: str) -> str:
        return _CITES.sub(lambda found: f"[[{order.index(found[1]) + 1}]](#{found[1]})", text)

    lines = [f"# {TITLE}"]
    for title, blocks in parts:
        lines.append(f"## {title}")
        for block in blocks:
            if isinstance(block, str):
                lines.append(said(block))
            elif isinstance(block, Table):
                body = [block.head, ["---"] * len(block.head), *block.rows]
                lines.append("\n".join(f"| {' | '.join(map(said, row))} |" for row in body))
            elif isinstance(block, Plot):
                lines.append(
                    f"![{block.title}](plots/{block.name}.svg)\n\n*{block.title}.* {block.words}"
                )
            elif block.ids:
                named = zip(block.ids, block.lines, strict=True)
                items = [
                    f'{n}. <a id="{name}"></a>{said(text)}'
                    for n, (name, text) in enumerate(named, 1)
                ]
                lines.append("\n".join(items))
            else:
                lines.append("\n".join(f"- {said(text)}" for text in block.lines))
    return "\n\n".join(lines) + "\n"


# --- a page -----------------------------------------------------------------------------------------

_PAGE_STYLE = """
:root{color-scheme:light dark}
:root{--paper:#fff;--ink:#1d2327;--soft:#5a646b;--rule:#d9dee2;--link:#0a5d82;--wash:#f4f6f8}
@media (prefers-color-scheme:dark){
:root{--paper:#15191c;--ink:#e3e8eb;--soft:#a3adb4;--rule:#39424a;--link:#7cc8ee;--wash:#1e2428}
}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:17px/1.6 Georgia,'Times New Roman',serif}
main{max-width:46rem;margin:0 auto;padding:2rem 1rem 4rem}
h1{font-size:2rem;line-height:1.2;margin:0 0 1.5rem}
h2{font-size:1.25rem;margin:2.2rem 0 .6rem;padding-top:.6rem;border-top:1px solid var(--rule)}
a{color:var(--link)}
.cite{font-size:.8em;text-decoration:none;white-space:nowrap}
.answer p:first-of-type{font-size:1.15em}
table{border-collapse:collapse;width:100%;margin:1rem 0;font:15px/1.45 system-ui,sans-serif}
th,td{text-align:left;vertical-align:top;padding:.4rem .6rem .4rem 0;border-bottom:1px solid var(--rule)}
th{color:var(--soft);font-weight:600}
.scroll{overflow-x:auto}
figure{margin:1.5rem 0}
figcaption{color:var(--soft);font:14px/1.45 system-ui,sans-serif}
.plot{display:block;width:100%;height:auto}
code{font:.85em ui-monospace,monospace;background:var(--wash);padding:.1em .3em;border-radius:3px}
li:target{background:var(--wash);outline:2px solid var(--link)}
""".strip()


def as_page(parts: Sequence[Part], order: Sequence[str]) -> str:
    """The report as one page of HTML: no script, nothing from elsewhere, for light and dark rooms."""

    def said(text: str) -> str:
        text = re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text, quote=False))
        text = re.sub(r"\*\*([^*]+)\*\*", r"<strong>\1</strong>", text)
        return _CITES.sub(
            lambda found: f'<a class="cite" href="#{found[1]}">[{order.index(found[1]) + 1}]</a>',
            text,
        )

    body = []
    for title, blocks in parts:
        inner = [_html(block, said) for block in blocks]
        name = title.lower().replace(" ", "-")
        body.append(
            f'<section class="{name}">\n<h2>{escape(title)}</h2>\n'
            + "\n".join(inner)
            + "\n</section>"
        )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(TITLE)}</title>\n<style>\n{_PAGE_STYLE}\n{STYLE}\n</style>\n</head>\n<body>\n<main>\n"
        f"<h1>{escape(TITLE)}</h1>\n" + "\n".join(body) + "\n</main>\n</body>\n</html>\n"
    )


def _html(block: Block, said: Callable[[str], str]) -> str:
    if isinstance(block, str):
        return f"<p>{said(block)}</p>"
    if isinstance(block, Plot):
        words = f"<strong>{escape(block.title)}.</strong> {escape(block.words)}"
        return f"<figure>\n{svg(block)}<figcaption>{words}</figcaption>\n</figure>"
    if isinstance(block, Table):
        head = "".join(f'<th scope="col">{said(cell)}</th>' for cell in block.head)
        lines = "\n".join(
            "<tr>" + "".join(f"<td>{said(cell)}</td>" for cell in row) + "</tr>"
            for row in block.rows
        )
        return (
            f'<div class="scroll"><table>\n<thead><tr>{head}</tr></thead>\n'
            f"<tbody>\n{lines}\n</tbody>\n</table></div>"
        )
    if block.ids:
        named = zip(block.ids, block.lines, strict=True)
        return (
            "<ol>\n"
            + "\n".join(f'<li id="{name}">{said(text)}</li>' for name, text in named)
            + "\n</ol>"
        )
    return "<ul>\n" + "\n".join(f"<li>{said(text)}</li>" for text in block.lines) + "\n</ul>"
