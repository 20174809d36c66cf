"""The agent: say it, see the plan, have it checked and proved, run it.

A request or a plan comes in; out come a `Planned` (intent, plan, report, proof) and, when it runs, how the run ended.
`Agent` puts the other rooms together and decides nothing itself. `check_plan` is the one check that stands before every
run, also for those who have no agent.
"""

from bicameral.agent._agent import Agent, SyncAgent
from bicameral.agent._escalation import Planned
from bicameral.agent._requests import Endorsement, Endorser, endorse_text, endorsement_for, endorsement_of_value
from bicameral.agent._wiring import WorstCase
from bicameral.runs import Checked, check_plan

__all__ = [
    "Agent",
    "Checked",
    "Endorsement",
    "Endorser",
    "Planned",
    "SyncAgent",
    "WorstCase",
    "check_plan",
    "endorse_text",
    "endorsement_for",
    "endorsement_of_value",
]
