"""Alternative plans: where a plan is doubtful, several are drawn from the same prompt, and compared by what is asked.

A plan is drawn with a temperature above 0 and a fixed seed, so that the same request draws the same plans. Those that
may not be used are dropped, and those that are the same but for the names of variables count once. `fit_of` says how
well a plan fits its intent, and `effects_of` what it would do to the world; both read the plan and the request alone.
What the world says of a plan is judged elsewhere, and only among plans that are equal here.
"""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from bicameral.errors import BicameralError
from bicameral.limits import open_ledger
from bicameral.planning._asked_forms import unserved_forms
from bicameral.planning._cascade import MIN_CONFIDENCE, DoubtCriteria, DoubtKind, PlanDoubt
from bicameral.planning._compiled_plan import CompiledPlan
from bicameral.planning._decode import Sampling
from bicameral.planning._delta import Delta
from bicameral.planning._intent_check import serves_intent
from bicameral.planning._intent_document import Intent, Mention
from bicameral.planning._omissions import find_omissions
from bicameral.plans import Call, Plan, print_plan, walk
from bicameral.text import text_stems
from bicameral.tools import Effect, Registry

DRAWN_CACHE_FORM = "drawn-plans/2"
"""The format of a cache entry with drawn plans."""
FIRST_SEED = 1
_SEVERITY: dict[Effect, int] = {"pure": 0, "read": 0, "write": 1, "send": 3, "irreversible": 9}
_COMPUTED: tuple[str, ...] = ("day", "period")
"""Kinds of mentions that a plan has as dates, which code computed."""


@dataclass(frozen=True, slots=True)
class DrawSettings:
    """How many plans are drawn for a doubtful one, and how.

    Args:
        plans: How many more; 0 for none.
        temperature: How far they may be from the likeliest plan.
        sure: The least probability of a deciding token in a plan without doubt.
    """

    plans: int = 3
    temperature: float = 0.7
    sure: float = MIN_CONFIDENCE


@dataclass(frozen=True, slots=True)
class DrawnPlans:
    """The different plans for a request, the first one first.

    Args:
        plans: The plans that may be used; there is always the first.
        doubts: Why more than one was drawn; empty if the first is beyond doubt.
        drawn: How many more were written, whether they may be used or not.
        votes: How often each plan was written.
    """

    plans: tuple[CompiledPlan, ...]
    doubts: tuple[PlanDoubt, ...] = ()
    drawn: int = 0
    votes: tuple[int, ...] = (1,)


def find_plan_doubts(
    compiled: CompiledPlan, intent: Intent, registry: Registry, sure: float = MIN_CONFIDENCE
) -> tuple[PlanDoubt, ...]:
    """All reasons to draw more plans: those of a cascade, mentions that are not used, constraints that nothing serves.

    Args:
        compiled: The plan.
        intent: What it is for.
        registry: The tools.
        sure: The least probability of a deciding token.
    """
    return (
        *DoubtCriteria(sure).find_doubts(compiled, intent, registry),
        *(
            PlanDoubt("unused-mention", f"the request mentions {mention.words!r}, and the plan does not")
            for mention in unused_mentions(compiled.plan, intent, registry)
        ),
        *(
            PlanDoubt("unserved-constraint", message)
            for message in unserved_constraints(compiled.plan, intent, registry)
        ),
    )


def unused_mentions(plan: Plan, intent: Intent, registry: Registry) -> tuple[Mention, ...]:
    """The mentions of an intent of which a plan has no word. Days are left out: a plan has them as dates."""
    code = _plain_code(plan, registry)
    said, stems = code.casefold(), frozenset(text_stems(code.replace("_", " ")))
    return tuple(each for each in intent.mentions if not _is_used(each, said, stems))


def _is_used(mention: Mention, said: str, stems: frozenset[str]) -> bool:
    words = mention.words.casefold().strip(" .,;:!?")
    if mention.kind in _COMPUTED or not words or words in said:
        return True
    if mention.verbatim:
        return False
    # One common word is enough: a plan may say "the bills of May" as file("bills") and a date.
    own = text_stems(mention.words)
    return not own or bool(stems & set(own)) or any(part in said for part in _numbers(mention.words))


def _numbers(text: str) -> list[str]:
    return ["".join(filter(str.isdigit, part)) for part in text.split() if any(map(str.isdigit, part))]


def unserved_constraints(plan: Plan, intent: Intent, registry: Registry) -> tuple[str, ...]:
    """What a plan does not keep of the constraints of its intent, a sentence each."""
    found = serves_intent(plan, intent, registry)
    return tuple(each.message for each in found if each.code == "plan.broken-constraint")


def _plain_code(plan: Plan, registry: Registry) -> str:
    return print_plan(plan.model_copy(update={"goal": ""}), registry)


def canonical_plan(plan: Plan, registry: Registry) -> str:
    """A text that two plans share exactly if they differ in nothing but the names of variables and the goal."""
    tree = ast.parse(_plain_code(plan, registry))
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        # Only what the plan itself names: the names of tools and functions are never assigned.
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.setdefault(node.id, f"v{len(names) + 1}")
        elif isinstance(node, ast.arg):
            names.setdefault(node.arg, f"v{len(names) + 1}")
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            node.id = names.get(node.id, node.id)
        elif isinstance(node, ast.arg):
            node.arg = names.get(node.arg, node.arg)
    return ast.unparse(tree)


@dataclass(frozen=True, slots=True, order=True)
class PlanFit:
    """How well a plan fits its intent; more is better, and the first difference decides.

    It comes before everything that the world says: a plan that leaves a condition out always selects something.

    Args:
        mismatches: Less for each finding of the comparison with the intent.
        effects: Whether its effects are exactly those that the request asks for.
        constraints: Less for each constraint that nothing serves.
        mentions: Less for each mention that is not used.
        forms: Less for each calculation, or each way to distribute messages, that the request asks for otherwise.
        omissions: Less for each hint that something is left out or added.
        mildness: Less for each call that changes something, by how grave it is.
    """

    mismatches: int
    effects: bool
    constraints: int
    mentions: int
    forms: int
    omissions: int
    mildness: int


def fit_of(compiled: CompiledPlan, intent: Intent, registry: Registry) -> PlanFit:
    """How well a plan fits its intent, by the plan and the request alone."""
    plan = compiled.plan
    called = [registry.get(step.tool) for _, step in walk(plan.steps) if isinstance(step, Call)]
    effects: list[Effect] = [tool.effect for tool in called if tool is not None and tool.changes]
    return PlanFit(
        -len(compiled.mismatches),
        set(effects) == set(intent.effects),
        -len(unserved_constraints(plan, intent, registry)),
        -len(unused_mentions(plan, intent, registry)),
        -len(unserved_forms(plan, intent, registry)),
        -len(list(find_omissions(plan, intent, registry))),
        -sum(_SEVERITY[effect] for effect in effects),
    )


async def draw_plans(
    delta: Delta, first: CompiledPlan, intent: Intent, registry: Registry, settings: DrawSettings
) -> DrawnPlans:
    """The first plan, and others if it is doubtful.

    A model that cannot write another one, or may not within its budget, is no error: there is a plan.

    Args:
        delta: The planner that wrote the first plan.
        first: The first plan.
        intent: What it is for.
        registry: The tools.
        settings: How many are drawn, and how.

    Example:
        >>> drawn = await draw_plans(delta, compiled, intent, registry, DrawSettings(plans=3))
        >>> [str(doubt) for doubt in drawn.doubts]
        ['the plan had to be mended (1)']
    """
    if settings.plans < 1 or first.looks is not None:
        return DrawnPlans((first,))
    key = _drawn_key(delta, first, intent, registry, settings)
    if first.cached and (known := _load_drawn(delta, key, first, intent, registry)) is not None:
        return known
    doubts = find_plan_doubts(first, intent, registry, settings.sure)
    distinct = {canonical_plan(first.plan, registry): first}
    votes = dict.fromkeys(distinct, 1)
    drawn = 0
    complete = True
    with open_ledger() as ledger:
        for number in range(settings.plans if doubts else 0):
            try:
                plan = await delta.draw(intent, registry, Sampling(settings.temperature, FIRST_SEED + number))
            except BicameralError:
                complete = False
                break
            drawn += 1
            if plan is not None:
                form = canonical_plan(plan.plan, registry)
                distinct.setdefault(form, plan)
                votes[form] = votes.get(form, 0) + 1
    found = DrawnPlans(tuple(distinct.values()), doubts, drawn, tuple(votes[form] for form in distinct))
    # What a substitute model drew is not cached, as a plan of its own is not.
    if complete and not ledger.degraded:
        _store_drawn(delta, key, found)
    return found


def _drawn_key(
    delta: Delta, first: CompiledPlan, intent: Intent, registry: Registry, settings: DrawSettings
) -> str | None:
    """A hash over the key of the first plan, that plan and the settings; None if it is not cached either."""
    key = delta.cache_key(intent, registry)
    # A first plan that was not cached came from a substitute model or was influenced by untrusted text: what was drawn
    # beside it is not cached either.
    if key is None or delta.cache is None or first.draft is None or key not in delta.cache:
        return None
    return hashlib.sha256(json.dumps([DRAWN_CACHE_FORM, key, first.draft.hash, repr(settings)]).encode()).hexdigest()


def _store_drawn(delta: Delta, key: str | None, found: DrawnPlans) -> None:
    drafts = [each.written.to_json() for each in found.plans[1:] if each.written is not None]
    if delta.cache is None or key is None or len(drafts) != len(found.plans) - 1:
        return
    entry = {
        "form": DRAWN_CACHE_FORM,
        "key": key,
        "doubts": [[doubt.kind, doubt.reason] for doubt in found.doubts],
        "plans": drafts,
        "drawn": found.drawn,
        "votes": found.votes,
    }
    delta.cache[key] = json.dumps(entry)


def _load_drawn(
    delta: Delta, key: str | None, first: CompiledPlan, intent: Intent, registry: Registry
) -> DrawnPlans | None:
    """The plans of a cache entry; None if there is none that is whole and still passes the check."""
    text = delta.cache.get(key) if delta.cache is not None and key is not None else None
    try:
        entry = cast("dict[str, Any]", json.loads(text or ""))
        if (entry["form"], entry["key"]) != (DRAWN_CACHE_FORM, key):
            return None
        doubts = tuple(PlanDoubt(cast("DoubtKind", str(kind)), str(reason)) for kind, reason in entry["doubts"])
        plans = [delta.restore(Plan.model_validate_json(draft), intent, registry) for draft in entry["plans"]]
        drawn, votes = int(entry["drawn"]), tuple(map(int, entry["votes"]))
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    usable = tuple(plan for plan in plans if plan is not None)
    if len(usable) != len(plans) or len(votes) != len(plans) + 1:
        return None
    return DrawnPlans((first, *usable), doubts, drawn, votes)


def best_fitting(
    plans: Sequence[CompiledPlan], intent: Intent, registry: Registry, *, forms: bool = True
) -> tuple[int, ...]:
    """The places of the plans that fit the intent best.

    Args:
        plans: The plans.
        intent: What they are for.
        registry: The tools.
        forms: Whether the form of the result counts, which is found by single words of the request.
    """
    fits = [fit_of(plan, intent, registry) for plan in plans]
    fits = fits if forms else [replace(fit, forms=0) for fit in fits]
    best = max(fits)
    return tuple(place for place, fit in enumerate(fits) if fit == best)


def differing_lines(plans: Sequence[Plan], registry: Registry) -> Iterator[tuple[str, ...]]:
    """For each plan the lines that not all of them have, as a person may read them: in the words of the request."""
    written = [_plain_code(plan, registry).splitlines() for plan in plans]
    common = frozenset(written[0]).intersection(*written[1:]) if written else frozenset[str]()
    for lines in written:
        yield tuple(line for line in lines if line not in common and line.strip())
