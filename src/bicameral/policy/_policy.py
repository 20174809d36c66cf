"""The policies in force, the decisions they make, and which of them can be decided before a run.

Before a run only an upper bound of each label is known: when the call is made, its sources may be fewer and its readers
more, and only then are its recipients known. A condition *falls* if it can only turn from true to false between the
two, and *rises* if it can only turn from false to true; a condition on declarations does both, since it does not
change. A forbid whose conditions fall, and a permit whose conditions rise, decide before the run what they will decide
in it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Flag
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from cedarpy import Entities, PolicySet, pst

from bicameral.errors import BicameralError
from bicameral.policy._cedar_request import (
    ALL_FACTS,
    CallProfile,
    as_readers,
    call_receivers,
    entity_facts,
    evaluate_policies,
    facts_read,
    make_call_profile,
    normalize_principal,
    outline_call,
    parse_entities,
    render_context,
    walk_expression,
)
from bicameral.policy._decisions import Allowed, Ask, CallFacts, Decision, Denied, Depends, Mode
from bicameral.policy._explanation import render_question, render_reason, render_uncertainty
from bicameral.policy._rules import PolicyRule, default_rules, read_packaged, read_policy_file, user_rules
from bicameral.tools import Registry


class Stability(Flag):
    """How a condition, or a set, may change between the preview and the call."""

    NONE = 0
    FALLS = 1
    RISES = 2
    STILL = 3


_NONE, _STILL = Stability.NONE, Stability.STILL
_FACT_STABILITY = {
    "trusted": Stability.RISES,
    "from_user": Stability.RISES,
    "public": Stability.RISES,
    "strangers_text": Stability.FALLS,
    "sources": Stability.FALLS,
    "fields": Stability.FALLS,
    # The set may grow, but it becomes empty when the value turns out to be public.
    "readers": Stability.NONE,
}


def is_static_decidable(clause: pst.Clause, effect: pst.Effect, *, named: bool, placed: bool = True) -> bool:
    """Whether a clause can be evaluated before a run. A clause on `lures` never can.

    Args:
        clause: A `when` or `unless` of a policy.
        effect: The effect of the policy.
        named: Whether the recipients of the call are known already.
        placed: Whether the kind of file that the call writes is known already.
    """
    wanted = Stability.FALLS if effect == "forbid" else Stability.RISES
    stability = _stability(clause.expr, _KnownBefore(named, placed))
    return wanted in (stability if isinstance(clause, pst.When) else _opposite(stability))


def _opposite(stability: Stability) -> Stability:
    """The stability of the negated condition."""
    return {Stability.FALLS: Stability.RISES, Stability.RISES: Stability.FALLS}.get(stability, stability)


@dataclass(frozen=True, slots=True)
class _KnownBefore:
    """What is known of a call before the run: its recipients, and the kind of file it writes."""

    named: bool
    placed: bool


def _stability(expr: pst.Expr, known: _KnownBefore) -> Stability:
    match expr:
        case pst.GetAttr(base=pst.Var(name="context"), attr="lures"):
            return _NONE
        case pst.GetAttr(base=pst.Var(name="context"), attr="executed"):
            return _STILL if known.placed else _NONE
        case pst.GetAttr(base=pst.Var(name="context")):
            return _STILL if known.named else _NONE
        case pst.GetAttr(base=pst.GetAttr(base=pst.Var(name="resource")), attr=fact):
            return _FACT_STABILITY.get(fact, _NONE)
        case pst.GetAttr(base=pst.BinaryOp(op="get_tag", left=pst.Var(name="resource"), right=name), attr=fact):
            return _FACT_STABILITY.get(fact, _NONE) if _stability(name, known) is _STILL else _NONE
        case pst.GetAttr(
            base=pst.Var(name="resource"),
            attr="acts" | "outbound" | "declared" | "strict" | "assembled" | "unreviewed" | "unaddressed",
        ):
            return _STILL
        case pst.BinaryOp():
            return _binary_stability(expr, known)
        case pst.UnaryOp(op="not" | "is_empty", arg=arg):
            return _opposite(_stability(arg, known))
        case pst.IfThenElse(cond=cond, then_expr=then, else_expr=otherwise):
            both = _stability(then, known) & _stability(otherwise, known)
            return both if _stability(cond, known) is _STILL else _NONE
        case pst.Set(elements=elements):
            return _STILL if all(_stability(each, known) is _STILL for each in elements) else _NONE
        case pst.BoolLit() | pst.LongLit() | pst.StringLit() | pst.EntityLit():
            return _STILL
        case pst.Var(name="principal" | "action") | pst.Is(base=pst.Var(name="resource"), in_expr=None):
            return _STILL
        case _:
            return _NONE


def _binary_stability(expr: pst.BinaryOp, known: _KnownBefore) -> Stability:
    # The tool and the set of arguments are fixed by the plan.
    of_call = expr.op in ("in", "has_tag") and isinstance(expr.left, pst.Var)
    left, right = _STILL if of_call else _stability(expr.left, known), _stability(expr.right, known)
    match expr.op:
        case "and" | "or" | "contains_any":
            return left & right
        case "contains":
            return left if right is _STILL else _NONE
        case "contains_all":
            return left & _opposite(right)
        case "eq" | "not_eq" if isinstance(expr.right, pst.BoolLit):
            return left if expr.right.value is (expr.op == "eq") else _opposite(left)
        case _:
            return _STILL if left is right is _STILL else _NONE


_CACHE_SIZE = 1024
_NOBODY: frozenset[str] = frozenset()


class Policy:
    """The policies in force: the defaults, and a user's own on top of them.

    `decide` is for a call that is about to be made, `preview` for one in a plan that has not run. Both are always a
    full evaluation by Cedar, and every failure is a denial.

    Args:
        rules: The user's own rules.
        registry: The tools that facts are checked against; None to accept the facts as they are.
        mode: Whether control flow counts.
        me: The user's own addresses and accounts.

    Example:
        >>> policy = Policy.load([Path("team.cedar")], registry)
        >>> policy.decide(facts)
        Ask(question="send_mail: the argument 'to' comes from text that a stranger wrote: …", …)
    """

    def __init__(
        self,
        rules: Iterable[PolicyRule] = (),
        registry: Registry | None = None,
        *,
        mode: Mode = "strict",
        me: Iterable[str] = (),
    ) -> None:
        own = tuple(rules)
        self.rules: tuple[PolicyRule, ...] = (*default_rules(), *own)
        self.mode: Mode = mode
        self.me = frozenset(map(normalize_principal, me))
        self._registry = registry
        self._facts_read = facts_read((rule.node for rule in self.rules), ALL_FACTS)
        # The default reads the kind of file for untrusted text alone, a rule of the user's own perhaps for any content.
        self._reads_executed = any(
            isinstance(node, pst.GetAttr) and node.attr == "executed"
            for rule in own
            for clause in rule.node.clauses
            for node in walk_expression(clause.expr)
        )
        # Two caches: calls that differ in facts which no policy reads share one parsed entity.
        self._cached_request = lru_cache(maxsize=_CACHE_SIZE)(self._build_request)
        self._cached_entities = lru_cache(maxsize=_CACHE_SIZE)(parse_entities)
        self._preview_rule_sets: dict[tuple[bool, bool], _RuleSet] = {}

    @classmethod
    def load(
        cls,
        files: Iterable[Path | str] = (),
        registry: Registry | None = None,
        *,
        mode: Mode = "strict",
        me: Iterable[str] = (),
    ) -> Policy:
        """The defaults and the policies in these files; a `PolicyError` says what is wrong with one, and where.

        With a registry, a policy that names an unknown tool is an error, too. `me` are the user's own addresses and
        accounts.
        """
        texts = [(str(file), read_policy_file(Path(file))) for file in files]
        return cls(user_rules(texts, registry), registry, mode=mode, me=me)

    @classmethod
    def parse(
        cls,
        text: str,
        registry: Registry | None = None,
        *,
        file: str = "policies.cedar",
        mode: Mode = "strict",
        me: Iterable[str] = (),
    ) -> Policy:
        """The defaults and the policies in a text."""
        return cls(user_rules([(file, text)], registry), registry, mode=mode, me=me)

    def with_registry(self, registry: Registry) -> Policy:
        """The same policies, with the facts of calls checked against these tools."""
        own = (rule for rule in self.rules if not rule.default)
        return type(self)(own, registry, mode=self.mode, me=self.me)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of everything that decides; it is recorded with each run."""
        texts = (
            read_packaged("schema.cedarschema"),
            *(f"{rule.id}\n{rule.text}" for rule in self.rules),
            *sorted(self.me),
        )
        return hashlib.sha256("\0".join(texts).encode()).hexdigest()

    def decide(self, facts: CallFacts) -> Decision:
        """Whether a call may be made.

        If its recipients, or the lures in untrusted text that it carries, are not known yet, this is a `preview`.
        """
        return self._decide(facts, before=False)

    def preview(self, facts: CallFacts) -> Decision:
        """The decision on a call of which only upper bounds of the labels are known.

        `Allowed` is a guarantee: whatever the values turn out to be, `decide` will allow the call. A policy that cannot
        be evaluated yet counts as if it applied: its question is asked, or, if it has none, the result is `Depends`.
        """
        return self._decide(facts, before=True)

    def _decide(self, facts: CallFacts, *, before: bool) -> Decision:
        try:
            call, entities = self._cached_request(*outline_call(facts))
            receivers = call_receivers(facts, call)
            # Lures matter only in untrusted text.
            unknown = receivers is None or (
                facts.lures is None and any(each.is_untrusted_text for each in call.carried_arguments)
            )
            placed = facts.executed is not None or not (
                self._reads_executed or any(each.is_untrusted_text for each in call.written_content)
            )
            rules = (
                self._preview_rules(receivers is not None, placed)
                if before or unknown or not placed
                else self._exact_rules
            )
            context = render_context(
                receivers or _NOBODY, self.me, lures=bool(facts.lures), executed=bool(facts.executed)
            )
            stopping = rules.stopping_rules(entities, context)
        except _Undecidable as error:
            return Denied(str(error), error.rules)
        except BicameralError as error:
            return Denied(f"the policies cannot judge this call: {error.message}")
        except Exception as error:
            # Fail closed: no error may let a call through.
            return Denied(f"the policies cannot judge this call: {error}")
        if not stopping:
            return Allowed()
        return _verdict(call, None if receivers is None else as_readers(receivers, self.me), stopping, rules.undecided)

    def _build_request(self, *outlined: Any) -> tuple[CallProfile, Entities]:
        """A call as Cedar sees it. Cached: calls in a loop often differ only in their recipients."""
        call = make_call_profile(*outlined, registry=self._registry)
        return call, self._cached_entities(entity_facts(call, self._facts_read))

    @cached_property
    def _exact_rules(self) -> _RuleSet:
        return _RuleSet(self.rules, [rule.node for rule in self.rules])

    def _preview_rules(self, named: bool, placed: bool) -> _RuleSet:
        rules = self._preview_rule_sets.get((named, placed))
        if rules is None:
            rules = self._preview_rule_sets[named, placed] = _decidable_rules(self.rules, named=named, placed=placed)
        return rules


class _Undecidable(Exception):
    """A policy failed during evaluation, or no policy allows the call."""

    def __init__(self, message: str, rules: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.rules = rules


class _RuleSet:
    """Rules as parsed Cedar sets: one of all rules, and one of the permits alone, to find the overridden defaults."""

    def __init__(
        self, rules: Iterable[PolicyRule], nodes: Iterable[pst.Template], unsure: frozenset[str] = frozenset()
    ):
        pairs = {f"policy{number}": pair for number, pair in enumerate(zip(rules, nodes, strict=True))}
        self._rules = {id_: rule for id_, (rule, _) in pairs.items()}
        self.undecided = unsure
        self._all = build_policy_set(pairs)
        self._has_overrides = any(rule.overrides for rule in self._rules.values())
        self._permits = build_policy_set({id_: pair for id_, pair in pairs.items() if pair[0].effect == "permit"})

    def stopping_rules(self, call: Entities, context: str) -> tuple[PolicyRule, ...]:
        """The policies that stop a call; none if it is allowed."""
        allowed, stopping = self._evaluate(self._all, call, context)
        if allowed:
            return ()
        if not stopping:
            raise _Undecidable("no policy allows this call")
        # Cedar lets a forbid win over every permit, so overridden defaults are removed here.
        if not self._has_overrides or not any(rule.default for rule in stopping):
            return stopping
        allowed, permits = self._evaluate(self._permits, call, context)
        # The default permit must hold as well: a user's permit alone allows nothing.
        if not allowed or not any(rule.default for rule in permits):
            raise _Undecidable("no policy allows this call")
        lifted = {name for rule in permits for name in rule.overrides}
        return tuple(rule for rule in stopping if not (rule.default and rule.id in lifted))

    def _evaluate(self, policies: PolicySet, call: Entities, context: str) -> tuple[bool, tuple[PolicyRule, ...]]:
        answer = evaluate_policies(policies, call, context)
        if answer.errors:
            raise _Undecidable(f"a policy failed: {'; '.join(map(self._name_policies, answer.errors))}")
        return answer.allowed, tuple(rule for id_, rule in self._rules.items() if id_ in answer.policies)

    def _name_policies(self, error: str) -> str:
        """Cedar's message with policy ids replaced by their names."""
        for id_, rule in self._rules.items():
            error = error.replace(f"`{id_}`", repr(rule.id))
        return error


def build_policy_set(pairs: Mapping[str, tuple[PolicyRule, pst.Template]]) -> PolicySet:
    """Rules as one parsed Cedar set, by the ids that answers name."""
    nodes = {id_: replace(node, id=id_) for id_, (_, node) in pairs.items()}
    return PolicySet.from_pst(pst.PolicySet(templates={}, static_policies=nodes, template_links=()))


def _decidable_rules(rules: Iterable[PolicyRule], *, named: bool, placed: bool) -> _RuleSet:
    """The rules as far as they can be evaluated before a run.

    A forbid loses the clauses that cannot be, so it stops more calls than it will later; a permit with such a clause
    overrides nothing. Both err on the safe side.
    """
    kept = [(rule, node) for rule in rules for node in _decidable_nodes(rule, named, placed)]
    unsure = {rule.id for rule, node in kept if len(node.clauses) < len(rule.node.clauses)}
    return _RuleSet([rule for rule, _ in kept], [node for _, node in kept], frozenset(unsure))


def _decidable_nodes(rule: PolicyRule, named: bool, placed: bool) -> Iterator[pst.Template]:
    effect = rule.node.effect
    clauses = tuple(
        clause for clause in rule.node.clauses if is_static_decidable(clause, effect, named=named, placed=placed)
    )
    if rule.effect == "forbid" or len(clauses) == len(rule.node.clauses):
        yield replace(rule.node, clauses=clauses)


def _verdict(
    call: CallProfile, receivers: frozenset[str] | None, rules: tuple[PolicyRule, ...], unsure: frozenset[str]
) -> Denied | Ask:
    ids = tuple(rule.id for rule in rules)
    final = [rule for rule in rules if rule.ask is None]
    if certain := [rule for rule in final if rule.id not in unsure]:
        return Denied(render_reason(call, receivers, certain), ids)
    if final:
        return Depends(render_uncertainty(call, final), ids)
    return Ask(render_question(call, receivers, rules, unsure), ids)
