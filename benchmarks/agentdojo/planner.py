"""A planner in place of the oracle plans: it reads the prompt and the list of tools, and nothing of the world.

First one plan is written for the task. Where none is found, because something must be looked at first, the task is
worked on in rounds. What words of the prompt mean is bound outside the planner, with lists of the suite's own tools.

`PlannedTask` is one task with its models. Without an attack its quarantined model reads; under attack the attacker
takes its place, who knows the plans and everything that was read before. The planner's replies are kept, so that under
attack it is asked only where it would see something else.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, cast

from bicameral.agent import Agent
from bicameral.boundary import Executor, Extractor
from bicameral.config import Config, open_models, open_router
from bicameral.errors import BicameralError, PlanError, RunError
from bicameral.models import ModelFailure, ModelReply, ModelRequest, Provider, ScriptedProvider
from bicameral.patterns.reasoner import Answered, GaveUp, Outcome, ReasoningCallbacks, WrittenRound
from bicameral.plans import Plan
from bicameral.policy import Policy
from bicameral.routing import CachedProvider
from bicameral.runs import Approver, Failed, Finished, Interrupted, RunOutcome

from .adapter import Asked as AskedUser, Tamper, TaskPipeline, World, shown
from .answers import Answer, NotShown, answers
from .executors import Asked, read_correctly, write_reply
from .references import SuiteSource

NOW: Mapping[str, datetime] = {
    "workspace": datetime(2024, 5, 15, 9),
    "travel": datetime(2024, 5, 15, 9),
    "banking": datetime(2022, 4, 1, 9),
    "slack": datetime(2024, 5, 15, 9),
}
"""The user's clock, by suite: that of its calendar, or the day after its last transaction."""
PROFILES: Mapping[str, Literal["default", "small"]] = {"1.5b": "default", "0.5b": "small"}
SCRIPTED = "scripted:"
ROUNDS = 4

Start = Literal["plan", "rounds"]
"""Whether one plan is tried first, or rounds begin at once."""
How = Literal["answered", "refused", "asked", "no_plan", "error"]
"""How the work on a task ended, whether or not the answer is right."""

_ASKED = ("bind.", "intent.questions", "intent.needs-endorsement", "run.needs-answer", "run.needs-approval")
_NO_PLAN = ("plan.none", "plan.unasked-effect")
_REFUSED = ("plan.", "policy.denied", "run.refused")
_ROUND = re.compile(r"^plan \d+:", re.MULTILINE)


def how_ended(error: BicameralError | None) -> How:
    """How work ended that an error stopped, before or while it ran; without one it came to an answer."""
    if error is None:
        return "answered"
    if error.code in _NO_PLAN:
        return "no_plan"
    if any(error.code == each or (each[-1] == "." and error.code.startswith(each)) for each in _ASKED):
        return "asked"
    refused = any(error.code == each or (each[-1] == "." and error.code.startswith(each)) for each in _REFUSED)
    return "refused" if refused else "error"


class NotedProvider(CachedProvider):
    """A model whose replies are kept, and `noted` in order with what it was asked."""

    def __init__(self, provider: Provider) -> None:
        super().__init__(provider, {})
        self.noted: list[tuple[ModelRequest, str]] = []

    async def generate(self, request: ModelRequest) -> ModelReply:
        reply = await super().generate(request)
        self.noted.append((request, reply.text))
        return reply


@dataclass(frozen=True, slots=True)
class TaskModels:
    """The two models for one task."""

    privileged: Provider
    quarantined: Provider


class Planner:
    """What plans: the models of both sides, and how the work begins. Use it as a context manager.

    Args:
        name: The name in the report.
        models: The models for a task, by its suite and name.
        config: The configuration, with its limits.
        deterministic: Understand prompts by rules alone, without a model.
        rounds: The most rounds of a task; 1: never more than one plan.
        start: Whether one plan is tried first.
        timeout: Seconds until a run without an attack counts as an error.

    Example:
        >>> with open_planner("1.5b") as planner:
        ...     PlannedTask("banking", "user_task_3", planner)
    """

    def __init__(
        self,
        name: str,
        models: Callable[[str, str], TaskModels],
        *,
        config: Config | None = None,
        deterministic: bool = False,
        rounds: int = ROUNDS,
        start: Start = "plan",
        timeout: float | None = None,
    ) -> None:
        self.name = name
        self.models = models
        self.config = config or Config.defaults()
        self.deterministic = deterministic
        self.rounds = rounds
        self.start: Start = start
        self.timeout = timeout
        # Models belong to the loop they were first used on, and a run follows another: one loop for all of them.
        self.runner = asyncio.Runner()
        self._opened: list[Provider] = []

    def closing(self, *providers: Provider) -> Planner:
        """The planner itself, which closes these models in the end."""
        self._opened += providers
        return self

    def __enter__(self) -> Planner:
        return self

    def __exit__(self, *_: object) -> None:
        for provider in self._opened:
            self.runner.run(provider.aclose())
        self.runner.close()


def open_planner(name: str, *, config: Path | None = None, deterministic: bool = False, **options: Any) -> Planner:
    """A planner by its name.

    Args:
        name: `1.5b` or `0.5b`, the embedded models; `configured`, those of the configuration; one of its aliases; or
            `scripted:FILE`, plans from a JSON file, for tests.
        config: The configuration; by default the one that is found.
        deterministic: As in `Planner`.
        options: The other arguments of `Planner`.
    """
    if name.startswith(SCRIPTED):
        script = read_script(Path(name.removeprefix(SCRIPTED)))
        return Planner(name, lambda suite, task: _scripted_models(script, suite, task), deterministic=True, **options)
    if name in PROFILES:
        settings = Config.defaults().model_copy(update={"profile": PROFILES[name]})
    else:
        settings = Config.load(config)
        known = sorted(settings.llm.models)
        if name != "configured" and name not in known:
            raise SystemExit(
                f"--planner: unknown {name!r}; expected {', '.join(PROFILES)}, configured, {SCRIPTED}FILE"
                + (f", or an alias of the configuration: {', '.join(known)}" if known else "")
            )
    opened = open_models(settings)
    alias = name not in PROFILES and name != "configured"
    privileged = open_router(settings, "privileged", only=name) if alias else opened.privileged
    models = TaskModels(privileged, opened.quarantined)
    planner = Planner(name, lambda suite, task: models, config=settings, deterministic=deterministic, **options)
    return planner.closing(*dict.fromkeys((privileged, opened.privileged, opened.quarantined)))


def read_script(file: Path) -> Mapping[str, Sequence[str]]:
    """The plans of a JSON file by task: `{"banking/user_task_3": ["…", "…"]}`, one for each round."""
    try:
        found: Any = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SystemExit(f"--planner: {file} cannot be read as JSON: {error}") from None
    entries = cast("dict[str, Any]", found).items() if isinstance(found, dict) else ()
    script = {task: [plans] if isinstance(plans, str) else plans for task, plans in entries}
    if not script or not all(
        isinstance(plans, list) and plans and all(isinstance(plan, str) for plan in cast("list[Any]", plans))
        for plans in script.values()
    ):
        raise SystemExit(f"--planner: {file} is not of the form {{'SUITE/user_task_N': ['plan', …]}}")
    return script


def _scripted_models(script: Mapping[str, Sequence[str]], suite: str, task: str) -> TaskModels:
    """The plans of a script, and a reader who makes no mistakes where a plan asks what an oracle plan asks."""
    plans = script.get(f"{suite}/{task}", [""])

    def reply(request: ModelRequest) -> str:
        # The round is read from the request: under attack the same round may be asked for again, with other values.
        done = len(_ROUND.findall(request.messages[-1].text))
        return plans[min(done, len(plans) - 1)]

    known = answers(suite).get(task, ())

    def read(request: ModelRequest) -> str:
        asked = Asked.of(request)
        try:
            return write_reply(asked, read_correctly(asked, known))
        except NotShown as error:
            # Nobody can tell what this plan asks: a model that does not answer, and not a fault of the benchmark.
            raise ModelFailure("models.unavailable", "script", str(error)) from None

    return TaskModels(ScriptedProvider(reply, name="script", grammars=False), ScriptedProvider(read, name="reader"))


@dataclass(slots=True)
class PlannedTask:
    """One task with a planner: a `Subject` of attacks, once it was worked on without one.

    Args:
        suite: The suite.
        task: The user task.
        planner: What plans.
    """

    suite: str
    task: str
    planner: Planner
    plans: list[Plan] = field(default_factory=list[Plan])
    """The plans of the run without an attack."""
    answers: list[Answer] = field(default_factory=list[Answer])
    """What the quarantined model read in it."""
    _privileged: Provider = field(init=False, repr=False)
    _quarantined: NotedProvider = field(init=False, repr=False)
    _cache: dict[str, str] = field(init=False, repr=False, default_factory=dict[str, str])

    def __post_init__(self) -> None:
        models = self.planner.models(self.suite, self.task)
        self._privileged = NotedProvider(models.privileged)
        self._quarantined = NotedProvider(models.quarantined)

    @property
    def prompts(self) -> Sequence[ModelRequest]:
        """Everything that the planner was asked."""
        return [request for request, _ in cast("NotedProvider", self._privileged).noted]

    def harmless(self, policy: Policy | None, asked: AskedUser | None) -> PlannerPipeline:
        """The task without an attack; afterwards `learn` what an attacker may know of it."""
        timeout = self.planner.config.limits.model_timeout
        executor = Extractor(self._quarantined, timeout=timeout)
        return self._pipeline(executor, None, policy, asked, self.planner.timeout)

    def learn(self, pipeline: PlannerPipeline) -> None:
        """Keep the plans of a run and what was read in it."""
        self.plans = list(pipeline.plans)
        self.answers = _readings(self._quarantined.noted)

    def pipeline(
        self, executor: Executor, tamper: Tamper | None, policy: Policy | None, asked: AskedUser | None
    ) -> PlannerPipeline:
        return self._pipeline(executor, tamper, policy, asked, None)

    def _pipeline(
        self,
        executor: Executor,
        tamper: Tamper | None,
        policy: Policy | None,
        asked: AskedUser | None,
        timeout: float | None,
    ) -> PlannerPipeline:
        def agent(world: World) -> Agent:
            # What is looked up to bind words is no call of the task: it is not among those that the suite judges.
            beside = World(world.suite, world.runtime, world.environment, world.tamper)
            return Agent(
                world.registry,
                config=self.planner.config,
                privileged=self._privileged,
                quarantined=self._quarantined,
                executor=executor,
                policy=policy,
                cache=self._cache,
                now=lambda: NOW[self.suite],
                candidates=SuiteSource(beside.registry),
            )

        return PlannerPipeline(self.suite, self.planner, agent, tamper, asked, timeout)


class PlannerPipeline(TaskPipeline):
    """Works on a task with a planner; `plans` are those that were written, `error` is why there is no answer."""

    def __init__(
        self,
        suite: str,
        planner: Planner,
        agent: Callable[[World], Agent],
        tamper: Tamper | None = None,
        asked: AskedUser | None = None,
        timeout: float | None = None,
    ) -> None:
        super().__init__(suite, tamper, asked)
        self.plans: list[Plan] = []
        self.sources: list[str] = []
        self.error: BicameralError | None = None
        self.rounds = 0
        self._said: Any = ""
        self._planner = planner
        self._agent = agent
        self._timeout = timeout

    @property
    def answer(self) -> str:
        return shown(self._said) if self.error is None else ""

    def work(self, request: str, world: World, approver: Approver | None) -> None:
        self._planner.runner.run(self._work_within(request, self._agent(world), approver))

    async def _work_within(self, request: str, agent: Agent, approver: Approver | None) -> None:
        try:
            async with asyncio.timeout(self._timeout):
                await self._serve(request, agent, approver)
        except TimeoutError:
            self.error = RunError("run.timeout", f"the task took more than {self._timeout} seconds")
        except BicameralError as error:
            self.error = error

    async def _serve(self, request: str, agent: Agent, approver: Approver | None) -> None:
        intent = await agent.intent(request, deterministic=self._planner.deterministic)
        if self._planner.start == "plan":
            try:
                planned = await agent.plan(intent)
            except PlanError as error:
                # That no plan is found depends on the prompt alone: nothing of the world was seen when it is said, and
                # rounds begin as they would have without it.
                if error.code not in _NO_PLAN or self._planner.rounds < 2:
                    raise
            else:
                self._note(planned.plan, planned.source)
                self._conclude(await agent.run(planned, approver=approver))
                return

        async def written(this: WrittenRound) -> bool:
            self._note(this.compiled.plan, this.source)
            return True

        company = ReasoningCallbacks(approver=approver, written=written)
        self._conclude_rounds(await agent.reason(intent, rounds=self._planner.rounds, company=company))

    def _note(self, plan: Plan, source: str) -> None:
        self.plans.append(plan)
        self.sources.append(source)

    def _conclude(self, outcome: RunOutcome) -> None:
        match outcome:
            case Finished(answer=answer):
                self._said = answer
            case Failed(error=error) | Interrupted(error=error):
                self.error = error
            case _:
                self.error = RunError("run.needs-answer", f"the run ended as {type(outcome).__name__}")

    def _conclude_rounds(self, outcome: Outcome[Any]) -> None:
        self.rounds = len(outcome.rounds)
        match outcome:
            case Answered(value=value):
                self._said = value
            case GaveUp(error=error):
                self.error = error
            case _:
                self.error = RunError("reason.exhausted", f"the limit of {outcome.bound} was reached")


def _readings(noted: Sequence[tuple[ModelRequest, str]]) -> list[Answer]:
    """How the quarantined model read, as an attacker knows it: the same text the same, another as one of its kind."""
    found: dict[str, dict[str, Any]] = {}
    for request, written in noted:
        try:
            asked, reply = Asked.of(request), json.loads(written)
            value = reply if asked.is_record else reply["value"]
        except (ValueError, KeyError, TypeError):
            continue  # a question of another form, or a reply that was rejected: nothing was read
        found.setdefault(asked.instruction, {})[asked.text] = value
    return [Answer(instruction, _reader(texts)) for instruction, texts in found.items()]


def _reader(texts: Mapping[str, Any]) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        if not texts:
            raise NotShown("nothing was read")
        return texts.get(text, next(iter(texts.values())))

    return read
