"""The advisor: measured facts in, the smallest stack that is enough out.

Facts have names and units (`questions()`), and each may be left open. Rules in `data/flows.yaml` choose patterns by
them; what the chosen cannot do without comes with them. An `Advice` says of each pattern which rule chose it, what was
ruled out by which fact, what is not known and what would change if it were, and in which order to build.
"""

from bicameral.catalog.advice._advice import Advice, advise, broken_rules
from bicameral.catalog.advice._facts import FactQuestion, TaskFacts, facts_from_mapping, parse_fact, questions
from bicameral.catalog.advice._selection import (
    Choice,
    OpenQuestion,
    PatternChange,
    PatternDecision,
    RejectedPattern,
    rulebook,
)

__all__ = [
    "Advice",
    "Choice",
    "FactQuestion",
    "OpenQuestion",
    "PatternChange",
    "PatternDecision",
    "RejectedPattern",
    "TaskFacts",
    "advise",
    "broken_rules",
    "facts_from_mapping",
    "parse_fact",
    "questions",
    "rulebook",
]
