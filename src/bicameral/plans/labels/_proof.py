"""The proof before a run: what policy will say of each call, whatever the tools answer and whichever way is taken.

The plan is walked once with labels in place of values. The facts that a call is judged by cover what they can ever be
in a run: a call that is proved is never denied there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from bicameral.errors import nearest_name
from bicameral.labels import NOTHING, Label, LabelTree
from bicameral.plans._plan import Call, Plan, check_depth, walk
from bicameral.plans.labels._storage import variable_labels
from bicameral.plans.labels._walker import LabelWalker
from bicameral.policy import Allowed, ArgumentFacts, Ask, CallFacts, Decide, Denied, Depends, Mode
from bicameral.tools import Registry


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
    variables: Mapping[str, LabelTree] = field(default_factory=dict[str, LabelTree])
    answer: LabelTree | None = None

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
    env: Mapping[str, LabelTree] | None = None,
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
    check_depth(plan)
    walker = LabelWalker(registry, mode, read, assembled)
    after, _ = walker.walk_block(plan.steps, dict(env or {}), read, "")
    calls = [(path, step.tool) for path, step in walk(plan.steps) if isinstance(step, Call)]
    verdicts = tuple(_judge_call(path, tool, walker.facts.get(path), registry, decide) for path, tool in calls)
    return Proof(mode, verdicts, variable_labels(after if after is not None else walker.ended), walker.answer)


def _judge_call(path: str, tool: str, facts: CallFacts | None, registry: Registry, decide: Decide) -> CallProof:
    if tool not in registry:
        near = nearest_name(tool, registry.names)
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
        case Denied(reason=reason) if isinstance(decide(_best_case_facts(facts)), Denied):
            verdict = Refused(reason)
        case Denied(reason=reason):
            verdict = Conditional((), reason)
    return CallProof(path, tool, verdict, facts)


def _best_case_facts(facts: CallFacts) -> CallFacts:
    """The same if everyone may read everything: whom a result names as its readers is known only in the run."""

    def best(argument: ArgumentFacts) -> ArgumentFacts:
        return replace(argument, label=Label(argument.label.sources))

    return replace(facts, arguments=tuple(map(best, facts.arguments)), pc=Label(facts.pc.sources))
