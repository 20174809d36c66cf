"""The law over random conversations: a call carries what the model had read when it asked for it."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Literal

from hypothesis import given, settings, strategies as st
from strategies_world import Speaker

from bicameral.labels import PUBLIC, USER
from bicameral.models import ToolCall
from bicameral.patterns.strategies import Answered, ModelPair, Runtime, StrategyParams, run_strategy
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
    voices = ModelPair(Chambers(high, Quarantined(low)), StrategyParams(reading="open"))
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


PAGE = "a page that somebody else has written"


def pages(given: list[dict[str, Any]]) -> Registry:
    """Three pages, one of them of others, and a tool that sends; `given` gets the arguments of each call."""

    def page(trust: Any) -> Tool:
        async def run(arguments: Any) -> object:
            given.append(dict(arguments))
            return PAGE if trust == "third_party" else "mine"

        named = (Argument("name", STR, purpose="selects"),)
        origins = {"": Origin(trust, "public")}
        return Tool(f"{trust}_page", "A page.", named, STR, "read", run, origins=origins, outbound=False)

    async def shout(arguments: Any) -> object:
        given.append(dict(arguments))
        return "said"

    arguments = (Argument("to", STR, purpose="directs"), Argument("text", STR, purpose="carries"))
    says = Tool("shout", "Say it.", arguments, STR, "send", shout, origins={"": Origin("system", "public")})
    return Registry([*(page(trust) for trust in TRUSTS), says])


texts = st.sampled_from(["plain", "$r1", "$r2", "says: $r1 and ${r2}", "$r1.", "$r9", "x $r1.body"])
steps = st.lists(st.tuples(st.sampled_from(pages([]).names), texts, texts), min_size=1, max_size=6)


@settings(max_examples=examples(150))
@given(steps, st.sampled_from(["typed", "as_needed"]))
async def test_an_argument_with_a_text_of_others_carries_its_label_and_nothing_else_does(
    script: list[tuple[str, str, str]], reading: Any
) -> None:
    lines: list[Any] = [
        # The number keeps calls apart: the same call again would end the loop.
        [ToolCall(str(at), name, {"to": first, "text": f"{second} {at}"} if name == "shout" else {"name": first})]
        for at, (name, first, second) in enumerate(script)
    ]
    said = iter([*lines, "It says: $r1", "It says: $r1"])
    high = Speaker(lambda _: next(said), name="high", chamber="privileged")
    low = Speaker([], name="low", chamber="quarantined")
    given: list[dict[str, Any]] = []
    policy: Any = Everything("strict")
    voices = ModelPair(Chambers(high, Quarantined(low)), StrategyParams(reading=reading))
    worked = await run_strategy("do", "native_react", Runtime(voices, pages(given), policy))
    assert isinstance(worked, Answered)
    assert low.asked == []
    assert not any(PAGE in message.text for request in high.asked for message in request.messages)
    for facts, arguments in zip(policy.facts, given, strict=True):
        assert facts.pc.trusted, "no text of others was shown to whoever chose the call"
        untrusted = {each.name for each in facts.arguments if not each.label.trusted}
        assert untrusted >= {name for name, value in arguments.items() if PAGE in value}
        assert untrusted <= {name for name in arguments if "$r" in _written(name, facts.tool, script)}
    assert worked.shade is not None
    assert worked.shade.flat.trusted or PAGE in worked.answer or "mine" in worked.answer or "said" in worked.answer
    assert not worked.shade.flat.trusted or PAGE not in worked.answer


def _written(name: str, tool: str, script: list[tuple[str, str, str]]) -> str:
    """Everything that the model wrote for this argument of this tool."""
    return " ".join(second if name == "text" else first for called, first, second in script if called == tool)
