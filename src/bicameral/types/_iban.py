"""IBANs: the country's own form, and the check digits."""

from __future__ import annotations

import re
from functools import cache

MAX_LETTERS = 12
"""Letters after the country: the registry's own examples have no more, and a sentence does."""

# What follows the country and the check digits: so many digits (n), capitals (a), or either (c).
_FORMS = (
    "AD8n12c AE19n AL8n16c AT16n AZ4a20c BA16n BE12n BG4a6n8c BH4a14c BI23n BR23n1a1c BY4c4n16c CH5n12c CR18n CY8n16c "
    "CZ20n DE18n DJ23n DK14n DO4c20n EE16n EG25n ES20n FI14n FK2a12n FO14n FR10n11c2n GB4a14n GE2a16n GI4a15c GL14n "
    "GR7n16c GT4c20c HN4a20n HR17n HU24n IE4a14n IL19n IQ4a15n IS22n IT1a10n12c JO4a4n18c KW4a22c KZ3n13c LB4n20c "
    "LC4a24c LI5n12c LT16n LU3n13c LV4a13c LY21n MC10n11c2n MD2c18c ME18n MK3n10c2n MN16n MR23n MT4a5n18c MU4a19n3a "
    "NI4a20n NL4a10n NO11n OM3n16c PK4a16c PL24n PS4a21c PT21n QA4a21c RO4a16c RS18n RU14n15c SA2n18c SC4a20n3a SD14n "
    "SE20n SI15n SK20n SM1a10n12c SO19n ST21n SV4a20n TL19n TN20n TR6n16c UA6n19c VA18n VG4a16n XK16n YE4a4n18c"
)
_CLASSES = {"n": "[0-9]", "a": "[A-Z]", "c": "[A-Z0-9]"}


@cache
def _countries() -> dict[str, re.Pattern[str]]:
    found: dict[str, re.Pattern[str]] = {}
    for form in _FORMS.split():
        parts = re.findall(r"(\d+)([nac])", form[2:])
        found[form[:2]] = re.compile("".join(f"{_CLASSES[kind]}{{{count}}}" for count, kind in parts))
    return found


def iban_problem(text: str) -> str | None:
    """What is wrong with an IBAN of the right characters, or None."""
    compact = text.replace(" ", "")
    account = _countries().get(compact[:2])
    if account is None:
        return "there is no such country"
    if not account.fullmatch(compact, 4):
        return "it does not have the form of its country"
    if sum(character.isalpha() for character in compact[4:]) > MAX_LETTERS:
        return "it has too many letters"
    digits = "".join(str(int(character, 36)) for character in compact[4:] + compact[:4])
    return None if int(digits) % 97 == 1 else "its check digits do not fit"
