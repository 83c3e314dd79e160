"""Names that callers bring to git: each is checked as text before any command line is made.

A name is data from strangers: a model, a plan, a ticket. Git would read some as options, as other
revisions, or as programs to start. What passes here means the one thing it says; the rest is refused
with its place in quotes. No shell is ever involved, so nothing needs escaping.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NewType

from holdfast.errors import UsageError

Oid = NewType("Oid", str)  # the full name of an object, in hexadecimal digits
Scheme = Literal["file", "git", "http", "https", "ssh"]

_OID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_REVISION = re.compile(r"\w[\w./+#@=-]*(?:[~^][0-9]*)*")
_TRAILER = re.compile(r"[A-Za-z][A-Za-z0-9-]*")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")
_URL = re.compile(r"(file|git|http|https|ssh)://([^/\s]*)(/\S*)?")
_SCP = re.compile(r"(?:([A-Za-z0-9_.][A-Za-z0-9_.-]*)@)?([A-Za-z0-9][A-Za-z0-9.-]*):(?![:/])(\S+)")
_FORBIDDEN = frozenset(" ~^:?*[\\\x7f")
_MOST = 1000
_FEW = 5


def shown(text: str) -> str:
    """The text in double quotes, shortened, with nothing in it that could move a cursor."""
    few = text if len(text) <= _MOST else text[:_MOST] + "…"
    return json.dumps(few, ensure_ascii=not few.isprintable())


def few(paths: Iterable[str]) -> str:
    """The first of some paths, in quotes, and how many more there are."""
    whole = sorted(paths)
    more = f" and {len(whole) - _FEW} more" if len(whole) > _FEW else ""
    return ", ".join(shown(path) for path in whole[:_FEW]) + more


def is_oid(text: str) -> bool:
    """Whether the text is the whole name of an object."""
    return _OID.fullmatch(text) is not None


def check_oid(text: str) -> Oid:
    """The text as the name of an object; UsageError if it is none."""
    if not is_oid(text):
        raise UsageError(f"{shown(text)} is no full name of an object", hint="40 or 64 digits")
    return Oid(text)


def check_revision(text: str) -> str:
    """A branch, tag, HEAD or (part of an) object name, with `~N` and `^N` after it.

    Searches (`:/text`), ranges, reflog entries (`@{-1}`) and paths are refused: they mean something
    else from day to day, or several things at once.
    """
    bad = ".." in text or "@{" in text or text.endswith(".lock") or len(text) > _MOST
    if bad or _REVISION.fullmatch(text) is None:
        raise UsageError(
            f"{shown(text)} is no revision",
            hint="name a commit, a branch or a tag, with ~N or ^N after it",
        )
    return text


def check_branch(text: str) -> str:
    """The name of a branch or tag, without `refs/heads/`: the rules of git, and a little stricter."""
    parts = text.split("/")
    bad = (
        not text
        or len(text.encode("utf-8", "replace")) > 200  # noqa: PLR2004 - it becomes a file name, with a suffix
        or text.startswith("-")
        or text in {"@", "HEAD"}
        or text.endswith(".")
        or ".." in text
        or "@{" in text
        or "$(" in text
        or "`" in text
        or not text.isprintable()
        or not _FORBIDDEN.isdisjoint(text)
        or any(not part or part.startswith((".", "-")) or part.endswith(".lock") for part in parts)
    )
    if bad:
        raise UsageError(f"{shown(text)} cannot be the name of a branch or tag")
    if text.startswith("refs/"):
        raise UsageError(f"{shown(text)} names a ref, not a branch", hint="leave refs/heads/ out")
    return text


def check_name(text: str) -> str:
    """A plain word for something of our own, such as a worktree: one component of a path."""
    if _NAME.fullmatch(text) is None or ".." in text or text.endswith((".", ".lock")):
        raise UsageError(f"{shown(text)} is no name", hint="letters, digits, '.', '_' and '-'")
    return text


def check_path(text: str) -> str:
    """A path inside a work tree: relative, nothing that leads up, nothing of git's own."""
    parts = text.split("/")
    if not text or "\0" in text or text.startswith("/"):
        raise UsageError(f"path {shown(text)} is not relative to the work tree")
    if any(part in {"", ".", ".."} for part in parts):
        raise UsageError(f"path {shown(text)} has an empty, '.' or '..' component")
    if any(part.rstrip(" .").lower() in {".git", "git~1"} for part in parts):
        raise UsageError(f"path {shown(text)} leads into git's own files")
    return text


def check_message(text: str) -> str:
    """What a commit says: some text, without NUL, that can be written down as UTF-8."""
    if not text.strip():
        raise UsageError("a commit needs a message")
    if "\0" in text:
        raise UsageError("a message cannot hold NUL")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise UsageError("a message must be valid text") from error
    return text


def check_trailer(key: str, value: str) -> str:
    """One line at the end of a message, as git reads it: `Key: value`."""
    if _TRAILER.fullmatch(key) is None:
        raise UsageError(f"{shown(key)} cannot be the key of a trailer")
    if not value.strip() or not value.isprintable():
        raise UsageError(f"the trailer {shown(key)} needs a value in one line")
    return f"{key}: {value.strip()}"


@dataclass(frozen=True, slots=True)
class Identity:
    """Who commits."""

    name: str
    email: str

    def __post_init__(self) -> None:
        for what, text in (("name", self.name), ("email", self.email)):
            if not text.strip() or not text.isprintable() or not {"<", ">"}.isdisjoint(text):
                raise UsageError(
                    f"{shown(text)} cannot be the {what} of who commits",
                    hint="one line, without < and >",
                )


@dataclass(frozen=True, slots=True)
class Address:
    """Where a remote repository is, and what kind of connection leads there."""

    url: str
    scheme: Scheme


def check_address(text: str) -> Address:
    """The address of a remote; UsageError if it is none, or would start a program of its choice."""
    wrong = UsageError(
        f"{shown(text)} is no address of a repository",
        hint="https://…, http://…, ssh://…, user@host:path, git://…, file:///… or an absolute path",
    )
    if not text.isprintable() or len(text) > _MOST or "::" in text:
        raise wrong
    if os.path.isabs(text):
        return Address(text, "file")
    if found := _URL.fullmatch(text):
        scheme, host = found[1], found[2].rpartition("@")[2]
        if host.startswith("-") or found[2].startswith("-") or (not host) is (scheme != "file"):
            raise wrong
        if ":" in found[2].rpartition("@")[0]:
            raise UsageError(
                "the address of a repository holds a password", hint="use a credential helper"
            )
        for known in ("file", "git", "http", "https", "ssh"):
            if scheme == known:
                return Address(text, known)
    if _SCP.fullmatch(text):
        return Address(text, "ssh")
    raise wrong
