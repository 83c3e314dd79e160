"""Lines and runs: names, prefixes, keys, and two plans that share a store."""

import pytest

from tests.cli.project import Project, finish, finish_run, kill


@pytest.mark.req("E15", "R13", "E16")
def test_two_plans_with_a_step_of_the_same_name_do_not_disturb_each_other(
    project: Project,
) -> None:
    project.plan({"App": {"shell": project.sh("echo one")}}, file="one.yaml", name="one")
    project.plan({"App": {"shell": project.sh("echo two")}}, file="two.yaml", name="two")
    assert project.run("one.yaml").code == 0
    assert project.run("two.yaml").code == 0
    assert project.ran() == ["App", "App"]
    for name in ("one", "two"):
        again = project.run(f"{name}.yaml")
        assert again.codes == {"App": "unchanged"}
        assert project.ok("show", "App", "-f", f"{name}.yaml").out == f"{name}\n"
    assert project.ran() == []


@pytest.mark.req("R13", "E16")
def test_plan_id_names_the_line_everywhere(project: Project) -> None:
    project.plan({"s": {"shell": project.sh("test -e fixed")}})
    named = project.run("--plan-id", "mine")
    plain = project.run()
    assert named.data["plan"]["line"] == "mine"
    assert plain.data["plan"]["line"] == "demo"
    assert plain.codes == {"s": "command_failed"}, "the other line's history is not its own"
    assert project.status("--plan-id", "mine").id == named.id
    assert project.status().id == plain.id
    assert "no run yet" in project.refused(2, "status", "--plan-id", "nobody")
    project.write("fixed", "")
    resumed = project.resume("--plan-id", "mine")
    assert (resumed.id, resumed.data["status"]) == (named.id, "completed")
    assert project.status().data["status"] == "failed"
    assert project.run("--plan-id", "mine").codes == {"s": "unchanged"}
    assert project.why("s", "--plan-id", "mine")["decision"] == "reuse"
    assert project.why("s")["decision"] == "run"


def test_a_line_goes_by_the_file_that_its_last_run_began_with(project: Project) -> None:
    project.plan({"shop": {"shell": project.sh()}, "top": {"shell": project.sh("echo SHOP")}})
    project.plan({"top": {"shell": project.sh("echo OTHER")}}, file="other.yaml", name="other")
    first = project.run("other.yaml").id
    assert "next: holdfast show -f other.yaml top    holdfast plan other.yaml" in (
        project.ok("status", first).out
    ), "whatever line the command is about"
    project.retry("--plan-id", "other", "top")
    assert (project.ran(), project.ok("show", "-f", "other.yaml", "top").out) == (
        ["top", "top"],
        "OTHER\n",
    )
    assert "other · 1 step" in project.ok("plan", "--plan-id", "other").out
    project.run("plan.yaml", "--plan-id", "mine")
    mine = project.status("--plan-id", "mine").id
    assert "holdfast plan --plan-id mine" in project.ok("status", mine).out, "by the usual file"
    project.ran()
    (project.root / "other.yaml").unlink()
    assert "is not there any more" in project.refused(2, "run", "--plan-id", "other")
    said = project.ok("retry", "--plan-id", "other", "top")
    assert "it is taken as the last run has it" in said.err
    assert said.out.endswith("next: holdfast show --plan-id other top\n")
    assert project.ran() == ["top"]
    for command in (
        "plan",
        "run",
    ):  # the file of another line never takes the place of one that is gone
        assert "is not there any more" in project.refused(2, command, "--plan-id", "other")
    assert project.ran() == []


@pytest.mark.req("R12")
def test_runs_are_named_by_any_unique_prefix_or_counted_back(project: Project) -> None:
    project.plan({"s": {"shell": project.sh()}})
    first, second = project.run(), project.run()
    assert project.status("@").id == second.id
    assert project.status("@-1").id == first.id
    assert "only 2 runs" in project.refused(2, "status", "@-2")
    short = next(n for n in range(3, 40) if first.id[:n] != second.id[:n])
    assert project.status(first.id[:short]).id == first.id
    assert project.status(second.id[2:short]).id == second.id
    assert "fits 2 runs" in project.refused(2, "status", "r-")
    assert "no run" in project.refused(2, "status", "r-zzzz")
    digest = first.digests["s"]
    assert digest is not None
    assert project.shown(digest[:12]) == b"s\n"
    assert len(digest) == 64


@pytest.mark.req("R67")
def test_a_key_begins_one_run(project: Project) -> None:
    project.plan({"s": {"shell": project.sh("date +%N")}})
    first = project.run("--key", "ticket 7")
    again = project.run("--key", "ticket 7", "--force")
    assert again.data == first.data
    assert project.ran() == ["s"]
    other = project.run("--key", "ticket 8", "--force")
    assert other.id != first.id
    assert project.ran() == ["s"]


def test_a_key_goes_on_with_a_run_whose_engine_died(project: Project) -> None:
    project.plan(
        {
            "a": {"shell": project.sh("echo a")},
            "s": {"shell": project.sh(f"{project.gate('go')}; echo s"), "needs": ["a"]},
        }
    )
    engine = project.begun_by("run", "--key", "k", step="s")
    assert project.call("run", "--key", "k").code == 7
    kill(engine)
    project.open("go")
    project.ran()
    run = project.run("--key", "k")
    assert run.code == 0
    assert project.ran() == ["s"]
    assert len(project.database().execute("SELECT id FROM run").fetchall()) == 1


def test_a_store_elsewhere_and_a_project_from_afar(project: Project) -> None:
    project.plan({"s": {"shell": project.sh("pwd")}})
    elsewhere = project.folder / "elsewhere"
    answer = project.call(
        "-C", str(project.root), "run", "--json", "--store", str(elsewhere), cwd=project.folder
    )
    assert answer.code == 0
    assert not project.store.exists()
    by_name = project.call(
        "run",
        "project/plan.yaml",
        "--json",
        cwd=project.folder,
        env={"HOLDFAST_STORE": str(elsewhere)},
    )
    assert by_name.json["steps"]["s"]["state"] == "reused"
    assert project.ran() == ["s"]
    shown = project.call("show", "s", "--store", str(elsewhere))
    assert shown.out == f"{project.root}\n"


def test_lines_of_one_store_run_beside_each_other(project: Project) -> None:
    project.plan({"s": {"shell": project.sh(project.gate("go"))}}, file="one.yaml", name="one")
    project.plan({"t": {"shell": project.sh(project.gate("go"))}}, file="two.yaml", name="two")
    one = project.begun_by("run", "one.yaml", "--json", step="s")
    two = project.begun_by("run", "two.yaml", "--json", step="t")
    project.open("go")
    assert finish_run(one).code == 0
    assert finish(two).code == 0
