"""The catalogue's patterns as code: one folder a category, one file a pattern, all on one kernel.

    from bicameral.patterns import ReWOO, program_text

    outcome = await ReWOO().run(desk, program_text("Which of the three is cheapest?"))

`IMPLEMENTED` says which there are. Each is loaded when it is first asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from bicameral.patterns._implementations import IMPLEMENTED, example_of, pattern_class

if TYPE_CHECKING:
    from bicameral.patterns.humanizer.identity import IdentityPersistence
    from bicameral.patterns.humanizer.skills import SkillAccumulation
    from bicameral.patterns.integration.command_line import CommandLine
    from bicameral.patterns.integration.tool_call import ToolCalling
    from bicameral.patterns.knowledge.retrieval import Retrieval
    from bicameral.patterns.knowledge.scratchpad import Scratchpad
    from bicameral.patterns.orchestration.orchestrator_workers import OrchestratorWorkers
    from bicameral.patterns.orchestration.parallelization import Parallelization
    from bicameral.patterns.reasoning.react import ReAct
    from bicameral.patterns.reasoning.rewoo import ReWOO
    from bicameral.patterns.reliability.guardrails import Guardrails
    from bicameral.patterns.reliability.judge import Judge
    from bicameral.patterns.signal.few_shot import FewShot
    from bicameral.patterns.signal.output_template import OutputTemplate

    from .kernel import (
        Answered,
        Context,
        Exhausted,
        GaveUp,
        Labelled,
        Outcome,
        Pattern,
        PatternExample,
        Role,
        format_text,
        from_user,
        join_labelled,
        program_text,
        untrusted_value,
    )

__all__ = [
    "IMPLEMENTED",
    "Answered",
    "CommandLine",
    "Context",
    "Exhausted",
    "FewShot",
    "GaveUp",
    "Guardrails",
    "IdentityPersistence",
    "Judge",
    "Labelled",
    "OrchestratorWorkers",
    "Outcome",
    "OutputTemplate",
    "Parallelization",
    "Pattern",
    "PatternExample",
    "ReAct",
    "ReWOO",
    "Retrieval",
    "Role",
    "Scratchpad",
    "SkillAccumulation",
    "ToolCalling",
    "example_of",
    "format_text",
    "from_user",
    "join_labelled",
    "pattern_class",
    "program_text",
    "untrusted_value",
]

_HOMES = {where.partition(":")[2]: where.partition(":")[0] for where in IMPLEMENTED.values()}


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module(f".{_HOMES.get(name, 'kernel')}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
