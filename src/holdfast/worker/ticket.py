"""A ticket as it comes: a Markdown file, plain words, or what a forge says of an issue.

All of it is data. It says what is wanted and who cares; it cannot say what may be done, by whom, or with
which commands: those come from the person alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

from holdfast.errors import UsageError
from holdfast.model.digest import Json, digest_bytes
from holdfast.model.fixed import fixed
from holdfast.model.text import first_line, one_line
from holdfast.model.walls import WALLS, Walls, moved_by, size_of
from holdfast.worker.written import read_plain

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,59}")
_LISTS = ("stakeholders", "viewpoints", "concerns", "acceptance")
_KEYS = ("id", "title", "eoi", *_LISTS)
_TITLE = 120  # characters
_HEADING = re.compile(r"#{1,6}\s+(.+?)\s*#*\s*\Z")
_JSON = re.compile(r"""\s*(?:\{\s*(?:["}]|\Z)|\[\s*[\[{\]"])""")
_GH_LINE = re.compile(r"([a-z][a-z ]*):\t(.*)\Z")


@fixed
class Entity:
    """What the work is about, if somebody says: a name, and where it is."""

    label: str
    path: str = ""


@fixed
class Ticket:
    """What is wanted. The lists are short texts for the prompt, and may be empty."""

    id: str
    title: str
    body: str = ""
    eoi: Entity | None = None
    stakeholders: tuple[str, ...] = ()
    viewpoints: tuple[str, ...] = ()
    concerns: tuple[str, ...] = ()
    acceptance: tuple[str, ...] = ()
    url: str = ""


def read_ticket(text: str, name: str = "", walls: Walls = WALLS) -> Ticket:
    """The ticket in a text; UsageError says what is wrong. `name` is the file it came from, bare."""
    if len(text.encode("utf-8", "replace")) > walls.ticket:
        message = f"the ticket has more than {size_of(walls.ticket)}"
        moved = moved_by("ticket", walls.ticket)
        raise UsageError(message, hint=f"say it in fewer words; {moved}")
    plain = text.replace("\r\n", "\n").lstrip("\ufeff")
    if not plain.strip():
        raise UsageError("the ticket is empty", hint="say what is wanted")
    if _JSON.match(plain):
        found = _from_json(plain)
    elif plain.startswith("---\n"):
        found = _from_markdown(plain)
    elif (issue := _from_gh(plain)) is not None:
        found = issue
    else:
        found = _titled("", plain)
    return _named(found, name)


def ticket_json(ticket: Ticket) -> dict[str, Json]:
    """A ticket as a value that a plan can hold; `ticket_from` reads it back."""
    data: dict[str, Json] = {"id": ticket.id, "title": ticket.title, "body": ticket.body}
    if ticket.eoi is not None:
        data["eoi"] = {"label": ticket.eoi.label, "path": ticket.eoi.path}
    for key in _LISTS:
        if items := getattr(ticket, key):
            data[key] = list(items)
    if ticket.url:
        data["url"] = ticket.url
    return data


def ticket_from(data: Mapping[str, Json]) -> Ticket:
    """What `ticket_json` wrote."""
    eoi = cast("Mapping[str, str] | None", data.get("eoi"))
    return Ticket(
        id=str(data["id"]),
        title=str(data["title"]),
        body=str(data["body"]),
        eoi=None if eoi is None else Entity(eoi["label"], eoi["path"]),
        url=str(data.get("url", "")),
        stakeholders=_kept(data, "stakeholders"),
        viewpoints=_kept(data, "viewpoints"),
        concerns=_kept(data, "concerns"),
        acceptance=_kept(data, "acceptance"),
    )


def _kept(data: Mapping[str, Json], key: str) -> tuple[str, ...]:
    return tuple(cast("Sequence[str]", data.get(key, ())))


def entity(text: str) -> Entity:
    """An entity of interest as a person writes it: `label`, `path`, or `label=path`."""
    label, equals, path = text.partition("=")
    if equals:
        return Entity(label.strip(), path.strip())
    return Entity(text.strip(), text.strip() if "/" in text or "." in text else "")


# --- the forms ---------------------------------------------------------------------------------------


def _from_markdown(text: str) -> Ticket:
    head, fence, body = text[4:].partition("\n---\n")
    if not fence:
        raise UsageError(
            "the front matter of the ticket has no end", hint="close it with a line ---"
        )
    given = _front(head)
    found = _titled(_text(given.get("title"), "title"), body)
    about = given.get("eoi")
    return replace(
        found,
        id=_text(given.get("id"), "id"),
        eoi=_eoi(about) if about else None,
        stakeholders=_texts(given.get("stakeholders"), "stakeholders"),
        viewpoints=_texts(given.get("viewpoints"), "viewpoints"),
        concerns=_texts(given.get("concerns"), "concerns"),
        acceptance=_texts(given.get("acceptance"), "acceptance"),
    )


def _front(head: str) -> Mapping[str, Json]:
    given = read_plain(head, "the front matter of the ticket")
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise UsageError("the front matter of the ticket is no mapping", hint="write key: value")
    for key in given:
        if key not in _KEYS:
            raise UsageError(
                f"a ticket cannot say {one_line(repr(key))}", hint=f"it may say {', '.join(_KEYS)}"
            )
    return given


def _from_json(text: str) -> Ticket:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"the ticket is not JSON: {first_line(str(error))}") from error
    if not isinstance(data, dict):
        raise UsageError(
            "the ticket is a list", hint="one issue: gh issue view N --json title,body"
        )
    title = data.get("title")
    body = data.get("body", data.get("description"))
    if not isinstance(title, str) or not title.strip():
        raise UsageError(
            "the issue has no title", hint="gh issue view N --json number,title,body,url"
        )
    number = data.get("ticket_id", data.get("iid", data.get("number", "")))
    url = data.get("html_url", data.get("web_url", data.get("url", "")))
    about = data.get("eoi")
    return Ticket(
        id=f"ticket-{number}" if type(number) is int else _text(number, "id"),
        title=one_line(title.strip())[:_TITLE],
        body=body if isinstance(body, str) else "",
        eoi=_eoi(about) if about else None,
        url=url if isinstance(url, str) else "",
    )


def _from_gh(text: str) -> Ticket | None:
    """What `gh issue view` prints when nobody looks on: lines of `key:<tab>value`, `--`, the body."""
    head, rule, body = text.partition("\n--\n")
    rows = [_GH_LINE.match(line) for line in head.splitlines()]
    if not rule and rows and rows[0] and rows[0][1] == "title":
        raise UsageError(
            "what 'gh issue view' said is cut short: it has no line '--'",
            hint="gh issue view N | holdfast work -",
        )
    if not rule or not rows or not all(rows):
        return None
    given = {row[1]: row[2] for row in rows if row}
    if "title" not in given:
        return None
    number = given.get("number", "").lstrip("#")
    found = Ticket(f"ticket-{number}" if number else "", one_line(given["title"])[:_TITLE], body)
    return replace(found, url=given.get("url", ""))


def _titled(title: str, body: str) -> Ticket:
    """A ticket whose title is given, or is the first line of its body."""
    if title:
        return Ticket("", one_line(title)[:_TITLE], body.strip("\n"))
    first = first_line(body)
    if not first:
        raise UsageError("the ticket is empty", hint="say what is wanted")
    rest = body.lstrip().partition("\n")[2].strip("\n")
    heading = _HEADING.match(first)
    return Ticket("", one_line(heading[1] if heading else first)[:_TITLE], rest)


def _named(ticket: Ticket, name: str) -> Ticket:
    """The ticket under its own id, that of its file, or one that its words give it."""
    given = ticket.id or name
    if given and _ID.fullmatch(given) and ".." not in given and not given.endswith((".", ".lock")):
        return replace(ticket, id=given)
    if ticket.id:
        raise UsageError(
            f"'{one_line(ticket.id)[:60]}' is no id of a ticket",
            hint="letters, digits, '.', '_' and '-', at most 60",
        )
    words = "-".join(re.findall(r"[a-z0-9]+", ticket.title.lower()))[:30].strip("-")
    told = digest_bytes(f"{ticket.title}\n{ticket.body}".encode())[:6]
    return replace(ticket, id=f"{words}-{told}" if words else f"ticket-{told}")


def _eoi(given: Json) -> Entity:
    if isinstance(given, str):
        return entity(given)
    if isinstance(given, Mapping) and isinstance(label := given.get("label"), str):
        path = given.get("path")
        return Entity(label, path if isinstance(path, str) else "")
    raise UsageError("'eoi' of the ticket is no text and has no label", hint="eoi: src/tides.py")


def _text(given: object, key: str) -> str:
    if given is None:
        return ""
    if isinstance(given, str | int) and not isinstance(given, bool):
        return str(given)
    raise UsageError(f"'{key}' of the ticket is no text")


def _texts(given: object, key: str) -> tuple[str, ...]:
    items = [given] if isinstance(given, str) else given or []
    if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
        raise UsageError(f"'{key}' of the ticket is no list of texts")
    return tuple(one_line(item) for item in items)
