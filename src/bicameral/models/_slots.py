"""Which prompts share an engine's memory: each adapter has a slot of its own, so that no prefix is evaluated twice."""

from __future__ import annotations

from bicameral.models._adapters import Adapter
from bicameral.models._canonical import Placement
from bicameral.models._protocol import ModelRequest

_PLAIN = 2


class Slots:
    """Without adapters one slot serves all. With them every adapter gets one slot, since what was evaluated under one
    adapter is of no use to another, and the conversations without one share two, each going where its setup was read
    last.
    """

    def __init__(self, adapters: tuple[Adapter, ...]) -> None:
        self.adapters = adapters
        self.count = 1 if not adapters else _PLAIN + len(adapters)
        self._setups: list[str | None] = [None] * _PLAIN
        self._last = 0

    def place(self, request: ModelRequest, adapter: Adapter | None) -> Placement:
        """Where a request runs, and with which adapter."""
        if not self.adapters:
            return Placement(0, "", {"id_slot": 0})
        scales = [{"id": number, "scale": float(each == adapter)} for number, each in enumerate(self.adapters)]
        if adapter is not None:
            slot = _PLAIN + self.adapters.index(adapter)
            return Placement(slot, adapter.sha256, {"id_slot": slot, "lora": scales})
        setup = request.messages[0].text if request.messages else ""
        if setup in self._setups:
            self._last = self._setups.index(setup)
        else:
            self._last = (self._last + 1) % _PLAIN
            self._setups[self._last] = setup
        return Placement(self._last, "", {"id_slot": self._last, "lora": scales})
