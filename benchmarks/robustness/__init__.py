"""The same request in other words: do the plans still have the same effects?

`CASES` are requests of our own over a small world (`DATA`): each with paraphrases by hand, and `wordings_of` adds
wordings by rule, the same for the same seed. `run_wording` plans and runs one wording in a fresh world and says what
was done there; `summarise` holds the wordings of a request against the base wording.
"""

from .cases import CASES, Case
from .data import DATA
from .effects import effects_of
from .figures import summarise
from .runner import Result, run_wording
from .variants import SEED, Wording, wordings_of

__all__ = [
    "CASES",
    "DATA",
    "SEED",
    "Case",
    "Result",
    "Wording",
    "effects_of",
    "run_wording",
    "summarise",
    "wordings_of",
]
