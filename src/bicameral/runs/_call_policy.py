"""What is known and decided about a call before it is made: its labels, actionable text, grants, and the decision.

`StepLabels` holds the labels of one step for the journal. `ActionableText` finds links, addresses, accounts and numbers
in untrusted text that a call would carry out; of a text that is not at hand the worst is assumed. A `Decider` gives the
decision: policy in a run, the record in a replay.

An approval holds for exactly the calls that were shown. "Also every later call of this tool with this value in this
run" is a choice of its own, a `Grant`: a question offers it where it would spare later questions, and it is off
unless a person chooses it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Protocol

from bicameral.boundary.shield import SHIELD_MARK, actionable_parts
from bicameral.journal import dumps
from bicameral.labels import (
    PUBLIC,
    Label,
    LabelTree,
    Source,
    covers,
    join,
    join_all,
    label_tree_from_json,
    label_tree_to_json,
)
from bicameral.plans import Plan
from bicameral.policy import Allowed, ArgumentFacts, Ask, CallFacts, Decision, Denied, Depends, Mode
from bicameral.types import value_from_json, value_to_json

if TYPE_CHECKING:
    from bicameral.policy import Policy


@lru_cache(maxsize=2048)
def label_tree_json(shade: LabelTree) -> Any:
    """A shade as the journal holds it."""
    return label_tree_to_json(shade)


class StepLabels:
    """The labels of one step. Those of its result are known only when the result is."""

    __slots__ = ("_decision", "_found", "_pc", "_result", "_shades")

    def __init__(
        self,
        shades: Mapping[str, LabelTree],
        pc: Label,
        result: Callable[[Any], LabelTree],
        decision: dict[str, Any] | None = None,
    ) -> None:
        self._shades = shades
        self._pc = pc
        self._result = result
        self._decision = decision
        self._found: LabelTree | None = None

    def start_facts(self) -> dict[str, Any]:
        """What is recorded when the step begins."""
        facts: dict[str, Any] = {
            "shades": {name: label_tree_json(shade) for name, shade in self._shades.items()},
            "control": label_tree_json(self._pc),
        }
        return facts if self._decision is None else facts | {"decision": self._decision}

    def third_party_sources(self, name: str) -> tuple[Source, ...]:
        """The third parties' places that something which goes in came from."""
        shade = self._shades.get(name)
        return () if shade is None else tuple(each for each in shade.flat.sources if each.trust == "third_party")

    def result_labels(self, value: Any) -> LabelTree:
        """The labels of the result."""
        if self._found is None:
            self._found = self._result(value)
        return self._found


ASSUMED_ACTIONABLE = frozenset({SHIELD_MARK})
"""Of a text that is not at hand the worst is assumed."""


class ActionableText:
    """What could be followed in the calls of one run of a plan, less what is the user's own.

    What stands in the plan is his, unless whoever wrote the plan had read what strangers wrote, and so is what he
    granted explicitly; a yes to a call is one to that call alone. `written` is what earlier runs left behind.
    """

    def __init__(self, plan: Plan | None, written: frozenset[str] = frozenset()) -> None:
        self._plan = plan
        self._written = written
        self._endorsed: frozenset[str] = frozenset()

    def in_call(self, facts: CallFacts, values: Mapping[str, Any]) -> frozenset[str]:
        """Everything to follow in what a call carries out of strangers' texts."""
        if not facts.outbound:
            return frozenset()
        found: frozenset[str] = frozenset()
        for argument in _untrusted_arguments(facts):
            # What a named file holds is no argument of the call: it was written before.
            found |= actionable_parts(values[argument.name]) if argument.name in values else self._written
        return found - self._endorsed - self._own if found else found

    def record_written(self, facts: CallFacts, values: Mapping[str, Any], *, fetched: bool = False) -> None:
        """Remember what is written: it may be sent from there. What a tool `fetched` itself is not at hand."""
        if fetched:
            self._written |= ASSUMED_ACTIONABLE
        if facts.effect != "write":
            return
        if not facts.arguments_for("carries"):
            # It copies from somewhere what it is not given.
            self._written |= ASSUMED_ACTIONABLE
        for argument in _untrusted_arguments(facts):
            self._written |= actionable_parts(values.get(argument.name))

    def endorse(self, value: object) -> None:
        """A person granted a value for the rest of the run: what it leads to is his own from now on."""
        self._endorsed |= actionable_parts(value) - ASSUMED_ACTIONABLE

    def copy(self) -> ActionableText:
        """The same, to be told of calls that may never be made."""
        return copy(self)

    @cached_property
    def _own(self) -> frozenset[str]:
        texts = () if self._plan is None else self._plan.model_dump(mode="json")["steps"]
        return actionable_parts(texts) - ASSUMED_ACTIONABLE


def _untrusted_arguments(facts: CallFacts) -> Iterator[ArgumentFacts]:
    return (each for each in facts.arguments_for("carries") if not (each.trusted or each.bounded))


@dataclass(frozen=True, slots=True)
class Grant:
    """For the rest of one run, this value of this argument of this tool counts as the person's own.

    `ceiling` is the label of everything else in the call that was approved: a later call that is more untrusted, or
    more secret, than that one is asked about all the same. What the value leads to (a link, an address) is the
    person's own in other calls, too.
    """

    tool: str
    argument: str
    value: Any
    ceiling: Label

    def __str__(self) -> str:
        private = "" if self.ceiling.readers is PUBLIC else " (which carries private data)"
        return (
            f"every later call of {self.tool} with {self.argument} = {self.value!r}, until the end of this run, "
            f"if it is no more untrusted or secret than this call{private}; texts that name it may go out, too"
        )

    @property
    def key(self) -> tuple[str, str, str]:
        return self.tool, self.argument, dumps(value_to_json(self.value))

    def to_json(self) -> dict[str, Any]:
        return {
            "tool": self.tool,
            "argument": self.argument,
            "value": value_to_json(self.value),
            "ceiling": label_tree_json(self.ceiling),
            "scope": str(self),
        }

    @classmethod
    def from_json(cls, facts: Mapping[str, Any]) -> Grant:
        """The grant that `to_json` wrote."""
        ceiling = label_tree_from_json(facts["ceiling"]).flat
        return cls(str(facts["tool"]), str(facts["argument"]), value_from_json(facts["value"]), ceiling)


class Grants:
    """What was granted in one run."""

    def __init__(self, grants: Iterable[Grant] = ()) -> None:
        self._ceilings: dict[tuple[str, str, str], list[Label]] = {}
        for grant in grants:
            self.add(grant)

    def add(self, grant: Grant) -> None:
        self._ceilings.setdefault(grant.key, []).append(grant.ceiling)

    def applied(self, facts: CallFacts, values: Mapping[str, Any]) -> tuple[CallFacts, tuple[str, ...]] | None:
        """The facts with what was granted trusted, and which arguments that are; None where nothing was."""
        if not self._ceilings:
            return None
        names = tuple(
            each.name for each in _untrusted_directing_arguments(facts, values) if self._covers(facts, each, values)
        )
        if not names:
            return None
        source = Source("user", "endorsed", "", facts.step)

        def trusting(argument: ArgumentFacts) -> ArgumentFacts:
            if argument.name not in names:
                return argument
            return replace(argument, label=Label({source}, argument.label.readers))

        return replace(facts, arguments=tuple(map(trusting, facts.arguments))), names

    def _covers(self, facts: CallFacts, argument: ArgumentFacts, values: Mapping[str, Any]) -> bool:
        now = grant_for_argument(facts, argument, values)
        worst = now.ceiling
        if worst.readers is PUBLIC:
            # What is trusted and everybody may read makes no call worse, wherever it comes from.
            worst = Label(source for source in worst.sources if source.trust == "third_party")
        return any(covers(ceiling, worst) for ceiling in self._ceilings.get(now.key, ()))


def possible_grant(facts: CallFacts, values: Mapping[str, Any]) -> Grant | None:
    """What could be granted along with a yes to a call; whether it would spare a question is for policy to say.

    Only where one untrusted value directs the call: of several, none alone would do. Never for what cannot be undone:
    how often that is done must not be anybody else's choice.
    """
    directions = _untrusted_directing_arguments(facts, values)
    if len(directions) != 1 or facts.effect == "irreversible":
        return None
    return grant_for_argument(facts, directions[0], values)


def grant_for_argument(facts: CallFacts, argument: ArgumentFacts, values: Mapping[str, Any]) -> Grant:
    """The grant of one argument's value, with the call as its ceiling."""
    others = join_all(each.label for each in facts.arguments if each.name != argument.name)
    return Grant(facts.tool, argument.name, values[argument.name], join(facts.pc, others))


def _untrusted_directing_arguments(facts: CallFacts, values: Mapping[str, Any]) -> list[ArgumentFacts]:
    return [each for each in facts.arguments_for("directs") if not each.trusted and each.name in values]


@dataclass(frozen=True, slots=True)
class CallDecision:
    """A decision; `endorsed` are the arguments whose values a person had granted before, where that made it so.

    `refused_ahead`: it would have been allowed, had not a person said no to this call before. `permitted`: it was
    asked about, and made on an earlier yes to the same call; only records of earlier versions hold that.
    """

    decision: Decision
    endorsed: tuple[str, ...] = ()
    refused_ahead: bool = False
    permitted: bool = False


class Decider(Protocol):
    """Decides about every call of a run."""

    mode: Mode
    fingerprint: str
    decides_pure: bool
    """Whether calls of tools that neither touch nor tell anything are to be decided about, too."""

    def decide(self, step: str, facts: CallFacts, values: Mapping[str, Any], grants: Grants) -> CallDecision: ...

    def allows(self, facts: CallFacts) -> bool:
        """Whether a call with these facts would be made without a question."""
        ...


class PolicyDecider:
    """Policy decides, with what a person has endorsed in this run; `mode` is the policy's own unless it is given."""

    def __init__(self, policy: Policy, mode: Mode | None = None) -> None:
        self.mode: Mode = mode or policy.mode
        self.fingerprint = policy.fingerprint
        # The defaults never stop such a call; a user's own policy may.
        self.decides_pure = not all(rule.default for rule in policy.rules)
        self._policy_decision = policy.decide

    def decide(self, step: str, facts: CallFacts, values: Mapping[str, Any], grants: Grants) -> CallDecision:
        decision = self._policy_decision(facts)
        if isinstance(decision, Depends):
            # Nobody can say yes to a call of which not all is known.
            return CallDecision(Denied(decision.question, decision.rules))
        if isinstance(decision, Ask) and (trusting := grants.applied(facts, values)) is not None:
            again = self._policy_decision(trusting[0])
            if isinstance(again, Allowed):
                return CallDecision(again, trusting[1])
        return CallDecision(decision)

    def allows(self, facts: CallFacts) -> bool:
        return isinstance(self._policy_decision(facts), Allowed)


class RecordedDecider:
    """Decides as it was decided in the run that is replayed."""

    decides_pure = True

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

    def decide(self, step: str, facts: CallFacts, values: Mapping[str, Any], grants: Grants) -> CallDecision:
        # The run ended before this call was begun: nothing is recorded of it, and nothing can be done with it here.
        found = self._decisions.get(step, {"said": "allowed"})
        rules = tuple(found.get("rules", ()))
        match found.get("said"):
            case "allowed":
                return CallDecision(Allowed(), tuple(found.get("endorsed", ())))
            case "asked":
                asked, refused = Ask(str(found.get("why", "")), rules), bool(found.get("refused_ahead"))
                return CallDecision(asked, refused_ahead=refused, permitted=step in self._permitted)
            case _:
                return CallDecision(Denied(str(found.get("why", "")), rules))

    def allows(self, facts: CallFacts) -> bool:
        return False


class ReplayDecider(PolicyDecider):
    """Policy decides anew in a replay, and calls that a person had refused ahead in the run are refused again.

    What an earlier version let through on an earlier yes, or on an endorsed value, is let through again.
    """

    def __init__(
        self, policy: Policy, decisions: Mapping[str, dict[str, Any]], permitted: frozenset[str] = frozenset()
    ) -> None:
        super().__init__(policy)
        self._recorded = RecordedDecider(self.mode, self.fingerprint, decisions, permitted)

    def decide(self, step: str, facts: CallFacts, values: Mapping[str, Any], grants: Grants) -> CallDecision:
        judged = super().decide(step, facts, values, grants)
        recorded = self._recorded.decide(step, facts, values, grants)
        match judged.decision:
            case Allowed() if recorded.refused_ahead:
                return recorded
            case Ask() if recorded.permitted or recorded.endorsed:
                return recorded
            case _:
                return judged


def decision_json(judged: CallDecision, judge: Decider) -> dict[str, Any]:
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
