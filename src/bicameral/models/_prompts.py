"""Prompts of a local model as token numbers, in which only the runtime can write a control token.

The vocabulary is read from the header of the weights file before an engine loads it: which texts the tokenizer turns
into control tokens, and how turns are marked. The models that this package knows get ChatML, which their adapters were
trained with; others get their own template. Every control token that a text spells is split in two, so that untrusted
text cannot end its turn or begin another one.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

from bicameral.errors import ModelError, Place
from bicameral.models._chat_template import ChatTemplate
from bicameral.models._evaluator import TokenizedPrompt, whole_block_tokens
from bicameral.models._gguf import (
    CHAT_TEMPLATE,
    VOCABULARY_KINDS,
    VOCABULARY_TEXTS,
    no_template_error,
    read_metadata,
    translate_file_errors,
)
from bicameral.models._protocol import Message, ModelRequest, ToolSchema
from bicameral.models._tool_calls import render_turns

_MAX_CACHED_TEXTS = 64
_NORMAL, _CONTROL, _UNUSED, _BYTE = 1, 3, 5, 6
_LOOKS_LIKE_CONTROL = re.compile(r"<[^<>\s]+>")
_START, _END = b"<|im_start|>", b"<|im_end|>"
# Texts of control tokens that end a reply in the engine, whatever the header says about them.
_ENDS_A_REPLY = re.compile(r"end|eot|eos|eom|</s>|return|call|turn\|>|<EOT>", re.IGNORECASE)
# Tokenizers that begin a prompt with a token of its own unless their header says otherwise.
_ADDS_BOS = frozenset({"llama3", "llama-v3", "llama-bpe", "falcon3", "tekken", "chameleon"})

Tokenize = Callable[[list[str], int], list[tuple[int, ...]]]
TokenizeMarkers: TypeAlias = Callable[[str], tuple[int, ...]]
"""The tokens of a template's own text, in which control tokens count."""


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The texts that a tokenizer turns into control tokens, and how turns are marked.

    `start` and `end` are two different control tokens, those of ChatML where it has them. `start` ends no reply, and
    `tripwire` is its text.
    """

    start: int
    end: int
    control: frozenset[str]
    trained_context: int
    tripwire: str = _START.decode()
    template: ChatTemplate | None = None
    """The template of the weights; None for ChatML."""


@dataclass(frozen=True, slots=True)
class MarkerText:
    """A text of a template, in which control tokens count. It never holds anything that was said."""

    text: str


PromptPiece: TypeAlias = int | str | MarkerText


def read_vocabulary(path: Path, *, own_template: bool = False) -> Vocabulary:
    """Read the header of a weights file; raises if it is missing, not GGUF, or does not say how turns are marked.

    Args:
        path: The weights file.
        own_template: Mark turns by the template of the file, and not by ChatML.
    """
    with translate_file_errors(path):
        with path.open("rb") as file:
            facts = read_metadata(file, () if own_template else (VOCABULARY_TEXTS, VOCABULARY_KINDS))
        return _build_vocabulary(facts, path, own_template=own_template)


def _build_vocabulary(facts: dict[str, Any], path: Path, *, own_template: bool) -> Vocabulary:
    tokens: list[bytes] = facts[VOCABULARY_TEXTS]
    kinds: tuple[int, ...] = facts[VOCABULARY_KINDS]
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
    lengths = (value for key, value in facts.items() if key.endswith(".context_length"))
    context = int(next(lengths, 0))
    if own_template:
        template = _read_template(facts, tokens, path)
        start, end = _choose_marks(facts, tokens, kinds, path)
        return Vocabulary(start, end, control, context, tokens[start].decode("utf-8", "replace"), template)
    try:
        start, end = tokens.index(_START), tokens.index(_END)
    except ValueError:
        raise ModelError(
            "models.no-chatml",
            "these weights do not speak ChatML: they have no <|im_start|> token",
            place=Place(file=str(path)),
            fix="Use a model of the Qwen2.5 or SmolLM2 family, or add these weights with `bicameral models add`.",
        ) from None
    return Vocabulary(start, end, control, context)


def _read_template(facts: Mapping[str, Any], tokens: list[bytes], path: Path) -> ChatTemplate:
    source = facts.get(CHAT_TEMPLATE)
    if not isinstance(source, str) or not source.strip():
        raise no_template_error(path)
    texts = {
        name: tokens[number].decode("utf-8", "replace")
        for name in ("bos", "eos")
        if isinstance(number := facts.get(f"tokenizer.ggml.{name}_token_id"), int) and 0 <= number < len(tokens)
    }
    usual = facts.get("tokenizer.ggml.model") == "llama" or facts.get("tokenizer.ggml.pre") in _ADDS_BOS
    adds_bos = bool(facts.get("tokenizer.ggml.add_bos_token", usual))
    return ChatTemplate(source, texts.get("bos", ""), texts.get("eos", ""), adds_bos)


def _choose_marks(facts: Mapping[str, Any], tokens: list[bytes], kinds: tuple[int, ...], path: Path) -> tuple[int, int]:
    """Two control tokens that no reply under a constraint holds; the first of them must not end a reply."""
    if _START in tokens and _END in tokens:
        return tokens.index(_START), tokens.index(_END)
    control = [number for number, kind in enumerate(kinds) if kind == _CONTROL and len(tokens[number]) > 1]
    ending = {value for key, value in facts.items() if key.startswith("tokenizer.ggml.eo") and isinstance(value, int)}
    lasting = [
        number
        for number in control
        if number not in ending and not _ENDS_A_REPLY.search(tokens[number].decode("utf-8", "replace"))
    ]
    bos = facts.get("tokenizer.ggml.bos_token_id")
    start = bos if bos in lasting else next(iter(lasting), None)
    end = next((number for number in control if number != start), None)
    if start is None or end is None:
        raise ModelError(
            "models.no-template",
            "these weights have too few control tokens to keep turns apart",
            place=Place(file=str(path)),
            fix="Use another model.",
        )
    return start, end


class PromptTokenizer:
    """Turns requests into token numbers; caches texts, so that a repeated system message is tokenized once."""

    def __init__(
        self, vocabulary: Vocabulary, tokenize: Tokenize, tokenize_markers: TokenizeMarkers | None = None
    ) -> None:
        self._vocabulary = vocabulary
        self._tokenize = tokenize
        self._tokenize_markers = tokenize_markers
        self._known: OrderedDict[str | MarkerText, tuple[int, ...]] = OrderedDict()

    def prompt(self, request: ModelRequest) -> TokenizedPrompt:
        """The tokens of a request's prompt, and where its parts end."""
        vocabulary, tools = self._vocabulary, request.tools
        parts = [render_prompt(request.messages, prefill, vocabulary, tools) for prefill in ("", request.prefill)]
        prefix = render_prefix(request.messages, request.fixed, vocabulary, tools)
        self._tokenize_new(piece for part in parts for piece in part if not isinstance(piece, int))
        messages, whole = (self._tokens(part) for part in parts)
        # The prefill may change the tokens where it begins: the messages end where the two versions differ.
        common = next((at for at, (one, other) in enumerate(zip(messages, whole, strict=False)) if one != other), None)
        end = len(messages) if common is None else common
        prefix_tokens = whole_block_tokens(min(len(self._tokens(prefix)), end - 1))
        return TokenizedPrompt(whole, end, prefix_tokens, fixed=request.fixed > 0)

    def _tokenize_new(self, pieces: Iterable[str | MarkerText]) -> None:
        needed = dict.fromkeys(pieces)
        new = [piece for piece in needed if isinstance(piece, str) and piece not in self._known]
        if new:
            self._known.update(zip(new, self._tokenize(new, self._vocabulary.start), strict=True))
        for piece in needed:
            if isinstance(piece, MarkerText) and piece not in self._known:
                assert self._tokenize_markers is not None
                self._known[piece] = self._tokenize_markers(piece.text)
            self._known.move_to_end(piece)
        while len(self._known) > max(_MAX_CACHED_TEXTS, len(needed)):
            self._known.popitem(last=False)

    def _tokens(self, part: list[PromptPiece]) -> tuple[int, ...]:
        tokens: list[int] = []
        for piece in part:
            tokens += (piece,) if isinstance(piece, int) else self._known[piece]
        return tuple(tokens)


def render_prompt(
    messages: Iterable[Message], prefill: str, vocabulary: Vocabulary, tools: tuple[ToolSchema, ...] = ()
) -> list[PromptPiece]:
    """A prompt in pieces: token numbers or texts of the template for the markers, texts for everything else.

    The engine tokenizes each text by itself and would read `<|im_end|>` inside one as the end of the turn. So every
    control token that a text spells is split: the characters stay, but the tokenizer sees no control token.
    """
    turns = list(render_turns(tuple(messages), tools))
    if vocabulary.template is not None:
        return [
            *_fill_template(vocabulary.template, turns, vocabulary),
            *_split_control_tokens(prefill, vocabulary.control),
        ]
    prompt: list[PromptPiece] = []
    for speaker, text in turns:
        prompt += _render_turn(speaker, text, vocabulary)
    return [*prompt, vocabulary.start, *_split_control_tokens(f"assistant\n{prefill}", vocabulary.control)]


def _fill_template(
    template: ChatTemplate, turns: list[tuple[str, str]], vocabulary: Vocabulary, first: int | None = None
) -> Iterator[PromptPiece]:
    """The pieces of a prompt by a template, up to the content of the turn before `first`, or all of them."""
    for part in template.layout(speaker for speaker, _ in turns):
        if isinstance(part, str):
            yield MarkerText(part)
            continue
        yield from _split_control_tokens(turns[part][1], vocabulary.control)
        if first is not None and part == first - 1:
            return


def _render_turn(speaker: str, text: str, vocabulary: Vocabulary) -> list[PromptPiece]:
    content = _split_control_tokens(f"{speaker}\n{text}", vocabulary.control)
    return [vocabulary.start, *content, vocabulary.end, "\n"]


def render_prefix(
    messages: tuple[Message, ...], fixed: int, vocabulary: Vocabulary, tools: tuple[ToolSchema, ...] = ()
) -> list[PromptPiece]:
    """The beginning of a prompt that other prompts may have, too: its fixed messages, else its system message."""
    turns = list(render_turns(messages, tools))
    # Where several messages are one turn, the fixed ones cannot be told from those with a user's text.
    fixed = fixed if len(turns) >= len(messages) else 0
    first = fixed or int(bool(turns) and turns[0][0] == "system")
    if vocabulary.template is not None:
        return list(_fill_template(vocabulary.template, turns, vocabulary, first)) if first else []
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
