"""Calls, situations and conditions for the tests of routing."""

from __future__ import annotations

from typing import get_args

from hypothesis import strategies as st

from bicameral.expressions import AllOf, AnyOf, Not
from bicameral.models import Chamber, Message, ModelRequest, ScriptedProvider, ToolSchema
from bicameral.routing import PHASES, ROLES, CallContext, RoutingCondition
from bicameral.routing._conditions import (
    FIELD_WORDS,
    ComparisonOperator,
    ConditionQuantity,
    FieldTest,
    QuantityComparison,
)

TOOL = ToolSchema("grep", "finds lines", {"type": "object"})


def request(text: str = "hello", *, messages: int = 1, **rest: object) -> ModelRequest:
    return ModelRequest(tuple(Message("user", text) for _ in range(messages)), **rest)  # pyright: ignore[reportArgumentType]


def says(name: str, chamber: Chamber | None = None) -> ScriptedProvider:
    """A model that replies with its own name."""
    return ScriptedProvider(lambda _: name, name=name, chamber=chamber)


class Keyed(ScriptedProvider):
    """A model with a key."""

    def __init__(self, name: str, credential: str, chamber: Chamber | None) -> None:
        super().__init__(lambda _: name, name=name, chamber=chamber)
        self.credential = credential


WORDS = ("planning", "summarizing", "odd-one", "x.y")
numbers = st.sampled_from([0.0, 1.0, 2.0, 3.0, 5.0, 0.5, 2.5, 10_000.0])

words = st.one_of(
    *(st.builds(FieldTest, st.just(field), st.sampled_from(pair)) for field, pair in FIELD_WORDS.items()),
    st.builds(FieldTest, st.just("hint"), st.sampled_from(WORDS)),
    st.builds(FieldTest, st.just("role"), st.sampled_from(ROLES[:3])),
    st.builds(FieldTest, st.just("phase"), st.sampled_from(PHASES[:3])),
)
compared = st.builds(
    QuantityComparison,
    st.sampled_from(get_args(ConditionQuantity)),
    st.sampled_from(get_args(ComparisonOperator)),
    numbers,
)
trees: st.SearchStrategy[RoutingCondition] = st.recursive(
    st.one_of(words, compared),
    lambda inner: st.one_of(
        st.builds(Not, inner),
        st.builds(AllOf, st.lists(inner, min_size=2, max_size=3).map(tuple)),
        st.builds(AnyOf, st.lists(inner, min_size=2, max_size=3).map(tuple)),
    ),
    max_leaves=6,
)


def _request(count: int, length: int, tools: bool, schema: bool, timeout: float | None) -> ModelRequest:
    return ModelRequest(
        tuple(Message("user", "x" * length) for _ in range(count)),
        tools=(TOOL,) if tools else (),
        json_schema={} if schema else None,
        timeout=timeout,
    )


requests = st.builds(
    _request,
    st.integers(0, 6),
    st.sampled_from([0, 4, 12, 40_000]),
    st.booleans(),
    st.booleans(),
    st.sampled_from([None, 0.5, 1.0, 5.0]),
)
situations = st.builds(
    CallContext,
    role=st.sampled_from([None, *ROLES[:3]]),
    phase=st.sampled_from([None, *PHASES[:3]]),
    chamber=st.sampled_from(["privileged", "quarantined"]),
    trusted=st.sampled_from([None, True, False]),
    tokens_left=st.sampled_from([None, 0, 1, 2, 5]),
    money_left=st.sampled_from([None, -1.0, 0.0, 0.5, 1.0, 3.0]),
    seconds_left=st.sampled_from([None, 0.0, 0.5, 2.0, 5.0]),
    failures=st.integers(0, 4),
    cost_cap=st.sampled_from([None, 0.5, 2.5]),
)
hints = st.sampled_from([None, *WORDS])


def written(tree: RoutingCondition) -> str:
    """A condition as a person would write it."""
    match tree:
        case FieldTest(field="tools", word=word):
            return "has_tools" if word == "yes" else "no_tools"
        case FieldTest(field="schema", word=word):
            return "has_schema" if word == "yes" else "no_schema"
        case FieldTest(field=field, word=word):
            return f"{field}:{word}"
        case QuantityComparison(quantity=quantity, operator=sign, bound=bound):
            return f"{quantity} {sign} {bound:g}"
        case Not(part=part):
            return f"not ({written(part)})"
        case AllOf(parts=parts):
            return "(" + " and ".join(f"({written(part)})" for part in parts) + ")"
        case AnyOf(parts=parts):
            return "(" + " or ".join(f"({written(part)})" for part in parts) + ")"
        case _:
            raise TypeError(tree)


def holds(tree: RoutingCondition, call: ModelRequest, here: CallContext, hint: str | None) -> bool:
    """What a condition means, said plainly."""
    match tree:
        case Not(part=part):
            return not holds(part, call, here, hint)
        case AllOf(parts=parts):
            return all(holds(part, call, here, hint) for part in parts)
        case AnyOf(parts=parts):
            return any(holds(part, call, here, hint) for part in parts)
        case FieldTest(field=field, word=word):
            facts = {
                "tools": "yes" if call.tools else "no",
                "schema": "no" if call.json_schema is None else "yes",
                "label": "trusted" if here.trusted else "untrusted",
                "chamber": here.chamber,
                "hint": hint,
                "role": here.role,
                "phase": here.phase,
            }
            return facts[field] == word
        case QuantityComparison(quantity=quantity, operator=sign, bound=bound):
            endless = float("inf")
            ends = [each for each in (here.seconds_left, call.timeout) if each is not None]
            facts = {
                "message_count": len(call.messages),
                "prompt_tokens": sum(len(message.text) for message in call.messages) // 4,
                "tokens_left": endless if here.tokens_left is None else here.tokens_left,
                "money_left": endless if here.money_left is None else here.money_left,
                "time_left": min(ends, default=endless),
                "failures": here.failures,
                "cost_cap": endless if here.cost_cap is None else here.cost_cap,
            }
            return bool(eval(f"value {sign} bound", {}, {"value": facts[quantity], "bound": bound}))
        case _:
            raise TypeError(tree)
