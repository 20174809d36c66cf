"""Doubts of planning: what a plan rests on before it runs, for the person who reads the answer."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from bicameral.binding._binder import Binding
from bicameral.labels import TRUSTED_USER
from bicameral.planning import Intent, chosen_directives, invented_constants
from bicameral.plans import Plan
from bicameral.runs import Doubt
from bicameral.tools import Registry

_GUESSED = {
    "model": "as the quarantined model chose",
    "meaning": "by its meaning",
    "newest": "since it is the newest",
    "cells": "by what it contains",
}
"""The ways of binding that may be wrong though only one candidate was left."""


def planning_doubts(
    plan: Plan, intent: Intent, bindings: Sequence[Binding], registry: Registry, own: Collection[str]
) -> tuple[Doubt, ...]:
    """What is not sure about a plan: words that were bound by a guess, and constants that nobody gave.

    Args:
        plan: The plan as it was written, with its references.
        intent: What it is for.
        bindings: What its words were bound to.
        registry: The tools.
        own: Values of the user's settings, such as the own addresses.
    """
    return (*binding_doubts(bindings), *_constant_doubts(plan, intent, registry, own))


def binding_doubts(bindings: Sequence[Binding]) -> tuple[Doubt, ...]:
    """The words of a plan that were bound by a guess; for a plan that a person wrote, whose constants are given."""
    return tuple(
        Doubt("unbound-word", f"{binding}, {_GUESSED[binding.how]}", binding.label)
        for binding in bindings
        if binding.how in _GUESSED
    )


def _constant_doubts(plan: Plan, intent: Intent, registry: Registry, own: Collection[str]) -> Iterator[Doubt]:
    for constant in invented_constants(plan, intent, registry, own):
        text = f"the plan selects by {constant.value!r}, which the request does not say"
        yield Doubt("invented-constant", text, TRUSTED_USER, constant.path)
    for choice in chosen_directives(plan, intent, registry, own):
        text = (
            f"the plan chooses {choice.value!r} for {choice.tool} ({choice.argument}), which the request does not say"
        )
        yield Doubt("invented-constant", text, TRUSTED_USER, choice.path)
