"""The shield: deterministic screens over untrusted text. It marks and alerts; it is never the only gate.

A text comes in; out come marks with positions (invisible and confusable characters, encoded text, hidden HTML, phrases
that address a model) and a score. Nothing is refused or changed because of a mark: the effects of an injected text are
bounded by types, labels and policy, whether it was noticed or not. Every screen takes time linear in the text.
`actionable_parts` finds what a reader could act on, such as links and accounts, by an allow-list (`is_plain_text`);
policy asks a person before untrusted text with such parts is sent.
"""

from bicameral.boundary.shield._screening import (
    ALERT_SCORE as ALERT_SCORE,
    SHIELD_MARK as SHIELD_MARK,
    Mark as Mark,
    MarkKind as MarkKind,
    Screening as Screening,
    actionable_parts as actionable_parts,
    is_plain_text as is_plain_text,
    plain_look as plain_look,
    screen as screen,
)
