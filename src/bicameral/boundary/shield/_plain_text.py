"""Whether a text is plain words and short numbers: an allow-list of what a reader cannot act on.

Untrusted text may be sent in the user's name; the danger is in what it leads to. Links, addresses, accounts and
telephone numbers can be spelled in more ways than can be listed, so this lists ordinary text instead: words of one
script, dates, times, amounts, small numbers, a few abbreviations and file names, with the punctuation of sentences.
Everything else counts as actionable. The text is examined after compatibility normalisation and without its hidden
characters; the text itself is not changed.

Every step takes time linear in the text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise

from bicameral.boundary.shield._screening import SHIELD_MARK
from bicameral.display import hidden_places

MAX_WORD_LENGTH = 40
MAX_NAME_LENGTH = 64
"""Of a file name, and of words joined by a slash."""
MAX_DIGITS_IN_A_RUN = 6
"""In one run of digit groups, whatever separates them: seven digits can be a phone or account number."""
MAX_NUMBERS_IN_A_ROW = 5
"""Dates, times and amounts that may follow each other without a word between them."""
_SPELLED_LETTERS = 4
_SPELLED_DIGITS = 4
_CODES_IN_A_ROW = 4
_MAX_PART_LENGTH = 200

# Compatibility characters of ordinary typing, which disguise nothing.
_ORDINARY_COMPATIBILITY = frozenset(
    "\u00a0\u2009\u202f\u3000\u2026\u2122\u00b2\u00b3\u00b9\u00bc\u00bd\u00be\u00aa\u00ba\u00b5\u2103\u2116\u2011\u2033\u2032"
    "\u00b4\u00a8\u00b8\ufb00\ufb01\ufb02\ufb03\ufb04\u0149\u013f\u0140\u01c6\u01c9\u01cc\u20a8\u2013\u2014\u0e33\u0eb3"
)
# Full-width punctuation and digits are ordinary in Chinese, Japanese and Korean text; full-width letters are not.
_WIDE_CHARACTER = re.compile("[\uff01-\uff0f\uff10-\uff19\uff1a-\uff1f\uff3b\uff3d\uff5b-\uff65]")
_CJK = (
    "\u2e80-\u2fdf\u3005-\u3007\u3031-\u3035\u3040-\u30fa\u30fc-\u30ff\u3100-\u31ff\u3400-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
_IDEOGRAPH = re.compile(f"[{_CJK}]")
_CJK_PUNCTUATION = "\u3001\u3002\u3008-\u3011\u3014-\u301f\u30fb\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65"
_BESIDE_CJK = re.compile(
    f"(?<=[{_CJK}\\s{_CJK_PUNCTUATION}])[{_CJK_PUNCTUATION}]|[{_CJK_PUNCTUATION}](?=[{_CJK}\\s{_CJK_PUNCTUATION}]|$)"
)
_WIDE_DOT_BEFORE_A_DOMAIN = re.compile("[\u3002\uff0e\uff61][a-z]{2,}")
_ORDINARY_SELECTORS = re.compile("[\u200c\u200d\ufe0e\ufe0f]")
"""Selectors and joiners that remain after the hidden ones are removed."""
_BETWEEN_SCRIPTS = re.compile(f"(?<=[{_CJK}])(?=[^{_CJK}])|(?<=[^{_CJK}])(?=[{_CJK}])")

_DOMAINS = "com|net|org|info|biz|io|co|de|ru|cn|xyz|edu|gov|eu|uk|me|app|dev|shop|ly"
_MAJOR_DOMAINS = "com|net|org|info|biz|io|ru|cn|xyz|edu|gov"
_SPELLED_OUT = (
    # A dot in brackets, or as a word before what could be the end of a host name.
    re.compile(r"[(\[{<]\s{0,2}(?:dot|d0t|punkt|point|punto|ponto|at|a|\.|@|slash|/)\s{0,2}[)\]}>]"),
    re.compile(
        r"(?<!polka )(?<!polka-)\bdot[\s\"'\u00bb\u201d\u2019*_-]{1,4}[a-z]{2,10}\b"
        r"|(?<=\w\w)dot(?:" + _MAJOR_DOMAINS + r")\b"
    ),
    re.compile(
        r"\b(?:d0t|d\s?o\s?t|punkt|point|punto|ponto|period|full\s?stop|точка|nokta)"
        r"[\s\"'*_-]{1,4}(?:" + _DOMAINS + r")\b"
    ),
    # A dot, or what looks like one, that spaces separate from a common domain, or a comma or dash in place of the dot.
    re.compile(r"(?:\w\s{0,3}\.\s{1,3}|\w\s{1,3}\.\s{0,3}|\w(?:\.\.+|\u2026)\s{0,3})(?:" + _MAJOR_DOMAINS + r")\b"),
    re.compile(r"\w\s{0,3}[,;]\s{0,3}(?:" + _MAJOR_DOMAINS + r")\b(?!\s\w)"),
    re.compile(r"\w[\u2013\u2014'\u2019-](?:com|net|org)\b"),
    re.compile(r"(?:zero|one|two|three|four|five|six|seven|eight|nine|null|eins|zwei|drei|vier){4,}"),
)
_NUMBER_WORDS = frozenset(
    "zero oh one two three four five six seven eight nine double triple "
    "null eins zwei drei vier fünf sechs sieben acht neun zwo "
    "zéro un deux trois quatre cinq sept huit neuf "
    "cero uno dos tres cuatro cinco seis siete ocho nueve "
    "tre quattro cinque sei sette otto nove "
    "ноль один два три четыре пять шесть семь восемь девять "
    "ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty "
    "seventy eighty ninety dix onze douze vingt trente quarante cinquante soixante diez once doce veinte treinta "
    "零 一 二 三 四 五 六 七 八 九 〇".split()
)
_HAN_DIGITS = re.compile("[零一二三四五六七八九〇壹贰叁肆伍陆柒捌玖]{5,}")

FILE_ENDINGS = (
    "avi bak bmp cfg conf csv db doc docx eml epub flac gif gz heic html htm ics ini jpeg jpg js json jsonl key log "
    "mbox mp3 mp4 odp ods odt pages pdf png ppt pptx rtf svg tar tex toml tsv txt vcf wav webp xls "
    "xlsx xml yaml yml"
).split()
"""File extensions that are no top-level domains."""

# Numbers. The digits of a well-formed date, time or amount do not count towards a long number.
_DAY, _MONTH, _YEAR = r"(?:0?[1-9]|[12]\d|3[01])", r"(?:0?[1-9]|1[0-2])", r"(?:19|20)\d\d"
_CLOCK = r"(?:[01]?\d|2[0-4])(?:[:.]|\s?h\s?)[0-5]\d(?:[:.][0-5]\d)?"
_CURRENCY = r"(?:[$€£¥₹₽₩₺]|EUR|USD|GBP|CHF|JPY|PLN|zł|kr|Kč)"
_NUMBER_FORMS = re.compile(
    rf"""(?<![\w.])(?:
        (?P<date>
            {_YEAR}[-/.]{_MONTH}[-/.]{_DAY}(?:[T ](?:[01]?\d|2[0-4]):[0-5]\d(?::[0-5]\d)?)?
          | {_DAY}[-/.]{_MONTH}[-/.](?:{_YEAR}|\d\d) | {_MONTH}[-/.]{_DAY}[-/.](?:{_YEAR}|\d\d)
          | {_DAY}\.{_MONTH}\.
          | {_YEAR}\s?[-/–—]\s?(?:{_YEAR}|\d\d)
          | {_YEAR}[-/.]{_MONTH}
          | (?:{_YEAR}\s?[年년]\s?)?{_MONTH}\s?[月월]\s?{_DAY}\s?[日号號일] | {_YEAR}\s?[年년](?:\s?{_MONTH}\s?[月월])?
        )
      | (?P<time>
            {_CLOCK}(?:\s?[-–—]\s?{_CLOCK})?
          | (?:[01]?\d|2[0-4])\s?[時时点點시](?:\s?[0-5]?\d\s?[分분])?
        )
      | (?P<money>
            {_CURRENCY}\s?\d{{1,3}}(?:[,.'’ ]\d{{3}}){{0,2}}(?:[.,]\d\d)?
          | \d{{1,3}}(?:[,.'’ ]\d{{3}}){{0,2}}(?:[.,]\d\d?)?\s?{_CURRENCY}
          | (?:{_CURRENCY}\s?)?\d{{1,6}}(?:[.,]\d\d?)?\s?{_CURRENCY}
        )
      | (?P<grouped>\d{{1,3}}(?:[,'’]\d{{3}}){{1,2}}(?:\.\d\d?)?|\d{{1,3}}[. ]\d{{3}},\d\d?)
      | (?P<decimal>\d{{1,4}}[.,]\d{{1,2}})
    )(?!\d|[.,:'’/–-]\d|\s?[-–/.]\s?\d)""",
    re.VERBOSE,
)
_GROUPED_DIGITS = 7
_DIGITS = re.compile(r"\d")
_WORDS_OR_DIGITS = re.compile(r"[^\W\d_]+|\d+|\ue000+")
_MIXED = re.compile(r"\d[^\W\d_]|[^\W\d_]\d")
_MARKS = re.compile("\ue000+")
_TOKEN = re.compile(r"\S+")
_COMMAS = re.compile(r"(?<!\d)[,;]|[,;](?!\d)")
_NUMBER_MARK = "\ue000"
"""Replaces a number in an ordinary form. It is a private-use character, which is hidden and therefore already removed
from every text."""

# Words.
_APOSTROPHES = "'\u2019\u2018\u02bc`\u05f3\u05f4"
_LETTERS = r"[^\W\d_](?:[^\W\d_]|[\u0300-\u036f])*"
_WORD = re.compile(
    rf"(?:{_LETTERS})(?:[{_APOSTROPHES}-](?:{_LETTERS})){{0,5}}(?:\((?:s|es|n|en|e|r|in|innen)\)|[*:](?:in|innen))?"
)
_WITH_NUMBER = (
    # 1st, 5pm, 30min, 1990s, 3D, 18h
    re.compile(r"\d{1,4}-?[^\W\d_]{1,6}"),
    # Q3, A4, B12, COVID-19, CO2, UTF-8, XIXe
    re.compile(r"[^\W\d_]{1,12}-?\d{1,4}(?:-[^\W\d_]{2,20})?"),
    # SW1A, 1AA, H2O, B2B: capitals, few
    re.compile(r"[A-Z\d]{2,4}"),
)
_PLAIN_FORMS = (
    re.compile(rf"\d{{1,6}}|{_NUMBER_MARK}"),
    # 10:30pm, 11:00'de
    re.compile(rf"{_NUMBER_MARK}['’]?[^\W\d_]{{1,4}}"),
    # 1/2, 3:1, 2-3, 1-1-1, 1.2.3, v1.2; how many digits there are is counted elsewhere
    re.compile(r"\d{1,4}(?:[/:x×–—-]\d{1,4}){1,2}"),
    re.compile(r"[vV]?\d{1,2}(?:\.\d{1,2}){1,2}"),
    # e.g, U.S, z.B, Ph.D
    re.compile(r"[^\W\d_](?:\.[^\W\d_]){1,4}|[Pp]h\.[Dd]|[BM]\.[SA]c?|т\.[едкп]|n\.[ºo]|\d{1,3}\.[ºªoa]"),
    # and/or, km/h, Mon/Wed/Fri, Std./Woche
    re.compile(rf"{_LETTERS}(?:/{_LETTERS}){{1,3}}|[^\W\d_]{{1,4}}\./{_LETTERS}"),
    # 6'2", 5′
    re.compile(r"\d{1,2}['’′]\d{0,2}[\"″]?"),
    # R&D
    re.compile(r"[A-Z][A-Za-z]{0,8}&[A-Z][A-Za-z]{0,8}"),
    # col·legi
    re.compile(r"[^\W\d_]*l·l[^\W\d_]*"),
    re.compile(rf"#?\d{{1,4}}|{_NUMBER_MARK}%"),
    re.compile(rf"[^\W\d_][\w{_NUMBER_MARK}-]{{0,60}}\.(?:{'|'.join(FILE_ENDINGS)})", re.IGNORECASE),
)
_SCHEMES = frozenset("http https hxxp hxxps ftp ftps sftp www mailto callto javascript".split())
_BRACKETED_DOT = re.compile(r"[\[({]\.[\])}]")
_EMOTICONS = frozenset((":-)", ":)", ";-)", ";)", ":-(", ":(", ":D", ":-D", "<3", "xD"))
_PART_SEPARATOR = re.compile(
    f"--+|[\u00b0\u2013\u2014\u2015]+|(?<={_NUMBER_MARK})(?=[{_CJK}])|(?<=[{_CJK}])(?={_NUMBER_MARK})"
)
"""What separates a token into parts: dashes, the degree sign, and the border between a number and a CJK script."""
_QUOTED_INSIDE = re.compile(r"(?<=[\u05d0-\u05ea])\"(?=[\u05d0-\u05ea])")
_WITHOUT_BLANK = re.compile(r"\.{2,}|(?<=[^\W\d_])[!?](?=[^\W\d_])")
"""Ends a part of a sentence even where the space after it is missing."""
_BAD_EDGE = re.compile(r"^[.,;:!?'\"(\[{]*(?:\.[^\W\d_]|[/\\@#<&~=](?=[^\W\d_./\\@]))|[/\\@=]$|[<>]")
_LONE_SIGNS = frozenset("/&+-|*=<>%#~°§•·–—×…!?:;,()[]{}\"'«»„“”‚‘’")
_MAX_CASE_TURNS = 4
"""Changes between small and capital letters: `LaTeX` has four, base64 has more."""
_HEX_WORD = re.compile("[a-fA-F]{12,}")
_SPACED_SCRIPTS = ("LATIN", "CYRILLIC", "GREEK", "ARABIC", "HEBREW", "ARMENIAN", "GEORGIAN", "DEVANAGARI", "BENGALI")
_MERGED_SCRIPTS: dict[str, str] = dict.fromkeys("HIRAGANA KATAKANA KATAKANA-HIRAGANA HANGUL IDEOGRAPHIC".split(), "CJK")


def find_actionable_parts(text: str) -> Iterator[str]:
    """Everything in a text that is not plain words and short numbers, in the form used for comparison."""
    hidden = hidden_places(text)
    if hidden:
        # Not the characters themselves: if the user's text contained the same ones, they would count as his.
        yield SHIELD_MARK
        text = "".join(character for position, character in enumerate(text) if position not in hidden)
    if not text.isascii():
        yield from _disguised_words(text)
    plain = _normalise(text)
    lowered = plain.casefold()
    for pattern in _SPELLED_OUT:
        yield from (_comparison_form(match[0]) for match in pattern.finditer(lowered))
    yield from (match[0] for match in _HAN_DIGITS.finditer(plain))
    marked = _NUMBER_FORMS.sub(_mark_number, plain)
    yield from _long_numbers(marked, plain)
    yield from _spelled_out_parts(marked)
    # A comma separates tokens even without a space, as in rows of tables; between digits it is part of the number.
    for match in _TOKEN.finditer(_COMMAS.sub(" ", marked)):
        if not _is_plain(_MARKS.sub(_NUMBER_MARK, match[0])):
            yield _comparison_form(plain[match.start() : match.end()])


def _disguised_words(text: str) -> Iterator[str]:
    """Words with compatibility characters: circled, styled or full-width letters and the like."""
    odd = {character for character in set(text) if not _is_usual_character(character)}
    if odd:
        yield from (_comparison_form(token) for token in text.split() if not odd.isdisjoint(token))


@lru_cache(maxsize=4096)
def _is_usual_character(character: str) -> bool:
    if character.isascii() or character in _ORDINARY_COMPATIBILITY or _WIDE_CHARACTER.match(character):
        return True
    same = unicodedata.normalize("NFKC", character) == unicodedata.normalize("NFC", character)
    return same or _IDEOGRAPH.match(character) is not None


def _normalise(text: str) -> str:
    # A wide full stop ends a sentence among ideographs, and is the dot of a domain before Latin letters.
    text = _WIDE_DOT_BEFORE_A_DOMAIN.sub(lambda match: f".{match[0][1:]}", text)
    text = _BESIDE_CJK.sub(" ", text)
    plain = (
        _ORDINARY_SELECTORS.sub("", unicodedata.normalize("NFKC", text)).replace("\u2010", "-").replace("\u2044", "/")
    )
    # Scripts without spaces touch Latin words and numbers: a change of script is a word boundary.
    return _BETWEEN_SCRIPTS.sub(" ", _QUOTED_INSIDE.sub("\u05f4", plain))


def _mark_number(match: re.Match[str]) -> str:
    """An ordinary number as marks of the same length; one with too many digits stays as it is."""
    digits = len(_DIGITS.findall(match[0]))
    most = {"grouped": _GROUPED_DIGITS + 2 * ("." in match[0]), "money": 11}.get(match.lastgroup or "", 99)
    return _NUMBER_MARK * len(match[0]) if digits <= most else match[0]


def _long_numbers(marked: str, plain: str) -> Iterator[str]:
    """Long runs of numbers that no word interrupts, whatever else is between them."""
    run: list[re.Match[str]] = []
    for match in _WORDS_OR_DIGITS.finditer(marked):
        if match[0][0] == _NUMBER_MARK or match[0].isdecimal():
            run.append(match)
            continue
        # Letters directly before a digit, and single letters, do not interrupt a run: `12a34`, `12 x 34`.
        if len(match[0]) > 1 and not marked[match.end() : match.end() + 1].isdecimal():
            yield from _long_run(run, plain)
            run = []
    yield from _long_run(run, plain)


def _long_run(run: list[re.Match[str]], plain: str) -> Iterator[str]:
    groups = [match[0] for match in run if match[0][0] != _NUMBER_MARK]
    digits = "".join(groups)
    # A house number and a postal code, `12, 75011`, have seven digits and are no phone number.
    is_address = len(run) == len(groups) == 2 and len(groups[0]) <= 3 and len(groups[1]) == 5
    if len(digits) > MAX_DIGITS_IN_A_RUN and not is_address:
        yield "".join(str(unicodedata.digit(digit)) for digit in digits)
    if len(run) - len(groups) > MAX_NUMBERS_IN_A_ROW:
        yield " ".join(plain[match.start() : match.end()] for match in run)


def _spelled_out_parts(marked: str) -> Iterator[str]:
    """Words spelled letter by letter, numbers spelled in words, and rows of codes."""
    letters: list[str] = []
    digits: list[str] = []
    codes: list[str] = []
    for word in [*re.findall(r"[^\W_]+", marked), ""]:
        folded = word.casefold()
        if len(word) == 1 and word.isalpha() and not _IDEOGRAPH.match(word):
            letters.append(folded)
        else:
            if len(letters) >= _SPELLED_LETTERS:
                yield " ".join(letters)
            letters = []
        if folded in _NUMBER_WORDS or (len(word) == 1 and word.isdecimal()):
            digits.append(folded)
        else:
            if len(digits) >= _SPELLED_DIGITS and not all(digit.isdecimal() for digit in digits):
                yield " ".join(digits)
            digits = []
        if _MIXED.search(word):
            codes.append(folded)
        else:
            if len(codes) >= _CODES_IN_A_ROW:
                yield " ".join(codes)
            codes = []


def _is_plain(token: str) -> bool:
    if len(token) > _MAX_PART_LENGTH and not _IDEOGRAPH.search(token):
        return False
    if token in _EMOTICONS or all(character in _LONE_SIGNS for character in token):
        return True
    if _BAD_EDGE.search(token):
        return False
    return all(_is_plain_piece(_strip_edges(part)) for part in _PART_SEPARATOR.sub(" ", token).split())


def _strip_edges(piece: str) -> str:
    """A piece without the punctuation and signs around it."""
    start, end = 0, len(piece)
    while start < end and _is_edge_character(piece[start]):
        start += 1
    while end > start and _is_edge_character(piece[end - 1]):
        end -= 1
    # `item(s)` keeps its bracket.
    return piece[start : end + 1] if piece[end : end + 1] == ")" and "(" in piece[start:end] else piece[start:end]


@lru_cache(maxsize=4096)
def _is_edge_character(character: str) -> bool:
    return unicodedata.category(character)[0] in "PSZ" and character not in "@#\\\ue000"


def _is_plain_piece(piece: str) -> bool:
    if not piece:
        return True
    if any(pattern.fullmatch(piece) for pattern in _PLAIN_FORMS):
        return _is_one_script(piece) and len(piece) <= MAX_NAME_LENGTH
    if _WITHOUT_BLANK.search(piece):
        return all(_is_plain_piece(_strip_edges(part)) for part in _WITHOUT_BLANK.split(piece))
    if any(pattern.fullmatch(piece) for pattern in _WITH_NUMBER):
        return _is_one_script(piece)
    if not _WORD.fullmatch("".join(each for each in piece if unicodedata.category(each)[0] != "M")):
        return False
    return _is_one_script(piece) and not _is_odd_word(piece) and piece.casefold() not in _SCHEMES


def _is_odd_word(piece: str) -> bool:
    """Whether a word is too long, or changes between small and capital letters as often as a code does."""
    if len(piece) > MAX_WORD_LENGTH and letter_script(piece[0]) in _SPACED_SCRIPTS:
        return any(len(part) > MAX_WORD_LENGTH for part in re.split(f"[{_APOSTROPHES}-]", piece))
    turns = sum(
        before.islower() != after.islower() for before, after in pairwise(piece) if before.isalpha() and after.isalpha()
    )
    return turns > _MAX_CASE_TURNS or _HEX_WORD.fullmatch(piece) is not None


@lru_cache(maxsize=4096)
def letter_script(character: str) -> str:
    """The script of a letter, by the first word of its Unicode name; empty for anything else."""
    if not character.isalpha():
        return ""
    first = unicodedata.name(character, "?").split()[0]
    return _MERGED_SCRIPTS.get(first, first)


def _is_one_script(piece: str) -> bool:
    # MICRO, MASCULINE and FEMININE are single signs among Latin letters.
    scripts = {letter_script(character) for character in piece} - {"", "MICRO", "MASCULINE", "FEMININE", "MODIFIER"}
    return len(scripts) <= 1


def _comparison_form(token: str) -> str:
    bare = _BRACKETED_DOT.sub(".", token).casefold().strip(".,;:!?()[]{}<>'\"`*_|\u2026\u00bb\u00ab")
    return bare[:_MAX_PART_LENGTH] or token[:_MAX_PART_LENGTH]
