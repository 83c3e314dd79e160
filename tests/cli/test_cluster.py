"""Steps on a Ray cluster: the same plan gives the same, and whoever dies, nothing is lost or done twice."""

import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.project import Project, alive, finish_run, kill, until
from tests.cluster import ENVIRONMENT, Cluster

# A process of its own, not a forked one: Ray looks at its environment when it is loaded.
FRESH = {"PYTHONNOUSERSITE": "1"}
HERE = {**FRESH, **ENVIRONMENT}


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def words_of(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()


def above(pid: int) -> Iterator[int]:
    while pid > 1:
        yield pid
        pid = parent(pid)


def at_work(project: Project, step: str) -> list[int]:
    """The processes of a step that stands at its gate."""
    gate = os.fsencode(project.gates / step)
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if gate in (place / "cmdline").read_bytes():
                found.append(int(place.name))
        except OSError:
            continue
    return found


def worker_of(project: Project, step: str) -> int:
    """The process of Ray that runs a step."""
    found = until(lambda: at_work(project, step), f"'{step}' works")
    return next(pid for pid in above(found[0]) if words_of(pid).startswith("ray::"))


def variety(project: Project) -> None:
    """Commands, functions, guards, several files, values, gathered items; one that stays here."""
    project.write("source.txt", "three\nlines\nhere\n")
    project.write("notes.txt", "notes\n")
    project.write("old.txt", "old\n")
    project.write("work/__init__.py", "")
    project.write(
        "work/count.py",
        "from work.words import NAME\n\n\ndef lines(text):\n    return {NAME: len(text.split())}\n",
    )
    project.write("work/words.py", 'NAME = "lines"\n')
    project.write("check.sh", '#!/bin/sh\ngrep -q lines "$HOLDFAST_ARTIFACT"\n', executable=True)
    project.plan(
        {
            "text": {"shell": "cat source.txt", "inputs": "source.txt"},
            "count": {
                "uses": "python",
                "run": "work.count:lines",
                "needs": ["text"],
                "schema": {"required": ["lines"]},
                "guards": [{"command": ["./check.sh"]}],
            },
            "each": {
                "for_each": ["a", "b"],
                "with": {"n": "${{ item }}"},
                "shell": "cat $HOLDFAST_WITH/n",
            },
            "files": {
                "shell": "mkdir out; cp -r $HOLDFAST_INPUTS/each out/; echo done > out/last",
                "needs": ["each"],
                "produces": "out",
                "resources": {"cpus": 1, "memory": "100MB", "spare": 1},
                "runs_on": "lab",
            },
            "mend": {
                "shell": "echo more >> notes.txt; echo new > fresh.txt; rm old.txt",
                "inputs": ["notes.txt", {"glob": "old.txt", "optional": True}],
                "effects": "workspace",
                "workspace": "scratch",
            },
            "here": {"shell": "pwd > /dev/null; echo here", "workspace": "shared"},
        }
    )


@pytest.mark.req("R177")
def test_the_same_plan_gives_the_same_on_a_cluster(
    project: Project, cluster: Cluster, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    twin = Project(other)
    variety(project)
    variety(twin)
    near, far = (
        twin.run("--yes", "--executor", "local"),
        project.run("--yes", *cluster.words, env=HERE),
    )
    assert (far.code, far.states) == (near.code, near.states)
    assert far.digests == near.digests
    assert far.refs == near.refs, "where a step runs is not a part of its key"
    assert (project.read("notes.txt"), project.read("fresh.txt")) == ("notes\nmore\n", "new\n")
    assert not project.has("old.txt")
    assert project.read("out/last") == "done\n"
    assert set(project.run("--yes").states.values()) == {"reused"}, "here too"


@pytest.mark.req("R177")
def test_a_worker_a_raylet_and_the_driver_die_and_nothing_is_lost_or_done_twice(
    project: Project, cluster: Cluster
) -> None:
    def held(step: str, **more: object) -> dict[str, object]:
        shell = project.sh(f"sleep 600 & {project.gate(step)}; kill $!; cat $HOLDFAST_INPUTS/first")
        return {"shell": shell, "needs": ["first"], **more}

    project.plan(
        {
            "first": {"shell": project.sh("echo $$")},
            "worker": held("worker"),
            "raylet": held("raylet", resources={"spare": 1}),
            "driver": held("driver"),
            "end": {
                "shell": project.sh("cat $HOLDFAST_INPUTS/*"),
                "needs": ["worker", "raylet", "driver"],
            },
        },
        limits={"resources": {"spare": 2}},
    )
    engine = project.start("run", "--json", *cluster.words, env=HERE)
    victims = {step: worker_of(project, step) for step in ("worker", "raylet", "driver")}
    assert project.ran() == ["driver", "first", "raylet", "worker"]

    orphans = at_work(project, "worker")
    os.kill(victims["worker"], signal.SIGKILL)
    until(lambda: not any(map(alive, orphans)), "what it started ends with it")
    until(lambda: project.begun().count("worker") == 2, "another attempt")
    project.open("worker")
    until(lambda: project.status().states["worker"] == "done", "not lost with the node as well")
    raylet = parent(victims["raylet"])
    assert raylet in cluster.raylets
    falls = 1 + (parent(victims["driver"]) == raylet)  # its step may be on the same node
    os.kill(raylet, signal.SIGKILL)  # its worker would live on
    until(lambda: project.begun().count("raylet") == 2, "another attempt on the other node")
    project.open("raylet")
    until(lambda: project.status().states["raylet"] == "done")
    until(lambda: project.begun().count("driver") == falls, "another attempt, if it fell too")

    left = project.status()
    kill(engine)
    until(lambda: not at_work(project, "driver"), "the processes of the step end with its driver")
    project.open("driver")
    resumed = project.resume("--address", cluster.address, env=HERE)
    assert (resumed.code, resumed.id) == (0, left.id)
    assert resumed.field("attempts") == {
        "first": 1,
        "worker": 2,
        "raylet": 2,
        "driver": 1 + falls,
        "end": 1,
    }
    assert project.ran() == [*["driver"] * falls, "end", "raylet", "worker"]
    assert project.shown("end") == project.shown("first") * 3
    assert project.call("verify").code == 0


def listening(root: int) -> set[str]:
    """The addresses on which a process and its descendants listen, as the kernel writes them."""
    sockets: set[str] = set()
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if root in above(int(place.name)):
                links = [os.readlink(link) for link in (place / "fd").iterdir()]
                sockets |= {link[8:-1] for link in links if link.startswith("socket:[")}
        except OSError:
            continue
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in sockets:
                found.add(fields[1].rpartition(":")[0])
    return found


@pytest.mark.req("R177")
def test_without_an_address_a_cluster_lives_as_long_as_the_run_on_this_machine_alone(
    project: Project,
) -> None:
    project.plan({"held": {"shell": project.sh(f"{project.gate('held')}; echo $RAY_AUTH_TOKEN")}})
    engine = project.start("run", "--json", "--executor", "ray", env=FRESH)
    worker = worker_of(project, "held")
    assert listening(engine.pid) == {"0100007F", "0000000000000000FFFF00000100007F"}
    project.open("held")
    ran = finish_run(engine)
    assert (ran.code, project.shown("held")) == (0, b"\n")
    until(lambda: not alive(worker), "the cluster ends with the run")


def test_an_address_that_cannot_be_used_is_refused(project: Project) -> None:
    project.plan({"a": {"shell": "echo a"}})
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    for address, words in (
        ("ray://head:10001", "'ray://head:10001' is not the address of a Ray cluster"),
        (f"127.0.0.1:{port}", f"nobody answers at '127.0.0.1:{port}'"),
    ):
        assert words in project.refused(2, "run", "--executor", "ray", "--address", address)
    assert "no run" in project.refused(2, "status")


def test_a_step_that_is_for_others_runs_here_if_told_so_in_a_directory_of_its_own(
    project: Project,
) -> None:
    project.plan({"a": {"shell": "pwd; echo a > a.txt", "runs_on": "lab"}})
    said = project.ok("run", "--executor", "local").err
    assert "'a' is for 'lab' and runs on this machine all the same" in said
    assert not project.has("a.txt")


def test_where_a_step_cannot_leave_check_says_so(project: Project) -> None:
    project.plan({"a": {"shell": "echo a", "workspace": "shared", "runs_on": "lab"}})
    said = project.ok("check")
    assert "'runs_on' of 'a' says nothing: the step stays on this machine" in said.out + said.err
