"""The refs of a step: what is in them, what is not, and vectors that never change."""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path

import pytest

from holdfast.core.refs import (
    MANY,
    Encoder,
    Refs,
    Upstream,
    encode_own,
    encode_with,
    refs_of,
    spell,
    structure,
    w_ref,
)
from holdfast.errors import BugError
from holdfast.model.digest import Digest, Json, canonical, digest_bytes
from holdfast.model.plan import Guard, Input, Need, Plan, Step, StepId
from tests.core.builders import plan, ref, sid, step

ABOVE = {sid("up"): Upstream(ref("its ref"), ref("its content"))}
OTHER = {sid("up"): Upstream(ref("its other ref"), ref("its other content"))}


def observed(of: Step) -> dict[str, Json]:
    """What a survey of the world would add: one digest for each name."""
    found: dict[str, Json] = {}
    if of.inputs:
        found["inputs"] = {item.glob: ref(item.glob) for item in of.inputs}
    if of.env:
        found["env"] = {name: ref(name) for name in of.env}
    if of.tool_versions:
        found["tools"] = {name: ref(repr(argv)) for name, argv in of.tool_versions.items()}
    return found


def refs(of: Step, above: Mapping[StepId, Upstream] = ABOVE) -> Refs:
    return refs_of(of, encode_own(of, observed(of)), above)


BASE = Step(
    id=sid("s"),
    uses="llm",
    run=("make", "it"),
    prompt={"role": "r", "constraints": "c", "task": "t", "feedback_wrapper": "f"},
    model="provider:m",
    parameters={"temperature": 0.5},
    values={"x": 1},
    needs=(Need(sid("up")),),
    inputs=(Input("src/**"),),
    produces=("out.txt",),
    outputs=("key",),
    schema={"type": "object"},
    guards=(Guard("command", ["check"]),),
    env=("LANG",),
    tool_versions={"gcc": ("gcc", "-v")},
)

# every field of a step, another value for it, and whether it decides the result
TABLE: dict[str, tuple[object, bool]] = {
    "id": (sid("t"), False),
    "uses": ("agent", True),
    "run": (("make", "that"), True),
    "shell": ("make", True),
    "prompt": ({"role": "r", "constraints": "c", "task": "u", "feedback_wrapper": "f"}, True),
    "model": ("provider:n", True),
    "parameters": ({"temperature": 0.7}, True),
    "tier": ("small", False),
    "tools": (("work:add",), True),
    "turns": (5, False),
    "values": ({"x": 2}, True),
    "needs": ((Need(sid("up"), "sequence"),), True),
    "inputs": ((Input("lib/**"),), True),
    "produces": (("out.md",), True),
    "outputs": (("key", "other"), True),
    "schema": ({"type": "array"}, True),
    "guards": ((Guard("command", ["check", "-v"]),), True),
    "retries": (5, False),
    "lost_retries": (5, False),
    "timeout": (3.5, False),
    "priority": ("high", False),
    "effects": ("external", False),
    "idempotent": (True, False),
    "approve": ("always", False),
    "budget": ({"attempts": 1}, False),
    "patience": (2, False),
    "escalate": (("up",), False),
    "rounds": (2, False),
    "on_fatal": ("escalate", False),
    "resources": ({"gpu": 1}, False),
    "runs_on": ("gpu", False),
    "workspace": ("scratch", True),
    "reuse": ("strict", False),
    "fresh_for": (60.0, False),
    "share": (True, False),
    "handoff": (True, True),
    "context": (False, False),
    "context_tokens": (False, False),
    "type": ("experiment", False),
    "mode": ("confirmatory", False),
    "hypotheses": (("h1",), False),
    "requirements": (("r1",), False),
    "preregistered": (("one test",), False),
    "evaluate_against": (("the goal",), False),
    "env": (("LANG", "TZ"), True),
    "secrets": (("TOKEN",), False),
    "tool_versions": ({"gcc": ("gcc", "--version")}, True),
    "description": ("words", False),
    "contract": ("c", True),
    "constraints": ("c", True),
    "specification": ("s", True),
    "agent": ("a", True),
    "action": ("a", True),
    "for_each": ([1], False),
    "key": ("${{ item }}", False),
    "template": (step("t"), False),
    "has_items": (True, False),
    "when": ({"steps.up.output": {"exists": True}}, False),
    "optional": (True, False),
    "within": ("part", True),
}


def test_the_table_lists_every_field_of_a_step() -> None:
    assert TABLE.keys() == {item.name for item in fields(Step)}


@pytest.mark.parametrize("name", TABLE)
def test_a_step_is_encoded_the_same_whatever_was_encoded_before_it(name: str) -> None:
    value, _ = TABLE[name]
    changed = replace(BASE, **{name: value})  # type: ignore[arg-type]  # one field, by its name
    bare = replace(changed, values={}, prompt=None)
    encoder, seen = Encoder(), [spell(observed(BASE)), spell(observed(changed))]
    for of in (BASE, changed, BASE, bare, changed, bare, BASE):
        for world in seen:
            assert encoder.encode(of, world) == encode_with(of, world)
            assert encoder.encode(of, world) == encode_with(of, world)


@pytest.mark.req("R3", "R4", "R14", "E2")
@pytest.mark.parametrize("name", TABLE)
def test_what_decides_the_result_is_in_the_ref_and_the_rest_is_not(name: str) -> None:
    value, decides = TABLE[name]
    changed = replace(BASE, **{name: value})  # type: ignore[arg-type]  # one field, by its name
    assert getattr(BASE, name) != value
    assert (refs(changed).config_ref != refs(BASE).config_ref) == decides
    assert (refs(changed).input_ref != refs(BASE).input_ref) == decides


@pytest.mark.req("R2")
@pytest.mark.parametrize("part", ["role", "constraints", "task", "feedback_wrapper"])
def test_every_part_of_the_prompt_is_in_the_ref(part: str) -> None:
    prompt = dict(BASE.prompt) if isinstance(BASE.prompt, dict) else {}
    changed = replace(BASE, prompt={**prompt, part: "other"})
    assert refs(changed).config_ref != refs(BASE).config_ref


@pytest.mark.req("R4", "R14", "E2")
@pytest.mark.parametrize(
    "guard",
    [
        Guard("regex", ["check"]),
        Guard("command", ["check"], name="n"),
        Guard("command", ["check"], fatal_on=(3,)),
        Guard("all", items=(Guard("command", ["check"]),)),
        Guard("any", items=(Guard("command", ["check"]),)),
        Guard("all", items=(Guard("command", ["check"]), Guard("syntax", "json"))),
    ],
    ids=repr,
)
def test_kind_and_configuration_of_guards_are_in_the_ref(guard: Guard) -> None:
    assert refs(replace(BASE, guards=(guard,))).config_ref != refs(BASE).config_ref


@pytest.mark.req("E2")
@pytest.mark.parametrize("schema", [{}, False, True])
def test_a_schema_that_python_calls_empty_is_still_one(schema: Json) -> None:
    none = replace(BASE, schema=None)
    assert refs(replace(none, schema=schema)).config_ref != refs(none).config_ref


def test_the_order_of_guards_counts_and_that_of_needs_does_not() -> None:
    one, two = Guard("syntax", "json"), Guard("command", ["check"])
    assert refs(replace(BASE, guards=(one, two))) != refs(replace(BASE, guards=(two, one)))
    above = {sid("a"): Upstream(ref("1"), ref("2")), sid("b"): Upstream(ref("3"), ref("4"))}
    needs = (Need(sid("a")), Need(sid("b")))
    turned = replace(BASE, needs=needs[::-1])
    assert refs(replace(BASE, needs=needs), above) == refs(turned, dict(reversed(above.items())))


@pytest.mark.req("R1", "R5")
def test_the_ref_is_the_digest_of_the_documented_object() -> None:
    one = replace(step("s", "up", "~other"), prompt="p", model="m")
    whole: Json = {
        "prompt": "p",
        "model": {"id": "m", "parameters": {}},
        "guard_config": {"guards": []},
        "ext": {"v": 1, "uses": "shell", "needs": ["up"]},
        "upstream_refs": {"up": ref("its ref")},
        "artifact_hashes": {"up": ref("its content")},
    }
    text = json.dumps(whole, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert refs(one).config_ref == hashlib.sha256(text.encode()).hexdigest()
    del whole["upstream_refs"]  # type: ignore[union-attr]  # it is the dictionary above
    assert refs(one).input_ref == digest_bytes(canonical(whole))
    assert refs(one).own_ref == digest_bytes(encode_own(one, {}))


@pytest.mark.req("R6")
def test_a_root_has_two_empty_objects() -> None:
    own = encode_own(step("s"), {})
    expected = b'{"artifact_hashes":{},' + own[1:-1] + b',"upstream_refs":{}}'
    assert refs_of(step("s"), own, {}).config_ref == digest_bytes(expected)


@pytest.mark.req("R5", "R45")
def test_the_content_above_is_in_both_refs_and_the_ref_above_in_one() -> None:
    content = {sid("up"): Upstream(ABOVE[sid("up")].config_ref, ref("new"))}
    key = {sid("up"): Upstream(ref("new"), ABOVE[sid("up")].digest)}
    assert refs(BASE, content).config_ref != refs(BASE).config_ref
    assert refs(BASE, content).input_ref != refs(BASE).input_ref
    assert refs(BASE, key).config_ref != refs(BASE).config_ref
    assert refs(BASE, key).input_ref == refs(BASE).input_ref
    assert refs(BASE, OTHER).own_ref == refs(BASE).own_ref


@pytest.mark.req("R7", "E3")
def test_a_missing_need_is_an_error_and_never_left_out() -> None:
    with pytest.raises(BugError, match="no artifact of 'up'"):
        refs_of(BASE, encode_own(BASE, {}), {})


def test_what_is_above_but_not_needed_stays_out() -> None:
    more = {**ABOVE, sid("else"): Upstream(ref("1"), ref("2"))}
    assert refs(BASE, more) == refs(BASE)


@pytest.mark.req("R14")
def test_an_unknown_part_that_the_world_adds_enters_the_ref() -> None:
    own = encode_own(BASE, {"weather": "rain"})
    assert refs_of(BASE, own, ABOVE) != refs_of(BASE, encode_own(BASE, {}), ABOVE)
    assert encode_own(BASE, {"weather": ""}) == encode_own(BASE, {})


@pytest.mark.req("R9")
def test_the_structure_ref_knows_needs_and_not_prompts() -> None:
    base = plan(step("a"), step("b", "a"))
    edited = plan(replace(step("a"), prompt="p", values={"x": 1}), step("b", "a"))
    assert w_ref(edited) == w_ref(base)
    for other in (
        plan(step("a"), step("b", "~a")),
        plan(step("a"), step("b")),
        plan(step("a"), step("b", "a"), step("c")),
        plan(replace(step("a"), retries=4), step("b", "a")),
        plan(replace(step("a"), constraints="c"), step("b", "a")),
    ):
        assert w_ref(other) != w_ref(base)


@pytest.mark.req("R10")
def test_the_structure_can_be_found_by_its_ref() -> None:
    base = plan(step("a"), step("b", "a"))
    assert digest_bytes(structure(base)) == w_ref(base)


def golden() -> dict[str, str]:
    small, whole = refs_of(step("s"), encode_own(step("s"), {}), {}), refs(BASE)
    shell = replace(step("build"), shell="make", produces=("a", "b"), values={"ü": [0.5, None]})
    other = refs_of(shell, encode_own(shell, {"files": {"Makefile": ref("x")}}), {})
    structured: Plan = plan(step("z"), step("m", "z"), step("a", "m", "~z"))
    return {
        "small": small.config_ref,
        "small input": small.input_ref,
        "small own": small.own_ref,
        "whole": whole.config_ref,
        "whole input": whole.input_ref,
        "whole own": whole.own_ref,
        "shell": other.config_ref,
        "structure": w_ref(structured),
    }


GOLDEN = {
    "small": "7aa9fd57e45b4a10b0253eeb9f396401e3f216fe3da8d0da9cdafd9cd011d6ef",
    "small input": "4559d7f6fd7a82e3185407f805968ca6a58c0294cca12709b8ff32dff2b2aa64",
    "small own": "9ee2e5cb25dc0d1cf622ae41617c22e04e7b57ea6dddde8167b55a5e26e88a02",
    "whole": "a971827c6181edbe46b213336eeb5f48e1ad5c2ab3aa8d726fbaaebd4dd20561",
    "whole input": "5a2057469ab8e29fb6b574eab434e3342179e322b79327cb1f09e8818522194a",
    "whole own": "0cd1d01e71d985f482106290126027b3da06ab1910d2a2fe324ebedbf97387fe",
    "shell": "037beb3012c453d96539d053d239fd34d37a6943de43974fc65319caa8e2ae6f",
    "structure": "ba19f03a818d51b654ece2dc7043cbfd46fcec0ab1ee3ce7861d7e4468b3dd3c",
}


@pytest.mark.req("R1", "R8", "R162")
def test_golden_refs_never_change() -> None:
    assert golden() == GOLDEN
    assert all(len(Digest(found)) == 64 for found in GOLDEN.values())


@pytest.mark.req("R8", "R162")
@pytest.mark.parametrize("seed", ["0", "1", "random"])
def test_golden_refs_are_the_same_in_every_process(seed: str) -> None:
    root = Path(__file__).parents[2]
    code = "import json; from tests.core.test_refs import golden; print(json.dumps(golden()))"
    env = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": f"{root / 'src'}:{root}"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, check=True)
    assert json.loads(done.stdout) == GOLDEN


def test_a_need_that_it_goes_on_without_is_null_in_both_objects() -> None:
    one = replace(step("s"), needs=(Need(sid("gone"), optional=True), Need(sid("up"))))
    own = encode_own(one, {})
    hashes = {"gone": None, "up": ABOVE[sid("up")].digest}
    above = {"gone": None, "up": ABOVE[sid("up")].config_ref}
    found = {**json.loads(own), "artifact_hashes": hashes}
    assert refs_of(one, own, ABOVE).input_ref == digest_bytes(canonical(found))
    whole = {**found, "upstream_refs": above}
    assert refs_of(one, own, ABOVE).config_ref == digest_bytes(canonical(whole))


@pytest.mark.req("R5")
@pytest.mark.parametrize("count", [MANY, MANY + 1, 2 * MANY + 7])
def test_the_refs_of_a_step_that_needs_very_many_are_made_in_the_same_way(count: int) -> None:
    names = [sid(name) for n in range(count) for name in (f"a[{n}]", f"a.{n}", f"a-{n}")][:count]
    needs = (Need(sid("gone"), optional=True), Need(sid("a"), "sequence"), *map(Need, names))
    one = replace(step("s"), needs=needs)
    own = encode_own(one, {})
    brought = {name: Upstream(ref(f"ref {name}"), ref(f"of {name}")) for name in names}
    hashes: dict[str, Json] = {name: brought[name].digest for name in names}
    above: dict[str, Json] = {name: brought[name].config_ref for name in names}
    hashes["gone"] = above["gone"] = None
    found = {**json.loads(own), "artifact_hashes": hashes}
    assert refs_of(one, own, brought).input_ref == digest_bytes(canonical(found))
    whole = {**found, "upstream_refs": above}
    assert refs_of(one, own, brought).config_ref == digest_bytes(canonical(whole))
    with pytest.raises(BugError, match=r"no artifact of 'a-1'"):
        refs_of(one, own, {name: came for name, came in brought.items() if name != "a-1"})
