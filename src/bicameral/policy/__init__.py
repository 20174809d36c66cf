"""Policy: whether a call may be made, decided by Cedar on facts about the call and never on its values.

The input is `CallFacts`: the tool, the purposes of its arguments, where their values came from and who may read them.
The result is `Allowed`, `Denied` with a reason, or `Ask` with a question. The defaults follow from tool declarations
alone; a user's own `.cedar` files may forbid more, and can override a default only by its name. Every failure is a
denial. `audit_registry` tests whether a set of tools could leak private data, and `read_cases` and `run_case` test a
policy. A `Specification` has rules of its own for one agent or role: default deny, duties before a call, and waivers
that end; `SpecificationEngine` judges calls by it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from bicameral.policy._decisions import (
    Allowed as Allowed,
    ArgumentFacts as ArgumentFacts,
    Ask as Ask,
    CallFacts as CallFacts,
    Decide as Decide,
    Decision as Decision,
    Denied as Denied,
    Depends as Depends,
    Effect as Effect,
    Mode as Mode,
    Purpose as Purpose,
)

if TYPE_CHECKING:
    from bicameral.policy._audit import (
        AUDIT_LEGS as AUDIT_LEGS,
        AuditLeg as AuditLeg,
        AuditReport as AuditReport,
        AuditTrial as AuditTrial,
        OutboundPath as OutboundPath,
        audit_registry as audit_registry,
        brings_leg as brings_leg,
        sample_call as sample_call,
    )
    from bicameral.policy._cases import (
        CaseResult as CaseResult,
        PolicyCase as PolicyCase,
        case_facts as case_facts,
        case_toml as case_toml,
        read_cases as read_cases,
        run_case as run_case,
    )
    from bicameral.policy._policy import Policy as Policy
    from bicameral.policy._rules import PolicyRule as PolicyRule
    from bicameral.policy._specification import (
        Duty as Duty,
        Specification as Specification,
        SpecificationEngine as SpecificationEngine,
        Verdict as Verdict,
        Waiver as Waiver,
        read_specification as read_specification,
    )


# Cedar is loaded at the first use of a policy, so that `import bicameral` stays fast.
_LATER = {
    "_audit": "AUDIT_LEGS AuditLeg AuditReport AuditTrial OutboundPath audit_registry brings_leg sample_call".split(),
    "_cases": ("PolicyCase", "CaseResult", "case_facts", "case_toml", "read_cases", "run_case"),
    "_policy": ("Policy",),
    "_rules": ("PolicyRule",),
    "_specification": "Duty Specification SpecificationEngine Verdict Waiver read_specification".split(),
}


def __getattr__(name: str) -> Any:
    for module, names in _LATER.items():
        if name in names:
            found = globals()[name] = getattr(import_module(f".{module}", __name__), name)
            return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
