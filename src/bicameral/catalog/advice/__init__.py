"""The advisor: measured facts in, the smallest stack that is enough out.

Facts have names and units (`questions()`), and each may be left open. Rules in `data/flows.yaml` choose patterns by
them; what the chosen cannot do without comes with them. An `Advice` says of each pattern which rule chose it, what was
ruled out by which fact, what is not known and what would change if it were, and in which order to build.
"""

from ._advice import Advice, advise, broken_rules
from ._choosing import Choice, RuledOut
from ._facts import Facts, Question, facts_of, parse_fact, questions
from ._flows import Decision, rulebook
from ._open import Change, Open

__all__ = [
    "Advice",
    "Change",
    "Choice",
    "Decision",
    "Facts",
    "Open",
    "Question",
    "RuledOut",
    "advise",
    "broken_rules",
    "facts_of",
    "parse_fact",
    "questions",
    "rulebook",
]
