"""Media types and capabilities: which files and texts a tool takes and gives, and what it is able to do.

A media type is written as MIME writes it (`application/pdf`, `image/*`). Parameters and case do not count, and a few
old spellings stand for the registered one. A capability is a short name of words joined by hyphens (`document-ocr`).
Descriptions of programs are untrusted, so a name is used only if it consists of plain characters: it is shown on
terminals and offered by the completion of a shell.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise

from bicameral.text import stem

MEDIA_TYPE = re.compile(r"[a-zA-Z0-9][\w.+-]{0,126}/(?:[a-zA-Z0-9][\w.+-]{0,126}|\*)(?:;.*)?", re.ASCII)
_ANY_MEDIA = "*/*"
_CAPABILITY = re.compile(r"[a-z0-9]+(?:[-.+][a-z0-9]+){0,11}")
_LONGEST_CAPABILITY = 80
MAX_FACTS = 200
"""The most media types or capabilities that one tool can have; the rest of a longer list is ignored."""

_ALIASES = {
    "application/csv": "text/csv",
    "application/x-pdf": "application/pdf",
    "application/xhtml+xml": "text/html",
    "image/jpg": "image/jpeg",
    "image/pjpeg": "image/jpeg",
    "image/x-png": "image/png",
    "text/json": "application/json",
    "text/tsv": "text/tab-separated-values",
    "text/x-markdown": "text/markdown",
    "text/xml": "application/xml",
}

DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
ODS = "application/vnd.oasis.opendocument.spreadsheet"
XLS = "application/vnd.ms-excel"

TABLE_MEDIA = (XLSX, XLS, ODS, DOCX)
"""Documents whose tables are read."""
DOCUMENT_MEDIA = (
    *("application/pdf", *TABLE_MEDIA, "image/png", "image/jpeg", "image/tiff", "image/webp", "image/bmp"),
    *("application/json", "application/xml"),
)
"""Files, besides plain ones, whose text is read."""

# Our own table and not `mimetypes`, which reads files of the machine: the same request must choose the same tools.
_BY_ENDING = {
    **dict.fromkeys((".txt", ".log", ".text"), "text/plain"),
    **dict.fromkeys((".md", ".markdown"), "text/markdown"),
    **dict.fromkeys((".htm", ".html", ".xhtml"), "text/html"),
    **dict.fromkeys((".jpg", ".jpeg"), "image/jpeg"),
    **dict.fromkeys((".tif", ".tiff"), "image/tiff"),
    **dict.fromkeys((".tsv", ".tab"), "text/tab-separated-values"),
    **dict.fromkeys((".jsonl", ".ndjson"), "application/x-ndjson"),
    **dict.fromkeys((".xls", ".xlsm", ".xlsb"), XLS),
    **dict.fromkeys((".docx", ".docm"), DOCX),
    ".bmp": "image/bmp",
    ".csv": "text/csv",
    ".doc": "application/msword",
    ".eml": "message/rfc822",
    ".epub": "application/epub+zip",
    ".flac": "audio/flac",
    ".gif": "image/gif",
    ".gz": "application/gzip",
    ".heic": "image/heic",
    ".ics": "text/calendar",
    ".json": "application/json",
    ".mov": "video/quicktime",
    ".mp3": "audio/mpeg",
    ".mp4": "video/mp4",
    ".ods": ODS,
    ".odt": "application/vnd.oasis.opendocument.text",
    ".ogg": "audio/ogg",
    ".pdf": "application/pdf",
    ".png": "image/png",
    ".pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    ".rtf": "application/rtf",
    ".svg": "image/svg+xml",
    ".tar": "application/x-tar",
    ".toml": "application/toml",
    ".vcf": "text/vcard",
    ".wav": "audio/wav",
    ".webm": "video/webm",
    ".webp": "image/webp",
    ".xlsx": XLSX,
    ".xml": "application/xml",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
    ".zip": "application/zip",
}

# What people call files whose ending they do not write. A scan is a picture or a PDF of pictures.
_BY_WORD = {
    **dict.fromkeys("photo photograph picture image screenshot snapshot".split(), ("image/*",)),
    **dict.fromkeys("scan scanned".split(), ("image/*", "application/pdf")),
    **dict.fromkeys("audio recording podcast song voicemail".split(), ("audio/*",)),
    **dict.fromkeys("video film movie clip".split(), ("video/*",)),
    **dict.fromkeys("spreadsheet workbook excel".split(), (XLSX, XLS, ODS)),
    "pdf": ("application/pdf",),
    "csv": ("text/csv",),
    "json": ("application/json",),
    "html": ("text/html",),
    "markdown": ("text/markdown",),
    "xml": ("application/xml",),
    "png": ("image/png",),
    "jpeg": ("image/jpeg",),
    "jpg": ("image/jpeg",),
    "mp3": ("audio/mpeg",),
    "zip": ("application/zip",),
    "word document": (DOCX,),
}
_WORDS_BY_STEM = {" ".join(map(stem, words.split())): kinds for words, kinds in _BY_WORD.items()}


def normalise_media(text: str) -> str | None:
    """A media type in its one spelling, or None if the text is no media type.

    Example:
        >>> normalise_media("Image/JPG; quality=80")
        'image/jpeg'
    """
    if text.strip() == _ANY_MEDIA:
        return _ANY_MEDIA
    if not MEDIA_TYPE.fullmatch(text.strip()):
        return None
    plain = text.split(";")[0].strip().lower()
    return _ALIASES.get(plain, plain)


def media_of_ending(ending: str) -> str | None:
    """The media type of files with this ending (`.pdf`), or None if it is not known."""
    return _BY_ENDING.get(ending.lower())


def media_matches(one: str, other: str) -> bool:
    """Whether two normalised media types can be the same: `*` stands for anything, `+json` is JSON as well.

    Example:
        >>> media_matches("image/*", "image/png"), media_matches("application/ld+json", "application/json")
        (True, True)
    """
    if _ANY_MEDIA in (one, other):
        return True
    (kind, form), (other_kind, other_form) = one.split("/", 1), other.split("/", 1)
    if kind != other_kind:
        return False
    return "*" in (form, other_form) or form == other_form or _suffix(form) == other_form or form == _suffix(other_form)


def _suffix(form: str) -> str:
    """The structure that a subtype names after its last plus (`ld+json`)."""
    return form.rpartition("+")[2]


def media_of_request(request: str, names: Iterable[str] = ()) -> tuple[str, ...]:
    """The media types that a request speaks of: by the endings of the files it names, and by words such as `photo`.

    Args:
        request: The words of the user.
        names: The files that it names.
    """
    endings = (f".{name.rpartition('.')[2]}" for name in names if "." in name)
    found = [kind for ending in endings if (kind := media_of_ending(ending)) is not None]
    words = [stem(word) for word in re.findall(r"[a-z0-9]+", request.lower())]
    pairs = (f"{first} {second}" for first, second in pairwise(words))
    for word in (*words, *pairs):
        found += _WORDS_BY_STEM.get(word, ())
    return tuple(dict.fromkeys(found))


def normalise_capability(text: str) -> str | None:
    """A capability in small letters with hyphens, or None if it is no plain name.

    Example:
        >>> normalise_capability("Document OCR")
        'document-ocr'
    """
    plain = re.sub(r"[\s_-]+", "-", text.strip().lower())
    return plain if len(plain) <= _LONGEST_CAPABILITY and _CAPABILITY.fullmatch(plain) else None


def capability_matches(wanted: str, known: str) -> bool:
    """Whether a capability is what is wanted: each word of it occurs there, in whatever form.

    Example:
        >>> capability_matches("ocr", "document-ocr"), capability_matches("image-ocr", "document-ocr")
        (True, False)
    """
    return wanted == known or set(_capability_stems(wanted)) <= set(_capability_stems(known))


def _capability_stems(name: str) -> Sequence[str]:
    return [stem(word) for word in re.split(r"[-.+]", name)]


def plain_capabilities(names: Iterable[str]) -> tuple[str, ...]:
    """The usable capabilities among those that a description lists."""
    found = dict.fromkeys(plain for name in names if (plain := normalise_capability(name)) is not None)
    return tuple(found)[:MAX_FACTS]


def plain_media(names: Iterable[str]) -> tuple[str, ...]:
    """The media types among these, normalised, each once."""
    found = dict.fromkeys(plain for name in names if (plain := normalise_media(name)) is not None)
    return tuple(found)[:MAX_FACTS]
