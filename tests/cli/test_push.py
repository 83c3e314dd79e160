"""push and pull: what was accepted in one store is reused in the other, and nothing is taken for more."""

import hashlib
import json
import shutil
from typing import Any

import psycopg
import pytest

from holdfast.store.postgres import make_store
from tests.cli.here import run_here
from tests.cli.project import Project, finish, kill, until
from tests.cli.team import Machine
from tests.postgres import Server, new_schema

LARGE = "head -c 40000 /dev/zero | tr '\\0' x"
FOUND: dict[str, Any] = {
    "attempted": "looked",
    "observed": [{"finding": "it is blue"}],
    "changed": [],
    "not_done": [],
    "highest_impact_uncertainty": "",
    "next_agent_should_first": "",
}


def lay(project: Project, **more: dict[str, Any]) -> None:
    told = f"echo '{json.dumps(FOUND)}' > $HOLDFAST_HANDOFF"
    project.plan(
        {
            "a": {"shell": project.sh(f"{told}; echo one")},
            "b": {"shell": project.sh(LARGE), "needs": ["a"]},
            "c": {
                "shell": project.sh("cat $HOLDFAST_INPUTS/a > one.txt; echo 2 > two.txt"),
                "needs": ["a"],
                "produces": ["one.txt", "two.txt"],
            },
            **more,
        },
        project="shop",
    )


def beside(project: Project, name: str = "beside") -> Project:
    """The same plan in a project that has no store yet."""
    (project.folder / name).mkdir()
    other = Project(project.folder / name)
    other.granted, other.log = project.folder, project.log
    shutil.copy(project.root / "plan.yaml", other.root / "plan.yaml")
    return other


def sound(*projects: Project) -> None:
    for one in projects:
        assert one.ok("verify", "--json").json["problems"] == []
        assert one.ok("rebuild", "--json").json["changed"] is False


def pushed(project: Project, *words: str) -> Any:
    return project.ok("push", *words, "--json").json


@pytest.fixture
def url(postgres: Server) -> str:
    made = postgres.url(new_schema())
    make_store(made)
    return made


@pytest.mark.req("R153")
def test_another_machine_reuses_what_was_pushed(project: Project, url: str) -> None:
    lay(project)
    first, second = run_here(project), run_here(project)
    said = project.ok("push", url).out
    assert said.startswith("push 2 runs, ")
    assert f"pushed {first.run[:10]}: 3 artifacts to reuse" in said
    project.ran()
    there = Machine(project.folder / "there", url)
    there.granted, there.log = project.folder, project.log
    shutil.copy(project.root / "plan.yaml", there.root / "plan.yaml")
    assert there.run().data["totals"]["reused"] == 3
    assert project.ran() == []
    assert there.read("one.txt") == "one\n"
    again = pushed(project, url)
    assert (again["changed"], again["runs"]) == (False, [])
    assert again["there"] == [first.run, second.run]
    sound(project, there)
    own, *told = there.ok("history", "--json").json["runs"]
    assert own["brought"] is None
    assert [one["status"] for one in told] == ["completed", "completed"]
    assert told[0]["brought"]["from"].endswith(str(project.store))
    assert str(project.store) in there.why("a")["notes"]["brought"]
    assert "brought by" in there.ok("status", first.run).out


@pytest.mark.req("R153")
def test_what_was_pulled_into_an_empty_directory_is_reused(project: Project, url: str) -> None:
    lay(project)
    there = Machine(project.folder / "there", url)
    there.granted, there.log = project.folder, project.log
    shutil.copy(project.root / "plan.yaml", there.root / "plan.yaml")
    run = there.run()
    project.ran()
    assert project.ok("pull", url, "--json", "--dry-run").json["runs"][0]["artifacts"] == 3
    assert not project.store.exists()
    assert project.ok("pull", url, "--json").json["changed"] is True
    assert project.events(run.id) == there.events(run.id)
    assert "it is blue" in project.ok("ledger", "--run", run.id).out
    assert project.ok("show", run.id, "--json").json["status"] == "completed"
    assert project.run().data["totals"]["reused"] == 3
    assert "it is blue" in project.ok("ledger").out, "what came with an artifact comes again"
    assert project.ran() == []
    assert project.ok("pull", url).out == "1 run there already\nnothing changed\n"
    sound(project, there)


def test_stores_in_directories_and_in_databases_bring_to_each_other(
    project: Project, postgres: Server, url: str
) -> None:
    lay(project)
    run = run_here(project).run
    more = postgres.url(new_schema())
    make_store(more)
    last = beside(project)
    pushed(project, url)
    assert pushed(project, more, "--store", url)["changed"] is True
    assert last.ok("pull", more, "--json").json["runs"][0]["artifacts"] == 3
    assert last.events(run) == project.events(run)
    project.ran()
    assert last.run().data["totals"]["reused"] == 3
    assert project.ran() == []
    sound(last)


@pytest.mark.req("R153")
def test_a_push_killed_in_the_midst_is_finished_by_the_same_command(
    project: Project, url: str
) -> None:
    lay(project)
    first = run_here(project)
    project.ok("run", "--force")
    pushed(project, url, "--run", first.run)
    base, _, schema = url.partition("&schema=")
    with psycopg.connect(base, options=f"-csearch_path={schema}") as other:
        other.execute("LOCK TABLE artifact IN SHARE MODE")
        stuck = project.start("push", url)

        def waits() -> bool:
            with psycopg.connect(base) as watcher:
                query = (
                    "SELECT count(*) FROM pg_locks JOIN pg_class ON pg_class.oid = relation"
                    " JOIN pg_namespace n ON n.oid = relnamespace WHERE NOT granted AND nspname = %s"
                )
                return watcher.execute(query, (schema,)).fetchone() == (1,)

        until(waits, "it is in its transaction")
        kill(stuck)
    there = Machine(project.folder / "there", url)
    shutil.copy(project.root / "plan.yaml", there.root / "plan.yaml")
    assert len(there.ok("history", "--json").json["runs"]) == 1
    assert pushed(project, url)["changed"] is True
    assert len(there.ok("history", "--json").json["runs"]) == 2
    sound(there)


def test_two_who_push_the_same_at_once_are_both_right(project: Project, url: str) -> None:
    lay(project)
    for _ in range(4):
        project.ok("run", "--force")
    both = [project.start("push", url, "--json") for _ in range(2)]
    told = [finish(one) for one in both]
    assert [one.code for one in told] == [0, 0], told
    brought = [run["run"] for one in told for run in one.json["runs"] if run["brought"]]
    assert sorted(brought) == sorted(pushed(project, url)["there"])
    there = Machine(project.folder / "there", url)
    sound(there)


def test_a_role_with_few_rights_pushes(project: Project, postgres: Server) -> None:
    schema = new_schema()
    with psycopg.connect(postgres.url(), autocommit=True) as owner:
        owner.execute(f"CREATE ROLE pusher_{schema} LOGIN")
    make_store(postgres.url(schema), role=f"pusher_{schema}")
    lay(project)
    run_here(project)
    assert pushed(project, postgres.url(schema, user=f"pusher_{schema}"))["changed"] is True


def test_the_last_run_is_that_of_the_project(project: Project, url: str) -> None:
    lay(project)
    run = run_here(project).run
    pushed(project, url)
    other = beside(project)
    project.plan({"x": {"shell": "echo x"}}, project="bank")
    project.ok("run")
    pushed(project, url)
    answer = other.ok("pull", url, "--run", "@", "--json").json
    assert [one["run"] for one in answer["runs"]] == [run]


def test_what_has_not_ended_is_left_out_and_named(project: Project) -> None:
    lay(project, d={"shell": project.sh("exit 1"), "needs": ["a"]})
    run = project.run().id
    other = beside(project)
    said = project.ok("push", str(other.store)).out
    assert f"left out {run[:10]}: it has not ended (failed)" in said
    assert "nothing changed" in said
    lay(project)
    project.run()
    answer = pushed(project, str(other.store))
    assert [one["artifacts"] for one in answer["runs"]] == [3, 0], "it is superseded by now"
    sound(other)


def test_a_push_names_the_contests_that_stay_behind(project: Project) -> None:
    told = '{"attempted": "x", "observed": [{"finding": "dry", "source": "sky"}], "changed": [],'
    told += ' "not_done": [], "highest_impact_uncertainty": "", "next_agent_should_first": ""}'
    project.write("a.json", told)
    project.plan({"a": {"shell": "cat a.js* > $HOLDFAST_HANDOFF; echo 1"}})
    project.run()
    project.ok("ledger", "contest", "sky", "--because", "no")
    project.ok("ledger", "contest", "a", "--because", "no")
    project.ok("ledger", "contest", "a", "--take-back", "--because", "yes")
    other = str(beside(project).store)
    assert project.ok("push", other, "--dry-run", "--json").json["contests_left"] == ["sky"]
    stay = "contests stay behind, with the line on which they were said: sky"
    assert stay in project.ok("push", other).out


def test_a_run_with_another_history_is_refused_in_words(project: Project) -> None:
    lay(project)
    run = run_here(project).run
    other = beside(project)
    project.ok("push", str(other.store))
    changed = "UPDATE journal SET hash = zeroblob(32) WHERE name = ?"
    other.database().execute(changed, (f"run:{run}",))
    said = project.refused(2, "push", str(other.store))
    assert f"run '{run}' is there already, with another history" in said


def test_a_shared_store_takes_nothing_without_a_project(project: Project, url: str) -> None:
    project.plan({"a": {"shell": project.sh()}})
    run_here(project)
    said = project.refused(2, "push", url)
    assert "belong to no project" in said
    assert "project: NAME" in said
    other = beside(project)
    assert pushed(project, str(other.store))["changed"] is True


def test_addresses_that_cannot_be_meant_are_refused(project: Project) -> None:
    lay(project)
    run_here(project)
    said = project.refused(2, "push", "postgresql://me:pass-word-1@127.0.0.1:1/x")
    assert "never given on the command line" in said
    assert "itself" in project.refused(2, "push", ".holdfast")
    assert "did you mean" in beside(project).refused(2, "pull", str(project.root))
    assert "no store in" in project.refused(2, "pull", "nowhere")
    assert "different runs" in project.refused(2, "push", "../x", "--all", "--run", "@")


def test_one_run_takes_along_those_that_made_what_it_reused(project: Project) -> None:
    lay(project)
    first = run_here(project).run
    lay(project, d={"shell": project.sh("echo d")})
    second = run_here(project).run
    lay(project, e={"shell": project.sh("echo e")})
    run_here(project)
    lay(project, d={"shell": project.sh("echo d")})
    other = beside(project)
    answer = pushed(project, str(other.store), "--run", second)
    assert [one["run"] for one in answer["runs"]] == [first, second]
    project.ran()
    assert other.run().data["totals"]["reused"] == 4
    assert project.ran() == []


def test_all_lines_of_the_project_go_together_and_no_others(project: Project) -> None:
    lay(project)
    run_here(project)
    project.ok("run", "--plan-id", "side")
    project.plan({"x": {"shell": "echo x"}}, file="foreign.yaml", project="bank")
    project.ok("run", "foreign.yaml")
    other = beside(project)
    assert [one["line"] for one in pushed(project, str(other.store))["runs"]] == ["demo"]
    assert [one["line"] for one in pushed(project, str(other.store), "--all")["runs"]] == ["side"]
    sound(other)


def test_what_stands_there_is_not_displaced_by_what_comes(project: Project) -> None:
    lay(project)
    run_here(project)
    other = beside(project)
    run_here(other)
    other.ok("amend", "a", "-", stdin=b"mine\n")
    answer = pushed(project, str(other.store))
    assert [(one["artifacts"], one["barred"]) for one in answer["runs"]] == [(0, 3)]
    run_here(other)
    assert other.shown("a") == b"mine\n"
    sound(other)


def test_a_later_run_of_the_same_store_stands_for_its_earlier_one(project: Project) -> None:
    project.plan({"a": {"shell": project.sh(f"wc -l < {project.log}")}}, project="shop")
    run_here(project)
    other = beside(project)
    pushed(project, str(other.store))
    project.ok("run", "--force")
    assert pushed(project, str(other.store))["runs"][0]["barred"] == 0
    other.ok("run")
    assert other.shown("a") == project.shown("a") == b"2\n"
    sound(other)


def test_a_version_of_a_person_stands_after_what_was_pulled(project: Project) -> None:
    lay(project)
    run_here(project)
    other = beside(project)
    other.ok("pull", str(project.store))
    other.ok("amend", "a", "-", stdin=b"mine\n")
    sound(other)
    other.ok("run")
    assert other.shown("a") == b"mine\n"
    sound(other)


def test_what_was_undone_or_contested_comes_as_history(project: Project) -> None:
    lay(project)
    run_here(project)
    project.ok("undo", "c")
    project.ok("ledger", "contest", "a", "--because", "it is not")
    other = beside(project)
    answer = pushed(project, str(other.store))
    assert [(one["artifacts"], one["barred"]) for one in answer["runs"]] == [(1, 2)]
    project.ran()
    other.ok("run")
    assert project.ran() == ["a", "c"]
    sound(other)


def test_what_was_purged_on_either_side_does_not_travel(project: Project) -> None:
    lay(project)
    run_here(project)
    other = beside(project)
    run_here(other)
    large, small = (hashlib.sha256(one).hexdigest() for one in (b"x" * 40000, b"2\n"))
    other.ok("purge", large, "--because", "x", "--yes")
    project.ok("purge", small, "--because", "x", "--yes")
    pushed(project, str(other.store))
    assert other.call("show", large).code != 0
    third = beside(project, "third")
    third.ok("pull", str(project.store))
    assert third.call("show", small).code != 0
    project.ran()
    third.ok("run")
    assert project.ran() == ["c"]
    sound(other, third)


def test_a_reuse_by_content_counts_under_its_new_ref(project: Project) -> None:
    def steps(word: str) -> dict[str, Any]:
        made = f"echo {word} > /dev/null; echo same"
        return {
            "a": {"shell": project.sh(made)},
            "b": {"shell": project.sh("cat $HOLDFAST_INPUTS/a"), "needs": ["a"]},
        }

    project.plan(steps("one"), project="shop")
    project.ok("run")
    project.plan(steps("two"), project="shop")
    assert project.run("--cutoff").codes["b"] == "unchanged_content"
    other = beside(project)
    pushed(project, str(other.store))
    project.ran()
    assert other.run().data["totals"]["reused"] == 2
    assert project.ran() == []
    sound(other)


@pytest.mark.req("R153")
def test_approvals_come_with_their_run_and_answer_nothing_here(project: Project) -> None:
    asks = {"shell": project.sh("echo x"), "approve": "on_change"}
    project.plan({"a": {**asks, "guards": ["human"]}}, project="shop")
    assert project.run().code == 3
    for _ in range(2):
        (asked,) = project.ok("approvals", "--json").json["approvals"]
        project.ok("approve", asked["approval"], "--yes", "--scope", "content")
        project.resume()
    assert project.status().data["status"] == "completed"
    third = beside(project, "third")
    third.ok("pull", str(project.store))
    assert third.run().states == {"a": "reused"}
    sound(third)
    project.ok("undo", "a")
    other = beside(project)
    project.ran()
    assert other.run().code == 3
    pushed(project, str(other.store))
    assert other.resume().code == 3, "the same question, and nobody answered it here"
    assert project.ran() == []
    sound(other)
    run = project.status().id
    line = "line:shop/demo"
    told = [json.loads(row[0]) for row in _bodies(third, line, "run_imported")]
    assert [one["run"] for one in told] == [run]
    assert len(told[0]["vouched"]) == 2


def _bodies(project: Project, journal: str, kind: str) -> list[Any]:
    query = (
        "SELECT body FROM event JOIN journal ON place / (1 << 40) = journal.id"
        " WHERE name = ? AND kind = ?"
    )
    return list(project.database().execute(query, (journal, kind)))


def test_secrets_do_not_travel(project: Project) -> None:
    secret = "canary-31415926"
    steps = {"a": {"shell": project.sh("echo $KEY"), "secrets": ["KEY"]}}
    steps["b"] = {"shell": project.sh("echo $KEY >&2; echo b"), "secrets": ["KEY"]}
    project.plan(steps, project="shop")
    assert project.call("run", "--secret", "KEY", "--yes", env={"KEY": secret}).code == 1
    project.plan({"b": steps["b"], "c": {"shell": "cat c.txt"}}, project="shop")
    project.write("c.txt", f"{secret}\n")
    other = beside(project)
    assert project.call("run", "--secret", "KEY", env={"KEY": "another-one"}).code == 0
    said = project.refused(2, "push", str(other.store), env={"KEY": secret})
    assert "holds the value of a secret" in said
    assert secret not in said
    assert len(other.ok("history", "--json").json["runs"]) == 1, "the one before it"
    for path in other.store.rglob("*"):
        assert not path.is_file() or secret.encode() not in path.read_bytes(), path


def test_what_was_cleared_away_there_is_not_brought_again(project: Project) -> None:
    lay(project)
    run_here(project)
    project.ok("run", "--force")
    other = beside(project)
    pushed(project, str(other.store))
    run_here(other)
    other.ok("gc", "--keep", "0s", "--yes")
    answer = pushed(project, str(other.store))
    assert (answer["changed"], answer["left_out"][0]["why"]) == (False, "was cleared away there")
    sound(other)


def test_history_of_a_stranger_is_not_pushed(project: Project) -> None:
    lay(project)
    run_here(project)
    project.ok("export", "@", "../run.zip")
    other, third = beside(project), beside(project, "third")
    other.ok("import", str(project.folder / "run.zip"))
    answer = pushed(other, str(third.store))
    assert answer["changed"] is False
    assert "imported as history" in answer["left_out"][0]["why"]


# --- effects outside ---------------------------------------------------------------------------------


def pays(project: Project, shell: str = "echo paid", **more: object) -> None:
    pay = {"shell": project.sh(shell), "effects": "external", **more}
    project.plan({"pay": pay}, project="shop")


DIES = "kill -9 $$"


def with_open_effect(project: Project) -> str:
    """A run that ended with an effect that nobody confirmed, and one that waits because of it."""
    pays(project, DIES)
    first = project.run("--yes")
    assert first.codes == {"pay": "effect_unconfirmed"}
    assert project.run("--yes").codes == {"pay": "effect_unconfirmed"}
    assert project.ran() == ["pay"]
    return first.id


def with_purged_receipt(project: Project) -> None:
    pays(project)
    project.ok("run", "--yes")
    receipt = hashlib.sha256(b"paid\n").hexdigest()
    project.ok("purge", receipt, "--because", "a name", "--yes")
    assert project.ran() == ["pay"]


def with_contested_receipt(project: Project) -> None:
    found = {**FOUND, "observed": [{"finding": "paid", "source": "bank"}]}
    pays(project, f"echo '{json.dumps(found)}' > $HOLDFAST_HANDOFF; echo paid")
    project.ok("run", "--yes")
    project.ok("ledger", "contest", "bank", "--because", "no")
    assert project.ran() == ["pay"]


def with_a_hole(project: Project) -> None:
    """A step that was done when a part of its key could not be found out."""
    pays(project, tool_versions={"t": ["false"]})
    project.ok("run", "--yes")
    assert project.ran() == ["pay"]


def waits_for(project: Project, code: str) -> None:
    """It is foreseen and true that nothing is done before a person has looked."""
    seen = project.ok("plan", "--json").json["steps"]["pay"]
    assert (seen["decision"], seen["reason"]["code"]) == ("wait", code)
    project.ran()
    run = project.run("--yes")
    assert (run.code, run.codes) == (3, {"pay": code}), run.err
    assert project.ran() == [], "nobody asked for it"


@pytest.mark.req("I17")
@pytest.mark.parametrize("made", [with_contested_receipt, with_a_hole])
def test_an_effect_whose_receipt_is_in_doubt_there_is_not_done_here_unasked(
    project: Project, made: Any
) -> None:
    made(project)
    other = beside(project)
    pushed(project, str(other.store))
    seen = other.ok("plan", "--json").json["steps"]["pay"]
    assert seen["decision"] == "wait", seen
    run = other.run("--yes")
    assert (run.code, run.states, project.ran()) == (3, {"pay": "waiting"}, [])
    assert other.retry("pay", "--yes").states == {"pay": "done"}
    other.ok("verify", "--all")


@pytest.mark.req("I17")
def test_an_effect_that_is_open_there_is_not_done_here_unasked(project: Project) -> None:
    run = with_open_effect(project)
    other, third = beside(project), beside(project, "third")
    assert pushed(project, str(other.store))["runs"][0]["run"] == run
    waits_for(other, "effect_unconfirmed")
    waits_for(other, "effect_unconfirmed")
    third.ok("pull", str(other.store))
    waits_for(third, "effect_unconfirmed")
    pays(other, "echo paid")
    waits_for(other, "effect_unconfirmed")
    other.ok("retry", "pay", "--yes")
    assert project.ran() == ["pay"]
    pays(other, "echo paid twice")
    assert other.run("--yes").states == {"pay": "done"}, "who looked once is not asked again"
    sound(other, third)


@pytest.mark.req("I17")
def test_a_receipt_that_is_gone_there_is_no_reason_to_do_it_here(project: Project) -> None:
    with_purged_receipt(project)
    other, third = beside(project), beside(project, "third")
    pushed(project, str(other.store))
    waits_for(other, "receipt_gone")
    waits_for(other, "receipt_gone")
    third.ok("pull", str(other.store))
    waits_for(third, "receipt_gone")
    other.ok("gc", "--keep-runs", "1", "--yes")
    waits_for(other, "receipt_gone")
    other.ok("retry", "pay", "--yes")
    assert project.ran() == ["pay"]
    assert other.run("--yes").states == {"pay": "reused"}
    pays(other, "echo paid more")
    assert other.run("--yes").states == {"pay": "done"}, "another effect"
    sound(other, third)


@pytest.mark.parametrize("made", [with_open_effect, with_purged_receipt])
def test_a_result_that_a_person_gives_settles_what_is_open_there(
    project: Project, made: Any
) -> None:
    made(project)
    other = beside(project)
    pushed(project, str(other.store))
    assert other.run("--yes").code == 3
    other.ok("amend", "pay", "-", stdin=b"paid, they say\n")
    assert other.run("--yes").states == {"pay": "reused"}
    assert other.run("--yes").states == {"pay": "reused"}
    assert project.ran() == []
    pays(other, "echo paid twice")
    assert other.run("--yes").states == {"pay": "done"}, "who looked once is not asked again"
    sound(other)


@pytest.mark.parametrize("made", [with_open_effect, with_purged_receipt])
def test_whoever_names_the_step_repeats_what_is_open_there(project: Project, made: Any) -> None:
    made(project)
    other = beside(project)
    pushed(project, str(other.store))
    pays(other)
    assert other.run("--yes", "--force-node", "pay").states == {"pay": "done"}
    assert other.run("--yes").states == {"pay": "reused"}
    assert project.ran() == ["pay"]


def test_an_effect_that_arrives_while_a_run_waits_holds_it_and_is_answered_once(
    project: Project,
) -> None:
    with_open_effect(project)
    other = beside(project)
    ask = {"shell": project.sh("echo asked"), "approve": "on_change"}
    pay = {"shell": project.sh("echo paid"), "effects": "external", "needs": ["ask"]}
    other.plan({"ask": ask, "pay": pay}, project="shop")
    assert other.run("--yes").code == 3
    pushed(project, str(other.store))
    other.ok("approve", "ask", "--yes")
    assert other.resume("--yes").codes["pay"] == "effect_unconfirmed"
    assert project.ran() == ["ask"]
    other.ok("retry", "pay", "--yes")
    assert project.ran() == ["pay"]
    other.plan({"ask": ask, "pay": {**pay, "shell": project.sh("echo more")}}, project="shop")
    last = other.run("--yes")
    assert last.states["pay"] == "done", last.codes
    sound(other)


def test_a_receipt_that_was_made_again_counts_whatever_was_purged_before(project: Project) -> None:
    with_purged_receipt(project)
    assert project.run("--yes").code == 3
    project.ok("retry", "pay", "--yes")
    other = beside(project)
    pushed(project, str(other.store))
    project.ran()
    assert other.run("--yes").states == {"pay": "reused"}
    assert project.ran() == []


def test_equal_bytes_under_another_key_are_no_receipt_there_either(project: Project) -> None:
    with_purged_receipt(project)
    pays(project, "echo other > /dev/null; echo paid")
    project.ok("run", "--yes")
    other = beside(project)
    pays(other)
    pushed(project, str(other.store))
    project.ran()
    waits_for(other, "receipt_gone")


def test_what_a_stranger_did_has_no_say(project: Project) -> None:
    with_purged_receipt(project)
    project.ok("export", "@", "run.zip")
    other = beside(project)
    other.ok("import", str(project.root / "run.zip"))
    assert other.run("--yes").states == {"pay": "done"}


def test_a_push_names_the_effects_that_stay_behind(project: Project) -> None:
    pays(project, DIES)
    run = project.run("--yes").id
    said = project.ok("push", str(beside(project).store)).out
    assert f"left out {run[:10]}: it has not ended (waiting), with an open effect: pay" in said
