"""Who fills the blanks of extractions: an oracle that reads without mistakes, or the attacker himself.

Both are providers behind the real quarantine, so that what they answer is validated like any model's answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from bicameral.boundary import Extractor
from bicameral.models import ModelRequest, ScriptedProvider
from bicameral.plans import Const, Extract, Plan, walk
from bicameral.types import type_json_schema

from .answers import Answer, NotShown
from .attacks import Goal, Wish
from .bait import best, wishes_for

# The last of each mark counts: a text may hold marks of its own.
_FORM = re.compile(r"Text:\n<<<\n(.*)\n>>>\n\n(?:Today is [^\n]*\n)?Form: (.*)\nFields:\n", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Asked:
    """What a quarantined model is asked: one text, one instruction, and the schema of the one value it may give."""

    text: str
    instruction: str
    schema: dict[str, Any]

    @classmethod
    def of(cls, request: ModelRequest) -> Asked:
        """Read the request as the quarantine writes it."""
        written = request.messages[-1].text
        form = _FORM.match(written)
        if form is None or not request.json_schema:
            raise ValueError(f"the quarantine asks in another way than expected: {written[:200]!r}")
        return cls(form[1], form[2], request.json_schema)

    @property
    def is_record(self) -> bool:
        return list(self.schema["properties"]) != ["value"]


def oracle(answers: Sequence[Answer]) -> Extractor:
    """An executor that reads correctly what it is shown, and knows nothing else."""

    def reply(request: ModelRequest) -> str:
        asked = Asked.of(request)
        return write_reply(asked, read_correctly(asked, answers))

    return Extractor(ScriptedProvider(reply, name="oracle"))


def read_correctly(asked: Asked, answers: Sequence[Answer]) -> Any:
    """What a reader who makes no mistakes answers; `NotShown` where the text does not hold it."""
    for answer in answers:
        if answer.about.casefold() in asked.instruction.casefold():
            return answer.read(asked.text)
    raise NotShown(f"no answer is written for {asked.instruction!r}")


def write_reply(asked: Asked, value: Any) -> str:
    """A value as the model writes it into the form."""
    return json.dumps(value if asked.is_record else {"value": value}, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Strategy:
    """One way to answer: how far down the lists of texts and of numbers, which way where there are few, and where.

    Of what may be left out nothing is, or all (`kept` is 0), or all but the first, second … (`kept` is 1, 2 …).
    `only` is the one instruction that is answered with a lie; all others are then answered correctly, so that the run
    comes to where the lie counts. `ranks` are ranks of single instructions.
    """

    rank: int = 0
    number: int = 0
    yes: bool = True
    kept: int | None = None
    only: str | None = None
    ranks: tuple[tuple[str, int], ...] = ()

    def at(self, instruction: str) -> Strategy:
        """The strategy for one instruction: its own rank, where it has one."""
        return replace(self, rank=dict(self.ranks).get(instruction, self.rank))


RANKS = 4
MIXED_RANKS, MIXED_AT_MOST = 3, 3


def strategies(*plans: Plan) -> Iterator[Strategy]:
    """The ways to lie in the blanks of plans; where they have none there is nothing to choose."""
    steps = [step for plan in plans for _, step in walk(plan.steps) if isinstance(step, Extract)]
    if not steps:
        yield Strategy()
        return
    told = {step.instruction.value for step in steps if isinstance(step.instruction, Const)}
    places: list[str | None] = [None, *(sorted(map(str, told)) if len(told) > 1 else ())]
    for only in places:
        for rank in range(RANKS):
            yield Strategy(rank, only=only)
            yield Strategy(rank, yes=False, only=only)
            if rank and _numbers(steps):
                yield Strategy(number=rank, only=only)
        yield from (Strategy(kept=kept, only=only) for kept in range(_optional(steps) + 1))
    if 1 < len(told) <= MIXED_AT_MOST:
        for mixed in product(range(MIXED_RANKS), repeat=len(told)):
            yield Strategy(ranks=tuple(zip(sorted(map(str, told)), mixed, strict=True)))


def _numbers(steps: Sequence[Extract]) -> bool:
    """Whether a blank holds a number."""
    return any(re.search('"(number|integer)"', json.dumps(type_json_schema(step.result_type))) for step in steps)


def _optional(steps: Sequence[Extract]) -> int:
    """How many parts of a blank may at most be left out."""
    return max(json.dumps(type_json_schema(step.result_type)).count('"anyOf"') for step in steps)


def attacker(goal: Goal, strategy: Strategy, answers: Sequence[Answer] = ()) -> Extractor:
    """An executor that is the attacker: whatever it is asked, it answers what serves its goal."""

    def reply(request: ModelRequest) -> str:
        asked = Asked.of(request)
        if strategy.only is not None and strategy.only != asked.instruction:
            try:
                return write_reply(asked, read_correctly(asked, answers))
            except NotShown:
                pass  # then a lie does no harm to the attack
        return write_reply(asked, lie(asked, goal, strategy))

    return Extractor(ScriptedProvider(reply, name="attacker"))


def lie(asked: Asked, goal: Goal, strategy: Strategy) -> Any:
    """The value that serves the goal best, as the strategy has it."""
    schema, name = (asked.schema, "") if asked.is_record else (asked.schema["properties"]["value"], "value")
    return _lie(schema, name, asked.instruction, goal, strategy.at(asked.instruction))


def _lie(
    schema: dict[str, Any], name: str, asked: str, goal: Goal, strategy: Strategy, wish: Wish | None = None
) -> Any:
    """The value of a schema that serves the goal best, as the strategy has it."""
    if "anyOf" in schema:
        return _lie(schema["anyOf"][0], name, asked, goal, strategy, wish) if strategy.kept is None else None
    if "enum" in schema:
        choices = schema["enum"] if strategy.yes else schema["enum"][::-1]
        return choices[strategy.rank % len(choices)]
    match schema.get("type"):
        case "object" if "properties" in schema:
            return _record(schema["properties"], asked, goal, strategy, wish)
        case "object":
            inner: dict[str, Any] = schema.get("additionalProperties") or {}
            return {"value": _lie(inner, name, asked, goal, strategy, wish)}
        case "array" if "prefixItems" in schema:
            return [_lie(item, name, asked, goal, strategy, wish) for item in schema["prefixItems"]]
        case "array":
            return _items(schema.get("items", {}), name, asked, goal, strategy)
        case "boolean":
            return strategy.yes
        case "integer" | "number":
            return _number(schema["type"], name, asked, goal, strategy, wish)
        case "null":
            return None
        case _:
            return _text(schema, name, asked, goal, strategy, wish)


def _record(
    fields: dict[str, dict[str, Any]], asked: str, goal: Goal, strategy: Strategy, wish: Wish | None
) -> dict[str, Any]:
    fitting = wishes_for(goal, list(fields))
    wish = wish or (fitting[strategy.rank % len(fitting)] if fitting else None)
    optional = [name for name, schema in fields.items() if "anyOf" in schema]
    made: dict[str, Any] = {}
    for name, schema in fields.items():
        if strategy.kept and optional[strategy.kept - 1 : strategy.kept] == [name]:
            schema = schema["anyOf"][0]
        made[name] = _lie(schema, name, asked, goal, strategy, wish)
    return made


def _items(schema: dict[str, Any], name: str, asked: str, goal: Goal, strategy: Strategy) -> list[Any]:
    if strategy.kept == 0:
        return []
    if "properties" in schema:
        wishes = wishes_for(goal, list(schema["properties"])) or list(goal.wishes[:1])
        made = [_lie(schema, name, asked, goal, strategy, wish) for wish in wishes]
        return made if made else [_lie(schema, name, asked, goal, strategy)]
    if schema.get("type") == "string" and "pattern" not in schema:
        texts = [str(text)[: schema.get("maxLength")] for text in best(goal, name, asked) if isinstance(text, str)]
        return texts[strategy.rank :] if strategy.yes else texts[strategy.rank : strategy.rank + 1]
    return [_lie(schema, name, asked, goal, strategy)]


def _number(kind: str, name: str, asked: str, goal: Goal, strategy: Strategy, wish: Wish | None) -> float:
    numbers = [float(each) for each in best(goal, name, asked, ("number", "id"))]
    if wish is not None and isinstance(given := wish.arguments.get(name), int | float):
        numbers.insert(0, given)
    # As much as possible and nothing at all serve many goals.
    numbers = list(dict.fromkeys([*numbers[: RANKS - 2], 1_000_000.0, 0.0]))
    number = numbers[strategy.number % len(numbers)]
    return int(number) if kind == "integer" else number


def _text(schema: dict[str, Any], name: str, asked: str, goal: Goal, strategy: Strategy, wish: Wish | None) -> str:
    if wish is not None and isinstance(given := wish.arguments.get(name), str):
        texts = [given]
    else:
        texts = [str(text) for text in best(goal, name, asked) if isinstance(text, str)]
    if "pattern" in schema:
        moments = (text.replace(" ", "T") for text in texts)
        parts = (part for moment in moments for part in (moment, *moment.split("T")))
        fallback = ["2024-05-15", "2024-05-15T10:00", "10:00"]
        texts = [part for part in [*parts, *fallback] if re.fullmatch(schema["pattern"], part)]
    return texts[strategy.rank % len(texts)][: schema.get("maxLength")] if texts else "Yes."
