"""Secrets known to this process: they are used, and never written anywhere.

Code that passes a key or password to the runtime registers it here under a name. Everything that leaves the runtime
(the journal, telemetry, error messages, the command line) is masked with `[secret NAME]`: the secret itself, its JSON
form, its form in a URL, and its base64. Only registered secrets are known: a secret that a tool reads by itself is a
text like any other.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Generator
from contextlib import contextmanager
from threading import Lock
from typing import Any, NoReturn, cast, final
from urllib.parse import quote, quote_plus

MIN_SECRET_LENGTH = 8
"""Shorter secrets are not masked: they would match in unrelated words."""

_NOT_IN_NAMES = re.compile(r"[^\w.:/@+-]+", re.ASCII)

_SECRETS = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
    r"|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"
    r"|\bgh[pousr]_[A-Za-z0-9]{36,}"
    r"|\bxox[abeprs]-[A-Za-z0-9-]{10,}"
    r"|\bsk-[A-Za-z0-9_-]{20,}"
    r"|\bAIza[0-9A-Za-z_-]{35}"
    # Not within a word of its own letters: a text of such beginnings would be read to its end from each of them.
    r"|(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"
    r"|\b[Bb]earer [A-Za-z0-9._~+/-]{20,}=*"
)
_CARD = re.compile(r"(?<![\d-])\d(?:[ -]?\d){12,18}(?![\d-])")

_lock = Lock()
_secret_names: dict[str, str] = {}
"""Every form of every secret, with the secret's name; the longest first."""
_json_forms: tuple[str, ...] = ()
"""The JSON forms of the same, for a quick test whether a JSON text contains any."""


@final
class Secret:
    """A value that is revealed only on request.

    Args:
        name: Shown in place of the value.
        value: The secret; it is registered, so that every output masks it.

    Example:
        >>> password = Secret("MAIL_PASSWORD", "correct horse")
        >>> f"login with {password}"
        'login with [secret MAIL_PASSWORD]'
        >>> mask("the server said: no such user: correct horse")
        'the server said: no such user: [secret MAIL_PASSWORD]'
    """

    __slots__ = ("_value", "name")

    def __init__(self, name: str, value: str) -> None:
        self.name = register_secret(name, value)
        self._value = value

    def reveal(self) -> str:
        """The secret itself, for the request that needs it."""
        return self._value

    def __str__(self) -> str:
        return f"[secret {self.name}]"

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._value == other._value

    def __hash__(self) -> int:
        return hash(("secret", self._value))

    def __reduce__(self) -> NoReturn:
        # Pickling and copying would write the value to a file or another process.
        raise TypeError("a secret is not written down")


def register_secret(name: str, value: str) -> str:
    """Mask this value everywhere from now on; returns its name. The first name of a value stays."""
    global _secret_names, _json_forms
    name = _NOT_IN_NAMES.sub("_", name)[:80] or "unnamed"
    value = value.strip()
    if len(value) < MIN_SECRET_LENGTH or value in _secret_names:
        return name
    # Writers are serialised. Readers take no lock: they see the old or the new mapping, never a partial one.
    with _lock:
        names_by_form = {**dict.fromkeys(_encoded_forms(value), name), **_secret_names}
        # The longest first: masking a secret that is part of another would leave the rest of that one readable.
        names = {form: names_by_form[form] for form in sorted(names_by_form, key=len, reverse=True)}
        in_json = tuple({body for form in names for body in (_json_body(form), _json_body(form, ascii_only=True))})
        _secret_names, _json_forms = names, in_json
    return name


KEYRING_SERVICE = "bicameral"
"""The service under which the keyring of the operating system keeps entries for Bicameral."""


def read_keyring_entry(entry: str) -> str | None:
    """An entry of the keyring; None if there is none.

    An ImportError if the package is missing, and the keyring's own exceptions if it is locked: their messages may hold
    secrets, so a caller reports their class alone.
    """
    import keyring  # pyright: ignore[reportMissingImports]

    found: object = keyring.get_password(KEYRING_SERVICE, entry)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return found if isinstance(found, str) and found.strip() else None


def mask(text: str) -> str:
    """The text with each known secret replaced by its name."""
    if _secret_names:
        for form, name in _secret_names.items():
            if form in text:
                text = text.replace(form, f"[secret {name}]")
    return text


def redact_secrets(text: str, instead: str) -> str:
    """The text without what is known as a secret or has the form of one: keys, tokens, and numbers of cards."""
    return _CARD.sub(lambda match: instead if _is_card(match[0]) else match[0], _SECRETS.sub(instead, mask(text)))


def _is_card(number: str) -> bool:
    """Whether the number passes the Luhn check, as every card number does."""
    digits = [int(each) for each in number if each.isdigit()]
    doubled = [digit * 2 - 9 * (digit > 4) for digit in digits[-2::-2]]
    return (sum(digits[::-2]) + sum(doubled)) % 10 == 0


def mask_json(text: str) -> str:
    """The same for a JSON text, which stays valid JSON."""
    for form in _json_forms:
        if form in text:
            # Masked in the parsed values: a match that begins inside an escape sequence would break the text.
            return json.dumps(mask_value(json.loads(text)), ensure_ascii=not _is_encodable(text), separators=(",", ":"))
    return text


def mask_value(value: Any) -> Any:
    """The same for a JSON value: in its texts, keys and numbers."""
    match value:
        case str():
            return mask(value)
        case dict():
            return {mask(key): mask_value(part) for key, part in cast("dict[str, Any]", value).items()}
        case list():
            return [mask_value(part) for part in cast("list[Any]", value)]
        case int() | float() if not isinstance(value, bool):
            text = json.dumps(value)
            return value if (masked := mask(text)) == text else masked
        case _:
            return value


@contextmanager
def isolate_secrets() -> Generator[None]:
    """Start without secrets, and restore the earlier ones at the end."""
    global _secret_names, _json_forms
    before = _secret_names, _json_forms
    _secret_names, _json_forms = {}, ()
    try:
        yield
    finally:
        _secret_names, _json_forms = before


def _encoded_forms(value: str) -> set[str]:
    """The forms in which a value appears in texts."""
    forms = {value, _json_body(value), _json_body(value, ascii_only=True), quote(value), quote(value, safe="")}
    forms.add(quote_plus(value))
    raw = value.encode("utf-8", "surrogatepass")
    for offset in range(3):
        # Base64 encodes three bytes at a time, so a value has three forms, depending on its offset. Only the characters
        # that do not depend on the bytes around it are kept.
        first, last = -(-offset * 8 // 6), (offset + len(raw)) * 8 // 6
        plain = base64.b64encode(b"\0" * offset + raw).decode()[first:last]
        forms |= {plain, plain.replace("+", "-").replace("/", "_")}
    return {form for form in forms if len(form) >= MIN_SECRET_LENGTH}


def _json_body(text: str, *, ascii_only: bool = False) -> str:
    return json.dumps(text, ensure_ascii=ascii_only)[1:-1]


def _is_encodable(text: str) -> bool:
    """Whether a text can be encoded as UTF-8; a lone surrogate cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
