"""One recipient, read strictly: what a server or a mail reader could take for another address is refused.

The parsers of the standard library accept much more than one address (groups, comments, routes, quoted local parts,
encoded words) and drop what they do not understand, so a recipient is held to a small grammar of our own first.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from bicameral.display import has_hidden, visible
from bicameral.errors import Place, ToolError

_MAX_NAME = 200
_MAX_SHOWN = 80
_MAX_DOMAIN = 253
# `name <spec>` with the name in quotes or without any character that structures a list of addresses.
_NAMED = re.compile(r"""(?P<name>"(?:[^"\\]|\\.)*"|[^"\\<>@,;:()\[\]]*)\s*<(?P<spec>[^<>\s]+)>""")
# No `%` and no `!`: a server may take `a%b@c` and `c!b!a` for a route. Nothing that a program could take for an option.
_LOCAL = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_+'&~#=*^$-]|\.(?!\.))*(?<!\.)")
_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_LINE_BREAKING = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
ENCODED_WORD = "=?"


@dataclass(frozen=True, slots=True)
class Recipient:
    """A display name, which may be empty, and an address in ASCII."""

    name: str
    local: str
    domain: str

    @property
    def spec(self) -> str:
        return f"{self.local}@{self.domain}"


def recipient(given: str, argument: str) -> Recipient:
    """One recipient, `a@example.com` or `Ann <a@example.com>`; anything else is refused."""
    refuse_line_breaks(given, argument)
    whole = given.strip()
    named = _NAMED.fullmatch(whole)
    name, spec = (_unquoted(named["name"].strip()), named["spec"]) if named else ("", whole)
    local, at, domain = spec.partition("@")
    sound = _domain(domain)
    # A name that looks like an address, or hides something, shows the reader somebody else than who gets the mail.
    odd_name = len(name) > _MAX_NAME or any(sign in name for sign in "@<>") or has_hidden(name)
    odd_local = len(local) > 64 or not _LOCAL.fullmatch(local)
    if not at or sound is None or odd_local or odd_name or ENCODED_WORD in whole:
        raise _bad_address(given, argument)
    return Recipient(name, local, sound)


def refuse_line_breaks(text: str, argument: str) -> None:
    """Refuse what could end a header: every control character, and what some readers take for the end of a line."""
    if _LINE_BREAKING.search(text):
        raise ToolError(
            "mail.bad-header",
            f"the {argument} has a line break or control character in it, which could forge a header",
            place=Place(argument=argument),
            expected="one line of text",
        )


def _unquoted(name: str) -> str:
    return re.sub(r"\\(.)", r"\1", name[1:-1]) if name.startswith('"') else name


def _domain(given: str) -> str | None:
    """A domain in ASCII, or None: each label as it was given, never as one that only looks or sounds like it."""
    labels = [_label(label) for label in given.split(".")]
    domain = ".".join(label or "" for label in labels)
    if None in labels or len(domain) > _MAX_DOMAIN or domain.rpartition(".")[2].isdigit():
        return None
    return domain


def _label(given: str) -> str | None:
    label = given.lower()
    if label.isascii():
        return label if _LABEL.fullmatch(label) and _is_sound_punycode(label) else None
    # The mapping of IDNA 2003 would turn full-width letters and `ß` into others: a domain that nobody has written.
    if unicodedata.normalize("NFKC", label) != label or has_hidden(label) or not _has_only_letters(label):
        return None
    encoded = f"xn--{label.encode('punycode').decode('ascii')}"
    return encoded if _LABEL.fullmatch(encoded) else None


def _is_sound_punycode(label: str) -> bool:
    """Whether a label is no punycode, or stands for letters and nothing else (`xn--` can spell `@` and blanks)."""
    if not label.startswith("xn--"):
        return True
    try:
        stands_for = label[4:].encode("ascii").decode("punycode")
    except UnicodeError:
        return False
    return not stands_for.isascii() and _has_only_letters(stands_for)


def _has_only_letters(label: str) -> bool:
    return all(each in "-\u00b7" or unicodedata.category(each)[0] in "LMN" for each in label)


def _bad_address(given: str, argument: str) -> ToolError:
    shown = given if len(given) <= _MAX_SHOWN else given[: _MAX_SHOWN - 3] + "..."
    return ToolError(
        "mail.bad-address",
        f"{visible(shown, strict=True)!r} is not a mail address",
        place=Place(argument=argument),
        expected="one address such as 'ann@example.com' for each recipient",
    )
