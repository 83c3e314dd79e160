"""Notes of what is done without a model: stored like the tools that models use, beside what they answer."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping

from holdfast.model.call import Message, Request, ToolUse
from holdfast.model.digest import Json, canonical
from holdfast.ports import Job, Repeat, Said, Wanted

_NOBODY = "holdfast:notes"  # who is asked: nobody


async def noted(
    job: Job,
    tool: str,
    given: Mapping[str, Json],
    run: Callable[[], Awaitable[Mapping[str, Json]]],
    repeat: Repeat = "always",
) -> Mapping[str, Json]:
    """What `run` gives, stored with what was given; `exit_code` 0 is a success."""

    async def said() -> Said:
        record = await run()
        return Said(json.dumps(record), ok=record.get("exit_code") == 0)

    if job.calls is None:
        return await run()
    arguments = canonical(given).decode()
    asked = Request(_NOBODY, (Message("user", f"{tool} {arguments}"),))
    wanted = Wanted(asked, 0, ToolUse(tool, tool, arguments), tool)
    answer = await job.calls.use(wanted, said, repeat)
    found: Mapping[str, Json] = json.loads(answer.text)
    return found
