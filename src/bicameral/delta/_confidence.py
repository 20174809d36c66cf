"""How sure a model was of a plan: its weakest choice, among the choices that matter.

What a variable is called and how a sentence is put are choices too, and a model that has two good ways to say something
is unsure of neither. They are left out; what is left decides what the plan does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate

from bicameral.models import Token

_NAME = re.compile(r"^ *(?:for )?(\w+)(?= \+?= | in )", re.MULTILINE)
_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"|' r"'(?:[^'\\\n]|\\.)*'")


def weakest(tokens: Sequence[Token]) -> Token | None:
    """The choice that the model was least sure of; None if it cannot say, or if there was nothing to choose."""
    return min(choices(tokens), key=lambda token: token.probability, default=None)


def choices(tokens: Sequence[Token]) -> Iterator[Token]:
    """The tokens that decide what a plan does: all but the names it gives and the sentences it says."""
    text = "".join(token.text for token in tokens)
    free = [match.span(1) for match in _NAME.finditer(text)]
    free += [match.span() for match in _STRING.finditer(text) if " " in match[0]]
    ends = accumulate(len(token.text) for token in tokens)
    for token, end in zip(tokens, ends, strict=True):
        start = end - len(token.text)
        if not any(first <= start and end <= last for first, last in free):
            yield token
