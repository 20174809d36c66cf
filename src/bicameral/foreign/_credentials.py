"""Credentials of foreign services: named in the configuration, kept in the environment or the keyring."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Annotated

from pydantic import AfterValidator

from bicameral.errors import ConfigError
from bicameral.secrets import Secret, read_keyring_entry

KEYRING_PREFIX = "keyring:"
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")


def _validate_reference(text: str) -> str:
    if text.startswith(KEYRING_PREFIX) and text[len(KEYRING_PREFIX) :].strip():
        return text
    if not _VARIABLE.fullmatch(text):
        # The value is not quoted: somebody may have put the secret itself here.
        raise ValueError("this names no secret: give the name of an environment variable, or 'keyring:' and an entry")
    return text


SecretReference = Annotated[str, AfterValidator(_validate_reference)]
"""Where a secret is: the name of an environment variable, or `keyring:ENTRY` of the service `bicameral`."""


def read_secret(reference: str, environment: Mapping[str, str] | None = None, *, what: str) -> Secret:
    """The secret that a reference names; `foreign.no-secret` if there is none. Every output masks it from now on.

    Args:
        reference: See `SecretReference`.
        environment: The environment; by default that of this process.
        what: What needs it, for errors.
    """
    if reference.startswith(KEYRING_PREFIX):
        entry = reference.removeprefix(KEYRING_PREFIX).strip()
        try:
            found = read_keyring_entry(entry)
        except ImportError:
            raise ConfigError(
                "foreign.no-secret",
                f"{what} needs the keyring, and the package 'keyring' is not installed",
                fix="Install it with `pip install 'bicameral[keyring]'`.",
            ) from None
        except Exception as error:
            # The message of a keyring may hold a secret, so that only the class of the error is told.
            raise ConfigError(
                "foreign.no-secret",
                f"{what}: the keyring gives no entry {entry!r}: {type(error).__name__}",
                fix="Unlock it, or name an environment variable.",
            ) from None
        name = entry
    else:
        found, name = (os.environ if environment is None else environment).get(reference, "").strip(), reference
    if not found:
        where = f"the keyring entry {name!r}" if reference.startswith(KEYRING_PREFIX) else f"the variable {name!r}"
        raise ConfigError("foreign.no-secret", f"{what} needs {where}, and it is not set", fix=f"Set {name}.")
    return Secret(name, found)
