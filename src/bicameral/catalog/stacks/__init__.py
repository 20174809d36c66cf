"""Stacks: architectures of agents as data, which the linter, the advisor and the cost model read.

In comes YAML, or a Python object that describes itself with `architecture()`; out comes a frozen `Stack` in which
everything has its place. A mistake is an error with file, line, column and the nearest valid name.
"""

from bicameral.catalog.stacks._reader import check_waived_rules
from bicameral.catalog.stacks._sources import Composition, compositions, parse_stack, read_stack, stack_of
from bicameral.catalog.stacks._stack import (
    FACTS,
    STATEMENTS,
    USE_KEYS,
    Action,
    BlastRadius,
    Gate,
    GuardPoint,
    Leg,
    Loop,
    OwnPattern,
    PatternUse,
    PromptPart,
    PromptStability,
    Stack,
    StackFact,
    StackMember,
    StackPath,
    StackSession,
    StackStore,
    StoreContent,
    ToolCounts,
    VaryingContent,
    Waiver,
    dotted_path,
)

__all__ = [
    "FACTS",
    "STATEMENTS",
    "USE_KEYS",
    "Action",
    "BlastRadius",
    "Composition",
    "Gate",
    "GuardPoint",
    "Leg",
    "Loop",
    "OwnPattern",
    "PatternUse",
    "PromptPart",
    "PromptStability",
    "Stack",
    "StackFact",
    "StackMember",
    "StackPath",
    "StackSession",
    "StackStore",
    "StoreContent",
    "ToolCounts",
    "VaryingContent",
    "Waiver",
    "check_waived_rules",
    "compositions",
    "dotted_path",
    "parse_stack",
    "read_stack",
    "stack_of",
]
