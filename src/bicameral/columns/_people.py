"""People in tables: a table with a column of mail addresses and a column of names is a list of people.

Cells decide before headings do, since a list of people may be called and headed in any language. Nothing is guessed: a
table whose column of names is not clear has no people in it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from bicameral.columns._words import is_missing

MOST_ROWS = 5_000
"""Rows of a table that are looked at."""
MOST_ADDRESSES = 20
"""Addresses of one person."""
_MOST_COLUMNS = 60
_LONGEST_NAME = 80
_MOST_NAME_WORDS = 6
_FITTING_SHARE = 0.8
"""How many of the filled cells of a column must be addresses, or names. The others may be remarks."""
_AGREEING_SHARE = 0.5
"""In how many rows a word of the name must stand in the address, where no heading says which column has the names."""

_ADDRESS = re.compile(r"[^\s@<>\",;:()\[\]]{1,64}@[^\s@<>\",;:()\[\]]{1,253}")
_LETTERS = re.compile(r"[^\W\d_]+")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_SEPARATOR = re.compile(r"[,;\n]|\s/\s")

# Words of headings, without accents, in English, German, French, Spanish, Italian, Portuguese and Dutch.
_NAME_WORDS = frozenset(
    "name names vorname nachname familienname nom noms prenom nombre nombres nome cognome sobrenome naam surname "
    "firstname lastname fullname apellido apellidos contact contacts kontakt contatto contato contacto person persons "
    "personne persona pessoa persoon people gente leute who wer qui quien mitglied member membre miembro socio "
    "nickname spitzname rufname surnom apodo friend freund ami amigo".split()
)
_NAME_QUALIFIERS = frozenset(
    "first last full given family display middle de famille pila the complete vollstandiger completo complet".split()
)
_CALLED_WORDS = frozenset("nickname spitzname rufname surnom apodo".split())
"""Headings of names that people go by, which are no part of the whole name."""
_MAIL_WORDS = frozenset("mail email e address adresse mailadresse emailadresse correo courriel direccion posta".split())
_THING_WORDS = frozenset(
    "project projekt projet proyecto product produkt produit producto item artikel article articulo task aufgabe tache "
    "tarea event course kurs cours curso file datei fichier archivo subject betreff sujet asunto title titel titre "
    "titulo city stadt ort ville ciudad country land pays pais street strasse rue calle place lieu lugar category "
    "kategorie categorie categoria status type typ role rolle note notes notiz comment kommentar bemerkung".split()
)
"""Headings of columns whose cells may look like names and are none."""


@dataclass(frozen=True, slots=True)
class Contact:
    """A person in a table.

    Args:
        names: What the person is called: the whole name first, then its parts.
        addresses: The mail addresses, as they are written.
    """

    names: tuple[str, ...]
    addresses: tuple[str, ...]


def find_contacts(rows: Sequence[Mapping[str, object]]) -> tuple[Contact, ...]:
    """The people of a table, in the order of its rows; nobody if it is no list of people.

    Args:
        rows: The rows as a file was read; those after the first `MOST_ROWS` are not looked at.

    Example:
        >>> find_contacts([{"Wer": "Anna Weber", "Post": "anna.weber@example.org"}])
        (Contact(names=('Anna Weber',), addresses=('anna.weber@example.org',)),)
        >>> find_contacts([{"shop": "Fruit", "open": "yes"}])
        ()
    """
    rows = rows[:MOST_ROWS]
    columns = list(dict.fromkeys(name for row in rows for name in row))[:_MOST_COLUMNS]
    mailed = [column for column in columns if _is_address_column(_filled_texts(rows, column))]
    if not mailed:
        return ()
    named = [name for name in columns if name not in mailed and _is_name_column(name, _filled_texts(rows, name))]
    found: dict[Contact, None] = {}
    for column in mailed:
        whose = _names_beside(rows, column, named)
        for row in rows:
            if (contact := _row_contact(row, column, whose)) is not None:
                found[contact] = None
    return tuple(found)


def parse_addresses(cell: str) -> tuple[tuple[str, str], ...]:
    """The mail addresses of a cell with their display names; none if it has anything else in it.

    Example:
        >>> parse_addresses("Anna Weber <anna@example.org>; ben@example.org")
        (('Anna Weber', 'anna@example.org'), ('', 'ben@example.org'))
        >>> parse_addresses("ask anna@example.org")
        ()
    """
    found: dict[str, str] = {}
    for part in _SEPARATOR.split(cell.strip().rstrip(",;")):
        text, shown = part.strip(), ""
        if text.endswith(">") and "<" in text:
            at = text.rindex("<")
            shown, text = text[:at].strip().strip('"').strip(), text[at + 1 : -1]
        address = text.removeprefix("mailto:").strip()
        if _ADDRESS.fullmatch(address) is None or len(found) >= MOST_ADDRESSES:
            return ()
        found.setdefault(address, shown)
    return tuple((shown, address) for address, shown in found.items())


def looks_like_name(text: str) -> bool:
    """Whether a text has the form of a name: a few words of letters, with capitals where the script has them.

    Example:
        >>> looks_like_name("Anna von Berg"), looks_like_name("call back"), looks_like_name("Flat 12")
        (True, False, False)
    """
    text = text.strip()
    if not text or len(text) > _LONGEST_NAME or "@" in text or any(each.isdecimal() for each in text):
        return False
    words = _LETTERS.findall(text)
    if not words or len(words) > _MOST_NAME_WORDS:
        return False
    # Particles such as "von" and "de la" are small; the first or the last word of a name is not.
    return not words[0][0].islower() or (len(words) > 1 and not words[-1][0].islower())


def _filled_texts(rows: Sequence[Mapping[str, object]], column: str) -> list[str]:
    cells = [row.get(column) for row in rows]
    filled = [cell for cell in cells if not is_missing(cell)]
    texts = [cell for cell in filled if isinstance(cell, str)]
    # A column with numbers among its texts is neither of names nor of addresses.
    return texts if len(texts) == len(filled) else []


def _share(fitting: Iterable[bool]) -> float:
    found = list(fitting)
    return sum(found) / len(found) if found else 0.0


def _is_address_column(cells: Sequence[str]) -> bool:
    return _share(bool(parse_addresses(cell)) for cell in cells) >= _FITTING_SHARE


def _is_name_column(heading: str, cells: Sequence[str]) -> bool:
    # Under a heading that says so, small letters are names, too.
    said = _is_name_heading(heading)
    return _share(looks_like_name(cell.title() if said else cell) for cell in cells) >= _FITTING_SHARE


def _names_beside(rows: Sequence[Mapping[str, object]], mailed: str, named: Sequence[str]) -> tuple[str, ...]:
    """The columns with the names of those whose addresses a column has; none where that is not clear."""
    about = set(_heading_words(mailed)) - _MAIL_WORDS
    # `customer` and `customer email` belong together, and not `seller`.
    whose = tuple(name for name in named if about & set(_heading_words(name)) - _NAME_WORDS)
    whose = whose or tuple(name for name in named if _is_name_heading(name))
    if not whose:
        agreeing = [name for name in named if _agreement(rows, mailed, name) >= _AGREEING_SHARE]
        possible = agreeing or [name for name in named if not _THING_WORDS & set(_heading_words(name))]
        whose = tuple(agreeing) if agreeing else tuple(possible) if len(possible) == 1 else ()
    # The address of a shop beside each of its products is not the address of anybody called so.
    pairs = {(_joined(row, whose), str(row.get(mailed)).strip().casefold()) for row in rows if row.get(mailed)}
    people, addresses = {name for name, _ in pairs if name}, {address for _, address in pairs}
    return whose if len(people) <= 2 * len(addresses) else ()


def _joined(row: Mapping[str, object], columns: Sequence[str]) -> str:
    cells = (row.get(column) for column in columns)
    return " ".join(cell.strip() for cell in cells if isinstance(cell, str) and not is_missing(cell))


def _row_contact(row: Mapping[str, object], mailed: str, named: Sequence[str]) -> Contact | None:
    cell = row.get(mailed)
    found = parse_addresses(cell) if isinstance(cell, str) else ()
    parts = [name.strip() for column in named if isinstance(name := row.get(column), str) and not is_missing(name)]
    whole = _joined(row, [column for column in named if not _CALLED_WORDS & set(_heading_words(column))])
    # `Name <address>` names its own address alone.
    shown = [name for name, _ in found] if len(found) == 1 else []
    names = tuple(dict.fromkeys(name for name in (whole, *parts, *shown) if name))
    return Contact(names, tuple(address for _, address in found)) if names and found else None


def _agreement(rows: Sequence[Mapping[str, object]], mailed: str, named: str) -> float:
    """In how many rows a word of the name stands in the local part of the address."""
    agreeing: list[bool] = []
    for row in rows:
        cell, name = row.get(mailed), row.get(named)
        if isinstance(cell, str) and isinstance(name, str) and (found := parse_addresses(cell)):
            local = _fold("".join(address.partition("@")[0] for _, address in found))
            agreeing.append(any(len(word) > 2 and word in local for word in _LETTERS.findall(_fold(name))))
    return _share(agreeing)


def _is_name_heading(heading: str) -> bool:
    words = set(_heading_words(heading))
    return bool(words & _NAME_WORDS) and words <= _NAME_WORDS | _NAME_QUALIFIERS


def _heading_words(heading: str) -> list[str]:
    return _LETTERS.findall(_fold(_CAMEL.sub(" ", heading[:200]).replace("_", " ")))


def _fold(text: str) -> str:
    decomposed = unicodedata.normalize("NFKD", text.casefold().replace("ß", "ss"))
    return "".join(character for character in decomposed if not unicodedata.combining(character))
