"""Real servers, attacks and overhead of the firewall: `python -m benchmarks.mcp [--only TYPE ...]`.

`servers_ok` counts real servers whose job is right directly and through the firewall. `succeeded` counts attacks that
got something through the firewall, `undefended_succeeded` those of the `undefended_tried` that did so without it,
`controls_ok` benign twins whose job was done, with the questions that they `asked` a person. `overhead_ratio` is the
median call through the firewall over the median direct call. Without a choice of parts all of them are run.

The exit status is 0 only if no attack succeeded, every control went through and every server that is installed is ok.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from .families import TYPES, all_attacks
from .overhead import measure_overhead
from .scenario import Attack, Way
from .servers import SERVERS, check_server
from .trial import AttackResult, try_attack

AT_ONCE = 2
"""Attacks that are tried at once: each one keeps a processor busy."""


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


async def check_servers(names: Sequence[str]) -> dict[str, Any]:
    """The jobs of the real servers."""
    found: dict[str, Any] = {}
    for server in SERVERS:
        if not names or server.name in names:
            found[server.name] = await check_server(server)
            _say(f"server {server.name}: {found[server.name]}")
    ok = [name for name, each in found.items() if not any(each.values())]
    return {"servers": len(found), "servers_ok": len(ok), "servers_failed": sorted(found.keys() - ok)}


def run_conformance() -> dict[str, Any]:
    """The last line of the reference conformance suite."""
    found = subprocess.run(
        [sys.executable, "-m", "benchmarks.mcp.conformance"], check=False, stdout=subprocess.PIPE, text=True
    )
    lines = found.stdout.strip().splitlines()
    return {"conformance": json.loads(lines[-1]) if lines else None}


async def try_attacks(
    attacks: Sequence[Attack], *, undefended: bool, way: Way = "firewall", twin: Way = "inside"
) -> list[AttackResult]:
    """Try attacks with their twins, a few at once, in their order."""
    free = asyncio.Semaphore(AT_ONCE)
    count = 0

    async def try_one(attack: Attack) -> AttackResult:
        nonlocal count
        async with free:
            try:
                result = await try_attack(attack, undefended=undefended, way=way, twin=twin)
            except Exception as error:
                result = AttackResult(attack, None, None, False, 0, 0.0, f"{type(error).__name__}: {error}")
        count += 1
        state = f"GOT {result.got}" if result.got else f"BROKEN {result.broken}" if result.broken else "stopped"
        alone = "" if result.undefended is None else f"; without: {result.undefended[:80]}"
        _say(f"{count}/{len(attacks)} {attack.type}/{attack.name} ({result.seconds:.1f} s): {state[:600]}{alone}")
        return result

    return list(await asyncio.gather(*map(try_one, attacks)))


@contextmanager
def own_state() -> Generator[None]:
    """A firewall in this process keeps its journal apart from the user's."""
    with (
        tempfile.TemporaryDirectory(prefix="mcp-state-") as folder,
        patch.dict(os.environ, {"XDG_STATE_HOME": folder, "XDG_CONFIG_HOME": folder}),
    ):
        yield


def attack_figures(results: Sequence[AttackResult]) -> dict[str, Any]:
    """What the attacks come to."""
    return {
        "attacks": len(results),
        "types": dict(sorted(Counter(each.attack.type for each in results).items())),
        "succeeded": sum(each.got is not None for each in results),
        "undefended_tried": sum(each.attack.scenario(True).undefended for each in results),
        "undefended_succeeded": sum(each.undefended is not None for each in results),
        "controls": len(results),
        "controls_ok": sum(each.control_ok for each in results),
        "asked": sum(each.asked for each in results),
        "controls_asking": sum(each.asked > 0 for each in results),
        "failed": [f"{each.attack.type}/{each.attack.name}" for each in results if not each.ok],
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.mcp", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", action="append", choices=TYPES, metavar="TYPE", help="attacks of this type only")
    parser.add_argument("--attack", action="append", metavar="NAME", help="this attack only")
    parser.add_argument("--no-undefended", action="store_true", help="try the attacks only through the firewall")
    parser.add_argument("--servers", nargs="*", metavar="NAME", help="real servers only, or some of them")
    parser.add_argument("--overhead", action="store_true", help="the overhead only")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--inside", action="store_true", help="attacks through a firewall in this process: faster")
    where.add_argument("--thorough", action="store_true", help="twins, too, each through a firewall of their own")
    parser.add_argument("--conformance", action="store_true", help="also run the reference conformance suite")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to a file, too")
    options = parser.parse_args()
    everything = not (options.only or options.attack or options.servers is not None or options.overhead)
    began = time.perf_counter()
    figures: dict[str, Any] = {}
    if everything or options.servers is not None:
        figures |= asyncio.run(check_servers(options.servers or ()))
    if everything or options.overhead:
        figures |= asyncio.run(measure_overhead())
    if everything or options.only or options.attack:
        attacks = [
            each for each in all_attacks(options.only or TYPES) if not options.attack or each.name in options.attack
        ]
        with own_state():
            way: Way = "inside" if options.inside else "firewall"
            twin: Way = "firewall" if options.thorough else "inside"
            results = asyncio.run(try_attacks(attacks, undefended=not options.no_undefended, way=way, twin=twin))
        figures |= attack_figures(results)
        for name, count in figures["types"].items():
            stopped = sum(each.ok for each in results if each.attack.type == name)
            print(f"{name}: {stopped} of {count} stopped with their twin going through")
    if options.conformance:
        figures |= run_conformance()
    figures["seconds"] = round(time.perf_counter() - began, 1)
    text = json.dumps(figures)
    if options.json is not None:
        options.json.write_text(f"{text}\n", "utf-8")
    print(text)
    sys.exit(1 if figures.get("failed") or figures.get("servers_failed") else 0)


if __name__ == "__main__":
    main()
