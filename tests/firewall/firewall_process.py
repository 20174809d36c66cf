"""A firewall as a client starts it: one process, standard input and output."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

from firewall_world import OWN, World

from bicameral.firewall import Firewall, FirewallSettings, StdioTransport, serve_firewall
from bicameral.policy import Policy
from bicameral.runs import open_journal_at
from bicameral.tools import Registry, tool


@tool(effect="read", outbound=False, origins=OWN)
def noisy_read() -> str:
    """A tool that prints where the protocol is."""
    print("printed by a tool")
    return "read"


async def main(folder: Path) -> None:
    world = World()
    firewall = Firewall(
        Registry([*world.tools(), noisy_read]),
        Policy(),
        FirewallSettings(),
        journal=open_journal_at(folder / "journal.db"),
    )
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await serve_firewall(firewall, StdioTransport(), stop=stop)
    (folder / "ended").write_text(repr(world.sent))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
