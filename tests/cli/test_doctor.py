"""doctor: what is wrong is named, with what mends it."""

from tests.cli.here import run_here
from tests.cli.project import Project, kill


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
