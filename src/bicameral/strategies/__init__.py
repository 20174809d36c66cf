"""Strategies: native ReAct, plan-and-execute and SPAR, each phase with a model of its own, under the law of labels.

A request comes in; a conversation with models that may ask for tools goes on until there is an answer; out comes
`Answered`, `Exhausted` or `GaveUp`. The conversation has the join of the labels of all that is in it: once it has read
a stranger's text, the quarantined model goes on with it, and every call it asks for is judged as a stranger's wish.
"""

from ._bounds import BOUNDS, Bound, Bounds, Exhaustion, Meter, Taken
from ._conversation import Audience, Conversation, Notes, Passage, Said, Voices
from ._native_react import native_react
from ._outcome import Answered, Exhausted, GaveUp, Turn, Worked
from ._phases import PHASES, ROLES, STRATEGIES, Params, PhaseName, StrategyName, strategy_named
from ._plan_and_execute import plan_and_execute
from ._repeats import Repeats
from ._replay import is_conversation, replay_conversation
from ._spar import spar
from ._tools import arguments_of, listed, result_text, schemas
from ._work import Careful, Desk, work

__all__ = [
    "BOUNDS",
    "PHASES",
    "ROLES",
    "STRATEGIES",
    "Answered",
    "Audience",
    "Bound",
    "Bounds",
    "Careful",
    "Conversation",
    "Desk",
    "Exhausted",
    "Exhaustion",
    "GaveUp",
    "Meter",
    "Notes",
    "Params",
    "Passage",
    "PhaseName",
    "Repeats",
    "Said",
    "StrategyName",
    "Taken",
    "Turn",
    "Voices",
    "Worked",
    "arguments_of",
    "is_conversation",
    "listed",
    "native_react",
    "plan_and_execute",
    "replay_conversation",
    "result_text",
    "schemas",
    "spar",
    "strategy_named",
    "work",
]
