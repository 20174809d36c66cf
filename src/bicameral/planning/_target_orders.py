"""Orders that are told by where something goes, not by a verb: `milk on the shopping list`, `dates -> calendar`.

People leave the verb out (`Pickerl Dienstag 7:30 in den Kalender`, `mail a Felix`), or say what shall be (`Kim should
get a mail`). Only clauses that may give an order are looked at (`_clauses`), and a place alone orders only in a clause
without a finite verb. Where a place is as well the one that something is in (`things in my calendar`), a clause that
lists or counts orders nothing. What is found here allows an effect and never requires one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from bicameral.planning._clauses import Clause, ordering_clauses
from bicameral.planning._language import Language, guess_language
from bicameral.planning._openings import imperatives
from bicameral.text import lazy_pattern
from bicameral.tools import Effect

_FILE = r"q{3,}\w*"
"""Names of files are masked in the text that is searched."""
_QUOTE = r"z{3,}"
_TO = r"(?:->|=>|→)\s*"
_SHIFT = r"\+\s*\d+\s*(?:h|std|stunden?|min\w*|hours?)\s*$"
_ARROW_PLACE = (
    rf"^[^>→]*{_TO}(?:\w+['\s]+){{0,3}}?(?:calendar|cal|kalender|agenda|calendrier|calendario|\w*list[ae]?|folder|"
    rf"ordner|dossier|carpeta|{_FILE})\b"
)
# After an arrow only these are people: `first -> latest` and `mails -> order number` send nothing.
_ARROW_PERSON = (
    rf"{_TO}(?:(?:the|my|our|all|an|die|den|meine?n?|le|la|mon|ma|el|mi)\s+)?(?:grandma|grandpa|mum|mom|dad|landlord|"
    r"neighbou?rs?|team|boss|caterer|teacher|parents|family|everyone|oma|opa|mama|papa|vermieter|nachbarn?|eltern|"
    r"lehrerin|lehrer|chef|chefin|alle|mamie|papi|maman|voisins?|proprio|famille|equipe|abuela|abuelo|vecinos?|casero|"
    rf"familia|padres|jefe)\s*$|{_TO}(?:\w+\s+){{0,3}}(?:by|per|par|por|x)\s+(?:e-?)?(?:mail|correo)\s*$"
)


@dataclass(frozen=True, slots=True)
class _Orders:
    """Forms of orders for one effect.

    Args:
        begins: the clause begins so; it may have a finite verb (`Take physio out of my calendar`, `Kim should get …`).
        places: the clause has no finite verb and names where something goes.
        stays: as `places`, with words that also say where something is: nothing that lists or counts may go before.
    """

    begins: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    stays: tuple[str, ...] = ()


_LISTS = {
    "en": r"(?:(?:shopping|grocery|groceries|to-?do|todo|packing|wish|idea|ideas|reading)\s+)list",
    "de": r"(?:einkaufs|todo|to-do-|pack|wunsch|ideen|merk|lese)?liste",
}
# The subject of a declaration is a plain noun phrase; one with a clause in it may be the object of a question.
_SUBJECT_EN = r"(?:(?!\b(?:that|which|what|who|whoever|whom|whether|if|why|how)\b)[^,])*?"
_SUBJECT_DE = r"(?:(?!\b(?:dass|ob|warum|wie|welche\w*)\b)[^,])*?"
_WRITTEN_THINGS = (
    r"(?:list|table|sum|total|file|names?|lines?|report|summary|numbers?|result|text|letter|note|words?|rows?|"
    r"titles?|answer|date|amount|average|count|content|poem|story|code|plan)"
)

_ORDERS: dict[Language, dict[Effect, _Orders]] = {
    "en": {
        "write": _Orders(
            begins=(
                r"(?:new\s+|a\s+)?(?:calendar|diary|journal)\s+entry\b(?!\s+(?:with|of|that|which|on|from|in)\b)",
                r"(?:can\s+(?:you|u)\s+|could\s+you\s+)?(?:move|switch|swap|shift|exchange)\b(?!\s+(?:on|off)\b)",
                rf"(?:a\s+)?(?:new\s+)?table\s+{_FILE}\s+of\b",
                r"(?:fill|block)\s+my\s+calendar\b|file\s+(?:the|my|this|that)\s+(?:\w+\s+){0,3}?attachments?\b",
                rf"{_SUBJECT_EN}\bshould\s+(?:also\s+|now\s+)?(?:go\s+(?:in|into|on|onto|to)|stand\s+in|be\s+(?:in|on|called|"
                rf"named|the)|contain|list|last|start|end|move|trade|have\s+(?:the|a|an|every|all|one)\s)",
                rf"(?!(?:i|we|you|he|she|they)\b){_SUBJECT_EN}\b(?:go|goes|belongs?)\s+(?:on|in|into|to)\s+"
                rf"(?:(?:the|my|our)\s+)?(?:\w+\s+){{0,3}}(?:list|calendar|folder|{_FILE})\b",
                r"i\s+(?:want|need|would\s+like)\s+(?!a\s+gap|to\b)[^,]*\bin\s+my\s+calendar\b",
            ),
            places=(
                r"\b(?:into|onto|to)\s+(?:the|my|our)\s+(?:\w+\s+)?(?:calendar|cal|list)\b",
                r"\b(?:into|onto|to)\s+(?:calendar|cal|diary)\s*$|\binto\s+(?:the|my|our)\s+(?:\w+\s+)?(?:log|journal|diary|\w*book)\b",
                rf"\b(?:to|into|stored\s+in|written\s+to|kept\s+in|saved\s+in|draft\s+in)\s+{_FILE}",
                rf"{_SHIFT}|{_ARROW_PLACE}|\bas\s+a\s+(?:new\s+)?table\s+{_FILE}",
            ),
            stays=(
                r"\bin\s+(?:(?:my|the|our)\s+)?(?:calendar|cal)\s*$",
                rf"\bon\s+(?:the|my|our)\s+{_LISTS['en']}\s*$",
            ),
        ),
        "send": _Orders(
            begins=(
                r"(?:can\s+(?:you|u)\s+|could\s+you\s+)?write\s+back\b",
                r"(?:can\s+(?:you|u)\s+|could\s+you\s+)?pass\s+(?:\w+\s+){1,8}on\b",
                rf"(?:can\s+(?:you|u)\s+|could\s+you\s+)?write\s+(?:to\s+)?(?:the|my|our|its|their|each|every|all)\s+"
                rf"(?!(?:\w+\s+){{0,2}}{_WRITTEN_THINGS}\b)(?!.*{_FILE})(?:\w+\s+){{1,3}}(?:that|whether|if|why|how|when)\b",
                rf"write\s+(?:it|each\b.*|them)\s+to\s+(?!{_FILE})(?:them|him|her|everyone|everybody|"
                r"(?:all|each|every)\s+(?!files?\b|lines?\b|rows?\b)\w+)\b|write\s+it\s*$",
                r"(?:e-?)?mail\s+(?:to|for)\s+(?!q{3,}|me\b|us\b)[^,]*?\b(?:that|whether|if)\b",
                r"attach\b.*\bto\s+an?\s+(?:e-?)?mail\b",
                r"i(?:'d|\s+would)?\s+(?:want|like|need)\s+to\s+(?:thank|inform|invite|remind|ask|tell)\s+(?!me\b|us\b)\w",
                rf"{_SUBJECT_EN}\bshould\s+(?:get|receive|hear|know|learn)\b.*\b(?:(?:e-?)?mails?|reminders?|attach\w+|"
                r"invitations?|itinerary)\b",
                rf"{_SUBJECT_EN}\bshould\s+(?:know|hear)\s+(?:that|about)\b",
            ),
            places=(
                # `A mail to Kim was lost` has a verb, and is none.
                r"^(?:in\s+)?(?:(?:an?|one|single|separate|same)\s+)*(?:(?:quick|short|brief|friendly|polite|nice)\s+)*(?:e-?)?mail\s+"
                r"(?:to|for)\s+(?!q{3,}|me\b|us\b)\w",
                r"^to\s+(?!q{3,}|me\b|us\b)\w[^,]*\bby\s+(?:e-?)?mail\s*$|^by\s+(?:e-?)?mail\s+to\s+(?!q{3,}|me\b|us\b)\w",
                r"^(?:an?\s+)?(?:(?:quick|short|brief|friendly)\s+)*(?:note|message|reply|answer)\s+to\s+"
                r"(?!q{3,}|me\b|us\b|self\b|myself\b|(?:the|my|this|that)\s+(?:\w+\s+)?questions?\b)\w",
                r"^(?:my|our)\s+(?:\w+\s+)?(?:wishes|congratulations|condolences|apologies|greetings|regards|thanks)\s+to\s+"
                r"(?!me\b|us\b)\w",
                _ARROW_PERSON,
            ),
        ),
        "irreversible": _Orders(
            begins=(
                r"(?:can\s+(?:you|u)\s+|could\s+you\s+)?(?:take|get)\b.*\b(?:out\s+of|off)\s+(?:my|the|our)\s+calendar\b",
                r"out\s+of\s+(?:my|the|our)\s+calendar\s*$",
            ),
        ),
    },
    "de": {
        "write": _Orders(
            begins=(
                rf"{_SUBJECT_DE}\bsoll(?:en)?\b.*\b(?:auf|in)\s+(?:den|die|das|meinen?|unseren?)\s+"
                r"(?:\w*kalender|\w*liste|ordner)\b",
                rf"{_SUBJECT_DE}\bsoll(?:en)?\b.*\b(?:heissen|heisen|dauern)\b|aus\s+dem\s+termin\b.*\bwird\b",
                r"(?:kannst\s+(?:du\s+)?|konntest\s+du\s+)?(?:ver)?schieb(?:e|en|t)?\b",
                r"(?:trags|trage?\s+(?:es|das|sie|ihn))\b.*\b(?:ein|nach)\b|schreibe?\s+(?:es|das|sie|ihn)\b.*\bdazu\b",
                r"schreibe?\b.*\bauf\s+die\s+\w*liste\b",
                rf"(?:\w+\s+){{0,4}}komm(?:t|en)\s+(?:\w+\s+){{0,3}}in\s+{_FILE}",
                r"(?:\w+\s+)?(?:gehort|gehoren)\s+in\s+(?:den|die|das)\s+(?:\w+\s+)?\w*(?:ordner|liste|kalender)\b",
                rf"{_SUBJECT_DE}\bsoll(?:en)?\b.*\bim\s+ordner\b.*\bliegen\b",
                rf"{_SUBJECT_DE}\b(?:muss|mussen|soll|sollen)\b[^,]*\bauf\s+eine?n?\s+andere[nr]?\s+(?:tag|zeit|termin|woche|uhrzeit|stunde)\b",
                r"lege?\s+(?:sie|ihn|es|den|die|das)\b.*\bauf\s+(?:eine?n?\s+andere[nr]?|den|nachste[nr]?|morgen|\w+tag)\b",
                r"kannst\s+(?:du\s+)?.*\b(?:legen|verschieben|eintragen|setze?n)\s*$|mache?\s+(?:mir\s+)?.*\beinen\s+termin\b",
                r"raume?\b.*\bin\s+den\s+ordner\b|mach(?:e)?\s+(?:mir\s+)?einen\s+(?:kalendereintrag|termin)\b",
            ),
            places=(
                r"\bin\s+(?:den|meinen|unseren)\s+\w*(?:kalender|ordner)\b|\bin\s+kalender\b|\bins\s+[\w-]*(?:buch|heft|protokoll)\b",
                rf"\b(?:auf|in)\s+(?:die|meine|unsere)\s+{_LISTS['de']}\b",
                r"\bkalendereintrag\b|^neue[rn]?\s+(?:zeile|eintrag)\b|\bins\s+erste\s+freie\b",
                rf"\b(?:nach|neue\s+datei|eine\s+datei)\s+{_FILE}|^(?:ergebnis|namen)\b.*\bin\s+{_FILE}",
                rf"\bin\s+{_FILE}\s+(?:festhalten|schreibe?n|sammeln|speichern|notieren)\b",
                rf"\bhintereinander\s+in\s+{_FILE}|\b(?:schieben|verschieben|dazuschreiben)\s*$|{_SHIFT}|{_ARROW_PLACE}",
                r"\bauf\s+(?:nachste[nr]?|den|morgen|\w+tag)\b.*\blegen\s*$",
                r"\beine\s+kopie\s+(?:ins|in\s+den|in\s+die)\b|\btermine?\b.*\d\s+(?:minuten|stunden?|min)\s+(?:spater|fruher)\s*$",
                r"\bauf\s+(?:die\s+)?\w+liste\s+(?:schreibe?n|setze?n)\b|^termin\s+mit\b",
            ),
        ),
        "send": _Orders(
            begins=(
                rf"(?:die\s+|eine\s+)?mail\s+{_QUOTE}",
                r"gib\s+(?!mir\b|uns\b).*\b(?:bescheid|per\s+mail)\b|sage?\s+(?!mir\b|uns\b).*\bper\s+mail\b",
                rf"{_SUBJECT_DE}\bsoll(?:en)?\b.*\b(?:erfahren|wissen|eingeladen\s+werden)\b",
                rf"{_SUBJECT_DE}\bsoll(?:en)?\b.*\b(?:mail|erinnerung|nachricht)\b.*\b(?:bekommen|kriegen)\b",
                r"[^,]*\b(?:bekommt|kriegt|bekommen)\s+(?:\w+\s+)?(?:eine|ne|die)\s+(?:mail|erinnerung|nachricht)\b(?!\s+von\b)",
                r"(?:die|eine|diese)\s+mail\b.*\bsoll\b.*\bbekommen\b",
                r"(?:jede\s+|die\s+)?mail\b.*\b(?:braucht\s+eine\s+antwort|bekommt\s+als\s+antwort)\b",
                r"(?:eine\s+)?(?:einladung|anfrage|absage|zusage|newsletter|unterlagen)\b[^,]*\ban\s+(?:alle|\w+\s*$)",
                r"(?:kannst\s+(?:du\s+)?)(?:der|dem|den)\s+\w+\s+schreibe?n\b|newsletter\s+raus\b",
            ),
            places=(
                r"^(?:in\s+)?(?:(?:eine[rm]?|ne|ner|kurzen?|nette[nr]?|einzigen|derselben)\s+)*(?:e-?)?mail\s+an\s+(?!mich\b|q{3,})\w",
                r"^(?:(?:eine|ne|kurze|liebe|nette)\s+)*(?:nachricht|antwort|info|zeile|ruckmeldung)\s+an\s+(?!mich\b|uns\b|q{3,})\w",
                r"^(?:(?:meine|unsere|viele|liebe|schone|herzliche)\s+)+(?:grusse|gruse|gluckwunsche|wunsche)\s+an\s+(?!mich\b|uns\b)\w",
                r"\b(?:anmailen|einladen|informieren|benachrichtigen)\b",
                r"\bper\s+mail\s+(?:an\s+(?!mich\b)\w|bescheid|zusagen|absagen|sagen)|\bals\s+anhang\s+an\s+\w",
                rf"\beine\s+(?:bestell)?mail\s*(?:{_QUOTE})?\s*$|{_ARROW_PERSON}",
            ),
        ),
        "irreversible": _Orders(
            begins=(
                r"(?:kannst\s+(?:du\s+)?)?nimm\b.*\baus\s+(?:dem|meinem)\s+kalender\b|weg\s+damit\b",
                r"[^,]*\braus\s+aus(?:\s+dem|\s+meinem|m)\s+kalender\b",
            ),
            places=(
                r"\baus\s+(?:dem|meinem)\s+kalender\s+(?:nehmen|streichen|raus)\b|\btermine?\b.*\braus\s*$",
                r"\*\.\w+\s+weg\b",
            ),
        ),
    },
    "fr": {
        "write": _Orders(
            begins=(
                r"(?:peux-tu\s+|(?:il\s+)?faut\s+)?(?:corrig|adapt|remplac|rajout|actualis|ray|decal|dupliqu|plac|cal|cas)"
                r"(?:e|er|ez)(?:-\w+)*\b",
                rf"(?:ecris-moi|classe|convertis|range|mets)\b.*\b(?:dans|en|ds)\s+{_FILE}",
                rf"(?:je\s+(?:veux|voudrais)|il\s+me\s+faut|j'ai\s+besoin)\b.*\bun\s+fichier\s+{_FILE}|je\s+veux\s+{_FILE}",
                rf"(?:je\s+voudrais|je\s+veux|il\s+me\s+faut)\s+{_QUOTE}\s+dans\s+(?:l'|mon\s+)(?:agenda|calendrier)\b",
                r"[^,]*\bdoi(?:t|vent)\s+(?:etre\s+dans|s'appeler|desormais\s+s'appeler)\b|rappel\s+agenda\b",
            ),
            places=(
                rf"\bresultat\s+(?:dans|ds)\s+{_FILE}|{_SHIFT}|{_ARROW_PLACE}|^(?:un\s+)?brouillon\b.*\b(?:dans|ds)\s+{_FILE}",
                r"\ba\s+(?:l'|mon\s+)(?:agenda|calendrier)\b|\ba\s+(?:la|ma)\s+liste\b",
            ),
            stays=(r"\b(?:dans|ds)\s+(?:l'|mon\s+)(?:agenda|calendrier)\s*$",),
        ),
        "send": _Orders(
            begins=(
                r"(?:mail|mot|message|courriel)\s+(?:a|au|aux)\s+(?!moi\b|q{3,})[^,]*?\b(?:que|qui|q)\b",
                r"(?:dis|demande|demande-lui|convoque|previens|reserve|propose|fais\s+partir)\b(?!-moi).*\bpar\s+(?:e-?)?mail\b",
                r"par\s+mail\s*$|[^,]*\bdoi(?:t|vent)\s+recevoir\b.*\bmail\b|[^,]*\battend\s+une\s+reponse\b",
                r"(?:il\s+)?faut\s+(?:l'|les\s+|le\s+|la\s+)envoyer\b",
            ),
            places=(
                r"^(?:dans\s+)?(?:(?:un|seul|petit|meme)\s+)*(?:mail|mot|message|courriel)(?:\s+de\s+\w+)?\s+(?:a|au|aux|pour)\s+"
                r"(?!moi\b|q{3,})\w",
                r"^par\s+(?:e-?)?(?:mail|courriel)\s+(?:a|au|aux)\s+(?!moi\b)\w",
                r"^(?:(?:une|petite)\s+)*reponse\s+(?:a|au|aux)\s+(?!moi\b|(?:la|ma|cette|ces|mes)?\s*questions?\b)\w",
                r"^(?:mes|nos)\s+(?:\w+\s+)?(?:voux|felicitations|condoleances|excuses|remerciements|salutations)\s+(?:a|au|aux)\s+\w",
                r"\b(?:rappel|resume\b.*|un\s+mail)\s+par\s+mail\s+(?:a|au|aux)\s+\w",
                _ARROW_PERSON,
            ),
        ),
        "irreversible": _Orders(begins=(r"vire\s+(?:le|la|mon|ma)\s+(?:rdv|rendez-vous)\b|vide\s+mon\s+agenda\b",)),
    },
    "es": {
        "write": _Orders(
            begins=(
                r"(?:re|a)trasa(?:r|lo|la)?\b|(?:sustituye|reemplaza|corrige|corrigelo|corrigela|pone)\b",
                r"(?:descarga|baja)\b.*\badjunt[oa]s?\b|descarga(?:lo|la)\b",
                r"pasa\b.*\bal?\s+(?:la\s+)?(?:lunes|martes|miercoles|jueves|viernes|sabado|domingo|agenda|calendario|lista)\b",
                r"(?:pasa|organiza)\b.*\ben\s+(?:la|el|mi)\s+(?:agenda|calendario)\b|ordena\b.*\ben\s+(?:sub)?carpetas\b",
                r"(?:quita|elimina|borra|deja)\b.*\b(?:lista|tabla)\b|crea(?:lo|la)\b",
                rf"en\s+{_FILE}\s+(?:quiero|dejame|pon)\b|(?:lista|numera|resume|convierte\w*)\b.*\ben\s+{_FILE}",
                rf"quiero\b.*\b(?:archivo|nombre)\s+{_FILE}|prepara\b.*\ben\s+{_FILE}|tabla\s+{_FILE}\s+con\b",
                r"evento\s+(?!con\s+mas\b|que\b|mas\b)\w|[^,]*\btiene\s+que\s+llamarse\b",
            ),
            places=(
                rf"\ba\s+{_FILE}|\barchivo\s+nuevo\s+{_FILE}|\bjuntos\s+en\s+{_FILE}|{_SHIFT}|{_ARROW_PLACE}",
                r"\b(?:al|a\s+la|a\s+mi)\s+(?:agenda|calendario|lista|carpeta)\b|\bprimer\s+hueco\b|^(?:borrador|resumen)\b.*\ben\s+q{3,}",
            ),
        ),
        "send": _Orders(
            begins=(
                r"(?:correo|mail|mensaje)\s+(?:a|al|para)\s+(?!mi\s*$|q{3,})[^,]*?\b(?:que|q)\b",
                r"un\s+(?:solo\s+)?(?:correo|mail)\s+(?:con|x|por)\b|escrib(?:e|i|ir)(?:les?|selo|sela)\b",
                r"(?:hay\s+que\s+)?escrib(?:e|a|ir)\s+un\s+correo\b|felicita\b.*\b(?:por|x)\s+(?:correo|mail)\b",
                r"pasa(?:le|les)?\s+al?\b.*\bpor\s+correo\b|[^,]*\bdeben?\s+recibir\b.*\b(?:correo|mail)\b",
            ),
            places=(
                r"^(?:en\s+)?(?:(?:un|solo|otro|mismo|unico)\s+)*(?:correo|mail|mensaje)(?:\s+de\s+\w+)?\s+(?:a|al|para)\s+"
                r"(?!mi\s*$|q{3,})\w",
                r"^(?:una\s+)?respuesta\s+(?:a|al|para)\s+(?!mi\s*$|(?:la|mi|esta|las)\s+preguntas?\b)\w",
                r"^(?:mis|nuestr[oa]s)\s+(?:\w+\s+)?(?:felicitaciones|condolencias|disculpas|saludos|deseos)\s+(?:a|al|para)\s+\w",
                r"\b(?:por|x)\s+(?:correo|mail)\s+al?\s+(?!mi\s*$)\w|\bal?\s+(?:la\s+)?\w+\s+(?:por|x)\s+(?:correo|mail)\s*$",
                _ARROW_PERSON,
            ),
        ),
        "irreversible": _Orders(),
    },
}

_DAYS_EN = r"(?:(?:tomorrow|tmrw|today|tonight|on|at|in|next|the|\w+day|\d[\d:.]*|am|pm|o'clock)\s+)*"
_DAYS_DE = (
    r"(?:(?:morgen|heute|ubermorgen|am|um|in|nachste[nr]?|\w+tag|mittwoch|\d[\d:.]*|uhr|h|fruh|"
    r"abend|mittag|vormittag|nachmittag|bitte)\s+)*"
)
_DAYS_FR = (
    r"(?:(?:demain|apres-demain|aujourd'hui|ce|soir|matin|midi|a|le(?=\s+(?:\w+di\b|\d))|\w+di|"
    r"dimanche|prochain|\d[\d:.h]*|h|heures?)\s+)*"
)
_DAYS_ES = r"(?:(?:manana|pasado|hoy|el|a|las|la|lunes|martes|miercoles|jueves|viernes|sabado|domingo|\d[\d:.]*)\s+)*"
# A mail that reminds somebody is none of these; `Set a reminder to mail Kim` is one.
_NO_MAIL = r"(?!.*\b(?:by|per|par|por|x|via)\s+(?:e-?)?(?:mails?|correos?|courriels?)\b)"
# A reminder is an event. What asks for something that the user forgot (`Remind me what the code is`) is no order, and
# no such clause comes here.
_REMINDERS: dict[Language, _Orders] = {
    "en": _Orders(
        begins=(
            rf"{_DAYS_EN}(?:can\s+(?:you|u)\s+|could\s+you\s+)?(?:remind|nudge)\s+(?:me|us)\b",
            r"ping\s+(?:me|us)\s+.*\b(?:about|to|for|when)\b|don'?t\s+let\s+(?:me|us)\s+forget\b",
            rf"{_NO_MAIL}(?:can|could|may|might)\s+(?:i|we)\s+(?:please\s+)?(?:get|have)\s+(?:an?|another)\s+(?:\w+\s+)?reminder\b"
            r"(?!\s+(?:of|about)\b)",
            rf"{_SUBJECT_EN}\bi(?:'d|\s+would)?\s+(?:want|like|need)\s+to\s+be\s+reminded\b",
            rf"{_NO_MAIL}(?:can\s+(?:you|u)\s+|could\s+you\s+)?(?:set|give|make|create|put|add)\s+(?:(?:me|us|in|up)\s+)*"
            r"(?:an?|another)\s+(?:\w+\s+)?reminder\b",
            rf"{_NO_MAIL}i(?:'d|\s+would)?\s+(?:need|want|like)\s+(?:an?|another)\s+(?:\w+\s+)?reminder\b",
        ),
        places=(rf"^{_DAYS_EN}(?:an?\s+)?reminder\b(?!\s+(?:from|of|by|that|with|about)\b){_NO_MAIL}",),
    ),
    "de": _Orders(
        begins=(
            rf"{_DAYS_DE}erinn?ere?\s+(?:mich|mi|uns)\b|ich\s+(?:will|mochte)\b[^,]*\berinnert\s+werden\b",
            r"(?:kannst|konntest)\s+du\s+(?:mich|uns)\b[^,]*\berinnern\b",
            rf"{_NO_MAIL}(?:kannst\s+(?:du\s+)?)?(?:stelle?|mache?|lege?|setze?|trage?)\b[^,]*\beine?\s+erinnerung\b",
            rf"{_NO_MAIL}ich\s+brauche?\b[^,]*\beine?\s+erinnerung\b",
            rf"{_NO_MAIL}(?:kann|konnte|durfte|konnen|konnten)\s+(?:ich|wir)\b[^,]*\beine\s+erinnerung"
            r"(?:\s+(?:bekommen|haben|kriegen))?\s*$",
            r"lasse?\s+(?:mich|uns)\b[^,]*\bnicht\b[^,]*\bvergessen\b",
        ),
        places=(
            rf"^{_DAYS_DE}(?:eine\s+)?erinnerung\b(?!\s+(?:von|vom|aus|mit)\b){_NO_MAIL}",
            # Who is reminded is left out, so it is the user: `Kim an den Termin erinnern` is a message.
            rf"^{_DAYS_DE}(?:(?:mich|uns)\s+)?(?:an|ans|daran|dran|wegen)\b[^,]*\berinnern\s*$",
        ),
    ),
    "fr": _Orders(
        begins=(
            rf"{_DAYS_FR}rappelle(?:z)?[-\s](?:le[-\s])?(?:moi|nous)\b|fais(?:-|\s)moi\s+penser\b",
            r"(?:peux|pourrais)-tu\s+(?:me|nous)\s+rappeler\b|(?:pense(?:z)?\s+a\s+)?(?:me|nous)\s+rappeler\b",
            rf"{_NO_MAIL}(?:est-ce\s+que\s+)?(?:(?:je|on|nous)\s+(?:peux|pourrais|peut|pourrait|pouvons|pourrions)|"
            r"(?:puis|pourrais)-je)\s+avoir\s+un\s+(?:\w+\s+)?rappel\b(?!\s+(?:de\s+(?:la|ce)|du|des)\b)",
            rf"{_NO_MAIL}(?:mets|cree|ajoute)(?:[-\s](?:moi|nous))?\s+un\s+rappel\b",
            rf"{_NO_MAIL}(?:je\s+(?:veux|voudrais)|il\s+(?:me\s+)?faut)\s+un\s+rappel\b",
        ),
        places=(rf"^{_DAYS_FR}(?:un\s+)?rappel\b(?!\s+(?:du|de\s+la|des|recu)\b){_NO_MAIL}",),
    ),
    "es": _Orders(
        begins=(
            rf"{_DAYS_ES}recuerda(?:me|nos)(?:lo|la)?\b|(?:me\s+)?(?:puedes|podrias)\s+recordar(?:me|nos)?\b",
            rf"recordar(?:me|nos)\b|{_NO_MAIL}(?:puedo|podria|podemos|podriamos)\s+tener\s+un\s+(?:\w+\s+)?recordatorio\b"
            r"(?!\s+(?:de\s+(?:lo|la)|del)\b)",
            rf"{_NO_MAIL}(?:pon|ponme|crea|creame|anade|haz|hazme|quiero|necesito)\s+(?:un|otro)\s+recordatorio\b",
        ),
        places=(rf"^{_DAYS_ES}(?:un\s+)?recordatorio\s+(?!con\s+mas\b|que\b|mas\b|del\b){_NO_MAIL}\w",),
    ),
}

# A clause that lists, counts or looks for what is somewhere: `the number of things in my calendar`.
_LISTING = lazy_pattern(
    r"^(?:the|my|our|all|every|everything|anything|things?|stuff|events?|number|free|first|next|last|only|those|these|"
    r"le|la|les|mes|mon|ma|tout|tous|toutes|nombre|premier|prochain|dernier|ce|des|du|de)\b"
    r"|\b(?:number|things?|events?|gap|slot|free|everything|anything|conflicts?|nombre|trucs?|evenements?|creneau)\b"
)
# A plural before the place lists as well (`birthdays in my calendar`), unless it is a name (`lunch with Nils in …`).
_PLURAL = lazy_pattern(r"(?<!\w)[^\W\d_A-ZÀ-Þ]\w+[^\Ws]s\s+(?:in|on|dans|ds)\s")
# `Write Samir which …`: a name after the verb, which only its capital letter tells.
_WRITE_NAME = lazy_pattern(
    r"(?:[Cc](?:an|ould)\s+(?:you|u)\s+)?[Ww]rite\s+[A-Z]\w+\s+(?:that|which|what|when|why|how|whether|if|the|a|an|up|we|my|with)\b"
    r"|(?:[Cc](?:an|ould)\s+(?:you|u)\s+)?[Ww]rite\s+(?:it|them|this)\s+to\s+[A-Z]"
)
# `Write Kim: …`
_WRITE_NAME_COLON = lazy_pattern(r"(?:[Cc](?:an|ould)\s+(?:you|u)\s+)?[Ww]rite\s+(?:to\s+)?[A-Z]\w+\s*")
# `Write Kim, subject …`
_LABEL = lazy_pattern(r",\s*(?:with\s+)?(?:the\s+)?(?:subject|title|body|text)\b")


@dataclass(frozen=True, slots=True)
class _Patterns:
    begins: re.Pattern[str] | None
    places: re.Pattern[str] | None
    stays: re.Pattern[str] | None


def _compiled(forms: tuple[str, ...]) -> re.Pattern[str] | None:
    return lazy_pattern("|".join(forms)) if forms else None


def _patterns(orders: _Orders) -> _Patterns:
    return _Patterns(_compiled(orders.begins), _compiled(orders.places), _compiled(orders.stays))


_PATTERNS: dict[Language, dict[Effect, _Patterns]] = {
    language: {effect: _patterns(each) for effect, each in orders.items()} for language, orders in _ORDERS.items()
}
_REMINDER_PATTERNS: dict[Language, _Patterns] = {language: _patterns(each) for language, each in _REMINDERS.items()}


def effects_in_targets(request: str) -> frozenset[Effect]:
    """The effects that a request orders by where something goes or who should get it.

    Example:
        >>> sorted(effects_in_targets("Milk on the shopping list, please"))
        ['write']
        >>> sorted(effects_in_targets("Is there milk on the shopping list?"))
        []
    """
    found: set[Effect] = set()
    language = guess_language(request)
    message: int | None = None
    labelled = language == "en" and _LABEL.search(request) is not None
    for clause in ordering_clauses(request, language, known=_writes_with_subject):
        # What follows `mail to Kim:` in the sentence is the text of the mail, whatever it tells Kim to do.
        if clause.sentence == message:
            continue
        # A reminder as well: `Remind me tomorrow: mail to Kim` sends nothing, and neither does what is joined to it.
        if _is_reminder(clause, language):
            found.add("write")
            message = clause.sentence
            continue
        ordered = _effects_in_clause(clause, language, labelled=labelled)
        if "send" in ordered and clause.opens:
            message = clause.sentence
        found |= ordered
    return frozenset(found)


def _writes_with_subject(clause: str) -> bool:
    return _WITH_SUBJECT.match(clause) is not None


# A subject is no sign of somebody's words here.
_WITH_SUBJECT = lazy_pattern(
    r"(?:can\s+(?:you|u)\s+)?write\s+(?:to\s+)?\w+\s+with\s+(?:the\s+|an?\s+)?(?:subject|title)\b"
)


def _languages(language: Language) -> tuple[Language, ...]:
    # A short Spanish request may have only words that are French as well.
    return ("fr", "es") if language in ("fr", "es") else (language,)


def _is_reminder(clause: Clause, language: Language) -> bool:
    return any(_matches(_REMINDER_PATTERNS[each], clause, each) for each in _languages(language))


def _effects_in_clause(clause: Clause, language: Language, *, labelled: bool) -> set[Effect]:
    """The effects of one clause; `labelled` if the request names the parts of a mail, such as its subject."""
    found: set[Effect] = {
        effect
        for each in _languages(language)
        for effect, patterns in _PATTERNS[each].items()
        if _matches(patterns, clause, each)
    }
    if clause.elliptical and ((clause.follows and _ADDED.match(clause.text)) or _ADDED_TO_LIST.match(clause.text)):
        found.add("write")
    writes_name = _WRITE_NAME.match(clause.spelled) or (
        (clause.opens or labelled) and _WRITE_NAME_COLON.fullmatch(clause.spelled)
    )
    if language == "en" and writes_name and not re.search(_FILE, clause.text):
        found.add("send")
    return found


# `shopping list: + bread`, in any language.
_ADDED = lazy_pattern(r"\+\s+[a-z]")
# `packing list += soap`, in any language; `x += 1` is no list. A plus alone joins what is read (`list + total`), unless
# the list is one to which things are added.
_ADDED_TO_LIST = lazy_pattern(
    rf"(?:[\w'-]+\s+){{0,3}}?(?:[\w-]*(?:lists?|liste|lista|notes|notizen|notas|zettel)|{_FILE})(?:\s+(?!\+)[\w']+){{0,4}}\s*\+=\s*\w"
    rf"|(?:[\w'-]+\s+)?(?:{_LISTS['en']}|(?:einkaufs|todo|to-do-|pack|wunsch|merk|lese)liste|liste\s+de\s+courses|"
    r"lista\s+de\s+(?:la\s+)?compras?)\s+\+\s+\w"
)


def _matches(patterns: _Patterns, clause: Clause, language: Language) -> bool:
    if patterns.begins is not None and any(map(patterns.begins.match, imperatives(clause.text, language))):
        return True
    if not clause.elliptical:
        return False
    if patterns.places is not None and patterns.places.search(clause.text):
        return True
    return (
        patterns.stays is not None
        and patterns.stays.search(clause.text) is not None
        and _LISTING.search(clause.text) is None
        # The first letter of a clause may be a capital for that alone.
        and _PLURAL.search(clause.spelled[:1].lower() + clause.spelled[1:]) is None
    )
