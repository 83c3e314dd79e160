"""Functions become steps. Light, because child processes load it too.

Inside a plan function the call of a step is noted and gives a reference to what it will have made;
anywhere else a step that is a function is just called.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Container, Coroutine, Iterable, Mapping, Sequence
from typing import (
    TYPE_CHECKING,
    Any,
    Generic,
    Literal,
    ParamSpec,
    Protocol,
    TypedDict,
    TypeVar,
    Unpack,
    cast,
    overload,
)

from holdfast.api.calling import Function, called, functional
from holdfast.api.guarding import GuardFunction
from holdfast.api.homes import main_name, target_of
from holdfast.api.recording import arguments_of, note, record, under_way, wired
from holdfast.api.references import Later, LaterList, as_value, whole_of
from holdfast.api.typed import hints_of, is_structured, plain, schema_of
from holdfast.errors import UsageError
from holdfast.generators.child import signature
from holdfast.model.digest import Json

if TYPE_CHECKING:
    from holdfast.model.plan import Guard

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
T = TypeVar("T")


class StepKeys(TypedDict, total=False):
    """What a step may be told beside its arguments; the keys of a plan file."""

    guards: Iterable[GuardFunction[..., Any] | Guard | str | Mapping[str, Json]]
    retries: int
    timeout: str
    produces: str | Sequence[str]
    inputs: str | Sequence[str]
    outputs: Sequence[str]
    schema: Json
    effects: Literal["none", "workspace", "external"]
    idempotent: bool
    approve: Literal["never", "always", "on_change", "over_budget"]
    budget: Mapping[str, Json]
    budget_usd: float
    fresh_for: str
    priority: Literal["critical", "high", "normal", "low"]
    patience: int
    escalate: Sequence[str]
    rounds: int
    on_fatal: Literal["fail", "escalate"]
    resources: Mapping[str, int | str]
    runs_on: str
    handoff: bool
    context: bool | Literal["in-ref"]
    context_tokens: int
    workspace: Literal["shared", "scratch", "worktree"]
    reuse: Literal["merkle", "content", "strict"]
    share: bool
    env: Sequence[str]
    secrets: Sequence[str]
    tool_versions: Mapping[str, Sequence[str]]
    description: str
    contract: str
    constraints: str
    specification: str


class ModelKeys(StepKeys, total=False):
    """What a step of a model may be told; without `prompt` its docstring is the prompt."""

    prompt: str | Mapping[str, str]
    model: str | Mapping[str, Json]


class AgentKeys(ModelKeys, total=False):
    """What a step of a model with tools may be told."""

    tools: Iterable[Function | str]
    turns: int


class StepFunction(Generic[P, R_co]):
    """A step in the making: call it inside a plan function, once or several times."""

    def __init__(
        self, function: Callable[P, R_co], uses: str, keys: AgentKeys, *, inline: bool = False
    ) -> None:
        self.function = functional(function, "step")
        self.uses = uses
        self.keys = keys
        self.inline = inline
        self.step_id = ""
        self.after_ids: tuple[str, ...] = ()
        self.origin: StepFunction[P, R_co] = self  # what the module holds under its name
        functools.update_wrapper(self, self.function)

    @functools.cached_property
    def __holdfast_call__(self) -> Function:
        """The function as an engine calls it; made when all its module is there."""
        return called(self.function, plain)

    def __call__(self, *args: P.args, **named: P.kwargs) -> R_co:
        made = under_way()
        if made is not None:
            return cast("R_co", record(made, self, (args, named)))
        if self.uses != "python":
            raise UsageError(
                f"'{self.function.__name__}' is done by a model", hint="call it in a @plan function"
            )
        return cast("R_co", self.function(*args, **named))

    @overload
    def __get__(self, owner: None, kind: type) -> StepFunction[P, R_co]: ...
    @overload
    def __get__(self, owner: object, kind: type | None = None) -> Callable[..., R_co]: ...
    def __get__(self, owner: object, kind: type | None = None) -> Callable[..., R_co]:
        """A step in a class is a plain method outside of plans; no other process has its object."""
        if owner is None:
            return self
        if under_way() is not None:
            raise UsageError(
                f"'{self.function.__name__}' is a method, and no other process has its object",
                hint="make a function of it, at the top of a file",
            )
        return types.MethodType(self.function, owner)

    def __reduce__(self) -> str:
        return self.function.__qualname__  # under which its module has it

    def map(
        self, items: Iterable[T], *, key: Callable[[T], object] | None = None, **fixed: object
    ) -> list[R_co]:
        """Once for each item, which is the first argument; `fixed` gives the others by name.

        `key` says what makes an item the same one in a later run, as in `key=lambda hit: hit.url`.
        """
        made = under_way()
        if made is None:
            raise UsageError("'map' belongs into a @plan function")
        if self.inline:
            raise UsageError(
                f"'{self.function.__name__}' is inline and cannot be done for each of several items",
                hint="leave out inline=True",
            )
        first = next(iter(signature(self.function).parameters), "")
        if first in fixed:
            raise UsageError(
                f"'{first}' of '{self.function.__name__}' is the item, and is given for all of them",
                hint="let the item be its first parameter",
            )
        bound = arguments_of(self, (), {first: Later("item"), **fixed})
        data = self.spelled(made.root)
        data["for_each"] = as_value(items if _is_known(items) else list(items))
        if key is not None:
            data["key"] = as_value(key(cast("T", Later("item"))))
        found = note(made, self, data, wired(self, data, bound))
        return cast("list[R_co]", LaterList(f"steps.{whole_of(found)}.output", whole_of(found)))

    def named(self, step_id: str) -> StepFunction[P, R_co]:
        """The same step under another id."""
        return self._changed(step_id, self.after_ids)

    def after(self, *others: object) -> StepFunction[P, R_co]:
        """The same step, begun when others are complete whose artifacts it does not read."""
        ids = []
        for other in others:
            path = as_value(other) if isinstance(other, Later) else ""
            if not path:
                raise UsageError("'after' takes what steps of this plan gave")
            ids.append(str(path).split(".output")[0].partition("steps.")[2])
        return self._changed(self.step_id, (*self.after_ids, *dict.fromkeys(ids)))

    def _changed(self, step_id: str, after_ids: tuple[str, ...]) -> StepFunction[P, R_co]:
        other = StepFunction(
            cast("Callable[P, R_co]", self.function), self.uses, self.keys, inline=self.inline
        )
        other.step_id, other.after_ids, other.origin = step_id, after_ids, self.origin
        return other

    def check_guards(self, names: Container[str]) -> None:
        """Refuse guards that ask for something that the step is not given: each attempt would be lost."""
        for item in self.keys.get("guards", ()):
            if isinstance(item, GuardFunction):
                item.check(self.function.__name__, names)

    def spelled(self, root: str) -> dict[str, Json]:
        """What the plan says of it beside its arguments."""
        data: dict[str, Json] = {"uses": self.uses}
        words = inspect.getdoc(self.function) or ""
        if self.uses == "python":
            data["run"] = _inline_name(self) if self.inline else target_of(self.origin, root)
            data |= {"description": words.partition("\n")[0]} if words else {}
        elif "prompt" not in self.keys:
            if not words:
                raise UsageError(
                    f"'{self.function.__name__}' has no prompt", hint="prompt=…, or a docstring"
                )
            data["prompt"] = words
        data |= _keys(self.keys, root)
        kind = hints_of(self.function).get("return")
        if "schema" not in data and (self.uses != "python" or is_structured(kind)):
            schema = schema_of(kind)
            data |= {"schema": schema} if schema is not None else {}
        return data


def _is_known(items: object) -> bool:
    """Whether a plan can be told a list as it is, instead of what comes when it is counted through."""
    return isinstance(items, Later | str | Mapping)


def _inline_name(step: StepFunction[..., object]) -> str:
    """What an inline function is called in the plan; it is never looked for under that name."""
    module, name = step.function.__module__, step.function.__name__
    if module == "__main__":
        module = main_name() or module  # a notebook has no other name
    return f"{module}:{name if name.isidentifier() else 'inline'}"


def _keys(keys: AgentKeys, root: str) -> dict[str, Json]:
    """The keys as a plan file has them."""
    found: dict[str, Json] = {}
    for key, value in keys.items():
        if key == "guards":
            found[key] = [_guard(item, root) for item in _listed(key, value)]
        elif key == "tools":
            found[key] = [_tool(item, root) for item in _listed(key, value)]
        elif key == "budget_usd":
            found["budget"] = {**keys.get("budget", {}), "usd": keys["budget_usd"]}
        elif key != "budget" or "budget_usd" not in keys:
            found[key] = cast("Json", plain(value))
    return found


def _listed(key: str, value: object) -> Sequence[Any]:
    if isinstance(value, str | Mapping) or not isinstance(value, Iterable):
        raise UsageError(f"'{key}' is a list", hint=f"{key}=[…]")
    return list(value)


def _guard(item: object, root: str) -> Json:
    if isinstance(item, GuardFunction):
        return item.spelled(root)
    if isinstance(item, StepFunction):
        raise UsageError(
            f"'{item.function.__name__}' is a step, and guards nothing",
            hint="decorate it with @guard",
        )
    if isinstance(item, str | Mapping):
        return cast("Json", plain(item))
    if callable(item):
        return {"python": target_of(item, root)}
    from holdfast.formats.planout import guard_data  # noqa: PLC0415 - only for guards made by hand

    return guard_data(cast("Guard", item))


def _tool(item: object, root: str) -> Json:
    return item if isinstance(item, str) else target_of(item, root)


class Decorator(Protocol):
    """What `@step(…)` gives: a coroutine function gives its step what it returns."""

    @overload
    def __call__(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> StepFunction[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> StepFunction[P, R]: ...


class Steps:
    """`step`, `step.llm` and `step.agent`: functions, models, and models with tools do it."""

    @overload
    def __call__(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> StepFunction[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> StepFunction[P, R]: ...
    @overload
    def __call__(
        self, function: None = None, /, *, inline: bool = False, **keys: Unpack[StepKeys]
    ) -> Decorator: ...
    def __call__(
        self, function: Function | None = None, /, *, inline: bool = False, **keys: Unpack[StepKeys]
    ) -> object:
        """Make a step of a function. It runs in a child process; with `inline` in this one, unkillable."""
        if function is not None:
            return StepFunction(function, "python", {})
        return lambda found: StepFunction(found, "python", cast("AgentKeys", keys), inline=inline)

    @overload
    def llm(self, function: Callable[P, R], /) -> StepFunction[P, R]: ...
    @overload
    def llm(
        self, function: None = None, /, **keys: Unpack[ModelKeys]
    ) -> Callable[[Callable[P, R]], StepFunction[P, R]]: ...
    def llm(self, function: Function | None = None, /, **keys: Unpack[ModelKeys]) -> object:
        """Make a step that a model does: it fills the return type; the body is never run."""
        return _by_model("llm", function, cast("AgentKeys", keys))

    @overload
    def agent(self, function: Callable[P, R], /) -> StepFunction[P, R]: ...
    @overload
    def agent(
        self, function: None = None, /, **keys: Unpack[AgentKeys]
    ) -> Callable[[Callable[P, R]], StepFunction[P, R]]: ...
    def agent(self, function: Function | None = None, /, **keys: Unpack[AgentKeys]) -> object:
        """Make a step that a model does with tools; the body is never run."""
        return _by_model("agent", function, keys)


def _by_model(uses: str, function: Function | None, keys: AgentKeys) -> object:
    if function is not None:
        return StepFunction(function, uses, {})
    return lambda found: StepFunction(found, uses, keys)


step = Steps()
