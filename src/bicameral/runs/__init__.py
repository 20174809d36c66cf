"""Runs: a checked plan becomes an answer, and everything that happened is written down.

A plan and a registry come in; out comes `Finished`, `Failed` or `Stopped`. Independent steps run side by side, effects
keep their order, and each effect is in the journal before it happens. A recorded run can be replayed.
"""

from ._approvals import Answers, Approver, NeedsApproval, PendingCall, Question, Untrusted
from ._checked import Checked, check_plan
from ._engine import Engine
from ._hands import Asker, Hands, LiveHands
from ._journal import Event, Journal, RunSummary
from ._outcome import EffectDone, Failed, Finished, Observer, Progress, RunOutcome, Stopped
from ._replay import RecordedHands, Replayed, replay
from ._run import new_run_id, run_plan
from ._start import Start
from ._usage import RunAlert, RunUsage

__all__ = [
    "Answers",
    "Approver",
    "Asker",
    "Checked",
    "EffectDone",
    "Engine",
    "Event",
    "Failed",
    "Finished",
    "Hands",
    "Journal",
    "LiveHands",
    "NeedsApproval",
    "Observer",
    "PendingCall",
    "Progress",
    "Question",
    "RecordedHands",
    "Replayed",
    "RunAlert",
    "RunOutcome",
    "RunSummary",
    "RunUsage",
    "Start",
    "Stopped",
    "Untrusted",
    "check_plan",
    "new_run_id",
    "replay",
    "run_plan",
]
