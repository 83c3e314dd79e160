"""Who may decide: a person at a terminal, by name, and never what a step or an engine started."""

import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast import api
from holdfast.errors import UsageError
from holdfast.model.plan import Step, StepId
from holdfast.process.sandbox import probe
from tests.cli.project import COMMAND, Project
from tests.cli.terminal import Terminal

LIBRARY = str(Path(holdfast.__file__).parents[1])


def asking(project: Project, **more: Mapping[str, Any]) -> None:
    project.plan({"wanted": {"shell": project.sh(), "approve": "always"}, **more})


def stand(project: Project) -> list[str]:
    found = project.ok("approvals", "--all", "--json").json["approvals"]
    return [item["state"] for item in found]


# Each is a way in which what a step started might hide where it comes from.
CLEARED = f"env -i PATH=$PATH PYTHONPATH={LIBRARY} HOME=/"
WAYS = {
    "plainly": "{approve}",
    "without a mark": f"{CLEARED} {{approve}}",
    "in another session": f"{CLEARED} setsid -w {{approve}}",
    "without parents": f"{CLEARED} setsid sh -c '({{approve}}; echo $? > gone) & ' ; "
    "until [ -e gone ]; do sleep 0.05; done",
    "in a pid namespace": f"{CLEARED} unshare -pf --mount-proc {{approve}}",
    "in one with the old /proc": f"{CLEARED} unshare -pf {{approve}}",
    "without /proc": f"{CLEARED} unshare -pfm sh -c 'mount -t tmpfs none /proc; {{approve}}'",
}


@pytest.mark.req("R173", "I11")
@pytest.mark.parametrize("held", ["sandbox", "namespace", "nothing"])
def test_a_step_decides_nothing_wherever_its_processes_go(project: Project, held: str) -> None:
    if held != "nothing" and not probe().pid_namespace:
        pytest.skip("there is no bubblewrap here")
    approve = f"{' '.join(COMMAND)} -C {project.root} approve wanted --yes"
    trials = [
        f"echo '{name}'; {way.format(approve=approve)}" for name, way in WAYS.items() if _can(way)
    ]
    tries = project.write("tries.sh", "exec 2>&1\n" + "\n".join(trials) + "\nexit 0\n")
    asking(project, hostile={"run": ["sh", tries.name], "needs": []})
    env = {"PATH": str(_without_bubblewrap(project))} if held == "nothing" else {}
    run = project.run("-j", "2", *(["--no-sandbox"] if held == "namespace" else []), env=env)
    said = project.shown("hostile").decode()
    assert run.states == {"wanted": "waiting", "hostile": "done"}, said
    assert len(trials) > 3
    refusals = said.count("only a person decides") + said.count("cannot be seen from here")
    refusals += said.count("there is no run yet")  # the store is hidden from it
    refusals += said.count("Operation not permitted")  # the kernel makes it no further namespaces
    hidden = sum("gone" in trial for trial in trials)  # its words went nowhere
    assert refusals + hidden >= len(trials), said
    assert stand(project) == ["open"]
    assert project.begun() == []
    project.ok("approve", "wanted", "--yes")


def _can(way: str) -> bool:
    """Whether this machine lets a test make namespaces."""
    if "unshare" not in way:
        return True
    done = subprocess.run(["unshare", "-pfm", "true"], capture_output=True, check=False)
    return done.returncode == 0


def _without_bubblewrap(project: Project) -> Path:
    folder = project.folder / "bin"
    folder.mkdir()
    for name in ("sh", "env", "setsid", "sleep", "unshare", "mount", "echo", "setpriv"):
        found = shutil.which(name)
        if found:
            (folder / name).symlink_to(found)
    (folder / "python").symlink_to(sys.executable)
    return folder


@pytest.mark.req("R173")
def test_what_the_notify_command_starts_decides_nothing(project: Project) -> None:
    asking(project)
    approve = " ".join([*COMMAND, "-C", str(project.root), "approve", "wanted", "--yes"])
    said = project.folder / "said"
    folder = project.home / ".config/holdfast"
    folder.mkdir(parents=True)
    command = f"{approve} > {said} 2>&1"
    (folder / "config.toml").write_text(f'[notify]\ncommand = ["sh", "-c", "{command}"]\n')
    project.run()
    assert "only a person decides" in said.read_text()
    assert stand(project) == ["open"]


@pytest.mark.req("R173")
def test_a_function_of_the_engine_itself_decides_nothing(tmp_path: Path) -> None:
    location = str(tmp_path / "store")
    told: list[str] = []

    def hostile() -> str:
        try:
            api.approve(location, "wanted")
        except UsageError as error:
            told.append(error.message)
        return "done"

    plan = api.Plan("inline", str(tmp_path))
    plan.add(Step(StepId("wanted"), shell="true", approve="always"))
    plan.step("hostile", hostile, inline=True)
    result = api.run(plan, store=location)
    assert result.status == "waiting"
    assert told == ["this process comes from an engine, and only a person decides approvals"]


@pytest.mark.req("R173", "R92")
def test_programs_decide_by_the_same_rules(tmp_path: Path) -> None:
    location = str(tmp_path / "store")
    plan = api.Plan("programs", str(tmp_path))
    plan.add(Step(StepId("once"), shell="echo 1", approve="always"))
    plan.add(Step(StepId("never"), shell="echo 2", approve="always"))
    plan.add(Step(StepId("given"), uses="human"))
    result = api.run(plan, store=location)
    assert [item["approval"] is not None for item in result.json()["waiting"]] == [True] * 3  # type: ignore[index, call-overload, union-attr]
    asked = {item.step: item for item in api.approvals(location)}
    assert asked["once"].state == "open"
    assert asked["once"].covers["shell"] == "echo 1"
    with pytest.raises(UsageError, match="each time"):
        api.approve(location, "once", scope="content")
    with pytest.raises(UsageError, match="its content"):
        api.approve(location, "given")
    with pytest.raises(UsageError, match="needs a reason"):
        api.reject(location, "never", because="")
    (made,) = api.approve(location, asked["once"].id, seconds=3600)
    assert made.state == "approved"
    with pytest.raises(UsageError, match="approved already"):
        api.reject(location, asked["once"].id, because="too late")
    api.reject(location, "never", because="not here")
    api.answer(location, "given", "by hand")
    result = api.run(plan, store=location)
    assert result["once"].content == b"1\n"
    assert result["given"].content == b"by hand"
    states = {item.step: item.state for item in api.approvals(location, every=True)}
    assert states == {"once": "used", "never": "open", "given": "used"}


@pytest.mark.req("R173", "R110")
def test_at_a_terminal_the_run_asks_and_goes_on(project: Project) -> None:
    project.plan(
        {
            "first": {"shell": project.sh(), "approve": "always"},
            "second": {"shell": project.sh(), "needs": "first", "approve": "always"},
            "third": {"shell": project.sh(), "needs": "second"},
        }
    )
    terminal = Terminal(project, "run", columns=100)
    terminal.read(lambda text: "approve 'first'?" in text)
    terminal.press(b"y\n")
    terminal.read(lambda text: "approve 'second'?" in text)
    assert project.begun() == ["first"]
    terminal.press(b"r\n")
    terminal.read(lambda text: "because" in text.rpartition("approve 'second'?")[2])
    terminal.press(b"too early\n")
    screen = "\n".join(terminal.finish().text)
    assert terminal.process.returncode == 1
    assert "too early" in screen
    found = project.ok("approvals", "--all", "--json").json["approvals"]
    assert [(item["state"], item["decision"]["terminal"]) for item in found] == [
        ("used", True),
        ("rejected", True),
    ]
    terminal = Terminal(project, "resume", columns=100)
    terminal.read(lambda text: "approve 'second'?" in text)
    terminal.press(b"\n")
    terminal.finish()
    assert terminal.process.returncode == 3, "the default is to leave it as it is"
    terminal = Terminal(project, "approve", "second", columns=100)
    terminal.read(lambda text: "approve 'second'?" in text)
    terminal.press(b"\n")
    terminal.finish()
    assert terminal.process.returncode == 3
    assert project.begun() == ["first"]
    project.ok("verify")
