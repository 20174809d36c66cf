"""The policies in force, the decisions they make, and which of them can be decided before a run.

Before a run a label is known only at its worst: when the call is made, its sources may be fewer and its readers more,
and only then it is known whom it names. A condition *falls* if it can only turn from true to false between the two,
and *rises* if it can only turn from false to true; a condition on declarations does both, since it does not change. A
forbid whose conditions fall, and a permit whose conditions rise, decide before the run what they will decide in it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
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
    EntityFacts,
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
    render_entity,
)
from bicameral.policy._decisions import Allowed, Ask, CallFacts, Decision, Denied, Depends, Mode
from bicameral.policy._explanation import render_question, render_reason, render_uncertainty
from bicameral.policy._rules import PolicyRule, default_rules, read_packaged, read_policy_file, user_rules
from bicameral.tools import Registry


class Stability(Flag):
    """The ways in which a condition, or a set, may be relied upon not to change."""

    NONE = 0
    FALLS = 1
    RISES = 2
    STILL = 3


_FACT_STABILITY = {
    "trusted": Stability.RISES,
    "from_user": Stability.RISES,
    "public": Stability.RISES,
    "strangers_text": Stability.FALLS,
    "sources": Stability.FALLS,
    "fields": Stability.FALLS,
    # Readers may become more, but what everyone may read has no list of readers.
    "readers": Stability.NONE,
}


def is_static_decidable(clause: pst.Clause, effect: pst.Effect, *, named: bool, placed: bool = True) -> bool:
    """Whether a clause can be judged before a run; `named` if those whom the call names are known already, `placed` if
    it is known what kind of file it writes.

    What a text holds that could be followed is never known before.
    """
    wanted = Stability.FALLS if effect == "forbid" else Stability.RISES
    known = _KnownBefore(named, placed)
    found = _stability(clause.expr, known)
    return wanted in (found if isinstance(clause, pst.When) else _opposite(found))


def _opposite(turn: Stability) -> Stability:
    """The way of what is the opposite."""
    return {Stability.FALLS: Stability.RISES, Stability.RISES: Stability.FALLS}.get(turn, turn)


@dataclass(frozen=True, slots=True)
class _KnownBefore:
    """What is known of a call before the run: whom it names, and what kind of file it writes."""

    named: bool
    placed: bool


def _stability(expr: pst.Expr, known: _KnownBefore) -> Stability:
    match expr:
        case pst.GetAttr(base=pst.Var(name="context"), attr="lures"):
            return Stability.NONE
        case pst.GetAttr(base=pst.Var(name="context"), attr="executed"):
            return Stability.STILL if known.placed else Stability.NONE
        case pst.GetAttr(base=pst.Var(name="context")):
            return Stability.STILL if known.named else Stability.NONE
        case pst.GetAttr(base=pst.GetAttr(base=pst.Var(name="resource")), attr=fact):
            return _FACT_STABILITY.get(fact, Stability.NONE)
        case pst.GetAttr(base=pst.BinaryOp(op="get_tag", left=pst.Var(name="resource"), right=name), attr=fact):
            return (
                _FACT_STABILITY.get(fact, Stability.NONE)
                if _stability(name, known) is Stability.STILL
                else Stability.NONE
            )
        case pst.GetAttr(base=pst.Var(name="resource"), attr="acts" | "outbound" | "declared" | "strict" | "assembled"):
            return Stability.STILL
        case pst.BinaryOp():
            return _binary_stability(expr, known)
        case pst.UnaryOp(op="not" | "is_empty", arg=arg):
            return _opposite(_stability(arg, known))
        case pst.IfThenElse(cond=cond, then_expr=then, else_expr=otherwise):
            both = _stability(then, known) & _stability(otherwise, known)
            return both if _stability(cond, known) is Stability.STILL else Stability.NONE
        case pst.Set(elements=elements):
            return (
                Stability.STILL
                if all(_stability(each, known) is Stability.STILL for each in elements)
                else Stability.NONE
            )
        case pst.BoolLit() | pst.LongLit() | pst.StringLit() | pst.EntityLit():
            return Stability.STILL
        case pst.Var(name="principal" | "action") | pst.Is(base=pst.Var(name="resource"), in_expr=None):
            return Stability.STILL
        case _:
            return Stability.NONE


def _binary_stability(expr: pst.BinaryOp, known: _KnownBefore) -> Stability:
    # Which tool is called and which arguments are given does not change.
    of_call = expr.op in ("in", "has_tag") and isinstance(expr.left, pst.Var)
    left, right = Stability.STILL if of_call else _stability(expr.left, known), _stability(expr.right, known)
    match expr.op:
        case "and" | "or" | "contains_any":
            return left & right
        case "contains":
            return left if right is Stability.STILL else Stability.NONE
        case "contains_all":
            return left & _opposite(right)
        case "eq" | "not_eq" if isinstance(expr.right, pst.BoolLit):
            return left if expr.right.value is (expr.op == "eq") else _opposite(left)
        case _:
            return Stability.STILL if left is right is Stability.STILL else Stability.NONE


_CACHE_SIZE = 1024
_NOBODY: frozenset[str] = frozenset()


class Policy:
    """The policies in force: the defaults, and a user's own over them.

    `decide` is for a call that is about to be made, `preview` for one in a plan that has not run. Both are always a
    full evaluation by Cedar, and whatever goes wrong in one is a no.

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
        self.rules: tuple[PolicyRule, ...] = (*default_rules(), *rules)
        self.mode: Mode = mode
        self.me = frozenset(map(normalize_principal, me))
        self._registry = registry
        self._facts_read = facts_read((rule.node for rule in self.rules), ALL_FACTS)
        self._cached_request = lru_cache(maxsize=_CACHE_SIZE)(self._build_request)
        self._cached_entities = lru_cache(maxsize=_CACHE_SIZE)(_parse_entities)
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

        With a registry, a policy that names a tool which is not there is a mistake, too. `me` are the addresses and
        accounts that are the user's own.
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

    @cached_property
    def fingerprint(self) -> str:
        """A hash of all that decides: recorded runs hold it."""
        texts = (
            read_packaged("schema.cedarschema"),
            *(f"{rule.id}\n{rule.text}" for rule in self.rules),
            *sorted(self.me),
        )
        return hashlib.sha256("\0".join(texts).encode()).hexdigest()

    def decide(self, facts: CallFacts) -> Decision:
        """Whether a call may be made. If it is not known yet whom the call names, or what could
        be followed in a stranger's text that it carries, this is a `preview`.
        """
        return self._decide(facts, before=False)

    def preview(self, facts: CallFacts) -> Decision:
        """What would be decided on a call whose labels are known only at their worst.

        `Allowed` is a promise: whatever the values turn out to be, `decide` will allow the call. A policy that cannot
        be judged yet counts as if it applied: its question is asked, or, where it has none, this is a `Depends`.
        """
        return self._decide(facts, before=True)

    def _decide(self, facts: CallFacts, *, before: bool) -> Decision:
        try:
            call, posed = self._cached_request(*outline_call(facts))
            named = call_receivers(facts, call)
            # What could be followed matters only in a stranger's text.
            unknown = named is None or (
                facts.lures is None and any(each.is_untrusted_text for each in call.carried_arguments)
            )
            # So does what kind of file it is written to.
            placed = facts.executed is not None or not any(each.is_untrusted_text for each in call.written_content)
            judge = (
                self._preview_rules(named is not None, placed) if before or unknown or not placed else self._exact_rules
            )
            known = render_context(named or _NOBODY, self.me, lures=bool(facts.lures), executed=bool(facts.executed))
            stopping = judge.stopping_rules(posed, known)
        except _Undecidable as error:
            return Denied(str(error), error.rules)
        except BicameralError as error:
            return Denied(f"the policies cannot judge this call: {error.message}")
        except Exception as error:
            # Nothing that goes wrong here may let a call through.
            return Denied(f"the policies cannot judge this call: {error}")
        if not stopping:
            return Allowed()
        return _verdict(call, None if named is None else as_readers(named, self.me), stopping, judge.undecided)

    def _build_request(self, *outlined: Any) -> tuple[CallProfile, Entities]:
        """A call as Cedar knows it. It is kept: a loop makes the same call again, and only whom it names differs."""
        call = make_call_profile(*outlined, registry=self._registry)
        return call, self._cached_entities(entity_facts(call, self._facts_read))

    @cached_property
    def _exact_rules(self) -> _RuleSet:
        return _RuleSet(self.rules, [rule.node for rule in self.rules])

    def _preview_rules(self, named: bool, placed: bool) -> _RuleSet:
        found = self._preview_rule_sets.get((named, placed))
        if found is None:
            found = self._preview_rule_sets[named, placed] = _decidable_rules(self.rules, named=named, placed=placed)
        return found


def _parse_entities(told: EntityFacts) -> Entities:
    return parse_entities(render_entity(told))


class _Undecidable(Exception):
    """A policy failed while it was evaluated, or none allows the call."""

    def __init__(self, message: str, rules: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.rules = rules


class _RuleSet:
    """Rules as parsed handles: one for all, and one of the permits alone, which says what is lifted."""

    def __init__(
        self, rules: Iterable[PolicyRule], nodes: Iterable[pst.Template], unsure: frozenset[str] = frozenset()
    ):
        pairs = {f"policy{number}": pair for number, pair in enumerate(zip(rules, nodes, strict=True))}
        self._rules = {id_: rule for id_, (rule, _) in pairs.items()}
        self.undecided = unsure
        self._all = _policy_set(pairs)
        self._has_overrides = any(rule.overrides for rule in self._rules.values())
        self._permits = _policy_set({id_: pair for id_, pair in pairs.items() if pair[0].effect == "permit"})

    def stopping_rules(self, call: Entities, context: str) -> tuple[PolicyRule, ...]:
        """The policies that stop a call: none if it is allowed."""
        allowed, found = self._evaluate(self._all, call, context)
        if allowed:
            return ()
        if not found:
            raise _Undecidable("no policy allows this call")
        if not self._has_overrides or not any(rule.default for rule in found):
            return found
        allowed, permits = self._evaluate(self._permits, call, context)
        if not allowed or not any(rule.default for rule in permits):
            raise _Undecidable("no policy allows this call")
        lifted = {name for rule in permits for name in rule.overrides}
        return tuple(rule for rule in found if not (rule.default and rule.id in lifted))

    def _evaluate(self, policies: PolicySet, call: Entities, context: str) -> tuple[bool, tuple[PolicyRule, ...]]:
        answer = evaluate_policies(policies, call, context)
        if answer.errors:
            raise _Undecidable(f"a policy failed: {'; '.join(map(self._name_policies, answer.errors))}")
        return answer.allowed, tuple(rule for id_, rule in self._rules.items() if id_ in answer.policies)

    def _name_policies(self, error: str) -> str:
        """Cedar's message with the name of the policy in it."""
        for id_, rule in self._rules.items():
            error = error.replace(f"`{id_}`", repr(rule.id))
        return error


def _policy_set(pairs: dict[str, tuple[PolicyRule, pst.Template]]) -> PolicySet:
    nodes = {id_: replace(node, id=id_) for id_, (_, node) in pairs.items()}
    return PolicySet.from_pst(pst.PolicySet(templates={}, static_policies=nodes, template_links=()))


def _decidable_rules(rules: Iterable[PolicyRule], *, named: bool, placed: bool) -> _RuleSet:
    """The rules as far as they can be judged before a run.

    A forbid loses the clauses that cannot be, so that it stops more than it will; a permit that has such a clause
    lifts nothing.
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
    call: CallProfile, named: frozenset[str] | None, stopping: tuple[PolicyRule, ...], unsure: frozenset[str]
) -> Denied | Ask:
    ids = tuple(rule.id for rule in stopping)
    final = [rule for rule in stopping if rule.ask is None]
    if certain := [rule for rule in final if rule.id not in unsure]:
        return Denied(render_reason(call, named, certain), ids)
    if final:
        return Depends(render_uncertainty(call, final), ids)
    return Ask(render_question(call, named, stopping, unsure), ids)
