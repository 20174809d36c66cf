"""Canonical evaluation of prompts: what a model computes for a token does not depend on what was cached before.

A CPU backend has other kernels for one token than for many, and they round differently. So the result for a token
depends on how many tokens are evaluated together with it, and a reply would depend on how much of its prompt was
reused. Here the prompt alone decides that:

- The messages are evaluated in blocks of `BLOCK` tokens from the first token on, the rest as one shorter block.
- Every token of the reply is evaluated alone: those that the model writes, and those of a prefill, which it might have
  written.

What a slot holds is reused only where that makes no difference: whole blocks of messages that were evaluated without
an output, and behind the same messages any number of tokens of a reply. A plan is decoded statement by statement with
a growing prefill; each statement finds all tokens before it. The state of a fixed prefix is saved to a file in a
private folder before another conversation overwrites it; such a file is checked by length and hash before the engine
reads it, since the engine aborts the process on a damaged one.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from bicameral.errors import ModelError

MAX_STATE_FILES = 8
MAX_STATE_BYTES = 512 * 2**20


@dataclass(frozen=True, slots=True)
class PrefixState:
    """One file, and the tokens that a slot has after it was read."""

    name: str
    tokens: tuple[int, ...]
    size: int
    sha256: str


class PrefixStates:
    """The states of a folder, the least recently used of which goes when there are too many files or bytes.

    An engine aborts the whole process on a damaged file. So a file is written under another name and renamed when it is
    whole, and its length and hash are compared before the engine is told of it.
    """

    def __init__(self, folder: Path, *, most_files: int = MAX_STATE_FILES, most_bytes: int = MAX_STATE_BYTES) -> None:
        self.folder = folder
        self._most_files = most_files
        self._most_bytes = most_bytes
        self._states: OrderedDict[str, PrefixState] = OrderedDict()

    def __contains__(self, key: str) -> bool:
        return key in self._states

    def add(self, key: str, tokens: tuple[int, ...], write: Callable[[str], int]) -> None:
        """Let `write` make a file of the name that it is given and say how many bytes it wrote; keep it if it did."""
        part, name = f"{key}.part", f"{key}.state"
        written = write(part)
        path = self.folder / part
        try:
            size, digest = _size_and_hash(path)
            if size != written:
                # A full disk: the engine does not look at what closing the file said.
                path.unlink()
                return
            path.replace(self.folder / name)
        except OSError:
            return
        self._states[key] = PrefixState(name, tokens, size, digest)
        self._states.move_to_end(key)
        while len(self._states) > self._most_files or self._bytes() > self._most_bytes:
            self.drop(next(iter(self._states)))

    def find(self, key: str) -> PrefixState | None:
        """The state of this key, if its file is still what was written."""
        state = self._states.get(key)
        if state is None:
            return None
        try:
            whole = _size_and_hash(self.folder / state.name) == (state.size, state.sha256)
        except OSError:
            whole = False
        if not whole:
            self.drop(key)
            return None
        self._states.move_to_end(key)
        return state

    def drop(self, key: str) -> None:
        """Forget a state and remove its file."""
        state = self._states.pop(key, None)
        if state is not None:
            (self.folder / state.name).unlink(missing_ok=True)

    def _bytes(self) -> int:
        return sum(state.size for state in self._states.values())


def prefix_key(adapter: str, tokens: tuple[int, ...]) -> str:
    """The name of a prefix: the adapter that it was evaluated with, and its tokens."""
    return hashlib.sha256(f"{adapter}:{','.join(map(str, tokens))}".encode()).hexdigest()


def _size_and_hash(path: Path) -> tuple[int, str]:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return file.tell(), digest


BLOCK = 32
_MIN_SAVED_BLOCKS = 2
_EVALUATE_ONLY: dict[str, Any] = {"n_predict": 0, "temperature": 0.0}
"""A completion that only evaluates its prompt (and writes one token, which is not evaluated)."""


@dataclass(frozen=True, slots=True)
class TokenizedPrompt:
    """The tokens of a prompt: the first `messages` of them are the messages, what follows is the reply's prefill.

    The first `fixed` are whole blocks of a system message, which later conversations may begin with, too.
    """

    tokens: tuple[int, ...]
    message_tokens: int
    prefix_tokens: int = 0

    @property
    def block_tokens(self) -> int:
        """How many tokens are in whole blocks without an output; the last token of the messages always has one."""
        return whole_block_tokens(self.message_tokens - 1)

    def evaluation_lengths(self, reused: int) -> Iterator[int]:
        """The lengths up to which the prompt is evaluated, one after the other; the last is the whole prompt."""
        if reused < self.message_tokens:
            yield self.message_tokens
        yield from range(max(reused, self.message_tokens) + 1, len(self.tokens) + 1)


@dataclass(frozen=True, slots=True)
class SlotContent:
    """What a slot is known to hold: tokens, of which the first `blocks` were evaluated as whole blocks.

    With `messages` all tokens from that one on were evaluated alone. The slot may hold more than is known here.
    """

    tokens: tuple[int, ...] = ()
    block_tokens: int = 0
    message_tokens: int | None = None
    prefix_tokens: int = 0

    def common_tokens(self, prompt: TokenizedPrompt) -> int:
        """How many tokens at the beginning are those of the prompt."""
        pairs = zip(self.tokens, prompt.tokens, strict=False)
        shorter = min(len(self.tokens), len(prompt.tokens))
        return next((at for at, (mine, other) in enumerate(pairs) if mine != other), shorter)

    def reusable_tokens(self, prompt: TokenizedPrompt) -> int:
        """How many tokens the prompt may leave as they are; at least its last token is always evaluated."""
        common = self.common_tokens(prompt)
        last = len(prompt.tokens) - 1
        if self.message_tokens == prompt.message_tokens <= min(common, last):
            return min(common, last)
        return whole_block_tokens(min(common, self.block_tokens, prompt.block_tokens))

    def diverges(self, prompt: TokenizedPrompt, at: int) -> bool:
        """Whether the slot is known to hold another token than the prompt there."""
        return at < len(self.tokens) and self.tokens[at] != prompt.tokens[at]


EMPTY_SLOT = SlotContent()


class SlotServer(Protocol):
    """What an evaluator needs of an engine's server."""

    def complete(self, body: dict[str, Any], take: Callable[[dict[str, Any]], bool]) -> None: ...
    def erase(self, slot: int) -> None: ...
    def save(self, slot: int, name: str) -> int: ...
    def restore(self, slot: int, name: str) -> int: ...


@dataclass(frozen=True, slots=True)
class SlotPlacement:
    """Where a request runs: a slot, the adapter by its hash, and how a body says both."""

    slot: int
    adapter: str
    body: dict[str, Any]


@dataclass(eq=False, slots=True)
class _CompletionWatch:
    """Looks at the pieces of a completion on their way: how much was reused and evaluated, what was written."""

    reused: int
    take: Callable[[dict[str, Any]], bool]
    cached: int | None = None
    evaluated: int = 0
    written: list[int] = field(default_factory=list[int])
    count: int = 0

    @property
    def is_unexpected(self) -> bool:
        return self.cached not in (None, self.reused)

    def observe(self, piece: dict[str, Any]) -> bool:
        if progress := piece.get("prompt_progress"):
            # The first piece comes before anything is evaluated, and before any text.
            self.cached = progress["cache"] if self.cached is None else self.cached
            self.evaluated = progress["processed"]
            if self.is_unexpected:
                return True
        elif "__verbose" in piece:
            verbose = piece["__verbose"]
            self.count = verbose["tokens_predicted"]
            # A token without a piece of its own (half a character, perhaps a stop string) ends what is known.
            if not verbose["stop"] and self.count == len(self.written) + 1:
                self.written += verbose["tokens"]
        return self.take(piece)


class UnexpectedReuse(Exception):
    """The engine reused another number of tokens than it was to."""


class Evaluator:
    """Evaluates prompts in one engine, and keeps the books of what each of its slots holds."""

    def __init__(self, server: SlotServer, states: PrefixStates, marks: tuple[int, int]) -> None:
        self._server = server
        self._states = states
        self._marks = marks
        self._contents: dict[int, SlotContent | None] = {}

    def complete(
        self,
        prompt: TokenizedPrompt,
        body: dict[str, Any],
        place: SlotPlacement,
        take: Callable[[dict[str, Any]], bool],
        stopped: Callable[[], bool],
    ) -> int:
        """Stream the completion of a prompt to `take`; how many tokens of the prompt were reused.

        When the engine did not reuse what the books say, the slot is emptied and everything evaluated anew, once. That
        is known before the first piece of text.
        """
        try:
            return self._run(prompt, body, place, take, stopped)
        except UnexpectedReuse:
            self.erase_slot(place.slot)
            return self._run(prompt, body, place, take, stopped)

    def erase_slot(self, slot: int) -> None:
        """Empty a slot, so that whatever comes next is evaluated from its first token on."""
        self._server.erase(slot)
        self._contents[slot] = EMPTY_SLOT

    def _run(
        self,
        prompt: TokenizedPrompt,
        body: dict[str, Any],
        place: SlotPlacement,
        take: Callable[[dict[str, Any]], bool],
        stopped: Callable[[], bool],
    ) -> int:
        if self._contents.get(place.slot, EMPTY_SLOT) is None:
            # Something failed there, so nobody knows what the slot holds.
            self.erase_slot(place.slot)
        self._save_prefix(prompt, place)
        self._restore_prefix(prompt, place)
        reused = self._content(place).reusable_tokens(prompt)
        self._limit_reuse(prompt, reused, next(prompt.evaluation_lengths(reused)), place)
        evaluated = reused
        for length in prompt.evaluation_lengths(reused):
            if stopped():
                break
            last = length == len(prompt.tokens)
            part = TokenizedPrompt(prompt.tokens[:length], prompt.message_tokens, prompt.prefix_tokens)
            pieces = take if last else _forward_errors(take, stopped, len(prompt.tokens))
            watch = self._send(part, body if last else _EVALUATE_ONLY, place, evaluated, pieces)
            if watch.evaluated < length:
                break
            evaluated = length
        return reused

    def _send(
        self,
        part: TokenizedPrompt,
        body: dict[str, Any],
        place: SlotPlacement,
        reused: int,
        take: Callable[[dict[str, Any]], bool],
    ) -> _CompletionWatch:
        """Evaluate what is behind the first `reused` tokens, and enter in the books what the slot holds then."""
        watch = _CompletionWatch(reused, take)
        before, self._contents[place.slot] = self._content(place), None
        request = {
            **body,
            **place.body,
            "prompt": list(part.tokens),
            "cache_prompt": reused > 0,
            "stream": True,
            "return_progress": True,
            "return_tokens": True,
            "verbose": True,
        }
        self._server.complete(request, watch.observe)
        if watch.is_unexpected:
            raise UnexpectedReuse
        if watch.cached is None:
            # Refused before it began: the slot is as it was.
            self._contents[place.slot] = before
        else:
            self._contents[place.slot] = _slot_content_after(part, watch)
        return watch

    def _content(self, place: SlotPlacement) -> SlotContent:
        return self._contents.get(place.slot) or EMPTY_SLOT

    def _limit_reuse(self, prompt: TokenizedPrompt, reused: int, length: int, place: SlotPlacement) -> None:
        """See that the engine reuses exactly these tokens when it evaluates the prompt up to this length.

        It reuses all that the slot has in common with a prompt, except for the prompt's last token. One token that
        differs is put behind those that are to stay.
        """
        content = self._content(place)
        if reused in (0, length - 1) or content.diverges(prompt, reused):
            return
        mark = next(mark for mark in self._marks if mark != prompt.tokens[reused])
        self._put_divergence_mark(
            prompt.tokens[:reused], mark, content.prefix_tokens if content.prefix_tokens <= reused else 0, place
        )

    def _put_divergence_mark(self, tokens: tuple[int, ...], mark: int, fixed: int, place: SlotPlacement) -> None:
        part = TokenizedPrompt((*tokens, mark), len(tokens) + 1, fixed)
        self._send(part, _EVALUATE_ONLY, place, len(tokens), _ignore_piece)
        # The mark is there to differ: nothing may be taken for the end of these messages.
        self._contents[place.slot] = SlotContent(part.tokens, len(tokens), None, fixed)

    def _save_prefix(self, prompt: TokenizedPrompt, place: SlotPlacement) -> None:
        """Before the fixed prefix of a conversation is overwritten by another conversation, save it."""
        content = self._content(place)
        if (
            content.prefix_tokens < _MIN_SAVED_BLOCKS * BLOCK
            or content.reusable_tokens(prompt) >= content.prefix_tokens
        ):
            return
        prefix = content.tokens[: content.prefix_tokens]
        key = prefix_key(place.adapter, prefix)
        if key in self._states:
            return
        # Cut right behind the prefix: nothing that a user wrote gets into the file.
        self._put_divergence_mark(prefix, self._marks[0], content.prefix_tokens, place)
        try:
            self._states.add(key, self._content(place).tokens, lambda name: self._server.save(place.slot, name))
        except ModelError:
            # A full disk, say. The prefix will be read again when it is needed.
            return

    def _restore_prefix(self, prompt: TokenizedPrompt, place: SlotPlacement) -> None:
        if (
            prompt.prefix_tokens < _MIN_SAVED_BLOCKS * BLOCK
            or self._content(place).reusable_tokens(prompt) >= prompt.prefix_tokens
        ):
            return
        key = prefix_key(place.adapter, prompt.tokens[: prompt.prefix_tokens])
        if key not in self._states:
            return
        if not self._content(place).tokens:
            # The first request of a slot chooses its adapter, which empties the slot.
            self._put_divergence_mark((), self._marks[0], 0, place)
        state = self._states.find(key)
        if state is None:
            return
        self._contents[place.slot] = None
        try:
            restored = self._server.restore(place.slot, state.name)
        except ModelError:
            restored = 0
        if restored == len(state.tokens):
            self._contents[place.slot] = SlotContent(state.tokens, prompt.prefix_tokens, None, prompt.prefix_tokens)
        else:
            self._states.drop(key)
            self.erase_slot(place.slot)


def _slot_content_after(part: TokenizedPrompt, watch: _CompletionWatch) -> SlotContent:
    """What a slot holds after a completion, which may have been stopped at any time."""
    if watch.evaluated >= len(part.tokens):
        # The token that was written last was not evaluated any more.
        written = watch.written[: max(0, watch.count - 1)]
        return SlotContent((*part.tokens, *written), part.block_tokens, part.message_tokens, part.prefix_tokens)
    if watch.evaluated >= part.message_tokens:
        return SlotContent(part.tokens[: watch.evaluated], part.block_tokens, part.message_tokens, part.prefix_tokens)
    blocks = whole_block_tokens(min(watch.evaluated, part.block_tokens))
    return SlotContent(part.tokens[:blocks], blocks, None, part.prefix_tokens if part.prefix_tokens <= blocks else 0)


def whole_block_tokens(count: int) -> int:
    """How many of so many tokens are in whole blocks."""
    return max(0, count) // BLOCK * BLOCK


def _ignore_piece(_: dict[str, Any]) -> bool:
    return False


def _forward_errors(
    take: Callable[[dict[str, Any]], bool], stopped: Callable[[], bool], length: int
) -> Callable[[dict[str, Any]], bool]:
    """Pieces of a completion of which nobody may see the text; it ends when the request is stopped."""

    def see(piece: dict[str, Any]) -> bool:
        if "error" not in piece:
            return stopped()
        # It is about a part of the prompt; whoever asked knows of the whole.
        return take({"error": {**piece["error"], "n_prompt_tokens": length}})

    return see
