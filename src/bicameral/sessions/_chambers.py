"""The two chambers, separated by type: a model that may read untrusted text never plans or acts."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, final

from bicameral.errors import ModelError
from bicameral.models import Chamber, ModelReply, ModelRequest, Provider, ReplyChunk, stream_chunks
from bicameral.routing import credentials_of, meter_provider, model_names


@final
class Quarantined:
    """A model that may read untrusted text. It has no tools and no key of the privileged chamber.

    Only a provider that declares it is accepted: its `chamber` is `quarantined`, or None for one that holds nothing at
    all, such as local weights. The wrapper exposes nothing of the provider except asking. The same weights may serve
    both chambers through two providers.

    Args:
        provider: The provider to wrap; one that is wrapped already is taken as it is.

    Example:
        >>> Session("quarantined", Quarantined(LocalProvider(path, name="local:0.5b")), setup)
    """

    __slots__ = ("_metered", "_provider")

    counts = True
    """Its calls are metered one by one, whatever provider is behind it."""

    def __init__(self, provider: Provider | Quarantined) -> None:
        self._provider: Provider = (
            provider._provider if isinstance(provider, Quarantined) else _require_harmless(provider)
        )
        self._metered = meter_provider(self._provider)

    def __init_subclass__(cls) -> NoReturn:
        # A subclass could override any check or hold a key, and would still pass `isinstance`.
        raise TypeError("a class of somebody's own could hold anything; Quarantined has no subclasses")

    @property
    def chamber(self) -> Chamber:
        return "quarantined"

    @property
    def name(self) -> str:
        return self._provider.name

    @property
    def grammars(self) -> bool:
        return self._provider.grammars

    @property
    def adapters(self) -> Mapping[str, str]:
        return self._provider.adapters

    @property
    def models(self) -> tuple[str, ...]:
        """The names of the models behind it, for estimates of the cost."""
        return model_names(self._provider)

    @property
    def credentials(self) -> frozenset[str]:
        """The fingerprints of the keys behind it, so that a key of the privileged chamber cannot be hidden here."""
        return credentials_of(self._provider)

    async def generate(self, request: ModelRequest) -> ModelReply:
        return await self._metered.generate(request)

    def stream(self, request: ModelRequest) -> AsyncIterator[str]:
        return self._metered.stream(request)

    def chunks(self, request: ModelRequest) -> AsyncIterator[ReplyChunk]:
        return stream_chunks(self._metered, request)

    async def aclose(self) -> None:
        await self._provider.aclose()


@dataclass(frozen=True, slots=True)
class Chambers:
    """The models of both chambers. They must be two provider objects, with different keys if they have keys."""

    privileged: Provider
    quarantined: Quarantined

    def __post_init__(self) -> None:
        quarantined = self.quarantined._provider  # pyright: ignore[reportPrivateUsage] the other half of this file
        privileged: Any = self.privileged
        if privileged is quarantined or privileged is self.quarantined:
            raise _shared_chamber("one provider serves both chambers", "Make two; the same weights may be behind both.")
        require_privileged(self.privileged)
        if credentials_of(self.privileged) & credentials_of(quarantined):
            raise _shared_chamber("both chambers use the same key", "Give each chamber a key of its own.")


def require_privileged(provider: Provider) -> Provider:
    """The provider itself, if it may plan; a quarantined one is refused."""
    if type(provider) is Quarantined or _declared_chamber(provider) == "quarantined":
        raise _wrong_chamber(
            f"{provider.name!r} is a quarantined model and cannot plan", "a provider of the privileged side"
        )
    return provider


def _require_harmless(provider: Provider) -> Provider:
    """The provider itself, if it may read untrusted text: no tools, and no key but one of the quarantine."""
    chamber = _declared_chamber(provider)
    if chamber == "privileged":
        raise _wrong_chamber(f"{provider.name!r} is of the privileged side and cannot read untrusted text")
    if getattr(provider, "tools", None):
        raise _wrong_chamber(f"{provider.name!r} holds tools and cannot read untrusted text")
    # Without a declared chamber the key could be the privileged one.
    if chamber is None and credentials_of(provider):
        raise _wrong_chamber(f"{provider.name!r} holds a key and does not say of which chamber it is")
    return provider


def _declared_chamber(provider: Provider) -> Chamber | None:
    undeclared = object()
    chamber: object = getattr(provider, "chamber", undeclared)
    # Exact type only: a subclass of `str` could define `__eq__` and equal both chambers.
    if chamber is not None and (type(chamber) is not str or chamber not in ("privileged", "quarantined")):
        raise _wrong_chamber(f"{type(provider).__name__!r} does not say of which chamber it is")
    return chamber


def _wrong_chamber(
    message: str, expected: str = "a provider that holds no tools and no key but the quarantine's"
) -> ModelError:
    return ModelError(
        "models.wrong-chamber",
        message,
        expected=expected,
        fix="Use one provider object for each chamber, and set its `chamber`.",
    )


def _shared_chamber(message: str, fix: str) -> ModelError:
    return ModelError("models.shared-chamber", message, fix=fix)
