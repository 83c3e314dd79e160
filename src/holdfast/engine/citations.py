"""Whether what a handoff refers to is there: entries of the ledger by their ids, contents by their digests.

An id is known if it was told in an earlier run of the line, by a person, or in this run by a step above; if
an entry of the page has it that the attempt was given; or if it is the handoff's own. That it stands in
somebody's words makes no entry of it. What a step beside it told in the same run is not known: whether that
came first is a matter of time, and no ledger hangs on time. An id that is shortened and fits one of them is
spelled out, so that what is told later cannot change what it means. What is resolved or tested is such a
question, by its id or in nearly its words. What is referred to is an entry of any kind, or a step above or of
an earlier run. A source in plain words, a path or an address is not looked up:
the journal cannot know whether the world has it. One that names a step is, as the ledger reads it: that lies
above. So does a step on which a verdict leans; else that is an entry, and no words. What is changed
is: a file is one that the step made or declares, or that lies in the project. A hypothesis or a requirement
is one of the plan, if that has any.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from pathlib import PurePosixPath

from holdfast.core.above import Steps, lying_above, step_meant
from holdfast.core.briefing import ids_on
from holdfast.core.likeness import fits, nearest, spelled
from holdfast.core.said import PERSON
from holdfast.engine.handoffs import Handoffs
from holdfast.model.digest import Digest, Json, digest_bytes
from holdfast.model.expression import texts_in
from holdfast.model.glob import PRIVATE
from holdfast.model.handoff import Handoff, as_id, entry_id, is_question, renamed
from holdfast.model.pattern import Pattern
from holdfast.model.plan import Plan, RunId, Step, StepId
from holdfast.model.sources import Meant, listed_in, read_source, written_ids
from holdfast.model.text import cut, one_line
from holdfast.ports import Candidate, Store

Above = Callable[[StepId], Iterable[StepId]]  # the steps that come before one
Entries = dict[str, str]  # by id; of a question its words
_ENTRY = Pattern("[ehu]-[0-9a-f]{12}", re.IGNORECASE)
_SHORTENED = Pattern("[ehu]-[0-9a-f]{4,11}", re.IGNORECASE)
_SHOWN = Pattern(
    r"^- (.*?) \((?:open|testing)\)(?:, also put as .*)? (u-[0-9a-f]{12})$", re.MULTILINE
)
_QUESTIONS = ("resolves", "testing")  # what names questions and nothing else
_LOOKED_UP = (*_QUESTIONS, "refers_to")  # what names nothing in the world
_NEAREST = 3  # questions that a refusal names
_WIDTH = 120  # columns of each
_DIGEST = Pattern("(?:sha256:)?([0-9a-f]{64})", re.IGNORECASE)
_FILE = "file:"
_FILES = frozenset({"file", "path"})  # what an artifact is called that lies in the project
_OWN: dict[str, Callable[[str, str], tuple[str, str]]] = {
    "evidence": lambda text, by: (entry_id("e", PERSON, text, by), ""),
    "uncertainty": lambda text, _: (entry_id("u", PERSON, text), text),
    "gap": lambda text, _: (entry_id("g", PERSON, text), ""),
}


class Citations:
    """What was told on one line, by ids; grows with the journal, so that each handoff is read once."""

    def __init__(
        self,
        store: Store,
        project: str,
        line: str,
        run: RunId | None = None,
        above: Above | None = None,
    ) -> None:
        self._store = store
        self._handoffs = Handoffs(store, project, line)
        self._run = run  # in which it is told; for a person all runs are over
        self._above = above or (lambda _: ())
        self._known: Entries = {}
        self._beside: dict[StepId, Entries] = {}  # told in this run
        self._told = self._said = 0
        self._steps: Steps = {}  # and what names mean among them: they are many, and told of often
        self._meant = step_meant(self._steps)

    def checked(
        self,
        handoff: Handoff,
        step: StepId,
        page: Callable[[], str] = str,
        own: Callable[[], set[str]] = set,
    ) -> tuple[Handoff, list[str]]:
        """A handoff with its ids spelled out, and what it refers to and nobody told, each with its place.

        `page` gives what its attempt was told, `own` the digests of what it made; few are asked.
        """
        named = [one for one in _named(handoff) if _is_looked_up(*one)]
        whole, wrong = self._looked_up(handoff, step, named, page) if named else ({}, [])
        wrong += [
            f"'changed[{number}].ref' names the content '{digest[:12]}', which is not stored"
            for number, digest in _digests(handoff)
            if not self._store.has(Digest(digest)) and digest not in own()
        ]
        return (renamed(handoff, whole) if whole else handoff), wrong

    def misplaced(self, steps: Steps, step: StepId, handoff: Handoff) -> list[str]:
        """Steps that a handoff stands on and that are not above it, and what is nothing it could stand on."""
        if self._steps is not steps:
            self._steps, self._meant = steps, step_meant(steps)
        return [*misplaced(steps, self._meant, step, handoff)]

    def _looked_up(
        self,
        handoff: Handoff,
        step: StepId,
        named: Iterable[tuple[str, str]],
        page: Callable[[], str],
    ) -> tuple[dict[str, str], list[str]]:
        """What shortened ids stand for, and what is wrong."""
        self._refresh()
        mine = dict(_entries_in(handoff, step))
        above = {*self._above(step)}
        mine |= dict.fromkeys(above, "")
        for one in sorted({step, *above} & self._beside.keys()):
            mine |= self._beside[one]
        unsure = [one for one in named if not (_is_told(*one, mine) or _is_told(*one, self._known))]
        whole: dict[str, str] = {}
        wrong: list[str] = []
        if unsure:
            mine |= _shown_on(page())
            told = _Told({**self._known, **mine})
            for place, name in unsure:
                kept = as_id(name)
                if _is_told(place, kept, told.entries):
                    whole |= {name: kept} if kept != name else {}
                    continue
                meant, words = told.meant(place, kept)
                whole |= {name: meant} if meant else {}
                wrong += (
                    [f"'{place}' names '{cut(one_line(name), _WIDTH)}', {words}"] if words else []
                )
        return whole, wrong

    def _refresh(self) -> None:
        self._handoffs.refresh()
        for run, told in self._handoffs.ever(self._told):
            self._told += 1
            here = run == self._run
            known = self._beside.setdefault(told.step, {}) if here else self._known
            known[told.id] = known[told.step] = ""
            known.update(_entries_in(told.handoff, told.step))
        for said in self._handoffs.said[self._said :]:
            self._said += 1
            if (make := _OWN.get(said.word)) is not None:
                self._known.update([make(said.text, said.by)])


class _Told:
    """What a handoff may refer to, for names that are none of its ids as they stand."""

    def __init__(self, entries: Entries) -> None:
        self.entries = entries
        self._texts = [text for text in entries.values() if text]

    def meant(self, place: str, name: str) -> tuple[str, str]:
        """The id that is meant, if it is shortened; and what is wrong with the name."""
        is_asked = place in _QUESTIONS
        if is_asked and not is_question(name):
            if not _ENTRY.fullmatch(name) and fits(name, self._texts):
                return "", ""
            return "", f"which is no question that was raised before it; {self._near(name)}"
        begins = [one for one in self.entries if one.startswith(name)] if name[1:2] == "-" else []
        if len(begins) == 1:
            return begins[0], ""
        if begins:
            return "", f"which may be {', '.join(sorted(begins)[:_NEAREST])}; say more of the id"
        if is_asked:
            return "", f"which nobody told; {self._near('')}"
        is_referred = place == "refers_to" or place.startswith("hypotheses.")
        is_free = _SHORTENED.fullmatch(name) and not is_referred  # a name in the world, perhaps
        return "", "" if is_free else "which nobody told"

    def _near(self, name: str) -> str:
        ids = {text: one for one, text in self.entries.items() if text}
        near = nearest(name, [*ids], _NEAREST)
        if not near:
            return "no question was"
        told = (f"{ids[text]} ({cut(one_line(text), _WIDTH)})" for text in near)
        return f"questions are: {', '.join(told)}"


def _is_looked_up(place: str, name: str) -> bool:
    return place in _LOOKED_UP or _is_id(name)


def _is_id(name: str) -> bool:
    name = as_id(name)
    return bool(_ENTRY.fullmatch(name) or _SHORTENED.fullmatch(name))


def _is_told(place: str, name: str, entries: Entries) -> bool:
    """Whether a name is the id of an entry of the kind that its place asks for."""
    return name in entries and (place not in _QUESTIONS or is_question(name))


def _shown_on(page: str) -> Entries:
    """The entries on a page: questions with their words."""
    shown = dict.fromkeys(ids_on(page), "")
    return shown | {name: text for text, name in _SHOWN.findall(page)}


def digests_of(made: Candidate) -> Callable[[], set[str]]:
    """What a candidate consists of, by digest; worked out only if somebody asks."""
    return lambda: {
        digest_bytes(made.content),
        *(digest_bytes(file.content) for file in made.files),
        *(entry.digest for entry in made.entries),
    }


def absent(step: Step, made: Candidate | None, handoff: Handoff, root: str) -> Iterator[str]:
    """Files that a handoff names as changed and that are neither made nor in the project."""
    files, entries = (made.files, made.entries) if made else ((), ())
    there = {file.path for file in files} | {entry.path for entry in entries} | {*step.produces}
    for number, change in enumerate(handoff.changed):
        path = _path(change.ref)
        is_file = change.artifact.strip().casefold() in _FILES or path != change.ref
        if not is_file or _DIGEST.fullmatch(path) or path in there or _lies_in(root, path):
            continue
        yield (
            f"'changed[{number}].ref' names '{change.ref}', which the step did not make"
            " and which is not in the project"
        )


def _path(ref: str) -> str:
    return ref[len(_FILE) :] if ref.casefold().startswith(_FILE) else ref


def _lies_in(root: str, path: str) -> bool:
    """Whether the project has something at this relative path: no way out of it, nothing of Holdfast's."""
    parts = PurePosixPath(path).parts
    place = os.path.join(root, *parts)
    if path.startswith("/") or ".." in parts or not os.path.lexists(place):
        return False
    real = os.path.relpath(os.path.realpath(place), os.path.realpath(root))
    lies = {*parts, *PurePosixPath(real).parts}
    return real != os.curdir and lies.isdisjoint({os.pardir, *PRIVATE})


def misnamed(plan: Plan, handoff: Handoff) -> Iterator[str]:
    """Hypotheses and requirements that a handoff names and the plan does not; a plan without any is free."""
    hypotheses, requirements = (plan.premises.get(key) for key in ("hypotheses", "requirements"))
    if isinstance(hypotheses, Mapping) and hypotheses:
        for name in handoff.hypotheses:
            if name not in hypotheses:
                yield _unlike(f"hypotheses.{name}", name, "hypothesis", hypotheses)
        known = {*hypotheses, *(requirements or ()), *plan.steps}  # type: ignore[misc]  # mappings
        texts = {spelled(text).words for text in texts_in(plan.premises.get("unknowns"))}
        for number, one in enumerate(handoff.observed):
            for key, names in (("supports", one.supports), ("refutes", one.refutes)):
                for name in names:
                    if name in known or _ENTRY.fullmatch(name) or spelled(name).words in texts:
                        continue
                    yield _unlike(f"observed[{number}].{key}", name, "hypothesis", hypotheses)
    if isinstance(requirements, Mapping) and requirements:
        for number, gap in enumerate(handoff.not_done):
            if gap.requirement and gap.requirement not in requirements:
                place = f"not_done[{number}].requirement"
                yield _unlike(place, gap.requirement, "requirement", requirements)


def misplaced(steps: Steps, meant: Meant, step: StepId, handoff: Handoff) -> Iterator[str]:
    """Steps that a handoff stands on and that are not above it: it was told nothing of them.

    A source may be something else in the world, what a verdict leans on may not.
    """

    def named(name: str) -> str:
        return meant(name) or (name if _is_id(name) else "")

    found = [
        (f"observed[{number}].source", name)
        for number, one in enumerate(handoff.observed)
        for name in read_source(one.source, named).names
        if name in steps and name != step
    ]
    found += [
        (f"hypotheses.{key}.evidence", name)
        for key, trial in handoff.hypotheses.items()
        for name in trial.evidence
        if name != step and not _is_id(name)
    ]
    above = lying_above(steps, ((step, name) for _, name in found))
    for place, name in found:
        if name not in steps:
            ask = f"; is '{meant(name)}' meant?" if meant(name) else ""
            words = f"'{cut(one_line(name), _WIDTH)}', which is neither an entry nor a step above"
            yield f"'{place}' names {words} '{step}'{ask}"
        elif (step, name) not in above:
            say = ", or say in other words what is meant" if place.endswith(".source") else ""
            yield (
                f"'{place}' names the step '{name}', which is not above '{step}';"
                f" name what it told by its id{say}"
            )


def _unlike(place: str, name: str, kind: str, known: Mapping[str, Json]) -> str:
    near = get_close_matches(name, [*known], 1) or [*known]
    ask = f"did you mean '{near[0]}'?" if len(near) == 1 else f"known: {', '.join(near)}"
    return f"'{place}' names '{name}', which is no {kind} of the plan; {ask}"


def _digests(handoff: Handoff) -> Iterator[tuple[int, str]]:
    for number, one in enumerate(handoff.changed):
        if found := _DIGEST.fullmatch(_path(one.ref)):
            yield number, found[1].lower()


def ids_in(handoff: Handoff, step: StepId) -> Iterator[str]:
    """The ids of the entries that a handoff makes."""
    return (name for name, _ in _entries_in(handoff, step))


def _entries_in(handoff: Handoff, step: StepId) -> Iterator[tuple[str, str]]:
    for one in handoff.observed:
        yield entry_id("e", step, one.finding, one.source), ""
    if handoff.uncertainty:
        yield entry_id("u", step, handoff.uncertainty), handoff.uncertainty
    for gap in handoff.not_done:
        yield entry_id("g", step, gap.item), ""
    for made in handoff.changed:
        yield entry_id("a", step, made.artifact, made.ref), ""


def _named(handoff: Handoff) -> Iterator[tuple[str, str]]:
    """Everything that a handoff may refer to an earlier entry with, and where."""
    for number, one in enumerate(handoff.observed):
        for name in dict.fromkeys((*listed_in(one.source, _is_id), *written_ids(one.source))):
            yield f"observed[{number}].source", name
        yield from ((f"observed[{number}].supports", name) for name in one.supports)
        yield from ((f"observed[{number}].refutes", name) for name in one.refutes)
    for key, names in (
        ("resolves", handoff.resolves),
        ("testing", handoff.testing),
        ("refers_to", handoff.refers_to),
    ):
        yield from ((key, name) for name in names)
    for name, trial in handoff.hypotheses.items():
        yield from ((f"hypotheses.{name}.evidence", item) for item in trial.evidence)
