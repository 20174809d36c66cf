"""Preparing models: what is read ahead is exactly what plans begin with, and nothing of a request."""

from __future__ import annotations

import contextlib
import datetime as dt
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from bicameral.agent import _preparation as preparation, prepare_models
from bicameral.boundary import Extractor
from bicameral.config import Config, load_config
from bicameral.errors import BicameralError
from bicameral.models import ModelRequest, ScriptedProvider
from bicameral.planning import Delta, Echo
from bicameral.planning._questions import understand
from bicameral.tools import Registry
from bicameral.types import STR
from question_tools import FINDING as TOOLS, read_text

TODAY = dt.date(2026, 3, 11)


SECRET = "What does the quixotic zebra file say?"


class Silent(ScriptedProvider):
    """Replies nothing of use, and records what it is asked; it has adapters as an embedded model has."""

    def __init__(self, *jobs: str) -> None:
        super().__init__(lambda _: "x")
        object.__setattr__(self, "adapters", dict.fromkeys(jobs, "0" * 64))


def fixed_part(request: ModelRequest) -> Any:
    return request.adapter, request.messages[: request.fixed]


async def asked(provider: Silent, work: Any) -> ModelRequest:
    with contextlib.suppress(BicameralError):
        await work
    return provider.requests[0]


@pytest.mark.parametrize("jobs", [(), ("delta", "echo")])
async def test_the_planner_reads_ahead_what_every_plan_begins_with(jobs: tuple[str, ...]) -> None:
    ahead, later = Silent(*jobs), Silent(*jobs)
    await Delta(ahead).prepare(TOOLS)
    real = await asked(later, Delta(later, repairs=0).compile(understand(SECRET, TOOLS, TODAY), TOOLS))
    (prepared,) = ahead.requests
    assert fixed_part(prepared) == fixed_part(real)
    assert prepared.fixed == real.fixed >= 1
    assert "zebra" not in repr(real.messages[: real.fixed])
    assert "zebra" in repr(real.messages[real.fixed :])


@pytest.mark.parametrize("jobs", [(), ("delta", "echo")])
async def test_echo_reads_ahead_what_every_request_begins_with(jobs: tuple[str, ...]) -> None:
    ahead, later = Silent(*jobs), Silent(*jobs)
    await Echo(ahead).prepare()
    real = await asked(later, Echo(later).intent("fix the zebra thingy n stuff", TOOLS, TODAY))
    assert fixed_part(ahead.requests[0]) == fixed_part(real)
    assert "zebra" not in repr(real.messages[: real.fixed])


async def test_the_reader_reads_ahead_its_rules_and_nothing_of_the_world() -> None:
    ahead, later = Silent(), Silent()
    await Extractor(ahead).prepare()
    real = await asked(later, Extractor(later).extract("a zebra for 5", "the animal", STR))
    assert fixed_part(ahead.requests[0]) == fixed_part(real)
    assert "zebra" not in repr(real.messages[: real.fixed])


async def test_where_the_request_decides_what_is_shown_nothing_is_fixed() -> None:
    own = replace(read_text, name="foreign", self_described=True)
    provider = Silent("delta")
    tools = Registry([*TOOLS, own])
    await Delta(provider).prepare(tools)
    assert provider.requests == []
    real = await asked(provider, Delta(provider, repairs=0).compile(understand(SECRET, tools, TODAY), tools))
    assert real.fixed == 0


@dataclass
class Weights:
    sha256: str


class Embedded(Silent):
    def __init__(self, sha256: str) -> None:
        super().__init__("delta")
        self.weights = Weights(sha256)
        self.closed = False

    async def aclose(self) -> None:
        self.closed = True


async def test_only_models_that_are_here_and_wanted_are_prepared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    models = {"privileged": [Embedded("a"), Embedded("b")], "quarantined": [Embedded("c")]}

    def providers(_: Config, role: str) -> list[Embedded]:
        return models[role]

    def missing(_: Config, roles: list[str]) -> list[Weights]:
        return [Weights("b")]

    monkeypatch.setattr(preparation, "embedded_providers", providers)
    monkeypatch.setattr(preparation, "missing_weights", missing)
    config = load_config(base=tmp_path)
    assert len(await prepare_models(config, TOOLS)) == 1
    assert [[len(each.requests) for each in models[role]] for role in models] == [[2, 0], [1]]
    await prepare_models(config, TOOLS, only={"c"})
    assert [[len(each.requests) for each in models[role]] for role in models] == [[2, 0], [2]]
    assert [each.closed for role in models for each in models[role]] == [True, False, True]
