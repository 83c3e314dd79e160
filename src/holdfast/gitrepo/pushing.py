"""Push, with the truth about each ref: what arrived, what did not, and why.

A push leaves this machine or starts a program on it (a remote on this disk has hooks, ssh is a program).
So a person says beforehand which kinds of connection are allowed; none is by default. The address is
checked as text, and comes from the caller; `remote_address` reads what a repository calls a remote, as
data, for a person to look at.

Refs move forward only, or from what the caller expects there; nothing is ever forced blindly.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from holdfast.errors import PushError, UsageError
from holdfast.gitrepo.calls import Answer, answer
from holdfast.gitrepo.client import Client, resolve
from holdfast.gitrepo.names import (
    Address,
    Scheme,
    check_address,
    check_branch,
    check_oid,
    shown,
)
from holdfast.gitrepo.place import read_settings

Outcome = Literal[
    "created", "updated", "forced", "unchanged", "deleted",
    "non_fast_forward", "stale", "hook_declined", "remote_refused", "not_tried",
]  # fmt: skip
Reason = Literal["", "rejected", "auth", "unreachable", "no_repository", "not_allowed", "failed"]

_FINE = {" ": "updated", "+": "forced", "*": "created", "=": "unchanged", "-": "deleted"}
_REJECTED: tuple[tuple[str, Outcome], ...] = (
    ("non-fast-forward", "non_fast_forward"),
    ("fetch first", "non_fast_forward"),
    ("needs force", "non_fast_forward"),
    ("already exists", "non_fast_forward"),
    ("stale info", "stale"),
    ("remote ref updated since checkout", "stale"),
    ("incorrect old value", "stale"),
    ("failed to update ref", "stale"),
    ("hook declined", "hook_declined"),
    ("declined", "hook_declined"),
    ("atomic push fail", "not_tried"),
)
_REASONS: tuple[tuple[str, Reason], ...] = (
    ("not allowed", "not_allowed"),
    ("authentication failed", "auth"),
    ("could not read username", "auth"),
    ("could not read password", "auth"),
    ("permission denied (", "auth"),
    ("access denied", "auth"),
    ("the requested url returned error: 401", "auth"),
    ("the requested url returned error: 403", "auth"),
    ("service not enabled", "auth"),
    ("does not appear to be a git repository", "no_repository"),
    ("repository not found", "no_repository"),
    ("not found", "no_repository"),
    ("no such file or directory", "no_repository"),
    ("not exported", "no_repository"),
    ("unable to connect", "unreachable"),
    ("could not resolve", "unreachable"),
    ("connection refused", "unreachable"),
    ("failed to connect", "unreachable"),
    ("couldn't connect", "unreachable"),
    ("timed out", "unreachable"),
    ("hung up", "unreachable"),
)


@dataclass(frozen=True, slots=True)
class Wish:
    """Which commit shall be at which branch of the remote.

    `expected` is what is there now, as the caller knows: then the branch may also move elsewhere than
    forward. None lets it move forward, or be new.
    """

    commit: str
    branch: str
    expected: str | None = None


@dataclass(frozen=True, slots=True)
class RefPush:
    """What became of one ref; `said` is git's own word for it."""

    ref: str
    outcome: Outcome
    said: str = ""

    @property
    def arrived(self) -> bool:
        return self.outcome in _FINE.values()


@dataclass(frozen=True, slots=True)
class Pushed:
    """How a push ended: git's exit code, each ref, and all that git and the remote said."""

    url: str
    code: int
    refs: tuple[RefPush, ...]
    said: str

    @property
    def arrived(self) -> bool:
        """Every ref is where it was wished to be, and git says so."""
        return self.code == 0 and bool(self.refs) and all(ref.arrived for ref in self.refs)


@dataclass(frozen=True, slots=True)
class Allowed:
    """What a person allows a push: kinds of connection, and programs of their own choice.

    `helper` is a credential helper as git calls it (`store`, `!program …`); `ssh` the command for ssh.
    """

    schemes: frozenset[Scheme] = frozenset()
    helper: str = ""
    ssh: str = "ssh -oBatchMode=yes"


def remote_address(client: Client, name: str = "origin") -> Address:
    """Where the person's repository says that a remote is. Look at it before you allow it: it is data.

    A path that is not absolute begins at the top of the work tree, as for git; it must lead out of it. What
    lies inside is the repository's own word, and a push would run the hooks that it brings.
    """
    settings = read_settings(client.place)
    check_branch(name)
    found = settings.get(f"remote.{name}.pushurl") or settings.get(f"remote.{name}.url")
    if not found:
        raise UsageError(f"there is no remote {shown(name)}")
    if not os.path.isabs(found) and ":" not in found.partition("/")[0]:
        found = os.path.realpath(os.path.join(client.place.top, found))
        inside = (client.place.top, client.place.common)
        if any(os.path.commonpath((found, place)) == place for place in inside):
            raise UsageError(
                f"remote {shown(name)} is inside of the repository itself: {shown(found)}",
                hint="push there yourself",
            )
    return check_address(found)


def push(
    client: Client,
    url: str,
    wishes: Sequence[Wish],
    *,
    allowed: Allowed,
    atomic: bool = True,
) -> Pushed:
    """Push commits to branches of a remote. Returns only if all of them arrived; PushError if not.

    The error has the same report: the exit code is never lost, and each ref says what became of it.
    """
    address = check_address(url)
    if address.scheme not in allowed.schemes:
        raise UsageError(
            f"nobody allowed to push by {shown(address.scheme)} ({shown(url)})",
            hint="a person has to allow this kind of connection",
        )
    if not wishes:
        raise UsageError("say what is to be pushed")
    refs: list[str] = []
    leases: list[str] = []
    for wish in wishes:
        ref = f"refs/heads/{check_branch(wish.branch)}"
        refs.append(f"{resolve(client, wish.commit)}:{ref}")
        if wish.expected is not None:
            leases.append(f"--force-with-lease={ref}:{check_oid(wish.expected)}")
    done = _call(client, address, allowed, [*leases, *(["--atomic"] if atomic else [])], refs)
    report = Pushed(url, done.code, _read(done, wishes), done.said)
    if not report.arrived:
        raise _error(report)
    return report


def _call(
    client: Client, address: Address, allowed: Allowed, flags: Sequence[str], refs: Sequence[str]
) -> Answer:
    words = ["push", "--porcelain", "--no-verify", "--no-signed", "--no-follow-tags", "--no-thin"]
    words += ["--recurse-submodules=no", *flags, "--end-of-options", address.url, *refs]
    room = client.base.set((f"protocol.{address.scheme}.allow", "always"))
    env: dict[str, str | None] = {"GIT_ALLOW_PROTOCOL": address.scheme}
    if address.scheme == "ssh":
        room = room.set(("core.sshCommand", allowed.ssh))
        env |= {"GIT_SSH_COMMAND": allowed.ssh, "SSH_AUTH_SOCK": os.environ.get("SSH_AUTH_SOCK")}
        env["HOME"] = os.environ.get("HOME")
    if allowed.helper:
        room = room.set(("credential.helper", allowed.helper))
        env["HOME"] = os.environ.get("HOME")
    return answer(replace(room, lock=None), *words, env=env)


def _read(done: Answer, wishes: Sequence[Wish]) -> tuple[RefPush, ...]:
    """What `--porcelain` says of each ref: flag, from:to, and a summary with the reason in brackets."""
    found: dict[str, RefPush] = {}
    for line in done.out.decode("utf-8", "replace").splitlines():
        parts = line.split("\t")
        if len(parts) < 3 or len(parts[0]) != 1:  # noqa: PLR2004 - flag, refs, summary
            continue
        ref = parts[1].rpartition(":")[2]
        found[ref] = RefPush(ref, _outcome(parts[0], parts[2]), parts[2])
    named = [f"refs/heads/{wish.branch}" for wish in wishes]
    return tuple(found.get(ref, RefPush(ref, "not_tried")) for ref in named)


def _outcome(flag: str, summary: str) -> Outcome:
    match flag:
        case " ":
            return "updated"
        case "+":
            return "forced"
        case "*":
            return "created"
        case "=":
            return "unchanged"
        case "-":
            return "deleted"
        case _:
            low = summary.lower()
            return next((outcome for sign, outcome in _REJECTED if sign in low), "remote_refused")


_WORDS: dict[Outcome, str] = {
    "non_fast_forward": "it has commits that this one does not build on",
    "stale": "it is no longer where you expected it",
    "hook_declined": "a hook of the remote declined it",
    "remote_refused": "the remote refused it",
    "not_tried": "it was not tried",
}
_HINTS: dict[Reason, str] = {
    "auth": "check who you are to the remote, and allow a credential helper",
    "unreachable": "check the address and the network, then push again",
    "no_repository": "check the address",
}


def _remote_words(said: str) -> list[str]:
    """What the remote itself said, in one piece; nothing if it said nothing."""
    lines = [line.partition(":")[2].strip() for line in said.splitlines() if line[:7] == "remote:"]
    words = " ".join(filter(None, lines))
    return [words] if words else []


def _error(report: Pushed) -> PushError:
    lost = [ref for ref in report.refs if not ref.arrived]
    first = next((ref for ref in lost if ref.outcome != "not_tried"), None)
    low = report.said.lower()
    if first is not None:
        told = [shown(words) for words in _remote_words(report.said)]
        why = ": ".join([shown(first.ref), _WORDS.get(first.outcome, first.said), *told])
        reason: Reason = "rejected"
        hint = (
            "look at what is there, rebase, and push again"
            if first.outcome == "non_fast_forward"
            else None
        )
    else:
        reason = next((known for sign, known in _REASONS if sign in low), "failed")
        lines = [line for line in report.said.splitlines() if line.startswith(("fatal:", "error:"))]
        why = (lines or report.said.splitlines() or ["git said nothing"])[0]
        hint = _HINTS.get(reason)
    return PushError(
        f"push to {shown(report.url)} failed (exit code {report.code}): {why}",
        reason=reason,
        ended=report.code,
        said=report.said,
        outcomes=tuple((ref.ref, ref.outcome) for ref in report.refs),
        hint=hint,
    )
