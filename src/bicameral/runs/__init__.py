"""Runs: a checked plan becomes an answer, and everything that happened is written down.

A plan and a registry come in; out comes `Finished`, `Failed` or `Stopped`. Independent steps run side by side, effects
keep their order, and each effect is in the journal before it happens. A recorded run can be replayed; one that waits
for a person (`Waiting`), was cut off (`Interrupted`) or lost its process is resumed from its record.
"""

from bicameral.journal import Erased, Event, Journal, RunSummary, open_journal_at

from ._approvals import Answers, Approver, NeedsApproval, PendingCall, Question, Untrusted, shown_hash
from ._attempt import Leaving, Work
from ._caps import Cap, CapMeter, CapReached, Caps
from ._checked import Checked, check_plan
from ._door import Door
from ._engine import Engine
from ._grants import Grant, Grants
from ._hands import Asker, Hands, LiveHands
from ._judge import Judge, Judged, PolicyJudge
from ._note import shade_json
from ._outcome import (
    EffectDone,
    Failed,
    Finished,
    Interrupted,
    Observer,
    Progress,
    RunOutcome,
    Stopped,
    Waiting,
)
from ._recorded import RecordedHands, recorded_error
from ._replay import Replayed, replay, replay_work
from ._resume import resume_plan
from ._resuming import ResumingHands
from ._run import new_run_id, run_plan, run_work
from ._start import Start
from ._suspend import PendingAsk, Suspend
from ._usage import RunAlert, RunUsage

__all__ = [
    "Answers",
    "Approver",
    "Asker",
    "Cap",
    "CapMeter",
    "CapReached",
    "Caps",
    "Checked",
    "Door",
    "EffectDone",
    "Engine",
    "Erased",
    "Event",
    "Failed",
    "Finished",
    "Grant",
    "Grants",
    "Hands",
    "Interrupted",
    "Journal",
    "Judge",
    "Judged",
    "Leaving",
    "LiveHands",
    "NeedsApproval",
    "Observer",
    "PendingAsk",
    "PendingCall",
    "PolicyJudge",
    "Progress",
    "Question",
    "RecordedHands",
    "Replayed",
    "ResumingHands",
    "RunAlert",
    "RunOutcome",
    "RunSummary",
    "RunUsage",
    "Start",
    "Stopped",
    "Suspend",
    "Untrusted",
    "Waiting",
    "Work",
    "check_plan",
    "new_run_id",
    "open_journal_at",
    "recorded_error",
    "replay",
    "replay_work",
    "resume_plan",
    "run_plan",
    "run_work",
    "shade_json",
    "shown_hash",
]
