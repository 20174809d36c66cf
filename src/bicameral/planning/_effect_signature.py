"""The effects of a plan as a value that can be compared: what it would change, directed by what, made of what.

Two plans with the same signature make the same calls with effects under the same conditions, each directed by values
that are computed in the same way, from the same readings of the world. They may select differently among what they
read. A difference that means nothing may still count as one: then a person is asked who need not have been.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from bicameral.plans import Answer, Ask, Call, Compute, Each, Extract, Plan, Update, When, free_names
from bicameral.tools import Registry


@dataclass(frozen=True, slots=True, order=True)
class EffectCall:
    """One call that changes something or tells somebody something.

    Args:
        tool: Its name.
        directing: How each argument that directs it is computed, as digests.
        sources: The readings of the world that are in its other arguments, as digests.
        conditions: The loops and branches around it, as digests.
    """

    tool: str
    directing: tuple[tuple[str, str], ...]
    sources: tuple[str, ...]
    conditions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EffectSignature:
    """All calls of a plan with effects, in order, and how its answers are computed."""

    calls: tuple[EffectCall, ...]
    answer: str

    @property
    def changes(self) -> bool:
        """Whether the plan changes or tells anything at all."""
        return bool(self.calls)


def effects_of(plan: Plan, registry: Registry) -> EffectSignature:
    """The signature of a plan. It is computed before anything is bound, so nothing of the world is in it."""
    flow = _DataFlow(registry)
    flow.follow(plan.steps, ())
    return EffectSignature(tuple(flow.calls), _digest(*flow.answers))


@dataclass(slots=True)
class _Value:
    """How a variable is computed, and from which readings of the world."""

    digest: str
    sources: frozenset[str] = frozenset()


@dataclass(slots=True)
class _DataFlow:
    registry: Registry
    variables: dict[str, _Value] = field(default_factory=dict[str, _Value])
    calls: list[EffectCall] = field(default_factory=list[EffectCall])
    answers: list[str] = field(default_factory=list[str])

    def follow(self, steps: Iterable[Any], conditions: tuple[str, ...]) -> None:
        for step in steps:
            self._follow_step(step, conditions)

    def _follow_step(self, step: Any, conditions: tuple[str, ...]) -> None:
        match step:
            case Call():
                self._follow_call(step, conditions)
            case Extract():
                source, instruction = self._value(step.source), self._value(step.instruction)
                kind = json.dumps(step.type, sort_keys=True)
                digest = _digest("extract", source.digest, instruction.digest, kind)
                self._assign(step.name, _Value(digest, source.sources | instruction.sources), conditions)
            case Ask():
                question = self._value(step.question)
                self._assign(step.name, _Value(_digest("ask", question.digest), question.sources), conditions)
            case Compute():
                self._assign(step.name, self._value(step.value), conditions)
            case Update():
                value = self._value(step.value)
                key = _Value("") if step.key is None else self._value(step.key)
                before = self.variables.get(step.name, _Value(""))
                digest = _digest("update", step.op, before.digest, key.digest, value.digest)
                sources = before.sources | key.sources | value.sources
                self._assign(step.name, _Value(digest, sources), conditions)
            case Each():
                over = self._value(step.over)
                inside = (*conditions, _digest("each", over.digest))
                # Twice, since a turn may use what the turn before it has assigned further down.
                for _ in range(2):
                    for number, name in enumerate(step.names):
                        item = _Value(_digest("item", str(number), over.digest), over.sources)
                        self.variables[name] = item
                    self.follow(step.steps, inside)
            case When():
                condition = self._value(step.condition)
                self.follow(step.steps, (*conditions, _digest("when", condition.digest)))
                self.follow(step.otherwise, (*conditions, _digest("unless", condition.digest)))
            case Answer():
                self.answers.append(_digest(*conditions, self._value(step.value).digest))
            case _:
                raise AssertionError(f"{type(step).__name__} is no step")

    def _follow_call(self, step: Call, conditions: tuple[str, ...]) -> None:
        tool = self.registry.get(step.tool)
        given = {name: self._value(expr) for name, expr in sorted(step.args.items())}
        digest = _digest("call", step.tool, *(f"{name}={value.digest}" for name, value in given.items()))
        sources = frozenset[str]().union(*(value.sources for value in given.values()))
        # A question to another machine in words of the request alone, asked whatever happens, tells nobody more than
        # the request: plans that differ in nothing else have the same effects.
        tells = tool is not None and tool.outbound and bool(conditions or sources)
        if tool is None or tool.changes or tells:
            # What is not declared to be content counts as directing: an unknown tool in all its arguments.
            content = () if tool is None else [each.name for each in tool.arguments if each.purpose == "carries"]
            directing = tuple((name, value.digest) for name, value in given.items() if name not in content)
            carried = frozenset[str]().union(*(value.sources for name, value in given.items() if name in content))
            self.calls.append(EffectCall(step.tool, directing, tuple(sorted(carried)), conditions))
        if tool is None or tool.effect != "pure":
            sources |= {digest}
        if step.name is not None:
            self._assign(step.name, _Value(digest, sources), conditions)

    def _assign(self, name: str, value: _Value, conditions: tuple[str, ...]) -> None:
        before = self.variables.get(name)
        if conditions and before is not None:
            # Inside a branch or a loop the value before may remain, so both are part of what comes after.
            value = _Value(_digest("or", before.digest, *conditions, value.digest), before.sources | value.sources)
        self.variables[name] = value

    def _value(self, expr: Any) -> _Value:
        known = {name: self.variables[name] for name in free_names(expr) if name in self.variables}
        written = _with_digests(expr.model_dump(mode="json"), {name: each.digest for name, each in known.items()})
        sources = frozenset[str]().union(*(each.sources for each in known.values()))
        return _Value(_digest(json.dumps(written, sort_keys=True)), sources)


def _with_digests(node: Any, digests: Mapping[str, str]) -> Any:
    """The JSON of an expression with digests in place of the variables that it reads."""
    if isinstance(node, dict):
        facts = cast("dict[str, Any]", node)
        if facts.get("kind") == "ref" and facts.get("name") in digests:
            return {"kind": "computed", "as": digests[facts["name"]]}
        return {name: _with_digests(each, digests) for name, each in facts.items()}
    if isinstance(node, list):
        return [_with_digests(each, digests) for each in cast("list[Any]", node)]
    return node


def _digest(*parts: str) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:24]
