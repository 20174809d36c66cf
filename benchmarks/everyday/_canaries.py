"""A canary in every name of a folder, for tests that no name of the world reaches a privileged prompt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import PurePosixPath
from typing import Any, cast

from ._folders import AddressBook, Contact, Content, Entry, File, Letter, Note, Records, Table


@dataclass(slots=True)
class _Cage:
    """Makes canaries, each once, and knows what each was put into."""

    prefix: str
    held: dict[str, str] = field(default_factory=dict[str, str])
    _numbers: count[int] = field(default_factory=count)
    _folders: dict[str, str] = field(default_factory=dict[str, str])

    def mark(self, name: str, kind: str) -> str:
        """The name with a canary at its end."""
        canary = f"{self.prefix}{next(self._numbers):04}q"
        self.held[canary] = f"{kind} {name}"
        return f"{name}{canary}" if name else canary

    def mark_path(self, path: str) -> str:
        """A path with a canary in its file name and one in each of its folders; a folder has the same one each time."""
        pure = PurePosixPath(path)
        parts = list[str]()
        for depth, part in enumerate(pure.parts[:-1], start=1):
            folder = "/".join(pure.parts[:depth])
            if folder not in self._folders:
                self._folders[folder] = self.mark(part, "folder")
            parts.append(self._folders[folder])
        return "/".join([*parts, self.mark(pure.stem, "file") + pure.suffix])

    def mark_keys(self, data: Any, known: dict[str, str]) -> Any:
        """JSON with a canary in each key; the same key has the same one in one file, as columns have."""
        match data:
            case Mapping():
                pairs = cast("Mapping[str, Any]", data).items()
                return {
                    known.setdefault(key, "") or self._key(key, known): self.mark_keys(each, known)
                    for key, each in pairs
                }
            case list():
                return [self.mark_keys(each, known) for each in cast("list[Any]", data)]
            case _:
                return data

    def _key(self, key: str, known: dict[str, str]) -> str:
        known[key] = self.mark(key, "key")
        return known[key]


def plant_canaries(content: Content, prefix: str = "zqcanary") -> tuple[Content, dict[str, str]]:
    """A content with a distinct canary in every name that somebody else can choose.

    Files, folders, columns, keys, events, their places, contacts and their addresses, subjects and senders each get
    one. What notes, mails and cells say stays as it is, so that every question still has its answer; only addresses are
    others than the oracle's.

    Args:
        content: The content; it is not changed.
        prefix: How each canary begins; letters only.

    Returns:
        The new content, and what each canary was put into.

    Example:
        >>> marked, canaries = plant_canaries(content_of("en", "a"))
        >>> [canary for canary in canaries if canary in prompt]
        []
    """
    cage = _Cage(prefix)
    files = tuple(_mark_file(file, cage) for file in content.files)
    letters = tuple(_mark_letter(letter, cage) for letter in content.letters)
    entries = tuple(_mark_entry(entry, cage) for entry in content.entries)
    return replace(content, files=files, letters=letters, entries=entries), cage.held


def _mark_file(file: File, cage: _Cage) -> File:
    path = cage.mark_path(file.path)
    match file:
        case Note():
            return replace(file, path=path)
        case Table():
            return replace(file, path=path, columns=tuple(cage.mark(each, "column") for each in file.columns))
        case Records():
            return replace(file, path=path, data=cage.mark_keys(file.data, {}))
        case AddressBook():
            contacts = tuple(_mark_contact(each, cage) for each in file.contacts)
            if file.style == "vcard":
                # The fields of a vCard have fixed names.
                return replace(file, path=path, contacts=contacts)
            name, address, about = (cage.mark(each, "column") for each in file.columns)
            return replace(file, path=path, contacts=contacts, columns=(name, address, about))


def _mark_contact(contact: Contact, cage: _Cage) -> Contact:
    # The canary is a word of its own: the person is still found by the name that the user says.
    name = f"{contact.name} {cage.mark('', f'contact {contact.name}')}"
    return replace(contact, name=name, address=_mark_address(contact.address, cage))


def _mark_letter(letter: Letter, cage: _Cage) -> Letter:
    return replace(
        letter,
        name=f"{letter.name} {cage.mark('', f'sender {letter.name}')}",
        address=_mark_address(letter.address, cage),
        subject=f"{letter.subject} {cage.mark('', f'subject {letter.subject}')}",
    )


def _mark_entry(entry: Entry, cage: _Cage) -> Entry:
    title = f"{entry.title} {cage.mark('', f'event {entry.title}')}"
    location = f"{entry.location} {cage.mark('', f'place {entry.location}')}" if entry.location else ""
    return replace(entry, title=title, location=location)


def _mark_address(address: str, cage: _Cage) -> str:
    local, _, domain = address.partition("@")
    return f"{cage.mark(local, 'address')}@{domain}"
