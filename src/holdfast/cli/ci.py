"""ci: a run as a CI shows it, and the key under which it keeps the store."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import click

from holdfast.cli.annotations import command_line, quality_json
from holdfast.cli.cipages import MOST_BYTES, fitting, page
from holdfast.cli.cireport import Report, preview_report, relative, report_of, run_before
from holdfast.cli.place import Place, find_run, json_option, place, place_options
from holdfast.cli.say import out, out_command, out_json, talk
from holdfast.cli.show import load_state
from holdfast.core.views import usd
from holdfast.errors import ELSEWHERE, StoreError, UsageError
from holdfast.model.digest import Json
from holdfast.model.event import Options
from holdfast.model.plan import plan_digest
from holdfast.model.version import VERSION

SCHEMA = "holdfast.ci/1"
_KNOWN = {"GITHUB_ACTIONS": "github", "GITLAB_CI": "gitlab"}


@click.group(
    epilog="\b\nExample:\n  holdfast ci report\n  holdfast ci key\n  holdfast init --ci github"
)
def ci() -> None:
    """Tell a CI of a run: summary, annotations, JUnit; and the key of its cache."""


@ci.command(
    "report",
    epilog="\b\nExample:\n  holdfast ci report\n  holdfast ci report --preview --against @-1\n"
    "  holdfast ci report @ -o report --junit report/steps.xml",
)
@click.argument("run_id", metavar="[RUN]", required=False)
@click.option("-f", "--file", "plan", metavar="PLAN", help="The plan file (default: plan.yaml).")
@click.option(
    "-o", "--out", "target", metavar="DIR", help="Where files go (default: .holdfast/out)."
)
@click.option("--junit", "junit_file", metavar="FILE", help="Where the JUnit XML goes.")
@click.option("--against", metavar="RUN", help="The run to compare with (default: the one before).")
@click.option("--preview", is_flag=True, help="Tell what a run would do, whatever ran before.")
@click.option(
    "--for",
    "system",
    type=click.Choice(["auto", "github", "gitlab", "any"]),
    default="auto",
    show_default=True,
    help="Which CI reads it; auto asks the environment.",
)
@place_options
@json_option
def report_command(
    run_id: str | None,
    plan: str | None,
    target: str | None,
    junit_file: str | None,
    against: str | None,
    system: str,
    store: str | None,
    plan_id: str | None,
    *,
    preview: bool,
    as_json: bool,
) -> int:
    """Tell a CI of a run, the last one if none is named; of what a run would do, if there is none.

    Files are written: summary.md, junit.xml, change.txt and report.json, for GitLab also codequality.json. On
    GitHub the summary goes to the page of the job, and what failed or waits is noted at its line. It ends
    with 0 whatever the run came to.
    """
    if preview and run_id is not None:
        raise UsageError("a run and --preview contradict each other")
    where = place(plan, store, plan_id)
    found = _told(where, run_id, against, preview=preview)
    name = _system(system)
    top = os.environ.get("GITHUB_WORKSPACE") or os.environ.get("CI_PROJECT_DIR") or os.getcwd()
    found = _placed(found, top)
    home = target or os.path.join(str(where.location), "out")
    text = page(found)
    files = _written(found, text, home, junit_file, name)
    if name == "github":
        _summarize(text, files["summary"])
    told = _json(found, name, files)
    _write(os.path.join(home, "report.json"), json.dumps(told, ensure_ascii=False, indent=2) + "\n")
    if as_json:
        out_json(told)
        return 0
    if name == "github":
        for note in found.noted.kept:
            out_command(command_line(note))
        if found.noted.left_out:
            out(f"{found.noted.left_out} more are in the summary")
    out(found.change.words)
    talk(f"wrote {', '.join(files.values())}")
    return 0


def _told(where: Place, run_id: str | None, against: str | None, *, preview: bool) -> Report:
    """The report of a run; of a preview if one is wanted, or there is no run to tell of."""
    before = None
    if run_id is not None and not where.exists():
        raise UsageError("there is no run yet", hint="holdfast run")
    if where.exists():
        store = where.open(readonly=True)
        try:
            line = where.line()
            runs = any(line in {None, row.line} for row in store.runs())
            if run_id is not None or (runs and not preview):
                state = load_state(store, find_run(store, run_id, line))
                other = find_run(store, against, line) if against else run_before(store, state)
                return report_of(store, where, state, load_state(store, other) if other else None)
            before = load_state(store, find_run(store, against, line)) if runs else None
        finally:
            store.close()
    from holdfast.cli.ahead import gather

    return preview_report(where, gather(where, where.load(), Options()), before)


def _system(wish: str) -> str:
    """The CI that reads it: as told, else by what it says of itself."""
    if wish != "auto":
        return wish
    return next((name for key, name in _KNOWN.items() if os.environ.get(key) == "true"), "any")


def _placed(report: Report, top: str) -> Report:
    """The same with files named as the CI knows them: from where the code was checked out."""
    place_of = partial(relative, top=top)
    cases = [case._replace(spot=place_of(case.spot)) for case in report.cases]
    return replace(report, noted=report.noted.placed(place_of), cases=cases)


def _written(
    report: Report, text: str, home: str, junit_file: str | None, system: str
) -> dict[str, str]:
    """Write the files; where each of them is."""
    from holdfast.cli.junit import junit

    files = {
        "summary": os.path.join(home, "summary.md"),
        "junit": junit_file or os.path.join(home, "junit.xml"),
        "change": os.path.join(home, "change.txt"),
    }
    _keep_out_of_git(home)
    _write(files["summary"], text)
    _write(files["junit"], junit(report))
    _write(files["change"], report.change.words + "\n")
    if system == "gitlab":
        files["codequality"] = os.path.join(home, "codequality.json")
        _write(files["codequality"], json.dumps(quality_json(report.noted), indent=1) + "\n")
    return files


def _keep_out_of_git(home: str) -> None:
    """A directory of ours that is not there yet is none of git's business, as the store itself."""
    above = os.path.dirname(os.path.abspath(home))
    if os.path.basename(above) == ".holdfast" and not os.path.isdir(above):
        _write(os.path.join(above, ".gitignore"), "*\n")


def _summarize(text: str, whole: str) -> None:
    """Add the summary to the page of the job, as far as it takes one."""
    path = os.environ.get("GITHUB_STEP_SUMMARY")
    if not path:
        talk("GITHUB_STEP_SUMMARY names no file, so the page of the job has no summary")
        return
    try:
        with open(path, "ab") as file:
            room = MOST_BYTES - file.tell()
            file.write(fitting(f"\n{text}", room, whole).encode() if room > 0 else b"")
    except OSError as error:
        raise StoreError(f"cannot write '{path}': {error.strerror}", hint=ELSEWHERE) from error


def _write(path: str, content: str | bytes) -> None:
    data = content.encode("utf-8", "replace") if isinstance(content, str) else content
    try:
        os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
        with open(path, "wb") as file:
            file.write(data)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "no usable name"
        raise StoreError(f"cannot write '{path}': {reason}", hint=ELSEWHERE) from error


def _json(report: Report, system: str, files: Mapping[str, str]) -> dict[str, Json]:
    change = report.change
    more = None
    if change.cost is not None and change.before is not None:
        more = usd(change.cost - change.before)
    return {
        "schema": SCHEMA,
        "ci": system,
        "run": report.run,
        "line": report.line,
        "status": report.status,
        "change": change.words,
        "cost_usd": usd(change.cost),
        "more_usd": more,
        "notes": [note.json() for note in report.noted.kept],
        "notes_left_out": report.noted.left_out,
        "ledger": list(report.ledger),
        "files": dict(files),
    }


@ci.command("key", epilog="\b\nExample:\n  holdfast ci key\n  holdfast ci key --json")
@click.option("-f", "--file", "plan", metavar="PLAN", help="The plan file (default: plan.yaml).")
@place_options
@json_option
def key_command(plan: str | None, store: str | None, plan_id: str | None, *, as_json: bool) -> int:
    """Print the key under which a CI keeps the store: the plan, and the major version of the engine.

    A store is good for any plan; what another one left is a start too. So restore what fits best: this key
    first, then its beginning up to the version.
    """
    found = place(plan, store, plan_id).load().plan
    start = f"holdfast-{VERSION.partition('.')[0]}-"
    key = f"{start}{plan_digest(found)}"
    if as_json:
        out_json({"schema": "holdfast.key/1", "key": key, "restore": [key, start]})
    else:
        out(key)
    return 0
