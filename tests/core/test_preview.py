"""What a run would do, in three values."""

from dataclasses import replace

import pytest

from holdfast.core.preview import (
    Outlook,
    options_from,
    options_json,
    outlook_refs,
    preview_digest,
)
from holdfast.model.digest import Digest, Json, digest_json
from holdfast.model.event import Options, Reason
from holdfast.model.plan import Input, Limits, Plan, limits_json, plan_digest
from tests.core.builders import graph, plan, ref, sid, step
from tests.core.sight import NONE, Memory

CHAIN = graph("z>m>a")


def test_nothing_changed_nothing_runs() -> None:
    shown = Memory("zma").shown(CHAIN)
    assert shown == dict.fromkeys("zma", ("reuse", "unchanged"))


def test_nothing_stored_everything_runs() -> None:
    assert Memory().shown(CHAIN) == dict.fromkeys("zma", ("run", "never_ran"))


@pytest.mark.req("R45", "E4")
def test_a_change_runs_everything_below_it() -> None:
    shown = Memory("zma", {"z": "parameters_changed"}).shown(CHAIN)
    assert shown == {
        "z": ("run", "parameters_changed"),
        "m": ("run", "upstream_changed"),
        "a": ("run", "upstream_changed"),
    }


@pytest.mark.req("R58")
def test_with_cutoff_what_is_below_a_change_is_only_maybe() -> None:
    shown = Memory("zma", {"z": "parameters_changed"}).shown(CHAIN, Options(cutoff=True))
    assert shown == {
        "z": ("run", "parameters_changed"),
        "m": ("maybe", "upstream_changed"),
        "a": ("maybe", "upstream_changed"),
    }
    mixed = plan(step("z"), replace(step("m", "z"), reuse="content"), step("a", "m"))
    shown = Memory("zma", {"z": "parameters_changed"}).shown(mixed)
    assert [shown[name][0] for name in "zma"] == ["run", "maybe", "run"], "m gets a new ref anyway"


def test_below_a_forced_step_whose_key_stays_it_is_maybe() -> None:
    shown = Memory("zma").shown(CHAIN, Options(force_steps=(sid("z"),)))
    assert shown == {
        "z": ("run", "forced"),
        "m": ("maybe", "upstream_changed"),
        "a": ("maybe", "upstream_changed"),
    }
    assert Memory("zma").shown(CHAIN, Options(force=True)) == dict.fromkeys(
        "zma", ("run", "forced")
    )


def test_what_is_certain_below_an_open_step_is_said() -> None:
    memory = Memory("zm", {"m": "prompt_changed"})
    shown = memory.shown(CHAIN, Options(force_steps=(sid("z"),)))
    assert shown["m"] == ("run", "prompt_changed")
    assert shown["a"] == ("run", "never_ran")


def test_changed_guards_are_maybe() -> None:
    shown = Memory("zma", {"z": "guard_changed"}).shown(CHAIN)
    assert shown["z"] == ("maybe", "guard_changed")
    assert shown["m"] == ("run", "upstream_changed"), "z gets a new ref, whatever the guards say"
    below = Memory("zma", {"m": "guard_changed"}).shown(CHAIN, Options(force_steps=(sid("z"),)))
    assert below["m"] == ("maybe", "guard_changed")
    assert below["a"] == ("run", "upstream_changed")


def test_a_need_of_order_carries_no_change() -> None:
    shown = Memory("za", {"z": "parameters_changed"}).shown(plan(step("z"), step("a", "~z")))
    assert shown["a"] == ("reuse", "unchanged")


FILES = plan(replace(step("z"), produces=("f",)), step("a", "z"))


def test_an_output_that_a_person_changed_is_adopted_and_what_reads_it_runs() -> None:
    memory = Memory("za")
    memory.edited = {"z"}
    for options in (NONE, Options(cutoff=True)):
        assert memory.shown(FILES, options) == {
            "z": ("run", "output_modified"),
            "a": ("run", "upstream_changed"),
        }
    assert memory.outlooks(FILES)[sid("z")].means == "adopt"
    again = memory.outlooks(FILES, Options(on_drift="regenerate"))
    assert (again[sid("z")].decision, again[sid("z")].means) == ("run", "make")
    assert again[sid("a")].decision == "maybe", "the same bytes may come out"


def test_an_edit_in_the_way_of_a_step_that_runs_is_named() -> None:
    memory = Memory("za", {"z": "prompt_changed"})
    memory.edited = {"z"}
    found = memory.outlooks(FILES)[sid("z")]
    assert (found.decision, found.reason.code, found.edited) == ("run", "prompt_changed", ("f",))
    forced = memory.outlooks(FILES, Options(force=True))[sid("z")]
    assert (forced.reason.code, forced.edited) == ("forced", ("f",))


def test_what_lies_there_before_the_first_time_is_named_and_in_nobodys_way() -> None:
    memory = Memory()
    memory.edited = {"z"}
    for options in (NONE, Options(on_drift="fail")):
        found = memory.outlooks(FILES, options)[sid("z")]
        assert (found.decision, found.reason.code, found.edited) == ("run", "never_ran", ("f",))
        assert not found.is_edited


def test_an_edit_that_may_not_be_touched_stops_the_step_and_what_is_below() -> None:
    memory = Memory("za", {"z": "prompt_changed"})
    memory.edited = {"z"}
    for changed in ({}, {"z": "prompt_changed"}):
        memory.changed = changed
        found = memory.outlooks(FILES, Options(on_drift="fail"))
        assert [(o.decision, o.reason.code, o.is_stuck) for o in found.values()] == [
            ("wait", "output_modified", True),
            ("wait", "dependency_failed", True),
        ]


def test_files_that_would_be_written_are_named_and_are_work() -> None:
    memory = Memory("za")
    memory.missing = {"z"}
    found = memory.outlooks(FILES)
    assert (found[sid("z")].decision, found[sid("z")].written) == ("reuse", ("f",))
    assert found[sid("z")].is_work
    assert not found[sid("a")].is_work


def test_who_reads_files_that_are_still_to_be_written_is_only_maybe() -> None:
    reader = replace(step("a", "~z"), inputs=(Input("f"),))
    of = plan(replace(step("z"), produces=("f",)), reader)
    memory = Memory("za", {"z": "prompt_changed"})
    assert memory.shown(of)["a"] == ("maybe", "upstream_changed")
    memory.changed = {"z": "prompt_changed", "a": "input_changed"}
    assert memory.shown(of)["a"][0] == "maybe", "the change may be undone by z"


def test_a_step_that_waits_for_a_person_holds_up_what_needs_it() -> None:
    memory = Memory("za", {"z": "prompt_changed"})
    memory.unconfirmed = {"z"}
    found = memory.outlooks(graph("z>a"))
    assert [(o.decision, o.reason.code, o.is_stuck) for o in found.values()] == [
        ("wait", "effect_unconfirmed", False),
        ("wait", "awaiting_person", False),
    ]
    memory.changed = {"z": "guard_changed"}
    assert memory.shown(graph("z>a"))["z"][0] == "wait", "guarding again is an attempt too"


def test_a_step_that_is_again_what_it_once_was_promises_nothing() -> None:
    memory = Memory("zma", {"m": "prompt_changed"})
    memory.again = {"m"}
    forced = memory.shown(CHAIN, Options(force_steps=(sid("z"),)))
    assert forced["m"] == ("maybe", "upstream_changed")
    memory = Memory("zma", {"z": "prompt_changed"})
    memory.again = {"z"}  # what it made then may not be reused, but what is below it may
    assert memory.shown(CHAIN)["m"] == ("maybe", "upstream_changed")


@pytest.mark.req("R107")
def test_a_persons_version_is_named_where_an_attempt_would_replace_it() -> None:
    memory = Memory("za", {"z": "prompt_changed"})
    memory.versions = {"z", "a"}
    assert memory.outlooks(FILES)[sid("z")].replaced == ("f", "g")
    assert memory.outlooks(FILES, Options(on_drift="fail"))[sid("z")].decision == "run", "it stood"
    memory.edited = {"z"}
    assert memory.outlooks(FILES)[sid("z")].replaced == ("g",), "the other was edited since"
    memory.changed = {}
    assert memory.outlooks(FILES)[sid("z")].replaced == (), "it is adopted"
    made = memory.outlooks(FILES, Options(on_drift="regenerate"))[sid("z")]
    assert (made.edited, made.replaced) == (("f",), ("g",))
    memory.edited = set()
    assert memory.outlooks(FILES)[sid("z")].replaced == (), "it stands"


def digest(memory: Memory, of: Plan = FILES, options: Options = NONE) -> Digest:
    return preview_digest(of, options, memory.outlooks(of, options), {})


@pytest.mark.req("R98")
def test_a_preview_has_another_digest_if_anything_about_it_changed() -> None:
    first = digest(Memory("za"))
    assert digest(Memory("za")) == first
    edited, missing = Memory("za"), Memory("za")
    edited.edited, missing.missing = {"z"}, {"z"}
    version = Memory("za", {"z": "prompt_changed"})
    version.versions = {"z"}
    others = [
        digest(Memory("z")),
        digest(version),
        digest(Memory("za", {"z": "prompt_changed"})),
        digest(Memory("za", {"z": "model_changed"})),
        digest(edited),
        digest(missing),
        digest(Memory("za"), options=Options(cutoff=True)),
        digest(Memory("za"), replace(FILES, limits=Limits(attempts=3))),
        digest(Memory("za"), replace(FILES, description="other")),
    ]
    assert len({first, *others}) == len(others) + 1
    assert digest(Memory("za"), options=Options(fail_fast=True)) == first, "how, not what"


def test_options_are_read_back_as_they_were_written() -> None:
    options = Options(force_steps=(sid("z"),), cutoff=True, on_drift="fail")
    assert options_from(options_json(options)) == options
    assert options_from({}) == Options()


# --- conditions ----------------------------------------------------------------------------------------

ASKING = plan(step("a"), replace(step("b", "a"), when={"steps.a.output": 1}), step("c", "b"))


def test_a_condition_on_what_will_be_made_leaves_it_open() -> None:
    for options in (Options(), Options(cutoff=True)):
        outlook = Memory("b").outlooks(ASKING, options)[sid("b")]
        assert (outlook.decision, outlook.reason) == ("maybe", Reason("condition_open", ("a",)))
        assert (outlook.artifact, outlook.means) == (None, "make")


def test_a_condition_that_does_not_hold_leaves_the_step_out() -> None:
    memory = Memory("ab")
    assert memory.shown(ASKING)["b"] == ("reuse", "unchanged")
    memory.unmet_ones = {"b"}
    found = memory.outlooks(ASKING)
    assert found[sid("b")].decision == "wait"
    assert found[sid("b")].reason == Reason("condition_unmet", ("no rain",))
    assert found[sid("c")].decision == "wait"


def test_a_step_that_stands_on_contested_findings_is_made_again() -> None:
    memory = Memory("abc")
    memory.contested = {"b"}
    found = memory.outlooks(ASKING)[sid("b")]
    assert (found.decision, found.reason) == ("run", Reason("evidence_contested", ("e-1",)))


def test_a_decision_stands_on_refs_and_artifact_as_far_as_they_are_known() -> None:
    (one,) = Memory("a").outlooks(graph("a")).values()
    assert outlook_refs(one) == {
        "config_ref": ref("ca"),
        "own_ref": ref("oa"),
        "artifact": ref("content"),
    }
    nothing = Outlook("wait", Reason("never_ran"))
    assert set(outlook_refs(nothing).values()) == {None}
    assert (nothing.means, nothing.is_new, nothing.failed_before) == ("", False, False)


# --- the digest of a preview ---------------------------------------------------------------------------


def test_the_options_that_decide_are_written_by_name() -> None:
    options = Options(select=(sid("z"),), resample=(sid("a"),), max_cost=5, fail_fast=True)
    assert options_json(options) == {
        "force": False,
        "force_steps": [],
        "cutoff": False,
        "on_drift": "adopt",
        "select": ["z"],
        "resample": ["a"],
        "executor": "",
    }
    assert options_from({"select": ["z"], "new": 1, "max_cost": 5}) == Options(select=(sid("z"),))


def test_a_saved_preview_is_named_by_the_digest_of_all_that_it_promised() -> None:
    """A person's yes to a saved preview is looked for under this digest, by later versions too."""
    memory = Memory("za", {"z": "prompt_changed"})
    memory.versions = {"z"}
    found = memory.outlooks(FILES)
    promised: dict[str, Json] = {
        "z": {
            "config_ref": ref("cz"),
            "own_ref": ref("oz"),
            "artifact": None,
            "decision": "run",
            "code": "prompt_changed",
            "because": [],
            "edited": [],
            "edits": [ref("edit")],
            "written": [],
            "replaced": ["f", "g"],
        },
        "a": {
            "config_ref": ref("ca"),
            "own_ref": ref("oa"),
            "artifact": None,
            "decision": "run",
            "code": "upstream_changed",
            "because": ["z"],
            "edited": [],
            "edits": [],
            "written": [],
        },
    }
    whole: dict[str, Json] = {
        "plan": plan_digest(FILES),
        "options": options_json(NONE),
        "limits": limits_json(FILES.limits),
        "steps": promised,
    }
    assert preview_digest(FILES, NONE, found, {sid("z"): [ref("edit")]}) == digest_json(whole)


def test_refs_that_nobody_could_compute_are_nothing() -> None:
    found = Memory("z").outlooks(graph("z"))[sid("z")]
    assert found.probe is not None
    blank = found.probe._replace(
        refs=found.probe.refs._replace(config_ref=Digest(""), own_ref=Digest(""))
    )
    assert outlook_refs(replace(found, probe=blank)) == {
        "config_ref": None,
        "own_ref": None,
        "artifact": ref("content"),
    }
