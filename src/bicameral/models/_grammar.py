"""Why a grammar or JSON Schema was not accepted, in the words of the engine's own parsers.

llama.cpp prints such messages or drops them, so the two parsers inside its library are asked directly, through
their published C interfaces (`llguidance.h` and `llama.h`).
"""

from __future__ import annotations

import ctypes
import json
import os
import tempfile
from functools import cache, lru_cache
from typing import Any

LLGUIDANCE = "%llguidance"
_MESSAGE_BYTES = 4096


class _Tokenizer(ctypes.Structure):
    """`LlgTokenizerInit`; the spare room keeps fields that a later version adds at zero."""

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
    """What LLGuidance says against a Lark grammar or a JSON Schema, or None if it says nothing."""
    kind, text = ("lark", grammar) if isinstance(grammar, str) else ("json_schema", json.dumps(grammar))
    library = _library()
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
    """What llama.cpp says against a GBNF grammar, or None if it accepts it."""
    library = _library()
    library.llama_sampler_init_grammar.restype = ctypes.c_void_p
    with tempfile.TemporaryFile() as said:
        # The parser writes to stderr only. It takes microseconds and the GIL is held throughout.
        stderr = os.dup(2)
        os.dup2(said.fileno(), 2)
        try:
            sampler = library.llama_sampler_init_grammar(None, _c_text(grammar), b"root")
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)
        said.seek(0)
        message = said.read().decode("utf-8", "replace").strip()
    if sampler:
        library.llama_sampler_free(ctypes.c_void_p(sampler))
        return None
    return message or "it has no rule `root`, or is left-recursive"


@cache
def _library() -> ctypes.PyDLL:
    from importlib.util import find_spec

    spec = find_spec("xllamacpp.xllamacpp")
    return ctypes.PyDLL(spec.origin if spec else None)


@cache
def _byte_tokenizer() -> int:
    """The smallest tokenizer that LLGuidance takes: one token a byte, and an end."""
    end = b"\xff<end>"
    lengths = (ctypes.c_uint32 * 257)(*[1] * 256, len(end))
    init = _Tokenizer(
        vocab_size=257,
        tok_eos=256,
        token_lens=lengths,
        token_bytes=bytes(range(256)) + end,
        tokenize_assumes_string=True,
        use_approximate_greedy_tokenize_fn=True,
    )
    new = _library().llg_new_tokenizer
    new.restype = ctypes.c_void_p
    message = ctypes.create_string_buffer(_MESSAGE_BYTES)
    return new(ctypes.byref(init), message, ctypes.c_size_t(_MESSAGE_BYTES)) or 0


def _c_text(text: str) -> bytes:
    return text.encode("utf-8", "replace")
