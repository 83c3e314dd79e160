"""Disagreement between agents: found, and settled by weight, veto or a person.

Two recommendations are in conflict if they are about the same scope, differ, and both can be acted on.
Each agent's latest word counts, round after round, at most as many rounds as the rules say. In a round,
in this order:

| what is seen                                                | winner            | how         |
|-------------------------------------------------------------|-------------------|-------------|
| a critical veto                                             | who forbids       | `veto`      |
| critical vetoes that contradict each other                  | a person decides  | `vetoes`    |
| everybody wants the same by now                             | that              | `agreed`    |
| and in the last round: a high veto                          | a person decides  | `high_veto` |
| two sides within the tie                                    | a person decides  | `tie`       |
| anything else                                               | the highest score | `score`     |

The score of a side is the sum over its agents of (weight + boost in their own domains) × confidence ×
relevance; an agent that says the same in several steps counts once, with the best of them. A veto is a
critical or high recommendation of an agent inside one of its veto domains. A critical veto cannot be
overridden, not even by a person; the side that lost is the dissent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from holdfast.errors import BugError, UsageError
from holdfast.model.agent import Registry, agent_name
from holdfast.model.conflict import (
    SEVERITIES,
    Conflict,
    ConflictKind,
    How,
    Position,
    Severity,
    conflict_id,
)
from holdfast.model.digest import Digest, Json
from holdfast.model.plan import StepId
from holdfast.model.strict import strict_json

_DIGITS = 6  # of a score
_PERCENT = 100.0
_IDLE = frozenset({"", "none", "no action", "nothing", "n/a"})


class Said(NamedTuple):
    """A position and what it is about."""

    scope: str
    position: Position


def recommendations(step: StepId, agent: str, content: bytes) -> list[Said]:
    """What an artifact recommends: nothing unless it is a JSON object with a list of recommendations.

    A recommendation that has no scope, or no usable action, takes no part.
    """
    try:
        data = strict_json(content.decode("utf-8-sig"))
    except ValueError:
        return []
    listed = data.get("recommendations") if isinstance(data, Mapping) else None
    if not isinstance(listed, list):
        return []
    found = (_said(step, agent, item) for item in listed if isinstance(item, Mapping))
    return [said for said in found if said is not None]


def _said(step: StepId, agent: str, item: Mapping[str, Json]) -> Said | None:
    scope, action = item.get("scope"), item.get("action")
    if not isinstance(scope, str) or not scope.strip() or not isinstance(action, str):
        return None
    if item.get("actionable") is False or _plain(action) in _IDLE:
        return None
    number, who = item.get("round", 1), item.get("agent")
    position = Position(
        step=step,
        agent=who if isinstance(who, str) and who else agent,
        action=action.strip(),
        confidence=as_share(item.get("confidence"), 1.0),
        relevance=as_share(item.get("relevance"), 1.0),
        severity=as_severity(item.get("severity")),
        domain=str(item.get("domain") or "").strip().lower(),
        round=max(1, number) if isinstance(number, int) and not isinstance(number, bool) else 1,
    )
    return Said(scope.strip(), position)


def as_share(value: Json, default: float) -> float:
    """A share from 0 to 1. What is above 1 counts in percent; what is no number, as the default."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return default
    share = min(value, _PERCENT) / _PERCENT if value > 1 else float(max(value, -1))
    return min(1.0, max(0.0, share)) if share == share else default  # noqa: PLR0124 - not a number


def as_severity(value: Json) -> Severity:
    """One of the five words, in any case; anything else says nothing."""
    word = value.strip().lower() if isinstance(value, str) else ""
    return next((known for known in SEVERITIES if known == word), "info")


def find_conflicts(said: Iterable[Said], registry: Registry) -> list[Conflict]:
    """All conflicts among recommendations, settled as far as nobody has to be asked; by scope.

    What is said after the last round is not heard.
    """
    about: dict[str, list[Position]] = {}
    for scope, position in said:
        if position.round <= registry.rules.rounds:
            about.setdefault(scope, []).append(position)
    found = []
    for scope in sorted(about):
        positions = sorted(about[scope], key=_order)
        if len({_plain(one.action) for one in positions}) > 1:
            found.append(settle("agents", scope, positions, registry))
    return found


def overlap(scope: str, writers: Iterable[tuple[StepId, Digest | None]]) -> Conflict:
    """Steps that wrote different content to one path or output; only a person can choose."""
    sides = [Position(step, action="write", content=content) for step, content in writers]
    return settle("files", scope, sorted(sides, key=_order), Registry())


def changed_under(scope: str, step: StepId, wrote: Digest | None, found: Digest | None) -> Conflict:
    """A step wrote where the project's own file changed meanwhile; only a person can choose."""
    mine = Position(step, action="write", content=wrote)
    theirs = Position(StepId(""), action="keep", content=found)
    return settle("tree", scope, [mine, theirs], Registry())


def settle(
    kind: ConflictKind, scope: str, positions: Sequence[Position], registry: Registry
) -> Conflict:
    """Settle a conflict by its kind: content by a person, recommendations by rounds of debate."""
    name = conflict_id(kind, scope, positions)
    if kind != "agents":
        how: How = "overlap" if kind == "files" else "changed"
        return Conflict(name, kind, scope, tuple(positions), None, (), 1, how)
    last = max(one.round for one in positions)
    for number in range(1, last + 1):
        stands = [_scored(one, registry) for one in _standing(positions, number)]
        verdict = _verdict(stands, registry, last=number == last) if stands else None
        if verdict is not None:
            winner, how = verdict
            lost = _dissent(stands, winner)
            return Conflict(name, kind, scope, tuple(stands), winner, lost, number, how)
    raise BugError(f"the last round of '{name}' gave no verdict")


def _standing(positions: Iterable[Position], number: int) -> list[Position]:
    """The latest word of each voice up to a round: all that it said at once."""
    heard = [one for one in positions if one.round <= number]
    latest: dict[str, int] = {}
    for one in heard:
        latest[_voice(one)] = max(one.round, latest.get(_voice(one), 0))
    return [one for one in heard if one.round == latest[_voice(one)]]


def _voice(position: Position) -> str:
    """Who speaks: an agent, in whichever step; a step that names none speaks for itself."""
    return agent_name(position.agent) if position.agent else f"step {position.step}"


def _scored(position: Position, registry: Registry) -> Position:
    agent = registry.find(position.agent)
    weight = registry.rules.weight if agent is None or agent.weight is None else agent.weight
    if agent is not None and position.domain in agent.domains:
        weight += agent.boost
    score = weight * position.confidence * position.relevance
    return replace(position, score=round(score, _DIGITS))


def _verdict(
    stands: Sequence[Position], registry: Registry, *, last: bool
) -> tuple[int | None, How] | None:
    """The winner of a round and how, a reason to ask a person, or nothing: then the debate goes on."""
    critical = [one for one in stands if _forbids(one, registry, "critical")]
    if critical:
        agreed = len({_plain(one.action) for one in critical}) == 1
        return (_best(stands, critical), "veto") if agreed else (None, "vetoes")
    sides: dict[str, list[Position]] = {}
    for one in stands:
        sides.setdefault(_plain(one.action), []).append(one)
    if len(sides) == 1:
        return _best(stands, stands), "agreed"
    if not last:
        return None
    if any(_forbids(one, registry, "high") for one in stands):
        return None, "high_veto"
    scores = {side: _together(ones) for side, ones in sides.items()}
    first, second = sorted(scores.values(), reverse=True)[:2]
    if first - second <= round(first * registry.rules.tie, _DIGITS):
        return None, "tie"
    winning = next(side for side, score in scores.items() if score == first)
    return _best(stands, sides[winning]), "score"


def _together(side: Iterable[Position]) -> float:
    """What a side is worth: each voice counts once."""
    best: dict[str, float] = {}
    for one in side:
        best[_voice(one)] = max(one.score, best.get(_voice(one), 0.0))
    return round(sum(best.values()), _DIGITS)


def _forbids(position: Position, registry: Registry, severity: Severity) -> bool:
    agent = registry.find(position.agent)
    return (
        agent is not None
        and position.severity == severity
        and position.domain in agent.veto_domains
    )


def _best(stands: Sequence[Position], among: Sequence[Position]) -> int:
    """The place of the weightiest position; of equal ones the first."""
    return stands.index(max(among, key=lambda one: one.score))


def _dissent(positions: Sequence[Position], winner: int | None) -> tuple[int, ...]:
    """Who wants something else than the winner; nobody while there is none."""
    if winner is None:
        return ()
    chosen = _wish(positions[winner])
    return tuple(place for place, one in enumerate(positions) if _wish(one) != chosen)


def _wish(position: Position) -> tuple[str, Digest | None]:
    return _plain(position.action), position.content


def _plain(action: str) -> str:
    """One spelling for what says the same: letters of one case, single blanks, no full stop."""
    return " ".join(action.casefold().split()).rstrip(".!")


def _order(position: Position) -> tuple[str, str, int, str, str]:
    return (
        position.step,
        position.agent,
        position.round,
        _plain(position.action),
        position.content or "",
    )


def decided(conflict: Conflict, winner: int, by: str) -> Conflict:
    """The conflict as a person settles it; a critical veto stands whatever anybody says."""
    if conflict.how == "veto":
        raise UsageError(f"'{conflict.conflict_id}' is settled by a critical veto, which stands")
    if not 0 <= winner < len(conflict.positions):
        last = len(conflict.positions) - 1
        raise UsageError(f"'{conflict.conflict_id}' has positions 0 to {last}, not {winner}")
    sides = conflict.positions
    return replace(conflict, winner=winner, dissent=_dissent(sides, winner), how="person", by=by)
