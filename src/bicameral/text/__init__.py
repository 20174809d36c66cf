"""Text: words and dates as people write them, for every room that reads requests, documents or replies.

A text comes in; out come its words and stems, whether it says something as a whole, and the dates that it names.
Nothing here knows of plans, tools or models.
"""

from bicameral.text._words import (
    STOP_WORDS,
    has_any_phrase,
    is_stop_word,
    mentions,
    mentions_path,
    split_words,
    stem,
    text_stems,
)

__all__ = [
    "STOP_WORDS",
    "has_any_phrase",
    "is_stop_word",
    "mentions",
    "mentions_path",
    "split_words",
    "stem",
    "text_stems",
]
