"""Model servers: families and their addresses, API keys, and the HTTP client that sends a key to its server only.

A key never appears in a repr, an error, a log or a trace. The client libraries read keys, organisations and headers
from the environment. One chamber must never use the other's key, so everything that they add is removed before a
request is sent, and neither a key nor an address is taken from the environment.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, NoReturn, final
from urllib.parse import urlsplit

from bicameral.errors import ModelError, missing_packages, nearest_name
from bicameral.secrets import register_secret

if TYPE_CHECKING:
    import ssl

    from pydantic_ai.models import Model


# A new salt in each process: fingerprints of keys cannot be compared with a list, or between processes.
_SALT = secrets.token_bytes(32)
_KEY_MASK = "[key]"
_QUOTED_PREFIX = 6


@final
class Key:
    """An API key, which only `reveal` returns; only providers call that.

    `fingerprint` tells two keys apart within this process. It is a keyed hash with a secret that is never stored, so
    the key cannot be found from it.

    Args:
        secret: The key itself.
        name: What stands for the key where texts are masked.

    Example:
        >>> Key("sk-secret")
        Key(…)
    """

    __slots__ = ("_secret", "fingerprint")

    def __init__(self, secret: str, name: str = "key") -> None:
        # The same key with a trailing space would count as a second key, and both chambers could then share it.
        secret = secret.strip()
        if not secret or not secret.isascii() or not secret.isprintable():
            raise ModelError(
                "models.bad-setting",
                "the key is empty or has characters that no key has",
                fix="Check the environment variable or the keyring that it comes from.",
            )
        register_secret(name, secret)
        self._secret = secret
        self.fingerprint = hashlib.blake2b(secret.encode(), key=_SALT, digest_size=16).hexdigest()

    def reveal(self) -> str:
        """The key itself, for the request that needs it."""
        return self._secret

    def mask_in(self, text: str) -> str:
        """The text without the key, and without the beginning of it that servers quote (`sk-ab…***`)."""
        text = text.replace(self._secret, _KEY_MASK)
        if len(self._secret) > 2 * _QUOTED_PREFIX:
            text = re.sub(re.escape(self._secret[:_QUOTED_PREFIX]) + r"[^\s'\"]*", _KEY_MASK, text)
        return text

    def __repr__(self) -> str:
        return "Key(…)"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Key) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a key is not written down")


_PLAIN_HEADERS = frozenset(
    "host accept accept-encoding connection user-agent content-type content-length transfer-encoding anthropic-version"
    " anthropic-beta idempotency-key x-client-request-id".split()
)
_KEY_HEADERS = frozenset("authorization x-api-key x-goog-api-key api-key".split())
_CONNECT_SECONDS = 10.0
# Without any byte from the server; the deadline of a request is `ModelRequest.timeout`.
_SILENCE_SECONDS = 600.0


def open_client(key: Key | None, url: str, *, legacy: bool, extra: Iterable[str] = ()) -> Any:
    """An HTTP client that sends the key to this server only and follows no redirects.

    `legacy` uses `httpx` and not `httpx2`, for libraries that need it. `extra` names further allowed headers.
    """
    name = "httpx" if legacy else "httpx2"
    library: Any = importlib.import_module(name)
    guard = _RequestGuard(key, url, extra)
    return library.AsyncClient(
        timeout=library.Timeout(_SILENCE_SECONDS, connect=_CONNECT_SECONDS),
        limits=library.Limits(max_connections=1000, max_keepalive_connections=100),
        headers={"User-Agent": "bicameral"},
        event_hooks={"request": [guard]},
        verify=_ssl_context(name, os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")),
    )


@cache
def _ssl_context(library: str, cert_file: str | None, cert_dir: str | None) -> ssl.SSLContext:
    """The library's own default, shared by all clients: reading the certificate authorities takes 50 ms each time.

    The variables of the environment that the library reads are arguments, so that a change of them is noticed.
    """
    return importlib.import_module(library).create_ssl_context()


class _RequestGuard:
    """Runs last before a request is sent: refuses other servers, and removes headers that are not allowed."""

    def __init__(self, key: Key | None, url: str, extra: Iterable[str]) -> None:
        self._key = key
        self._host = urlsplit(url).hostname
        self._allowed = _PLAIN_HEADERS | {name.lower() for name in extra} - _KEY_HEADERS

    async def __call__(self, request: Any) -> None:
        if request.url.host != self._host:
            raise PermissionError("a request to another server than the provider's")
        for name in list(request.headers.keys()):
            name = str(name).lower()
            if name not in self._allowed and not self._holds_own_key(name, request.headers[name]):
                del request.headers[name]

    def _holds_own_key(self, name: str, value: str) -> bool:
        return name in _KEY_HEADERS and self._key is not None and value.split(" ")[-1] == self._key.reveal()


@dataclass(frozen=True, slots=True)
class Family:
    """The protocol of a server, and the classes that speak it.

    Args:
        extra: The extra of this package that installs what it needs.
        package: The client library.
        model: The model class of pydantic-ai, as `module:name`; `provider` likewise.
        url: The default address.
        key: Whether its servers need a key.
        compatible: Whether it is another server with OpenAI's protocol.
    """

    extra: str
    package: str
    model: str
    provider: str
    url: str | None
    key: bool = True
    compatible: bool = False


def _named_family(name: str, package: str, prefix: str, url: str) -> Family:
    return Family(name, package, f"{name}:{prefix}Model", f"{name}:{prefix}Provider", url)


_OPENAI_CLASSES = ("remote", "openai", "openai:OpenAIChatModel")
_COMPATIBLE_PROVIDER = "openai_compatible:OpenAICompatibleProvider"

FAMILIES: dict[str, Family] = {
    "openai": Family(*_OPENAI_CLASSES, "openai:OpenAIProvider", "https://api.openai.com/v1"),
    "azure": Family(*_OPENAI_CLASSES, "azure:AzureProvider", None),
    "ollama": Family(*_OPENAI_CLASSES, _COMPATIBLE_PROVIDER, "http://localhost:11434/v1", key=False, compatible=True),
    "vllm": Family(*_OPENAI_CLASSES, _COMPATIBLE_PROVIDER, "http://localhost:8000/v1", key=False, compatible=True),
    "llamacpp": Family(*_OPENAI_CLASSES, _COMPATIBLE_PROVIDER, "http://localhost:8080/v1", key=False, compatible=True),
    "anthropic": _named_family("anthropic", "anthropic", "Anthropic", "https://api.anthropic.com"),
    "google": _named_family("google", "google.genai", "Google", "https://generativelanguage.googleapis.com"),
    "mistral": _named_family("mistral", "mistralai", "Mistral", "https://api.mistral.ai"),
    "groq": _named_family("groq", "groq", "Groq", "https://api.groq.com"),
    "bedrock": Family("bedrock", "boto3", "bedrock:BedrockConverseModel", "bedrock:BedrockProvider", None),
}


LITELLM_FIX = (
    "Models are no longer asked through LiteLLM. Use the family of the server itself, or run LiteLLM's proxy and use "
    "openai/MODEL with its base_url."
)


def find_family(name: str) -> Family:
    """The family of this name; raises if it is unknown or its packages are not installed."""
    if name not in FAMILIES:
        raise ModelError(
            "models.unknown-family",
            f"there is no family of models {name!r}",
            expected=f"one of {', '.join(FAMILIES)}",
            nearest=nearest_name(name, FAMILIES),
            fix=LITELLM_FIX
            if name == "litellm"
            else "For another server that speaks OpenAI's protocol use 'openai' with its base_url.",
        )
    family = FAMILIES[name]
    for package in ("pydantic_ai", family.package):
        if missing_packages(package):
            raise ModelError(
                "models.missing-package",
                f"models of the family {name!r} need the package {package!r}, which is not installed",
                fix=f"Install it with `pip install 'bicameral[{family.extra}]'`.",
            )
    return family


def server_address(family: Family, base_url: str | None) -> str | None:
    """The given address or the family's own, without a final slash; raises if it is not HTTP or might hold a secret.

    Never one from the environment: the key would be sent there.
    """
    url = (base_url or family.url or "").strip()
    if not url:
        return None
    parts, why = urlsplit(url), ""
    if parts.scheme not in ("http", "https") or not parts.hostname:
        why = "it is no http or https address"
    elif parts.username or parts.password or parts.query or parts.fragment:
        why = "it holds a user, a password, a query or a fragment, where a key might hide"
    if why:
        expected = "an address such as http://localhost:8000/v1"
        raise ModelError("models.bad-setting", f"the base_url cannot be used: {why}", expected=expected)
    return url.rstrip("/")


def build_model(
    family: Family, model: str, key: Key | None, url: str | None, http: Any, options: dict[str, Any], profile: Any
) -> Model[Any]:
    """The model class of the family, configured without retries: routing decides about those."""
    model_class = _pydantic_ai_class("models", family.model)
    compatible = family.compatible or (family.package == "openai" and url != family.url and family.url is not None)
    secret = key.reveal() if key is not None else None
    given: dict[str, Any] = {"http_client": http, "api_key": secret}
    if family.package == "boto3":
        provider: Any = _bedrock_provider(secret or "", url, options)
    elif "azure" in family.provider:
        provider = _pydantic_ai_class("providers", family.provider)(azure_endpoint=url, **given, **options)
    elif compatible:
        provider = _pydantic_ai_class("providers", _COMPATIBLE_PROVIDER)("compatible", base_url=url, **given)
    else:
        provider = _pydantic_ai_class("providers", family.provider)(base_url=url, **given)
    if family.package == "openai":
        profile = profile | {"openai_chat_streaming_requires_finish_reason": True}
        if compatible:
            # The older name of the setting, `max_tokens`, is the one that every such server knows.
            profile = profile | {"openai_chat_supports_max_completion_tokens": False}
    return model_class(model, provider=provider, profile=profile)


def _bedrock_provider(secret: str, url: str | None, options: dict[str, Any]) -> Any:
    """A provider with signed requests if the key is `ID:SECRET` or `ID:SECRET:TOKEN`, otherwise with a bearer key."""
    identifier, colon, rest = secret.partition(":")
    provider = _pydantic_ai_class("providers", "bedrock:BedrockProvider")
    if not colon:
        return provider(api_key=secret, base_url=url, **options)
    word, _, token = rest.partition(":")
    boto3: Any = importlib.import_module("boto3")
    config: Any = importlib.import_module("botocore.config").Config
    session = boto3.Session(
        aws_access_key_id=identifier, aws_secret_access_key=word, aws_session_token=token or None, **options
    )
    # The signature is set explicitly, because a bearer key in the environment would be used in its place.
    once = config(signature_version="v4", retries={"total_max_attempts": 1})
    return provider(bedrock_client=session.client("bedrock-runtime", config=once, endpoint_url=url))


def _pydantic_ai_class(package: str, path: str) -> Any:
    module, _, name = path.partition(":")
    return getattr(importlib.import_module(f"pydantic_ai.{package}.{module}"), name)
