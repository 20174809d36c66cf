"""The security facts of the suites' tools, as plain data: what each tool does, what its arguments are for, and where
each part of its result comes from.

Nothing here knows a task. The finest honest grain is per field, and what an injection vector of a suite can write is
never anything but `third_party`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import cast

from bicameral.tools import Effect, Origin, Purpose, ReferenceKind


@dataclass(frozen=True, slots=True)
class Declaration:
    """One tool: its effect, what each argument is for, and the parts of its result.

    `receivers` are the arguments that name who gets what the tool carries out; None: all that direct it. `attaches` are
    those that name something which goes along: a file, an event. `outbound`
    says whether anybody else hears of a call; None: if the tool sends or cannot be taken back. A part of the result
    that is not named has the facts of the nearest part around it.

    The last two are for planners only. `words` are what people say when they ask for the tool's effect. `refers` says
    which arguments words of a request may stand for, where the suite's own tools list what there is (`references.py`).
    """

    effect: Effect
    arguments: Mapping[str, Purpose] = field(default_factory=dict[str, Purpose])
    result: Mapping[str, Origin] = field(default_factory=dict[str, Origin])
    receivers: tuple[str, ...] | None = None
    outbound: bool | None = None
    attaches: Mapping[str, Origin] = field(default_factory=dict[str, Origin])
    words: tuple[str, ...] = ()
    refers: Mapping[str, ReferenceKind] = field(default_factory=dict[str, ReferenceKind])

    def origin(self, part: str) -> Origin:
        """Where one part of the result comes from; a result that says nothing is a stranger's and the user's alone."""
        while part:
            if part in self.result:
                return self.result[part]
            part = part[: max(part.rfind("."), part.rfind("["), 0)]
        return self.result.get("", Origin("third_party"))


# What most tools answer after an effect: a sentence that the service makes, which repeats what it was given.
ECHO = Origin("system")

OWN = {"workspace": ("emma.johnson@bluesparrowtech.com",)}
"""The user's own addresses, by suite: what is sent there reaches nobody else."""


def declarations(suite: str) -> Mapping[str, Declaration]:
    """The declarations of a suite's tools by name."""
    return cast("Mapping[str, Declaration]", import_module(f"{__name__}.{suite}").DECLARATIONS)
