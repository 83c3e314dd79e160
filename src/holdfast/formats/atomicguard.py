"""Read workflows of action pairs, `workflow.json`, with the prompts of `prompts.json` beside it.

An action pair is a step: its generator makes, its guard judges, `requires` are its needs. `rmax` is how many
tries follow the first. The specification (inline, a file, or a folder of files) and the constraints go to
every step. A generator that is a program of the origin is not here: if the step has a prompt, a model is
asked; if not, the step has nothing to run. A guard that is a program of the origin is not here either, and
nothing may pass unjudged: a person is asked in its place.
"""

from __future__ import annotations

from collections.abc import Mapping as Table
from pathlib import Path
from typing import cast

from holdfast.errors import PlanError
from holdfast.formats.foreignguards import guard_words
from holdfast.formats.foreignnodes import (
    ANYTHING,
    FREE,
    Said,
    Translated,
    few,
    known_part,
    named,
    parts,
    plain,
    prompt_words,
    said_text,
    text_in,
    text_of,
    words,
)
from holdfast.formats.nodes import BOUNDS, Listing, Mapping, Node, Scalar, read
from holdfast.formats.problems import Problems, quoted
from holdfast.formats.projectfiles import file_content
from holdfast.formats.reading import Reading
from holdfast.formats.records import Key
from holdfast.formats.shapes import LINE, inside, whole, word
from holdfast.formats.strangers import is_prompts, value
from holdfast.model.digest import Json
from holdfast.model.expression import literals
from holdfast.model.glob import components
from holdfast.model.plan import MODEL_USES

ATOMICGUARD = "atomicguard"
PROMPTS = "prompts.json"
MODEL = "qwen2.5-coder:7b"
PROVIDER = "ollama"
RETRIES = 3
PROVIDERS = ("ollama", "huggingface", "openrouter", "openai")
_MODELS = frozenset(
    {*MODEL_USES, *PROVIDERS, "OllamaGenerator", "HuggingFaceGenerator", "OpenAIGenerator"}
    | {"OpenRouterGenerator", "PydanticAIGenerator"}
)
_PEOPLE = frozenset({"human", "HumanGenerator"})
_OWN = frozenset({"shell", "python"})  # of a plan of ours that was written in this format
_WORDS = _OWN | MODEL_USES | {"human"}
_SAMPLING = ("temperature", "top_p", "max_tokens", "seed")
_MOST_TEXT = 4 * 1024 * 1024
_WORKFLOW: dict[str, Key] = {
    "name": Key(LINE),
    "description": FREE,
    "specification": ANYTHING,
    "constraints": FREE,
    "model": Key(LINE),
    "provider": Key(word(*PROVIDERS)),
    "rmax": Key(whole(0)),
    "action_pairs": ANYTHING,
}
_PAIR: dict[str, Key] = {
    "description": FREE,
    "generator": Key(LINE),
    "generator_config": ANYTHING,
    "guard": Key(LINE),
    "guards": ANYTHING,
    "guard_config": ANYTHING,
    "requires": ANYTHING,
    "output_type": FREE,
    "human_prompt_title": FREE,
    "model": Key(LINE),
    "prompt": FREE,
    "rmax": Key(whole(0)),
    "r_patience": Key(whole(1)),
    "e_max": Key(whole(0)),
    "escalation": ANYTHING,
    "escalation_by_guard": ANYTHING,
    "escalate_feedback_to": ANYTHING,  # the same by an earlier name
    "escalate_feedback_by_guard": ANYTHING,
}
_PROMPT: dict[str, Key] = dict.fromkeys(
    ("role", "constraints", "task", "feedback_wrapper", "escalation_feedback_wrapper"), FREE
)


def is_workflow(tree: Mapping) -> bool:
    """Whether a file is a workflow of action pairs, or holds just one."""
    return "action_pairs" in tree.pairs or _only(tree) is not None


def _only(tree: Mapping) -> Mapping | None:
    """The one workflow of a file that could hold several."""
    inner = value(tree, "workflows") or tree
    if not isinstance(inner, Mapping) or len(inner.pairs) != 1:
        return None
    ((_, found),) = inner.pairs.values()
    return found if isinstance(found, Mapping) and "action_pairs" in found.pairs else None


def workflow_words(reading: Reading, tree: Mapping) -> Translated:
    """The workflow in words of a plan file; problems say what keeps it from being one."""
    flow = tree if "action_pairs" in tree.pairs else _only(tree) or tree
    given = known_part(reading, "workflow", flow, _WORKFLOW, ("action_pairs",))
    prompts = _prompts(reading)
    shared = _shared(reading, flow, given)
    steps: dict[str, tuple[Scalar, Node]] = {}
    for place, name, node in parts(reading, "action_pairs", given.get("action_pairs")):
        reading.step = name
        told = prompts.pairs.get(name) if prompts is not None else None
        steps[name] = (place, _Pair(reading, place, node, given).step(told and told[1], shared))
        reading.step = ""
    _warn_unused(reading, flow, prompts, steps)
    listed = flow.pairs["action_pairs"][1] if "action_pairs" in flow.pairs else flow
    said: dict[str, Said] = {"steps": Mapping(steps, listed.line, listed.column)}
    for key in ("name", "description"):
        if key in given:
            said[key] = flow.pairs[key][1]
    origin: dict[str, Json] = {"workflow": plain(tree)}
    if prompts is not None:
        origin["prompts"] = plain(prompts)
    return Translated(ATOMICGUARD, words(flow, said), origin)


def _warn_unused(
    reading: Reading, flow: Mapping, prompts: Mapping | None, steps: Table[str, object]
) -> None:
    unused = [name for name in (prompts.pairs if prompts is not None else ()) if name not in steps]
    if unused and len(unused) == len(prompts.pairs if prompts is not None else ()):
        message = f"no prompt of {PROMPTS} is for this workflow: it has {few(map(quoted, unused))}"
        reading.problems.warn("P911", flow, message)


# --- prompts and specification --------------------------------------------------------------------


def _prompts(reading: Reading) -> Mapping | None:
    """The prompts that were named, else those beside the workflow or in the folder above."""
    places = [reading.root / PROMPTS, reading.root.parent / PROMPTS]
    if reading.prompts:
        places = [Path(reading.prompts)]
    for place in places:
        try:
            content = None
            if place.is_file():
                with place.open("rb") as stream:
                    content = stream.read(BOUNDS.size + 1)
        except OSError:
            content = None
        if content is not None and (found := _prompts_in(reading, str(place), content)) is not None:
            return found
    return None


def _prompts_in(reading: Reading, name: str, content: bytes) -> Mapping | None:
    own = Problems(name)
    try:
        tree = read(content, own, strict_json=True)
        inner = Reading(own, reading.root)
        if isinstance(tree, Mapping):
            for _, pair, node in parts(inner, "prompts", tree):
                inner.step = pair
                known_part(inner, "prompt", node, _PROMPT)
        own.stop()
    except PlanError as error:
        for item in error.problems:
            message = f"{name}:{item.line}:{item.column}: {item.message}"
            reading.problems.add(item.code, Scalar(None, 1, 1), message, item.hint)
        return None
    return tree if isinstance(tree, Mapping) and is_prompts(tree) else None


def _shared(reading: Reading, flow: Mapping, given: Table[str, object]) -> dict[str, Said]:
    """What every step is told: the specification and the constraints."""
    found: dict[str, Said] = {}
    if text_of(flow.pairs["constraints"][1] if "constraints" in given else None):
        found["constraints"] = flow.pairs["constraints"][1]
    if "specification" in given:
        node = flow.pairs["specification"][1]
        text = _specification(reading, node)
        if text:
            found["specification"] = Scalar(text, node.line, node.column)
    return found


_SOURCE: dict[str, Key] = {
    "type": Key(word("file", "folder", "service", "inline")),
    "ref": FREE,
    "glob": Key(LINE),
}


def _specification(reading: Reading, node: Node) -> str:
    if not isinstance(node, Mapping):
        return str(text_in(reading, "specification", node) or "")
    given = known_part(reading, "specification", node, _SOURCE, ("type", "ref"))
    if not {"type", "ref"} <= given.keys():
        return ""
    ref, at = str(given["ref"]), node.pairs["ref"][1]
    if given["type"] == "inline":
        return ref
    if given["type"] == "file":
        return _file(reading, at, ref)
    if given["type"] == "folder":
        return _folder(reading, at, ref, str(given.get("glob", "**/*")))
    message = f"the specification is at the service {quoted(ref)}, and no service is asked"
    reading.problems.add("P087", at, message, "put its text into a file: type: file")
    return ""


def _file(reading: Reading, at: Node, name: str) -> str:
    steps = components(name)
    if steps and ".." not in steps and (reading.root / name).is_dir():
        message = f"the specification {quoted(name)} is a folder, not a file"
        reading.problems.add("P045", at, message, "say type: folder")
        return ""
    content = file_content(reading, "specification", at, name)
    if content is None:
        return ""
    try:
        return content.decode()
    except UnicodeDecodeError:
        reading.problems.add("P045", at, f"{quoted(name)} is not UTF-8 text")
        return ""


def _folder(reading: Reading, at: Node, name: str, pattern: str) -> str:
    """The files of a folder in the order of their names, each under its name."""
    if not components(name):
        message = f"the folder {quoted(name)} of the specification is the whole project"
        reading.problems.add("P045", at, message, "put its files into a folder of their own")
        return ""
    if inside(reading, "specification", at, name) is None:
        return ""
    folder = reading.root / name
    if not folder.is_dir():
        reading.problems.add("P045", at, f"there is no folder {quoted(name)}")
        return ""
    try:
        files = sorted(file for file in folder.glob(pattern) if file.is_file())
    except (ValueError, NotImplementedError, OSError):
        reading.problems.add("P045", at, f"{quoted(pattern)} is no usable glob")
        return ""
    if not files:
        message = f"no file of the folder {quoted(name)} matches {quoted(pattern)}"
        reading.problems.add("P045", at, message)
    texts: list[str] = []
    for file in files:
        path = file.relative_to(reading.root).as_posix()
        texts.append(f"## {path}\n{_file(reading, at, path)}")
        if sum(map(len, texts)) > _MOST_TEXT:
            message = f"the files of {quoted(name)} are more than {_MOST_TEXT >> 20} MB"
            reading.problems.add("P045", at, message, "narrow them by 'glob'")
            return ""
    return "\n\n".join(texts)


# --- one action pair ------------------------------------------------------------------------------


class _Pair:
    """An action pair on its way to a step."""

    def __init__(
        self, reading: Reading, place: Scalar, node: Node, flow: Table[str, object]
    ) -> None:
        self.reading, self.place, self.flow = reading, place, flow
        self.node = node if isinstance(node, Mapping) else Mapping({}, node.line, node.column)
        self.given = known_part(reading, "action pair", node, _PAIR, ("guard",))
        self.config = self._plain("generator_config")

    def _plain(self, key: str) -> dict[str, Json]:
        node = self.given.get(key)
        if node is None:
            return {}
        return {name: plain(one) for _, name, one in parts(self.reading, key, node)}

    def step(self, told: Node | None, shared: Table[str, Said]) -> Mapping:
        said: dict[str, Said] = dict(shared)
        self._generator(said, told)
        pairs = self.node.pairs
        if "description" in self.given:
            said["description"] = pairs["description"][1]
        above = named(self.reading, "requires", self.given.get("requires"))
        if above:
            at = pairs["requires"][1]
            said["needs"] = Listing([*above.values()], at.line, at.column)
        said["guards"] = guard_words(self.reading, self.place, self.node, self.given)
        said["retries"] = cast("int", self.given.get("rmax", self.flow.get("rmax", RETRIES)))
        self._escalation(said)
        return words(self.place, said)

    def _escalation(self, said: dict[str, Said]) -> None:
        pairs = self.node.pairs
        if "r_patience" in self.given:
            said["patience"] = pairs["r_patience"][1]
        key = next((k for k in ("escalation", "escalate_feedback_to") if k in self.given), None)
        rounds = cast("int", self.given.get("e_max", 1))
        if key is not None and rounds and named(self.reading, key, self.given[key]):
            said["escalate"] = pairs[key][1]
            said["rounds"] = rounds
        for name in ("escalation_by_guard", "escalate_feedback_by_guard"):
            if name in self.given:
                message = f"'{name}' is only kept: here one list of steps holds for all guards"
                self.reading.problems.warn("P911", pairs[name][0], message)

    def _generator(self, said: dict[str, Said], told: Node | None) -> None:
        """Who makes it: a person, a command of a plan of ours, or a model with the prompt."""
        name = str(self.given.get("generator", ""))
        prompt = self._prompt(told)
        values = self.config.pop("with", None) if name in _WORDS else None
        if name in _OWN:
            said |= {key: self.config.pop(key) for key in ("run", "shell") if key in self.config}
            said["uses"] = name
        elif name in _PEOPLE:
            said["uses"] = "human"
            said["prompt"] = prompt
        elif prompt is None:
            said["uses"] = "agent"  # and nothing to run, which is told
        else:
            said["uses"] = name if name in MODEL_USES else "llm"
            said["prompt"] = prompt
            said["model"] = self._model(name)
            if name and name not in _MODELS:
                message = (
                    f"the generator {quoted(name)} is a program of the origin: a model is asked"
                )
                hint = "import it with -o and say what runs: uses: python, run: module:function"
                self.reading.problems.warn("P914", self.node.pairs["generator"][1], message, hint)
        values = {**_table(literals(self.config)), **_table(values)}
        if values:
            said["with"] = values

    def _prompt(self, told: Node | None) -> Mapping | None:
        if isinstance(told, Mapping):
            found = {key: text_of(node) for key, (_, node) in told.pairs.items() if key in _PROMPT}
            found.pop("escalation_feedback_wrapper", None)
            found["task"] = said_text(found.get("task"), self.given.get("description"))
            return prompt_words(self.place, **found) if found["task"] else None
        if said_text(self.given.get("prompt")):
            return prompt_words(self.place, task=str(self.given["prompt"]))
        return None

    def _model(self, generator: str) -> Said:
        own = self.config.pop("model", None)
        name = own or self.given.get("model") or self.flow.get("model")
        provider = self.flow.get("provider", PROVIDER)
        found = f"{provider}:{name or MODEL}"
        if own is not None and generator in MODEL_USES:  # ours: it says who is asked
            found = str(own)
        how = {key: self.config.pop(key) for key in _SAMPLING if key in self.config}
        return {"id": found, **how} if how else found


def _table(value: Json) -> Table[str, Json]:
    return value if isinstance(value, Table) else {}
