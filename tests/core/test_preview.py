"""What a run would do, in three values."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from holdfast.core.changes import Change, Choice, Probe
from holdfast.core.preview import Outlook, preview
from holdfast.core.refs import Refs, Upstream
from holdfast.core.waves import graph_of
from holdfast.model.event import Options, Reason
from holdfast.model.plan import Plan, Step, StepId
from tests.core.builders import artifact, graph, plan, ref, sid, step

NONE = Options()


class Memory:
    """What a store knows: steps that stand, and how the others changed."""

    def __init__(self, stands: str = "", changed: Mapping[str, str] | None = None) -> None:
        self.stands = set(stands)
        self.changed = dict(changed or {})
        self.edited: set[str] = set()

    def look(self, of: Step, upstream: Mapping[StepId, Upstream]) -> Probe:
        assert upstream.keys() == set(of.data_needs), "probed although something above is open"
        kept = artifact(of.id) if of.id in self.stands else None
        found = kept if of.id not in self.changed else None
        return Probe(of.id, self._refs(of), found=found, newest=kept, changes=self._changes(of))

    def own(self, of: Step) -> Probe:
        kept = artifact(of.id) if of.id in self.stands else None
        return Probe(of.id, self._refs(of), newest=kept, changes=self._changes(of))

    def disk(self, of: Step, choice: Choice) -> Choice:
        if of.id in self.edited:
            return Choice("run", Reason("output_modified", ("f",)))
        return choice

    def _refs(self, of: Step) -> Refs:
        return Refs(ref(f"c{of.id}"), ref(f"i{of.id}"), ref(f"o{of.id}"))

    def _changes(self, of: Step) -> tuple[Change, ...]:
        code = self.changed.get(of.id)
        if code is None or of.id not in self.stands:
            return ()
        part = "guards" if code == "guard_changed" else "with"
        return (Change(part, code, (), None, None),)

    def shown(self, of: Plan, options: Options = NONE) -> dict[str, tuple[str, str]]:
        found: dict[StepId, Outlook] = preview(
            graph_of(of), options, self.look, self.disk, self.own, now=0
        )
        return {name: (item.decision, item.reason.code) for name, item in found.items()}


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
    assert [shown[name][0] for name in "zma"] == ["run", "maybe", "maybe"]


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
    assert shown["m"] == ("maybe", "upstream_changed")


def test_a_need_of_order_carries_no_change() -> None:
    shown = Memory("za", {"z": "parameters_changed"}).shown(plan(step("z"), step("a", "~z")))
    assert shown["a"] == ("reuse", "unchanged")


def test_an_output_that_a_person_changed_is_shown() -> None:
    memory = Memory("za")
    memory.edited = {"z"}
    of = plan(replace(step("z"), produces=("f",)), step("a", "z"))
    shown = memory.shown(of)
    assert shown["z"] == ("run", "output_modified")
    assert shown["a"][0] in {"run", "maybe"}
