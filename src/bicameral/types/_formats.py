"""Text formats: narrower kinds of text with a pattern, such as an address, an IBAN or a short code.

Each has a pattern that Python, JSON Schema and constrained decoding read alike, a maximum length and, where a pattern
is not enough, a test function (an IBAN: the form of its country and the check digits). A *bounded* format cannot hold
free text. It is enforced on every value of its type; the others are enforced where a model writes them, since tools may
return looser ones (`Ada <ada@example.com>`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType

MAX_IBAN_LETTERS = 12
"""Letters after the check digits: the registry's own examples have no more, and a sentence does."""

# The account number of each country: counts of digits (n), capitals (a), or either (c).
_IBAN_FORMS = (
    "AD8n12c AE19n AL8n16c AT16n AZ4a20c BA16n BE12n BG4a6n8c BH4a14c BI23n BR23n1a1c BY4c4n16c CH5n12c CR18n CY8n16c "
    "CZ20n DE18n DJ23n DK14n DO4c20n EE16n EG25n ES20n FI14n FK2a12n FO14n FR10n11c2n GB4a14n GE2a16n GI4a15c GL14n "
    "GR7n16c GT4c20c HN4a20n HR17n HU24n IE4a14n IL19n IQ4a15n IS22n IT1a10n12c JO4a4n18c KW4a22c KZ3n13c LB4n20c "
    "LC4a24c LI5n12c LT16n LU3n13c LV4a13c LY21n MC10n11c2n MD2c18c ME18n MK3n10c2n MN16n MR23n MT4a5n18c MU4a19n3a "
    "NI4a20n NL4a10n NO11n OM3n16c PK4a16c PL24n PS4a21c PT21n QA4a21c RO4a16c RS18n RU14n15c SA2n18c SC4a20n3a SD14n "
    "SE20n SI15n SK20n SM1a10n12c SO19n ST21n SV4a20n TL19n TN20n TR6n16c UA6n19c VA18n VG4a16n XK16n YE4a4n18c"
)
_CHARACTER_CLASSES = {"n": "[0-9]", "a": "[A-Z]", "c": "[A-Z0-9]"}


@cache
def _country_patterns() -> dict[str, re.Pattern[str]]:
    patterns: dict[str, re.Pattern[str]] = {}
    for form in _IBAN_FORMS.split():
        parts = re.findall(r"(\d+)([nac])", form[2:])
        patterns[form[:2]] = re.compile("".join(f"{_CHARACTER_CLASSES[kind]}{{{count}}}" for count, kind in parts))
    return patterns


def iban_problem(text: str) -> str | None:
    """What is wrong with an IBAN that matches the pattern, or None."""
    compact = text.replace(" ", "")
    account = _country_patterns().get(compact[:2])
    if account is None:
        return "there is no such country"
    if not account.fullmatch(compact, 4):
        return "it does not have the form of its country"
    if sum(character.isalpha() for character in compact[4:]) > MAX_IBAN_LETTERS:
        return "it has too many letters"
    digits = "".join(str(int(character, 36)) for character in compact[4:] + compact[:4])
    return None if int(digits) % 97 == 1 else "its check digits do not fit"


MAX_CODE = 32

_LABEL = "[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_HOST = f"{_LABEL}(\\.{_LABEL}){{1,8}}"
_REST = "(:[0-9]{1,5})?([/?#][A-Za-z0-9._~:/?#@!$&'()*+,;=%-]{0,1000})?"

CURRENCIES = tuple(
    (
        "AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF "
        "CHF CLP CNY COP CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD HKD "
        "HNL HTG HUF IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD "
        "MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN "
        "PYG QAR RON RSD RUB RWF SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY "
        "TTD TWD TZS UAH UGX USD UYU UZS VES VND VUV WST XAF XCD XOF XPF YER ZAR ZMW"
    ).split()
)


@dataclass(frozen=True, slots=True)
class TextFormat:
    """A kind of text.

    Args:
        name: Its name in `StrType.format`.
        description: What is expected, for messages.
        pattern: A regular expression that also JSON Schema and constrained decoding understand.
        max_length: The longest text, in characters.
        bounded: Whether it cannot hold free text.
        test: What else is wrong with a text that matches the pattern, or None.
        choices: All texts of the format, if they are few.
    """

    name: str
    description: str
    pattern: str
    max_length: int
    bounded: bool = False
    test: Callable[[str], str | None] | None = None
    choices: tuple[str, ...] = ()
    shape: re.Pattern[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", re.compile(self.pattern, re.ASCII))

    def problem(self, text: str) -> str | None:
        """What is wrong with a text, in fixed words that do not quote it, or None."""
        if len(text) > self.max_length:
            return f"it has more than {self.max_length} characters"
        # `fullmatch`, since `$` would accept a line break at the end.
        if not self.shape.fullmatch(text):
            return f"it is not {self.description}"
        return self.test(text) if self.test else None


def _phone_problem(text: str) -> str | None:
    digits = sum(character.isdigit() for character in text)
    return None if 5 <= digits <= 15 else "it does not have 5 to 15 digits"


def _url_problem(text: str) -> str | None:
    port = re.match(r"(?:https?://)?[^/?#:]*:([0-9]+)", text)
    return "there is no such port" if port and not 0 < int(port[1]) < 65536 else None


FORMATS: Mapping[str, TextFormat] = MappingProxyType(
    {
        each.name: each
        for each in (
            TextFormat("email", "an e-mail address", f"^[A-Za-z0-9._%+'-]{{1,64}}@{_HOST}$", 254),
            TextFormat(
                "url", "a web address", f"^(https?://({_HOST}|{_LABEL})|{_HOST}){_REST}$", 1_500, test=_url_problem
            ),
            TextFormat("id", "an id in one word", "^[A-Za-z0-9!#$%&()*+,./:;<=>?@^_|~-]{1,200}$", 200),
            TextFormat(
                "code", "a short code", f"^[A-Za-z0-9][A-Za-z0-9_-]{{0,{MAX_CODE - 1}}}$", MAX_CODE, bounded=True
            ),
            TextFormat(
                "iban",
                "an IBAN",
                "^[A-Z]{2}[0-9]{2}( ?[A-Z0-9]{4}){2,7}( ?[A-Z0-9]{1,3})?$",
                42,
                bounded=True,
                test=iban_problem,
            ),
            TextFormat(
                "phone", "a phone number", "^[+]?[0-9(][0-9 ()./-]{3,22}[0-9]$", 25, bounded=True, test=_phone_problem
            ),
            TextFormat(
                "currency",
                "a currency code such as EUR",
                "^[A-Z]{3}$",
                3,
                bounded=True,
                test=lambda text: None if text in CURRENCIES else "there is no such currency",
                choices=CURRENCIES,
            ),
        )
    }
)


BOUNDED_FORMATS: frozenset[str | None] = frozenset(name for name, known in FORMATS.items() if known.bounded)
"""The formats whose texts cannot hold free text."""


def format_problem(text: str, name: str | None) -> str | None:
    """Why a text is not of this format, or None; a format without a pattern accepts every text."""
    known = FORMATS.get(name) if name is not None else None
    return known.problem(text) if known else None
