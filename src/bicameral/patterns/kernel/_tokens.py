"""About how many tokens a text is, for whoever keeps something short. Nobody's tokenizer is asked."""

from __future__ import annotations

import re

_PIECE = re.compile(r"[A-Za-z]+|[^\s]")
_LETTERS_A_TOKEN = 5
_CHARACTERS_A_TOKEN = 16


def about_tokens(text: str) -> int:
    """A guess that is rather too high: words by their length, each digit, mark and letter of other scripts as one.

    Example:
        >>> about_tokens("The fee is 40 euros.")
        7
    """
    return sum(-(-len(piece) // _LETTERS_A_TOKEN) for piece in _PIECE.findall(text))


def cut_to_tokens(text: str, most: int) -> str:
    """The beginning of a text that is no longer than so many tokens, by the same guess.

    Space counts as nothing, so that there is an end to the characters as well.
    """
    left = most
    for found in _PIECE.finditer(text):
        tokens = -(-len(found[0]) // _LETTERS_A_TOKEN)
        if tokens > left:
            return text[: min(found.start() + left * _LETTERS_A_TOKEN, most * _CHARACTERS_A_TOKEN)]
        left -= tokens
    return text[: most * _CHARACTERS_A_TOKEN]
