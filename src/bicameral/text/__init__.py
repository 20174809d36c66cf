"""Text: words and names of dates, for every room that reads requests, documents or replies.

A text comes in; out come its words and stems, and whether it contains a phrase or a whole value. Nothing here depends
on plans, tools or models.
"""

from bicameral.text._dates import (
    ENGLISH_MONTH_NUMBERS,
    ENGLISH_MONTHS,
    ENGLISH_WEEKDAYS,
    MONTH_NUMBERS,
    WEEKDAY_NUMBERS,
)
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
    "ENGLISH_MONTHS",
    "ENGLISH_MONTH_NUMBERS",
    "ENGLISH_WEEKDAYS",
    "MONTH_NUMBERS",
    "STOP_WORDS",
    "WEEKDAY_NUMBERS",
    "has_any_phrase",
    "is_stop_word",
    "mentions",
    "mentions_path",
    "split_words",
    "stem",
    "text_stems",
]
