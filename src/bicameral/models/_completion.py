"""One completion of llama.cpp: its request body, the reply, token confidence, and the errors of grammars.

llama.cpp prints the messages of its grammar parsers or drops them, so the two parsers in its library are called
directly, through their published C interfaces (`llguidance.h` and `llama.h`).
"""

from __future__ import annotations

import ctypes
import json
import math
import os
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from functools import cache, lru_cache
from typing import Any

from bicameral.errors import ModelError
from bicameral.models._prompts import Vocabulary
from bicameral.models._protocol import ModelReply, ModelRequest, ReplyToken, Usage
from bicameral.models._tool_calls import compact_schema

REPORTED_ALTERNATIVES = 10
"""How many of the likeliest tokens are reported at each position."""

LLGUIDANCE = "%llguidance"
_MESSAGE_BYTES = 4096

_TRIPWIRE_BIAS = 1e5
_SEED_MODULUS = 2**32 - 1


def read_token_confidence(entries: Iterable[dict[str, Any]], request: ModelRequest) -> Iterator[ReplyToken]:
    """The tokens of one streamed piece with their probabilities; the end of the text is not a token.

    llama.cpp reports probabilities from before the constraint was applied. At temperature 0 the likeliest allowed token
    is written, so every likelier token was forbidden. The probability is given relative to the remaining tokens, of
    which more may have been forbidden, so it is never too high.
    """
    greedy = request.temperature == 0
    for entry in entries:
        if not entry["bytes"]:
            continue
        own: float = entry["logprob"]
        above = [other["logprob"] for other in entry["top_logprobs"] if other["logprob"] > own] if greedy else []
        overruled = min(1.0, sum(map(math.exp, above), 0.0))
        yield ReplyToken(entry["token"], _share_of(math.exp(own), 1.0 - overruled), overruled)


def _share_of(probability: float, rest: float) -> float:
    return min(1.0, probability / rest) if rest > 0 else 1.0 if probability > 0 else 0.0


class _LlgTokenizerInit(ctypes.Structure):
    """`LlgTokenizerInit`; the spare fields keep those that a later version may add at zero."""

    _fields_ = (
        ("vocab_size", ctypes.c_uint32),
        ("tok_eos", ctypes.c_uint32),
        ("token_lens", ctypes.POINTER(ctypes.c_uint32)),
        ("token_bytes", ctypes.c_char_p),
        ("tokenizer_json", ctypes.c_char_p),
        ("tokenize_assumes_string", ctypes.c_bool),
        ("tokenize_fn", ctypes.c_void_p),
        ("use_approximate_greedy_tokenize_fn", ctypes.c_bool),
        ("tokenize_user_data", ctypes.c_void_p),
        ("slices", ctypes.c_void_p),
        ("spare", ctypes.c_void_p * 16),
    )


def llguidance_error(grammar: str | dict[str, Any]) -> str | None:
    """LLGuidance's error message for a Lark grammar or a JSON Schema, or None if it accepts it."""
    kind, text = ("lark", grammar) if isinstance(grammar, str) else ("json_schema", json.dumps(grammar))
    library = _xllamacpp_library()
    if not hasattr(library, "llg_validate_grammar"):
        return None
    init = (ctypes.c_byte * 512)()
    library.llg_constraint_init_set_defaults(init, ctypes.c_void_p(_byte_tokenizer()))
    message = ctypes.create_string_buffer(_MESSAGE_BYTES)
    size = ctypes.c_size_t(_MESSAGE_BYTES)
    verdict = library.llg_validate_grammar(init, kind.encode(), _c_text(text), message, size)
    return message.value.decode("utf-8", "replace").strip() or None if verdict < 0 else None


@lru_cache(maxsize=64)
def gbnf_error(grammar: str) -> str | None:
    """llama.cpp's error message for a GBNF grammar, or None if it accepts it."""
    library = _xllamacpp_library()
    library.llama_sampler_init_grammar.restype = ctypes.c_void_p
    with tempfile.TemporaryFile() as log:
        # The parser writes its messages to stderr only. The call takes microseconds and `PyDLL` keeps the GIL, so no
        # other Python thread writes to the redirected stderr meanwhile.
        stderr = os.dup(2)
        os.dup2(log.fileno(), 2)
        try:
            sampler = library.llama_sampler_init_grammar(None, _c_text(grammar), b"root")
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)
        log.seek(0)
        message = log.read().decode("utf-8", "replace").strip()
    if sampler:
        library.llama_sampler_free(ctypes.c_void_p(sampler))
        return None
    return message or "it has no rule `root`, or is left-recursive"


@cache
def _xllamacpp_library() -> ctypes.PyDLL:
    from importlib.util import find_spec

    spec = find_spec("xllamacpp.xllamacpp")
    return ctypes.PyDLL(spec.origin if spec else None)


@cache
def _byte_tokenizer() -> int:
    """The smallest tokenizer that LLGuidance accepts: one token for each byte, and an end token."""
    end = b"\xff<end>"
    lengths = (ctypes.c_uint32 * 257)(*[1] * 256, len(end))
    init = _LlgTokenizerInit(
        vocab_size=257,
        tok_eos=256,
        token_lens=lengths,
        token_bytes=bytes(range(256)) + end,
        tokenize_assumes_string=True,
        use_approximate_greedy_tokenize_fn=True,
    )
    new = _xllamacpp_library().llg_new_tokenizer
    new.restype = ctypes.c_void_p
    message = ctypes.create_string_buffer(_MESSAGE_BYTES)
    return new(ctypes.byref(init), message, ctypes.c_size_t(_MESSAGE_BYTES)) or 0


def _c_text(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def completion_body(request: ModelRequest, vocabulary: Vocabulary) -> dict[str, Any]:
    """The request body of one completion, without its prompt."""
    body: dict[str, Any] = {
        "n_predict": request.max_tokens,
        "temperature": request.temperature,
        # The highest 32-bit number would ask llama.cpp for a random seed.
        "seed": request.seed % _SEED_MODULUS,
        "stop": list(request.stop),
        # Set explicitly, because weights files may contain other defaults.
        "top_k": 40,
        "top_p": 0.95,
        "min_p": 0.05,
        "repeat_penalty": 1.0,
    }
    if request.confidence:
        body["n_probs"] = REPORTED_ALTERNATIVES
    if request.grammar is not None:
        body["grammar"] = request.grammar
        if not uses_llguidance(request) and (message := gbnf_error(request.grammar)):
            raise _bad_grammar(message)
    if request.json_schema is not None:
        body["json_schema"] = compact_schema(request.json_schema)
    if uses_llguidance(request):
        # LLGuidance drops a constraint that it cannot follow, and the model continues without it. A control token that
        # no constraint allows gets the highest bias: if it is ever written, the constraint has been dropped.
        body["logit_bias"] = [[vocabulary.start, _TRIPWIRE_BIAS]]
        body["preserved_tokens"] = [vocabulary.tripwire]
    return body


def uses_llguidance(request: ModelRequest) -> bool:
    """Whether LLGuidance enforces the constraint of the reply; it does so for JSON Schemas, too."""
    return request.json_schema is not None or (request.grammar or "").startswith(LLGUIDANCE)


class Completion:
    """Collects the streamed pieces of a reply; `take` is the engine's callback and must not raise."""

    def __init__(
        self,
        request: ModelRequest,
        on_text: Callable[[str], object] | None,
        stopped: threading.Event,
        tripwire: str = "<|im_start|>",
    ) -> None:
        self._request = request
        self._on_text = on_text
        self._stopped = stopped
        self._tripwire = tripwire if uses_llguidance(request) else None
        self._tripped = False
        self._texts: list[str] = []
        self._confidence: list[ReplyToken] = []
        self._error: dict[str, Any] | None = None
        self._last: dict[str, Any] | None = None

    def take(self, chunk: dict[str, Any]) -> bool:
        """Take one piece of the stream; return True to end it."""
        if self._stopped.is_set():
            return True
        if "error" in chunk:
            self._error = chunk["error"]
            return True
        text: str = chunk["choices"][0]["text"]
        if self._tripwire is not None and self._tripwire in text:
            self._tripped = True
            return True
        if self._request.confidence and (reported := chunk["choices"][0].get("logprobs")):
            self._confidence += read_token_confidence(reported["content"], self._request)
        if text:
            self._texts.append(text)
            if self._on_text is not None:
                self._on_text(text)
        if chunk["choices"][0]["finish_reason"] is not None:
            self._last = chunk
        return False

    def reply(self, seconds: float, reused: int) -> ModelReply:
        """The whole reply; raises the error that ended it. `reused` tokens of its prompt were not evaluated again."""
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
            usage=Usage(counts["prompt_tokens"], reused, counts["completion_tokens"]),
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
