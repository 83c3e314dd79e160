"""Guards made of guards: `all`, `any`, `majority`.

| kind       | accepts when           | stops early            | feedback              |
|------------|------------------------|------------------------|-----------------------|
| `all`      | every guard accepts    | at the first that does not | of that guard     |
| `any`      | one accepts            | at the first that does | of all, joined        |
| `majority` | more than half accept  | when enough accept     | of all that refused   |

A guard that asks a person leaves the composite to that person, unless the others decide it without.
A fatal verdict ends `all` as fatal; `any` and `majority` are fatal only if every guard was. A
broken guard breaks the composite, unless the others decide it whatever the broken one would have
said.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from holdfast.errors import GuardBroken
from holdfast.guards.candidate import name_of
from holdfast.model.artifact import Verdict
from holdfast.model.digest import Json
from holdfast.model.plan import Guard
from holdfast.ports import Candidate, GuardKind, Job


class CompositeGuard:
    """Fills all three kinds; `kinds` is where it finds the guards inside, itself included."""

    def __init__(self, kinds: Mapping[str, GuardKind]) -> None:
        self._kinds = kinds

    def identity(self, guard: Guard, root: str) -> Mapping[str, Json]:
        items = [self._kind(item).identity(item, root) for item in guard.items]
        return {"items": items} if any(items) else {}

    async def judge(self, guard: Guard, candidate: Candidate, job: Job) -> Verdict:
        try:
            async with asyncio.timeout(guard.timeout):
                return await self._decide(guard, candidate, job)
        except TimeoutError as error:
            raise GuardBroken(f"'{name_of(guard)}' gave no verdict in {guard.timeout} s") from error

    async def _decide(self, guard: Guard, candidate: Candidate, job: Job) -> Verdict:
        verdicts: list[Verdict] = []
        broken: GuardBroken | None = None
        for item in guard.items:
            try:
                verdicts.append(await self._kind(item).judge(item, candidate, job))
            except GuardBroken as error:
                broken = broken or error
            known = [verdict for verdict in verdicts if verdict.call != "ask"]
            if _is_settled(guard.kind, known, len(guard.items)):
                break
        known = [verdict for verdict in verdicts if verdict.call != "ask"]
        if not _is_decided(guard.kind, known, len(guard.items)):
            if broken is not None:
                raise broken
            if len(known) < len(verdicts):
                return Verdict("ask", name_of(guard), items=tuple(verdicts))
        return _verdict(guard, known)

    def _kind(self, guard: Guard) -> GuardKind:
        found = self._kinds.get(guard.kind)
        if found is None:
            raise GuardBroken(f"there is no guard of kind '{guard.kind}' here")
        return found


def _accepts(kind: str, verdicts: Sequence[Verdict], total: int) -> bool:
    """Whether these verdicts are enough to accept."""
    passed = sum(verdict.passed for verdict in verdicts)
    if kind == "all":
        return passed == total
    return passed > 0 if kind == "any" else passed * 2 > total


def _refuses(kind: str, verdicts: Sequence[Verdict], total: int) -> bool:
    """Whether these verdicts are enough to refuse, whatever the others say."""
    refused = sum(not verdict.passed for verdict in verdicts)
    if kind == "all":
        return refused > 0
    return refused == total if kind == "any" else (total - refused) * 2 <= total


def _is_settled(kind: str, verdicts: Sequence[Verdict], total: int) -> bool:
    """Whether to ask no more: refusals of `any` and `majority` go on, for their feedback."""
    return _accepts(kind, verdicts, total) or (kind == "all" and _refuses(kind, verdicts, total))


def _is_decided(kind: str, verdicts: Sequence[Verdict], total: int) -> bool:
    return _accepts(kind, verdicts, total) or _refuses(kind, verdicts, total)


def _verdict(guard: Guard, verdicts: Sequence[Verdict]) -> Verdict:
    items = tuple(verdicts)
    if _accepts(guard.kind, items, len(guard.items)):
        return Verdict("accept", name_of(guard), items=items)
    refused = [verdict for verdict in items if not verdict.passed]
    if guard.kind == "all":
        fatal, feedback = refused[0].call == "fatal", refused[0].feedback
    else:
        fatal = 0 < len(guard.items) == sum(verdict.call == "fatal" for verdict in items)
        feedback = "\n".join(f"{verdict.guard}: {verdict.feedback}" for verdict in refused)
    return Verdict("fatal" if fatal else "reject", name_of(guard), feedback, items)
