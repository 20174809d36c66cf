"""The advisor: facts about a task in, the smallest sufficient stack out.

Facts have names and units (`questions()`), and each may be unknown. Rules in `data/flows.yaml` choose patterns by them,
and the patterns that those need are added. An `Advice` says which rule chose each pattern, what was ruled out by which
fact, what is not known and what it would change, and in which order to build.
"""

from bicameral.catalog.advice._advice import Advice as Advice, advise as advise, broken_rules as broken_rules
from bicameral.catalog.advice._facts import (
    FactQuestion as FactQuestion,
    TaskFacts as TaskFacts,
    facts_from_mapping as facts_from_mapping,
    parse_fact as parse_fact,
    questions as questions,
)
from bicameral.catalog.advice._selection import (
    Choice as Choice,
    OpenQuestion as OpenQuestion,
    PatternChange as PatternChange,
    PatternDecision as PatternDecision,
    RejectedPattern as RejectedPattern,
    rulebook as rulebook,
)
