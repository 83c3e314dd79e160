"""Rules of a person's own configuration that decide approvals in his place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from holdfast.model.digest import Json
from holdfast.model.fixed import fixed
from holdfast.model.line import ApprovalRequested, Scope

RULED = frozenset({"step", "edge", "budget", "guard"})  # what a person must do himself is no rule's


@fixed
class Rule:
    """Fits a question of which everything holds that it names; `line` and `step` may have `*` and `?`."""

    line: str = ""
    step: str = ""
    gate: str = ""
    effects: str = ""
    name: str = ""  # one of those that an approver may hold
    yes: bool = True
    scope: Scope | None = None
    because: str = ""

    def fits(self, line: str, request: ApprovalRequested, document: Mapping[str, Json]) -> bool:
        """Whether this rule decides a question of a line; `document` is what it covers."""
        if request.gate not in RULED:
            return False
        if self.line and not fnmatchcase(line, self.line):
            return False
        if self.step and not fnmatchcase(request.step, self.step):
            return False
        if self.name and self.name not in request.names:
            return False
        if self.effects and document.get("effects", "none") != self.effects:
            return False
        return not self.gate or request.gate == self.gate

    def json(self) -> dict[str, Json]:
        """The rule as it was given; what it does not name is left out."""
        named: dict[str, Json] = {
            "line": self.line,
            "step": self.step,
            "gate": self.gate,
            "effects": self.effects,
            "from": self.name,
            "scope": self.scope,
            "because": self.because,
        }
        decide: dict[str, Json] = {"decide": "approve" if self.yes else "reject"}
        return {**{key: value for key, value in named.items() if value}, **decide}


def ruling(
    rules: Sequence[Rule], line: str, request: ApprovalRequested, document: Mapping[str, Json]
) -> Rule | None:
    """The first rule that fits; None leaves it to people."""
    return next((rule for rule in rules if rule.fits(line, request, document)), None)
