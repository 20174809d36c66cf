"""`bicameral patterns`: list, show, search and run the patterns of the catalogue."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from bicameral.cli._options import CommonOptions, DefaultGroup, common_options, completer
from bicameral.cli._output import Output

if TYPE_CHECKING:
    from bicameral.catalog import Catalog, Knob, PatternFacts, Requirement, SessionCost


_PAGE_WIDTH = 100
"""The greatest width of a page."""
_PATTERN_ID = re.compile(r"\b(?:[SKROVIH]\d{1,2}|M\d{1,2}|CRIT\d+|LAW\d+)\b")


def category_lines(patterns: Sequence[PatternFacts], width: int) -> Iterator[str]:
    """Patterns by category, in a line each."""
    before = ""
    for pattern, line in zip(patterns, pattern_lines(patterns, width, margin="  "), strict=True):
        if pattern.category != before:
            before = pattern.category
            yield before
        yield line


def pattern_lines(patterns: Sequence[PatternFacts], width: int, margin: str = "") -> list[str]:
    """A line per pattern: id, whether it can be run, name, what it is; cut to the width."""
    from bicameral.patterns import implemented_classes

    able = implemented_classes()
    wide = max((len(pattern.name) for pattern in patterns), default=0)
    lines = [
        f"{margin}{pattern.id:<4}{'•' if pattern.id in able else ' '} {pattern.name:<{wide}}  {pattern.what}"
        for pattern in patterns
    ]
    return [line if len(line) <= width else f"{line[: width - 1]}…" for line in lines]


def pattern_row_json(pattern: PatternFacts) -> dict[str, Any]:
    """A pattern of a list as JSON."""
    from bicameral.patterns import implemented_classes

    facts = {"id": pattern.id, "name": pattern.name, "category": pattern.category, "what": pattern.what}
    return {**facts, "implemented": implemented_classes().get(pattern.id)}


def pattern_json(pattern: PatternFacts) -> dict[str, Any]:
    """A pattern as JSON: its facts as in the files, and the rules that mention it."""
    from bicameral.catalog import catalog, plain_record
    from bicameral.patterns import implemented_classes

    known = catalog()
    return {
        **plain_record(pattern),
        "implemented": implemented_classes().get(pattern.id),
        "requirements": plain_record(known.requirements_of(pattern.id)),
        "needed_by": sorted({each.pattern for each in known.needed_by(pattern.id)}),
        "conflicts": plain_record(known.conflicts_of(pattern.id)),
    }


def show_page(out: Output, pattern: PatternFacts) -> None:
    """Show the page of a pattern; on a terminal headings and ids are highlighted."""
    lines = list(pattern_page(pattern, min(out.width, _PAGE_WIDTH)))
    what = lines.index("")
    headings = {number for number, line in enumerate(lines) if number > what and not line.startswith(" ")} | {0}
    styled = ((line, "bold" if number in headings else "") for number, line in enumerate(lines))
    out.print_lines(styled, highlight=_PATTERN_ID)


def pattern_page(pattern: PatternFacts, width: int) -> Iterator[str]:
    """The page of a pattern, line by line."""
    from bicameral.catalog import catalog
    from bicameral.patterns import implemented_classes

    runs = implemented_classes().get(pattern.id)
    yield f"{pattern.id}  {pattern.name}  ({pattern.category}{', can be run' if runs else ''})"
    yield from textwrap.wrap(pattern.what, width)
    for heading, entries in _page_sections(pattern, catalog(), runs):
        if texts := list(entries):
            yield ""
            yield heading
            hanging = "    " if len(texts) > 1 else "  "
            for entry in texts:
                yield from textwrap.wrap(
                    entry, width, initial_indent="  ", subsequent_indent=hanging, break_on_hyphens=False
                )


def _page_sections(pattern: PatternFacts, known: Catalog, runs: str | None) -> Iterator[tuple[str, Iterable[str]]]:
    yield "How", [pattern.how]
    yield "When", pattern.when
    yield "Not when", [_instead_text(each.condition, each.use, known) for each in pattern.not_when]
    yield (
        "Who takes part",
        [
            f"{each.name} ({each.kind}{f', {each.tier}' if each.tier else ''}) {each.does}"
            + (f"; must not {each.must_not}" if each.must_not else "")
            for each in pattern.participants
        ],
    )
    yield "Always so", [f"{each.rule} [{each.held}]" for each in pattern.invariants]
    yield "Knobs", [_knob_text(name, knob) for name, knob in pattern.knobs.items()]
    yield "Loops", [f"bounded by {' and '.join(pattern.bounded_by)}"] if pattern.loops else []
    yield "Needs", [_requirement_text(each) for each in known.requirements_of(pattern.id)]
    clashes = known.conflicts_of(pattern.id)
    yield "Clashes", [f"{each.id} {each.name} ({each.kind}, {each.severity}): {each.rule}" for each in clashes]
    yield "Cost", _cost_lines(pattern)
    yield "Goes wrong", [f"{each.what}: {each.mend}" for each in pattern.failures]
    yield "Watch", [", ".join(pattern.watch)]
    yield "Rests on", [f"{id} {known.mechanisms[id].name}" for id in pattern.mechanisms if id in known.mechanisms]
    for heading, ids in (
        ("Goes with", pattern.goes_with),
        ("Grows to", pattern.grows_to),
        ("Shrinks to", pattern.shrinks_to),
    ):
        yield heading, [", ".join(_named_patterns(ids, known))] if ids else []
    yield "Variants", [f"{each.name}: {each.what}" for each in pattern.variants]
    yield "Measured", [f"{each.figure} ({each.source})" for each in pattern.measured]
    yield "Sources", ["; ".join(pattern.sources)]
    yield "As code", [_import_text(pattern.id, runs)] if runs else []


def _import_text(id: str, name: str) -> str:
    from bicameral.patterns import PRODUCT

    if id in PRODUCT:
        return f"from bicameral import {name}  (the runtime itself is this pattern)"
    return f"from bicameral.patterns import {name}"


def _named_patterns(ids: Iterable[str], known: Catalog) -> list[str]:
    return [f"{id} {known.pattern(id).name}" for id in ids]


def _instead_text(condition: str, use: Sequence[str], known: Catalog) -> str:
    return f"{condition}: {' or '.join(_named_patterns(use, known))}" if use else f"{condition}: do not build it"


def _knob_text(name: str, knob: Knob) -> str:
    bounds = f" ({knob.allowed})" if knob.allowed else ""
    default = "to be set" if knob.default is None else f"{knob.default}"
    return f"{name} = {default}{bounds}: {knob.what}"


def _requirement_text(need: Requirement) -> str:
    wanted = " and ".join(need.all_of) if need.all_of else f"one of {', '.join(need.any_of)}"
    return f"{wanted} ({need.strength}{f', when {need.when}' if need.when else ''}): {need.why}"


def _cost_lines(pattern: PatternFacts) -> Iterator[str]:
    """The formulas of the cost, and their values for a small task."""
    from bicameral.catalog import default_sizes

    for session in pattern.cost.sessions:
        yield _session_text(session)
    if pattern.cost.tools.text != "0":
        yield f"calls of tools: {pattern.cost.tools}"
    sizes = default_sizes() | pattern.defaults
    usual = sum(session.calls.value(sizes) for session in pattern.cost.sessions)
    worst = sum(session.most.value(sizes) for session in pattern.cost.sessions)
    if pattern.cost.sessions:
        yield f"for a small task: {usual:g} model calls, at most {worst:g}"
    else:
        yield "no model calls of its own"


def _session_text(session: SessionCost) -> str:
    calls = f"{session.calls}" + (f", at most {session.worst}" if session.worst else "")
    prompt = f"{session.stable} (stable) + {session.prompt}"
    more = f", + {session.grows} with each call" if session.grows.text != "0" else ""
    beside = f"; {session.parallel} side by side" if session.parallel.text != "1" else ""
    return f"{session.role} ({session.tier}): {calls} calls{beside}; reads {prompt}{more}; writes {session.output}"


@click.group(short_help="The catalogue of patterns for agents: what each is, needs and costs.", cls=DefaultGroup)
def command() -> None:
    """The catalogue of patterns for agents. Without a subcommand: the list."""


@completer
def complete_pattern() -> Iterable[str]:
    """The ids that begin so, with their names."""
    from bicameral.catalog import catalog

    return {each.id: each.name for each in catalog().patterns.values()}


@completer
def _complete_category() -> Iterable[str]:
    from bicameral.catalog import CATEGORIES

    return CATEGORIES


@command.command("list")
@click.option("--category", metavar="NAME", shell_complete=_complete_category, help="Only those of this category.")
@click.option("--implemented", is_flag=True, help="Only those that can be run.")
@common_options
def list_patterns(chosen: CommonOptions, category: str | None = None, implemented: bool = False) -> dict[str, Any]:
    """Every pattern by category, in a line each; those with a dot can be run."""
    from bicameral.catalog import catalog
    from bicameral.patterns import implemented_classes

    known = catalog().category(category) if category else catalog().patterns
    found = [each for each in known.values() if not implemented or each.id in implemented_classes()]
    chosen.out.show("\n".join(category_lines(found, chosen.out.width)))
    if not found:
        chosen.out.say("none of these can be run yet")
    return {"patterns": [pattern_row_json(each) for each in found]}


@command.command("show")
@click.argument("id", shell_complete=complete_pattern)
@common_options
def show_pattern(chosen: CommonOptions, id: str) -> dict[str, Any]:
    """Everything about one pattern: who takes part, what always holds, what it needs, clashes with and costs."""
    from bicameral.catalog import catalog

    pattern = catalog().pattern(id)
    show_page(chosen.out, pattern)
    return {"pattern": pattern_json(pattern)}


@command.command("search")
@click.argument("words", metavar="WORDS...", nargs=-1, required=True)
@click.option("--limit", type=click.IntRange(1, 100), default=10, show_default=True, help="At most so many.")
@common_options
def search(chosen: CommonOptions, words: tuple[str, ...], limit: int) -> dict[str, Any]:
    """The patterns that fit WORDS, best first; other forms and small misspellings of a word count too."""
    from bicameral.catalog import catalog

    hits = catalog().search(" ".join(words), limit=limit)
    chosen.out.show("\n".join(pattern_lines([hit.pattern for hit in hits], chosen.out.width)))
    if not hits:
        chosen.out.say("no pattern fits these words")
    found = [pattern_row_json(hit.pattern) | {"score": hit.score, "words": list(hit.words)} for hit in hits]
    return {"patterns": found}


@command.command("run")
@click.argument("id", shell_complete=complete_pattern)
@click.argument("request", required=False)
@click.option("--knob", "knobs", multiple=True, metavar="NAME=VALUE", help="Set a knob; may be given several times.")
@common_options
def run_pattern(chosen: CommonOptions, id: str, request: str | None, knobs: tuple[str, ...]) -> int:
    """Run a pattern: its own example, or REQUEST with your tools where the pattern takes nothing else.

    V4 (Dual LLM) is what Bicameral itself does: its REQUEST is planned, checked and run as `bicameral run` does it.
    """
    import asyncio

    from bicameral.catalog import catalog
    from bicameral.cli._command_agent import fetch_missing_weights, open_agent, run_until_terminated
    from bicameral.cli._pattern_runs import PatternRunner
    from bicameral.patterns import PRODUCT, parse_pattern_knobs, pattern_class

    id = catalog().pattern(id).id
    if id in PRODUCT:
        return _run_product(chosen, id, request, parse_pattern_knobs(id, knobs))
    pattern_class(id)
    set_to, config = parse_pattern_knobs(id, knobs), chosen.config()
    fetch_missing_weights(chosen.out, config, ["privileged", "quarantined"])

    async def run() -> int:
        async with open_agent(config) as agent:
            with agent.spending():
                runner = PatternRunner(chosen.out)
                if request is None:
                    return await runner.run_example(agent, id, set_to)
                return await runner.run_request(agent, id, request, set_to)

    return asyncio.run(run_until_terminated(run()))


def _run_product(chosen: CommonOptions, id: str, request: str | None, knobs: Mapping[str, Any]) -> int:
    """Run a pattern that the runtime itself is."""
    import asyncio

    from bicameral.cli._command_agent import fetch_missing_weights, run_until_terminated
    from bicameral.cli._product_runs import parse_product_knobs, run_product_example, run_product_request

    wishes, config = parse_product_knobs(id, knobs), chosen.config()
    fetch_missing_weights(chosen.out, config, ["privileged", "quarantined"])
    if request is None:
        return asyncio.run(run_until_terminated(run_product_example(chosen, config, id)))
    return asyncio.run(run_until_terminated(run_product_request(chosen, config, id, request, wishes)))
