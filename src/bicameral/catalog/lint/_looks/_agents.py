"""The agents of a stack beside each other: owners, policies, and bounds of their own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...stacks import Keys, Member, Session, dotted
from .._rules import Check
from .._scope import Scope
from .._trouble import Trouble, undeclared


def owned_agents(scope: Scope, check: Check) -> Iterator[Trouble]:
    """Where there are several agents, somebody answers for each, and each has a policy."""
    agents = scope.stack.agents
    if len(agents) < 2:
        return
    for what in ("owner", "policy"):
        if getattr(scope.member, what) or getattr(scope.stack.whole, what):
            continue
        if any(getattr(agent, what) for agent in agents):
            key = ("nobody's", what, dotted(scope.path))
            message = f"the agent {scope.member.name!r} has no {what}, and others have"
            yield Trouble(key, message, scope.path, wants=(f"{dotted(scope.path)}.{what}",))
        else:
            yield undeclared(what, scope.path)


def own_policies(scope: Scope, check: Check) -> Iterator[Trouble]:
    """Each role has a policy of its own. Roles are the agents, or the sessions where there is one agent."""
    roles: Sequence[Member | Session] = scope.stack.agents
    if len(roles) < 2:
        # A session that holds no tools has no rights that a policy could give or take.
        roles = [session for session in scope.sessions or () if session.tools != ()]
        if scope.sessions is None or not roles:
            yield from () if scope.sessions else (undeclared("sessions", scope.path),)
            return
    if any(role.policy is None for role in roles) and len(roles) > 1:
        yield undeclared("policy", scope.path)
    seen: dict[str, Keys] = {}
    for role in roles:
        if role.policy is not None and role.policy in seen:
            message = f"{role.name!r} has the policy {role.policy!r}, like another role"
            yield Trouble(("one policy", dotted(role.path)), message, role.path, patterns=("V7",))
        elif role.policy is not None:
            seen[role.policy] = role.path


def worker_bounds(scope: Scope, check: Check) -> Iterator[Trouble]:
    """A worker that loops (R4) under an orchestrator has bounds of its own, and not only those of the whole."""
    member = scope.member
    if not scope.stack.agents or "O6" not in scope.everywhere or "R4" not in member.patterns:
        return
    if "V9" not in member.patterns and not member.loops:
        message = f"the worker {member.name!r} loops and has no bounds of its own"
        wants = (f"{dotted(member.path)}.loops",)
        yield Trouble(("unbounded", member.name), message, scope.where("R4"), wants=wants, patterns=("V9", "R4", "O6"))
