"""What is no order in a request, although it has the words of one.

`without_non_orders` replaces it by blanks: names of files, quoted text, what somebody did ("the mail Kim sent"), nouns
("the order list"), drafts ("prepare a reply"), prohibitions ("without sending it"), and the removal of lines or
duplicates, which changes a text and deletes nothing.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache

from bicameral.planning._contents import VERBS_OF_TEXTS, without_contents
from bicameral.planning._language import QUOTATIONS, Language, fold
from bicameral.planning._lexicon import DELETABLE
from bicameral.text import lazy_pattern

# What is no order, although it has the words of one. Each pattern is matched against the folded request, and what it
# matches is replaced by blanks.
_OBJECTS = lazy_pattern(
    rf"""https?://\S+                                             # links
      | [\w.+-]+@[\w-]+(?:\.[\w-]+)+                               # addresses
      | (?:[\w-]+/)*[\w-]+(?:\.[\w-]+)*\.[a-z][a-z0-9]{{1,4}}\b          # names of files
      | {QUOTATIONS}
      | ^\ *>[^\n]*                                              # lines of another mail
    """,
    re.VERBOSE | re.MULTILINE,
)
_TO_END = r"[^.,;:!?\n]*"
_MESSAGE_NOUNS = {
    "en": r"(?:e-?mails?|mails?|repl(?:y|ies)|answers?|messages?|letters?|notes?|responses?|invitations?|drafts?)",
    "de": r"(?:e-?mails?|mail|antwort|nachricht|brief|schreiben|absage|zusage|einladung|entwurf|text)",
    "fr": r"(?:e-?mails?|mail|courriel|reponse|message|lettre|invitation|brouillon|texte)",
    "es": r"(?:e-?mails?|correo|respuesta|mensaje|carta|invitacion|borrador|texto)",
}
_LINE_NOUNS = {
    "en": r"(?:duplicates?|dupes?|doubles?|doubled|lines?|blanks?|whitespace|spaces|repeats|repetitions|repeated|"
    r"punctuation|prefix(?:es)?|suffix(?:es)?|columns?|trailing|leading)",
    "de": r"(?:duplikate|dubletten|doppelte\w*|zeilen?|leerzeilen?|leerzeichen|spalten?|satzzeichen|wiederholungen)",
    "fr": r"(?:doublons?|lignes?|espaces?|colonnes?|repetitions?|ponctuation)",
    "es": r"(?:duplicad[oa]s?|repetid[oa]s|lineas?|espacios?|columnas?|filas?|puntuacion)",
}


def _compiled(*patterns: str) -> tuple[re.Pattern[str], ...]:
    return tuple(lazy_pattern(each) for each in patterns)


_DRAFTS: dict[Language, tuple[re.Pattern[str], ...]] = {
    "en": _compiled(
        rf"\b(?:draft|prepare|compose|outline|sketch|suggest|propose|word|formulate)\b(?:(?!\band\b|\bthen\b)[^.;:!?\n])*?"
        rf"\b{_MESSAGE_NOUNS['en']}\b(?:(?!\band\b|\bthen\b)[^.;:!?\n])*",
        r"\b(?:write|make|create)\s+(?:me\s+)?(?:a|the|some)\s+(?:\w+\s+)?drafts?\b(?:(?!\band\b|\bthen\b)[^.;:!?\n])*",
    ),
    "de": _compiled(
        r"\b(?:entwirf|entwerfen|entwerfe|formulier(?:e|en)?|skizzier(?:e|en)?|verfass(?:e|en)?)\b(?:(?!\bund\b)[^.;:!?\n])*",
        r"\bbereite?n?\b(?:(?!\bund\b)[^.;:!?\n])*?\bvor\b|\bvor(?:zu)?bereiten\b",
        r"\b(?:mach|schreib|erstell)(?:e|en)?\s+(?:mir\s+)?(?:ein\w*\s+)?(?:\w+\s+)?entwurf\b(?:(?!\bund\b)[^.;:!?\n])*",
        rf"\bschlag\w*\b{_TO_END}\bvor\b",
    ),
    "fr": _compiled(
        r"\b(?:prepar|redig|propos|esquiss|formul)(?:e|ez|er)\b(?:-\w+)?(?:(?!\bet\b)[^.;:!?\n])*",
        r"\b(?:ecris|fais|cree)(?:-moi)?\s+(?:un|le)\s+(?:\w+\s+)?brouillon\b(?:(?!\bet\b)[^.;:!?\n])*",
    ),
    "es": _compiled(
        r"\b(?:prepara|prepare|preparar|redacta|redacte|redactar|propon|proponer|esboza|formula)(?:me|le|lo|la)?\b"
        r"(?:(?!\by\b)[^.;:!?\n])*",
        r"\b(?:escribe|haz|crea)(?:me)?\s+(?:un|el)\s+(?:\w+\s+)?borrador\b(?:(?!\by\b)[^.;:!?\n])*",
    ),
}

_PROHIBITIONS: dict[Language, tuple[re.Pattern[str], ...]] = {
    "en": _compiled(
        r"\b(?:(?:don'?t|do not)(?!\s+(?:forget\s+to|let\s+(?:me|us)\s+forget)\b)|never|rather than|"
        r"instead of|no need to|must not|mustn'?t|shouldn'?t|should not|"
        r"not to)\b(?:(?!\bbut\b|\band then\b|\bjust\b|\bonly\b)[^.,;:!?\n])*",
        # A gerund goes on with it (`without reading and sending it`), and another verb does not.
        r"\bwithout\b(?:(?!\bbut\b|\band\s+(?!(?:\w+\s+)?\w+ing\b)|\bjust\b|\bonly\b)[^.,;:!?\n])*",
    ),
    "de": _compiled(
        rf"\bohne\b{_TO_END}",
        # `nicht` forbids its clause, unless it belongs to what follows: nicht gelesene Mails.
        r"(?:^|(?<=[.,;:!?\n]))(?!\s*lasse?\s+(?:mich|uns)\b[^.,;:!?\n]*\bvergessen\b)"
        r"[^.,;:!?\n]*\b(?:nicht(?!\s+(?:mehr\s+)?(?:(?:(?:ge|be|er|ver)\w+[te]|ge\w+en)(?:e|en|er|es)|un\w+))|nichts|niemals|"
        r"kein(?:e|en|em|er)?)\b[^.,;:!?\n]*",
    ),
    "fr": _compiled(
        rf"\bsans\b{_TO_END}",
        r"\b(?:n'|ne\s)(?!oublie(?:z)?\s+pas\s+d)\s*[^.,;:!?\n]*?\b(?:pas|rien|jamais|plus|aucun\w*|personne)\b[^.,;:!?\n]*",
        r"\bne\s+(?:pas|rien|jamais)\b[^.,;:!?\n]*",
    ),
    "es": _compiled(
        rf"\bsin\b{_TO_END}",
        r"\b(?:no|nunca|tampoco)\s+(?!(?:te\s+)?olvides\s)(?!\w+(?:ado|ada|ados|adas|ido|ida|idos|idas)\b)[^.,;:!?\n]*",
    ),
}

# Words of messages that ask for an answer to the user: `Sag Bescheid, wenn …` names nobody, and who is to answer a
# question is the program, unless a mail or somebody else has asked it.
_TO_SELF_DE = r"(?:\s+(?:bitte|mal|kurz|dann|einfach|doch|auch|nur|noch|eben|mir|uns|sie))*"
_OTHERS_QUESTION = (
    r"(?![^.!?:\n]*\b(?:(?:e-?)?mails?|messages?|courriels?|nachrichten?|correos?|mensajes?)\b)"
    r"(?!\s+(?:of|from|by|that|which|von|vom|des|der|aus|die|de|d'|du|del|que|qu'|\w+\s+(?:asked|asks|has|had|sent))\b)"
)
_ANSWERS: dict[Language, tuple[re.Pattern[str], ...]] = {
    "en": _compiled(
        rf"\banswer(?:\s+to)?\s+(?:the|my|this|that|these|our|an?)\s+(?:\w+\s+)?questions?\b{_OTHERS_QUESTION}",
    ),
    "de": _compiled(
        rf"\b(?:sag|gib|geb)(?:e|en)?{_TO_SELF_DE}\s+bescheid\b",
        rf"\b(?:kannst|konntest|wurdest)\s+du{_TO_SELF_DE}\s+bescheid\s+(?:geben|sagen)\b",
        r"(?:^|(?<=[.!?;:,\n]))\s*(?:(?:bitte|kurz|dann|und)\s+)*bescheid\s+(?:geben|sagen)\b",
        rf"\b(?:be)?antwort(?:e|en)?{_TO_SELF_DE}\s+(?:auf\s+)?(?:die|meine|diese|eine|unsere)\s+(?:\w+\s+)?fragen?\b"
        rf"{_OTHERS_QUESTION}",
    ),
    "fr": _compiled(
        r"\b(?:previens|prevenez|avertis|avertissez)(?=\s+(?:si|s'ils?|quand|lorsque|des\s+qu\w*)\b)",
        rf"\b(?:reponds|repondez|repondre|reponse)\s+a\s+(?:la|ma|cette|une|notre)\s+question\b{_OTHERS_QUESTION}",
    ),
    "es": _compiled(
        r"\bavis(?:a|e|ar)(?=\s+(?:si|cuando|en\s+cuanto|en\s+caso)\b)",
        rf"\b(?:respond(?:e|er)|contest(?:a|ar)|respuesta)\s+(?:a\s+)?(?:la|mi|esta|una)\s+(?:siguiente\s+)?pregunta\b"
        rf"{_OTHERS_QUESTION}",
    ),
}

# What somebody did or does, and what the answer itself does.
_REPORTS: dict[Language, tuple[re.Pattern[str], ...]] = {
    "en": _compiled(
        r"\bkeep\s+(?:me|us)\b|\b(?:message|text|note)\s+(?:from|of)\b|\b(?:message|text|note)\s+\w+\s+(?:sent|wrote|left|got)\b",
        r"(?<!\bi )\b(?:said|says|thinks|thought|wrote|suggested|suggests)\s+(?:that\s+)?(?:i|we)\s+(?:should|"
        r"could|must|have\s+to|"
        r"might|can)\b[^.,;:!?\n]*",
        r"\b(?:sent|wrote|told|forwarded|said|written)\b",
        r"\b(?:tell|remind)\s+(?:me|us)\b|\bto\s+be\s+reminded\b",
        r"\b(?:asked|told)\s+(?:me|us|him|her|them)\s+to\b[^.,;:!?\n]*",
        # `put` and `let` are past tenses as well.
        r"\bwho\s+(?:put|set|let|cut)\b[^.,;:!?\n]*",
        r"\b(?:could|can|may|might)\s+it\s+be\b[^.;:!?\n]*",
        r"\b(?!i\b|we\b|who\b|that\b)\w+\s+(?:makes|made)\s+sure\s+to\b[^.,;:!?\n]*",
        # A question about what somebody does; `do you mind sending` is an order.
        r"\b(?:did|does|do(?!\s+(?:you|not|so|it|this|that)\b))\b(?:(?!\band\b|\bthen\b|\bif\b)[^.,;:!?\n])*",
        # A question about what somebody else can or should do; `Could it be moved?` and `Could Kim get a mail?` order.
        r"(?:^|(?<=[.!?;\n]))\s*(?:(?:can|could|may|might|would|will|shall|should)\s+(?!(?:you|u|we|i|it|this|that|there|someone|"
        r"somebody)\b)|should\s+(?:i|we)\s|do\s+you\s+think\s+(?!(?:you|we)\b))"
        r"(?:(?!\b(?:be|get|have|receive|please|can\s+you|could\s+you|and|then)\b)[^.!?;:\n])*\?",
        r"\badd(?:ed|ing)?\s+(?:up|together)\b|\badd\b(?:(?!\band\b|\bthen\b)[^.,;:!?\n])*?\s(?:up|together)\b",
        r"\banswer\s+(?:yes|no|nothing|none|with|all|only|in|z{2,})\b",
        # `write to` asks for a mail, unless a file follows.
        r"(?<=\bwrite )to(?=\s+(?:(?:the|a|file|new)\s+)*q{3,})",
    ),
    "de": _compiled(
        r"\b(?:wer|der|die|das|er|sie|es|man|welche[rs]?)\s+(?:mir\s+|uns\s+)?(?:schickt|sendet|schreibt|mailt|loscht)\b",
        # Whoever wants to be reminded wants no mail.
        r"\bsage?\s+(?:mir|uns)\b|\berinnere?\s+(?:mich|mi|uns)\b",
        r"(?<=\bdu\s)(?:mich|uns)\b[^.,;:!?\n]*\berinnern\b",
        # What somebody else wants (`Kim will …`), and questions about what he can or should do.
        r"(?:^|(?<=[.,;:!?\n]))\s*(?!(?:ich|wir)\b)(?:(?:der|die|das|meine?|unsere?)\s+)?(?:\w+\s+)(?:will|wollte|wollten|mochte|"
        r"mochten)\b(?!\s+(?:ich|wir)\b)(?:(?!\b(?:und|dann)\b)[^.,;:!?\n])*",
        r"(?:^|(?<=[.!?;\n]))\s*(?:(?:kann|konnte|konnen|konnten|mag|wird|darf|soll|sollen|sollte|muss|will|hat|haben|hatte)\s+"
        r"(?!\s|(?:ich|du|wir|sie|man|bitte|mir|jemand|das|es)\b)|soll(?:te)?\s+ich\s)"
        r"(?:(?!\b(?:werden|bekommen|kriegen|haben|bitte|kannst|konntest|und|dann)\b)[^.!?;:\n])*\?",
    ),
    "fr": _compiled(
        r"\b(?:qui|il|elle|on|ils|elles|je)\s+(?:me\s+|m'|nous\s+|lui\s+|l'|t')?\w+",
        r"\b(?:m|t|l|s)'(?:envoie|ecrit|ajoute|annule|informe|efface|enregistre)\b",
        r"\bdi(?:s|tes)-(?:moi|nous)\b|\brappelle(?:z)?[-\s](?:le[-\s])?(?:moi|nous)\b",
        r"\b(?:me|nous)\s+rappeler\b",
        r"\b(?:voulait|voulaient|devait|devaient|allait|allaient)\s+(?:\w+\s+)?\w+(?:er|ir|re)\b|\bpris\s+(?:bonne\s+)?note\b",
        r"\best-ce\s+qu(?:e\s+|')(?!(?:tu|vous|on|je|nous|il\s+(?:est|serait)\s+possible)\b)[^.!?;:\n]*\?",
        # A noun in the form of a verb: mes notes, note de frais.
        r"\bnotes?\s+(?:de|d'|du|des)\s*(?!\w+(?:er|ir|re)\b)\w",
        r"\b(?:les|des|mes|tes|ses|nos|vos|leurs|ces|la|une|ma|sa|cette|chaque)\s+notes?\b",
    ),
    "es": _compiled(
        r"\b(?:quien|quienes|el|ella|se|me|nos|te|le|les)\s+(?:me\s+|nos\s+|lo\s+|la\s+)?"
        r"(?:manda|envia|escribe|responde|avisa|cancela|borra|mueve|guarda|anade|apunta|elimina|quita)\b",
        r"\b(?:dime|diganos|dinos)\b|\bcree\s+que\b|\b(?:recuerda|recordar)(?:me|nos)(?:lo|la)?\b",
        r"\b(?:debo|deberia|deberiamos)\s+\w+[aei]r\w*\b[^.!?\n]*\?",
        r"¿\s*(?:hay|habria)\s+que\b[^.!?;:\n]*\?",
        # `Quería apuntar …` is an order, and `Kim quería apuntar …` a report.
        r"\b(?!yo\b|y\b|no\b)\w+\s+(?:queria|querian|debia|debian)\s+\w+[aei]r\w*\b",
        # A noun in the form of a verb: el envío, una copia, la reserva.
        r"\b(?:el|la|los|las|un|una|mi|mis|su|sus|del|al|cada|de)\s+(?:envio|copia|reserva|tira|nota|crea|guarda|registro|agenda)s?\b",
    ),
}

_TEXTS = lazy_pattern(rf"(?:^|(?<=[.!?;\n]))\s*{VERBS_OF_TEXTS}[^.:!?;\n]*:[^.!?;\n]*")
# A question that begins with a question word orders nothing, unless it asks for something in passing: `Which bills are
# open, and can you mail them to Kim?`
_OPEN_QUESTION = lazy_pattern(
    r"(?:^|(?<=[.!?;:\n]))\s*¿?\s*(?:what|which|who|whose|when|where|why|how|was|welche[rsnm]?|wer|wem|wen|wann|wo|warum|wie|"
    r"wieso|quel(?:le)?s?|qui|quand|pourquoi|comment|combien|que|cual(?:es)?|quien(?:es)?|cuando|donde|por\s+que|como|"
    r"cuant[oa]s?)\b(?:(?!\b(?:please|can\s+you|could\s+you|bitte|kannst|konntest|peux-tu|pourrais-tu|puedes|podrias|"
    r"por\s+favor|and|und|et|y|then|dann|puis)\b)[^.!?;:\n])*\?"
)

# `send me the list` asks for an answer, unless it says by which way.
_BY_MAIL = lazy_pattern(r"\b(?:e-?mails?|mail|per\s+mail|correo|courriel|par\s+mail)\b")
_TO_USER: dict[Language, tuple[re.Pattern[str], ...]] = {
    "en": _compiled(r"\b(?:send|forward|write|text|message|ping|nudge|notify|inform)\s+(?:me|us)\b"),
    "de": _compiled(
        r"\b(?:schick|schicke|send|sende|schreib|schreibe)\s+(?:mir|uns)\b",
        r"\b(?:informier|benachrichtig)e?\s+(?:bitte\s+)?(?:mich|uns)\b",
    ),
    "fr": _compiled(
        r"\b(?:envoie|envoyez|transmets|ecris|previens|prevenez|avertis|informe|notifie)-(?:moi|nous)\b",
        r"\bm'envoyer\b",
    ),
    "es": _compiled(r"\b(?:manda|envia|escribe|pasa|avisa|informa|notifica)(?:me|nos)(?:lo|la|los|las)?\b"),
}

# What only the spelling tells from an order: German nouns are capitalised (die Antwort), French participles have an
# accent (envoyé), and Spanish past tenses as well (envió); folding removes both.
_WRITTEN_DIFFERENTLY: dict[Language, re.Pattern[str]] = {
    # `ändere` orders, and `andere` does not.
    "de": lazy_pattern(r"(?<=[\wäöüß,;)] )(?!Sie\b)[A-ZÄÖÜ]\w+|\b[Aa]nder(?:e[mnrs]?)?\b"),
    "fr": lazy_pattern(r"(?<!être )\b(?![Cc]ré)\w+é(?:e|s|es)?\b"),
    "es": lazy_pattern(r"\b\w+(?:ó|aron|ieron|é)\b"),
}


@lru_cache(maxsize=64)
def without_non_orders(request: str, language: Language) -> str:
    """A request in small letters, with blanks in place of everything that is no order in its language.

    Example:
        >>> without_non_orders("Draft a reply to Kim and save it", "en").split()
        ['and', 'save', 'it']
    """
    text = _OBJECTS.sub(_object_word if language == "en" else _blank, without_contents(request))
    text = _blank_folded(text, _removal_of_lines(language))
    for pattern in _ANSWERS[language]:
        text = _blank_folded(text, pattern)
    if language in _WRITTEN_DIFFERENTLY:
        text = _WRITTEN_DIFFERENTLY[language].sub(_blank, text)
    text = without_drafts(fold(text), language)
    for pattern in (_OPEN_QUESTION, _TEXTS, *_PROHIBITIONS[language], *_REPORTS[language]):
        text = pattern.sub(_blank, text)
    if not _BY_MAIL.search(text) and "@" not in request:
        for pattern in _TO_USER[language]:
            text = pattern.sub(_blank, text)
    return _without_nouns(text) if language == "en" else text


def without_drafts_and_prohibitions(request: str, language: Language) -> str:
    """A request in small letters without drafts and prohibitions; `qqq` stands for each file."""
    text = without_drafts(fold(_OBJECTS.sub(_object_word, without_contents(request))), language)
    for pattern in (*_PROHIBITIONS[language], *_ANSWERS[language]):
        text = pattern.sub(_blank, text)
    return text


def without_texts(text: str) -> str:
    """A folded text without what is to be translated, repeated or explained: `Translate: thank Kim`."""
    return _TEXTS.sub(_blank, text)


def _blank_folded(text: str, pattern: re.Pattern[str]) -> str:
    """The text without what a pattern finds in its folded form."""
    for match in reversed(list(pattern.finditer(fold(text)))):
        text = text[: match.start()] + _blank(match) + text[match.end() :]
    return text


def _object_word(match: re.Match[str]) -> str:
    """A word that stands for a file, an address or a quoted text: the words around it must not become neighbours."""
    found = match.group()
    letter = "z" if found.lstrip()[0] in "\"'“„«‚‹‘>" else "x" if "@" in found or "://" in found else "q"
    return letter * len(found)


def without_drafts(text: str, language: Language) -> str:
    """A folded text without the orders of drafts."""
    for pattern in _DRAFTS[language]:
        text = pattern.sub(_blank, text)
    return text


@cache
def _removal_of_lines(language: Language) -> re.Pattern[str]:
    """The removal of parts of a text. The noun follows the verb closely: `delete the file with the lines` deletes."""
    verbs = {
        "en": r"(?:remov(?:e|ing)|delet(?:e|ing)|drop(?:ping)?|strip(?:ping)?|eliminat(?:e|ing)|discard(?:ing)?|merge)",
        "de": r"(?:losch(?:e|en)?|loesch(?:e|en)?|entfern(?:e|en)?|streich(?:e|en)?)",
        "fr": r"(?:supprim|enlev|retir|effac|elimin)(?:e|ez|er)",
        "es": r"(?:quit|elimin|borr|suprim)(?:a|e|ar|ir)",
    }[language]
    # Things that can be deleted win, before the noun or after it: "the duplicate files" are files.
    things = "|".join(sorted({re.escape(fold(word)) for word in DELETABLE}))
    # Words between: articles, pronouns and adjectives, never another noun with a preposition.
    between = rf"(?:(?!\b(?:in|from|of|with|mit|aus|von|de|du|con|del|{things})\b)\w+\s+){{0,3}}"
    return lazy_pattern(rf"\b{verbs}\s+{between}{_LINE_NOUNS[language]}\b(?!\s+(?:{things})\b)")


# English nouns in the form of verbs. They are orders only where a verb can stand.
_NOUN_OR_VERB = frozenset(
    "mail email e-mail post comment answer book order log note copy plan record file issue label tag flag report "
    "message text call page stock power list block store backup archive count change cut release export transfer end "
    "update open name water rate share like follow review schedule invite reply request mark run set back top need "
    "check ping stop start play queue turn delay push shift move plans test release guest limit arrive duplicate tell "
    "join combine merge collect saved book trash".split()
)
_BEFORE_VERB = frozenset(
    "and then to please pls plz also just n or else otherwise you now kindly lets let's go will so but q x z once "
    "first yes not afterwards finally instead thx thanks hey hi hello can could would should must".split()
)
_AFTER_VERB = frozenset(
    "it them him her the this that these those each all every everyone everybody to my a an me us whoever both what "
    "how any whether if up".split()
)
_BEFORE_NOUN = frozenset(
    "the my a an this that these those his her its our your their unread new newest last latest oldest first next by "
    "in per via of any each every no which what whose many most more few both same other another own from for with "
    "read show find check search summarise summarize see "
    "some about one two three on at into over under between current whole total open pending is are was were".split()
)
_ARTICLES = frozenset("the a an my our his her this that".split())
_LOOKING = frozenset("show find read open see check search print display where which is was".split())
_BEFORE_GERUND = frozenset("by mind start begin try after before about keep without consider than stop".split())
_WANTED = frozenset("want wants wanted need needs should must be get have like to please shall".split())


def _without_nouns(text: str) -> str:
    """A folded English text without nouns that look like orders, and without plurals, gerunds and participles."""
    words = list(re.finditer(r"[a-z][a-z'-]*", text))
    found = list(text)
    for number, match in enumerate(words):
        before = [each.group() for each in words[max(0, number - 10) : number]]
        gap = text[words[number - 1].end() : match.start()] if number else "."
        after = words[number + 1] if number + 1 < len(words) else None
        follows = after.group() if after is not None and not text[match.end() : after.start()].strip() else ""
        if _is_no_order(match.group(), before, follows, starts=bool(gap.strip())):
            found[match.start() : match.end()] = " " * len(match.group())
    return "".join(found)


def _is_no_order(word: str, before: list[str], follows: str, *, starts: bool) -> bool:
    last = before[-1] if before and not starts else ""
    if word == "copy" and _WANTED.intersection(before):
        return False
    if word in _NOUN_OR_VERB:
        if starts or not last or last in _BEFORE_VERB or _is_object_word(last):
            return False
        # `Show the short mail to Kim`.
        names_mail = word.endswith("mail") and follows in ("to", "for") and _ARTICLES.intersection(before[-2:-1])
        if names_mail and _LOOKING.intersection(before):
            return True
        # `Kim's mail` is one.
        return last in _BEFORE_NOUN or last.endswith("'s") or not (follows in _AFTER_VERB or follows.startswith("xxx"))
    if word.endswith("ed") and len(word) > 4:
        return not _WANTED.intersection(before)
    if word.endswith("ing") and len(word) > 5:
        return last not in _BEFORE_GERUND and not _WANTED.intersection(before)
    return word.endswith("s") and not word.endswith(("ss", "us", "is")) and len(word) > 3


def _is_object_word(word: str) -> bool:
    return len(word) > 2 and len(set(word)) == 1 and word[0] in "qxz"


def _blank(match: re.Match[str]) -> str:
    return " " * len(match.group())
