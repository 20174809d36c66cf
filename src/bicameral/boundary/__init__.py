"""The boundary: what the quarantined model may read and what may come back.

A text from the world, one instruction and one type come in; out comes a value of that type (`Filled`) or a typed
refusal (`Rejected`). The model never sees the goal, the tools or anything else, and nothing it writes is coerced.
"""

from ._extract import Extractor, Filled, Outcome, Rejected
from ._reply import typed

__all__ = ["Extractor", "Filled", "Outcome", "Rejected", "typed"]
