"""V11: errors are told in one line with a count and their cause, and the step that reaches a limit is the last one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from patterns_world import EVE, HOSTILE, Work, table

from bicameral.errors import BicameralError, CatalogError, RunError
from bicameral.journal import Journal, open_journal_at
from bicameral.models import ModelRequest, ToolCall
from bicameral.patterns import Answered, GaveUp, from_user, program_text, untrusted_value
from bicameral.patterns._error_log import MAX_CAUSE, CompactError, read_cause
from bicameral.patterns.kernel import Context, Labelled, NoteEvent, replay_pattern
from bicameral.patterns.reasoning.react import ReAct
from bicameral.patterns.reliability.error_compaction import ErrorCompaction
from bicameral.tools import Origin, Tool, tool
from invariants import holds

TRACEBACK = (
    "Traceback (most recent call last):\n"
    + "".join(f'  File "/srv/app/layer{n}.py", line {n}, in run\n    return self.next.run()\n' for n in range(1, 40))
    + '  File "/srv/app/store.py", line 88, in save\n    row = form["amount"]\n'
    "KeyError: 'amount'"
)
BODY = json.dumps(
    {
        "status": 422,
        "trace": "x" * 150,
        "errors": [{"loc": ["body", "amount"], "error": {"message": "amount must be a number"}}],
    }
)


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with open_journal_at(tmp_path / "journal.db") as journal:
        yield journal


@dataclass
class Service:
    """A tool that fails with one text after another, and then has a result."""

    texts: list[str]
    calls: int = 0
    failed: list[str] = field(default_factory=list[str])

    def tools(self) -> tuple[Tool, ...]:
        @tool(effect="read", outbound=False, origins=Origin("third_party", "public"), purpose={"number": "selects"})
        def fetch(number: int) -> str:
            """A record."""
            self.calls += 1
            if self.texts:
                self.failed.append(self.texts.pop(0))
                raise RuntimeError(self.failed[-1])
            return "The record."

        return (fetch,)


def fetching(times: int) -> Callable[[ModelRequest], Any]:
    """A model that calls the tool so many times, each time with another number, and then answers."""
    numbers = iter(range(times))

    def reply(request: ModelRequest) -> Any:
        number = next(numbers, None)
        return "It is there." if number is None else [ToolCall(f"c{number}", "fetch", {"number": number})]

    return reply


def fetch_all(texts: list[str], times: int, **options: Any) -> tuple[Any, Service, Any]:
    service = Service(list(texts))
    journal = options.pop("journal", None)
    there = table([], fetching(times), tools=service.tools(), journal=journal)
    pattern = ErrorCompaction(ReAct(max_steps=20, repeats=10), **options)
    return there, service, asyncio.run(pattern.run(there.desk, untrusted_value("Get the record.", "mail")))


def error_lines(prompt: str) -> list[str]:
    return [line for line in prompt.splitlines() if line.startswith("error: ") and "told once below" not in line]


REFUSED = [f"connection to 10.0.0.{n}:{4000 + n} refused" for n in range(1, 10)]


@holds("V11.1", "V11.4")
def test_a_kind_of_error_is_one_line_with_its_count() -> None:
    texts = [REFUSED[0], REFUSED[1], BODY, REFUSED[2], REFUSED[3]]
    there, service, outcome = fetch_all(texts, 6, max_same=5)
    assert isinstance(outcome, Answered)
    assert len(service.failed) == 5
    lines = error_lines(there.quarantined.prompts[-1])
    assert len(lines) == 2
    assert "amount must be a number" in lines[0]
    assert "10.0.0.4:4004 refused" in lines[1]
    assert lines[1].endswith("(x4)")
    [note] = [each for each in outcome.trace if isinstance(each, NoteEvent) and each.what == "errors"]
    failed = [each for each in outcome.tool_calls if each.error]
    assert note.facts == {"count": len(failed), "kinds": 2, "ended": False}


@holds("V11.1")
@pytest.mark.parametrize("text", [TRACEBACK, BODY])
def test_no_raw_traceback_and_no_body_is_in_a_prompt(text: str) -> None:
    there, _, _ = fetch_all([text], 2)
    for prompt in there.quarantined.prompts:
        assert "layer7.py" not in prompt
        assert "xxxx" not in prompt
    [line] = error_lines(there.quarantined.prompts[-1])
    assert len(line) < MAX_CAUSE + 100
    assert "amount" in line


def test_most_of_the_text_of_errors_is_saved() -> None:
    there, service, _ = fetch_all([TRACEBACK] * 4, 5, max_same=5)
    lines = error_lines(there.quarantined.prompts[-1])
    assert sum(map(len, lines)) < 0.2 * sum(map(len, service.failed))


@holds("V11.3")
@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (TRACEBACK, "KeyError: 'amount'"),
        (
            f"{TRACEBACK}\n\nDuring handling of the above exception, another exception occurred:\n\n{TRACEBACK}",
            "KeyError",
        ),
        (BODY, "amount must be a number"),
        (f"outer: {'wrapped: ' * 100} no space left on device", "no space left on device"),
        ("{not json at all", "{not json at all"),
        ('{"status": 500}', "500"),
        ("first\n\n\nsecond", "first second"),
    ],
)
def test_the_cause_is_kept(text: str, cause: str) -> None:
    found, _ = read_cause(text)
    assert cause in found
    assert len(found) <= MAX_CAUSE
    assert "\n" not in found


@holds("V11.3")
def test_a_digest_has_type_place_and_cause() -> None:
    error = CompactError.of("tools.failed", "fetch", TRACEBACK)
    assert (error.type, error.place) == ("tools.failed", "fetch (store.py:88)")
    assert CompactError.of("tools.failed", "fetch", "error: ").cause
    for parts in (("", "fetch", "x"), ("tools.failed", " ", "x"), ("tools.failed", "fetch", "")):
        with pytest.raises(RunError):
            CompactError(*parts)


def test_kinds_are_told_apart_by_what_is_not_a_number_or_a_name() -> None:
    def key(text: str) -> tuple[str, str, str]:
        return CompactError.of("tools.failed", "fetch", text).key

    assert key("port 4001 refused") == key("port 4002 refused")
    assert key("no file '/a/b.txt'") == key("no file '/c.txt'")
    assert key("request 3fa85f64-5717-4562 failed") == key("request 99b1c0de-0000-1111 failed")
    assert key("port 4001 refused") != key("port 4001 timed out")
    assert key("the feed is dead") != key("the feed is full")


@holds("V11.2")
def test_the_whole_error_is_recorded_before_a_model_reads_its_line(journal: Journal) -> None:
    there, _, outcome = fetch_all([TRACEBACK, BODY], 3, journal=journal)
    events = journal.events(outcome.run)
    failed = [event for event in events if event.kind == "step-failed"]
    assert len(failed) == 2
    assert "layer7.py" in str(failed[0].body)
    asked = [event for event in events if event.kind == "model-called"]
    for number, event in enumerate(failed):
        assert event.number < asked[number + 1].number
    again = asyncio.run(replay_pattern(journal, outcome.run, there.desk.registry, there.desk.policy))
    assert again.identical, again.differences


# Limits -------------------------------------------------------------------------------------------------------------


@holds("V11.6")
def test_the_third_equal_error_in_a_row_is_the_last_step() -> None:
    there, service, outcome = fetch_all(REFUSED, 9)
    assert isinstance(outcome, GaveUp)
    assert outcome.error.code == "pattern.errors-repeated"
    assert service.calls == 3
    assert len(there.quarantined.asked) == 3, "nobody is asked after it"


@holds("V11.6")
def test_errors_in_all_are_limited_too_and_a_result_in_between_does_not_help() -> None:
    texts = ["disk full", "no route", "disk full", "no route", "disk full"]
    _, service, outcome = fetch_all(texts, 9, max_errors=4)
    assert isinstance(outcome, GaveUp)
    assert outcome.error.code == "pattern.too-many-errors"
    assert service.calls == 4


def test_errors_that_are_not_in_a_row_do_not_end_it() -> None:
    _, service, outcome = fetch_all(["disk full", "disk full", "no route", "disk full", "disk full"], 6)
    assert isinstance(outcome, Answered)
    assert service.calls == 6


async def catches_all(context: Context) -> Labelled[str]:
    for number in range(9):
        try:
            await context.call("fetch", {"number": number})
        except BicameralError:
            continue
    return program_text("All is well.")


async def catches_in_parts(context: Context) -> Labelled[str]:
    await context.run_parallel([("one", catches_all)], width=1)
    return program_text("All is well.")


@holds("V11.6")
@pytest.mark.parametrize("work", [catches_all, catches_in_parts])
def test_a_pattern_that_swallows_errors_does_not_go_on(work: Any) -> None:
    service = Service(list(REFUSED))
    there = table(tools=service.tools())
    outcome = asyncio.run(ErrorCompaction(Work(work)).run(there.desk))
    assert service.calls == 3
    assert isinstance(outcome, GaveUp)
    assert outcome.error.code == "pattern.errors-repeated"


@holds("V11.5")
@pytest.mark.parametrize("knobs", [{"max_same": None}, {"max_errors": None}, {"max_same": 0}, {"max_errors": 0}])
def test_without_both_limits_nothing_starts(knobs: dict[str, Any]) -> None:
    with pytest.raises(CatalogError):
        ErrorCompaction(ReAct(), **knobs)


@holds("V11.5")
def test_limits_that_another_one_hides_are_refused() -> None:
    service = Service([])
    there = table([], fetching(1), tools=service.tools())
    outcome = asyncio.run(ErrorCompaction(ErrorCompaction(ReAct())).run(there.desk, from_user("Get it.")))
    assert isinstance(outcome, GaveUp)
    assert outcome.error.code == "pattern.two-error-logs"
    assert not there.privileged.asked
    assert not service.calls


# Labels -------------------------------------------------------------------------------------------------------------


def system_service(text: str) -> tuple[Tool, ...]:
    @tool(effect="read", outbound=False, origins=Origin("system", "public"), purpose={"number": "selects"})
    def fetch(number: int) -> str:
        """A record."""
        raise RuntimeError(text)

    return (fetch,)


@pytest.mark.parametrize("wrap", ["{}", 'Traceback (most recent call last):\n  File "x", line 1\n{}'])
def test_what_an_error_says_is_not_in_a_privileged_prompt(wrap: str) -> None:
    there = table(fetching(3), tools=system_service(wrap.format(HOSTILE)))
    outcome = asyncio.run(ErrorCompaction(ReAct(max_steps=9, repeats=9)).run(there.desk, from_user("Get it.")))
    assert isinstance(outcome, GaveUp)
    assert outcome.error.code == "pattern.errors-repeated"
    assert len(there.privileged.asked) == 3
    assert all(EVE not in prompt for prompt in there.privileged.prompts)
    assert error_lines(there.privileged.prompts[-1]) == ["error: tools.failed at fetch: the tool failed (x2)"]
    assert EVE not in str(outcome.trace)
    assert EVE not in str(outcome.error)


def test_the_line_of_an_untrusted_error_keeps_its_label() -> None:
    _, _, outcome = fetch_all([HOSTILE], 2)
    assert isinstance(outcome, Answered)
    assert not outcome.label.trusted
    assert EVE not in str(outcome.trace)
