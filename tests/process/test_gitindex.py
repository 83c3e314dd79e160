"""The index of git is read as git reads it."""

from pathlib import Path

import pytest

from holdfast.process.gitindex import submodules_in
from tests.gitrepo.repository import git

COMMITS = {"sha1": "1" * 40, "sha256": "1" * 64}
FORMS = [["--index-version", "2"], ["--index-version", "4"], ["--split-index"]]


@pytest.mark.parametrize("digests", ["sha1", "sha256"])
def test_submodules_are_those_that_git_names(tmp_path: Path, digests: str) -> None:
    git(tmp_path, "init", "-q", f"--object-format={digests}", ".")
    for name in ("a", "deep/aa", "deep/ab", "deep/b/c", "e", "not-yet"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    git(tmp_path, "add", "a", "deep", "e")
    git(tmp_path, "add", "-N", "not-yet")
    wanted = ["deep/ab-lib", "deep/b/lib", "lib", "z/lib"]
    for name in wanted:
        git(tmp_path, "update-index", "--add", "--cacheinfo", f"160000,{COMMITS[digests]},{name}")
    for form in FORMS:
        git(tmp_path, "update-index", *form)
        assert sorted(submodules_in(str(tmp_path / ".git"), str(tmp_path / ".git"))) == wanted
    (tmp_path / ".git/index").write_bytes(b"DIRC\0\0\0\2\0\0\0\7" + b"\0\0\xe0\0")
    assert set(submodules_in(str(tmp_path / ".git"), str(tmp_path / ".git"))) <= set(wanted)
