"""export and import: a back-up is the store again, a run is history, a bad file is nothing."""

import hashlib
import io
import json
import re
import shutil
import stat
import struct
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import UsageError
from holdfast.store.archive import Archive
from holdfast.store.codec import first_hash, next_hash
from tests.cli.here import run_here
from tests.cli.project import Project, finish, kill, until

LARGE = "head -c 40000 /dev/zero | tr '\\0' x"


def lay(project: Project) -> None:
    project.plan(
        {
            "a": {"shell": project.sh("echo one")},
            "b": {"shell": project.sh(LARGE), "needs": ["a"]},
            "c": {
                "shell": project.sh("cat $HOLDFAST_INPUTS/a > one.txt; echo 2 > two.txt"),
                "needs": ["a"],
                "produces": ["one.txt", "two.txt"],
            },
        }
    )


def elsewhere(project: Project) -> Project:
    """The same plan in a project that has no store."""
    place = project.folder / "elsewhere"
    place.mkdir()
    other = Project(place)
    other.granted = project.folder
    shutil.copy(project.root / "plan.yaml", other.root / "plan.yaml")
    other.log = project.log
    return other


def test_a_back_up_of_a_store_that_an_engine_writes_is_of_one_moment(project: Project) -> None:
    project.plan({f"s{n}": {"shell": f"seq {n} 9999"} for n in range(60)})
    engine, made = project.start("run", "-j", "2"), 0
    until(lambda: project.call("status").code != 2)  # there is a run
    while engine.poll() is None and made < 12:
        project.ok("export", "--all", f"../{made}.zip")
        made += 1
    finish(engine)
    assert made
    for number in range(made):
        store = f"../{number}"
        project.ok("import", f"../{number}.zip", "--store", store, "--yes")
        project.ok("verify", "--store", store)


def test_a_back_up_is_the_store_again(project: Project) -> None:
    lay(project)
    first = run_here(project)
    project.ok("pin", "@")
    project.ok("amend", "a", "-", stdin=b"mine\n")
    second = run_here(project)
    project.ok("export", "--all", "../all.zip")
    other = elsewhere(project)
    other.ok("import", "../../all.zip")
    project.ran()
    for words in (("history", "--json"), ("pin", "--list", "--json"), ("trace", "@", "--json")):
        assert other.ok(*words).out == project.ok(*words).out
    assert other.ok("verify", "--json").json["problems"] == []
    theirs, ours = other.why("b"), project.why("b")
    for part in ("decision", "reason", "changed", "unchanged"):
        assert theirs[part] == ours[part]
    assert set(run_here(other).counts.items()) >= {("reused", 3), ("done", 0)}
    assert project.ran() == []
    assert other.read("one.txt") == "mine\n"
    assert other.ok("rebuild", "--json").json["changed"] is False
    assert first.run != second.run


def test_a_back_up_twice_changes_nothing_and_spares_another_history(project: Project) -> None:
    lay(project)
    run_here(project)
    project.ok("export", "--all", "all.zip")
    assert "is there already" in project.refused(2, "export", "--all", "all.zip")
    assert "nothing changed" in project.ok("import", "all.zip").out
    run_here(project)
    assert "nothing changed" in project.ok("import", "all.zip").out
    other = elsewhere(project)
    run_here(other)
    said = other.refused(2, "import", str(project.root / "all.zip"))
    assert "has a history of its own" in said


def test_a_run_becomes_history_and_is_never_reused_by_itself(project: Project) -> None:
    lay(project)
    run = run_here(project).run
    project.ok("export", "@", "run.zip")
    file = str(project.root / "run.zip")
    other = elsewhere(project)
    project.ran()
    answer = other.ok("import", file, "--json").json
    assert answer["schema"] == "holdfast.import/1"
    assert answer["files"][0]["plan"]["steps"] == ["a", "b", "c"]
    assert answer["files"][0]["changed"] is True
    assert project.ran() == []
    (told,) = other.ok("history", "--json").json["runs"]
    assert (told["run"], told["status"], told["imported"]) == (run, "imported", True)
    assert other.status(run).states == {"a": "done", "b": "done", "c": "done"}
    assert other.ok("verify", "--json").json["problems"] == []
    other.refused(2, "resume", run)
    assert "imported: the history of another store" in other.ok("status", run).out
    assert other.ok("plan", "--json").json["totals"]["run"] == 3
    assert "no run yet" in other.refused(2, "undo", "a"), "nothing of it is done here"
    said = other.ok("accept", "a", "--from", "@", "--because", "checked by hand", "--json").json
    assert (said["from"], said["changed"]) == (run, True), "the only run there is"
    mine = run_here(other)
    assert mine.previous is None
    assert project.ran() == ["b", "c"]
    assert other.ok("import", file, "--json").json["files"][0]["changed"] is False
    assert other.ok("rebuild", "--json").json["changed"] is False
    assert other.status().id == other.status("@").id == mine.run, "an own one comes first"


def test_an_unfinished_back_up_is_restored_only_with_a_yes(project: Project) -> None:
    project.plan({"a": {"shell": project.sh(project.gate("go"))}})
    kill(project.begun_by("run", step="a"))
    project.ok("export", "--all", "all.zip")
    file, other = str(project.root / "all.zip"), elsewhere(project)
    assert "--yes" in other.refused(2, "import", file)
    assert not other.store.exists()
    other.ok("import", file, "--yes")
    project.open("go")
    assert other.resume().code == 0


def test_what_was_purged_does_not_travel(project: Project) -> None:
    lay(project)
    run_here(project)
    for secret in (b"one\n", b"2\n"):
        digest = hashlib.sha256(secret).hexdigest()
        project.ok("purge", digest, "--because", "x", "--yes")
    assert project.ok("verify", "--json").json["problems"] == []
    project.ok("export", "@", "run.zip")
    other = elsewhere(project)
    other.ok("import", str(project.root / "run.zip"))
    assert other.ok("verify", "--json").json["problems"] == []
    assert other.ok("rebuild", "--json").json["changed"] is False


# --- files that are not what they say ------------------------------------------------------------

Entries = dict[str, bytes]


def unpacked(path: Path) -> Entries:
    with zipfile.ZipFile(path) as file:
        return {name: file.read(name) for name in file.namelist()}


def packed(path: Path, entries: Entries) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in entries.items():
            file.writestr(name, content)


def head(entries: Entries, change: Callable[[Any], None]) -> None:
    body = json.loads(entries["holdfast.json"])
    change(body)
    entries["holdfast.json"] = json.dumps(body).encode()


def forged(entries: Entries, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the bodies of events and make a chain that holds again, as an attacker can."""
    body = json.loads(entries["holdfast.json"])
    (journal,) = body["journals"]
    chain, lines = first_hash(journal["name"]), []
    for line in entries[journal["file"]].splitlines():
        item = json.loads(line)
        event = json.loads(item["body"])
        change({"kind": item["kind"], "event": event})
        item["body"] = json.dumps(event, separators=(",", ":"))
        chain = next_hash(chain, item["seq"], item["at"], item["kind"], item["body"])
        lines.append(json.dumps({**item, "hash": chain.hex()}).encode() + b"\n")
    entries[journal["file"]] = b"".join(lines)
    head(entries, lambda data: data["journals"][0].update(hash=chain.hex()))


def first(entries: Entries, start: str) -> str:
    return next(name for name in entries if name.startswith(start))


def _rename(entries: Entries, old: str, new: str) -> None:
    entries[new] = entries.pop(first(entries, old))


def _edit(entries: Entries, start: str, change: Callable[[bytes], bytes]) -> None:
    name = first(entries, start)
    entries[name] = change(entries[name])


def _without_head(entries: Entries) -> None:
    del entries["holdfast.json"]


def _without_runs(entries: Entries, kind: str = "run") -> None:
    for name in [name for name in entries if name.startswith("journals/")]:
        del entries[name]
    head(entries, lambda data: data.update(kind=kind, runs=[], journals=[]))


def _strange(field: str, value: object) -> Callable[[dict[str, Any]], None]:
    def change(item: dict[str, Any]) -> None:
        if field in item["event"]:
            item["event"][field] = value

    return change


def _odd_plan(content: bytes) -> Callable[[Entries], None]:
    def spoil(entries: Entries) -> None:
        digest = hashlib.sha256(content).hexdigest()
        entries[f"contents/{digest[:2]}/{digest}"] = content
        forged(entries, _strange("plan", digest))

    return spoil


def _learned(entries: Entries, body: str = "", **parts: object) -> None:
    whole = {"run": "r-1", "last": 1, "hash": "0" * 64, "by": "ann", **parts}
    head(entries, lambda data: data.update(learned=body or json.dumps(whole)))


BAD: dict[str, tuple[Callable[[Entries], None], str]] = {
    "path": (lambda e: _rename(e, "contents/", "contents/../../x"), "does not belong"),
    "absolute": (lambda e: e.update({"/etc/passwd": b""}), "does not belong"),
    "shard": (lambda e: _rename(e, "contents/", f"contents/zz/{'0' * 64}"), "does not belong"),
    "digest": (lambda e: _rename(e, "contents/", f"contents/00/{'0' * 64}"), "not what its name"),
    "content": (lambda e: _edit(e, "contents/", lambda old: old + b"!"), "not what its name"),
    "event": (lambda e: _edit(e, "journals/", lambda o: o.replace(b"run", b"ran", 1)), "broken"),
    "cut": (lambda e: _edit(e, "journals/", lambda old: old[: old.rindex(b'{"seq')]), "not end"),
    "json": (lambda e: _edit(e, "journals/", lambda _: b"[" * 100_000), "nested too deeply"),
    "end": (lambda e: _edit(e, "journals/", lambda old: old[:-9]), "cannot be read: it is no JSON"),
    "digits": (lambda e: _edit(e, "journals/", lambda _: b"9" * 5_000), "has another form"),
    "entry": (lambda e: _edit(e, "journals/", lambda old: b"{}\n" + old), "event 1 of journal"),
    "half a head": (
        lambda e: _edit(e, "holdfast", lambda old: old[:30]),
        "its holdfast.json cannot",
    ),
    "deep head": (lambda e: _edit(e, "holdfast", lambda _: b"[" * 100_000), "nested too deeply"),
    "latin head": (lambda e: _edit(e, "holdfast", lambda _: b'"\xff"'), "it is not UTF-8"),
    "no kind": (lambda e: head(e, lambda d: d.pop("kind")), "missing or has another form"),
    "last": (lambda e: head(e, lambda d: d["journals"][0].update(last="x")), "has another form"),
    "journals": (lambda e: e.update({"journals/000002.jsonl": b""}), "not the ones it names"),
    "no journal": (lambda e: head(e, lambda d: d["journals"].clear()), "not the ones it names"),
    "no runs": (_without_runs, "it holds no run"),
    "no runs at all": (lambda e: _without_runs(e, kind="store"), "it holds no run"),
    "list": (lambda e: head(e, lambda d: d["contents"].append("x")), "contents that are none"),
    "runs": (lambda e: head(e, lambda d: d["runs"].append(d["runs"][0])), "twice"),
    "run id": (lambda e: head(e, lambda d: d["runs"][0].update(run="r-../x")), "no proper id"),
    "line": (lambda e: head(e, lambda d: d["runs"][0].update(line="x")), "its journal tells of"),
    "number": (lambda e: head(e, lambda d: d["runs"][0].update(number=-1)), "cannot be"),
    "kind": (lambda e: head(e, lambda d: d.update(kind="all")), "it holds a 'all'"),
    "newer": (lambda e: head(e, lambda d: d.update(schema="holdfast.export/2")), "format 2"),
    "foreign": (lambda e: head(e, lambda d: d.update(schema="other/1")), "no export"),
    "no head": (_without_head, "no export"),
    "type": (lambda e: forged(e, _strange("duration_ms", "long")), "strange 'duration_ms'"),
    "ref": (lambda e: forged(e, _strange("config_ref", "../x")), "strange 'config_ref'"),
    "engine": (lambda e: forged(e, _strange("engine", None)), "strange 'engine'"),
    "step": (lambda e: forged(e, _strange("step", "nowhere")), "no step of this plan"),
    "field": (lambda e: forged(e, lambda item: item["event"].update(x=1)), "unknown field 'x'"),
    "plan": (lambda e: forged(e, _strange("plan", "0" * 64)), "is missing"),
    "list as plan": (_odd_plan(b"[]"), "cannot be read"),
    "odd steps": (
        _odd_plan(b'{"schema": "holdfast.plan/1", "name": "x", "steps": {"a": 5}}'),
        "cannot be read",
    ),
    "deep plan": (_odd_plan(b"[" * 200_000), "cannot be read"),
    "no plan": (_odd_plan(b"\xff\x00"), "cannot be read"),
    "artifact": (lambda e: forged(e, _strange("digest", "0" * 64)), "is missing"),
    "learned": (lambda e: _learned(e, "[]"), "'run_imported' is not a JSON object"),
    "told": (lambda e: _learned(e, told=[[1, 1, "r-1", "a", 1, "x", "y", "z"]]), "strange 'told'"),
    "handoff": (lambda e: _learned(e, told=[[1, 1, "r-1", "a", 1, *["0" * 64] * 3]]), "is missing"),
    "word": (lambda e: _learned(e, said=[[1, 1, "shout", "a", "", "", None, None]]), "'said'"),
    "kept apart": (lambda e: _learned(e, said=[[1, 1, "gap"]]), "lacks a field"),
}


LIBRARY = re.compile(r"recursion|Unterminated|object has|indices|literal|codec|convert|: '\w+'$")


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    project = Project(tmp_path_factory.mktemp("good"))
    lay(project)
    run_here(project)
    project.ok("export", "@", "run.zip")
    return project.root / "run.zip"


@pytest.mark.req("D34", "R68")
def test_bad_files_are_refused_and_nothing_is_written(project: Project, good: Path) -> None:
    for name, (spoil, _) in BAD.items():
        entries = unpacked(good)
        spoil(entries)
        packed(project.root / f"{name}.zip", entries)
    names = [f"{name}.zip" for name in BAD]
    answer = project.call("import", *names, "--json")
    assert answer.code == 2, answer.err
    for name, told in zip(BAD, answer.json["files"], strict=True):
        assert told["result"] == "refused", name
        assert BAD[name][1] in told["errors"][0], (name, told["errors"])
        assert not LIBRARY.search(told["errors"][0]), (name, told["errors"])
    assert not project.store.exists() or not list(project.store.glob("blobs/??/*"))


def _hollow(entries: Entries) -> None:
    """A content of zeros under its right name, larger than the file by far."""
    zeros = bytes(200 << 20)
    digest = hashlib.sha256(zeros).hexdigest()
    entries[f"contents/{digest[:2]}/{digest}"] = zeros


def _long(entries: Entries, start: str) -> None:
    _edit(entries, start, lambda old: old.replace(b"{", b"{" + b" " * (33 << 20), 1))


BOMBS: dict[str, tuple[Callable[[Entries], None], str]] = {
    "hollow": (_hollow, "unpacks to"),
    "head": (lambda e: _long(e, "holdfast.json"), "its holdfast.json is too large"),
    "event": (lambda e: _long(e, "journals/"), "has an event that is too large"),
    "nested": (lambda e: e.update({"nested.zip": b"PK"}), "does not belong"),
}


def _linked(path: Path, entries: Entries, kind: int, to: str) -> None:
    """Entries that say they are links or devices; the first has a name that is a content's."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in entries.items():
            info = zipfile.ZipInfo(name)
            is_content = name.startswith("contents/")
            info.external_attr = (kind | 0o777) << 16 if is_content else 0
            file.writestr(info, to if is_content else content)


def _endless(path: Path) -> None:
    """A listing of more than a million names, and nothing else."""
    line = struct.pack("<4s6H3L5H2L", b"PK\1\2", *[0] * 9, 1, *[0] * 6) + b"x"
    listing = line * 1_500_000
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 1, 1, len(listing), 0, 0)
    path.write_bytes(listing + end)


@pytest.mark.req("D34", "R68")
def test_hostile_archives_are_refused_within_their_limits(project: Project, good: Path) -> None:
    for name, (spoil, _) in BOMBS.items():
        entries = unpacked(good)
        spoil(entries)
        packed(project.root / f"{name}.zip", entries)
    said = {f"{name}.zip": words for name, (_, words) in BOMBS.items()}
    for name, kind in (("link", stat.S_IFLNK), ("device", stat.S_IFCHR)):
        _linked(project.root / f"{name}.zip", unpacked(good), kind, str(project.root / "MARK"))
        said[f"{name}.zip"] = "not what its name says"
    _endless(project.root / "listing.zip")
    said["listing.zip"] = "it lists too much"
    with tarfile.open(project.root / "tape.tar", "w") as tape:
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, "../.."
        tape.addfile(link)
    said["tape.tar"] = "no export"
    before = sorted(project.folder.rglob("*"))
    answer = project.call("import", *said, "--json")
    assert answer.code == 2, answer.err
    told = {item["file"]: item["errors"][0] for item in answer.json["files"]}
    assert {name for name in said if said[name] not in told[name]} == set(), told
    left = [path for path in sorted(project.folder.rglob("*")) if path not in before]
    assert [path for path in left if project.store not in (path, *path.parents)] == []
    assert not list(project.store.glob("blobs/??/*"))
    more = (
        "'holdfast import --max-size SIZE FILE' allows more"  # also where there is no such option
    )
    for words in (["import"], ["ui", "--export", "x.html"]):
        assert more in project.refused(2, *words, "hollow.zip")
    project.ok("import", "hollow.zip", "--max-size", "300MB")


@pytest.mark.parametrize("listed", [True, False], ids=["listed", "older"])
def test_no_content_can_be_taken_out(project: Project, good: Path, listed: bool) -> None:
    whole = unpacked(good)
    if not listed:
        head(whole, lambda data: data.pop("contents"))
    two = hashlib.sha256(b"2\n").hexdigest()
    names = [name for name in whole if name.startswith("contents/")]
    for name in names:
        packed(project.root / f"{name[-64:]}.zip", {n: b for n, b in whole.items() if n != name})
    answer = project.call("import", *(f"{name[-64:]}.zip" for name in names), "--json")
    told = {item["file"][:64]: item for item in answer.json["files"]}
    refused = {digest for digest, item in told.items() if item["result"] == "refused"}
    assert all(digest in told[digest]["errors"][0] for digest in refused)
    assert two in refused, "a file of an artifact of several files"
    if listed:
        assert len(refused) == len(names)
    packed(project.root / "whole.zip", whole)
    project.ok("import", "whole.zip")
    assert project.ok("verify", "--json").json["problems"] == []


def test_a_name_that_is_there_twice_is_refused(tmp_path: Path, good: Path) -> None:
    twice = tmp_path / "twice.zip"
    shutil.copy(good, twice)
    with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(twice, "a") as file:
        file.writestr("holdfast.json", b"{}")
    with pytest.raises(UsageError, match="is in it twice"):
        Archive.open(str(twice))


def test_more_than_is_allowed_is_refused_before_it_is_unpacked(tmp_path: Path, good: Path) -> None:
    with pytest.raises(UsageError, match="unpacks to"):
        Archive.open(str(good), max_bytes=10_000)
    bomb = tmp_path / "bomb.zip"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("holdfast.json", b"{}")
        with file.open("contents/00/" + "0" * 64, "w") as to:
            for _ in range(64):
                to.write(bytes(1 << 20))
    assert bomb.stat().st_size < 100_000
    with pytest.raises(UsageError, match="unpacks to"):
        Archive.open(str(bomb), max_bytes=60 << 20)


def test_a_cut_or_foreign_file_is_refused(tmp_path: Path, good: Path) -> None:
    whole, refused = good.read_bytes(), 0
    with Archive.open(str(good)) as sound:
        names = list(sound.contents())
    broken = tmp_path / "broken.zip"
    for size in range(0, len(whole), max(1, len(whole) // 40)):
        broken.write_bytes(whole[:size])
        with pytest.raises(UsageError):
            Archive.open(str(broken))
    for place in range(30, len(whole), max(1, len(whole) // 80)):
        spoiled = bytearray(whole)
        spoiled[place] ^= 0xFF
        broken.write_bytes(spoiled)
        try:
            found = Archive.open(str(broken))
        except UsageError:
            refused += 1
        else:  # a date or a flag that means nothing: all that counts was checked
            assert list(found.contents()) == names
            found.close()
    assert refused > 50
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_BZIP2) as file:
        file.writestr("holdfast.json", b"{}")
    broken.write_bytes(stream.getvalue())
    with pytest.raises(UsageError, match="compressed"):
        Archive.open(str(broken))


def test_what_is_no_export_is_said(project: Project) -> None:
    project.plan({"a": {"shell": "true"}})
    said = project.refused(2, "import", "plan.yaml", "--format", "archive")
    assert "'plan.yaml' is no export of holdfast" in said
    project.write("notes.txt", "not one either")
    assert "'notes.txt' is no export of holdfast" in project.refused(2, "import", "notes.txt")
    assert "cannot be read" in project.refused(2, "import", "nowhere.zip")
