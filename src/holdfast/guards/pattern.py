"""The `regex` guard."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.errors import GuardBroken
from holdfast.guards.candidate import accept, no_text, reject, text_of
from holdfast.guards.linear import search
from holdfast.model.artifact import Verdict
from holdfast.model.digest import Json
from holdfast.model.plan import Guard
from holdfast.ports import Candidate, Job


class RegexGuard:
    """`pattern` is searched in the text; `must` says whether it has to `match` or be `absent`."""

    def identity(self, guard: Guard, root: str) -> Mapping[str, Json]:
        return {}

    async def judge(self, guard: Guard, candidate: Candidate, job: Job) -> Verdict:
        config = guard.config if isinstance(guard.config, Mapping) else {"pattern": guard.config}
        pattern, must = config.get("pattern"), config.get("must", "match")
        if not isinstance(pattern, str) or must not in {"match", "absent"}:
            raise GuardBroken("a regex guard needs 'pattern', and 'must' as 'match' or 'absent'")
        text = text_of(candidate)
        if text is None:
            return no_text(guard, candidate)
        place = search(pattern, text)
        if must == "match":
            return (
                accept(guard)
                if place is not None
                else reject(guard, f"nothing matches '{pattern}'")
            )
        if place is None:
            return accept(guard)
        line = text.count("\n", 0, place) + 1
        return reject(guard, f"line {line} matches '{pattern}', which must be absent")
