"""A plan in the making: steps are added by hand or read from a file, then it is built."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Unpack, cast

from holdfast import wire
from holdfast.api import notebook, previews, running
from holdfast.api.calling import Function
from holdfast.api.previews import Looking, Preview
from holdfast.api.ready import Ready
from holdfast.api.results import Result
from holdfast.api.running import Handle, Wishes
from holdfast.core.waves import graph_of
from holdfast.errors import UsageError
from holdfast.formats.agentfile import shipped
from holdfast.formats.contracts import bound
from holdfast.formats.heading import python_part
from holdfast.formats.modelsteps import Around, ModelKeys, model_step
from holdfast.formats.nodes import Bounds, read
from holdfast.formats.planfile import Asked as Loading
from holdfast.formats.planfile import Loaded, load_text, read_file
from holdfast.formats.planout import data_yaml, plan_yaml
from holdfast.formats.problems import Problems
from holdfast.formats.pyplan import load_python
from holdfast.formats.reading import Reading
from holdfast.formats.shapes import verbatim
from holdfast.model import plan as model
from holdfast.model.agent import Agent, Registry, contracts, voices, with_contracts
from holdfast.model.digest import Json
from holdfast.model.expression import Wrong, parts
from holdfast.model.plan import Guard, Need, Step, StepId
from holdfast.model.walls import Walls


@dataclass(slots=True)
class Plan:
    """A plan in the making: steps are added, then it is run. `load` gives one from a file.

    With `agents`, contracts by name, its steps are held to them and to those that are known anyway.
    """

    name: str
    root: str = "."
    steps: dict[StepId, Step] = field(default_factory=dict)
    functions: dict[StepId, Function] = field(default_factory=dict)
    limits: model.Limits = field(default_factory=model.Limits)
    project: str = ""
    goal: str = ""
    description: str = ""
    params: dict[str, Json] = field(default_factory=dict)
    agents: dict[str, Agent] = field(default_factory=dict)
    origin: Mapping[str, Json] = field(default_factory=dict)
    voices: Mapping[str, Json] = field(default_factory=dict)
    contracts: Mapping[str, Json] = field(default_factory=dict)
    foreign: str = ""
    types: Mapping[str, object] = field(default_factory=dict)  # what steps give, as annotated
    module: str = ""  # of the function that made it
    source: tuple[model.Plan, Mapping[str, Json]] | None = (
        None  # as made, with the data it was made of
    )
    _runs: dict[str, tuple[str]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    _needs: dict[str, Need] = field(default_factory=dict, init=False, repr=False, compare=False)

    def step(
        self,
        name: str,
        function: Function,
        *,
        needs: Iterable[str] = (),
        values: Mapping[str, Json] | None = None,
        guards: Iterable[Guard] = (),
        inline: bool = False,
        retries: int = 0,
    ) -> None:
        """Add a step that is a function; with `inline` it runs in this process and cannot be killed.

        A parameter named like a need gets that step's artifact, one named in `values` its value.
        Values may hold `${{ steps.ID.output }}`, which needs that step by itself.
        """
        step_id = StepId(name)
        if step_id in self.steps:
            raise UsageError(f"the plan has a step '{name}' already")
        target = f"{function.__module__}:{function.__qualname__}"
        if not inline and ("<" in target or function.__module__ == "__main__"):
            raise UsageError(
                f"'{target}' cannot be imported by a child process", hint="say inline=True"
            )
        self.steps[step_id] = Step(
            id=step_id,
            uses="python",
            run=self._runs.setdefault(target, (target,)),
            needs=tuple([self._need(name) for name in dict.fromkeys((*needs, *_read(values)))]),
            values=dict(values or {}),
            guards=tuple(guards),
            retries=retries,
        )
        if inline:
            self.functions[step_id] = function

    def _need(self, name: str) -> Need:
        """The edge from a step, which is one for all that need it: there may be millions."""
        found = self._needs.get(name)
        if found is None:
            found = self._needs[name] = Need(StepId(name))
        return found

    def llm(self, name: str, prompt: Json, **keys: Unpack[ModelKeys]) -> None:
        """Add a step that a model does: `model="small"`, `guards=[…]`, `budget={"usd": 0.5}` and so on."""
        self._add_model(name, "llm", prompt, keys)

    def agent(self, name: str, prompt: Json, **keys: Unpack[ModelKeys]) -> None:
        """Add a step that a model does with tools: `tools=["module:function"]`, `turns=20`."""
        self._add_model(name, "agent", prompt, keys)

    def _add_model(self, name: str, uses: str, prompt: Json, keys: ModelKeys) -> None:
        if StepId(name) in self.steps:
            raise UsageError(f"the plan has a step '{name}' already")
        asked = Loading(check=wire.guard_flaw, models=wire.market.known_names)
        around = Around(os.path.abspath(self.root), self.steps.keys(), asked)
        self.steps[StepId(name)] = model_step(name, uses, prompt, keys, around)

    def add(self, step: Step) -> None:
        """Add a step that was made by hand."""
        self.steps[step.id] = step

    def to_yaml(self) -> str:
        """The plan as the text of a plan file, which `load` reads as the same plan.

        UsageError if a function of this process can be found by no other.
        """
        for step_id in self.functions:
            _refuse_unwritable(step_id, self.steps[step_id].run[0])
        made = self.build()
        if self.source is not None and self.source[0] == made:
            return data_yaml(self.source[1])
        return plan_yaml(made)

    def get_dependents(self, step: str) -> set[str]:
        """The steps that need this one; empty if none does."""
        return {
            str(other.id)
            for other in self.steps.values()
            if any(need.step == step for need in other.needs)
        }

    def execution_waves(self) -> list[list[str]]:
        """Step ids level by level, those that need nothing first; a circle is an error with its path."""
        return [[str(name) for name in wave] for wave in graph_of(self.build()).waves()]

    def subgraph(self, steps: Iterable[str]) -> Plan:
        """A plan of some of the steps; what they need of the others is taken to be there."""
        kept = {StepId(name) for name in steps}
        if lost := sorted(kept - self.steps.keys()):
            raise UsageError(f"the plan has no step '{lost[0]}'")
        few = {
            name: replace(step, needs=tuple(need for need in step.needs if need.step in kept))
            for name, step in self.steps.items()
            if name in kept
        }
        functions = {name: made for name, made in self.functions.items() if name in kept}
        return replace(self, steps=few, functions=functions)

    def preview(self, **wishes: Unpack[Looking]) -> Preview:
        """What a run would do, and why; nothing is run or written."""
        return previews.preview(self.ready(), wishes)

    def find_invalidated(
        self, changed: Iterable[str] = (), *, store: str | None = None
    ) -> frozenset[str]:
        """The steps that have to be made: changed, incomplete, failed, and what depends on them.

        Steps named in `changed` count as changed whatever the store says.
        """
        return previews.invalidated(self.ready(), changed, store)

    def run(self, **wishes: Unpack[Wishes]) -> Result:
        """Run the plan to its end or rest; what stands in the store is reused. See `holdfast.run`."""
        return running.run_here(self.ready(), wishes)

    async def arun(self, **wishes: Unpack[Wishes]) -> Result:
        """The same for a program with an event loop; cancelling it stops the run, to be resumed."""
        return await running.arun_ready(self.ready(), wishes)

    def start(self, **wishes: Unpack[Wishes]) -> Handle:
        """Begin to run the plan beside this program."""
        return Handle(self.ready(), wishes)

    def ready(self) -> Ready:
        """The plan with all that a run of it needs."""
        self._needs.clear()  # they are in the steps; a further step may have an edge of its own
        return Ready(
            self.build(),
            os.path.abspath(self.root),
            dict(self.functions),
            self.types,
            self.foreign,
            self.module,
        )

    def _repr_mimebundle_(self, **_: object) -> dict[str, object]:
        made = self.build()
        rows = [
            (s, step.uses, ", ".join(n.step for n in step.needs)) for s, step in made.steps.items()
        ]
        html = notebook.table(f"plan {self.name}", ("step", "uses", "needs"), rows)
        return {
            "text/plain": f"<plan {self.name}: {len(rows)} steps>",
            "text/html": html + previews.drawing(made),
            "application/json": cast("object", model.plan_json(made)),
        }

    def build(self) -> model.Plan:
        """The immutable plan; a PlanError says which contracts its steps break."""
        steps, limits, counts = dict(self.steps), self.limits, self.voices
        terms = self.contracts
        if self.agents:
            counts = voices(Registry(self.agents).over(shipped()), shipped())
            own, kept = contracts(Registry(self.agents), Registry()), terms.get("agents", {})
            terms = {"agents": {**cast("Mapping[str, Json]", kept), **own}}
        if terms:
            known = with_contracts(wire.known_agents(), terms)
            steps, limits = bound(steps, limits, known, self.params)
        return model.Plan(
            self.name,
            steps,
            goal=self.goal,
            description=self.description,
            limits=limits,
            project=self.project,
            params=dict(self.params),
            origin=self.origin,
            voices=counts,
            contracts=terms,
        )


def _read(values: Mapping[str, Json] | None) -> list[str]:
    """The steps that values refer to. Only they can be filled in: a program has its own variables."""
    found = []
    for part in parts(values or {}):
        if isinstance(part, Wrong):
            raise UsageError(part.message, hint=part.hint)
        if part.root != "steps":
            raise UsageError(
                f"'{part.path}' cannot be read here", hint="put the value itself there"
            )
        found.append(part.name)
    return found


def _refuse_unwritable(step_id: StepId, target: str) -> None:
    module, _, name = target.partition(":")
    if (
        not module
        or module == "__main__"
        or not all(part.isidentifier() for part in name.split("."))
    ):
        raise UsageError(
            f"the function of '{step_id}' is only in this process, and cannot be written",
            hint="put it at the top of a file of the project",
        )


def asked_for(name: str | None, params: Mapping[str, Json], root: str = ".") -> Loading:
    """How a program has the plans of a project loaded."""
    return Loading(
        name,
        params,
        wire.project_files,
        wire.guard_flaw,
        own=wire.own_agents,
        models=wire.market.known_names,
        walls=wire.walls_at(root),
    )


def load(
    path: str, *, plan_id: str | None = None, params: Mapping[str, Json] | None = None
) -> Plan:
    """Read a plan file, or the plan of a Python file; `params` are values for what it declares."""
    asked = asked_for(plan_id, params or {}, os.path.dirname(path) or ".")
    if python_part(path)[0]:
        return plan_of(load_python(path, asked))
    content, root = read_file(path, walls=asked.walls)
    loaded = load_text(content, path, root, asked)
    return plan_of(loaded, None if params else _declared(content, loaded, asked.walls))


def _declared(content: bytes, loaded: Loaded, walls: Walls) -> Mapping[str, Json] | None:
    """What a file with params says, so that it can be written with them; without any the plan says it all."""
    if loaded.foreign:
        return None
    problems = Problems(loaded.file)
    is_json = loaded.file.endswith(".json")
    tree = read(content, problems, strict_json=is_json, bounds=Bounds.of(walls))
    data = verbatim(Reading(problems, Path(loaded.root)), tree)
    if not isinstance(data, Mapping) or "params" not in data:
        return None
    return {"schema": model.PLAN_SCHEMA, **data, "name": loaded.plan.name}


def plan_of(loaded: Loaded, data: Mapping[str, Json] | None = None) -> Plan:
    """A plan that was loaded; `data` is what a plan file would say of it."""
    made = loaded.plan
    found = Plan(
        made.name,
        loaded.root,
        dict(made.steps),
        limits=made.limits,
        project=made.project,
        goal=made.goal,
        description=made.description,
        params=dict(made.params),
        origin=made.origin,
        voices=made.voices,
        contracts=made.contracts,
        foreign=loaded.foreign,
    )
    if data is not None:
        found.source = (made, data)
    return found


def run(plan: Plan, **wishes: Unpack[Wishes]) -> Result:
    """Run a plan to its end or rest; what stands in the store is reused.

    Of the steps named in `resample` one more artifact is made, and nothing else runs: the one with the best
    score of its judges stands, else the newest.
    On models it spends at most `max_cost` dollars, and never more than the person's own budget. Answers of
    models are written to files in the directory `record`. With `provider="recorded"` nobody is asked: every
    answer comes from the directory `recorded`, which is `recorded/` beside the plan unless it is named.
    A plan from a foreign file runs only if `trust` is its digest, `holdfast plan FILE --json` says which.
    """
    return plan.run(**wishes)
