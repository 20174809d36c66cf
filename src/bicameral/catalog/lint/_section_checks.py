"""Checks that need more than a condition: each looks at one section of a stack. Rules name them by their key."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain
from typing import Any, cast, get_args

from bicameral.catalog.facts import IDS, Knob, catalog
from bicameral.catalog.lint._problems import LintProblem, missing_pattern, problem_at, undeclared_fact
from bicameral.catalog.lint._prompt_checks import SECTION_CHECKS as SECTION_CHECKS, section_check
from bicameral.catalog.lint._rules import RuleCheck
from bicameral.catalog.lint._scope import AgentScope, is_irreversible
from bicameral.catalog.stacks import (
    FACTS,
    MAX_SIZE,
    USE_KEYS,
    Action,
    Leg,
    PatternUse,
    StackMember,
    StackPath,
    StackSession,
    StackStore,
    dotted_path,
)
from bicameral.errors import nearest_name


@section_check(needs="actions")
def gates(scope: AgentScope, check: RuleCheck) -> Iterator[LintProblem]:
    """An action that is irreversible or reaches far has the gate V1."""
    for action in scope.actions or ():
        if not is_irreversible(action):
            continue
        if action.gate is None:
            yield undeclared_fact("actions", action.path)
        elif action.gate != "V1":
            yield _ungated_action_problem(action, "cannot be taken back or reaches far")


@section_check(needs="actions", at="V2")
def watched_actions(scope: AgentScope, check: RuleCheck) -> Iterator[LintProblem]:
    """An action with the gate V2 is reversible, has a low blast radius and is not novel."""
    for action in scope.actions or ():
        if action.gate is None:
            yield undeclared_fact("actions", action.path)
        if action.gate != "V2":
            continue
        if action.reversible is False or action.blast_radius in ("medium", "high") or action.novel:
            yield _ungated_action_problem(action, "is irreversible, reaches far or is new")
        elif None in (action.reversible, action.blast_radius, action.novel):
            yield undeclared_fact("actions", action.path)


def _ungated_action_problem(action: Action, why: str) -> LintProblem:
    watched = "is only watched" if action.gate == "V2" else "has no gate"
    return problem_at("gate", action.path, f"the action {action.name!r} {why}, and {watched}", "V1", "V2")


@section_check(needs="actions")
def lowered_gates(scope: AgentScope, check: RuleCheck) -> Iterator[LintProblem]:
    """A gate is lowered from V1 only by a recorded review."""
    for action in scope.actions or ():
        if action.was == "V1" and action.gate != "V1" and not action.review:
            message = f"the gate of the action {action.name!r} was V1 and was lowered without a review"
            yield problem_at("lowered", action.path, message, "V1", wants=(f"{dotted_path(action.path)}.review",))


@section_check()
def owned_agents(scope: AgentScope, check: RuleCheck) -> Iterator[LintProblem]:
    """If there are several agents, each has an owner and a policy."""
    agents = scope.stack.agents
    if len(agents) < 2:
        return
    for key in ("owner", "policy"):
        if getattr(scope.member, key) or getattr(scope.stack.whole, key):
            continue
        if any(getattr(agent, key) for agent in agents):
            message = f"the agent {scope.member.name!r} has no {key}, and others have"
            wants = (f"{dotted_path(scope.path)}.{key}",)
            yield LintProblem(("nobody's", key, dotted_path(scope.path)), message, scope.path, wants=wants)
        else:
            yield undeclared_fact(key, scope.path)


@section_check()
def own_policies(scope: AgentScope, check: RuleCheck) -> Iterator[LintProblem]:
    """Each role has a policy of its own. Roles are the agents, or the sessions where there is one agent."""
    roles: Sequence[StackMember | StackSession] = scope.stack.agents
    if len(roles) < 2:
        # A session without tools has no rights that a policy could restrict.
        roles = [session for session in scope.sessions or () if session.tools != ()]
        if scope.sessions is None or not roles:
            yield from () if scope.sessions else (undeclared_fact("sessions", scope.path),)
            return
    if any(role.policy is None for role in roles) and len(roles) > 1:
        yield undeclared_fact("policy", scope.path)
    seen: dict[str, StackPath] = {}
    for role in roles:
        if role.policy is not None and role.policy in seen:
            message = f"{role.name!r} has the policy {role.policy!r}, like another role"
            yield problem_at("one policy", role.path, message, "V7")
        elif role.policy is not None:
            seen[role.policy] = role.path


@section_check()
def worker_bounds(scope: AgentScope, check: RuleCheck) -> Iterator[LintProblem]:
    """A worker that loops (R4) under an orchestrator has bounds of its own."""
    member = scope.member
    for worker in (each for use in scope.uses.get("O6", ()) for each in use.inner):
        inside = {each.id for each in worker.walk()}
        if "R4" in inside and "V9" not in inside | scope.brought and not scope.loops:
            message = f"the worker {worker.place!r} loops and has no bounds of its own"
            yield problem_at("unbounded", worker.path, message, "V9", "R4", "O6", wants=("loops",))
    if not scope.stack.agents or "O6" not in scope.everywhere or "R4" not in member.patterns:
        return
    if "O6" in member.patterns:
        # It is an orchestrator itself; that it lacks V9 is reported like for a stack without agents.
        return
    if "V9" not in member.patterns | scope.brought and not member.loops:
        message = f"the worker {member.name!r} loops and has no bounds of its own"
        wants = (f"{dotted_path(member.path)}.loops",)
        yield LintProblem(
            ("unbounded", member.name), message, scope.path_of("R4"), wants=wants, patterns=("V9", "R4", "O6")
        )


def _set_knobs(scope: AgentScope) -> Iterator[tuple[PatternUse, str, Any, Mapping[str, Knob]]]:
    """Every knob that is set for a pattern of the catalogue."""
    for uses in scope.uses.values():
        for use in uses:
            if use.knobs and use.id in IDS:
                known = catalog().pattern(use.id).knobs
                for name, value in use.knobs.items():
                    yield use, name, value, known


@section_check()
def known_knobs(scope: AgentScope, check: RuleCheck) -> Iterator[LintProblem]:
    """Every knob is one of the pattern's, a fact, or says where the pattern is used."""
    for use, name, _, known in _set_knobs(scope):
        if name not in known and name not in FACTS and name not in USE_KEYS:
            meant = _nearest_knob(use.id, name)
            hint = f"; did you mean {meant!r}?" if meant else ""
            key = ("no knob", dotted_path(use.path), name)
            yield LintProblem(
                key, f"{use.id} has no knob {name!r}{hint}", (*use.path, use.id, name), patterns=(use.id,)
            )


@lru_cache(maxsize=4096)
def _nearest_knob(id: str, name: str) -> str | None:
    """The knob that may be meant. Cached: what the whole says is checked for each agent."""
    return nearest_name(name, [*catalog().pattern(id).knobs, *FACTS, *USE_KEYS])


@section_check()
def knobs_in_bounds(scope: AgentScope, check: RuleCheck) -> Iterator[LintProblem]:
    """A knob lies between the least and the most that its pattern gives, and is of its kind."""
    for use, name, value, known in _set_knobs(scope):
        knob = known.get(name)
        wrong = _knob_fault(knob, value) if knob is not None else None
        if wrong:
            key = ("bounds", dotted_path(use.path), name)
            message = f"{name} of {use.id} is {value!r}; {wrong}"
            yield LintProblem(key, message, (*use.path, use.id, name), patterns=(use.id,))


def _knob_fault(knob: Knob, value: Any) -> str | None:
    if knob.choices and value not in knob.choices:
        return f"it can be {', '.join(knob.choices)}"
    if not knob.numeric:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        return "it is a number"
    least, most = (-MAX_SIZE if knob.least is None else knob.least), (MAX_SIZE if knob.most is None else knob.most)
    if value < least:
        return f"it is {least:g} at least"
    return f"it is {most:g} at most" if value > most else None


@section_check()
def separate_surfaces(scope: AgentScope, check: RuleCheck) -> Iterator[LintProblem]:
    """The surfaces that these patterns may change do not overlap."""
    paths = {id: [path for use in scope.uses[id] for path in _surface_paths(use)] for id in check.of}
    if not all(paths.values()):
        for id in (id for id in check.of if not paths[id]):
            yield undeclared_fact(f"{id}.surface", scope.path_of(id))
        return
    both = find_overlap(*(paths[id] for id in check.of))
    if both is not None:
        message = f"{' and '.join(check.of)} may both change {max(both, key=len)!r}"
        yield LintProblem(("shared surface", *check.of), message, scope.path_of(check.of[0]), patterns=check.of)


def _surface_paths(use: PatternUse) -> list[str]:
    surface: Any = use.knobs.get("surface") or []
    return [str(each) for each in cast("list[Any]", surface)] if isinstance(surface, list) else [str(surface)]


def find_overlap(one: Sequence[str], other: Sequence[str]) -> tuple[str, str] | None:
    """The first surface of each list of which one is the other, or inside of it; None if there are none."""
    tree = _SurfaceTree.of(other)
    overlaps = ((surface, tree.first_overlap(surface)) for surface in one)
    return next(((surface, other[number]) for surface, number in overlaps if number is not None), None)


_SURFACE_STEP = re.compile(r"(?:^|[./])[^./]*")


@dataclass(slots=True)
class _SurfaceTree:
    """Surfaces by the steps of their paths, so that two long lists need not be compared one with each."""

    first: int
    """The number of the first surface at this step or inside of it."""
    ending: int | None = None
    """The number of the first surface that is exactly this."""
    steps: dict[str, _SurfaceTree] = field(default_factory=dict[str, "_SurfaceTree"])

    @classmethod
    def of(cls, surfaces: Sequence[str]) -> _SurfaceTree:
        top = cls(0)
        for number, surface in enumerate(surfaces):
            here = top
            for step in _SURFACE_STEP.findall(surface):
                here = here.steps.setdefault(step, cls(number))
            if here.ending is None:
                here.ending = number
        return top

    def first_overlap(self, surface: str) -> int | None:
        """The number of the first surface that is the given one, or is around it or inside of it."""
        here, found = self, list[int]()
        for step in _SURFACE_STEP.findall(surface):
            inner = here.steps.get(step)
            if inner is None:
                return min(found, default=None)
            here = inner
            if here.ending is not None:
                found.append(here.ending)
        return min([here.first, *found])


@section_check()
def loops_have_v9(scope: AgentScope, check: RuleCheck) -> Iterator[LintProblem]:
    """An agent with a loop uses V9."""
    if scope.loops and "V9" not in scope.available:
        yield missing_pattern(("V9",), scope.loops[0].path, says=f"there is a loop {scope.loops[0].name!r}")


@section_check()
def loops_have_caps(scope: AgentScope, check: RuleCheck) -> Iterator[LintProblem]:
    """Each described loop has caps on steps, cost and time, and an exit condition.

    If none is described, the caps are those of V9, which another rule requires.
    """
    for loop in scope.loops or ():
        lacks = [name for name, caps in _CAPS.items() if all(getattr(loop, cap) is None for cap in caps)]
        if lacks:
            message = f"the loop {loop.name!r} has no cap on {' and '.join(lacks)}"
            if lacks == ["exit"]:
                message = f"the loop {loop.name!r} does not say when it is done"
            wants = tuple(f"{dotted_path(loop.path)}.{_CAPS[each][0]}" for each in lacks)
            yield problem_at("uncapped", loop.path, message, "V9", wants=wants)


_CAPS = {"steps": ("steps",), "cost": ("money", "tokens"), "time": ("seconds",), "exit": ("exit",)}
"""What a loop must be limited in, and the keys that limit it."""


@section_check()
def caps_per_layer(scope: AgentScope, check: RuleCheck) -> Iterator[LintProblem]:
    """Stacked loops (O16) have a cap for each layer, so at least two loops are described."""
    if scope.loops is not None and len(scope.loops) < 2:
        message = "several layers of control share one cap"
        yield LintProblem(("one cap", "loops"), message, scope.path_of("O16"), wants=("loops",), patterns=("O16", "V9"))


_JUDGING_PATTERNS = ("V15", "O5")
"""Patterns in which one session judges what another wrote."""


@section_check()
def authors_judge(scope: AgentScope, check: RuleCheck) -> Iterator[LintProblem]:
    """No session judges what it wrote."""
    if scope.sessions is None:
        for id in _JUDGING_PATTERNS:
            if id in scope.present:
                yield undeclared_fact("sessions", scope.path_of(id))
    for session in scope.sessions or ():
        if own := sorted({*session.judges} & {*session.writes}):
            message = f"the session {session.name!r} judges what it wrote itself: {', '.join(own)}"
            yield problem_at("own judge", session.path, message, "V15")


@section_check()
def judges_share_model(scope: AgentScope, check: RuleCheck) -> Iterator[LintProblem]:
    """The session that judges has another model than the one that wrote."""
    sessions = scope.sessions or ()
    authors = _authors_by_text(sessions)
    for number, judge in enumerate(sessions):
        judged = [authors[text] for text in dict.fromkeys(judge.judges) if text in authors]
        of_unknown = (by_model.get(None, ()) for by_model in judged)
        unknown = chain.from_iterable(by_model.values() for by_model in judged) if judge.model is None else of_unknown
        if any(author != number for same in unknown for author in same):
            yield undeclared_fact("sessions", judge.path)
        same_model = (by_model.get(judge.model, ()) for by_model in judged if judge.model is not None)
        first = min((author for same in same_model for author in same if author != number), default=None)
        if first is not None:
            message = f"the session {judge.name!r} judges what {sessions[first].name!r} wrote with the same model"
            yield problem_at("same model", judge.path, message, "V15")


def _authors_by_text(sessions: Sequence[StackSession]) -> dict[str, dict[str | None, list[int]]]:
    """The numbers of the sessions that write each text, by their model: the first two of each model.

    The first may be the judge itself, and more than two say no more: all of a text would be a list for every judge.
    """
    found: dict[str, dict[str | None, list[int]]] = {}
    for number, session in enumerate(sessions):
        for text in dict.fromkeys(session.writes):
            same = found.setdefault(text, {}).setdefault(session.model, [])
            if len(same) < 2:
                same.append(number)
    return found


_PERSONAL = {"H7", "H10"}
_LASTING = {"H1", "H2", "H4", "H5", "H7", "H9", "H10"}


def _stores_of(scope: AgentScope, id: str) -> list[StackStore]:
    return [store for store in scope.stores or () if id in store.patterns]


def _eraser_problems(store: StackStore) -> Iterator[LintProblem]:
    if store.holds != "content" or store.eraser:
        return
    if store.eraser is None:
        yield undeclared_fact("stores", store.path)
    else:
        message = f"nobody can erase a user from the store {store.name!r}"
        yield problem_at("no eraser", store.path, message, "H10", wants=(f"{dotted_path(store.path)}.eraser",))


@section_check()
def personal_stores(scope: AgentScope, check: RuleCheck) -> Iterator[LintProblem]:
    """A store of personal data has an eraser."""
    if scope.stores is None and _PERSONAL & scope.present:
        yield undeclared_fact("stores", scope.path_of(min(_PERSONAL & scope.present)))
    for store in scope.stores or ():
        if store.personal or _PERSONAL & {*store.patterns}:
            yield from _eraser_problems(store)


@section_check()
def erasers(scope: AgentScope, check: RuleCheck) -> Iterator[LintProblem]:
    """The stores of these patterns have an eraser."""
    for id in check.of:
        found = _stores_of(scope, id)
        if not found:
            yield undeclared_fact("stores", scope.path_of(id))
        for store in found:
            yield from _eraser_problems(store)


@section_check()
def separate_stores(scope: AgentScope, check: RuleCheck) -> Iterator[LintProblem]:
    """These patterns do not share a store."""
    if not all(_stores_of(scope, id) for id in check.of):
        yield undeclared_fact("stores", scope.path_of(check.of[0]))
    for store in scope.stores or ():
        if {*check.of} <= {*store.patterns}:
            yield problem_at(
                "one store", store.path, f"{' and '.join(check.of)} share the store {store.name!r}", *check.of
            )


@section_check()
def curators(scope: AgentScope, check: RuleCheck) -> Iterator[LintProblem]:
    """The acting session (`agent`, or the name of the agent) does not write lasting stores."""
    own = {"agent", scope.member.name}
    lasting = [store for store in scope.stores or () if _LASTING & {*store.patterns}]
    if not lasting:
        first = next(id for id in scope.uses if id in _LASTING)
        yield undeclared_fact("stores", scope.path_of(first))
    for store in lasting:
        if writing := sorted(own & {*store.writers}):
            message = f"the agent itself writes the store {store.name!r}"
            key = ("own curator", dotted_path(store.path), *writing)
            yield LintProblem(key, message, store.path, patterns=store.patterns)


_MITIGATIONS = ("V4", "V6", "V8")
_EARLY_GUARDS = {"input", "call", "result"}


@section_check(needs="legs")
def three_legs(scope: AgentScope, check: RuleCheck) -> Iterator[LintProblem]:
    """Private data, untrusted content and external communication together need a mitigation; two of them, V13."""
    legs = {*(scope.legs or ())}
    if legs == {*get_args(Leg)} and not scope.available & {*_MITIGATIONS}:
        says = "private data, strangers' text and a way out come together"
        yield missing_pattern(_MITIGATIONS, (*scope.path, "legs"), says=says)
    elif len(legs) == 2 and "V13" not in scope.available:
        found = missing_pattern(("V13",), (*scope.path, "legs"), says="two of the three legs are there")
        yield replace(found, severity="note")


@section_check()
def untrusted_actions(scope: AgentScope, check: RuleCheck) -> Iterator[LintProblem]:
    """An agent that reads untrusted text has no action without a gate, unless V4 or V6 stands between them."""
    if "untrusted_content" not in (scope.legs or ()) or scope.present & {"V4", "V6"}:
        return
    for action in scope.actions or ():
        if action.gate == "none":
            message = f"the agent reads untrusted text and calls the action {action.name!r} without asking"
            yield problem_at("untrusted action", action.path, message, "V4", "V6", "V1")


@section_check()
def guards_before_output(scope: AgentScope, check: RuleCheck) -> Iterator[LintProblem]:
    """Guards are not at the output alone. If it is not declared where they are, they count as complete."""
    guards = scope.guards
    if guards and not _EARLY_GUARDS & {*guards} and "output" in guards:
        message = "guards stand at the output and nowhere before it"
        yield LintProblem(("output only",), message, (*scope.path, "guards"), wants=("guards",), patterns=("V5",))


@section_check(needs="guards", at="V5")
def guards_at(scope: AgentScope, check: RuleCheck) -> Iterator[LintProblem]:
    """There are guards at all of these points."""
    lacks = [point for point in check.of if point not in (scope.guards or ())]
    if lacks:
        message = f"no guard stands at {' and '.join(lacks)}"
        yield LintProblem(("no guard", *lacks), message, scope.path_of("V5"), wants=("guards",), patterns=("V5",))


@section_check()
def measured_schemas(scope: AgentScope, check: RuleCheck) -> Iterator[LintProblem]:
    """The tokens of the schemas are measured (if there are more tools than `more_than`)."""
    tools = scope.tools
    if tools is not None and tools.schema_tokens is not None:
        return
    if check.more_than and (tools is None or tools.count is None or tools.count <= check.more_than):
        return
    path = tools.path if tools is not None else (*scope.path, "patterns")
    message = "nobody measured how many tokens the schemas of the tools take"
    wants = (f"{dotted_path((*scope.path, 'tools'))}.schema_tokens",)
    yield LintProblem(("unmeasured",), message, path, wants=wants, patterns=("V13",))
