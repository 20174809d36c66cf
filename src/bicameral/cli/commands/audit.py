"""`bicameral audit`: tools with private data, untrusted content and ways out, and what guards each way out."""

from __future__ import annotations

import click

from bicameral.cli._options import CommonOptions, common_options
from bicameral.cli._output import FAILED, OK

_LEGS = {"private": "private data", "untrusted": "untrusted content", "outbound": "ways out"}


@click.command(short_help="Whether a stranger's text could steal private data with these tools.")
@click.option("--no-policy", "unruled", is_flag=True, help="Judge the tools alone, as if no policy was in force.")
@common_options
def command(chosen: CommonOptions, unruled: bool) -> int:
    """Count the tools that bring private data, untrusted content and ways out, and say what holds each way out.

    Ends with exit code 1 if all three are there and nothing holds one of the ways out.
    """
    from bicameral.config import open_policy, open_registry
    from bicameral.policy import audit_registry

    config = chosen.config()
    registry = open_registry(config)
    policy = open_policy(config, registry)
    found = audit_registry(registry, None if unruled else policy.decide, mode=policy.mode)
    out = chosen.out
    for leg, tools in found.legs.items():
        out.show(f"{_LEGS[leg]}: {', '.join(tools) or 'none'}")
    for way in found.ways_out:
        out.show(f"\n{way.tool}  [{'held' if way.is_held else 'NOT HELD'}]")
        for reason in way.explain():
            out.show(f"  {reason}")
    if found.undeclared:
        out.show(f"\nnothing is declared by: {', '.join(found.undeclared)}")
    out.show(f"\n{found.verdict}")
    out.write_json(found.to_json())
    return OK if found.is_safe else FAILED
