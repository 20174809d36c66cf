"""`bicameral advise`: the smallest stack of patterns that is enough, by facts in a file, on the line, or asked for."""

from __future__ import annotations

import asyncio
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bicameral.cli._options import CommonOptions, common_options, completer
from bicameral.cli._output import OK, Output
from bicameral.cli._prompts import read_line
from bicameral.cli._render import money_text
from bicameral.display import cell_text
from bicameral.errors import BicameralError, CatalogError, Place

if TYPE_CHECKING:
    from bicameral.catalog import Requirement
    from bicameral.catalog.advice import Advice, Choice, OpenQuestion, RejectedPattern, TaskFacts
    from bicameral.catalog.stacks import RuntimeName


_TEXT_WIDTH = 100
_MAX_OPEN_SHOWN = 8
"""Open questions that are shown; --json has all."""
_MAX_FACTS_BYTES = 100_000
_END_WORDS = ("done", "q", "quit", "stop")


def read_facts(file: Path) -> TaskFacts:
    """Facts from a YAML file, by their names."""
    from bicameral.catalog.advice import facts_from_mapping
    from bicameral.documents import parse_yaml

    place = Place(file=str(file))
    try:
        if file.stat().st_size > _MAX_FACTS_BYTES:
            raise CatalogError("catalog.cannot-read", f"the file has more than {_MAX_FACTS_BYTES:,} bytes", place=place)
        text = file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise CatalogError("catalog.cannot-read", "the file is not text in UTF-8", place=place) from None
    except OSError as error:
        said = error.strerror or type(error).__name__
        raise CatalogError("catalog.cannot-read", f"the facts cannot be read: {said}", place=place) from None
    document = parse_yaml(text, file)
    return facts_from_mapping(document.settings, {name: document.locate((name,)) for name in document.settings})


async def ask_facts(out: Output, facts: TaskFacts) -> TaskFacts:
    """The facts, with those that the person at the terminal adds: one question at a time, the most important first."""
    from bicameral.catalog.advice import advise

    out.say("Answer what you know. Enter skips a question, `done` ends.")
    skipped: set[str] = set()
    while True:
        advice = advise(facts)
        question = next((each for each in advice.open if each.first and each.fact not in skipped), None)
        if question is None:
            return facts
        reply = await _read_reply(out, question)
        if reply is None:
            return facts
        if reply == "":
            skipped.add(question.fact)
            continue
        more = _apply_reply(out, facts, question, reply)
        if more is not None:
            _show_difference(out, advice, advise(more))
            facts = more


async def _read_reply(out: Output, question: OpenQuestion) -> str | None:
    """The reply; None if the person wants no more questions."""
    out.say("")
    for line in textwrap.wrap(f"why: {question.question.why}", _TEXT_WIDTH):
        out.say(f"  {line}", style="dim")
    reply = await read_line(f"? {question.question.ask} ({question.question.expected_input}) ")
    return None if reply is None or reply.lower() in _END_WORDS else reply


def _apply_reply(out: Output, facts: TaskFacts, question: OpenQuestion, reply: str) -> TaskFacts | None:
    from bicameral.catalog.advice import parse_fact

    try:
        return facts.with_facts(**{question.fact: parse_fact(question.fact, reply)})
    except BicameralError:
        out.say(f"  that is not {question.question.expected_input}")
        return None


def _show_difference(out: Output, before: Advice, after: Advice) -> None:
    for id, choice in after.choices.items():
        if id not in before.choices:
            out.say(f"  + {id} {_pattern_name(id)}: {choice.why} ({choice.rule})")
    for id in before.choices:
        if id not in after.choices:
            out.say(f"  - {id} {_pattern_name(id)}")


def _advice_lines(advice: Advice, currency: str) -> Iterator[str]:
    """The stack with its reasons, what was ruled out, what is open, the order, and the estimated cost."""
    yield from _choice_lines(advice)
    if advice.ruled_out:
        yield ""
        yield "Ruled out"
        yield from (_ruled_out_text(each) for each in advice.ruled_out.values())
    if advice.wanted:
        yield ""
        yield "Should come with it"
        yield from (f"  {_requirement_text(need, advice)}: {need.why} ({need.id})" for need in advice.wanted)
    yield ""
    yield "In this order"
    yield from (f"  {number}. {', '.join(stage)}" for number, stage in enumerate(advice.order, 1))
    yield ""
    yield "About what a run takes (bicameral estimate has it in parts)"
    yield f"  {_cost_text(advice, currency)}"
    yield from (f"  over budget: {each}" for each in advice.over_budget)
    yield from _open_lines(advice)


def _choice_lines(advice: Advice) -> Iterator[str]:
    wide = max(len(_pattern_name(id)) for id in advice.choices)
    yield "The smallest stack that is enough for what is known" + (
        "" if advice.settled else " (not settled: see below)"
    )
    for stage in advice.order:
        for id in stage:
            yield f"  {id:<4} {_pattern_name(id):<{wide}}  {_choice_reason(advice.choices[id])}"
    if advice.brought:
        yield "The runtime brings"
        yield from (f"  {id:<4} {_pattern_name(id):<{wide}}  {why}" for id, why in advice.brought.items())


def _choice_reason(choice: Choice) -> str:
    rests = f" ({', '.join((choice.rule, *choice.by))})"
    by = f"; {_facts_text(choice.facts)}" if choice.facts else ""
    needed = f" [needed by {', '.join(choice.needed_by)}]" if choice.needed_by else ""
    return f"{choice.why}{rests}{by}{needed}"


def _ruled_out_text(out: RejectedPattern) -> str:
    facts = f"; {_facts_text(out.facts)}" if out.facts else ""
    return f"  {out.pattern:<4} {out.why} ({out.rule}){facts}"


def _facts_text(facts: tuple[tuple[str, Any], ...]) -> str:
    return ", ".join(f"{name}: {cell_text(value) or 'none'}" for name, value in facts)


def _requirement_text(need: Requirement, advice: Advice) -> str:
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
    for each in waiting[:_MAX_OPEN_SHOWN]:
        mark = "! " if each.safety else "  "
        yield f"{mark}{each.fact}: {each.question.ask} {each.changes_text}"
    if len(waiting) > _MAX_OPEN_SHOWN:
        yield f"  and {len(waiting) - _MAX_OPEN_SHOWN} more"


def _pattern_name(id: str) -> str:
    from bicameral.catalog import catalog

    return catalog().pattern(id).name


def show_facts(out: Output) -> None:
    """List all facts with their questions."""
    from bicameral.catalog.advice import questions

    wide = max(len(name) for name in questions())
    for name, question in questions().items():
        unit = f", {question.unit}" if question.unit else ""
        out.show(f"{name:<{wide}}  {question.ask} ({question.expected_input}{unit})")


@completer
def _complete_fact() -> Iterable[str]:
    from bicameral.catalog.advice import questions

    return {f"{name}=": each.ask for name, each in questions().items()}


@click.command(short_help="The smallest stack of patterns that is enough for what you know of a task.")
@click.option("--facts", "file", type=click.Path(dir_okay=False, path_type=Path), help="A YAML file with facts.")
@click.option(
    "--fact", "given", metavar="NAME=VALUE", multiple=True, shell_complete=_complete_fact, help="A fact, as in tools=4."
)
@click.option("--no-ask", is_flag=True, help="Ask nothing, also at a terminal.")
@click.option("--list", "listing", is_flag=True, help="List all facts that can be told, and nothing else.")
@click.option(
    "--runtime",
    type=click.Choice(["bicameral", "other"]),
    default="other",
    show_default=True,
    help="What it will run on: `bicameral` brings bounds, a record and more, which the stack then need not list.",
)
@click.option("--name", default="Advised stack", show_default=True, help="The name of the stack.")
@click.option(
    "--write", "target", type=click.Path(dir_okay=False, path_type=Path), help="Write the stack to this YAML file."
)
@click.option(
    "--model", "models", metavar="[TIER=]NAME", multiple=True, help="The models for the estimate of its cost."
)
@common_options
def command(
    chosen: CommonOptions,
    file: Path | None,
    given: tuple[str, ...],
    no_ask: bool,
    listing: bool,
    runtime: RuntimeName,
    name: str,
    target: Path | None,
    models: tuple[str, ...],
) -> int | dict[str, Any]:
    """Advise on an architecture by what is known of the task, and ask for what matters next.

    Facts come from --facts, from --fact, and at a terminal from you: one question at a time, with why it is asked; what
    you do not know you skip. Each pattern comes with the rule that chose it, and what was ruled out with the fact that
    did it.
    """
    from bicameral.catalog.advice import advise, questions
    from bicameral.config import TokenSpeeds, open_prices, tier_rates

    out, config = chosen.out, chosen.config()
    if listing:
        show_facts(out)
        facts = [
            {"name": each.id, "kind": each.kind, "ask": each.ask, "why": each.why} for each in questions().values()
        ]
        out.write_json({"ok": True, "facts": facts})
        return OK
    known = _known_facts(file, given)
    if out.is_interactive and not no_ask:
        known = asyncio.run(ask_facts(out, known))
    advice = advise(known, name=name, runtime=runtime, rates=tier_rates(config, models, TokenSpeeds()))
    out.show("\n".join(_advice_lines(advice, open_prices(config).currency)))
    if target is not None:
        _write_stack(target, advice.yaml())
        out.say(f"written to {target}; `bicameral lint {target}` holds it against the rules")
    return advice.to_json()


def _known_facts(file: Path | None, given: tuple[str, ...]) -> TaskFacts:
    """The facts of the file, overridden by those of the command line."""
    from bicameral.catalog.advice import TaskFacts, parse_fact

    facts = read_facts(file) if file is not None else TaskFacts()
    for each in given:
        name, equals, value = each.partition("=")
        if not equals:
            raise click.UsageError(f"{each!r} is no fact: write NAME=VALUE.")
        facts = facts.with_facts(**{name.strip(): parse_fact(name.strip(), value)})
    return facts


def _write_stack(target: Path, text: str) -> None:
    try:
        target.write_text(text, encoding="utf-8")
    except OSError as error:
        place, said = Place(file=str(target)), error.strerror or type(error).__name__
        raise CatalogError("catalog.cannot-write", f"the stack cannot be written: {said}", place=place) from None
