"""Is it stale, and why."""

import json
from dataclasses import replace
from typing import cast

import pytest

from holdfast.core.changes import (
    PARTS,
    Change,
    Choice,
    Probe,
    choose,
    differences,
    guards_only,
    unchanged_parts,
)
from holdfast.core.reasons import CODES
from holdfast.core.refs import Refs, Upstream, encode_own
from holdfast.errors import IntegrityError
from holdfast.model.digest import Digest, Json
from holdfast.model.event import Options, Reason
from holdfast.model.plan import Guard, RunId, Step
from tests.core.builders import artifact, ref, sid, step

S = step("s")
REFS = Refs(ref("config"), ref("input"), ref("own"))
KEPT = artifact()
NOTHING = Probe(S.id, REFS)
FOUND = Probe(S.id, REFS, found=KEPT, newest=KEPT)
NONE = Options()
GONE = Reason("receipt_gone")


def change(part: str, code: str, *names: str) -> Change:
    return Change(part, code, names, None, None)


def newest(*changes: Change) -> Probe:
    return Probe(S.id, REFS, newest=KEPT, changes=changes)


GUARDS = newest(change("guards", "guard_changed"))


def chosen(probe: Probe, options: Options = NONE, step_: Step = S, now: int = 0) -> Choice:
    return choose(step_, probe, options, now=now)


# --- an artifact stands ------------------------------------------------------------------------------


@pytest.mark.req("R40")
def test_an_accepted_artifact_under_this_ref_is_reused() -> None:
    assert chosen(FOUND) == Choice("reuse", Reason("unchanged"), KEPT)


@pytest.mark.req("R48")
def test_a_persons_version_under_this_ref_is_reused_as_such() -> None:
    by_hand = artifact(source="human")
    probe = FOUND._replace(found=by_hand, newest=by_hand)
    assert chosen(probe) == Choice("reuse", Reason("amended"), by_hand)


@pytest.mark.req("R58")
def test_equal_content_is_reused_only_where_that_was_asked_for() -> None:
    upstream = change("upstream", "upstream_changed", "a")
    probe = newest(upstream)._replace(same_content=KEPT)
    by_content = Choice("reuse", Reason("unchanged_content"), KEPT)
    assert chosen(probe) == Choice("run", Reason("upstream_changed", ("a",)))
    assert chosen(probe, Options(cutoff=True)) == by_content
    assert chosen(probe, step_=replace(S, reuse="content")) == by_content
    assert chosen(probe._replace(found=KEPT), Options(cutoff=True)).reason == Reason("unchanged")


# --- it runs -------------------------------------------------------------------------------------------


@pytest.mark.req("R42")
def test_a_step_that_never_ran_runs() -> None:
    assert chosen(NOTHING) == Choice("run", Reason("never_ran"))


@pytest.mark.req("R43", "R44")
def test_what_is_asked_for_runs_whatever_is_stored() -> None:
    assert chosen(FOUND, Options(force=True)) == Choice("run", Reason("forced"))
    assert chosen(FOUND, Options(force_steps=(S.id,))) == Choice("run", Reason("forced"))
    assert chosen(FOUND, Options(force_steps=(sid("other"),))).action == "reuse"


@pytest.mark.req("R56")
@pytest.mark.parametrize(
    "previous, code",
    [
        ("failed", "previous_failed"),
        ("interrupted", "previous_interrupted"),
        ("incomplete", "previous_incomplete"),
        ("", "never_ran"),
    ],
)
def test_how_the_run_before_left_it_is_a_reason(previous: str, code: str) -> None:
    probe = Probe(S.id, REFS, previous=previous)  # type: ignore[arg-type]  # one of its literals
    assert chosen(probe) == Choice("run", Reason(code))
    unsure = probe._replace(unsure=("nomod",))
    assert chosen(unsure) == Choice("run", Reason(code)), "a command that never ran did not change"


@pytest.mark.req("R161")
def test_a_key_with_a_hole_disables_reuse_and_says_so() -> None:
    probe = FOUND._replace(same_content=KEPT, unsure=("module 'x'",))
    told = Reason("command_changed", ("module 'x' cannot be resolved",))
    assert chosen(probe, Options(cutoff=True)) == Choice("run", told)


@pytest.mark.req("I17")
def test_what_is_done_once_waits_if_nothing_can_tell_whether_it_is_the_same() -> None:
    once = replace(S, effects="external")
    doubts = {
        "module 'x' cannot be resolved": FOUND._replace(unsure=("module 'x'",)),
        "E1 is contested": FOUND._replace(contested=("E1",)),
        "no room": FOUND._replace(unfit="no room"),
    }
    for because, probe in doubts.items():
        assert chosen(probe, step_=once).repeats == Reason("effect_doubted", (because,))
        assert chosen(probe, step_=replace(once, idempotent=True)).repeats is None
        assert chosen(probe, Options(force_steps=(S.id,)), once).repeats is None, "somebody asked"
        old = replace(once, fresh_for=1.0)
        assert chosen(probe, step_=old, now=1001).repeats is None, "it would be done again anyway"
        failed = probe._replace(previous="failed")
        assert chosen(failed, step_=once).repeats is None, "what failed since is tried again"
        assert chosen(failed._replace(lost=KEPT), step_=once).repeats is not None
        unmade = probe._replace(previous="unmade")
        assert chosen(unmade, step_=once).repeats is not None, "no attempt was made"
        assert chosen(probe, Options(force=True), once).repeats is not None, "nobody named it"
    first = Probe(S.id, REFS, unsure=("module 'x'",))
    assert chosen(first, step_=once).repeats is None, "it was never done"


@pytest.mark.req("I17")
def test_what_is_done_once_waits_if_nobody_knows_what_it_was_made_from() -> None:
    once, unknown = replace(S, effects="external"), replace(KEPT, reusable=False)

    def moved(part: str, before: Json, after: Json) -> Change:
        return Change(part, "tools_changed", ("t",), before, after)

    tool = moved("tools", {"t": None, "u": "1"}, {"t": "1", "u": "1"})
    source = moved("unresolved", ["module 'x'"], [])
    for changes in ((tool,), (source, moved("files", {}, {"x.py": "1"})), ()):
        probe = newest(*changes)._replace(newest=unknown)
        assert chosen(probe, step_=once).repeats is not None
        assert chosen(probe).repeats is None, "what has no effect is simply made again"
        assert chosen(probe._replace(undone=True), step_=once).repeats is None, "somebody asked"
    told = moved("tools", {"t": None, "u": "1"}, {"t": "1", "u": "2"})
    for change_ in (told, moved("inputs", {"f": "1"}, {"f": "2"}), moved("files", {}, {"x": "1"})):
        probe = newest(change_)._replace(newest=unknown)
        assert chosen(probe, step_=once).repeats is None, "something else did change"
    assert chosen(newest(tool), step_=once).repeats is None, "it was known"


@pytest.mark.req("R160")
def test_an_artifact_whose_inputs_moved_under_way_is_not_reused() -> None:
    assert chosen(newest()) == Choice("run", Reason("input_changed"))


@pytest.mark.req("I17")
def test_what_is_done_once_would_be_repeated_if_only_its_receipt_is_gone() -> None:
    once = replace(S, effects="external")
    for probe in (newest(change("inputs", "input_changed", "f")), GUARDS, newest()):
        lost = probe._replace(lost=KEPT, gone=True, previous="failed")
        assert chosen(lost, step_=once) == Choice("run", Reason("output_missing"), repeats=GONE)
        assert not chosen(lost, step_=replace(once, idempotent=True)).repeats
        assert not chosen(lost, Options(force_steps=(S.id,)), once).repeats, "somebody asked"
    tried = choose(once, newest()._replace(lost=KEPT), NONE, now=0, tried=Reason("resumed"))
    assert tried == Choice("run", Reason("resumed"), repeats=GONE), "whatever it is tried for"
    again = newest()._replace(lost=KEPT)
    assert chosen(again, step_=replace(once, fresh_for=1.0), now=1001).reason == Reason("expired")
    assert not chosen(newest(change("inputs", "input_changed")), step_=once).repeats


def test_what_was_purged_is_missing_though_equal_content_is_there() -> None:
    assert chosen(newest()._replace(lost=KEPT)) == Choice("run", Reason("output_missing"))


def test_an_artifact_that_is_too_old_runs_again() -> None:
    fresh = replace(S, fresh_for=1.5)
    assert chosen(FOUND, step_=fresh, now=1500).action == "reuse"
    assert chosen(FOUND, step_=fresh, now=1501) == Choice("run", Reason("expired"))
    same = newest()._replace(same_content=KEPT)
    late = chosen(same, Options(cutoff=True), fresh, now=1501)
    assert late == Choice("run", Reason("expired"))


@pytest.mark.req("R56")
def test_the_first_change_is_the_reason_with_all_names_of_its_kind() -> None:
    probe = newest(
        change("run", "command_changed", "run"),
        change("files", "command_changed", "a.sh", "b.sh"),
        change("inputs", "input_changed", "data"),
    )
    assert chosen(probe) == Choice("run", Reason("command_changed", ("run", "a.sh", "b.sh")))


# --- only the guards changed -----------------------------------------------------------------------------


def test_a_kept_artifact_is_guarded_again_if_only_its_guards_changed() -> None:
    assert chosen(GUARDS) == Choice("reguard", Reason("guard_changed"), KEPT)
    assert chosen(GUARDS, step_=replace(S, reuse="strict")).action == "run"
    more = newest(change("guards", "guard_changed"), change("upstream", "upstream_changed", "a"))
    assert chosen(more) == Choice("run", Reason("guard_changed"))


def test_an_artifact_that_may_not_be_reused_is_not_guarded_again_either() -> None:
    probe = newest(change("guards", "guard_changed"))
    assert probe.newest is not None
    moved = probe._replace(newest=replace(probe.newest, reusable=False))
    assert chosen(moved) == Choice("run", Reason("guard_changed"))


def test_what_a_person_undid_runs_again_for_that_reason() -> None:
    assert chosen(newest()._replace(undone=True)) == Choice("run", Reason("undone"))
    failed = newest()._replace(undone=True, previous="failed")
    assert chosen(failed).reason == Reason("previous_failed"), "tried again since"


def test_what_a_person_accepted_is_reused_as_such() -> None:
    accepted = artifact(source="accepted")
    probe = Probe(S.id, REFS, found=accepted)
    assert chosen(probe) == Choice("reuse", Reason("accepted_by_person"), accepted)


def test_what_the_changed_guards_refused_is_made_anew_and_what_was_cut_off_is_guarded_again() -> (
    None
):
    rejected, cut = Reason("guard_rejected", ("g",)), Reason("previous_interrupted")
    refused = {Digest(KEPT.digest), None}
    after = choose(S, GUARDS, NONE, now=0, tried=rejected, refused=refused)
    assert after == Choice("run", rejected)
    again = choose(S, GUARDS, NONE, now=0, tried=cut, refused=())
    assert again == Choice("reguard", cut, KEPT)


# --- its content is lost ----------------------------------------------------------------------------------

COPY = replace(S, effects="workspace", workspace="scratch")
LOST = newest(change("inputs", "input_changed", "f"))._replace(lost=KEPT)


def test_a_lost_change_of_a_copy_is_not_made_again_unasked() -> None:
    with pytest.raises(IntegrityError, match="nobody can tell whether 's' stands") as raised:
        chosen(LOST, step_=COPY)
    assert raised.value.hint == "holdfast run --force-node s"
    assert chosen(LOST).action == "run", "what is no change can be made again"
    assert chosen(LOST, Options(force_steps=(S.id,)), COPY).action == "run"


def test_who_does_not_ask_for_a_step_is_not_stopped_by_what_it_lost() -> None:
    left = Choice("skip", Reason("not_selected"))
    assert choose(COPY, LOST, NONE, now=0, selected=False) == left
    untold = LOST._replace(lost=None, untold=(sid("b"),))
    assert choose(COPY, untold, NONE, now=0, selected=False) == left
    once = replace(S, effects="external")
    assert choose(once, LOST, NONE, now=0, selected=False) == left


def test_what_another_step_changed_and_lost_stops_who_reads_it() -> None:
    untold = LOST._replace(lost=None, untold=(sid("b"),))
    with pytest.raises(IntegrityError, match="what 'b' changed is gone") as raised:
        chosen(untold, Options(force_steps=(sid("c"), sid("b"))))
    assert raised.value.hint == "holdfast run --force-node c --force-node b --force-node s"
    prompt = change("prompt", "prompt_changed", "p")
    assert chosen(untold._replace(changes=(prompt,))).action == "run", "it would run anyway"
    once = chosen(untold, step_=replace(S, effects="external"))
    assert once.repeats == Reason("effect_doubted", ("what 'b' changed is gone",))


def test_a_source_that_could_not_be_found_casts_doubt_with_all_its_parts() -> None:
    """What was not known when it was done cannot be told from what changed since."""
    once, kept = replace(S, effects="external"), replace(KEPT, reusable=False)
    hole = Change("unresolved", "command_changed", ("m",), ["m"], None)
    for part in ("files", "code", "absent"):
        came = Change(part, "command_changed", ("m.py",), None, {"m.py": "1"})
        doubtful = newest(hole, came)._replace(newest=kept)
        names = ("m was not known when it was done", "m.py was not known when it was done")
        assert chosen(doubtful, step_=once).repeats == Reason("effect_doubted", names), part
    other = Change("inputs", "input_changed", ("f",), {"f": "1"}, {"f": "2"})
    sure = newest(hole, other)._replace(newest=kept)
    assert chosen(sure, step_=once).repeats is None


# --- it was tried already ---------------------------------------------------------------------------------


@pytest.mark.parametrize("code", ["guard_rejected", "retried", "lost", "previous_interrupted"])
def test_a_step_that_was_tried_in_this_run_says_how_that_ended(code: str) -> None:
    tried = Reason(code)
    for probe in (NOTHING, newest(change("with", "parameters_changed", "x"))):
        assert choose(S, probe, NONE, now=0, tried=tried) == Choice("run", tried)
    assert choose(S, FOUND, NONE, now=0, tried=tried).action == "reuse"
    assert choose(S, FOUND, Options(force=True), now=0, tried=tried) == Choice("run", tried)


# --- how two keys differ -----------------------------------------------------------------------------------


def parts(of: Step, **observed: Json) -> dict[str, Json]:
    return cast("dict[str, Json]", json.loads(encode_own(of, observed)))


@pytest.mark.req("R56")
@pytest.mark.parametrize(
    "after, code, part, names",
    [
        (parts(replace(S, prompt="p")), "prompt_changed", "prompt", ("prompt",)),
        (parts(replace(S, prompt={"role": "r"})), "prompt_changed", "prompt", ("role",)),
        (parts(replace(S, model="m")), "model_changed", "model", ("model",)),
        (parts(replace(S, values={"x": 1})), "parameters_changed", "with", ("x",)),
        (parts(step("s", "a")), "dependencies_changed", "needs", ("a",)),
        (parts(replace(S, uses="llm")), "generator_changed", "uses", ("uses",)),
        (parts(replace(S, run=("a",))), "command_changed", "run", ("run",)),
        (parts(replace(S, shell="a")), "command_changed", "shell", ("shell",)),
        (parts(S, files={"a.sh": "1"}), "command_changed", "files", ("a.sh",)),
        (parts(S, code={"m.py": "1"}), "command_changed", "code", ("m.py",)),
        (parts(S, absent={"m.py": True}), "command_changed", "absent", ("m.py",)),
        (parts(S, unresolved=["m"]), "command_changed", "unresolved", ("unresolved",)),
        (parts(S, context="page"), "context_changed", "context", ("context",)),
        (parts(replace(S, tools=("read",))), "generator_changed", "may_use", ("may_use",)),
        (parts(replace(S, handoff=True)), "contract_changed", "handoff", ("handoff",)),
        (parts(S, inputs={"x.txt": ["1", False]}), "input_changed", "inputs", ("x.txt",)),
        (parts(S, tools={"gcc": "1"}), "tools_changed", "tools", ("gcc",)),
        (parts(S, env={"LANG": "1"}), "environment_changed", "env", ("LANG",)),
        (parts(replace(S, workspace="scratch")), "environment_changed", "workspace", None),
        (parts(S, weather="rain"), "environment_changed", "weather", None),
        (parts(replace(S, contract="c")), "contract_changed", "contract", None),
        (parts(replace(S, outputs=("c",))), "contract_changed", "outputs", None),
        (parts(replace(S, produces=("c",))), "contract_changed", "produces", None),
        (parts(replace(S, schema={"a": 1})), "contract_changed", "schema", None),
        (parts(replace(S, constraints="c")), "specification_changed", "constraints", None),
        (parts(replace(S, specification="c")), "specification_changed", "specification", None),
        (parts(replace(S, agent="c")), "specification_changed", "agent", None),
        (parts(replace(S, action="c")), "specification_changed", "action", None),
        (parts(replace(S, guards=(Guard("syntax"),))), "guard_changed", "guards", ()),
        (parts(S, guards=[{"files": {"a": "1"}}]), "guard_changed", "guards", ()),
    ],
)
def test_every_part_of_the_key_has_its_reason(
    after: dict[str, Json], code: str, part: str, names: tuple[str, ...] | None
) -> None:
    before = parts(S)
    (found,) = differences(before, after, None, {})
    assert (found.code, found.part) == (code, part)
    assert names is None or found.names == names
    assert found.code in CODES
    assert part not in unchanged_parts(after, (found,))
    (back,) = differences(after, before, None, {})
    assert (back.code, back.part) == (code, part)
    assert part in PARTS or part == "weather"


def test_sampling_parameters_are_told_apart_from_the_model() -> None:
    one = parts(replace(S, model="m", parameters={"t": 1}))
    (found,) = differences(one, parts(replace(S, model="m", parameters={"t": 2})), None, {})
    assert (found.code, found.part, found.names) == ("parameters_changed", "parameters", ("t",))


def test_causes_are_told_in_this_order() -> None:
    """Own before upstream, and what a person writes before what is observed."""
    assert PARTS[:3] == ("prompt", "model", "parameters")
    assert PARTS[-2:] == ("guards", "upstream")
    assert len({*PARTS}) == len(PARTS)


def test_a_need_that_was_not_there_before_is_no_change_above() -> None:
    one, other = Upstream(ref("1"), ref("2")), Upstream(ref("3"), ref("4"))
    assert differences(parts(S), parts(S), {sid("a"): one}, {sid("b"): other}) == ()


def test_other_needs_are_named() -> None:
    (found,) = differences(parts(step("s", "a", "b")), parts(step("s", "b", "c")), None, {})
    assert (found.code, found.names) == ("dependencies_changed", ("a", "c"))


def test_what_changed_above_is_named_last() -> None:
    before = {sid("a"): Upstream(ref("1"), ref("2")), sid("b"): Upstream(ref("3"), ref("4"))}
    after = {**before, sid("a"): Upstream(ref("1"), ref("new"))}
    assert differences(parts(S), parts(S), before, before) == ()
    found = differences(parts(S), parts(replace(S, shell="x")), before, after)
    assert [one.code for one in found] == ["command_changed", "upstream_changed"]
    assert found[1].names == ("a",)
    assert (found[1].before, found[1].after) == ({"a": ref("2")}, {"a": ref("new")})


def test_own_changes_come_in_one_order_and_equal_keys_have_none() -> None:
    changed = replace(S, guards=(Guard("syntax"),), values={"x": 1}, prompt="p", shell="x")
    found = differences(parts(S), parts(changed), None, {})
    assert [one.part for one in found] == ["prompt", "shell", "with", "guards"]
    assert differences(parts(changed), parts(changed), None, {}) == ()


def test_another_version_of_the_key_is_all_that_is_said() -> None:
    old = parts(S)
    old["ext"] = {"v": 0, "uses": "other"}
    (found,) = differences(old, parts(S), None, {})
    assert (found.code, found.before, found.after) == ("key_version", 0, 1)


@pytest.mark.req("R56")
def test_true_is_not_one_though_python_says_so() -> None:
    old, new = (parts(replace(S, values={"x": x, "y": 2})) for x in (1, True))
    (found,) = differences(old, new, None, {})
    assert (found.code, found.part, found.names) == ("parameters_changed", "with", ("x",))
    both = parts(replace(S, values={"x": True, "y": 2}, guards=(Guard("syntax"),)))
    assert not guards_only(differences(old, both, None, {}))
    whole, real = (parts(replace(S, values={"x": x})) for x in (1, 1.0))
    assert differences(whole, real, None, {}) == (), "they have one digest"


def test_a_value_that_is_said_to_be_nothing_is_named_too() -> None:
    old, new = (parts(replace(S, values=values)) for values in ({"y": 2}, {"x": None, "y": 2}))
    (found,) = differences(old, new, None, {})
    assert found.names == ("x",)


def test_the_parts_of_a_key_have_names_that_never_change() -> None:
    """What is stored names them: another name would make all steps that have the part anew."""
    texts = ("shell", "workspace", "contract", "constraints", "specification", "agent", "action")
    lists = ("run", "produces", "outputs", "tools")
    full = replace(
        S,
        values={"x": 1},
        **dict.fromkeys(texts, "x"),  # type: ignore[arg-type]  # fields that take it
        **dict.fromkeys(lists, ("x",)),  # type: ignore[arg-type]
    )
    ext, plain = (cast("dict[str, Json]", parts(one)["ext"]) for one in (full, S))
    assert ext.keys() - plain.keys() == {*texts, *lists[:3], "may_use", "with"}
    for part in ext.keys() - {"v"}:
        assert part in PARTS


def test_an_artifact_is_as_old_as_the_time_since_it_was_made() -> None:
    fresh = replace(S, fresh_for=10)
    made = replace(artifact(), at=100_000)
    stands = FOUND._replace(found=made)
    for now, action in (
        (110_000, "reuse"),
        (110_001, "run"),
        (100_000, "reuse"),
        (40_000, "reuse"),  # clocks differ by a minute
        (39_999, "run"),  # it is from a time that has not come yet
    ):
        assert choose(fresh, stands, NONE, now=now).action == action
        assert choose(S, stands, NONE, now=now).action == "reuse"


# --- what was not selected -----------------------------------------------------------------------------


def test_what_was_not_selected_stands_or_is_left_out_whatever_is_asked_for() -> None:
    left = Choice("skip", Reason("not_selected"))
    assert choose(S, NOTHING, NONE, now=0, selected=False) == left
    for asked in (Options(force=True), Options(force_steps=(S.id,)), Options(resample=(S.id,))):
        assert choose(S, NOTHING, asked, now=0, selected=False) == left
        stands = choose(S, FOUND, asked, now=0, selected=False)
        assert stands == Choice("reuse", Reason("unchanged"), KEPT)


def test_what_a_person_was_asked_for_and_gave_stands_like_any_other() -> None:
    asked = replace(S, uses="human")
    given = FOUND._replace(found=replace(KEPT, source="human"))
    assert choose(asked, given, NONE, now=0).reason == Reason("unchanged")
    assert choose(S, given, NONE, now=0).reason == Reason("amended")
    unasked = FOUND._replace(found=replace(KEPT, source="human", run=RunId("")))
    assert choose(asked, unasked, NONE, now=0).reason == Reason("amended")


def test_a_step_that_was_sent_back_is_made_whatever_stands() -> None:
    assert choose(S, FOUND, NONE, now=0, anew=True) == Choice("run", Reason("forced"))
    tried = Reason("reopened", ("below",))
    assert choose(S, FOUND, NONE, now=0, anew=True, tried=tried) == Choice("run", tried)


def test_contested_findings_and_unfit_additions_are_reasons_to_run() -> None:
    contested = FOUND._replace(contested=("e-1",))
    assert choose(S, contested, NONE, now=0).reason == Reason("evidence_contested", ("e-1",))
    unfit = FOUND._replace(unfit="no list")
    assert choose(S, unfit, NONE, now=0).reason == Reason("additions_unfit", ("no list",))


def test_parameters_that_come_or_go_are_told_apart_from_the_model() -> None:
    bare, one = (parts(replace(S, model="m", parameters=p)) for p in ({}, {"t": 1}))
    for before, after in ((bare, one), (one, bare)):
        (found,) = differences(before, after, None, {})
        assert (found.code, found.part, found.names) == ("parameters_changed", "parameters", ("t",))


def test_what_stayed_as_it_was_is_told_in_the_order_of_the_parts() -> None:
    whole = parts(replace(S, prompt="p", model="m", guards=(Guard("syntax"),)))
    assert unchanged_parts(whole, ()) == ("prompt", "model", "uses", "guards", "upstream")
    moved = (change("upstream", "upstream_changed", "a"), change("prompt", "prompt_changed"))
    assert unchanged_parts(whole, moved) == ("model", "uses", "guards")


def test_that_a_step_changes_project_files_in_its_copy_is_part_of_what_it_promises() -> None:
    copy = replace(S, workspace="scratch")
    (found,) = differences(parts(copy), parts(replace(copy, effects="workspace")), None, {})
    assert (found.code, found.part) == ("contract_changed", "effects")


@pytest.mark.parametrize(
    ("probe", "reason"),
    [
        (FOUND._replace(contested=("e-1",)), Reason("evidence_contested", ("e-1",))),
        (FOUND._replace(unfit="x"), Reason("additions_unfit", ("x",))),
        (FOUND._replace(unsure=("gcc",)), Reason("command_changed", ("gcc cannot be resolved",))),
    ],
)
def test_what_stands_is_not_good_enough(probe: Probe, reason: Reason) -> None:
    assert chosen(probe) == Choice("run", reason)


def test_a_cause_is_named_against_what_stood_or_else_the_newest() -> None:
    stood = artifact(at=5)
    assert (NOTHING.base, FOUND.base) == (None, KEPT)
    assert FOUND._replace(stood=stood).base is stood
