"""The workshop: generators and guards, put together as a plan uses them; and the files they look at."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, TypeVar

from holdfast.errors import UsageError
from holdfast.model.plan import CLI_AGENT, GATHER, WORK, Guard, Plan, Step, StepId

if TYPE_CHECKING:
    from holdfast.executors.identity import Identities
    from holdfast.executors.local import LocalExecutor
    from holdfast.generators.inline import InlineFunctions
    from holdfast.model.digest import Json
    from holdfast.ports import Flaw, Generator, GuardKind, IgnoreRules
    from holdfast.process.slots import Slots
    from holdfast.process.terms import Terms

Function = Callable[..., object]
T = TypeVar("T")


def ignore_rules(lines: Iterable[str]) -> IgnoreRules:
    """The rules of one `.gitignore`; with re2 any of them takes a time that its length bounds.

    A line that is no pattern matches nothing, as git has it.
    """
    from pathspec import GitIgnoreSpec

    from holdfast.model.glob import is_steep

    given = list(lines)
    for line in () if is_installed("re2") else filter(is_steep, given):
        raise UsageError(
            f"'{line.strip()[:60]}' in a .gitignore has too many stars to be matched without re2",
            hint="pip install 'holdfast[regex]'",
        )
    try:
        rules = GitIgnoreSpec.from_lines(given)
    except Exception:  # noqa: BLE001 - each library of expressions has its own
        rules = GitIgnoreSpec.from_lines(filter(_is_pattern, given))
    return lambda path: rules.check_file(path).include


def _is_pattern(line: str) -> bool:
    from pathspec import GitIgnoreSpec

    try:
        GitIgnoreSpec.from_lines([line])
    except Exception:  # noqa: BLE001 - as above
        return False
    return True


def project_files(root: str, glob: str) -> list[str]:
    """The files of a project that a glob matches, as the inputs of steps do."""
    from holdfast.engine.walk import matching

    return matching(root, glob, ignore_rules)


def files_size(root: str, glob: str) -> int:
    """The bytes of the files that a glob matches."""
    places = (os.path.join(root, path) for path in project_files(root, glob))
    return sum(os.path.getsize(place) for place in places if os.path.isfile(place))


def guard_flaw(kind: str, value: Json) -> Flaw | None:
    """Why a guard can never judge by its value; what is plainly right is known without a library."""
    from holdfast.ports import Flaw

    if kind == "tool":
        from holdfast.generators.offers import tool_flaw

        assert isinstance(value, Mapping)  # as the plan file is read
        return tool_flaw(str(value["target"]), str(value["root"]))
    if kind == "regex":
        from holdfast.guards.linear import pattern_flaw

        pattern = value.get("pattern") if isinstance(value, Mapping) else value
        return pattern_flaw(str(pattern), ("pattern",))
    from holdfast.guards.schemaparts import is_plain

    if not is_installed("jsonschema"):
        message = "a schema needs jsonschema, which is not installed"
        return Flaw(message, (), "pip install 'holdfast[schema]'", lacks="jsonschema")
    if is_plain(value):
        return None
    from holdfast.guards.schema import schema_flaw

    return schema_flaw(value)


@cache
def is_installed(library: str) -> bool:
    """Whether a library could be loaded."""
    from importlib.util import find_spec

    return find_spec(library) is not None


def identities(functions: Mapping[StepId, Function] | None = None) -> Identities:
    """What generators and guards add to keys, without loading anything that could run them.

    `functions` of this very process are looked at themselves.
    """
    from holdfast.executors.identity import Identities
    from holdfast.generators.identity import python_identity, shell_identity, tools_identity
    from holdfast.generators.imports import Imports
    from holdfast.guards.identity import guard_identity

    imports = Imports()
    python = python_identity(imports)
    if functions:
        from holdfast.generators.inline import InlineFunctions

        python = _or_inline(InlineFunctions(functions, imports), python)
    return Identities(
        {
            "shell": shell_identity,
            "python": python,
            "human": lambda *_: {},
            GATHER: lambda *_: {},
            "llm": lambda *_: {},
            "agent": tools_identity(imports),
            CLI_AGENT: shell_identity,
            WORK: lambda *_: {},
            "deliver": lambda *_: {},
        },
        lambda guard, root: guard_identity(guard, root, imports.of_module),
    )


def _or_inline(
    inline: InlineFunctions, imported: Callable[[Step, str], Mapping[str, Json]]
) -> Callable[[Step, str], Mapping[str, Json]]:
    return lambda step, root: (inline.identity if step.id in inline else imported)(step, root)


def executor_for(
    plan: Plan | None,
    functions: Mapping[StepId, Function] | None = None,
    *,
    terms: Terms,
    more: tuple[Mapping[str, Generator], Mapping[str, GuardKind]] = ({}, {}),
) -> LocalExecutor:
    """An executor with the generators and guards that a plan uses, whose commands run on these terms.

    Without a plan they are made when a step asks for them.
    `more` are generators and guards beside the usual ones.
    """
    from holdfast.executors.local import LocalExecutor
    from holdfast.generators.agent import AgentGenerator, FunctionTools
    from holdfast.generators.gather import GatherGenerator
    from holdfast.generators.human import HumanGenerator
    from holdfast.generators.imports import Imports
    from holdfast.generators.llm import LlmGenerator
    from holdfast.generators.python import Pool, PythonGenerator
    from holdfast.generators.shell import ShellGenerator
    from holdfast.process.run import Slots

    imports, pool, slots = Imports(), Pool(terms), Slots()
    guards = _Kinds["GuardKind"](
        lambda kind: more[1].get(kind) or _guard(kind, guards, pool, imports, slots, terms)
    )
    for kind in () if plan is None else _guard_kinds(plan):
        guards.get(kind)
    inline = None
    if functions:
        from holdfast.generators.inline import InlineFunctions

        inline = InlineFunctions(functions, imports)
    usual: dict[str, Generator] = {
        "shell": ShellGenerator(slots=slots, terms=terms),
        "python": PythonGenerator(pool, imports),
        "human": HumanGenerator(),
        GATHER: GatherGenerator(),
        "llm": LlmGenerator(project_files),
        "agent": AgentGenerator(FunctionTools(pool).open, project_files, imports),
        **more[0],
    }
    generators = _Kinds["Generator"](
        lambda kind: _cli_agent(terms) if kind == CLI_AGENT else usual.get(kind)
    )
    for kind in usual:
        generators.get(kind)
    return LocalExecutor(generators, guards, inline)


class _Kinds(Mapping[str, T]):
    """Kinds of guards or generators by name, each made when it is first asked for: a plan may grow."""

    def __init__(self, make: Callable[[str], T | None]) -> None:
        self._make = make
        self._made: dict[str, T | None] = {}

    def __getitem__(self, kind: str) -> T:
        if kind not in self._made:
            self._made[kind] = self._make(kind)
        found = self._made[kind]
        if found is None:
            raise KeyError(kind)
        return found

    def __iter__(self) -> Iterator[str]:
        return (kind for kind, found in self._made.items() if found is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _guard(
    kind: str,
    guards: Mapping[str, GuardKind],
    pool: object,
    imports: object,
    slots: Slots,
    terms: Terms | None,
) -> GuardKind | None:
    if kind in {"all", "any", "majority"}:
        from holdfast.guards.compose import CompositeGuard

        return CompositeGuard(guards)
    if kind == "command":
        from holdfast.guards.command import CommandGuard

        return CommandGuard(slots=slots, terms=terms)
    if kind == "python":
        return _python_guard(pool, imports)
    if kind == "json-schema":
        if not is_installed("jsonschema"):
            lack = "a schema of this plan needs jsonschema, which is not installed"
            raise UsageError(lack, hint="pip install 'holdfast[schema]'")
        from holdfast.guards.schema import JsonSchemaGuard

        return JsonSchemaGuard()
    if kind == "human":
        from holdfast.guards.human import HumanGuard

        return HumanGuard()
    if kind == "regex":
        from holdfast.guards.pattern import RegexGuard

        return RegexGuard()
    if kind == "cites":
        from holdfast.guards.cites import CitesGuard

        return CitesGuard(project_files)
    if kind == "judge":
        from holdfast.guards.judge import JudgeGuard

        return JudgeGuard()
    if kind == "plan":
        from holdfast.planner.guard import PlanGuard
        from holdfast.wire.goals import flaws

        return PlanGuard(flaws)
    from holdfast.guards import content

    plain: dict[str, Callable[[], GuardKind]] = {
        "syntax": content.SyntaxGuard,
        "file": content.FileGuard,
        "outputs": content.OutputsGuard,
    }
    return plain[kind]() if kind in plain else None


def _cli_agent(terms: Terms) -> Generator:
    from holdfast.generators.cliagent import CliAgentGenerator

    return CliAgentGenerator(terms)


def _python_guard(pool: object, imports: object) -> GuardKind:
    from holdfast.generators.imports import Imports
    from holdfast.generators.python import Pool
    from holdfast.guards.code import PythonGuard

    assert isinstance(pool, Pool)
    assert isinstance(imports, Imports)
    return PythonGuard(pool.judge, imports.of_module)


def _guard_kinds(plan: Plan) -> set[str]:
    kinds: set[str] = set()
    pending: list[Guard] = [guard for step in plan.steps.values() for guard in step.guards]
    while pending:
        guard = pending.pop()
        kinds.add(guard.kind)
        pending += guard.items
    if any(step.schema is not None for step in plan.steps.values()):
        kinds.add("json-schema")
    if any(step.outputs for step in plan.steps.values()):
        kinds.add("outputs")
    return kinds
