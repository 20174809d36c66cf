"""The catalogue's patterns as code: one folder a category, one file a pattern, all on one kernel.

    from bicameral.patterns import ReWOO, program_text

    outcome = await ReWOO().run(runtime, program_text("Which of the three is cheapest?"))

`IMPLEMENTED` lists them by id, `PRODUCT` those that the runtime itself is. The module of a pattern is imported when its
class is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from bicameral.patterns._implementations import (
    IMPLEMENTED as IMPLEMENTED,
    MODEL_PREFIX as MODEL_PREFIX,
    PRODUCT as PRODUCT,
    example_of as example_of,
    implemented_classes as implemented_classes,
    model_pattern as model_pattern,
    parse_pattern_knobs as parse_pattern_knobs,
    pattern_class as pattern_class,
    text_pattern as text_pattern,
    text_pattern_knobs as text_pattern_knobs,
    text_patterns as text_patterns,
)

if TYPE_CHECKING:
    from bicameral.patterns.humanizer.identity import IdentityPersistence as IdentityPersistence
    from bicameral.patterns.humanizer.skills import SkillAccumulation as SkillAccumulation
    from bicameral.patterns.integration.command_line import CommandLine as CommandLine
    from bicameral.patterns.integration.direct_call import DirectCall as DirectCall
    from bicameral.patterns.integration.tool_call import ToolCalling as ToolCalling
    from bicameral.patterns.knowledge.retrieval import Retrieval as Retrieval
    from bicameral.patterns.knowledge.scratchpad import Scratchpad as Scratchpad
    from bicameral.patterns.orchestration.chain import Chain as Chain
    from bicameral.patterns.orchestration.isolation import AgentIsolation as AgentIsolation
    from bicameral.patterns.orchestration.orchestrator_workers import OrchestratorWorkers as OrchestratorWorkers
    from bicameral.patterns.orchestration.parallelization import Parallelization as Parallelization
    from bicameral.patterns.orchestration.single_agent import SingleAgent as SingleAgent
    from bicameral.patterns.reasoning.react import ReAct as ReAct
    from bicameral.patterns.reasoning.rewoo import ReWOO as ReWOO
    from bicameral.patterns.reliability.bounded_execution import BoundedExecution as BoundedExecution
    from bicameral.patterns.reliability.checkpointing import Checkpointing as Checkpointing
    from bicameral.patterns.reliability.degradation import GracefulDegradation as GracefulDegradation
    from bicameral.patterns.reliability.dual_model import DualModel as DualModel
    from bicameral.patterns.reliability.error_compaction import ErrorCompaction as ErrorCompaction
    from bicameral.patterns.reliability.governance import Governance as Governance
    from bicameral.patterns.reliability.guardrails import Guardrails as Guardrails
    from bicameral.patterns.reliability.human_review import HumanReview as HumanReview
    from bicameral.patterns.reliability.injection_shield import InjectionShield as InjectionShield
    from bicameral.patterns.reliability.judge import Judge as Judge
    from bicameral.patterns.reliability.offline_eval import OfflineEval as OfflineEval
    from bicameral.patterns.reliability.rule_of_two import RuleOfTwo as RuleOfTwo
    from bicameral.patterns.reliability.schema_validation import SchemaValidation as SchemaValidation
    from bicameral.patterns.reliability.stateless import StatelessReducer as StatelessReducer
    from bicameral.patterns.reliability.tool_budget import ToolBudget as ToolBudget
    from bicameral.patterns.reliability.tool_sandbox import ToolSandbox as ToolSandbox
    from bicameral.patterns.reliability.trajectory_logging import TrajectoryLogging as TrajectoryLogging
    from bicameral.patterns.signal.few_shot import FewShot as FewShot
    from bicameral.patterns.signal.output_template import OutputTemplate as OutputTemplate
    from bicameral.patterns.signal.zero_shot import ZeroShot as ZeroShot

    from .kernel import (
        Answered as Answered,
        Context as Context,
        Exhausted as Exhausted,
        GaveUp as GaveUp,
        Labelled as Labelled,
        Outcome as Outcome,
        Pattern as Pattern,
        PatternExample as PatternExample,
        Role as Role,
        format_text as format_text,
        from_user as from_user,
        join_labelled as join_labelled,
        pattern_tool as pattern_tool,
        program_text as program_text,
        untrusted_value as untrusted_value,
    )

_HOMES = {where.partition(":")[2]: where.partition(":")[0] for where in IMPLEMENTED.values()} | dict.fromkeys(
    "Answered Context Exhausted GaveUp Labelled Outcome Pattern PatternExample Role "
    "format_text from_user join_labelled pattern_tool program_text untrusted_value".split(),
    "kernel",
)


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f".{_HOMES[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
