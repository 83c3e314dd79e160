"""Damage: found, named, refused; and what can be made again from the journals."""

import hashlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast.model.event import Options
from holdfast.store.codec import first_hash, next_hash
from holdfast.store.migrate import MIGRATIONS
from tests.cli.here import run_here
from tests.cli.project import COMMAND, Project, Run, finish, kill, until

READS_ALL = "-dac_override,-dac_read_search"  # what root is let do with files of others
LARGE = "head -c 100000 /dev/zero | tr '\\0' x"


def small_and_large(project: Project, large: str = LARGE) -> dict[str, str]:
    """A plan with a small and a large artifact; their digests."""
    project.plan(
        {
            "small": {"shell": project.sh("echo small")},
            "large": {"shell": project.sh(large), "needs": ["small"]},
        }
    )
    run = project.run()
    assert run.code == 0
    project.ran()
    return {step: str(digest) for step, digest in run.digests.items()}


def blob_file(project: Project, digest: str) -> Path:
    (found,) = project.store.glob(f"blobs/**/{digest}*")
    return found


def problems(project: Project) -> str:
    answer = project.call("verify", "--json")
    assert answer.code == 9, answer
    data = answer.json
    assert data["ok"] is False
    assert data["bits"] != 0
    assert data["problems"]
    plain = project.call("verify")
    assert plain.code == 9
    assert all(problem in plain.err for problem in data["problems"])
    return "\n".join(data["problems"])


def test_a_whole_store_verifies(project: Project) -> None:
    small_and_large(project)
    answer = project.call("verify", "--json")
    assert answer.code == 0
    data = answer.json
    assert (data["schema"], data["ok"], data["bits"]) == ("holdfast.verify/1", True, 0)
    assert data["runs"] == 1
    assert data["events"] > 3
    assert data["blobs"] > 3


def test_a_flipped_byte_in_a_row_is_found(project: Project) -> None:
    digest = small_and_large(project)["small"]
    with project.database() as connection:
        connection.execute(
            "UPDATE blob SET content = CAST(X'00' || substr(content, 2) AS BLOB) WHERE digest = ?",
            (bytes.fromhex(digest),),
        )
    assert digest in problems(project)
    assert re.fullmatch(r"1 run, \d+ events, \d+ blobs: 1 problem\n", project.call("verify").out)
    assert project.call("show", "small").code == 9


def test_a_flipped_byte_and_a_missing_file_are_found(project: Project) -> None:
    digest = small_and_large(project)["large"]
    place = blob_file(project, digest)
    place.chmod(0o644)
    content = bytearray(place.read_bytes())
    content[50_000] ^= 1
    place.write_bytes(content)
    assert digest in problems(project)
    place.unlink()
    assert digest in problems(project)
    said = project.refused(9, "show", "large")
    assert digest[:12] in said


def test_a_missing_file_of_several_and_of_what_lay_there_before_is_found(project: Project) -> None:
    project.write("one.txt", "before\n")
    body = project.sh("echo 1 > one.txt; echo 2 > two.txt")
    project.plan({"a": {"shell": body, "produces": ["one.txt", "two.txt"]}})
    run_here(project)
    for text, path in ((b"2\n", "two.txt"), (b"before\n", "one.txt")):
        digest = hashlib.sha256(text).digest()
        with project.database() as connection:
            (row,) = connection.execute("SELECT * FROM blob WHERE digest = ?", (digest,))
            connection.execute("DELETE FROM blob WHERE digest = ?", (digest,))
        said = problems(project)
        assert f"content '{digest.hex()}' of the file '{path}' is missing" in said
        assert "step 'a' in run 'r-" in said
        with project.database() as connection:
            connection.execute("INSERT INTO blob VALUES(?, ?, ?, ?)", row)
    project.ok("verify")


@pytest.mark.req("R10")
def test_a_changed_event_breaks_the_chain(project: Project) -> None:
    small_and_large(project)
    with project.database() as connection:
        connection.execute("DROP TRIGGER event_is_kept")
        connection.execute(
            "UPDATE event SET body = replace(body, '\"attempt\":1', '\"attempt\":2')"
            " WHERE kind = 'attempt_accepted'"
        )
    assert "event 3 is damaged" in problems(project)
    assert "event 3" in project.refused(9, "status")


def tampered(project: Project, change: Any) -> None:
    """Put another plan under the digest of the one that a run keeps."""
    with project.database() as connection:
        rows = connection.execute("SELECT digest, content FROM blob").fetchall()
        for digest, content in rows:
            assert isinstance(content, bytes)
            if content.startswith(b"{") and b'"holdfast.plan/1"' in content:
                plan = json.loads(content)
                change(plan)
                text = json.dumps(plan, sort_keys=True, separators=(",", ":")).encode()
                connection.execute("UPDATE blob SET content = ? WHERE digest = ?", (text, digest))


def retries(plan: dict[str, Any]) -> None:
    plan["steps"]["bad"]["retries"] = 9


@pytest.mark.req("R10")
def test_resume_refuses_a_snapshot_that_was_tampered_with(project: Project) -> None:
    project.plan({"bad": {"shell": project.sh("exit 1"), "retries": 1}})
    project.run()
    project.ran()
    tampered(project, retries)
    project.refused(9, "resume")
    assert project.ran() == []
    assert project.call("resume", "--json").json["error"]["code"] == "integrity"
    problems(project)


def forged(project: Project, run: str) -> None:
    """Let a run name another plan than it began with, so that every digest and the chain agree."""
    with project.database() as connection:
        rows = connection.execute("SELECT content FROM blob").fetchall()
        texts = [content for (content,) in rows if isinstance(content, bytes)]
        plan = next(json.loads(text) for text in texts if b"holdfast.plan/1" in text)
        retries(plan)
        text = json.dumps(plan, sort_keys=True, separators=(",", ":")).encode()
        digest = hashlib.sha256(text)
        connection.execute(
            "INSERT INTO blob(digest, content) VALUES(?, ?)", (digest.digest(), text)
        )
        connection.execute("DROP TRIGGER event_is_kept")
        name = f"run:{run}"
        ((number,),) = connection.execute(
            "SELECT id FROM journal WHERE name = ?", (name,)
        ).fetchall()
        events = connection.execute(
            "SELECT place, at, kind, body FROM event WHERE place / (1 << 40) = ? ORDER BY place",
            (number,),
        ).fetchall()
        chain = first_hash(name)
        for seq, (place, at, kind, body) in enumerate(events, 1):
            assert isinstance(at, int)
            told = json.loads(str(body))
            if kind == "run_started":
                told["plan"] = digest.hexdigest()
            written = json.dumps(told, separators=(",", ":"))
            chain = next_hash(chain, seq, at, str(kind), written)
            connection.execute(
                "UPDATE event SET body = ?, hash = ? WHERE place = ?", (written, chain, place)
            )
        connection.execute("UPDATE journal SET hash = ? WHERE id = ?", (chain, number))


def rewritten(
    project: Project, journal: str, change: Callable[[str, dict[str, Any]], bool]
) -> None:
    """Let a journal say something else, without the events that `change` does not keep; its chain agrees."""
    with project.database() as connection:
        ((number, name),) = connection.execute(
            "SELECT id, name FROM journal WHERE name LIKE ?", (journal,)
        ).fetchall()
        events = connection.execute(
            "SELECT at, kind, body FROM event WHERE place / (1 << 40) = ? ORDER BY place", (number,)
        ).fetchall()
        connection.execute("DELETE FROM event WHERE place / (1 << 40) = ?", (number,))
        chain, seq = first_hash(str(name)), 0
        for at, kind, body in events:
            told = json.loads(str(body))
            if change(str(kind), told):
                seq, written = seq + 1, json.dumps(told, separators=(",", ":"))
                assert isinstance(at, int)
                assert isinstance(number, int)
                chain = next_hash(chain, seq, at, str(kind), written)
                place = (number << 40) + seq
                row = (place, at, kind, written, chain)
                connection.execute("INSERT INTO event VALUES(?, ?, ?, ?, ?)", row)
        connection.execute(
            "UPDATE journal SET last = ?, hash = ? WHERE id = ?", (seq, chain, number)
        )


def _damaged(project: Project, run: Run) -> None:
    damage(project, str(run.digests["large"]))


def _unvouched(project: Project, _: Run) -> None:
    rewritten(project, "line:%", lambda kind, _: kind != "approval_used")


def _unreadable(project: Project, run: Run) -> None:
    def leave_out(kind: str, _: object) -> bool:
        return kind != "attempt_started"

    rewritten(project, f"run:{run.id}", leave_out)


def _both(project: Project, run: Run) -> None:
    _damaged(project, run)
    _unvouched(project, run)


BITS = {
    "damaged": (_damaged, 1, "is damaged"),
    "unvouched": (_unvouched, 2, "attempt 1 of step 'large' began without an approval (step)"),
    "both": (_both, 3, "is damaged"),
    "unreadable": (_unreadable, 4, "run 'r-"),
}


@pytest.mark.req("I4", "I5", "I11")
@pytest.mark.parametrize("name", BITS)
def test_each_kind_of_trouble_has_its_bit(project: Project, name: str) -> None:
    change, bits, words = BITS[name]
    project.plan({"large": {"shell": LARGE, "approve": "always"}})
    project.run()
    project.ok("approve", "large", "--yes")
    run = project.resume()
    assert project.ok("verify", "--json").json["bits"] == 0
    change(project, run)
    answer = project.call("verify", "--json")
    assert (answer.code, answer.json["bits"]) == (9, bits), answer.out
    assert all(words in told or name == "both" for told in answer.json["problems"])
    assert any(words in told for told in answer.json["problems"])


@pytest.mark.req("I17")
def test_an_effect_that_was_repeated_unasked_is_found(project: Project) -> None:
    send = {"shell": project.sh(project.gate("go")), "effects": "external"}
    project.plan({"send": send})
    kill(project.begun_by("run", "--yes", step="send"))
    project.open("go")
    assert project.resume("--yes").states == {"send": "waiting"}
    run = project.retry("send", "--yes").id
    project.ok("verify")

    def unasked(kind: str, body: dict[str, Any]) -> bool:
        return kind != "steps_reset" or bool(body.pop("asked"))

    rewritten(project, f"run:{run}", unasked)
    answer = project.call("verify", "--json")
    assert (answer.code, answer.json["bits"]) == (9, 2), answer.out
    (told,) = answer.json["problems"]
    assert "is repeated without a person's word" in told


@pytest.mark.req("R10")
def test_resume_refuses_a_run_whose_plan_has_another_structure(project: Project) -> None:
    project.plan({"bad": {"shell": project.sh("exit 1"), "retries": 1}})
    run = project.run()
    ref = run.data["plan"]["ref"]
    assert hashlib.sha256(project.shown(ref)).hexdigest() == ref, "the structure can be looked up"
    project.ran()
    forged(project, run.id)
    assert "structure" in project.refused(9, "resume")
    assert project.ran() == []
    assert "structure" in problems(project)


@pytest.mark.req("R75", "R50")
def test_the_index_of_artifacts_is_made_again_from_the_journals(project: Project) -> None:
    project.plan(
        {
            "a": {
                "shell": project.sh("echo 1 $HOLDFAST_ATTEMPT"),
                "retries": 1,
                "guards": [{"regex": {"pattern": "1 2"}}],
            },
            "b": {"shell": project.sh("cat $HOLDFAST_INPUTS/a"), "needs": ["a"]},
        }
    )
    project.run()
    project.ok("amend", "a", "-", stdin=b"my 1 2\n")
    project.run()
    before = project.ok("show", "a", "--json").json
    rejected = project.ok("show", "a@1", "--json").json
    assert before["source"] == "human"
    with project.database() as connection:
        connection.execute("DELETE FROM artifact WHERE number > 1")
    assert "rebuild" in problems(project)
    project.ran()
    answer = project.ok("rebuild", "--json").json
    assert answer["changed"] is True
    assert project.call("verify").code == 0
    assert project.ok("show", "a", "--json").json == before
    assert project.ok("show", "a@1", "--json").json == rejected
    again = project.run()
    assert again.codes == {"a": "amended", "b": "unchanged"}
    assert project.ran() == []
    assert project.ok("rebuild", "--json").json["changed"] is False


def test_an_index_in_another_order_is_found(project: Project) -> None:
    project.plan({"a": {"shell": "echo one"}})
    run_here(project)
    run_here(project, Options(force=True))
    assert project.ok("verify").code == 0
    with project.database() as database:
        database.execute("UPDATE artifact SET number = 100 - number")
    assert "does not follow from the journals" in project.refused(9, "verify")
    project.ok("rebuild")
    assert project.ok("verify").code == 0


def test_a_store_of_an_older_format_is_read_as_it_is_and_changed_with_a_word(
    project: Project,
) -> None:
    small_and_large(project)
    with project.database() as connection:
        for index in ("artifact_newest", "artifact_maker", "event_purged"):
            connection.execute(f"DROP INDEX {index}")
        connection.execute("DROP TABLE said")
        connection.execute("DROP TABLE errand")
        connection.execute("ALTER TABLE blob DROP COLUMN at")
        connection.execute("ALTER TABLE run DROP COLUMN imported")
        once = next(text for text in MIGRATIONS[0].split(";") if "artifact_once" in text)
        connection.execute("DROP INDEX artifact_once")
        connection.execute(once)
        connection.execute("PRAGMA user_version = 1")
    for words in (("verify",), ("status",), ("history",), ("gc", "--dry-run"), ("plan",)):
        assert "format" not in project.ok(*words).err
    assert project.shown("small") == b"small\n"
    assert "was brought to format 5" in project.ok("pin", "@").err
    assert "format" not in project.ok("pin", "small").err
    assert project.run().data["totals"]["reused"] == 2
    project.ok("verify")


@pytest.mark.req("I9")
def test_a_run_whose_engine_died_is_stuck_but_not_damaged(project: Project) -> None:
    project.plan({"a": {"shell": "touch begun; sleep 600"}})
    engine = project.start("run")
    until(lambda: project.has("begun"))
    alive = project.ok("verify", "--json").json
    assert (alive["bits"], alive["stuck"]) == (0, [])
    kill(engine)
    answer = project.ok("verify", "--json").json
    assert (answer["ok"], answer["bits"], len(answer["stuck"])) == (True, 8, 1)
    assert "no engine works on it: holdfast resume" in project.ok("verify").err
    project.plan({"a": {"shell": "true"}})
    project.run()
    assert project.ok("verify", "--json").json["bits"] == 0


@pytest.mark.req("I10")
def test_more_engines_than_fences_are_found(project: Project) -> None:
    project.plan({"a": {"shell": "test -e flag"}})
    project.run()
    project.write("flag", "")
    project.resume()
    project.ok("verify")
    with project.database() as connection:
        connection.execute("UPDATE run SET fence = 1")
    assert "2 engines wrote under 1 fences" in problems(project)


@pytest.mark.req("I4")
def test_a_run_that_its_line_does_not_name_is_found(project: Project) -> None:
    project.plan({"a": {"shell": "echo a"}})
    project.run()
    with project.database() as connection:
        connection.execute(
            "DELETE FROM event WHERE place / (1 << 40) = (SELECT id FROM journal WHERE name LIKE 'line:%')"
        )
        connection.execute("DELETE FROM journal WHERE name LIKE 'line:%'")
    assert "its line does not name it" in problems(project)


@pytest.mark.req("R74")
@pytest.mark.parametrize("harm", ["missing", "damaged"])
def test_an_output_whose_stored_content_is_lost_is_made_again(project: Project, harm: str) -> None:
    text = "x" * 40_000
    project.write("in.txt", text)
    project.plan(
        {"copy": {"shell": "cp in.txt out.txt", "inputs": "in.txt", "produces": "out.txt"}}
    )
    digest = str(project.run().digests["copy"])
    place = blob_file(project, digest)
    place.chmod(0o600)
    if harm == "missing":
        place.unlink()
    else:
        place.write_bytes(place.read_bytes()[:-1] + b"\0")
    (project.root / "out.txt").unlink()
    answer = project.run()
    assert answer.data["steps"]["copy"]["state"] == "done"
    assert answer.data["steps"]["copy"]["reason"]["code"] == "output_missing"
    assert "it is made again" in answer.err
    assert project.read("out.txt") == text
    assert project.call("verify").code == 0


@pytest.mark.req("I4")
def test_a_run_that_is_gone_without_having_been_collected_is_found(project: Project) -> None:
    project.plan({"a": {"shell": "echo a"}})
    project.run()
    project.run("--force")
    with project.database() as connection:
        ((run,),) = connection.execute("DELETE FROM run WHERE number = 2 RETURNING id").fetchall()
        connection.execute("DELETE FROM artifact WHERE number = 2")
    assert problems(project) == f"run '{run}': its line names it, and it is not there"


@pytest.mark.req("I4")
def test_a_journal_without_a_run_is_found(project: Project) -> None:
    project.plan({"a": {"shell": "echo a"}})
    project.run()
    with project.database() as connection:
        connection.execute(
            "INSERT INTO journal(name, last, hash) VALUES('run:r-0', 0, ?)",
            (first_hash("run:r-0"),),
        )
    assert problems(project) == "journal 'run:r-0': its run is not there"


@pytest.mark.req("D07")
def test_a_run_whose_journal_is_lost_is_no_bug_to_any_command(project: Project) -> None:
    project.plan({"a": {"shell": "echo a"}})
    project.run()
    with project.database() as connection:
        connection.execute(
            "UPDATE journal SET name = 'sun:' || substr(name, 5) WHERE name GLOB 'run:*'"
        )
    for words in ("retry a", "stop", "status", "graph", "logs a", "export @ x.zip"):
        assert "has no journal" in project.refused(9, *words.split()), words


@pytest.mark.req("I4")
def test_a_run_that_says_it_was_imported_and_was_not_is_found(project: Project) -> None:
    project.plan({"a": {"shell": "echo a"}})
    project.run()
    with project.database() as connection:
        connection.execute("UPDATE run SET imported = 1")
        connection.execute("UPDATE artifact SET source = 'imported'")
    assert "its line has 'run_opened' of it, its row says 'run_imported'" in problems(project)


REHEARSED = ("repair", "--start-over", "--dry-run")


def lose(project: Project, digest: str) -> None:
    for found in project.store.glob(f"blobs/**/{digest}*"):
        found.unlink()
    with project.database() as connection:
        connection.execute("DELETE FROM blob WHERE digest = ?", (bytes.fromhex(digest),))


def damage(project: Project, digest: str) -> None:
    place = blob_file(project, digest)
    place.chmod(0o600)
    place.write_bytes(b"y" + place.read_bytes()[1:])


@pytest.mark.req("D07", "I5")
@pytest.mark.parametrize("body", [LARGE, f"date +%N; {LARGE}"], ids=["same", "other"])
def test_a_plain_run_after_a_repair_makes_again_what_was_damaged(
    project: Project, body: str
) -> None:
    digests = small_and_large(project, body)
    assert project.ok("repair").out == "nothing is damaged\n"
    damage(project, digests["large"])
    before = project.call("repair", "--dry-run", "--json").json
    assert (before["moved"], before["ok"]) == ([digests["large"]], False)
    assert blob_file(project, digests["large"]).parent.name != "quarantine"
    assert project.call("verify").code == 9
    told = project.ok("repair", "--json").json
    assert told["moved"] == told["recorded"] == [digests["large"]]
    assert [(one["step"], one["line"]) for one in told["again"]] == [("large", "demo")]
    assert (told["left"], told["next"]) == ([], ["holdfast run"])
    assert blob_file(project, digests["large"]).parent.name == "quarantine"
    project.ok("verify")
    again = project.run()
    assert (project.ran(), again.codes["large"]) == (["large"], "output_missing")
    project.ok("verify")
    assert project.ok("repair").out == "nothing is damaged\n"
    assert project.run().data["totals"]["reused"] == 2


@pytest.mark.req("D07", "I5")
@pytest.mark.parametrize("step", ["small", "large"])
def test_a_run_without_a_repair_makes_again_what_is_gone(project: Project, step: str) -> None:
    digests = small_and_large(project)
    lose(project, digests[step])
    assert project.call("verify").code == 9
    assert project.ok("plan", "--json").json["steps"][step]["decision"] == "run"
    again = project.run()
    assert (project.ran(), again.codes[step]) == ([step], "output_missing")
    project.ok("verify")


@pytest.mark.req("I5", "I17")
def test_what_would_repeat_an_effect_is_made_again_only_if_somebody_asks(project: Project) -> None:
    send = {"shell": project.sh(LARGE), "effects": "external"}
    project.plan({"send": send, "after": {"shell": "wc -c < $HOLDFAST_INPUTS/send"}})
    lose(project, str(project.run("--yes").digests["send"]))
    project.ran()
    told = project.ok("repair", "--json").json
    assert (told["recorded"], told["next"]) == ([], ["holdfast run --force-node send"])
    assert project.run("--yes").states["send"] == "reused"
    assert project.ran() == []
    project.run("--yes", "--force-node", "send")
    assert project.ran() == ["send"]
    project.ok("verify")


@pytest.mark.req("I5", "I17")
def test_a_lost_receipt_fails_what_reads_it_and_disturbs_nothing_else(project: Project) -> None:
    send = {"shell": project.sh(LARGE), "effects": "external"}
    reads = {"shell": "cat word; wc -c < $HOLDFAST_INPUTS/send", "inputs": ["word"]}
    other = {"shell": project.sh("cat word"), "inputs": ["word"], "effects": "external"}
    project.write("word", "one")
    project.plan({"send": send, "reads": {**reads, "needs": ["send"]}, "other": other})
    lose(project, str(project.run("--yes").digests["send"]))
    project.ok("repair")
    project.ran()
    project.write("word", "two")
    for _ in range(2):
        found = project.run("--yes")
        assert (found.code, found.states["reads"]) == (1, "failed")
        assert found.states["other"] in {"done", "reused"}
        assert "holdfast amend send FILE, then holdfast run" in found.err
    assert project.ran() == ["other"]
    project.write("sent.txt", "what it gave\n")
    project.ok("amend", "send", "sent.txt")
    assert project.run("--yes").states["reads"] == "done"
    assert project.ran() == []
    project.ok("repair")
    project.ok("verify")


def killed_after_effect(project: Project, **before: Any) -> Path:
    """An engine was killed when an effect outside had been confirmed; the log that it left."""
    steps = {**before, "send": {"shell": project.sh(), "effects": "external"}}
    project.plan({**steps, "waits": {"shell": project.gate("go"), "needs": ["send"]}})
    engine = project.start("run", "--yes")
    until(lambda: project.has_at_gate("go") or engine.poll() is not None)
    assert engine.poll() is None, finish(engine)
    kill(engine)
    project.open("go")
    project.ran()
    log = project.store / "state.db-wal"
    assert log.stat().st_size > 0
    return log


@pytest.mark.req("D07", "I17")
@pytest.mark.parametrize("lost", ["the log", "the database", "the tables"])
def test_a_store_whose_database_is_lost_is_not_taken_for_a_new_one(
    project: Project, lost: str
) -> None:
    log = killed_after_effect(project)
    database = log.with_name("state.db")
    if lost == "the log":
        log.unlink()
    elif lost == "the database":
        log.unlink()
        database.unlink()
    else:
        log.unlink()
        database.write_bytes(b"")
    for words in (("verify",), ("status",), ("plan",), ("run", "--yes"), ("resume",), ("repair",)):
        assert "has lost its tables" in project.refused(9, *words), words
    assert "has lost its tables" in project.call("doctor").out
    assert project.ran() == []
    project.ok("repair", "--start-over", "--yes")
    assert project.run("--yes").states == {"send": "done", "waits": "done"}


def cut_off(log: Path, left: float) -> None:
    """Keep this share of a log."""
    content = log.read_bytes()
    log.write_bytes(content[: int(len(content) * left)])


def remove_with_index(log: Path) -> None:
    log.unlink()
    log.with_name("state.db-shm").unlink()


LOSSES: dict[str, Callable[[Path], None]] = {
    "removed": Path.unlink,
    "removed with its index": remove_with_index,
    "emptied": lambda log: cut_off(log, 0),
    "cut to half": lambda log: cut_off(log, 0.5),
}


@pytest.mark.req("D07", "I17")
@pytest.mark.parametrize("how", LOSSES)
def test_a_lost_log_is_noticed_although_the_database_has_tables(project: Project, how: str) -> None:
    first = {"shell": project.sh()}
    project.plan({"first": first})
    project.run()
    LOSSES[how](killed_after_effect(project, first=first))
    for words in (("verify",), ("status",), ("plan",), ("run", "--yes"), ("resume",), ("repair",)):
        assert "is missing, cut off or damaged" in project.refused(9, *words), words
    assert "is missing, cut off or damaged" in project.call("doctor").out
    assert project.ran() == []
    project.ok("repair", "--start-over", "--yes")
    assert project.run("--yes").states == {"first": "done", "send": "done", "waits": "done"}
    project.ok("verify")


def killed_and_damaged(project: Project) -> tuple[Path, bytes]:
    """An engine was killed after an effect, and a bit in the middle of the log that it left has changed."""
    first = {"shell": project.sh()}
    project.plan({"first": first})
    project.run()
    project.ok("export", "@", "../run.zip")
    project.ok("export", "--all", "../all.zip")
    log = killed_after_effect(project, first=first)
    content = bytearray(log.read_bytes())
    content[len(content) // 2] ^= 4
    log.write_bytes(content)
    return log, bytes(content)


@pytest.mark.req("D07", "I17")
def test_a_log_damaged_in_its_middle_repeats_nothing_unasked(project: Project) -> None:
    """What is left can be read; whoever would write is refused until a person goes on without the rest."""
    log, content = killed_and_damaged(project)
    for words in (("run", "--yes"), ("resume",), ("repair",), ("verify",)):
        assert "cannot be read: it is damaged" in project.refused(9, *words), words
    assert project.ok("status").out
    assert log.read_bytes() == content
    assert project.ran() == []
    (project.store / "state.end").unlink()
    project.plan({"first": {"shell": project.sh()}})
    assert "the log is kept as" in project.ok("run").err
    assert log.with_name("state.db-wal.damaged").read_bytes() == content
    project.ok("verify")


LOOKS = (
    *(
        ("status",),
        ("status", "--json"),
        ("history",),
        ("history", "--all", "--json"),
        ("show", "first"),
    ),
    *(
        ("why", "first"),
        ("approvals",),
        ("plan",),
        ("run", "--dry-run"),
        ("cost",),
        ("plans", "list"),
    ),
    *(("status", "--plan-id", "demo"), ("ui", "--export", "../page.html"), ("store", "status")),
)


@pytest.mark.req("D07", "I17")
def test_whoever_reads_beside_a_damaged_log_is_told_once_what_is_lacking(project: Project) -> None:
    log, content = killed_and_damaged(project)
    for words in LOOKS:
        answer = project.call(*words)
        assert answer.code in {0, 4}, (words, answer)
        (line,) = [line for line in answer.err.splitlines() if "cannot be read" in line]
        assert line.endswith(
            f"commits in '{log}' cannot be read: it is damaged; what is shown ends before them"
        )
        assert "cannot be read" not in answer.out
        assert "--json" not in words or answer.json
    assert log.read_bytes() == content


@pytest.mark.req("D07", "I17")
def test_a_store_with_a_damaged_log_is_neither_a_back_up_nor_added_to(project: Project) -> None:
    """Imported elsewhere, what is left would repeat what was done; nothing is said before the refusal."""
    log, content = killed_and_damaged(project)
    told = f"commits in '{log}' cannot be read: it is damaged\n"
    hint = f"hint: put '{log}' back, or move '{log.parent}' aside and put all of it back from a back-up"
    for words in (
        *(("export", "--all", "../new.zip"), ("export", "@", "../new.zip"), ("push", "../new")),
        *(("import", "../all.zip"), ("import", "../run.zip"), ("import", "../all.zip", "--json")),
        *(("run", "--yes"), ("run", "--yes", "--plan-id", "demo"), ("resume",)),
    ):
        said = project.refused(9, *words)
        if "--json" not in words:
            first, rest = said.split("\n", 1)
            assert first.startswith("error[integrity]: "), words
            assert f"{first}\n".endswith(told), words
            assert rest.startswith(hint), words
    assert not (project.folder / "new.zip").exists()
    doctor = project.call("doctor")
    assert doctor.code == 1
    assert told.rstrip() in doctor.out
    assert hint.removeprefix("hint: ") in doctor.out
    assert log.read_bytes() == content
    assert project.ran() == []


@pytest.mark.req("D07", "I17")
def test_a_lost_log_that_is_put_back_is_as_if_nothing_had_been(project: Project) -> None:
    log = killed_after_effect(project)
    content = log.read_bytes()
    cut_off(log, 0.6)
    for words in (("verify",), ("run", "--yes")):
        project.refused(9, *words)
    log.write_bytes(content)
    assert project.run("--yes").states == {"send": "reused", "waits": "done"}
    assert project.ran() == []


@pytest.mark.req("D07", "I17")
@pytest.mark.parametrize("kept", ["blobs", "state.end"])
def test_a_store_that_lost_its_database_and_its_locks_is_no_new_one(
    project: Project, kept: str
) -> None:
    """What its runs stored, or the word that they stored something, is enough to know it by."""
    effect = {"shell": project.sh(LARGE), "effects": "external"}
    project.plan({"send": effect})
    project.run("--yes")
    project.ran()
    for name in ("state.db", "state.end"):
        if name != kept:
            (project.store / name).unlink()
    (lock,) = project.store.glob("locks/" + "?" * 64 + ".lock")
    lock.unlink()
    if kept != "blobs":
        shutil.rmtree(project.store / "blobs")
    for words in (("verify",), ("status",), ("plan",), ("run", "--yes"), ("repair",)):
        assert "has lost its tables" in project.refused(9, *words), words
    assert project.ran() == []
    project.ok("repair", "--start-over", "--yes")
    project.ok("plan")
    assert project.run("--yes").states == {"send": "done"}
    project.ok("verify")


@pytest.mark.req("D07", "I17")
def test_a_start_over_that_was_cut_short_is_gone_on_with(project: Project) -> None:
    killed_after_effect(project)
    order = project.ok("repair", "--start-over", "--dry-run", "--json").json["moved"]
    assert order == [
        "state.db",
        "state.end",
        "locks",
    ]  # to look has moved the log into the database
    for name in order[:-1]:
        (project.store / name).rename(project.folder / name)
        project.refused(9, "run", "--yes")
    project.ok("repair", "--start-over", "--yes")
    assert project.run("--yes").states == {"send": "done", "waits": "done"}


@pytest.mark.req("D07")
def test_a_start_over_takes_the_log_of_a_killed_engine_along(project: Project) -> None:
    killed_after_effect(project)
    project.ok("repair", "--start-over", "--yes")
    assert project.run("--yes").states == {"send": "done", "waits": "done"}


def directory(place: Path) -> None:
    place.unlink(missing_ok=True)
    place.mkdir()


@pytest.mark.parametrize("name", ["state.db", "state.db-wal", "state.db-shm"])
def test_a_directory_in_place_of_a_file_of_the_database_is_named_by_every_command(
    project: Project, name: str
) -> None:
    project.plan({"one": {"shell": project.sh()}})
    project.run()
    directory(project.store / name)
    for words in (("verify",), ("status",), ("plan",), ("run",), ("repair",)):
        assert f"{name}' is no file" in project.refused(9, *words), words
    assert f"{name}' is no file" in project.call("doctor").out


def dangling(place: Path) -> None:
    place.unlink(missing_ok=True)
    place.symlink_to("nowhere")


@pytest.mark.req("D07")
@pytest.mark.parametrize("become", [directory, dangling])
@pytest.mark.parametrize("name", ["state.db", "state.db-wal", "state.db-shm"])
def test_a_file_of_the_database_that_is_none_is_moved_aside_to_start_over(
    project: Project, name: str, become: Callable[[Path], None]
) -> None:
    project.plan({"send": {"shell": project.sh(), "effects": "external"}})
    project.run("--yes")
    become(project.store / name)
    project.ran()
    for words in (("verify",), ("status",), ("plan",), ("run", "--yes"), ("repair",)):
        assert f"{name}' is no file" in project.refused(9, *words), words
    assert f"{name}' is no file" in project.call("doctor").out
    assert project.ran() == []
    project.ok("repair", "--start-over", "--yes")
    assert project.run("--yes").states == {"send": "done"}
    project.ok("verify")


def file(place: Path) -> None:
    shutil.rmtree(place)
    place.write_text("x")


def nowhere(place: Path) -> None:
    shutil.rmtree(place)
    place.symlink_to("nowhere")


@pytest.mark.req("D07")
@pytest.mark.parametrize("become", [file, nowhere])
@pytest.mark.parametrize("name", ["blobs", "locks", "scratch"])
def test_what_is_no_directory_in_a_store_is_named_until_it_is_gone(
    project: Project, name: str, become: Callable[[Path], None]
) -> None:
    project.plan({"big": {"shell": "seq 1 80000"}})
    project.run()
    become(project.store / name)
    for words in (("verify",), ("status",), ("plan",), ("run",), ("repair",), ("export", "@", "x")):
        said = project.refused(74, *words)
        assert f"{name}' is no directory\nhint: put the directory back, or: mv " in said, words
    assert f"{name}' is no directory" in project.call("doctor").out
    (project.store / name).unlink()
    project.ok("repair")
    assert project.run().states == {"big": "done" if name == "blobs" else "reused"}
    project.ok("verify")


def test_a_directory_of_contents_that_is_none_is_contents_that_are_gone(project: Project) -> None:
    project.plan({"big": {"shell": "seq 1 80000"}})
    digest = project.run().digests["big"]
    folder = project.store / "blobs" / str(digest)[:2]
    file(folder)
    assert f"content '{digest}'" in project.refused(9, "verify")
    folder.unlink()
    project.ok("repair")
    assert project.run().states == {"big": "done"}


@pytest.mark.req("D07")
@pytest.mark.parametrize("name", ["blobs", "blobs/*", "state.db", "scratch", "locks"])
def test_a_store_of_another_user_is_told_by_every_command(
    project: Project, name: str, require_part: Callable[[str], str]
) -> None:
    without = ["--bounding-set", READS_ALL, "--inh-caps", READS_ALL]
    powerless = [] if os.geteuid() else [require_part("setpriv"), *without]
    project.plan({"big": {"shell": "seq 1 80000"}})
    project.run()
    for place in project.store.glob(name):
        place.chmod(0)
    wanted = {"scratch": ["gc"], "locks": ["run", "undo @"]}
    for word in wanted.get(name, ["verify", "run --force", "repair", "gc", "show big"]):
        words = word.split()
        done = subprocess.run(
            [*powerless, *COMMAND, *words],
            cwd=project.root,
            env=project.environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        hint = "\nhint: let your user read and write there"
        assert (done.returncode, hint in done.stderr) == (74, True), (words, done)
    for place in project.store.glob(name):
        place.chmod(0o700)
    project.ok("verify")


def test_what_cannot_be_moved_aside_is_said(project: Project) -> None:
    project.plan({"a": {"shell": "echo a"}})
    project.run()
    (project.store / "quarantine").write_text("")
    said = project.refused(74, "repair", "--start-over", "--yes")
    assert "cannot be moved aside: not a directory\nhint: " in said
    assert (project.store / "state.db").exists()


def test_an_index_of_the_log_that_is_no_file_is_made_again_when_it_is_gone(
    project: Project,
) -> None:
    killed_after_effect(project)
    index = project.store / "state.db-shm"
    directory(index)
    assert f"hint: rm -r {index}" in project.refused(9, "run", "--yes")
    index.rmdir()
    assert project.run("--yes").states == {"send": "reused", "waits": "done"}


@pytest.mark.req("I5")
def test_a_run_that_began_before_says_which_command_makes_again_what_it_needs(
    project: Project,
) -> None:
    need = {"shell": "cat $HOLDFAST_INPUTS/large | wc -c; test -e flag", "needs": ["large"]}
    project.plan({"large": {"shell": project.sh(LARGE)}, "last": need})
    digest = str(project.run().digests["large"])
    damage(project, digest)
    project.write("flag", "")
    assert project.ok("repair", "--json").json["recorded"] == [digest]
    project.ran()
    assert project.refused(9, "resume").endswith("hint: holdfast run\n")
    assert project.run().states == {"large": "done", "last": "done"}
    assert project.ran() == ["large"]
    project.ok("verify")


@pytest.mark.req("D07")
def test_what_is_lost_of_old_runs_is_recorded_and_the_store_is_whole_again(
    project: Project,
) -> None:
    project.plan({"a": {"shell": f"date +%N; {LARGE}"}})
    first = str(project.run().digests["a"])
    project.run("--force")
    damage(project, first)
    told = project.ok("repair", "--json").json
    assert (told["recorded"], told["again"], told["left"]) == ([first], [], [])
    project.ok("verify")
    assert "found by holdfast repair" in project.refused(1, "show", first)
    assert project.run().states == {"a": "reused"}


@pytest.mark.req("I4")
def test_repair_leaves_a_store_alone_that_an_engine_works_on(project: Project) -> None:
    digests = small_and_large(project)
    project.plan({"wait": {"shell": f"touch begun; {project.gate('go')}"}}, file="other.yaml")
    engine = project.start("run", "other.yaml", "--plan-id", "other")
    until(lambda: project.has("begun"))
    damage(project, digests["large"])
    for words in (("repair",), ("repair", "--start-over", "--yes"), REHEARSED):
        said = project.refused(7, *words)
        assert "an engine works on 'other'" in said
    dry = project.call("repair", "--dry-run")
    assert (dry.code, "an engine works on 'other'" in dry.err) == (0, True)
    assert blob_file(project, digests["large"]).parent.name != "quarantine"
    assert (project.store / "state.db").exists()
    project.open("go")
    finish(engine)
    project.ok("repair")


@pytest.mark.req("I3")
def test_repair_makes_the_index_again(project: Project) -> None:
    small_and_large(project)
    with project.database() as database:
        database.execute("DELETE FROM artifact")
    assert project.call("verify").code == 9
    assert project.ok("repair", "--dry-run", "--json").json["rebuilt"] is True
    assert project.call("verify").code == 9
    assert "made again" in project.ok("repair").out
    assert project.ok("verify")


@pytest.mark.req("I4")
def test_repair_changes_no_history_and_starts_over_only_if_asked(project: Project) -> None:
    small_and_large(project)
    with project.database() as database:
        database.execute("DROP TRIGGER event_is_kept")
        database.execute("UPDATE event SET body = '{}' WHERE kind = 'attempt_accepted'")
    answer = project.call("repair", "--json")
    assert answer.code == 9
    assert answer.json["left"]
    assert "--start-over" in answer.json["next"][0]
    project.refused(2, "repair", "--start-over")
    assert project.call("verify").code == 9
    project.ok("repair", "--start-over", "--yes")
    assert (project.store / "quarantine" / "1" / "state.db").exists()
    assert project.run().states == {"small": "done", "large": "done"}
    assert project.ok("verify")


@pytest.mark.req("D07")
@pytest.mark.parametrize(("byte", "value"), [(18, 3), (18, 0), (19, 0), (19, 6)])
def test_a_damaged_header_is_told_by_every_command(project: Project, byte: int, value: int) -> None:
    project.plan({"send": {"shell": project.sh(), "effects": "external"}})
    assert project.run("--yes").code == 0
    project.ran()
    database = project.store / "state.db"
    content = bytearray(database.read_bytes())
    content[byte] = value
    database.write_bytes(content)
    for words in (("run", "--yes"), ("verify", "--all"), ("repair",), ("status",), ("plan",)):
        said = project.refused(9, *words)
        assert "is damaged" in said, words
    assert "is damaged" in project.call("doctor").out
    assert project.ran() == []
    assert "holdfast repair --start-over" in project.refused(9, "run", "--yes")
    project.ok("repair", "--start-over", "--yes")
    assert project.run("--yes").states == {"send": "done"}


def two_steps(project: Project) -> None:
    """A run that came to its end, of a plan whose first step fails without the file `ok`."""
    project.write("in.txt", "1\n")
    project.write("ok", "")
    first = {"shell": project.sh("cat in.txt; test -e ok"), "inputs": ["in.txt"]}
    project.plan({"a": first, "b": {"shell": project.sh("echo hi"), "needs": ["a"]}})
    assert project.run().code == 0
    project.ran()


def other_plan(project: Project) -> None:
    """Flip one bit of the plan that runs keep."""
    with project.database() as connection:
        connection.execute(
            "UPDATE blob SET content = CAST('[' || substr(content, 2) AS BLOB)"
            """ WHERE substr(CAST(content AS TEXT), 1, 14) = '{"description"'"""
        )
        assert connection.changes() == 1


@pytest.mark.req("D07")
def test_a_run_stores_the_plan_again_that_a_disk_damaged(project: Project) -> None:
    two_steps(project)
    other_plan(project)
    project.write("in.txt", "2\n")
    (project.root / "ok").unlink()
    assert project.run().states == {"a": "failed", "b": "skipped"}
    project.ok("verify")
    project.write("ok", "")
    assert project.resume().states == {"a": "done", "b": "done"}


@pytest.mark.req("D07")
def test_repair_stores_a_lost_plan_again_that_its_file_still_says(project: Project) -> None:
    two_steps(project)
    (project.root / "ok").unlink()
    project.write("in.txt", "2\n")
    assert project.run().code == 1
    other_plan(project)
    assert "hint: holdfast repair\n" in project.refused(9, "verify")
    for word in ("status", "plan", "run"):
        assert "hint: holdfast verify\n" in project.refused(9, word)
    again = "the plan of runs was lost: {}stored again as its file says it\n"
    assert again.format("would be ") in project.ok("repair", "--dry-run").out
    project.refused(9, "status")
    assert again.format("") in project.ok("repair").out
    project.ok("verify")
    project.write("ok", "")
    assert project.resume().states == {"a": "done", "b": "done"}
    project.ok("verify")


@pytest.mark.req("D07")
def test_repair_stores_no_other_plan_in_the_place_of_a_lost_one(project: Project) -> None:
    two_steps(project)
    other_plan(project)
    project.plan({"a": {"shell": "echo other"}})
    assert "history: it stays" in project.refused(9, "repair")


@pytest.mark.req("D07")
def test_a_lost_key_of_what_stands_comes_again_with_its_step(project: Project) -> None:
    project.write("in.txt", "1\n")
    first = {"shell": project.sh("echo a; cat in.txt"), "inputs": ["in.txt"]}
    project.plan({"a": first, "b": {"shell": "cat $HOLDFAST_INPUTS/a", "needs": ["a"]}})
    assert project.run().code == 0
    project.ran()
    lose_keys(project)
    way = "holdfast run --force-node a"
    for word in ("run", "repair"):
        project.ok(word)
    said = project.refused(9, "verify")
    assert f"made again by: holdfast repair, then {way}\n" in said
    assert "what 'a' was made of is stored again only if you ask for it" in said
    told = project.ok("repair", "--json").json
    assert (told["next"], told["left"], told["ok"]) == ([way], [], False)
    assert project.ran() == []
    assert project.run("--force-node", "a").code == 0
    project.ok("verify")
    assert project.ok("repair").out == "nothing is damaged\n"


@pytest.mark.req("D07")
def test_a_lost_key_of_what_stands_no_more_is_recorded(project: Project) -> None:
    project.write("in.txt", "1\n")
    project.plan({"a": {"shell": project.sh("cat in.txt"), "inputs": ["in.txt"]}})
    project.run()
    lose_keys(project)
    project.write("in.txt", "2\n")
    assert project.run().codes == {"a": "input_changed"}
    assert "hint: holdfast repair\n" in project.refused(9, "verify")
    assert project.ok("repair").out == "1 content gone: recorded as lost\n"
    project.ok("verify")
    assert project.run().states == {"a": "reused"}


def lose_keys(project: Project) -> None:
    """Remove what steps with inputs were made of."""
    with project.database() as connection:
        connection.execute(
            """DELETE FROM blob WHERE substr(CAST(content AS TEXT), 1, 16) = '{"ext":{"inputs"'"""
        )
        assert connection.changes() == 1


@pytest.mark.req("D07")
def test_steps_of_other_projects_are_told_with_the_project(project: Project) -> None:
    send = {"shell": project.sh(f"echo $PWD; {LARGE}"), "effects": "external"}
    project.plan({"send": send}, project="one")
    assert project.run("--yes").code == 0
    other = project.folder / "other"
    other.mkdir()
    (other / "plan.yaml").write_text(project.read("plan.yaml").replace('"one"', '"two"'))
    at = ("--store", str(project.store))
    assert project.call("run", "--yes", *at, cwd=other).code == 0
    for content in project.store.glob("blobs/??/*"):
        content.unlink()
    here = "holdfast run --force-node send"
    said = project.refused(9, "verify")
    assert f"made again by: holdfast repair, then {here}\nwhat 'send' made, only" in said
    assert f"in project 'two': {here} --plan-id demo\n" in said
    told = project.ok("repair", "--json").json
    assert told["next"] == [here]
    assert [item["project"] for item in told["again"]] == ["one", "two"]
    plain = project.ok("repair").out
    assert plain.startswith("what 'send' made in r-")
    assert "\nproject 'two': what 'send' made in r-" in plain
    assert f"in project 'two': {here} --plan-id demo\n" in plain
    assert project.run("--yes", "--force-node", "send").code == 0
    there = project.refused(9, "verify")
    assert f"hint: holdfast repair\nin project 'two': {here} --plan-id demo\n" in there
    assert project.call("run", "--yes", "--force-node", "send", *at, cwd=other).code == 0
    project.ok("verify")
