"""Plans: the only thing that runs, and everything one can know about a plan before it does.

Text in a small subset of Python comes in by `parse`, JSON by `load_plan`; out goes a `Plan` that `print_plan` writes
back as text. `check` says what is wrong with a plan, what it does to the world and what it costs at worst, and
`compile_expr` gives the value of its expressions: pure, total, from a closed library of functions. `prove` says what
policy will say of each call, by the labels of everything the plan handles; the functions beside it (`shade_of`,
`after_call`, …) give a run the same labels along the way it takes. Nothing here calls a tool or a model.
"""

from ._bounds import RUN_WORK, RunWork, flat_cost
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
from ._flow import compile_shade, shade_of
from ._flow_steps import (
    after_ask,
    after_branch,
    after_call,
    after_extract,
    after_update,
    branch_names,
    call_facts,
    given_label,
    is_bounded,
    may_answer,
    pc_after,
    static_path,
    turn_names,
    under,
    unknown_call,
)
from ._flow_walk import PureAfter, after_pure, is_pure
from ._flow_written import found_again, readers_after_call, written, written_or_not
from ._function import Function
from ._library import FUNCTIONS, METHODS
from ._load import load_plan
from ._operators import items_to_go_over, unpacked, updated
from ._parse import Parsed, parse
from ._plan import Answer, Ask, Call, Compute, Each, Extract, Plan, Step, Update, When, walk
from ._print import print_plan
from ._prove import CallProof, Conditional, Proof, Proved, Refused, Verdict, prove
from ._rewrite import rewrite_expr, rewrite_steps
from ._schema import plan_schema
from ._scope import Scope, Variable
from ._steps import check_step
from ._tasks import ImportedTasks, export_tasks, import_tasks
from ._typing import type_of
from ._whole_values import Assembled, assembled_values, directing_texts

__all__ = [
    "FUNCTIONS",
    "METHODS",
    "RUN_CODES",
    "RUN_WORK",
    "Answer",
    "Apply",
    "Arithmetic",
    "Ask",
    "Assembled",
    "Bound",
    "Call",
    "CallProof",
    "Choose",
    "Clause",
    "Compare",
    "Comprehension",
    "Compute",
    "Conditional",
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
    "Proof",
    "Proved",
    "PureAfter",
    "Ref",
    "Refused",
    "Report",
    "RunWork",
    "Scope",
    "Shown",
    "Slice",
    "Step",
    "TupleOf",
    "Update",
    "Variable",
    "Verdict",
    "When",
    "after_ask",
    "after_branch",
    "after_call",
    "after_extract",
    "after_pure",
    "after_update",
    "assembled_values",
    "branch_names",
    "call_facts",
    "check",
    "check_step",
    "children",
    "compile_expr",
    "compile_shade",
    "directing_texts",
    "evaluate",
    "export_tasks",
    "flat_cost",
    "found_again",
    "free_names",
    "given_label",
    "import_tasks",
    "is_bounded",
    "is_pure",
    "items_to_go_over",
    "load_plan",
    "may_answer",
    "parse",
    "pc_after",
    "plan_schema",
    "print_plan",
    "prove",
    "readers_after_call",
    "rewrite_expr",
    "rewrite_steps",
    "shade_of",
    "static_path",
    "turn_names",
    "type_of",
    "under",
    "unknown_call",
    "unpacked",
    "updated",
    "walk",
    "written",
    "written_or_not",
]
