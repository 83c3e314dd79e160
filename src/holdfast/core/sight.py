"""What a preview asks of the world: of a step's key, of the files on disk, of people's words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from holdfast.core.changes import Probe
from holdfast.core.refs import Upstream
from holdfast.errors import EditError
from holdfast.model.artifact import Artifact
from holdfast.model.digest import Digest
from holdfast.model.plan import Step, StepId


class Own(NamedTuple):
    """What is known of a step by itself: `made_before` says that one was accepted with these own parts.

    `lacks` is an input that it changed itself so that it is not there now: it stands, and cannot run.
    """

    probe: Probe
    made_before: bool
    lacks: EditError | None = None


class Disk(NamedTuple):
    """How the files on disk stand to an artifact: files a person changed, those to write and to remove.

    `lost` says why nobody can tell which files it meant: any that no other one meant may be a person's.
    `displaced` are changes that do not lie there any more, of a result that is not the step's newest.
    """

    edited: tuple[str, ...] = ()
    written: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    lost: str = ""
    displaced: tuple[str, ...] = ()


class Sight(Protocol):
    """What a preview asks of the world. Each may raise EditError: then a run could not go on there."""

    def follow(self, known: Mapping[StepId, Upstream]) -> None:
        """Mind what is known of steps; it grows as they are decided."""

    def look(self, step: Step, upstream: Mapping[StepId, Upstream]) -> Probe:
        """Probe a step whose data needs are all known."""

    def own(self, step: Step) -> Own:
        """Look only at the own parts of a step whose needs are not known yet."""

    def disk(self, step: Step, artifact: Artifact | None) -> Disk:
        """Compare the step's files with an artifact; without one, whatever a person wrote is an edit."""

    def due(self, artifact: Artifact) -> Disk:
        """What a run puts in place and removes again of changes made in a copy."""

    def anew(self, artifact: Artifact, above: Sequence[StepId]) -> tuple[StepId, ...]:
        """Which of these steps, if they are made again, may write where changes made in a copy begin."""

    def in_command(self, step: Step) -> Sequence[str]:
        """The files that the command of a step names."""

    def theirs(self, step: Step) -> tuple[str, ...]:
        """The files at its outputs that are stored as a person's version."""

    def absent(self, step: Step, artifact: Artifact) -> tuple[str, ...]:
        """The files that are put back beside a person's edit, so that it is adopted with all of them."""

    def held(self, step: Step) -> bool:
        """Whether a person must look before the step may be tried."""

    def given(self, step: Step) -> Artifact | None:
        """What a person gave in the place of an effect that nobody confirmed."""

    def asks(self, step: Step, probe: Probe | None, known: Mapping[StepId, Upstream]) -> str:
        """The code of what it waits for if people must be asked before an attempt; empty if not.

        Whoever was asked about this very situation before, and said yes, is not asked again.
        """

    def lacking(self, step: Step, known: Mapping[StepId, Upstream]) -> tuple[str, ...]:
        """The named outputs that it reads and that what it needs does not have."""

    def unmet(self, step: Step, known: Mapping[StepId, Upstream]) -> str:
        """Why the condition of a step whose references are settled does not hold; empty if it does."""

    def has_run_under(self, step: Step, ref: Digest) -> bool:
        """Whether any artifact was accepted under this config ref, be it reusable, withdrawn or not."""
