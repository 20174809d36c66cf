"""Orders that need a tool of their own, such as a phone call, a payment or a reservation, in four languages.

Rules know the orders to write, send and delete by what people say. What else people order from an assistant stands
here: verbs at the beginning of a clause, and words that order something wherever they stand. An order is served if the
name or the description of a trusted tool has a word for it. The tables need not be complete: they only keep a refusal
from being overridden.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bicameral.planning._capabilities import has_tool_word
from bicameral.planning._clauses import MOST_LETTERS, only_asks, ordering_clauses
from bicameral.planning._language import guess_language
from bicameral.planning._non_orders import without_drafts_and_prohibitions
from bicameral.text import lazy_pattern
from bicameral.tools import Registry


@dataclass(frozen=True, slots=True)
class _Demand:
    """An order that needs a tool of its own, and the words of tools that serve it."""

    pattern: re.Pattern[str]
    tools: tuple[str, ...]


def _demand(tools: str, *forms: str) -> _Demand:
    return _Demand(lazy_pattern(rf"(?:{'|'.join(forms)})(?!\w)"), tuple(tools.split()))


# Where politeness and auxiliaries stand before the verb of a clause.
_OPENING = lazy_pattern(
    r"^(?:(?:can|could|would|will)\s+(?:you|u)\s+|(?:i\s+)?(?:want|need)\s+(?:you\s+)?to\s+|i'd\s+like\s+(?:you\s+)?to\s+|"
    r"please\s+|just\s+|also\s+|(?:kannst|konntest|wurdest)\s+du\s+|bitte\s+|mal\s+|(?:peux|pourrais)[-\s]tu\s+|"
    r"tu\s+(?:peux|pourrais)\s+|(?:pouvez|pourriez)[-\s]vous\s+|(?:me\s+)?(?:puedes|podrias|podes|puede|podria)\s+|me\s+)*"
)
_MEETING = (
    r"meetings?|appointments?|slots?|times?|hours?|rooms?|calls?|events?|calendar|termin\w*|kalender|besprechung\w*|"
    r"rendez-vous|rdv|reunion\w*|creneaux?|agenda|citas?|calendario|hueco"
)
# Verbs at the beginning of a clause, in four languages: what people order from assistants and few registries have.
_DEMANDS: tuple[_Demand, ...] = (
    _demand(
        "call phone dial ring",
        r"(?:call|phone|ring|dial)(?!\s+(?:it|them|this|that|off|(?:the|a)\s+(?:new\s+)?(?:file|folder|event|column|table|"
        r"result|appointment|meeting))\b)",
        r"ruf\w*(?!.*\bseite\b)|telefonier\w*",
        r"(?:appelle|appeler|appelez|telephone|telephoner)(?:-\w+)*",
        r"llama\w*",
    ),
    _demand(
        "pay payment transfer money wire transaction",
        r"pay|wire|transfer(?=.*\b(?:\d|money|euros?|dollars?|account|rent)\b)|bezahl\w*|uberweis\w*",
        r"pai\w*|paye\w*|vire(?:r|z)?(?=.*\b(?:\d|euros?|compte)\b)|regle(?:r|z)?|paga\w*|transfier\w*",
    ),
    _demand(
        "order buy purchase shop cart",
        r"buy|purchase|order(?!\s+(?:by|it|them|the\s+(?:rows|lines|list|entries|files|table|events))\b)",
        r"bestell\w*|kauf\w*|commande\w*|achete\w*|compra\w*|pide\w*|pedir\w*",
    ),
    _demand(
        "book reserve reservation rent",
        rf"(?:book|reserve|buche?n?|reserviere?n?|reserve[rz]?|reserva\w*)(?!.*\b(?:{_MEETING})\b)",
    ),
    _demand(
        "play music",
        r"play|spiel\w*|joue\w*|reproduc\w*|toca\w*|pon(?:me)?\s+(?:la\s+)?musica|mets\s+de\s+la\s+musique",
    ),
    _demand("print printer", r"print(?=.*\b(?:out|paper|printer|copies)\b)|druck\w*|imprim\w*"),
    _demand(
        "turn switch light device power",
        r"(?:turn|switch)\b.*\b(?:on|off|up|down)|dim|schalt\w*|mach\w*\b.*\b(?:an|aus)$|allum\w*|etein\w*|enciend\w*|apaga\w*",
    ),
    _demand(
        "alarm timer wake",
        r"wake|weck\w*|reveille\w*|despiert\w*|(?:set|stell\w*|mets|pon\w*)\b.*\b(?:alarms?|timers?|wecker|reveil|alarma|"
        r"despertador|temporizador|minuteur)",
    ),
    _demand(
        "photo picture camera scan record video screenshot",
        r"(?:take|make)\s+(?:a|some)\s+(?:\w+\s+)?(?:photos?|pictures?|selfie|screenshots?|video)|scan\w*|film\w*|photograph\w*",
        r"record\b.*\b(?:audio|video|voice|sound|screen|call)|fotografier\w*|prends?\b.*\bphotos?|numeris\w*|escane\w*|"
        r"(?:haz|saca|hazme|sacame)\b.*\bfotos?|graba\b.*\b(?:audio|voz|video|llamada)",
    ),
    _demand(
        "sign signature",
        r"sign(?!\s+(?:in|up|off|out)\b)|unterschreib\w*|unterzeichne\w*|signe[rz]?|firma(?:r|me|lo|la)?",
    ),
    _demand("post publish tweet share message channel", r"post|publish|tweet|veroffentlich\w*|poste\w*|publi\w*"),
    _demand(
        "install uninstall restart reboot upgrade",
        r"(?:un)?install\w*|reboot|restart|upgrade|(?:de)?installier\w*|(?:des)?installe\w*|redemarre\w*|(?:des)?instala\w*|"
        r"reinicia\w*",
    ),
    _demand(
        "zip compress encrypt",
        r"zip\w*|compress|encrypt|komprimier\w*|verschlussel\w*|chiffr\w*|compresse\w*|comprim\w*|cifra\w*|encripta\w*",
    ),
    _demand(
        "restore recover undelete undo recall unsend",
        r"restore|recover|undelete|undo|unsend|recall|stell\w*\b.*\bwieder\s+her|hol\w*\b.*\bzuruck|restaur\w*|recuper\w*",
    ),
    _demand("unsubscribe", r"unsubscribe|bestell\w*\b.*\bab|abbestell\w*|desabonn\w*|(?:da|dame|date)\b.*\bde\s+baja"),
    _demand(
        "mark flag star label",
        r"mark\w*\b.*\b(?:as|als|comme|como)\s+(?:un)?(?:read|spam|important|gelesen|wichtig|lue?s?|importante?s?|leid[oa]s?)",
    ),
    _demand(
        "open close lock unlock door",
        r"(?:un)?lock|(?:open|close|shut)\b.*\b(?:doors?|gate|garage|windows?|blinds)|(?:offne|schliess\w*|mach\w*)\b.*\b"
        r"(?:tur|tor|garage|fenster|rollladen|jalousien?)|(?:ouvre|ferme)\b.*\b(?:porte|portail|volets?|fenetres?)|"
        r"(?:abre|cierra|sube|baja)\b.*\b(?:puerta|garaje|ventanas?|persianas?)",
    ),
    _demand(
        "password",
        r"(?:change|set|reset|replace|ander\w*|setz\w*|modifi\w*|chang\w*|remplac\w*|cambi\w*|pon\w*|neues)\b.*\b"
        r"(?:passwords?|passwort\w*|mots?\s+de\s+passe|contrasenas?)",
    ),
    _demand(
        "photo picture image edit crop rotate",
        r"(?:edit|retouch\w*|crop|rotate|bearbeit\w*|dreh\w*|edita\w*|gira\w*)\b.*\b(?:photos?|pictures?|images?|fotos?|"
        r"bild\w*)",
    ),
    _demand(
        "block",
        r"block\w*\b.*\b(?:senders?|callers?|numbers?|contacts?|absender|nummer|xxx)|"
        r"bloque\w*\b.*\b(?:expediteurs?|remitentes?|mail|xxx)",
    ),
    _demand(
        "share access permission",
        r"share\b.*\b(?:folders?|albums?|calendar|access)|partage\w*|comparte\w*|freigeb\w*|gib\b.*\bfrei",
    ),
    # German infinitives end the clause.
    _demand("call phone dial ring", r".*\b(?:anrufen|telefonieren)$"),
    _demand("pay payment transfer money wire transaction", r".*\b(?:bezahlen|uberweisen)$"),
    _demand("order buy purchase shop cart", r".*\b(?:bestellen|kaufen)$"),
    _demand("book reserve reservation rent", rf"(?!.*\b(?:{_MEETING})\b).*\b(?:reservieren|buchen|book\s+it)$"),
    _demand("print printer", r".*\b(?:aus)?drucken$"),
    _demand("turn switch light device power", r".*\b(?:ein|aus|an)(?:schalten|machen)$"),
    _demand("play music", r".*\babspielen$"),
    _demand("locate track location map", r"locate|track|navigate|orte|localis\w*|geolocalis\w*|ubica\w*|localiza\w*"),
)
_SENDING = r"(?<!\w)(?:send|schick\w*|verschick\w*|envoie\w*|envoyer|envia\w*|manda\w*)"
# What needs a tool of its own wherever it stands: certain things, sums that are sent, what shall happen later or often.
_NEEDS: tuple[_Demand, ...] = tuple(
    _demand(tools, rf"(?<!\w)(?:{forms})")
    for tools, forms in (
        ("whatsapp", r"whats-?app"),
        ("sms", r"sms|text\s+messages?|mensajes?\s+de\s+texto"),
        ("telegram", r"telegram"),
        ("instagram facebook twitter tiktok social", r"instagram|facebook|twitter|tiktok|insta"),
        ("fax", r"fax(?:en|e|er|ea)?"),
        ("taxi ride", r"taxis?|uber(?=\s+(?:to|home|zu|nach)\b)"),
        ("heating thermostat temperature", r"heating|thermostat|heizung|chauffage|radiateurs?|calefaccion"),
        ("light lamp", r"lights|licht|lumieres?|luces"),
        ("phone call", r"by\s+phone|telefonisch|par\s+telephone|por\s+telefono|phone\s+calls?"),
        ("printer print", r"printers?|drucker|imprimantes?|impresora"),
        ("pdf", r"(?:as|to|into|als|en|in)\s+(?:an?\s+|ein\w*\s+|une?\s+)?pdf"),
        ("camera", r"cameras?|kameras?|camaras?"),
        (
            "machine washer dishwasher oven",
            r"washing\s+machine|waschmaschine|lave-(?:linge|vaisselle)|lavadora|lavavajillas",
        ),
        (
            "password login portal form",
            r"kundenportal|(?:online|customer|their)\s+portal|log\s+in\s+to|formulaire\s+en\s+ligne",
        ),
        (
            "money payment transfer transaction pay",
            rf"{_SENDING}(?:\W+\w+){{0,4}}?\W+(?:\d+\s*(?:euros?|eur|usd|gbp|chf|dollars?|pounds?|€|\$)|money|geld|argent|dinero)",
        ),
        (
            "schedule later",
            rf"{_SENDING}(?:(?!\b(?:that|dass|que|about|zum|for)\b)[^:.])*\b(?:at\s+(?:midnight|exactly|\d)|um\s+\d|a\s+las\s|a\s+\d+\s?h)",
        ),
        (
            "watch monitor notify subscribe recurring repeat",
            r"as\s+soon\s+as|whenever|from\s+now\s+on|sobald|des\s+qu|en\s+cuanto|every\s+(?:night|hour|morning)|"
            r"jede\s+nacht|jeden\s+morgen|chaque\s+(?:nuit|matin)|cada\s+(?:noche|manana)",
        ),
        ("vacuum robot", r"vacuum|staubsauger|saugroboter|aspirateur|aspiradora"),
    )
)


def unserved_orders(request: str, registry: Registry) -> Iterator[str]:
    """The orders of a request that need a tool of their own which the registry does not have, each in its words.

    Quoted text and prohibitions order nothing.

    Example:
        >>> list(unserved_orders("Mail the list to Kim and call her", registry))
        ['call']
    """
    language = guess_language(request)
    for clause in ordering_clauses(request, language, known=_demands_something):
        yield from _unserved(_DEMANDS, without_opening(clause.text), registry, start=True)
    text = without_drafts_and_prohibitions(request[:MOST_LETTERS], language)
    # A question about a device is answered from what was noted of it: `How much did we pay for heating?`
    asks = only_asks(request, language)
    needs = [demand for demand in _NEEDS if not asks or _DEVICES.isdisjoint(demand.tools)]
    yield from _unserved(needs, text, registry, start=False)


_DEVICES = frozenset({"heating", "light", "printer", "camera", "machine", "vacuum"})


def _demands_something(clause: str) -> bool:
    return any(demand.pattern.match(without_opening(clause)) for demand in _DEMANDS)


def without_opening(clause: str) -> str:
    """A folded clause without politeness and auxiliaries before its verb: `could you please mail it`."""
    return _OPENING.sub("", clause, count=1)


def _unserved(demands: Sequence[_Demand], text: str, registry: Registry, *, start: bool) -> Iterator[str]:
    for demand in demands:
        found = demand.pattern.match(text) if start else demand.pattern.search(text)
        if found and not has_tool_word(registry, demand.tools):
            yield found[0]
