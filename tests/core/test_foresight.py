"""A preview says no more than is certain, and names why a step cannot go on."""

from dataclasses import replace

import pytest

from holdfast.core.changes import Change
from holdfast.core.preview import Outlook, preview
from holdfast.core.sight import Disk
from holdfast.core.waves import graph_of
from holdfast.errors import IntegrityError
from holdfast.model.event import Options, Reason
from holdfast.model.plan import Input, Need, Plan, Step, StepId
from tests.core.builders import artifact, graph, plan, sid, step
from tests.core.sight import NONE, Memory

FILES = plan(replace(step("z"), produces=("f",)), step("a", "z"))
FORCED_Z = Options(force_steps=(sid("z"),))


class Counted(dict[StepId, Step]):
    """The steps of a plan, and how often one was asked for."""

    asked = 0

    def __getitem__(self, name: StepId) -> Step:
        self.asked += 1
        return super().__getitem__(name)


def wants(name: str, *needs: Need) -> Step:
    return replace(step(name), needs=needs)


# --- what an outlook says of itself --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "stuck", "left_out"),
    [
        ("command_failed", True, False),
        ("output_modified", True, False),
        ("key_missing", True, False),
        ("dependency_failed", True, False),
        ("dependency_skipped", False, True),
        ("not_selected", False, True),
        ("condition_unmet", False, True),
        ("condition_above", False, True),
        ("awaiting_person", False, False),
    ],
)
def test_only_who_waits_is_stuck_or_left_out(code: str, stuck: bool, left_out: bool) -> None:
    waiting = Outlook("wait", Reason(code))
    assert (waiting.is_stuck, waiting.is_left_out) == (stuck, left_out)
    assert waiting.is_work is not left_out
    running = Outlook("run", Reason(code))
    assert not running.is_stuck
    assert not running.is_left_out
    assert running.is_work


def test_files_that_are_put_back_are_work_even_if_all_is_reused() -> None:
    reused = Outlook("reuse", Reason("unchanged"))
    assert not reused.is_work
    assert replace(reused, put_back=("f",)).is_work
    assert replace(reused, written=("f",)).is_work


def test_who_edits_what_a_step_made_is_told_from_who_was_there_before() -> None:
    made = Memory("z").outlooks(FILES)[sid("z")]
    assert not made.is_edited
    assert replace(made, edited=("f",)).is_edited
    assert not Outlook("run", Reason("never_ran"), edited=("f",)).is_edited
    assert Outlook("wait", Reason("output_modified")).is_edited
    never = Memory().outlooks(FILES)[sid("z")]
    assert not replace(never, edited=("f",)).is_edited


# --- who cannot go on ----------------------------------------------------------------------------------


def test_what_nobody_can_read_is_stuck_with_the_words() -> None:
    memory = Memory("za")
    memory.unreadable = {"z"}
    found = memory.outlooks(graph("z>a"))
    assert found[sid("z")].reason == Reason("command_failed", ("nobody can read it",))
    assert found[sid("a")].reason == Reason("dependency_failed", ("z",))
    assert {one.decision for one in found.values()} == {"wait"}


def test_a_step_that_nobody_said_how_to_do_waits_unless_it_stands() -> None:
    idle = replace(step("z"), uses="agent", agent="writer", action="write")
    of = plan(idle, step("a", "z"))
    found = Memory().outlooks(of)
    assert found[sid("z")].decision == "wait"
    words = "nobody said how 'writer' does 'write'"
    assert found[sid("z")].reason == Reason("command_failed", (words,))
    assert found[sid("z")].probe is not None
    assert found[sid("a")].reason == Reason("dependency_failed", ("z",))
    assert Memory("za").shown(of)["z"] == ("reuse", "unchanged")
    left = Memory().shown(of, Options(select=(sid("a"),)))
    assert left["z"] == ("wait", "not_selected")


def test_whoever_must_be_asked_before_an_attempt_holds_it_up() -> None:
    asking = replace(step("z"), approve="always")
    memory = Memory()
    memory.people = {"z": "awaiting_approval", "a": "awaiting_approval"}
    of = plan(asking, step("a"))
    assert memory.shown(of) == {"z": ("wait", "awaiting_approval"), "a": ("run", "never_ran")}
    memory.people = {}
    assert memory.shown(of)["z"] == ("run", "never_ran"), "he said yes before"
    stands = Memory("z")
    stands.people = {"z": "awaiting_approval"}
    assert stands.shown(of)["z"] == ("reuse", "unchanged")
    edited = Memory("z")
    edited.edited, edited.people = {"z"}, {"z": "awaiting_approval"}
    adopted = edited.outlooks(plan(replace(asking, produces=("f",))))[sid("z")]
    assert (adopted.decision, adopted.means) == ("run", "adopt"), "nothing is made"


def test_an_effect_that_nobody_confirmed_is_not_asked_about_as_well() -> None:
    memory = Memory()
    memory.unconfirmed, memory.people = {"z"}, {"z": "awaiting_approval"}
    assert memory.shown(plan(replace(step("z"), approve="always"))) == {
        "z": ("wait", "effect_unconfirmed")
    }


@pytest.mark.req("I17")
def test_an_effect_whose_receipt_is_gone_waits_for_a_person() -> None:
    memory = Memory("z", {"z": "prompt_changed"})
    memory.more, once = {"z": {"lost": artifact("z")}}, replace(step("z"), effects="external")
    assert memory.shown(plan(once)) == {"z": ("wait", "receipt_gone")}
    assert memory.shown(plan(once), FORCED_Z) == {"z": ("run", "forced")}
    memory.unconfirmed = {"z"}
    assert memory.shown(plan(once)) == {"z": ("wait", "effect_unconfirmed")}, "that weighs more"
    memory.unconfirmed, memory.edited = set(), {"z"}
    writes = plan(replace(once, produces=("f",)))
    fails = memory.shown(writes, Options(on_drift="fail"))
    assert fails == {"z": ("wait", "output_modified")}


def test_what_a_person_gave_for_an_effect_stands() -> None:
    memory = Memory("z", {"z": "prompt_changed"})
    memory.gifts = {"z": artifact("z", "human")}
    found = memory.outlooks(graph("z"))[sid("z")]
    assert (found.decision, found.reason) == ("reuse", Reason("amended"))
    assert found.artifact == artifact("z", "human")
    memory.changed = {}
    found = memory.outlooks(graph("z"))[sid("z")]
    assert found.reason == Reason("unchanged"), "nobody looks for a gift if it is reused anyway"


def test_who_reads_an_output_that_is_not_there_waits() -> None:
    reader = wants("a", Need(sid("z"), key="rows"))
    of = plan(step("z"), reader, step("b", "a"))
    memory = Memory("z")
    memory.lacks = {"a": ("z.rows",)}
    found = memory.outlooks(of)
    assert found[sid("a")].decision == "wait"
    assert found[sid("a")].reason == Reason("key_missing", ("z.rows",))
    assert found[sid("a")].probe is not None
    assert found[sid("b")].reason == Reason("dependency_failed", ("a",))
    memory.stands.add("a")
    assert memory.shown(of)["a"] == ("reuse", "unchanged"), "it read it then"
    memory.stands, memory.lacks = {"z"}, {}
    assert memory.shown(of)["a"] == ("run", "never_ran")


def test_below_steps_that_wait_the_worst_reason_is_named_with_all_of_them() -> None:
    of = plan(step("x"), step("y"), step("w"), step("a", "y", "x"), step("b", "w", "x"))
    memory = Memory()
    memory.unreadable = {"x", "y"}
    memory.unconfirmed = {"w"}
    found = memory.outlooks(of)
    assert found[sid("a")].reason == Reason("dependency_failed", ("x", "y"))
    assert found[sid("b")].reason == Reason("dependency_failed", ("x",))
    memory.unreadable = set()
    waits = memory.outlooks(of)[sid("b")]
    assert (waits.decision, waits.reason) == ("wait", Reason("awaiting_person", ("w",)))


def test_below_what_was_not_selected_nothing_runs() -> None:
    of = graph("z>a>b")
    shown = Memory().outlooks(of, Options(select=(sid("a"),)))
    assert shown[sid("z")].reason == Reason("not_selected")
    assert shown[sid("a")].reason == Reason("dependency_skipped", ("z",))
    assert shown[sid("b")].reason == Reason("not_selected", ("a",))
    assert {one.decision for one in shown.values()} == {"wait"}


def test_below_a_condition_that_does_not_hold_the_condition_is_named() -> None:
    asking = replace(step("b", "a"), when={"steps.a.output": 1})
    of = plan(step("a"), asking, step("c", "b"), step("x"), step("d", "b", "x"))
    memory = Memory("a")
    memory.unmet_ones = {"b"}
    found = memory.outlooks(of)
    assert found[sid("c")].reason == Reason("condition_above", ("b",))
    memory.unreadable = {"x"}
    assert memory.outlooks(of)[sid("d")].reason == Reason("dependency_failed", ("x",))


def test_who_can_do_without_a_lost_step_goes_on_unless_it_is_the_list() -> None:
    lost = wants("a", Need(sid("z"), optional=True))
    memory = Memory("a")
    memory.unreadable = {"z"}
    assert memory.shown(plan(step("z"), lost))["a"] == ("reuse", "unchanged")
    listing = replace(lost, for_each="${{ steps.z.output }}", template=step("item"), uses="gather")
    assert memory.shown(plan(step("z"), listing))["a"] == ("wait", "dependency_failed")
    memory.unreadable, memory.unconfirmed = set(), {"z"}
    assert memory.shown(plan(step("z"), lost))["a"][0] == "wait", "it is not lost yet"


def test_as_many_items_as_the_list_will_have() -> None:
    listing = replace(
        step("a", "z"), for_each="${{ steps.z.output }}", template=step("item"), uses="gather"
    )
    of = plan(step("z"), listing, step("b", "a"))
    first = Memory().outlooks(of)[sid("a")]
    assert (first.decision, first.reason) == ("run", Reason("items_open", ("z",)))
    assert (first.means, first.is_new) == ("make", True)
    changed = Memory("za", {"z": "prompt_changed", "a": "prompt_changed"})
    then = changed.outlooks(of)[sid("a")]
    assert (then.decision, then.reason) == ("maybe", Reason("items_open", ("z",)))
    assert (then.means, then.is_new) == ("make", False)
    assert then.probe is not None
    assert then.probe.changes == ()
    assert Memory("zab").shown(of)["a"] == ("reuse", "unchanged")


# --- conditions ----------------------------------------------------------------------------------------

ASKING = plan(
    step("a"), step("x"), replace(step("b", "a", "x"), when={"steps.a.output": 1}), step("c", "b")
)


def test_an_open_condition_leaves_a_step_that_waits_as_it_is() -> None:
    memory = Memory("b")
    memory.unreadable = {"x"}
    assert memory.outlooks(ASKING)[sid("b")].reason == Reason("dependency_failed", ("x",))
    alone = Options(select=(sid("a"),))
    of = plan(step("a"), replace(step("b", "a"), when={"steps.a.output": 1}))
    assert Memory().outlooks(of, alone)[sid("b")].reason == Reason("not_selected")


def test_what_would_be_reused_is_open_while_its_condition_is() -> None:
    of = plan(step("a"), replace(step("b", "~a"), when={"steps.a.output": 1}))
    found = Memory("b").outlooks(of)[sid("b")]
    assert (found.decision, found.reason) == ("maybe", Reason("condition_open", ("a",)))
    assert (found.artifact, found.means) == (None, "make")


def test_a_condition_on_a_lost_step_is_asked_all_the_same() -> None:
    asked = replace(wants("b", Need(sid("a"), optional=True)), when={"steps.a.status": "failed"})
    memory = Memory("b")
    memory.unreadable = {"a"}
    assert memory.shown(plan(step("a"), asked))["b"] == ("reuse", "unchanged")
    memory.unmet_ones = {"b"}
    assert memory.shown(plan(step("a"), asked))["b"] == ("wait", "condition_unmet")


# --- everything above is known -------------------------------------------------------------------------


def test_only_what_was_selected_runs_or_is_adopted() -> None:
    memory = Memory("z", {"z": "prompt_changed"})
    alone = Options(select=(sid("z"),))
    assert memory.shown(FILES, alone) == {
        "z": ("run", "prompt_changed"),
        "a": ("wait", "not_selected"),
    }
    memory = Memory("za")
    memory.edited = {"z"}
    other = Options(select=(sid("a"),))
    found = memory.outlooks(FILES, other)[sid("z")]
    assert (found.decision, found.reason) == ("wait", Reason("not_selected"))
    assert found.probe is not None
    memory = Memory("za", {"z": "prompt_changed"})
    left = memory.outlooks(FILES, other)[sid("z")]
    assert (left.decision, left.reason) == ("wait", Reason("not_selected"))


def test_an_artifact_is_too_old_only_by_the_clock_of_the_preview() -> None:
    of = plan(replace(step("z"), fresh_for=10.0))
    for now, decision in ((10_000, "reuse"), (10_001, "run")):
        assert Memory("z").outlooks(of, now=now)[sid("z")].decision == decision


def test_content_that_was_lost_is_made_anew_beside_a_persons_files() -> None:
    memory = Memory("z")
    memory.more = {"z": {"gone": True}}
    found = memory.outlooks(FILES)[sid("z")]
    assert (found.decision, found.reason) == ("run", Reason("output_missing"))
    assert (found.means, found.artifact, found.is_new) == ("make", None, False)
    memory.edited = {"z"}
    assert memory.outlooks(FILES)[sid("z")].means == "adopt"


def test_what_is_adopted_brings_back_the_files_beside_it() -> None:
    memory = Memory("za")
    memory.edited, memory.left = {"z"}, {"z": ("g",)}
    found = memory.outlooks(FILES)[sid("z")]
    assert (found.decision, found.means) == ("run", "adopt")
    assert found.reason == Reason("output_modified", ("f",))
    assert (found.edited, found.written) == (("f",), ("g",))
    assert (found.artifact, found.replaced) == (None, ())
    assert not found.is_new
    changed = Memory("za", {"z": "guard_changed"})
    changed.edited = {"z"}
    adopted = changed.outlooks(FILES)[sid("z")]
    assert (adopted.means, adopted.is_new) == ("adopt", True), "its guards are others"
    failing = memory.outlooks(FILES, Options(on_drift="fail"))[sid("z")]
    assert failing.reason == Reason("output_modified", ("f",))
    anew = memory.outlooks(FILES, Options(on_drift="regenerate"))[sid("z")]
    assert anew.reason == Reason("output_modified", ("f",))


def test_guarding_again_names_the_artifact_and_its_files() -> None:
    memory = Memory("za", {"z": "guard_changed"})
    memory.missing = {"z"}
    found = memory.outlooks(FILES)[sid("z")]
    assert (found.decision, found.means) == ("maybe", "guard")
    assert found.artifact == artifact("z")
    assert (found.written, found.edited, found.is_new) == (("f",), (), True)
    memory.again = {"z"}
    assert not memory.outlooks(FILES)[sid("z")].is_new
    memory.unconfirmed = {"z"}
    held = memory.outlooks(FILES)[sid("z")]
    assert (held.decision, held.reason) == ("wait", Reason("effect_unconfirmed"))
    assert held.probe is not None


def test_a_step_is_new_if_nothing_was_accepted_under_its_ref() -> None:
    def is_new(memory: Memory) -> bool:
        return memory.outlooks(graph("z"))[sid("z")].is_new

    assert is_new(Memory())
    assert is_new(Memory("z", {"z": "prompt_changed"}))
    again = Memory("z", {"z": "prompt_changed"})
    again.again = {"z"}
    assert not is_new(again)
    undone = Memory()
    undone.more = {"z": {"undone": True}}
    assert not is_new(undone)
    assert not Memory("z").outlooks(graph("z"), Options(force=True))[sid("z")].is_new


def test_a_persons_answer_that_would_be_replaced_is_named_by_its_step() -> None:
    memory = Memory("z", {"z": "prompt_changed"})
    memory.more = {"z": {"newest": artifact("z", "human")}}
    assert memory.outlooks(graph("z"))[sid("z")].replaced == ("z",)
    memory.more = {"z": {"newest": replace(artifact("z", "human"), status="withdrawn")}}
    assert memory.outlooks(graph("z"))[sid("z")].replaced == ()
    memory.more = {}
    assert memory.outlooks(graph("z"))[sid("z")].replaced == ()


def test_an_edit_of_what_was_undone_may_not_be_touched_either() -> None:
    memory = Memory()
    memory.edited, memory.more = {"z"}, {"z": {"undone": True}}
    found = memory.outlooks(FILES, Options(on_drift="fail"))[sid("z")]
    assert (found.decision, found.reason) == ("wait", Reason("output_modified", ("f",)))
    assert found.probe is not None
    assert memory.outlooks(FILES)[sid("z")].decision == "run"


# --- something above is open ---------------------------------------------------------------------------

CHAIN = graph("z>m>a")


def below(memory: Memory, options: Options = FORCED_Z, of: Plan = CHAIN) -> Outlook:
    """Of a step below one that runs and may bring what it brought before."""
    return memory.outlooks(of, options)[sid("m")]


def test_what_is_asked_for_by_name_is_certain_below_an_open_step() -> None:
    forced = below(Memory("zma"), Options(force_steps=(sid("z"), sid("m"))))
    assert (forced.decision, forced.reason) == ("run", Reason("forced"))
    assert (forced.means, forced.is_new, forced.artifact) == ("make", False, None)
    again = below(Memory("zma"), Options(force_steps=(sid("z"),), resample=(sid("m"),)))
    assert (again.decision, again.reason) == ("run", Reason("resampled"))


def test_a_step_that_cannot_know_its_key_runs_whatever_comes() -> None:
    memory = Memory("zma")
    memory.more = {"m": {"unsure": ("cc",)}}
    words = ("cc cannot be resolved",)
    assert below(memory).reason == Reason("command_changed", words)
    assert below(memory).decision == "run"
    memory.stands = {"z"}
    assert below(memory).reason == Reason("never_ran"), "it runs for the first time anyway"


def test_contested_findings_are_named_below_an_open_step() -> None:
    memory = Memory("zma")
    memory.more = {"m": {"contested": ("e-1", "e-2")}}
    found = below(memory)
    assert (found.decision, found.reason) == ("run", Reason("evidence_contested", ("e-1", "e-2")))


@pytest.mark.parametrize(
    ("probe", "code", "is_new"),
    [
        ({}, "never_ran", True),
        ({"previous": "incomplete"}, "previous_incomplete", True),
        ({"previous": "failed"}, "never_ran", True),
        ({"undone": True}, "undone", False),
    ],
)
def test_the_first_time_is_certain_and_says_why(
    probe: dict[str, object], code: str, is_new: bool
) -> None:
    memory = Memory("z")
    memory.more = {"m": probe}
    found = below(memory)
    assert (found.decision, found.reason, found.is_new) == ("run", Reason(code), is_new)
    new_above = Memory()
    new_above.more = {"m": probe}
    assert below(new_above).is_new


def test_the_own_change_is_named_before_the_change_above() -> None:
    changes = (
        Change("with", "parameters_changed", ("x",), None, None),
        Change("inputs", "input_changed", ("f",), None, None),
        Change("parameters", "parameters_changed", ("y",), None, None),
    )
    memory = Memory("zma", {"z": "prompt_changed", "m": "parameters_changed"})
    memory.more = {"m": {"changes": changes}}
    assert below(memory, NONE).reason == Reason("parameters_changed", ("x", "y"))
    assert below(memory).reason == Reason("parameters_changed", ("x", "y"))
    memory.more = {"m": {"changes": ()}}
    assert below(memory, NONE).reason == Reason("upstream_changed", ("z",))
    memory.changed = {"m": "parameters_changed"}
    assert below(memory).reason == Reason("upstream_changed", ("z",))
    assert below(memory).decision == "run", "nothing was ever made with its own parts"
    assert below(memory).is_new


def test_changed_guards_below_an_open_step_are_only_looked_at_again() -> None:
    memory = Memory("zma", {"m": "guard_changed"})
    found = below(memory)
    assert (found.decision, found.reason, found.means) == (
        "maybe",
        Reason("guard_changed"),
        "guard",
    )
    assert found.is_new
    strict = plan(step("z"), replace(step("m", "z"), reuse="strict"))
    found = below(memory, of=strict)
    assert (found.decision, found.reason, found.means) == ("run", Reason("guard_changed"), "make")


def test_a_step_that_is_not_selected_waits_below_an_open_one() -> None:
    only = Options(select=(sid("z"),), force_steps=(sid("z"),))
    memory = Memory("zm", {"m": "prompt_changed"})
    found = below(memory, only)
    assert (found.decision, found.reason) == ("wait", Reason("not_selected"))
    assert found.probe is not None
    assert below(Memory("zma"), only).decision == "maybe"


def test_who_reads_what_a_step_above_writes_knows_only_what_that_cannot_touch() -> None:
    writer = replace(step("z"), produces=("f",))
    reader = replace(step("m", "~z"), inputs=(Input("f"),))
    of = plan(writer, step("a", "~z"), reader, replace(step("b", "~a"), inputs=(Input("f"),)))
    memory = Memory("zmab")
    found = memory.outlooks(of, FORCED_Z)
    assert found[sid("a")].decision == "reuse", "it reads no files"
    assert found[sid("m")].reason == Reason("upstream_changed", ("z",))
    assert (found[sid("m")].decision, found[sid("m")].is_new) == ("maybe", False)
    assert found[sid("b")].reason == Reason("upstream_changed", ("z",)), "z, not a, writes"
    memory.unreadable = {"m"}
    unread = memory.outlooks(of, FORCED_Z)[sid("m")]
    assert (unread.decision, unread.probe) == ("maybe", None), "the files are still to be written"
    assert unread.reason == Reason("upstream_changed", ("z",))
    assert unread.means == "make"


def test_a_command_that_changes_files_of_the_project_writes_too() -> None:
    changing = replace(step("z"), effects="workspace")
    reader = replace(step("m", "~z"), inputs=(Input("f"),))
    memory = Memory("zm")
    assert memory.shown(plan(changing, reader), FORCED_Z)["m"][0] == "maybe"
    assert memory.shown(plan(changing, reader))["m"] == ("reuse", "unchanged")
    memory.unconfirmed = {"z"}
    assert memory.shown(plan(changing, reader), FORCED_Z)["m"] == ("wait", "awaiting_person")
    assert memory.shown(plan(step("z"), reader), NONE)["m"] == ("reuse", "unchanged")


def test_what_is_told_of_the_work_above_makes_a_step_as_open_as_its_content() -> None:
    told = plan(step("z"), replace(step("m", "~z"), context="in-ref"))
    found = Memory("zm").outlooks(told, FORCED_Z)[sid("m")]
    assert (found.decision, found.reason) == ("maybe", Reason("upstream_changed", ("z",)))
    assert Memory("zm").shown(told)["m"] == ("reuse", "unchanged")


def test_what_nobody_can_read_below_an_open_step_is_stuck() -> None:
    memory = Memory("zma")
    memory.unreadable = {"m"}
    assert below(memory).reason == Reason("command_failed", ("nobody can read it",))


def test_what_names_files_costs_no_more_than_the_plan() -> None:
    """Each step has few above it that it needs itself, and all the others above those."""
    count = 400
    steps = [
        replace(step(f"s{n}", *([f"s{n - 1}"] if n else [])), uses="shell", produces=(f"o{n}",))
        for n in range(count)
    ]
    of = graph_of(plan(*steps))
    counted = Counted(of.steps)
    memory = Memory()
    memory.named = ("script",)
    assert len(preview(replace(of, steps=counted), NONE, memory, now=0)) == count
    assert counted.asked < 20 * count


@pytest.mark.parametrize("named", ["f", "f/deep/down"])
def test_a_file_that_a_command_names_may_be_made_anew_far_above(named: str) -> None:
    """As a file or below a directory, and by whom only the order of the steps tells."""
    makes = replace(step("z"), produces=("f",))
    looks = replace(step("a", "~m"), uses="shell")
    of = plan(makes, step("m", "~z"), looks, step("other"))
    memory = Memory("zma", {"z": "prompt_changed"})
    assert memory.shown(of)["a"] == ("reuse", "unchanged")
    memory.named = (named,)
    found = memory.outlooks(of)[sid("a")]
    assert (found.decision, found.reason) == ("maybe", Reason("upstream_changed", ("z",)))
    memory.named = ("f2", "deep/f")
    assert memory.shown(of)["a"] == ("reuse", "unchanged")
    memory.named = (named,)
    memory.changed = {}
    assert memory.shown(of)["a"] == ("reuse", "unchanged")


# --- changes made in copies ------------------------------------------------------------------------------


def copying(name: str, *needs: str) -> Step:
    return replace(step(name, *needs), effects="workspace", workspace="scratch")


def test_what_is_put_in_place_of_changes_is_told_beside_outputs() -> None:
    both = replace(copying("z"), produces=("f",))
    memory = Memory("z")
    memory.missing = {"z"}
    memory.put["z"] = Disk(written=("a",), removed=("b",))
    (found,) = memory.outlooks(plan(both)).values()
    assert (found.decision, found.written, found.removed) == ("reuse", ("f", "a"), ("b",))
    (plain,) = memory.outlooks(plan(replace(step("z"), produces=("f",)))).values()
    assert (plain.written, plain.removed) == (("f",), ())


def test_changes_that_lie_there_no_more_are_made_again() -> None:
    memory = Memory("z")
    memory.put["z"] = Disk(displaced=("a",))
    of = plan(copying("z"), step("a"))
    found = memory.outlooks(of)[sid("z")]
    assert (found.decision, found.reason, found.means) == (
        "run",
        Reason("output_missing", ("a",)),
        "make",
    )
    left = memory.outlooks(of, Options(select=(sid("a"),)))[sid("z")]
    assert (left.decision, left.reason) == ("wait", Reason("not_selected"))


def test_changes_of_which_the_list_is_lost_stop_a_run() -> None:
    memory = Memory("z")
    memory.lost = {"z"}
    with pytest.raises(IntegrityError, match="its list is gone"):
        memory.outlooks(plan(copying("z")))


def test_outputs_of_which_the_list_is_lost_are_made_again() -> None:
    made = replace(step("z"), produces=("f",))
    memory = Memory("z")
    memory.lost = {"z"}
    missing = Reason("output_missing", ("f",))
    assert memory.outlooks(plan(made))[sid("z")].reason == missing
    only = Options(select=(sid("a"),))
    assert memory.shown(plan(made, step("a")), only)["z"] == ("wait", "not_selected")
    once = plan(replace(made, effects="external"))
    assert memory.shown(once)["z"] == ("wait", "receipt_gone")
    memory.unconfirmed = {"z"}
    assert memory.shown(once)["z"] == ("wait", "effect_unconfirmed")


def test_who_goes_on_from_changes_that_are_made_anew_may_run() -> None:
    of = plan(copying("z"), copying("m", "~z"), copying("a", "~m"), copying("b"))
    memory = Memory("zmab", {"z": "prompt_changed"})
    found = memory.outlooks(of)
    assert found[sid("m")].reason == Reason("upstream_changed", ("z",))
    assert found[sid("a")].reason == Reason("upstream_changed", ("m", "z"))
    assert {one.decision for one in found.values()} == {"run", "maybe", "reuse"}
    assert found[sid("b")].decision == "reuse"
    still = Memory("zma").shown(plan(copying("z"), copying("m", "~z"), copying("a", "~m")))
    assert {decision for decision, _ in still.values()} == {"reuse"}


def test_a_step_that_writes_nothing_is_no_reason_to_make_changes_anew() -> None:
    of = plan(step("z"), copying("m", "~z"))
    assert Memory("zm", {"z": "prompt_changed"}).shown(of)["m"] == ("reuse", "unchanged")
    writes = plan(replace(step("z"), produces=("f",)), copying("m", "~z"))
    found = Memory("zm", {"z": "prompt_changed"}).shown(writes)
    assert found["m"] == ("maybe", "upstream_changed")
