"""The proof before a run: what policy will decide about each call, whatever the tools return and on whichever path.

The plan is walked once with labels in place of values. The facts of each call cover all that they can be in a run, so a
call that is proved is never denied there.
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
    """The call is allowed on every path."""


@dataclass(frozen=True, slots=True)
class Conditional:
    """The call may be stopped: a person may be asked these questions, or (without any) it depends on the run."""

    questions: tuple[str, ...]
    why: str


@dataclass(frozen=True, slots=True)
class Refused:
    """The call would not be allowed."""

    reason: str


Verdict = Proved | Conditional | Refused


@dataclass(frozen=True, slots=True)
class CallProof:
    """The verdict on one call before the run. A call that is never reached has no facts."""

    step: str
    tool: str
    verdict: Verdict
    facts: CallFacts | None = None

    def to_json(self) -> dict[str, Any]:
        """The verdict for a program, with what may be asked and why."""
        facts: dict[str, Any] = {"step": self.step, "tool": self.tool, "verdict": type(self.verdict).__name__.lower()}
        match self.verdict:
            case Conditional(questions=questions, why=why):
                return {**facts, "questions": list(questions), "why": why}
            case Refused(reason=reason):
                return {**facts, "why": reason}
            case _:
                return facts


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
    """What policy will decide about each call of a plan, before anything happens.

    Args:
        plan: The plan.
        registry: The tools it may call.
        decide: The policy.
        mode: Whether control flow counts (`strict`).
        env: The labels of the variables before the first step.
        read: The label of what the author of the plan had read: the plan carries it like all that is made from it.
        assembled: By path of a call, the arguments that a plan of a model puts together.

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
            # It depends on the run: nobody can approve it beforehand, so it is no question.
            verdict = Conditional((), why)
        case Ask(question=question):
            verdict = Conditional((question,), question)
        case Denied(reason=reason) if isinstance(decide(_best_case_facts(facts)), Denied):
            verdict = Refused(reason)
        case Denied(reason=reason):
            verdict = Conditional((), reason)
    return CallProof(path, tool, verdict, facts)


def _best_case_facts(facts: CallFacts) -> CallFacts:
    """The facts if everyone may read everything: the readers that a result names are known only in the run."""

    def best(argument: ArgumentFacts) -> ArgumentFacts:
        return replace(argument, label=Label(argument.label.sources))

    return replace(facts, arguments=tuple(map(best, facts.arguments)), pc=Label(facts.pc.sources))
