"""Stacks: architectures of agents as data, which the linter, the advisor and the cost model read.

In comes YAML, or a Python object that describes itself with `architecture()`; out comes a frozen `Stack` in which
everything has its place. A mistake is an error with file, line, column and the nearest valid name.
"""

from bicameral.catalog.stacks._reader import (
    INNER_KEY as INNER_KEY,
    MAX_SIZE as MAX_SIZE,
    MIN_SIZE as MIN_SIZE,
    SIZES_KEY as SIZES_KEY,
    check_waived_rules as check_waived_rules,
)
from bicameral.catalog.stacks._sources import (
    Composition as Composition,
    composition_yaml as composition_yaml,
    compositions as compositions,
    parse_stack as parse_stack,
    read_stack as read_stack,
    stack_of as stack_of,
    stack_yaml as stack_yaml,
)
from bicameral.catalog.stacks._stack import (
    FACTS as FACTS,
    RUNTIMES as RUNTIMES,
    STATEMENTS as STATEMENTS,
    USE_KEYS as USE_KEYS,
    Action as Action,
    BlastRadius as BlastRadius,
    Gate as Gate,
    GuardPoint as GuardPoint,
    Leg as Leg,
    Loop as Loop,
    OwnPattern as OwnPattern,
    PatternUse as PatternUse,
    PromptPart as PromptPart,
    PromptStability as PromptStability,
    RuntimeGuarantee as RuntimeGuarantee,
    RuntimeName as RuntimeName,
    Stack as Stack,
    StackFact as StackFact,
    StackMember as StackMember,
    StackPath as StackPath,
    StackSession as StackSession,
    StackStore as StackStore,
    StoreContent as StoreContent,
    ToolCounts as ToolCounts,
    VaryingContent as VaryingContent,
    Waiver as Waiver,
    dotted_path as dotted_path,
    paths_around as paths_around,
    runtime_guarantees as runtime_guarantees,
)
