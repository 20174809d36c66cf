"""The catalogue's patterns as code: one folder a category, one file a pattern, all on one kernel.

    from bicameral.patterns import ReWOO, said

    outcome = await ReWOO().run(desk, said("Which of the three is cheapest?"))

`IMPLEMENTED` says which there are. Each is loaded when it is first asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._implemented import IMPLEMENTED, example_of, pattern_class

if TYPE_CHECKING:
    from .humanizer.identity import IdentityPersistence
    from .humanizer.skills import SkillAccumulation
    from .integration.command_line import CommandLine
    from .integration.tool_call import ToolCalling
    from .kernel import (
        Answered,
        Example,
        Exhausted,
        GaveUp,
        Labelled,
        Outcome,
        Pattern,
        Role,
        Stage,
        from_user,
        said,
        strangers,
        text,
        together,
    )
    from .knowledge.retrieval import Retrieval
    from .knowledge.scratchpad import Scratchpad
    from .orchestration.orchestrator_workers import OrchestratorWorkers
    from .orchestration.parallelization import Parallelization
    from .reasoning.react import ReAct
    from .reasoning.rewoo import ReWOO
    from .reliability.guardrails import Guardrails
    from .reliability.judge import Judge
    from .signal.few_shot import FewShot
    from .signal.output_template import OutputTemplate

__all__ = [
    "IMPLEMENTED",
    "Answered",
    "CommandLine",
    "Example",
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
    "ReAct",
    "ReWOO",
    "Retrieval",
    "Role",
    "Scratchpad",
    "SkillAccumulation",
    "Stage",
    "ToolCalling",
    "example_of",
    "from_user",
    "pattern_class",
    "said",
    "strangers",
    "text",
    "together",
]

_HOMES = {where.partition(":")[2]: where.partition(":")[0] for where in IMPLEMENTED.values()}


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module(f".{_HOMES.get(name, 'kernel')}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
