"""Falling back: on the same side only, never around a refusal, and never in silence."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from adaptive_world import ASK, Model, Turn, caught, fails, model, now, virtually
from hypothesis import given, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from bicameral.errors import ConfigError, ModelError
from bicameral.limits import Limits
from bicameral.models import Chamber, EndChunk, ModelReply, ModelRequest, Provider
from bicameral.routing import (
    AliasSpec,
    BreakerSettings,
    BudgetedProvider,
    CachedProvider,
    Cascade,
    CircuitBreaker,
    Fallback,
    Hedged,
    ProviderAssembly,
    Retry,
    RetrySettings,
    call_context,
    check_finished,
    find_alias_cycle,
)
from bicameral.sessions import Chambers, Quarantined

ELSEWHERE = ("models.rate-limited", "models.unavailable", "models.timeout", "models.bad-reply", "models.auth")

# Two sides -----------------------------------------------------------------------------------------------------------

Build = Callable[[list[Any]], Provider]
PARTS: dict[str, Build] = {
    "fallback": lambda models: Fallback(models),
    "hedge": lambda models: Hedged(models[0], after=1, second=models[-1]),
    "cascade": lambda models: Cascade(*models, accept=check_finished),
    "fallback of retries": lambda models: Fallback([Retry(each) for each in models]),
    "cascade of fallbacks": lambda models: Cascade(*(Fallback([each]) for each in models), accept=check_finished),
    "fallback of kept replies": lambda models: Fallback([CachedProvider(each, {}) for each in models]),
    "fallback of budgets": lambda models: Fallback([BudgetedProvider(each, Limits(calls=1)) for each in models]),
}
ALONE: dict[str, Callable[[Any], Provider]] = {
    "retry": lambda one: Retry(one),
    "cached": lambda one: CachedProvider(one, {}),
    "budgeted": lambda one: BudgetedProvider(one, Limits(calls=1)),
    "fallback": lambda one: Fallback([one]),
}


class Anything:
    """Equals every chamber there is."""

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return hash("quarantined")


class Sub(str):
    """A text that looks like a chamber and may be anything later."""


class Chameleon(Model):
    """Says one thing when it is looked at first, and another when it is asked."""

    looked = 0

    def __init__(self, first: Chamber | None, then: Chamber | None, credential: str | None = None) -> None:
        super().__init__("chameleon")
        self._first, self._then, self._changed = first, then, False
        self.credential = credential

    def __getattribute__(self, name: str) -> Any:
        if name == "chamber":
            return self._then if self._changed else self._first
        return super().__getattribute__(name)

    def change(self) -> None:
        self._changed = True


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("turned", [False, True])
def test_models_of_both_chambers_are_never_put_together(part: str, turned: bool) -> None:
    two = [model("a", chamber="quarantined", credential="q"), model("b", chamber="privileged", credential="p")]
    with pytest.raises(ModelError) as raised:
        PARTS[part](two[::-1] if turned else two)
    assert raised.value.code == "models.wrong-chamber"
    assert not two[0].asked
    assert not two[1].asked


@pytest.mark.parametrize("part", PARTS)
def test_a_quarantined_wrapper_does_not_smuggle_a_model_to_the_other_side(part: str) -> None:
    inside = Quarantined(model("a", chamber="quarantined"))
    with pytest.raises(ModelError, match="both chambers"):
        PARTS[part]([inside, model("b", chamber="privileged")])


@pytest.mark.parametrize("part", ALONE)
@pytest.mark.parametrize("chamber", [Anything(), Sub("quarantined"), "Quarantined", 1, b"privileged"])
def test_a_model_that_does_not_say_of_which_chamber_it_is_is_in_no_part(part: str, chamber: Any) -> None:
    with pytest.raises(ModelError) as raised:
        ALONE[part](model("a", chamber=chamber))
    assert raised.value.code == "models.wrong-chamber"


@pytest.mark.parametrize("part", ALONE)
def test_a_key_without_a_chamber_is_in_no_part(part: str) -> None:
    with pytest.raises(ModelError) as raised:
        ALONE[part](model("a", credential="key"))
    assert raised.value.code == "models.wrong-chamber"


@pytest.mark.parametrize("part", ALONE)
def test_the_privileged_key_is_seen_through_every_part(part: str) -> None:
    """One key for both sides is refused, however deep it lies."""
    inside = ALONE[part](Fallback([model("a", chamber="quarantined", credential="the key")]))
    outside = Fallback([Retry(model("b", chamber="privileged", credential="the key")), model("c")])
    with pytest.raises(ModelError) as raised:
        Chambers(outside, Quarantined(inside))
    assert raised.value.code == "models.shared-chamber"
    hidden = Fallback([Quarantined(inside)])
    with pytest.raises(ModelError):
        Chambers(outside, Quarantined(hidden))


@pytest.mark.parametrize("part", ALONE)
def test_a_part_around_a_model_with_tools_does_not_hide_them(part: str) -> None:
    class Armed(Model):
        tools = ("send_mail",)

    with pytest.raises(ModelError) as raised:
        Quarantined(ALONE[part](Armed("a", chamber="quarantined")))
    assert raised.value.code == "models.wrong-chamber"
    with pytest.raises(ModelError):
        Quarantined(ALONE[part](Armed("a")))


@pytest.mark.parametrize("part", ALONE)
def test_what_a_model_says_of_itself_is_read_again_before_each_call(part: str) -> None:
    it = Chameleon("quarantined", "privileged", "key")
    one = ALONE[part](it)
    it.change()
    assert virtually(lambda: caught(one.generate(ASK))).code == "models.wrong-chamber"
    assert not it.asked


def test_a_key_that_is_exchanged_later_is_noticed() -> None:
    it = model("a", chamber="quarantined", credential="q")
    one = Fallback([it])
    it.credential = "the privileged one"
    assert virtually(lambda: caught(one.generate(ASK))).code == "models.wrong-chamber"


def test_a_privileged_model_is_not_asked_for_the_quarantine() -> None:
    it = model("a", chamber="privileged")

    async def work() -> str:
        with call_context(chamber="quarantined"):
            return (await caught(Fallback([it]).generate(ASK))).code

    assert virtually(work) == "models.wrong-chamber"
    assert not it.asked


def test_a_model_that_holds_nothing_may_stand_on_either_side() -> None:
    for side in ("privileged", "quarantined"):
        both = Fallback([model("a", fails("models.unavailable"), chamber=side, credential="k"), model("b")])
        assert both.chamber == side
        assert both.credentials == {"k"}
        assert virtually(lambda both=both: both.generate(ASK)).text == "b"


# Answers -------------------------------------------------------------------------------------------------------------


def test_the_first_model_answers_where_it_can_and_nothing_is_said() -> None:
    first, second = model("a"), model("b")
    reply = virtually(lambda: Fallback([first, second]).generate(ASK))
    assert (reply.text, reply.model, reply.degraded, reply.route) == ("a", "a", None, None)
    assert not second.asked


@pytest.mark.parametrize("code", ELSEWHERE)
def test_an_answer_of_another_model_says_so(code: str) -> None:
    reply = virtually(lambda: Fallback([model("a", fails(code)), model("b")]).generate(ASK))
    assert reply.text == "b"
    assert reply.degraded is not None
    assert "b answered instead of a" in reply.degraded
    assert reply.route is not None
    assert reply.route.attempts[0][0] == "a"


def test_an_answer_from_further_down_says_all_of_it() -> None:
    inner = Fallback([model("b", fails("models.timeout")), model("c")])
    reply = virtually(lambda: Fallback([model("a", fails("models.auth")), inner]).generate(ASK))
    assert reply.degraded is not None
    assert "a (auth)" in reply.degraded
    assert "b (timeout)" in reply.degraded
    assert reply.route is not None
    assert [name for name, _ in reply.route.attempts] == ["a", "b"]


@pytest.mark.parametrize("code", ["models.refused", "models.bad-request", "models.cancelled"])
@pytest.mark.parametrize("part", PARTS)
def test_a_refusal_is_final_in_every_part(part: str, code: str) -> None:
    first, second = model("a", fails(code, after=0.5)), model("b")
    error = virtually(lambda: caught(PARTS[part]([first, second]).generate(ASK)))
    assert error.code == code
    assert (len(first.asked), len(second.asked)) == (1, 0)


parts = st.sampled_from(["retry", "fallback", "hedge", "cascade", "cached", "budgeted"])


def _built(shape: list[str], leaf: Model, others: list[Model]) -> Provider:
    one: Provider = leaf
    for number, part in enumerate(shape):
        other = model(f"other {number}")
        match part:
            case "retry":
                one = Retry(one, RetrySettings(first=0))
            case "cached":
                one = CachedProvider(one, {})
            case "budgeted":
                one = BudgetedProvider(one, Limits(calls=100))
            case _:
                others.append(other)
                one = PARTS[part]([one, other])
    return one


@given(st.lists(parts, max_size=6))
def test_no_arrangement_of_parts_gets_around_a_refusal(shape: list[str]) -> None:
    leaf, others = model("leaf", fails("models.refused", after=0.01)), list[Model]()
    assert virtually(lambda: caught(_built(shape, leaf, others).generate(ASK))).code == "models.refused"
    assert len(leaf.asked) == 1
    assert not any(other.asked for other in others)


@given(st.lists(parts, max_size=6), st.sampled_from(["models.unavailable", "models.bad-reply", "models.rate-limited"]))
def test_every_arrangement_gives_one_reply_and_tells_the_truth_about_it(shape: list[str], code: str) -> None:
    others: list[Model] = []
    one = _built(shape, model("leaf", fails(code)), others)

    async def work() -> ModelReply | None:
        with suppress(ModelError):
            return await one.generate(ASK)

    reply = virtually(work)
    helps = {"fallback", "cascade"} & set(shape)
    assert (reply is not None) == bool(helps)
    if reply is not None:
        assert sum(len(other.asked) for other in others) == 1
        assert reply.route is not None
        first = next(part for part in shape if part in helps)
        assert (reply.degraded is not None) == (first == "fallback")


def test_when_nobody_answers_everybody_is_named() -> None:
    both = Fallback([model("a", fails("models.auth")), model("b", fails("models.timeout"))])
    error = virtually(lambda: caught(both.generate(ASK)))
    assert error.code == "models.unavailable"
    assert "a: auth" in error.message
    assert "b: timeout" in error.message


def test_all_rate_limited_says_when_the_first_is_free_again() -> None:
    both = Fallback(
        [model(name, fails("models.rate-limited", retry_after=wait)) for name, wait in (("a", 9), ("b", 4))]
    )
    error = virtually(lambda: caught(both.generate(ASK)))
    assert (error.code, getattr(error, "retry_after", None)) == ("models.rate-limited", 4)


def test_a_spent_budget_of_one_model_leads_elsewhere_and_says_so() -> None:
    dear = BudgetedProvider(model("dear"), Limits(calls=1))
    both = Fallback([dear, model("cheap")])

    async def work() -> list[ModelReply]:
        return [await both.generate(ASK) for _ in range(2)]

    one, two = virtually(work)
    assert (one.text, two.text) == ("dear", "cheap")
    assert two.degraded is not None
    assert "budget spent" in two.degraded


def test_the_time_is_that_of_the_whole() -> None:
    both = Fallback([model("a", fails("models.unavailable", after=6)), model("b", Turn(after=6))])

    async def work() -> float:
        began = now()
        assert (await caught(both.generate(_within(10)))).code == "models.unavailable"
        return now() - began

    assert virtually(work) == pytest.approx(10)


def _within(seconds: float) -> ModelRequest:
    return ModelRequest(ASK.messages, timeout=seconds)


def test_being_called_off_ends_it_and_asks_nobody_else() -> None:
    first, second = model("a", Turn(after=50)), model("b")

    async def work() -> bool:
        task = asyncio.create_task(Fallback([first, second]).generate(ASK))
        await asyncio.sleep(1)
        task.cancel()
        await asyncio.wait({task})
        return task.cancelled()

    assert virtually(work)
    assert first.cancelled == 1
    assert not second.asked


def test_a_stream_comes_from_elsewhere_and_its_end_says_so() -> None:
    both = Fallback([model("a", fails("models.unavailable")), model("b", Turn(text="one two"))])

    async def work() -> tuple[list[str], ModelReply]:
        texts = [text async for text in both.stream(ASK)]
        end = [chunk async for chunk in both.chunks(ASK)][-1]
        assert isinstance(end, EndChunk)
        return texts, end.reply

    texts, reply = virtually(work)
    assert texts == ["one ", "two "]
    assert reply.degraded is not None


def test_closing_it_closes_every_model() -> None:
    two = [model("a"), model("b")]
    virtually(Fallback([Retry(two[0]), two[1]]).aclose)
    assert all(each.closed for each in two)


def test_grammars_and_training_are_those_that_all_have() -> None:
    one = model("a", adapters={"delta": "1", "echo": "2"})
    two = model("b", grammars=False, adapters={"delta": "3"})
    both = Fallback([one, two])
    assert not both.grammars
    assert set(both.adapters) == {"delta"}
    assert both.adapters["delta"] not in ("1", "3")
    assert Fallback([one]).adapters == one.adapters
    assert both.name == "fallback(a, b)"
    assert Fallback([one]).name == "a"


# The circuit breaker -------------------------------------------------------------------------------------------------


def test_a_model_that_keeps_failing_is_left_alone_and_then_tried_once() -> None:
    first, second = model("a", *[fails("models.unavailable")] * 4, Turn(text="back")), model("b")
    both = Fallback([first, second], breaker=BreakerSettings(failures=3, rest=10))

    async def work() -> list[int]:
        counts: list[int] = []
        for _ in range(3):
            await both.generate(ASK)
        await both.generate(ASK)
        counts.append(len(first.asked))
        await asyncio.sleep(10)
        await both.generate(ASK)
        counts.append(len(first.asked))
        await both.generate(ASK)
        counts.append(len(first.asked))
        await asyncio.sleep(10)
        assert (await both.generate(ASK)).text == "back"
        assert (await both.generate(ASK)).degraded is None
        return counts

    assert virtually(work) == [3, 4, 4]


def test_in_the_half_open_state_one_call_is_made_and_the_others_go_elsewhere() -> None:
    first, second = model("a", fails("models.unavailable"), Turn(text="back", after=5)), model("b")
    both = Fallback([first, second], breaker=BreakerSettings(failures=1, rest=10))

    async def work() -> list[str]:
        await both.generate(ASK)
        await asyncio.sleep(10)
        return sorted(reply.text for reply in await asyncio.gather(*(both.generate(ASK) for _ in range(5))))

    assert virtually(work) == ["b", "b", "b", "b", "back"]


def test_a_trial_that_is_called_off_leaves_the_next_one_to_try() -> None:
    first, second = model("a", fails("models.unavailable"), Turn(after=50), Turn(text="back")), model("b")
    both = Fallback([first, second], breaker=BreakerSettings(failures=1, rest=10))

    async def work() -> str:
        await both.generate(ASK)
        await asyncio.sleep(10)
        task = asyncio.create_task(both.generate(ASK))
        await asyncio.sleep(1)
        task.cancel()
        await asyncio.wait({task})
        return (await both.generate(ASK)).text

    assert virtually(work) == "back"


def test_a_model_that_asks_to_be_left_alone_is() -> None:
    first, second = model("a", fails("models.rate-limited", retry_after=20), Turn(text="back")), model("b")
    both = Fallback([first, second])

    async def work() -> list[str]:
        texts = [(await both.generate(ASK)).text, (await both.generate(ASK)).text]
        await asyncio.sleep(20)
        return [*texts, (await both.generate(ASK)).text]

    assert virtually(work) == ["b", "b", "back"]


def test_a_refusal_says_that_the_model_is_well() -> None:
    first = model("a", *[fails("models.unavailable"), fails("models.refused")] * 5)
    both = Fallback([first, model("b")], breaker=BreakerSettings(failures=2, rest=10))

    async def work() -> None:
        for number in range(10):
            if number % 2:
                assert (await caught(both.generate(ASK))).code == "models.refused"
            else:
                await both.generate(ASK)

    virtually(work)
    assert len(first.asked) == 10


def test_all_circuits_open_is_an_error_of_its_own() -> None:
    both = Fallback(
        [model("a", fails("models.unavailable")), model("b", fails("models.unavailable"))],
        breaker=BreakerSettings(failures=1, rest=10),
    )

    async def work() -> list[str]:
        return [(await caught(both.generate(ASK))).code for _ in range(2)]

    assert virtually(work) == ["models.unavailable", "models.circuit-open"]


class Circuit(RuleBasedStateMachine):
    """Whatever happens in whatever order: an open circuit lets nothing through, and a half-open one lets one."""

    def __init__(self) -> None:
        super().__init__()
        self.at = 0.0
        self.breaker = CircuitBreaker(BreakerSettings(failures=3, rest=10), lambda: self.at)
        self.flying = 0
        self.trying = False

    @rule(seconds=st.floats(0, 15))
    def wait(self, seconds: float) -> None:
        self.at += seconds

    @rule()
    def ask(self) -> None:
        state, passed = self.breaker.state, self.breaker.allows()
        if state == "open":
            assert not passed
        if state == "closed":
            assert passed
        if state == "half-open":
            assert passed != self.trying
            self.trying = True
        self.flying += passed

    @rule(how=st.sampled_from(["record_success", "record_failure", "release"]))
    def end(self, how: str) -> None:
        if not self.flying:
            return
        self.flying -= 1
        getattr(self.breaker, how)()
        self.trying = False
        if how == "record_success":
            assert self.breaker.state == "closed"

    @invariant()
    def state_is_one_of_three(self) -> None:
        assert self.breaker.state in ("closed", "open", "half-open")


TestCircuit = Circuit.TestCase


# Settings of aliases -------------------------------------------------------------------------------------------------


def test_what_is_said_of_an_alias_is_put_around_its_model() -> None:
    models = {"main": model("m", fails("models.unavailable")), "fast": model("f"), "big": model("b")}
    specs = {
        "main": AliasSpec(retry=RetrySettings(attempts=2, first=0), fallback=("fast",), budget=Limits(calls=9)),
        "fast": AliasSpec(cache=True, budget=Limits(calls=1)),
        "both": AliasSpec(cascade=("fast", "big")),
        "slow": AliasSpec(hedge_after=1, hedge_with="fast"),
    }
    models["slow"] = model("s", Turn(after=50))
    assembly = ProviderAssembly(specs, lambda name: models[name], cache={})

    async def work() -> list[str]:
        return [(await assembly.provider(name).generate(ASK)).text for name in ("main", "both", "slow", "big")]

    # The second time the reply of `fast` is a kept one, which its budget does not mind.
    assert virtually(work) == ["f", "f", "f", "b"]
    assert (len(models["main"].asked), len(models["fast"].asked)) == (2, 1)
    assert assembly.provider("fast") is assembly.provider("fast")


def test_aliases_that_lead_in_a_circle_are_refused_and_named() -> None:
    specs = {"a": AliasSpec(fallback=("b",)), "b": AliasSpec(cascade=("c", "x")), "c": AliasSpec(hedge_with="a")}
    assert find_alias_cycle(specs) == ("a", "b", "c")
    with pytest.raises(ConfigError) as raised:
        ProviderAssembly(specs, lambda name: model(name))
    assert raised.value.code == "routing.cycle"
    assert find_alias_cycle({"a": AliasSpec(fallback=("b", "b")), "b": AliasSpec(fallback=("x",))}) is None


@given(st.dictionaries(st.sampled_from("abcde"), st.lists(st.sampled_from("abcdef"), max_size=3).map(tuple)))
def test_a_circle_is_found_exactly_if_there_is_one(leads: dict[str, tuple[str, ...]]) -> None:
    found = find_alias_cycle({name: AliasSpec(fallback=others) for name, others in leads.items()})
    reaches = {name: set(others) for name, others in leads.items()}
    for _ in leads:
        for others in reaches.values():
            others |= {further for each in set(others) for further in reaches.get(each, ())}
    assert (found is not None) == any(name in others for name, others in reaches.items())
    for here, there in zip(found or (), (*(found or ())[1:], *(found or ())[:1]), strict=True):
        assert there in leads[here]


def test_an_alias_of_the_other_chamber_is_not_let_in_by_settings() -> None:
    models = {"q": model("q", chamber="quarantined"), "p": model("p", chamber="privileged")}
    with pytest.raises(ModelError) as raised:
        ProviderAssembly({"q": AliasSpec(fallback=("p",))}, lambda name: models[name]).provider("q")
    assert raised.value.code == "models.wrong-chamber"
