"""Coding agents for tests: small scripts that get a prompt and change files."""

import shlex
import sys
from pathlib import Path

from tests.cli.project import Project

FILES = {
    "tides.py": "def height(hour):\n    return 2 + hour % 12\n",
    "check.py": "from tides import mean\n\nassert mean([1, 3]) == 2, 'mean is wrong'\n",
}
WANTED = "---\nid: mean\n---\n# Give the mean of heights\n\n`tides.mean(values)` gives the mean.\n"
CHECK = ("--validate", "python3 check.py")
MEAN = "\n\ndef mean(values):\n    return sum(values) / len(values)\n"
_HEAD = "import json, os, pathlib, subprocess, sys\n"


def coder(project: Project, body: str, name: str = "coder.py") -> str:
    """The words of an agent that does what Python says; `prompt` is what it was told."""
    place = project.folder / name
    place.write_text(f"{_HEAD}prompt = pathlib.Path(sys.argv[1]).read_text()\n{body}")
    return f"{shlex.quote(sys.executable)} {shlex.quote(str(place))} {{prompt_file}}"


def adds(text: str = MEAN, path: str = "tides.py") -> str:
    """A line that puts text at the end of a file."""
    return f"with open({path!r}, 'a') as file: file.write({text!r})\n"


def program(project: Project, name: str, body: str, version: str = "1.0") -> str:
    """A program of that name that tells its version; the PATH with it."""
    folder = project.folder / "programs"
    folder.mkdir(exist_ok=True)
    place = folder / name
    place.write_text(
        f"#!{sys.executable}\n{_HEAD}"
        f"if '--version' in sys.argv:\n    print('{name} {version}')\n    sys.exit()\n{body}"
    )
    place.chmod(0o755)
    return f"{folder}:{project.environment()['PATH']}"


# An agent that speaks the protocol: `ask` sends a request and gives its result or error.
PROTOCOL = """
def send(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def ask(method, **params):
    ask.number += 1
    send({"id": f"a{ask.number}", "method": method, "params": {"sessionId": "s1", **params}})
    answer = json.loads(sys.stdin.readline())
    return answer.get("result", answer.get("error"))


ask.number = 0


def say(text):
    update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}
    send({"method": "session/update", "params": {"sessionId": "s1", "update": update}})


def may(kind, *paths, title="do it"):
    call = {"toolCallId": f"c{ask.number}", "kind": kind, "title": title,
            "locations": [{"path": path} for path in paths]}
    options = [{"optionId": "yes", "name": "Yes", "kind": "allow_once"},
               {"optionId": "always", "name": "Always", "kind": "allow_always"},
               {"optionId": "no", "name": "No", "kind": "reject_once"}]
    return ask("session/request_permission", toolCall=call, options=options)["outcome"]["optionId"]


def begin(version=1):
    asked = json.loads(sys.stdin.readline())
    assert asked["method"] == "initialize" and asked["params"]["protocolVersion"] == 1
    info = {"name": "small", "version": "0.1"}
    send({"id": asked["id"], "result": {"protocolVersion": version, "agentInfo": info}})
    asked = json.loads(sys.stdin.readline())
    assert asked["method"] == "session/new" and asked["params"]["mcpServers"] == []
    send({"id": asked["id"], "result": {"sessionId": "s1"}})
    top = asked["params"]["cwd"]
    asked = json.loads(sys.stdin.readline())
    assert asked["method"] == "session/prompt"
    return top, asked["params"]["prompt"][0]["text"], asked["id"]


def end(number, reason="end_turn"):
    send({"id": number, "result": {"stopReason": reason}})
    sys.stdin.read()
"""


def speaker(project: Project, body: str) -> str:
    """The words of an agent that speaks the protocol."""
    place: Path = project.folder / "speaker.py"
    place.write_text(f"{_HEAD}{PROTOCOL}\n{body}")
    return f"acp:{shlex.quote(sys.executable)} {shlex.quote(str(place))}"
