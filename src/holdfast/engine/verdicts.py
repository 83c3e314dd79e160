"""What people's words about conflicts leave in an artifact: what stands at a path, and over what.

The record is part of the step's set of changes, whether the step won or lost there. It lets every step
that was in the conflict stand for as long as the path holds what was decided.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import cast

from holdfast.engine.taking import Contents, Others
from holdfast.engine.unwind import reads
from holdfast.model.changeset import Change, Settled
from holdfast.model.digest import Digest, Json
from holdfast.model.plan import Step

Saw = Callable[[str], tuple[Digest | None, bool] | None]


def records(
    changes: Iterable[Change],
    before: Iterable[Settled],
    others: Others,
    lies: Contents,
    saw: Saw,
) -> tuple[Settled, ...]:
    """The records of a step that is decided about.

    `changes` are what it wanted, `before` what was decided about this candidate earlier, and `lies` what
    stands where it gave way. `saw` tells what the step's key says of a path, None if nothing.
    """
    wanted = {change.path: change for change in changes}
    known = {one.path: one for one in before}
    found = dict(known)
    for path, gave_way in others.items():
        change, earlier = wanted.get(path), known.get(path)
        base, program = _base(change, earlier)
        over = (*gave_way, *(earlier.over if earlier else ()), base)
        base, program = saw(path) or (base, program)
        won = change is not None and path not in lies
        stands = change.digest if change is not None and won else lies.get(path)
        found[path] = Settled(path, stands, base, program, _once(over), won)
    return tuple(found.values())


def carried(
    changes: Iterable[Change], before: Iterable[Settled], lies: Contents, saw: Saw
) -> tuple[Settled, ...]:
    """The records of a step that was made again on top of what was decided, and may have gone on from it."""
    wanted = {change.path: change for change in changes}
    found = []
    for one in before:
        if lies.get(one.path) != one.digest:
            continue
        change = wanted.get(one.path)
        base, program = saw(one.path) or (one.digest, False)
        stands = one.digest if change is None else change.digest
        over = _once((one.digest, *one.over, one.base))
        won = one.won or change is not None
        found.append(Settled(one.path, stands, base, program, over, won))
    return tuple(found)


def seen_in(own: bytes, step: Step) -> Saw:
    """What the own parts of a key say of files: inputs, and what the command names."""
    ext = cast("Mapping[str, Mapping[str, Json]]", json.loads(own)["ext"])
    inputs, files = ext.get("inputs", {}), ext.get("files", {})

    def saw(path: str) -> tuple[Digest | None, bool] | None:
        if isinstance(found := inputs.get(path), list):
            return _named(found), bool(found[1])
        if path not in files:
            return (None, False) if reads(step, path) else None
        return _named(files[path]), "+" in str(files[path])

    return saw


def is_as_in_copy(
    now: Mapping[str, Json],
    seen: Mapping[str, Json],
    changes: Iterable[Change],
    decided: Collection[str] = (),
) -> bool:
    """Whether what is observed is as it was seen before, but for files that the step changed in its copy.

    Whoever wrote there meanwhile may be in a conflict with the step; it did not read it. About the paths in
    `decided` people will say what stands, whatever it read there.
    """
    found = {**now}
    for part in ("inputs", "files"):
        then, files = _mapping(seen.get(part)), dict(_mapping(now.get(part)))
        for change in changes:
            if change.path in decided or _named(then.get(change.path)) == change.base:
                files.pop(change.path, None)
                files |= {path: then[path] for path in (change.path,) if path in then}
        found[part] = files
    return {part: found[part] for part in found if found[part]} == {
        part: seen[part] for part in seen if seen[part]
    }


def _mapping(part: Json) -> Mapping[str, Json]:
    return part if isinstance(part, Mapping) else {}


def _named(seen: Json) -> Digest | None:
    """The digest that a key names a file with."""
    spelled = seen[0] if isinstance(seen, list) else seen
    return None if spelled is None else Digest(str(spelled).partition("+")[0])


def _base(change: Change | None, earlier: Settled | None) -> tuple[Digest | None, bool]:
    begun = change or earlier
    return (begun.base, begun.base_executable) if begun else (None, False)


def _once(digests: Iterable[Digest | None]) -> tuple[Digest | None, ...]:
    return tuple(dict.fromkeys(digests))
