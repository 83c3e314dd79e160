"""What came of a run: its state, what its steps made, in how many attempts, for which reasons."""

from __future__ import annotations

import contextlib
import io
import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePath
from typing import Any, Generic, TypeVar, cast, overload

from holdfast import wire
from holdfast.api import notebook
from holdfast.api.stepping import StepFunction
from holdfast.api.told import Named, known, named
from holdfast.api.typed import given
from holdfast.cli.place import Place
from holdfast.cli.why import told_in
from holdfast.cli.whytext import print_told, told_json
from holdfast.core.reasons import sentence
from holdfast.core.state import State, StepState
from holdfast.core.views import run_json, shown_phase, usd
from holdfast.engine.asked import asked_in
from holdfast.engine.requests import additions
from holdfast.errors import UsageError
from holdfast.model.artifact import Form
from holdfast.model.digest import Digest, Json
from holdfast.model.event import (
    AttemptAccepted,
    AttemptFailed,
    AttemptLost,
    AttemptParked,
    AttemptRejected,
    AttemptStarted,
)
from holdfast.model.items import base_of, item_id, step_named
from holdfast.model.plan import StepId
from holdfast.ports import Store

T_co = TypeVar("T_co", covariant=True)
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try at a step: running, accepted, rejected, failed, lost, or waiting for a person.

    `guard` refused it, with the words `feedback`; `content` is what it made, if that was kept.
    """

    number: int
    status: str
    guard: str = ""
    feedback: str = ""
    content: bytes | None = None


@dataclass(frozen=True, slots=True)
class Why:
    """Why a step ran, was reused or failed: printed, the answer of `holdfast why`."""

    text: str
    data: Mapping[str, Json]

    @property
    def code(self) -> str:
        """The code of the reason; nothing if there is none."""
        reason = self.data.get("reason")
        return str(reason["code"]) if isinstance(reason, Mapping) else ""

    def __str__(self) -> str:
        return self.text


class StepResult(Generic[T_co]):
    """What came of one step."""

    def __init__(self, result: Result, step_id: StepId, kind: object) -> None:
        self._result = result
        self._kind = kind
        self.id = str(step_id)

    @property
    def _state(self) -> StepState:
        return self._result.state.steps[StepId(self.id)]

    @property
    def state(self) -> str:
        """pending, running, waiting, done, reused, failed or skipped."""
        return str(shown_phase(self._result.state, StepId(self.id)))

    @property
    def digest(self) -> str | None:
        """The digest of its artifact; None if it has none."""
        return self._state.digest

    @property
    def content(self) -> bytes:
        """The artifact, byte for byte; of several files, their manifest."""
        return self._result.read(self._digest())

    @property
    def value(self) -> T_co:
        """The artifact as the step's function is annotated; else what it is as JSON, or its text.

        A `Path`, or several files, are paths in the project. Of a step that was mapped it is the list of what
        its items made.
        """
        step = self._result.state.plan.steps[StepId(self.id)]
        if step.template is not None:
            return cast("T_co", [item.value for item in self])
        if isinstance(self._kind, type) and issubclass(self._kind, PurePath) and step.produces:
            return cast("T_co", Path(self._result.root, step.produces[0]))
        return cast("T_co", _value(self._kind, self._state.form, self.content))

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        """Every try at it in this run; none if it was reused."""
        return self._result.attempts(StepId(self.id))

    def __iter__(self) -> Iterator[StepResult[T_co]]:
        """Of a step that was mapped, what came of each item, in their order."""
        return iter([self._result.item(name, self._kind) for name in self._items()])

    def __len__(self) -> int:
        return len(self._items())

    def __bool__(self) -> bool:
        return True

    def __getitem__(self, item: int | str) -> StepResult[T_co]:
        """What came of one item, by its place or by its key."""
        found = self._items()
        name = found[item] if isinstance(item, int) else item_id(StepId(self.id), item)
        if name not in found:
            raise KeyError(item)
        return self._result.item(name, self._kind)

    def _items(self) -> list[StepId]:
        step = self._result.state.plan.steps[StepId(self.id)]
        return [need for need in step.data_needs if base_of(need) == step.id]

    @property
    def cost_usd(self) -> float | None:
        """What its calls of models cost; None if a price is not known."""
        spent = self._state.spent
        if spent is None:
            return 0.0
        return None if spent.unpriced else usd(spent.cost)

    def why(self) -> Why:
        """Why it ran, was reused, waits or failed."""
        return self._result.why(self.id)

    def _digest(self) -> Digest:
        digest = self._state.digest
        if digest is None:
            raise UsageError(f"'{self.id}' made nothing: it is {self.state}", hint="see .why()")
        return digest

    def __repr__(self) -> str:
        return f"<{self.id}: {self.state}>"


class Result:
    """A run that ended or rests: `result["step"].value`, `result.why("step")`."""

    def __init__(
        self,
        state: Callable[[], State],
        location: str,
        root: str = ".",
        types: Mapping[str, object] | None = None,
        status: str = "",
    ) -> None:
        self._made = state
        self._status = status
        self._types = types or {}
        self.location = location
        self.root = os.path.abspath(root)

    @cached_property
    def state(self) -> State:
        """The run, folded."""
        return self._made()

    @property
    def run(self) -> str:
        """The id of the run."""
        return self.state.run

    @property
    def status(self) -> str:
        """How the run ended: completed, failed, waiting, paused, limit."""
        return self._status or str(self.state.status)

    @property
    def cost_usd(self) -> float | None:
        """What its calls of models cost; None if a price is not known."""
        spent = self.state.spent
        return None if spent.unpriced else usd(spent.cost)

    @overload
    def __getitem__(self, step: str) -> StepResult[Any]: ...
    @overload
    def __getitem__(self, step: StepFunction[..., R]) -> StepResult[R]: ...
    def __getitem__(self, step: str | StepFunction[..., Any]) -> StepResult[Any]:
        """What came of a step, named by its id, or by its function if that is its id."""
        name = named(step)
        exact = StepId(name) in self.state.steps  # as iterating over it says them
        found = StepId(name) if exact else step_named(name, self.state.steps)
        if found is None:
            raise KeyError(name)
        return self.item(found, self._types.get(base_of(found) or found, object))

    def item(self, step_id: StepId, kind: object) -> StepResult[Any]:
        """What came of a step that is there, as a value of this kind."""
        return StepResult(self, step_id, kind)

    def __iter__(self) -> Iterator[str]:
        return (str(name) for name in self.state.steps)

    def __len__(self) -> int:
        return len(self.state.steps)

    def why(self, step: Named) -> Why:
        """Why a step ran, was reused, waits or failed, with the content that decided it."""
        where = Place(None, self.root, self.location, self.state.line)
        told = told_in(where, known(step, self.state.steps), self.state.run)
        text = io.StringIO()
        with contextlib.redirect_stdout(text):
            print_told(told)
        return Why(text.getvalue().rstrip(), told_json(told))

    def json(self) -> dict[str, Json]:
        """The run as `holdfast run --json` prints it."""
        with self._reading() as store:
            asked, more = asked_in(store, self.state), additions(store, self.state)
        return run_json(self.state, file=None, now=wire.now_ms(), asked=asked, additions=more)

    def read(self, digest: Digest) -> bytes:
        """Content of the store."""
        with self._reading() as store:
            return store.get(digest)

    def attempts(self, step_id: StepId) -> tuple[Attempt, ...]:
        """Every try at a step in this run."""
        with self._reading() as store:
            return _attempts(store, self.state, step_id)

    @contextlib.contextmanager
    def _reading(self) -> Iterator[Store]:
        store = wire.open_store(self.location, readonly=True)
        try:
            yield store
        finally:
            store.close()

    def __repr__(self) -> str:
        counts = {name: count for name, count in self.state.counts.items() if count}
        told = ", ".join(f"{count} {name}" for name, count in counts.items())
        return f"<run {self.run}: {self.status}; {told}>"

    def _repr_mimebundle_(self, **_: object) -> dict[str, object]:
        rows = [(name, self[name].state, _said(self, name)) for name in self]
        head = f"{self.state.line} · {self.status}"
        html = notebook.table(head, ("step", "state", "reason"), rows)
        return {"text/plain": repr(self), "text/html": html, "application/json": self.json()}


def _said(result: Result, name: str) -> str:
    reason = result.state.steps[StepId(name)].reason
    return sentence(reason) if reason is not None else ""


def _value(kind: object, form: Form, content: bytes) -> object:
    if kind is bytes or form == "tree":
        return content
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return content
    try:
        if kind in (Any, object):
            return json.loads(text)
        return given(kind, text)
    except (ValueError, RecursionError):
        return text


def _attempts(store: Store, state: State, step_id: StepId) -> tuple[Attempt, ...]:
    found: dict[int, Attempt] = {}
    for recorded in store.read(f"run:{state.run}"):
        event = recorded.event
        if getattr(event, "step", None) != step_id:
            continue
        match event:
            case AttemptStarted():
                found[event.attempt] = Attempt(event.attempt, "running")
            case AttemptAccepted() | AttemptParked():
                how = "accepted" if isinstance(event, AttemptAccepted) else "waiting"
                found[event.attempt] = Attempt(
                    event.attempt, how, content=_kept(store, event.digest)
                )
            case AttemptRejected():
                words = _words(store, event.feedback)
                kept = _kept(store, event.digest)
                found[event.attempt] = Attempt(event.attempt, "rejected", event.guard, words, kept)
            case AttemptFailed() | AttemptLost():
                how = "failed" if isinstance(event, AttemptFailed) else "lost"
                found[event.attempt] = Attempt(
                    event.attempt, how, feedback=_words(store, event.feedback) or event.code
                )
            case _:
                pass
    return tuple(found.values())


def _kept(store: Store, digest: Digest | None) -> bytes | None:
    return store.get(digest) if digest is not None and store.has(digest) else None


def _words(store: Store, digest: Digest | None) -> str:
    return (_kept(store, digest) or b"").decode("utf-8", "replace")
