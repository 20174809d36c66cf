"""How much a reasoning may take, as configured."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._config import Config

if TYPE_CHECKING:
    from bicameral.reasoner import Bounds


def bounds_of(config: Config) -> Bounds:
    """The bounds that `[reason]` sets."""
    from bicameral.reasoner import Bounds, Price

    set_, price = config.reason, config.reason.price
    return Bounds(
        set_.rounds,
        set_.calls,
        set_.tokens,
        set_.money,
        set_.seconds,
        Price(price.privileged_read, price.privileged_written),
        Price(price.quarantined_read, price.quarantined_written),
    )
