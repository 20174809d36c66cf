"""The two chambers, kept apart by type: what may read untrusted text is never what may act."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, final

from bicameral.errors import ModelError
from bicameral.models import Chamber, ModelReply, ModelRequest, Provider, ReplyChunk, stream_chunks
from bicameral.routing import credentials_of, meter_provider, model_names


@final
class Quarantined:
    """A model that may read what strangers wrote. It holds no tools and no key of the privileged side.

    Only a provider that says so can become one: its `chamber` is `quarantined`, or None for one that holds nothing at
    all, such as weights on this machine. Nothing of the provider is reached through it but asking. The same weights
    may serve both sides through two providers.

    Example:
        >>> Session("quarantined", Quarantined(LocalProvider(path, name="local:0.5b")), setup)
    """

    __slots__ = ("_asked", "_provider")

    counts = True
    """Its calls are counted one by one, whatever is behind it."""

    def __init__(self, provider: Provider | Quarantined) -> None:
        self._provider: Provider = (
            provider._provider if isinstance(provider, Quarantined) else _require_harmless(provider)
        )
        self._asked = meter_provider(self._provider)

    def __init_subclass__(cls) -> NoReturn:
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
        """The names of the models behind it, so that one can say beforehand what it may cost."""
        return model_names(self._provider)

    @property
    def credentials(self) -> frozenset[str]:
        """The fingerprints of the keys behind it, so that nobody can hide the other side's in here."""
        return credentials_of(self._provider)

    async def generate(self, request: ModelRequest) -> ModelReply:
        return await self._asked.generate(request)

    def stream(self, request: ModelRequest) -> AsyncIterator[str]:
        return self._asked.stream(request)

    def chunks(self, request: ModelRequest) -> AsyncIterator[ReplyChunk]:
        return stream_chunks(self._asked, request)

    async def aclose(self) -> None:
        await self._provider.aclose()


@dataclass(frozen=True, slots=True)
class Chambers:
    """The models of both sides: two objects, and two keys where there are keys. Refused if they are not apart."""

    privileged: Provider
    quarantined: Quarantined

    def __post_init__(self) -> None:
        inner = self.quarantined._provider  # pyright: ignore[reportPrivateUsage] the other half of this file
        given: Any = self.privileged
        if given is inner or given is self.quarantined:
            raise _shared_chamber("one provider serves both chambers", "Make two; the same weights may be behind both.")
        require_privileged(self.privileged)
        if credentials_of(self.privileged) & credentials_of(inner):
            raise _shared_chamber("both chambers use the same key", "Give each chamber a key of its own.")


def require_privileged(provider: Provider) -> Provider:
    """The same provider, if it may plan; one that was made to read untrusted text may not."""
    if type(provider) is Quarantined or _declared_chamber(provider) == "quarantined":
        raise _wrong_chamber(
            f"{provider.name!r} is a quarantined model and cannot plan", "a provider of the privileged side"
        )
    return provider


def _require_harmless(provider: Provider) -> Provider:
    chamber = _declared_chamber(provider)
    if chamber == "privileged":
        raise _wrong_chamber(f"{provider.name!r} is of the privileged side and cannot read untrusted text")
    if getattr(provider, "tools", None):
        raise _wrong_chamber(f"{provider.name!r} holds tools and cannot read untrusted text")
    if chamber is None and credentials_of(provider):
        raise _wrong_chamber(f"{provider.name!r} holds a key and does not say of which chamber it is")
    return provider


def _declared_chamber(provider: Provider) -> Chamber | None:
    unsaid = object()
    chamber: object = getattr(provider, "chamber", unsaid)
    # By the very type: a class of somebody's own may equal every chamber there is.
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
