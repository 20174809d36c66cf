"""Plans: the only thing that runs, and everything one can know about a plan before it does.

Text in a small subset of Python comes in by `parse`, JSON by `load_plan`; out goes a `Plan` that `print_plan` writes
back as text. `check` says what is wrong with a plan, what it does to the world and what it costs at worst, and
`compile_expr` gives the value of its expressions: pure, total, from a closed library of functions. Nothing here
calls a tool or a model.
"""

from ._check import check
from ._evaluate import compile_expr, evaluate
from ._expressions import (
    Apply,
    Arithmetic,
    Choose,
    Clause,
    Compare,
    Comprehension,
    Const,
    DictOf,
    Expr,
    Format,
    Get,
    Index,
    Lambda,
    ListOf,
    Logic,
    Negative,
    Not,
    Ref,
    Shown,
    Slice,
    TupleOf,
    children,
    free_names,
)
from ._failure import RUN_CODES, EvaluationError
from ._findings import Bound, Cost, EffectUse, Finding, Limits, Report
from ._function import Function
from ._library import FUNCTIONS, METHODS
from ._load import load_plan
from ._operators import items_to_go_over, unpacked, updated
from ._parse import Parsed, parse
from ._plan import Answer, Ask, Call, Compute, Each, Extract, Plan, Step, Update, When, walk
from ._print import print_plan
from ._schema import plan_schema
from ._scope import Scope, Variable
from ._steps import check_step
from ._tasks import ImportedTasks, export_tasks, import_tasks
from ._typing import type_of

__all__ = [
    "FUNCTIONS",
    "METHODS",
    "RUN_CODES",
    "Answer",
    "Apply",
    "Arithmetic",
    "Ask",
    "Bound",
    "Call",
    "Choose",
    "Clause",
    "Compare",
    "Comprehension",
    "Compute",
    "Const",
    "Cost",
    "DictOf",
    "Each",
    "EffectUse",
    "EvaluationError",
    "Expr",
    "Extract",
    "Finding",
    "Format",
    "Function",
    "Get",
    "ImportedTasks",
    "Index",
    "Lambda",
    "Limits",
    "ListOf",
    "Logic",
    "Negative",
    "Not",
    "Parsed",
    "Plan",
    "Ref",
    "Report",
    "Scope",
    "Shown",
    "Slice",
    "Step",
    "TupleOf",
    "Update",
    "Variable",
    "When",
    "check",
    "check_step",
    "children",
    "compile_expr",
    "evaluate",
    "export_tasks",
    "free_names",
    "import_tasks",
    "items_to_go_over",
    "load_plan",
    "parse",
    "plan_schema",
    "print_plan",
    "type_of",
    "unpacked",
    "updated",
    "walk",
]
