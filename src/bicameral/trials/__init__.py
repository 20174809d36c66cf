"""Trials: whether a model is good enough for a role, on a built-in set of cases.

A model comes in; out comes a `TrialReport` with a verdict per role: `quarantined` (fills typed blanks from texts, some
of which hold orders for it), `delta` (writes plans, judged by what they do in a small world) and `echo` (understands
requests, judged by the fields of the intents). Each role is tried alone, through the same code as in a run.
"""

from bicameral.trials._cases import TRIAL_ROLES as TRIAL_ROLES, TrialRole as TrialRole, cases_of as cases_of
from bicameral.trials._report import (
    CaseReport as CaseReport,
    RoleReport as RoleReport,
    Thresholds as Thresholds,
    TrialReport as TrialReport,
    Verdict as Verdict,
    trial_schema as trial_schema,
)
from bicameral.trials._trial import (
    CaseProgress as CaseProgress,
    ModelTrial as ModelTrial,
    TrialModel as TrialModel,
    Unavailable as Unavailable,
)
