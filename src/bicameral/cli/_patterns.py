"""Patterns of the catalogue, shown to a person: a line each, or a page."""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ._output import Output

if TYPE_CHECKING:
    from bicameral.catalog import Catalog, Conflict, Knob, Pattern, Requirement, SessionCost

_PAGE = 100
"""A page is no wider than this, however wide the terminal is."""
_ID = re.compile(r"\b(?:[SKROVIH]\d{1,2}|M\d{1,2}|CRIT\d+|LAW\d+)\b")


def classes() -> Mapping[str, str]:
    """The class of every pattern that can be run, by its id."""
    from bicameral.patterns import IMPLEMENTED

    return {id: where.partition(":")[2] for id, where in IMPLEMENTED.items()}


def listed(patterns: Sequence[Pattern], width: int) -> Iterator[str]:
    """Patterns by category, in a line each."""
    before = ""
    for pattern, line in zip(patterns, pattern_lines(patterns, width, margin="  "), strict=True):
        if pattern.category != before:
            before = pattern.category
            yield before
        yield line


def pattern_lines(patterns: Sequence[Pattern], width: int, margin: str = "") -> list[str]:
    """A line for each pattern: id, whether it can be run, name, what it is; cut where a terminal ends."""
    able = classes()
    wide = max((len(pattern.name) for pattern in patterns), default=0)
    lines = [
        f"{margin}{pattern.id:<4}{'•' if pattern.id in able else ' '} {pattern.name:<{wide}}  {pattern.what}"
        for pattern in patterns
    ]
    return [line if len(line) <= width else f"{line[: width - 1]}…" for line in lines]


def row_json(pattern: Pattern) -> dict[str, Any]:
    """A pattern in a list, for a program."""
    facts = {"id": pattern.id, "name": pattern.name, "category": pattern.category, "what": pattern.what}
    return {**facts, "implemented": classes().get(pattern.id)}


def pattern_json(pattern: Pattern) -> dict[str, Any]:
    """All that is known of a pattern, for a program: its facts as in the files, and the rules that it is part of."""
    from bicameral.catalog import catalog, plain

    known = catalog()
    return {
        **plain(pattern),
        "implemented": classes().get(pattern.id),
        "requirements": plain(known.requirements_of(pattern.id)),
        "needed_by": sorted({each.pattern for each in known.needed_by(pattern.id)}),
        "conflicts": plain(known.conflicts_of(pattern.id)),
    }


def show_page(out: Output, pattern: Pattern) -> None:
    """A pattern on a page: headings and ids stand out where there is a terminal."""
    if out.as_json:
        return
    lines = list(page(pattern, min(out.width, _PAGE)))
    if not sys.stdout.isatty():
        out.show("\n".join(lines))
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=True)
    what = lines.index("")
    for number, line in enumerate(lines):
        heading = number == 0 or (number > what and not line.startswith(" "))
        text = Text(line, style="bold" if heading else "")
        text.highlight_regex(_ID, "cyan")
        console.print(text)


def page(pattern: Pattern, width: int) -> Iterator[str]:
    """The page of a pattern, line by line."""
    from bicameral.catalog import catalog

    runs = classes().get(pattern.id)
    yield f"{pattern.id}  {pattern.name}  ({pattern.category}{', can be run' if runs else ''})"
    yield from textwrap.wrap(pattern.what, width)
    for heading, entries in _sections(pattern, catalog(), runs):
        if told := list(entries):
            yield ""
            yield heading
            hanging = "    " if len(told) > 1 else "  "
            for entry in told:
                yield from textwrap.wrap(
                    entry, width, initial_indent="  ", subsequent_indent=hanging, break_on_hyphens=False
                )


def _sections(pattern: Pattern, known: Catalog, runs: str | None) -> Iterator[tuple[str, Iterable[str]]]:
    yield "How", [pattern.how]
    yield "When", pattern.when
    yield "Not when", [_instead(each.condition, each.use, known) for each in pattern.not_when]
    yield (
        "Who takes part",
        [
            f"{each.name} ({each.kind}{f', {each.tier}' if each.tier else ''}) {each.does}"
            + (f"; must not {each.must_not}" if each.must_not else "")
            for each in pattern.participants
        ],
    )
    yield "Always so", [f"{each.rule} [{each.held}]" for each in pattern.invariants]
    yield "Knobs", [_knob(name, knob) for name, knob in pattern.knobs.items()]
    yield "Loops", [f"bounded by {' and '.join(pattern.bounded_by)}"] if pattern.loops else []
    yield "Needs", [_need(each) for each in known.requirements_of(pattern.id)]
    yield "Clashes", [_clash(each) for each in known.conflicts_of(pattern.id)]
    yield "Cost", _cost(pattern)
    yield "Goes wrong", [f"{each.what}: {each.mend}" for each in pattern.failures]
    yield "Watch", [", ".join(pattern.watch)]
    yield "Rests on", [f"{id} {known.mechanisms[id].name}" for id in pattern.mechanisms if id in known.mechanisms]
    for heading, ids in (
        ("Goes with", pattern.goes_with),
        ("Grows to", pattern.grows_to),
        ("Shrinks to", pattern.shrinks_to),
    ):
        yield heading, [", ".join(_named(ids, known))] if ids else []
    yield "Variants", [f"{each.name}: {each.what}" for each in pattern.variants]
    yield "Measured", [f"{each.figure} ({each.source})" for each in pattern.measured]
    yield "Sources", ["; ".join(pattern.sources)]
    yield "As code", [f"from bicameral.patterns import {runs}"] if runs else []


def _named(ids: Iterable[str], known: Catalog) -> list[str]:
    return [f"{id} {known.pattern(id).name}" for id in ids]


def _instead(condition: str, use: Sequence[str], known: Catalog) -> str:
    return f"{condition}: {' or '.join(_named(use, known))}" if use else f"{condition}: do not build it"


def _knob(name: str, knob: Knob) -> str:
    match (knob.least, knob.most):
        case (None, None):
            bounds = f" ({' or '.join(knob.choices)})" if knob.choices else ""
        case (least, None):
            bounds = f" (from {least:g})"
        case (None, most):
            bounds = f" (to {most:g})"
        case (least, most):
            bounds = f" ({least:g} to {most:g})"
    default = "to be set" if knob.default is None else f"{knob.default}"
    return f"{name} = {default}{bounds}: {knob.what}"


def _need(need: Requirement) -> str:
    wanted = " and ".join(need.all_of) if need.all_of else f"one of {', '.join(need.any_of)}"
    return f"{wanted} ({need.strength}{f', when {need.when}' if need.when else ''}): {need.why}"


def _clash(conflict: Conflict) -> str:
    return f"{conflict.id} {conflict.name} ({conflict.kind}, {conflict.severity}): {conflict.rule}"


def _cost(pattern: Pattern) -> Iterator[str]:
    """The formulas, and what they come to for a small task."""
    from bicameral.catalog import default_sizes

    for session in pattern.cost.sessions:
        yield _session(session)
    if pattern.cost.tools.text != "0":
        yield f"calls of tools: {pattern.cost.tools}"
    sizes = default_sizes() | pattern.defaults
    usual = sum(session.calls.value(sizes) for session in pattern.cost.sessions)
    worst = sum(session.most.value(sizes) for session in pattern.cost.sessions)
    if pattern.cost.sessions:
        yield f"for a small task: {usual:g} model calls, at most {worst:g}"
    else:
        yield "no model calls of its own"


def _session(session: SessionCost) -> str:
    calls = f"{session.calls}" + (f", at most {session.worst}" if session.worst else "")
    prompt = f"{session.stable} (stable) + {session.prompt}"
    more = f", + {session.grows} with each call" if session.grows.text != "0" else ""
    beside = f"; {session.parallel} side by side" if session.parallel.text != "1" else ""
    return f"{session.role} ({session.tier}): {calls} calls{beside}; reads {prompt}{more}; writes {session.output}"
