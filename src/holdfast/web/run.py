"""One run: how far it is, what it costs, its steps as a list, and the step that is selected."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from holdfast.cli.ending import REPLAN, headline, is_settled, next_commands, saved_of
from holdfast.cli.gates import conflict_lines
from holdfast.cli.history import run_word
from holdfast.cli.limits import limit_words, own_of
from holdfast.cli.money import spent_words
from holdfast.cli.titles import line_title
from holdfast.core.state import State
from holdfast.core.views import cost_limit, worked_ms
from holdfast.engine.opened import is_left_rejected
from holdfast.model.items import step_named
from holdfast.model.plan import StepId
from holdfast.model.text import first_line
from holdfast.web.drawer import drawer
from holdfast.web.look import Look
from holdfast.web.screens import address, number, page, rendered, run_path, screen
from holdfast.web.steps import Listing, listing


@dataclass(frozen=True, slots=True)
class Strip:
    """The head of a run's page: everything that is known of it at a glance."""

    state: State
    title: str
    word: str
    line: str
    done: int
    spent: str
    limit: int | None
    took: int
    notes: tuple[str, ...]
    driven: bool
    waiting: int
    tried: int  # steps that failed and that a resume tries again
    following: tuple[str, ...]

    @property
    def acts(self) -> tuple[tuple[str, str], ...]:
        """What can be done with the run."""
        if self.word == "imported" or self.state.ended:
            return ()
        if self.state.status == "running" and self.driven:
            return (("stop", "Stop after its running steps"),)
        word = f"Retry {self.tried} failed" if self.tried else "Resume"
        return () if self.driven else (("resume", word),)


def strip_of(look: Look, state: State) -> Strip:
    """What the head of a run's page says now."""
    driven, row = look.is_driven(state), look.row(state.run)
    saved = look.made(state, "saved", lambda: saved_of(look.store, state))
    why = first_line(limit_words(look.store, state))
    return Strip(
        state=state,
        title=line_title(state.line, state.plan.goal),
        word=run_word(row, state, driven=driven),
        line=headline(state, look.now, driven=driven, saved=saved),
        done=state.counts["done"] + state.counts["reused"],
        spent=spent_words(state, saved.cost, saved.unpriced, driven=driven),
        limit=cost_limit(state),
        took=worked_ms(state, look.now if driven else 0),
        notes=(*conflict_lines(state), *([f"! {why}"] if why else [])),
        driven=driven,
        waiting=look.waiting_in(state),
        tried=look.made(state, "tried", lambda: _tried_again(look, state)),
        following=tuple(_following(look, state, driven=driven)),
    )


def _tried_again(look: Look, state: State) -> int:
    failed = [step for step, here in state.steps.items() if here.phase == "failed"]
    return sum(not is_left_rejected(look.store, state, step) for step in failed)


def _following(look: Look, state: State, *, driven: bool) -> list[str]:
    answered = {*look.answered(state)} | ({REPLAN} if is_settled(look.store, state) else set())
    own = own_of(state, look.where.file)
    return next_commands(state, driven=driven, own=own, answered=answered).split("    ")


@dataclass(frozen=True, slots=True)
class Asked:
    """What the address of a run's page says: which rows, which groups are open, which step."""

    run: str
    wanted: str = ""
    page: int = 1
    opened: tuple[str, ...] = ()
    step: str = ""
    view: str = ""

    def path(self, **other: object) -> str:
        """The same page with something else."""
        said: dict[str, object] = {
            "q": self.wanted,
            "page": self.page if self.page > 1 else "",
            "open": "\n".join(self.opened),
            "step": self.step,
            "view": self.view,
        }
        return address(run_path(self.run), **{**said, **other})

    def turned(self, page: int) -> str:
        """Another page of the list."""
        return self.path(page=page)

    def toggled(self, step: StepId) -> str:
        """The same with a group opened, or folded."""
        rest = [one for one in self.opened if one != step]
        return self.path(open="\n".join(rest if step in self.opened else [*rest, step]))


def asked_in(request: Request, state: State) -> Asked:
    """Read the address of a run's page."""
    query = request.query_params
    return Asked(
        run=state.run,
        wanted=query.get("q", "").strip(),
        page=number(query.get("page"), 1),
        opened=tuple(one for one in query.get("open", "").split("\n") if one),
        step=step_named(query.get("step", ""), state.plan.steps) or "",
        view=query.get("view", ""),
    )


def listed(look: Look, state: State, asked: Asked) -> Listing:
    """The rows that the address asks for."""
    return listing(look, state, page=asked.page, wanted=asked.wanted, opened=asked.opened)


def values_of(look: Look, request: Request, state: State) -> dict[str, object]:
    """What the page of a run is made of, whichever tab is shown; `drawer` is the selected step."""
    asked = asked_in(request, state)
    opened = drawer(look, state, request.query_params) if asked.step else ""
    return {"state": state, "strip": strip_of(look, state), "asked": asked, "drawer": opened}


def show(look: Look, request: Request) -> Response:
    """The page of a run with its steps."""
    state = look.find(request.path_params["run"])
    with look.speaking(state.line, state.file):
        rows = listed(look, state, asked_in(request, state))
        values = {"tab": "steps", "listing": rows, **values_of(look, request, state)}
        return page(look, request, "run.html", values)


def show_list(look: Look, request: Request) -> Response:
    """Only the list: a page of it was turned, a group opened, something else is wanted."""
    state = look.find(request.path_params["run"])
    with look.speaking(state.line, state.file):
        asked = asked_in(request, state)
        rows = listed(look, state, asked)
        context = {"look": look, "state": state, "asked": asked, "listing": rows}
        return HTMLResponse(rendered("list.html", context))


ROUTES = [screen("/runs/{run}", show), screen("/runs/{run}/list", show_list)]
