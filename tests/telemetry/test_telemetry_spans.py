"""Spans: what is inside what, what is told of it, and what never is."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest
from hypothesis import given, strategies as st
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from telemetry_world import ORDER, READ, SECRET, Heard, quarantine, run_mail

from bicameral.agent import Agent
from bicameral.boundary import Alert, ExtractionOutcome, Filled
from bicameral.errors import RunError
from bicameral.labels import PUBLIC, Label
from bicameral.models import ScriptedProvider
from bicameral.plans import parse
from bicameral.runs import Answers, ApprovalQuestion, Failed, Finished, run_plan
from bicameral.telemetry import label_summary, safe_text, span
from bicameral.telemetry._signals import use_tracer_provider
from bicameral.tools import Registry, tool
from bicameral.types import Type


async def test_a_run_is_a_tree_of_steps_decisions_and_model_calls(heard: Heard) -> None:
    outcome = await run_mail(READ, '{"value": 7}', body="There are 7 apples.")
    assert isinstance(outcome, Finished)
    assert heard.tree == {
        "run",
        "run/step search_mail",
        "run/step search_mail/decide search_mail",
        "run/step search_mail/execute_tool search_mail",
        "run/step extract",
        "run/step extract/extract",
        "run/step extract/extract/chat small",
    }


async def test_a_model_call_is_told_in_the_words_of_the_conventions(heard: Heard) -> None:
    await run_mail(READ, '{"value": 7}', body="There are 7 apples.")
    facts = heard.facts("chat small")
    assert facts["gen_ai.operation.name"] == "chat"
    assert facts["gen_ai.provider.name"] == "scripted"
    assert facts["gen_ai.request.model"] == "small"
    assert facts["gen_ai.usage.input_tokens"] > 10
    assert facts["gen_ai.usage.output_tokens"] == len('{"value": 7}') // 4
    assert facts["gen_ai.response.finish_reasons"] == ("stop",)
    assert facts["bicameral.chamber"] == "quarantined"
    assert heard.facts("execute_tool search_mail")["gen_ai.operation.name"] == "execute_tool"


async def test_labels_are_told_in_short(heard: Heard) -> None:
    await run_mail(READ, '{"value": 7}', body="There are 7 apples.")
    facts = heard.facts("step search_mail")
    assert facts["bicameral.result.trusted"] is False
    assert facts["bicameral.result.source_tools"] == ("request", "search_mail")
    # Readers are counted: the sender and the user himself.
    assert facts["bicameral.result.readers"] == "2"
    assert heard.facts("decide search_mail")["bicameral.arguments.trusted"] is True
    assert heard.facts("run")["bicameral.answer.trusted"] is False


@pytest.mark.parametrize(
    ("label", "readers"),
    [
        (Label((), PUBLIC), "public"),
        (Label((), ()), "user"),
        (Label((), ("ada@example.com", "bo@example.com")), "3"),
    ],
)
def test_readers_are_counted_and_not_named(label: Label, readers: str) -> None:
    assert label_summary("x", label)["x.readers"] == readers


async def test_a_plan_and_what_it_cost_is_a_span(heard: Heard) -> None:
    agent = Agent(
        Registry([]),
        privileged=ScriptedProvider(["answer(1)\n"], name="scripted:large", grammars=False),
        quarantined=ScriptedProvider([], grammars=False),
        cache={},
    )
    planned = await agent.plan("Say one", deterministic=True)
    facts = heard.facts("plan")
    assert facts["gen_ai.operation.name"] == "plan"
    assert facts["bicameral.plan.ok"] is True
    assert facts["bicameral.reasoner_tokens"] == planned.spent.reasoner_tokens > 0
    assert facts["bicameral.executor_tokens"] == 0
    assert "plan/chat large" in heard.tree


async def test_rounds_are_one_trace(heard: Heard) -> None:
    agent = Agent(
        Registry([]),
        privileged=ScriptedProvider(["answer(1)\n"], name="scripted:large", grammars=False),
        quarantined=ScriptedProvider([], grammars=False),
        cache={},
    )
    reasoned = await agent.reason("Say one", deterministic=True)
    assert reasoned.ok
    assert {"reason", "reason/plan", "reason/plan/chat large", "reason/run"} <= heard.tree


async def test_steps_side_by_side_keep_their_own_children(heard: Heard) -> None:
    both = asyncio.Event()
    begun: list[str] = []

    @tool(effect="read")
    async def fetch(name: str) -> str:
        """Wait until all have begun."""
        begun.append(name)
        if len(begun) == 3:
            both.set()
        await both.wait()
        with span(f"inside {name}"):
            await asyncio.sleep(0)
        return name

    registry = Registry([fetch])
    source = "a = fetch('a')\nb = fetch('b')\nc = fetch('c')\nanswer([a, b, c])\n"
    outcome = await run_plan(parse(source, registry).plan, registry)
    assert isinstance(outcome, Finished)
    steps = {"a": "0", "b": "1", "c": "2"}
    for name, step in steps.items():
        [inside] = heard.named(f"inside {name}")
        work = heard.parent(inside)
        assert work is not None
        assert (work.name, (work.attributes or {})["bicameral.step"]) == ("execute_tool fetch", step)
        around = heard.parent(work)
        assert around is not None
        assert (around.attributes or {})["bicameral.step"] == step
    # They really were under way together.
    works = heard.named("execute_tool fetch")
    assert max(work.start_time or 0 for work in works) < min(work.end_time or 0 for work in works)


async def test_turns_of_a_loop_side_by_side_are_told_apart(heard: Heard) -> None:
    @tool(effect="read")
    async def fetch(name: str) -> str:
        """Wait a moment."""
        await asyncio.sleep(0.001)
        return name

    registry = Registry([fetch])
    source = "found = []\nfor name in ['a', 'b', 'c']:\n    got = fetch(name)\n    found.append(got)\nanswer(found)\n"
    await run_plan(parse(source, registry).plan, registry)
    [run] = heard.named("run")
    steps = heard.named("step fetch")
    assert {str(heard.facts_of(each)["bicameral.step"]) for each in steps} == {"1[0]/0", "1[1]/0", "1[2]/0"}
    assert all(heard.parent(each) is run for each in steps)


class Yes:
    async def approve(self, question: ApprovalQuestion) -> Answers:
        return Answers.yes(question.calls)


FORWARD = "mails = search_mail('bill')\nsend(mails[0].sender, mails[0].body)\nanswer('done')\n"


async def test_a_question_to_a_person_is_a_span_and_so_is_what_follows_it(heard: Heard) -> None:
    outcome = await run_mail(FORWARD, approver=Yes())
    assert isinstance(outcome, Finished), outcome
    assert heard.facts("decide send")["bicameral.policy.decision"] == "ask"
    assert heard.facts("decide send")["bicameral.policy.rules"]
    facts = heard.facts("approve")
    assert (facts["bicameral.approval.calls"], facts["bicameral.approval.approved"]) == (1, 1)
    assert facts["bicameral.approval.tools"] == ("send",)
    assert heard.facts("step send")["bicameral.step.waits"] is True


async def test_a_failure_is_told_by_its_code_alone(heard: Heard) -> None:
    outcome = await run_mail(f"x = unlock('{SECRET}')\nanswer(x)\n")
    assert isinstance(outcome, Failed)
    assert SECRET in str(outcome.error)
    for name in ("run", "step unlock", "execute_tool unlock"):
        [found] = heard.named(name)
        assert heard.facts(name)["error.type"] == "tools.failed"
        assert found.status.description is None
        assert not found.events
    assert SECRET not in heard.everything


# What must never be told ---------------------------------------------------------------------------------------------

CANARIES = ("canary-argument", "canary-literal", "canary-body", "canary-instruction", "canary-reply", "canary-question")


async def test_no_argument_prompt_result_reply_or_reader_is_in_any_span(
    heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXAMPLE_API_KEY", "canary-key")

    class Person:
        async def ask(self, question: str, type: Type) -> str:
            return "canary-reply"

    source = (
        "mails = search_mail('canary-argument')\n"
        "t = extract(mails[0].body, 'canary-instruction', str)\n"
        "who = ask('canary-question')\n"
        "kind = extract(t, 'which', Literal['canary-literal', 'other'])\n"
        "send('ada@canary-argument.example', t)\n"
        "answer([t, who, kind])\n"
    )
    replies = ('{"value": "canary-body"}', '{"value": "canary-literal"}')
    body = "canary-body is the word, and canary-literal too"
    outcome = await run_mail(source, *replies, body=body, asker=Person(), approver=Yes())
    assert isinstance(outcome, Finished), outcome
    assert len(heard.spans) > 12
    told = heard.everything
    for canary in (*CANARIES, "canary-key", "eve@evil.example", "me@example.com"):
        assert canary not in told, canary


async def test_a_denied_call_and_a_refused_one_tell_no_value(heard: Heard) -> None:
    class No:
        async def approve(self, question: ApprovalQuestion) -> Answers:
            raise RunError("run.refused", f"no, not {question.calls[0].arguments['body']}")

    for options in ({}, {"approver": No()}):
        outcome = await run_mail(FORWARD, body=f"{ORDER} {SECRET}", **options)
        assert isinstance(outcome, Failed)
    assert SECRET not in heard.everything
    assert "eve@evil.example" not in heard.everything
    assert {heard.facts_of(each)["error.type"] for each in heard.named("approve")} == {
        "run.needs-approval",
        "run.refused",
    }


class Hostile:
    """An executor of somebody else's, whose alerts are made of what the stranger wrote."""

    model = "\x1b]0;owned\x07model"
    overlap = 1

    async def extract(self, source: object, instruction: str, wanted: Type) -> ExtractionOutcome:
        ugly = "\x1b[2J\u202e" + "x" * 10_000
        return Filled(1, tuple(Alert("instruction", ugly, 0.9, ugly) for _ in range(3)))


async def test_names_of_others_are_short_and_obeyed_by_nothing(heard: Heard) -> None:
    hostile = "evil\x1b[31m\u202e\n" + "z" * 5_000
    with span(hostile, hostile, {"bicameral.x": hostile, "bicameral.y": [hostile] * 1_000}):
        pass
    outcome = await run_mail(READ, extractor=Hostile())
    assert isinstance(outcome, Finished)
    for found in heard.spans:
        for value in (found.name, *(found.attributes or {}).values()):
            texts = value if isinstance(value, tuple) else (value,)
            assert len(texts) <= 16
            assert all(len(str(text)) <= 130 and str(text).isprintable() for text in texts)


@given(st.text(max_size=400), st.integers(min_value=1, max_value=200))
def test_a_safe_text_is_short_and_has_nothing_in_it_that_is_not_seen(text: str, most: int) -> None:
    shown = safe_text(text, most)
    assert len(shown) <= most
    assert not any(ord(each) < 32 or 127 <= ord(each) < 160 or 0xD800 <= ord(each) < 0xE000 for each in shown)
    assert not set(shown) & set("\u200b\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff")
    assert safe_text(shown, most) == shown


# Whoever listens cannot change what happens --------------------------------------------------------------------------


class Broken(SpanProcessor):
    def on_start(self, span: object, parent_context: object = None) -> None:
        raise RuntimeError("broken at the beginning")

    def on_end(self, span: ReadableSpan) -> None:
        raise RuntimeError("broken at the end")


async def test_a_broken_listener_changes_nothing() -> None:
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(Broken())
    use_tracer_provider(provider)
    try:
        outcome = await run_mail(READ, '{"value": 7}', body="There are 7 apples.")
    finally:
        use_tracer_provider(None)
    assert isinstance(outcome, Finished)
    assert outcome.answer == 7


async def test_a_stopped_run_ends_its_spans(heard: Heard) -> None:
    begun = asyncio.Event()

    @tool(effect="read")
    async def slow() -> str:
        """Never comes to its end."""
        begun.set()
        await asyncio.sleep(60)
        return ""

    registry = Registry([slow])
    task = asyncio.create_task(run_plan(parse("x = slow()\nanswer(x)\n", registry).plan, registry))
    await begun.wait()
    task.cancel()
    await task
    assert heard.facts("execute_tool slow")["error.type"] == "stopped"
    assert heard.facts("run")["bicameral.run.outcome"] == "stopped"


# Figures over many runs ----------------------------------------------------------------------------------------------


async def test_counters_say_what_was_spent_and_noticed(counters: InMemoryMetricReader) -> None:
    await run_mail(READ, '{"value": 7}', body=f"There are 7 apples. {ORDER}")
    await run_mail(READ, "As an assistant I will now gladly do as I was told.")
    found = _points(counters)
    assert found["bicameral.executor_tokens"] > 0
    assert found["gen_ai.client.token.usage"] > 0
    assert found["bicameral.alerts"] >= 2
    assert found["bicameral.extractions"] == 2
    assert found["bicameral.runs"] == 2
    assert "bicameral.reasoner_tokens" not in found


def _points(reader: InMemoryMetricReader) -> dict[str, float]:
    data = reader.get_metrics_data()
    assert data is not None
    totals: dict[str, float] = {}
    for resource in data.resource_metrics:
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                for point in metric.data.data_points:
                    more: float = getattr(point, "value", None) or getattr(point, "sum", 0)
                    totals[metric.name] = totals.get(metric.name, 0) + more
    return totals


# The price of nobody listening ---------------------------------------------------------------------------------------

_QUIET = """
import asyncio, sys
from bicameral.plans import parse
from bicameral.runs import run_plan
from bicameral.tools import Registry, tool

@tool(effect="read")
async def fetch(name: str) -> str:
    "The name."
    return name

registry = Registry([fetch])
outcome = asyncio.run(run_plan(parse("x = fetch('a')\\nanswer(x)\\n", registry).plan, registry))
assert outcome.ok
print(sorted(name for name in sys.modules if name.startswith("opentelemetry")))
"""

_OWN = """
import asyncio
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
exporter, provider = InMemorySpanExporter(), TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)
from bicameral.plans import parse
from bicameral.runs import run_plan
from bicameral.tools import Registry
with trace.get_tracer("mine").start_as_current_span("mine") as mine:
    asyncio.run(run_plan(parse("answer(1)\\n", Registry([])).plan, Registry([])))
run = next(span for span in exporter.get_finished_spans() if span.name == "run")
print(run.parent.span_id == mine.get_span_context().span_id, run.instrumentation_scope.name)
"""


def _printed(program: str) -> str:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_opentelemetry_is_not_imported_by_a_run() -> None:
    assert _printed(_QUIET) == "[]"


def test_the_provider_of_the_process_is_told_everything() -> None:
    assert _printed(_OWN) == "True bicameral"


def test_a_span_that_nobody_hears_is_always_the_same_object() -> None:
    with span("a") as first, span("b", "c", {"d": 1}) as second:
        assert first is second
        assert not first.is_recording


async def test_a_quarantined_model_counts_as_executor() -> None:
    outcome = await run_mail(READ, extractor=quarantine('{"value": 7}'), body="There are 7 apples.")
    assert outcome.usage.reasoner_tokens == 0
    assert outcome.usage.executor_tokens > 0
