"""Echo's temperature: 0 unless it is configured, before that of an alias, in the cache key, and in the record."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path

import pytest

from bicameral import Agent
from bicameral.config import Config, load_config
from bicameral.errors import ConfigError
from bicameral.limits import ModelCall
from bicameral.models import ModelReply, ModelRequest, ScriptedProvider
from bicameral.planning import Echo
from bicameral.routing import Alias, Aliases, AliasParameters, CachedProvider, Router, Selection
from bicameral.tools import Registry, tool

TODAY = dt.date(2026, 3, 11)
SLOPPY = "yo how many lines r in notes pls"
STEPS = [{"action": "read", "file": "notes"}, {"action": "count", "of": "lines"}]
UNDERSTOOD = json.dumps({"task": "count lines", "steps": STEPS, "constraints": [], "output": "answer"})


@tool(effect="read")
def read_lines(path: str) -> list[str]:
    "Lines of a file."
    return [path]


REGISTRY = Registry([read_lines])


class Listening(ScriptedProvider):
    """Remembers what it was asked."""

    def __init__(self, name: str = "scripted") -> None:
        super().__init__(lambda _: UNDERSTOOD, name=name)
        self.asked: list[ModelRequest] = []

    async def generate(self, request: ModelRequest) -> ModelReply:
        self.asked.append(request)
        return await super().generate(request)

    @property
    def sampling(self) -> list[tuple[float, int]]:
        return [(request.temperature, request.seed) for request in self.asked]


async def test_the_temperature_is_0_unless_it_is_configured() -> None:
    model = Listening()
    await Echo(model).intent(SLOPPY, REGISTRY, TODAY)
    await Echo(model, temperature=0.6).intent(SLOPPY, REGISTRY, TODAY)
    assert model.sampling == [(0.0, 0), (0.6, 0)]


async def test_the_configured_one_reaches_the_model_of_an_agent(tmp_path: Path) -> None:
    for configured, wanted in (("", 0.0), ("[planning]\necho_temperature = 0.55\n", 0.55)):
        (tmp_path / "bicameral.toml").write_text(configured)
        model = Listening()
        calls: list[ModelCall] = []
        agent = Agent(
            REGISTRY,
            config=load_config(tmp_path / "bicameral.toml", base=tmp_path),
            privileged=model,
            quarantined=ScriptedProvider([]),
            cache={},
            listener=calls.append,
        )
        await agent.intent(SLOPPY)
        assert [request.temperature for request in model.asked] == [wanted]
        recorded = calls[0].to_json()
        assert (recorded.get("temperature"), recorded.get("seed")) == ((0.55, 0) if wanted else (None, None))


@pytest.mark.parametrize(("own", "asked"), [(None, (0.2, 7)), (0.6, (0.6, 0)), (0.0, (0.0, 0))])
async def test_what_is_configured_for_echo_comes_before_what_an_alias_has_for_all(
    own: float | None, asked: tuple[float, int]
) -> None:
    model = Listening()
    alias = Alias.of("main", model, AliasParameters(temperature=0.2, seed=7))
    router = Router(Aliases("privileged", [alias]), Selection("main"))
    await Echo(router, temperature=own).intent(SLOPPY, REGISTRY, TODAY)
    assert model.sampling == [asked]


async def test_replies_at_different_temperatures_are_not_mixed() -> None:
    model, cache, replies = Listening(), dict[str, str](), dict[str, str]()
    remembering = CachedProvider(model, replies)
    for temperature in (None, 0.0, 0.5, 0.7, 0.5, None):
        await Echo(remembering, cache=cache, temperature=temperature).intent(SLOPPY, REGISTRY, TODAY)
    # Echo remembers each of the four, so that the last two are not asked. At 0 the same request is one request.
    assert model.sampling == [(0.0, 0), (0.5, 0), (0.7, 0)]
    assert len(cache) == 4
    assert len(replies) == 1


async def test_the_same_request_has_the_same_intent_the_second_time() -> None:
    cache: dict[str, str] = {}
    first = await Echo(Listening(), cache=cache, temperature=0.7).intent(SLOPPY, REGISTRY, TODAY)
    silent = ScriptedProvider([], name="scripted")
    assert await Echo(silent, cache=cache, temperature=0.7).intent(SLOPPY, REGISTRY, TODAY) == first


@pytest.mark.parametrize("wrong", ["-0.1", "2.1", "nan", '"warm"', "true"])
def test_a_temperature_that_is_none_is_refused_with_its_line(tmp_path: Path, wrong: str) -> None:
    (tmp_path / "bicameral.toml").write_text(f"[planning]\necho_temperature = {wrong}\n")
    with pytest.raises(ConfigError) as caught:
        load_config(tmp_path / "bicameral.toml", base=tmp_path)
    assert caught.value.code == "config.wrong-type"
    assert caught.value.place is not None
    assert caught.value.place.line == 2


def test_the_range_of_the_document_is_accepted_and_not_set_is_the_default(tmp_path: Path) -> None:
    assert Config.defaults().planning.echo_temperature is None
    for temperature in (0.0, 0.5, 0.7, 2.0):
        (tmp_path / "bicameral.toml").write_text(f"[planning]\necho_temperature = {temperature}\n")
        assert load_config(tmp_path / "bicameral.toml", base=tmp_path).planning.echo_temperature == temperature
