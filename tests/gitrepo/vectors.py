"""What a hostile repository can configure to be started, each with a plain command of git that starts it."""

import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.gitrepo.repository import WHO, git


@dataclass(frozen=True)
class Trap:
    """Programs that leave a mark when they are started: one for each vector."""

    folder: Path

    def program(self, vector: str) -> str:
        place = self.folder / f"{vector}.sh"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(f"#!/bin/sh\ntouch '{self.folder}/{vector}.mark'\n")
        place.chmod(0o755)
        return str(place)

    def marks(self) -> list[str]:
        return sorted(path.stem for path in self.folder.glob("*.mark"))


Plant = Callable[[Path, str], None]


def config(*keys: str, more: tuple[tuple[str, str], ...] = ()) -> Plant:
    def plant(root: Path, program: str) -> None:
        for key in keys:
            git(root, "config", key, program)
        for key, value in more:
            git(root, "config", key.replace("PROGRAM", program), value.replace("PROGRAM", program))

    return plant


def hooks(folder: str, *names: str) -> Plant:
    def plant(root: Path, program: str) -> None:
        place = root / ".git" / folder
        place.mkdir(exist_ok=True)
        for name in names:
            (place / name).unlink(missing_ok=True)
            (place / name).symlink_to(program)
        if folder != "hooks":
            git(root, "config", "core.hooksPath", str(place))

    return plant


def included(root: Path, program: str) -> None:
    (root / ".git/more").write_text(f"[core]\n\tfsmonitor = {program}\n")
    git(root, "config", "include.path", "more")


def of_worktree(root: Path, program: str) -> None:
    git(root, "config", "extensions.worktreeConfig", "true")
    (root / ".git/config.worktree").write_text(f"[core]\n\tfsmonitor = {program}\n")


def bare_inside(root: Path, program: str) -> None:
    place = root / "vendor"
    git(root, "init", "-q", "--bare", str(place))
    more = f"\tworktree = {root}/vendor\n\tfsmonitor = {program}\n"
    (place / "config").write_text(f"[core]\n\trepositoryformatversion = 0\n\tbare = false\n{more}")
    exclude(root, "vendor")


def repository_inside(root: Path, program: str) -> None:
    place = root / "nested"
    place.mkdir()
    git(place, "init", "-q")
    (place / "n.txt").write_text("n\n")
    git(place, "add", "-A")
    git(place, "commit", "-q", "-m", "nested")
    git(root, "-c", "advice.addEmbeddedRepo=false", "add", "nested")
    git(root, "commit", "-q", "-m", "nested")
    git(place, "config", "core.fsmonitor", program)


def submodule(root: Path, program: str) -> None:
    (root / ".gitmodules").write_text(
        '[submodule "sub"]\n\tpath = sub\n\turl = ./nowhere\n\tupdate = none\n'
    )
    oid = git(root, "rev-parse", "HEAD").strip()
    git(root, "update-index", "--add", "--cacheinfo", f"160000,{oid},sub")
    git(root, "add", ".gitmodules")
    git(root, "commit", "-q", "-m", "sub")
    (root / "sub").mkdir()
    git(root, "init", "-q", "sub")
    git(root / "sub", "fetch", "-q", str(root), "HEAD")
    git(root / "sub", "checkout", "-q", "--detach", "FETCH_HEAD~1")
    git(root, "config", "submodule.sub.update", f"!{program}")
    git(root, "config", "submodule.sub.url", str(root))
    git(root, "config", "submodule.sub.active", "true")


def signed(root: Path, program: str) -> None:
    commit = git(root, "cat-file", "commit", "HEAD")
    top, _, body = commit.partition("\n\n")
    fake = "gpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----"
    text = f"{top}\n{fake}\n\n{body}"
    made = subprocess.run(
        ["git", "hash-object", "-t", "commit", "-w", "--stdin"],
        cwd=root,
        input=text,
        capture_output=True,
        text=True,
        check=True,
    )
    git(root, "update-ref", "refs/heads/main", made.stdout.strip())
    git(root, "config", "gpg.program", program)
    git(root, "config", "log.showSignature", "true")


def included_by_place(root: Path, program: str) -> None:
    (root / ".git/placed").write_text(f"[core]\n\tfsmonitor = {program}\n")
    git(root, "config", "includeIf.gitdir:**.path", "placed")


def attributes(where: str, row: str, *keys: str) -> Plant:
    """Files get a driver from a place that is not in the tree."""

    def plant(root: Path, program: str) -> None:
        place = root / ".git" / where
        place.parent.mkdir(exist_ok=True)
        place.write_text(f"{row}\n")
        for key in keys:
            git(root, "config", key, program)
        if where != "info/attributes":
            git(root, "config", "core.attributesFile", str(place))

    return plant


def exclude(root: Path, pattern: str) -> None:
    with (root / ".git/info/exclude").open("a") as file:
        file.write(f"{pattern}\n")


ALL_HOOKS = (
    *("pre-commit", "post-commit", "prepare-commit-msg", "commit-msg", "post-checkout"),
    *("post-index-change", "reference-transaction", "pre-push", "pre-rebase", "post-rewrite"),
    *("post-merge", "pre-applypatch", "applypatch-msg", "pre-auto-gc", "fsmonitor-watchman"),
)
# Each vector, and the words of plain git that start it: proof that the trap works.
VECTORS: dict[str, tuple[Plant, tuple[str, ...]]] = {
    "fsmonitor": (config("core.fsmonitor"), ("status",)),
    "hooks-path": (hooks("elsewhere", *ALL_HOOKS), ("commit", "--allow-empty", "-m", "x")),
    "hook": (hooks("hooks", *ALL_HOOKS), ("commit", "--allow-empty", "-m", "x")),
    "hook-no-verify": (
        hooks("hooks", "post-commit", "prepare-commit-msg", "reference-transaction"),
        ("commit", "--no-verify", "--allow-empty", "-m", "x"),
    ),
    "diff-external": (config("diff.external"), ("diff", "HEAD~1")),
    "diff-command": (config("diff.trap.command"), ("diff", "HEAD~1")),
    "textconv": (config("diff.trap.textconv"), ("diff", "HEAD~1")),
    "filter-clean": (config("filter.trap.clean"), ("hash-object", "--path=x.trap", "a.txt")),
    "filter-smudge": (
        config("filter.trap.smudge"),
        ("cat-file", "--filters", "HEAD:x.trap"),
    ),
    "filter-process": (
        config("filter.trap.process", more=(("filter.trap.required", "true"),)),
        ("cat-file", "--filters", "HEAD:x.trap"),
    ),
    "merge-driver": (
        config(more=(("merge.trap.driver", "PROGRAM %A"),)),
        ("merge", "side", "-m", "x"),
    ),
    "gpg-sign": (
        config("gpg.program", more=(("commit.gpgSign", "true"), ("tag.gpgSign", "true"))),
        ("commit", "--allow-empty", "-m", "x"),
    ),
    "gpg-verify": (signed, ("log", "-1")),
    "ext": (
        config(
            more=(
                ("protocol.ext.allow", "always"),
                ("remote.origin.url", "ext::PROGRAM"),
            )
        ),
        ("push", "origin", "main"),
    ),
    "instead-of": (
        config(
            more=(
                ("protocol.ext.allow", "always"),
                ("url.ext::sh -c PROGRAM% .insteadOf", "https://"),
                ("url.ext::sh -c PROGRAM% x.insteadOf", "/"),
            )
        ),
        ("push", "https://localhost/x", "main"),
    ),
    "ssh-command": (
        config("core.sshCommand", more=(("remote.origin.url", "ssh://localhost/x"),)),
        ("push", "origin", "main"),
    ),
    "git-proxy": (
        config("core.gitProxy", more=(("remote.origin.url", "git://localhost/x"),)),
        ("push", "origin", "main"),
    ),
    "receive-pack": (
        config("remote.origin.receivepack", more=(("remote.origin.url", "./.git"),)),
        ("push", "origin", "main"),
    ),
    "credential-helper": (
        config(more=(("credential.helper", "!PROGRAM"),)),
        ("credential", "fill"),
    ),
    "ask-pass": (config("core.askPass"), ("credential", "fill")),
    "alias": (config(more=(("alias.x", "!PROGRAM"),)), ("x",)),
    "pager": (config("core.pager", more=(("pager.branch", "true"),)), ("-p", "log")),
    "editor": (config("core.editor"), ("commit", "--allow-empty")),
    "sequence-editor": (config("sequence.editor"), ("rebase", "-i", "HEAD~1")),
    "include": (included, ("status",)),
    "config-worktree": (of_worktree, ("status",)),
    "bare-inside": (bare_inside, ("-C", "vendor", "status")),
    "repository-inside": (repository_inside, ("status",)),
    "submodule-update": (submodule, ("submodule", "update", "--force")),
    "trailer-command": (
        config("trailer.x.command", more=(("trailer.x.key", "X"), ("trailer.x.ifmissing", "add"))),
        ("interpret-trailers", "a.txt"),
    ),
}
SIGNS = (("commit.gpgSign", "true"), ("tag.gpgSign", "true"), ("user.signingKey", "k"))
VECTORS |= {
    f"hook-{name}": (hooks("hooks", name), words)
    for name, words in {
        "post-checkout": ("checkout", "side"),
        "pre-merge-commit": ("merge", "--no-edit", "-X", "ours", "side"),
        "post-merge": ("merge", "--no-edit", "-X", "ours", "side"),
        "pre-push": ("push", "../bare.git", "main"),
        "post-index-change": ("rm", "-q", "--cached", "a.txt"),
        "reference-transaction": ("branch", "x"),
        "pre-rebase": ("rebase", "side"),
        "post-rewrite": ("commit", "--amend", "--allow-empty", "-m", "y"),
        "commit-msg": ("commit", "--allow-empty", "-m", "x"),
    }.items()
}
VECTORS |= {
    "upload-pack": (
        config("remote.origin.uploadpack", more=(("remote.origin.url", "./.git"),)),
        ("fetch", "origin"),
    ),
    "diff-tool": (
        config("difftool.trap.cmd", more=(("diff.tool", "trap"),)),
        ("difftool", "-y", "HEAD~1"),
    ),
    "browser": (
        config("browser.trap.cmd", more=(("web.browser", "trap"),)),
        ("web--browse", "a.txt"),
    ),
    "trailer-cmd": (
        config("trailer.y.cmd", more=(("trailer.y.key", "Y"),)),
        ("interpret-trailers", "--trailer", "y=1", "a.txt"),
    ),
    "credential-of-host": (
        config(more=(("credential.https://localhost.helper", "!PROGRAM"),)),
        ("credential", "fill"),
    ),
    "include-by-place": (included_by_place, ("status",)),
    "attributes-file": (
        attributes("more-attributes", "*.txt diff=far", "diff.far.textconv"),
        ("diff", "HEAD~1"),
    ),
    "attributes-info": (
        attributes("info/attributes", "*.trap filter=near", "filter.near.clean"),
        ("hash-object", "--path=x.trap", "a.txt"),
    ),
    "sign-ssh": (
        config("gpg.ssh.program", more=(("gpg.format", "ssh"), *SIGNS)),
        ("commit", "--allow-empty", "-m", "x"),
    ),
    "sign-x509": (
        config("gpg.x509.program", more=(("gpg.format", "x509"), *SIGNS)),
        ("commit", "--allow-empty", "-m", "x"),
    ),
    "sign-key-command": (
        config("gpg.ssh.defaultKeyCommand", more=(("gpg.format", "ssh"), *SIGNS[:2])),
        ("commit", "--allow-empty", "-m", "x"),
    ),
}
COMMITTING = ("repository-inside", "submodule-update")  # planted first: the others break commits
# The first hides other hooks, the second rewrites a branch, the others stand in place of others.
NOT_TOGETHER = {"hooks-path", "gpg-verify", "attributes-info", "sign-x509", "sign-key-command"}


def fire(root: Path, words: tuple[str, ...]) -> None:
    """Run a plain command of git, as somebody in that directory would."""
    env = {"PATH": os.environ["PATH"], "HOME": str(root), "TERM": "dumb", **WHO}
    subprocess.run(
        ["git", *words],
        cwd=root,
        env=env,
        input=b"protocol=https\nhost=localhost\n\n",
        capture_output=True,
        check=False,
        timeout=20,
    )
