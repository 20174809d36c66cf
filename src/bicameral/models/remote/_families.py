"""Who serves models, what must be installed to ask them, and where they are unless somebody says otherwise."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from bicameral.errors import ModelError, nearest
from bicameral.models._keys import Key

if TYPE_CHECKING:
    from pydantic_ai.models import Model


@dataclass(frozen=True, slots=True)
class Family:
    """One way to speak to a server. `compatible` is one that speaks OpenAI's protocol and is not OpenAI."""

    extra: str
    package: str
    model: str
    provider: str
    url: str | None
    key: bool = True
    compatible: bool = False


_OPENAI = ("remote", "openai", "openai:OpenAIChatModel")
_SERVER = "openai_compatible:OpenAICompatibleProvider"

FAMILIES: dict[str, Family] = {
    "openai": Family(*_OPENAI, "openai:OpenAIProvider", "https://api.openai.com/v1"),
    "azure": Family(*_OPENAI, "azure:AzureProvider", None),
    "ollama": Family(*_OPENAI, _SERVER, "http://localhost:11434/v1", key=False, compatible=True),
    "vllm": Family(*_OPENAI, _SERVER, "http://localhost:8000/v1", key=False, compatible=True),
    "llamacpp": Family(*_OPENAI, _SERVER, "http://localhost:8080/v1", key=False, compatible=True),
    "anthropic": Family(
        "anthropic",
        "anthropic",
        "anthropic:AnthropicModel",
        "anthropic:AnthropicProvider",
        "https://api.anthropic.com",
    ),
    "google": Family(
        "google",
        "google.genai",
        "google:GoogleModel",
        "google:GoogleProvider",
        "https://generativelanguage.googleapis.com",
    ),
    "mistral": Family(
        "mistral", "mistralai", "mistral:MistralModel", "mistral:MistralProvider", "https://api.mistral.ai"
    ),
    "groq": Family("groq", "groq", "groq:GroqModel", "groq:GroqProvider", "https://api.groq.com"),
    "bedrock": Family("bedrock", "boto3", "bedrock:BedrockConverseModel", "bedrock:BedrockProvider", None),
}


def find_family(name: str) -> Family:
    """The family of this name; what it needs must be installed."""
    if name not in FAMILIES:
        raise ModelError(
            "models.unknown-family",
            f"there is no family of models {name!r}",
            expected=f"one of {', '.join(FAMILIES)}",
            nearest=nearest(name, FAMILIES),
            fix="For another server that speaks OpenAI's protocol use 'openai' with its base_url.",
        )
    family = FAMILIES[name]
    for package in ("pydantic_ai", family.package):
        if not _installed(package):
            raise missing_package(f"models of the family {name!r}", package, family.extra)
    return family


def missing_package(whose: str, package: str, extra: str) -> ModelError:
    """What is needed for this is not installed."""
    return ModelError(
        "models.missing-package",
        f"{whose} need the package {package!r}, which is not installed",
        fix=f"Install it with `pip install 'bicameral[{extra}]'`.",
    )


def address(family: Family, base_url: str | None) -> str | None:
    """Where the server is: as given, or as known. The environment is not asked, so that a key goes nowhere else."""
    url = (base_url or family.url or "").strip()
    return plain_address(url) if url else None


def plain_address(url: str) -> str:
    """The address of a server and nothing else; one that holds more is refused."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise _bad_address("it is no http or https address")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise _bad_address("it holds a user, a password, a query or a fragment, where a key might hide")
    return url.rstrip("/")


def build(
    family: Family, model: str, key: Key | None, url: str | None, http: Any, options: dict[str, Any], profile: Any
) -> Model[Any]:
    """The model class of the family, set up so that it retries nothing: that is decided elsewhere."""
    model_class = _named("models", family.model)
    compatible = family.compatible or (family.package == "openai" and url != family.url and family.url is not None)
    secret = key.reveal() if key is not None else None
    given: dict[str, Any] = {"http_client": http, "api_key": secret}
    if family.package == "boto3":
        provider: Any = _bedrock(secret or "", url, options)
    elif "azure" in family.provider:
        provider = _named("providers", family.provider)(azure_endpoint=url, **given, **options)
    elif compatible:
        provider = _named("providers", _SERVER)("compatible", base_url=url, **given)
    else:
        provider = _named("providers", family.provider)(base_url=url, **given)
    if family.package == "openai":
        profile = profile | {"openai_chat_streaming_requires_finish_reason": True}
        if compatible:
            # The older name is the one that every such server knows.
            profile = profile | {"openai_chat_supports_max_completion_tokens": False}
    return model_class(model, provider=provider, profile=profile)


def _bedrock(secret: str, url: str | None, options: dict[str, Any]) -> Any:
    """With `ID:SECRET` or `ID:SECRET:TOKEN` signed requests, otherwise a bearer key."""
    identifier, colon, rest = secret.partition(":")
    provider = _named("providers", "bedrock:BedrockProvider")
    if not colon:
        return provider(api_key=secret, base_url=url, **options)
    word, _, token = rest.partition(":")
    boto3: Any = importlib.import_module("boto3")
    config: Any = importlib.import_module("botocore.config").Config
    session = boto3.Session(
        aws_access_key_id=identifier, aws_secret_access_key=word, aws_session_token=token or None, **options
    )
    # Named, because a bearer key in the environment would be taken instead.
    once = config(signature_version="v4", retries={"total_max_attempts": 1})
    return provider(bedrock_client=session.client("bedrock-runtime", config=once, endpoint_url=url))


def _named(room: str, path: str) -> Any:
    module, _, name = path.partition(":")
    return getattr(importlib.import_module(f"pydantic_ai.{room}.{module}"), name)


def _installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:
        return False


def _bad_address(why: str) -> ModelError:
    return ModelError(
        "models.bad-setting",
        f"the base_url cannot be used: {why}",
        expected="an address such as http://localhost:8000/v1",
    )
