"""Who decides about calls in a run: policy, or in a replay the record of what it decided."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from bicameral.decisions import Allowed, Ask, CallFacts, Decision, Denied, Mode
from bicameral.policy import Depends

from ._grants import Grants

if TYPE_CHECKING:
    from bicameral.policy import Policy


@dataclass(frozen=True, slots=True)
class Judged:
    """A decision; `endorsed` are the arguments whose values a person had granted before, where that made it so.

    `refused_ahead`: it would have been allowed, had not a person said no to this call before. `permitted`: it was
    asked about, and made on an earlier yes to the same call; only records of earlier versions hold that.
    """

    decision: Decision
    endorsed: tuple[str, ...] = ()
    refused_ahead: bool = False
    permitted: bool = False


class Judge(Protocol):
    """Decides about every call of a run."""

    mode: Mode
    fingerprint: str
    judges_pure: bool
    """Whether calls of tools that neither touch nor tell anything are to be decided about, too."""

    def judge(self, step: str, facts: CallFacts, values: Mapping[str, Any], grants: Grants) -> Judged: ...

    def allows(self, facts: CallFacts) -> bool:
        """Whether a call with these facts would be made without a question."""
        ...


class PolicyJudge:
    """Policy decides, with what a person has endorsed in this run; `mode` is the policy's own unless it is given."""

    def __init__(self, policy: Policy, mode: Mode | None = None) -> None:
        self.mode: Mode = mode or policy.mode
        self.fingerprint = policy.fingerprint
        # The defaults never stop such a call; a user's own policy may.
        self.judges_pure = not all(rule.default for rule in policy.rules)
        self._decide = policy.decide

    def judge(self, step: str, facts: CallFacts, values: Mapping[str, Any], grants: Grants) -> Judged:
        decision = self._decide(facts)
        if isinstance(decision, Depends):
            # Nobody can say yes to a call of which not all is known.
            return Judged(Denied(decision.question, decision.rules))
        if isinstance(decision, Ask) and (trusting := grants.applied(facts, values)) is not None:
            again = self._decide(trusting[0])
            if isinstance(again, Allowed):
                return Judged(again, trusting[1])
        return Judged(decision)

    def allows(self, facts: CallFacts) -> bool:
        return isinstance(self._decide(facts), Allowed)


class RecordedJudge:
    """Decides as it was decided in the run that is replayed."""

    judges_pure = True

    def __init__(
        self,
        mode: Mode,
        fingerprint: str,
        decisions: Mapping[str, dict[str, Any]],
        permitted: frozenset[str] = frozenset(),
    ) -> None:
        self.mode: Mode = mode
        self.fingerprint = fingerprint
        self._decisions = decisions
        self._permitted = permitted

    def judge(self, step: str, facts: CallFacts, values: Mapping[str, Any], grants: Grants) -> Judged:
        # The run ended before this call was begun: nothing is recorded of it, and nothing can be done with it here.
        found = self._decisions.get(step, {"said": "allowed"})
        rules = tuple(found.get("rules", ()))
        match found.get("said"):
            case "allowed":
                return Judged(Allowed(), tuple(found.get("endorsed", ())))
            case "asked":
                asked, refused = Ask(str(found.get("why", "")), rules), bool(found.get("refused_ahead"))
                return Judged(asked, refused_ahead=refused, permitted=step in self._permitted)
            case _:
                return Judged(Denied(str(found.get("why", "")), rules))

    def allows(self, facts: CallFacts) -> bool:
        return False


class HeedingJudge(PolicyJudge):
    """Policy decides anew in a replay, and calls that a person had refused ahead in the run are refused again.

    What an earlier version let through on an earlier yes, or on an endorsed value, is let through again.
    """

    def __init__(
        self, policy: Policy, decisions: Mapping[str, dict[str, Any]], permitted: frozenset[str] = frozenset()
    ) -> None:
        super().__init__(policy)
        self._recorded = RecordedJudge(self.mode, self.fingerprint, decisions, permitted)

    def judge(self, step: str, facts: CallFacts, values: Mapping[str, Any], grants: Grants) -> Judged:
        judged = super().judge(step, facts, values, grants)
        recorded = self._recorded.judge(step, facts, values, grants)
        match judged.decision:
            case Allowed() if recorded.refused_ahead:
                return recorded
            case Ask() if recorded.permitted or recorded.endorsed:
                return recorded
            case _:
                return judged


def decision_json(judged: Judged, judge: Judge) -> dict[str, Any]:
    """A decision as the journal holds it."""
    match judged.decision:
        case Allowed():
            found: dict[str, Any] = {"said": "allowed", "rules": []}
        case Ask(question=why, rules=rules):
            found = {"said": "asked", "rules": list(rules), "why": why}
        case Denied(reason=why, rules=rules):
            found = {"said": "denied", "rules": list(rules), "why": why}
    if judged.endorsed:
        found["endorsed"] = list(judged.endorsed)
    if judged.refused_ahead:
        found["refused_ahead"] = True
    return found | {"policy": judge.fingerprint, "mode": judge.mode}
