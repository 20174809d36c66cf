"""`bicameral patterns`: the catalogue of patterns, to look through."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import click

from .._exits import OK
from .._options import Common, common

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


@click.group(
    short_help="The catalogue of patterns for agents: what each is, needs and costs.", invoke_without_command=True
)
@click.pass_context
def command(context: click.Context) -> int | None:
    """The catalogue of patterns for agents. Without a subcommand: the list."""
    return context.invoke(list_patterns) if context.invoked_subcommand is None else None


def complete_pattern(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """The ids that begin like this, with their names."""
    from click.shell_completion import CompletionItem

    with suppress(Exception):
        from bicameral.catalog import catalog

        known = catalog().patterns.values()
        return [CompletionItem(each.id, help=each.name) for each in known if each.id.startswith(begun.upper())]
    return []


def _complete_category(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    from bicameral.catalog import CATEGORIES

    return [CompletionItem(name) for name in CATEGORIES if name.startswith(begun)]


@command.command("list")
@click.option("--category", metavar="NAME", shell_complete=_complete_category, help="Only those of this category.")
@click.option("--implemented", is_flag=True, help="Only those that can be run.")
@common
def list_patterns(chosen: Common, category: str | None = None, implemented: bool = False) -> int:
    """Every pattern by category, in a line each; those with a dot can be run."""
    from bicameral.catalog import catalog

    from .._patterns import classes, listed, row_json

    known = catalog().category(category) if category else catalog().patterns
    found = [each for each in known.values() if not implemented or each.id in classes()]
    chosen.out.show("\n".join(listed(found, chosen.out.width)))
    if not found:
        chosen.out.say("none of these can be run yet")
    chosen.out.object({"ok": True, "patterns": [row_json(each) for each in found]})
    return OK


@command.command("show")
@click.argument("id", shell_complete=complete_pattern)
@common
def show_pattern(chosen: Common, id: str) -> int:
    """Everything about one pattern: who takes part, what always holds, what it needs, clashes with and costs."""
    from bicameral.catalog import catalog

    from .._patterns import pattern_json, show_page

    pattern = catalog().pattern(id)
    show_page(chosen.out, pattern)
    chosen.out.object({"ok": True, "pattern": pattern_json(pattern)})
    return OK


@command.command("search")
@click.argument("words", metavar="WORDS...", nargs=-1, required=True)
@click.option("--limit", type=click.IntRange(1, 100), default=10, show_default=True, help="At most so many.")
@common
def search(chosen: Common, words: tuple[str, ...], limit: int) -> int:
    """The patterns that fit WORDS, best first; other forms and small misspellings of a word count too."""
    from bicameral.catalog import catalog

    from .._patterns import pattern_lines, row_json

    hits = catalog().search(" ".join(words), limit=limit)
    chosen.out.show("\n".join(pattern_lines([hit.pattern for hit in hits], chosen.out.width)))
    if not hits:
        chosen.out.say("no pattern fits these words")
    found = [row_json(hit.pattern) | {"score": hit.score, "words": list(hit.words)} for hit in hits]
    chosen.out.object({"ok": True, "patterns": found})
    return OK


@command.command("run")
@click.argument("id", shell_complete=complete_pattern)
@click.argument("request", required=False)
@click.option("--knob", "knobs", multiple=True, metavar="NAME=VALUE", help="Set a knob; may be given several times.")
@common
def run_pattern(chosen: Common, id: str, request: str | None, knobs: tuple[str, ...]) -> int:
    """Run a pattern: its own example, or REQUEST with your tools where the pattern takes nothing else."""
    import asyncio

    from bicameral.catalog import catalog
    from bicameral.patterns import pattern_class

    from .._opening import bring_weights, given_agent, opened
    from .._patterns_run import Playing, knobs_of
    from .._stopping import until_terminated

    id = catalog().pattern(id).id
    pattern_class(id)
    set_to, config, make = knobs_of(id, knobs), chosen.config(), given_agent()
    if make is None:
        bring_weights(chosen.out, config, ["privileged", "quarantined"])

    async def run() -> int:
        async with opened(config, make) as agent:
            with agent.spending():
                playing = Playing(chosen.out)
                if request is None:
                    return await playing.example(agent, id, set_to)
                return await playing.request(agent, id, request, set_to)

    return asyncio.run(until_terminated(run()))
