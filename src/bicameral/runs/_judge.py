"""Who decides about calls in a run: policy, or in a replay the record of what it decided."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from bicameral.decisions import Allowed, ArgumentFacts, Ask, CallFacts, Decision, Denied, Mode
from bicameral.journal import dumps
from bicameral.labels import Label, Source, covers, join, join_all
from bicameral.policy import Depends
from bicameral.types import value_to_json

if TYPE_CHECKING:
    from bicameral.policy import Policy


@dataclass(frozen=True, slots=True)
class Judged:
    """A decision; `endorsed` are the arguments whose values a person had said yes to before, where that made it so.

    `refused_ahead`: it would have been allowed, had not a person said no to this call before.
    """

    decision: Decision
    endorsed: tuple[str, ...] = ()
    refused_ahead: bool = False


class Judge(Protocol):
    """Decides about every call of a run."""

    mode: Mode
    fingerprint: str
    judges_pure: bool
    """Whether calls of tools that neither touch nor tell anything are to be decided about, too."""

    def judge(self, step: str, facts: CallFacts, values: Mapping[str, Any], endorsed: Endorsed) -> Judged: ...


class PolicyJudge:
    """Policy decides, with what a person has endorsed in this run; `mode` is the policy's own unless it is given."""

    def __init__(self, policy: Policy, mode: Mode | None = None) -> None:
        self.mode: Mode = mode or policy.mode
        self.fingerprint = policy.fingerprint
        # The defaults never stop such a call; a user's own policy may.
        self.judges_pure = not all(rule.default for rule in policy.rules)
        self._decide = policy.decide

    def judge(self, step: str, facts: CallFacts, values: Mapping[str, Any], endorsed: Endorsed) -> Judged:
        decision = self._decide(facts)
        if isinstance(decision, Depends):
            # Nobody can say yes to a call of which not all is known.
            return Judged(Denied(decision.question, decision.rules))
        if isinstance(decision, Ask) and (trusting := endorsed.applied(facts, values)) is not None:
            again = self._decide(trusting[0])
            if isinstance(again, Allowed):
                return Judged(again, trusting[1])
        return Judged(decision)


class RecordedJudge:
    """Decides as it was decided in the run that is replayed."""

    judges_pure = True

    def __init__(self, mode: Mode, fingerprint: str, decisions: Mapping[str, dict[str, Any]]) -> None:
        self.mode: Mode = mode
        self.fingerprint = fingerprint
        self._decisions = decisions

    def judge(self, step: str, facts: CallFacts, values: Mapping[str, Any], endorsed: Endorsed) -> Judged:
        # The run ended before this call was begun: nothing is recorded of it, and nothing can be done with it here.
        found = self._decisions.get(step, {"said": "allowed"})
        rules = tuple(found.get("rules", ()))
        match found.get("said"):
            case "allowed":
                return Judged(Allowed(), tuple(found.get("endorsed", ())))
            case "asked":
                return Judged(Ask(str(found.get("why", "")), rules), (), bool(found.get("refused_ahead")))
            case _:
                return Judged(Denied(str(found.get("why", "")), rules))


class HeedingJudge(PolicyJudge):
    """Policy decides anew in a replay, and calls that a person had refused ahead in the run are refused again."""

    def __init__(self, policy: Policy, decisions: Mapping[str, dict[str, Any]]) -> None:
        super().__init__(policy)
        self._recorded = RecordedJudge(self.mode, self.fingerprint, decisions)

    def judge(self, step: str, facts: CallFacts, values: Mapping[str, Any], endorsed: Endorsed) -> Judged:
        judged = super().judge(step, facts, values, endorsed)
        recorded = self._recorded.judge(step, facts, values, endorsed)
        return recorded if recorded.refused_ahead and isinstance(judged.decision, Allowed) else judged


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


class Endorsed:
    """Directing values that a person said yes to in this run: for the same argument of the same tool they are his own.

    A yes to a recipient is no yes to whatever might be sent there: it holds for calls in which strangers have no more
    of a hand, and which are no more secret, than the call that was approved.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, str, str], list[Label]] = {}

    def add(self, facts: CallFacts, values: Mapping[str, Any]) -> None:
        for argument in facts.of("directs"):
            if not argument.trusted and argument.name in values:
                self._known.setdefault(_key(facts, argument, values), []).append(_around(facts, argument))

    def applied(self, facts: CallFacts, values: Mapping[str, Any]) -> tuple[CallFacts, tuple[str, ...]] | None:
        """The facts with what was endorsed trusted, and which arguments that are; None where nothing was."""
        if not self._known:
            return None
        names = tuple(
            argument.name
            for argument in facts.of("directs")
            if not argument.trusted and argument.name in values and self._holds(facts, argument, values)
        )
        if not names:
            return None
        source = Source("user", "endorsed", "", facts.step)

        def trusting(argument: ArgumentFacts) -> ArgumentFacts:
            if argument.name not in names:
                return argument
            return replace(argument, label=Label({source}, argument.label.readers))

        return replace(facts, arguments=tuple(map(trusting, facts.arguments))), names

    def _holds(self, facts: CallFacts, argument: ArgumentFacts, values: Mapping[str, Any]) -> bool:
        approved = self._known.get(_key(facts, argument, values), ())
        now = _around(facts, argument)
        return any(covers(each, now) for each in approved)


def _key(facts: CallFacts, argument: ArgumentFacts, values: Mapping[str, Any]) -> tuple[str, str, str]:
    return facts.tool, argument.name, dumps(value_to_json(values[argument.name]))


def _around(facts: CallFacts, argument: ArgumentFacts) -> Label:
    """The labels of everything in a call but one argument."""
    return join(facts.pc, join_all(each.label for each in facts.arguments if each.name != argument.name))
