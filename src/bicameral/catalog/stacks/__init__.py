"""Stacks: architectures of agents as data, which the linter, the advisor and the cost model read.

In comes YAML, or a Python object that says what it is made of with `architecture()`; out comes a frozen `Stack`, in
which everything knows its place. What cannot be read is told with file, line and column, and with what was meant.
"""

from ._compositions import Composition, compositions
from ._opening import parse_stack, read_stack, stack_of
from ._reading import check_rules
from ._stack import (
    Action,
    Defined,
    Gate,
    Guard,
    Holds,
    Keys,
    Leg,
    Loop,
    Member,
    PromptPart,
    Reach,
    Session,
    Stable,
    Stack,
    Store,
    Tools,
    Use,
    Varies,
    Waiver,
    dotted,
)
from ._vocabulary import FACTS, STATEMENTS, WHERE, Fact

__all__ = [
    "FACTS",
    "STATEMENTS",
    "WHERE",
    "Action",
    "Composition",
    "Defined",
    "Fact",
    "Gate",
    "Guard",
    "Holds",
    "Keys",
    "Leg",
    "Loop",
    "Member",
    "PromptPart",
    "Reach",
    "Session",
    "Stable",
    "Stack",
    "Store",
    "Tools",
    "Use",
    "Varies",
    "Waiver",
    "check_rules",
    "compositions",
    "dotted",
    "parse_stack",
    "read_stack",
    "stack_of",
]
