"""`bicameral intent`: what a request asks for, as it was understood, before anything is planned."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bicameral.cli._command_agent import fetch_missing_weights, open_agent
from bicameral.cli._displays import open_display
from bicameral.cli._options import CommonOptions, common_options, model_option
from bicameral.cli._output import OK, Output, terminal_people
from bicameral.cli._render import intent_text

if TYPE_CHECKING:
    from bicameral.config import Config
    from bicameral.planning import Intent


@click.command(short_help="What a request asks for, as it was understood: steps, constraints, mentions, questions.")
@click.argument("request")
@click.option(
    "--out", "target", type=click.Path(dir_okay=False, path_type=Path), help="Write the intent to this file, as JSON."
)
@click.option("--deterministic", is_flag=True, help="Understand the request by rules alone, without Echo's model.")
@model_option
@common_options
def command(chosen: CommonOptions, request: str, target: Path | None, deterministic: bool) -> int:
    """Say what REQUEST asks for, as it was understood, and plan nothing.

    At a terminal open questions are asked; an empty reply leaves them open. The file that --out writes can be edited,
    and planned from with `bicameral plan --intent FILE`.
    """
    config = chosen.config()
    if not deterministic:
        fetch_missing_weights(chosen.out, config, ["privileged"])
    intent = asyncio.run(_understand(chosen.out, config, request, deterministic))
    if target is not None:
        target.write_text(intent.model_dump_json(indent=2) + "\n", encoding="utf-8")
        chosen.out.say(f"written to {target}")
    else:
        chosen.out.show(intent_text(intent))
    chosen.out.write_json({"ok": True, "intent": intent.model_dump(mode="json")})
    return OK


async def _understand(out: Output, config: Config, request: str, deterministic: bool) -> Intent:
    async with open_agent(config) as agent:
        with open_display(out) as shown:
            asker, _ = terminal_people(out, agent.registry, shown.quiet)
            shown.phase("understanding")
            return await agent.intent(request, deterministic=deterministic, asker=asker, partial=True)
