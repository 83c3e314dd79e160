"""The files by which coding agents find Holdfast: how to start its server, and how to work with it.

What is there already stays: our entry is added to it, or nothing is. All files are read and checked before
the first is written.
"""

from __future__ import annotations

import base64
import json
import os
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple, cast

from holdfast.cli import templates
from holdfast.errors import StoreError, UsageError
from holdfast.model.digest import Json

AGENTS = ("claude", "cursor", "codex")
BEGIN = "<!-- holdfast:begin -->"
END = "<!-- holdfast:end -->"
_NAME = "holdfast"
_SERVER: Mapping[str, Json] = {"command": "holdfast", "args": ["mcp"]}
_TOML = '[mcp_servers.holdfast]\ncommand = "holdfast"\nargs = ["mcp"]\n'
_SKILLS = {"claude": ".claude/skills", "cursor": ".cursor/skills", "codex": ".agents/skills"}
_CONFIGS = {"claude": ".mcp.json", "cursor": ".cursor/mcp.json", "codex": ".codex/config.toml"}
_INDENT = re.compile(r"\{\r?\n([ \t]+)\"")
How = Literal["written", "merged", "kept"]
Merge = Callable[[str, bytes | None], bytes]  # of a path and what is there: what shall be there


class Change(NamedTuple):
    """A file as it will be; `kept` if it stays as it is."""

    path: str
    content: bytes
    how: How


def agents_named(given: str) -> list[str]:
    """The agents of a list with commas; UsageError if one is not known."""
    names = [name.strip() for name in given.split(",") if name.strip()]
    unknown = [name for name in names if name not in AGENTS]
    if unknown or not names:
        what = f"'{unknown[0]}' is no agent that is known" if unknown else "no agent is named"
        raise UsageError(what, hint=f"--agents {','.join(AGENTS)}")
    return list(dict.fromkeys(names))


def changes_for(directory: str, agents: Sequence[str]) -> list[Change]:
    """What would be written; UsageError if a file that is there cannot be added to."""
    files = templates.files_of("agents")
    skill, section = files["SKILL.md"], files["AGENTS.md"].decode()
    found = []
    for agent in agents:
        path = _CONFIGS[agent]
        merge = _merged_toml if path.endswith(".toml") else _merged_json
        found.append(_change(directory, path, merge))
        place = f"{_SKILLS[agent]}/{_NAME}/SKILL.md"
        found.append(_change(directory, place, lambda _, old: skill if old is None else old))
    found.append(_change(directory, "AGENTS.md", lambda _, old: _with_section(old, section)))
    return found


def _change(directory: str, path: str, merge: Merge) -> Change:
    place = os.path.join(directory, path)
    try:
        with open(place, "rb") as file:
            old: bytes | None = file.read()
    except FileNotFoundError:
        old = None
    except OSError as error:
        raise UsageError(f"cannot read '{path}': {error.strerror}") from error
    new = merge(path, old)
    return Change(path, new, "kept" if new == old else "written" if old is None else "merged")


def write_changes(directory: str, changes: Sequence[Change]) -> None:
    """Write them, each whole or not at all; where a link was, what it leads to is written."""
    for change in changes:
        if change.how == "kept":
            continue
        place = os.path.realpath(os.path.join(directory, change.path))
        draft = f"{place}.{os.getpid()}.tmp"
        try:
            os.makedirs(os.path.dirname(place), exist_ok=True)
            mode = os.stat(place).st_mode & 0o777 if os.path.exists(place) else 0o644
            with open(draft, "xb", opener=lambda path, flags: os.open(path, flags, mode)) as file:  # noqa: B023
                file.write(change.content)
            os.replace(draft, place)
        except OSError as error:
            raise StoreError(f"'{change.path}' cannot be written: {error.strerror}") from error


def install_lines(agents: Sequence[str]) -> list[str]:
    """How each agent is told by hand, outside of this project."""
    config = base64.b64encode(json.dumps(dict(_SERVER)).encode()).decode()
    link = f"cursor://anysphere.cursor-deeplink/mcp/install?name={_NAME}&config={config}"
    lines = {
        "claude": "claude mcp add holdfast -- holdfast mcp",
        "cursor": link,
        "codex": "codex mcp add holdfast -- holdfast mcp",
    }
    return [f"{agent}: {lines[agent]}" for agent in agents]


# --- adding to what is there ------------------------------------------------------------------


def _merged_json(path: str, old: bytes | None) -> bytes:
    """A JSON file with our server among those it has."""
    text = "" if old is None else _text(path, old)
    if not text.strip():
        return _printed({"mcpServers": {_NAME: _SERVER}}, "  ", "\n")
    try:
        whole = json.loads(text, object_pairs_hook=_once)
    except ValueError as error:
        raise _cannot(
            path, f"it is not plain JSON: {error}", json.dumps({_NAME: _SERVER})
        ) from error
    servers = whole.get("mcpServers", {}) if isinstance(whole, dict) else None
    if not isinstance(servers, dict):
        raise _cannot(path, "it has no object 'mcpServers'", json.dumps({_NAME: _SERVER}))
    if _NAME in servers:
        return cast("bytes", old)
    found = _INDENT.search(text)
    merged = {**whole, "mcpServers": {**servers, _NAME: _SERVER}}
    return _printed(merged, found[1] if found else "  ", "\r\n" if "\r\n" in text else "\n")


def _printed(value: Mapping[str, Json], indent: str, end: str) -> bytes:
    text = json.dumps(value, ensure_ascii=False, indent=indent) + "\n"
    return text.replace("\n", end).encode()


def _once(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    """An object in which nothing is said twice: one of both would be lost."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is there twice")
    return found


def _merged_toml(path: str, old: bytes | None) -> bytes:
    """A TOML file with our table at its end."""
    if old is None:
        return _TOML.encode()
    text = _text(path, old)
    try:
        known = tomllib.loads(text)
        servers = known.get("mcp_servers", {})
        if isinstance(servers, dict) and _NAME in servers:
            return old
        gap = "" if not text or text.endswith("\n\n") else "\n" if text.endswith("\n") else "\n\n"
        merged = f"{text}{gap}{_TOML}"
        tomllib.loads(merged)
    except (ValueError, RecursionError) as error:  # no TOML, or numbers and depths without end
        raise _cannot(path, f"a table cannot be added to it: {error}", _TOML) from error
    return merged.encode()


def _with_section(old: bytes | None, section: str) -> bytes:
    """A page with our section between its marks; one that is there is somebody's by now, and stays."""
    ours = f"{BEGIN}\n{section.rstrip()}\n{END}\n"
    if old is None:
        return ours.encode()
    if BEGIN.encode() in old:
        return old
    gap = b"" if not old else b"\n" if old.endswith(b"\n") else b"\n\n"
    return old + gap + ours.encode()


def _text(path: str, content: bytes) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _cannot(path, "it is not text in UTF-8", "") from error


def _cannot(path: str, why: str, line: str) -> UsageError:
    hint = f"add this by hand: {line.strip()}" if line else None
    return UsageError(f"nothing was written, because '{path}' cannot be added to: {why}", hint=hint)
