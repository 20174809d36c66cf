"""`bicameral version`: print the version."""

from __future__ import annotations

import platform
from typing import Any

import click

from bicameral.cli._options import CommonOptions, common_options


@click.command(short_help="Print the version.")
@common_options
def command(chosen: CommonOptions) -> dict[str, Any]:
    """Print the version of Bicameral, and of the formats that it reads and writes."""
    from importlib.metadata import version

    found = version("bicameral")
    chosen.out.show(f"bicameral {found} (Python {platform.python_version()})")
    formats = {"plan": "plan/1", "intent": "intent/2", "config": "config/1"}
    return {"version": found, "python": platform.python_version(), "formats": formats}
