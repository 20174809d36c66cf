"""The agent: say it, see the plan, have it checked and proved, run it.

A request or a plan comes in; out come a `Planned` (intent, plan, report, proof) and, when it runs, how the run ended.
`Agent` puts the other rooms together and decides nothing itself. `check_plan` is the one check that stands before every
run, also for those who have no agent.
"""

from bicameral.runs import Checked, check_plan

from ._agent import Agent
from ._follow import Endorsement, Endorser, endorsed, endorsement, to_endorse
from ._planned import Planned
from ._spending import Worst
from ._sync import SyncAgent

__all__ = [
    "Agent",
    "Checked",
    "Endorsement",
    "Endorser",
    "Planned",
    "SyncAgent",
    "Worst",
    "check_plan",
    "endorsed",
    "endorsement",
    "to_endorse",
]
