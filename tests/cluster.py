"""A Ray cluster of three nodes on this machine, one for all test processes that want it.

Whoever comes first starts it, in a process of its own that ends it once nobody uses it any more. Two of the
nodes have a `spare` each and go by the name `lab`. Steps may write where the tests do.
"""

import fcntl
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

TOKEN = "0123456789abcdef" * 4
ENVIRONMENT = {
    "RAY_AUTH_MODE": "token",
    "RAY_AUTH_TOKEN": TOKEN,
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # listens on the loopback address
    "RAY_USAGE_STATS_ENABLED": "0",
}
SOON = {  # a dead node is known to be dead
    "health_check_initial_delay_ms": 1000,
    "health_check_period_ms": 1000,
    "health_check_failure_threshold": 4,
}
OBJECTS = 80 << 20
READY = 3


class Cluster(NamedTuple):
    """How to reach it, and the processes of those of its nodes that are no head."""

    address: str
    raylets: tuple[int, ...]

    @property
    def words(self) -> tuple[str, ...]:
        """What a command is told to use it."""
        return ("--executor", "ray", "--address", self.address)


@contextmanager
def shared(folder: Path) -> Iterator[Cluster]:
    """The cluster of a directory, for as long as this lasts."""
    told = folder / "ray.json"
    with open(folder / "ray.users", "a") as users:
        with open(folder / "ray.lock", "a") as gate:
            fcntl.flock(gate, fcntl.LOCK_EX)
            fcntl.flock(users, fcntl.LOCK_SH)
            if not told.exists():
                _begin(folder)
        data = json.loads(told.read_text())
        yield Cluster(data["address"], tuple(data["raylets"]))


def _begin(folder: Path) -> None:
    with (folder / "ray.err").open("wb") as errors:
        subprocess.run(
            [sys.executable, __file__, str(folder)],
            env={**os.environ, **ENVIRONMENT, "HOLDFAST_WRITABLE": str(folder)},
            stdin=subprocess.DEVNULL,
            stdout=errors,
            stderr=errors,
            start_new_session=True,
            check=False,
        )
    if not (folder / "ray.json").exists():
        raise RuntimeError((folder / "ray.err").read_text()[-2000:])


def _beside() -> None:
    """Go on in a process that nobody waits for; whoever started this one hears when it is ready."""
    ours, theirs = os.pipe()
    if os.fork():
        os.close(theirs)
        os.read(ours, 1)
        os._exit(0)
    os.close(ours)
    os.dup2(theirs, READY)
    os.close(theirs)


def _main(folder: Path) -> None:
    """Start the nodes, say so, and end them when the last user is gone."""
    _beside()
    place = tempfile.mkdtemp(prefix="ray-")  # its sockets need a short path
    os.environ["RAY_TMPDIR"] = place  # else it wants a directory that only other starts of Ray make
    os.mkdir(os.path.join(place, "ray"))
    from ray.cluster_utils import Cluster as Nodes

    common: dict[str, Any] = {
        "object_store_memory": OBJECTS,
        "include_dashboard": False,
        "temp_dir": place,
    }
    nodes = Nodes(
        initialize_head=True,
        head_node_args={**common, "num_cpus": 2, "_system_config": SOON},
    )
    offers = {"spare": 1, "runs_on:lab": 1}
    more = [nodes.add_node(**common, num_cpus=3, resources=offers) for _ in range(2)]
    raylets = [node.all_processes["raylet"][0].process.pid for node in more]
    partial = folder / "ray.json.part"
    partial.write_text(json.dumps({"address": nodes.address, "raylets": raylets}))
    partial.rename(folder / "ray.json")
    os.close(READY)
    with open(folder / "ray.users", "a") as users:
        fcntl.flock(users, fcntl.LOCK_EX)
        (folder / "ray.json").unlink()
    nodes.shutdown()  # type: ignore[no-untyped-call]  # of Ray
    shutil.rmtree(place, ignore_errors=True)


if __name__ == "__main__":
    _main(Path(sys.argv[1]))
