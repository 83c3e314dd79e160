"""What a CI is told, and where artifacts come from, on screen."""

import json

from tests.cli.project import Project
from tests.cli.screens import Screen


def test_what_a_ci_is_told(project: Project, screen: Screen) -> None:
    project.plan(
        {
            "read": {"shell": "echo text"},
            "write": {
                "needs": ["read"],
                "shell": "echo draft",
                "guards": [{"name": "tidy", "command": ["sh", "check.sh"]}],
            },
            "publish": {"needs": ["write"], "shell": "echo done"},
        }
    )
    project.write("check.sh", "echo the draft is not tidy; exit 1\n")
    screen("ci", "report", "--preview", "-o", "report", name="preview")
    project.run()
    screen("ci", "report", "-o", "report", name="report")
    screen(
        "ci", "report", "-o", "report", "--for", "github", name="report-github", modes=("plain",)
    )
    screen("ci", "key", name="key", modes=("plain",))
    screen("init", "--ci", "github", name="init-ci")


def test_where_an_artifact_comes_from(project: Project, screen: Screen) -> None:
    project.plan({"a": {"shell": "echo 1 > a.txt", "produces": "a.txt"}})
    project.run()
    screen("attest", "a", "-o", "a.json", name="attest")
    screen("attest", "b", name="attest-unknown")
    project.ok("attest", "a", "-o", "a.json")
    screen("verify", "--attestation", "a.json", name="verify")
    told = json.loads(project.read("a.json"))
    told["predicate"]["holdfast_verified"] = True
    told["subject"][0]["digest"]["sha256"] = "0" * 64
    project.write("a.json", json.dumps(told))
    screen("verify", "--attestation", "a.json", name="verify-changed")
