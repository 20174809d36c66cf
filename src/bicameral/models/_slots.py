"""Which prompts share an engine's memory: each adapter has a slot of its own, so that no prefix is read twice."""

from __future__ import annotations

from typing import Any

from bicameral.models._adapters import Adapter
from bicameral.models._protocol import ModelRequest

_PLAIN = 2


class Slots:
    """Without adapters one slot serves all, and the engine keeps the prompts that are not in use.

    With them it cannot (what it kept might have been read under another adapter): every adapter gets one slot, and the
    conversations without one share two, each going where its setup was read last.
    """

    def __init__(self, adapters: tuple[Adapter, ...]) -> None:
        self.adapters = adapters
        self.count = 1 if not adapters else _PLAIN + len(adapters)
        self._setups: list[str | None] = [None] * _PLAIN
        self._last = 0

    def place(self, request: ModelRequest, adapter: Adapter | None) -> dict[str, Any]:
        """The part of a completion's body that says where it runs and with which adapter."""
        if not self.adapters:
            return {}
        scales = [{"id": number, "scale": float(each == adapter)} for number, each in enumerate(self.adapters)]
        if adapter is not None:
            return {"lora": scales, "id_slot": _PLAIN + self.adapters.index(adapter)}
        setup = request.messages[0].text if request.messages else ""
        if setup in self._setups:
            self._last = self._setups.index(setup)
        else:
            self._last = (self._last + 1) % _PLAIN
            self._setups[self._last] = setup
        return {"lora": scales, "id_slot": self._last}
