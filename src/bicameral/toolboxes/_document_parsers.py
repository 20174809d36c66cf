"""Readers of PDF, Word and spreadsheet files and of scans, which run in the parser process only.

They are given the bytes of one file and limits. PDF and spreadsheets are read by native code (pdfium, calamine), scans
by a neural network; a Word file is a ZIP of XML, which the standard library reads. What is unpacked is bounded before
and while it is unpacked: declared sizes may be false, and then the limits of the process hold.
"""

from __future__ import annotations

import datetime as dt
import io
import os
import re
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Literal, NoReturn, cast
from xml.parsers import expat

from bicameral.errors import ToolError
from bicameral.toolboxes._text import DocumentKind, clean_text, one_line

Cell = str | int | float | bool

MAX_PAGES = 2_000
MAX_TEXT = 20_000_000
MAX_CELLS = 2_000_000
MAX_UNPACKED = 256 * 1024 * 1024
MAX_ENTRIES = 10_000
MAX_SHEETS = 1_000
_MAX_SHEET_NAME = 120
_MAX_PIXELS = 60_000_000
_SCAN_WIDTH = 1_800
"""Pixels across a page that is rendered to be read: about 200 dots an inch of paper."""
_COMPOUND = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
"""The beginning of the old Office formats, in which an encrypted new one is wrapped as well."""
_EXACT = 2**53


class _Refused(ToolError):
    """Why a document is not read. Every other exception in here means that it is damaged.

    The caller uses the code alone and makes the message: a process that was taken over could send any text.
    """

    def __init__(self, reason: Literal["encrypted", "too-large"]) -> None:
        super().__init__(f"documents.{reason}", "the document is not read")


# PDF


def read_pdf(raw: bytes) -> dict[str, Any]:
    """The text of each page, empty for a page that is a picture."""
    document = _open_pdf(raw)
    texts: list[str] = []
    total = 0
    for number in range(len(document)):
        page = document[number]
        text = page.get_textpage()
        texts.append(_tidy_lines(text.get_text_bounded()))
        # Freed at once, since all pages of a long document together would need much memory.
        text.close()
        page.close()
        total += len(texts[-1])
        if total > MAX_TEXT:
            raise _Refused("too-large")
    return {"texts": texts}


def _open_pdf(raw: bytes) -> Any:
    import pypdfium2

    try:
        document = cast("Any", pypdfium2.PdfDocument(raw))
    except pypdfium2.PdfiumError as error:
        if "password" in str(error).lower():
            raise _Refused("encrypted") from None
        raise
    if len(document) > MAX_PAGES:
        raise _Refused("too-large")
    return document


def _tidy_lines(text: str) -> str:
    lines = [line.rstrip() for line in clean_text(text).split("\n")]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


# Scans


def read_scan(raw: bytes, kind: DocumentKind, page: int) -> dict[str, Any]:
    """The text on one page of a scan, by character recognition, and how many pages there are."""
    # This process may start no threads, and the libraries below would otherwise start some when they are imported.
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"
    pages, picture = _pdf_picture(raw, page) if kind == "pdf" else _picture(raw, page)
    return {"pages": pages, "text": _recognise(picture)}


def _pdf_picture(raw: bytes, number: int) -> tuple[int, Any]:
    document = _open_pdf(raw)
    page = document[number]
    width, height = page.get_size()
    if height > 10 * width:
        raise _Refused("too-large")
    bitmap = page.render(scale=_SCAN_WIDTH / width)
    return len(document), bitmap.to_numpy()[:, :, :3].copy()


def _picture(raw: bytes, number: int) -> tuple[int, Any]:
    import numpy
    from PIL import Image, ImageOps

    # The number of pixels is checked here before they are decoded, with a limit of our own.
    Image.MAX_IMAGE_PIXELS = None
    with Image.open(io.BytesIO(raw), formats=("PNG", "JPEG", "TIFF", "WEBP", "BMP")) as image:
        pages = int(getattr(image, "n_frames", 1))
        image.seek(number)
        if image.width * image.height > _MAX_PIXELS:
            raise _Refused("too-large")
        upright = cast("Any", ImageOps.exif_transpose(image)).convert("RGB")
    return pages, numpy.asarray(upright)[:, :, ::-1].copy()


def _recognise(picture: Any) -> str:
    from importlib import import_module

    cv2 = import_module("cv2")
    cv2.setNumThreads(0)
    rapidocr = import_module("rapidocr")
    one_thread = {
        "EngineConfig.onnxruntime.intra_op_num_threads": 1,
        "EngineConfig.onnxruntime.inter_op_num_threads": 1,
        "Global.log_level": "critical",
    }
    found = rapidocr.RapidOCR(params=one_thread)(picture)
    texts, boxes = found.txts, found.boxes
    if texts is None or boxes is None:
        return ""
    return _tidy_lines(
        "\n".join(
            _text_lines(
                [
                    (float(box[0][0]), float(box[0][1]), float(box[3][1] - box[0][1]), text)
                    for box, text in zip(boxes, texts, strict=True)
                ]
            )
        )
    )


def _text_lines(words: list[tuple[float, float, float, str]]) -> Iterator[str]:
    """Lines of recognised pieces (left, top, height, text): pieces at about the same height stand on one line."""
    line: list[tuple[float, str]] = []
    top = height = 0.0
    for left, above, tall, text in sorted(words, key=lambda word: word[1]):
        if line and above - top > max(height, tall) / 2:
            yield "  ".join(piece for _, piece in sorted(line))
            line = []
        if not line:
            top, height = above, tall
        line.append((left, one_line(text)))
    if line:
        yield "  ".join(piece for _, piece in sorted(line))


# ZIP


def _open_zip(raw: bytes) -> zipfile.ZipFile:
    if raw.startswith(_COMPOUND):
        raise _Refused("encrypted")
    archive = zipfile.ZipFile(io.BytesIO(raw))
    entries = archive.infolist()
    if len(entries) > MAX_ENTRIES or sum(entry.file_size for entry in entries) > MAX_UNPACKED:
        raise _Refused("too-large")
    return archive


def _read_entry(archive: zipfile.ZipFile, name: str) -> bytes:
    """One part of an archive. The declared sizes may be false, so that reading is bounded itself."""
    try:
        with archive.open(name) as entry:
            content = entry.read(MAX_UNPACKED + 1)
    except RuntimeError:
        raise _Refused("encrypted") from None
    if len(content) > MAX_UNPACKED:
        raise _Refused("too-large")
    return content


# Word

_HEADING = re.compile(r"(?:heading|berschrift|titre|t[ií]?tulo|titolo)\s*([1-6])", re.IGNORECASE)
_BREAKS = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}


@dataclass(slots=True)
class _WordText:
    """Collects paragraphs and tables of a Word file from the events of an XML parser, without recursion."""

    lines: list[str] = field(default_factory=list[str])
    tables: list[list[list[str]]] = field(default_factory=list[list[list[str]]])
    _paragraphs: list[list[str]] = field(default_factory=list[list[str]])
    _marks: list[str] = field(default_factory=list[str])
    _open_tables: list[list[list[str]]] = field(default_factory=list[list[list[str]]])
    _cells: list[list[str]] = field(default_factory=list[list[str]])
    _spans: list[int] = field(default_factory=list[int])
    _in_text: bool = False
    _skipped: int = 0
    _size: int = 0
    _count: int = 0

    def start(self, name: str, attributes: dict[str, str]) -> None:
        tag = name.rpartition(" ")[2]
        # The fallback repeats a text box for old programs.
        if self._skipped or tag == "Fallback":
            self._skipped += 1
            return
        value = next((each for key, each in attributes.items() if key.rpartition(" ")[2] == "val"), "")
        match tag:
            case "p":
                self._paragraphs.append([])
                self._marks.append("")
            case "t":
                self._in_text = True
            case "pStyle" | "outlineLvl" | "numPr" if self._marks:
                self._marks[-1] = self._mark(tag, value) or self._marks[-1]
            case "tbl":
                self._open_tables.append([])
            case "tr" if self._open_tables:
                self._open_tables[-1].append([])
            case "tc" if self._open_tables:
                self._cells.append([])
                self._spans.append(1)
            case "gridSpan" if self._spans and value.isdecimal():
                self._spans[-1] = min(int(value[:6]), 200)
            case _ if tag in _BREAKS and self._paragraphs:
                self._paragraphs[-1].append(_BREAKS[tag])
            case _:
                return

    def text(self, text: str) -> None:
        if self._in_text and not self._skipped and self._paragraphs:
            self._size += len(text)
            if self._size > MAX_TEXT:
                raise _Refused("too-large")
            self._paragraphs[-1].append(text)

    def end(self, name: str) -> None:
        tag = name.rpartition(" ")[2]
        if self._skipped:
            self._skipped -= 1
            return
        match tag:
            case "t":
                self._in_text = False
            case "p" if self._paragraphs:
                self._end_paragraph()
            case "tc" if self._cells and self._open_tables and self._open_tables[-1]:
                row = self._open_tables[-1][-1]
                row.append("\n".join(filter(None, self._cells.pop())))
                # A cell over several columns: the others stay where they are.
                row.extend([""] * (self._spans.pop() - 1))
                self._count += len(row)
                if self._count > MAX_CELLS:
                    raise _Refused("too-large")
            case "tbl" if self._open_tables:
                self._end_table()
            case _:
                return

    def _mark(self, tag: str, value: str) -> str:
        if tag == "numPr":
            return "- " if not self._marks[-1] else ""
        level = _HEADING.search(value) if tag == "pStyle" else re.fullmatch(r"[0-5]", value)
        if level is None:
            return {"Title": "# ", "ListBullet": "- ", "ListNumber": "- "}.get(value, "") if tag == "pStyle" else ""
        return "#" * (int(level[1]) if tag == "pStyle" else int(level[0]) + 1) + " "

    def _end_paragraph(self) -> None:
        text, mark = clean_text("".join(self._paragraphs.pop())).strip(), self._marks.pop()
        if self._cells:
            self._cells[-1].append(text)
        elif self._paragraphs:
            # A text box stands inside a paragraph.
            self._paragraphs[-1].append(f"\n{text}\n" if text else "")
        else:
            self.lines.extend((f"{mark}{text}" if text else "", ""))

    def _end_table(self) -> None:
        rows = self._open_tables.pop()
        lines = [" | ".join(one_line(cell) for cell in row) for row in rows]
        if self._cells:
            # A table in a cell is used for layout.
            self._cells[-1].extend(lines)
        else:
            self.tables.append(rows)
            self.lines.extend((*lines, ""))


def read_word(raw: bytes) -> dict[str, Any]:
    """The text of a Word file with its headings, lists and tables, then its notes."""
    word = _parse_word(raw)
    return {"texts": [_tidy_lines("\n".join(word.lines))]}


def _parse_word(raw: bytes) -> _WordText:
    archive = _open_zip(raw)
    names = set(archive.namelist())
    word = _WordText()
    _parse_xml(_read_entry(archive, "word/document.xml"), word)
    for name in ("word/footnotes.xml", "word/endnotes.xml"):
        if name in names:
            _parse_xml(_read_entry(archive, name), word)
    return word


def _parse_xml(content: bytes, word: _WordText) -> None:
    def refuse(*_: object) -> NoReturn:
        raise ValueError("no Word file has a document type, which could define entities that expand without end")

    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = refuse
    parser.StartElementHandler = word.start
    parser.EndElementHandler = word.end
    parser.CharacterDataHandler = word.text
    parser.Parse(content, True)


# Tables


@dataclass(frozen=True, slots=True)
class _Table:
    """A sheet or a table of a text; its cells are read only if it is chosen."""

    name: str
    is_shown: bool
    rows: Callable[[], list[list[Cell]]]


def read_tables(raw: bytes, kind: DocumentKind, wanted: str | None) -> dict[str, Any]:
    """The names of all tables that have cells, and the columns and rows of the one that is wanted, if there is one.

    Args:
        wanted: Its name or number; empty for the only one, None for all.
    """
    tables = list(islice(_word_tables(raw) if kind == "word" else _sheets(raw), MAX_SHEETS))
    if wanted:
        chosen = _named_table(tables, wanted)
        filled = {each.name: each.rows() for each in chosen} if chosen else {}
        names = [each.name for each in tables]
    else:
        found = {each.name: rows for each in tables if each.is_shown and (rows := each.rows())}
        filled = found if wanted is None or len(found) == 1 else {}
        names = list(found)
    read = [_header_and_rows(name, rows) for name, rows in filled.items()]
    return {"names": names, "tables": read}


def _named_table(tables: list[_Table], wanted: str) -> list[_Table]:
    same = [each for each in tables if each.name == wanted]
    near = [each for each in tables if one_line(each.name).casefold() == one_line(wanted).casefold()]
    if same or near:
        return (same or near)[:1]
    number = int(wanted) if re.fullmatch(r"[1-9][0-9]{0,3}", wanted.strip()) else 0
    return tables[number - 1 : number] if number else []


def _header_and_rows(name: str, rows: list[list[Cell]]) -> dict[str, Any]:
    """The first row with names is the header; titles above it, which stand alone in their row, are left out."""
    width = max(map(len, rows))
    least = 1 if width == 1 else 2
    start = next((at for at, row in enumerate(rows) if sum(cell != "" for cell in row) >= least), 0)
    return {"name": name, "header": [_cell_name(cell) for cell in rows[start]], "rows": rows[start + 1 :]}


def _cell_name(cell: Cell) -> str:
    return one_line(str(cell))


def _word_tables(raw: bytes) -> Iterator[_Table]:
    for number, rows in enumerate(_parse_word(raw).tables, 1):
        width = max(map(len, rows), default=0)
        # Cells that reach over several columns make rows of different lengths.
        cells = [[*(one_line(cell) for cell in row), *[""] * (width - len(row))] for row in rows if any(row)]
        if cells:
            yield _Table(f"table {number}", True, lambda found=cells: cast("list[list[Cell]]", found))


def _sheets(raw: bytes) -> Iterator[_Table]:
    import python_calamine as calamine

    if raw.startswith(b"PK"):
        _open_zip(raw).close()
    elif raw.startswith(_COMPOUND) and "EncryptedPackage".encode("utf-16-le") in raw:
        raise _Refused("encrypted")
    try:
        book = cast("Any", calamine.CalamineWorkbook.from_filelike(io.BytesIO(raw)))
    except calamine.PasswordError:
        raise _Refused("encrypted") from None
    total = 0

    def read(name: str) -> list[list[Cell]]:
        nonlocal total
        sheet = book.get_sheet_by_name(name)
        total += sheet.height * sheet.width
        if total > MAX_CELLS:
            raise _Refused("too-large")
        rows = [[_plain_cell(cell) for cell in row] for row in sheet.to_python(skip_empty_area=True)]
        return [row for row in rows if any(cell != "" for cell in row)]

    for facts in book.sheets_metadata:
        if str(facts.typ).endswith("WorkSheet"):
            name, shown = str(facts.name), str(facts.visible).endswith("Visible")
            yield _Table(name[:_MAX_SHEET_NAME], shown, lambda name=name: read(name))


def _plain_cell(cell: object) -> Cell:
    """A cell as JSON can hold it: dates in ISO form, and whole numbers, which a sheet holds as floats, as such."""
    match cell:
        case bool() | int():
            return cell
        case float():
            if cell != cell or abs(cell) == float("inf"):
                return ""
            return int(cell) if cell.is_integer() and abs(cell) < _EXACT else cell
        case dt.datetime():
            return cell.date().isoformat() if cell.time() == dt.time() else cell.isoformat(" ", "minutes")
        case dt.date():
            return cell.isoformat()
        case dt.time():
            return cell.isoformat("minutes")
        case dt.timedelta():
            return str(cell)
        case None:
            return ""
        case _:
            return clean_text(str(cell)).strip()
