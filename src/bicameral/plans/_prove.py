"""The proof before a run: what policy will say of each call, whatever the tools answer and whichever way is taken.

The plan is gone through once with labels in place of values. Branches are both taken and come together; loops are
repeated until nothing new turns up, which cannot go on forever: a plan has finitely many sources, and shades are
bounded. What a call is judged by covers what it can ever be in a run: a call that is proved is never denied there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from bicameral.decisions import Allowed, ArgumentFacts, Ask, CallFacts, Decide, Denied, Depends, Mode
from bicameral.errors import nearest
from bicameral.labels import NOTHING, Label, Shade
from bicameral.tools import Registry

from ._depth import bound_depth
from ._flow_walk import Walker
from ._flow_written import variables_of
from ._plan import Call, Plan, walk


@dataclass(frozen=True, slots=True)
class Proved:
    """The call is allowed, whatever happens."""


@dataclass(frozen=True, slots=True)
class Conditional:
    """The call may be stopped: a person may be asked these questions, or (without any) it depends on what is found."""

    questions: tuple[str, ...]
    why: str


@dataclass(frozen=True, slots=True)
class Refused:
    """The call would not be allowed."""

    reason: str


Verdict = Proved | Conditional | Refused


@dataclass(frozen=True, slots=True)
class CallProof:
    """What is known of one call before the run. A call that is never come to has no facts."""

    step: str
    tool: str
    verdict: Verdict
    facts: CallFacts | None = None

    def to_json(self) -> dict[str, Any]:
        """The verdict for a program, with what may be asked and why."""
        told: dict[str, Any] = {"step": self.step, "tool": self.tool, "verdict": type(self.verdict).__name__.lower()}
        match self.verdict:
            case Conditional(questions=questions, why=why):
                return {**told, "questions": list(questions), "why": why}
            case Refused(reason=reason):
                return {**told, "why": reason}
            case _:
                return told


@dataclass(frozen=True, slots=True)
class Proof:
    """The verdict on every call of a plan, in the plan's order, and the labels of its variables and its answer."""

    mode: Mode
    calls: tuple[CallProof, ...]
    variables: Mapping[str, Shade] = field(default_factory=dict[str, Shade])
    answer: Shade | None = None

    @property
    def proved(self) -> bool:
        return all(isinstance(call.verdict, Proved) for call in self.calls)

    @property
    def refused(self) -> tuple[CallProof, ...]:
        return tuple(call for call in self.calls if isinstance(call.verdict, Refused))

    @property
    def questions(self) -> tuple[str, ...]:
        """What a person may be asked, each question once."""
        asked = (call.verdict.questions for call in self.calls if isinstance(call.verdict, Conditional))
        return tuple(dict.fromkeys(question for questions in asked for question in questions))

    def verdict(self, step: str) -> Verdict | None:
        """The verdict on the call at a step, if there is one."""
        return next((call.verdict for call in self.calls if call.step == step), None)

    def to_json(self) -> dict[str, Any]:
        """The verdicts for a program."""
        return {
            "mode": self.mode,
            "proved": self.proved,
            "questions": list(self.questions),
            "calls": [call.to_json() for call in self.calls],
        }


def prove(
    plan: Plan,
    registry: Registry,
    decide: Decide,
    mode: Mode = "strict",
    *,
    env: Mapping[str, Shade] | None = None,
    read: Label = NOTHING,
    assembled: Mapping[str, frozenset[str]] | None = None,
) -> Proof:
    """What will be said of each call of a plan, before anything happens.

    `env` are the labels of the variables that are there before the first step, and `read` is what whoever wrote the
    plan had read: the plan carries that like everything else that was written after reading it. `assembled` are the
    arguments of each call that a plan of a model puts together.

    Example:
        >>> proof = prove(plan, registry, policy.decide)
        >>> proof.proved, proof.questions
    """
    bound_depth(plan)
    walker = Walker(registry, mode, read, assembled)
    after, _ = walker.block(plan.steps, dict(env or {}), read, "")
    calls = [(path, step.tool) for path, step in walk(plan.steps) if isinstance(step, Call)]
    verdicts = tuple(_judged(path, tool, walker.facts.get(path), registry, decide) for path, tool in calls)
    return Proof(mode, verdicts, variables_of(after if after is not None else walker.ended), walker.answer)


def _judged(path: str, tool: str, facts: CallFacts | None, registry: Registry, decide: Decide) -> CallProof:
    if tool not in registry:
        near = nearest(tool, registry.names)
        reason = f"there is no tool {tool!r}" + (f"; did you mean {near!r}?" if near else "")
        return CallProof(path, tool, Refused(reason), facts)
    if facts is None:
        return CallProof(path, tool, Proved())
    match decide(facts):
        case Allowed():
            verdict: Verdict = Proved()
        case Depends(question=why):
            # Nobody can say yes to this beforehand, so it is no question.
            verdict = Conditional((), why)
        case Ask(question=question):
            verdict = Conditional((question,), question)
        case Denied(reason=reason) if isinstance(decide(_at_best(facts)), Denied):
            verdict = Refused(reason)
        case Denied(reason=reason):
            verdict = Conditional((), reason)
    return CallProof(path, tool, verdict, facts)


def _at_best(facts: CallFacts) -> CallFacts:
    """The same if everyone may read everything: whom a result names as its readers is known only in the run."""

    def best(argument: ArgumentFacts) -> ArgumentFacts:
        return replace(argument, label=Label(argument.label.sources))

    return replace(facts, arguments=tuple(map(best, facts.arguments)), pc=Label(facts.pc.sources))
