"""The same commands as steps here, on a worker of a queue, on a Ray cluster; and as bare calls of Ray.

`python -m bench.own.elsewhere WHERE COUNT FOLDER`: seconds for each, from the first attempt to the last
event, two at once. Start-up of the engine, of the worker and of the cluster is apart.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path

PLACES = ("here", "worker", "ray", "bare ray")
QUEUE = "far"
PROGRAM = str(Path(sys.executable).parent / "holdfast")


def plan_of(count: int, runs_on: str = "") -> str:
    """Commands without needs, and one that comes first: it waits for whoever is to do them."""
    more = f", runs_on: {runs_on}" if runs_on else ""
    lines = [f"  first: {{shell: echo first{more}}}"]
    lines += [f"  s{n}: {{shell: echo {n}, needs: [first]{more}}}" for n in range(count)]
    return "\n".join(["name: elsewhere", "project: bench", "steps:", *lines, ""])


def steps(where: str, count: int, folder: Path) -> float:
    """Seconds for each of so many steps."""
    plan = plan_of(count, QUEUE if where == "worker" else "")
    (folder / "plan.yaml").write_text(plan, encoding="utf-8")
    home = {**os.environ, "HOME": str(folder / "home"), "XDG_CONFIG_HOME": ""}
    words = ["run", "--yes", "-q", "-j", "2", "--no-sandbox"]
    words += ["--executor", "ray"] if where == "ray" else []
    worker = None
    if where == "worker":
        argv = [PROGRAM, "worker", "--queue", QUEUE, "-j", "2", "--no-sandbox"]
        quiet = subprocess.DEVNULL
        worker = subprocess.Popen(argv, cwd=folder, env=home, stdout=quiet, stderr=quiet)
    try:
        _call(folder, home, *words)
    finally:
        if worker is not None:
            worker.send_signal(signal.SIGTERM)
            worker.wait()
    return _seconds(_call(folder, home, "trace", "@", "--json"), count) / count


def _call(folder: Path, env: dict[str, str], *words: str) -> str:
    done = subprocess.run(
        [PROGRAM, *words], cwd=folder, env=env, check=False, capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)} ended with {done.returncode}: {done.stderr}")
    return done.stdout


def _seconds(trace: str, count: int) -> float:
    """From the end of the first step to the last event."""
    events = [json.loads(line) for line in trace.splitlines()]
    started = [event for event in events if event["event"] == "attempt_started"]
    assert len(started) == count + 1
    times = [datetime.fromisoformat(event["ts"]) for event in (started[1], events[-1])]
    return (times[1] - times[0]).total_seconds()


def bare_ray(count: int) -> float:
    """Seconds for each command as a plain call of Ray on two processors."""
    import ray  # noqa: PLC0415 - seconds, and the others do not want it

    def command(number: int) -> str:
        done = subprocess.run(
            ["/bin/sh", "-c", f"echo {number}"], check=True, capture_output=True, text=True
        )
        return done.stdout

    ray.init(num_cpus=2, include_dashboard=False, logging_level=logging.ERROR, log_to_driver=False)
    remote = ray.remote(command)
    ray.get([remote.remote(number) for number in range(4)])
    began = time.perf_counter()
    found = ray.get([remote.remote(number) for number in range(count)])
    took = time.perf_counter() - began
    ray.shutdown()
    assert found == [f"{number}\n" for number in range(count)]
    return took / count


def main() -> None:
    where, count, folder = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    took = bare_ray(count) if where == "bare ray" else steps(where, count, folder)
    print(json.dumps({"seconds": took}))


if __name__ == "__main__":
    main()
