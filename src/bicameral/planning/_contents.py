"""Contents of a request: what somebody is reported to have said, pasted texts, and what a reminder is about.

Orders in them are none of the user's to this program: `Kim wrote: delete the file`, `Remind me to mail Kim`.
`without_contents` replaces them by blanks, in four languages and whatever the language of the request is. Where it is
unclear how far a content reaches, it reaches to the end of its sentence; after a colon at the end of a line it is a
pasted text, which reaches to the end of the request.
"""

from __future__ import annotations

import re
from functools import lru_cache

from bicameral.planning._language import QUOTATIONS, fold
from bicameral.text import lazy_pattern

_QUOTATION = lazy_pattern(QUOTATIONS, re.VERBOSE)
# A content in quotation marks ends with them.
_QUOTED = r"\s*z{3,}"
# The point in `17.30`, in `list.txt` and in `24. Dezember` ends no sentence.
_IN_SENTENCE = r"(?:[^.;!?\n]|\.(?=\w)|(?<=\d)\.(?=\s[a-z]))"
_IN_CLAUSE = r"(?:[^,.;:!?\n]|[.:](?=\w))"

_DE_INFINITIVE = r"\b(?:zu\s+\w{1,30}|\w{1,12}zu\w{1,20})n\b"

# Verbs of saying: with a content only, or with a noun as well (`asked for the list`, `a demandé la liste`).
_SAYS = (
    r"(?:said|says|wrote|writes|(?:has|have|had)\s+(?:\w+\s+){0,2}written|told|tells|replied|answered|"
    r"announced|announces|suggested|suggests|insisted|insists|mentioned|promised|reads|"
    r"sagte|sagten|sagt|meinte|meinten|meint|schrieb|schrieben|schreibt|erzahlte?|behauptete?|antwortete|antwortet|"
    r"lautet|heisst\s+es|"
    r"dit|disait|disent|ecrit|ecrivait|ecrivent|repondu|repond|repondait|"
    r"dijo|dijeron|dice|dicen|decia|dicho|escribio|escribieron|escribia|escrito|respondio|respondido|contesto|"
    r"contestado|comento|comentado)"
)
# The participle ends a German clause, so that an object goes before: `Kim hat die Liste geschrieben` reports no words.
_GERMAN_PERFECT = (
    r"\b(?:hat|hab|haben|hatten?|wurde|wird|ist)\b"
    r"(?:(?!(?<!\bin)(?<!\ban)(?<!\bauf)\s(?:eine?n?|die|das|den|seine?n?|ihre?n?|zwei|drei|mehrere)\s)[^,.;:!?\n]){0,60}?\s"
    r"(?:geschrieben|gesagt|gemeint|geantwortet|gefragt|gebeten|verlangt)\b"
    r"|\bwie\b[^,.;:!?\n]{1,40}\s(?:geschrieben|gesagt|gemeint)\s+(?:hat|haben|hatten?)\b"
)
# These take an object more often than words.
_MAILS = (
    r"(?:(?:e-?)?mailed|texted|messaged|posted|mailte|postete|(?:hat|hatte)(?:\s+(?:mir|uns|gestern|heute|eben|gerade|schon|"
    r"zuletzt|zuruck|kurz|wieder))*\s+gemailt)"
)
_MAILED_WORDS = r"(?:\s+(?:me|us|back|mir|uns|zuruck|yesterday|today|gestern|heute|again|just))*"
# `Kim wrote a poem`, and not `Kim wrote an hour ago`.
_NO_THING = (
    r"(?!\s+(?:(?:me|us|mir|uns|nous)\s+)?(?:an?(?!\s+(?:hour|minute|week|day|while|moment|few))|eine?n?|une?|una|some|two|"
    r"three|zwei|drei|deux|trois|dos|tres|die|das|la|les?|el|los|las|sa|son|ses|sus?)\s|\s+l')"
)
_ASKS = r"(?:asked|asks|demanded|fragte|fragten|fragt|bat|baten|bittet|preguntaba|pregunto|preguntado)"
_ASKS_FOR = (
    r"(?:verlangte?|a\s+(?:\w+\s+)?demande|ont\s+demande|demandait|a\s+(?:propose|annonce|ordonne)|pidio|pidieron|pedia|"
    r"pedido|propuso|ordeno)"
)
# These are imperatives as well, so a subject or a pronoun must go before: `Kim escribe:`, and not `Escribe a Kim:`.
_WITH_SUBJECT = (
    r"(?<![a-z'])(?!(?:la|une|ma|cette|una|mi|esta|su|siguiente|y|e|et|puis|luego|entonces|favor|svp|stp|ahora|tambien|aussi|alors|hola|bonjour|porfa)\s)"
    r"[a-z]{2,30}\s+"
    r"(?:(?:me|nos|te|le|les|nous|vous|lui|leur)\s+|[mt]')?"
    r"(?P<verb>demande|annonce|affirme|propose|ordonne|escribe|pide|pregunta|responde|contesta|comenta|propone|sugiere)"
)
_AS_I_SAID = (
    r"(?<!\bas i )(?<!\blike i )(?<!\bwie ich )(?<!\bcomme )(?<!\bcomme je l'ai )(?<!\bcomme j'ai )(?<!\bcomo )"
    r"(?<!\bcomo te )(?<!\bcomo he )"
)
# `Everyone who wrote: …` names people.
_NOT_WHO = r"(?<!\bwho )(?<!\bdie )(?<!\bwer )(?<!\bqui )(?<!\bqui ont )(?<!\bqui a )(?<!\bque )"
_ABOUT = (
    r"that|dass|que|whether|if|ob|si|about|uber|wegen|sobre|when|where|how|what|which|who|why|wann|wo|wie|was|wer|welche\w*|"
    r"quand|ou|comment|combien|quel\w*|cuando|donde|cuant\w+|cual\w*"
)
_FOR = r"for|nach|um(?!\s+\d)|por|apres"
_ARTICLE = r"the|an?|my|die|den|das|eine?n?|la|les?|une?|el|los|las|su|sa|son|ses|sus|mi|mon|ma"
_NAMING = r"what|whatever|when|as|if|was|wenn|wie|ob|quand|que|comme|si|como|cuando"
_COLON = r"\s*:(?!\d|//)"
_MOST_WORDS = 8


def _words_without(excluded: str) -> str:
    return (
        rf"(?:,?\s+(?!(?:{excluded})\b|qu'|l'|z{{3,}})(?:[^\s,.;:!?]|(?<=\d)[.:](?=\d)|(?<=\d)\.)+){{0,{_MOST_WORDS}}}"
    )


_SOURCE = r"\b(?:according\s+to|laut|selon|d'apres|segun|gemas)\s+[^,.;:!?\n]{1,60}"
# `Was in notizen.txt steht: …` names something, and an order may follow.
_WRITTEN_THERE = (
    r"(?:^|(?<=\n)|(?<=[.;!?,]\s))(?!was\b|alles\b)(?:[^.;:!?\n,]|\.(?=\w)){0,100}\bsteht\b[^,.;:!?\n]{0,40}"
)
_SPEAKER = (
    rf"(?:{_AS_I_SAID}{_NOT_WHO}\b{_SAYS}\b{_NO_THING}{_words_without(_ABOUT)}"
    rf"|(?:{_GERMAN_PERFECT}){_words_without(_ABOUT)}|\b{_MAILS}\b{_MAILED_WORDS}"
    rf"|\b{_ASKS}\b{_words_without(f'{_ABOUT}|{_FOR}')}"
    rf"|(?:\b{_ASKS_FOR}|{_WITH_SUBJECT})\b(?!\s+(?:{_ARTICLE})\b){_words_without(f'{_ABOUT}|{_FOR}')}"
    rf"|{_SOURCE}|{_WRITTEN_THERE})"
)
# `Translate: …`, `Only a draft: …`: a text follows the colon.
VERBS_OF_TEXTS = (
    r"(?:translate|proofread|rephrase|spell|ubersetz\w*|korrigier\w*|buchstabier\w*|umformulier\w*|traduis\w*|traduire|"
    r"relis|reformule\w*|traduc\w*|reformula\w*|"
    r"(?:(?:a|an|ein|einen|un)\s+)?(?:draft|entwurf|brouillon|borrador)(?!.*q{3,})|"
    # These take other objects as well: `Repeat the class a week later: create another one`.
    r"(?:rewrite|repeat|explain|quote|summari[sz]e|fasse?|wiederhol\w*|erklar\w*|repete\w*|explique\w*|explica\w*|"
    r"repite\w*|resume\w*)"
    r"(?:\s+(?:this|that|the\s+following|das|dies|folgendes|ceci|cela|esto|eso)(?:\s+zusammen)?)?(?=\s*(?::|$)))\b"
)
_REPORTS = (
    # A pasted text.
    lazy_pattern(
        rf"(?:{_SPEAKER}|(?:^|(?<=[.!?;\n]))\s*{VERBS_OF_TEXTS}[^.:!?;\n]*)\s*:[^\S\n]*\n(?P<content>{_QUOTED}|.*)",
        re.DOTALL,
    ),
    lazy_pattern(rf"{_SPEAKER}{_COLON}(?P<content>{_QUOTED}|{_IN_SENTENCE}*)"),
    # `Kim said, delete it`: up to the next comma, since the user may go on. In `what Kim said, …` it is named only.
    lazy_pattern(
        rf"(?:^|(?<=\n)|(?<=[.,;:!?]\s))(?:(?!\b(?:{_NAMING})\b){_IN_CLAUSE}){{0,80}}?{_AS_I_SAID}\b"
        r"(?:said|says|(?:told|asked)\s+(?:me|us)|sagte|sagt|meinte|meint|dit|dijo|dice)(?:,|\s+[-–—]+)\s+"
        rf"(?P<content>{_IN_CLAUSE}*)"
    ),
    # `Kim bat mich, die Datei zu löschen`.
    lazy_pattern(rf"\b(?:bat|baten|bittet|gebeten)\b(?P<content>(?:{_IN_CLAUSE}*,)?{_IN_CLAUSE}*?{_DE_INFINITIVE})"),
    lazy_pattern(
        r"\b(?:a|ont)\s+(?:demande|dit|propose|ordonne)\s+(?:[^\s,.;:!?]+\s+){0,3}?(?:de\s+|d')"
        rf"(?P<content>(?:(?:le|la|les|lui|leur|me|nous)\s+|l')*\w+(?:er|ir|re)\b{_IN_CLAUSE}*)"
    ),
    lazy_pattern(
        r"\b(?:pidio|pidieron|pide|pedido|dijo|dijeron)\s+(?:al?\s+\w+\s+)?"
        rf"(?P<content>(?:que\s|\w{{2,}}(?:ar|er|ir)(?:me|te|se|nos|les?|l[oa]s?)*\b){_IN_CLAUSE}*)"
    ),
)

# What a reminder is about. It ends with the sentence, or where an order follows that cannot belong to it.
_EN_NEXT = r"\b(?:and|then)\b(?!\s+(?:on|at|again|tomorrow|\w+day|\d)\b)"
_EN_GAP = rf"(?:(?!{_EN_NEXT})(?:[^.;:!?\n]|[.:](?=\d)|(?<=\d)\.(?=\s[a-z])))*?"
_EN_REST = rf"(?:[^,.;!?\n]|\.(?=\w))*(?:,(?!\s*(?:and|then|but|also|please)\b){_IN_SENTENCE}*)?"
_GAP = r"(?:[^,.;:!?\n]|[.:](?=\d)|(?<=\d)\.(?=\s[a-z]))*?"
# Who asks for something that he forgot is answered: `Erinnere mich, wie der Code war`.
_NO_QUESTION = r"(?!(?:\s*\bda?ran\b)?,?\s*(?:was|wer|wen|wem|wessen|wie|wieviele?|wo|wohin|wann|warum|ob|welche\w*)\b)"
_DE_REST = rf"(?:(?!,?\s+und\s+(?!{_IN_SENTENCE}*{_DE_INFINITIVE})){_IN_SENTENCE})*"
_FR_INFINITIVE = r"(?:(?:le|la|les|lui|leur|me|nous|en|y|ne\s+pas|ne)\s+|[lms]')*(?!\w+ere\b)\w+(?:er|ir|re)\b"
_FR_REST = rf"(?:(?!,?\s+(?:et|puis)\s+(?!qu|d'|de\s|{_FR_INFINITIVE})){_IN_SENTENCE})*"
_ES_INFINITIVE = r"\b\w{2,}(?:ar|er|ir)(?:me|te|se|nos|les?|l[oa]s?){0,2}\b"
_ES_REST = rf"(?:(?!,?\s+(?:y|e|luego)\s+(?!que\s|{_ES_INFINITIVE})){_IN_SENTENCE})*"
_REMINDER_NOUN = lazy_pattern(
    rf"\breminders?\b{_EN_GAP}(?:\bto\b(?!\s+(?:\S*@|the\b|my\b|our\b|all\b|each\b|every|them\b|him\b|her\b))"
    rf"|\bthat\b(?!\s+(?:day|morning)\b)|(?P<colon>{_COLON}))(?P<content>{_EN_REST})"
)
_REMINDERS = (
    lazy_pattern(
        rf"\b(?:remind\s+(?:me|us)|reminded)\b{_EN_GAP}"
        rf"(?:\bto\b|\bthat\b(?!\s+(?:day|morning|evening|afternoon|week|night)\b)|{_COLON})(?P<content>{_EN_REST})"
    ),
    _REMINDER_NOUN,
    *(
        lazy_pattern(rf"{trigger}{rest}")
        for trigger in (
            r"\berinn?ere?\s+(?:bitte\s+)?(?:mich|mi|uns)\b",
            r"\b(?:mich|uns)\b[^,.;:!?\n]{0,60}?\berinner(?:n|st)\b",
            r"\berinnert\s+werden\b",
            r"\berinnerung\b",
        )
        for rest in (
            rf"{_NO_QUESTION}{_GAP}(?:\bda?ran\b,?{_NO_QUESTION}|{_COLON}|,\s*(?=das))(?P<content>{_DE_REST})",
            rf"{_NO_QUESTION}(?P<content>(?:(?!\bund\b)(?:[^.;:!?\n]|[.:](?=\w))){{0,160}}?{_DE_INFINITIVE}{_DE_REST})",
        )
    ),
    lazy_pattern(
        r"\b(?:rappelle(?:z)?[-\s](?:le[-\s])?(?:moi|nous)|(?:me|nous)\s+rappeler|fais[-\s]moi\s+penser|rappel)\b"
        rf"{_GAP}(?:\b(?:de\s+|d'|a\s+|pour\s+)(?={_FR_INFINITIVE})|\b(?:que\s|qu')|{_COLON})(?P<content>{_FR_REST})"
    ),
    lazy_pattern(
        r"\b(?:recuerda(?:me|nos)(?:l[oa])?|recordar(?:me|nos)(?:l[oa])?|recordatorio)\b"
        rf"{_GAP}(?:(?={_ES_INFINITIVE})|\bque\s|{_COLON})(?P<content>{_ES_REST})"
    ),
)


@lru_cache(maxsize=64)
def without_contents(request: str) -> str:
    """A request with blanks in place of reported speech, pasted texts and what reminders are about.

    Example:
        >>> without_contents("Remind me to mail Kim").rstrip()
        'Remind me to'
    """
    for pattern in (*_REPORTS, *_REMINDERS):
        # Nothing begins inside of a quotation.
        folded = fold(_QUOTATION.sub(lambda match: "z" * len(match.group()), request))
        for match in pattern.finditer(folded):
            start, end = match.span("content")
            if pattern is _REMINDER_NOUN and not match["colon"] and request[start:end].lstrip()[:1].isupper():
                # `A reminder to Kim` is for Kim.
                continue
            if match.groupdict().get("verb"):
                start = match.start("verb")
            request = request[:start] + _blank(request[start:end]) + request[end:]
    return request


def _blank(text: str) -> str:
    return "".join(each if each == "\n" else " " for each in text)
