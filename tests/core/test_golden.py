"""Encodings, refs and snapshots of many shapes of steps: their digests never change.

A ref that changed its value would throw away every result that was ever accepted.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

import pytest

from holdfast.core.refs import Upstream, encode_own, refs_of, structure, w_ref
from holdfast.model.digest import Digest, Json, canonical
from holdfast.model.plan import (
    Guard,
    Input,
    Limits,
    Need,
    Plan,
    Step,
    StepId,
    plan_bytes,
    plan_digest,
)
from tests.core.builders import ref, sid


class Word(str):
    """Text of another class; it is spelled as text."""

    __slots__ = ()


class Count(int):
    """A number of another class."""


VALUES: tuple[Json, ...] = (
    None,
    True,
    False,
    0,
    -1,
    2**80,
    1.0,
    -0.0,
    0.1,
    -2.5e-7,
    1e22,
    1e300,
    "",
    "plain",
    'quote " back \\ slash /',
    "tab\tnew\nline\x00\x1f\x7f",
    "ünïcödé ☃ 😀 \u2028",
    Word("a word"),
    Count(7),
    [],
    {},
    [1, [2, [3, {"deep": ["er", 0.5]}]]],
    ("a", "tuple", ("inside",)),
    {"b": 1, "a": 2, "Z": 3, "ä": 4, "_": 5, "10": 6, "9": 7},
    {"mixed": [None, True, 1, 1.5, "x", {}, []], "": "empty key"},
    MappingProxyType({"z": MappingProxyType({"y": (1, 2.25)}), "k": Word("w")}),
    {Word("key of another class"): Count(3)},
    ["text"] * 5,
    [["a", "b"], ["c"], []],
)
GUARDS: tuple[tuple[Guard, ...], ...] = (
    (),
    (Guard("command", ["check", "it"]),),
    (Guard("regex", {"pattern": "^a.b$", "must": "match"}, name="form", timeout=1.5),),
    (Guard("human"), Guard("syntax", "json", fatal_on=(2, 3))),
    (Guard("any", items=(Guard("file", {"path": "p", "min_bytes": 1}), Guard("human"))),),
)
NEEDS: tuple[tuple[Need, ...], ...] = (
    (),
    (Need(sid("up")),),
    (Need(sid("z.last")), Need(sid("a-first")), Need(sid("M_1"))),
    (Need(sid("order"), "sequence"), Need(sid("data"), key="part")),
)
SEEN: tuple[dict[str, Json], ...] = (
    {},
    {"code": {"m.py": ref("m"), "lib/n.py": ref("n")}, "function": ref("f")},
    {"inputs": {"a.txt": [ref("a"), False], "l": [ref("l"), True, "to"]}, "env": {"LANG": None}},
    {"files": {}, "unresolved": ["name 'x'"], "guards": [{}, {"files": {"g": ref("g")}}]},
    {"tools": {"gcc": ref("9"), "cc": None}, "absent": ["m.missing"]},
)


def shapes() -> Iterator[tuple[Step, Mapping[str, Json]]]:
    """A few hundred steps; every value of every pool meets several of the others."""
    for number in range(len(VALUES) * len(GUARDS) * 2):
        value = VALUES[number % len(VALUES)]
        other = VALUES[(number * 7 + 3) % len(VALUES)]
        yield (
            Step(
                id=StepId(f"s{number}"),
                uses=("shell", "python", "llm")[number % 3],
                run=((), ("make", "it"), ("m:f",), ("ü", "a b"))[number % 4],
                shell=("", "make all", "echo 'ä' | sort")[number % 3],
                prompt=value if number % 2 else None,
                model=("", "provider:m")[number % 2],
                parameters=({}, {"temperature": 0.5, "n": 2.0}, {"p": other})[number % 3],
                values=({}, {"number": number}, {"v": value, "a": other, "ö": 1})[number % 3],
                needs=NEEDS[number % len(NEEDS)],
                inputs=((), (Input("src/**"), Input("*.x", optional=True)))[number % 2],
                produces=((), ("out.txt",), ("b", "a/"))[number % 3],
                outputs=((), ("key", "other"))[number % 2],
                schema=(None, {"type": "object"}, {})[number % 3],
                guards=GUARDS[number % len(GUARDS)],
                retries=number % 3,
                timeout=(None, 1.5, 60.0)[number % 3],
                workspace=("", "shared", "scratch")[number % 3],
                reuse=("merkle", "content", "strict")[number % 3],
                fresh_for=(None, 90.0)[number % 2],
                env=((), ("LANG", "HOME"))[number % 2],
                tool_versions=({}, {"gcc": ("gcc", "-v")})[number % 2],
                description=("", "says 'so'")[number % 2],
                contract=("", "c")[number % 2],
                constraints=("", "none")[number % 2],
                specification=("", "spec\n")[number % 2],
                agent=("", "writer")[number % 2],
                action=("", "write")[number % 2],
            ),
            SEEN[(number // 3) % len(SEEN)],
        )


def above(step: Step) -> dict[StepId, Upstream]:
    return {
        need.step: Upstream(ref(f"ref of {need.step}"), ref(f"content of {need.step}"))
        for need in step.needs
    }


def plan() -> Plan:
    steps = {step.id: step for step, _ in shapes()}
    steps |= {need.step: Step(need.step) for step in [*steps.values()] for need in step.needs}
    limits = Limits(time=1.5, attempts=7)
    return Plan("line", steps, "a goal", "words", "project", limits, {"x": 0.5, "y": [1, "ä"]})


def whole(parts: Iterator[bytes]) -> str:
    total = hashlib.sha256()
    for part in parts:
        total.update(b"%d:%s" % (len(part), part))
    return total.hexdigest()


def owns() -> Iterator[bytes]:
    return (encode_own(step, seen) for step, seen in shapes())


def all_refs() -> Iterator[bytes]:
    for step, seen in shapes():
        found = refs_of(step, encode_own(step, seen), above(step))
        yield "|".join(found).encode()


GOLDEN: dict[str, tuple[Callable[[], str], str]] = {
    "values": (
        lambda: whole(canonical(value) for value in VALUES),
        "79db5b3f7ec794289996d3316a5d4f289166405622ce54ff57d6dbf90c3991b3",
    ),
    "own parts": (
        lambda: whole(owns()),
        "164982834f1086d95ea326a798b9821cf92106aa87ac2cb356175315b4515ae7",
    ),
    "refs": (
        lambda: whole(all_refs()),
        "89aee43c2e4638e8295b9d967919d030cbff4e661896081bb3445133ae75d033",
    ),
    "plan": (
        lambda: plan_digest(plan()),
        "df81ebc77cf2c47998c15a09f6506ccc378b38118ab157d0421a9aa1b90335fd",
    ),
    "structure": (
        lambda: w_ref(plan()),
        "801ffcfb310ffb41b6f52a11beceb8d997f726dc8cf65297faa1b791ab462383",
    ),
}


@pytest.mark.req("R1", "R8", "R162")
@pytest.mark.parametrize("name", GOLDEN)
def test_many_shapes_have_the_digests_they_always_had(name: str) -> None:
    made, digest = GOLDEN[name]
    assert made() == Digest(digest)


@pytest.mark.req("R10")
def test_what_is_stored_is_what_was_digested() -> None:
    whole_plan = plan()
    assert hashlib.sha256(plan_bytes(whole_plan)).hexdigest() == plan_digest(whole_plan)
    assert hashlib.sha256(structure(whole_plan)).hexdigest() == w_ref(whole_plan)
