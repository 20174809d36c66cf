"""Stacks behind traces: every format and convention gives the same, and conclusions have spans."""

from __future__ import annotations

import io
import json
import random
from pathlib import Path
from typing import Any, cast

import pytest
from framework_errors import suppress_codes
from framework_traces import TraceMaker, mail_assistant
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor
from pydantic_ai import Agent
from pydantic_ai.capabilities import Instrumentation
from pydantic_ai.models.instrumented import InstrumentationSettings
from pydantic_ai.models.test import TestModel

from bicameral.catalog.frameworks import RecoveredStack, lint_recovered, read_trace
from bicameral.catalog.frameworks._spans import parse_trace
from bicameral.catalog.frameworks._trace import recover_trace
from bicameral.errors import CatalogError

TYPES = ("stringValue", "intValue", "doubleValue", "arrayValue", "kvlistValue", "bytesValue")


def recover(text: str) -> RecoveredStack:
    return recover_trace(parse_trace(text, "run.json"), "run.json")


def patterns(recovered: RecoveredStack, name: str) -> frozenset[str]:
    return next(agent for agent in recovered.stack.agents if agent.name == name).patterns


@pytest.mark.parametrize("form", ["otlp", "lines", "openinference", "traceloop"])
def test_every_convention_gives_the_same_stack(form: str) -> None:
    recovered = recover(getattr(mail_assistant(), form)())
    (agent,) = recovered.stack.agents
    assert (agent.name, agent.model) == ("assistant", "gpt-4o")
    assert agent.patterns == {"R4", "I2", "V14"}
    assert agent.legs == ("untrusted_content", "external_comms")
    assert [(action.name, action.gate) for action in agent.actions or ()] == [("send_email", "none")]
    assert recovered.counts is not None
    assert recovered.counts.to_json() == {
        "spans": 6,
        "model_calls": 3,
        "tool_calls": 2,
        "failed_calls": 0,
        "input_tokens": 300,
        "output_tokens": 30,
    }


def test_text_from_outside_before_an_action_is_found_at_the_span_of_the_action() -> None:
    report = lint_recovered(recover(mail_assistant().otlp(indent=1)))
    finding = next(each for each in report.findings if each.rule == "L6")
    assert finding.severity == "error"
    assert finding.place.step == "span 0000000000000005"
    line = mail_assistant().otlp(indent=1).splitlines()[(finding.place.line or 0) - 1]
    assert '"spanId": "0000000000000005"' in line
    # Both tools are judged by their names, and that is said.
    assert finding.basis == "inferred"
    assert "'fetch_page' (span 0000000000000003)" in finding.evidence[0]


def test_an_action_without_text_from_outside_is_not_reported_as_decided_by_it() -> None:
    trace = TraceMaker()
    root = trace.agent("assistant")
    trace.chat(root, 1)
    trace.tool("add_numbers", root, 3)
    trace.chat(root, 5)
    trace.tool("send_email", root, 7)
    assert "L6" not in {each.rule for each in lint_recovered(recover(trace.otlp())).findings}


def test_a_page_that_no_model_read_afterwards_is_no_leg() -> None:
    trace = TraceMaker()
    root = trace.agent("assistant")
    trace.chat(root, 1)
    trace.tool("fetch_page", root, 3)
    assert recover(trace.otlp()).stack.agents[0].legs is None


def test_an_approval_between_decision_and_call_is_a_gate() -> None:
    trace = mail_assistant()
    trace.add("human approval", {}, parent=trace.spans[0]["spanId"], at=(6.2, 6.8))
    (agent,) = recover(trace.otlp()).stack.agents
    assert [(action.name, action.gate) for action in agent.actions or ()] == [("send_email", "V1")]
    trace = mail_assistant()
    trace.add("human approval", {}, parent=trace.spans[0]["spanId"], at=(2.2, 2.8))
    (agent,) = recover(trace.otlp()).stack.agents
    assert [(action.name, action.gate) for action in agent.actions or ()] == [("send_email", "none")]


def test_what_a_trace_cannot_show_is_no_error() -> None:
    report = lint_recovered(recover(mail_assistant().otlp()))
    (limits,) = [each for each in report.findings if "V9" in each.wants]
    assert (limits.severity, limits.basis) == ("note", "inferred")
    assert limits.message.endswith("(or the trace does not show it)")
    assert not any("V14" in each.wants for each in report.findings)


def test_agents_below_an_agent_are_workers_and_bring_what_they_read() -> None:
    trace = TraceMaker()
    root = trace.agent("lead")
    trace.chat(root, 1)
    call = trace.tool("ask_reader", root, 3, until=9)
    inner = trace.agent("reader", parent=call, at=(3, 9))
    trace.chat(inner, 4)
    trace.tool("fetch_page", inner, 6)
    trace.chat(inner, 7)
    trace.chat(root, 10)
    trace.tool("delete_account", root, 12)
    recovered = recover(trace.otlp())
    assert {"O6", "O17"} <= patterns(recovered, "lead")
    assert "O4" not in patterns(recovered, "lead")
    findings = [each for each in lint_recovered(recovered).findings if each.rule == "L6"]
    assert [each.path for each in findings] == ["agents.lead.actions.delete_account"]


def test_agents_at_the_same_time_are_parallel() -> None:
    trace = TraceMaker()
    root = trace.agent("lead")
    trace.chat(root, 1)
    for number, start in enumerate((3, 4)):
        inner = trace.agent(f"worker {number}", parent=root, at=(start, 8))
        trace.chat(inner, start + 1)
    assert "O4" in patterns(recover(trace.otlp()), "lead")


def test_untrusted_text_goes_along_with_a_handoff() -> None:
    trace = TraceMaker()
    root = trace.add("Agent workflow", {"gen_ai.operation.name": "invoke_workflow"}, at=(0, 100))
    first = trace.agent("reader", parent=root, at=(1, 20))
    trace.chat(first, 2)
    trace.tool("fetch_page", first, 4)
    trace.chat(first, 6)
    trace.tool("transfer_to_payer", first, 8)
    second = trace.agent("payer", parent=root, at=(21, 40))
    trace.chat(second, 22)
    trace.tool("refund_order", second, 24)
    recovered = recover(trace.otlp())
    assert "O15" in {id for agent in recovered.stack.agents for id in agent.patterns}
    assert "agents.payer.actions.refund_order" in {
        each.path for each in lint_recovered(recovered).findings if each.rule == "L6"
    }


def test_a_writer_and_a_judge_of_one_model_are_seen() -> None:
    trace = TraceMaker()
    root = trace.add("loop", {"gen_ai.operation.name": "invoke_workflow"}, at=(0, 100))
    for turn in range(2):
        for offset, name in ((0, "writer"), (10, "critic")):
            start = turn * 20 + offset + 1
            inner = trace.agent(name, parent=root, at=(start, start + 5))
            trace.chat(inner, start + 1)
    trace.chat(root, 90)
    recovered = recover(trace.otlp())
    assert {"V15", "O5"} <= patterns(recovered, "loop")
    assert "L2" in {each.rule for each in lint_recovered(recovered).findings}


def test_guards_evaluators_retrieval_and_retries_are_read() -> None:
    trace = TraceMaker()
    root = trace.agent("assistant")
    trace.add("check input", {"openinference.span.kind": "GUARDRAIL"}, parent=root, at=(0.1, 0.2))
    trace.add("search", {"openinference.span.kind": "RETRIEVER"}, parent=root, at=(0.3, 0.4))
    trace.chat(root, 1)
    trace.tool("get_weather", root, 3, failed=True)
    trace.tool("get_weather", root, 5)
    trace.add("score", {"openinference.span.kind": "EVALUATOR"}, parent=root, at=(9, 10))
    (agent,) = recover(trace.otlp()).stack.agents
    assert {"V5", "K1", "V15"} <= agent.patterns
    assert agent.guards == ("input",)
    assert agent.facts == {"step_retries": True}


def test_the_console_exporter_of_the_sdk_is_read(tmp_path: Path) -> None:
    out = io.StringIO()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter(out=out)))
    tracer = provider.get_tracer("test")
    attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "assistant"}
    with tracer.start_as_current_span("invoke_agent assistant", attributes=attributes):
        with tracer.start_as_current_span("chat", attributes={"gen_ai.operation.name": "chat"}):
            pass
        tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "read_file"}
        with tracer.start_as_current_span("execute_tool", attributes=tool):
            pass
        with tracer.start_as_current_span("chat", attributes={"gen_ai.operation.name": "chat"}):
            pass
    file = tmp_path / "console.json"
    file.write_text(out.getvalue(), encoding="utf-8")
    recovered = read_trace(file)
    assert recovered.counts is not None
    assert (recovered.counts.spans, recovered.counts.model_calls) == (4, 2)
    assert {"R4", "I2"} <= patterns(recovered, "assistant")


async def test_a_trace_that_pydantic_ai_writes_is_read(tmp_path: Path) -> None:
    out = io.StringIO()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter(out=out)))
    traced = Instrumentation(settings=InstrumentationSettings(tracer_provider=provider))
    agent = Agent(TestModel(), name="assistant", capabilities=[traced])

    @agent.tool_plain
    def fetch_page(url: str) -> str:
        return url

    @agent.tool_plain
    def send_email(to: str) -> str:
        return to

    await agent.run("Tell them what the page says.")
    file = tmp_path / "console.json"
    file.write_text(out.getvalue(), encoding="utf-8")
    recovered = read_trace(file)
    (found,) = recovered.stack.agents
    assert (found.name, found.model) == ("assistant", "test")
    assert found.patterns == {"R4", "I2", "V14"}
    assert found.tools is not None
    assert found.tools.count == 2
    assert [action.name for action in found.actions or ()] == ["send_email"]
    assert recovered.counts is not None
    assert (recovered.counts.model_calls, recovered.counts.tool_calls) == (2, 2)
    assert recovered.counts.input_tokens > 0


def test_broken_lines_are_left_out_and_said() -> None:
    lines = mail_assistant().lines().splitlines()
    text = "\n".join([lines[0], '{"resourceSpans": [', *lines[1:], "not json"])
    recovered = recover(text)
    assert recovered.counts is not None
    assert recovered.counts.spans == 6
    assert [each.place.line for each in recovered.unresolved] == [2, 8]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "stack.not-a-trace"),
        ("hello", "stack.not-a-trace"),
        ("{}", "stack.not-a-trace"),
        ('{"resourceSpans": 3}', "stack.not-a-trace"),
        ("[" * 100_000, "stack.not-a-trace"),
        ('{"resourceSpans": [{"scopeSpans": [{"spans": [{"spanId": 3}]}]}]}', "stack.not-a-trace"),
        ('{"spanId": "a1", "name": "GET /", "attributes": []}', "stack.no-agent"),
    ],
)
def test_what_is_no_trace_of_an_agent_is_an_error(text: str, code: str) -> None:
    with pytest.raises(CatalogError) as caught:
        recover(text)
    assert caught.value.code == code


def test_values_of_wrong_types_are_survived() -> None:
    span = {
        "spanId": "a1",
        "parentSpanId": 7,
        "traceId": [],
        "name": {"x": 1},
        "startTimeUnixNano": "yesterday",
        "endTimeUnixNano": None,
        "attributes": [
            3,
            {"key": 4},
            {"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}},
            {"key": "gen_ai.usage.input_tokens", "value": {"intValue": "9" * 5000}},
            {"key": "gen_ai.usage.output_tokens", "value": {"doubleValue": -3}},
            {"key": "gen_ai.request.model", "value": {"stringValue": 7}},
        ],
        "status": "broken",
    }
    recovered = recover(json.dumps(span))
    assert recovered.counts is not None
    assert (recovered.counts.model_calls, recovered.counts.input_tokens, recovered.counts.output_tokens) == (1, 0, 0)


def test_a_circle_of_parents_and_a_long_chain_end() -> None:
    circle: list[dict[str, Any]] = [
        {"spanId": "a", "parentSpanId": "b", "name": "x", "attributes": []},
        {"spanId": "b", "parentSpanId": "a", "name": "y", "attributes": []},
    ]
    trace = TraceMaker()
    parent = ""
    for number in range(3_000):
        parent = trace.agent("assistant", parent=parent) if number % 2 else trace.tool("fetch_page", parent, number)
    recovered = recover("\n".join(map(json.dumps, [*circle, *trace.spans])))
    assert recovered.counts is not None
    assert recovered.counts.spans == 3_002


def test_names_in_a_trace_are_made_visible_and_short() -> None:
    trace = TraceMaker()
    root = trace.agent("\x1b[31mred\u202egreen.a[0]" + "x" * 500)
    trace.chat(root, 1, model="m\x07")
    trace.tool("send\nmail\x1b]0;owned\x07", root, 3)
    recovered = recover(trace.otlp())
    (agent,) = recovered.stack.agents
    shown = json.dumps([agent.name, agent.model, recovered.to_json(), lint_recovered(recovered).to_json()])
    for character in ("\\u001b", "\\u202e", "\\u0007"):
        assert character not in shown
    assert len(agent.name) <= 60
    assert not set(".[]") & set(agent.name)


def test_broken_traces_end_in_a_stack_or_an_error() -> None:
    chance = random.Random(7)
    text = mail_assistant().otlp(indent=1)
    values = ["null", "[]", "{}", "-1", '"x"', "1e400", '"\\ud800"', "true"]
    for _ in range(60):
        lines = text.splitlines()
        for _ in range(chance.randint(1, 6)):
            at = chance.randrange(len(lines))
            head, colon, _ = lines[at].partition(": ")
            changed = f"{head}: {chance.choice(values)}," if colon else lines[chance.randrange(len(lines))]
            lines[at] = chance.choice([changed, changed, ""])
        with suppress_codes("stack.no-agent", "stack.not-a-trace"):
            lint_recovered(recover("\n".join(lines)))


def test_fields_of_every_kind_are_survived_in_otlp() -> None:
    chance = random.Random(7)
    values: list[Any] = [None, [], {}, -1, "x", 1e300, "\ud800", True, [[1]], {"key": {}}, "9" * 30]
    for _ in range(100):
        trace = mail_assistant()
        for _ in range(chance.randint(1, 5)):
            span = chance.choice(trace.spans)
            attributes: Any = span["attributes"]
            if isinstance(attributes, list) and chance.random() < 0.6:
                pair = cast("list[dict[str, Any]]", attributes)[0]
                pair[chance.choice(["key", "value"])] = chance.choice([*values, {chance.choice(TYPES): values[0]}])
            else:
                span[chance.choice(list(span))] = chance.choice(values)
        with suppress_codes("stack.no-agent", "stack.not-a-trace"):
            lint_recovered(recover(json.dumps(trace.spans)))
