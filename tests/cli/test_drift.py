"""Output files that are not what the store says: edited, deleted, older, no longer executable.

What lies at an output path, what happens, and where a person's bytes are afterwards:

    as wanted                             nothing
    absent                                restored from the store
    an older one, or one refused when made   the wanted version is written; nobody's artifact is made
    another mode                          the mode is restored
    a person's, all else unchanged        adopt: guarded, stands      | a human artifact
                                          adopt, refused by a guard   | on disk, untouched
                                          regenerate                  | `show`, said twice
                                          fail                        | on disk, untouched
    a person's that guards refused        as if it had not been tried | on disk, untouched
    a person's, the step runs anyway      made again                  | `show`, said twice
    a person's that stood, the step runs  made again                  | `show`, said twice
    a person's, on the first run          made                        | `show`, said twice
    a person's, while the step runs       shared: a part of what it made; scratch: replaced | `show`
    a person's, while guards look at it   the judged version is put back                    | `show`
    a person's, between two attempts      made again                  | `show`, said twice
    a person's, after a kill              put back to what was before | `show`, said twice
    a link, a device, a socket            the step fails              | untouched
    a directory in the place of a file    the step fails              | untouched
"""

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.project import Project, Run, finish_run, kill, until


def make(project: Project, text: str = "made", **more: Any) -> None:
    project.plan(
        {
            "a": {"shell": project.sh(f"echo {text} > out.txt"), "produces": "out.txt", **more},
            "b": {"shell": project.sh("cat $HOLDFAST_INPUTS/a"), "needs": ["a"]},
        }
    )


def sources(project: Project, step: str = "a") -> list[str]:
    """Where the accepted versions of a step came from, oldest first."""
    rows = project.database().execute(
        "SELECT source FROM artifact WHERE step = ? AND status = 'accepted' ORDER BY number",
        (step,),
    )
    return [str(row[0]) for row in rows]


def kept(project: Project, said: str, path: str = "out.txt", times: int = 2) -> bytes:
    """The bytes of a person that the messages name: when it happens, and again at the end."""
    found = re.findall(rf"your '{path}' is kept \(.*\): holdfast show ([0-9a-f]+)", said)
    assert len(found) == times, said
    assert len(set(found)) == 1
    return project.shown(found[0])


@pytest.mark.req("R48", "R57", "R170", "E8")
def test_an_edited_output_is_adopted_and_what_reads_it_runs_again(project: Project) -> None:
    make(project)
    first = project.run()
    project.ran()
    project.write("out.txt", "my own\n")
    assert project.why("a")["reason"]["code"] == "output_modified"
    run = project.run()
    assert run.states == {"a": "reused", "b": "done"}
    assert run.codes == {"a": "amended", "b": "upstream_changed"}
    assert project.ran() == ["b"]
    assert project.read("out.txt") == "my own\n"
    assert project.shown("b") == b"my own\n"
    assert run.refs["a"] == first.refs["a"]
    assert sources(project) == ["generated", "human"]
    later = project.run()
    assert later.codes == {"a": "amended", "b": "unchanged"}
    assert later.digests == run.digests
    assert project.call("rebuild", "--json").json["changed"] is False


@pytest.mark.req("R57")
def test_regenerate_makes_it_again_and_keeps_what_the_person_wrote(project: Project) -> None:
    make(project)
    first = project.run()
    project.write("out.txt", "hours of work\n")
    project.ran()
    run = project.run("--on-drift", "regenerate")
    assert run.codes["a"] == "output_modified"
    assert project.ran() == ["a"], "the same bytes came out, so b stands"
    assert run.digests == first.digests
    assert project.read("out.txt") == "made\n"
    assert kept(project, run.err) == b"hours of work\n"


@pytest.mark.req("R57")
def test_fail_leaves_the_file_and_stops_at_the_step(project: Project) -> None:
    make(project)
    project.run()
    project.write("out.txt", "mine\n")
    project.ran()
    run = project.run("--on-drift", "fail")
    assert (run.code, run.states) == (1, {"a": "failed", "b": "skipped"})
    assert run.codes["a"] == "output_modified"
    assert run.because("a") == ["out.txt"]
    assert project.read("out.txt") == "mine\n"
    assert project.ran() == []
    assert project.run().codes["a"] == "amended"


@pytest.mark.req("R57")
def test_an_edit_in_the_way_of_a_step_that_must_run_is_kept_and_named(project: Project) -> None:
    make(project, "one")
    project.run()
    project.write("out.txt", "mine\n")
    make(project, "two")
    project.ran()
    stopped = project.run("--on-drift", "fail")
    assert (stopped.code, stopped.codes["a"]) == (1, "output_modified")
    assert project.read("out.txt") == "mine\n"
    assert project.ran() == []
    run = project.run()
    assert project.ran() == ["a", "b"]
    assert project.read("out.txt") == "two\n"
    assert kept(project, run.err) == b"mine\n"
    assert "holdfast amend a" in run.err.splitlines()[-1], "and how to have it back, at the end"
    make(project, "three")
    assert "is kept" not in project.run().err, "what Holdfast wrote itself is nobody's edit"


@pytest.mark.req("R57")
def test_a_version_that_the_guards_refuse_stops_there_and_names_the_choices(
    project: Project,
) -> None:
    make(project, guards=[{"regex": {"pattern": "^[a-z]+\n$"}, "name": "one word"}])
    project.run()
    project.write("out.txt", "two words\n")
    project.ran()
    run = project.run()
    assert (run.code, run.states) == (1, {"a": "failed", "b": "skipped"})
    assert run.codes["a"] == "output_modified"
    assert project.read("out.txt") == "two words\n", "untouched"
    assert project.ran() == []
    told = project.ok("why", "a", "--run", "@").out
    said = run.err + project.ok("status").out + project.ok("logs", "a").out
    for choice in ("adopt", "regenerate", "fail"):
        assert choice in said, f"'{choice}' is not named"
    assert "✗ a: an output was changed by hand: out.txt" in said
    assert "guard 'one word' refused your version:" in told

    for again in (project.retry("a"), project.run(), project.run("--on-drift", "fail")):
        assert (again.code, again.codes["a"]) == (1, "output_modified"), "it is still an edit"
        assert again.because("a") == ["out.txt"]
        assert project.read("out.txt") == "two words\n", "untouched"
    assert "your edit of out.txt is guarded and kept" in project.ok("plan").out
    assert project.ran() == []
    again = project.run("--on-drift", "regenerate")
    assert (again.code, again.states["a"]) == (0, "done")
    assert project.ran() == ["a"]
    assert project.read("out.txt") == "made\n"
    assert kept(project, again.err) == b"two words\n"
    assert project.run().states == {"a": "reused", "b": "reused"}
    assert project.call("rebuild", "--json").json["changed"] is False


@pytest.mark.req("R57", "R107")
@pytest.mark.parametrize("how", ["adopted", "amended"])
def test_a_version_that_stood_is_not_replaced_in_silence(project: Project, how: str) -> None:
    body = project.sh("mkdir -p d; cat in.txt > d/one; echo 2 > d/two")
    project.plan({"a": {"shell": body, "produces": "d", "inputs": ["in.txt"]}})
    project.write("in.txt", "1\n")
    project.run()
    project.write("d/one", "mine\n")
    if how == "amended":
        project.ok("amend", "a")
    assert project.run().codes == {"a": "amended"}
    project.write("in.txt", "more\n")
    said = project.ok("plan").out
    assert "an input changed: in.txt (+1 −1); replaces your version of d/one " in said
    assert project.ok("plan", "--json").json["details"]["a"]["replaced"] == ["d/one"]
    assert "of d/one is stored, and will be replaced" in project.ok("why", "a").out
    run = project.run()
    assert (run.code, project.read("d/one")) == (0, "more\n")
    assert kept(project, run.err, "d/one") == b"mine\n"
    project.write("in.txt", "most\n")
    assert "your version" not in project.ok("plan").out
    assert "is kept" not in project.run().err


@pytest.mark.req("R11", "R57")
def test_a_deleted_output_comes_back_from_the_store(project: Project) -> None:
    body = "mkdir -p d/sub; echo 1 > d/one; echo 2 > d/sub/two; echo x > tool; chmod +x tool"
    project.plan({"a": {"shell": project.sh(body), "produces": ["d", "tool"]}})
    project.run()
    project.ran()
    (project.root / "tool").unlink()
    (project.root / "d/sub/two").unlink()
    run = project.run()
    assert run.states == {"a": "reused"}
    assert project.ran() == []
    assert project.read("d/sub/two") == "2\n"
    assert project.read("tool") == "x\n"
    assert os.access(project.root / "tool", os.X_OK)
    (placed,) = [event for event in project.events() if event["event"] == "outputs_placed"]
    assert placed["paths"] == ["d/sub/two", "tool"]


@pytest.mark.req("R57")
def test_the_executable_bit_of_an_output_is_restored(project: Project) -> None:
    body = "echo x > tool; chmod +x tool"
    project.plan({"a": {"shell": project.sh(body), "produces": "tool"}})
    project.run()
    (project.root / "tool").chmod(0o644)
    project.ran()
    assert project.run().states == {"a": "reused"}
    assert project.ran() == []
    assert os.access(project.root / "tool", os.X_OK)
    assert sources(project) == ["generated"]


@pytest.mark.req("R57")
def test_going_back_to_an_earlier_plan_is_nobodys_edit(project: Project) -> None:
    make(project, "A")
    first = project.run()
    make(project, "B")
    project.run()
    make(project, "A")
    project.ran()
    back = project.run()
    assert project.ran() == []
    assert back.codes == {"a": "unchanged", "b": "unchanged"}
    assert back.digests == first.digests
    assert project.read("out.txt") == "A\n"
    assert set(sources(project)) == {"generated"}

    make(project, "B")
    project.run()
    project.write("out.txt", "A\n")
    project.ran()
    old = project.run()
    assert old.codes["a"] == "unchanged", "an older output put back by hand is not a new version"
    assert project.read("out.txt") == "B\n"
    assert project.ran() == []
    assert set(sources(project)) == {"generated"}


@pytest.mark.req("R57")
def test_several_files_are_adopted_together(project: Project) -> None:
    body = "mkdir -p d; echo 1 > d/one; echo 2 > d/two; echo 3 > three"
    project.plan(
        {
            "a": {"shell": project.sh(body), "produces": ["d", "three"]},
            "b": {"shell": project.sh("cd $HOLDFAST_INPUTS/a; cat d/* three"), "needs": ["a"]},
        }
    )
    assert project.run().code == 0
    project.write("d/two", "mine\n")
    project.write("d/new", "also mine\n")
    (project.root / "three").unlink()
    project.write("three", "3\n")
    project.ran()
    run = project.run()
    assert run.codes == {"a": "amended", "b": "upstream_changed"}
    assert project.ran() == ["b"]
    assert project.shown("b") == b"also mine\n1\nmine\n3\n"
    assert project.run().data["totals"]["reused"] == 2
    project.ok("show", "a")


def test_an_amendment_is_written_to_the_output_path(project: Project) -> None:
    make(project, guards=[{"regex": {"pattern": "^[a-z]+\n$"}, "name": "one word"}])
    project.run()
    refused = project.call("amend", "a", "-", stdin=b"two words\n")
    assert refused.code == 1
    assert "one word" in refused.err
    project.ok("amend", "a", "-", stdin=b"better\n")
    run: Run = project.run()
    assert run.codes == {"a": "amended", "b": "upstream_changed"}
    assert project.read("out.txt") == "better\n"
    assert project.shown("b") == b"better\n"
    project.write("out.txt", "best\n")
    amended = project.ok("amend", "a", "--json").json
    assert amended["step"] == "a"
    assert project.run().digests["a"] == amended["digest"]
    assert "no accepted artifact" in _never(project)


@pytest.mark.req("I5")
def test_a_version_of_a_person_that_the_store_lost_is_stored_again_first(project: Project) -> None:
    """It lies there once more, from a back-up of the person's own; the version after it stands."""
    make(project)
    project.run()
    first = b"first " * 5_000 + b"\n"
    project.ok("amend", "a", "-", stdin=first)
    project.run()
    project.ok("amend", "a", "-", stdin=b"second\n")
    project.run()
    (content,) = (p for p in (project.store / "blobs").glob("??/*") if p.read_bytes() == first)
    content.unlink()
    (project.root / "out.txt").write_bytes(first)
    project.run()
    assert project.read("out.txt") == "second\n"
    assert content.read_bytes() == first


def _never(project: Project) -> str:
    project.plan({"new": {"run": ["true"]}}, file="other.yaml", name="other")
    return project.refused(2, "amend", "new", "-", "-f", "other.yaml")


@pytest.mark.req("R57")
def test_a_file_that_was_there_before_the_first_run_is_kept(project: Project) -> None:
    project.write("out.txt", "mine\n")
    make(project)
    run = project.run("--on-drift", "fail")
    assert run.code == 0, "a step without a history has nothing to drift from"
    assert kept(project, run.err) == b"mine\n"
    assert project.read("out.txt") == "made\n"


@pytest.mark.req("R57")
def test_an_edit_below_a_changed_step_is_kept(project: Project) -> None:
    def steps(text: str) -> None:
        below = {"shell": project.sh("cat $HOLDFAST_INPUTS/a > low.txt"), "produces": "low.txt"}
        project.plan({"a": {"shell": project.sh(f"echo {text}")}, "b": {**below, "needs": ["a"]}})

    steps("one")
    project.run()
    project.write("low.txt", "mine\n")
    steps("two")
    run = project.run()
    assert run.codes["b"] == "upstream_changed"
    assert project.read("low.txt") == "two\n"
    assert kept(project, run.err, "low.txt") == b"mine\n"


@pytest.mark.req("R57")
@pytest.mark.parametrize("workspace", ["shared", "scratch"])
def test_an_edit_while_the_step_runs_is_not_lost(project: Project, workspace: str) -> None:
    body = project.sh(f"echo made > out.txt; {project.gate('go')}")
    project.plan({"a": {"shell": body, "produces": "out.txt", "workspace": workspace}})
    engine = project.begun_by("run", "--json", step="a")
    until(lambda: workspace == "scratch" or project.has("out.txt"), "it wrote")
    project.write("out.txt", "mine\n")
    project.open("go")
    run = finish_run(engine)
    assert run.code == 0
    if workspace == "shared":
        assert project.shown("a") == b"mine\n", "one directory: it is what the step left"
        return
    assert project.read("out.txt") == "made\n"
    assert kept(project, run.err) == b"mine\n"
    (accepted,) = [e for e in project.events() if e["event"] == "attempt_accepted"]
    assert accepted["kept"], "the journal names it too"
    assert project.call("rebuild", "--json").json["changed"] is False


@pytest.mark.req("R57")
def test_an_edit_while_the_guards_look_is_not_lost(project: Project) -> None:
    project.write("check.sh", project.sh(project.gate("go")) + "\n")
    make(project, guards=[{"command": ["/bin/sh", "check.sh"]}])
    engine = project.start("run", "--json")
    until(lambda: len(project.begun()) == 2, "the guard begins")
    project.write("out.txt", "mine\n")
    project.open("go")
    run = finish_run(engine)
    assert (run.code, project.read("out.txt"), project.shown("b")) == (0, "made\n", b"made\n")
    assert kept(project, run.err) == b"mine\n"


@pytest.mark.req("R57")
def test_an_edit_between_two_attempts_is_not_lost(project: Project) -> None:
    """In scratch nothing is put back, so what was written under way lies there before the next try."""
    body = project.sh(f"{project.gate('go')}; echo $HOLDFAST_ATTEMPT > out.txt")
    guards = [{"regex": {"pattern": "^3"}, "name": "third"}]
    step = {"shell": body, "produces": "out.txt", "workspace": "scratch", "guards": guards}
    project.plan({"a": {**step, "retries": 3}})
    engine = project.begun_by("run", "--json", step="a")
    project.write("out.txt", "mine\n")
    project.open("go")
    run = finish_run(engine)
    assert (run.code, project.read("out.txt")) == (0, "3\n")
    assert kept(project, run.err) == b"mine\n", "said once, though two attempts found it"


@pytest.mark.req("R57", "R74")
def test_an_edit_after_a_kill_is_put_aside_by_resume(project: Project) -> None:
    make(project)
    project.run()
    body = project.sh(f"echo half > out.txt; {project.gate('go')}; echo whole > out.txt")
    project.plan({"a": {"shell": body, "produces": "out.txt"}})
    kill(project.begun_by("run", step="a"))
    until(lambda: project.read("out.txt") == "half\n", "it wrote")
    until(lambda: not project.has_at_gate("go"), "its process is gone")
    project.write("out.txt", "mine\n")
    project.open("go")
    run = project.resume()
    assert (run.code, project.read("out.txt")) == (0, "whole\n")
    found = re.findall(r"put back out\.txt; .* kept as [0-9a-f]+: holdfast show (\w+)", run.err)
    assert (len(found), len(set(found))) == (2, 1), run.err
    assert project.shown(found[0]) == b"mine\n"


@pytest.mark.req("R57", "R74")
def test_an_edit_while_resume_runs_is_not_lost(project: Project) -> None:
    body = project.sh(f"{project.gate('go')}; echo made > out.txt")
    project.plan({"a": {"shell": body, "produces": "out.txt", "workspace": "scratch"}})
    kill(project.begun_by("run", step="a"))
    engine = project.begun_by("resume", "--json", step="a")
    project.write("out.txt", "mine\n")
    project.open("go")
    run = finish_run(engine)
    assert (run.code, project.read("out.txt")) == (0, "made\n")
    assert kept(project, run.err) == b"mine\n"


@pytest.mark.req("R57")
def test_a_link_in_the_place_of_an_output_stops_the_step(project: Project) -> None:
    make(project)
    project.run()
    mine = project.folder / "mine"
    mine.write_text("mine\n")
    place = project.root / "out.txt"
    place.unlink()
    place.symlink_to(mine)
    project.ran()
    for policy in ("adopt", "regenerate"):
        run = project.run("--on-drift", policy)
        assert (run.code, run.states["a"]) == (1, "failed")
        assert "symbolic link" in run.because("a")[0]
    assert project.ran() == []
    assert place.is_symlink()
    assert mine.read_text() == "mine\n"


@pytest.mark.req("R57")
def test_a_directory_in_the_place_of_an_output_is_in_the_way(project: Project) -> None:
    make(project)
    project.run()
    (project.root / "out.txt").unlink()
    project.write("out.txt/inner", "mine\n")
    made = project.run("--on-drift", "regenerate")
    assert (made.code, made.states["a"]) == (1, "failed"), "its command cannot write there"
    assert project.read("out.txt/inner") == "mine\n"


@pytest.mark.req("R57")
def test_git_checkout_of_an_older_output_makes_no_human_artifact(project: Project) -> None:
    def git(*words: str) -> None:
        name = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
        subprocess.run(["git", *name, *words], cwd=project.root, check=True, capture_output=True)

    def commit(text: str) -> None:
        make(project, text)
        assert project.run().code == 0
        git("add", "-A")
        git("commit", "-qm", text)

    git("init", "-q")
    commit("A")
    commit("B")
    git("checkout", "-q", "HEAD~1", "--", "out.txt")
    assert project.read("out.txt") == "A\n"
    project.ran()
    assert project.run().codes["a"] == "unchanged"
    assert project.read("out.txt") == "B\n"
    git("checkout", "-q", "HEAD~1", "--", ".")
    assert project.run().codes["a"] == "unchanged"
    assert project.read("out.txt") == "A\n"
    assert project.ran() == []
    assert set(sources(project)) == {"generated"}


@pytest.mark.req("R57")
def test_the_files_of_a_produced_directory_drift_one_by_one(project: Project) -> None:
    body = "mkdir -p d; echo 1 > d/one; echo 2 > d/two"
    project.plan({"a": {"shell": project.sh(body), "produces": "d"}})
    project.run()
    (project.root / "d/one").unlink()
    project.write("d/two", "mine\n")
    run = project.run("--on-drift", "regenerate")
    assert run.because("a") == ["d/two"]
    assert kept(project, run.err, "d/two") == b"mine\n"
    assert (project.read("d/one"), project.read("d/two")) == ("1\n", "2\n")
    project.write("d/extra", "mine too\n")
    assert project.run().codes == {"a": "amended"}
    assert "d/extra" in project.ok("show", "a").out
    assert Path(project.root / "d/extra").read_text() == "mine too\n"


def test_a_standing_version_is_named_when_an_earlier_one_stands_again(project: Project) -> None:
    def plan(word: str) -> None:
        project.plan({"a": {"shell": f"echo {word} > out.txt", "produces": "out.txt"}})

    plan("one")
    project.run()
    plan("two")
    project.run()
    project.write("out.txt", "mine\n")
    project.run()
    plan("one")
    back = project.run()
    assert project.read("out.txt") == "one\n"
    assert "your 'out.txt' is kept (an earlier version stands again): holdfast show" in back.err
    digest = back.err.split("holdfast show ")[1].split()[0]
    assert project.shown(digest) == b"mine\n"
