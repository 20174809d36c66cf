"""Secrets that this process knows: they are used, and never written down.

Whatever hands a key or a password to the runtime registers it here under a name. Everything that leaves the runtime
(the journal, telemetry, the texts of errors, the command line) is masked with `[secret NAME]`: the secret as it is,
as JSON, as part of an address, and in base64. Only registered secrets are known: a secret that a tool reads by itself
is a text like any other.
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
"""Shorter ones are not looked for: they are found in words that have nothing to do with them."""

_NOT_IN_NAMES = re.compile(r"[^\w.:/@+-]+", re.ASCII)

_lock = Lock()
_secret_names: dict[str, str] = {}
"""What is looked for in a text, and the name of what it is; longest first."""
_json_forms: tuple[str, ...] = ()
"""What JSON that holds one of them holds."""


@final
class Secret:
    """A value that shows itself only where it is asked to.

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
        raise TypeError("a secret is not written down")


def register_secret(name: str, value: str) -> str:
    """Never let this value out from now on; says under which name. The first name that a value is given stays."""
    global _secret_names, _json_forms
    name = _NOT_IN_NAMES.sub("_", name)[:80] or "unnamed"
    value = value.strip()
    if len(value) < MIN_SECRET_LENGTH or value in _secret_names:
        return name
    with _lock:
        found = {**dict.fromkeys(_encoded_forms(value), name), **_secret_names}
        # The longest first: what is part of another secret must not leave the rest of it standing.
        names = {each: found[each] for each in sorted(found, key=len, reverse=True)}
        in_json = tuple({shape for each in names for shape in (_json_body(each), _json_body(each, ascii_only=True))})
        _secret_names, _json_forms = names, in_json
    return name


def mask(text: str) -> str:
    """The text with the name of each known secret in its place."""
    if _secret_names:
        for look, name in _secret_names.items():
            if look in text:
                text = text.replace(look, f"[secret {name}]")
    return text


def mask_json(text: str) -> str:
    """The same for a JSON text, which stays JSON."""
    for look in _json_forms:
        if look in text:
            # In the values and not in the text: a match that begins within an escape would break it.
            return json.dumps(mask_value(json.loads(text)), ensure_ascii=not _is_encodable(text), separators=(",", ":"))
    return text


def mask_value(value: Any) -> Any:
    """The same for a JSON value, in its texts, its names and its numbers."""
    match value:
        case str():
            return mask(value)
        case dict():
            return {mask(key): mask_value(part) for key, part in cast("dict[str, Any]", value).items()}
        case list():
            return [mask_value(part) for part in cast("list[Any]", value)]
        case int() | float() if not isinstance(value, bool):
            written = json.dumps(value)
            return value if (shown := mask(written)) == written else shown
        case _:
            return value


@contextmanager
def isolate_secrets() -> Generator[None]:
    """A stretch of work with secrets of its own: those known before are known again after it."""
    global _secret_names, _json_forms
    before = _secret_names, _json_forms
    _secret_names, _json_forms = {}, ()
    try:
        yield
    finally:
        _secret_names, _json_forms = before


def _encoded_forms(value: str) -> set[str]:
    """The shapes in which a value gets into texts."""
    shapes = {value, _json_body(value), _json_body(value, ascii_only=True), quote(value), quote(value, safe="")}
    shapes.add(quote_plus(value))
    raw = value.encode("utf-8", "surrogatepass")
    for before in range(3):
        # Wherever it begins in what was encoded, these characters depend on it alone.
        first, last = -(-before * 8 // 6), (before + len(raw)) * 8 // 6
        plain = base64.b64encode(b"\0" * before + raw).decode()[first:last]
        shapes |= {plain, plain.replace("+", "-").replace("/", "_")}
    return {shape for shape in shapes if len(shape) >= MIN_SECRET_LENGTH}


def _json_body(text: str, *, ascii_only: bool = False) -> str:
    return json.dumps(text, ensure_ascii=ascii_only)[1:-1]


def _is_encodable(text: str) -> bool:
    """Whether a text can be written as UTF-8 as it is: half a character cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
