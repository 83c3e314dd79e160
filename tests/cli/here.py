"""Runs in this process, for tests that are not about running: each command costs its start."""

from holdfast import wire
from holdfast.core.state import State
from holdfast.engine.runs import start_run
from holdfast.formats.planfile import load_plan
from holdfast.model.event import Options
from tests.cli.project import Project

PLAIN = Options()


def run_here(project: Project, options: Options = PLAIN) -> State:
    """Run the plan of a project as the command would."""
    plan = load_plan(str(project.root / "plan.yaml")).plan
    store = wire.open_store(str(project.store), create=True)
    try:
        world = wire.world_for(
            plan, str(project.root), str(project.store), store, wire.Wishes(sandbox=False)
        )
        return wire.drive(lambda: start_run(world, plan, plan.name, options), world=world)
    finally:
        store.close()
