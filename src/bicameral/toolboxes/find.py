"""The find toolbox: one search over notes, documents, tables, contacts, mail and calendar, and one over people.

A question that names no place goes to `find`; the passages go to an extraction, which answers from them. Everything
that is configured is looked at before each search, and only what has changed is read. Each passage has the label that
it would have if the file, mail or calendar toolbox had read it: one of a mail is untrusted whatever it is found with.

The modules that read and index are imported at the first call: every run opens this toolbox, and few search.
"""

from __future__ import annotations

import hashlib
import json
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from functools import cache
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from bicameral.cache import user_folder
from bicameral.errors import ToolError
from bicameral.tools import (
    Origin,
    Participants,
    PassageNote,
    Selection,
    Settings,
    Surroundings,
    Tool,
    Toolbox,
    note_passages,
    note_selection,
    tool,
)

if TYPE_CHECKING:
    from bicameral.retrieval import Embedder
    from bicameral.toolboxes._find_index import FindIndex, Passage as FoundPassage

FindPlace = Literal["files", "mail", "calendar"]
Owner = Literal["user", "others"]
KnownFrom = Literal["contacts", "mail", "calendar"]

_MAX_QUERY = 1_000
_MAX_PASSAGES = 50
_MAX_PERSONS = 50
SHOWN_TO_READERS = ("kind", "title", "day", "text")
"""The fields of a passage that the quarantined model sees. Of the others it would copy ids, paths and scores."""


class FindSettings(Settings):
    """What `find` searches. Where mail and calendar lie is taken from their own toolboxes unless it is set here."""

    search: tuple[FindPlace, ...] = Field(
        ("files", "mail", "calendar"), description="what is searched: files, mail, calendar"
    )
    mail: str | None = None
    """The Maildir folder or mbox file, as in [toolbox.mail]."""
    calendar: str = "calendar.ics"
    timezone: str | None = None
    contacts: tuple[str, ...] = Field(("contacts.csv",), description="tables of people, besides those that are found")
    meaning: bool = Field(True, description="whether to search by meaning, too, where the embedding model is there")
    max_file_bytes: int = Field(2_000_000, gt=0, description="the largest file that is searched")
    max_document_bytes: int = Field(20_000_000, gt=0, description="the largest PDF, Word or spreadsheet file")
    max_sources: int = Field(20_000, gt=0, description="the most files and mails that are searched, the newest first")
    max_total_bytes: int = Field(64_000_000, gt=0, description="the most bytes of all of them together")


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage that was found; `source` is a path, or the id of a mail or event. A file has no day of its own."""

    text: str
    source: str
    title: str
    day: date | None
    kind: Literal["note", "page", "document", "table", "contact", "mail", "event"]
    score: float
    people: tuple[str, ...]
    owner: Owner


@dataclass(frozen=True, slots=True)
class Found:
    """Passages, the best first; `skipped` counts files and mails that could not be searched."""

    passages: tuple[Passage, ...]
    skipped: int
    searched_by: Literal["words", "words and meaning"]


@dataclass(frozen=True, slots=True)
class Person:
    """A person with the addresses known from one place."""

    name: str
    addresses: tuple[str, ...]
    known_from: KnownFrom
    source: str
    owner: Owner


def make_index(settings: FindSettings, surroundings: Surroundings, embedder: Embedder | None = None) -> FindIndex:
    """The index of everything that these settings name, kept in the user's cache.

    Args:
        settings: What is searched.
        surroundings: The folders that may be read, and the clock.
        embedder: Searches by meaning; by default the local one where its packages and weights are there.
    """
    from bicameral.toolboxes._find_index import FindIndex
    from bicameral.toolboxes._find_sources import PlaceKind, SearchLimits, Sources
    from bicameral.toolboxes.calendar import CalendarSettings

    places: dict[FindPlace, PlaceKind] = {"files": "file", "mail": "mail", "calendar": "calendar"}
    sources = Sources(
        surroundings,
        frozenset(places[each] for each in settings.search),
        settings.mail,
        CalendarSettings(file=settings.calendar, timezone=settings.timezone),
        settings.contacts,
        SearchLimits(
            settings.max_file_bytes, settings.max_document_bytes, settings.max_sources, settings.max_total_bytes
        ),
    )
    folders = surroundings.folders
    searched = json.dumps([str(folders.base), sorted(map(str, folders.read)), settings.model_dump(mode="json")])
    name = hashlib.sha256(searched.encode("utf-8", "surrogatepass")).hexdigest()[:24]
    chosen = embedder if embedder is not None or not settings.meaning else local_embedder()
    return FindIndex(sources, user_folder("cache") / "find" / name, chosen, background=True)


def local_embedder() -> Embedder | None:
    """The embedding model of this machine, or None where a package or the weights are missing; nothing is fetched."""
    from bicameral.errors import BicameralError
    from bicameral.models import ModelStore
    from bicameral.retrieval import LocalEmbedder

    try:
        embedder = LocalEmbedder(offline=True)
        return embedder if ModelStore().path(embedder.weights) is not None else None
    except (BicameralError, ImportError, OSError):
        return None


def people(index: FindIndex, name: str = "") -> list[Person]:
    """The people that are known, or those with all words of a name in their name or address.

    Contacts come first, then the calendar, then mail; of each place the newest first. The same address from two places
    is two persons: a mail can call its sender what it likes, and lends its label and its address to no contact.

    Args:
        index: What is known; `refresh` it before.
        name: Words of the name or the address.

    Example:
        >>> people(index, "anna")
        [Person(name='Anna Weber', addresses=('anna@example.com',), known_from='contacts', …)]
    """
    from bicameral.toolboxes._contacts import matches_name

    known: dict[tuple[KnownFrom, str, tuple[str, ...]], Person] = {}
    for candidate, item in index.items():
        place: KnownFrom = (
            "mail" if candidate.place == "mail" else "calendar" if candidate.place == "calendar" else "contacts"
        )
        owner = index.sources.owner(candidate.place, candidate.name)
        for own_name, addresses in item.persons:
            if name and not matches_name(name, own_name, addresses):
                continue
            key = (place, own_name.casefold(), tuple(each.casefold() for each in addresses))
            known.setdefault(key, Person(own_name, addresses, place, index.source_id(candidate, item), owner))
    # A bare address says less than the same one with a name from the same place.
    named = {(each.known_from, address) for each in known.values() if each.name for address in each.addresses}
    order: dict[KnownFrom, int] = {"contacts": 0, "calendar": 1, "mail": 2}
    shown = [
        each
        for each in known.values()
        if each.name or not all((each.known_from, address) in named for address in each.addresses)
    ]
    # The user's own first, then what the user named: a list that somebody planted comes after both.
    named_lists = frozenset(index.sources.contacts)
    return sorted(
        shown, key=lambda each: (order[each.known_from], each.owner != "user", each.source not in named_lists)
    )


_OTHERS = Origin("third_party")
_SYSTEM = Origin("system")
# Who wrote a passage is found out from the place that it lies in, never from its text. Everybody can send a mail that a
# search finds, so how many passages there are, and which, is untrusted. The readers are those of the mail or event; a
# file is for the user alone.
_PASSAGE = Origin("third_party", Participants(("people",)), own_when=("owner", "user"))
_FOUND_ORIGINS = {
    "": _OTHERS,
    "passages[]": _PASSAGE,
    "passages[].kind": _SYSTEM,
    "passages[].owner": _SYSTEM,
    "searched_by": _SYSTEM,
}
_PERSON_ORIGINS = {
    "": _OTHERS,
    "[]": Origin("third_party", own_when=("owner", "user")),
    "[].known_from": _SYSTEM,
    "[].owner": _SYSTEM,
}


def _build(settings: FindSettings, surroundings: Surroundings) -> list[Tool]:
    lock = threading.Lock()

    @cache
    def make() -> FindIndex:
        made = make_index(settings, surroundings)
        # A weak one: the surroundings belong to the index, too, and a cycle would keep both until they are looked for.
        found = weakref.ref(made)
        surroundings.closers.append(lambda: None if (index := found()) is None else index.close())
        return made

    def index() -> FindIndex:
        # Two first calls at once must not make two indexes: both would load the embedding model.
        with lock:
            return make()

    return find_tools(index, surroundings)


def find_tools(index: Callable[[], FindIndex], surroundings: Surroundings) -> list[Tool]:
    """The tools over an index, which is made when one of them is first called."""

    @tool(effect="read", timeout=120, origins=_FOUND_ORIGINS, itemised="passages")
    def find(query: Annotated[str, "words or a question"], limit: int = 8) -> Found:
        """Search everything: notes, documents, tables, contacts, mail and calendar."""
        wanted = _check_query(query)
        _check_limit(limit, _MAX_PASSAGES)
        searched = index()
        state = searched.refresh()
        hits = searched.search(wanted, limit, surroundings.now().date())
        passages = tuple(
            Passage(
                text=hit.text,
                source=hit.source,
                title=hit.item.title,
                day=hit.item.own_day,
                kind=hit.item.kind,
                score=hit.score,
                people=hit.item.people,
                owner=searched.sources.owner(hit.candidate.place, hit.candidate.name),
            )
            for hit in hits
        )
        note_passages(_note_passage(number, hit, wanted) for number, hit in enumerate(hits))
        # A hidden file or a picture is not a text that was left out.
        missed = sum(state.skipped.get(reason, 0) for reason in missed_reasons())
        told = f"fit {query!r}"
        note_selection(Selection(state.passages, len(passages), "passages", told, skipped=missed, names=state.missed))
        return Found(passages, sum(state.skipped.values()), state.searched_by)

    @tool(effect="read", timeout=120, origins=_PERSON_ORIGINS, itemised="")
    def find_person(name: Annotated[str, "name or address"], limit: int = 10) -> list[Person]:
        """Find people and their addresses in contacts, calendar and mail."""
        wanted = _check_query(name)
        _check_limit(limit, _MAX_PERSONS)
        searched = index()
        state = searched.refresh()
        known = people(searched, wanted)
        chosen = known[:limit]
        note_passages(
            PassageNote((number, "addresses", at), f"{person.known_from}: {person.source}", "contact", person.source)
            for number, person in enumerate(chosen)
            for at in range(len(person.addresses))
        )
        # Contacts that could not be read matter, a report that is too large does not.
        unread = state.skipped.get("unreadable", 0)
        everybody = len(known) if known else len(people(searched))
        note_selection(Selection(everybody, len(chosen), "people", f"are called {name!r}", skipped=unread))
        return chosen

    return [find, find_person]


def missed_reasons() -> tuple[str, ...]:
    """The reasons for which something was left out that might have been what is asked for."""
    from bicameral.toolboxes._find_sources import MISSED

    return MISSED


def _note_passage(number: int, hit: FoundPassage, query: str) -> PassageNote:
    """Where a passage stands, for a person. The kind comes first, so that no subject or title can pose as a file."""
    item, name = hit.item, hit.candidate.name
    day = "" if item.day is None else f"{item.day:%Y-%m-%d}"
    place = item.places[hit.number] if hit.number < len(item.places) else ""
    match item.kind:
        case "mail":
            # The address and not the name of the sender, who can call himself what he likes.
            where = f"mail from {item.people[0] if item.people else 'nobody'} of {day}, “{item.title}”"
        case "event":
            where = f"event on {day}, “{item.title}” ({name})"
        case "table" | "document" if place:
            where = f"{name}, {place}"
        case "table":
            where = f"{name}, row {hit.number + 1}"
        case "contact":
            where = f"{name}, contact {hit.number + 1}"
        case "note" | "page" | "document":
            where = name
    at = ("passages", number, "text")
    return PassageNote(at, where, item.kind, hit.source, hit.line, item.sender, SHOWN_TO_READERS, query, hit.similarity)


def _check_query(query: str) -> str:
    wanted = query.encode("utf-8", "replace").decode("utf-8").strip()
    if not wanted or len(wanted) > _MAX_QUERY:
        raise ToolError(
            "find.bad-query", "this cannot be searched for", expected=f"1 to {_MAX_QUERY:,} characters, not all spaces"
        )
    return wanted


def _check_limit(limit: int, most: int) -> None:
    if not 1 <= limit <= most:
        raise ToolError("find.bad-limit", f"the limit is {limit}", expected=f"1 to {most}")


toolbox: Toolbox[FindSettings] = Toolbox(
    "find", "Search notes, documents, tables, contacts, mail and calendar at once.", FindSettings, _build
)
