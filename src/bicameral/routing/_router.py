"""The router: a provider that chooses a model for every call and records the choice and its reason on the reply."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping
from contextlib import aclosing
from dataclasses import replace
from functools import cached_property
from typing import Any

from bicameral.errors import BicameralError, nearest_name
from bicameral.expressions import Node, Not, replace_atoms
from bicameral.limits import quota_slot
from bicameral.models import Chamber, EndChunk, ModelReply, ModelRequest, Provider, ReplyChunk, Route, stream_chunks
from bicameral.routing._aliases import Alias, Aliases
from bicameral.routing._conditions import ALWAYS_TRUE, ConditionTest, FieldTest, RoutingCondition, compile_condition
from bicameral.routing._context import CallContext, current_context
from bicameral.routing._selection import MapEntry, RoutingRule, Selection, can_hold, unknown_alias_error
from bicameral.routing._wrapper import model_names, replace_reply_fields

_MAX_MAPPED = 512
"""How many combinations of hint, phase, role and strategy keep their route."""


class Router:
    """A `Provider` that chooses one of several models for every call. It chooses, in this order, by

    1. the alias that the call names in `model`,
    2. the first rule whose condition holds,
    3. the phase map, 4. the role map, 5. the default.

    A `model` that is no alias is a hint, and so is the `hint` of the context: rules can test it, and the name of a
    phase or role counts as that. Without a hint the role is the hint. A hint that nothing knows changes nothing, and
    the route has a note with the nearest name. Aliases of the other chamber are skipped, with a note too, and a call
    that names one is refused.

    Args:
        aliases: The models of one chamber.
        role: The role of all its calls, if they have one.

    Example:
        >>> router = Router(aliases, Selection("main", rules=(RoutingRule.of("no_tools", "fast"),)))
        >>> (await router.generate(request)).route
        Route(alias='fast', by='rule', why="rule 0: no_tools", rule=0)
    """

    counts = True
    """Its models are metered, so the router itself is not."""

    def __init__(self, aliases: Aliases, selection: Selection, *, role: str | None = None) -> None:
        if selection.default not in aliases:
            raise unknown_alias_error(selection.default, aliases.names)
        self.aliases = aliases
        self.selection = selection
        self.role = role
        # Rules, maps and routes are prepared here, so that a call costs only lookups and tests.
        self._rules = tuple(_reachable_rules(aliases, selection.rules))
        self._tests = tuple((test, route) for test, _, route, _ in self._rules)
        self._by_call = {name: Route(name, "call", f"the call names {name!r}") for name in aliases.names}
        self._hints = selection.hints
        self._mapped: dict[tuple[str | None, ...], Route] = {}

    @property
    def chamber(self) -> Chamber:
        return self.aliases.chamber

    @property
    def credentials(self) -> frozenset[str]:
        """The fingerprints of all keys that its models use."""
        return self.aliases.credentials

    @property
    def models(self) -> tuple[str, ...]:
        """The names of all models that it can choose, with their fallbacks."""
        return tuple(dict.fromkeys(name for alias in self.reachable for name in self._model_names(alias)))

    @cached_property
    def fingerprint(self) -> str:
        """A hash of everything that decides which model answers, and with which parameters."""
        chosen = self.selection
        facts: dict[str, Any] = {
            "aliases": [(each.name, each.identity, repr(each.parameters)) for each in self.reachable],
            "rules": [(rule.condition, rule.model) for rule in chosen.rules],
            "phases": dict(chosen.phases),
            "roles": dict(chosen.roles),
            "default": chosen.default,
            "role": self.role,
            "chamber": self.chamber,
        }
        if chosen.strategy_phases:
            facts["strategies"] = {name: dict(phases) for name, phases in chosen.strategy_phases.items()}
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]

    @property
    def name(self) -> str:
        """The one model that it can choose, or else a name that changes with the selection."""
        reachable = self.reachable
        if len(reachable) == 1 and reachable[0].parameters is None:
            return reachable[0].identity
        return f"router:{self.fingerprint}"

    @property
    def grammars(self) -> bool:
        """Whether every model that it can choose honours grammars."""
        return all(alias.grammars for alias in self.reachable)

    @property
    def adapters(self) -> Mapping[str, str]:
        """The jobs that every model it can choose was trained for."""
        reachable = self.reachable
        jobs = [job for job in reachable[0].adapters if all(job in alias.adapters for alias in reachable)]
        return {job: "+".join(dict.fromkeys(alias.adapters[job] for alias in reachable)) for job in sorted(jobs)}

    @cached_property
    def reachable(self) -> tuple[Alias, ...]:
        """The aliases that a call can lead to if it names none, in this role if there is one."""
        names = [rule.model for _, rule, _, tree in self._rules if self._can_match(tree)]
        chosen = self.selection
        names += chosen.phases.values()
        names += [alias for phases in chosen.strategy_phases.values() for alias in phases.values()]
        # The first that this chamber has: the alias of the role, or the default where it has none.
        mapped = self._mapped_route(None, None, self.role, None)
        names += [mapped.alias] if self.role is not None else [*chosen.roles.values(), chosen.default]
        names = [name for name in names if name in self.aliases]
        return tuple(self.aliases[name] for name in dict.fromkeys(names))

    def for_role(self, role: str) -> Router:
        """The router for calls of one role: its name, grammars and adapters are those of the models for that role."""
        return Router(self.aliases, self.selection, role=role)

    def resolve_model(self, role: str = "reasoning") -> str:
        """The alias that a call of this role gets here and now, with nothing else known of it. No model is called.

        It is `choose` for an empty request, so rules count, and so does what the context says.

        Example:
            >>> Router(aliases, Selection("main", roles={"planning": "powerful"})).resolve_model("planning")
            'powerful'
        """
        return self.choose(ModelRequest(()), replace(current_context(), role=role)).alias

    def choose(self, request: ModelRequest, here: CallContext | None = None) -> Route:
        """The route of a call: which model, chosen by what, and why. No model is called."""
        here = current_context() if here is None else here
        hint = request.model
        if hint is not None:
            route = self._by_call.get(hint)
            if route is not None:
                return route
            # Otherwise the rules would choose another model, and the caller would not know.
            if hint in self.aliases.elsewhere:
                raise self.aliases.unknown_alias_error(hint)
        else:
            hint = here.hint
            if hint is None and here.tier in self._hints:
                hint = here.tier
        role = here.role or self.role
        if self._rules:
            tested_hint = hint if hint is not None else role
            for test, route in self._tests:
                if test(request, here, tested_hint):
                    return self._note_hint(route, hint)
        return self._note_hint(self._mapped_route(hint, here.phase, role, here.strategy), hint)

    async def generate(self, request: ModelRequest) -> ModelReply:
        """The reply of the chosen model, with its route."""
        route = self.choose(request)
        provider, request = self._prepare_call(route, request)
        async with quota_slot("model", route.alias):
            reply = await provider.generate(request)
        return _with_route(reply, route, provider.name)

    def stream(self, request: ModelRequest) -> AsyncIterator[str]:
        """The text of the reply as it is generated."""
        provider, request = self._prepare_call(self.choose(request), request)
        return provider.stream(request)

    async def chunks(self, request: ModelRequest) -> AsyncGenerator[ReplyChunk, None]:
        """The chunks of the reply; the last one has the reply with its route."""
        route = self.choose(request)
        provider, request = self._prepare_call(route, request)
        async with quota_slot("model", route.alias), aclosing(stream_chunks(provider, request)) as chunks:
            async for chunk in chunks:
                if isinstance(chunk, EndChunk):
                    chunk = EndChunk(_with_route(chunk.reply, route, provider.name))
                yield chunk

    async def aclose(self) -> None:
        await self.aliases.aclose()

    def _mapped_route(self, hint: str | None, phase: str | None, role: str | None, strategy: str | None) -> Route:
        # A hint that nothing knows has no entry in any map, and there is no bound on how many of them come.
        key = (hint if hint in self._hints else None, phase, role, strategy)
        route = self._mapped.get(key)
        if route is None:
            if len(self._mapped) >= _MAX_MAPPED:
                self._mapped.clear()
            hint, phase, role, strategy = key
            entries = self.selection.map_entries(hint=hint, phase=phase, role=role, strategy=strategy)
            route = self._mapped[key] = self._first_route(entries)
        return route

    def _first_route(self, entries: Iterable[MapEntry]) -> Route:
        """The first entry whose alias this chamber has; the note names those before it."""
        missed: list[str] = []
        for entry in entries:
            if entry.alias in self.aliases:
                return Route(entry.alias, entry.by, entry.why, note="; ".join(missed) or None)
            missed.append(f"{entry.subject} has {entry.alias!r}, which the {self.chamber} chamber may not use")
        raise AssertionError("the default is an alias of the chamber")

    def _note_hint(self, route: Route, hint: str | None) -> Route:
        if hint is None or hint in self._hints:
            return route
        note = f"no rule, phase or role has the hint {hint[:60]!r}"
        if (nearest := nearest_name(hint, sorted({*self._hints, *self.aliases.names}))) is not None:
            note += f" (nearest: {nearest!r})"
        return replace(route, note=f"{note}; {route.note}" if route.note else note)

    def _prepare_call(self, route: Route, request: ModelRequest) -> tuple[Provider, ModelRequest]:
        alias = self.aliases[route.alias]
        provider = self.aliases.provider(route.alias)
        request = alias.prepare_request(request)
        # The name in `model` was for the router; a router behind the alias must choose for itself.
        return provider, request if request.model is None else replace(request, model=None)

    def _model_names(self, alias: Alias) -> tuple[str, ...]:
        try:
            return model_names(self.aliases.provider(alias.name))
        except BicameralError:
            # The provider cannot be made; a call would fail with the same error.
            return (alias.identity,)

    def _can_match(self, tree: RoutingCondition) -> bool:
        return self.role is None or can_hold([tree, FieldTest("role", self.role)])


def _with_route(reply: ModelReply, route: Route, model: str) -> ModelReply:
    """The reply with its route, and with the attempts before it."""
    inner = reply.route
    if inner is not None and inner.attempts:
        route = replace(route, attempts=inner.attempts)
    return replace_reply_fields(reply, route=route, model=reply.model or model)


def _reachable_rules(
    aliases: Aliases, rules: Iterable[RoutingRule]
) -> list[tuple[ConditionTest, RoutingRule, Route, RoutingCondition]]:
    """The rules that can match in this chamber and lead to one of its models, with their numbers among all rules."""
    found: list[tuple[ConditionTest, RoutingRule, Route, RoutingCondition]] = []
    for number, rule in enumerate(rules):
        tree = _condition_in_chamber(rule.tree, aliases.chamber)
        if rule.model in aliases and can_hold([tree]):
            route = Route(rule.model, "rule", f"rule {number}: {rule.condition}", number)
            found.append((compile_condition(tree), rule, route, tree))
    return found


def _condition_in_chamber(tree: RoutingCondition, chamber: Chamber) -> RoutingCondition:
    """A condition for calls of one chamber, in which tests of the chamber are decided."""

    def decide(atom: Node) -> Node:
        if not isinstance(atom, FieldTest) or atom.field != "chamber":
            return atom
        return ALWAYS_TRUE if atom.word == chamber else Not(ALWAYS_TRUE)

    return replace_atoms(tree, decide)
