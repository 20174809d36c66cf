"""Runs: a checked plan becomes an answer, and everything that happened is written down.

A plan and a registry come in; out comes `Finished`, `Failed` or `Stopped`. Independent steps run side by side, effects
keep their order, and each effect is in the journal before it happens. A recorded run can be replayed; one that waits
for a person (`Waiting`), was cut off (`Interrupted`) or lost its process is resumed from its record.
"""

from bicameral.journal import Erasure, Event, Journal, RunSummary, open_journal_at
from bicameral.runs._approvals import (
    Answers,
    ApprovalQuestion,
    ApprovalRequired,
    Approver,
    PendingAsk,
    PendingCall,
    Suspend,
    UntrustedPart,
    shown_hash,
)
from bicameral.runs._call_gate import CallGate
from bicameral.runs._call_policy import CallDecision, Decider, Grant, Grants, PolicyDecider, label_tree_json
from bicameral.runs._effects import Asker, LiveEffectHandler, RunServices
from bicameral.runs._engine import PlanEngine
from bicameral.runs._inputs import CheckBasis, Checked, StartState, check_plan, recheck
from bicameral.runs._outcome import (
    EffectDone,
    Failed,
    Finished,
    Interrupted,
    Observer,
    RunAlert,
    RunOutcome,
    RunUsage,
    StepProgress,
    Stopped,
    Waiting,
)
from bicameral.runs._replay import RecordedEffectHandler, Replayed, recorded_error, replay, replay_workload
from bicameral.runs._resume import resume_plan
from bicameral.runs._run import ShouldLeave, Workload, new_run_id, run_plan, run_workload

__all__ = [
    "Answers",
    "ApprovalQuestion",
    "ApprovalRequired",
    "Approver",
    "Asker",
    "CallDecision",
    "CallGate",
    "CheckBasis",
    "Checked",
    "Decider",
    "EffectDone",
    "Erasure",
    "Event",
    "Failed",
    "Finished",
    "Grant",
    "Grants",
    "Interrupted",
    "Journal",
    "LiveEffectHandler",
    "Observer",
    "PendingAsk",
    "PendingCall",
    "PlanEngine",
    "PolicyDecider",
    "RecordedEffectHandler",
    "Replayed",
    "RunAlert",
    "RunOutcome",
    "RunServices",
    "RunSummary",
    "RunUsage",
    "ShouldLeave",
    "StartState",
    "StepProgress",
    "Stopped",
    "Suspend",
    "UntrustedPart",
    "Waiting",
    "Workload",
    "check_plan",
    "label_tree_json",
    "new_run_id",
    "open_journal_at",
    "recheck",
    "recorded_error",
    "replay",
    "replay_workload",
    "resume_plan",
    "run_plan",
    "run_workload",
    "shown_hash",
]
