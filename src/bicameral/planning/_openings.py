"""Polite openings of orders: `Could you …`, `Would you mind …`, `Kannst du …`, `Ça te dérangerait de …`, `¿Podemos …?`.

An order may be put as a question to the program. Which questions are orders shows in how they begin: with the program
as the subject (`can you`), with both (`can we`), or with something that only the program can give (`could I get a
reminder`). A question about anybody else (`Can Kim …?`) orders nothing.
"""

from __future__ import annotations

import re

from bicameral.planning._language import Language
from bicameral.text import lazy_pattern

_REMINDER_EN = r"(?:please\s+)?(?:get|have)\s+(?:an?|another)\s+(?:\w+\s+)?reminder\b(?!\s+(?:of|about)\b)"
# A sentence that ends with a question mark is an order all the same if it begins so.
REQUESTS: dict[Language, str] = {
    "en": r"(?:can|could|would|will)\s+(?:you|u)\b|(?:would|do)\s+you\s+mind\b|(?:can|could)\s+we\b|"
    r"do\s+you\s+think\s+(?:you|we)\s+(?:can|could)\b|(?:would|is)\s+it\s+(?:be\s+)?possible\s+(?:for\s+you\s+)?to\b|"
    rf"(?:can|could|may|might)\s+i\s+(?={_REMINDER_EN})",
    "de": r"(?:kannst|konntest|wurdest|magst)\b(?:\s+du\b)?|(?:konnen|konnten|wurden)\s+sie\b|"
    r"(?:konnen|konnten)\s+wir\b|"
    r"(?:kann|konnte|durfte)\s+(?:ich|wir)\b(?=[^?]*\beine\s+erinnerung\b)",
    "fr": r"(?:est-ce\s+que\s+)?(?:(?:peux|pourrais|veux)[-\s]tu\b|tu\s+(?:peux|pourrais|veux\s+bien)\b|"
    r"(?:pouvez|pourriez)[-\s]vous\b|vous\s+(?:pouvez|pourriez)\b|on\s+(?:peut|pourrait)\b|(?:peut|pourrait)-on\b)|"
    r"(?:est-ce\s+que\s+)?(?:ca|cela)\s+(?:te|vous)\s+(?:derange(?:rait)?|ennuie(?:rait)?)\b|"
    r"(?:est-ce\s+qu'il\s+|il\s+)?(?:serait|est)(?:-il)?\s+possible\s+d(?:e\s|')|"
    r"(?:est-ce\s+que\s+)?(?:je\s+(?:peux|pourrais)|(?:puis|pourrais)-je)\s+(?=avoir\s+un\s+(?:\w+\s+)?rappel\b)",
    "es": r"(?:me\s+|nos\s+|le\s+|les\s+)?(?:puedes|podrias|podes|puede(?!\s+ser\b)|podria(?!\s+ser\b)|podemos|"
    r"podriamos)\b|"
    r"te\s+(?:importa|importaria|molesta|molestaria)\b|(?:seria|es)\s+posible\s+(?!que\b)|"
    r"(?:puedo|podria)\s+(?=tener\s+un\s+(?:\w+\s+)?recordatorio\b)",
}
# An order in the form of a question about it: `Sagst du Kim Bescheid?`, `¿Me apuntas la leche?`
ASKED_ORDERS: dict[Language, str] = {
    "en": r"(?!)",
    "de": r"(?:sagst|gibst|schreibst|notierst|tragst|schickst|merkst|machst|packst|richtest|meldest|fragst|dankst|"
    r"gratulierst|erinnerst|verschiebst|antwortest)\s+du\b",
    "fr": r"tu\s+(?:(?:me|m'|lui|leur|le|la|les)\s*)?(?:notes|previens|mets|ajoutes|marques|dis|envoies|passes|laisses|"
    r"inscris|bloques|demandes|remercies|reponds|ecris|decales)\b",
    "es": r"(?:me|le|les|nos)\s+(?:apuntas|anotas|guardas|agendas|dices|avisas|escribes|comunicas|pones|pasas|"
    r"preguntas|contestas|respondes)\b",
}
_OPENINGS: dict[Language, re.Pattern[str]] = {
    "en": lazy_pattern(
        r"(?:(?:can|could|would|will)\s+(?:you|u)\s+|(?:can|could)\s+we\s+|i(?:'d|\s+would)\s+like\s+you\s+to\s+|"
        r"i\s+(?:want|need)\s+you\s+to\s+|do\s+you\s+think\s+(?:you|we)\s+(?:can|could)\s+|"
        r"(?:would|is)\s+it\s+(?:be\s+)?possible\s+(?:for\s+you\s+)?to\s+|"
        r"(?:i(?:'d|\s+would)\s+be|it(?:'d|\s+would)\s+be)\s+(?:so\s+|very\s+)?(?:grateful|glad|happy|great|nice|good|lovely|kind)\s+"
        r"if\s+(?:you|u)\s+(?:can|could|would)\s+|don'?t\s+forget\s+to\s+|"
        r"(?:make|be)\s+sure\s+(?:to|you|that\s+you)\s+|go\s+ahead\s+and\s+|"
        r"(?:please|kindly|just|quickly|also|maybe|perhaps|possibly)\s+)+"
    ),
    "de": lazy_pattern(
        r"(?:(?:kannst|konntest|wurdest|magst)\s+du\s+|(?:konnen|konnten|wurden)\s+sie\s+|(?:konnen|konnten)\s+wir\s+|"
        r"(?:bitte|mal|kurz|eben|noch|schnell|doch|auch|vielleicht)\s+)+"
    ),
    "fr": lazy_pattern(
        r"(?:(?:est-ce\s+que\s+)?(?:(?:peux|pourrais)[-\s]tu\s+|tu\s+(?:peux|pourrais|veux\s+bien)\s+|"
        r"(?:pouvez|pourriez)[-\s]vous\s+|vous\s+(?:pouvez|pourriez)\s+|on\s+(?:peut|pourrait)\s+|(?:peut|pourrait)-on\s+)|"
        r"(?:est-ce\s+que\s+)?(?:ca|cela)\s+(?:te|vous)\s+(?:derange(?:rait)?|ennuie(?:rait)?)\s+(?:de\s+|d')|"
        r"(?:est-ce\s+qu'il\s+|il\s+)?(?:serait|est)(?:-il)?\s+possible\s+(?:de\s+|d')|n'oublie(?:z)?\s+pas\s+(?:de\s+|d')|"
        r"je\s+(?:veux|voudrais|aimerais)\s+que\s+tu\s+|il\s+(?:faut|faudrait)\s+(?:que\s+tu\s+)?|merci\s+(?:de\s+|d')|"
        r"veuillez\s+|pense\s+a\s+|(?:bien|me|stp|svp|aussi|tu)\s+)+"
    ),
    "es": lazy_pattern(
        r"(?:(?:me\s+|nos\s+)?(?:puedes|podrias|podes|puede|podria|podemos|podriamos)\s+(?:usted\s+)?|"
        r"(?:quiero|necesito)\s+que\s+|te\s+(?:importa|importaria|molesta|molestaria)\s+|(?:seria|es)\s+posible\s+|"
        r"no\s+(?:te\s+)?olvides\s+(?:de\s+)?|"
        r"haz\s+el\s+favor\s+de\s+|(?:hay|habria)\s+que\s+|(?:por\s+favor|tambien|me)\s+)+"
    ),
}
_GERUND = lazy_pattern(r"(?:would|do)\s+you\s+mind\s+(?:please\s+|maybe\s+)?(\w{2,20})ing\b")


def imperatives(text: str, language: Language) -> tuple[str, ...]:
    """A folded clause as it is, and as the order that follows its polite opening.

    An English gerund after `would you mind` is tried with each spelling that its verb may have.

    Example:
        >>> imperatives("could you please ask kim", "en")
        ('could you please ask kim', 'ask kim')
        >>> "let kim know" in imperatives("would you mind letting kim know", "en")
        True
    """
    if language == "en" and (gerund := _GERUND.match(text)):
        stem, rest = gerund[1], text[gerund.end() :]
        return (text, *(f"{verb}{rest}" for verb in (stem, f"{stem}e", stem[:-1])))
    opening = _OPENINGS[language].match(text)
    return (text, text[opening.end() :]) if opening else (text,)
