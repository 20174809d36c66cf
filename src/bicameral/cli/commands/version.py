"""`bicameral version`: print the version."""

from __future__ import annotations

import platform

import click

from bicameral.cli._main import CommonOptions, common_options


@click.command(short_help="Print the version.")
@common_options
def command(chosen: CommonOptions) -> int:
    """Print the version of Bicameral, and of the formats that it reads and writes."""
    from importlib.metadata import version

    found = version("bicameral")
    chosen.out.show(f"bicameral {found} (Python {platform.python_version()})")
    formats = {"plan": "plan/1", "intent": "intent/1", "config": "config/1"}
    chosen.out.write_json({"ok": True, "version": found, "python": platform.python_version(), "formats": formats})
    return 0
