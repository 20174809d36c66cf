"""Refusals of the planner, verified by code: whether it is true that no tool serves a request.

A planner may write `cannot("There is no tool that sends mails.")` as the whole plan. A small model sometimes writes
that although the tool is in its prompt. `refute_refusal` says so, and only if all of this holds:

1. The reason says that a tool is missing, and nothing else: no contradiction, no missing data.
2. Trusted tools of the registry do all that it says is missing, by their declared effects and their words.
3. The request orders such an effect and speaks of such an object, and a tool has each effect that it orders.
4. No clause of the request orders something for which there is no tool, such as a phone call.

Where one of them is not certain the refusal stands. A request that is refused wrongly costs a person a second request;
one that is half served without a word costs more.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from bicameral.planning._capabilities import Capability, claimed_capability, serving_tools, speaks_of
from bicameral.planning._clauses import only_asks
from bicameral.planning._failed_plans import RefusedPlanError
from bicameral.planning._intent_document import Intent, MentionKind
from bicameral.planning._language import fold, guess_language
from bicameral.planning._matching import nearest_tools
from bicameral.planning._unserved_orders import unserved_orders
from bicameral.text import lazy_pattern
from bicameral.tools import Registry

# The whole reason must be this one sentence: what stands beside it may be another reason.
_NO_TOOL = lazy_pattern(
    r"\s*(?:"
    r"(?:there(?:'s|\s+is)|i\s+have|we\s+have)\s+no\s+(?:available\s+)?tool\s+(?:here\s+)?(?:that|which|to|for)\s+(?:can\s+)?"
    r"|no\s+(?:available\s+)?tool\s+(?:that\s+)?(?:can\s+)?"
    r"|es\s+gibt\s+(?:hier\s+)?kein\s+werkzeug,?\s+(?:das|um|fur|zum|mit\s+dem\s+man)\s+"
    r"|kein\s+werkzeug\s+(?:kann\s+)?"
    r"|il\s+n'y\s+a\s+(?:pas\s+d'|aucun\s+)outil\s+(?:qui|pour|permettant\s+d[e'])\s*"
    r"|aucun\s+outil\s+(?:ne\s+)?(?:peut\s+)?"
    r"|no\s+hay\s+(?:ninguna\s+)?herramienta\s+(?:para|que)\s+"
    r"|ninguna\s+herramienta\s+(?:puede\s+)?"
    r")(?P<missing>[^.;:!?()]+?)\s*\.?\s*"
)


@dataclass(frozen=True, slots=True)
class OverriddenRefusal:
    """A refusal that did not stand.

    Args:
        reason: What the planner wrote.
        tools: The tools that do what it said is missing.
    """

    reason: str
    tools: tuple[str, ...]

    def __str__(self) -> str:
        return f"the planner first refused ({self.reason.rstrip('.')}), and {', '.join(self.tools)} can do that"


def missing_capability(reason: str) -> Capability | None:
    """What a refusal says that no tool does; None if it says something else, or more.

    Example:
        >>> missing_capability("Es gibt kein Werkzeug, das Mails verschickt.").objects
        ('mail',)
        >>> missing_capability("The request contradicts itself.") is None
        True
    """
    match = _NO_TOOL.fullmatch(fold(reason))
    return None if match is None else claimed_capability(match["missing"])


def refute_refusal(reason: str, intent: Intent, registry: Registry) -> OverriddenRefusal | None:
    """Why a refusal is unfounded; None if it stands.

    Args:
        reason: What the planner wrote.
        intent: What was asked for, as rules found it.
        registry: The tools as the planner saw them.

    Example:
        >>> refute_refusal("There is no tool that sends mails.", intent, registry).tools
        ('send_email',)
    """
    capability = missing_capability(reason)
    if capability is None:
        return None
    tools = serving_tools(capability, registry)
    if not tools or not _is_ordered(tools, intent, registry) or not _is_about(capability, intent):
        return None
    if next(unserved_orders(intent.request, registry), None) is not None:
        return None
    return OverriddenRefusal(reason, tools)


def refusal_error(reason: str, registry: Registry, request: str) -> RefusedPlanError:
    """The planner's own word that the request cannot be served, which is an outcome and no failure to plan."""
    near = ", ".join(nearest_tools(request, registry)) or "none comes near"
    error = RefusedPlanError(reason, fix=f"Ask for a part of it, or configure a tool for it. Nearest tools: {near}.")
    error.is_founded = next(unserved_orders(request, registry), None) is not None
    return error


def _is_ordered(tools: Sequence[str], intent: Intent, registry: Registry) -> bool:
    """Whether the request orders the effect of one of these tools, and all effects that it orders have a tool."""
    trusted = {tool.effect for tool in registry if not tool.self_described}
    effects = {registry[name].effect for name in tools if registry[name].changes}
    # A tool that only reads needs no order: a question is enough.
    return set(intent.effects) <= trusted and (not effects or bool(effects & set(intent.effects)))


# Signs of an object that are none of its words.
_KINDS: dict[str, tuple[MentionKind, ...]] = {
    "mail": ("mail", "address"),
    "calendar": ("event", "day", "period"),
    "file": ("file", "folder", "table"),
    "folder": ("file", "folder"),
    "table": ("file", "table", "column", "value", "amount", "period"),
    "web": ("link",),
    "money": ("amount",),
}
_SIGNS: dict[str, re.Pattern[str]] = {
    "mail": lazy_pattern(
        r"\b(?:wrote|written|writes?|sent|sen[dt]s?|replied|reply|answered|attach\w*|subject|schrieb\w*|geschrieben|schreibt|"
        r"schick\w*|geschickt|betreff|anhang|anhange|ecrit|envoye|repond\w*|objet|escribio|escrito|envio|enviado|asunto)\b"
    ),
    "money": lazy_pattern(
        r"\b(?:pa(?:y|id)|bezahl\w*|uberweis\w*|pai\w*|paye\w*|virer?|paga\w*|transfier\w*|eur|euros?|usd|gbp)\b"
    ),
}
_STORES = frozenset({"file", "table"})
"""Objects that hold anything."""


def _is_about(capability: Capability, intent: Intent) -> bool:
    """Whether the request speaks of one of the objects of which the refusal speaks.

    Otherwise the refusal may be right for another reason than the one that it gives.
    """
    if "mail" in capability.objects and "send" in capability.actions:
        # That something is ordered to be sent was found before.
        return True
    of_store = "look" in capability.actions and not _STORES.isdisjoint(capability.objects)
    if of_store and only_asks(intent.request, guess_language(intent.request)):
        # A question about what was noted somewhere names the thing and not the table. An order to a device is none.
        return True
    text, kinds = fold(intent.request), {mention.kind for mention in intent.mentions}
    return any(
        speaks_of(text, name)
        or not kinds.isdisjoint(_KINDS.get(name, ()))
        or (name in _SIGNS and _SIGNS[name].search(text) is not None)
        for name in capability.objects
    )
