"""People in files: what tables, vCard files and notes say about who has which address.

A file counts by what it is and not by its name. What was found in a file is kept until the file changes; its label is
never kept, but made anew for each reading, since whoever could change what is kept could otherwise make it trusted.
"""

from __future__ import annotations

import os
import re
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from threading import Lock

from bicameral.binding._words import fold, same_concept, words_of
from bicameral.columns import Contact, find_contacts, looks_like_name

NOTE_ENDINGS = (".md", ".markdown", ".txt", ".org", ".rst")
CARD_ENDING = ".vcf"

_MOST_LINES = 5_000
_LONGEST_LINE = 400
_MOST_NOTE_WORDS = 4
_ADDRESS = re.compile(r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+")
_BULLET = re.compile(r"^[\s>#*+\-–•|]*(?:\d{1,3}[.)]\s)?[\s*_|]*")
_SEGMENTS = re.compile(r"[:;,|\t(<]|\s[-–—]\s")
_PARTICLES = frozenset("von van der den de del della di da dos du la le el y e zu zum bin al".split())
_MAIL_WORDS = frozenset("e mail email address adresse courriel correo direccion from to cc an von de para a".split())


def contacts_in_rows(rows: Sequence[Mapping[str, object]], *, named: bool) -> tuple[Contact, ...]:
    """The people of a table.

    Args:
        rows: Its rows.
        named: Whether the user configured it as a list of people: then each row with an address and a cell under a
            heading that says name is a person, whatever the other rows have.
    """
    return find_contacts(rows) or (tuple(_configured_contacts(rows)) if named else ())


def _configured_contacts(rows: Sequence[Mapping[str, object]]) -> Iterator[Contact]:
    for row in rows:
        cells = [cell.strip() for cell in row.values() if isinstance(cell, str)]
        addresses = [cell for cell in cells if "@" in cell and " " not in cell]
        # `first name` and `surname` are names, and so is any column whose words say so.
        names = [cell.strip() for column, cell in row.items() if isinstance(cell, str) and _is_name_column(column)]
        whole = " ".join(name for name in names if name)
        if addresses:
            yield Contact(tuple(dict.fromkeys(name for name in (whole, *names) if name)), tuple(addresses))


def _is_name_column(column: str) -> bool:
    return any(same_concept(word, known) for word in words_of(column) for known in ("name", "surname"))


def contacts_in_vcards(text: str) -> tuple[Contact, ...]:
    """The people of a vCard file (RFC 6350): unfolded lines, properties with parameters and groups."""
    found: list[Contact] = []
    names: list[str] = []
    structured = ""
    addresses: list[str] = []
    for line in re.sub(r"\r?\n[ \t]", "", text).splitlines():
        head, _, value = line.partition(":")
        property_name = head.partition(";")[0].rpartition(".")[2].strip().upper()
        value = re.sub(r"\\(.)", lambda found: " " if found[1] in "nN" else found[1], value).strip()
        match property_name:
            case "BEGIN":
                names, addresses, structured = [], [], ""
            case "FN" | "NICKNAME" if value:
                names.append(value)
            case "N" if value:
                last, first, *_ = [*value.split(";"), ""]
                structured = f"{first} {last}".strip()
            case "EMAIL" if "@" in value:
                addresses.append(value.removeprefix("mailto:"))
            case "END" if addresses:
                found.append(Contact(tuple(names or [structured]), tuple(addresses)))
            case _:
                pass
    return tuple(found)


def contacts_in_note(text: str) -> tuple[Contact, ...]:
    """The people of a note: a line that ends a name with its only address, or a name on the line above the address.

    Example:
        >>> contacts_in_note("- Joe Hart (plumber): joe@example.org\\nPlease ask kim@example.org")
        (Contact(names=('Joe Hart',), addresses=('joe@example.org',)),)
    """
    found: dict[Contact, None] = {}
    above = ""
    for line in text.splitlines()[:_MOST_LINES]:
        line = line[:_LONGEST_LINE]
        addresses = list(_ADDRESS.finditer(line))
        if len(addresses) == 1:
            name = _name_before(line[: addresses[0].start()], above)
            if name:
                found[Contact((name,), (addresses[0][0].rstrip("."),))] = None
        if line.strip():
            above = "" if addresses else _BULLET.sub("", line).strip(" :*_")
    return tuple(found)


def _name_before(before: str, above: str) -> str:
    """The name that an address belongs to, from what stands before it and on the line above."""
    parts = [part.strip(" \"'*_[]") for part in _SEGMENTS.split(_BULLET.sub("", re.sub(r"\([^()]*\)", "", before)))]
    # A line that only says that a mail address follows.
    parts = [part for part in parts if part and not set(words_of(part)) <= _MAIL_WORDS]
    if not parts:
        return above if _is_plain_name(above) else ""
    # The part next to the address: "Garden club, Kim Holt, kim@example.org" is Kim's. A sentence has no name there.
    return parts[-1] if _is_plain_name(parts[-1]) else ""


def _is_plain_name(text: str) -> bool:
    """Whether all words of a text are written as those of a name are; a sentence begins with a capital, too."""
    words = text.replace("-", " ").split()
    if not looks_like_name(text) or len(words) > _MOST_NOTE_WORDS:
        return False
    return all(not word[0].islower() or fold(word) in _PARTICLES for word in words)


Stamp = tuple[int, ...]
_SETTLED_NS = 2_000_000_000
"""A file that was changed less than this before it was read may change again without a new time."""


class ContactCache:
    """The people of files, by path and by when the file was changed; the files that were used last are kept.

    Args:
        size: How many files.
        now: The time in nanoseconds.
    """

    def __init__(self, size: int = 2_000, now: Callable[[], int] = time.time_ns) -> None:
        self._size = size
        self._now = now
        self._kept: OrderedDict[str, tuple[Stamp, tuple[Contact, ...]]] = OrderedDict()
        # Workers bind plans in several threads.
        self._lock = Lock()

    def get(self, path: str, info: os.stat_result) -> tuple[Contact, ...] | None:
        """The people of a file, if it has not changed since it was read."""
        with self._lock:
            stamp, contacts = self._kept.get(path, ((), ()))
            if stamp != _stamp(info):
                return None
            self._kept.move_to_end(path)
            return contacts

    def store(self, path: str, info: os.stat_result, contacts: tuple[Contact, ...]) -> None:
        """Keep the people of a file; `info` is from before it was read, so that a later change is seen."""
        if abs(self._now() - max(info.st_mtime_ns, info.st_ctime_ns)) <= _SETTLED_NS:
            return
        with self._lock:
            self._kept[path] = (_stamp(info), contacts)
            self._kept.move_to_end(path)
            while len(self._kept) > self._size:
                self._kept.popitem(last=False)


def _stamp(info: os.stat_result) -> Stamp:
    # The time of the last change of the entry counts, too: a program may set the other time to what it likes.
    return info.st_mtime_ns, info.st_ctime_ns, info.st_size, info.st_ino


FOUND_CONTACTS = ContactCache()
"""What is kept in this process."""
