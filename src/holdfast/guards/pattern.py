"""The `regex` guard."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.errors import GuardBroken
from holdfast.guards.apart import judged_apart
from holdfast.guards.candidate import accept, no_text, reject, text_of
from holdfast.guards.linear import HeavyError, search
from holdfast.model.artifact import Verdict
from holdfast.model.digest import Json
from holdfast.model.plan import Guard
from holdfast.ports import Candidate, Job


class RegexGuard:
    """`pattern` is searched in the text; `must` says whether it has to `match` or be `absent`."""

    def identity(self, guard: Guard, root: str) -> Mapping[str, Json]:
        return {}

    async def judge(self, guard: Guard, candidate: Candidate, job: Job) -> Verdict:
        try:
            return look_for(guard, candidate, quick=True)
        except HeavyError:
            return await judged_apart("regex", guard, candidate, job)


def look_for(guard: Guard, candidate: Candidate, *, quick: bool = False) -> Verdict:
    """The verdict, whatever time it takes; HeavyError if it shall be `quick` and may not be."""
    config = guard.config if isinstance(guard.config, Mapping) else {"pattern": guard.config}
    pattern, must = config.get("pattern"), config.get("must", "match")
    if not isinstance(pattern, str) or must not in {"match", "absent"}:
        raise GuardBroken("a regex guard needs 'pattern', and 'must' as 'match' or 'absent'")
    text = text_of(candidate)
    if text is None:
        return no_text(guard, candidate)
    place = search(pattern, text, quick=quick)
    if must == "match":
        is_there = place is not None
        return accept(guard) if is_there else reject(guard, f"nothing matches '{pattern}'")
    if place is None:
        return accept(guard)
    line = text.count("\n", 0, place) + 1
    return reject(guard, f"line {line} matches '{pattern}', which must be absent")
