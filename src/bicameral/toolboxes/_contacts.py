"""People: vCards and rows of tables as names with addresses, and one list of all people that are known.

`read_vcards` runs in the parser process, so this module must import nothing heavy. A person is never put together from
two places: a mail of a stranger who calls himself by the name of a friend is an entry of its own beside the friend's.
"""

from __future__ import annotations

import quopri
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bicameral.text import index_words
from bicameral.toolboxes._text import clean_text, decode_bytes, one_line

MAX_CARDS = 5_000
_MAX_ADDRESSES = 20
_MAX_VALUE = 2_000
_ADDRESS = re.compile(r"[^\s@<>\",;:()\[\]]{1,64}@[^\s@<>\",;:()\[\]]{1,253}")
_SOFT_BREAK = re.compile(rb"=\r?\n")
_FOLD = re.compile(r"\r?\n[ \t]")
_ESCAPE = re.compile(r"\\([nN\\,;:])")
_UNESCAPED_SEMICOLON = re.compile(r"(?<!\\);")
_NAME_COLUMNS = ("name", "full name", "display name", "contact", "person", "nom", "nombre")
_FIRST_COLUMNS = ("first name", "given name", "vorname", "prénom", "nombre de pila")
_LAST_COLUMNS = ("last name", "family name", "surname", "nachname", "nom de famille", "apellido", "apellidos")


@dataclass(frozen=True, slots=True)
class Card:
    """One contact: a name, addresses, and the other facts as text."""

    name: str
    addresses: tuple[str, ...]
    text: str


def find_address(text: str) -> str | None:
    """The mail address that a text is, alone or as `Name <address>`; None if it is none."""
    inner = text.strip()
    if inner.endswith(">") and "<" in inner:
        inner = inner[inner.rindex("<") + 1 : -1]
    inner = inner.removeprefix("mailto:").strip()
    return inner if _ADDRESS.fullmatch(inner) else None


def read_vcards(raw: bytes) -> list[dict[str, Any]]:
    """The vCards (2.1, 3.0, 4.0) in a file, in the form of `Card`; called in the parser process."""
    # A line of vCard 2.1 may go on after `=` in the quoted-printable encoding; elsewhere no line ends so.
    text = decode_bytes(_SOFT_BREAK.sub(b"", raw) if b"QUOTED-PRINTABLE" in raw.upper() else raw)
    cards: list[dict[str, Any]] = []
    for lines in _card_lines(_FOLD.sub("", text)):
        card = _read_card(lines)
        if card.name or card.addresses:
            cards.append({"name": card.name, "addresses": list(card.addresses), "text": card.text})
        if len(cards) >= MAX_CARDS:
            break
    return cards


def _card_lines(text: str) -> Iterator[list[str]]:
    lines: list[str] | None = None
    for line in text.split("\n"):
        mark = line.strip().upper()
        if mark == "BEGIN:VCARD":
            lines = []
        elif mark == "END:VCARD":
            if lines is not None:
                yield lines
            lines = None
        elif lines is not None:
            lines.append(line.rstrip("\r"))


_SHOWN_FIELDS = {"TEL": "Phone", "ADR": "Address", "BDAY": "Birthday", "ORG": "Organisation", "TITLE": "Title",
                 "ROLE": "Role", "NOTE": "Note", "NICKNAME": "Nickname", "URL": "Link"}  # fmt: skip


def _read_card(lines: Iterable[str]) -> Card:
    full, parts = "", ""
    addresses: dict[str, None] = {}
    facts: list[str] = []
    for line in lines:
        name, parameters, value = _split_line(line)
        if "QUOTED-PRINTABLE" in parameters:
            value = decode_bytes(quopri.decodestring(value.encode("utf-8", "replace")))
        if name == "FN" and not full:
            full = _plain(value)
        elif name == "N" and not parts:
            last, first, *_ = [*map(_plain, _UNESCAPED_SEMICOLON.split(value)), "", ""]
            parts = f"{first} {last}".strip()
        elif name == "EMAIL" and (address := find_address(_plain(value))) and len(addresses) < _MAX_ADDRESSES:
            addresses[address] = None
        elif name in _SHOWN_FIELDS and (
            shown := ", ".join(filter(None, map(_plain, _UNESCAPED_SEMICOLON.split(value))))
        ):
            facts.append(f"{_SHOWN_FIELDS[name]}: {shown}")
    own = full or parts
    text = "\n".join([*([f"Name: {own}"] if own else []), *(f"Mail: {each}" for each in addresses), *facts])
    return Card(own, tuple(addresses), text)


def _split_line(line: str) -> tuple[str, str, str]:
    """The name, the parameters in capitals, and the value of a content line; colons in quotes do not end the name."""
    quoted = False
    for at, character in enumerate(line[:_MAX_VALUE]):
        if character == '"':
            quoted = not quoted
        elif character == ":" and not quoted:
            name, _, parameters = line[:at].partition(";")
            # `item1.EMAIL`: a group, which says only which lines belong together.
            return name.rpartition(".")[2].strip().upper(), parameters.upper(), line[at + 1 :][:_MAX_VALUE]
    return "", "", ""


def _plain(value: str) -> str:
    return one_line(clean_text(_ESCAPE.sub(lambda found: "\n" if found[1] in "nN" else found[1], value)))


def row_person(row: Mapping[str, object]) -> tuple[str, tuple[str, ...]] | None:
    """The name and the addresses in a row of a table of contacts; None if it has no address or no name."""
    cells = {name.strip().casefold(): value.strip() for name, value in row.items() if isinstance(value, str)}
    found = (address for value in cells.values() for each in value.split(",") if (address := find_address(each)))
    addresses = tuple(dict.fromkeys(found))[:_MAX_ADDRESSES]
    whole = next((cells[name] for name in _NAME_COLUMNS if cells.get(name)), "")
    first = next((cells[name] for name in _FIRST_COLUMNS if cells.get(name)), "")
    last = next((cells[name] for name in _LAST_COLUMNS if cells.get(name)), "")
    name = whole if whole and find_address(whole) is None and not (first and last) else f"{first} {last}".strip()
    return (one_line(name), addresses) if addresses and name else None


def matches_name(query: str, name: str, addresses: Iterable[str]) -> bool:
    """Whether every word of a query is a word of the name or of one of the addresses, whatever the case and accents."""
    wanted = set(index_words(query))
    known = set(index_words(name)).union(*(index_words(each) for each in addresses))
    return bool(wanted) and wanted <= known
