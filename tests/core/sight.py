"""A store that a preview looks at, as small as it can be."""

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.core.changes import Change, Probe
from holdfast.core.preview import Outlook, preview
from holdfast.core.refs import Refs, Upstream
from holdfast.core.sight import Disk, Own
from holdfast.core.waves import graph_of
from holdfast.errors import EditError
from holdfast.model.artifact import Artifact
from holdfast.model.digest import Digest
from holdfast.model.event import Options
from holdfast.model.plan import Plan, Step, StepId
from tests.core.builders import artifact, ref

NONE = Options()


class Memory:
    """What a store knows: steps that stand, and how the others changed."""

    def __init__(self, stands: str = "", changed: Mapping[str, str] | None = None) -> None:
        self.stands = set(stands)
        self.changed = dict(changed or {})
        self.edited: set[str] = set()
        self.versions: set[str] = set()  # what a person wrote, and that stood, lies at its outputs
        self.missing: set[str] = set()
        self.unconfirmed: set[str] = set()
        self.unmet_ones: set[str] = set()
        self.contested: set[str] = set()
        self.again: set[str] = set()  # changed back to what it was some time ago
        self.gifts: dict[str, Artifact] = {}  # what a person gave in the place of an effect
        self.people: dict[str, str] = {}  # step -> code of what it waits for
        self.lacks: dict[str, tuple[str, ...]] = {}
        self.unreadable: set[str] = set()  # nobody can look at these
        self.more: dict[str, dict[str, Any]] = {}  # step -> what else its probe says
        self.left: dict[str, tuple[str, ...]] = {}  # files that lie beside an edit no more
        self.lost: set[str] = set()  # nobody can tell which files it meant
        self.put: dict[str, Disk] = {}  # what is put in place of changes made in a copy
        self.named: tuple[str, ...] = ()  # the files that commands name

    def follow(self, known: Mapping[StepId, Upstream]) -> None:
        del known

    def look(self, step: Step, upstream: Mapping[StepId, Upstream]) -> Probe:
        needed = {need.step for need in step.needs if need.type == "data" and not need.optional}
        assert needed <= upstream.keys(), "probed although something above is open"
        kept = artifact(step.id) if step.id in self.stands else None
        found = kept if step.id not in self.changed else None
        self._readable(step)
        probe = Probe(
            step.id,
            self._refs(step),
            found=found,
            newest=kept,
            changes=self._changes(step),
            contested=("e-1",) if step.id in self.contested else (),
        )
        return probe._replace(**self.more.get(step.id, {}))

    def own(self, step: Step) -> Own:
        kept = artifact(step.id) if step.id in self.stands else None
        probe = Probe(step.id, self._refs(step), newest=kept, changes=self._changes(step))
        again = step.id in self.again or (kept is not None and step.id not in self.changed)
        self._readable(step)
        return Own(probe._replace(**self.more.get(step.id, {})), made_before=again)

    def _readable(self, step: Step) -> None:
        if step.id in self.unreadable:
            raise EditError("nobody can read it")

    def absent(self, step: Step, artifact: Artifact) -> tuple[str, ...]:
        return self.left.get(step.id, ())

    def disk(self, step: Step, artifact: Artifact | None) -> Disk:
        assert artifact is None or artifact.step == step.id
        return Disk(
            edited=("f",) if step.id in self.edited else (),
            written=("f",) if step.id in self.missing else (),
            lost="its list is gone" if step.id in self.lost else "",
        )

    def due(self, artifact: Artifact) -> Disk:
        return self.put.get(artifact.step, Disk())

    def anew(self, artifact: Artifact, above: Sequence[StepId]) -> tuple[StepId, ...]:
        return tuple(above)

    def in_command(self, step: Step) -> Sequence[str]:
        return self.named

    def theirs(self, step: Step) -> tuple[str, ...]:
        return ("f", "g") if step.id in self.versions else ()

    def held(self, step: Step) -> bool:
        return step.id in self.unconfirmed

    def given(self, step: Step) -> Artifact | None:
        return self.gifts.get(step.id)

    def asks(self, step: Step, probe: Probe | None, known: Mapping[StepId, Upstream]) -> str:
        return self.people.get(step.id, "")

    def lacking(self, step: Step, known: Mapping[StepId, Upstream]) -> tuple[str, ...]:
        return self.lacks.get(step.id, ())

    def unmet(self, step: Step, known: Mapping[StepId, Upstream]) -> str:
        return "no rain" if step.id in self.unmet_ones else ""

    def has_run_under(self, step: Step, ref: Digest) -> bool:
        assert ref == self._refs(step).config_ref
        return step.id in self.again

    def _refs(self, of: Step) -> Refs:
        return Refs(ref(f"c{of.id}"), ref(f"i{of.id}"), ref(f"o{of.id}"))

    def _changes(self, of: Step) -> tuple[Change, ...]:
        code = self.changed.get(of.id)
        if code is None or of.id not in self.stands:
            return ()
        part = "guards" if code == "guard_changed" else "with"
        return (Change(part, code, (), None, None),)

    def outlooks(self, of: Plan, options: Options = NONE, *, now: int = 0) -> dict[StepId, Outlook]:
        return preview(graph_of(of), options, self, now=now)

    def shown(self, of: Plan, options: Options = NONE) -> dict[str, tuple[str, str]]:
        found = self.outlooks(of, options)
        return {name: (item.decision, item.reason.code) for name, item in found.items()}
