"""How a model can fail to answer: one code for each thing that one can do about it.

models.rate-limited   wait (`retry_after` says how long, where the server does), then ask again
models.unavailable    the server cannot be reached or failed; another time, or another model
models.timeout        it took too long
models.bad-reply      what came back is malformed, cut off, or not of the shape that was asked for
models.refused        the model or its provider will not answer this. Never asked again, of nobody
models.auth           the key is missing or not accepted
models.bad-request    the request cannot be answered as it is
models.cancelled      the provider was closed while it was asked
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from bicameral.errors import ModelError
from bicameral.models._protocol import Usage

FailureCode: TypeAlias = Literal[
    "models.rate-limited",
    "models.unavailable",
    "models.timeout",
    "models.bad-reply",
    "models.refused",
    "models.auth",
    "models.bad-request",
    "models.cancelled",
    "models.prompt-too-long",
]

_WHAT: dict[FailureCode, tuple[str, str]] = {
    "models.rate-limited": ("takes no more requests for now", "Wait, or use another model."),
    "models.unavailable": ("cannot be reached or failed", "Ask again later, or use another model."),
    "models.timeout": ("did not finish in time", "Allow more time, or ask for fewer tokens."),
    "models.bad-reply": ("gave a reply that cannot be used", "Ask again, or use another model."),
    "models.refused": ("refuses to answer this", "Change what is asked. It is not asked again anywhere else."),
    "models.auth": ("did not accept the key", "Check the key of this chamber, and what it may be used for."),
    "models.bad-request": ("cannot answer this request", "Check the name of the model and its parameters."),
    "models.cancelled": ("was closed while it was asked", "Ask before the provider is closed."),
    "models.prompt-too-long": ("cannot read a prompt of this length", "Shorten the messages."),
}


class ModelFailure(ModelError):
    """A model did not answer. `retry_after` is in seconds; `usage` is what was spent all the same."""

    def __init__(
        self,
        code: FailureCode,
        name: str,
        why: str = "",
        *,
        retry_after: float | None = None,
        usage: Usage | None = None,
        nearest: str | None = None,
    ) -> None:
        what, fix = _WHAT[code]
        super().__init__(code, f"{name} {what}" + (f": {why}" if why else ""), nearest=nearest, fix=fix)
        self.retry_after = retry_after
        self.usage = usage or Usage()
