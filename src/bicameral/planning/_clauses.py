"""Clauses of a request that may give an order: no questions, reports, conditions, quotations or contents of messages.

The words of an order occur in other sentences as well: `What is in my calendar?`, `Kim said: milk on the list`, `if a
mail to Kim is there`. Which of them a clause is shows in how it begins, in its verb, and in the clause before it: what
is joined to a question belongs to the question (`Show the mails to Kim and the events in my calendar`).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from bicameral.planning._contents import VERBS_OF_TEXTS
from bicameral.planning._language import ORDERS, Language, spelled_as
from bicameral.planning._non_orders import without_drafts_and_prohibitions
from bicameral.planning._openings import ASKED_ORDERS, REQUESTS
from bicameral.text import lazy_pattern

MOST_LETTERS = 2000
"""Patterns look at the rest of a clause from every place in it: quadratic, so only for what people type."""


@dataclass(frozen=True, slots=True)
class Clause:
    """A clause that may give an order.

    Args:
        text: its words, folded, without politeness before them; `qqq` is a file, `xxx` an address, `zzz` a quotation.
        spelled: the same words as they were written, since only capital letters tell some names.
        elliptical: whether it has no finite verb, so that it may order by a place alone.
        opens: whether a colon follows.
        follows: whether a colon went before.
        sentence: the number of its sentence.
    """

    text: str
    spelled: str
    elliptical: bool
    opens: bool
    follows: bool
    sentence: int


_SENTENCE_END = lazy_pattern(r"(?<=[!?;])\s+|(?<=[^\d\s][.])\s+|\s*\n+\s*")
_PART_END = lazy_pattern(r"(:)(?=\s|$)|,(?=\s|$)|\s[-–—](?=\s)|[()]")
_JOINTS: dict[Language, re.Pattern[str]] = {
    "en": lazy_pattern(r"\s(?=(?:and|then|n|otherwise|but)\s)"),
    "de": lazy_pattern(r"\s(?=(?:und|u|dann|sonst|aber)\s)"),
    "fr": lazy_pattern(r"\s(?=(?:et|puis|alors|sinon|mais)\s)"),
    "es": lazy_pattern(r"\s(?=(?:y|e|luego|entonces|pero|pues)\s)"),
}


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Before the order: they change nothing in what a clause is.
_POLITE: dict[Language, frozenset[str]] = {
    "en": _words("and n please pls plz hey hi hello also just but so ok okay thanks kindly now only"),
    "de": _words("und u bitte pls hallo hi hey auch aber also jetzt noch mal danke ok nur"),
    "fr": _words("et stp svp bonjour salut aussi mais donc merci ok seulement juste"),
    "es": _words("y e porfa porfavor hola tambien pero oye gracias ok solo solamente"),
}
# After these a clause stands on its own, whatever went before.
_AFRESH: dict[Language, frozenset[str]] = {
    "en": _words("then otherwise else afterwards"),
    "de": _words("dann sonst danach anschliessend"),
    "fr": _words("alors puis sinon ensuite"),
    "es": _words("entonces luego pues despues"),
}
# A clause that begins so asks for an answer or leaves things as they are: question words, auxiliaries before a subject,
# verbs of looking and of keeping.
_ASKING: dict[Language, frozenset[str]] = {
    "en": _words(
        "what whats what's wats which who whos who's whose whom when whens where wheres why how hows show list count "
        "sum find search read look check see compare calculate compute total is are was were am did does do has have "
        "had should may might shall can could would will any anything anyone give tell explain summarise summarize "
        "describe print display get fetch open view number remember translate quote wonder "
        "keep leave skip forget ignore"
    ),
    "de": _words(
        "was welche welcher welches welchen welchem wer wen wem wessen wann wo wohin woher warum wieso weshalb wie "
        "wieviel wieviele zeig zeige zeigen list liste zahl zahle such suche finde find lies lese ist sind war waren "
        "bin hab habe haben hat hast gibt gabs gibts kann konnen darf soll muss will nenn nenne schau schaue guck "
        "pruf prufe prufen vergleich vergleiche rechne berechne fass fasse erklar erklare hol hole "
        "lass lasse behalt behalte vergiss"
    ),
    "fr": _words(
        "quel quelle quels quelles qui que qu' quand ou pourquoi comment combien koi quoi montre montrez liste listez "
        "compte comptez cherche cherchez trouve lis lisez est est-ce sont y-a-t-il dis-moi donne-moi donne regarde "
        "regardez verifie verifiez compare comparez calcule additionne releve resume affiche explique ai as avez "
        "garde gardez laisse laissez oublie oubliez"
    ),
    "es": _words(
        "que cual cuales quien quienes cuando donde porque como cuanto cuanta cuantos cuantas kien q muestra "
        "muestrame ensename cuenta busca buscame encuentra lee leeme hay es son esta estan tengo tiene dime dame mira "
        "comprueba revisa compara suma calcula saca resume explica ve abre ha han he olvida conserva manten"
    ),
}
# Verbs of looking in the infinitive, which ends a German clause: `Mail an Kim suchen`.
_ASKING_AT_END = lazy_pattern(
    r"\b(?:suchen|zeigen|anzeigen|finden|lesen|vorlesen|zahlen|nennen|prufen|checken|zusammenfassen|anschauen|ansehen|"
    r"aufrufen|offnen|vergleichen)\s*$"
)
# A question word anywhere makes a clause without a verb a question: `kindergeburtstag zusagen wer`.
_QUESTION_WORD: dict[Language, re.Pattern[str]] = {
    "en": lazy_pattern(r"\b(?:what|which|who|whose|when|where|why|how)\b"),
    "de": lazy_pattern(r"\b(?:was|welche[rsnm]?|wer|wem|wen|wann|wo|wie|warum|wieviele?)\b"),
    "fr": lazy_pattern(r"\b(?:quel(?:le)?s?|combien|quand|comment|pourquoi|koi|quoi)\b"),
    "es": lazy_pattern(r"\b(?:cual(?:es)?|cuant[oa]s?|cuando|donde|kien|quien(?:es)?)\b"),
}
# After a condition these begin the main clause: `Is it below 200, soll Kim eine Mail bekommen`.
_MODALS = _words("soll sollen should")
# A clause that begins so hangs on another: a condition, a reason, what somebody says or a relative clause.
_ARTICLES = _words("der die das den dem als da ou como")
"""Begin a relative clause after a comma, and a main clause elsewhere."""
_SUBORDINATE: dict[Language, frozenset[str]] = {
    "en": _words("that if unless because since while whether although though who which whose whom where as like"),
    "de": _words("dass das ob wenn falls sofern weil da obwohl der die den dem deren dessen welche als bevor damit"),
    "fr": _words("que qu' si parce comme puisque qui dont ou lorsque quand car afin"),
    "es": _words("que q si porque como aunque cuando donde quien cuyo cuya pues"),
}
# Somebody's words follow or went before: none of them are orders of the user.
_SPEECH: dict[Language, re.Pattern[str]] = {
    "en": lazy_pattern(
        r"\b(?:said|says|say|told|tells|wrote|writes|asked|asks|thinks|thought|believes|claims|claimed|suggested|"
        r"suggests|mentioned|announced|replied|answered|promised|demanded|demands|insists|means|"
        r"reads|according\s+to|quoted?|subject|it\s+was)\b"
    ),
    "de": lazy_pattern(
        r"\b(?:sagte|sagt|sagten|meinte|meint|schrieb|schreibt|schrieben|fragte|fragt|erzahlt|erzahlte|behauptet|denkt|"
        r"glaubt|verlangt|verlangte|bat|bittet|antwortete|laut|zufolge|heisst\s+es|steht|lautet|angeblich|"
        r"gesagt|geschrieben|gemeint|gefragt|gebeten|betreff)\b"
    ),
    "fr": lazy_pattern(
        r"\b(?:a\s+dit|dit|disait|disent|a\s+ecrit|ecrit|ecrivait|demandait|a\s+demande|(?!^pense\b)pense|croit|pretend|affirme|"
        r"selon|d'apres|annonce|annoncait|objet)\b"
    ),
    "es": lazy_pattern(
        r"\b(?:dijo|dijeron|escribieron|dice|dicen|decia|escribio|escribia|pregunto|preguntaba|pidio|cree|piensa|afirma|segun|conto|"
        r"comento|ponia|asunto)\b"
    ),
}
# Who wants to know something asks: `I'd like to know the number of lines`.
_WONDERING: dict[Language, re.Pattern[str]] = {
    "en": lazy_pattern(
        r"\b(?:(?:like|want|need|love)\s+to\s+(?:know|see|hear|read)|wonder(?:ing)?|curious|let\s+(?:me|us)(?!\s+forget\b))\b"
    ),
    "de": lazy_pattern(r"\b(?:(?:mochte|will|wurde|wusste)\b.*\b(?:wissen|sehen|horen|gern)|frage\s+mich)\b"),
    "fr": lazy_pattern(r"\b(?:savoir|voir|me\s+demande)\b"),
    "es": lazy_pattern(r"\b(?:saber|ver|me\s+pregunto)\b"),
}
# Whoever wants to be reminded of something he knew asks: `Remind me what the code is`, `Rappelle-moi la quantité`. The
# question word may follow a comma, so that the rest of the sentence is looked at.
_RECALLING: dict[Language, re.Pattern[str]] = {
    "en": lazy_pattern(
        r"(?:(?:can|could|would|will)\s+(?:you|u)\s+)?(?:please\s+)?remind\s+(?:me|us)(?:\s+(?:again|please|of|about))*,?\s+"
        r"(?:what|which|who|whose|whom|where|when|why|how|whether|if)\b"
    ),
    "de": lazy_pattern(
        r"(?:erinn?ere?\s+(?:mich|mi|uns)|(?:kannst|konntest|wurdest)\s+du\s+(?:mich|uns))"
        r"(?:\s+(?:bitte|mal|nochmals?|noch|daran|dran|erinnern))*,?\s+"
        r"(?:was|wer|wen|wem|wessen|wie|wieviele?|wo|wohin|wann|warum|ob|welche\w*)\b"
    ),
    "fr": lazy_pattern(
        r"(?:rappelle(?:z)?[-\s](?:moi|nous)|(?:peux|pourrais)[-\s]tu\s+(?:me|nous)\s+rappeler)(?:\s+(?:encore|stp|svp))*,?\s+"
        r"(?:ce|quel\w*|qui|ou|quand|comment|combien|pourquoi|si|mon|ma|mes|la(?!\s+veille\b)|les|l'|"
        r"le(?!\s+(?:\d|premier\b|lundi\b|mardi\b|mercredi\b|jeudi\b|vendredi\b|samedi\b|dimanche\b|lendemain\b|jour\b)))"
    ),
    "es": lazy_pattern(
        r"(?:recuerda(?:me|nos)|(?:puedes|podrias)\s+recordar(?:me|nos))(?:\s+(?:otra\s+vez|por\s+favor))*,?\s+"
        r"(?:cual\w*|quien\w*|donde|cuando|como|cuant\w+|por\s+que|si|que\s+\w+\s+es)\b"
    ),
}
# Only the accent tells `recuérdame qué dijo` from `recuérdame que llame`.
_RECALLING_SPELLED = lazy_pattern(r"[Rr]ecu[eé]rda(?:me|nos)\s+(?:en\s+|de\s+|a\s+|con\s+)?qu[é]\b")
# A finite verb tells how things are: `Milk is on the list` is no order, and `Milk on the list` is one.
_FINITE: dict[Language, re.Pattern[str]] = {
    "en": lazy_pattern(
        r"\b(?:is|are|was|were|(?<!\d )am|isn'?t|aren'?t|has|have|had|hasn'?t|haven'?t|did|does|do|came|comes|got|went|"
        r"sits|stands|lies|shows?|says|made|put|took|gave|kept|i'?ve|i'?m|it'?s|there'?s|he'?s|she'?s|they'?re|we'?ve|"
        r"will|would|can|could|(?<!\d )may|might|added|sent|bounced|failed|seems|appears|looks|mailed|arrived|"
        r"exists?)\b"
    ),
    "de": lazy_pattern(
        r"\b(?:ist|is|sind|war|waren|hat|hab|habe|haben|hatte|hatten|wurde|wurden|kam|kamen|steht|stehen|liegt|liegen|"
        r"lag|standen|fand|fanden|gab|gibt|ging|gingen|tragt|schreibt|setzt|legt|stellt|schickt|packt|passt|fehlt|fehlen|kann|konnte|darf|"
        r"mochte|braucht|schaut|blickt|sehe|sieht|nahm|nimmt|loscht|bekam|erhielt|macht|existiert)\b"
        # `stand` is a noun as well: `Mail an Kim mit dem Stand`.
        r"|\b(?!ich\s)\w+\s+will\b|^(?:in|im)\s.*(?<!\bdem )(?<!\bden )(?<!\bder )(?<!\bvom )(?<!\bzum )\bstand\b"
    ),
    "fr": lazy_pattern(
        r"\b(?:est|sont|etait|etaient|ont|avait|avaient|ai|as|avons|avez|etais|suis|fut|sera|seront|figure|figurent|"
        r"trouve|met|note|notent|peut|peuvent|existe|existent|reste|restent|arrive|arrivent|recus?|recues?)\b"
        r"|\b(?:il|elle|on|y|qui|n')\s*a\b|\ba\s+(?:ete|eu|mis|envoye|ecrit|recu|ajoute|note|prevu|propose|pris)\b"
    ),
    "es": lazy_pattern(
        r"\b(?:es|son|era|eran|esta(?!\s+(?:tarde|noche|manana|semana)\b)|estan|estaba|hay|habia|ha|han|he|tengo|tiene|tienen|tenia|fue|fueron|llego|"
        r"llegaron|puse|puso|pusieron|apunte|aparece|aparecen|existe|existen|figura|puede|queda|quedan|viene|vienen|llevo|salio|falta|"
        r"faltan)\b|\bse\s+\w+o\b"
    ),
}


def _with_neighbour(tables: dict[Language, frozenset[str]]) -> dict[Language, frozenset[str]]:
    """Words of French and Spanish together: a short request may be taken for one in the other language."""
    both = tables["fr"] | tables["es"]
    return {**tables, "fr": both, "es": both}


def _patterns_with_neighbour(tables: dict[Language, re.Pattern[str]]) -> dict[Language, re.Pattern[str]]:
    # `son` is a finite verb in Spanish and a possessive in French.
    spanish = tables["es"].pattern.replace("|son|", "|")
    both = lazy_pattern(f"{tables['fr'].pattern}|{spanish}")
    return {**tables, "fr": both, "es": lazy_pattern(f"{both.pattern}|{tables['es'].pattern}")}


_POLITE_WORDS = _with_neighbour(_POLITE)
_ASKING_WORDS = _with_neighbour(_ASKING)
_SPEECH_FORMS = _patterns_with_neighbour(_SPEECH)
_FINITE_FORMS = _patterns_with_neighbour(_FINITE)
_WONDERING_FORMS = _patterns_with_neighbour(_WONDERING)
_QUESTION_FORMS = _patterns_with_neighbour(_QUESTION_WORD)


def ordering_clauses(
    request: str, language: Language, *, known: Callable[[str], bool] = lambda text: False
) -> Iterator[Clause]:
    """The clauses of a request that may give an order, in their order.

    Args:
        known: Whether a clause is an order although it begins like a question or a report: `Tell Kim …`.

    Example:
        >>> [clause.text for clause in ordering_clauses("Is it raining? Milk on the list, please", "en")]
        ['milk on the list']
    """
    own = request[:MOST_LETTERS]
    text = without_drafts_and_prohibitions(own, language)
    # What is masked in the text (quotations, somebody's words) must not order by its capital letters either.
    spelled = spelled_as(own, text)
    for number, (start, end) in enumerate(_spans(_SENTENCE_END, text, 0, len(text))):
        yield from _clauses_of_sentence(text[start:end], spelled[start:end], language, number, known)


def part_spans(request: str, language: Language) -> Iterator[tuple[int, int]]:
    """Where the main clauses of a request begin and end, cut after sentences and before `and` or `then`.

    What is quoted, and the name of a file, is never cut. A request that forbids something has no parts: a part would
    not say what is forbidden.
    """
    text = without_drafts_and_prohibitions(request, language)
    if len(text) != len(request) or any(
        masked.isspace() and not written.isspace() for masked, written in zip(text, request, strict=True)
    ):
        return
    for begin, stop in _spans(_SENTENCE_END, text, 0, len(text)):
        for start, end in _spans(_JOINTS[language], text, begin, stop):
            lead, _ = _lead(text[start:end], language)
            if _first_word(text[start + lead : end]) not in _SUBORDINATE[language]:
                yield start, end


def _clauses_of_sentence(
    text: str, spelled: str, language: Language, number: int, known: Callable[[str], bool]
) -> Iterator[Clause]:
    parts = [
        (start, end, text[end : end + 1] == ":")
        for begin, stop in _spans(_PART_END, text, 0, len(text))
        for start, end in _spans(_JOINTS[language], text, begin, stop)
    ]
    # A question mark belongs to what follows the last colon: `mail to Kim: can you come?` is an order.
    asked_from = max((start for start, _, _ in parts[1:] if text[:start].rstrip().endswith(":")), default=0)
    is_question = text.rstrip().endswith("?") and not _begins_with_request(text[asked_from:], language)
    bound = afresh = False
    for start, end, opens in parts:
        lead, opened = _lead(text[start:end], language)
        afresh |= opened
        clause = _TRAILING.sub("", text[start + lead : end])
        if not clause:
            continue
        follows = text[:start].rstrip().endswith(":")
        first = follows or not text[:start].strip()
        stands, afresh = afresh, False
        if is_question and start >= asked_from:
            continue
        if not stands and _is_subordinate(clause, language, after_comma=text[:start].rstrip().endswith(",")):
            continue
        ordered = known(clause)
        if not ordered and _SPEECH_FORMS[language].search(clause) and not _begins_with_order(clause, language):
            # Whatever follows in the sentence are somebody's words.
            return
        if opens and _OF_TEXTS.match(clause) and not ordered:
            return
        rest = start + lead
        if not ordered and (_asks(clause, language, first=first) or _recalls(text[rest:], spelled[rest:], language)):
            bound = True
            continue
        if bound and not stands and not ordered and not _stands_alone(clause, language):
            continue
        bound = False
        elliptical = not _FINITE_FORMS[language].search(clause) and not _QUESTION_FORMS[language].search(clause)
        if elliptical and first and text[end : end + 1] == "," and _tells_where(clause, text[end:], language):
            continue
        yield Clause(clause, spelled[start + lead : start + lead + len(clause)], elliptical, opens, follows, number)


def _tells_where(clause: str, rest: str, language: Language) -> bool:
    """Whether a clause says where something was: `In a mail to Kim, I wrote …`."""
    told = _FINITE_FORMS[language].search(rest) or _SPEECH_FORMS[language].search(rest) or _I_WROTE.search(rest)
    return _IN_A_PLACE.match(clause) is not None and told is not None


_IN_A_PLACE = lazy_pattern(
    r"(?:in|im|dans|en)\s+(?:\w+\s+){0,2}(?:(?:e-?)?mail|nachricht|brief|message|letter|note|courriel|lettre|correo|mensaje|carta)\b"
)
_I_WROTE = lazy_pattern(r"\b(?:j'(?:ai|avais)|escribi|mande|envie|deje|puse)\b")


def only_asks(request: str, language: Language) -> bool:
    """Whether every sentence of a request asks for an answer: a question, or a verb of looking before all else.

    Example:
        >>> only_asks("Show notes.txt", "en"), only_asks("Clean up notes.txt", "en")
        (True, False)
    """
    text = without_drafts_and_prohibitions(request[:MOST_LETTERS], language)
    sentences = [text[start:end] for start, end in _spans(_SENTENCE_END, text, 0, len(text)) if text[start:end].strip()]
    return bool(sentences) and all(_sentence_asks(each, language) for each in sentences)


def _sentence_asks(sentence: str, language: Language) -> bool:
    if sentence.rstrip().endswith("?") and not _begins_with_request(sentence, language):
        return True
    lead, _ = _lead(sentence, language)
    return _asks(sentence[lead:].rstrip(" .!?"), language, first=True)


_OF_TEXTS = lazy_pattern(VERBS_OF_TEXTS)
_TRAILING = lazy_pattern(
    r"(?:[\s.!?]|\b(?:please|pls|plz|thx|thanks|bitte|danke|stp|svp|porfa|por\s+favor|merci|gracias))+$"
)


def _begins_with_request(text: str, language: Language) -> bool:
    lead, _ = _lead(text, language)
    languages: tuple[Language, ...] = ("fr", "es") if language in ("fr", "es") else (language,)
    forms = "|".join(form for each in languages for form in (REQUESTS[each], ASKED_ORDERS[each]))
    return re.match(forms, text[lead:]) is not None


# `liste de courses`: a noun, and no order to list something; `esta tarde` is no question about a state.
_ASKED_REMINDER = lazy_pattern(
    r"(?:give\s+(?:me|us)|get|have)\s+(?:an?|another)\s+(?:\w+\s+)?reminder\b(?!\s+(?:of|about)\b)"
    r"|lasse?\s+(?:mich|uns)\b.*\bnicht\b.*\bvergessen\b"
)
_NOUNS = lazy_pattern(
    r"(?:list|liste|lista|compte|cuenta)\s+(?:of|de|d|du|des|del|der|d')\b|esta\s+(?:tarde|noche|manana|semana)\b"
)


def _is_subordinate(clause: str, language: Language, *, after_comma: bool) -> bool:
    word = _first_word(clause)
    return word in _SUBORDINATE[language] and (after_comma or word not in _ARTICLES)


def _asks(clause: str, language: Language, *, first: bool) -> bool:
    if _WONDERING_FORMS[language].search(clause):
        return True
    rest = re.sub(rf"^(?:{REQUESTS[language]})\s*", "", clause)
    word = _first_word(rest)
    if (
        (word in _MODALS and not first)
        or _NOUNS.match(rest)
        or _ASKED_REMINDER.match(rest)
        or re.match(r"hay\s+que\b", rest)
    ):
        return False
    if _ASKING_WORDS[language] & {word, word.removesuffix("-moi").removesuffix("-nous")}:
        return True
    return language == "de" and _ASKING_AT_END.search(clause) is not None


def _recalls(text: str, spelled: str, language: Language) -> bool:
    languages: tuple[Language, ...] = ("fr", "es") if language in ("fr", "es") else (language,)
    return (
        any(_RECALLING[each].match(text) for each in languages)
        or _RECALLING_SPELLED.match(unicodedata.normalize("NFC", spelled)) is not None
    )


def _begins_with_order(clause: str, language: Language) -> bool:
    return any(order.pattern.match(clause) for order in ORDERS[language])


# Declarations of what shall be need no verb of order: `…, Kim should get a mail`, `…, bekommt Noor die Mail`.
_DECLARES: dict[Language, str] = {
    "en": r".*\b(?:should|goes|belongs)\b|(?:take|write|pass|move|swap|switch|put|add|mail|send|file|attach|fill|"
    r"remind)\b|(?:set|make|create)\s+(?:(?:me|us)\s+)?an?\s+(?:\w+\s+)?reminder\b",
    "de": r".*\bsoll(?:en)?\b|(?:bekommt|kriegt|bekommen|nimm|trag\w*|schieb\w*|schreib\w*|leg\w*|raus|weg|"
    r"erinn?ere?)\b",
    "fr": r".*\bdoi(?:t|vent)\b|(?:corrige|adapte|remplace|rajoute|decale|mets|vire|vide|classe|convertis|"
    r"rappelle)\w*\b",
    "es": r".*\bdeben?\b|(?:pon|pone|pasa|corrige|retrasa|atrasa|sustituye|reemplaza|convierte|escrib|recuerda)\w*\b",
}


def _stands_alone(clause: str, language: Language) -> bool:
    """Whether a clause after a question or a report does not belong to it."""
    return re.match(_DECLARES[language], clause) is not None or _begins_with_order(clause, language)


# `If so, …`: the answer to a question before is the condition.
_IF_SO = lazy_pattern(
    r"\s*(?:if\s+(?:so|yes|not)|wenn\s+(?:ja|nein|nicht)|falls\s+(?:ja|nein)|si\s+(?:oui|non)|dans\s+ce\s+cas|after\s+that|"
    r"en\s+ese\s+caso|si\s+(?:si|no)(?=\s*$))(?:\s+|$)"
)


def _lead(clause: str, language: Language) -> tuple[int, bool]:
    """How long the politeness before a clause is, and whether the clause begins afresh (`then …`)."""
    condition = _IF_SO.match(clause)
    afresh = condition is not None
    place = condition.end() if condition else len(clause) - len(clause.lstrip(" \t¿¡"))
    for match in lazy_pattern(r"(\S+?)([:,]?)(?:\s+|$)").finditer(clause, place):
        word = match[1].strip("!,.¿¡")
        if word in _AFRESH[language]:
            afresh = True
        elif word not in _POLITE_WORDS[language]:
            return match.start(), afresh
        place = match.end()
    return place, afresh


def _first_word(clause: str) -> str:
    match = re.match(r"[¿¡]*([a-z']+(?:-[a-z]+)*)", clause)
    return match[1] if match else ""


def _spans(separator: re.Pattern[str], text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The pieces of a text between separators."""
    for match in separator.finditer(text, start, end):
        yield start, match.start()
        start = match.end()
    yield start, end
