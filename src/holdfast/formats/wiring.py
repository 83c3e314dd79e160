"""The graph of a plan file: needs that exist, no circles, no two writers of one path at once."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import pairwise

from holdfast.edits.tree import fold
from holdfast.formats.edges import At, InputAt, NeedAt
from holdfast.formats.fields import Promise, check_fields
from holdfast.formats.nodes import Scalar
from holdfast.formats.problems import NOWHERE, Placed, Problems, quoted
from holdfast.formats.reading import Use
from holdfast.model.fixed import frozen, varying
from holdfast.model.glob import COMPILED, Paths, parents
from holdfast.model.plan import OF_MACHINES, Need, Step

MOST_CIRCLES = 20
MOST_NAMES = 8  # of one circle
MOST_COMPARED = 2_000_000
_BATCH = 4096


@varying
class Wired:
    """The parts of a step that reach beyond it, each with its place."""

    id: str
    key: Scalar
    needs: list[NeedAt] = field(default_factory=list)
    inputs: list[InputAt] = field(default_factory=list)
    produces: list[At] = field(default_factory=list)
    escalate: list[At] = field(default_factory=list)
    takes: list[tuple[str, int, Placed]] = field(default_factory=list)  # resource, how much
    promise: Promise = field(default_factory=Promise)
    uses: list[Use] = field(default_factory=list)
    once: Placed | None = (
        None  # where it says that it touches the outside, if that may not be repeated
    )


_NODE = Scalar(None, NOWHERE.line, NOWHERE.column)


def wired_of(step: Step, *, is_new: bool = False) -> Wired:
    """What reaches beyond a step that was read already; of one that is there only what others meet."""
    wired = Wired(
        step.id,
        _NODE,
        [NeedAt(need, _NODE) for need in step.needs],
        [InputAt(item, _NODE) for item in step.inputs],
        [At(path, _NODE) for path in step.produces],
        promise=Promise(step.outputs, step.schema),
    )
    if is_new:
        wired.escalate = [At(name, _NODE) for name in step.escalate]
        wired.takes = [(name, amount, _NODE) for name, amount in step.resources.items()]
    return wired


def check_wiring(
    steps: Mapping[str, Wired], problems: Problems, resources: Mapping[str, int], known: int = 0
) -> None:
    """Report everything wrong between steps; `resources` is how much there is of those that are named.

    The first `known` are there already and need none of the others.
    """
    graph = _Graph(steps, problems, known)
    for step in steps.values():
        _check_takes(step, resources, problems)
    promises = {name: step.promise for name, step in steps.items()}
    for step in steps.values():
        if step.uses:
            check_fields(step.id, step.uses, promises, problems)
    if graph.order is None:
        graph.report_circles()
        return
    questions = [*_overlaps(graph), *_reads(graph, problems), *_sent_back(graph)]
    _report(graph, questions, problems)
    _warn_of_effects(graph, graph.order, problems)


def _warn_of_effects(graph: _Graph, order: Sequence[int], problems: Problems) -> None:
    """What is sent back by a step below is made again, with all that stands on it."""
    sent: dict[int, tuple[str, str]] = {}  # step -> the one that is sent back, and by whom
    for step in graph.steps:
        for name, _ in step.escalate:
            if name in graph.number:
                sent.setdefault(graph.number[name], (name, step.id))
    if not sent:
        return
    for number in order:
        above = next((sent[need] for need in graph.needs[number] if need in sent), None)
        found = sent.setdefault(number, above) if above is not None else sent.get(number)
        step = graph.steps[number]
        if found is None or step.once is None or number < graph.known:
            continue
        name, by = found
        what = "it" if name == step.id else quoted(name)
        message = f"{quoted(step.id)} may be done again outside: {quoted(by)} can send {what} back"
        hint = f"let '{by}' escalate to steps that {quoted(step.id)} does not stand on, "
        problems.warn("P906", step.once, message, hint + "or say idempotent: true")


def _check_takes(step: Wired, resources: Mapping[str, int], problems: Problems) -> None:
    """A step that takes more than there is could never start."""
    for name, count, place in step.takes:
        there = resources.get(name, count if name in OF_MACHINES else 1)
        if count > there:
            message = f"{quoted(step.id)} takes {count:,} of {quoted(name)}, and there is {there:,}"
            hint = f"say how much there is: limits: {{resources: {{{name}: {count}}}}}"
            problems.add("P057", place, message, hint)


class _Graph:
    """Steps as numbers; `needs` holds what each one waits for."""

    def __init__(self, steps: Mapping[str, Wired], problems: Problems, known: int) -> None:
        self.problems = problems
        self.known = known
        self.steps = list(steps.values())
        self.number = {name: index for index, name in enumerate(steps)}
        self.needs: list[list[int]] = [
            self._checked(step) if place >= known else self._numbers(step)
            for place, step in enumerate(self.steps)
        ]
        self.order = self._sorted()
        self.rank = [0] * len(self.steps)
        for rank, step in enumerate(self.order or ()):
            self.rank[step] = rank

    def _numbers(self, step: Wired) -> list[int]:
        return [self.number[need.step] for need, _, _ in step.needs]

    def _checked(self, step: Wired) -> list[int]:
        seen: dict[str, NeedAt] = {}
        numbers = []
        for need, node, key_node in step.needs:
            name = need.step
            number = self.number.get(name)
            if name == step.id:
                self.problems.add("P051", node, f"{quoted(name)} needs itself")
            elif number is None:
                hint = self.problems.did_you_mean(name, self.number)
                message = f"{quoted(step.id)} needs {quoted(name)}, which is no step"
                self.problems.add("P003", node, message, hint)
            elif name in seen:
                self._report_twice(step, need, node, seen[name])
            else:
                self._check_key(step, need.key, self.steps[number], key_node or node)
                numbers.append(number)
            seen.setdefault(name, NeedAt(need, node))
        return numbers

    def _report_twice(self, step: Wired, need: Need, node: Placed, first: NeedAt) -> None:
        """One step needed twice: the same again, or in two ways that do not agree."""
        both = f"{quoted(step.id)} needs {quoted(need.step)}"
        line = first.node.line
        if first.need.type == need.type:
            self.problems.add("P004", node, f"{both} twice, first in line {line}")
            return
        message = f"{both} as '{first.need.type}' in line {line} and as '{need.type}' here"
        hint = (
            f"keep one of them; data that a person lets through: {{step: {need.step}, from: NAME}}"
        )
        self.problems.add("P004", node, message, hint)

    def _check_key(self, step: Wired, key: str, upstream: Wired, node: Placed) -> None:
        outputs = upstream.promise.outputs
        if key and outputs and key not in outputs:
            guess = self.problems.did_you_mean(key, outputs)
            hint = guess or f"its outputs: {', '.join(outputs)}"
            what = f"the key {quoted(key)}"
            message = f"{quoted(step.id)} reads {what} that {quoted(upstream.id)} does not give"
            self.problems.add("P012", node, message, hint)

    def _sorted(self) -> list[int] | None:
        """Steps after all that they need, in the order of the file where there is a choice."""
        waiting = [len(needs) for needs in self.needs]
        users: list[list[int]] = [[] for _ in self.steps]
        for step, needs in enumerate(self.needs):
            for need in needs:
                users[need].append(step)
        ready = deque(step for step, count in enumerate(waiting[: self.known]) if not count)
        later = deque(s for s, count in enumerate(waiting) if not count and s >= self.known)
        order = []
        while ready or later:  # what is added comes after all that is there
            step = ready.popleft() if ready else later.popleft()
            order.append(step)
            for user in users[step]:
                waiting[user] -= 1
                if not waiting[user]:
                    (later if user >= self.known else ready).append(user)
        return order if len(order) == len(self.steps) else None

    def report_circles(self) -> None:
        """Each circle once, by its path; a few of them say enough."""
        shown: set[tuple[int, ...]] = set()
        for circle in self._circles():
            least = circle.index(min(circle))
            turned = tuple(circle[least:] + circle[:least])
            if turned in shown:
                continue
            shown.add(turned)
            names = [self.steps[number].id for number in (*turned, turned[0])]
            message = f"these steps need each other: {' → '.join(_few(names))}"
            first = self.steps[turned[0]]
            place = next(item.node for item in first.needs if item.need.step == names[1])
            self.problems.add("P052", place, message, "remove one of these needs")
            if len(shown) == MOST_CIRCLES:
                return

    def _circles(self) -> Iterator[list[int]]:
        """Depth first without recursion; an edge back into the open path closes a circle."""
        finished = [False] * len(self.steps)
        for start in range(len(self.steps)):
            if finished[start]:
                continue
            path = [start]
            depth = {start: 0}
            edges = [iter(self.needs[start])]
            while path:
                need = next(edges[-1], None)
                if need is None:
                    finished[path[-1]] = True
                    del depth[path.pop()]
                    edges.pop()
                elif need in depth:
                    yield path[depth[need] :]
                elif not finished[need]:
                    depth[need] = len(path)
                    path.append(need)
                    edges.append(iter(self.needs[need]))

    def missing(self, questions: Sequence[tuple[int, Sequence[int]]]) -> Iterator[tuple[int, int]]:
        """(question, step) for every step asked about that is not an ancestor.

        Ancestors are sets of bits, a batch of steps at a time: one pass over the graph for each
        batch, so many questions cost little more than one.
        """
        same: dict[int, list[int]] = {}
        for index, (_, group) in enumerate(questions):
            same.setdefault(id(group), []).append(index)
        groups = {key: questions[indexes[0]][1] for key, indexes in same.items()}
        asked = sorted({step for group in groups.values() for step in group})
        bit = {step: index for index, step in enumerate(asked)}
        masks: list[dict[int, int]] = [{} for _ in range(0, len(asked), _BATCH)]
        for key, group in groups.items():
            for step in group:
                batch, place = divmod(bit[step], _BATCH)
                masks[batch][key] = masks[batch].get(key, 0) | 1 << place
        for batch, wanted in enumerate(masks):
            start = batch * _BATCH
            above = self._above({step: i for i, step in enumerate(asked[start : start + _BATCH])})
            for key, mask in wanted.items():
                for index in same[key]:
                    for place in _bits(mask & ~above[questions[index][0]]):
                        yield index, asked[start + place]

    def _above(self, batch: Mapping[int, int]) -> list[int]:
        above = [0] * len(self.steps)
        for step in self.order or ():
            bits = 0
            for need in self.needs[step]:
                bits |= above[need]
                if need in batch:
                    bits |= 1 << batch[need]
            above[step] = bits
        return above


def _few(names: list[str]) -> list[str]:
    """All names, or the first and the last of many."""
    if len(names) <= MOST_NAMES + 1:
        return names
    half = MOST_NAMES // 2
    return [*names[:half], f"… {len(names) - 2 * half:,} more …", *names[-half:]]


def _bits(number: int) -> Iterator[int]:
    while number:
        low = number & -number
        yield low.bit_length() - 1
        number ^= low


@frozen
class _Question:
    """`step` must come after each of `others`; if not, `code` says what is wrong."""

    code: str
    step: int
    others: Sequence[int]
    place: Placed
    path: str


def _overlaps(graph: _Graph) -> Iterator[_Question]:
    """Writers of one path, and of a path inside it, must be ordered; by any spelling that may be one file.

    In the order of the graph it is enough to ask neighbours: if each comes after the one before,
    they all do.
    """
    writers: dict[str, list[tuple[int, Placed]]] = {}
    for number in graph.order or ():
        for path, node in graph.steps[number].produces:
            writers.setdefault(_folded(path), []).append((number, node))
    for path, found in writers.items():
        for (first, _), (second, place) in pairwise(found):
            yield _Question("P053", second, (first,), place, path)
        for outer in parents(path):
            around = writers.get(outer)
            if around is not None:
                yield from _between(graph, path, found, around)


def _folded(path: str) -> str:
    """The form under which two paths may be one on some file system; most paths are their own."""
    if path.isascii() and path.islower():
        return path
    return "/".join(fold(part) for part in path.split("/"))


def _between(
    graph: _Graph, path: str, inner: list[tuple[int, Placed]], outer: list[tuple[int, Placed]]
) -> Iterator[_Question]:
    inside = {step for step, _ in inner}
    merged = sorted([*inner, *outer], key=lambda item: graph.rank[item[0]])
    for (first, _), (second, place) in pairwise(merged):
        if first != second and (first in inside) != (second in inside):
            yield _Question("P053", second, (first,), place, path)


def _sent_back(graph: _Graph) -> Iterator[_Question]:
    """Only what a step stands on can be made again for it."""
    for number, step in enumerate(graph.steps):
        for name, node in step.escalate:
            other = graph.number.get(name)
            if other is None:
                hint = graph.problems.did_you_mean(name, graph.number)
                message = f"'escalate' of {quoted(step.id)} names {quoted(name)}, which is no step"
                graph.problems.add("P056", node, message, hint)
            else:
                yield _Question("P056", number, (other,), node, name)


def _reads(graph: _Graph, problems: Problems) -> Iterator[_Question]:
    """A glob that matches what another step produces asks for that step."""
    if not any(step.inputs for step in graph.steps):
        return
    producers: dict[str, list[int]] = {}
    for number, step in enumerate(graph.steps):
        for path, _ in step.produces:
            producers.setdefault(path, []).append(number)
    paths = Paths(producers)
    matched: dict[str, tuple[int, ...]] = {}
    for number, step in enumerate(graph.steps):
        for item, node in step.inputs:
            group = matched.get(item.glob)
            if group is None:
                found = {one for path in paths.matching(item.glob) for one in producers[path]}
                group = matched[item.glob] = tuple(sorted(found))
                if paths.compared > MOST_COMPARED + COMPILED * len(graph.steps):
                    message = "the plan has too many globs and paths to compare with each other"
                    hint = "start globs with the directory they are about"
                    problems.add("P055", node, message, hint)
                    return
            if group:
                yield _Question("P054", number, group, node, item.glob)


def _report(graph: _Graph, questions: Iterable[_Question], problems: Problems) -> None:
    asked = list(questions)
    for index, other in graph.missing([(item.step, item.others) for item in asked]):
        question = asked[index]
        if max(question.step, other) < graph.known:
            continue
        step, upstream = graph.steps[question.step].id, graph.steps[other].id
        path = quoted(question.path)
        if question.code == "P053":
            both = f"{quoted(upstream)} and {quoted(step)}"
            message = f"{both} may run in parallel and both produce {path}"
            problems.add("P053", question.place, message, f"let '{step}' need '{upstream}'")
        elif question.code == "P056":
            message = f"'escalate' of {quoted(step)} names {path}, which is not above it"
            problems.add(
                "P056",
                question.place,
                message,
                f"let '{step}' need it, or name a step that it stands on",
            )
        elif question.step < graph.known:
            message = f"{quoted(upstream)} produces what {quoted(step)} reads ({path})"
            place = graph.steps[other].key
            problems.add("P054", place, f"{message} without needing it", "produce another path")
        elif other == question.step:
            message = f"{quoted(step)} reads what it produces itself: {path}"
            problems.warn("P902", question.place, message, "narrow the glob")
        else:
            message = f"{quoted(step)} reads {path}, which {quoted(upstream)} produces"
            hint = f"add '{upstream}' to the needs of '{step}', or narrow the glob"
            problems.add("P054", question.place, f"{message}, without needing it", hint)
