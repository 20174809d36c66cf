"""Policies in force, and the decisions they make."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from cedarpy import Entities, PolicySet, pst

from bicameral.decisions import Allowed, Ask, CallFacts, Decision, Denied, Depends, Mode
from bicameral.errors import BicameralError
from bicameral.tools import Registry

from ._cedar import entities, evaluate
from ._facts import (
    EVERYTHING,
    Situation,
    Told,
    as_readers,
    context,
    entity,
    outline,
    plain_name,
    receivers,
    situation,
    told,
)
from ._reads import reads
from ._rules import Rule, defaults, users_rules
from ._steady import steady
from ._texts import packaged, read
from ._why import question, reason, uncertain

_REMEMBERED = 1024
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
        rules: Iterable[Rule] = (),
        registry: Registry | None = None,
        *,
        mode: Mode = "strict",
        me: Iterable[str] = (),
    ) -> None:
        self.rules: tuple[Rule, ...] = (*defaults(), *rules)
        self.mode: Mode = mode
        self.me = frozenset(map(plain_name, me))
        self._registry = registry
        self._read = reads((rule.node for rule in self.rules), EVERYTHING)
        self._posed = lru_cache(maxsize=_REMEMBERED)(self._pose)
        self._parsed = lru_cache(maxsize=_REMEMBERED)(_parsed)
        self._judges_before: dict[tuple[bool, bool], _Judge] = {}

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
        texts = [(str(file), read(Path(file))) for file in files]
        return cls(users_rules(texts, registry), registry, mode=mode, me=me)

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
        return cls(users_rules([(file, text)], registry), registry, mode=mode, me=me)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of all that decides: recorded runs hold it."""
        texts = (
            packaged("schema.cedarschema"),
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
            call, posed = self._posed(*outline(facts))
            named = receivers(facts, call)
            # What could be followed matters only in a stranger's text.
            unknown = named is None or (facts.lures is None and any(each.strangers_text for each in call.carrying))
            # So does what kind of file it is written to.
            placed = facts.executed is not None or not any(each.strangers_text for each in call.writing)
            judge = self._before(named is not None, placed) if before or unknown or not placed else self._exact
            known = context(named or _NOBODY, self.me, lures=bool(facts.lures), executed=bool(facts.executed))
            stopping = judge.stopping(posed, known)
        except _CannotTell as error:
            return Denied(str(error), error.rules)
        except BicameralError as error:
            return Denied(f"the policies cannot judge this call: {error.message}")
        except Exception as error:
            # Nothing that goes wrong here may let a call through.
            return Denied(f"the policies cannot judge this call: {error}")
        if not stopping:
            return Allowed()
        return _verdict(call, None if named is None else as_readers(named, self.me), stopping, judge.unsure)

    def _pose(self, *outlined: Any) -> tuple[Situation, Entities]:
        """A call as Cedar knows it. It is kept: a loop makes the same call again, and only whom it names differs."""
        call = situation(*outlined, registry=self._registry)
        return call, self._parsed(told(call, self._read))

    @cached_property
    def _exact(self) -> _Judge:
        return _Judge(self.rules, [rule.node for rule in self.rules])

    def _before(self, named: bool, placed: bool) -> _Judge:
        found = self._judges_before.get((named, placed))
        if found is None:
            found = self._judges_before[named, placed] = _weakened(self.rules, named=named, placed=placed)
        return found


def _parsed(told: Told) -> Entities:
    return entities(entity(told))


class _CannotTell(Exception):
    """A policy failed while it was evaluated, or none allows the call."""

    def __init__(self, message: str, rules: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.rules = rules


class _Judge:
    """Rules as parsed handles: one for all, and one of the permits alone, which says what is lifted."""

    def __init__(self, rules: Iterable[Rule], nodes: Iterable[pst.Template], unsure: frozenset[str] = frozenset()):
        pairs = {f"policy{number}": pair for number, pair in enumerate(zip(rules, nodes, strict=True))}
        self._rules = {id_: rule for id_, (rule, _) in pairs.items()}
        self.unsure = unsure
        self._all = _policy_set(pairs)
        self._lifting = any(rule.overrides for rule in self._rules.values())
        self._permits = _policy_set({id_: pair for id_, pair in pairs.items() if pair[0].effect == "permit"})

    def stopping(self, call: Entities, context: str) -> tuple[Rule, ...]:
        """The policies that stop a call: none if it is allowed."""
        allowed, found = self._evaluate(self._all, call, context)
        if allowed:
            return ()
        if not found:
            raise _CannotTell("no policy allows this call")
        if not self._lifting or not any(rule.default for rule in found):
            return found
        allowed, permits = self._evaluate(self._permits, call, context)
        if not allowed or not any(rule.default for rule in permits):
            raise _CannotTell("no policy allows this call")
        lifted = {name for rule in permits for name in rule.overrides}
        return tuple(rule for rule in found if not (rule.default and rule.id in lifted))

    def _evaluate(self, policies: PolicySet, call: Entities, context: str) -> tuple[bool, tuple[Rule, ...]]:
        answer = evaluate(policies, call, context)
        if answer.errors:
            raise _CannotTell(f"a policy failed: {'; '.join(map(self._named, answer.errors))}")
        return answer.allowed, tuple(rule for id_, rule in self._rules.items() if id_ in answer.policies)

    def _named(self, error: str) -> str:
        """Cedar's message with the name of the policy in it."""
        for id_, rule in self._rules.items():
            error = error.replace(f"`{id_}`", repr(rule.id))
        return error


def _policy_set(pairs: dict[str, tuple[Rule, pst.Template]]) -> PolicySet:
    nodes = {id_: replace(node, id=id_) for id_, (_, node) in pairs.items()}
    return PolicySet.from_pst(pst.PolicySet(templates={}, static_policies=nodes, template_links=()))


def _weakened(rules: Iterable[Rule], *, named: bool, placed: bool) -> _Judge:
    """The rules as far as they can be judged before a run.

    A forbid loses the clauses that cannot be, so that it stops more than it will; a permit that has such a clause
    lifts nothing.
    """
    kept = [(rule, node) for rule in rules for node in _judged_before(rule, named, placed)]
    unsure = {rule.id for rule, node in kept if len(node.clauses) < len(rule.node.clauses)}
    return _Judge([rule for rule, _ in kept], [node for _, node in kept], frozenset(unsure))


def _judged_before(rule: Rule, named: bool, placed: bool) -> Iterator[pst.Template]:
    effect = rule.node.effect
    clauses = tuple(clause for clause in rule.node.clauses if steady(clause, effect, named=named, placed=placed))
    if rule.effect == "forbid" or len(clauses) == len(rule.node.clauses):
        yield replace(rule.node, clauses=clauses)


def _verdict(
    call: Situation, named: frozenset[str] | None, stopping: tuple[Rule, ...], unsure: frozenset[str]
) -> Denied | Ask:
    ids = tuple(rule.id for rule in stopping)
    final = [rule for rule in stopping if rule.ask is None]
    if certain := [rule for rule in final if rule.id not in unsure]:
        return Denied(reason(call, named, certain), ids)
    if final:
        return Depends(uncertain(call, final), ids)
    return Ask(question(call, named, stopping, unsure), ids)
