"""Policy: whether a call may be made, decided by Cedar on facts about the call and never on its values.

What comes in are `CallFacts`: the tool, what its arguments are for, where their values came from and who may read
them. Out goes `Allowed`, `Denied` with a reason or `Ask` with a question. The defaults follow from tool declarations
alone; a user's own `.cedar` files may forbid more, and lift a default only by its name. What goes wrong is a no.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from bicameral.decisions import Depends

if TYPE_CHECKING:
    from ._cases import Case, Outcome, read_cases, try_case
    from ._policy import Policy
    from ._rules import Rule

__all__ = ["Case", "Depends", "Outcome", "Policy", "Rule", "read_cases", "try_case"]

# Cedar is loaded where somebody asks for a policy, so that `import bicameral` is quick.
_LATER = {
    "_cases": ("Case", "Outcome", "read_cases", "try_case"),
    "_policy": ("Policy",),
    "_rules": ("Rule",),
}


def __getattr__(name: str) -> Any:
    for module, names in _LATER.items():
        if name in names:
            return getattr(import_module(f".{module}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
