"""Prompts of a local model: ChatML as token numbers, in which only the runtime can write a control token.

The vocabulary is read from the header of the weights file before an engine loads it: which texts the tokenizer turns
into control tokens, and the numbers of ChatML's two markers. Every control token that a text spells is split in two,
so that untrusted text cannot end its turn or begin another one.
"""

from __future__ import annotations

import re
import struct
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO

from bicameral.errors import ModelError, Place
from bicameral.models._evaluator import TokenizedPrompt, whole_block_tokens
from bicameral.models._protocol import Message, ModelRequest, ToolSchema
from bicameral.models._tool_calls import render_turns

_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
# A damaged or hostile header must not make the reader allocate more than this.
_MAX_TEXT_BYTES = 1 << 24
_MAX_ARRAY_ITEMS = 1 << 24
_MAX_CACHED_TEXTS = 64
_NORMAL, _UNUSED, _BYTE = 1, 5, 6
_LOOKS_LIKE_CONTROL = re.compile(r"<[^<>\s]+>")

_VOCABULARY_TEXTS = "tokenizer.ggml.tokens"
_VOCABULARY_KINDS = "tokenizer.ggml.token_type"

Tokenize = Callable[[list[str], int], list[tuple[int, ...]]]


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The texts that a tokenizer turns into control tokens, and the numbers of ChatML's two markers."""

    start: int
    end: int
    control: frozenset[str]
    trained_context: int


def read_vocabulary(path: Path) -> Vocabulary:
    """Read the header of a weights file; raises if it is missing, not GGUF, or has no ChatML markers."""
    try:
        with path.open("rb") as file:
            return _build_vocabulary(_read_metadata(file), path)
    except FileNotFoundError:
        raise ModelError(
            "models.file-missing",
            f"the weights file {path.name!r} is not there",
            place=Place(file=str(path)),
            fix="Run `bicameral models pull` to get it.",
        ) from None
    except OSError as error:
        raise ModelError(
            "models.file-unreadable",
            f"the weights file cannot be read: {error.strerror}",
            place=Place(file=str(path)),
            fix="Check that it is a file and its permissions.",
        ) from None
    except (struct.error, ValueError, KeyError) as error:
        raise ModelError(
            "models.not-gguf",
            f"this is not a whole GGUF weights file ({error})",
            place=Place(file=str(path)),
            fix="Run `bicameral models verify`, then `bicameral models pull` to replace it.",
        ) from None


def _build_vocabulary(facts: dict[str, Any], path: Path) -> Vocabulary:
    tokens: list[bytes] = facts[_VOCABULARY_TEXTS]
    kinds: tuple[int, ...] = facts[_VOCABULARY_KINDS]
    # llama.cpp turns some ordinary tokens into control tokens by their form (`</s>`), so the form is enough here. Only
    # few texts of a hundred thousand come into question, so that only these are decoded.
    plain = (_NORMAL, _UNUSED, _BYTE)
    questionable = (
        (raw.decode("utf-8", "replace"), kind)
        for raw, kind in zip(tokens, kinds, strict=True)
        if kind not in plain or (kind == _NORMAL and raw[:1] == b"<" and raw[-1:] == b">")
    )
    control = frozenset(
        text
        for text, kind in questionable
        if len(text) > 1 and (kind not in plain or _LOOKS_LIKE_CONTROL.fullmatch(text))
    )
    try:
        start, end = tokens.index(b"<|im_start|>"), tokens.index(b"<|im_end|>")
    except ValueError:
        raise ModelError(
            "models.no-chatml",
            "these weights do not speak ChatML: they have no <|im_start|> token",
            place=Place(file=str(path)),
            fix="Use an instruct model of the Qwen2.5 or SmolLM2 family.",
        ) from None
    lengths = (value for key, value in facts.items() if key.endswith(".context_length"))
    return Vocabulary(start, end, control, int(next(lengths, 0)))


def _read_metadata(file: BinaryIO) -> dict[str, Any]:
    if file.read(4) != b"GGUF":
        raise ValueError("it does not begin with GGUF")
    version, _tensors, count = _read_struct(file, "IQQ")
    if version not in (2, 3):
        raise ValueError(f"its format version is {version}")
    facts: dict[str, Any] = {}
    for _ in range(count):
        key = _read_text(file)
        facts[key] = _read_value(file, _read_struct(file, "I")[0])
        # The rest of the header (the merges, the tensors) is long and not needed.
        if _VOCABULARY_TEXTS in facts and _VOCABULARY_KINDS in facts:
            break
    return facts


def _read_value(file: BinaryIO, kind: int) -> Any:
    if kind == _STRING:
        return _read_text(file)
    if kind != _ARRAY:
        if kind not in _SCALARS:
            raise ValueError(f"a value of unknown kind {kind}")
        return _read_struct(file, _SCALARS[kind])[0]
    item, length = _read_struct(file, "IQ")
    if length > _MAX_ARRAY_ITEMS:
        raise ValueError(f"an array of {length} items")
    if item in _SCALARS:
        return _read_struct(file, f"{length}{_SCALARS[item]}")
    if item == _STRING:
        return [_read_bytes(file) for _ in range(length)]
    return [_read_value(file, item) for _ in range(length)]


def _read_text(file: BinaryIO) -> str:
    return _read_bytes(file).decode("utf-8", "replace")


def _read_bytes(file: BinaryIO) -> bytes:
    head = file.read(8)
    length = int.from_bytes(head, "little")
    if len(head) < 8:
        raise ValueError("it ends before a text")
    if length > _MAX_TEXT_BYTES:
        raise ValueError(f"a text of {length} bytes")
    found = file.read(length)
    if len(found) < length:
        raise ValueError("it ends in the middle of a text")
    return found


def _read_struct(file: BinaryIO, layout: str) -> tuple[Any, ...]:
    return struct.unpack("<" + layout, file.read(struct.calcsize("<" + layout)))


class PromptTokenizer:
    """Turns requests into token numbers; caches texts, so that a repeated system message is tokenized once."""

    def __init__(self, vocabulary: Vocabulary, tokenize: Tokenize) -> None:
        self._vocabulary = vocabulary
        self._tokenize = tokenize
        self._known: OrderedDict[str, tuple[int, ...]] = OrderedDict()

    def prompt(self, request: ModelRequest) -> TokenizedPrompt:
        """The tokens of a request's prompt, and where its parts end."""
        vocabulary, tools = self._vocabulary, request.tools
        parts = [render_prompt(request.messages, prefill, vocabulary, tools) for prefill in ("", request.prefill)]
        prefix = render_prefix(request.messages, request.fixed, vocabulary, tools)
        self._tokenize_new(piece for part in parts for piece in part if isinstance(piece, str))
        messages, whole = (self._tokens(part) for part in parts)
        # The prefill may change the tokens where it begins: the messages end where the two versions differ.
        common = next((at for at, (one, other) in enumerate(zip(messages, whole, strict=False)) if one != other), None)
        end = len(messages) if common is None else common
        prefix_tokens = whole_block_tokens(min(len(self._tokens(prefix)), end - 1))
        return TokenizedPrompt(whole, end, prefix_tokens, fixed=request.fixed > 0)

    def _tokenize_new(self, pieces: Iterable[str]) -> None:
        needed = dict.fromkeys(pieces)
        new = [piece for piece in needed if piece not in self._known]
        if new:
            self._known.update(zip(new, self._tokenize(new, self._vocabulary.start), strict=True))
        for piece in needed:
            self._known.move_to_end(piece)
        while len(self._known) > max(_MAX_CACHED_TEXTS, len(needed)):
            self._known.popitem(last=False)

    def _tokens(self, part: list[int | str]) -> tuple[int, ...]:
        tokens: list[int] = []
        for piece in part:
            tokens += self._known[piece] if isinstance(piece, str) else (piece,)
        return tuple(tokens)


def render_prompt(
    messages: Iterable[Message], prefill: str, vocabulary: Vocabulary, tools: tuple[ToolSchema, ...] = ()
) -> list[int | str]:
    """A prompt as llama.cpp takes it: token numbers for the markers, texts for everything else.

    The engine tokenizes each text by itself and would read `<|im_end|>` inside one as the end of the turn. So every
    control token that a text spells is split: the characters stay, but the tokenizer sees no control token.
    """
    prompt: list[int | str] = []
    for speaker, text in render_turns(tuple(messages), tools):
        prompt += _render_turn(speaker, text, vocabulary)
    return [*prompt, vocabulary.start, *_split_control_tokens(f"assistant\n{prefill}", vocabulary.control)]


def _render_turn(speaker: str, text: str, vocabulary: Vocabulary) -> list[int | str]:
    content = _split_control_tokens(f"{speaker}\n{text}", vocabulary.control)
    return [vocabulary.start, *content, vocabulary.end, "\n"]


def render_prefix(
    messages: tuple[Message, ...], fixed: int, vocabulary: Vocabulary, tools: tuple[ToolSchema, ...] = ()
) -> list[int | str]:
    """The beginning of a prompt that other prompts may have, too: its fixed messages, else its system message."""
    turns = list(render_turns(messages, tools))
    first = fixed or int(bool(turns) and turns[0][0] == "system")
    return [piece for speaker, text in turns[:first] for piece in _render_turn(speaker, text, vocabulary)]


def _split_control_tokens(text: str, control: frozenset[str]) -> Iterator[str]:
    # A lone surrogate has no UTF-8 form, and the engine would refuse the whole request because of it.
    text = text.encode("utf-8", "replace").decode("utf-8")
    start = 0
    for match in _control_token_pattern(control).finditer(text):
        # After its first character: then no piece holds a whole control token, even where they overlap.
        cut = match.start() + 1
        yield text[start:cut]
        start = cut
    if start < len(text):
        yield text[start:]


@lru_cache(maxsize=8)
def _control_token_pattern(control: frozenset[str]) -> re.Pattern[str]:
    if not control:
        return re.compile(r"(?!)")
    first = "".join(sorted({re.escape(text[0]) for text in control}))
    # A lookahead consumes nothing, so control tokens that overlap are all found.
    any_token = "|".join(re.escape(text) for text in sorted(control))
    return re.compile(f"(?=[{first}])(?={any_token})")
