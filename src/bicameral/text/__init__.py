"""Text: words, ranking and names of dates, for every room that reads requests, documents or replies.

A text comes in; out come its words and stems, whether it contains a phrase or a whole value, and how well texts fit a
query. Nothing here depends on plans, tools or models.
"""

from bicameral.text._dates import (
    ENGLISH_MONTH_NUMBERS,
    ENGLISH_MONTHS,
    ENGLISH_WEEKDAYS,
    MONTH_NUMBERS,
    WEEKDAY_NUMBERS,
)
from bicameral.text._ranking import K1, B, Ranking, rarity
from bicameral.text._words import (
    SHORTEST_ROOT,
    STOP_WORDS,
    has_any_phrase,
    index_words,
    mentions,
    mentions_path,
    root,
    split_words,
    stem,
    text_stems,
)

__all__ = [
    "ENGLISH_MONTHS",
    "ENGLISH_MONTH_NUMBERS",
    "ENGLISH_WEEKDAYS",
    "K1",
    "MONTH_NUMBERS",
    "SHORTEST_ROOT",
    "STOP_WORDS",
    "WEEKDAY_NUMBERS",
    "B",
    "Ranking",
    "has_any_phrase",
    "index_words",
    "mentions",
    "mentions_path",
    "rarity",
    "root",
    "split_words",
    "stem",
    "text_stems",
]
