"""The tools: their names, what they take, what they do to the world, in the order in which they are shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from mcp.types import Tool, ToolAnnotations

from holdfast.cli.ledger import PARTS as LEDGER
from holdfast.cli.money import MOST
from holdfast.mcp.acting import ledger_add, run_control, run_start
from holdfast.mcp.answer import Answer
from holdfast.mcp.asking import diff, ledger_query, why
from holdfast.mcp.desk import Desk
from holdfast.mcp.given import CURSOR, SELECT, TEXT, Given, described, schema
from holdfast.mcp.people import answered, question
from holdfast.mcp.previews import Previews, plan_preview
from holdfast.mcp.reading import PARTS, step_read
from holdfast.mcp.statuses import WAIT, run_status
from holdfast.model.digest import Json

Call = Callable[[Desk, Previews, Given], Answer]
RUN = described(
    "A run by its id, a unique beginning of it, or @ (the last), @-1 (the one before).", **TEXT
)
MONEY = described(
    "Dollars that it may spend on models in all.", type="number", minimum=0, exclusiveMaximum=MOST
)


@dataclass(frozen=True, slots=True)
class Offer:
    """One tool, and the function behind it."""

    name: str
    title: str
    words: str
    takes: Mapping[str, Json]
    call: Call
    acts: bool = False
    idempotent: bool = False
    outside: bool = False
    after: str = "run_status"  # what to look at if it cannot be done

    def tool(self) -> Tool:
        """As a client is told of it."""
        hints = ToolAnnotations(
            title=self.title,
            read_only_hint=not self.acts,
            destructive_hint=False if self.acts else None,
            idempotent_hint=self.idempotent if self.acts else None,
            open_world_hint=self.outside,
        )
        return Tool(
            name=self.name,
            title=self.title,
            description=self.words,
            input_schema=dict(self.takes),
            annotations=hints,
        )


OFFERS = (
    Offer(
        "plan_preview",
        "Preview the plan",
        "What a run would do now: each step that would run or wait, why, and what it costs. Gives the "
        "plan_hash that run_start needs. Nothing is run or written.",
        schema(
            plan=described(
                "The text of another plan (YAML or JSON), in place of the plan of this server. It runs only "
                "after a person approved it.",
                type="string",
                minLength=1,
            ),
            select=SELECT,
            against=described("Compare with a run or a git revision.", **TEXT),
            cursor=CURSOR,
        ),
        plan_preview,
        after="plan_preview",
    ),
    Offer(
        "run_start",
        "Start a run",
        "Run what plan_preview just showed, in the background; gives the run_id at once. Refused if anything "
        "changed since, and says what. Models may cost up to max_cost_usd in all.",
        schema(
            ("plan_hash", "max_cost_usd"),
            plan_hash=described("The plan_hash of the preview.", **TEXT),
            max_cost_usd=MONEY,
            select=SELECT,
            replace_waiting=described(
                "Take the place of a run that waits for a person.", type="boolean"
            ),
            key=described(
                "Begin at most one run under this key: said again, it gives that run, or goes on with it.",
                **TEXT,
            ),
        ),
        run_start,
        acts=True,
        outside=True,
        after="plan_preview",
    ),
    Offer(
        "run_status",
        "Where a run stands",
        "Where a run stands: its steps, its money, what waits for a person. With wait_s it answers when the "
        "run ends or rests, or after so many seconds; with since too, when somebody "
        "answered what it rests for.",
        schema(
            run_id=RUN,
            wait_s=described(
                "Seconds to wait for the run.", type="number", minimum=0, maximum=WAIT
            ),
            since=described(
                "The seq of the answer before: only steps that changed since.",
                type="integer",
                minimum=0,
            ),
            cursor=CURSOR,
        ),
        lambda desk, _, given: run_status(desk, given),
        after="plan_preview",
    ),
    Offer(
        "run_control",
        "Resume, pause, stop or retry",
        "resume: go on with a run that rests or whose engine died. pause: stop after the running steps. "
        "stop: stop now. retry: try a failed step again. What is done stays done.",
        schema(
            ("run_id", "action"),
            run_id=RUN,
            action={"enum": ["resume", "pause", "stop", "retry"]},
            step=described("The step to retry.", **TEXT),
            max_cost_usd=MONEY,
        ),
        lambda desk, _, given: run_control(desk, given),
        acts=True,
        outside=True,
    ),
    Offer(
        "step_read",
        "Read a step",
        "What a step made (result), how its attempts ended (attempts), what its guards refused (guards), "
        "what it wrote (logs), or why it ran (why). Long ones come in slices.",
        schema(
            ("ref", "part"),
            ref=described("STEP, STEP@ATTEMPT, or the digest of an artifact.", **TEXT),
            part={"enum": list(PARTS)},
            run_id=RUN,
            cursor=CURSOR,
        ),
        lambda desk, _, given: step_read(desk, given),
    ),
    Offer(
        "why",
        "Why a step runs",
        "Why a step would run or be reused now, with what changed; with run_id, why it did in that run.",
        schema(
            ("step",),
            step=described("The step.", **TEXT),
            run_id=RUN,
            against=described("Compare with how it was in this run.", **TEXT),
        ),
        lambda desk, _, given: why(desk, given),
    ),
    Offer(
        "diff",
        "What differs",
        "What differs between two runs (@-1, @), plan files, git commits (plans only) or attempts (STEP@1, "
        "STEP@2); without b, between a and how things are now.",
        schema(
            ("a",),
            a=described("One side.", **TEXT),
            b=described("The other side.", **TEXT),
            what={"enum": ["summary", "plan", "outputs", "time", "cost"]},
            cursor=CURSOR,
        ),
        lambda desk, _, given: diff(desk, given),
    ),
    Offer(
        "ledger_query",
        "What was learned",
        "What a run has learned: evidence, open questions, artifacts, gaps, hypotheses, handoffs.",
        schema(
            kind={"enum": list(LEDGER)},
            open_only=described("Only questions and gaps that are open.", type="boolean"),
            text=described("Only entries with this in them.", **TEXT),
            run_id=RUN,
            cursor=CURSOR,
        ),
        lambda desk, _, given: ledger_query(desk, given),
    ),
    Offer(
        "ledger_add",
        "Add to the ledger",
        "Add evidence or a gap to what is known. It is kept as your word; nothing is settled by it.",
        schema(
            ("kind", "text"),
            kind={"enum": ["evidence", "gap"]},
            text=TEXT,
            refs=described(
                "Where it is from: steps, files, ids of the ledger.",
                type="array",
                items=TEXT,
                maxItems=20,
            ),
        ),
        lambda desk, _, given: ledger_add(desk, given),
        acts=True,
        idempotent=True,
    ),
    Offer(
        "approval_request_human",
        "Ask a person",
        "Show the person what a step waits for, with the command that decides it. You cannot answer it, and "
        "no tool can: the person does.",
        schema(
            ("approval_id",),
            approval_id=described("The id of the approval, from run_status.", **TEXT),
        ),
        lambda desk, _, given: answered(question(desk, given), ""),
        acts=True,
        idempotent=True,
    ),
)


def offered(*, read_only: bool) -> dict[str, Offer]:
    """The tools of a server, by their names, in order."""
    return {one.name: one for one in OFFERS if not (read_only and one.acts)}
