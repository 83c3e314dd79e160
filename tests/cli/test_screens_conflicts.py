"""The screens of a conflict: found, shown, settled."""

from tests.cli.project import Project
from tests.cli.screens import Screen


def test_a_conflict_from_end_to_end(project: Project, screen: Screen) -> None:
    copied = {"workspace": "scratch", "effects": "workspace", "inputs": "notes.txt"}
    project.write("notes.txt", "notes\n")
    project.plan(
        {
            "left": {"shell": "echo left > notes.txt", **copied},
            "right": {"shell": "echo right > notes.txt; rm -f x; echo new > new.txt", **copied},
            "below": {"shell": "cat notes.txt", "needs": "right"},
        }
    )
    screen("run", "-j", "1", name="run")
    screen("status", name="status")
    screen("why", "right", "--run", "@", name="why")
    screen("resolve", "right", "--take", "nobody", name="resolve-nobody")
    screen("resolve", "right", "--take", "right", name="resolve")
    screen("resume", name="resume")
    screen("show", "right", name="show")
    screen("undo", "right", name="undo")
