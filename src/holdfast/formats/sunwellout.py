"""Write a plan, and how a run of it stands, as a saved plan of artifacts; hashes and session checkpoints too.

A plan that came from such a file gives it back word for word. Whatever was added or changed since, and all
that a run adds, is written in the documented shape. Every value is real: hashes are whole SHA-256, times are
those of the journal, `verified` is true only where a guard accepted. Without a run everything is planned.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from holdfast.formats.graphout import batches_of
from holdfast.formats.runfacts import NO_RUN, RunFacts, doer, mix
from holdfast.formats.sunwell import SUNWELL, VERSION
from holdfast.model.digest import Json, digest_bytes
from holdfast.model.plan import Plan, Step

_COMPARED = ("description", "contract")


def sunwell_document(plan: Plan, run: RunFacts = NO_RUN) -> dict[str, Json]:
    """The saved plan."""
    known = _mapping(plan.origin.get(SUNWELL))
    specs = _specs(known)
    kept = {name for name in plan.steps if _is_kept(plan.steps[name], specs.get(name))}
    if run is NO_RUN and known and len(kept) == len(plan.steps) == len(specs):
        return dict(known)
    goal = plan.goal or plan.description or plan.name
    completed = {str(s): _completion(plan.steps[s], run) for s in plan.steps if _done(run, s)}
    waves: list[Json] = [list(wave) for wave in batches_of(plan)]
    specs_out: dict[str, Json] = {
        str(step.id): _spec(step, specs.get(step.id)) for step in plan.steps.values()
    }
    return {
        "version": VERSION,
        "goal": goal,
        "goal_hash": goal_hash(goal),
        "status": run.status,
        "created_at": run.started_at or None,
        "updated_at": run.updated_at or None,
        "graph": {"artifacts": specs_out, "waves": waves},
        "execution": {
            "status": run.status,
            "current_wave": _current(waves, completed),
            "completed": completed,
            "failed": {str(s): run.of(s).error for s in plan.steps if run.of(s).state == "failed"},
            "skipped": [str(s) for s in plan.steps if run.of(s).state == "reused"],
        },
        "content_hashes": hashes(plan, run),
        "metrics": _metrics(plan, run),
    }


def goal_hash(goal: str) -> str:
    """What a goal is looked up by: all 64 digits."""
    return digest_bytes(goal.encode())


def hashes(plan: Plan, run: RunFacts) -> dict[str, Json]:
    """The hash of what each complete step made."""
    return {str(s): run.of(s).digest for s in plan.steps if _done(run, s)}


def _done(run: RunFacts, name: str) -> bool:
    return run.of(name).is_complete and bool(run.of(name).digest)


def _completion(step: Step, run: RunFacts) -> dict[str, Json]:
    facts = run.of(step.id)
    return {
        "artifact_id": step.id,
        "content_hash": facts.digest,
        "model_tier": doer(step),
        "duration_ms": facts.duration_ms,
        "verified": facts.verified,
        "completed_at": facts.completed_at,
    }


def _current(waves: Sequence[Json], completed: Mapping[str, Json]) -> int:
    """The first wave that is not complete, from 0; all of them if none is left."""
    for number, wave in enumerate(waves):
        if not all(name in completed for name in cast("Sequence[str]", wave)):
            return number
    return len(waves)


def _metrics(plan: Plan, run: RunFacts) -> dict[str, Json]:
    sequential = sum(facts.duration_ms for facts in run.steps.values())
    factor = round(sequential / run.duration_ms, 2) if run.duration_ms else 1.0
    return {
        "total_duration_ms": run.duration_ms,
        "model_distribution": mix(plan, run),
        "parallelization_factor": factor,
        "estimated_sequential_ms": sequential,
    }


# --- artifacts ------------------------------------------------------------------------------------


def _specs(known: Mapping[str, Json]) -> dict[str, Mapping[str, Json]]:
    """The artifacts of the file that a plan came from, by id."""
    listed = _mapping(known.get("graph")).get("artifacts", known.get("artifacts"))
    if isinstance(listed, Mapping):
        return {name: {"id": name, **_mapping(spec)} for name, spec in listed.items()}
    specs = cast("Sequence[Mapping[str, Json]]", listed or ())
    return {str(spec.get("id")): spec for spec in specs}


def _is_kept(step: Step, spec: Mapping[str, Json] | None) -> bool:
    """Whether a spec still says what the step is."""
    if spec is None or any((spec.get(key) or "") != getattr(step, key) for key in _COMPARED):
        return False
    requires = cast("Sequence[str]", spec.get("requires") or ())
    file = spec.get("produces_file")
    produces = (file,) if file else ()
    return {need.step for need in step.needs} == {*requires} and step.produces == produces


def _spec(step: Step, known: Mapping[str, Json] | None) -> dict[str, Json]:
    made: dict[str, Json] = {
        **(known or {}),
        "id": step.id,
        "description": step.description,
        "contract": step.contract,
        "requires": [need.step for need in step.needs],
    }
    if step.produces or "produces_file" in made:
        made["produces_file"] = step.produces[0] if step.produces else None
    if len(step.produces) > 1:
        made["metadata"] = {**_mapping(made.get("metadata")), "produces": [*step.produces]}
    return made


# --- the checkpoint of a session -----------------------------------------------------------------

_TASK_STATUS = {
    "pending": "pending",
    "running": "in_progress",
    "waiting": "blocked",
    "done": "completed",
    "reused": "completed",
    "failed": "failed",
    "skipped": "skipped",
}


def tasks_document(plan: Plan, run: RunFacts = NO_RUN) -> dict[str, Json]:
    """The plan as a flat list of tasks, with those that are complete."""
    known = _mapping(plan.origin.get("tasks"))
    if run is NO_RUN and known and _same_tasks(plan, known):
        return dict(known)
    done: list[Json] = [str(name) for name in plan.steps if run.of(name).is_complete]
    paths: list[Json] = [
        path
        for name, step in plan.steps.items()
        if run.of(name).is_complete
        for path in step.produces
    ]
    return {
        "goal": plan.goal or plan.description or plan.name,
        "started_at": run.started_at or None,
        "checkpoint_at": run.updated_at or None,
        "tasks": [_task(step, run) for step in plan.steps.values()],
        "completed_ids": done,
        "artifacts": paths,
        "working_directory": ".",
        "context": {},
        "execution_config": {
            "failure_policy": "continue",
            "max_retries_per_task": max(step.retries for step in plan.steps.values()),
            "retry_backoff_seconds": 1.0,
            "abort_on_critical": True,
            "checkpoint_interval_seconds": 60.0,
        },
        "parallel_config": {
            "enabled": True,
            "max_parallel_tasks": plan.limits.parallel or 8,
            "max_parallel_writes": plan.limits.parallel or 8,
            "parallel_research": True,
        },
        "phase": "task_complete",
        "phase_summary": f"{len(done)} of {len(plan.steps)} complete",
        "user_decisions": [],
    }


def _same_tasks(plan: Plan, known: Mapping[str, Json]) -> bool:
    tasks = cast("Sequence[Mapping[str, Json]]", known.get("tasks") or ())
    if any(task.get("subtasks") or task.get("requires") for task in tasks):
        return len(plan.steps) >= len(tasks)
    above = {
        str(task.get("id")): {*cast("list[str]", task.get("depends_on") or ())} for task in tasks
    }
    told = {str(task.get("id")): task.get("description") for task in tasks}
    return above == {
        str(s): {n.step for n in step.needs} for s, step in plan.steps.items()
    } and told == {str(s): step.description for s, step in plan.steps.items()}


def _task(step: Step, run: RunFacts) -> dict[str, Json]:
    facts = run.of(step.id)
    return {
        "id": step.id,
        "description": step.description or step.id,
        "mode": "generate" if step.asks_model else "execute",
        "tools": [*step.tools],
        "target_path": step.produces[0] if step.produces else None,
        "depends_on": [need.step for need in step.needs],
        "contract": step.contract or None,
        "status": _TASK_STATUS[facts.state],
        "error": facts.error or None,
    }


def _mapping(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, Mapping) else {}
