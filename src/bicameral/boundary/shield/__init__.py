"""The shield: deterministic screens over untrusted text. It marks and alerts; it is never the only gate.

A text comes in; out come marks with their places (invisible and confusable characters, encoded text, hidden HTML,
phrases that speak to a model) and a score. Nothing is refused or changed because of it: what an injected text can do is
bounded by types, labels and policy, whether it was noticed or not. Every screen takes time linear in the text.
`actionable_parts` finds what a reader could follow, which is whatever is not `is_plain_text`: policy asks about untrusted text
that goes out with such.
"""

from bicameral.boundary.shield._screening import (
    ALERT_SCORE,
    SHIELD_MARK,
    Mark,
    MarkKind,
    Screening,
    actionable_parts,
    is_plain_text,
    screen,
)

__all__ = ["ALERT_SCORE", "SHIELD_MARK", "Mark", "MarkKind", "Screening", "actionable_parts", "is_plain_text", "screen"]
