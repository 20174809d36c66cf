"""What one session of one pattern takes in a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ._amounts import Amounts


@dataclass(frozen=True, slots=True)
class Part:
    """What one session of one pattern takes. `inside` are the patterns that go round it, outermost first.

    What is `apart` happens beside runs and is in no sum of a run.
    """

    agent: str
    pattern: str
    role: str
    model: str
    expected: Amounts
    worst: Amounts
    inside: tuple[str, ...] = ()
    apart: bool = False

    def to_json(self) -> dict[str, Any]:
        return {
            "agent": self.agent,
            "pattern": self.pattern,
            "role": self.role,
            "model": self.model,
            "inside": list(self.inside),
            "apart": self.apart,
            "expected": self.expected.to_json(),
            "worst": self.worst.to_json(),
        }
