"""Real weights in processes of their own: what one has read, the next one need not read, and the reply is the same.

The engine aborts its process on a damaged file, so each process must end by itself.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bicameral.models import ModelStore, find_weights

_PROCESS = """
import asyncio, json, sys
from pathlib import Path
from bicameral.models import (
    KeptPrefixes, LocalProvider, Message, ModelRequest, ModelStore, adapters_of, find_weights
)

SETUP = Message("system", "You answer in one word. " + "Words are short. " * 20)

async def main():
    weights = find_weights("0.5b")
    kept = KeptPrefixes(Path(sys.argv[1]), weights.sha256)
    provider = LocalProvider(
        ModelStore().ensure(weights), name="local:test", threads=2, adapters=adapters_of(weights), prefixes=kept
    )
    for adapter in (None, "delta"):
        asked = ModelRequest(
            (SETUP, Message("user", "Name a colour.")), max_tokens=4, confidence=True, adapter=adapter, fixed=1
        )
        reply = await provider.generate(asked)
        told = [reply.text, [[each.text, each.probability] for each in reply.confidence]]
        print(json.dumps([reply.usage.cached, told]))
    await provider.aclose()

asyncio.run(main())
"""


def run_process(kept: Path) -> list[tuple[int, Any]]:
    """How many tokens were not read, and the reply with its probabilities: without an adapter, and with one."""
    found = subprocess.run(
        [sys.executable, "-c", _PROCESS, str(kept)], capture_output=True, text=True, timeout=300, check=False
    )
    assert found.returncode == 0, found.stderr[-2000:]
    return [(cached, reply) for cached, reply in map(json.loads, found.stdout.splitlines())]


def vouch_for_others(kept: Path) -> None:
    """Other bytes in place of each state, and descriptions that say they are the right ones."""
    for path in sorted(kept.glob("*.state")):
        content = path.read_bytes()[:16] + os.urandom(path.stat().st_size - 16)
        digest, name = hashlib.sha256(content).hexdigest(), path.name.partition(".")[0]
        path.unlink()
        (kept / f"{name}.{digest[:16]}.state").write_bytes(content)
        described = kept / f"{name}.json"
        described.write_text(json.dumps({**json.loads(described.read_text()), "sha256": digest}))


def truncate(kept: Path) -> None:
    for path in kept.glob("*.state"):
        os.truncate(path, path.stat().st_size // 2)


@pytest.mark.timeout(900)
def test_a_new_process_restores_what_another_has_read_and_never_takes_a_damaged_file(tmp_path: Path) -> None:
    ModelStore().ensure(find_weights("0.5b"))
    kept = tmp_path / "kept"
    first = run_process(kept)
    assert [cached for cached, _ in first] == [0, 0]
    assert len(list(kept.glob("*.state"))) == 2
    second = run_process(kept)
    assert all(cached >= 64 for cached, _ in second)
    replies = [reply for _, reply in first]
    assert [reply for _, reply in second] == replies
    for damage in (truncate, vouch_for_others):
        damage(kept)
        assert run_process(kept) == first
        # Read again, so kept again.
        assert len(list(kept.glob("*.state"))) == 2
