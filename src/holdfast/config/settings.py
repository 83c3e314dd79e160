"""Settings: read from the person's own file, the project's file and the environment.

What touches trust (programs to start, providers, people, policies) is taken only from the person's own
file: a project that was cloned cannot grant itself anything. A project may name tiers, concurrency and
templates, may lower budgets and limits, and may protect more names from edits. Precedence: flag,
`HOLDFAST_*`, person, project.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import field

from holdfast.errors import UsageError, outside_fault
from holdfast.model.fixed import frozen
from holdfast.model.policy import Rule
from holdfast.model.text import first_line, is_count

PROJECT_FILE = "holdfast.toml"
_MODELS = {"tiers", "aliases", "budgets"}  # read by `providers`; `limits` by `walls`
_PERSONAL = {
    "run",
    "notify",
    "people",
    "approvals",
    "resources",
    "agents",
    "providers",
    "prices",
    "planner",
    "sandbox",
    "templates",
    "edits",
    "limits",
} | _MODELS
_OF_PROJECT = {"run", "resources", "templates", "edits", "limits"} | _MODELS
_MOST = 1_000_000_000_000
_RULE = ("line", "step", "gate", "effects", "from")  # what a rule may be about
_WORDS = {
    "gate": ("step", "edge", "budget", "guard"),
    "effects": ("none", "workspace", "external"),
    "decide": ("approve", "reject"),
    "scope": ("once", "run", "content"),
}


@frozen
class Settings:
    """What was set. `origin` says where each value comes from."""

    parallel: int | None = None
    notify: tuple[str, ...] = ()
    resources: Mapping[str, int] = field(default_factory=dict)  # how much there is of each here
    origin: tuple[tuple[str, str], ...] = ()


@frozen
class Files:
    """What the person's own file and the project's say, read once, each with its name."""

    own: Mapping[str, object]
    personal: str
    project: Mapping[str, object]
    place: str


def read_files(root: str, env: Mapping[str, str] = os.environ) -> Files:
    """Both files of a project directory; UsageError if one of them is not TOML."""
    personal = personal_file(env)
    return Files(table(personal), personal, *project_table(root))


def read_settings(root: str, env: Mapping[str, str] = os.environ) -> Settings:
    """The settings for a project directory; UsageError names the file and the key that is wrong."""
    return settings_in(read_files(root, env), env)


def settings_in(files: Files, env: Mapping[str, str]) -> Settings:
    """What files say; keys that do not belong there are refused, whatever they are about."""
    own, personal, project, place = files.own, files.personal, files.project, files.place
    _check(own, personal, _PERSONAL)
    _check(project, place, _OF_PROJECT)
    _folder(own, personal)
    _inside(project, place)
    protected_in(files)
    origin: list[tuple[str, str]] = []
    parallel = None
    for source, value in (
        ("HOLDFAST_JOBS", _from_env(env)),
        (personal, _whole(own, "run", "parallel", personal)),
        (place, _whole(project, "run", "parallel", place)),
    ):
        if value is not None and parallel is None:
            parallel = value
            origin.append(("run.parallel", source))
    notify = _command(own, personal)
    if notify:
        origin.append(("notify.command", personal))
    resources: dict[str, int] = {}
    for given, where in ((own, personal), (project, place)):
        for name, count in _amounts(given, where).items():
            if name not in resources:
                resources[name] = count
                origin.append((f"resources.{name}", where))
    return Settings(parallel, notify, resources, tuple(origin))


def read_people(env: Mapping[str, str] = os.environ) -> dict[str, tuple[str, ...]]:
    """Who holds which name, as the person's own file says: names of roles to users of this system."""
    place = personal_file(env)
    return people_in(table(place), place)


def people_in(own: Mapping[str, object], place: str) -> dict[str, tuple[str, ...]]:
    given = own.get("people", {})
    if not isinstance(given, Mapping):
        raise UsageError(f"'people' in '{place}' must be a table")
    people: dict[str, tuple[str, ...]] = {}
    for name, users in given.items():
        listed = [users] if isinstance(users, str) else users
        if not isinstance(listed, list) or not all(isinstance(user, str) for user in listed):
            raise UsageError(f"'people.{name}' in '{place}' must be a user or a list of users")
        people[name] = tuple(listed)
    return people


def read_rules(env: Mapping[str, str] = os.environ) -> tuple[Rule, ...]:
    """The rules by which `--approve policy` decides, in the order of the person's own file."""
    place = personal_file(env)
    return rules_in(table(place), place)


def rules_in(own: Mapping[str, object], place: str) -> tuple[Rule, ...]:
    given = own.get("approvals", [])
    if not isinstance(given, list):
        raise UsageError(f"'approvals' in '{place}' must be a list of tables: [[approvals]]")
    return tuple(_rule(item, number, place) for number, item in enumerate(given, 1))


def _rule(item: object, number: int, place: str) -> Rule:
    what = f"rule {number} of 'approvals' in '{place}'"
    if not isinstance(item, Mapping):
        raise UsageError(f"{what} must be a table")
    known = (*_RULE, "decide", "scope", "because")
    for key, value in item.items():
        if key not in known:
            raise UsageError(f"{what} has the unknown key '{key}'", hint=", ".join(known))
        if not isinstance(value, str) or not value:
            raise UsageError(f"'{key}' of {what} must be text")
        if key in _WORDS and value not in _WORDS[key]:
            raise UsageError(f"'{key}' of {what} is '{value}'", hint=", ".join(_WORDS[key]))
    if not any(key in item for key in _RULE):
        raise UsageError(f"{what} would decide everything", hint=f"name {', '.join(_RULE)}")
    return Rule(
        line=item.get("line", ""),
        step=item.get("step", ""),
        gate=item.get("gate", ""),
        effects=item.get("effects", ""),
        name=item.get("from", ""),
        yes=item.get("decide", "approve") == "approve",
        scope=item.get("scope"),
        because=item.get("because", ""),
    )


@frozen
class Planner:
    """How large a plan for a goal may be, how often a model may try, and what to do if its work fails.

    With `with_files` it is shown which files the project has.
    With `on_failure` other than `escalate`, another plan is made up to `regenerations` times.
    """

    artifacts: int = 50
    depth: int = 10
    rounds: int = 5
    on_failure: str = "escalate"
    regenerations: int = 1
    with_files: bool = False


POLICIES = ("escalate", "regenerate", "hybrid")


def read_planner(env: Mapping[str, str] = os.environ) -> Planner:
    """How plans are made for goals, as the person's own file says."""
    place = personal_file(env)
    return planner_in(table(place), place)


def planner_in(own: Mapping[str, object], place: str) -> Planner:
    given = section(own, "planner", {*Planner.__dataclass_fields__}, place)
    for key, value in given.items():
        if key == "on_failure":
            if value not in POLICIES:
                hint = ", ".join(POLICIES)
                raise UsageError(f"'planner.{key}' in '{place}' is '{value}'", hint=hint)
        elif key == "with_files":
            if not isinstance(value, bool):
                raise UsageError(f"'planner.{key}' in '{place}' must be true or false")
        elif not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= 10_000:  # noqa: PLR2004 - as the options
            raise UsageError(f"'planner.{key}' in '{place}' must be a whole number from 1 to 10000")
    return Planner(**given)  # type: ignore[arg-type]  # keys and values were checked


def template_folders(root: str, env: Mapping[str, str] = os.environ) -> list[str]:
    """Where templates are looked for: the folder that the project names, then the person's own."""
    personal = personal_file(env)
    found = []
    if (inside := _inside(*project_table(root))) is not None:
        found.append(os.path.join(root, inside))
    own = _folder(table(personal), personal)
    home = os.path.dirname(personal)
    found.append(os.path.join(home, os.path.expanduser(own) if own else "templates"))
    return found


def _inside(given: Mapping[str, object], place: str) -> str | None:
    """The folder that a project names: one of its own."""
    if (named := _folder(given, place)) is None:
        return None
    inside = os.path.normpath(named)
    if os.path.isabs(inside) or inside.startswith(".."):
        raise UsageError(f"'templates' in '{place}' must be a folder of the project")
    return inside


def _folder(given: Mapping[str, object], place: str) -> str | None:
    named = given.get("templates")
    if named is None:
        return None
    if not isinstance(named, str) or not named.strip():
        raise UsageError(f"'templates' in '{place}' must be the name of a folder")
    return named


def read_protected(root: str, env: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """Names that no edit may write, beyond those that none ever may: a project can add, never take away."""
    return protected_in(read_files(root, env))


def protected_in(files: Files) -> tuple[str, ...]:
    found: list[str] = []
    for given, place in ((files.own, files.personal), (files.project, files.place)):
        names = section(given, "edits", {"protected"}, place).get("protected", [])
        if not isinstance(names, list) or not all(isinstance(n, str) and n for n in names):
            raise UsageError(f"'edits.protected' in '{place}' must be a list of names")
        found += names
    return tuple(found)


def agents_file(env: Mapping[str, str] = os.environ) -> str | None:
    """The registry of agents that the person's own file names, beside which it is looked for."""
    place = personal_file(env)
    return agents_in(table(place), place)


def agents_in(own: Mapping[str, object], place: str) -> str | None:
    given = own.get("agents")
    if given is None:
        return None
    if not isinstance(given, str) or not given:
        raise UsageError(f"'agents' in '{place}' must be the name of a file")
    return os.path.join(os.path.dirname(place), os.path.expanduser(given))


def personal_file(env: Mapping[str, str]) -> str:
    """Where a person's own settings are."""
    base = env.get("XDG_CONFIG_HOME") or os.path.join(env.get("HOME", ""), ".config")
    return os.path.join(base, "holdfast", "config.toml")


def project_table(root: str) -> tuple[Mapping[str, object], str]:
    """The project's settings: its own file, else a table of pyproject.toml."""
    place = os.path.join(root, PROJECT_FILE)
    if os.path.isfile(place):
        return table(place), place
    pyproject = os.path.join(root, "pyproject.toml")
    try:
        tool = table(pyproject).get("tool")
    except UsageError:  # somebody else's file: not ours to complain about
        return {}, pyproject
    found = tool.get("holdfast") if isinstance(tool, Mapping) else None
    return (found if isinstance(found, Mapping) else {}), f"{pyproject} [tool.holdfast]"


def table(path: str) -> Mapping[str, object]:
    try:
        with open(path, "rb") as file:
            return tomllib.load(file)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (
        ValueError,
        RecursionError,
    ) as error:  # no TOML, no UTF-8, or numbers and depths without end
        raise UsageError(f"'{path}' is not TOML: {first_line(str(error))}") from error
    except OSError as error:
        fault = outside_fault(error)
        raise fault or UsageError(f"'{path}' cannot be read: {error.strerror}") from error


def _check(given: Mapping[str, object], place: str, known: set[str]) -> None:
    for key in given:
        if key in known:
            continue
        if key in _PERSONAL:
            raise UsageError(
                f"'{key}' in '{place}' belongs to a person, not to a project",
                hint="put it into config.toml of your own configuration directory",
            )
        raise UsageError(f"'{place}' has the unknown key '{key}'", hint=", ".join(sorted(known)))


def section(
    given: Mapping[str, object], name: str, known: set[str] | None, place: str
) -> Mapping[str, object]:
    """A table of a table; with `known`, only with these keys."""
    found = given.get(name, {})
    if not isinstance(found, Mapping):
        raise UsageError(f"'{name}' in '{place}' must be a table")
    for key in found:
        if known is not None and key not in known:
            raise UsageError(
                f"'{place}' has the unknown key '{name}.{key}'", hint=", ".join(sorted(known))
            )
    return found


def _whole(given: Mapping[str, object], name: str, key: str, place: str) -> int | None:
    value = section(given, name, {"parallel"}, place).get(key)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= 1024:  # noqa: PLR2004 - as -j
        raise UsageError(f"'{name}.{key}' in '{place}' must be a number from 1 to 1024")
    return value


def _amounts(given: Mapping[str, object], place: str) -> dict[str, int]:
    """How much there is of named resources."""
    found: dict[str, int] = {}
    for name, count in section(given, "resources", None, place).items():
        if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= _MOST:
            raise UsageError(f"'resources.{name}' in '{place}' must be a whole number from 1")
        found[name] = count
    return found


def _command(given: Mapping[str, object], place: str) -> tuple[str, ...]:
    value = section(given, "notify", {"command"}, place).get("command")
    if value is None:
        return ()
    if not isinstance(value, list) or not value or not all(isinstance(w, str) for w in value):
        raise UsageError(f"'notify.command' in '{place}' must be a list of words")
    return tuple(value)


def _from_env(env: Mapping[str, str]) -> int | None:
    given = env.get("HOLDFAST_JOBS")
    if not given:
        return None
    if not is_count(given) or not 1 <= int(given) <= 1024:  # noqa: PLR2004 - as -j
        raise UsageError("HOLDFAST_JOBS must be a number from 1 to 1024")
    return int(given)
