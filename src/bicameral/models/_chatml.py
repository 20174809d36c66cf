"""ChatML prompts in which only the runtime can write a control token."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from bicameral.models._gguf import Vocabulary
from bicameral.models._protocol import Message, ToolSchema
from bicameral.models._tools import told


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
