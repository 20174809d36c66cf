"""Evaluation: cases with what is right, a run over them, paired comparison, baselines and a gate.

Cases and a subject (a pattern, a role, an agent, an async function) come in; out comes a `Report` with the result of
every case: correct or not, tokens, calls, money and seconds. `compare` says whether one of two subjects is better, or
chance explains the difference. A `Baseline` keeps what was accepted, and `gate` whether a change may ship. Inputs are
labelled and outputs keep their labels. This room knows no pattern: patterns and agents give themselves as a `Subject`.
"""

from bicameral.evaluation._baseline import (
    Baseline as Baseline,
    BaselineCase as BaselineCase,
    Promotion as Promotion,
    baseline_schema as baseline_schema,
)
from bicameral.evaluation._cases import (
    CRITICAL_CATEGORIES as CRITICAL_CATEGORIES,
    Case as Case,
    CaseFacts as CaseFacts,
    Leak as Leak,
    Suite as Suite,
    SuiteFacts as SuiteFacts,
    find_leaks as find_leaks,
    suite_of as suite_of,
)
from bicameral.evaluation._checks import (
    AllOf as AllOf,
    By as By,
    CaseJudge as CaseJudge,
    Check as Check,
    Contains as Contains,
    Equals as Equals,
    Excludes as Excludes,
    Fields as Fields,
    Judged as Judged,
    Near as Near,
    hash_of as hash_of,
    normal_text as normal_text,
)
from bicameral.evaluation._comparison import (
    Comparison as Comparison,
    bootstrap_interval as bootstrap_interval,
    compare as compare,
    compare_reports as compare_reports,
    sign_test as sign_test,
)
from bicameral.evaluation._evaluation import (
    Evaluation as Evaluation,
    Progress as Progress,
    evaluate as evaluate,
    score_value as score_value,
)
from bicameral.evaluation._gate import (
    DEFAULT_TOLERANCE as DEFAULT_TOLERANCE,
    MAX_TOLERANCE as MAX_TOLERANCE,
    CategoryChange as CategoryChange,
    GateFailure as GateFailure,
    GateResult as GateResult,
    gate as gate,
)
from bicameral.evaluation._report import (
    CaseResult as CaseResult,
    CaseUsage as CaseUsage,
    Report as Report,
    Summary as Summary,
    summarise as summarise,
    wilson_interval as wilson_interval,
)
from bicameral.evaluation._subject import (
    Evaluable as Evaluable,
    Subject as Subject,
    function_subject as function_subject,
    plain_subject as plain_subject,
    subject_of as subject_of,
)
from bicameral.evaluation._suite_file import (
    parse_suite as parse_suite,
    read_suite as read_suite,
    suite_schema as suite_schema,
)
