"""Quotations of the request, restored where a plan has them shortened or changed.

Quoted text can only be copied, and a small model now and then leaves a word or a full stop out while it copies. What is
put right here is what the person wrote, so nothing else can get into a plan this way.
"""

from __future__ import annotations

import difflib
import json
from typing import Any, cast

from bicameral.planning._intent_document import Intent
from bicameral.planning._omissions import plan_literals
from bicameral.plans import Plan

LEAST_ALIKE = 0.7
"""How much of its words a literal and a quotation share, from 0 to 1."""
LEAST_WORDS = 2
"""A single word may be the title of something just as well."""


def restore_quotations(plan: Plan, intent: Intent) -> Plan:
    """The plan with each quotation that it lacks in the place of the one literal that is nearly the same.

    A quotation that the plan has, in a longer text as well, stays as it is, and so does one to which several literals
    are near.
    """
    literals = list(dict.fromkeys(value for value in plan_literals(plan) if isinstance(value, str)))
    quoted = [each.words for each in intent.mentions if each.verbatim and each.kind not in ("address", "link")]
    changes: dict[str, str] = {}
    for quotation in quoted:
        if any(quotation in literal for literal in literals):
            continue
        near = [each for each in literals if each not in quoted and _is_near(each, quotation)]
        if len(near) == 1 and near[0] not in changes:
            changes[near[0]] = quotation
    if not changes:
        return plan
    return Plan.model_validate_json(json.dumps(_with_changes(plan.model_dump(mode="json"), changes)))


def _is_near(literal: str, quotation: str) -> bool:
    own, words = _plain_words(literal), _plain_words(quotation)
    if len(own) < LEAST_WORDS or len(words) < LEAST_WORDS:
        return False
    return difflib.SequenceMatcher(None, own, words, autojunk=False).ratio() >= LEAST_ALIKE


def _plain_words(text: str) -> list[str]:
    """Words without the punctuation at their ends: a full stop that moved to another word makes no difference."""
    stripped = (word.strip(".,;:!?…'\"()[]«»„“”‚‘’") for word in text.casefold().split())
    return [word for word in stripped if word]


def _with_changes(node: Any, changes: dict[str, str]) -> Any:
    """The JSON of a plan with other literals; the names and the words of references are no literals."""
    if isinstance(node, list):
        return [_with_changes(each, changes) for each in cast("list[Any]", node)]
    if not isinstance(node, dict):
        return node
    fields = cast("dict[str, Any]", node)
    if fields.get("kind") == "const" and isinstance(value := fields.get("value"), str):
        return {**fields, "value": changes.get(value, value)}
    return {key: _with_changes(each, changes) for key, each in fields.items()}
