"""Replacing files: a person is asked before a model's plan replaces content that was there before the run.

That is no question of trust: the plan may well have been told to write there. But the request named a file to write,
not one to lose. What the request says ("update", "overwrite") and what the run wrote itself is not asked about, and
neither is a plan that a person wrote: it says so itself.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from bicameral.policy import Allowed, Ask, CallFacts, Decision

if TYPE_CHECKING:
    from bicameral.planning import ReplaceScope
    from bicameral.plans import Plan
    from bicameral.tools import Registry

REPLACE_RULE = "replaces-a-file"
"""The name of the rule in decisions and questions."""
_KNOWN = "it would replace what a file holds. Replace it?"
_UNKNOWN = "it would replace what a file holds, if there is one by then. Replace it?"


@dataclass(frozen=True, slots=True)
class ReplaceRule:
    """Asks about calls that replace files.

    Args:
        scope: What the request says may be replaced.
        own: What the run has changed itself; it grows while it runs.
    """

    scope: ReplaceScope
    own: Collection[Path] = ()

    @classmethod
    def for_request(
        cls, request: str | None, plan: Plan | None, registry: Registry, own: Collection[Path] = ()
    ) -> ReplaceRule | None:
        """The rule for what a model does for a request, with a plan or in a conversation; None without a request."""
        if request is None:
            return None
        # Here, since a plan that no model wrote has no request, and planning takes long to load.
        from bicameral.planning import replace_scope

        return cls(replace_scope(request, plan, registry), own)

    def narrow(self, facts: CallFacts) -> CallFacts:
        """The facts with only those replaced files that must be asked about."""
        if not facts.replaces:
            return replace(facts, replaces=()) if facts.replaces is None and self.scope.all_files else facts
        left = tuple(each for each in facts.replaces if Path(each) not in self.own and not self.scope.covers(each))
        return replace(facts, replaces=left)


def narrow_replaced(rule: ReplaceRule | None, facts: CallFacts) -> CallFacts:
    """The facts of a call as its run counts them; without a rule no file is asked about."""
    if rule is None:
        return replace(facts, replaces=()) if facts.replaces != () else facts
    return rule.narrow(facts)


def ask_before_replacing(decision: Decision, facts: CallFacts) -> Decision:
    """The decision on a call; where policy allows it, a question if it replaces files that must be asked about."""
    if facts.replaces == () or not isinstance(decision, Allowed):
        return decision
    return Ask(f"{facts.tool}: {_UNKNOWN if facts.replaces is None else _KNOWN}", (REPLACE_RULE,))
