"""People who are asked: each looks at what waits, thinks, and says yes or no; late, twice, two at once."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from holdfast.core.approvals import Approval, allowed_scopes
from holdfast.core.state import State
from holdfast.engine.decisions import Decisions, Given, Person, Wanted
from holdfast.errors import UsageError
from holdfast.model.digest import Digest
from holdfast.model.plan import StepId
from holdfast.ports import Store
from tests.laws.harness import LINE
from tests.laws.script import made
from tests.simulation.disk import Seat
from tests.simulation.machine import Process

if TYPE_CHECKING:
    from tests.simulation.play import Simulation

ENDS = 20_000  # ms for which some yeses are good


class Answering:
    """Everybody who may be asked on the line."""

    def __init__(self, sim: "Simulation") -> None:
        self._sim = sim
        self.refused: set[StepId] = set()  # steps of which somebody refused what they made

    def spawn(self, *, twice: bool) -> None:
        """Somebody comes and looks; with `twice`, two come at once."""
        for _ in range(2 if twice else 1):
            Process(self._sim.machine, "answer", self._main)

    def _main(self, process: Process) -> None:
        sim, source = self._sim, self._sim.machine.random
        seat = Seat(process, sim.disk, sim.watch, sim.dark)
        process.hesitates = sim.hesitation
        decisions = self._decisions(seat)
        for wanted in decisions.wanted():
            process.sleep(source.choice([0.01, 0.3, 4.0, 40.0]) * source.random())
            self._say(decisions, seat, wanted, yes=source.random() < 0.75)
        if source.random() < 0.1:
            self._take_back(decisions)

    def all_yes(self, seat: Store) -> int:
        """Somebody says yes to all that is asked now; how much that was."""
        decisions = self._decisions(seat)
        found = decisions.wanted()
        for wanted in found:
            self._say(decisions, seat, wanted, yes=True, calm=True)
        return len(found)

    def _decisions(self, seat: Store) -> Decisions:
        sim = self._sim

        def drives(state: State) -> bool:
            holders = seat.holders("", LINE)
            return any(h.run == state.run and not sim.is_gone(h.owner, "host") for h in holders)

        return Decisions(seat, "", LINE, sim.machine.wall, drives)

    def _say(
        self, decisions: Decisions, seat: Store, wanted: Wanted, *, yes: bool, calm: bool = False
    ) -> None:
        machine, request = self._sim.machine, wanted.approval.request
        given = self._given(decisions, seat, wanted, calm=calm) if yes else Given(because="no")
        try:
            decisions.decide(wanted, Person("me"), given, yes=yes)
        except UsageError:  # somebody was faster, or it is under way
            machine.fault("answered_late", "person", request.approval)
            return
        machine.fault(f"said_{'yes' if yes else 'no'}", "person", f"{request.gate} {wanted.step}")
        if not yes and request.gate == "guard":
            self.refused.add(wanted.step)

    def _given(self, decisions: Decisions, seat: Store, wanted: Wanted, *, calm: bool) -> Given:
        source, request = self._sim.machine.random, wanted.approval.request
        document = decisions.document(wanted.approval)
        if request.gate == "answer":
            return Given(content=seat.put(self._content(decisions, seat, wanted, document)))
        scope = source.choice(allowed_scopes(request.gate, str(document.get("approve", ""))))
        ends = not calm and source.random() < 0.15
        return Given(scope, until=self._sim.machine.wall() + ENDS if ends else 0)

    def _content(
        self, decisions: Decisions, seat: Store, wanted: Wanted, document: Mapping[str, object]
    ) -> bytes:
        """What the step makes, of the very contents that the question names."""
        needs = json.loads(json.dumps(document["needs"]))
        read = {StepId(need): seat.get(Digest(digest)) for need, digest in needs.items()}
        step = decisions.plan_of(wanted).steps[wanted.step]
        return made(step, read, 0, self._sim.nature.salts.get(wanted.step, 0))

    def _take_back(self, decisions: Decisions) -> None:
        now = self._sim.machine.wall()
        found: list[Approval] = [one for one in decisions.book if one.stand(now) == "approved"]
        for approval in found[:1]:
            try:
                decisions.revoke(approval, Person("me"), "")
            except UsageError:  # it was used meanwhile
                continue
            self._sim.machine.fault("took_back", "person", approval.id)
