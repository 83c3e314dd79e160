"""What accept, undo, guard and diff print, and a run that meets a person's file."""

import json

from tests.cli.project import Project
from tests.cli.screens import Screen


def two_versions(project: Project) -> None:
    notes = {"shell": "printf 'one\ntwo\n' > notes.txt", "produces": "notes.txt"}
    facts = {"shell": "echo '" + json.dumps({"sources": 2, "year": 2026}) + "'"}
    project.plan({"notes": notes, "facts": facts, "old": {"shell": "echo old"}})
    project.run("-j", "1")
    guards = [
        {"regex": {"pattern": "(?i)two"}, "name": "has-two"},
        {"command": ["/bin/sh", "-c", "echo 'line 3 is too long'; exit 1"], "name": "style"},
    ]
    notes = {"shell": "printf 'one\nTWO\nthree\n' > notes.txt", "produces": "notes.txt"}
    facts = {"shell": "echo '" + json.dumps({"sources": 3, "year": 2026, "by": "hand"}) + "'"}
    project.plan({"notes": notes, "facts": facts, "new": {"shell": "echo new"}})
    project.run("-j", "1")
    project.plan(
        {"notes": {**notes, "guards": guards}, "facts": facts, "new": {"shell": "echo new"}}
    )


def test_diff(project: Project, screen: Screen) -> None:
    two_versions(project)
    screen("diff", "@-1", "@", name="diff-summary")
    screen("diff", "@-1", "@", "--outputs", name="diff-outputs")
    screen("diff", "@", "--plan", name="diff-plan")


def test_diff_of_attempts(project: Project, screen: Screen) -> None:
    guard = {"regex": {"pattern": "^2"}, "name": "second"}
    project.plan({"a": {"shell": "echo $HOLDFAST_ATTEMPT", "guards": [guard], "retries": 1}})
    project.run("-j", "1")
    screen("diff", "a@1", "a@2", name="diff-attempts")


def test_guard(project: Project, screen: Screen) -> None:
    two_versions(project)
    screen("guard", "notes", name="guard-rejects")
    screen("guard", "facts", name="guard-none")


def test_accept_and_undo(project: Project, screen: Screen) -> None:
    two_versions(project)
    screen("undo", "@", "--dry-run", name="undo-dry-run")
    screen("accept", "notes", "--from", "@-1", "--because", "wording only", name="accept")
    screen("why", "notes", name="accept-why")
    project.run("-j", "1")
    screen("status", name="accept-status")
    screen("undo", "notes", name="undo-acceptance")
    project.write("notes.txt", "mine\n")
    screen("undo", "@-1", name="undo-run")


def test_a_persons_file_is_named_when_it_is_replaced(project: Project, screen: Screen) -> None:
    two_versions(project)
    project.write("notes.txt", "mine\n")
    screen("accept", "notes", "--from", "@-1", "--because", "x", name="accept-edited")
    screen("run", "-j", "1", "--on-drift", "regenerate", name="run-regenerate")


def test_a_persons_version_that_is_refused_or_replaced(project: Project, screen: Screen) -> None:
    guard = {"regex": {"pattern": "^[a-z]+\n$"}}
    made = {"shell": "cat in.txt > notes.txt", "produces": "notes.txt", "inputs": ["in.txt"]}
    project.plan({"notes": {**made, "guards": [guard]}})
    project.write("in.txt", "one\n")
    project.run()
    project.write("notes.txt", "two words\n")
    screen("run", name="edit-refused")
    screen("status", name="edit-refused-status")
    project.write("notes.txt", "mine\n")
    project.run()
    project.write("in.txt", "three\n")
    screen("plan", name="version-replaced-plan")
    screen("why", "notes", name="version-replaced-why")
    screen("run", name="version-replaced-run")
