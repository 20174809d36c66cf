"""What a model costs and how fast it is: plain numbers, which whoever asks brings along."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from bicameral.errors import CatalogError

Tier = Literal["small", "mid", "large"]
TIERS: tuple[Tier, ...] = get_args(Tier)
"""Classes of models: the catalogue says which class a session wants, a table of rates which model that is."""

_MILLION = 1_000_000


def _positive(name: str, value: float, *, least: float = 0.0, above_zero: bool = False) -> None:
    if math.isnan(value) or value < least or (above_zero and value == 0):
        expected = f"a number {'above' if above_zero else 'from'} {least:g}{'' if above_zero else ' on'}"
        raise CatalogError("catalog.bad-rate", f"{name} is {value!r}", expected=expected)


@dataclass(frozen=True, slots=True)
class Caching:
    """How the head of a prompt is kept from one call to the next.

    A head of at least `minimum` tokens costs `write` of its price when it is stored and `read` of it when it is found
    again within `ttl` seconds. `history` says that a conversation which only grows is found again whole, and not only
    the head that is the same for all.
    """

    minimum: float = 1024
    write: float = 1.25
    read: float = 0.10
    ttl: float = 300.0
    history: bool = False

    def __post_init__(self) -> None:
        _positive("minimum", self.minimum, least=1)
        _positive("write", self.write, least=1)
        _positive("read", self.read)
        _positive("ttl", self.ttl)


LOCAL_CACHING = Caching(minimum=1, write=1.0, read=0.0, ttl=math.inf, history=True)
"""An engine on one's own machine: what it has read before it does not read again, and nothing is charged."""


@dataclass(frozen=True, slots=True)
class Rates:
    """What a model takes. Money is for a million tokens, speeds are tokens a second; None is not known.

    `square_at` is the length at which comparing all tokens with all others takes as long as everything else in
    reading a prompt; shorter prompts take hardly more than their share, longer ones grow with the square. `kv_bytes`
    is what the model keeps of a token: 2 x layers x key-value heads x width of a head x bytes of a number. `wait` is
    the time a call takes before the model begins, `window` the most tokens it can have before it, `lanes` how many
    calls it can do side by side without being slower.

    Example:
        >>> Rates("openai:gpt-5", read=1.25, written=10, cached=0.125, prompt_speed=5000, output_speed=80)
    """

    model: str
    read: float | None = None
    written: float | None = None
    cached: float | None = None
    prompt_speed: float | None = None
    output_speed: float | None = None
    caching: Caching | None = Caching()
    wait: float = 0.0
    square_at: float = math.inf
    kv_bytes: float = 0.0
    window: int | None = None
    lanes: float = math.inf

    def __post_init__(self) -> None:
        for name in ("read", "written", "cached", "prompt_speed", "output_speed", "window"):
            value: float | None = getattr(self, name)
            if value is not None:
                _positive(name, value, above_zero=name.endswith("speed"))
        for name in ("wait", "square_at", "kv_bytes"):
            _positive(name, getattr(self, name), above_zero=name == "square_at")
        _positive("lanes", self.lanes, least=1)

    @property
    def again(self) -> float:
        """What part of the price a token costs that is found in the cache."""
        if self.cached is not None and self.read:
            return self.cached / self.read
        return self.caching.read if self.caching is not None else 1.0

    def charged(self, fresh: float, stored: float, cached: float) -> float:
        """So many tokens at the full price would cost as much."""
        write = self.caching.write if self.caching is not None else 1.0
        return fresh + write * stored + self.again * cached

    def money(self, charged: float, output: float) -> float | None:
        """What tokens cost, if the prices are known."""
        if self.read is None or self.written is None:
            return None
        return (charged * self.read + output * self.written) / _MILLION

    def reading(self, until: float, squares: float) -> float | None:
        """Seconds to read so many tokens; `squares` are the pairs they are compared in, beyond what was cached."""
        if self.prompt_speed is None:
            return None
        return (until + squares / self.square_at) / self.prompt_speed

    def writing(self, output: float) -> float | None:
        return None if self.output_speed is None else output / self.output_speed


# Measured on two cores of a small machine. The square's share and the bytes of a token follow from the shapes of the
# models: 24 layers of 896 with 2 key-value heads of 64, and 28 layers of 1536 with 2 of 128, numbers of two bytes.
SMALL_LOCAL = Rates(
    "local:0.5b",
    read=0.0,
    written=0.0,
    prompt_speed=100,
    output_speed=25,
    caching=LOCAL_CACHING,
    square_at=16_700,
    kv_bytes=2 * 24 * 2 * 64 * 2,
    window=32_768,
    lanes=1,
)
LARGE_LOCAL = Rates(
    "local:1.5b",
    read=0.0,
    written=0.0,
    prompt_speed=57,
    output_speed=11.5,
    caching=LOCAL_CACHING,
    square_at=30_500,
    kv_bytes=2 * 28 * 2 * 128 * 2,
    window=32_768,
    lanes=1,
)
LOCAL: Mapping[str, Rates] = {"small": SMALL_LOCAL, "mid": LARGE_LOCAL, "large": LARGE_LOCAL}
"""The weights that come with Bicameral, by class: they cost nothing but time."""
