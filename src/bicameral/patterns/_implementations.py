"""The patterns of the catalogue that are implemented, with the module and class of each."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from bicameral.errors import CatalogError

if TYPE_CHECKING:
    from bicameral.patterns.kernel import Pattern, PatternExample

IMPLEMENTED: Mapping[str, str] = {
    "S2": "signal.few_shot:FewShot",
    "S6": "signal.output_template:OutputTemplate",
    "K1": "knowledge.retrieval:Retrieval",
    "K8": "knowledge.scratchpad:Scratchpad",
    "R4": "reasoning.react:ReAct",
    "R5": "reasoning.rewoo:ReWOO",
    "O4": "orchestration.parallelization:Parallelization",
    "O6": "orchestration.orchestrator_workers:OrchestratorWorkers",
    "V5": "reliability.guardrails:Guardrails",
    "V6": "reliability.injection_shield:InjectionShield",
    "V13": "reliability.tool_budget:ToolBudget",
    "V15": "reliability.judge:Judge",
    "V16": "reliability.offline_eval:OfflineEval",
    "I2": "integration.tool_call:ToolCalling",
    "I4": "integration.command_line:CommandLine",
    "H1": "humanizer.identity:IdentityPersistence",
    "H4": "humanizer.skills:SkillAccumulation",
}
"""`module:class` by the id of the pattern."""

PRODUCT: Mapping[str, str] = {"V4": "Agent"}
"""The patterns that the runtime itself is, with the class in `bicameral` that is their code."""


def pattern_class(id: str) -> type[Pattern[..., Any]]:
    """The class of a pattern; imports its module."""
    module, _, name = _module_and_class(id).partition(":")
    return getattr(import_module(f".{module}", __package__), name)


def example_of(id: str) -> PatternExample:
    """The runnable example of a pattern."""
    return import_module(f".{_module_and_class(id).partition(':')[0]}", __package__).EXAMPLE


def _module_and_class(id: str) -> str:
    if id in IMPLEMENTED:
        return IMPLEMENTED[id]
    if id in PRODUCT:
        raise CatalogError(
            "pattern.is-the-runtime",
            f"{id} has no class among the patterns: the runtime itself is this pattern",
            fix=f"Use `bicameral.{PRODUCT[id]}`, or `bicameral patterns run {id} REQUEST`.",
        )
    raise CatalogError(
        "catalog.not-implemented",
        f"{id} cannot be run yet",
        expected=f"one of {', '.join(IMPLEMENTED)}",
        fix=f"`bicameral patterns show {id}` says what it is.",
    )
