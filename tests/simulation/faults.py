"""What can go wrong, by name: each fault does one thing to the simulated machine at its moment."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from tests.simulation.play import LEASE, EngineProcess, Simulation
from tests.simulation.sweeping import sweep

if TYPE_CHECKING:
    from tests.simulation.story import Person

DAY = 24 * 3600 * 1000
Fault = Callable[[Simulation, "Person", EngineProcess], None]


def kill(sim: Simulation, _: "Person", engine: EngineProcess) -> None:
    """SIGKILL at this moment, wherever it waits."""
    sim.machine.fault("kill", engine.process.name)
    sim.machine.kill([engine.process], "at a moment")


def kill_at_point(sim: Simulation, _: "Person", engine: EngineProcess) -> None:
    """SIGKILL right before or after one of its next calls of the store; fires there."""
    engine.process.doomed_at = engine.process.points + sim.machine.random.randrange(1, 60)


def kill_before_commit(_: Simulation, __: "Person", engine: EngineProcess) -> None:
    """SIGKILL right before its next commit; fires there."""
    engine.seat.dies = "before"


def kill_after_commit(_: Simulation, __: "Person", engine: EngineProcess) -> None:
    """SIGKILL when its next commit is there, and before anybody was told; fires there."""
    engine.seat.dies = "after"


def power(_: Simulation, __: "Person", engine: EngineProcess) -> None:
    """Everything goes dark in the middle of its next commit; fires there."""
    engine.seat.cuts = True


def pause(sim: Simulation, _: "Person", engine: EngineProcess) -> None:
    """SIGSTOP for less than a lease."""
    seconds = sim.machine.random.uniform(1, LEASE / 2)
    sim.machine.fault("pause", engine.process.name, f"{seconds:.1f} s")
    engine.process.stop(seconds)
    sim.delay(engine, seconds)


def long_pause(sim: Simulation, person: "Person", engine: EngineProcess) -> None:
    """SIGSTOP for longer than a lease: others come, may take it for dead, and it comes back."""
    seconds = sim.machine.random.uniform(LEASE + 2, 4 * LEASE)
    sim.machine.fault("long_pause", engine.process.name, f"{seconds:.1f} s")
    if sim.machine.random.random() < 0.7:
        person.join()
    engine.process.stop(seconds)
    sim.delay(engine, seconds)


def clock_back(sim: Simulation, _: "Person", __: EngineProcess) -> None:
    """The time of day is set back."""
    sim.machine.offset -= sim.machine.random.choice([700, 60_000, DAY])
    sim.machine.fault("clock_back")


def clock_forward(sim: Simulation, _: "Person", __: EngineProcess) -> None:
    """The time of day is set forward."""
    sim.machine.offset += sim.machine.random.choice([700, 3_600_000, DAY])
    sim.machine.fault("clock_forward")


def commit_refused(_: Simulation, __: "Person", engine: EngineProcess) -> None:
    """The disk refuses its next commit, and nothing of it is there; fires there."""
    engine.seat.refuses = "refused"


def commit_doubtful(_: Simulation, __: "Person", engine: EngineProcess) -> None:
    """The disk says no to its next commit, although all of it is there; fires there."""
    engine.seat.refuses = "doubtful"


def commit_slow(sim: Simulation, _: "Person", engine: EngineProcess) -> None:
    """Its next change takes long, and the heartbeat behind it waits: sometimes longer than a lease."""
    seconds = sim.machine.random.choice([3.0, 12.0, LEASE * 1.6])
    if engine.writer is not None:
        sim.machine.fault("commit_slow", engine.process.name, f"{seconds:.1f} s")
        engine.writer.slow = seconds
        sim.delay(engine, seconds)


def beat_refused(_: Simulation, __: "Person", engine: EngineProcess) -> None:
    """The database is locked when it wants to say that it lives; fires there."""
    engine.seat.refuses_beat = True


def stop_asked(sim: Simulation, person: "Person", engine: EngineProcess) -> None:
    """A person asks the run to stop, through the journal of the line."""
    if engine.engine is not None:
        now = sim.machine.random.random() < 0.5
        person.ask_to_stop(engine.engine.state.run, now=now)


def signalled(sim: Simulation, _: "Person", engine: EngineProcess) -> None:
    """Ctrl-C, or SIGTERM."""
    now = sim.machine.random.random() < 0.5
    if engine.engine is not None and engine.process.loop is not None:
        sim.machine.fault("signalled", engine.process.name, "now" if now else "")
        engine.process.loop.post(lambda: engine.interrupt(now=now))


def amended_meanwhile(_: Simulation, person: "Person", __: EngineProcess) -> None:
    """A person amends a step while engines work."""
    person.amend_meanwhile()


def disk_write(_: Simulation, __: "Person", engine: EngineProcess) -> None:
    """The disk refuses a write under its next commit; fires there."""
    engine.seat.fails = "write"


def disk_full(_: Simulation, __: "Person", engine: EngineProcess) -> None:
    """The disk is full under its next commit; fires there."""
    engine.seat.fails = "full"


def disk_sync(_: Simulation, __: "Person", engine: EngineProcess) -> None:
    """The disk fails to sync its next commit, once; fires there."""
    engine.seat.fails = "sync"


def kill_before_answer(_: Simulation, __: "Person", engine: EngineProcess) -> None:
    """SIGKILL when a model answered, before that is stored; fires there."""
    engine.seat.dies = "before answer"


def kill_after_answer(_: Simulation, __: "Person", engine: EngineProcess) -> None:
    """SIGKILL when an answer is stored, before it is acted on; fires there."""
    engine.seat.dies = "after answer"


def swept_beside(sim: Simulation, _: "Person", __: EngineProcess) -> None:
    """A person removes what is old while engines work; fires when it is done."""
    sweep(sim, keep_runs=sim.machine.random.choice([0, 1, 2]))


DISK = (disk_write, disk_full, disk_sync)  # for those that have one
ASKING = (kill_before_answer, kill_after_answer)  # for those that ask models
FAULTS: dict[str, Fault] = {
    fault.__name__: fault
    for fault in (
        *(
            kill,
            kill_at_point,
            kill_before_commit,
            kill_after_commit,
            power,
            pause,
            long_pause,
            clock_back,
            clock_forward,
        ),
        *(
            commit_refused,
            commit_doubtful,
            commit_slow,
            beat_refused,
            stop_asked,
            signalled,
            amended_meanwhile,
            swept_beside,
        ),
    )
}
