"""doctor: what is wrong is named, with what mends it."""

from typing import Any

import pytest

from tests.cli.here import run_here
from tests.cli.project import Project, finish, kill


def grades(project: Project, code: int = 0) -> dict[str, tuple[str, str]]:
    answer = project.call("doctor", "--json")
    assert answer.code == code, answer.err
    return {c["name"]: (c["grade"], c["fix"] or "") for c in answer.json["checks"]}


def test_a_sound_project_needs_nothing(project: Project) -> None:
    project.plan({"a": {"shell": project.sh()}})
    before = grades(project)
    assert before["store"][0] == "ok"
    assert not project.store.exists()
    run_here(project)
    found = grades(project)
    assert "fix" not in {grade for grade, _ in found.values()}
    assert {"python", "sqlite", "disk", "sandbox", "git", "encoding", "engines"} <= {*found}
    assert found["engines"][0] == found["leftovers"][0] == found["plan"][0] == "ok"


@pytest.mark.req("I16")
def test_what_is_measured_is_told_to_programs(project: Project) -> None:
    project.plan({"a": {"shell": project.sh(project.gate("go"))}})
    engine = project.begun_by("run", step="a")
    facts = told(project)
    assert facts["sqlite"]["version"].count(".") == 2
    assert facts["git"]["version"].split(".")[0].isdigit()
    assert facts["file system"]["kind"]
    assert abs(facts["clock skew"]["skew_ms"]) < 60_000
    assert facts["leases"] == {"lines": 1, "steps": 0, "left": 0, "errands": 0}
    assert 0 < facts["log"]["bytes"] <= 64 << 20
    project.open("go")
    finish(engine)
    assert told(project)["leases"]["lines"] == 0


def test_that_contents_were_not_read_is_said_with_who_reads_them(project: Project) -> None:
    project.plan({"a": {"shell": "head -c 50000 /dev/zero"}})
    run_here(project)
    for blob in project.store.glob("blobs/??/*"):
        blob.unlink()
    assert project.call("verify").code == 9
    store = next(x for x in project.ok("doctor").out.splitlines() if " store: " in x)
    assert store.endswith("of contents, not read here: 'holdfast verify' reads them")


@pytest.mark.req("D07")
@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("UPDATE artifact SET maker = 99", "names no row of 'maker'"),
        ("DELETE FROM run", "its line names it, and it is not there"),
    ],
)
def test_a_table_that_forgot_what_was_done_must_be_mended(
    project: Project, statement: str, told: str
) -> None:
    project.plan({"a": {"shell": "true"}})
    run_here(project)
    assert grades(project)["tables"] == ("ok", "")
    with project.database() as database:
        database.execute("PRAGMA foreign_keys = 0")
        database.execute(statement)
    answer = project.call("doctor", "--json")
    found = {check["name"]: check for check in answer.json["checks"]}["tables"]
    assert answer.code == 1
    assert found["grade"] == "fix"
    assert told in found["words"]
    assert found["fix"].startswith("holdfast repair")


def test_a_claim_of_an_engine_that_is_gone_is_told(project: Project) -> None:
    project.plan({"a": {"shell": "true"}})
    run_here(project)
    with project.database() as database:
        database.execute(
            "INSERT INTO claim(line, step, config_ref, engine) SELECT id, 'a', X'00', 'e' FROM line"
        )
    assert told(project)["leases"]["left"] == 1
    assert grades(project)["leases"] == ("warn", "holdfast resume")


def told(project: Project) -> dict[str, Any]:
    return {c["name"]: c.get("facts", {}) for c in project.ok("doctor", "--json").json["checks"]}


def test_a_bad_plan_and_a_newer_store_must_be_fixed(project: Project) -> None:
    project.plan({"a": {"shell": project.sh()}})
    run_here(project)
    project.plan({"a": {"shel": "x"}})
    with project.database() as database:
        database.execute("PRAGMA user_version = 99")
    found = grades(project, code=1)
    assert found["plan"] == ("fix", "holdfast check plan.yaml")
    assert found["store"] == ("fix", "upgrade holdfast")


def test_an_engine_that_died_is_told(project: Project) -> None:
    project.plan({"a": {"shell": project.sh(project.gate("never"))}})
    kill(project.begun_by("run", step="a"))
    assert grades(project)["engines"] == ("warn", "holdfast resume")
    assert "died without leaving" in project.ok("doctor").out


def test_unfit_places_are_told(project: Project) -> None:
    project.plan({"a": {"shell": project.sh()}})
    answer = project.call("doctor", "--json", "--store", "plan.yaml")
    assert answer.code == 1
    found = {c["name"]: c["grade"] for c in answer.json["checks"]}
    assert found["store directory"] == "fix"


WRONG = {
    "sandbox": "[sandbox]\nnetwork = true\n",
    "people": "[people]\nlegal = 'ann'\n",
    "approvals": "[[approvals]]\nstep = 'a'\n",
    "providers": "[providers.x]\nkind = 'openai'\n",
    "agents": "agents = 'agents.yaml'\n",
    "resources.gpu": "[resources]\ngpu = 0\n",
    "parallell": "parallell = 3\n",
    "edits.protected": "[edits]\nprotected = 5\n",
    "templates": "templates = '../elsewhere'\n",
    "budgets.run": "[budgets]\nrun = 'much'\n",
    "limits.log": "[limits]\nlog = 0\n",
}


@pytest.mark.parametrize("key", WRONG)
def test_every_command_that_reads_a_plan_judges_the_whole_project_file(
    project: Project, key: str
) -> None:
    project.plan({"a": {"shell": "true"}})
    project.write("holdfast.toml", WRONG[key])
    words = told_first(project.refused(2, "run"))
    assert f"'{key}'" in words
    assert "holdfast.toml" in words
    assert {told_first(project.refused(2, command)) for command in ("check", "plan")} == {words}
    assert not project.store.exists()
    found = project.call("doctor", "--json")
    assert found.code == 1
    assert [c["words"] for c in found.json["checks"] if c["grade"] == "fix"] == [
        words.partition(": ")[2]
    ]
    assert "1 to fix" in project.call("doctor").out


OWN = {
    "people": "people = 5\n",
    "approvals": "approvals = 5\n",
    "planner.rounds": "[planner]\nrounds = 0\n",
    "agents": "agents = 5\n",
    "prices.x": "[prices]\nx = 5\n",
    "sandbox.network": "[sandbox]\nnetwork = 5\n",
}


@pytest.mark.parametrize("key", OWN)
def test_so_they_do_with_ones_own_file(project: Project, key: str) -> None:
    project.plan({"a": {"shell": "true"}})
    own = project.home / ".config/holdfast/config.toml"
    own.parent.mkdir(parents=True)
    own.write_text(OWN[key])
    for command in ("check", "plan", "run"):
        assert f"'{key}' in '{own}'" in project.refused(2, command)
    assert grades(project, code=1)["settings"][0] == "fix"


def test_settings_do_not_keep_anybody_from_looking(project: Project) -> None:
    project.plan({"a": {"shell": "true"}})
    run_here(project)
    project.write("holdfast.toml", WRONG["sandbox"])
    for command in ("status", "history", "logs a"):
        project.ok(*command.split())


def told_first(said: str) -> str:
    return said.partition("\n")[0]
