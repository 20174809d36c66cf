"""Hold `prices.toml` against genai-prices, and bring it up to date.

python -m scripts.prices            prints the models whose price is another one there; exits 1 if there are any
python -m scripts.prices --write    writes those prices into the table, with today's date as its version

genai-prices comes with the remote extras and is used here only: importing it takes 0.3 s, while
the table needs neither it nor a network. Models that it does not know keep their line and are named. Which models the
table has is decided by hand.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from genai_prices.data_snapshot import get_snapshot
from genai_prices.types import TieredPrices

TABLE = Path(__file__).parents[1] / "src" / "bicameral" / "limits" / "prices.toml"
_RATES = {"read": "input_mtok", "written": "output_mtok", "cached": "cache_read_mtok"}
_VERSION = re.compile(r'^version = ".*"$', re.MULTILINE)


def published_price(family: str, model: str) -> dict[str, Any] | None:
    """The price of a model as the table has it; None if genai-prices does not know the model.

    The table leaves `-latest` out of names, so a name stands for what its `-latest` is now.
    """
    for name in (f"{model}-latest", model):
        try:
            _, found = get_snapshot().find_provider_model(name, None, family, None)
        except LookupError:
            continue
        prices = found.get_prices(datetime.now(UTC))
        rates = {ours: rate for ours, theirs in _RATES.items() if (rate := getattr(prices, theirs, None)) is not None}
        price: dict[str, Any] = {ours: _base(rate) for ours, rate in rates.items()}
        tiers = {ours: rate.tiers[0] for ours, rate in rates.items() if isinstance(rate, TieredPrices)}
        if tiers:
            long = {ours: float(tiers[ours].price) if ours in tiers else price[ours] for ours in rates}
            price |= {"long_from": next(iter(tiers.values())).start, "long": long}
        return price
    return None


def _base(rate: Any) -> float:
    return float(rate.base if isinstance(rate, TieredPrices) else rate)


def render_price(price: Mapping[str, Any]) -> str:
    """A price as an inline table of TOML."""
    parts = {name: render_price(value) if name == "long" else f"{value:.12g}" for name, value in price.items()}
    return f"{{ {', '.join(f'{name} = {value}' for name, value in parts.items())} }}"


def main() -> int:
    text = TABLE.read_text("utf-8")
    table: dict[str, Any] = tomllib.loads(text)
    changed = 0
    for family in table.keys() - {"version", "currency"}:
        models: dict[str, dict[str, Any]] = table[family]
        for model, old in models.items():
            new = published_price(family, model)
            if new is None:
                print(f"{family}/{model}: not known to genai-prices")
            elif new != old:
                changed += 1
                print(f"{family}/{model}: {render_price(old)} -> {render_price(new)}")
                head, section = text.split(f"[{family}]\n", 1)
                line = f'"{model}" = {render_price(new)}'
                text = f"{head}[{family}]\n" + re.sub(
                    rf'^"{re.escape(model)}" = .*$', lambda _, line=line: line, section, count=1, flags=re.MULTILINE
                )
    if "--write" in sys.argv[1:]:
        if changed:
            TABLE.write_text(_VERSION.sub(f'version = "{datetime.now(UTC):%Y-%m-%d}"', text), "utf-8")
        return 0
    return 1 if changed else 0


if __name__ == "__main__":
    raise SystemExit(main())
