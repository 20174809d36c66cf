"""Advice as people read it, and the questions that lead to it."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bicameral.errors import BicameralError, CatalogError, Place

from ._asking import read_line
from ._costs import money_text
from ._output import Output
from ._values import cell

if TYPE_CHECKING:
    from bicameral.catalog import Requirement
    from bicameral.catalog.advice import Advice, Choice, Facts, Open, RuledOut

_WIDTH = 100
_SHOWN = 8
"""So many open questions are shown; --json has all."""
_MAX_BYTES = 100_000
_DONE = ("done", "q", "quit", "stop")


def read_facts(file: Path) -> Facts:
    """Facts from a YAML file, by their names."""
    from bicameral.catalog.advice import facts_of
    from bicameral.documents import parse_yaml

    place = Place(file=str(file))
    try:
        if file.stat().st_size > _MAX_BYTES:
            raise CatalogError("catalog.cannot-read", f"the file has more than {_MAX_BYTES:,} bytes", place=place)
        text = file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise CatalogError("catalog.cannot-read", "the file is not text in UTF-8", place=place) from None
    except OSError as error:
        said = error.strerror or type(error).__name__
        raise CatalogError("catalog.cannot-read", f"the facts cannot be read: {said}", place=place) from None
    document = parse_yaml(text, file)
    return facts_of(document.settings, {name: document.locate((name,)) for name in document.settings})


async def asked(out: Output, facts: Facts) -> Facts:
    """The facts with what the person at the terminal knows: one question at a time, the one that matters most first."""
    from bicameral.catalog.advice import advise

    out.say("Answer what you know. Enter skips a question, `done` ends.")
    skipped: set[str] = set()
    while True:
        advice = advise(facts)
        question = next((each for each in advice.open if each.first and each.fact not in skipped), None)
        if question is None:
            return facts
        reply = await _reply(out, question)
        if reply is None:
            return facts
        if reply == "":
            skipped.add(question.fact)
            continue
        more = _told(out, facts, question, reply)
        if more is not None:
            _show_difference(out, advice, advise(more))
            facts = more


async def _reply(out: Output, question: Open) -> str | None:
    """What was typed; None if no more is to be asked."""
    out.say("")
    for line in textwrap.wrap(f"why: {question.question.why}", _WIDTH):
        out.say(f"  {line}", style="dim")
    reply = await read_line(out, f"? {question.question.ask} ({question.question.wanted}) ")
    return None if reply is None or reply.lower() in _DONE else reply


def _told(out: Output, facts: Facts, question: Open, reply: str) -> Facts | None:
    from bicameral.catalog.advice import parse_fact

    try:
        return facts.saying(**{question.fact: parse_fact(question.fact, reply)})
    except BicameralError:
        out.say(f"  that is not {question.question.wanted}")
        return None


def _show_difference(out: Output, before: Advice, after: Advice) -> None:
    for id, choice in after.choices.items():
        if id not in before.choices:
            out.say(f"  + {id} {_name(id)}: {choice.why} ({choice.rule})")
    for id in before.choices:
        if id not in after.choices:
            out.say(f"  - {id} {_name(id)}")


def show_advice(out: Output, advice: Advice, currency: str) -> None:
    """The stack with its reasons, what was ruled out, what is open, the order, and about what it takes."""
    out.show("\n".join(_lines(advice, currency)))


def _lines(advice: Advice, currency: str) -> Iterator[str]:
    yield from _chosen(advice)
    if advice.ruled_out:
        yield ""
        yield "Ruled out"
        yield from (_out_text(each) for each in advice.ruled_out.values())
    if advice.wanted:
        yield ""
        yield "Should come with it"
        yield from (f"  {_needed(need, advice)}: {need.why} ({need.id})" for need in advice.wanted)
    yield ""
    yield "In this order"
    yield from (f"  {number}. {', '.join(stage)}" for number, stage in enumerate(advice.order, 1))
    yield ""
    yield "About what a run takes (bicameral cost has it in parts)"
    yield f"  {_cost_text(advice, currency)}"
    yield from (f"  over budget: {each}" for each in advice.over_budget)
    yield from _open_lines(advice)


def _chosen(advice: Advice) -> Iterator[str]:
    wide = max(len(_name(id)) for id in advice.choices)
    yield "The smallest stack that is enough for what is known" + (
        "" if advice.settled else " (not settled: see below)"
    )
    for stage in advice.order:
        for id in stage:
            yield f"  {id:<4} {_name(id):<{wide}}  {_why(advice.choices[id])}"


def _why(choice: Choice) -> str:
    rests = f" ({', '.join((choice.rule, *choice.by))})"
    by = f"; {_values(choice.facts)}" if choice.facts else ""
    needed = f" [needed by {', '.join(choice.needed_by)}]" if choice.needed_by else ""
    return f"{choice.why}{rests}{by}{needed}"


def _out_text(out: RuledOut) -> str:
    facts = f"; {_values(out.facts)}" if out.facts else ""
    return f"  {out.pattern:<4} {out.why} ({out.rule}){facts}"


def _values(facts: tuple[tuple[str, Any], ...]) -> str:
    return ", ".join(f"{name}: {cell(value) or 'none'}" for name, value in facts)


def _needed(need: Requirement, advice: Advice) -> str:
    missing = [id for id in need.all_of if id not in advice.choices]
    return f"{', '.join(missing) or ' or '.join(need.any_of)} for {need.pattern}"


def _cost_text(advice: Advice, currency: str) -> str:
    usual, worst = advice.estimate.expected, advice.estimate.worst
    seconds = "time not known" if usual.seconds is None else f"{usual.seconds:,.0f} s"
    tokens = f"{usual.prompt + usual.output:,.0f} tokens"
    most = f"{worst.calls:,.0f} calls, {worst.prompt + worst.output:,.0f} tokens, {money_text(worst.money, currency)}"
    return f"{usual.calls:,.1f} calls, {tokens}, {money_text(usual.money, currency)}, {seconds}; at worst {most}"


def _open_lines(advice: Advice) -> Iterator[str]:
    waiting = [each for each in advice.open if each.first]
    if not waiting:
        return
    yield ""
    yield "Not known, and what it would change"
    for each in waiting[:_SHOWN]:
        mark = "! " if each.safety else "  "
        yield f"{mark}{each.fact}: {each.question.ask} {_changes(each)}"
    if len(waiting) > _SHOWN:
        yield f"  and {len(waiting) - _SHOWN} more"


def _changes(question: Open) -> str:
    """What an answer settles by itself, and what it could lead to with more that is not known."""
    direct = [
        f"{change.test.removeprefix(f'{question.fact} ')}: {'-' if change.goes else '+'} {', '.join(change.patterns)}"
        for change in question.changes
        if not change.also
    ]
    later = dict.fromkeys(id for change in question.changes if change.also for id in change.patterns)
    return "; ".join([*direct, *([f"could lead to {', '.join(later)}"] if later else [])])


def _name(id: str) -> str:
    from bicameral.catalog import catalog

    return catalog().pattern(id).name


def show_facts(out: Output) -> None:
    """Everything that can be told."""
    from bicameral.catalog.advice import questions

    wide = max(len(name) for name in questions())
    for name, question in questions().items():
        unit = f", {question.unit}" if question.unit else ""
        out.show(f"{name:<{wide}}  {question.ask} ({question.wanted}{unit})")
