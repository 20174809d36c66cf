"""Who understands requests and who plans: one model, or several in a cascade."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bicameral.delta import Delta, PlanCascade
from bicameral.models import Provider
from bicameral.routing import Cascade, for_role, unfinished


def planner(privileged: Provider, cascade: Mapping[str, Provider], **options: Any) -> Delta | PlanCascade:
    """Delta with the one model, or a cascade of them."""
    return PlanCascade(cascade, **options) if cascade else Delta(for_role(privileged, "delta"), **options)


def understanding(privileged: Provider, stages: Sequence[Provider]) -> Provider:
    """Who is asked what a request means: the first of a cascade, and a larger one only if its account is not whole."""
    return Cascade(*stages, accept=unfinished) if stages else for_role(privileged, "echo")
