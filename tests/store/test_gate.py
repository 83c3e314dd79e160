"""Which SQLite and which disk may carry a store."""

from pathlib import Path

import pytest

from holdfast.errors import StoreError
from holdfast.store.gate import check_file_system, check_sqlite, file_system, file_system_in
from holdfast.store.sqlite import SqliteStore


@pytest.mark.parametrize("version", ["3.51.3", "3.53.0", "3.54.1", "4.0.0", "3.50.7", "3.44.6"])
def test_a_sound_sqlite_is_taken(version: str) -> None:
    check_sqlite(version)


@pytest.mark.parametrize(
    "version", ["3.40.1", "3.44.5", "3.45.0", "3.49.9", "3.50.6", "3.51.0", "3.51.2"]
)
def test_a_sqlite_that_can_lose_pages_is_refused(version: str) -> None:
    with pytest.raises(StoreError, match=f"SQLite {version} can damage"):
        check_sqlite(version)


@pytest.mark.req("D09")
@pytest.mark.parametrize("kind", ["nfs", "nfs4", "cifs", "smb3", "fuse", "fuse.sshfs", "9p"])
def test_a_store_on_a_network_file_system_is_refused_with_advice(kind: str, tmp_path: Path) -> None:
    place = tmp_path / "store"
    with pytest.raises(StoreError, match=f"type '{kind}'") as caught:
        SqliteStore.open(str(place), create=True, kind_of_disk=lambda _: kind)
    assert caught.value.hint == "use a local disk or PostgreSQL"
    assert not place.exists()


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs", "tmpfs", "apfs", "overlay", ""])
def test_a_local_file_system_is_taken(kind: str) -> None:
    check_file_system(kind, "somewhere")


MOUNTS = """\
22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
30 22 0:26 / /mnt/my\\040share rw shared:1 master:2 - nfs4 server:/x rw
31 22 0:27 / /mnt rw - tmpfs none rw
32 31 0:28 / /mnt/deep rw - xfs /dev/vdb rw
33 31 0:29 / /mnt/deep rw - fuse.sshfs host: rw
broken line
"""


@pytest.mark.parametrize(
    "path,kind",
    [
        ("/", "ext4"),
        ("/home/a", "ext4"),
        ("/mnt", "tmpfs"),
        ("/mntx", "ext4"),
        ("/mnt/a", "tmpfs"),
        ("/mnt/my share/store", "nfs4"),
        ("/mnt/deep/er", "fuse.sshfs"),
    ],
)
def test_the_mount_above_a_path_decides(path: str, kind: str) -> None:
    assert file_system_in(MOUNTS, path) == kind


def test_the_type_of_a_real_disk_is_known_or_empty(tmp_path: Path) -> None:
    check_file_system(file_system(str(tmp_path / "not" / "yet")), str(tmp_path))
