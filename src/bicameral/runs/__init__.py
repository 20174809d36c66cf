"""Runs: a checked plan becomes an answer, and everything that happened is written down.

A plan and a registry come in; out comes `Finished`, `Failed` or `Stopped`. Independent steps run side by side, effects
keep their order, and each effect is in the journal before it happens. A recorded run can be replayed; one that waits
for a person (`Waiting`), was cut off (`Interrupted`) or lost its process is resumed from its record.
"""

from bicameral.journal import (
    Erasure as Erasure,
    Event as Event,
    Journal as Journal,
    RunSummary as RunSummary,
    open_journal_at as open_journal_at,
)
from bicameral.runs._approvals import (
    Answers as Answers,
    ApprovalQuestion as ApprovalQuestion,
    ApprovalRequired as ApprovalRequired,
    ApproveFunction as ApproveFunction,
    Approver as Approver,
    FunctionApprover as FunctionApprover,
    PendingAsk as PendingAsk,
    PendingCall as PendingCall,
    Suspend as Suspend,
    UntrustedPart as UntrustedPart,
    approver_from as approver_from,
    shown_hash as shown_hash,
)
from bicameral.runs._call_gate import CallGate as CallGate, CallPath as CallPath
from bicameral.runs._call_policy import (
    ActionableText as ActionableText,
    CallDecision as CallDecision,
    Decider as Decider,
    Grant as Grant,
    Grants as Grants,
    PolicyDecider as PolicyDecider,
    StepLabels as StepLabels,
    label_tree_json as label_tree_json,
)
from bicameral.runs._call_text import CallPreview as CallPreview, calls_text as calls_text
from bicameral.runs._change_preview import (
    ChangePreview as ChangePreview,
    can_preview as can_preview,
    change_preview as change_preview,
    preview_call as preview_call,
    read_preview as read_preview,
)
from bicameral.runs._changes import public_event as public_event
from bicameral.runs._citations import Citation as Citation, CitationCheck as CitationCheck, CitationLog as CitationLog
from bicameral.runs._diffs import FileDiff as FileDiff
from bicameral.runs._doubts import (
    DOUBT_CODES as DOUBT_CODES,
    MAX_DOUBTS as MAX_DOUBTS,
    Doubt as Doubt,
    DoubtCode as DoubtCode,
    SelectionLog as SelectionLog,
    find_resting_steps as find_resting_steps,
)
from bicameral.runs._effect_execution import (
    CallAttempts as CallAttempts,
    interrupt_grace as interrupt_grace,
    use_call_attempts as use_call_attempts,
)
from bicameral.runs._effects import (
    TRANSIENT_CODES as TRANSIENT_CODES,
    Asker as Asker,
    EffectHandler as EffectHandler,
    LiveEffectHandler as LiveEffectHandler,
    RunServices as RunServices,
)
from bicameral.runs._endings import (
    Ending as Ending,
    ending_of as ending_of,
    ending_of_code as ending_of_code,
    ending_of_error as ending_of_error,
)
from bicameral.runs._engine import PlanEngine as PlanEngine
from bicameral.runs._inputs import (
    CheckBasis as CheckBasis,
    Checked as Checked,
    StartState as StartState,
    check_plan as check_plan,
    recheck as recheck,
)
from bicameral.runs._model_calls import (
    AskModel as AskModel,
    CutOff as CutOff,
    ModelAnswer as ModelAnswer,
    cut_off_as_recorded as cut_off_as_recorded,
    is_cut_off as is_cut_off,
    recorded_error as recorded_error,
    wait_if_cut_off as wait_if_cut_off,
)
from bicameral.runs._observability import EventWriter as EventWriter
from bicameral.runs._outcome import (
    EffectDone as EffectDone,
    Failed as Failed,
    Finished as Finished,
    Interrupted as Interrupted,
    Observer as Observer,
    RunAlert as RunAlert,
    RunOutcome as RunOutcome,
    RunUsage as RunUsage,
    StepProgress as StepProgress,
    Stopped as Stopped,
    TypedFinished as TypedFinished,
    Waiting as Waiting,
)
from bicameral.runs._policy_cases import (
    TriedArgument as TriedArgument,
    TriedCall as TriedCall,
    try_call as try_call,
)
from bicameral.runs._replacing import REPLACE_RULE as REPLACE_RULE, ReplaceRule as ReplaceRule
from bicameral.runs._replay import Replayed as Replayed, replay as replay, replay_workload as replay_workload
from bicameral.runs._resume import (
    previous_attempts as previous_attempts,
    resume_plan as resume_plan,
    resume_workload as resume_workload,
)
from bicameral.runs._run import (
    ENGINE_VERSION as ENGINE_VERSION,
    RESUMABLE as RESUMABLE,
    PreviousAttempts as PreviousAttempts,
    ShouldLeave as ShouldLeave,
    Workload as Workload,
    new_run_id as new_run_id,
    run_plan as run_plan,
    run_workload as run_workload,
)
from bicameral.runs._run_parts import PartOfRun as PartOfRun, RunPart as RunPart
from bicameral.runs._run_record import (
    RecordedEffectHandler as RecordedEffectHandler,
    RunRecord as RunRecord,
    read_run_record as read_run_record,
    recorded_request as recorded_request,
)
from bicameral.runs._typed_replies import (
    parse_typed_reply as parse_typed_reply,
    typed_reply_hint as typed_reply_hint,
)
from bicameral.runs._undo import (
    Conflict as Conflict,
    LastingEffect as LastingEffect,
    Restoration as Restoration,
    Undo as Undo,
    apply_undo as apply_undo,
    plan_undo as plan_undo,
    undo_record as undo_record,
)
