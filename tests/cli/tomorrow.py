"""Runs a project in this process as if it were tomorrow: no file is too young for the short way."""

from dataclasses import replace

from holdfast import wire
from holdfast.core.state import State
from holdfast.engine.runs import start_run
from holdfast.formats.planfile import load_plan
from holdfast.model.event import Options
from holdfast.model.walls import WALLS, Walls
from tests.cli.project import Project

PLAIN = Options()
TOMORROW = 24 * 3600 * 1000


def run_tomorrow(project: Project, walls: Walls = WALLS) -> tuple[State, bool]:
    """One run, the short way if that is certain; and whether it was."""
    plan = load_plan(str(project.root / "plan.yaml"), check=wire.guard_flaw).plan
    store = wire.open_store(str(project.store), create=True)
    try:
        wishes = wire.Wishes(sandbox=False)
        given = wire.world_for(plan, str(project.root), str(project.store), store, wishes)
        world = replace(given, clock=lambda: wire.now_ms() + TOMORROW, walls=walls)
        found = wire.repeat(world, plan, PLAIN)
        if found is not None:
            return found.state(), True
        return wire.drive(lambda: start_run(world, plan, plan.name, PLAIN), world=world), False
    finally:
        store.close()
