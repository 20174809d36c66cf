"""The patterns of the catalogue that are implemented, with the module and class of each."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import MISSING, fields
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from bicameral.errors import CatalogError, nearest_name

if TYPE_CHECKING:
    from bicameral.patterns.kernel import Pattern, PatternExample, TextPattern

IMPLEMENTED: Mapping[str, str] = {
    "S1": "signal.zero_shot:ZeroShot",
    "S2": "signal.few_shot:FewShot",
    "S6": "signal.output_template:OutputTemplate",
    "K1": "knowledge.retrieval:Retrieval",
    "K8": "knowledge.scratchpad:Scratchpad",
    "R4": "reasoning.react:ReAct",
    "R5": "reasoning.rewoo:ReWOO",
    "O1": "orchestration.single_agent:SingleAgent",
    "O2": "orchestration.chain:Chain",
    "O4": "orchestration.parallelization:Parallelization",
    "O6": "orchestration.orchestrator_workers:OrchestratorWorkers",
    "O17": "orchestration.isolation:AgentIsolation",
    "V1": "reliability.human_review:HumanReview",
    "V3": "reliability.rule_of_two:RuleOfTwo",
    "V4": "reliability.dual_model:DualModel",
    "V5": "reliability.guardrails:Guardrails",
    "V6": "reliability.injection_shield:InjectionShield",
    "V7": "reliability.governance:Governance",
    "V8": "reliability.tool_sandbox:ToolSandbox",
    "V9": "reliability.bounded_execution:BoundedExecution",
    "V10": "reliability.checkpointing:Checkpointing",
    "V11": "reliability.error_compaction:ErrorCompaction",
    "V12": "reliability.stateless:StatelessReducer",
    "V13": "reliability.tool_budget:ToolBudget",
    "V14": "reliability.trajectory_logging:TrajectoryLogging",
    "V15": "reliability.judge:Judge",
    "V16": "reliability.offline_eval:OfflineEval",
    "V19": "reliability.degradation:GracefulDegradation",
    "V20": "reliability.schema_validation:SchemaValidation",
    "I1": "integration.direct_call:DirectCall",
    "I2": "integration.tool_call:ToolCalling",
    "I4": "integration.command_line:CommandLine",
    "H1": "humanizer.identity:IdentityPersistence",
    "H4": "humanizer.skills:SkillAccumulation",
}
"""`module:class` by the id of the pattern."""

PRODUCT: Mapping[str, str] = {"V4": "Agent"}
"""The patterns that the runtime itself is, with the class in `bicameral` that does this for whole requests."""


def pattern_class(id: str) -> type[Pattern[..., Any]]:
    """The class of a pattern; imports its module."""
    module, _, name = _module_and_class(id).partition(":")
    return getattr(import_module(f".{module}", __package__), name)


def example_of(id: str) -> PatternExample:
    """The runnable example of a pattern."""
    return import_module(f".{_module_and_class(id).partition(':')[0]}", __package__).EXAMPLE


MODEL_PREFIX = "pattern:"
"""What the name of a model begins with that is a pattern: `pattern:R5`."""


def text_pattern(id: str, knobs: Mapping[str, Any] | None = None) -> TextPattern:
    """A pattern that works on one text and needs nothing else but its knobs; an error for any other."""
    kind: Any = pattern_class(id)
    if not _takes_text_alone(kind):
        raise CatalogError(
            "pattern.needs-more",
            f"{id} needs more than a request",
            fix=f"Run its example with `bicameral patterns run {id}`, or use it from Python.",
        )
    known = {each.name for each in fields(kind)}
    return kind(**{name: value for name, value in (knobs or {}).items() if name in known})


@cache
def text_patterns() -> tuple[str, ...]:
    """The ids of the patterns that `text_pattern` makes; imports the modules of all patterns."""
    return tuple(id for id in IMPLEMENTED if _takes_text_alone(pattern_class(id)))


def model_pattern(model: str) -> TextPattern:
    """The pattern that the name of a model means, such as `pattern:R5`; `catalog.not-a-model` with the nearest name."""
    id = model.removeprefix(MODEL_PREFIX)
    if not model.startswith(MODEL_PREFIX) or id not in text_patterns():
        names = [f"{MODEL_PREFIX}{each}" for each in text_patterns()]
        raise CatalogError(
            "catalog.not-a-model",
            "no pattern of this name works on a text alone",
            expected=f"one of {', '.join(names)}",
            nearest=nearest_name(model[:60], names),
        )
    return text_pattern(id)


def _takes_text_alone(kind: type[Pattern[..., Any]]) -> bool:
    needs = [each for each in fields(cast("Any", kind)) if each.default is MISSING and each.default_factory is MISSING]
    takes = list(inspect.signature(kind.execute).parameters.values())[2:]
    required = [each.annotation for each in takes if each.default is inspect.Parameter.empty]
    return not needs and required == ["Labelled[str]"]


def _module_and_class(id: str) -> str:
    if id in IMPLEMENTED:
        return IMPLEMENTED[id]
    raise CatalogError(
        "catalog.not-implemented",
        f"{id} cannot be run yet",
        expected=f"one of {', '.join(IMPLEMENTED)}",
        fix=f"`bicameral patterns show {id}` says what it is.",
    )
