"""What among the words, addresses and variables of a client's entry is, or may be, a secret.

A command and an address go into `bicameral.toml` and onto the screen, so that an entry with a secret in either is not
moved. Nothing marks a secret as one: it is recognised by the name before it, by its form, or by the place where it
stands. When in doubt it is one. A variable costs nothing then, since its value stays in the client's file; an entry
whose command only looks as if it had a secret has to be changed or left out by its user.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from urllib.parse import unquote, urlsplit

from bicameral.secrets import redact_secrets

_SECRET_NAME = re.compile(
    r"pass|pwd|token|key|secret|auth|cred|cookie|session|private|sign|salt|pin$|dsn|url|uri|conn|login|user|code"
    r"|bearer|jwt|otp|(?:^|_)pat(?:_|$)",
    re.I,
)
"""Names of variables: a value that is hidden without need is in the client's file, where it was."""
_NUMBER_NAME = re.compile(
    r"(?:^|[_-])(?:port|timeout|size|limit|max|min|count|level|width|height|length|depth|interval|retries|seconds|minutes"
    r"|days|ms|kb|mb|bytes|workers|threads|year)(?:[_-]|$)",
    re.I,
)
_NUMBER, _SMALL_NUMBER = re.compile("[0-9]{1,5}", re.ASCII), re.compile("[0-9]{1,2}", re.ASCII)
_LANGUAGE = re.compile("[a-z]{2}_[A-Z]{2}(?:\\.UTF-8)?")
_HARMLESS_WORDS = frozenset(
    "true false yes no on off none auto debug info warn warning error trace production development test local stdio "
    "http utf8 utf-8 json text".split()
)

_SECRET_FLAG = re.compile(r"--?[\w-]*(?:pass|pwd|token|key|secret|auth|cred|bearer|cookie)[\w-]*(=.*)?", re.I | re.S)
_HEADER_FLAG = re.compile(r"(?:-H|--headers?)(?:=(.*))?", re.S)
_OPEN_HEADERS = frozenset({"accept", "accept-language", "content-type", "user-agent"})
_NAMED_VALUE = re.compile(r"([A-Za-z][\w.-]*)[\"']?\s*[=:]\s*[\"']?(?=([^\s\"'&,;]+))")
"""`NAME=value`, `Header: value`, `?name=value`, `"name": "value"`, wherever it stands in a word. A value may be another
of them, as in `--env=NAME=value`."""
_SECRET_VALUE_NAME = re.compile(
    r"pass(?!(?:ive|es|ed|ing)\b|through)|pwd|tokens?$|token[_.-]|secret|auth(?!ors?$)|cred|cookie|session|bearer"
    r"|signature|jwt|dsn|otp$|(?:^|[_.-])(?:pat|pin|sig|code)$|keys?$|key[_.-]",
    re.I,
)
"""Names within a word. `max_tokens` and the like are numbers, see `_is_plain_value`."""
_PLAIN_WORDS = frozenset("true false yes no on off none auto".split())

_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://[^\s\"'<>]+", re.I)
_OPEN_USERS = frozenset({"git", "hg", "svn", "anonymous"})
_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.I)
_RUN = re.compile(r"[A-Za-z0-9]{16,}")
_PINNED = re.compile(r"@(?:sha256:)?[0-9a-f]{40,64}\Z|@sha256:[0-9a-f]{64}", re.I)
"""The commit or digest at which a package is pinned: it says which, and opens nothing."""


def is_harmless(name: str, value: str) -> bool:
    """Whether a variable may be written into a file that others read: only what certainly is no secret.

    Example:
        >>> is_harmless("LOG_LEVEL", "debug"), is_harmless("API_KEY", "debug"), is_harmless("MODE", "hF3_x9")
        (True, False, False)
        >>> is_harmless("PORT", "8080"), is_harmless("DOOR", "4711")
        (True, False)
    """
    if _SECRET_NAME.search(name):
        return False
    if value.lower() in _HARMLESS_WORDS or _LANGUAGE.fullmatch(value) or _SMALL_NUMBER.fullmatch(value):
        return True
    if _NUMBER.fullmatch(value):
        # A longer number may be a code that opens something.
        return _NUMBER_NAME.search(name) is not None
    # A path that is there: whoever reads the settings may as well look at the disk.
    return value.startswith(("/", "~/")) and os.path.exists(os.path.expanduser(value))


def find_secret_word(words: Sequence[str]) -> int | None:
    """The index of the first word of a command that seems to hold a secret; None if there is none.

    Example:
        >>> find_secret_word(["docker", "run", "-e", "API_TOKEN=abc"]), find_secret_word(["docker", "run", "-it"])
        (3, None)
    """
    return next((at for at, word in enumerate(words) if _is_secret_word(word, words[at + 1 :])), None)


def _is_secret_word(word: str, rest: Sequence[str]) -> bool:
    if redact_secrets(word, "") != word:
        return True
    if (flag := _SECRET_FLAG.fullmatch(word)) is not None:
        # A flag that stands alone takes the next word, unless that is another one.
        value = (flag[1] or "")[1:] or next((each for each in rest[:1] if not each.startswith("-")), "")
        return bool(value) and not _is_plain_value(word.partition("=")[0], value)
    if (header := _HEADER_FLAG.fullmatch(word)) is not None and (given := header[1] or next(iter(rest), "")):
        # Headers that are set by hand are there for a key, whatever their names.
        return given.partition(":")[0].strip().lower() not in _OPEN_HEADERS
    if has_secret_value(word) or any(map(has_secret_address, _ADDRESS.findall(word))):
        return True
    if len(parts := word.split()) > 1:
        # A whole command in one word, as for a shell.
        return find_secret_word(parts) is not None
    return "/" not in word and is_random(word)


def has_secret_value(text: str) -> bool:
    """Whether a text gives a value under a name that says secret, such as `X-Api-Key: …` or `?token=…`."""
    return any(
        _SECRET_VALUE_NAME.search(name) is not None and not _is_plain_value(name, value)
        for name, value in _NAMED_VALUE.findall(_ADDRESS.sub(_without_scheme, text))
    )


def _without_scheme(address: re.Match[str]) -> str:
    return address[0].partition("://")[2]


def _is_plain_value(name: str, value: str) -> bool:
    """Whether what is set is a choice or an amount although its name sounds secret, such as `--max-tokens=4000`."""
    return value.lower() in _PLAIN_WORDS or (
        _NUMBER.fullmatch(value) is not None and _NUMBER_NAME.search(name) is not None
    )


def has_secret_address(address: str) -> bool:
    """Whether an address holds a secret: before its host, in its query, or as a path that nobody could guess.

    Example:
        >>> has_secret_address("https://ghp_abc@github.com"), has_secret_address("https://mcp.example.com/v1/sse")
        (True, False)
    """
    if redact_secrets(address, "") != address or has_secret_value(address):
        return True
    try:
        parts = urlsplit(address)
        user = parts.netloc.rpartition("@")[0]
    except ValueError:
        return True
    if user and user.lower() not in _OPEN_USERS:
        return True
    return any(map(is_random, _address_words(parts.path, parts.query, parts.fragment)))


def _address_words(path: str, query: str, fragment: str) -> Iterator[str]:
    yield from map(unquote, _PINNED.sub("", path).split("/"))
    for text in (query, fragment):
        yield from (unquote(each.rpartition("=")[2]) for each in text.split("&"))


def is_random(word: str) -> bool:
    """Whether a word looks as if a machine had drawn it, and not as if a person had named something.

    Example:
        >>> is_random("NWQ4hunter2Zz81KpQ9a"), is_random("notes-2024-11-05-quarterly-report")
        (True, False)
    """
    if _UUID.search(word):
        return True
    return any(map(_is_random_run, _RUN.findall(_PINNED.sub("", word))))


def _is_random_run(run: str) -> bool:
    digits, letters = sum(each.isdigit() for each in run), sum(each.isalpha() for each in run)
    if digits >= 2 and letters >= 2:
        return True
    # In words one letter in five begins a new one; in what is drawn, every other letter changes its case.
    changes = sum(one.isupper() != other.isupper() for one, other in pairwise(run))
    return letters == len(run) and changes > 0.45 * len(run)
