"""What the page and the server for agents say of a run, as bytes: the other faces of what commands show."""

import json
import signal
from collections.abc import Iterator
from urllib.parse import quote

from holdfast.mcp.reading import PARTS
from holdfast.web.drawer import VIEWS
from holdfast.web.screens import SCREENS, TABS
from tests.cli.project import Project
from tests.mcp.bare import Bare
from tests.web.site import serve


def pages(project: Project, run: str) -> Iterator[tuple[str, bytes]]:
    """Every screen of the page, every tab of the run, every view of its steps, every content of them."""
    steps = project.status(run).states
    site = serve(project)
    site.enter()
    views = [
        f"/step?step={quote(step, safe='')}&view={view}" for step in steps for view, _ in VIEWS
    ]
    paths = ["/", *(path for path, _ in SCREENS), *(f"/runs/{run}{tab.path}" for tab in TABS)]
    digests = [digest for digest in project.status(run).digests.values() if digest]
    contents = [f"/content/{digest.rpartition(':')[2]}" for digest in digests]
    try:
        for path in (*paths, *(f"/runs/{run}{view}" for view in views), *contents):
            found = site.ask(path)
            assert found.status == 200, (path, found.status, found.body[:200])
            head = "".join(f"{name}: {value}\n" for name, value in found.headers.items())
            yield f"page {path}", head.encode() + found.body
    finally:
        site.process.send_signal(signal.SIGTERM)
        site.process.wait()


def answers(project: Project, run: str) -> Iterator[tuple[str, bytes]]:
    """Every resource of the run, and every tool that looks at it."""
    steps = list(project.status(run).states)
    uris = ["plan://current", "ledger://gaps", f"run://{run}"]
    uris += [f"step://{run}/{step}" for step in steps]
    tools: list[tuple[str, dict[str, str]]] = [
        ("plan_preview", {}),
        ("run_status", {"run_id": run}),
        ("diff", {"a": run, "b": run}),
        ("ledger_query", {}),
    ]
    for step in steps:
        tools += [("step_read", {"run_id": run, "ref": step, "part": part}) for part in PARTS]
        tools.append(("why", {"run_id": run, "step": step}))
    with Bare(project) as client:
        client.shake_hands()
        for uri in uris:
            found = client.request("resources/read", {"uri": uri})
            assert "result" in found, found
            yield f"resource {uri}", json.dumps(found, ensure_ascii=False).encode()
        for name, given in tools:
            found = client.request("tools/call", {"name": name, "arguments": given})
            assert "result" in found, found
            assert not found["result"].get("isError"), (name, given, found)
            yield f"tool {name} {given}", json.dumps(found, ensure_ascii=False).encode()
        client.close()
        yield "what the server said beside", client.said
