"""A run of reads and effects with a real journal; each effect makes a system call that nothing else makes."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from bicameral import parse, tool
from bicameral.journal import Journal
from bicameral.policy import Policy
from bicameral.runs import run_plan
from bicameral.tools import Origin, Registry


@tool(effect="read", outbound=False, origins=Origin("system"))
def look(number: int) -> int:
    """Look at something."""
    return number


@tool(effect="write", origins=Origin("system"), purpose={"number": "carries"})
def change(number: int) -> None:
    """Change something."""
    os.getpriority(os.PRIO_PROCESS, 0)


async def main(folder: Path, reads: int, effects: int) -> None:
    registry = Registry([look, change])
    lines = [*(f"r{n} = look({n})" for n in range(reads)), *(f"change({n})" for n in range(effects)), 'answer("done")']
    plan = parse("\n".join(lines), registry).plan
    with Journal(folder / "journal.db") as journal:
        outcome = await run_plan(plan, registry, journal=journal, policy=Policy((), registry))
        assert outcome.ok, outcome
        # Closing moves the log into the file, with syncs of its own that are not asked about here.
        os._exit(0)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))
