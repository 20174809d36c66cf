"""ChatML prompts in which only the runtime can write a control token, and their token numbers."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache

from bicameral.models._canonical import Prompt, whole_blocks
from bicameral.models._gguf import Vocabulary
from bicameral.models._protocol import Message, ModelRequest, ToolSchema
from bicameral.models._tools import told

_REMEMBERED = 64

Tokenize = Callable[[list[str], int], list[tuple[int, ...]]]


class PromptTokenizer:
    """Turns requests into token numbers; texts that come again, as a system message does, are tokenized once."""

    def __init__(self, vocabulary: Vocabulary, tokenize: Tokenize) -> None:
        self._vocabulary = vocabulary
        self._tokenize = tokenize
        self._known: OrderedDict[str, tuple[int, ...]] = OrderedDict()

    def prompt(self, request: ModelRequest) -> Prompt:
        """The prompt of a request, and where its parts end."""
        vocabulary, tools = self._vocabulary, request.tools
        parts = [render(request.messages, prefill, vocabulary, tools) for prefill in ("", request.prefill)]
        system = render_system(request.messages, vocabulary, tools)
        self._learn(piece for part in parts for piece in part if isinstance(piece, str))
        messages, whole = (self._tokens(part) for part in parts)
        # The prefill may change the tokens at the seam: what both have in common is the messages.
        common = next((at for at, (one, other) in enumerate(zip(messages, whole, strict=False)) if one != other), None)
        end = len(messages) if common is None else common
        fixed = whole_blocks(min(len(self._tokens(system)), end - 1))
        return Prompt(whole, end, fixed)

    def _learn(self, pieces: Iterable[str]) -> None:
        needed = dict.fromkeys(pieces)
        new = [piece for piece in needed if piece not in self._known]
        if new:
            self._known.update(zip(new, self._tokenize(new, self._vocabulary.start), strict=True))
        for piece in needed:
            self._known.move_to_end(piece)
        while len(self._known) > max(_REMEMBERED, len(needed)):
            self._known.popitem(last=False)

    def _tokens(self, part: list[int | str]) -> tuple[int, ...]:
        tokens: list[int] = []
        for piece in part:
            tokens += self._known[piece] if isinstance(piece, str) else (piece,)
        return tuple(tokens)


def render(
    messages: Iterable[Message], prefill: str, vocabulary: Vocabulary, tools: tuple[ToolSchema, ...] = ()
) -> list[int | str]:
    """A prompt as llama.cpp takes it: token numbers for the markers, texts for everything that was said.

    The engine tokenizes each text by itself and would read `<|im_end|>` inside one as the end of the turn, so a
    text is cut inside every control token that it spells: the characters stay, the control token is gone.
    """
    prompt: list[int | str] = []
    for speaker, text in told(tuple(messages), tools):
        prompt += [vocabulary.start, *_cut(f"{speaker}\n{text}", vocabulary.control), vocabulary.end, "\n"]
    return [*prompt, vocabulary.start, *_cut(f"assistant\n{prefill}", vocabulary.control)]


def render_system(
    messages: tuple[Message, ...], vocabulary: Vocabulary, tools: tuple[ToolSchema, ...] = ()
) -> list[int | str]:
    """The beginning of a prompt that is its system message; nothing if it has none."""
    for speaker, text in told(messages, tools):
        if speaker == "system":
            return [vocabulary.start, *_cut(f"{speaker}\n{text}", vocabulary.control), vocabulary.end, "\n"]
        break
    return []


def _cut(text: str, control: frozenset[str]) -> Iterator[str]:
    # A lone surrogate has no UTF-8 form; the engine would refuse the whole request for it.
    text = text.encode("utf-8", "replace").decode("utf-8")
    begun = 0
    for match in _beginnings(control).finditer(text):
        # One past where it begins: no piece holds a whole control token, however they overlap.
        cut = match.start() + 1
        yield text[begun:cut]
        begun = cut
    if begun < len(text):
        yield text[begun:]


@lru_cache(maxsize=8)
def _beginnings(control: frozenset[str]) -> re.Pattern[str]:
    if not control:
        return re.compile(r"(?!)")
    first = "".join(sorted({re.escape(text[0]) for text in control}))
    longer = "|".join(re.escape(text) for text in sorted(control))
    return re.compile(f"(?=[{first}])(?={longer})")
