"""The routing benchmark: it says what it could not compare with, and what it compares with is pinned."""

from __future__ import annotations

import importlib.util
import json
import re
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from benchmarks.routing import __main__ as benchmark, others
from benchmarks.routing.faults import Survived
from benchmarks.routing.streams import FirstToken
from benchmarks.routing.timing import overhead

LOCK = Path(__file__).parents[2] / "requirements-routing.lock"


def test_where_litellm_is_missing_it_says_so_and_compares_with_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def without(name: str) -> ModuleSpec | None:
        return None if name == "litellm" else importlib.util.find_spec(name)

    async def first_token() -> FirstToken:
        return FirstToken(0.002, 0.001)

    async def survive() -> Survived:
        return Survived(1, 0, 0, 0.1, 1, 0, 1, Counter(), ())

    monkeypatch.setattr(others, "find_spec", without)
    monkeypatch.setattr(benchmark, "first_token", first_token)
    monkeypatch.setattr(benchmark, "survive", survive)
    benchmark.main()
    *_, told, last = capsys.readouterr().out.splitlines()
    assert "make routing" in told
    found = json.loads(last)
    assert [found[name] for name in ("litellm_us", "litellm_ratio", "litellm_version")] == [None, None, None]
    assert found["decision_us"] > 0
    assert found["pydantic_ai_us"] > 0


async def test_overhead_is_what_a_call_takes_beyond_its_bare_part() -> None:
    def spin(seconds: float) -> Callable[[], Awaitable[None]]:
        async def act() -> None:
            until = time.perf_counter() + seconds
            while time.perf_counter() < until:
                pass

        return act

    added = await overhead(spin(0.0006), spin(0.0002), calls=2, rounds=40)
    assert 0.0003 < added < 0.0006


def test_everything_to_compare_with_is_pinned_by_hash_and_from_no_particular_index() -> None:
    lock = LOCK.read_text()
    packages = re.findall(r"^[a-z][\w.-]*(?:\[[\w,-]+\])?(\S*)", lock, re.MULTILINE)
    assert len(packages) > 20
    assert all(version.startswith("==") for version in packages)
    pinned = re.split(r"^(?=[a-z])", lock, flags=re.MULTILINE)[1:]
    assert all("--hash=sha256:" in each for each in pinned)
    assert "://" not in lock
    assert "litellm==" in lock


@pytest.mark.parametrize("other", ["requirements.lock", "requirements-agentdojo.lock"])
def test_installing_it_changes_nothing_that_is_installed_already(other: str) -> None:
    ours, theirs = (
        dict(re.findall(r"^([a-z][\w.-]*)(?:\[[\w,-]+\])?==(\S+)", path.read_text(), re.MULTILINE))
        for path in (LOCK, LOCK.with_name(other))
    )
    both = ours.keys() & theirs.keys()
    assert len(both) > 5
    assert {name: ours[name] for name in both} == {name: theirs[name] for name in both}
