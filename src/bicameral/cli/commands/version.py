"""`bicameral version`: which Bicameral this is."""

from __future__ import annotations

import platform

import click

from .._options import Common, common


@click.command(short_help="Print the version.")
@common
def command(chosen: Common) -> int:
    """Print the version of Bicameral, and of the formats that it reads and writes."""
    from importlib.metadata import version

    found = version("bicameral")
    chosen.out.show(f"bicameral {found} (Python {platform.python_version()})")
    formats = {"plan": "plan/1", "intent": "intent/1", "config": "config/1"}
    chosen.out.object({"ok": True, "version": found, "python": platform.python_version(), "formats": formats})
    return 0
