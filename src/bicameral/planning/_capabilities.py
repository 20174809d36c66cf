"""What a sentence says that a tool does, and whether a tool does that: an action and its objects, in four languages.

`claimed_capability` reads "sends mails", "das Mails verschickt", "qui envoie des mails" or "para enviar correos".
`serving_tools` finds the tools that do it, by the effect that they declare and the words of their name and their
description. Every word of the sentence must be served: "sends mails at a later time" is not what a tool does that sends
mails. A word that is in no table is compared with the words of the tool itself, so what is not understood is served by
nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from bicameral.planning._language import fold
from bicameral.text import lazy_pattern, stem
from bicameral.tools import Registry, Tool

_ACTIONS: dict[str, str] = {
    "look": r"reads?|gets?|lists?|shows?|views?|sees?|fetch(?:es)?|retrieves?|access(?:es)?|search(?:es)?|finds?|"
    r"looks?|quer(?:y|ies)|checks?|returns?|liest|lesen|auflistet|zeigt|anzeigt|abruft|abrufen|durchsucht|"
    r"durchsuchen|sucht|suchen|findet|finden|abfragt|lit|lire|consulte|consulter|affiche|afficher|cherche|"
    r"chercher|trouve|trouver|montre|leer|lee|consultar|consulta|buscar|busca|mostrar|ver|encontrar|obtener|"
    r"listar",
    "send": r"sends?|forwards?|repl(?:y|ies)|posts?|publish(?:es)?|schickt|schicken|verschickt|verschicken|sendet|"
    r"senden|versendet|versenden|weiterleitet|weiterleiten|antwortet|beantwortet|veroffentlicht|envoie|envoyer|"
    r"expedie|repond|repondre|publie|publier|enviar|envia|mandar|manda|reenviar|responder|publicar",
    "create": r"writes?|saves?|creates?|adds?|appends?|makes?|inserts?|stores?|puts?|schedules?|schreibt|schreiben|"
    r"speichert|speichern|erstellt|erstellen|anlegt|anlegen|erzeugt|erzeugen|eintragt|eintragen|hinzufugt|ecrit|"
    r"ecrire|enregistre|enregistrer|cree|creer|ajoute|ajouter|sauvegarde|planifie|planifier|fait|escribir|"
    r"escribe|guardar|crear|crea|anadir|agregar|agendar|programar|hacer|poner",
    "change": r"changes?|edits?|updates?|modif(?:y|ies)|adjusts?|sets?|reschedules?|andert|andern|verandert|"
    r"bearbeitet|bearbeiten|aktualisiert|verschiebt|modifie|modifier|change|changer|cambiar|cambia|modificar|"
    r"modifica|editar|actualizar",
    "delete": r"deletes?|removes?|erases?|cancels?|loscht|loschen|entfernt|entfernen|storniert|absagt|supprime|"
    r"supprimer|efface|effacer|annule|annuler|borrar|borra|eliminar|elimina|cancelar|cancela|anular",
    "pay": r"pays?|transfers?|wires?|uberweist|uberweisen|bezahlt|bezahlen|zahlt|zahlen|paie|paye|payer|vire|virer|"
    r"pagar|paga|transferir|transfiere",
    "book": r"books?|reserves?|bucht|buchen|reserviert|reservieren|reserve|reserver|reservar|reserva",
}
_OBJECTS: dict[str, str] = {
    "mail": r"mails?|emails?|courriels?|correos?|inbox|mailbox|postfach|posteingang",
    "calendar": r"calendars?|events?|appointments?|meetings?|kalender|kalendern|termine?|terminen|agendas?|"
    r"evenements?|rdv|calendrier|calendarios?|eventos?|citas?|reunion|reuniones|besprechung(?:en)?",
    "file": r"files?|documents?|notes?|datei|dateien|dokumente?|dokumenten|notiz|notizen|fichiers?|archivos?|"
    r"documentos?|notas?",
    "folder": r"folders?|director(?:y|ies)|ordner|ordnern|dossiers?|carpetas?",
    "table": r"tables?|csv|spreadsheets?|rows?|tabellen?|tableaux?|tableurs?|tablas?",
    "web": r"webs?|pages?|websites?|webpages?|urls?|webseiten?|sites?|paginas?",
    "message": r"messages?|dms?|nachricht|nachrichten|mensajes?",
    "chat": r"chats?|channels?|kanal|kanale|kanalen|canal|canaux|canales",
    "money": r"money|payments?|transactions?|transfers?|geld|zahlung(?:en)?|uberweisung(?:en)?|argent|paiements?|"
    r"virements?|dinero|pagos?|transferencias?",
    "bill": r"bills?|invoices?|rent|rechnung(?:en)?|miete|factures?|loyer|facturas?|alquiler",
    "user": r"users?|benutzer|benutzern|utilisateurs?|usuarios?",
    "contact": r"contacts?|kontakte?|kontakten|contactos?",
    "account": r"accounts?|konto|konten|comptes?|cuentas?",
    "password": r"passwords?|passwort|passworter|contrasenas?",
    "weather": r"weather|wetter|meteo",
    "hotel": r"hotels?|hoteles",
    "restaurant": r"restaurants?|restaurantes",
    "flight": r"flights?|flug|fluge|flugen|vols?|vuelos?",
    "car": r"cars?|autos?|voitures?|coches?",
}
_ACTION_WORDS = {name: lazy_pattern(pattern) for name, pattern in _ACTIONS.items()}
_OBJECT_WORDS = {name: lazy_pattern(pattern) for name, pattern in _OBJECTS.items()}
_TABLES_TO_BOOK = lazy_pattern(r"tables?|tische?|mesas?")

# Words that limit nothing. Prepositions are among them only where what follows them has to be served as well.
_EMPTY = frozenset(
    "a an the any some of to for or and can new own your my s "
    "das die der den dem des ein eine einen einem einer und oder kann konnen man um zu "
    "le la les l un une des de du d et ou peut permet permettant dans pour qui "
    "el los las un una unos unas y o u ni e en que pueda puede permita para".split()
)
_WORD = lazy_pattern(r"[a-z0-9]+")
_NAME_PART = lazy_pattern(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
# The main clause of a description: what follows tells how, for whom, or from what.
_DETAIL = lazy_pattern(
    r"[.,;:(]|\b(?:with|to|from|by|for|if|that|which|whose|using|in|on|at|as|into|when|so|between)\b|"
    r"(?<!list )(?<!lists )(?<!lines )(?<!rows )(?<!contents )(?<!content )(?<!text )(?<!details )\bof\b"
)


@dataclass(frozen=True, slots=True)
class Capability:
    """What a tool would do: one of these actions, or a verb that no table has, to all of these objects."""

    actions: frozenset[str]
    verbs: tuple[str, ...]
    objects: tuple[str, ...]


def claimed_capability(text: str) -> Capability | None:
    """The capability that a clause describes; None if it names no action or no object.

    Example:
        >>> capability = claimed_capability("sends mails")
        >>> sorted(capability.actions), capability.objects
        (['send'], ('mail',))
    """
    words = [word for word in _WORD.findall(_one_word_mails(fold(text))) if word not in _EMPTY]
    if not words:
        return None
    # The verb comes first, and last in a German relative clause; what is a verb elsewhere is an object (`books`).
    if _actions(words[0]):
        count = _run(words)
        verbs, objects = words[:count], words[count:]
    elif _actions(words[-1]):
        count = _run(words[::-1])
        verbs, objects = words[-count:], words[:-count]
    else:
        verbs, objects = words[:1], words[1:]
    actions = frozenset(action for verb in verbs for action in _actions(verb))
    named = tuple(dict.fromkeys(_object(word, actions) for word in objects))
    if not named and actions == frozenset({"pay"}):
        named = ("money",)
    return Capability(_with_money(actions, named), () if actions else tuple(verbs), named) if named else None


def serving_tools(capability: Capability, registry: Registry) -> tuple[str, ...]:
    """The tools that have a capability; together they serve every action and every object of it, or there are none.

    Tools that describe themselves are left out: whoever wrote their texts would decide what counts as served.
    """
    tools = [tool for tool in registry if not tool.self_described]
    found: dict[str, None] = {}
    for verb, name in _pairs(capability):
        serving = [tool.name for tool in tools if _serves(tool, verb, name)]
        if not serving:
            return ()
        found |= dict.fromkeys(serving)
    return tuple(found)


def has_tool_word(registry: Registry, words: Iterable[str]) -> bool:
    """Whether the name or the main clause of the description of a trusted tool has one of these words in any form."""
    stems = frozenset(map(stem, words))
    return any(stems & _tool_facts(tool).stems for tool in registry if not tool.self_described)


def tool_objects(tool: Tool) -> frozenset[str]:
    """The objects of a tool, by its name and its description; of one that describes itself, none."""
    return frozenset() if tool.self_described else frozenset(each[1:] for each in _tool_facts(tool).objects)


def speaks_of(text: str, name: str) -> bool:
    """Whether a text has a word for an object of a capability, in any of the four languages.

    Example:
        >>> speaks_of("Wann ist mein Termin?", "calendar")
        True
    """
    words = _WORD.findall(_one_word_mails(fold(text)))
    pattern = _OBJECT_WORDS.get(name)
    if pattern is None:
        return stem(name) in map(stem, words)
    # German compounds end with their noun: `Zahnarzttermin`.
    compound = lazy_pattern(rf"(?:[a-z]{{3,}}?)?(?:{pattern.pattern})")
    return any(compound.fullmatch(word) for word in words)


def _pairs(capability: Capability) -> Iterator[tuple[str, str]]:
    for name in capability.objects:
        # "Writes or changes": whoever lacks one of the two may need it.
        yield from ((verb, name) for verb in capability.verbs)
        yield from ((f"={action}", name) for action in sorted(capability.actions))


def _serves(tool: Tool, verb: str, name: str) -> bool:
    facts = _tool_facts(tool)
    if not (f"={name}" in facts.objects if name in _OBJECTS else stem(name) in facts.stems):
        return _pays_bills(tool, facts, verb, name)
    if not verb.startswith("="):
        return stem(verb) in facts.stems
    wanted = verb[1:]
    # Words alone are not enough: what is read changes nothing, and everything else is declared as a change.
    if (wanted == "look") == tool.changes:
        return False
    return bool(facts.actions & _equal_actions(wanted, name))


def _pays_bills(tool: Tool, facts: _ToolFacts, verb: str, name: str) -> bool:
    return verb == "=pay" and name == "bill" and tool.changes and "=money" in facts.objects and "pay" in facts.actions


def _equal_actions(action: str, name: str) -> frozenset[str]:
    """The actions by which a tool does this to such an object."""
    if action == "change" and name in ("calendar", "file", "table"):
        # To change a calendar is to add, change or delete events.
        return frozenset({"change", "create", "delete"})
    if action == "create" and name in ("mail", "message", "chat"):
        return frozenset({"create", "send"})
    return frozenset({action})


@dataclass(frozen=True, slots=True)
class _ToolFacts:
    """The actions of a tool, its objects (each after `=`), and the stems of its words."""

    actions: frozenset[str]
    objects: frozenset[str]
    stems: frozenset[str]


def _tool_facts(tool: Tool) -> _ToolFacts:
    return _read_facts(tool.name, tool.doc.split("\n", 1)[0], tool.toolbox)


@lru_cache(maxsize=1024)
def _read_facts(name: str, doc: str, toolbox: str) -> _ToolFacts:
    own = _name_words(name)
    main = _WORD.findall(_one_word_mails(_DETAIL.split(fold(doc), maxsplit=1)[0]))
    # The first verb of the name tells what a tool does: `update_scheduled_payment` schedules nothing.
    verb = next((word for word in (*own, *main[:1]) if _actions(word)), "")
    words = [*own, *main]
    objects = {f"={each}" for word in words if word != verb for each in _objects(word)}
    if not objects:
        objects = {f"={each}" for word in _name_words(toolbox) for each in _objects(word)}
    actions = _with_money(frozenset(_actions(verb)), [each[1:] for each in objects])
    return _ToolFacts(actions, frozenset(objects), frozenset(stem(word) for word in words if word not in _EMPTY))


def _with_money(actions: frozenset[str], objects: Iterable[str]) -> frozenset[str]:
    """To send money, or to make a payment, is to pay."""
    if "money" in objects and actions & {"send", "create"}:
        return (actions - {"send", "create"}) | {"pay"}
    return actions


def _name_words(name: str) -> list[str]:
    return [part.lower() for word in re.split(r"[^A-Za-z0-9]+", name) for part in _NAME_PART.findall(word)]


def _one_word_mails(text: str) -> str:
    return re.sub(r"\be-(?=mails?\b)", "e", text)


def _run(words: list[str]) -> int:
    return next((place for place, word in enumerate(words) if not _actions(word)), len(words))


def _actions(word: str) -> list[str]:
    base = word.removesuffix("ing")
    forms = (word,) if base == word else (word, base, f"{base}e")
    return [action for action, pattern in _ACTION_WORDS.items() if any(map(pattern.fullmatch, forms))]


def _objects(word: str) -> list[str]:
    return [name for name, pattern in _OBJECT_WORDS.items() if pattern.fullmatch(word)]


def _object(word: str, actions: frozenset[str]) -> str:
    if actions == frozenset({"book"}) and _TABLES_TO_BOOK.fullmatch(word):
        return "restaurant"
    return next(iter(_objects(word)), word)
