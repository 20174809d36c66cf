"""The kernel of patterns: models, tools, bounds and labels as a pattern gets them, and nothing beside them.

A pattern is given a `Stage`; values come and go as `Labelled`, which only the stage opens, and what it has opened is
the label of everything it does from then on. So no pattern can step outside the law, whatever it does.
"""

from bicameral.labels import Labelled, from_user, labelled, own_value, said, strangers

from ._examples import Example, no_tools
from ._guards import CallGuard, guard_failed
from ._labelled import Part, changed, text, together
from ._outcome import Answered, Exhausted, GaveUp, Outcome
from ._pattern import Pattern
from ._perform import perform
from ._roles import Role, Tier
from ._stage import Stage
from ._talk import Talk
from ._tokens import about_tokens, cut_to_tokens
from ._trace import UNKNOWN, Asked, Called, Moment, Noted, Trace

__all__ = [
    "UNKNOWN",
    "Answered",
    "Asked",
    "CallGuard",
    "Called",
    "Example",
    "Exhausted",
    "GaveUp",
    "Labelled",
    "Moment",
    "Noted",
    "Outcome",
    "Part",
    "Pattern",
    "Role",
    "Stage",
    "Talk",
    "Tier",
    "Trace",
    "about_tokens",
    "changed",
    "cut_to_tokens",
    "from_user",
    "guard_failed",
    "labelled",
    "no_tools",
    "own_value",
    "perform",
    "said",
    "strangers",
    "text",
    "together",
]
