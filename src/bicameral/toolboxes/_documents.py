"""Documents: the text and tables of PDF, Word and spreadsheet files and of scans, read in the sandbox.

Native code that reads files of anybody may be taken over by one of them. So each document is read in a process of its
own that has no files, no network and limits on time, memory and output (`bicameral.parsing`); where the kernel cannot
confine it, no document is read. What comes back is checked against a type. It has the label of the file that it was
read from, as any text of a file has.

The packages are extras: `documents` for PDF and spreadsheets, `ocr` for scans. Word files need neither, but what reads
them is the same for all.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from bicameral.columns import DecimalMark
from bicameral.errors import Place, ToolError, missing_packages, nearest_name, require_extra
from bicameral.parsing import ISOLATED_POOL, MIB, ParseLimitError, ParseLimits, Parser
from bicameral.toolboxes._document_parsers import (
    MAX_CELLS,
    MAX_PAGES,
    MAX_TEXT,
    MAX_UNPACKED,
    Cell,
)
from bicameral.toolboxes._table_files import Row, column_names, parse_column
from bicameral.toolboxes._text import DOCUMENT_KINDS, DocumentKind, document_kind

_PACKAGES: dict[DocumentKind, tuple[str, ...]] = {
    "pdf": ("pypdfium2",),
    "word": (),
    "sheets": ("python_calamine",),
    "picture": ("rapidocr", "onnxruntime"),
}
MAX_SCANNED_PAGES = 20
_SCAN_SECONDS = 200.0
"""For all pages of a scan together: below the time-out of the tools, which would be tried again after it."""
_MAX_CACHED = 20_000_000
_MAX_SHOWN_NAMES = 20

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Texts:
    texts: list[str]


@dataclass(frozen=True, slots=True)
class _Scan:
    pages: int
    text: str


@dataclass(frozen=True, slots=True)
class _Table:
    name: str
    header: list[str]
    rows: list[list[Cell]]


@dataclass(frozen=True, slots=True)
class _Tables:
    names: list[str]
    tables: list[_Table]


# Below the time-out of the tools (30 seconds): a tool that times out is tried again, which would not help here.
_LIMITS = ParseLimits(cpu=15.0, wall=25.0, memory=1024 * MIB, output=128 * MIB)
# A page takes ten seconds or so; what recognises characters maps much more memory than it uses.
_SCAN_LIMITS = ParseLimits(cpu=90.0, wall=120.0, memory=4096 * MIB, output=8 * MIB)
_MODULE = "bicameral.toolboxes._document_parsers"
_PDF_PARSER: Parser[_Texts] = Parser(f"{_MODULE}:read_pdf", _Texts, _LIMITS, ISOLATED_POOL)
_WORD_PARSER: Parser[_Texts] = Parser(f"{_MODULE}:read_word", _Texts, _LIMITS, ISOLATED_POOL)
_TABLE_PARSER: Parser[_Tables] = Parser(f"{_MODULE}:read_tables", _Tables, _LIMITS, ISOLATED_POOL)
_SCAN_PARSER: Parser[_Scan] = Parser(f"{_MODULE}:read_scan", _Scan, _SCAN_LIMITS, ISOLATED_POOL)


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a document: a page, a sheet, or all of it. `rows` are those of a sheet, each as one line."""

    place: str
    text: str
    rows: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Document:
    """The text of a document by its pages or sheets."""

    sections: tuple[Section, ...]

    @property
    def text(self) -> str:
        """All of the text; where there are several pages or sheets, each begins with a line such as `[page 2]`."""
        if len(self.sections) == 1:
            return self.sections[0].text
        return "\n\n".join(f"[{section.place}]\n{section.text}".rstrip() for section in self.sections)


def can_read(kind: DocumentKind) -> bool:
    """Whether the packages for this kind of document are installed."""
    return not missing_packages(*_PACKAGES[kind])


def read_document(raw: bytes, path: str, *, scans: bool = True) -> Document:
    """The text of a document.

    Args:
        raw: Its bytes.
        path: Its name, in errors and for its kind.
        scans: Whether characters in pictures are recognised, which takes seconds for each page.

    Raises:
        ToolError: `documents.not-installed`, `documents.encrypted`, `documents.broken`, `documents.too-large`, or
            `documents.no-text`; `tools.parse-limit` if it takes more time or memory than it may.

    Example:
        >>> read_document(Path("offer.pdf").read_bytes(), "offer.pdf").sections[0]
        Section(place='page 1', text='Offer 2026 ...', rows=())
    """
    kind = _require_kind(path)
    return _CACHE.get(
        ("text", kind, scans, _digest(raw)),
        lambda: _read_document(raw, path, kind, scans=scans),
        lambda found: sum(len(section.text) for section in found.sections),
    )


def read_rows(raw: bytes, path: str, sheet: str = "", decimals: DecimalMark | None = None) -> list[Row]:
    """The rows of a sheet, or of a table in a Word file; without a name, of the only one that has cells.

    Raises:
        ToolError: As `read_document`, and `documents.no-table`, `documents.several-sheets` or `documents.unknown-sheet`
            with the names of those that are there.
    """
    kind = _require_kind(path)
    if kind not in ("sheets", "word"):
        raise ToolError(
            "documents.no-table",
            f"{path!r} has no table that can be read as rows",
            place=Place(file=path),
            fix="Read it with `read_text`.",
        )
    found = _CACHE.get(
        ("rows", kind, sheet, _digest(raw)),
        lambda: _parse(_TABLE_PARSER, raw, path, kind=kind, wanted=sheet),
        lambda found: sum(len(table.rows) * len(table.header) * 20 for table in found.tables),
    )
    if not found.tables:
        raise _no_table(found.names, path, sheet)
    return _table_rows(found.tables[0], decimals, texts=kind == "word")


def _no_table(names: list[str], path: str, sheet: str) -> ToolError:
    shown = ", ".join(map(repr, names[:_MAX_SHOWN_NAMES])) + (" ..." if len(names) > _MAX_SHOWN_NAMES else "")
    place = Place(file=path)
    if not names:
        return ToolError("documents.no-table", f"{path!r} has no table with cells", place=place)
    if sheet:
        return ToolError(
            "documents.unknown-sheet",
            f"{path!r} has no sheet {sheet!r}",
            place=place,
            expected=f"one of {shown}",
            nearest=nearest_name(sheet, names[:200]),
        )
    return ToolError(
        "documents.several-sheets",
        f"{path!r} has {len(names)} tables: which one?",
        place=place,
        expected=f"one of {shown}",
        fix="Name the sheet in the request.",
    )


def _table_rows(table: _Table, decimals: DecimalMark | None, *, texts: bool) -> list[Row]:
    # The reply of the parser is untrusted: rows of another length than the header must not shift cells.
    names = column_names(table.header)
    rows = [(*row[: len(names)], *[""] * (len(names) - len(row))) for row in table.rows]
    if texts:
        columns = [parse_column([str(cell) for cell in column], decimals) for column in zip(*rows, strict=True)]
        rows = list(zip(*columns, strict=True))
    return [dict(zip(names, row, strict=True)) for row in rows]


def _require_kind(path: str) -> DocumentKind:
    kind = document_kind(path)
    if kind is None:
        raise ToolError(
            "documents.broken", f"{path!r} is no document that can be read", expected=", ".join(DOCUMENT_KINDS)
        )
    extra, what = ("ocr", "reading scans needs") if kind == "picture" else ("documents", "reading documents needs")
    require_extra(extra, *_PACKAGES[kind], error=ToolError, code="documents.not-installed", needs=what)
    return kind


def _read_document(raw: bytes, path: str, kind: DocumentKind, *, scans: bool) -> Document:
    match kind:
        case "pdf":
            texts = _parse(_PDF_PARSER, raw, path).texts
            return Document(tuple(_pages(_with_scans(raw, path, texts, scans=scans))))
        case "word":
            return Document(tuple(Section("", text) for text in _parse(_WORD_PARSER, raw, path).texts))
        case "sheets":
            found = _parse(_TABLE_PARSER, raw, path, kind=kind, wanted=None)
            return Document(tuple(map(_sheet_section, found.tables)) or (Section("", ""),))
        case "picture":
            if not scans:
                raise _no_text(path)
            return Document(tuple(_pages(_scan_pages(raw, path, kind, None))))


def _with_scans(raw: bytes, path: str, texts: list[str], *, scans: bool) -> list[str]:
    """The texts of the pages, those of pictures recognised if that can be done."""
    empty = [number for number, text in enumerate(texts) if not text]
    if not empty:
        return texts
    if scans and can_read("picture"):
        recognised = dict(zip(empty, _scan_pages(raw, path, "pdf", empty), strict=True))
        texts = [recognised.get(number, text) for number, text in enumerate(texts)]
    elif len(empty) == len(texts):
        raise _no_text(path)
    return texts


def _no_text(path: str) -> ToolError:
    fix = 'Install `pip install "bicameral[ocr]"`, which recognises characters in pictures.'
    return ToolError(
        "documents.no-text",
        f"{path!r} has pictures of pages only, and no text",
        place=Place(file=path),
        fix=None if can_read("picture") else fix,
    )


def _scan_pages(raw: bytes, path: str, kind: DocumentKind, numbers: list[int] | None) -> list[str]:
    """The recognised texts of these pages, or of all pages of a picture. Each page has a process of its own."""
    until = time.monotonic() + _SCAN_SECONDS
    texts: list[str] = []
    pages = len(numbers) if numbers is not None else 1
    while len(texts) < pages:
        if pages > MAX_SCANNED_PAGES or time.monotonic() > until:
            read = f"{len(texts)} of {pages} pages were read in {_SCAN_SECONDS:g} seconds"
            raise ToolError(
                "documents.too-large",
                f"{path!r} has too many pages that are pictures: "
                + (f"{pages} pages, and {MAX_SCANNED_PAGES} are read at most" if pages > MAX_SCANNED_PAGES else read),
                place=Place(file=path),
                fix="Split it, or take out the pages that are needed.",
            )
        number = len(texts) if numbers is None else numbers[len(texts)]
        found = _parse(_SCAN_PARSER, raw, path, kind=kind, page=number)
        texts.append(found.text)
        if numbers is None:
            pages = found.pages
    return texts


def _pages(texts: list[str]) -> list[Section]:
    return [Section(f"page {number}", text) for number, text in enumerate(texts, 1)]


def _sheet_section(table: _Table) -> Section:
    rows = [" | ".join(map(str, row)) for row in (table.header, *table.rows)]
    named = _table_rows(table, None, texts=False)
    shown = tuple("; ".join(f"{name}: {cell}" for name, cell in row.items() if cell != "") for row in named)
    return Section(f"sheet {table.name}", "\n".join(rows), shown)


_REASONS = {
    "documents.encrypted": ("is protected with a password", "Save a copy without the password."),
    "documents.broken": (
        "is damaged, or not what its name says",
        "Open it in its own program and save it again.",
    ),
    "documents.too-large": (
        f"is too large: more than {MAX_PAGES:,} pages, {MAX_CELLS:,} cells or {MAX_TEXT:,} characters, or more than "
        f"{MAX_UNPACKED // MIB} MiB when it is unpacked",
        "Split it, or take out the part that is needed.",
    ),
}


def _parse(parser: Parser[T], raw: bytes, path: str, **arguments: Any) -> T:
    """Call a parser. Of its errors only the code is used: a process that was taken over could send any text."""
    try:
        return parser(raw, what=f"the document {path!r}", **arguments)
    except ParseLimitError:
        raise
    except ToolError as error:
        if error.code in ("tools.cannot-confine", "tools.cannot-start"):
            raise
        code = error.code if error.code in _REASONS else "documents.broken"
        reason, fix = _REASONS[code]
        raise ToolError(code, f"{path!r} {reason}", place=Place(file=path), fix=fix) from None


def _digest(raw: bytes) -> bytes:
    return hashlib.sha256(raw).digest()


@dataclass(slots=True)
class _ContentCache:
    """What was read, by the hash of the bytes: it never gets old, and holds nothing of names or labels."""

    _found: OrderedDict[tuple[object, ...], tuple[int, Any]] = field(
        default_factory=OrderedDict[tuple[object, ...], tuple[int, Any]]
    )
    _size: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def get(self, key: tuple[object, ...], make: Callable[[], T], size: Callable[[T], int]) -> T:
        # The lock is not held while a document is read: that may take seconds, and two readers of one are rare.
        with self._lock:
            if key in self._found:
                self._found.move_to_end(key)
                return self._found[key][1]
        made = make()
        with self._lock:
            if key not in self._found:
                self._found[key] = (size(made), made)
                self._size += self._found[key][0]
            while self._size > _MAX_CACHED:
                _, (dropped, _) = self._found.popitem(last=False)
                self._size -= dropped
        return made


_CACHE = _ContentCache()
