"""What is known and decided about a call before it is made: its labels, actionable text, grants, and the decision.

`StepLabels` are the labels of one step for the journal. `ActionableText` finds links, addresses, accounts and numbers
in untrusted text that a call would send out; of a text that is not available the worst is assumed. A `Decider` makes
the decision: policy in a run, the record in a replay.

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
    NOTHING,
    PUBLIC,
    Label,
    LabelTree,
    Source,
    covers,
    join,
    join_all,
    label_tree_from_json,
    label_tree_to_json,
    taint,
)
from bicameral.plans import Plan
from bicameral.policy import Allowed, ArgumentFacts, Ask, CallFacts, Decision, Denied, Depends, Mode
from bicameral.runs._replacing import REPLACE_RULE
from bicameral.types import value_from_json, value_to_json

if TYPE_CHECKING:
    from bicameral.policy import Policy


@lru_cache(maxsize=2048)
def label_tree_json(tree: LabelTree) -> Any:
    """A label tree as it is recorded in the journal."""
    return label_tree_to_json(tree)


class StepLabels:
    """The labels of one step: of its inputs, and, once there is a result, of that."""

    __slots__ = ("_decision", "_found", "_labels", "_looked_up", "_pc", "_result")

    def __init__(
        self,
        labels: Mapping[str, LabelTree],
        pc: Label,
        result: Callable[[Any], LabelTree],
        decision: dict[str, Any] | None = None,
    ) -> None:
        self._labels = labels
        self._pc = pc
        self._result = result
        self._decision = decision
        self._found: LabelTree | None = None
        self._looked_up: Label = NOTHING

    def add_lookup(self, label: Label) -> None:
        """Join the label of something that the executor looked up to that of the result."""
        self._looked_up = join(self._looked_up, label)
        self._found = None

    @property
    def inputs(self) -> Mapping[str, LabelTree]:
        """The labels of its inputs."""
        return self._labels

    @property
    def control(self) -> Label:
        """The label of the control flow."""
        return self._pc

    def start_facts(self) -> dict[str, Any]:
        """What is recorded when the step begins."""
        facts: dict[str, Any] = {
            "shades": {name: label_tree_json(tree) for name, tree in self._labels.items()},
            "control": label_tree_json(self._pc),
        }
        return facts if self._decision is None else facts | {"decision": self._decision}

    def third_party_sources(self, name: str) -> tuple[Source, ...]:
        """The third parties that an input came from."""
        tree = self._labels.get(name)
        return () if tree is None else tree.flat.third_parties

    def selection_label(self, value: Any) -> Label:
        """The label of a note on what a call selected from.

        The result alone is not enough: an empty list has no items whose readers could count, and the note tells how
        many items there were and with what they were compared.
        """
        trees = (self.result_labels(value), self._result(None), *self._labels.values())
        return join_all((self._pc, *(tree.flat for tree in trees)))

    def result_labels(self, value: Any) -> LabelTree:
        """The labels of the result."""
        if self._found is None:
            self._found = taint(self._result(value), self._looked_up)
        return self._found


ASSUMED_ACTIONABLE = frozenset({SHIELD_MARK})
"""What a text is assumed to contain that is not available here."""


class ActionableText:
    """The actionable parts (links, addresses, accounts, numbers) of untrusted text in the calls of one run.

    Parts that the user wrote do not count: those in the plan, unless its author had read untrusted text, and those
    that the user granted explicitly. The approval of a call endorses nothing for other calls.

    Args:
        plan: The plan, if everything in it is the user's own.
        written: The actionable parts that earlier runs wrote somewhere.
    """

    def __init__(self, plan: Plan | None, written: frozenset[str] = frozenset()) -> None:
        self._plan = plan
        self._written = written
        self._endorsed: frozenset[str] = frozenset()

    def in_call(self, facts: CallFacts, values: Mapping[str, Any]) -> frozenset[str]:
        """The actionable parts of untrusted text that a call sends out."""
        if not facts.outbound:
            return frozenset()
        found: frozenset[str] = frozenset()
        for argument in untrusted_content(facts):
            # The content of a named file is no argument of the call: it was written before.
            found |= actionable_parts(values[argument.name]) if argument.name in values else self._written
        return found - self._endorsed - self._own if found else found

    def record_written(self, facts: CallFacts, values: Mapping[str, Any], *, fetched: bool = False) -> None:
        """Remember what a call writes: it may be sent later. `fetched`: the tool writes content that it gets itself."""
        if fetched:
            self._written |= ASSUMED_ACTIONABLE
        if facts.effect != "write":
            return
        if not facts.arguments_for("carries"):
            # Nothing that it is given is content, so it copies from somewhere else.
            self._written |= ASSUMED_ACTIONABLE
        for argument in untrusted_content(facts):
            self._written |= actionable_parts(values.get(argument.name))

    def endorse(self, value: object) -> None:
        """Count the actionable parts of a granted value as the user's own for the rest of the run."""
        self._endorsed |= actionable_parts(value) - ASSUMED_ACTIONABLE

    def copy(self) -> ActionableText:
        """A copy for a lookahead, which records calls that may never be made."""
        return copy(self)

    @cached_property
    def _own(self) -> frozenset[str]:
        texts = () if self._plan is None else self._plan.model_dump(mode="json")["steps"]
        return actionable_parts(texts) - ASSUMED_ACTIONABLE


def untrusted_content(facts: CallFacts) -> Iterator[ArgumentFacts]:
    """The arguments that carry untrusted text."""
    return (each for each in facts.arguments_for("carries") if not (each.trusted or each.bounded))


@dataclass(frozen=True, slots=True)
class Grant:
    """For the rest of one run, this value of this argument of this tool counts as the user's own.

    `ceiling` is the label of everything else in the approved call: a later call that is more untrusted or more secret
    than that is asked about all the same. The actionable parts of the value (a link, an address) count as the user's
    own in other calls too.
    """

    tool: str
    argument: str
    value: Any
    ceiling: Label

    @property
    def is_private(self) -> bool:
        """Whether the approved call carries what not everybody may see."""
        return self.ceiling.readers is not PUBLIC

    def __str__(self) -> str:
        private = " (which carries private data)" if self.is_private else ""
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
    """The grants of one run."""

    def __init__(self, grants: Iterable[Grant] = ()) -> None:
        self._ceilings: dict[tuple[str, str, str], list[Label]] = {}
        for grant in grants:
            self.add(grant)

    def add(self, grant: Grant) -> None:
        self._ceilings.setdefault(grant.key, []).append(grant.ceiling)

    def applied(self, facts: CallFacts, values: Mapping[str, Any]) -> tuple[CallFacts, tuple[str, ...]] | None:
        """The facts with granted arguments trusted, and the names of those arguments; None if no grant applies."""
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
            # Trusted sources of public values make no call worse.
            worst = Label(worst.third_parties)
        return any(covers(ceiling, worst) for ceiling in self._ceilings.get(now.key, ()))


def possible_grant(facts: CallFacts, values: Mapping[str, Any]) -> Grant | None:
    """The grant that a question about a call could offer; whether it would spare a question is decided by policy.

    Only if exactly one untrusted value directs the call: with several, none alone would do. Never for an irreversible
    effect: untrusted text must not decide how often that happens.
    """
    directions = _untrusted_directing_arguments(facts, values)
    if len(directions) != 1 or facts.effect == "irreversible":
        return None
    return grant_for_argument(facts, directions[0], values)


def grant_for_argument(facts: CallFacts, argument: ArgumentFacts, values: Mapping[str, Any]) -> Grant:
    """The grant of one argument's value, with the rest of the call as its ceiling."""
    others = join_all(each.label for each in facts.arguments if each.name != argument.name)
    return Grant(facts.tool, argument.name, values[argument.name], join(facts.pc, others))


def _untrusted_directing_arguments(facts: CallFacts, values: Mapping[str, Any]) -> list[ArgumentFacts]:
    return [each for each in facts.arguments_for("directs") if not each.trusted and each.name in values]


@dataclass(frozen=True, slots=True)
class CallDecision:
    """A decision about a call; `endorsed` are the arguments with granted values, if a grant led to it.

    `refused_ahead`: policy would allow the call, but a person refused it before. `permitted`: it was asked about, and
    made on an earlier approval of the same call; only in records of earlier versions.
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
    """Whether to decide about calls of pure tools that send nothing out, too."""

    def decide(self, step: str, facts: CallFacts, values: Mapping[str, Any], grants: Grants) -> CallDecision: ...

    def allows(self, facts: CallFacts) -> bool:
        """Whether a call with these facts would be made without asking."""
        ...


class PolicyDecider:
    """Policy decides, with the grants of the run; `mode` is by default the policy's own."""

    def __init__(self, policy: Policy, mode: Mode | None = None) -> None:
        self.mode: Mode = mode or policy.mode
        self.fingerprint = policy.fingerprint
        # The default rules never stop such a call; a user's own policy may.
        self.decides_pure = not all(rule.default for rule in policy.rules)
        self._policy_decision = policy.decide

    def decide(self, step: str, facts: CallFacts, values: Mapping[str, Any], grants: Grants) -> CallDecision:
        decision = self._policy_decision(facts)
        if isinstance(decision, Depends):
            # Fail closed: a person cannot approve a call of which not everything is known.
            return CallDecision(Denied(decision.question, decision.rules))
        if isinstance(decision, Ask) and (trusting := grants.applied(facts, values)) is not None:
            again = self._policy_decision(trusting[0])
            if isinstance(again, Allowed):
                return CallDecision(again, trusting[1])
        return CallDecision(decision)

    def allows(self, facts: CallFacts) -> bool:
        return isinstance(self._policy_decision(facts), Allowed)


@dataclass(slots=True, eq=False)
class RecordedDecider:
    """Decides as recorded in the run that is replayed."""

    mode: Mode
    fingerprint: str
    decisions: Mapping[str, dict[str, Any]]
    permitted: frozenset[str]
    decides_pure: bool = True

    def decide(self, step: str, facts: CallFacts, values: Mapping[str, Any], grants: Grants) -> CallDecision:
        # Without a record the run ended before this call. It has no effect here: there is no recorded result either.
        found = self.decisions.get(step, {"said": "allowed"})
        rules = tuple(found.get("rules", ()))
        match found.get("said"):
            case "allowed":
                return CallDecision(Allowed(), tuple(found.get("endorsed", ())))
            case "asked":
                asked, refused = Ask(str(found.get("why", "")), rules), bool(found.get("refused_ahead"))
                return CallDecision(asked, refused_ahead=refused, permitted=step in self.permitted)
            case _:
                return CallDecision(Denied(str(found.get("why", "")), rules))

    def allows(self, facts: CallFacts) -> bool:
        return False


class ReplayDecider(PolicyDecider):
    """Policy decides anew in a replay; calls that a person had refused ahead are refused again.

    Whether a call replaced a file is not judged again: the files are not those of then.

    What an earlier version allowed on an earlier approval, or on a granted value, is allowed again.
    """

    def __init__(self, policy: Policy, recorded: RecordedDecider) -> None:
        super().__init__(policy)
        self._recorded = recorded

    def decide(self, step: str, facts: CallFacts, values: Mapping[str, Any], grants: Grants) -> CallDecision:
        decided = super().decide(step, facts, values, grants)
        recorded = self._recorded.decide(step, facts, values, grants)
        match decided.decision:
            case Allowed() if recorded.refused_ahead:
                return recorded
            case Allowed() if isinstance(recorded.decision, Ask) and recorded.decision.rules == (REPLACE_RULE,):
                # A file stood there then, which no policy knows of.
                return recorded
            case Ask() if recorded.permitted or recorded.endorsed:
                return recorded
            case _:
                return decided


def decision_json(decided: CallDecision, decider: Decider) -> dict[str, Any]:
    """A decision as it is recorded in the journal."""
    match decided.decision:
        case Allowed():
            found: dict[str, Any] = {"said": "allowed", "rules": []}
        case Ask(question=why, rules=rules):
            found = {"said": "asked", "rules": list(rules), "why": why}
        case Denied(reason=why, rules=rules):
            found = {"said": "denied", "rules": list(rules), "why": why}
    if decided.endorsed:
        found["endorsed"] = list(decided.endorsed)
    if decided.refused_ahead:
        found["refused_ahead"] = True
    return found | {"policy": decider.fingerprint, "mode": decider.mode}
