"""The agent: plan a request, check and prove the plan, run it.

A request or a plan comes in; out come a `Planned` (intent, plan, report, proof) and, when it runs, the outcome. `Agent`
combines the other rooms and decides nothing itself. `check_plan` is the one check before every run, also without an
agent.
"""

from bicameral.agent._agent import Agent as Agent
from bicameral.agent._automatic_rounds import (
    FirstLook as FirstLook,
    outcome_of_rounds as outcome_of_rounds,
    plan_or_look as plan_or_look,
    rounds_led_to_nothing as rounds_led_to_nothing,
)
from bicameral.agent._chat_history import ChatHistory as ChatHistory, ChatTurn as ChatTurn
from bicameral.agent._continuation import EarlierResult as EarlierResult
from bicameral.agent._conversation import (
    UnderstoodTurn as UnderstoodTurn,
    shorten as shorten,
    understand_turn as understand_turn,
)
from bicameral.agent._escalation import Planned as Planned
from bicameral.agent._material import (
    MATERIAL_SUFFIXES as MATERIAL_SUFFIXES,
    MAX_MATERIAL as MAX_MATERIAL,
    Material as Material,
    assumed_start as assumed_start,
    input_variables as input_variables,
)
from bicameral.agent._plan_preview import CallPreview as CallPreview
from bicameral.agent._preparation import prepare_models as prepare_models
from bicameral.agent._requests import (
    Endorsement as Endorsement,
    Endorser as Endorser,
    endorse_text as endorse_text,
    endorsement_for as endorsement_for,
    endorsement_of_value as endorsement_of_value,
)
from bicameral.agent._run_events import RunEvent as RunEvent, StatementWritten as StatementWritten
from bicameral.agent._sync import SyncAgent as SyncAgent
from bicameral.agent._typed_output import TypedOutcome as TypedOutcome
from bicameral.agent._wiring import WorstCase as WorstCase
from bicameral.runs import Checked as Checked, check_plan as check_plan
