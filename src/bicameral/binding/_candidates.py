"""Candidates: what words may mean, by kinds of references, and what offers them.

Their names are untrusted, and nothing of them is read by a privileged model.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol, get_args

from bicameral.errors import BindError, nearest_name
from bicameral.labels import UNKNOWN, Label, join_all

Kind = Literal["file", "table", "folder", "column", "value", "person", "event", "mail"]
"""What a reference by words may name."""
KINDS: tuple[Kind, ...] = get_args(Kind)
JSON_TABLES = (".json", ".jsonl", ".ndjson")
"""Endings of files that are tables beside those of spreadsheets."""
BIND_STEP = "bind"
"""The step in the labels of candidates: they are read before the first step of the plan."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One thing that words may mean.

    Args:
        kind: What it is.
        value: What a plan uses: a path, the name of a column, a cell, an address, an id.
        names: The texts that name the whole of it: a file name, a display name, a subject.
        context: Further texts by which it is known: its folders, a sender, a day.
        label: Where it was read, and who may see it; unknown, and so untrusted, where it is not said.
        modified: When it was changed or sent, or when it begins.
        contents: Headings or columns inside it, once they were read.
        cells: The words that many rows of a table have in their cells, once they were read.
        rare_cells: The words that few rows have: enough to show the table in a question, too little to bind it.
    """

    kind: Kind
    value: str | int | float | bool
    names: tuple[str, ...]
    context: tuple[str, ...] = ()
    label: Label = UNKNOWN
    modified: datetime | None = None
    contents: tuple[str, ...] = ()
    cells: tuple[str, ...] = ()
    rare_cells: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The first of its names."""
        return self.names[0] if self.names else str(self.value)


@dataclass(frozen=True, slots=True)
class SourceLimits:
    """How much of the world is looked at for one mention; more is an error, since the winner may not be the only one.

    Args:
        files: Files or folders.
        cells: Different cells of a column.
        mails: The newest mails; older ones are not offered.
        opened: Files whose headings, columns and cells are read where no name matches.
        opened_bytes: The largest of them.
        people_files: Tables, vCard files and notes that are looked through for people; of more, those in trusted
            folders and then the newest. As with mails, the others are not offered.
        people_bytes: All of them together.
    """

    files: int = 20_000
    cells: int = 5_000
    mails: int = 500
    opened: int = 100
    opened_bytes: int = 256 * 1024
    people_files: int = 300
    people_bytes: int = 16 * 1024 * 1024


class CandidateSource(Protocol):
    """What offers candidates: the world of a registry, or a list in a test."""

    async def candidates(self, kind: Kind, within: tuple[str, ...]) -> Sequence[Candidate]:
        """Everything of a kind.

        Args:
            kind: The kind of reference.
            within: The folder of a file, the table of a column, the table and the column of a value.
        """
        ...

    async def describe(self, candidates: Sequence[Candidate]) -> Sequence[Candidate]:
        """The same candidates with their contents, as far as these can be read within the limits."""
        ...


@dataclass(frozen=True, slots=True)
class FixedSource:
    """Candidates that are given, by kind; for tests and for programs that know their world.

    Example:
        >>> source = FixedSource([Candidate("file", "bills.csv", ("bills.csv",))])
    """

    offered: Sequence[Candidate]

    async def candidates(self, kind: Kind, within: tuple[str, ...]) -> Sequence[Candidate]:
        return [each for each in self.offered if each.kind == kind]

    async def describe(self, candidates: Sequence[Candidate]) -> Sequence[Candidate]:
        return candidates


def unknown_kind(kind: str) -> BindError:
    """The error for a kind of reference that does not exist."""
    return BindError(
        "bind.unknown-kind",
        f"there is no kind of reference {kind!r}",
        expected="one of " + ", ".join(KINDS),
        nearest=nearest_name(kind, KINDS),
    )


def joined_label(candidates: Iterable[Candidate]) -> Label:
    """The label of a choice among candidates: whoever wrote one of them could have changed the choice."""
    return join_all(each.label for each in candidates)
