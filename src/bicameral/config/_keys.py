"""Keys: one for each chamber, from the environment or from the keyring, and never written down."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from bicameral.errors import ModelError
from bicameral.secrets import know

from ._llm import AliasSettings

if TYPE_CHECKING:
    from bicameral.models import Chamber, Key

SERVICE = "bicameral"
USUAL: Mapping[str, str] = {
    "openai": "OPENAI_API_KEY",
    "azure": "AZURE_OPENAI_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
    "google": "GEMINI_API_KEY",
    "mistral": "MISTRAL_API_KEY",
    "groq": "GROQ_API_KEY",
    "bedrock": "AWS_BEARER_TOKEN_BEDROCK",
}
"""Where people keep the key of a family. Only the privileged side uses these: the quarantine's key is always named."""


def key_names(settings: AliasSettings, family: str, chamber: Chamber) -> tuple[str | None, str | None]:
    """The environment variable and the name in the keyring from which a chamber's key comes; None for neither.

    A server that is not the family's own does not get the family's usual key.
    """
    if chamber == "quarantined":
        return settings.quarantined_api_key_env, settings.quarantined_api_key_keyring
    if settings.api_key_env is None and settings.api_key_keyring is None and settings.base_url is None:
        return USUAL.get(family), None
    return settings.api_key_env, settings.api_key_keyring


def know_keys(aliases: Iterable[AliasSettings], environment: Mapping[str, str]) -> None:
    """Let no key out that is in the environment, whether its model is ever asked or not."""
    named = {name for each in aliases for name in (each.api_key_env, each.quarantined_api_key_env) if name}
    for name in sorted(named | set(USUAL.values())):
        know(name, environment.get(name, ""))


def find_key(variable: str | None, entry: str | None, environment: Mapping[str, str] | None = None) -> Key | None:
    """The key, from the keyring if one is named there, otherwise from the environment; None if there is none."""
    from bicameral.models import Key

    if entry is not None:
        return _from_keyring(entry)
    found = (os.environ if environment is None else environment).get(variable or "", "").strip()
    return Key(found, variable or "key") if found else None


def missing_key(alias: str, chamber: Chamber, variable: str | None, entry: str | None) -> ModelError:
    """What to do about a key that is not there."""
    where = f"the keyring entry {entry!r}" if entry else f"the environment variable {variable}" if variable else "a key"
    return ModelError(
        "models.missing-key",
        f"the alias {alias!r} needs {where} for the {chamber} chamber, and it is not set",
        fix=f"Set {variable}." if variable and not entry else "Name it with api_key_env or api_key_keyring.",
    )


def _from_keyring(entry: str) -> Key | None:
    from bicameral.models import Key

    try:
        import keyring  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise ModelError(
            "models.missing-package",
            "keys from the keyring need the package 'keyring', which is not installed",
            fix="Install it with `pip install 'bicameral[keyring]'`.",
        ) from None
    try:
        found: object = keyring.get_password(SERVICE, entry)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    except Exception as error:
        # Whatever a keyring says may hold what it keeps; only the kind of the failure is told.
        raise ModelError(
            "models.missing-key",
            f"the keyring gives no entry {entry!r}: {type(error).__name__}",
            fix="Unlock it, or use api_key_env.",
        ) from None
    return Key(found, entry) if isinstance(found, str) and found.strip() else None
