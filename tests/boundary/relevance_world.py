"""Generated notes and questions in four languages: present facts in many shapes, near misses and absent facts.

A case is a question, a value that a reader gave, and the passage that has the value. It is *right* if the passage is
about what was asked for. The near misses have the same kind of value for another thing; so a reader that must answer
would take it. Things and kinds of one half (`even`) are for choosing limits, those of the other for reporting figures.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

from bicameral.boundary import PlaceText

CaseKind = Literal["right", "more-words", "synonym", "sibling", "other-thing", "other-kind", "unrelated"]
WRONG: tuple[CaseKind, ...] = ("sibling", "other-thing", "other-kind", "unrelated")


@dataclass(frozen=True)
class Language:
    """Words of one language: things, synonyms, kinds of values with words for them, and how one asks and notes."""

    things: tuple[str, ...]
    synonyms: tuple[tuple[str, str], ...]
    siblings: tuple[tuple[str, str], ...]
    more: tuple[str, ...]
    kinds: tuple[tuple[str, str], ...]
    questions: tuple[str, ...]
    notes: tuple[str, ...]
    filler: tuple[str, ...]


ENGLISH = Language(
    things=(
        "garage",
        "safe",
        "garden shed",
        "car insurance",
        "dentist",
        "piano teacher",
        "boiler",
        "swimming course",
        "cabin wifi",
        "gym",
        "electricity contract",
        "passport",
        "bike lock",
        "ferry",
        "landlord",
        "school trip",
    ),
    synonyms=(("car", "vehicle"), ("flat", "apartment"), ("doctor", "physician"), ("kids", "children")),
    siblings=(
        ("car insurance", "home insurance"),
        ("cabin wifi", "office wifi"),
        ("piano teacher", "guitar teacher"),
        ("swimming course", "ski course"),
        ("Anna's bike", "Ben's bike"),
        ("front door", "back door"),
    ),
    more=("that we agreed on", "from the letter", "Kim told me about", "we wrote down"),
    kinds=(
        ("code", "####"),
        ("phone number", "030 #######"),
        ("price", "### EUR"),
        ("date", "2026-0#-1#"),
        ("password", "xk-####"),
        ("deadline", "2026-0#-2#"),
        ("customer number", "K-#####"),
        ("start", "1#:30"),
    ),
    questions=("the {kind} of the {thing}", "what is the {kind} for the {thing}?", "{thing}: {kind}", "{kind} {thing}"),
    notes=(
        "The {kind} of the {thing} is {value}.",
        "{Thing}: {value}",
        "{Thing} – {kind} {value}",
        "We changed something. For the {thing} it is now {value}.",
        "{kind} {thing} = {value}",
    ),
    filler=("The bins go out on Tuesday.", "Milk, bread and apples.", "Call back later.", "It rained all day."),
)
GERMAN = Language(
    things=(
        "Garage",
        "Tresor",
        "Gartenhaus",
        "Autoversicherung",
        "Zahnarzt",
        "Klavierlehrerin",
        "Heizung",
        "Schwimmkurs",
        "Hütte",
        "Fitnessstudio",
        "Stromvertrag",
        "Reisepass",
        "Fahrradschloss",
        "Fähre",
        "Vermieter",
        "Klassenfahrt",
    ),
    synonyms=(("Auto", "Wagen"), ("Wohnung", "Apartment"), ("Arzt", "Hausdoktor"), ("Kinder", "Nachwuchs")),
    siblings=(
        ("Versicherung Auto", "Versicherung Haus"),
        ("WLAN Hütte", "WLAN Büro"),
        ("Lehrerin Klavier", "Lehrerin Gitarre"),
        ("Kurs Schwimmen", "Kurs Ski"),
        ("Fahrrad von Anna", "Fahrrad von Ben"),
        ("Tür vorne", "Tür hinten"),
    ),
    more=("wie vereinbart", "aus dem Brief", "von Kim erzählt", "aufgeschrieben"),
    kinds=(
        ("Code", "####"),
        ("Telefonnummer", "030 #######"),
        ("Preis", "### EUR"),
        ("Datum", "1#.0#.2026"),
        ("Passwort", "xk-####"),
        ("Frist", "2#.0#.2026"),
        ("Kundennummer", "K-#####"),
        ("Beginn", "1#:30"),
    ),
    questions=("{kind}: {thing}", "wie lautet {kind} für {thing}?", "{kind} von {thing}", "{thing} {kind}"),
    notes=(
        "{thing}: {value}",
        "{kind} {thing}: {value}",
        "Für {thing} gilt jetzt {value}.",
        "{thing} – {kind} {value}",
        "Wir haben etwas geändert. {thing} hat nun {value}.",
    ),
    filler=("Der Müll geht am Dienstag raus.", "Milch, Brot und Äpfel.", "Später zurückrufen.", "Es hat geregnet."),
)
FRENCH = Language(
    things=(
        "garage",
        "coffre",
        "cabane",
        "assurance auto",
        "dentiste",
        "professeur de piano",
        "chaudière",
        "cours de natation",
        "chalet",
        "salle de sport",
        "contrat électricité",
        "passeport",
        "antivol",
        "ferry",
        "propriétaire",
        "sortie scolaire",
    ),
    synonyms=(("voiture", "véhicule"), ("appartement", "logement"), ("médecin", "docteur"), ("enfants", "petits")),
    siblings=(
        ("assurance voiture", "assurance maison"),
        ("wifi chalet", "wifi bureau"),
        ("cours piano", "cours guitare"),
        ("stage natation", "stage ski"),
        ("vélo de Anna", "vélo de Ben"),
        ("porte avant", "porte jardin"),
    ),
    more=("comme convenu", "de la lettre", "raconté par Kim", "noté"),
    kinds=(
        ("code", "####"),
        ("téléphone", "01 ## ## ## ##"),
        ("prix", "### EUR"),
        ("date", "1#/0#/2026"),
        ("mot de passe", "xk-####"),
        ("échéance", "2#/0#/2026"),
        ("numéro de client", "K-#####"),
        ("début", "1#:30"),
    ),
    questions=("le {kind} : {thing}", "quel est le {kind} pour {thing} ?", "{kind} de {thing}", "{thing} {kind}"),
    notes=(
        "{Thing} : {value}",
        "Le {kind} pour {thing} est {value}.",
        "{Thing} – {kind} {value}",
        "On a changé. Pour {thing} c'est maintenant {value}.",
        "{kind} {thing} = {value}",
    ),
    filler=("Les poubelles sortent mardi.", "Lait, pain et pommes.", "Rappeler plus tard.", "Il a plu."),
)
SPANISH = Language(
    things=(
        "garaje",
        "caja fuerte",
        "caseta",
        "seguro del coche",
        "dentista",
        "profesora de piano",
        "caldera",
        "curso de natación",
        "cabaña",
        "gimnasio",
        "contrato de luz",
        "pasaporte",
        "candado",
        "ferri",
        "casero",
        "excursión",
    ),
    synonyms=(("coche", "vehículo"), ("piso", "apartamento"), ("médico", "doctor"), ("niños", "hijos")),
    siblings=(
        ("seguro coche", "seguro casa"),
        ("wifi cabaña", "wifi oficina"),
        ("clase piano", "clase guitarra"),
        ("curso natación", "curso esquí"),
        ("bici de Anna", "bici de Ben"),
        ("puerta delantera", "puerta trasera"),
    ),
    more=("según lo acordado", "de la carta", "contado por Kim", "apuntado"),
    kinds=(
        ("código", "####"),
        ("teléfono", "91 #######"),
        ("precio", "### EUR"),
        ("fecha", "1#/0#/2026"),
        ("contraseña", "xk-####"),
        ("plazo", "2#/0#/2026"),
        ("número de cliente", "K-#####"),
        ("comienzo", "1#:30"),
    ),
    questions=("el {kind}: {thing}", "¿cuál es el {kind} para {thing}?", "{kind} de {thing}", "{thing} {kind}"),
    notes=(
        "{Thing}: {value}",
        "El {kind} para {thing} es {value}.",
        "{Thing} – {kind} {value}",
        "Cambiamos algo. Para {thing} ahora es {value}.",
        "{kind} {thing} = {value}",
    ),
    filler=("La basura sale el martes.", "Leche, pan y manzanas.", "Llamar más tarde.", "Llovió todo el día."),
)
LANGUAGES = {"en": ENGLISH, "de": GERMAN, "fr": FRENCH, "es": SPANISH}


@dataclass(frozen=True)
class Case:
    language: str
    kind: CaseKind
    question: str
    value: str
    place: PlaceText
    others: tuple[PlaceText, ...]


def generate_cases(seed: int, per_kind: int, half: Literal["even", "odd"]) -> Iterator[Case]:
    """Cases of every kind and language, the same for the same seed."""
    pick = random.Random(seed)
    for name, language in LANGUAGES.items():
        things = language.things[half == "odd" :: 2]
        things += tuple(each for pair in language.siblings[half == "odd" :: 2] for each in pair)
        for kind in get_args(CaseKind):
            for _ in range(per_kind):
                yield _make_case(pick, name, language, things, half, kind)


def _make_case(
    pick: random.Random,
    name: str,
    language: Language,
    things: tuple[str, ...],
    half: Literal["even", "odd"],
    kind: CaseKind,
) -> Case:
    thing, other = pick.sample(things, 2)
    (asked, form), (unasked, unasked_form) = pick.sample(language.kinds, 2)
    noted_thing, noted_kind, noted_form = thing, asked, form
    match kind:
        case "synonym":
            thing, noted_thing = pick.choice(language.synonyms[half == "odd" :: 2])
        case "sibling":
            thing, noted_thing = pick.sample(pick.choice(language.siblings[half == "odd" :: 2]), 2)
        case "other-thing":
            noted_thing = other
        case "other-kind":
            noted_kind, noted_form = unasked, unasked_form
        case "unrelated":
            noted_thing, noted_kind, noted_form = other, unasked, unasked_form
        case "right" | "more-words":
            pass
    value = "".join(str(pick.randrange(1, 9)) if each == "#" else each for each in noted_form)
    words = {"kind": noted_kind, "thing": noted_thing, "Thing": noted_thing.capitalize(), "value": value}
    note = pick.choice(language.notes).format(**words)
    question = pick.choice(language.questions).format(kind=asked, thing=thing)
    question += " " + pick.choice(language.more[half == "odd" :: 2]) if kind == "more-words" else ""
    others = [PlaceText(f"{pick.choice(things)}: {pick.choice(language.filler)}") for _ in range(pick.randrange(5))]
    if pick.random() < 0.5:
        # What a search for the question finds besides: something else about the thing.
        others.append(PlaceText(f"{thing}: {pick.choice(language.filler)}"))
    place = _surround(pick, language, note, thing if kind in ("other-thing", "sibling") else "")
    return Case(name, kind, question, value, place, tuple(others))


def _surround(pick: random.Random, language: Language, note: str, asked_thing: str) -> PlaceText:
    """A note among others: alone, in prose, as one line of a list, or as a mail."""
    filler = pick.sample(language.filler, 2)
    match pick.randrange(4):
        case 0:
            return PlaceText(f"# notes\n\n{note}", "notes")
        case 1:
            return PlaceText(f"{filler[0]} {note} {filler[1]}", "house")
        case 2:
            # The list may have what was asked for, without the value.
            more = f"- {asked_thing}: ?\n" if asked_thing and pick.random() < 0.5 else ""
            return PlaceText(f"# list\n\n- {filler[0]}\n{more}- {note}\n- {filler[1]}", "list")
        case _:
            head = "From: Kim <kim@example.com>\nTo: me@example.com\nDate: 2026-03-01 10:00"
            return PlaceText(f"# Hello\n\n{head}\n\n{note}\n\n{filler[0]}", "Hello\nKim\n2026-03-01")
