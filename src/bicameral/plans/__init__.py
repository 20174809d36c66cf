"""Plans: the only program that runs, and everything that can be known about one before it does.

`parse` reads a plan from text in a small subset of Python, `load_plan` from JSON; `print_plan` writes it back as text.
`check` reports mistakes, effects and the worst-case cost. `compile_expr` evaluates expressions: pure and total, with a
closed library of functions. `prove` says what policy will decide about each call, from the labels of everything the
plan handles; the functions beside it (`labels_of`, `labels_after_call`, …) give a run the same labels on the path it
takes. Nothing here calls a tool or a model.
"""

from bicameral.plans._expressions import (
    Apply as Apply,
    Arithmetic as Arithmetic,
    BoundTo as BoundTo,
    Choose as Choose,
    Clause as Clause,
    Compare as Compare,
    Comprehension as Comprehension,
    Const as Const,
    DictOf as DictOf,
    Expr as Expr,
    Format as Format,
    Get as Get,
    Index as Index,
    Lambda as Lambda,
    ListOf as ListOf,
    Logic as Logic,
    Negative as Negative,
    Not as Not,
    Ref as Ref,
    Reference as Reference,
    Shown as Shown,
    Slice as Slice,
    TupleOf as TupleOf,
    children as children,
    free_names as free_names,
    map_children as map_children,
)
from bicameral.plans._plan import (
    Answer as Answer,
    Ask as Ask,
    Call as Call,
    Compute as Compute,
    Each as Each,
    Extract as Extract,
    Plan as Plan,
    Step as Step,
    Update as Update,
    When as When,
    drop_bindings as drop_bindings,
    insert_steps as insert_steps,
    load_plan as load_plan,
    replace_step as replace_step,
    rewrite_steps as rewrite_steps,
    step_expressions as step_expressions,
    step_time_limits as step_time_limits,
    walk as walk,
)
from bicameral.plans._type_rules import LibraryFunction as LibraryFunction, is_compatible as is_compatible
from bicameral.plans.check._cell_calls import unbind_cells as unbind_cells
from bicameral.plans.check._cells import bind_cells as bind_cells
from bicameral.plans.check._checker import (
    check as check,
    check_step as check_step,
    literal_arguments as literal_arguments,
)
from bicameral.plans.check._inference import ReferenceSite as ReferenceSite, type_of as type_of
from bicameral.plans.check._references import (
    bind_references as bind_references,
    open_references as open_references,
    plan_references as plan_references,
    reference_sites as reference_sites,
)
from bicameral.plans.check._report import (
    CallBound as CallBound,
    EffectUse as EffectUse,
    Finding as Finding,
    PlanCost as PlanCost,
    PlanLimits as PlanLimits,
    Report as Report,
    assigned_names as assigned_names,
)
from bicameral.plans.check._scope import Scope as Scope, Variable as Variable
from bicameral.plans.evaluate._bounds import (
    RUN_CODES as RUN_CODES,
    RUN_WORK_KEY as RUN_WORK_KEY,
    CellCount as CellCount,
    EvaluationError as EvaluationError,
    RunWork as RunWork,
    SelectionCount as SelectionCount,
    flat_cost as flat_cost,
)
from bicameral.plans.evaluate._compiler import (
    compile_by_columns as compile_by_columns,
    compile_expr as compile_expr,
    evaluate_expr as evaluate_expr,
)
from bicameral.plans.evaluate._library import FUNCTIONS as FUNCTIONS, METHODS as METHODS
from bicameral.plans.evaluate._operations import (
    apply_update as apply_update,
    iterable_items as iterable_items,
    unpack_item as unpack_item,
)
from bicameral.plans.labels._assembled import (
    AssembledValues as AssembledValues,
    assembled_values as assembled_values,
    directing_arguments as directing_arguments,
)
from bicameral.plans.labels._proof import (
    CallProof as CallProof,
    Conditional as Conditional,
    Proof as Proof,
    Proved as Proved,
    Refused as Refused,
    Verdict as Verdict,
    prove as prove,
)
from bicameral.plans.labels._storage import (
    places_after_branch as places_after_branch,
    places_after_call as places_after_call,
    readers_after_call as readers_after_call,
    recall_stored_labels as recall_stored_labels,
)
from bicameral.plans.labels._transfer import (
    author_label as author_label,
    branch_names as branch_names,
    call_facts as call_facts,
    can_answer as can_answer,
    compile_labels as compile_labels,
    labels_after_ask as labels_after_ask,
    labels_after_call as labels_after_call,
    labels_after_extract as labels_after_extract,
    labels_after_lookup as labels_after_lookup,
    labels_after_update as labels_after_update,
    labels_of as labels_of,
    pc_after as pc_after,
    pc_inside as pc_inside,
    static_path as static_path,
    turn_labels as turn_labels,
)
from bicameral.plans.labels._walker import (
    LocalStepLabels as LocalStepLabels,
    labels_after_local_step as labels_after_local_step,
)
from bicameral.plans.syntax._parser import ParsedPlan as ParsedPlan, parse as parse
from bicameral.plans.syntax._rendering import print_plan as print_plan, render_expr as render_expr
from bicameral.plans.syntax._task_export import (
    ExportError as ExportError,
    ExportGap as ExportGap,
    export_tasks as export_tasks,
)
from bicameral.plans.syntax._tasks import (
    INPUT_LINES as INPUT_LINES,
    INPUT_TEXT as INPUT_TEXT,
    ImportedTasks as ImportedTasks,
    import_tasks as import_tasks,
    tasks_schema as tasks_schema,
)
