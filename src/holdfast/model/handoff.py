"""Handoffs: what a step tells its successors.

A handoff is JSON. Its keys are written in snake case; camel case is read as well. It says what was
attempted, what was observed (each finding with its source and how sure it is), what was changed, what was
not done and why, the uncertainty that matters most, and what the next step should do first. It may resolve
or take up uncertainties that were raised before, say how hypotheses stand, ask for another plan, and refer
to earlier handoffs.

An id is made of what it stands for, so that the same words of the same step have the same id in every run:
`h-` handoffs, `e-` evidence, `u-` uncertainties, `g-` gaps, `a-` artifacts, twelve hexadecimal digits each.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from difflib import get_close_matches
from typing import Literal, TypeGuard, TypeVar, cast, get_args
from unicodedata import category

from holdfast.model.digest import Digest, EncodingError, Json, digest_json, digest_texts
from holdfast.model.fixed import fixed
from holdfast.model.plan import StepId
from holdfast.model.sources import DIGITS, ENTRY, HYPHENS, read_source, with_ids
from holdfast.model.text import one_line

HANDOFF_SCHEMA = "holdfast.handoff/1"
Standing = Literal["untested", "testing", "supported", "refuted", "inconclusive"]
STANDINGS: tuple[Standing, ...] = get_args(Standing)
Kind = Literal["h", "e", "u", "g", "a"]

REQUIRED = (
    "attempted",
    "observed",
    "changed",
    "not_done",
    "highest_impact_uncertainty",
    "next_agent_should_first",
)
OPTIONAL = ("payload", "resolves", "testing", "hypotheses", "replan", "refers_to")
MOST_ENTRIES = 10_000  # of one list
LONGEST = 100_000  # characters of one text
LONGEST_NAME = 500  # and of the name of a hypothesis
MOST_TOLD = 1024 * 1024  # bytes of a handoff
_INSIDE: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "observed": (("finding",), ("source", "confidence", "supports", "refutes")),
    "changed": (("artifact", "ref"), ()),
    "not_done": (("item", "reason"), ("requirement",)),
}
_HUMP = re.compile(r"(?<=[a-z0-9])([A-Z])")
_QUESTION = re.compile(f"u-[0-9a-f]{{0,{DIGITS}}}")
_ANY_ID = re.compile(f"[ehuga]-[0-9a-f]{{1,{DIGITS}}}", re.IGNORECASE)
_UNSEEN = frozenset({"Cc", "Cf", "Zs", "Zl", "Zp"})  # kinds of letters
T = TypeVar("T")


@fixed
class Observation:
    """A finding. `supports` and `refutes` name hypotheses, or earlier evidence by its id."""

    finding: str
    source: str = ""
    confidence: float | None = None
    supports: tuple[str, ...] = ()
    refutes: tuple[str, ...] = ()


@fixed
class Change:
    """Something that was made or changed, and where it is: a path, a digest, an address."""

    artifact: str
    ref: str


@fixed
class Undone:
    """Something that was not done. `requirement` names the requirement of the plan that it leaves open."""

    item: str
    reason: str
    requirement: str = ""


@fixed
class Trial:
    """How a hypothesis stands after a trial of it, and what speaks for that: ids of evidence or steps."""

    status: Standing
    evidence: tuple[str, ...] = ()


@fixed
class Handoff:
    """What one attempt tells. Empty text is nothing said."""

    attempted: str
    observed: tuple[Observation, ...] = ()
    changed: tuple[Change, ...] = ()
    not_done: tuple[Undone, ...] = ()
    uncertainty: str = ""
    first: str = ""
    payload: Mapping[str, Json] = field(default_factory=dict)
    resolves: tuple[str, ...] = ()
    testing: tuple[str, ...] = ()
    hypotheses: Mapping[str, Trial] = field(default_factory=dict)
    replan: str = ""
    refers_to: tuple[str, ...] = ()


def entry_id(kind: Kind, step: StepId, *words: str) -> str:
    """The id of an entry of the ledger: equal for equal words of one step."""
    return f"{kind}-{digest_texts(step, *words)[:DIGITS]}"


def is_question(name: str) -> bool:
    """Whether a name is the id of a question, or the beginning of one, and not its words."""
    return _QUESTION.fullmatch(name) is not None


def as_id(name: str) -> str:
    """A name as it is kept, if it is an id or the beginning of one: in small letters."""
    plain = name.translate(HYPHENS)
    return plain.lower() if _ANY_ID.fullmatch(plain) else name


def is_entry(name: str) -> bool:
    """Whether a name is the id of evidence or of a handoff."""
    return name[1:2] == "-" and name.islower() and ENTRY.fullmatch(name) is not None


def handoff_id(step: StepId, content: Digest) -> str:
    """The id by which later handoffs refer to this one; `content` is the digest of its JSON."""
    return entry_id("h", step, content)


# --- reading --------------------------------------------------------------------------------------


def read_handoff(given: Json, slack: int = 1) -> tuple[Handoff | None, list[str]]:
    """A handoff, or everything that is wrong with it; each complaint names its place.

    What is stored may be larger than what is taken in, by `slack`: it is spelled out, and people add to it.
    """
    if not isinstance(given, Mapping):
        return None, [f"a handoff is a mapping, not {_kind(given)}"]
    reader = _Reader(slack)
    body = reader.keys(given, "", REQUIRED, (*OPTIONAL, "schema"))
    found = Handoff(
        attempted=reader.text(body, "attempted", "", needed=True),
        observed=reader.items(body, "observed", _observation),
        changed=reader.items(body, "changed", _change),
        not_done=reader.items(body, "not_done", _undone),
        uncertainty=reader.text(body, "highest_impact_uncertainty", ""),
        first=reader.text(body, "next_agent_should_first", ""),
        payload=reader.mapping(body, "payload"),
        resolves=reader.names(body, "resolves", ""),
        testing=reader.names(body, "testing", ""),
        hypotheses=reader.tested(body),
        replan=reader.reason(body),
        refers_to=reader.names(body, "refers_to", ""),
    )
    if not reader.wrong:
        try:
            digest_json(handoff_json(found))
        except EncodingError as error:
            reader.wrong.append(str(error))
    return (None, reader.wrong) if reader.wrong else (found, [])


class _Reader:
    """Reads the parts of one handoff, and notes everything that is wrong."""

    def __init__(self, slack: int = 1) -> None:
        self.wrong: list[str] = []
        self._longest, self._most = LONGEST * slack, MOST_ENTRIES * slack

    def keys(
        self, given: Mapping[str, Json], place: str, needed: Sequence[str], more: Sequence[str]
    ) -> dict[str, Json]:
        """The mapping with its keys in snake case."""
        body: dict[str, Json] = {}
        for key, value in given.items():
            name = _HUMP.sub(lambda found: f"_{found[1].lower()}", key)
            if name in body:
                self.wrong.append(f"'{place}{name}' is given twice")
            elif name in needed or name in more:
                body[name] = value
            else:
                near = get_close_matches(name, [*needed, *more], 1)
                meant = f"; is '{near[0]}' meant?" if near else ""
                self.wrong.append(f"'{place}{key}' is no key of a handoff{meant}")
        self.wrong.extend(f"'{place}{name}' is missing" for name in needed if name not in body)
        return body

    def text(self, body: Mapping[str, Json], name: str, place: str, *, needed: bool = False) -> str:
        value = body.get(name)
        if value is None:
            if needed and name in body:
                self.wrong.append(f"'{place}{name}' is empty")
            return ""
        if not isinstance(value, str):
            self.wrong.append(f"'{place}{name}' is {_kind(value)}, not text")
            return ""
        if len(value) > self._longest:
            self.wrong.append(f"'{place}{name}' is longer than {self._longest:,} characters")
            return ""
        found = "" if _is_blank(value) else value.strip()
        if needed and not found:
            self.wrong.append(f"'{place}{name}' is empty")
        return found

    def names(self, body: Mapping[str, Json], name: str, place: str) -> tuple[str, ...]:
        """A list of texts; one text stands for a list of it."""
        value = body.get(name)
        if value is None:
            return ()
        listed = [value] if isinstance(value, str) else value
        if not _is_list(listed) or not all(isinstance(item, str) for item in listed):
            self.wrong.append(f"'{place}{name}' is not a list of texts")
            return ()
        if len(listed) > self._most:
            self.wrong.append(
                f"'{place}{name}' has {len(listed):,} entries; at most {self._most:,}"
            )
            return ()
        found = (cast("str", item).strip() for item in listed)
        return tuple(dict.fromkeys(item for item in found if item))

    def items(
        self,
        body: Mapping[str, Json],
        name: str,
        make: Callable[[_Reader, Mapping[str, Json], str], T],
    ) -> tuple[T, ...]:
        """The entries of a list of mappings."""
        value = body.get(name)
        if value is None and name not in body:
            return ()
        if not _is_list(value):
            self.wrong.append(f"'{name}' is {_kind(value)}, not a list")
            return ()
        if len(value) > self._most:
            self.wrong.append(f"'{name}' has {len(value):,} entries; at most {self._most:,}")
            return ()
        made = []
        for number, item in enumerate(value):
            place = f"{name}[{number}]"
            if not isinstance(item, Mapping):
                self.wrong.append(f"'{place}' is {_kind(item)}, not a mapping")
                continue
            made.append(make(self, self.keys(item, f"{place}.", *_INSIDE[name]), f"{place}."))
        return tuple(made)

    def mapping(self, body: Mapping[str, Json], name: str) -> Mapping[str, Json]:
        value = body.get(name)
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            self.wrong.append(f"'{name}' is {_kind(value)}, not a mapping")
            return {}
        return value

    def tested(self, body: Mapping[str, Json]) -> Mapping[str, Trial]:
        found: dict[str, Trial] = {}
        for name, given in self.mapping(body, "hypotheses").items():
            place = f"hypotheses.{name}."
            if not name.strip() or one_line(name) != name or len(name) > LONGEST_NAME:
                self.wrong.append("'hypotheses' has a name that is no name of one line")
                continue
            said = {"status": given} if isinstance(given, str) else given
            if not isinstance(said, Mapping):
                self.wrong.append(f"'{place[:-1]}' is {_kind(given)}, not a mapping")
                continue
            inside = self.keys(said, place, ("status",), ("evidence",))
            status = inside.get("status")
            if status not in STANDINGS:
                if "status" in inside:
                    known = ", ".join(STANDINGS)
                    self.wrong.append(f"'{place}status' is not one of {known}")
                continue
            evidence = self.names(inside, "evidence", place)
            found[name] = Trial(status, evidence)
        return found

    def reason(self, body: Mapping[str, Json]) -> str:
        """Why another plan is asked for."""
        value = body.get("replan")
        if value is None or value is False:
            return ""
        if isinstance(value, str):
            return self.text(body, "replan", "")
        if not isinstance(value, Mapping):
            self.wrong.append(f"'replan' is {_kind(value)}, not a mapping with a reason")
            return ""
        return self.text(
            self.keys(value, "replan.", ("reason",), ()), "reason", "replan.", needed=True
        )

    def share(self, body: Mapping[str, Json], place: str) -> float | None:
        value = body.get("confidence")
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
            self.wrong.append(f"'{place}confidence' is not a number from 0 to 1")
            return None
        return float(value) + 0.0  # no minus before a zero


def _observation(reader: _Reader, body: Mapping[str, Json], place: str) -> Observation:
    return Observation(
        finding=reader.text(body, "finding", place, needed=True),
        source=reader.text(body, "source", place),
        confidence=reader.share(body, place),
        supports=reader.names(body, "supports", place),
        refutes=reader.names(body, "refutes", place),
    )


def _change(reader: _Reader, body: Mapping[str, Json], place: str) -> Change:
    artifact = reader.text(body, "artifact", place, needed=True)
    return Change(artifact, reader.text(body, "ref", place, needed=True))


def _undone(reader: _Reader, body: Mapping[str, Json], place: str) -> Undone:
    item = reader.text(body, "item", place, needed=True)
    reason = reader.text(body, "reason", place, needed=True)
    return Undone(item, reason, reader.text(body, "requirement", place))


def _is_blank(text: str) -> bool:
    """Whether nothing of a text can be seen: blanks, and signs that only steer others."""
    return not text.isascii() and all(category(letter) in _UNSEEN for letter in text)


def _is_list(value: Json) -> TypeGuard[Sequence[Json]]:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _kind(value: Json) -> str:
    match value:
        case None:
            return "nothing"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "text"
        case Mapping():
            return "a mapping"
        case _:
            return "a list"


# --- writing --------------------------------------------------------------------------------------


def handoff_json(handoff: Handoff) -> dict[str, Json]:
    """A handoff in snake case; what was not said is left out, apart from what every handoff has."""
    more: dict[str, Json] = {
        "payload": dict(handoff.payload),
        "resolves": [*handoff.resolves],
        "testing": [*handoff.testing],
        "hypotheses": {
            name: {"status": tested.status, "evidence": [*tested.evidence]}
            for name, tested in handoff.hypotheses.items()
        },
        "replan": {"reason": handoff.replan} if handoff.replan else None,
        "refers_to": [*handoff.refers_to],
    }
    return {
        "attempted": handoff.attempted,
        "observed": [_observed(one) for one in handoff.observed],
        "changed": [{"artifact": one.artifact, "ref": one.ref} for one in handoff.changed],
        "not_done": [_not_done(one) for one in handoff.not_done],
        "highest_impact_uncertainty": handoff.uncertainty,
        "next_agent_should_first": handoff.first,
        **{key: value for key, value in more.items() if value},
    }


def _observed(one: Observation) -> dict[str, Json]:
    more: dict[str, Json] = {
        "source": one.source or None,
        "confidence": one.confidence,
        "supports": [*one.supports] or None,
        "refutes": [*one.refutes] or None,
    }
    return {"finding": one.finding, **{key: v for key, v in more.items() if v is not None}}


def _not_done(one: Undone) -> dict[str, Json]:
    required: dict[str, Json] = {"requirement": one.requirement} if one.requirement else {}
    return {"item": one.item, "reason": one.reason, **required}


def cited(handoff: Handoff) -> Iterator[str]:
    """Every id or name of something earlier that a handoff refers to, in its order."""
    yield from handoff.refers_to
    for one in handoff.observed:
        yield from (*one.supports, *one.refutes)
        if one.source:
            yield from read_source(one.source, _as_entry).names or (one.source,)
    for tested in handoff.hypotheses.values():
        yield from tested.evidence


def _as_entry(name: str) -> str:
    return name if is_entry(name) else ""


def renamed(handoff: Handoff, names: Mapping[str, str]) -> Handoff:
    """The same with other names for what it refers to."""

    def new(given: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(names.get(one, one) for one in given))

    return replace(
        handoff,
        observed=tuple(
            replace(
                one,
                source=with_ids(one.source, names),
                supports=new(one.supports),
                refutes=new(one.refutes),
            )
            for one in handoff.observed
        ),
        resolves=new(handoff.resolves),
        testing=new(handoff.testing),
        hypotheses={
            name: replace(one, evidence=new(one.evidence))
            for name, one in handoff.hypotheses.items()
        },
        refers_to=new(handoff.refers_to),
    )


# --- joining --------------------------------------------------------------------------------------


def joined(told: Handoff, more: Handoff, by: str) -> Handoff:
    """What an attempt told with what somebody adds who approved it; nothing of either is dropped.

    Findings of theirs that name no source have them for one. What both say of one hypothesis, or under
    one key of the payload, counts as they say it.
    """
    observed = tuple(one if one.source else replace(one, source=by) for one in more.observed)
    return Handoff(
        attempted=_both(told.attempted, more.attempted, "; "),
        observed=_all(told.observed, observed),
        changed=_all(told.changed, more.changed),
        not_done=_all(told.not_done, more.not_done),
        uncertainty=_both(told.uncertainty, more.uncertainty, " "),
        first=_both(told.first, more.first, "; "),
        payload={**told.payload, **more.payload},
        resolves=_all(told.resolves, more.resolves),
        testing=_all(told.testing, more.testing),
        hypotheses={**told.hypotheses, **more.hypotheses},
        replan=_both(told.replan, more.replan, "; "),
        refers_to=_all(told.refers_to, more.refers_to),
    )


def _all(one: tuple[T, ...], other: tuple[T, ...]) -> tuple[T, ...]:
    return (*one, *(item for item in other if item not in one))


def _both(one: str, other: str, between: str) -> str:
    return between.join(dict.fromkeys(text for text in (one, other) if text))
