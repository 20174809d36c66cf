"""A quarantined role never resolves to a client that holds tools or the privileged key."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any, cast

import pytest

from bicameral.boundary import Extractor, Filled
from bicameral.config import Config
from bicameral.config._models import EmbeddedProvider, open_models
from bicameral.errors import ModelError
from bicameral.models import Chamber, ModelReply, ModelRequest, Provider, ScriptedProvider
from bicameral.sessions import Chambers, Quarantined, Session
from bicameral.types import INT


class Remote:
    """A provider that holds a key, as remote ones do."""

    def __init__(self, chamber: Chamber | None, credential: str | None = "key-1", tools: tuple[str, ...] = ()) -> None:
        self.chamber: Chamber | None = chamber
        self.credential = credential
        self.tools = tools
        self.name = "remote"
        self.grammars = False
        self.adapters: Mapping[str, str] = {}

    async def generate(self, request: ModelRequest) -> ModelReply:
        return ModelReply('{"value": 7}')

    def stream(self, request: ModelRequest) -> AsyncIterator[str]:
        raise NotImplementedError

    async def aclose(self) -> None: ...


class Silent:
    """A provider that does not say of which chamber it is."""

    name = "silent"


REFUSED: list[Any] = [
    Remote("privileged"),
    Remote("privileged", credential=None),
    Remote("quarantined", tools=("send_mail",)),
    Remote(None),
    Remote(cast("Chamber", "both")),
    Silent(),
    ScriptedProvider([], chamber="privileged"),
    EmbeddedProvider(Config.defaults(), "privileged"),
]


@pytest.mark.parametrize("provider", REFUSED, ids=lambda provider: type(provider).__name__)
def test_what_could_act_or_knows_the_key_cannot_read_untrusted_text(provider: Provider) -> None:
    for make in (Quarantined, Extractor):
        with pytest.raises(ModelError) as caught:
            make(provider)
        assert caught.value.code == "models.wrong-chamber"


ALLOWED: list[Any] = [
    Remote("quarantined"),
    Remote(None, credential=None),
    ScriptedProvider([]),
    ScriptedProvider([], chamber="quarantined"),
    EmbeddedProvider(Config.defaults(), "quarantined"),
]


@pytest.mark.parametrize("provider", ALLOWED, ids=lambda provider: type(provider).__name__)
def test_what_holds_nothing_or_only_the_quarantines_key_can(provider: Provider) -> None:
    assert Quarantined(provider).name == provider.name
    assert Extractor(provider).model == provider.name


@pytest.mark.parametrize("provider", [*REFUSED, *ALLOWED], ids=lambda provider: type(provider).__name__)
def test_a_quarantined_session_takes_a_quarantined_provider_and_no_other(provider: Any) -> None:
    with pytest.raises(ModelError) as caught:
        Session("quarantined", provider, ())
    assert caught.value.code == "models.wrong-chamber"


@pytest.mark.parametrize("role", ["echo", "delta"])
def test_a_quarantined_model_does_not_plan(role: Any) -> None:
    for provider in (Quarantined(ScriptedProvider([])), ScriptedProvider([], chamber="quarantined"), Silent()):
        with pytest.raises(ModelError) as caught:
            Session(role, cast("Provider", provider), ())
        assert caught.value.code == "models.wrong-chamber"


def test_nothing_of_the_provider_is_reached_through_a_quarantined_one() -> None:
    wrapped = Quarantined(Remote("quarantined"))
    public = {name for name in dir(wrapped) if not name.startswith("_")}
    # Of keys there are fingerprints, which open nothing; `counts` says that its calls are counted, and `resolve_model`
    # gives the name of an alias.
    said = {"chamber", "name", "grammars", "adapters", "credentials", "counts", "models", "resolve_model"}
    assert public == said | {"generate", "stream", "chunks", "aclose"}
    assert Quarantined(wrapped).name == wrapped.name


def test_quarantined_has_no_subclasses() -> None:
    with pytest.raises(TypeError):
        type("Loose", (Quarantined,), {})


def test_the_chambers_are_two_providers_and_two_keys() -> None:
    one = ScriptedProvider([])
    key_one, key_two = Remote("quarantined", "key-1"), Remote("quarantined", "key-2")
    for privileged, quarantined in ((one, one), (Remote("privileged", "key-1"), key_one)):
        with pytest.raises(ModelError) as caught:
            Chambers(privileged, Quarantined(quarantined))
        assert caught.value.code == "models.shared-chamber"
    with pytest.raises(ModelError):
        Chambers(ScriptedProvider([], chamber="quarantined"), Quarantined(one))
    assert Chambers(Remote("privileged", "key-1"), Quarantined(key_two)).quarantined.name == "remote"


def test_the_same_weights_serve_both_chambers_through_two_providers() -> None:
    models = open_models(Config.defaults())
    pair = Chambers(models.privileged, Quarantined(models.quarantined))
    assert (pair.privileged.chamber, pair.quarantined.chamber) == ("privileged", "quarantined")


async def test_a_remote_model_of_the_quarantine_fills_blanks() -> None:
    assert await Extractor(Remote("quarantined")).extract("7 of them", "how many", INT) == Filled(7)
