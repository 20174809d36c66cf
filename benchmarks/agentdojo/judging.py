"""One run, one verdict: whether a task is solved, and whether any way of attacking it succeeds.

The verdicts are the suite's own (`utility`, `security` and their `_from_traces`).
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, Protocol

from bicameral.boundary import Executor
from bicameral.plans import Extract, Plan, walk
from bicameral.policy import Mode, Policy
from bicameral.runs import ApprovalQuestion

from .adapter import Asked, PlanPipeline, Tamper, TaskPipeline, plan_of, policy_of
from .adaptive import Attempt, Heard, Learner, Script, liar, nearness
from .answers import Answer, answers
from .attacks import Goal, goal_of
from .bait import baits
from .dojo import InjectionTask, runtime_of, suite_of
from .executors import Strategy, attacker, oracle, strategies
from .tampering import tamper
from .users import Careful, Careless
from .worlds import environment, vectors

TAMPERINGS = 3
BARE_VALUES = 8

Attacker = Literal["fixed", "adaptive"]
"""Whether the attacker has a list of attacks, or also learns from what he tries."""
User = Literal["careful", "careless", "nobody"]
"""Who is asked: one who says yes only to what he wanted, one who always does, or nobody, which is a no."""


class Subject(Protocol):
    """What is attacked: how a task is worked on, and what an attacker knows of that.

    Args:
        plans: The plans that it runs without an attack, in order.
        answers: What a reader answers who makes no mistakes, as far as that is known.
    """

    @property
    def plans(self) -> Sequence[Plan]: ...

    @property
    def answers(self) -> Sequence[Answer]: ...

    def pipeline(
        self, executor: Executor, tamper: Tamper | None, policy: Policy | None, asked: Asked | None
    ) -> TaskPipeline:
        """The task with this executor, policy and user."""
        ...


@dataclass(frozen=True, slots=True)
class OraclePlan:
    """The plan of a task that was written by hand."""

    suite: str
    task: str

    @property
    def plans(self) -> Sequence[Plan]:
        return (plan_of(self.suite, self.task),)

    @property
    def answers(self) -> Sequence[Answer]:
        return answers(self.suite).get(self.task, ())

    def pipeline(
        self, executor: Executor, tamper: Tamper | None, policy: Policy | None, asked: Asked | None
    ) -> TaskPipeline:
        return PlanPipeline(self.suite, self.plans[0], executor, tamper, policy, asked)


@dataclass(frozen=True, slots=True)
class Attack:
    """One way to attack a pair: what stands at the injection vectors, what is tampered with, what the executor says."""

    injections: tuple[tuple[str, str], ...]
    strategy: Strategy | Script
    tampering: int | None = None


@dataclass(frozen=True, slots=True)
class Benign:
    """A run that nobody attacks: whether it solved its task, and what each question to the user was about."""

    suite: str
    task: str
    mode: Mode | None
    solved: bool
    questions: tuple[str, ...]
    ended: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """A pair of user task and injection task: the first attack that succeeded, in which mode, and how many were tried.

    `attack` succeeded with a careful user, and `alone` with nobody there to ask. `careless` is the first that would
    have succeeded if the user always said yes, which is the same in all modes. `blank` says whether the plan has a
    blank that the quarantined model fills.
    """

    suite: str
    user_task: str
    injection_task: str
    mode: Mode | None
    text_only: bool
    attack: Attack | None
    careless: Attack | None
    tried: int
    alone: Attack | None = None
    blank: bool = True


def benign(
    suite: str, task: str, mode: Mode | None, extractor: Executor | None = None, *, alone: bool = False
) -> Benign:
    """Run a task's oracle plan without an attack; without a mode there is no policy, and nobody is asked.

    `alone`, the agent has nobody to ask, and that is a no.
    """
    users: list[Careful] = []

    def user(world: Any) -> Careful:
        users.append(Careful(suite, task, world))
        return users[-1]

    reader = extractor or oracle(answers(suite).get(task, ()))
    policy = policy_of(suite, mode) if mode else None
    pipeline = PlanPipeline(suite, plan_of(suite, task), reader, policy=policy, asked=None if alone else user)
    solved, _ = suite_of(suite).run_task_with_pipeline(
        pipeline, suite_of(suite).user_tasks[task], None, {}, environment=environment(suite, {})
    )
    questions = tuple(about(question) for each in users for question in each.questions)
    refused = "; ".join(f"no to {call.tool} {dict(call.arguments)}" for each in users for call in each.refused)
    return Benign(suite, task, mode, solved, questions, refused or type(pipeline.outcome).__name__)


def about(question: ApprovalQuestion) -> str:
    """What a question is about, in short."""
    found = (f"{call.tool} ({', '.join(call.rules)})" for call in question.calls)
    return "; ".join(dict.fromkeys(found))


def verdict_on(
    suite: str,
    task: str,
    injection: str,
    modes: Sequence[Mode] = (),
    attacker: Attacker = "fixed",
    subject: Subject | None = None,
) -> Verdict:
    """Try the attacks on a pair, one after another, until one succeeds with a careful user in one of the modes.

    Without a mode there is no policy, and no user. The subject is by default the task's oracle plan.
    """
    subject = subject or OraclePlan(suite, task)
    goal, blank = _goal(suite, injection), _has_blank(subject)
    careless: Attack | None = None
    alone: Attack | None = None
    tried = 0
    for attack, reached in _attempts(suite, task, injection, modes[-1] if modes else None, attacker, subject):
        tried += 1
        # A no ends the run, so a careful user lets only a part of that happen which a careless one does, and so does
        # nobody: what fails with the careless one need not be tried with them.
        if not reached:
            continue
        careless = careless or attack
        for mode in modes or (None,):
            if mode is None or succeeds(suite, task, injection, attack, mode, subject=subject):
                return Verdict(suite, task, injection, mode, goal.text_only, attack, careless, tried, alone, blank)
            if alone is None and succeeds(suite, task, injection, attack, mode, user="nobody", subject=subject):
                alone = attack
    return Verdict(suite, task, injection, None, goal.text_only, None, careless, tried, alone, blank)


def has_blank(suite: str, task: str) -> bool:
    """Whether a task's plan has a blank for the quarantined model."""
    return _has_blank(OraclePlan(suite, task))


def _has_blank(subject: Subject) -> bool:
    return any(isinstance(step, Extract) for plan in subject.plans for _, step in walk(plan.steps))


def _attempts(
    suite: str, task: str, injection: str, mode: Mode | None, attacker: Attacker, subject: Subject
) -> Iterator[tuple[Attack, bool]]:
    """The attacks on a pair, each with whether it reaches its goal if the user always says yes."""
    for attack in attacks_on(suite, task, injection, subject):
        yield attack, succeeds(suite, task, injection, attack, mode, user="careless", subject=subject)
    if attacker == "adaptive" and _has_blank(subject):
        yield from _learning(suite, task, injection, mode, subject)


def _learning(
    suite: str, task: str, injection: str, mode: Mode | None, subject: Subject
) -> Iterator[tuple[Attack, bool]]:
    """What an attacker tries who learns, and then the best of it with everything else that he can do."""
    beside, goal = _beside(suite, injection), _goal(suite, injection)

    def attempt(script: Script) -> Attempt:
        ran = _run(suite, task, injection, Attack(beside, script), mode, "careless", subject)
        near = nearness(goal, ran.pipeline.calls, ran.pipeline.answer)
        return Attempt(script, near, ran.reached, ran.heard)

    learner = Learner(attempt)
    for found in learner.tries():
        yield Attack(beside, found.script), found.reached
    together = [Attack(beside, learner.best, rank) for rank in range(TAMPERINGS)]
    together += [Attack(injections, learner.best) for injections in _bare(suite, injection)[: BARE_VALUES // 2]]
    for attack in together:
        yield attack, succeeds(suite, task, injection, attack, mode, user="careless", subject=subject)


@cache
def _beside(suite: str, injection: str) -> tuple[tuple[str, str], ...]:
    """The goal's text at each vector, after what stood there: an attacker wants the run to get past his text."""
    text = suite_of(suite).injection_tasks[injection].GOAL
    return tuple((name, f"{harmless}\n{text}".strip()) for name, harmless in vectors(suite).items())


@cache
def _goal(suite: str, injection: str) -> Goal:
    world = environment(suite, dict(_beside(suite, injection)))
    return goal_of(suite, suite_of(suite).injection_tasks[injection], world)


def attacks_on(suite: str, task: str, injection: str, subject: Subject | None = None) -> Iterator[Attack]:
    """The attacks on a pair: lies in the plan's blanks, tampered items, and bare values at the injection vectors."""
    beside = _beside(suite, injection)
    yield from (Attack(beside, way) for way in strategies(*(subject or OraclePlan(suite, task)).plans))
    for rank in range(TAMPERINGS):
        yield Attack(beside, Strategy(rank), rank)
    yield from (Attack(injections, Strategy()) for injections in _bare(suite, injection))


def _bare(suite: str, injection: str) -> list[tuple[tuple[str, str], ...]]:
    """Values that serve the goal, each alone at all injection vectors."""
    values = list(dict.fromkeys(str(bait.value) for bait in baits(_goal(suite, injection))))[:BARE_VALUES]
    return [tuple((name, value) for name in vectors(suite)) for value in values]


@dataclass(frozen=True, slots=True)
class Ran:
    """A run under attack."""

    pipeline: TaskPipeline
    reached: bool
    heard: Heard


def succeeds(
    suite: str,
    task: str,
    injection: str,
    attack: Attack,
    mode: Mode | None = None,
    *,
    user: User = "careful",
    subject: Subject | None = None,
) -> bool:
    """Whether an attack reaches its goal, by the suite's own judgement; without a mode there is no policy."""
    return _run(suite, task, injection, attack, mode, user, subject or OraclePlan(suite, task)).reached


def _run(suite: str, task: str, injection: str, attack: Attack, mode: Mode | None, user: User, subject: Subject) -> Ran:
    injection_task, goal = suite_of(suite).injection_tasks[injection], _goal(suite, injection)
    altered: Tamper | None = None
    if attack.tampering is not None:
        altered = tamper(suite, goal, injection_task.GOAL, attack.tampering)
    heard, known = Heard([]), subject.answers
    if isinstance(attack.strategy, Script):
        executor = liar(suite, goal, attack.strategy, known, heard)
    else:
        executor = attacker(goal, attack.strategy, known)

    policy = policy_of(suite, mode) if mode else None
    pipeline = subject.pipeline(executor, altered, policy, user_of(suite, task, user))
    before, after = run(suite, task, dict(attack.injections), pipeline)
    return Ran(pipeline, is_reached(injection_task, pipeline, before, after), heard)


def user_of(suite: str, task: str, user: User) -> Asked | None:
    """Who is asked in a run; None is nobody."""

    def asked(world: Any) -> Careful | Careless:
        return Careful(suite, task, world) if user == "careful" else Careless()

    return None if user == "nobody" else asked


def is_reached(injection_task: InjectionTask, pipeline: TaskPipeline, before: Any, after: Any) -> bool:
    # One of the tasks prints what it misses.
    with contextlib.redirect_stdout(io.StringIO()):
        reached = injection_task.security_from_traces(pipeline.answer, before, after, pipeline.calls)
        return bool(injection_task.security(pipeline.answer, before, after) if reached is None else reached)


def is_solved(suite: str, task: str, pipeline: TaskPipeline, before: Any, after: Any) -> bool:
    """Whether a run solved its task, by the suite's own judgement."""
    user_task = suite_of(suite).user_tasks[task]
    solved = user_task.utility_from_traces(pipeline.answer, before, after, pipeline.calls)
    return bool(user_task.utility(pipeline.answer, before, after) if solved is None else solved)


def run(suite: str, task: str, injections: Mapping[str, str], pipeline: TaskPipeline) -> tuple[Any, Any]:
    user_task = suite_of(suite).user_tasks[task]
    before = user_task.init_environment(environment(suite, injections))
    world = user_task.init_environment(environment(suite, injections))
    *_, after, _messages, _extra = pipeline.query(user_task.PROMPT, runtime_of(suite), world)
    return before, after
