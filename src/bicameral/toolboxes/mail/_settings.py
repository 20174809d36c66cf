"""What a user can set for mail in `bicameral.toml`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from bicameral.tools import Settings

_PORTS = {"none": 25, "starttls": 587, "tls": 465}
_THIS_MACHINE = ("localhost", "127.0.0.1", "::1")


class Smtp(BaseModel):
    """The server that takes outgoing mail; the password stays in the environment."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    host: Annotated[str, Field(min_length=1)]
    port: Annotated[int, Field(gt=0, lt=65536)] | None = None
    user: str | None = None
    password_env: str | None = None
    tls: Literal["none", "starttls", "tls"] = "starttls"
    timeout: Annotated[float, Field(gt=0, le=300)] = 20.0

    @property
    def port_or_usual(self) -> int:
        return self.port or _PORTS[self.tls]

    @model_validator(mode="after")
    def _password_is_safe(self) -> Smtp:
        if (self.user is None) != (self.password_env is None):
            raise ValueError("user and password_env (the name of an environment variable) go together")
        if self.user is not None and self.tls == "none" and self.host not in _THIS_MACHINE:
            raise ValueError("with tls = 'none' the password would travel in the clear; use 'starttls' or 'tls'")
        return self


class MailSettings(Settings):
    """Where mail lies and how it is sent."""

    folder: str | None = None
    """A Maildir folder or an mbox file; without it `Maildir`, `mail`, `mail.mbox` and the like are looked for."""
    address: str = ""
    """The address that outgoing mail comes from."""
    smtp: Smtp | None = None
