"""Everyday orders for notes, messages, lists and calendars: `jot down …`, `let Kim know`, `halt fest, dass …`.

They are phrases and not single verbs: most of their words are common in questions and reports as well. So only clauses
that may give an order are looked at (`_clauses`), and a clause must begin with the phrase, after a polite opening
(`Could you …`, `Kannst du …`, `Tu peux …`, `¿Puedes …?`). A German infinitive orders at the end of a clause. What is
found here allows an effect and never requires one.
"""

from __future__ import annotations

import re

from bicameral.planning._clauses import Clause, ordering_clauses
from bicameral.planning._language import Language, guess_language
from bicameral.tools import Effect

_FILE = r"q{3,}"
_NOT_ME = r"(?!me\b|us\b|myself\b|ourselves\b)"
_LIST_EN = r"(?:(?:the|my|our)\s+)?(?:\w+\s+){0,2}?(?:calendar|diary|agenda|schedule|\w*list|notes|notebook|journal)\b"
_MESSAGE_EN = r"(?:lines?|notes?|messages?|(?:e-?)?mails?|texts?|sms|word|reply)\b"
# `Message Kim sent yesterday` is a message, and `Message Kim` an order.
_NO_REPORT_EN = r"(?!.*\b(?:sent|wrote|got|received|left|forwarded|is|was|are|were|has|had)\b)"

_OPENINGS: dict[Language, str] = {
    "en": r"(?:(?:can|could|would|will)\s+(?:you|u)\s+|i(?:'d|\s+would)\s+like\s+you\s+to\s+|"
    r"i\s+(?:want|need)\s+you\s+to\s+|"
    r"(?:make|be)\s+sure\s+(?:to|you|that\s+you)\s+|go\s+ahead\s+and\s+|(?:please|kindly|just|quickly|also)\s+)*",
    "de": r"(?:(?:kannst|konntest|wurdest|magst)\s+du\s+|(?:konnen|konnten|wurden)\s+sie\s+|"
    r"(?:bitte|mal|kurz|eben|noch|schnell|doch|auch)\s+)*",
    "fr": r"(?:(?:peux|pourrais)[-\s]tu\s+|tu\s+(?:peux|pourrais|veux\s+bien)\s+|(?:pouvez|pourriez)[-\s]vous\s+|"
    r"vous\s+(?:pouvez|pourriez)\s+|je\s+(?:veux|voudrais|aimerais)\s+que\s+tu\s+|il\s+faut\s+(?:que\s+tu\s+)?|merci\s+de\s+|"
    r"veuillez\s+|pense\s+a\s+|(?:bien|me|stp|svp|aussi|tu)\s+)*",
    "es": r"(?:(?:me\s+)?(?:puedes|podrias|podes|puede|podria)\s+(?:usted\s+)?|(?:quiero|necesito)\s+que\s+|"
    r"haz\s+el\s+favor\s+de\s+|hay\s+que\s+|(?:por\s+favor|tambien|me)\s+)*",
}


def _german(*stems: str) -> str:
    """Imperatives of du and Sie, and `notierst du`."""
    return rf"(?:{'|'.join(stems)})(?:e|en\s+sie|st\s+du)?\b(?!\s+ich\b)"


def _french(*stems: str) -> str:
    return rf"(?:{'|'.join(stems)})(?:e|es|ez|er)(?:-(?:moi|lui|leur|le|la|les|ca))*\b"


def _spanish(*stems: str) -> str:
    return rf"(?:{'|'.join(stems)})(?:a|e|ar|es|as)(?:me|le|les|lo|la)?\b"


_BEGINS: dict[Language, dict[Effect, tuple[str, ...]]] = {
    "en": {
        "write": (
            r"(?:write|jot|note|scribble)\s+(?:\w+\s+){0,8}?down\b",
            r"take\s+(?:(?:this|the|that|his|her|my|their|a)\s+)?(?:\w+\s+)?(?:numbers?|names?|address|codes?|reading|following)\s+"
            r"down\b|take\s+down\s+(?:this|the|that|his|her|my|their|a)\s+(?:\w+\s+)?(?:numbers?|names?|address|codes?|reading|"
            r"following|note|message)\b",
            r"(?:make|take)\s+(?:(?:me|yourself)\s+)?(?:a|another)\s+(?:\w+\s+)?note\b",
            r"note\s+(?:that|this|the|down|my|it|these|those)\b|note\s+to\s+self\b",
            r"record\s+(?:that|the|this|my|an?|\d+)\b",
            r"file\s+(?:\w+\s+){1,6}?(?:away|under|in\s+(?:the|my)\s+(?:\w+\s+)?folder|in\s+the\s+folder)\b",
            r"pencil\s+(?:\w+\s+){0,8}?in\b",
            rf"(?:pop|stick|throw|slot|squeeze|bung|chuck|stuff)\s+.*\b(?:in|into|on|onto)\s+{_LIST_EN}",
            rf"mark\s+.*\b(?:in|on|into)\s+{_LIST_EN}",
            r"block\s+(?:off|out)\s",
            r"(?:fix|agree|make)\s+(?:up\s+)?an?\s+(?:\w+\s+)?(?:meeting|appointment|date|call|lunch|dinner)\s+(?:with|for|on|at)\b",
            r"remember\s+(?:that|this|the\s+following)\b(?!.*\bwhen\s+you\b)",
            rf"keep\s+{_NOT_ME}.*\bin\s+(?:{_FILE}|(?:the|my|our)\s+notes\b)",
            r"keep\s+a\s+(?:record|note)\s+of\b",
        ),
        "send": (
            rf"let\s+(?!me\b|us\b|'s\b).*\bknow\b|tell\s+{_NOT_ME}(?!apart\b|the\s+difference\b|which\b|what\b)\w",
            rf"drop\s+(?:{_NOT_ME}(?:\w+\s+){{1,3}})?an?\s+(?:\w+\s+)?{_MESSAGE_EN}",
            r"(?:text|ping|dm|message)\s+(?!me\b|us\b|of\b|from\b|in\b|on\b|by\b|with\b|about\b|for\b|and\b|or\b|files?\b|to\b)"
            rf"(?![qz]{{3}}){_NO_REPORT_EN}[a-z]",
            rf"give\s+{_NOT_ME}(?:\w+\s+){{1,3}}?(?:(?:a|some|the|due)\s+)?(?:\w+\s+)?(?:notice|heads-?up|word|warning)\b",
            rf"pass\s+(?:\w+\s+){{0,8}}?on\s+to\s+{_NOT_ME}\w|(?:relay|convey)\b.*\bto\s+{_NOT_ME}\w",
            rf"(?:shoot|fire\s+off|dash\s+off)\s+.*\b{_MESSAGE_EN}",
            rf"get\s+(?:word|a\s+message|back)\s+to\s+{_NOT_ME}\w|(?:get\s+in\s+touch|touch\s+base)\s+with\s+{_NOT_ME}\w",
            rf"reach\s+out\s+to\s+{_NOT_ME}\w|(?:have|get)\s+an?\s+(?:\w+\s+)?{_MESSAGE_EN}\s+sent\s+to\s+{_NOT_ME}\w",
            rf"keep\s+{_NOT_ME}.*\b(?:posted|informed|in\s+the\s+loop|up\s+to\s+date|updated)\b",
            rf"leave\s+{_NOT_ME}.*\b(?:message|word)\b",
            rf"(?:warn|alert)\s+{_NOT_ME}\w",
            r"say\s+(?:hi|hello|thanks|thank\s+you|sorry|yes|no)\s+to\s+\w",
        ),
    },
    "de": {
        "write": (
            _german("notier", "vermerk", "hinterleg", "erfass", "protokollier", "vereinbar", "blockier"),
            rf"{_german('schreib')}.*\bauf\b(?!\s+(?:deutsch|englisch|franzosisch|spanisch))",
            rf"{_german('halt')}.*\bfest\b|{_german('merk')}.*\b(?:vor|dir|euch)\b|{_german('merk')}\s+(?:dir|euch)\b",
            rf"{_german('mach')}.*\b(?:notiz|vermerk|eintrag)\b",
            rf"{_german('pack', 'stell', 'leg', 'setz', 'schreib')}.*\b(?:auf|in)\s+"
            r"(?:die|meine|unsere|den|meinen|unseren)\s+"
            r"\w*(?:liste|kalender|ordner|notizen)\b",
            r"(?:nimm|nehmen\s+sie|nimmst\s+du|tu|tue)\b.*\b(?:auf|in)\s+(?:die|meine|unsere|den|meinen)\s+"
            r"\w*(?:liste|kalender|notizen)\b",
            r"blocke?\s+(?:mir|uns|am|den|die|das|fur|morgen|heute|\w+tag\w*)\b",
            rf"{_german('fuhr')}.*\bauf\b|{_german('trag')}.*\b(?:ein|nach)\b|(?:tragst\s+du)\b.*\bein\b",
            rf"{_german('plan')}.*\bein\b|{_german('leg')}.*\bab\b",
        ),
        "send": (
            rf"{_german('sag')}(?!\s+(?:mir|uns)\b).*\bbescheid\b|(?:gib|gebe|geben\s+sie|gibst\s+du)\b(?!\s+(?:mir|uns)\b).*\b"
            r"(?:bescheid\b|weiter\b)",
            r"(?:lass|lasse|lassen\s+sie)\s+(?!mich\b|uns\b|mir\b).*\b(?:wissen|zukommen|ausrichten)\b",
            rf"{_german('richt')}(?!\s+(?:mir|uns)\b).*\baus\b|{_german('teil')}(?!\s+(?:mir|uns)\b).*\bmit\s*$",
            rf"{_german('setz')}(?!\s+(?:mich|uns)\b).*\bin\s+kenntnis\b",
            rf"{_german('verstandig', 'kontaktier', 'sims')}\s+"
            r"(?!mich\b|uns\b|mir\b)\w",
            rf"{_german('meld')}\s+(?:dich\s+bei\s+\w|(?!mir\b|uns\b|dich\b|mich\b)\w)",
            rf"{_german('halt')}\s+(?!mich\b|uns\b).*\bauf\s+dem\s+laufenden\b|{_german('bedank')}\s+(?:dich|sie\s+sich)\s+bei\b",
            rf"{_german('ping')}\s+(?!mich\b|uns\b).*\ban\b|{_german('warn')}\s+(?!mich\b|uns\b)\w",
        ),
    },
    "fr": {
        "write": (
            rf"{_french('not')}(?!\s+(?:de|du|des|d')\b)(?=\s+\w)",
            rf"{_french('marqu')}\s+(?:sur|dans|que|qu'|le|la|les|l'|ca|du|des)(?!\w)",
            r"(?:prends|prenez|prendre|prennes)\s+(?:bonne\s+)?note\b",
            r"(?:retiens|retenez|retenir|retiennes)\s+(?:bien\s+)?(?:que|qu'|le|la|les|l'|ca|ceci)(?!\w)",
            rf"{_french('gard', 'conserv', 'memoris', 'class')}\b.*\bdans\s+(?:{_FILE}|"
            r"(?:le|mon|la|ma|mes|les)\s+(?:\w+\s+)?"
            r"(?:dossier|liste|notes|agenda))",
            rf"{_french('fix', 'pos')}\s+une?\s+(?:\w+\s+)?(?:rendez-vous|rdv|reunion|appel|date|dejeuner|diner)\b",
            r"(?:prevois|prevoyez|prevoir)\s+(?:un|une|deux|trois|quatre|\d+|du|le|la|les)\b",
            rf"{_french('bloqu', 'cal')}\s+(?:un|une|le|la|mon|ma|deux|trois|\d+|lundi|mardi|mercredi|"
            r"jeudi|vendredi|samedi|dimanche|"
            r"demain)\b",
        ),
        "send": (
            r"(?:tiens|tenez|tenir|mets|mettez|mettre)(?!-(?:moi|nous))\s+(?!moi\b|nous\b).*\bau\s+courant\b",
            r"(?:(?:fais|faites|faire)\s+)?(?:passe|passez|passer)\s+(?:le|un|ce|l')\s*(?:petit\s+)?(?:mot|message|info)\s+"
            r"(?:a|au|aux)\b(?!\s+moi\b)",
            rf"{_french('laiss')}\s+(?:un|ce|le)\s+(?:petit\s+)?(?:mot|message)\s+(?:a|au|aux)\b(?!\s+moi\b)",
            r"texte(?:r|z)?\s+(?!de\b|du\b|des\b|d'|en\b|a\b|qui\b|que\b|le\b|la\b|sur\b)\w+\s+(?:que|qu'|pour)(?!\w)",
            rf"{_french('signal', 'annonc', 'confirm', 'communiqu')}\s+(?:a|au|aux)\b(?!\s+(?:moi|nous)\b)",
            rf"{_french('avis', 'alert', 'contact')}\s+(?:(?:les|le|la|mon|ma|mes|nos|notre)\s+\w|l'\w|"
            r"(?!de\b|du\b|des\b|sur\b)\w+\s+"
            r"(?:que|qu'|de|des|du|pour|par)(?!\w))",
            r"(?:fais|faites|faire)\s+(?:savoir|part)\b(?!-)|(?:touche|touchez|toucher)\s+un\s+mot\s+a\b",
            r"(?:dis|dites|dire|ecris|ecrivez|ecrire)\s+(?:a|au|aux)\b(?!\s+(?:moi|nous)\b)",
            r"(?:previens|prevenez|prevenir|previennes)\s+(?!moi\b|nous\b)\w",
        ),
    },
    "es": {
        "write": (
            rf"{_spanish('apunt', 'anot', 'registr')}(?!\s+(?:de|del)\b)(?=\s+\w)",
            r"(?:toma|tome|tomar|tomes)\s+(?:buena\s+)?nota\b",
            r"(?:deja|deje|dejar|dejes)\s+(?:(?:apuntad|anotad|escrit|registrad)[oa]s?|constancia)\b",
            r"(?:haz|haga|hacer|hagas)(?:me|te)?\s+una\s+(?:nota|anotacion)\b",
            rf"{_spanish('bloque')}\s+(?:el|la|los|las|un|una|dos|mi|\d+)\b",
            rf"{_spanish('fij')}\s+(?:una?|la|el)\s+(?:\w+\s+)?(?:cita|reunion|llamada|fecha|comida|cena)\b",
            r"(?:marca|marque|marcar|marques)\b.*\b(?:calendario|agenda|lista)\b",
            r"(?:inscribe|inscriba|inscribir|inscribas)\s+(?:a|al|el|la|los|las|un|una)\b",
            r"(?:recuerda|recuerde)\s+que\b",
        ),
        "send": (
            r"(?:haz|haga|hacer|hagas)(?:le|les)\s+(?:saber|llegar)\b|(?:haz|haga|hacer)\s+saber\s+(?:a|al)\b",
            r"(?:pon|ponga|poner|echa|eche|echar|manda|mande|mandar)(?:le|les)?\s+(?:un\s+(?:mensaje|correo|recado|wasap|whatsapp)|unas?\s+lineas)"
            r"\s+(?:a|al)\b",
            r"(?:deja|deje|dejar)(?:le|les)?\s+(?:un|el|este)\s+(?:recado|mensaje|aviso)\s+(?:a|al)\b",
            r"(?:pasa|pase|pasar)(?:le|les)?\s+(?:el|un|este)\s+(?:recado|mensaje|aviso)\s+(?:a|al)\b",
            r"(?:ponte|pongase|ponerte|ponerse)\s+en\s+contacto\s+con\b|contact(?:a|e|ar)\s+(?:con|a|al)\b",
            r"(?:manten|mantenga|mantener)\s+(?:a|al)\b.*\b(?:al\s+tanto|al\s+corriente|informad[oa]s?)\b",
            r"(?:pon|ponga|poner)\s+(?:al\s+(?:corriente|tanto)\s+(?:a|al)\b|(?:a|al)\b.*\bal\s+(?:corriente|tanto)\b)",
            r"(?:le|les)\s+(?:dices|avisas|escribes|comunicas)\b|(?:avisas|avises)\s+(?:a|al)\b|digas\s+(?:a|al)\b",
            r"(?:transmite|transmita|transmitir)(?:le|les)?\b.*\b(?:a|al)\b",
        ),
    },
}

_WRITE_INFINITIVES = (
    r"(?:notieren|aufschreiben|festhalten|vermerken|eintragen|vormerken|merken|blocken|blockieren|einplanen|hinterlegen|"
    r"erfassen|protokollieren|aufnehmen|mitnotieren)"
)
_SEND_INFINITIVES = (
    r"(?:bescheid\s+(?:geben|sagen)|ausrichten|mitteilen|weitergeben|weitersagen|weiterleiten|verstandigen|kontaktieren|"
    r"benachrichtigen|informieren|(?:wissen|zukommen)\s+lassen|in\s+kenntnis\s+setzen)"
)
# Somebody else or a noun (`Papier zum Aufschreiben`): no order.
_NO_INFINITIVE_ORDER = re.compile(
    r"\b(?:soll\w*|muss\w*|will|wollen|wollte\w*|darf|durfen|kann|konnen|konnte\w*|ich|wir|er|man|zum|beim|vom|zu|hat|haben|"
    r"wurde\w*|werden|um|statt|ohne|mir|uns)\b"
)
_INFINITIVES: dict[Effect, re.Pattern[str]] = {
    "write": re.compile(rf".*\b{_WRITE_INFINITIVES}\s*$"),
    "send": re.compile(rf".*\b{_SEND_INFINITIVES}\s*$"),
}
_POLITE_GERMAN = re.compile(r"(?:(?:kannst|konntest|wurdest|magst)\s+du|(?:konnen|konnten|wurden)\s+sie)\s+")
# `Würdest du dem Team sagen, dass …`; `Kannst du mir sagen` asks.
_POLITE_TELLING = re.compile(
    r"(?:bitte\s+)?(?:dem|der|den|ihm|ihr|ihnen|meine[mrn]|unsere[mrn]|allen)\s+.*\b(?:sagen|schreiben)\s*$"
)

_ALL: dict[Language, dict[Effect, re.Pattern[str]]] = {
    language: {effect: re.compile(f"{_OPENINGS[language]}(?:{'|'.join(forms)})") for effect, forms in effects.items()}
    for language, effects in _BEGINS.items()
}


def effects_in_phrases(request: str) -> frozenset[Effect]:
    """The effects that a request orders by an everyday phrase.

    Example:
        >>> sorted(effects_in_phrases("Let Kim know that the hall is booked"))
        ['send']
        >>> sorted(effects_in_phrases("Who let Kim know that the hall is booked?"))
        []
    """
    language = guess_language(request)
    found: set[Effect] = set()
    message: int | None = None
    for clause in ordering_clauses(request, language, known=lambda text: bool(_phrases(text, language))):
        # What follows `Tell Kim:` in the sentence is what Kim is told.
        if clause.sentence == message:
            continue
        ordered = _phrases(clause.text, language)
        if language == "de":
            ordered |= _infinitives(clause)
        if "send" in ordered and clause.opens:
            message = clause.sentence
        found |= ordered
    return frozenset(found)


def _phrases(text: str, language: Language) -> set[Effect]:
    # A short Spanish request may have only words that are French as well.
    languages: tuple[Language, ...] = ("fr", "es") if language in ("fr", "es") else (language,)
    return {effect for each in languages for effect, pattern in _ALL[each].items() if pattern.match(text)}


def _infinitives(clause: Clause) -> set[Effect]:
    polite = _POLITE_GERMAN.match(clause.text)
    rest = clause.text[polite.end() :] if polite else clause.text
    if polite and _POLITE_TELLING.match(rest):
        return {"send"}
    if (not polite and not clause.elliptical) or _NO_INFINITIVE_ORDER.search(rest):
        return set()
    return {effect for effect, pattern in _INFINITIVES.items() if pattern.match(rest)}
