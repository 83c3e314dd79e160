"""Guards that could never judge: their values are looked at while the plan is read."""

from __future__ import annotations

import json
import time

from holdfast.formats.nodes import Listing, Mapping, Node
from holdfast.formats.problems import Placed, Problems
from holdfast.formats.reading import Reading
from holdfast.model.digest import Json
from holdfast.ports import Flaw

MOST_SECONDS = 2.0  # of the processor for one load; a hostile plan could ask for hours
_TIME = "time"


def check_value(
    reading: Reading,
    kind: str,
    value: Json,
    node: Node,
    *,
    problems: Problems | None = None,
    named: Node | None = None,
    code: str = "P049",
) -> None:
    """Report why a guard of this kind can never judge by this value, read from `node`.

    The same value is looked at once. If it stands in a file of its own, `problems` are those of that
    file, and it is `named` in the plan.
    """
    if reading.check is None:
        return
    spelled = f"{kind} {json.dumps(value)}"
    if spelled in reading.checked:
        return
    reading.checked.add(spelled)
    if reading.seconds > MOST_SECONDS:
        message = "the plan has too many schemas and patterns to check them all"
        _warn_once(reading, Flaw(message, lacks=_TIME), named or node)
        return
    started = time.thread_time()
    flaw = reading.check(kind, value)
    reading.seconds += time.thread_time() - started
    if flaw is not None and flaw.lacks:
        _warn_once(reading, flaw, named or node)
    elif flaw is not None:
        (problems or reading.problems).add(code, _place(node, flaw), flaw.message, flaw.hint)


def _warn_once(reading: Reading, flaw: Flaw, node: Node) -> None:
    if flaw.lacks not in reading.lacking:
        reading.lacking.add(flaw.lacks)
        reading.problems.warn("P904", node, flaw.message, flaw.hint)


def _place(node: Node, flaw: Flaw) -> Placed:
    """The node at the path of a flaw, or the last one on the way there."""
    place: Placed = node
    for step in flaw.path:
        if isinstance(node, Mapping) and isinstance(step, str) and step in node.pairs:
            key, node = node.pairs[step]
            place = key if flaw.is_key else node
        elif isinstance(node, Listing) and isinstance(step, int) and step < len(node.items):
            place = node = node.items[step]
        else:
            break
    return place
