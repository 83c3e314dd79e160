"""Which contents are kept when an attempt starts, and which are not."""

import os
from pathlib import Path

import pytest

from holdfast.engine.evidence import EACH, TOGETHER, Keeper, Texts
from holdfast.model.digest import Digest, Json, digest_bytes
from holdfast.ports import Batch
from holdfast.store.memory import MemoryStore


def put(root: Path, path: str, content: bytes) -> list[Json]:
    place = root / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(content)
    return [digest_bytes(content), False]


def kept(root: Path, inputs: dict[str, Json], store: MemoryStore | None = None) -> set[str]:
    keeper = Keeper(str(root), store or MemoryStore())
    return {content.decode() for _, content in keeper.keep({"inputs": inputs})}


@pytest.mark.req("R169")
def test_small_texts_are_kept_and_nothing_else(tmp_path: Path) -> None:
    inputs: dict[str, Json] = {
        "a.md": put(tmp_path, "a.md", b"text\n"),
        "b.bin": put(tmp_path, "b.bin", b"\0\1"),
        "c.txt": put(tmp_path, "c.txt", b"\xff latin"),
        "d.txt": put(tmp_path, "d.txt", b"x" * (EACH + 1)),
        "gone.txt": [digest_bytes(b"gone"), False],
        "moved.txt": [put(tmp_path, "moved.txt", b"now")[0], False],
    }
    (tmp_path / "moved.txt").write_text("changed since")
    assert kept(tmp_path, inputs) == {"text\n"}


def test_files_that_hold_secrets_or_lie_outside_are_left_out(tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("elsewhere")
    root = tmp_path / "project"
    names = (".env", "deep/.env.local", "server.pem", "id_rsa", "secrets.yaml", "Credentials.json")
    inputs: dict[str, Json] = {name: put(root, name, name.encode()) for name in names}
    (root / "link.txt").symlink_to(outside)
    inputs["link.txt"] = [digest_bytes(b"elsewhere"), False]
    inputs["fine.txt"] = put(root, "fine.txt", b"fine")
    assert kept(root, inputs) == {"fine"}


def test_a_step_keeps_at_most_so_much_together(tmp_path: Path) -> None:
    inputs: dict[str, Json] = {
        f"{n:02}.txt": put(tmp_path, f"{n:02}.txt", f"{n:02}\n".encode() * (EACH // 3))
        for n in range(19)
    }
    most = sum(len(text) for text in kept(tmp_path, inputs))
    assert TOGETHER - EACH < most <= TOGETHER


def test_what_is_stored_already_is_not_stored_again(tmp_path: Path) -> None:
    store = MemoryStore()
    inputs: dict[str, Json] = {"a.md": put(tmp_path, "a.md", b"text\n")}
    store.commit(Batch(blobs=[(digest_bytes(b"text\n"), b"text\n")]))
    assert kept(tmp_path, inputs, store) == set()
    keeper = Keeper(str(tmp_path), MemoryStore())
    assert len(keeper.keep({"inputs": inputs})) == 1
    assert keeper.keep({"inputs": inputs}) == [], "once is enough for one engine"


def test_a_special_file_is_never_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert kept(tmp_path, {"pipe": [digest_bytes(b""), False]}) == set()


def test_a_text_that_is_gone_is_no_error(tmp_path: Path) -> None:
    texts = Texts(MemoryStore(), str(tmp_path))
    digest = Digest(digest_bytes(b"now\n"))
    assert texts.kept("a", digest) is None
    assert texts.now("a", digest) is None
    put(tmp_path, "a", b"now\n")
    assert texts.now("a", digest) == "now\n"
    (tmp_path / "a").write_text("later\n")
    assert texts.now("a", digest) is None
