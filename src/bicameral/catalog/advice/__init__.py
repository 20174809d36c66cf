"""The advisor: facts about a task in, the smallest sufficient stack out.

Facts have names and units (`questions()`), and each may be unknown. Rules in `data/flows.yaml` choose patterns by them,
and the patterns that those need are added. An `Advice` says which rule chose each pattern, what was ruled out by which
fact, what is not known and what it would change, and in which order to build.
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
