"""Runs: a checked plan becomes an answer, and everything that happened is written down.

A plan and a registry come in; out comes `Finished`, `Failed` or `Stopped`. Independent steps run side by side, effects
keep their order, and each effect is in the journal before it happens. A recorded run can be replayed.
"""

from ._approvals import Answers, Approver, NeedsApproval, PendingCall, Question, Untrusted
from ._checked import Checked, check_plan
from ._door import Door
from ._engine import Engine
from ._hands import Asker, Hands, LiveHands
from ._journal import Event, Journal, RunSummary
from ._judge import Endorsed, Judge, Judged, PolicyJudge
from ._note import shade_json
from ._outcome import EffectDone, Failed, Finished, Observer, Progress, RunOutcome, Stopped
from ._replay import RecordedHands, Replayed, recorded_error, replay, replay_work
from ._run import Work, new_run_id, run_plan, run_work
from ._start import Start
from ._usage import RunAlert, RunUsage

__all__ = [
    "Answers",
    "Approver",
    "Asker",
    "Checked",
    "Door",
    "EffectDone",
    "Endorsed",
    "Engine",
    "Event",
    "Failed",
    "Finished",
    "Hands",
    "Journal",
    "Judge",
    "Judged",
    "LiveHands",
    "NeedsApproval",
    "Observer",
    "PendingCall",
    "PolicyJudge",
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
    "Work",
    "check_plan",
    "new_run_id",
    "recorded_error",
    "replay",
    "replay_work",
    "run_plan",
    "run_work",
    "shade_json",
]
