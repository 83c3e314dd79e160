"""The provider of models as a simulated machine sees it: it reads the prompt, answers, and writes a bill.

The model answers what `tests.laws.script` makes of the step, found in nothing but the conversation that the
real generator wrote. While it is rough, the provider refuses, wants to be left alone, breaks off, or answers
late. What it was asked is on its bill from the moment the first byte left, whoever died since.
"""

import asyncio
import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from holdfast.errors import AttemptError, CallError
from holdfast.generators.llm import LlmGenerator
from holdfast.model.call import Answer, Request, Usage, request_bytes
from holdfast.model.digest import Json, digest_bytes
from holdfast.model.plan import RunId, Step, StepId
from holdfast.ports import Candidate, Job, Rates, Store
from tests.laws.script import made, mishap
from tests.simulation.children import LATE, Nature
from tests.simulation.machine import Machine, Process
from tests.simulation.watch import Watch

MODEL = "far:sim"
READ, SAID = 2, 10  # micro-dollars for a token
MOODS = (
    *("model_refused", "model_limited", "model_down", "model_broke_off", "model_late"),
    "model_late",
)
_NAME = re.compile(r"^This is step (\S+)\.$", re.MULTILINE)
_SECTION = re.compile(r"^# ([^\n]+)\n(`{3,})[^\n]*\n(.*?)\n\2$", re.MULTILINE | re.DOTALL)
_REFUSED = "An earlier answer was refused by the guard 'g'"


class Drives(Protocol):
    """Who asks: the run that its engine drives."""

    @property
    def run(self) -> RunId: ...


@dataclass
class Provider:
    """What all models of a machine have in common: what they were asked, and what they charged for it."""

    machine: Machine
    nature: Nature
    asked: int = 0
    bill: Counter[tuple[RunId, StepId]] = field(default_factory=Counter)
    answers: dict[str, int] = field(
        default_factory=dict
    )  # what each cost, by the provider's own id

    def charge(self, run: RunId, step: StepId, cost: int) -> None:
        self.bill[run, step] += cost


def price(usage: Usage) -> int:
    return usage.input * READ + usage.output * SAID


class SimulatedModel:
    """Fills the port `ChatModel` for one engine."""

    def __init__(self, process: Process, provider: Provider, watch: Watch, who: Drives) -> None:
        self._process = process
        self._provider = provider
        self._watch = watch
        self._who = who

    def cost(self, model: str, usage: Usage) -> int | None:
        return price(usage) if model == MODEL else None

    def room(self, provider: str) -> Rates:
        return Rates(at_once=2)

    def load(self, provider: str) -> None:
        """It is always there."""

    async def close(self) -> None:
        """Nothing is kept between calls."""

    async def ask(
        self, request: Request, listen: Callable[[str], None], leaves: Callable[[], None]
    ) -> Answer:
        provider, machine = self._provider, self._process.machine
        step, run = step_of(request), self._who.run
        asked = digest_bytes(request_bytes(request))
        late = self._process.name in self._watch.excused
        self._watch.money.sent(self._process, run, step, asked, late=late)
        mood = self._mood(step)
        if mood == "model_limited":
            raise CallError("too many", reason="rate_limited", again=True, after=3.0)
        await asyncio.sleep(machine.random.uniform(0.001, 0.5))  # until it is connected
        leaves()
        provider.asked += 1
        answer = self._answer(request, step, mood)
        provider.charge(run, step, price(answer.usage))
        await self._takes(mood)
        if mood == "model_down":
            raise CallError("overloaded", reason="unavailable", again=True, read=0)
        if mood == "model_broke_off":
            raise CallError("cut off", reason="connection", again=True, read=len(answer.text))
        provider.answers[answer.id] = price(answer.usage)
        listen(answer.text)
        return answer

    def _mood(self, step: StepId) -> str:
        machine = self._process.machine
        if machine.random.random() >= 4 * self._provider.nature.roughness:
            return ""
        mood = machine.random.choice(MOODS)
        machine.fault(mood, self._process.name, step)
        return mood

    async def _takes(self, mood: str) -> None:
        machine, nature = self._process.machine, self._provider.nature
        late = mood == "model_late"
        seconds = machine.random.uniform(*LATE) if late else machine.random.uniform(0.02, 5.0)
        nature.until = max(nature.until, machine.now + seconds)
        loop = self._process.loop
        assert loop is not None  # attempts run in it
        future = loop.create_future()

        def tell() -> None:
            if not future.done():
                future.set_result(None)

        machine.after(seconds, lambda: loop.post(tell))
        await future

    def _answer(self, request: Request, step: StepId, mood: str) -> Answer:
        name = f"call-{self._provider.asked}"
        words = "\n".join(message.text for message in request.messages)
        text = said(words, step, self._provider.nature.salts.get(step, 0))
        usage = Usage(input=len(words) // 4, output=len(text) // 4 + 1)
        if mood == "model_refused":
            return Answer("I would rather not", finish="refused", usage=usage, id=name)
        return Answer(text, usage=usage, id=name)


def step_of(request: Request) -> StepId:
    found = _NAME.search("\n".join(message.text for message in request.messages))
    assert found is not None  # whoever dressed the step said so
    return StepId(found[1])


def said(words: str, step: StepId, salt: int) -> str:
    """What the step makes, worked out from nothing but what the model is told."""
    told = {name: text for name, _, text in _SECTION.findall(words)}
    values: dict[str, Json] = {}
    for name in ("text", "noise", "reads", "skill"):
        values[name] = json.loads(told[name])
    read = {
        StepId(name.removeprefix("RESULT OF ")): text.encode()
        for name, text in told.items()
        if name.startswith("RESULT OF ")
    }
    return made(Step(step, values=values), read, words.count(_REFUSED), salt).decode()


class Asking:
    """Fills the port `Generator` for steps that a model does, by the real one; the watch looks on."""

    def __init__(
        self, process: Process, store: Callable[[], Store], watch: Watch, nature: Nature
    ) -> None:
        self._process = process
        self._store = store
        self._watch = watch
        self._nature = nature
        self._real = LlmGenerator(lambda _, __: [])

    def identity(self, step: Step, root: str) -> Mapping[str, Json]:
        return self._real.identity(step, root)

    async def generate(self, job: Job) -> Candidate:
        execution = self._watch.begins(self._process, job, self._store())
        try:
            ended = mishap(job.step, job.attempt, self._nature.salts.get(job.step.id, 0))
            if ended is not None:
                reason = "timed_out" if ended.code == "timed_out" else ended.code
                raise AttemptError(ended.feedback or "no", reason=reason)
            return await self._real.generate(job)
        finally:
            execution.over = True

    async def close(self) -> None:
        await self._real.close()
