"""Text: words, ranking and names of dates, for every room that reads requests, documents or replies.

A text comes in; out come its words and stems, whether it contains a phrase or a whole value, and how well texts fit a
query. Nothing here depends on plans, tools or models.
"""

from bicameral.text._dates import (
    ENGLISH_MONTH_NUMBERS as ENGLISH_MONTH_NUMBERS,
    ENGLISH_MONTHS as ENGLISH_MONTHS,
    ENGLISH_WEEKDAYS as ENGLISH_WEEKDAYS,
    MONTH_NUMBERS as MONTH_NUMBERS,
    WEEKDAY_NUMBERS as WEEKDAY_NUMBERS,
)
from bicameral.text._ranking import K1 as K1, B as B, Ranking as Ranking, rarity as rarity
from bicameral.text._words import (
    SHORTEST_ROOT as SHORTEST_ROOT,
    STOP_WORDS as STOP_WORDS,
    has_any_phrase as has_any_phrase,
    index_words as index_words,
    mentions as mentions,
    mentions_path as mentions_path,
    root as root,
    split_words as split_words,
    stem as stem,
    text_stems as text_stems,
)
