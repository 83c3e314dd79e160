"""Runs that a person brought from another store, in words."""

from __future__ import annotations

from holdfast import wire
from holdfast.cli.measure import age_words
from holdfast.cli.say import short
from holdfast.engine.elsewhere import Brought, brought_in
from holdfast.model.digest import Json
from holdfast.model.plan import RunId
from holdfast.ports import Store


def brought_words(found: Brought) -> str:
    """Who brought it, when and from where."""
    return f"by {found.by} from {found.store}, {age_words(wire.now_ms() - found.at)}"


def brought_json(found: Brought | None) -> Json:
    """The same for programs."""
    return None if found is None else {"by": found.by, "from": found.store, "at": found.at}


def brought_rows(store: Store, project: str, line: str, run: RunId) -> list[tuple[str, str]]:
    """That a person brought a run, if one did."""
    found = brought_in(store, project, line).get(run)
    return [] if found is None else [("brought", f"{short(run)} {brought_words(found)}")]
