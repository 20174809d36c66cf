"""The law over random conversations: a call carries what the model had read when it asked for it."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Literal

from hypothesis import given, settings, strategies as st
from strategies_world import Speaker

from bicameral.labels import PUBLIC, USER
from bicameral.models import ToolCall
from bicameral.patterns.strategies import Answered, ModelPair, Runtime, run_strategy
from bicameral.policy import Allowed, CallFacts
from bicameral.sessions import Chambers, Quarantined
from bicameral.tools import Argument, Origin, Registry, Tool
from bicameral.types import STR
from property_examples import examples

TRUSTS: tuple[Literal["user", "system", "third_party"], ...] = ("user", "system", "third_party")


class Everything:
    """A policy that allows everything and remembers what it was told: the law holds whatever is decided."""

    fingerprint = "everything"
    rules = ()

    def __init__(self, mode: Literal["strict", "normal"]) -> None:
        self.mode: Literal["strict", "normal"] = mode
        self.facts: list[CallFacts] = []

    def decide(self, facts: CallFacts) -> Allowed:
        self.facts.append(facts)
        return Allowed()


def made(trust: Any, readers: Any, effect: Any) -> Tool:
    async def run(arguments: Any) -> object:
        return "a text"

    return Tool(
        f"{trust}_{readers}_{effect}",
        "A tool.",
        (Argument("text", STR, purpose="directs" if effect == "send" else "selects"),),
        STR,
        effect,
        run,
        origins={"": Origin(trust, readers)},
        outbound=effect == "send",
    )


TOOLS = Registry(
    made(trust, readers, effect) for trust in TRUSTS for readers in ("public", "user") for effect in ("read", "send")
)

replies = st.lists(
    st.lists(st.tuples(st.sampled_from(TOOLS.names), st.booleans()), min_size=1, max_size=3), min_size=1, max_size=6
)


@settings(max_examples=examples(150))
@given(replies, st.sampled_from(["strict", "normal"]))
async def test_no_call_after_a_strangers_text_is_judged_as_trusted_and_readers_never_grow(
    script: list[list[tuple[str, bool]]], mode: Literal["strict", "normal"]
) -> None:
    lines: list[Any] = [
        # No call is the same as another: that would end the loop.
        [
            ToolCall(str(at), name, {"text": f"x{turn}-{at}" if whole else 10 * turn + at})
            for at, (name, whole) in enumerate(reply)
        ]
        for turn, reply in enumerate(script)
    ]
    said = iter([*lines, "the end"])
    high = Speaker(lambda _: next(said), name="high", chamber="privileged")
    low = Speaker(lambda _: next(said), name="low", chamber="quarantined")
    policy: Any = Everything(mode)
    voices = ModelPair(Chambers(high, Quarantined(low)))
    worked = await run_strategy("do", "native_react", Runtime(voices, TOOLS, policy))
    assert isinstance(worked, Answered)

    judged = iter(policy.facts)
    stranger, private = False, False
    for number, reply in enumerate(script):
        turn = worked.turns[number]
        assert (turn.chamber == "quarantined") == stranger == (not turn.read.trusted)
        for name, whole in reply:
            if not whole:
                continue
            facts: CallFacts = next(judged)
            assert (facts.tool, facts.mode) == (name, "strict")
            labels = [facts.pc, *(each.label for each in facts.arguments)]
            assert all(label is turn.read for label in labels)
            assert all(label.trusted != stranger for label in labels)
            assert all((label.readers is PUBLIC) != private for label in labels)
        for name, whole in reply:
            stranger = stranger or (whole and name.startswith("third_party"))
            private = private or (whole and "_user_" in name)
    assert next(judged, None) is None
    assert worked.shade is not None
    assert worked.shade.flat.trusted != stranger
    assert len(low.asked) + len(high.asked) == len(script) + 1
    readers = [turn.read.readers for turn in worked.turns]
    for before, after in pairwise(readers):
        assert before is PUBLIC or (after is not PUBLIC and after <= before)
    assert all(each is PUBLIC or USER in each for each in readers)
    sources = [turn.read.sources for turn in worked.turns]
    assert all(before <= after for before, after in pairwise(sources))
