"""`bicameral advise`: the smallest stack of patterns that is enough, by facts in a file, on the line, or asked for."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bicameral.errors import CatalogError, Place

from .._advise import asked, read_facts, show_advice, show_facts
from .._cost import Speeds, tier_rates
from .._exits import OK
from .._options import Common, common

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from bicameral.catalog.advice import Facts


def _complete_fact(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    from bicameral.catalog.advice import questions

    return [CompletionItem(f"{name}=", help=each.ask) for name, each in questions().items() if name.startswith(begun)]


@click.command(short_help="The smallest stack of patterns that is enough for what you know of a task.")
@click.option("--facts", "file", type=click.Path(dir_okay=False, path_type=Path), help="A YAML file with facts.")
@click.option(
    "--fact", "given", metavar="NAME=VALUE", multiple=True, shell_complete=_complete_fact, help="A fact, as in tools=4."
)
@click.option("--no-ask", is_flag=True, help="Ask nothing, also at a terminal.")
@click.option("--list", "listing", is_flag=True, help="List all facts that can be told, and nothing else.")
@click.option("--name", default="Advised stack", show_default=True, help="The name of the stack.")
@click.option(
    "--write", "target", type=click.Path(dir_okay=False, path_type=Path), help="Write the stack to this YAML file."
)
@click.option(
    "--model", "models", metavar="[TIER=]NAME", multiple=True, help="The models for the estimate of its cost."
)
@common
def command(
    chosen: Common,
    file: Path | None,
    given: tuple[str, ...],
    no_ask: bool,
    listing: bool,
    name: str,
    target: Path | None,
    models: tuple[str, ...],
) -> int:
    """Advise on an architecture by what is known of the task, and ask for what matters next.

    Facts come from --facts, from --fact, and at a terminal from you: one question at a time, with why it is asked; what
    you do not know you skip. Each pattern comes with the rule that chose it, and what was ruled out with the fact that
    did it.
    """
    from bicameral.catalog.advice import advise, questions
    from bicameral.config import open_prices

    out, config = chosen.out, chosen.config()
    if listing:
        show_facts(out)
        facts = [
            {"name": each.id, "kind": each.kind, "ask": each.ask, "why": each.why} for each in questions().values()
        ]
        out.object({"ok": True, "facts": facts})
        return OK
    known = _given(file, given)
    if out.interactive and not no_ask:
        known = asyncio.run(asked(out, known))
    advice = advise(known, name=name, rates=tier_rates(config, models, Speeds()))
    show_advice(out, advice, open_prices(config).currency)
    if target is not None:
        _write(target, advice.yaml())
        out.say(f"written to {target}; `bicameral lint {target}` holds it against the rules")
    out.object({"ok": True, **advice.to_json()})
    return OK


def _given(file: Path | None, given: tuple[str, ...]) -> Facts:
    """The facts of the file, and over them those of the command line."""
    from bicameral.catalog.advice import Facts, parse_fact

    facts = read_facts(file) if file is not None else Facts()
    for each in given:
        name, equals, value = each.partition("=")
        if not equals:
            raise click.UsageError(f"{each!r} is no fact: write NAME=VALUE.")
        facts = facts.saying(**{name.strip(): parse_fact(name.strip(), value)})
    return facts


def _write(target: Path, text: str) -> None:
    try:
        target.write_text(text, encoding="utf-8")
    except OSError as error:
        place, said = Place(file=str(target)), error.strerror or type(error).__name__
        raise CatalogError("catalog.cannot-write", f"the stack cannot be written: {said}", place=place) from None
