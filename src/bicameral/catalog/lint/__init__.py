"""The linter: every rule of the catalogue, held against a stack.

In comes a `Stack`; out comes a `Report` of findings, each with its rule, place, reason and fix. What several rules say
of one thing is one finding. A rule that needs a fact which nobody declared says so in a note, and is never silent.
"""

from ._finding import SEVERITIES, Finding, Report, Severity
from ._linter import lint
from ._rules import FAMILIES, Check, Family, Rule, rules
from ._sarif import to_sarif

__all__ = [
    "FAMILIES",
    "SEVERITIES",
    "Check",
    "Family",
    "Finding",
    "Report",
    "Rule",
    "Severity",
    "lint",
    "rules",
    "to_sarif",
]
