"""The effects of a plan as a value that can be compared: what it would change, directed by what, made of what.

Two plans with the same calls make the same calls with effects under the same conditions, each directed by values that
are computed in the same way, from the same readings of the world. They may select differently among what they read. Two
plans with the same meaning put the same facts and computed values into these calls, too, and differ in nothing but the
wording that the request leaves to the planner: the subject of a mail, a heading, an instruction for reading. A
difference that means nothing may still count as one: then a person is asked who need not have been.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from bicameral.planning._intent_document import Mention
from bicameral.planning._text_facts import text_facts
from bicameral.plans import (
    Answer,
    Apply,
    Arithmetic,
    Ask,
    Call,
    Choose,
    Comprehension,
    Compute,
    Const,
    DictOf,
    Each,
    Extract,
    Format,
    ListOf,
    Plan,
    Ref,
    Shown,
    TupleOf,
    Update,
    When,
    children,
    free_names,
)
from bicameral.tools import Registry

_TEXT_FUNCTIONS = frozenset({"str", "join", "strip", "title", "upper", "lower", "capitalize"})
"""Functions that put text together or change its form, and nothing of what it says."""


@dataclass(frozen=True, slots=True, order=True)
class EffectCall:
    """One call that changes something or tells somebody something.

    Args:
        tool: Its name.
        directing: How each argument that directs it is computed, as digests.
        sources: The readings of the world that are in its other arguments, as digests.
        conditions: The loops and branches around it, as digests in which the wording of extractions does not count.
    """

    tool: str
    directing: tuple[tuple[str, str], ...]
    sources: tuple[str, ...]
    conditions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EffectSignature:
    """All calls of a plan with effects, in order, and how its answers are computed.

    Args:
        calls: The calls.
        contents: Of each call the facts and the computed values that it carries; free wording does not count.
        targets: Of each call its tool and what directs it, in words of the request: how a word is marked
            (`file("a.txt")` or `"a.txt"`) and what the columns of a table are called do not count.
        answers: The facts and computed values of the answers.
        instructions: How each extraction is worded, as digests.
    """

    calls: tuple[EffectCall, ...]
    contents: tuple[frozenset[str], ...] = ()
    targets: tuple[tuple[str, str], ...] = ()
    answers: frozenset[str] = frozenset()
    instructions: frozenset[str] = frozenset()

    @property
    def changes(self) -> bool:
        """Whether the plan changes or tells anything at all."""
        return bool(self.calls)

    @property
    def meaning(self) -> tuple[object, ...]:
        """What two plans share exactly if their effects differ in wording alone."""
        return self.calls, self.contents


def effects_of(
    plan: Plan, registry: Registry, mentions: Sequence[Mention] = (), known: Mapping[str, str] | None = None
) -> EffectSignature:
    """The signature of a plan. Before anything is bound, nothing of the world is in it.

    Args:
        plan: The plan.
        registry: The tools.
        mentions: What the request mentions: text that a plan composes must agree in these.
        known: What the variables before its first step are, as texts to compare.
    """
    flow = _DataFlow(registry, mentions)
    flow.variables |= {name: _Value(_digest("known", value)) for name, value in (known or {}).items()}
    flow.follow(plan.steps, ())
    return EffectSignature(
        tuple(flow.calls),
        tuple(flow.contents),
        tuple(flow.targets),
        frozenset(flow.answers),
        frozenset(flow.instructions),
    )


@dataclass(slots=True)
class _Value:
    """How a variable is computed, and from which readings of the world.

    Args:
        digest: Of everything that it is computed by.
        sources: The readings, as digests.
        meant: As `digest`, without the wording of extractions; it is `digest` if it is empty.
        target: As `digest`, without how words are marked and what columns are called; `digest` if it is empty.
        facts: What a text made of it says, without free wording; `meant` alone if it is None.
    """

    digest: str
    sources: frozenset[str] = frozenset()
    meant: str = ""
    target: str = ""
    facts: frozenset[str] | None = None

    def __post_init__(self) -> None:
        self.meant, self.target = self.meant or self.digest, self.target or self.digest
        self.facts = frozenset({self.meant}) if self.facts is None else self.facts


@dataclass(slots=True)
class _DataFlow:
    registry: Registry
    mentions: Sequence[Mention] = ()
    variables: dict[str, _Value] = field(default_factory=dict[str, _Value])
    calls: list[EffectCall] = field(default_factory=list[EffectCall])
    contents: list[frozenset[str]] = field(default_factory=list[frozenset[str]])
    targets: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    answers: set[str] = field(default_factory=set[str])
    instructions: set[str] = field(default_factory=set[str])

    def follow(self, steps: Iterable[Any], conditions: tuple[str, ...]) -> None:
        for step in steps:
            self._follow_step(step, conditions)

    def _follow_step(self, step: Any, conditions: tuple[str, ...]) -> None:
        match step:
            case Call():
                self._follow_call(step, conditions)
            case Extract():
                self._follow_extract(step, conditions)
            case Ask():
                question = self._value(step.question)
                self._assign(step.name, _Value(_digest("ask", question.digest), question.sources), conditions)
            case Compute():
                self._assign(step.name, self._value(step.value), conditions)
            case Update():
                self._follow_update(step, conditions)
            case Each():
                over = self._value(step.over)
                inside = (*conditions, _digest("each", over.meant))
                # Twice, since a turn may use what the turn before it has assigned further down.
                for _ in range(2):
                    for number, name in enumerate(step.names):
                        self.variables[name] = _derive("item", str(number), over)
                    self.follow(step.steps, inside)
            case When():
                condition = self._value(step.condition)
                self.follow(step.steps, (*conditions, _digest("when", condition.meant)))
                self.follow(step.otherwise, (*conditions, _digest("unless", condition.meant)))
            case Answer():
                self.answers |= self._facts(step.value)
            case _:
                raise AssertionError(f"{type(step).__name__} is no step")

    def _follow_extract(self, step: Extract, conditions: tuple[str, ...]) -> None:
        source, instruction = self._value(step.source), self._value(step.instruction)
        kind = json.dumps(step.type, sort_keys=True)
        digest = _digest("extract", source.digest, instruction.digest, kind)
        meant = _digest("extract", source.meant, *sorted(self._facts(step.instruction)), kind)
        self.instructions.add(instruction.digest)
        self._assign(step.name, _Value(digest, source.sources | instruction.sources, meant), conditions)

    def _follow_update(self, step: Update, conditions: tuple[str, ...]) -> None:
        value = self._value(step.value)
        key = _Value("") if step.key is None else self._value(step.key)
        before = self.variables.get(step.name, _Value(""))
        made = _derive("update", step.op, before, key, value)
        # Under other conditions the text would say something else.
        made.facts = (before.facts or frozenset()) | (value.facts or frozenset()) | {_digest("under", *conditions)}
        self._assign(step.name, made, conditions)

    def _follow_call(self, step: Call, conditions: tuple[str, ...]) -> None:
        tool = self.registry.get(step.tool)
        given = {name: self._value(expr) for name, expr in sorted(step.args.items())}
        names = [f"{name}=" for name in given]
        made = _derive("call", "\n".join([step.tool, *names]), *given.values())
        # A question to another machine in words of the request alone, asked whatever happens, tells nobody more than
        # the request: plans that differ in nothing else have the same effects.
        tells = tool is not None and tool.outbound and bool(conditions or made.sources)
        if tool is None or tool.changes or tells:
            # What is not declared to be content counts as directing: an unknown tool in all its arguments.
            content = () if tool is None else [each.name for each in tool.arguments if each.purpose == "carries"]
            self._add_call(step, given, content, conditions)
        if tool is None or tool.effect != "pure":
            made.sources |= {made.digest}
        if step.name is not None:
            self._assign(step.name, made, conditions)

    def _add_call(
        self, step: Call, given: Mapping[str, _Value], content: Collection[str], conditions: tuple[str, ...]
    ) -> None:
        directing = tuple((name, value.digest) for name, value in given.items() if name not in content)
        carried = frozenset[str]().union(*(value.sources for name, value in given.items() if name in content))
        self.calls.append(EffectCall(step.tool, directing, tuple(sorted(carried)), conditions))
        target = [f"{name}={value.target}" for name, value in given.items() if name not in content]
        self.targets.append((step.tool, _digest(*target)))
        # Whether a mail greets its receiver by name is wording.
        addressed = json.dumps([step.args[name].model_dump(mode="json") for name in given if name not in content])
        known = [each for each in self.mentions if each.words not in addressed or each.verbatim]
        says = (self._facts(step.args[name], known) for name in given if name in content)
        self.contents.append(frozenset[str]().union(*says))

    def _assign(self, name: str, value: _Value, conditions: tuple[str, ...]) -> None:
        before = self.variables.get(name)
        if conditions and before is not None:
            # Inside a branch or a loop the value before may remain, so both are part of what comes after.
            facts = (before.facts or frozenset()) | (value.facts or frozenset())
            value = _derive("or", "\n".join(conditions), before, value)
            value.facts = facts
        self.variables[name] = value

    def _value(self, expr: Any) -> _Value:
        known = {name: self.variables[name] for name in free_names(expr) if name in self.variables}
        written = expr.model_dump(mode="json")
        sources = frozenset[str]().union(*(each.sources for each in known.values()))
        exact = _with_digests(written, {name: each.digest for name, each in known.items()})
        meant = _with_digests(written, {name: each.meant for name, each in known.items()})
        target = _with_digests(_in_plain_words(written), {name: each.target for name, each in known.items()})
        return _Value(_json_digest(exact), sources, _json_digest(meant), _json_digest(target), self._facts(expr))

    def _facts(self, expr: Any, mentions: Sequence[Mention] | None = None) -> frozenset[str]:
        """What a text made of an expression says: facts of its constant parts, and digests of its computed ones."""
        match expr:
            case str():
                return text_facts(expr, self.mentions if mentions is None else mentions)
            case Const(value=str(text)):
                return self._facts(text, mentions)
            case Ref() if expr.name in self.variables:
                return self.variables[expr.name].facts or frozenset()
            case Format():
                parts: Sequence[Any] = expr.parts
            case ListOf() | TupleOf() | DictOf() | Shown():
                parts = children(expr)
            case Arithmetic(op="+") | Choose():
                parts = children(expr)
            case Apply() if expr.function in _TEXT_FUNCTIONS:
                parts = children(expr)
            case Comprehension(key=None):
                return self._comprehension_facts(expr, mentions)
            case _:
                known = {name: self.variables[name].meant for name in free_names(expr) if name in self.variables}
                return frozenset({_json_digest(_with_digests(expr.model_dump(mode="json"), known))})
        return frozenset[str]().union(*(self._facts(part, mentions) for part in parts))

    def _comprehension_facts(self, expr: Comprehension, mentions: Sequence[Mention] | None) -> frozenset[str]:
        before = dict(self.variables)
        found: set[str] = set()
        for clause in expr.clauses:
            over = self._value(clause.over)
            found.add(_digest("each", over.meant))
            self.variables |= {name: _derive("item", str(place), over) for place, name in enumerate(clause.names)}
            found |= {_digest("when", self._value(condition).meant) for condition in clause.conditions}
        found |= self._facts(expr.element, mentions)
        self.variables = before
        return frozenset(found)


def _derive(how: str, detail: str, *values: _Value) -> _Value:
    """A value that is made of others in one way."""
    return _Value(
        _digest(how, detail, *(each.digest for each in values)),
        frozenset[str]().union(*(each.sources for each in values)),
        _digest(how, detail, *(each.meant for each in values)),
        _digest(how, detail, *(each.target for each in values)),
    )


def _in_plain_words(node: Any) -> Any:
    """The JSON of an expression in which a reference is its words, and a column any column of its table."""
    if isinstance(node, dict):
        facts = cast("dict[str, Any]", node)
        if facts.get("kind") == "reference":
            return {"kind": "const", "value": "" if facts["refers"] == "column" else facts["words"]}
        return {name: _in_plain_words(each) for name, each in facts.items()}
    if isinstance(node, list):
        return [_in_plain_words(each) for each in cast("list[Any]", node)]
    return node


def _with_digests(node: Any, digests: Mapping[str, str]) -> Any:
    """The JSON of an expression with digests in place of the variables that it reads."""
    if isinstance(node, dict):
        facts = cast("dict[str, Any]", node)
        if facts.get("kind") == "ref" and facts.get("name") in digests:
            return {"kind": "computed", "as": digests[facts["name"]]}
        if (own := _own_names(facts)) and facts.get("kind") in ("comprehension", "lambda"):
            # What a variable of its own is called means nothing.
            digests = {**digests, **{name: f"own {len(digests)} {place}" for place, name in enumerate(own)}}
        written = {name: _with_digests(each, digests) for name, each in facts.items()}
        return written | ({"names": len(facts["names"])} if "names" in facts else {})
    if isinstance(node, list):
        return [_with_digests(each, digests) for each in cast("list[Any]", node)]
    return node


def _own_names(facts: Mapping[str, Any]) -> list[str]:
    """The names that a comprehension or a lambda gives to what it goes over."""
    parts: Sequence[Any] = facts.get("clauses") or (facts,)
    return [str(name) for part in parts for name in part.get("names", ())]


def _json_digest(node: Any) -> str:
    return _digest(json.dumps(node, sort_keys=True))


def _digest(*parts: str) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:24]
