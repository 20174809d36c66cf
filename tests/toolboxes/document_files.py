"""Documents made byte by byte: PDF with pages of text, spreadsheets and Word files."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence

_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"
_SHEET = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


def make_pdf(*pages: str, kids: int | None = None) -> bytes:
    """A PDF with a line of text on each page; `kids` repeats the first page so many times in the tree of pages."""
    objects: list[bytes] = [b"<< /Type /Catalog /Pages 2 0 R >>", b""]
    objects.append(b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>")
    places: list[int] = []
    for text in pages:
        lines = text.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)").split("\n")
        shown = " ".join(f"({line}) Tj 0 -20 Td" for line in lines)
        stream = f"BT /F1 12 Tf 72 720 Td {shown} ET".encode("cp1252")
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream))
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents %d 0 R "
            b"/Resources << /Font << /F1 3 0 R >> >> >>" % len(objects)
        )
        places.append(len(objects))
    tree = places if kids is None else places[:1] * kids
    listed = " ".join(f"{place} 0 R" for place in tree).encode()
    objects[1] = b"<< /Type /Pages /Count %d /Kids [%s] >>" % (len(tree), listed)
    out = io.BytesIO(b"%PDF-1.4\n")
    out.seek(0, io.SEEK_END)
    starts: list[int] = []
    for number, content in enumerate(objects, 1):
        starts.append(out.tell())
        out.write(b"%d 0 obj\n%s\nendobj\n" % (number, content))
    table = out.tell()
    out.write(b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1))
    out.writelines(b"%010d 00000 n \n" % start for start in starts)
    out.write(b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, table))
    return out.getvalue()


def make_xlsx(sheets: Mapping[str, Sequence[Sequence[object]]], hidden: Sequence[str] = ()) -> bytes:
    """A workbook of inline texts, numbers and truth values."""
    states = dict.fromkeys(hidden, ' state="hidden"')
    listed = "".join(
        f'<sheet name="{name}" sheetId="{at}" r:id="r{at}"{states.get(name, "")}/>' for at, name in enumerate(sheets, 1)
    )
    related = "".join(
        f'<Relationship Id="r{at}" Type="{_OFFICE}/worksheet" Target="worksheets/sheet{at}.xml"/>'
        for at, _ in enumerate(sheets, 1)
    )
    parts = {
        "_rels/.rels": _relations(f'<Relationship Id="r1" Type="{_OFFICE}/officeDocument" Target="xl/workbook.xml"/>'),
        "xl/workbook.xml": f'<workbook xmlns="{_SHEET}" xmlns:r="{_OFFICE}"><sheets>{listed}</sheets></workbook>',
        "xl/_rels/workbook.xml.rels": _relations(related),
    }
    for at, rows in enumerate(sheets.values(), 1):
        body = "".join(f"<row>{''.join(map(_cell, row))}</row>" for row in rows)
        parts[f"xl/worksheets/sheet{at}.xml"] = f'<worksheet xmlns="{_SHEET}"><sheetData>{body}</sheetData></worksheet>'
    return make_zip(parts)


def make_docx(body: str) -> bytes:
    """A Word file with this XML between the tags of its body."""
    return make_zip({"word/document.xml": f'<w:document xmlns:w="{_WORD}"><w:body>{body}</w:body></w:document>'})


def paragraph(text: str, style: str = "") -> str:
    return f'<w:p><w:pPr><w:pStyle w:val="{style}"/></w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>'


def make_zip(parts: Mapping[str, str | bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return out.getvalue()


def _relations(inner: str) -> str:
    return f'<Relationships xmlns="{_PACKAGE}">{inner}</Relationships>'


def _cell(value: object) -> str:
    match value:
        case bool():
            return f'<c t="b"><v>{int(value)}</v></c>'
        case int() | float():
            return f"<c><v>{value}</v></c>"
        case _:
            return f'<c t="inlineStr"><is><t>{value}</t></is></c>'
