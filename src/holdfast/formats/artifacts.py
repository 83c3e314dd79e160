"""The graph of artifacts as its document describes it, for programs that speak it; a plan is one, too.

    graph = ArtifactGraph.from_dict(json.load(file)["graph"])
    graph.get_dependents("UserProtocol")        # what requires it
    graph.execution_waves()                     # what requires nothing first

Nothing that it hands out can change it: sets are copies, specs are frozen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import cast

from holdfast.errors import PlanError, Problem
from holdfast.formats.sunwell import waves_of
from holdfast.formats.sunwellout import sunwell_document
from holdfast.model.digest import Json
from holdfast.model.plan import Plan

CONTRACTS = frozenset({"protocol", "interface", "schema", "spec", "outline"})


@dataclass(frozen=True, slots=True)
class ArtifactSpec:
    """One artifact: what it is, what it promises, which file it becomes, what it requires."""

    id: str
    description: str = ""
    contract: str = ""
    produces_file: str | None = None
    requires: frozenset[str] = frozenset()
    domain_type: str | None = None
    metadata: Mapping[str, Json] = field(default_factory=dict)

    @property
    def is_contract(self) -> bool:
        """Whether others are built against it: it says so, or requires nothing."""
        return self.domain_type in CONTRACTS or not self.requires

    def to_dict(self) -> dict[str, Json]:
        """The spec as JSON, its requirements sorted."""
        return {
            "id": self.id,
            "description": self.description,
            "contract": self.contract,
            "requires": sorted(self.requires),
            "produces_file": self.produces_file,
            "domain_type": self.domain_type,
            "metadata": dict(self.metadata),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Json]) -> ArtifactSpec:
        """A spec from JSON; what is not said is nothing."""
        return cls(
            str(data["id"]),
            str(data.get("description") or ""),
            str(data.get("contract") or ""),
            cast("str | None", data.get("produces_file")),
            frozenset(cast("list[str]", data.get("requires") or ())),
            cast("str | None", data.get("domain_type")),
            cast("Mapping[str, Json]", data.get("metadata") or {}),
        )


class ArtifactGraph:
    """Specs by id, in the order in which they were added."""

    def __init__(self, specs: Iterable[ArtifactSpec] = ()) -> None:
        self._specs: dict[str, ArtifactSpec] = {}
        self._dependents: dict[str, set[str]] = {}
        for spec in specs:
            self.add(spec)

    def add(self, spec: ArtifactSpec) -> None:
        """Add a spec; PlanError if its id is taken."""
        if spec.id in self._specs:
            raise PlanError((Problem(f"the artifact '{spec.id}' is there already", code="P038"),))
        self._specs[spec.id] = spec
        for name in spec.requires:
            self._dependents.setdefault(name, set()).add(spec.id)

    def __getitem__(self, name: str) -> ArtifactSpec:
        """A spec by its id."""
        return self._specs[name]

    def __contains__(self, name: object) -> bool:
        """Whether an artifact is there."""
        return name in self._specs

    def __iter__(self) -> Iterator[str]:
        """The ids."""
        return iter(self._specs)

    def __len__(self) -> int:
        """How many there are."""
        return len(self._specs)

    def __eq__(self, other: object) -> bool:
        """Whether both hold the same specs."""
        return isinstance(other, ArtifactGraph) and self._specs == other._specs

    __hash__ = None  # type: ignore[assignment]  # it can be added to

    def get_dependents(self, name: str) -> set[str]:
        """The artifacts that require this one: a copy, empty if none does."""
        return set(self._dependents.get(name, ()))

    def leaves(self) -> list[str]:
        """What requires nothing."""
        return sorted(name for name, spec in self._specs.items() if not spec.requires)

    def roots(self) -> list[str]:
        """What nothing requires."""
        return sorted(name for name in self._specs if not self._dependents.get(name))

    def subgraph(self, names: Iterable[str]) -> ArtifactGraph:
        """Some of the artifacts; what they require of the others is there already."""
        kept = set(names)
        if lost := sorted(kept - self._specs.keys()):
            raise PlanError((Problem(f"there is no artifact '{lost[0]}'", code="P003"),))
        return ArtifactGraph(
            replace(spec, requires=spec.requires & kept)
            for name, spec in self._specs.items()
            if name in kept
        )

    def execution_waves(self) -> list[list[str]]:
        """Ids level by level, what requires nothing first, sorted inside a level.

        A circle is a CyclicDependencyError, an artifact that is not there a PlanError.
        """
        for name, spec in self._specs.items():
            if lost := sorted(spec.requires - self._specs.keys()):
                message = f"'{name}' requires '{lost[0]}', which is no artifact"
                raise PlanError((Problem(message, code="P003"),))
        return waves_of({name: sorted(spec.requires) for name, spec in self._specs.items()})

    def to_dict(self) -> dict[str, Json]:
        """Artifacts and waves, as a saved plan holds them."""
        waves: list[Json] = [list(wave) for wave in self.execution_waves()]
        return {"artifacts": {s.id: s.to_dict() for s in self._specs.values()}, "waves": waves}

    @classmethod
    def from_dict(cls, data: Mapping[str, Json]) -> ArtifactGraph:
        """A graph from what `to_dict` gave, or from the `graph` of a saved plan; waves are derived."""
        listed = cast("Mapping[str, Mapping[str, Json]]", data.get("artifacts") or {})
        return cls(ArtifactSpec.from_dict({"id": name, **spec}) for name, spec in listed.items())

    @classmethod
    def of(cls, plan: Plan) -> ArtifactGraph:
        """The steps of a plan as artifacts, with what its origin says beside that."""
        document = sunwell_document(plan)
        graph = document.get("graph", document)
        listed = cast("Mapping[str, Json]", graph).get("artifacts")
        if isinstance(listed, Mapping):
            return cls.from_dict(cast("Mapping[str, Json]", graph))
        return cls(ArtifactSpec.from_dict(cast("Mapping[str, Json]", one)) for one in listed or ())  # type: ignore[union-attr]  # a list of specs
