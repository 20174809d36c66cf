"""The linter: checks every rule of the catalogue on a stack.

In comes a `Stack`; out comes a `LintReport` of findings, each with its rule, place, reason and fix. Several rules that
report the same problem make one finding. A rule that needs an undeclared fact reports that in a note.
"""

from bicameral.catalog.lint._linter import lint as lint, rules_for_stack as rules_for_stack
from bicameral.catalog.lint._problems import to_sarif as to_sarif
from bicameral.catalog.lint._rules import (
    RULE_FAMILIES as RULE_FAMILIES,
    SEVERITIES as SEVERITIES,
    LintFinding as LintFinding,
    LintReport as LintReport,
    LintRule as LintRule,
    LintSeverity as LintSeverity,
    RuleCheck as RuleCheck,
    RuleFamily as RuleFamily,
    rules as rules,
)
