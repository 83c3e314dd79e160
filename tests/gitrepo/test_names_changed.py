"""Changed names for git: what passes the checks is used, means what it says, and starts nothing."""

import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from holdfast import gitrepo
from holdfast.errors import HoldfastError, UsageError
from holdfast.gitrepo import Allowed, Client, Identity, Wish, Worktree
from holdfast.gitrepo.names import check_address, check_branch, check_path, check_revision
from tests.crash.report import Report
from tests.gitrepo.repository import git
from tests.gitrepo.scene import ANN, Scene, scene
from tests.gitrepo.test_arguments import ADDRESSES, PATHS, REFS, STRANGE, marked

PIECES = (
    *(
        "-",
        "--",
        "/",
        "..",
        "@{",
        "~",
        "^",
        ":",
        "$(touch MARK)",
        "`touch MARK`",
        ";touch MARK;",
        "\n",
    ),
    *(
        " ",
        "=",
        "ext::",
        "::",
        "HEAD",
        "main",
        "refs/heads/",
        ".git/",
        "hooks/",
        "\\",
        "'",
        '"',
        "é",
        "\u202e",
    ),
)
CORPUS = (
    *REFS,
    *ADDRESSES,
    *PATHS,
    *STRANGE,
    "main",
    "side",
    "feature/x",
    "notes/a.txt",
    "/srv/x.git",
)
CRUD = " .,:;<>\"\\'" + "".join(map(chr, range(33)))  # what git takes from the ends of a name
EVERYTHING = Allowed(frozenset({"file", "ssh", "https", "git"}))


def changed(count: int) -> Iterator[str]:
    """Seeded changes of everything that was ever tried."""
    for number in range(count):
        dice = random.Random(f"name {number}")
        text = dice.choice(CORPUS)[:200]
        for _ in range(dice.choice((0, 1, 1, 2, 3))):
            at = dice.randrange(len(text) + 1)
            match dice.randrange(4):
                case 0:
                    text = text[:at] + dice.choice(PIECES) + text[at:]
                case 1:
                    text = text[:at] + text[at + dice.randrange(4) :]
                case 2:
                    text = dice.choice(PIECES) + text
                case _:
                    text = text.replace(dice.choice(PIECES), dice.choice(PIECES), 1)
        yield text


def uses(at: Scene, client: Client, tree: Worktree) -> dict[str, Callable[[str, int], object]]:
    """What a stranger's name can become, each with the check that stands before it."""

    def branch(name: str, number: int) -> None:
        check_branch(name)
        gitrepo.create_branch(client, name)
        oid = gitrepo.resolve(client, name)
        assert oid == gitrepo.resolve(client, "main"), name
        gitrepo.delete_branch(client, name, old=oid)

    def revision(name: str, number: int) -> None:
        check_revision(name)
        gitrepo.log(client, name)

    def path(name: str, number: int) -> None:
        check_path(name)
        place = Path(tree.folder) / name
        place.parent.mkdir(parents=True, exist_ok=True)
        assert place.resolve().is_relative_to(Path(tree.folder).resolve()), name
        place.write_text(f"{number}\n")
        made = gitrepo.commit(tree, f"-m {name}", name, identity=ANN)
        assert gitrepo.show_file(client, made.oid, name) == f"{number}\n".encode()

    def address(name: str, number: int) -> None:
        check_address(name)
        if not name.startswith(("/", "file:")):
            return  # it would be asked for outside of this machine
        gitrepo.push(client, name, [Wish("main", "main")], allowed=EVERYTHING)

    def person(name: str, number: int) -> None:
        who = Identity(name, name)
        made = gitrepo.commit_files(client, {"a": b"a"}, name or "x", onto="main", identity=who)
        found = gitrepo.show(client, made.oid).author.name
        assert found == who.name.strip(CRUD), name

    return {
        "branch": branch,
        "revision": revision,
        "path": path,
        "address": address,
        "person": person,
    }


def swept(count: int, folder: Path, report: Report) -> None:
    """Try every change in every place; look for marks and moved branches after each that passed."""
    at = scene(folder / "scene")
    client = at.client()
    tree = gitrepo.add_worktree(client, "fix", "holdfast/fix")
    before, hooks = git(at.root, "for-each-ref"), sorted((at.root / ".git/hooks").iterdir())
    config = (at.root / ".git/config").read_bytes()
    kinds = uses(at, client, tree)
    for number, text in enumerate(changed(count)):
        name = marked(text, folder)
        for kind, use in kinds.items():
            report.tried += 1
            try:
                use(name, number)
                report.work += 1
                report.outcomes[f"{kind} used"] += 1
            except UsageError:
                report.fired += 1
                report.outcomes[f"{kind} refused"] += 1
            except (HoldfastError, OSError) as error:
                report.outcomes[f"{kind} failed"] += 1
                if "Traceback" in str(error):
                    report.violations.append(f"{kind} {text!r}: {error}")
            except AssertionError as error:
                report.violations.append(f"{kind} {text!r} meant something else: {error}")
        if (folder / "mark").exists():
            report.violations.append(f"{text!r} left a mark")
            (folder / "mark").unlink()
    with suppress(FileNotFoundError):
        assert (at.root / ".git/config").read_bytes() == config
    if (
        git(at.root, "for-each-ref") != before
        or sorted((at.root / ".git/hooks").iterdir()) != hooks
    ):
        now = git(at.root, "for-each-ref")
        report.violations.append(
            f"the person's repository was changed: {set(before.split()) ^ set(now.split())}"
        )


@pytest.mark.req("D25")
def test_a_few_changed_names_are_refused_or_literal(
    tmp_path: Path, sweep: Callable[[Report], None]
) -> None:
    report = Report("changed names of git", "other")
    swept(25, tmp_path, report)
    sweep(report)
    assert not report.violations, report.violations[:10]
    assert min(report.fired, report.work) > 0


@pytest.mark.soak("other")
@pytest.mark.req("D25")
def test_changed_names_are_refused_or_literal(
    tmp_path: Path, sweep: Callable[[Report], None]
) -> None:
    report = Report("changed names of git", "other", total=5 * 2_000)
    swept(2_000, tmp_path, report)
    sweep(report)
    assert not report.violations, report.violations[:10]
    assert min(report.fired, report.work) > 1_000
