"""V14: one tree of spans with nothing personal in it; a dead exporter changes nothing, and a dead journal stops all."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from patterns_world import EVE, Work, World, answered, table

from bicameral.errors import JournalError
from bicameral.journal import Journal, open_journal_at
from bicameral.limits import strategy_limits
from bicameral.models import ToolCall
from bicameral.patterns import Answered, Exhausted, GaveUp, from_user, program_text
from bicameral.patterns.kernel import Context, Labelled, Role
from bicameral.patterns.reasoning.react import ReAct
from bicameral.patterns.reliability.trajectory_logging import KEEP, TrajectoryLogging
from bicameral.telemetry import scrubbed_text, span
from bicameral.telemetry._signals import use_tracer_provider
from invariants import holds

WRITER = Role("Writer", "Write.")
ADDRESS = "ada.young@example.com"
KEY = "sk-" + "a1B2" * 8
IBAN = "BE71 0961 2345 6769"
TASK = from_user("How many live in Ghent?")
CALLS: list[Any] = [[ToolCall("a", "population", {"city": "Ghent"})], "270473."]


class BrokenExporter(SpanExporter):
    def export(self, spans: Sequence[ReadableSpan]) -> Any:
        raise OSError("the collector is gone")

    def shutdown(self) -> None:
        raise OSError("the collector is gone")


class BrokenProcessor(SpanProcessor):
    def on_start(self, span: Any, parent_context: Any = None) -> None:
        raise OSError("the collector is gone")

    def on_end(self, span: ReadableSpan) -> None:
        raise OSError("the collector is gone")


@pytest.fixture
def exporter() -> Iterator[InMemorySpanExporter]:
    exporter, provider = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    use_tracer_provider(provider)
    yield exporter
    use_tracer_provider(None)
    provider.shutdown()


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with open_journal_at(tmp_path / "journal.db") as journal:
        yield journal


def run_logged(script: Any = CALLS, **options: Any) -> Any:
    knobs = {name: options.pop(name) for name in ("sample_rate", "keep_days") if name in options}
    return asyncio.run(TrajectoryLogging(ReAct(max_steps=4), **knobs).run(table(script, **options).desk, TASK))


def root_of(exporter: InMemorySpanExporter) -> ReadableSpan:
    [root] = [each for each in exporter.get_finished_spans() if each.name.startswith("task ")]
    return root


def is_kept(exporter: InMemorySpanExporter) -> bool:
    found = (root_of(exporter).attributes or {})[KEEP]
    assert isinstance(found, bool)
    return found


def exported(exporter: InMemorySpanExporter) -> str:
    return "\n".join(each.to_json() for each in exporter.get_finished_spans())


def test_there_is_one_tree_with_a_span_for_each_call(exporter: InMemorySpanExporter) -> None:
    outcome = answered(run_logged())
    spans = exporter.get_finished_spans()
    ids = {each.context.span_id for each in spans if each.context is not None}
    roots = [each for each in spans if each.parent is None]
    assert len(roots) == 1
    assert all(each.parent is None or each.parent.span_id in ids for each in spans)
    names = [each.name for each in spans]
    assert sum(name.startswith("chat ") for name in names) == len(outcome.model_calls) == 2
    assert names.count("execute_tool population") == len(outcome.tool_calls) == 1
    assert names.count("part logged") == 1


def test_notes_are_events_of_the_part_that_made_them(exporter: InMemorySpanExporter) -> None:
    run_logged()
    [part] = [each for each in exporter.get_finished_spans() if each.name == "part logged"]
    steps = [event for event in part.events if event.name == "note step"]
    assert [dict(event.attributes or {})["bicameral.note.call"] for event in steps] == ["population"]


@holds("V14.3")
def test_an_attribute_without_a_name_of_the_schema_is_not_exported(exporter: InMemorySpanExporter) -> None:
    with span("check", "", {"bicameral.step": "1", "prompt": "x", "gen_ai.Made Up": "y"}) as told:
        told.set_facts({"user.email": "z", "gen_ai.tool.name": "t"})
    [found] = exporter.get_finished_spans()
    assert dict(found.attributes or {}) == {"bicameral.step": "1", "gen_ai.tool.name": "t"}
    run_logged()
    names = {name for each in exporter.get_finished_spans() for name in (each.attributes or {})}
    assert names
    assert all(name.startswith(("bicameral.", "gen_ai.")) or name == "error.type" for name in names)


# Personal data ------------------------------------------------------------------------------------------------------


async def leaks_in_a_note(context: Context) -> Labelled[str]:
    context.note("asked", by=ADDRESS, key=KEY, account=IBAN)
    return await context.ask(WRITER, "Go on.")


async def leaks_in_the_name_of_a_part(context: Context) -> Labelled[str]:
    return await context.run_part(f"for {ADDRESS} with {KEY}", lambda part: part.ask(WRITER, "Go on."))


async def leaks_in_an_error(context: Context) -> Labelled[str]:
    raise ValueError(f"{ADDRESS} {KEY} {IBAN}")


@pytest.mark.parametrize("work", [leaks_in_a_note, leaks_in_the_name_of_a_part, leaks_in_an_error])
def test_no_address_and_no_key_is_exported(work: Any, exporter: InMemorySpanExporter) -> None:
    asyncio.run(TrajectoryLogging(Work(work)).run(table(["Done."]).desk))
    text = exported(exporter)
    assert "task R5" in text
    assert not [each for each in (ADDRESS, KEY, IBAN, "ada.young") if each in text]


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        (f"to {ADDRESS}.", "to [personal]."),
        ("call +32 470 12 34 56 now", "call [personal] now"),
        (f"account {IBAN}", "account [personal]"),
        (f"key {KEY}", "key [secret]"),
        ("card 4111 1111 1111 1111", "card [secret]"),
        ("worker 2/round 3 at 10:30, 270473 of 1000000", "worker 2/round 3 at 10:30, 270473 of 1000000"),
        ("tools.failed", "tools.failed"),
    ],
)
def test_personal_data_is_taken_out_and_the_rest_stays(text: str, clean: str) -> None:
    assert scrubbed_text(text) == clean


def test_what_untrusted_text_says_is_not_exported(exporter: InMemorySpanExporter) -> None:
    there = table([[ToolCall("a", "read_page", {"name": "x"})]], ["It is a page."])
    asyncio.run(TrajectoryLogging(ReAct(max_steps=4)).run(there.desk, from_user("What does the page say?")))
    assert len(there.quarantined.asked) == 1
    assert EVE not in exported(exporter)


# Failures -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("broken", [SimpleSpanProcessor(BrokenExporter()), BrokenProcessor()])
def test_a_dead_exporter_changes_nothing(broken: SpanProcessor) -> None:
    quiet = answered(run_logged())
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(broken)
    use_tracer_provider(provider)
    try:
        outcome = answered(run_logged())
    finally:
        use_tracer_provider(None)
    assert (outcome.value, outcome.label, len(outcome.trace)) == (quiet.value, quiet.label, len(quiet.trace))


@holds("V14.7")
def test_an_action_that_cannot_be_recorded_does_not_run(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    async def mail(context: Context) -> Labelled[Any]:
        return await context.call("send", {"to": ADDRESS, "body": "Hello."})

    world = World()
    there = table(journal=journal, world=world)
    assert isinstance(asyncio.run(TrajectoryLogging(Work(mail)).run(there.desk)), Answered)
    assert len(world.done) == 1
    append_all = Journal.append_all

    def refuse(self: Journal, run: str, entries: Sequence[Any], **options: Any) -> Any:
        if any(entry.kind == "step-started" for entry in entries):
            raise JournalError("journal.full", "the disk is full")
        return append_all(self, run, entries, **options)

    monkeypatch.setattr(Journal, "append_all", refuse)
    outcome = asyncio.run(TrajectoryLogging(Work(mail)).run(there.desk))
    assert isinstance(outcome, GaveUp)
    assert len(world.done) == 1


# What is kept -------------------------------------------------------------------------------------------------------


async def is_denied(context: Context) -> Labelled[str]:
    page = await context.call("read_page", {"name": "x"})
    try:
        await context.call("send", {"to": page, "body": "All."})
    finally:
        return program_text("Nothing was sent.")  # noqa: B012


@holds("V14.6")
def test_errors_denials_and_limits_are_kept_at_any_share(exporter: InMemorySpanExporter) -> None:
    failing = [[ToolCall("a", "population", {"city": "Atlantis"})], "Nobody."]
    assert isinstance(run_logged(failing, sample_rate=0.01), Answered)
    assert is_kept(exporter)
    exporter.clear()
    assert isinstance(run_logged([RuntimeError("gone")] * 9, sample_rate=0.01), GaveUp)
    assert is_kept(exporter)
    exporter.clear()
    assert isinstance(run_logged(CALLS, bounds=strategy_limits(calls=1), sample_rate=0.01), Exhausted)
    assert is_kept(exporter)
    assert (root_of(exporter).attributes or {})["error.type"] == "strategy.exhausted"
    exporter.clear()
    asyncio.run(TrajectoryLogging(Work(is_denied), sample_rate=0.01).run(table().desk))
    assert is_kept(exporter)


def test_of_routine_traces_a_share_is_kept(exporter: InMemorySpanExporter) -> None:
    kept = 0
    for _ in range(40):
        exporter.clear()
        run_logged(["Many."], sample_rate=0.5)
        trace_id = root_of(exporter).context
        assert trace_id is not None
        expected = (trace_id.trace_id % 2**56) / 2**56 < 0.5
        assert is_kept(exporter) is expected
        kept += expected
    assert 0 < kept < 40
    exporter.clear()
    run_logged(["Many."])
    assert is_kept(exporter)
