"""Forms of orders that write to somebody: news, questions, thanks, wishes, apologies and answers.

`Tell Noor when …`, `Wish Kim a happy birthday`, `Bedank dich bei …`, `Dis merci à …`. Each form names somebody other
than the user, since what the user is told is an answer (`Tell me when …`). `_everyday_orders` matches the forms where
a clause begins: elsewhere their words stand in questions and reports as well.
"""

from __future__ import annotations

from bicameral.planning._clauses import Clause
from bicameral.planning._language import Language
from bicameral.text import lazy_pattern


def german(*stems: str) -> str:
    """Imperatives of du and Sie, and `notierst du`."""
    return rf"(?:{'|'.join(stems)})(?:e|en\s+sie|st\s+du)?\b(?!\s+ich\b)"


def french(*stems: str) -> str:
    """Imperatives, infinitives and subjunctives of French verbs in -er."""
    return rf"(?:{'|'.join(stems)})(?:e|es|ez|er)(?:-(?:moi|lui|leur|le|la|les|ca))*\b"


def spanish(*stems: str) -> str:
    """Imperatives, infinitives and subjunctives of Spanish verbs in -ar."""
    return rf"(?:{'|'.join(stems)})(?:a|e|ar|es|as)(?:me|le|les|lo|la|los|las)?\b"


_NOT_ME = r"(?!me\b|us\b|myself\b|ourselves\b)"
_MESSAGE_EN = r"(?:lines?|notes?|messages?|(?:e-?)?mails?|texts?|sms|word|reply)\b"
# `Message Kim sent yesterday` is a message, and `Message Kim` an order.
_NO_REPORT_EN = r"(?!.*\b(?:sent|wrote|got|received|left|forwarded|is|was|are|were|has|had)\b)"
_REGARDS_EN = (
    r"(?:condolences|congratulations|congrats|sympathy|regards|wishes|apologies|thanks|greetings|compliments|love)\b"
)
# Things that are written back into a file, and no people.
_THINGS_EN = (
    r"(?:it|this|that|these|those|everything|(?:the|my|our|all)\s+(?:\w+\s+)?(?:rest|remainder|output|version|copy|entries|items|data|lines?|rows?|files?|text|table|list|changes?|"
    r"values?|numbers?|results?|content|names?)|data|lines|rows|text|changes|values|numbers|results)\b"
)
# `Wish Kim had a car` tells of a wish.
_NO_WISH_EN = r"(?!.*\b(?:had|was|were|would|could|did|knew|came|got|has|is)\b)"
_NOT_ME_DE = r"(?!(?:mir|mich|uns|dir|dich|euch|sich)\b)"
_GOOD_DE = (
    r"(?:alles|viel|gute[nsr]?|schone[nsr]?|frohe\w*|eine[ns]?|gluck|erfolg|besserung|spass|spas|vergnugen|"
    r"geburtstag|das\s+beste)\b"
)
_REGARDS_FR = (
    r"(?:excuses|felicitations|condoleances|remerciements|voeux|voux|salutations|amities|compliments|meilleurs|"
    r"sinceres)\b"
)
_REGARDS_ES = (
    r"(?:gracias|pesame|enhorabuena|recuerdos|saludos|condolencias|respuesta|felicidades|bienvenida|disculpas)\b"
)
# `Réponse à la question` is an answer to the user.
_QUESTION_FR = r"(?!.*\b(?:a\s+la|a\s+ma|a\s+cette|aux)\s+questions?\b)"
_QUESTION_ES = r"(?!.*\b(?:a\s+la|a\s+mi|a\s+esta|a\s+las)\s+preguntas?\b)"

MESSAGES: dict[Language, tuple[str, ...]] = {
    "en": (
        rf"let\s+(?!me\b|us\b|'s\b).*\bknow\b|tell\s+{_NOT_ME}(?!apart\b|the\s+difference\b|which\b|what\b)\w",
        rf"ask\s+{_NOT_ME}(?!(?:yourself|around|away|for|whether|if|about|what|which|how|when|where|who|why)\b)\w",
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
        r"say\s+(?:hi|hello|thanks|thank\s+you|sorry|yes|no|goodbye|congratulations)\s+to\s+\w",
        rf"(?:thank|congratulate)\s+{_NOT_ME}(?!you\b|god\b|goodness\b|heavens?\b)\w|apologi[sz]e\s+to\s+{_NOT_ME}\w",
        rf"wish\s+{_NOT_ME}(?!(?:i|you|we|he|she|they|it|lists?|that|for|to)\b){_NO_WISH_EN}(?:\w+\s+){{1,4}}?"
        r"(?:an?|all|the\s+best|good|happy|merry|well|every|much|luck|many|safe)\b",
        rf"(?:give|send|extend|offer|pass)\s+{_NOT_ME}.*\b(?:my|our)\s+(?:\w+\s+){{0,2}}?{_REGARDS_EN}",
        rf"(?:write|mail|e-?mail|text|message)\s+{_NOT_ME}(?!{_THINGS_EN})(?:\w+\s+){{1,3}}?back\b(?!\s+(?:in)?to\s+(?:q{{3}}|it\b))",
        rf"respond\s+to\s+{_NOT_ME}(?!(?:my|this|that|the|these)\s+(?:\w+\s+)?(?:questions?|requests?|prompts?|query)\b)\w",
    ),
    "de": (
        rf"{german('sag')}(?!\s+(?:mir|uns)\b).*\bbescheid\b|(?:gib|gebe|geben\s+sie|gibst\s+du)\b(?!\s+(?:mir|uns)\b).*\b"
        r"(?:bescheid\b|weiter\b|ruckmeldung\b|antwort\b|auskunft\b)",
        r"(?:lass|lasse|lassen\s+sie)\s+(?!mich\b|uns\b|mir\b).*\b(?:wissen|zukommen|ausrichten)\b",
        rf"{german('richt')}(?!\s+(?:mir|uns)\b).*\baus\b|{german('teil')}(?!\s+(?:mir|uns)\b).*\bmit\s*$",
        rf"{german('setz')}(?!\s+(?:mich|uns)\b).*\bin\s+kenntnis\b",
        rf"{german('verstandig', 'kontaktier', 'sims')}\s+(?!mich\b|uns\b|mir\b)\w",
        rf"{german('meld')}\s+(?:dich\s+bei\s+\w|(?!mir\b|uns\b|dich\b|mich\b)\w)",
        rf"{german('halt')}\s+(?!mich\b|uns\b).*\bauf\s+dem\s+laufenden\b",
        rf"{german('ping')}\s+(?!mich\b|uns\b).*\ban\b|{german('warn')}\s+(?!mich\b|uns\b)\w",
        rf"{german('bedank', 'entschuldig')}\s+(?:dich|mich|uns|sie\s+sich)\b.*\b(?:bei|beim)\s+(?!mir\b|uns\b)\w",
        rf"{german('wunsch')}\s+{_NOT_ME_DE}(?!(?:fur|von|an|zu|zum|zur|und|aus)\b)\w.*\b{_GOOD_DE}",
        rf"(?:sprich|sprechen\s+sie)\s+{_NOT_ME_DE}.*\b(?:beileid|dank|gluckwunsche?|mitgefuhl|lob|anerkennung)\b.*\baus\b",
        # `Sag der Reihe nach …` and `Sag den Termin ab` tell nobody anything.
        rf"{german('sag')}\s+(?:bitte\s+)?(?:(?:dem|der|ihm|ihr|ihnen|meine[mr]|unsere[mr]|allen|beiden|den\s+\w+n)\b)"
        r"(?!\s+reihe\b)(?!.*\bab\s*$)",
        rf"{german('schreib', 'antwort')}\s+{_NOT_ME_DE}\w+(?:\s+\w+)?\s+zuruck\b(?!\s+in\b)",
    ),
    "fr": (
        r"(?:tiens|tenez|tenir|mets|mettez|mettre)(?!-(?:moi|nous))\s+(?!moi\b|nous\b).*\bau\s+courant\b",
        r"(?:(?:fais|faites|faire)\s+)?(?:passe|passez|passer)\s+(?:le|un|ce|l')\s*(?:petit\s+)?(?:mot|message|info)\s+"
        r"(?:a|au|aux)\b(?!\s+moi\b)",
        rf"{french('laiss')}\s+(?:un|ce|le)\s+(?:petit\s+)?(?:mot|message)\s+(?:a|au|aux)\b(?!\s+moi\b)",
        r"texte(?:r|z)?\s+(?!de\b|du\b|des\b|d'|en\b|a\b|qui\b|que\b|le\b|la\b|sur\b)\w+\s+(?:que|qu'|pour)(?!\w)",
        rf"{french('signal', 'annonc', 'confirm', 'communiqu')}\s+(?:a|au|aux)\b(?!\s+(?:moi|nous)\b)",
        rf"{french('avis', 'alert', 'contact')}\s+(?:(?:les|le|la|mon|ma|mes|nos|notre)\s+\w|l'\w|"
        r"(?!de\b|du\b|des\b|sur\b)\w+\s+"
        r"(?:que|qu'|de|des|du|pour|par)(?!\w))",
        r"(?:fais|faites|faire)\s+(?:savoir|part)\b(?!-)|(?:touche|touchez|toucher)\s+un\s+mot\s+a\b",
        r"(?:dis|dites|dire|ecris|ecrivez|ecrire)\s+(?:(?:merci|bonjour|bravo|pardon|oui|non)\s+)?(?:a|au|aux)\b"
        r"(?!\s+(?:moi|nous)\b)",
        r"(?:lui|leur)\s+(?:dire|ecrire|repondre|demander|annoncer)\b",
        r"(?:previens|prevenez|prevenir|previennes)\s+(?!moi\b|nous\b)\w",
        rf"{french('souhait')}(?:(?<=-lui)|(?<=-leur)|\s+.*\b(?:a|au|aux)\s+(?!moi\b|nous\b)\w)",
        rf"(?!\w+-moi\b){french('remerci', 'felicit')}(?:(?<=-le)|(?<=-la)|(?<=-les)|\s+(?!moi\b|nous\b)\w)",
        rf"(?:{french('present', 'adress', 'transmet', 'offr')}|transmets|transmettre|offrir)\s+(?:mes|"
        r"nos)\s+(?:\w+\s+)?"
        rf"{_REGARDS_FR}",
        r"excuse(?:z|r)?(?:-(?:moi|nous))?\s+aupres\b",
        rf"{french('demand')}(?:(?<=-lui)|(?<=-leur)|\s+(?:a|au|aux)\s+(?!moi\b|nous\b)\w)",
        rf"{_QUESTION_FR}(?:fais|faites|faire|donne|donnez|donner)(?:-(?:lui|leur))?\s+une\s+reponse\s+(?:a|au|aux)\b",
    ),
    "es": (
        r"(?:haz|haga|hacer|hagas)(?:le|les)\s+(?:saber|llegar)\b|(?:haz|haga|hacer)\s+saber\s+(?:a|al)\b",
        r"(?:pon|ponga|poner|echa|eche|echar|manda|mande|mandar)(?:le|les)?\s+(?:un\s+(?:mensaje|correo|recado|wasap|whatsapp)|unas?\s+lineas)"
        r"\s+(?:a|al)\b",
        r"(?:deja|deje|dejar)(?:le|les)?\s+(?:un|el|este)\s+(?:recado|mensaje|aviso)\s+(?:a|al)\b",
        r"(?:pasa|pase|pasar)(?:le|les)?\s+(?:el|un|este)\s+(?:recado|mensaje|aviso)\s+(?:a|al)\b",
        r"(?:ponte|pongase|ponerte|ponerse)\s+en\s+contacto\s+con\b|contact(?:a|e|ar)\s+(?:con|a|al)\b",
        r"(?:manten|mantenga|mantener)\s+(?:a|al)\b.*\b(?:al\s+tanto|al\s+corriente|informad[oa]s?)\b",
        r"(?:pon|ponga|poner)\s+(?:al\s+(?:corriente|tanto)\s+(?:a|al)\b|(?:a|al)\b.*\bal\s+(?:corriente|tanto)\b)",
        r"(?:le|les)\s+(?:dices|avisas|escribes|comunicas|preguntas|contestas|respondes)\b|(?:avisas|avises)\s+(?:a|al)\b|"
        r"digas\s+(?:a|al)\b",
        r"(?:transmite|transmita|transmitir)(?:le|les)?\b.*\b(?:a|al)\b",
        r"dese(?:a|e|ar)(?:(?:le|les)\b|\s+.*\b(?:a|al)\s+(?!mi\s*$)\w)",
        rf"{_QUESTION_ES}(?:da|de|dar)(?:(?:le|les)\s+.*\b{_REGARDS_ES}|\s+(?:las\s+|el\s+|la\s+|una\s+)?{_REGARDS_ES}\s+(?:a|al)\b)",
        r"(?:pide|pida|pedir)(?:le|les)\b|(?:pide|pida|pedir)\s+(?:.*\s)?(?:a|al)\s+(?!mi\s*$)\w",
        r"disculp(?:a|e|ar)(?:te|se|me|nos)?\s+(?:con|ante)\b",
        r"agradec(?:e|er)(?:(?:le|les|selo)\b|\s+.*\b(?:a|al)\s+\w)|agradezca(?:le|les)\b",
        r"pregunt(?:a|e|ar)(?:(?:le|les)\b|\s+(?:por\s+correo\s+)?(?:a|al)\s+\w)|felicit(?:a|e|ar)(?:(?:l[eoa]s?)\b|\s+(?:por\s+correo\s+)?(?:a|al)\s)",
        r"(?:decir|escribir|contestar|responder)(?:le|les)\b",
    ),
}
GERMAN_INFINITIVES = (
    r"(?:bescheid\s+(?:geben|sagen)|ausrichten|mitteilen|weitergeben|weitersagen|weiterleiten|verstandigen|kontaktieren|"
    r"benachrichtigen|informieren|(?:wissen|zukommen)\s+lassen|in\s+kenntnis\s+setzen|zuruckschreiben|zuruckmailen|"
    r"gratulieren|per\s+mail\s+(?:fragen|danken|antworten|zusagen|absagen))"
)
"""Infinitives that end a German order of a message: `Ruth zurückschreiben`."""

# After `Kannst du` more verbs can only be orders: `Kannst du Kim fragen, ob …`. `Kannst du mir sagen …` asks.
_POLITE_TELLING = lazy_pattern(
    rf"(?:bitte\s+|mal\s+|kurz\s+)*(?!sagen\b|schreiben\b){_NOT_ME_DE}(?:(?:dem|der|den|ihm|ihr|ihnen|meine[mrn]|unsere[mrn]|"
    r"allen)\s+.*\b(?:sagen|schreiben)|(?:die|den|das|ihn|sie|meine[nr]?|unsere[nr]?|alle)\s+.*\bfragen|"
    r".*\b(?:danken|gratulieren|wunschen|zuruckschreiben|zuruckmailen))\s*$"
    r"|(?:bitte\s+|mal\s+|kurz\s+)*(?:dich|sich|mich|uns)\b.*\b(?:bei|beim)\s+(?!mir\b|uns\b)\w.*\b(?:bedanken|entschuldigen)\s*$"
)
# Only its capital letter tells a name: `Kannst du genau sagen, wann …` asks, and so does `Kannst du Näheres sagen`.
_POLITE_NAME = lazy_pattern(
    r"(?:[Bb]itte\s+|mal\s+|kurz\s+)*(?!\w+eres\b|Genaues\b|Konkretes\b|Bescheid\b|Beispiele\b)[A-ZÄÖÜ]\w+\s(?:.*\s)?"
    r"(?:sagen|schreiben|fragen)\s*$"
)
_TELL_NAME = lazy_pattern(
    r"[Ss]ag(?:e|en\s+Sie)?\s+(?:bitte\s+)?(?!(?:Bescheid|Sie|Mir|Uns|Danke|Hallo|Ja|Nein|Stopp)\b)[A-ZÄÖÜ]\w+"
    r"(?:\s+(?:und\s+)?[A-ZÄÖÜ]\w+)*(?:\s*$|\s+(?:wann|wo|wie|was|welche\w*|wer|wem|wohin|warum|ob|dass|das|per|bitte|danke|"
    r"zu)\b)"
)
_POLITE_GERMAN = lazy_pattern(
    r"(?:(?:kannst|konntest|wurdest|magst)\s+du|(?:konnen|konnten|wurden)\s+sie|(?:konnen|konnten)\s+wir)\s+"
)


def after_german_politeness(clause: Clause) -> str | None:
    """What follows `Kannst du` in a clause, in small letters; None if it begins otherwise."""
    polite = _POLITE_GERMAN.match(clause.text)
    return clause.text[polite.end() :] if polite else None


def tells_somebody_in_german(clause: Clause) -> bool:
    """Whether a German clause orders a message by a polite question or by a name: `Sag Noor, wann …`."""
    if _TELL_NAME.match(clause.spelled):
        return True
    rest = after_german_politeness(clause)
    if rest is None:
        return False
    spelled = clause.spelled[len(clause.text) - len(rest) :]
    return bool(_POLITE_TELLING.match(rest) or _POLITE_NAME.match(spelled))
