"""Frames of all kinds at a server that really runs, and what must hold of every answer.

What a tool takes is read from its own schema: a new tool, or a new argument, is tried by itself. Each frame
has an id of its own, and is sent when the one before it was answered: so a second answer to anything, or none
at all, is seen at once.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import apsw
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from holdfast.mcp.prompts import PAGES
from holdfast.mcp.tools import OFFERS
from holdfast.model import line
from holdfast.model.event import StepWaived
from holdfast.store.codec import kind_of_class
from tests.cli.project import Project
from tests.crash.report import Report

PERSONS = (  # what only a person says
    *(line.ApprovalDecided, line.ApprovalRevoked, line.ConflictDecided, line.ReplanAnswered),
    *(line.Pinned, line.Unpinned, line.StepAmended, line.StepAccepted, line.StepUndone),
    *(line.SkipRequested, StepWaived),
)
CODES = frozenset({-32700, -32600, -32601, -32602, -32000, -32002, -32020, -32021, -32022})
METHODS = (
    *("ping", "tools/list", "resources/list", "resources/templates/list", "prompts/list"),
    *("resources/read", "prompts/get", "initialize", "completion/complete", "logging/setLevel"),
    *(
        "resources/subscribe",
        "server/discover",
        "sampling/createMessage",
        "no/such",
        "",
        "tools/Call",
    ),
)
HOSTILE = (
    *("--help", "-x", "--store=/nowhere", "@", "@-1", "@-999999999999", "@1", "made@1", "made@²"),
    *("../../etc/passwd", "/etc/passwd", "\x00", "\x1b[2J\u202e", "$(touch /nowhere/x)", "²", "٣"),
    *("HEAD", "--upload-pack=x", "HEAD~99999", "x" * 4096, "x" * 5000, "{0.__class__}", "%s%n"),
)
PLANS = (
    "name: sent\nsteps:\n  a: {shell: echo 1}\n",
    "name: sent\nsteps:\n  a: {shell: echo 1, approve: never}\n",
    "name: [",
    "steps: {a: {needs: [a]}}",
    "&a [*a]",
    "!!python/object:os.system x",
    "\x00",
)
SHORT = 0.02  # seconds that somebody waits here at most


@dataclass(frozen=True)
class Frame:
    """What is sent, and whether somebody waits for an answer."""

    words: bytes
    number: int | str | None
    waits: bool = True


def known(project: Project) -> dict[str, list[str]]:
    """Values that lead somewhere in this store."""
    run = project.status("@").data
    asked = project.ok("approvals", "--json").json["approvals"]
    assert asked
    digests = [step["digest"] for step in run["steps"].values() if step["digest"]]
    seen = project.ok("plan", "--json").json
    return {
        "run_id": [run["run"], "@", "@-1"],
        "ref": [*run["steps"], *digests, "made@1"],
        "step": list(run["steps"]),
        "approval_id": [one["approval"] for one in asked],
        "plan_hash": [str(seen.get("plan_hash", "x"))],
        "plan": list(PLANS),
        "a": [run["run"], "@", "plan.yaml", "made@1"],
        "b": [run["run"], "@"],
        "cursor": ["0", "1", "99999999"],
    }


# --- what is sent -----------------------------------------------------------------------------------------

ANY: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20)
    | st.sampled_from(HOSTILE),
    lambda one: st.lists(one, max_size=3) | st.dictionaries(st.text(max_size=5), one, max_size=3),
    max_leaves=8,
)


def fitting(name: str, schema: Mapping[str, Any], values: Mapping[str, list[str]]) -> Any:
    """What a schema allows, as a strategy; values that lead somewhere are drawn as often as all others."""
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    kind = schema.get("type")
    if name == "wait_s":
        return st.floats(0, SHORT)
    if kind == "array":
        return st.lists(fitting("step", schema["items"], values), max_size=3)
    if kind in {"number", "integer"}:
        return st.integers(0, 2**60) if kind == "integer" else st.floats(0, 1000)
    if kind == "boolean":
        return st.booleans()
    good = values.get(name, ["x"])
    return st.sampled_from([*good * (len(HOSTILE) * 3 // len(good)), *HOSTILE]) | st.text()


@st.composite
def arguments(draw: st.DrawFn, takes: Mapping[str, Any], values: Mapping[str, list[str]]) -> Any:
    """The arguments of a tool: right, nearly right, or anything."""
    how = draw(st.sampled_from(["right"] * 4 + ["lacks", "more", "wrong", "anything"]))
    if how == "anything":
        return draw(ANY)
    named = takes["properties"]
    wanted = [one for one in named if one in takes["required"] or not draw(st.integers(0, 3))]
    found = {one: draw(fitting(one, named[one], values)) for one in wanted}
    if how == "lacks" and found:
        found.pop(draw(st.sampled_from(sorted(found))))
    if how == "more":
        found[draw(st.text(max_size=8))] = draw(ANY)
    if how == "wrong" and named:
        found[draw(st.sampled_from(sorted(named)))] = draw(ANY)
    return found


def parameters(operation: str, values: Mapping[str, list[str]]) -> st.SearchStrategy[Any]:
    """The params of a method, right or nearly so."""
    offers = {one.name: one for one in OFFERS}
    if operation in offers:
        given = arguments(offers[operation].takes, values)
        return st.fixed_dictionaries({"name": st.just(operation), "arguments": given})
    runs = st.sampled_from([*values["run_id"], *HOSTILE])
    addresses = st.sampled_from(["plan://current", "ledger://gaps", "file:///etc/passwd", "run://"])
    addresses |= st.builds("run://{}".format, runs)
    addresses |= st.builds(
        "step://{}/{}".format, runs, st.sampled_from([*values["step"], *HOSTILE])
    )
    some: dict[str, st.SearchStrategy[Any]] = {
        "resources/read": st.fixed_dictionaries({"uri": addresses | st.text()}),
        "prompts/get": st.fixed_dictionaries(
            {
                "name": st.sampled_from([*PAGES, "no"]),
                "arguments": st.dictionaries(
                    st.sampled_from(["goal", "run", "no"]), st.sampled_from(HOSTILE) | ANY
                ),
            }
        ),
        "initialize": st.fixed_dictionaries(
            {
                "protocolVersion": st.sampled_from(["2025-06-18", "1999-01-01", ""]) | ANY,
                "capabilities": st.just({"elicitation": {}}) | ANY,
                "clientInfo": st.just({"name": "x", "version": "1"}) | ANY,
            }
        ),
    }
    return some.get(operation, st.just({})) | ANY


@st.composite
def frames(
    draw: st.DrawFn, operation: str, values: Mapping[str, list[str]], count: list[int]
) -> Frame:
    """One frame: mostly a request as it should be, else one that is none."""
    count[0] += 1
    number: Any = draw(st.sampled_from([count[0], f"id-{count[0]}", -count[0], 2**70 + count[0]]))
    method = "tools/call" if operation in {one.name for one in OFFERS} else operation
    frame: dict[str, Any] = {"jsonrpc": "2.0", "id": number, "method": method}
    frame["params"] = draw(parameters(operation, values))
    how = draw(
        st.sampled_from(["request"] * 8 + ["news", "lacks", "more", "id", "deep", "cut", "many"])
    )
    if how == "news":
        frame["method"] = draw(st.sampled_from(["notifications/unheard", "notifications/progress"]))
        del frame["id"]
        is_wrong = not isinstance(frame["params"], dict)
        return Frame(json.dumps(frame).encode(), None, waits=is_wrong)
    if how == "lacks":
        frame.pop(draw(st.sampled_from(["jsonrpc", "method"])))
    if how == "more":
        frame[draw(st.text(min_size=1, max_size=8))] = draw(ANY)
    if how == "id":
        frame["id"] = number = draw(st.sampled_from([None, [], {}, 1.5, True, "x" * 300]))
    words = json.dumps([frame] * 3 if how == "many" else frame).encode()
    if how == "deep":
        words = words.replace(
            b'"params"', b'"params": ' + b"[" * 300 + b'"x"' + b"]" * 300 + b', "y"', 1
        )
    if how == "cut":
        part = draw(st.integers(1, 999))  # in thousandths: a length hangs on the number drawn
        words = words[: max(1, len(words) * part // 1000)]
    usable = isinstance(number, str | int) and not isinstance(number, bool)
    return Frame(words, number if usable else None)


# --- what must hold ---------------------------------------------------------------------------------------


def faults(frame: Frame, answer: Any) -> Iterator[str]:
    """What is wrong with an answer."""
    if not isinstance(answer, dict) or answer.get("jsonrpc") != "2.0":
        yield "it is no answer of JSON-RPC"
        return
    if answer.get("id", "nothing") not in {frame.number, None}:
        yield f"the id is {answer.get('id')!r}"
    if ("result" in answer) == ("error" in answer):
        yield "it has no result and no error, or both"
    text = json.dumps(answer)
    if "Traceback" in text or "this is a bug" in text or '"HF-BUG' in text:
        yield "something broke"
    if "error" in answer:
        error = answer["error"]
        if error.get("code") not in CODES or not isinstance(error.get("message"), str):
            yield f"the error is {error}"
        elif len(error["message"]) > 500:
            yield "the message is too long"
    elif "content" in answer["result"] and answer["result"].get("isError"):
        told = answer["result"].get("structuredContent", {})
        code = told.get("error", {}).get("code")
        if "exit_code" not in told and (not code or code == "bug"):
            yield f"a refusal without a type: {told}"


def decided(eye: apsw.Connection) -> int:
    """How many events there are that only a person may cause."""
    kinds = [kind_of_class(one) for one in PERSONS]
    marks = ",".join("?" * len(kinds))
    rows = eye.execute(f"SELECT count(*) FROM event WHERE kind IN ({marks})", kinds).fetchall()
    return int(str(rows[0][0]))


def operations() -> list[str]:
    """Every tool and every method, known or not."""
    return [*(one.name for one in OFFERS), *METHODS]


def swept(
    ask: Callable[[Frame], Any],
    strategy: st.SearchStrategy[Frame],
    count: int,
    number: int,
    report: Report,
) -> None:
    """Send so many frames; what is wrong stands in the report, with the frame."""

    @seed(number)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def asked(frame: Frame) -> None:
        answer = ask(frame)
        report.tried += 1
        if not frame.waits:
            report.outcomes["news"] += 1
            wrong = "" if answer is None else "news were answered"
        else:
            wrong = "; ".join(faults(frame, answer))
            refused = "error" in answer or answer.get("result", {}).get("isError")
            report.fired += bool(refused)
            report.work += not refused
            report.outcomes["refused" if refused else "done"] += 1
        if wrong:
            report.violations.append(f"{report.name}: {wrong}: {frame.words[:300]!r}")

    asked()
