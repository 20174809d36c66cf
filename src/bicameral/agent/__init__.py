"""The agent: plan a request, check and prove the plan, run it.

A request or a plan comes in; out come a `Planned` (intent, plan, report, proof) and, when it runs, the outcome. `Agent`
combines the other rooms and decides nothing itself. `check_plan` is the one check before every run, also without an
agent.
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
