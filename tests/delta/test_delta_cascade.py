"""The cascade: a small model's plan is taken unless something speaks against it, and every escalation says what."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from bicameral.errors import ModelError, PlanError
from bicameral.limits import ModelCall
from bicameral.models import EndChunk, Message, ModelReply, ModelRequest, Provider, ReplyToken, Route, ScriptedProvider
from bicameral.planning import (
    Delta,
    DoubtCriteria,
    Intent,
    NamedDate,
    PlanCascade,
    asked_effects,
    deciding_tokens,
    weakest_token,
)
from bicameral.routing import RouteTag, current_context
from bicameral.tools import Folders, Registry, Surroundings, load_toolboxes

STANDARD = ("files", "lines", "tables", "mail", "calendar", "web", "clock")
COUNT = 'lines = read_lines("notes.txt")\nanswer(len(lines))\n'
OTHER = 'lines = read_lines("notes.txt")\nanswer(lines)\n'
WRONG = 'lines = read_line("notes.txt")\nanswer(lines)\n'
INTENT = Intent(request="Count the lines of notes.txt")


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    return load_toolboxes({name: {} for name in STANDARD}, Surroundings(Folders(tmp_path, (tmp_path,), (tmp_path,))))


class Sure(ScriptedProvider):
    """A script whose every reply is one token of this probability, if it is asked for."""

    def __init__(self, plans: Sequence[str], name: str, sure: float | None = None) -> None:
        super().__init__([f"{plan}```" for plan in plans], name=name, grammars=False)
        self._sure = sure

    async def generate(self, request: ModelRequest) -> ModelReply:
        reply = await super().generate(request)
        if self._sure is None or not request.confidence:
            return reply
        return replace(reply, confidence=(ReplyToken("read_lines", self._sure),))


class Failing(ScriptedProvider):
    def __init__(self, code: str) -> None:
        super().__init__([], name="failing", grammars=False)
        self._code = code

    async def generate(self, request: ModelRequest) -> ModelReply:
        raise ModelError(self._code, "no")


def cascade(small: Provider, large: Provider, **options: Any) -> PlanCascade:
    return PlanCascade({"fast": small, "main": large}, **options)


async def escalation(small: Provider, registry: Registry, intent: Intent = INTENT, large: str = COUNT) -> str | None:
    """Why the large model was asked, or None if it was not."""
    compiled = await cascade(small, Sure([large] * 3, "large")).compile(intent, registry)
    assert compiled.route is not None
    return dict(compiled.route.attempts).get("fast")


# When the small model's plan is taken.


async def test_a_plan_that_nothing_speaks_against_is_taken_and_the_large_model_is_never_asked(
    registry: Registry,
) -> None:
    large = Sure([], "large")
    compiled = await cascade(Sure([COUNT], "small", 0.99), large).compile(INTENT, registry)
    assert compiled.route == Route("fast", "cascade", "asked first")
    assert large.requests == []


async def test_a_model_that_cannot_say_how_sure_it_was_is_held_to_the_rest(registry: Registry) -> None:
    assert await escalation(Sure([COUNT], "small"), registry) is None
    assert await escalation(Sure([WRONG, COUNT], "small"), registry) is not None


# When it is not.


async def test_a_weak_choice_is_a_reason(registry: Registry) -> None:
    why = await escalation(Sure([COUNT], "small", 0.2), registry)
    assert why == "the model was not sure of 'read_lines' (0.20)"


async def test_the_threshold_is_what_it_is_set_to(registry: Registry) -> None:
    for sure, expected in ((0.1, "fast"), (0.2, "fast"), (0.3, "main")):
        planner = cascade(Sure([COUNT], "small", 0.2), Sure([COUNT], "large"), doubts=DoubtCriteria(sure=sure))
        compiled = await planner.compile(INTENT, registry)
        assert compiled.route is not None
        assert compiled.route.alias == expected


async def test_a_plan_that_had_to_be_mended_is_written_again_by_the_large_model(registry: Registry) -> None:
    large = Sure([OTHER], "large")
    compiled = await cascade(Sure([WRONG, COUNT], "small", 0.99), large).compile(INTENT, registry)
    assert compiled.route == Route(
        "main", "cascade", "escalated", attempts=(("fast", "the plan had to be mended (1)"),)
    )
    assert compiled.repairs == 0


async def test_no_plan_at_all_is_a_reason(registry: Registry) -> None:
    why = await escalation(Sure([WRONG] * 3, "small"), registry)
    assert why is not None
    assert "plan.none" in why


async def test_the_last_models_plan_is_taken_as_it_is_and_its_error_too(registry: Registry) -> None:
    unsure = Sure([COUNT], "large", 0.01)
    compiled = await cascade(Sure([COUNT], "small", 0.01), unsure).compile(INTENT, registry)
    assert compiled.route is not None
    assert compiled.route.alias == "main"
    assert not unsure.requests[0].confidence
    with pytest.raises(PlanError) as caught:
        await cascade(Sure([WRONG] * 3, "small"), Sure([WRONG] * 3, "large")).compile(INTENT, registry)
    assert caught.value.code == "plan.none"


async def test_three_stages_are_asked_in_order(registry: Registry) -> None:
    stages = {"a": Sure([COUNT], "a", 0.1), "b": Sure([COUNT], "b", 0.2), "c": Sure([COUNT], "c")}
    compiled = await PlanCascade(stages).compile(INTENT, registry)
    assert compiled.route is not None
    assert [alias for alias, _ in compiled.route.attempts] == ["a", "b"]


# What a request says and a plan leaves out.


def asked(request: str, registry: Registry, *dates: NamedDate) -> Intent:
    return Intent(request=request, effects=asked_effects(request, registry), dates=dates)


@pytest.mark.parametrize(
    ("request_", "plan", "reason"),
    [
        ("Show the 7 newest lines of notes.txt", OTHER, "says 7"),
        ("Which lines of notes.txt speak of Harriet?", OTHER, "names Harriet"),
        ('Which lines of notes.txt say "late delivery"?', OTHER, "'late delivery'"),
        (
            "Which mails came since May?",
            'mails = search_mail(since=date("2024-01-01"))\nanswer(len(mails))\n',
            "the day 2024-01-01",
        ),
    ],
)
async def test_what_is_left_out_or_added_is_a_reason(request_: str, plan: str, reason: str, registry: Registry) -> None:
    why = await escalation(Sure([plan] * 3, "small", 0.99), registry, asked(request_, registry), plan)
    assert why is not None
    assert reason in why


async def test_an_effect_through_another_tool_than_the_one_asked_for_is_a_reason(registry: Registry) -> None:
    copied = 'copy_file("notes.txt", "old.txt")\nanswer("Done")\n'
    more = 'copy_file("notes.txt", "old.txt")\nwrite_text("more.txt", "x")\nanswer("Done")\n'
    intent = asked("Copy notes.txt to old.txt", registry)
    why = await escalation(Sure([more] * 3, "small", 0.99), registry, intent, copied)
    assert why is not None
    assert "write_text" in why


@pytest.mark.parametrize(
    ("request_", "plan"),
    [
        ("Show the first 7 lines of notes.txt", 'lines = read_lines("notes.txt")\nanswer(lines[:7])\n'),
        (
            "Which lines of notes.txt speak of Harriet?",
            'lines = read_lines("notes.txt")\nfound = grep(lines, "harriet")\nanswer(found)\n',
        ),
        ("Copy notes.txt to old.txt", 'copy_file("notes.txt", "old.txt")\nanswer("Copied")\n'),
    ],
)
async def test_a_plan_that_says_what_the_request_says_is_not_doubted(
    request_: str, plan: str, registry: Registry
) -> None:
    assert await escalation(Sure([plan], "small", 0.99), registry, asked(request_, registry)) is None


# What is no reason to ask elsewhere.


@pytest.mark.parametrize("code", ["models.refused", "models.auth", "models.budget-spent", "models.timeout"])
async def test_a_refusal_and_a_broken_model_are_not_got_around(code: str, registry: Registry) -> None:
    large = Sure([COUNT], "large")
    with pytest.raises(ModelError) as caught:
        await cascade(Failing(code), large).compile(INTENT, registry)
    assert caught.value.code == code
    assert large.requests == []


async def test_a_prompt_that_is_too_long_for_the_small_model_goes_to_the_large_one(registry: Registry) -> None:
    assert "models.prompt-too-long" in (await escalation(Failing("models.prompt-too-long"), registry) or "")


def test_no_stage_is_of_the_quarantined_side() -> None:
    small = ScriptedProvider([], name="small", chamber="quarantined")
    with pytest.raises(ModelError) as caught:
        cascade(small, Sure([], "large"))
    assert caught.value.code == "models.wrong-chamber"


def test_a_cascade_of_one_is_none() -> None:
    with pytest.raises(ModelError) as caught:
        PlanCascade({"fast": Sure([], "small")})
    assert caught.value.code == "models.bad-setting"


# What is recorded.


async def test_every_reply_says_on_which_route_it_was_asked(registry: Registry) -> None:
    heard: list[ModelCall] = []
    planner = cascade(Sure([COUNT], "small", 0.1), Sure([COUNT], "large"), listener=heard.append)
    await planner.compile(INTENT, registry)
    routes = [call.reply.route for call in heard]
    assert [route.alias for route in routes if route] == ["fast", "main"]
    assert routes[1] is not None
    assert routes[1].attempts[0][0] == "fast"
    assert [call.reply.model for call in heard] == ["small", "large"]


async def test_whoever_watches_is_told_why_the_plan_begins_anew(registry: Registry) -> None:
    seen: list[str] = []
    await cascade(Sure([COUNT], "small", 0.1), Sure([COUNT], "large")).compile(INTENT, registry, watch=seen.append)
    assert any(line.startswith("# fast: the model was not sure") for line in seen)


async def test_the_large_model_is_asked_in_a_situation_with_a_failure(registry: Registry) -> None:
    failures: list[int] = []

    def note(_: ModelRequest) -> str:
        failures.append(current_context().failures)
        return f"{COUNT}```"

    large = ScriptedProvider(note, name="large", grammars=False)
    await cascade(Sure([COUNT], "small", 0.1), large).compile(INTENT, registry)
    assert failures == [1]


# What is remembered.


async def test_the_choice_is_remembered_with_its_reasons_and_nobody_is_asked_again(registry: Registry) -> None:
    small, large = Sure([COUNT], "small", 0.1), Sure([OTHER], "large")
    planner = cascade(small, large, cache={})
    first = await planner.compile(INTENT, registry)
    again = await planner.compile(INTENT, registry)
    assert again.cached
    assert (again.plan, again.route) == (first.plan, first.route)
    assert (len(small.requests), len(large.requests)) == (1, 1)


async def test_a_plan_that_was_cached_without_the_cascade_is_not_taken_unseen(registry: Registry) -> None:
    cache: dict[str, str] = {}
    await Delta(Sure([COUNT], "small"), cache=cache).compile(INTENT, registry)
    small = Sure([COUNT], "small", 0.1)
    compiled = await cascade(small, Sure([COUNT], "large"), cache=cache).compile(INTENT, registry)
    assert compiled.route is not None
    assert compiled.route.alias == "main"


async def test_another_threshold_is_another_choice(registry: Registry) -> None:
    cache: dict[str, str] = {}
    for sure, expected in ((0.05, "fast"), (0.5, "main")):
        planner = cascade(
            Sure([COUNT], "small", 0.1), Sure([COUNT], "large"), cache=cache, doubts=DoubtCriteria(sure=sure)
        )
        compiled = await planner.compile(INTENT, registry)
        assert compiled.route is not None
        assert compiled.route.alias == expected


@given(st.one_of(st.text(), st.sampled_from(["{}", "[]", "null", '{"alias": "other", "why": ""}', '{"alias": 1}'])))
async def test_a_damaged_memory_is_as_good_as_none(damage: str) -> None:
    registry = Registry([])

    class Damaged(dict[str, str]):
        def get(self, key: str, default: str | None = None) -> str | None:  # pyright: ignore[reportIncompatibleMethodOverride]
            return damage

    planner = cascade(Sure(["answer(1)\n"], "small", 0.9), Sure([], "large"), cache=Damaged())
    compiled = await planner.compile(Intent(request="One"), registry)
    assert compiled.route == Route("fast", "cascade", "asked first")


async def test_what_a_run_decides_is_never_remembered(registry: Registry) -> None:
    cache: dict[str, str] = {}
    planner = cascade(Sure([COUNT], "small", 0.9), Sure([OTHER], "large"), cache=cache)
    first = await planner.compile(INTENT, registry)
    assert first.route is not None
    assert planner.can_escalate(first.route)
    second = await planner.escalate(first.route, "its run failed", INTENT, registry)
    assert second.route is not None
    assert second.route.attempts == (("fast", "its run failed"),)
    assert not planner.can_escalate(second.route)
    third = await planner.compile(INTENT, registry)
    assert third.route == first.route


def test_there_is_no_way_on_from_a_plan_of_somebody_else() -> None:
    planner = cascade(Sure([], "small"), Sure([], "large"))
    assert not planner.can_escalate(None)
    assert not planner.can_escalate(Route("fast", "role", ""))


# How sure a model was.


def tokens(*pieces: tuple[str, float]) -> list[ReplyToken]:
    return [ReplyToken(text, sure) for text, sure in pieces]


def test_what_a_variable_is_called_is_no_weak_choice() -> None:
    said = tokens(("mails", 0.01), (" =", 1.0), (" search", 0.8), ("_mail", 0.9), ("()\n", 0.7))
    assert weakest_token(said) == ReplyToken("()\n", 0.7)


def test_how_a_sentence_is_put_is_no_weak_choice_and_a_name_in_quotes_is() -> None:
    said = tokens(
        ('answer("', 0.9), ("Well", 0.01), (" done", 0.02), ('")\n', 0.9), ('x = y["', 0.9), ("sku", 0.3), ('"]\n', 1)
    )
    assert weakest_token(said) == ReplyToken("sku", 0.3)


def test_nothing_said_is_nothing_to_doubt() -> None:
    assert weakest_token([]) is None


@given(st.lists(st.tuples(st.text(max_size=6), st.floats(0, 1))))
def test_choices_are_some_of_the_tokens_in_their_order(pieces: list[tuple[str, float]]) -> None:
    said = tokens(*pieces)
    rest = iter(said)
    assert all(any(choice is token for token in rest) for choice in deciding_tokens(said))


@given(st.floats(0, 1), st.floats(0, 1))
async def test_a_higher_threshold_never_takes_what_a_lower_one_doubts(low: float, high: float) -> None:
    low, high = sorted((low, high))
    planned: Callable[[], Sure] = lambda: Sure(["answer(1)\n"], "small", 0.5)  # noqa: E731
    taken: list[str] = []
    for sure in (low, high):
        planner = cascade(planned(), Sure(["answer(1)\n"], "large"), doubts=DoubtCriteria(sure=sure))
        compiled = await planner.compile(Intent(request="One"), Registry([]))
        assert compiled.route is not None
        taken.append(compiled.route.alias)
    assert taken != ["main", "fast"]


async def test_a_reply_that_is_streamed_says_on_which_route_it_was_asked_too() -> None:
    route = Route("main", "cascade", "escalated", attempts=(("fast", "why"),))
    marked = RouteTag(ScriptedProvider(["one\ntwo"], name="large"), route)
    pieces = [piece async for piece in marked.chunks(ModelRequest((Message("user", "Count."),)))]
    assert isinstance(pieces[-1], EndChunk)
    assert pieces[-1].reply.route == route
