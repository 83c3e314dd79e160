"""A list of what a step wrote is lost: it is made again, or every command names the one way out."""

import hashlib
from typing import Any

import pytest

from tests.cli.project import Project

MANY = "for i in $(seq 300); do echo $i > {}f-with-a-long-name-$i; done"
BESIDE = {"workspace": "scratch", "effects": "workspace"}


def spoil(project: Project, *, flip: bool) -> str:
    """Remove the only large content, or change one byte of it; its digest."""
    (content,) = (p for p in (project.store / "blobs").glob("??/*") if p.stat().st_size > 16384)
    if flip:
        content.chmod(0o600)
        content.write_bytes(b"y" + content.read_bytes()[1:])
    else:
        content.unlink()
    return content.name


def listed(project: Project, *, stamp: str = "") -> None:
    """A plan whose one step wrote a directory of many files."""
    project.plan(
        {"t": {"shell": project.sh(f"mkdir -p o; {stamp}{MANY.format('o/')}"), "produces": "o"}}
    )
    assert project.run().code == 0
    project.ran()


@pytest.mark.req("D07", "I5")
@pytest.mark.parametrize("flip", [False, True], ids=["gone", "flipped"])
@pytest.mark.parametrize("before", [(), ("repair",), ("run", "repair")], ids="-".join)
def test_a_directory_whose_list_is_lost_is_made_again(
    project: Project, before: tuple[str, ...], flip: bool
) -> None:
    listed(project)
    spoil(project, flip=flip)
    for word in before:
        project.ok(word)
    if flip and not before:
        project.ok("plan")
    found = project.run()
    assert (found.code, project.ran()) == (0, ["t"])
    assert project.run().codes == {"t": "unchanged"}
    project.ok("repair")
    project.ok("verify")


@pytest.mark.req("I5")
@pytest.mark.parametrize("repair", [False, True])
def test_what_a_person_wrote_where_the_list_is_lost_is_kept(project: Project, repair: bool) -> None:
    listed(project)
    project.write("o/f-with-a-long-name-7", "by hand\n")
    project.write("o/mine", "mine\n")
    spoil(project, flip=False)
    if repair:
        project.ok("repair")
    assert "and 298 more is stored, then replaced" in project.ok("plan").out
    refused = project.run("--on-drift", "fail")
    assert (refused.code, refused.codes["t"], project.ran()) == (1, "output_modified", [])
    again = project.run()
    assert (again.code, project.ran()) == (0, ["t"])
    assert "t: nobody can tell which files at o you wrote; all are kept" in again.err
    assert project.read("o/f-with-a-long-name-7") == "7\n"
    for words in (b"by hand\n", b"mine\n"):
        assert project.shown(hashlib.sha256(words).hexdigest()) == words
    (kept,) = (e["before"] for e in project.events() if e["event"] == "attempt_started")
    assert f"holdfast show {kept[:12]}" in again.err
    assert " o/mine\n" in project.ok("show", kept[:12]).out


@pytest.mark.req("I5")
def test_a_lost_list_of_long_ago_is_in_nobodys_way(project: Project) -> None:
    listed(project, stamp="date +%N > o/now; ")
    spoil(project, flip=False)
    project.ok("repair")
    project.run()
    project.write("o/f-with-a-long-name-7", "by hand\n")
    edited = project.run()
    assert (edited.code, edited.codes) == (0, {"t": "amended"})
    assert project.read("o/f-with-a-long-name-7") == "by hand\n"
    project.ok("verify")


@pytest.mark.req("D07", "I5")
@pytest.mark.parametrize("flip", [False, True], ids=["gone", "flipped"])
@pytest.mark.parametrize("beside", [{}, {"produces": "o"}], ids=["alone", "beside-outputs"])
def test_lost_changes_have_one_way_out_and_all_name_it(
    project: Project, beside: dict[str, str], flip: bool
) -> None:
    body = MANY.format("") + ("; mkdir -p o; echo 1 > o/one" if beside else "")
    project.plan({"many": {"shell": project.sh(body), **BESIDE, **beside}})
    project.run()
    spoil(project, flip=flip)
    way = "holdfast run --force-node many"
    for _ in range(2):
        for word in ("plan", "run"):
            assert f"hint: {way}\n" in project.refused(9, word), word
        assert f"holdfast repair, then {way}\n" in project.refused(9, "verify")
        assert project.ok("repair", "--json").json["next"] == [way]
    project.ran()
    project.ok("plan", "--force-node", "many")
    assert project.run("--force-node", "many").code == 0
    assert project.ran() == ["many"]
    assert project.run().states == {"many": "reused"}
    project.ok("repair")
    project.ok("verify")


@pytest.mark.req("I5")
def test_lost_changes_make_no_other_step_run(project: Project) -> None:
    """`a` has to know whether `c`, which writes over it, stands: that looks at all of the plan."""
    steps = {
        "a": {"shell": project.sh("echo a > o.txt"), "produces": "o.txt"},
        "c": {"shell": project.sh("echo c > o.txt"), "produces": "o.txt", "needs": "a"},
        "many": {"shell": project.sh(MANY.format("")), **BESIDE},
    }
    project.plan(steps)
    project.run("-j", "1")
    project.ran()
    spoil(project, flip=False)
    assert "--force-node many" in project.refused(9, "run", "-j", "1")
    assert (project.ran(), project.read("o.txt")) == ([], "c\n")


@pytest.mark.req("D07", "R49")
def test_lost_changes_keep_no_other_step_of_a_joined_run(project: Project) -> None:
    count = f"n=$(cat VERSION); echo $((n+1)) > VERSION; {MANY.format('')}"
    many = {"shell": project.sh(count), "inputs": "VERSION", **BESIDE}

    def planned(words: str) -> None:
        other = {"shell": project.sh(f"echo {words} > other.txt"), **BESIDE}
        project.plan({"many": many, "other": other})

    project.write("VERSION", "1\n")
    planned("one")
    assert project.run("--join").code == 0
    project.ran()
    spoil(project, flip=False)
    planned("two")
    assert project.run("--join", "-s", "other").code == 0
    assert (project.ran(), project.read("other.txt")) == (["other"], "two\n")
    forced = project.run("--join", "--force-node", "many")
    assert (forced.code, forced.states["many"], project.ran()) == (0, "done", ["many"])
    assert project.read("VERSION") == "3\n"
    project.ok("repair")
    project.ok("verify")


@pytest.mark.req("D07")
def test_lost_changes_keep_no_other_step_of_a_run_that_goes_on(project: Project) -> None:
    after = {"step": "many", "type": "sequence"}
    last = project.sh(f"[ -e {project.folder}/well ] && echo x > other.txt")
    project.plan(
        {
            "many": {"shell": project.sh(MANY.format("")), **BESIDE},
            "other": {"shell": last, "needs": [after], **BESIDE},
        }
    )
    assert project.run().code == 1
    spoil(project, flip=False)
    (project.folder / "well").touch()
    assert project.retry("other").code == 0
    assert (project.ran(), project.read("other.txt")) == (["many", "other", "other"], "x\n")


@pytest.mark.req("D07")
def test_verify_needs_no_plan_that_can_be_read(project: Project) -> None:
    listed(project)
    gone = spoil(project, flip=False)
    project.write("plan.yaml", "steps: [")
    assert f"content '{gone}'" in project.refused(9, "verify")


def changing(project: Project) -> None:
    """Two steps in a row that change what they read, and one that reads it first."""
    count = "n=$(cat VERSION); echo $((n+{})) > VERSION"
    project.write("VERSION", "1000\n")
    project.plan(
        {
            "read": {"shell": project.sh("cat VERSION"), "inputs": ["VERSION"]},
            "first": {
                "shell": project.sh(count.format(1)),
                "inputs": ["VERSION"],
                "needs": [{"step": "read", "type": "sequence"}],
                **BESIDE,
            },
            "then": {
                "shell": project.sh(f"{count.format(10)}; {MANY.format('')}"),
                "inputs": ["VERSION"],
                "needs": [{"step": "first", "type": "sequence"}],
                **BESIDE,
            },
        }
    )
    assert project.run().code == 0
    assert (project.ran(), project.read("VERSION")) == (["first", "read", "then"], "1011\n")


@pytest.mark.req("I5", "D07")
@pytest.mark.parametrize("loss", ["gone", "flipped", "repaired", "purged"])
def test_lost_changes_are_not_made_twice(project: Project, loss: str) -> None:
    """What a step changed is what it reads: without the list it looks like somebody's change."""
    changing(project)
    if loss == "purged":
        (artifact,) = (
            e["digest"] for e in project.events() if e.get("step") == "then" and "digest" in e
        )
        project.ok("purge", artifact, "--yes", "--because", "it is a secret")
    else:
        spoil(project, flip=loss == "flipped")
    if loss == "repaired":
        project.ok("repair")
    for word in ("plan", "run"):
        assert "--force-node then" in project.refused(9, word), word
    assert (project.ran(), project.read("VERSION")) == ([], "1011\n")
    forced = ("--force-node", "read", "--force-node", "first", "--force-node", "then")
    assert project.run(*forced).code == 0
    assert (project.ran(), project.read("VERSION")) == (["first", "read", "then"], "1022\n")
    assert {*project.run().states.values()} == {"reused"}
    project.ok("repair")
    project.ok("verify")


@pytest.mark.req("I5", "I17")
def test_each_hint_about_lost_changes_goes_on_from_what_was_asked(project: Project) -> None:
    """And an effect outside is not made again for it: a person looks, as after any doubt."""
    project.write("f", "x\n")
    above = ("pay", "lint", "look")
    steps: dict[str, Any] = {
        name: {"shell": project.sh(f"cat f; echo {name}"), "inputs": "f"} for name in above
    }
    steps["pay"]["effects"] = "external"
    needs = [{"step": name, "type": "sequence"} for name in above]
    body = project.sh(f"echo A >> f; {MANY.format('')}")
    project.plan({**steps, "fix": {"shell": body, "inputs": "f", "needs": needs, **BESIDE}})
    project.run("--yes")
    project.ran()
    spoil(project, flip=False)
    words: list[str] = []
    while (ended := project.call("run", "--yes", *words)).code == 9:
        known, words = words, ended.err.rpartition("hint: holdfast run ")[2].split()
        assert len(words) > len(known)
    assert sorted(words[1::2]) == ["fix", "lint", "look"]
    assert "pay" in ended.out, (ended.out, ended.err)
    assert ended.code == 3
    assert "pay" not in project.ran()
    assert project.call("retry", "pay", "--yes").code == 0
    assert project.read("f") == "x\nA\nA\n"
    assert {*project.run("--yes").states.values()} == {"reused"}


@pytest.mark.req("I5")
def test_lost_changes_of_a_step_that_removed_what_it_reads(project: Project) -> None:
    body = project.sh(f"mv old.txt new.txt; {MANY.format('')}")
    other = {"shell": project.sh("echo 1")}
    project.write("old.txt", "x\n")
    project.plan({"mv": {"shell": body, "inputs": "old.txt", **BESIDE}, "other": other})
    project.run()
    spoil(project, flip=False)
    for word in ("plan", "run"):
        assert "--force-node mv" in project.refused(9, word), word
    forced = project.call("run", "--force-node", "mv")
    assert (forced.code, "no file matches the input 'old.txt'" in forced.err) == (1, True)
    project.plan(
        {"mv": {"shell": body, "inputs": "old.txt", **BESIDE}, "other": {"shell": "echo 2"}}
    )
    assert project.run("--select", "other").codes["other"] == "command_changed"
    project.write("old.txt", "x\n")
    assert project.run("--force-node", "mv").code == 0
    assert {*project.run().states.values()} == {"reused"}


@pytest.mark.req("I5")
def test_what_was_made_again_after_a_loss_stands(project: Project) -> None:
    """It reads then what a step below has changed since, and what it gave before is gone still."""
    project.write("f", "x\n")
    pay = {"shell": project.sh("head -n 1 f"), "inputs": "f", "effects": "external"}
    needs = [{"step": "pay", "type": "sequence"}]
    fix = {"shell": project.sh("echo A >> f"), "inputs": "f", "needs": needs, **BESIDE}
    project.plan({"pay": pay, "fix": fix})
    digest = project.run("--yes").digests["pay"]
    assert digest is not None
    project.ok("purge", digest, "--yes", "--because", "it is a secret")
    assert project.run("--yes").codes["pay"] == "receipt_gone"
    assert project.call("retry", "pay", "--yes").code == 0
    assert project.ok("plan", "--json").json["totals"]["reuse"] == 2
    assert {*project.run("--yes").states.values()} == {"reused"}
    assert project.ran() == ["fix", "pay", "pay"]
