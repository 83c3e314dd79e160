"""verify and rebuild: is the store whole, and can its index be made again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace

import click

from holdfast.cli.measure import count
from holdfast.cli.place import Place, file_option, json_option, place, place_options
from holdfast.cli.repair import Mended, Ways, made_again, made_by, ways
from holdfast.cli.say import out, out_json, short, talk
from holdfast.engine.audit import CORRUPT, UNREADABLE, Audit, audit, follows
from holdfast.engine.rebuilt import rebuilt_index
from holdfast.engine.whole import assure_runs
from holdfast.errors import HoldfastError, IntegrityError, UsageError
from holdfast.model.artifact import Artifact
from holdfast.model.digest import Digest, Json
from holdfast.model.pattern import Pattern
from holdfast.model.plan import StepId
from holdfast.ports import Store
from holdfast.store.host import gone

_CONTENT = Pattern(r"content '([0-9a-f]{64})'")
_THIS = "holdfast verify"


@click.command(
    epilog="\b\nExample:\n  holdfast verify --json\n"
    "  holdfast verify --attestation report.intoto.json"
)
@click.option("--all", "everything", is_flag=True, help="Everything (the default).")
@click.option(
    "--attestation",
    metavar="FILE",
    help="Check this statement of 'attest' instead: against the store, else against the files here.",
)
@click.option("--files", "only_files", is_flag=True, help="With --attestation: the files alone.")
@file_option
@place_options
@json_option
def verify(
    attestation: str | None,
    plan: str | None,
    store: str | None,
    plan_id: str | None,
    *,
    as_json: bool,
    everything: bool,
    only_files: bool,
) -> int:
    """Check the whole store: pages, chain, digests, states, index, approvals, effects.

    Exit 9 if anything is wrong. The bits of --json say what: 1 damaged, 2 not vouched for, 4 a run that
    cannot be read, 8 a run that nobody works on.
    """
    if attestation is not None:
        if everything:
            raise UsageError("--all and --attestation contradict each other")
        from holdfast.cli.attest import verify_attestation

        where = place(plan, store, plan_id)
        return verify_attestation(where, attestation, only_files=only_files, as_json=as_json)
    if only_files:
        raise UsageError("--files is about a statement", hint="--attestation FILE --files")
    found, advice = _audited(place(plan, store, plan_id))
    if as_json:
        problems: list[Json] = list(found.problems)
        out_json(
            {
                "schema": "holdfast.verify/1",
                "ok": not found.problems,
                "bits": found.bits,
                "problems": problems,
                "stuck": list(found.stuck),
                "runs": found.runs,
                "events": found.events,
                "blobs": found.blobs,
            }
        )
    else:
        for problem in found.problems:
            talk(problem)
        for line in advice:
            talk(line)
        for run in found.stuck:
            talk(
                f"run '{short(run)}' is not finished and no engine works on it: holdfast resume {short(run)}"
            )
        read = ", ".join(
            (count(found.runs, "run"), count(found.events, "event"), count(found.blobs, "blob"))
        )
        wrong = count(len(found.problems), "problem") if found.problems else "no problems"
        out(f"{read}: {wrong}")
    return 9 if found.problems else 0


def _audited(where: Place) -> tuple[Audit, list[str]]:
    """What was found, and what to do about it."""
    try:
        with_store = where.open(readonly=True)
        try:
            found = audit(with_store, gone)
            return found, _advice(where, with_store, found)
        finally:
            with_store.close()
    except IntegrityError as error:  # so damaged that it cannot be read through
        found = Audit((error.message,), CORRUPT | UNREADABLE, 0, 0, 0)
        return found, _advice(where, None, found, error.hint)


def _advice(where: Place, store: Store | None, found: Audit, hint: str | None = None) -> list[str]:
    """In the words of `repair`; without a store that can be read, what holds for most steps."""
    lost = {Digest(one) for told in found.problems for one in _CONTENT.findall(told)}
    if not lost:
        damaged = found.bits & (CORRUPT | UNREADABLE)
        return [f"hint: {hint if hint and hint != _THIS else 'holdfast repair'}"] if damaged else []
    gone_now, known = Mended(), Ways(None, ["holdfast run"], [])
    with suppress(HoldfastError):  # the plan is not asked whether the store is whole
        if store is not None:
            gone_now = made_again(store, lost)
            known = ways(where, gone_now)
    if not known.here:  # nothing of this project stands on it
        return ["hint: holdfast repair", *known.elsewhere]
    own = [row for row in gone_now.again if row.project == known.project]
    asked = sorted(row.step for row in own if made_by(row) in gone_now.asked - gone_now.keys)
    keyless = sorted(row.step for row in own if made_by(row) in gone_now.keys)
    told = [
        f"what a step made is made again by: {', then '.join(['holdfast repair', *known.here])}"
    ]
    only = "only if you ask for it: that may repeat what was done"
    told += [f"what {_quoted(asked)} made, {only}"] if asked else []
    told += [f"what {_quoted(keyless)} was made of is stored again {only}"] if keyless else []
    return [*told, *known.elsewhere]


def _quoted(steps: Sequence[StepId]) -> str:
    return ", ".join(f"'{step}'" for step in steps)


@click.command(epilog="\b\nExample:\n  holdfast rebuild")
@file_option
@place_options
@json_option
def rebuild(plan: str | None, store: str | None, plan_id: str | None, *, as_json: bool) -> int:
    """Make the index of artifacts, and the logs and task trees of tickets, again from the journals."""
    where = place(plan, store, plan_id)
    with_store = where.open()
    before: list[Artifact] = []
    rows: list[Artifact] = []

    def rebuilt() -> list[Artifact]:  # called when nobody else can write
        before.extend(replace(row, number=0) for row in with_store.artifacts())
        assure_runs(with_store)
        rows.extend(rebuilt_index(with_store))
        return rows

    try:
        with _tickets_at_rest(where, with_store) as rebuild_views:
            with_store.replace_artifacts(rebuilt)
            changed = not follows(with_store, before, rows)
            rebuild_views()
    finally:
        with_store.close()
    if as_json:
        out_json({"schema": "holdfast.rebuild/1", "artifacts": len(rows), "changed": changed})
    else:
        out(
            f"{count(len(rows), 'artifact')} indexed, "
            + ("the index was different" if changed else "as before")
        )
    return 0


@contextmanager
def _tickets_at_rest(where: Place, store: Store) -> Iterator[Callable[[], object]]:
    """While nobody works on a ticket of the store: what makes the views of all of them again."""
    if not any(row.line.startswith("ticket-") for row in store.runs()):
        yield lambda: None
        return
    from holdfast.cli.working import alone, rebuild_views
    from holdfast.wire.tickets import open_site, tickets_of

    site = open_site(where.root, say=talk)
    with alone(site, store, tickets_of(store)):
        yield lambda: rebuild_views(site, store)
