"""The patterns of the catalogue that are implemented, with the module and class of each."""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from bicameral.errors import CatalogError, nearest_name

if TYPE_CHECKING:
    from bicameral.catalog import Knob
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


def implemented_classes() -> Mapping[str, str]:
    """The class of every pattern that can be run, by its id."""
    return {id: where.partition(":")[2] for id, where in IMPLEMENTED.items()} | dict(PRODUCT)


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
    for name, value in (knobs or {}).items():
        _check_knob_kind(id, name, value)
    return kind(**{name: value for name, value in (knobs or {}).items() if name in known})


def text_pattern_knobs(id: str) -> Mapping[str, Knob]:
    """The knobs that `text_pattern` sets: those of the catalogue that the class has."""
    from bicameral.catalog import catalog

    known = {each.name for each in fields(cast("Any", pattern_class(id)))}
    return {name: knob for name, knob in catalog().pattern(id).knobs.items() if name in known}


def parse_pattern_knobs(id: str, written: Sequence[str]) -> dict[str, Any]:
    """Knobs from texts such as `max_steps=4`; a `CatalogError` names the nearest knob for an unknown one."""
    from bicameral.catalog import catalog

    known, knobs = catalog().pattern(id).knobs, dict[str, Any]()
    for each in written:
        name, equals, value = each.partition("=")
        if not equals or name not in known:
            raise CatalogError(
                "catalog.unknown-knob",
                f"{id} has no knob {name!r}" if equals else f"{each!r} sets nothing",
                expected="NAME=VALUE",
                nearest=nearest_name(name, known),
                fix=f"It has {', '.join(known)}." if known else "It has none.",
            )
        try:
            knobs[name] = json.loads(value)
        except (ValueError, RecursionError):
            knobs[name] = value
    return knobs


def _check_knob_kind(id: str, name: str, value: object) -> None:
    """Refuse a value of another kind than the default: no bound would hold a text, or a number that is none."""
    from bicameral.catalog import catalog

    knob = catalog().pattern(id).knobs.get(name)
    if knob is None or knob.default is None:
        return
    match knob.default:
        case bool():
            fits, expected = isinstance(value, bool), "true or false"
        case int():
            fits, expected = isinstance(value, int) and not isinstance(value, bool), "a whole number"
        case float():
            fits, expected = _is_finite_number(value), "a number"
        case str():
            fits, expected = isinstance(value, str), "a text"
        case _:
            return
    if fits and isinstance(value, int) and not _is_finite_number(int(value)):
        fits, expected = False, "a smaller number"
    if not fits:
        raise CatalogError(
            "pattern.bad-knob",
            f"{id}: {name} is {_short(value)}",
            expected=expected,
            fix=f"`bicameral patterns show {id}` says what {name} is.",
        )


def _is_finite_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def _short(value: object) -> str:
    """A value in an error: short, whatever it is."""
    text = repr(value) if isinstance(value, str | int | float) else f"a {type(value).__name__}"
    return text if len(text) <= 60 else f"{text[:59]}…"


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
