"""What can go wrong with an answer, and how it is chosen beforehand which of the answers it goes wrong with."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

Kind = Literal[
    "rate-limited",  # 429 with Retry-After
    "error",  # 500
    "unavailable",  # 503
    "unauthorized",  # 401
    "policy",  # 400, the content policy forbids the prompt
    "filtered",  # 200, the content filter ended the reply
    "silent",  # the connection stays open and nothing is said
    "slow",  # `seconds` before the answer, or before each piece of a stream
    "truncated",  # the connection ends within the answer
    "unfinished",  # a stream that ends in good order before the reply has
    "malformed",  # 200 and broken JSON
    "wrong-shape",  # 200 and JSON that is no completion
    "wrong-schema",  # a completion whose content breaks the schema that was asked for, if one was
    "reset",  # TCP reset instead of an answer, or within a stream
]
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that goes wrong.

    `seconds` is what Retry-After says, or how long a slow answer takes; `after` is how many pieces of a stream still
    arrive before it goes wrong.
    """

    kind: Kind
    seconds: float = 0.0
    after: int = 1


@dataclass(frozen=True, slots=True)
class Asked:
    """What a fault is chosen by: the call's key, how often that call came before, and its number among all."""

    key: str
    attempt: int
    number: int
    model: str


Faults: TypeAlias = Callable[[Asked], Fault | None]


def no_faults(asked: Asked) -> Fault | None:
    """Everything is answered."""
    del asked
    return None


def in_order(*faults: Fault | None) -> Faults:
    """The first request gets the first fault, and so on; those after the last are answered."""
    return lambda asked: faults[asked.number] if asked.number < len(faults) else None


def by_model(faults: Mapping[str, Fault]) -> Faults:
    """Every request for one of these models goes wrong in the same way; the other models answer."""
    return lambda asked: faults.get(asked.model)


def seeded(seed: int, rate: float, faults: Sequence[Fault], *, most: int = 2) -> Faults:
    """A share of `rate` of the attempts goes wrong, at most the first `most` of each call.

    The choice depends on the seed, the call and the attempt alone, so it is the same however calls are interleaved.
    """

    def choose(asked: Asked) -> Fault | None:
        dice = random.Random(f"{seed}:{asked.key}:{asked.attempt}")
        return dice.choice(faults) if asked.attempt < most and dice.random() < rate else None

    return choose
