"""Which side models are on. What is put together is on one side, and stays there.

A combination that held a model of each chamber could hand a stranger's text to the privileged key, or the planner's
prompt to whoever serves the quarantine. So none is ever built, and what a model says of itself is read again before
each call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from bicameral.errors import ModelError
from bicameral.models import Chamber, Provider


@dataclass(frozen=True, slots=True)
class Side:
    """What a provider says of itself: its chamber, and the fingerprints of the keys behind it."""

    chamber: Chamber | None
    credentials: frozenset[str] = frozenset()


def side_of(provider: Provider) -> Side:
    """The side of one provider. One that does not say it, or says what cannot be, is refused."""
    unsaid = object()
    chamber: object = getattr(provider, "chamber", unsaid)
    # By the very type: a class of somebody's own may equal every chamber there is.
    if chamber is not None and (type(chamber) is not str or chamber not in ("privileged", "quarantined")):
        raise _wrong(f"{type(provider).__name__!r} does not say of which chamber it is")
    credentials = credentials_of(provider)
    if chamber is None and credentials:
        raise _wrong(f"{type(provider).__name__!r} holds a key and does not say of which chamber it is")
    if chamber != "privileged" and getattr(provider, "tools", None):
        raise _wrong(f"{type(provider).__name__!r} holds tools and is not of the privileged side")
    return Side(chamber, credentials)


def said_of(provider: object) -> tuple[object, ...]:
    """What a provider says of itself, to be compared with what it said before; `side_of` judges it.

    The types are part of it: something of another type may equal whatever it likes.
    """
    chamber: object = getattr(provider, "chamber", None)
    one: object = getattr(provider, "credential", None)
    several: object = getattr(provider, "credentials", None)
    tools = bool(getattr(provider, "tools", None))
    return type(chamber), chamber, type(one), one, type(several), several, tools


def credentials_of(provider: object) -> frozenset[str]:
    """The fingerprints of all keys behind a provider, however deep they are."""
    several: Any = getattr(provider, "credentials", None)
    if several is not None:
        if type(several) is not frozenset:
            raise _wrong(f"{type(provider).__name__!r} does not say which keys it holds")
        return cast("frozenset[str]", several)
    one: Any = getattr(provider, "credential", None)
    return frozenset() if one is None else frozenset({str(one)})


def one_side(providers: Sequence[Provider]) -> Side:
    """The side of several models that are to stand in for each other; refused unless they are on the same one.

    A model that holds nothing may stand on either side.
    """
    sides = [side_of(provider) for provider in providers]
    chambers: set[Chamber] = {side.chamber for side in sides if side.chamber is not None}
    if len(chambers) > 1:
        names = ", ".join(f"{_name(each)} ({side.chamber})" for each, side in zip(providers, sides, strict=True))
        raise _wrong(f"models of both chambers cannot stand in for each other: {names}")
    return Side(next(iter(chambers), None), frozenset(key for side in sides for key in side.credentials))


def _name(provider: Provider) -> str:
    return str(provider.name)[:100]


def _wrong(message: str) -> ModelError:
    return ModelError(
        "models.wrong-chamber",
        message,
        expected="models of one chamber, each with the key of that chamber or none",
        fix="Make one combination for each chamber.",
    )
