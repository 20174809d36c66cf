"""What pydantic-ai and the client libraries raise, as the few failures that one can do something about."""

from __future__ import annotations

from typing import Any, cast

from bicameral.models._failures import FailureCode, ModelFailure
from bicameral.models._keys import Key

REFUSALS = ("content_filter", "content_policy", "safety", "moderation", "cyber_policy", "refusal")
_QUOTED = 200


def failure_of(error: Exception, name: str, key: Key | None, *, begun: bool = False) -> ModelFailure:
    """The failure that this error is, of a reply that had `begun` or not.

    It quotes the server where that helps, and never the key or the reply.
    """
    from pydantic_ai import exceptions as raised

    match error:
        case raised.ModelRateLimitError():
            return ModelFailure("models.rate-limited", name, retry_after=error.retry_after)
        case raised.ModelQuotaExceededError():
            why = "the credit or quota of this key is spent"
            return ModelFailure("models.rate-limited", name, why, retry_after=error.retry_after)
        case raised.ModelAuthenticationError():
            # Servers quote a part of the key here.
            return ModelFailure("models.auth", name)
        case raised.ModelContextWindowExceededError():
            return ModelFailure("models.prompt-too-long", name)
        case raised.ModelNotFoundError():
            nearest = error.suggested_model_id if isinstance(error, raised.ModelHTTPError) else None
            return ModelFailure("models.bad-request", name, "the server has no such model", nearest=nearest)
        case raised.ModelRequestTimeout() | raised.ModelTimeoutError():
            return ModelFailure("models.timeout", name)
        case raised.ModelConnectionError():
            return disconnected(name, begun=begun or error.in_stream)
        case raised.ContentFilterError():
            return ModelFailure("models.refused", name)
        case raised.ModelUnavailableError() | raised.ModelServerError():
            return ModelFailure("models.unavailable", name, _status(error), retry_after=error.retry_after)
        case raised.ModelRequestRejectedError():
            if _is_refusal(error):
                return ModelFailure("models.refused", name)
            return ModelFailure("models.bad-request", name, _quoted(error, key))
        case raised.ModelHTTPError():
            return ModelFailure(_by_status(error.status_code), name, _status(error), retry_after=error.retry_after)
        case raised.ModelAPIError():
            if _is_refusal(error):
                return ModelFailure("models.refused", name)
            return ModelFailure("models.bad-reply", name, "it is malformed or was cut off")
        case raised.UnexpectedModelBehavior():
            return ModelFailure("models.bad-reply", name, "it is malformed or was cut off")
        case raised.UserError():
            return ModelFailure("models.bad-request", name, _hidden(str(error), key))
        case _:
            return _by_cause(error, name)


def disconnected(name: str, *, begun: bool) -> ModelFailure:
    """The connection was lost: before anything came, or in the middle of the reply."""
    if begun:
        return ModelFailure("models.bad-reply", name, "the connection broke before its end")
    return ModelFailure("models.unavailable", name, "the connection failed")


def _by_cause(error: Exception, name: str) -> ModelFailure:
    """Errors that no library has wrapped: a connection that broke, and what nobody foresaw."""
    kinds = {kind.__name__ for kind in type(error).__mro__}
    if isinstance(error, ImportError):
        return ModelFailure("models.bad-request", name, f"its client library cannot be imported ({error.name})")
    if "TimeoutException" in kinds or isinstance(error, TimeoutError):
        return ModelFailure("models.timeout", name)
    if kinds & {"ConnectError", "ConnectTimeout", "ConnectionError"} or isinstance(error, PermissionError):
        return ModelFailure("models.unavailable", name, "the connection failed")
    return ModelFailure("models.bad-reply", name, f"it is malformed or was cut off ({type(error).__name__})")


def _by_status(status: int) -> FailureCode:
    if status == 408:
        return "models.timeout"
    if status in (409, 425) or status >= 500:
        return "models.unavailable"
    return "models.bad-request" if status >= 400 else "models.bad-reply"


def _is_refusal(error: Any) -> bool:
    said = (error.provider_error_code, error.provider_error_type, getattr(error, "status_code", None) == 403)
    words = " ".join(str(each).lower() for each in said[:2] if each)
    return any(refusal in words for refusal in REFUSALS) or said[2]


def _status(error: Any) -> str:
    status = getattr(error, "status_code", None)
    return f"status {status}" if status else ""


def _quoted(error: Any, key: Key | None) -> str:
    said: Any = error.body
    for name in ("error", "message"):
        if isinstance(said, dict):
            said = cast("dict[str, Any]", said).get(name, cast(Any, said))
    return ", ".join(filter(None, (_status(error), _hidden(said, key) if isinstance(said, str) else "")))


def _hidden(text: str, key: Key | None) -> str:
    text = key.hidden_in(text) if key is not None else text
    text = " ".join(text.split())
    return text if len(text) <= _QUOTED else f"{text[:_QUOTED]}…"
