"""One completion: the request in llama.cpp's words, and the reply from the pieces it streams back."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from bicameral.errors import ModelError
from bicameral.models._confidence import ALTERNATIVES, tokens_of
from bicameral.models._gguf import Vocabulary
from bicameral.models._grammar import LLGUIDANCE, gbnf_error, llguidance_error
from bicameral.models._protocol import ModelReply, ModelRequest, Token, Usage
from bicameral.models._tools import on_one_line

_TRIPWIRE = "<|im_start|>"
_TRIPWIRE_PULL = 1e5
_SEEDS = 2**32 - 1


def completion_body(request: ModelRequest, vocabulary: Vocabulary) -> dict[str, Any]:
    """The body of one completion, without its prompt."""
    body: dict[str, Any] = {
        "n_predict": request.max_tokens,
        "temperature": request.temperature,
        # The highest 32-bit number would ask llama.cpp for a random seed.
        "seed": request.seed % _SEEDS,
        "stop": list(request.stop),
        # Named, because weights may carry defaults of their own.
        "top_k": 40,
        "top_p": 0.95,
        "min_p": 0.05,
        "repeat_penalty": 1.0,
    }
    if request.confidence:
        body["n_probs"] = ALTERNATIVES
    if request.grammar is not None:
        body["grammar"] = request.grammar
        if not uses_llguidance(request) and (message := gbnf_error(request.grammar)):
            raise _bad_grammar(message)
    if request.json_schema is not None:
        body["json_schema"] = on_one_line(request.json_schema)
    if uses_llguidance(request):
        # LLGuidance drops a constraint that it cannot follow and the model goes on writing freely. A control
        # token that no constraint allows is made irresistible: if it is ever written, the constraint is gone.
        body["logit_bias"] = [[vocabulary.start, _TRIPWIRE_PULL]]
        body["preserved_tokens"] = [_TRIPWIRE]
    return body


def uses_llguidance(request: ModelRequest) -> bool:
    """Whether LLGuidance holds the reply to its shape (JSON Schemas go through it too)."""
    return request.json_schema is not None or (request.grammar or "").startswith(LLGUIDANCE)


class Completion:
    """Gathers what the engine streams; `take` is its callback and must not raise."""

    def __init__(
        self, request: ModelRequest, on_text: Callable[[str], object] | None, stopped: threading.Event
    ) -> None:
        self._request = request
        self._on_text = on_text
        self._stopped = stopped
        self._guarded = uses_llguidance(request)
        self._tripped = False
        self._texts: list[str] = []
        self._confidence: list[Token] = []
        self._error: dict[str, Any] | None = None
        self._last: dict[str, Any] | None = None

    def take(self, chunk: dict[str, Any]) -> bool:
        """One piece of the stream; True ends it."""
        if self._stopped.is_set():
            return True
        if "error" in chunk:
            self._error = chunk["error"]
            return True
        text: str = chunk["choices"][0]["text"]
        if self._guarded and _TRIPWIRE in text:
            self._tripped = True
            return True
        if self._request.confidence and (told := chunk["choices"][0].get("logprobs")):
            self._confidence += tokens_of(told["content"], self._request)
        if text:
            self._texts.append(text)
            if self._on_text is not None:
                self._on_text(text)
        if chunk["choices"][0]["finish_reason"] is not None:
            self._last = chunk
        return False

    def reply(self, seconds: float, reused: int) -> ModelReply:
        """The whole reply, or the error that ended it; `reused` tokens of its prompt were not evaluated again."""
        if self._tripped:
            constraint = self._request.json_schema or self._request.grammar or ""
            raise _bad_grammar(llguidance_error(constraint) or "it grew too large while it was followed")
        if self._error is not None:
            raise _engine_error(self._error)
        if self._last is None:
            raise ModelError(
                "models.stopped", "the request was stopped before the reply was complete", fix="Ask again."
            )
        counts = self._last["usage"]
        return ModelReply(
            text="".join(self._texts),
            finish="length" if self._last["choices"][0]["finish_reason"] == "length" else "stop",
            usage=Usage(
                prompt=counts["prompt_tokens"],
                cached=reused,
                output=counts["completion_tokens"],
            ),
            seconds=seconds,
            confidence=tuple(self._confidence),
        )


def _bad_grammar(message: str) -> ModelError:
    return ModelError(
        "models.bad-grammar",
        f"the grammar or schema for the reply cannot be followed: {message}",
        expected=f"a JSON Schema, a GBNF grammar, or a Lark grammar that begins with `{LLGUIDANCE} {{}}`",
        fix="Mend it where the parser points.",
    )


def _engine_error(error: dict[str, Any]) -> ModelError:
    message = str(error.get("message", "no reason given"))
    if error.get("type") == "exceed_context_size_error":
        return ModelError(
            "models.prompt-too-long",
            f"the prompt has {error.get('n_prompt_tokens')} tokens and the context holds {error.get('n_ctx')}",
            fix="Shorten the messages, or give the provider a larger context.",
        )
    if "grammar" in message:
        return _bad_grammar(message)
    return ModelError("models.engine-failed", f"the engine refused the request: {message}", fix="Report this.")
