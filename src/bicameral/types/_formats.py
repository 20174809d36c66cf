"""Narrower kinds of text that have a shape: what may stand where an address, an IBAN or a short code is wanted.

Each has a pattern that Python, JSON Schema and constrained decoding read alike, a longest length and, where a shape
is not enough, a test of its own. A *bounded* kind cannot hold free text. It is held to wherever a value meets its
type; the others are held to where a model writes them, since tools may give looser ones (`Ada <ada@example.com>`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from ._iban import iban_problem

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
class Format:
    """A kind of text by name: its shape, its longest length, and what is wanted in words."""

    name: str
    says: str
    pattern: str
    longest: int
    bounded: bool = False
    test: Callable[[str], str | None] | None = None
    choices: tuple[str, ...] = ()
    shape: re.Pattern[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", re.compile(self.pattern, re.ASCII))

    def problem(self, text: str) -> str | None:
        """What is wrong with a text of this kind, in fixed words, or None."""
        if len(text) > self.longest:
            return f"it has more than {self.longest} characters"
        # `$` would let a line break at the end pass.
        if not self.shape.fullmatch(text):
            return f"it is not {self.says}"
        return self.test(text) if self.test else None


def _phone_problem(text: str) -> str | None:
    digits = sum(character.isdigit() for character in text)
    return None if 5 <= digits <= 15 else "it does not have 5 to 15 digits"


def _currency_problem(text: str) -> str | None:
    return None if text in CURRENCIES else "there is no such currency"


def _url_problem(text: str) -> str | None:
    port = re.match(r"(?:https?://)?[^/?#:]*:([0-9]+)", text)
    return "there is no such port" if port and not 0 < int(port[1]) < 65536 else None


FORMATS: Mapping[str, Format] = MappingProxyType(
    {
        each.name: each
        for each in (
            Format("email", "an e-mail address", f"^[A-Za-z0-9._%+'-]{{1,64}}@{_HOST}$", 254),
            Format("url", "a web address", f"^(https?://({_HOST}|{_LABEL})|{_HOST}){_REST}$", 1_500, test=_url_problem),
            Format("id", "an id in one word", "^[A-Za-z0-9!#$%&()*+,./:;<=>?@^_|~-]{1,200}$", 200),
            Format("code", "a short code", f"^[A-Za-z0-9][A-Za-z0-9_-]{{0,{MAX_CODE - 1}}}$", MAX_CODE, bounded=True),
            Format(
                "iban",
                "an IBAN",
                "^[A-Z]{2}[0-9]{2}( ?[A-Z0-9]{4}){2,7}( ?[A-Z0-9]{1,3})?$",
                42,
                bounded=True,
                test=iban_problem,
            ),
            Format(
                "phone", "a phone number", "^[+]?[0-9(][0-9 ()./-]{3,22}[0-9]$", 25, bounded=True, test=_phone_problem
            ),
            Format(
                "currency",
                "a currency code such as EUR",
                "^[A-Z]{3}$",
                3,
                bounded=True,
                test=_currency_problem,
                choices=CURRENCIES,
            ),
        )
    }
)


def format_problem(text: str, name: str | None) -> str | None:
    """Why a text is not of this kind, or None; of a kind that has no shape, nothing is known."""
    known = FORMATS.get(name) if name is not None else None
    return known.problem(text) if known else None


def is_bounded_format(name: str | None) -> bool:
    """Whether texts of this kind cannot hold free text."""
    return name is not None and name in FORMATS and FORMATS[name].bounded
