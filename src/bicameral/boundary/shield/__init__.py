"""The shield: deterministic screens over untrusted text. It marks and alerts; it is never the only gate.

A text comes in; out come marks with their places (invisible and confusable characters, encoded text, hidden HTML,
phrases that speak to a model) and a score. Nothing is refused or changed because of it: what an injected text can do is
bounded by types, labels and policy, whether it was noticed or not. Every screen takes time linear in the text.
`lures_in` finds what a reader could follow, which is whatever is not `plain_words`: policy asks about untrusted text
that goes out with such.
"""

from ._lures import lures_in, plain_words
from ._marks import ALERT, MARKED, Mark, MarkKind, Screening
from ._screen import screen

__all__ = ["ALERT", "MARKED", "Mark", "MarkKind", "Screening", "lures_in", "plain_words", "screen"]
