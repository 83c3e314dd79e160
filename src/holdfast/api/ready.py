"""A plan that is ready to be run, with what a program knows of it beside the plan."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from holdfast import wire
from holdfast.api.calling import Function
from holdfast.api.homes import is_loading, stop_import
from holdfast.errors import UsageError
from holdfast.model.plan import Plan, StepId, plan_digest


@dataclass(frozen=True, slots=True)
class Ready:
    """An immutable plan, its project, the functions of this process, and what its steps give."""

    plan: Plan
    root: str
    functions: Mapping[StepId, Function]
    types: Mapping[str, object]
    foreign: str = ""
    module: str = ""

    def location(self, store: str | None) -> str:
        """Where its store is."""
        return wire.store_location(self.root, store)

    def check(self, trust: str | None) -> None:
        """Refuse a run that nobody asked for: of a module that is only imported, or of a foreign file."""
        stop_import()
        if self.module and is_loading(self.module) and self.module != "__main__":
            file = os.path.basename(
                getattr(sys.modules[self.module], "__file__", "") or self.module
            )
            raise UsageError(
                f"'{file}' runs its plan while it is imported",
                hint='put that under: if __name__ == "__main__":',
            )
        if self.foreign and trust != (digest := plan_digest(self.plan)):
            raise UsageError(
                f"'{self.plan.name}' comes from a foreign file and nobody approved it",
                hint=f"trust={digest!r}",
            )
