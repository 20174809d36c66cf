"""Delta: the planner that turns an intent into a checked plan.

An intent and a registry come in; out comes a plan that passes the check (`Compiled`), or an error that says why there
is none. Where the provider knows grammars each statement is decoded under one made from the tools and the variables in
scope, so that a tool or argument that does not exist cannot be written; in every case the check's own words mend it.
`PlanCascade` lets a small model write first and a larger one only where there is a reason to doubt.
"""

from ._against import Mismatch, against_intent, literals
from ._cascade import PlanCascade, Planner
from ._confidence import choices, weakest
from ._delta import Compiled, Delta
from ._doubts import SURE, Doubt, Doubts
from ._neutral_names import NeutralNames
from ._relevance import nearest_tools, relevant_tools
from ._rounds import LOOK, Earlier, source_of
from ._statement_grammar import Opening, statement_grammar

__all__ = [
    "LOOK",
    "SURE",
    "Compiled",
    "Delta",
    "Doubt",
    "Doubts",
    "Earlier",
    "Mismatch",
    "NeutralNames",
    "Opening",
    "PlanCascade",
    "Planner",
    "against_intent",
    "choices",
    "literals",
    "nearest_tools",
    "relevant_tools",
    "source_of",
    "statement_grammar",
    "weakest",
]
