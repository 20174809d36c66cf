"""A world with labels: tools of known origin, answers that strangers change, and the plainest run that keeps labels."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, TypedDict

from hypothesis import strategies as st

from bicameral.labels import NOTHING, Label, LabelTree, covers
from bicameral.plans import (
    Answer,
    Ask,
    Call,
    Compute,
    Each,
    Extract,
    Plan,
    Update,
    When,
    apply_update,
    evaluate_expr,
    iterable_items,
    unpack_item,
    walk,
)
from bicameral.plans.labels._transfer import (
    call_facts,
    labels_after_ask,
    labels_after_branch,
    labels_after_call,
    labels_after_extract,
    labels_after_update,
    labels_of,
    pc_after,
    pc_inside,
    turn_labels,
)
from bicameral.plans.labels._walker import labels_after_local_step
from bicameral.policy import CallFacts, Mode
from bicameral.tools import Origin, Participants, Registry, tool
from bicameral.types import IntType


class Mail(TypedDict):
    id: str
    sender: str
    size: int
    tags: list[str]


MAIL_ORIGINS = {
    "": Origin("system", "public"),
    "[]": Origin("third_party", Participants(("sender",))),
    "[].id": Origin("system", "public"),
    "[].tags": Origin("third_party"),
    "[].size": Origin("third_party", own_when=("id", "mine")),
}


@tool(effect="read", origins=MAIL_ORIGINS, purpose={"query": "selects"}, outbound=False)
def inbox(query: str) -> list[Mail]:
    """The mails there are: how many and their ids are the service's, the rest is the sender's."""
    raise AssertionError("nothing is really called")


@tool(effect="read", origins=Origin("third_party", "public"), purpose={"url": "directs"}, outbound=True)
def fetch(url: str) -> str:
    """A page."""
    raise AssertionError("nothing is really called")


@tool(effect="read", origins=Origin("system"), purpose={"account": "selects"}, outbound=False)
def balance(account: str) -> int:
    """What is on an account."""
    raise AssertionError("nothing is really called")


@tool(effect="send", purpose={"to": "directs", "body": "carries"})
def send(to: str, body: str) -> None:
    """Send a mail."""


@tool(
    effect="send",
    purpose={"files": "directs", "to": "directs", "note": "carries"},
    receivers=("to",),
    attaches={"files": Origin("third_party"), "note": Origin("system", "public")},
)
def share(files: list[str], to: str, note: str = "") -> None:
    """Send things that are kept somewhere, by their names."""


@tool(effect="irreversible", purpose={"to": "directs", "amount": "directs"})
def pay(to: str, amount: int) -> None:
    """Pay somebody."""


@tool(effect="pure", keeps="mails")
def newest(mails: list[Mail], count: int) -> list[Mail]:
    """The first of them."""
    raise AssertionError("nothing is really called")


REGISTRY = Registry([inbox, fetch, balance, send, share, pay, newest])

SENDERS = st.sampled_from(["ada", "bob", "k", "eve"])


@dataclass(frozen=True)
class World:
    """What the tools answer. Two worlds with the same `sound` differ only in what strangers wrote."""

    sound: tuple[int, ...]
    strange: tuple[Any, ...]

    def inbox(self, turn: int) -> list[dict[str, Any]]:
        return [
            {"id": ("mine" if (turn + number) % 3 == 0 else f"m{number}")} | self._mail(turn + number)
            for number in range(self.sound[turn % len(self.sound)] % 3)
        ]

    def _mail(self, turn: int) -> dict[str, Any]:
        sender, size, tags = self.strange[turn % len(self.strange)]
        return {"sender": sender, "size": size, "tags": list(tags)}

    def text(self, turn: int) -> str:
        return str(self.strange[turn % len(self.strange)][0])

    def number(self, turn: int) -> int:
        return int(self.strange[turn % len(self.strange)][1])

    def balance(self, turn: int) -> int:
        return self.sound[turn % len(self.sound)]


STRANGE = st.lists(st.tuples(SENDERS, st.integers(0, 3), st.lists(SENDERS, max_size=2)), min_size=4, max_size=4).map(
    tuple
)
SOUND = st.lists(st.integers(0, 5), min_size=5, max_size=5).map(tuple)
WORLDS = st.builds(World, SOUND, STRANGE)


@st.composite
def two_worlds(draw: st.DrawFn) -> tuple[World, World]:
    """Two worlds that differ in what strangers wrote. What is the user's own in one is the same in the other."""
    one = draw(WORLDS)
    return one, World(one.sound, draw(STRANGE))


class Ended(Exception):
    """The run came to its answer."""


@dataclass
class Made:
    """A call that a run made: where, with which values, on which facts."""

    step: str
    values: dict[str, Any]
    facts: CallFacts


@dataclass
class LabelledRun:
    """Runs a plan step by step, values and labels side by side, by the functions that the proof uses too.

    Labels follow the way that is taken; a variable that the other branch may change carries the condition as well.
    """

    world: World
    mode: Mode = "strict"
    owns: bool = True
    quick: bool = False
    """Whether loops that touch nothing outside get their labels without going through their turns."""
    values: dict[str, Any] = field(default_factory=dict[str, Any])
    shades: dict[str, LabelTree] = field(default_factory=dict[str, LabelTree])
    calls: list[Made] = field(default_factory=list[Made])
    answer: tuple[Any, LabelTree] | None = None
    turns: int = 0

    def run(self, plan: Plan) -> LabelledRun:
        with suppress(Ended):
            self._block(plan.steps, NOTHING, "")
        return self

    def _block(self, steps: tuple[Any, ...], pc: Label, at: str) -> Label:
        for number, step in enumerate(steps):
            pc = self._step(step, pc, f"{at}{number}")
        return pc

    def _step(self, step: Any, pc: Label, path: str) -> Label:
        match step:
            case Call():
                self._call(step, pc, path)
            case Extract():
                source, instruction = self._shade(step.source, pc), self._shade(step.instruction, pc)
                self.values[step.name] = self._written(step, self._value(step.source))
                self.shades[step.name] = labels_after_extract(source, instruction, path, pc)
            case Ask():
                self._value(step.question)
                self.values[step.name] = 7 if isinstance(step.result_type, IntType) else "said"
                self.shades[step.name] = labels_after_ask(self._shade(step.question, pc), path, pc)
            case Compute():
                self._bind(step.name, self._value(step.value), self._shade(step.value, pc))
            case Update():
                key = None if step.key is None else self._value(step.key)
                value = apply_update(step.op, self.values[step.name], key, self._value(step.value))
                self._bind(step.name, value, labels_after_update(step, self.shades, pc, self.mode))
            case When():
                return self._when(step, pc, path)
            case Each() if self.quick and _is_local(step):
                return self._pure(step, pc, path)
            case Each():
                return self._each(step, pc, path)
            case Answer():
                self.answer = self._value(step.value), self._shade(step.value, pc)
                raise Ended
            case _:
                raise AssertionError(step)
        return pc

    def _when(self, step: When, pc: Label, path: str) -> Label:
        inside = pc_inside(pc, self._shade(step.condition, pc), self.mode)
        if self._value(step.condition):
            inside = self._block(step.steps, inside, f"{path}/then/")
        else:
            inside = self._block(step.otherwise, inside, f"{path}/else/")
        self.shades.update(labels_after_branch(step, self.shades, inside))
        return pc_after(step, pc, inside)

    def _each(self, step: Each, pc: Label, path: str) -> Label:
        over = self._shade(step.over, pc)
        inside = pc_inside(pc, over, self.mode)
        for turn, item in enumerate(list(iterable_items(self._value(step.over)))):
            self.turns += 1
            parts = [item] if len(step.names) == 1 else unpack_item(item, len(step.names))
            self.values.update(zip(step.names, parts, strict=True))
            self.shades.update(turn_labels(step, over, inside, self.mode))
            inside = self._block(step.steps, inside, f"{path}[{turn}]/")
        self.shades.update(labels_after_branch(step, self.shades, inside))
        return pc_after(step, pc, inside)

    def _pure(self, step: Each, pc: Label, path: str) -> Label:
        after = labels_after_local_step(step, self.shades, pc, self.mode)
        slow = LabelledRun(self.world, self.mode, values=self.values, shades=dict(self.shades))
        try:
            pc_by_turns = slow._each(step, pc, path)
        except Ended:
            assert slow.answer is not None
            assert after.answer is not None
            assert covers(after.answer, slow.answer[1])
            self.answer = slow.answer[0], after.answer
            raise
        self.shades.update(after.changed)
        assert covers(after.pc, pc_by_turns)
        assert all(covers(self.shades[name], shade) for name, shade in slow.shades.items())
        return after.pc

    def _call(self, step: Call, pc: Label, path: str) -> None:
        tool = REGISTRY[step.tool]
        values = {name: self._value(value) for name, value in step.args.items()}
        shades = {name: self._shade(value, NOTHING) for name, value in step.args.items()}
        facts = call_facts(tool, shades, values, path, pc, self.mode)
        self.calls.append(Made(path, values, facts))
        result = _ANSWERS[step.tool](self.world, values, _asked(values))
        if step.name is not None:
            seen = result if self.owns else None
            self._bind(step.name, result, labels_after_call(tool, shades, seen, path, pc, arguments=values))

    def _written(self, step: Extract, source: object) -> Any:
        """The quarantined model is the attacker: it writes what the strangers of this world want."""
        turn = len(str(source))
        return self.world.number(turn) if isinstance(step.result_type, IntType) else self.world.text(turn)

    def _bind(self, name: str, value: Any, shade: LabelTree) -> None:
        self.values[name] = deepcopy(value)
        self.shades[name] = shade

    def _value(self, expr: Any) -> Any:
        return evaluate_expr(expr, self.values)

    def _shade(self, expr: Any, pc: Label) -> LabelTree:
        return labels_of(expr, self.shades, pc, self.mode)


def _is_local(step: Each) -> bool:
    """Whether a loop calls no tool or model and asks nobody."""
    return not any(isinstance(inner, Call | Extract | Ask) for _, inner in walk((step,)))


def _asked(values: dict[str, Any]) -> int:
    """What a tool answers depends on what it is asked."""
    return sum(map(ord, str(sorted(values.items()))))


_ANSWERS: dict[str, Callable[[World, dict[str, Any], int], Any]] = {
    "inbox": lambda world, values, asked: world.inbox(asked),
    "fetch": lambda world, values, asked: world.text(asked),
    "balance": lambda world, values, asked: world.balance(asked),
    "send": lambda world, values, asked: None,
    "share": lambda world, values, asked: None,
    "pay": lambda world, values, asked: None,
    "newest": lambda world, values, asked: values["mails"][: max(values["count"], 0)],
}
