"""How sure a model was of what it wrote, from the log-probabilities that llama.cpp reports."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

from bicameral.models._protocol import ModelRequest, Token

ALTERNATIVES = 10
"""How many of the likeliest tokens are reported at each place."""


def tokens_of(entries: Iterable[dict[str, Any]], request: ModelRequest) -> Iterator[Token]:
    """The tokens of one streamed piece; the end of the text is none.

    llama.cpp reports what the model held likely before the constraint was applied. At temperature 0 the likeliest
    token that is allowed is written, so everything that was likelier was forbidden, and the rest is what there was to
    choose from: a probability among that is never too high.
    """
    greedy = request.temperature == 0
    for entry in entries:
        if not entry["bytes"]:
            continue
        own: float = entry["logprob"]
        above = [other["logprob"] for other in entry["top_logprobs"] if other["logprob"] > own] if greedy else []
        overruled = min(1.0, sum(map(math.exp, above), 0.0))
        yield Token(entry["token"], _among(math.exp(own), 1.0 - overruled), overruled)


def _among(probability: float, rest: float) -> float:
    return min(1.0, probability / rest) if rest > 0 else 1.0 if probability > 0 else 0.0
