"""What one check found. Troubles with one key are one thing, and become one finding."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

from ..stacks import FACTS, Keys
from ._derived import SAID_BY
from ._finding import Severity

Key: TypeAlias = tuple[str, ...]

_TOOLS = {"count": "how many tools the agent has", "schema_tokens": "how many tokens their schemas take"}
SECTIONS = {
    **{f"tools.{name}": what for name, what in _TOOLS.items()},
    "legs": "which of private data, strangers' text and ways out the agent has",
    "guards": "where guards stand",
    "prompt": "the parts of the prompt in their order",
    "loops": "what repeats, and the caps of each",
    "sessions": "which session reads, writes and judges what",
    "actions": "what is done to the world, and behind which gate",
    "stores": "what is kept, and who writes and erases it",
    "pipeline": "what comes after what",
    "policy": "the policy of each role",
    "owner": "who answers for each agent",
}
"""What a stack can describe beside facts, and what each section says."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something that is wrong or not decided: what, where, and what would help."""

    key: Key
    message: str
    path: Keys
    severity: Severity | None = None
    """None: as severe as the rule."""
    wants: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    needed_by: tuple[str, ...] = ()

    @property
    def undecided(self) -> bool:
        return self.key[0] == "undeclared"


def missing(alternatives: Iterable[str], path: Keys, needed_by: Iterable[str] = (), says: str = "") -> Trouble:
    """That a pattern is not there, or none of several of which one would do."""
    wanted = "|".join(alternatives)
    return Trouble(
        ("missing", wanted),
        says,
        path,
        wants=(wanted,),
        patterns=tuple(wanted.split("|")),
        needed_by=tuple(needed_by),
    )


def undeclared(name: str, path: Keys) -> Trouble:
    """That a rule cannot be decided, because nobody said this."""
    key, message, wants = _unsaid(name)
    return Trouble(key, message, path, "note", wants)


@cache
def _unsaid(name: str) -> tuple[Key, str, tuple[str, ...]]:
    name = SAID_BY.get(name, name)
    if name in FACTS:
        wanted = f"facts.{name}"
        what = f"{FACTS[name].what} ({FACTS[name].expected})"
    elif name in SECTIONS:
        wanted, what = name, SECTIONS[name]
    else:
        wanted, what = name, "nobody says how it is set"
    return ("undeclared", name), f"not decidable: declare `{wanted}`: {what}", (wanted,)
