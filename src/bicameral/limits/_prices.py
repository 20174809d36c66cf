"""Prices of tokens: a table by model, which a file of the user can override. An unknown price is None, never 0."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, cast

from bicameral.errors import ConfigError, Place
from bicameral.models import Usage

_MILLION = 1_000_000
_MAX_FILE_BYTES = 1_000_000
_LOCAL_FAMILIES = frozenset({"scripted", "ollama", "vllm", "llamacpp"})
"""Families that run on this machine, unless the name gives another host."""
_LOCAL_HOST = re.compile(r"(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])(?::\d+)?(?:/|$)")
# `openai:gpt-4.1-2025-04-14` and `anthropic:claude-opus-4-5-20251101` are dated names of priced models.
_DATE_SUFFIX = re.compile(r"-(?:\d{4}-\d{2}-\d{2}|\d{8}|latest|\d{4})$")


@dataclass(frozen=True, slots=True)
class Price:
    """The price of a million tokens that a model reads, and that it writes; `cached` if cached tokens are cheaper.

    If a prompt has more than `long_from` tokens, `long` is the price of the whole call.
    """

    read: float = 0.0
    written: float = 0.0
    cached: float | None = None
    long_from: int | None = None
    long: Price | None = None

    def of(self, usage: Usage) -> float:
        """What this usage costs, in the currency of the table."""
        if self.long is not None and self.long_from is not None and usage.prompt > self.long_from:
            return self.long.of(usage)
        cached = self.read if self.cached is None else self.cached
        fresh = max(0, usage.prompt - usage.cached)
        return (fresh * self.read + (usage.prompt - fresh) * cached + usage.output * self.written) / _MILLION

    def worst_case(self, prompt: int, output: int) -> float:
        """The most that so many tokens can cost: nothing is cached."""
        return self.of(Usage(prompt=prompt, output=output))


FREE_PRICE = Price()
"""The price of a local model."""


@dataclass(frozen=True, slots=True)
class ChamberPrices:
    """The prices of each chamber's tokens, whatever model is asked; a free price leaves it to the price table."""

    privileged: Price = FREE_PRICE
    quarantined: Price = FREE_PRICE


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices by exact model names; `version` is the date of the table, `currency` the unit of the numbers."""

    models: Mapping[str, Price] = field(default_factory=dict[str, Price])
    version: str = ""
    currency: str = "USD"

    def of(self, model: str) -> Price | None:
        """The price of a model by its name, such as `openai:gpt-4.1`; None if it is unknown.

        A local model costs nothing. A dated name has the price of the name without its date.
        """
        name = model.partition("#")[0]
        price = self.models.get(name)
        if price is not None:
            return price
        family, host = name.partition(":")[0], name.partition("@")[2]
        # A host in the name decides: `ollama:x@gpu.example.com` is not on this machine, and so not known to be free.
        if family == "local" or (family in _LOCAL_FAMILIES and not host) or (host and _LOCAL_HOST.match(host)):
            return FREE_PRICE
        return self.models.get(_DATE_SUFFIX.sub("", name))

    def merged_over(self, others: Prices) -> Prices:
        """These prices over others: for a model in both, this one counts."""
        if others.currency != self.currency and others.models:
            raise ConfigError(
                "config.prices", f"the prices are in {self.currency}, and those they go over in {others.currency}"
            )
        return Prices({**others.models, **self.models}, self.version or others.version, self.currency)


@cache
def known_prices() -> Prices:
    """The table that ships with Bicameral."""
    file = resources.files("bicameral.limits").joinpath("prices.toml")
    return parse_prices(file.read_text("utf-8"), "prices.toml")


def load_prices(file: Path) -> Prices:
    """A table of the user, merged over the one that ships with Bicameral unless the currencies differ.

    Example:
        >>> load_prices(Path("prices.toml")).of("openai:gpt-4.1")
    """
    try:
        if file.stat().st_size > _MAX_FILE_BYTES:
            raise ConfigError("config.too-large", f"{file} has more than {_MAX_FILE_BYTES:,} bytes")
        text = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError("config.unreadable", f"the prices in {file} cannot be read: {error}") from None
    own, known = parse_prices(text, str(file)), known_prices()
    return own if own.currency != known.currency else own.merged_over(known)


_CURRENT_PRICES: ContextVar[Prices | None] = ContextVar("bicameral-prices", default=None)


def current_prices() -> Prices:
    """The prices in force here."""
    return _CURRENT_PRICES.get() or known_prices()


@contextmanager
def use_prices(table: Prices) -> Generator[None]:
    """Use these prices for calls made inside."""
    token = _CURRENT_PRICES.set(table)
    try:
        yield
    finally:
        _CURRENT_PRICES.reset(token)


def parse_prices(text: str, file: str) -> Prices:
    """The prices in a TOML text; `file` names it in errors."""
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError("config.bad-toml", f"{file} is not TOML: {error}", place=Place(file=file)) from None
    version, currency = str(tables.pop("version", "")), tables.pop("currency", "USD")
    if not isinstance(currency, str):
        raise _bad_price(file, "currency", "a word such as USD")
    return Prices(
        {name: _parse_price(file, name, entry) for name, entry in _model_entries(file, tables)}, version, currency
    )


def _model_entries(file: str, tables: dict[str, Any]) -> list[tuple[str, object]]:
    """The entries by model name: `"gpt-4.1" = { … }` under `[openai]` is the model `openai:gpt-4.1`."""
    entries_by_name: list[tuple[str, object]] = []
    for family, entries in tables.items():
        if not isinstance(entries, dict):
            raise _bad_price(file, family, "a table of models, such as [openai]")
        entries_by_name += [(f"{family}:{name}", entry) for name, entry in cast("dict[str, object]", entries).items()]
    return entries_by_name


_PRICE_KEYS = {"read", "written", "cached", "long_from", "long"}


def _parse_price(file: str, name: str, entry: object) -> Price:
    if not isinstance(entry, dict) or not {"read", "written"} <= entry.keys() <= _PRICE_KEYS:
        raise _bad_price(file, name, "{ read = …, written = … } and, if wanted, cached, long_from, long")
    facts = cast("dict[str, Any]", entry)
    if ("long" in facts) != ("long_from" in facts):
        raise _bad_price(file, name, "long_from and long together")
    numbers = {key: facts[key] for key in ("read", "written", "cached", "long_from") if key in facts}
    for key, value in numbers.items():
        # By exact type, since a bool is an int; the comparison refuses negative, infinite and `nan`.
        if type(value) not in (int, float) or not 0 <= value < 1e12:
            raise _bad_price(file, f"{name}.{key}", "a number from 0 on")
    long = _parse_price(file, f"{name}.long", facts["long"]) if "long" in facts else None
    return Price(**numbers, long=long)


def _bad_price(file: str, where: str, expected: str) -> ConfigError:
    return ConfigError("config.prices", f"the price {where!r} is wrong", place=Place(file=file), expected=expected)
