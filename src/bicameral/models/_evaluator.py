"""Canonical evaluation of prompts: the result for a token does not depend on what was cached before.

A CPU backend has different kernels for one token and for many, and they round differently. So the result for a token
depends on how many tokens are evaluated together with it, and a reply would depend on how much of its prompt was
reused. Here the prompt alone decides how tokens are grouped:

- The messages are evaluated in blocks of `BLOCK` tokens from the first token on, the rest as one shorter block.
- Every token of the reply is evaluated alone, whether the model writes it or it comes from a prefill.

The content of a slot is reused only where that makes no difference: whole blocks of messages that were evaluated
without an output, and after the same messages any number of tokens of a reply. A plan is decoded statement by
statement with a growing prefill, so each statement reuses all tokens before it. The state of a prefix is saved to a
file before another conversation overwrites it, that of a fixed prefix as soon as it was evaluated, so that later
processes need not evaluate it (`_prefix_states`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from bicameral.errors import ModelError
from bicameral.models._prefix_states import PrefixStates, prefix_key

BLOCK = 32
_MIN_SAVED_BLOCKS = 2
_EVALUATE_ONLY: dict[str, Any] = {"n_predict": 0, "temperature": 0.0}
"""A completion that only evaluates its prompt (and writes one token, which is not evaluated)."""

TakePiece: TypeAlias = Callable[[dict[str, Any]], bool]
"""Takes one streamed piece of a completion; True ends the completion."""
StopCheck: TypeAlias = Callable[[], bool]
ReadProgress: TypeAlias = Callable[[int], None]
"""Is told how many tokens of a prompt are evaluated."""


@dataclass(frozen=True, slots=True)
class TokenizedPrompt:
    """The tokens of a prompt: the first `message_tokens` are the messages, the rest is the reply's prefill.

    The first `prefix_tokens` are whole blocks of messages that later conversations may begin with, too. They are
    `fixed` if they hold no text of a user and are the same in every process.
    """

    tokens: tuple[int, ...]
    message_tokens: int
    prefix_tokens: int = 0
    fixed: bool = False

    @property
    def prefix(self) -> tuple[int, ...]:
        return self.tokens[: self.prefix_tokens]

    @property
    def block_tokens(self) -> int:
        """How many tokens are in whole blocks without an output: the last token of the messages always has one."""
        return whole_block_tokens(self.message_tokens - 1)

    def evaluation_lengths(self, reused: int) -> Iterator[int]:
        """The lengths up to which the prompt is evaluated, one after the other; the last is the whole prompt."""
        if reused < self.message_tokens:
            yield self.message_tokens
        yield from range(max(reused, self.message_tokens) + 1, len(self.tokens) + 1)


@dataclass(frozen=True, slots=True)
class SlotContent:
    """The known tokens of a slot, of which the first `block_tokens` were evaluated as whole blocks.

    If `message_tokens` is set, all tokens from there on were evaluated alone. The slot may hold more tokens.
    """

    tokens: tuple[int, ...] = ()
    block_tokens: int = 0
    message_tokens: int | None = None
    prefix_tokens: int = 0

    def common_tokens(self, prompt: TokenizedPrompt) -> int:
        """How many tokens slot and prompt have in common at the beginning."""
        pairs = zip(self.tokens, prompt.tokens, strict=False)
        shorter = min(len(self.tokens), len(prompt.tokens))
        return next((at for at, (mine, other) in enumerate(pairs) if mine != other), shorter)

    def reusable_tokens(self, prompt: TokenizedPrompt) -> int:
        """How many tokens of the slot the prompt may reuse; at least its last token is always evaluated."""
        common = self.common_tokens(prompt)
        last = len(prompt.tokens) - 1
        # Same messages, and tokens of a reply evaluated alone after them: any number of those gives the same result.
        if self.message_tokens == prompt.message_tokens <= min(common, last):
            return min(common, last)
        return whole_block_tokens(min(common, self.block_tokens, prompt.block_tokens))

    def diverges(self, prompt: TokenizedPrompt, at: int) -> bool:
        """Whether the slot is known to hold a different token than the prompt at this position."""
        return at < len(self.tokens) and self.tokens[at] != prompt.tokens[at]


EMPTY_SLOT = SlotContent()


class SlotServer(Protocol):
    """The part of an engine's server that an evaluator uses."""

    def complete(self, body: dict[str, Any], take: TakePiece) -> None: ...
    def erase(self, slot: int) -> None: ...
    def save(self, slot: int, name: str) -> int: ...
    def restore(self, slot: int, name: str) -> int: ...


@dataclass(frozen=True, slots=True)
class SlotPlacement:
    """Where a request runs: its slot, the hash of its adapter, and the fields of a request body for both."""

    slot: int
    adapter: str
    body: dict[str, Any]


@dataclass(eq=False, slots=True)
class _CompletionWatch:
    """Records from the pieces of a completion how much was reused, evaluated and written, and passes them on."""

    reused: int
    take: TakePiece
    progress: ReadProgress
    cached: int | None = None
    evaluated: int = 0
    written: list[int] = field(default_factory=list[int])
    count: int = 0

    @property
    def is_unexpected(self) -> bool:
        return self.cached not in (None, self.reused)

    def observe(self, piece: dict[str, Any]) -> bool:
        if progress := piece.get("prompt_progress"):
            # The first piece comes before anything is evaluated and before any text, so a wrong number of reused
            # tokens stops the completion before the caller has seen anything of it.
            self.cached = progress["cache"] if self.cached is None else self.cached
            self.evaluated = progress["processed"]
            if self.is_unexpected:
                return True
            self.progress(self.evaluated)
        elif "__verbose" in piece:
            verbose = piece["__verbose"]
            self.count = verbose["tokens_predicted"]
            # A token without a piece of its own (half a character, or perhaps a stop string) ends the known tokens.
            if not verbose["stop"] and self.count == len(self.written) + 1:
                self.written += verbose["tokens"]
        return self.take(piece)


class UnexpectedReuse(Exception):
    """The engine reused a different number of tokens than it should have."""


class Evaluator:
    """Evaluates prompts in one engine and tracks what each of its slots holds.

    Args:
        marks: Two different tokens, one of which is put into a slot to limit how much the engine reuses.
    """

    def __init__(self, server: SlotServer, states: PrefixStates, marks: tuple[int, int]) -> None:
        self._server = server
        self._states = states
        self._marks = marks
        # By slot; None while a request is under way there and after it failed: the content is unknown then.
        self._contents: dict[int, SlotContent | None] = {}
        self._progress: ReadProgress = lambda _: None

    def complete(
        self,
        prompt: TokenizedPrompt,
        body: dict[str, Any],
        place: SlotPlacement,
        take: TakePiece,
        stopped: StopCheck,
        progress: ReadProgress = lambda _: None,
    ) -> int:
        """Stream the completion of a prompt to `take`; return how many tokens of the prompt were reused.

        If the engine reuses a different number than expected, the slot is erased and everything is evaluated again,
        once. This is known before the first piece of text.
        """
        self._progress = progress
        try:
            return self._run(prompt, body, place, take, stopped)
        except UnexpectedReuse:
            # Without the saved state: if it is to blame, it must not be used again.
            self._states.discard(prefix_key(place.adapter, prompt.prefix))
            self.erase_slot(place.slot)
            return self._run(prompt, body, place, take, stopped)

    def erase_slot(self, slot: int) -> None:
        """Empty a slot, so that the next prompt is evaluated from its first token on."""
        self._server.erase(slot)
        self._contents[slot] = EMPTY_SLOT

    def _run(
        self, prompt: TokenizedPrompt, body: dict[str, Any], place: SlotPlacement, take: TakePiece, stopped: StopCheck
    ) -> int:
        if self._contents.get(place.slot, EMPTY_SLOT) is None:
            # An earlier request failed in this slot, so its content is unknown.
            self.erase_slot(place.slot)
        # Saving comes first: restoring overwrites the slot.
        self._save_prefix(prompt, place)
        self._restore_prefix(prompt, place)
        restored = self._content(place).reusable_tokens(prompt)
        self._evaluate_fixed_prefix(prompt, place, stopped)
        reused = self._content(place).reusable_tokens(prompt)
        self._limit_reuse(prompt, reused, next(prompt.evaluation_lengths(reused)), place)
        evaluated = reused
        for length in prompt.evaluation_lengths(reused):
            if stopped():
                break
            last = length == len(prompt.tokens)
            part = TokenizedPrompt(prompt.tokens[:length], prompt.message_tokens, prompt.prefix_tokens)
            pieces = take if last else _forward_errors(take, stopped, len(prompt.tokens))
            watch = self._send(part, body if last else _EVALUATE_ONLY, place, evaluated, pieces, self._progress)
            if watch.evaluated < length:
                break
            evaluated = length
        return min(restored, reused)

    def _send(
        self,
        part: TokenizedPrompt,
        body: dict[str, Any],
        place: SlotPlacement,
        reused: int,
        take: TakePiece,
        progress: ReadProgress = lambda _: None,
    ) -> _CompletionWatch:
        """Evaluate the tokens after the first `reused`, and record what the slot holds then."""
        watch = _CompletionWatch(reused, take, progress)
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
            # The engine refused the request before it began, so the slot is unchanged.
            self._contents[place.slot] = before
        else:
            self._contents[place.slot] = _slot_content_after(part, watch)
        return watch

    def _content(self, place: SlotPlacement) -> SlotContent:
        return self._contents.get(place.slot) or EMPTY_SLOT

    def _limit_reuse(self, prompt: TokenizedPrompt, reused: int, length: int, place: SlotPlacement) -> None:
        """Make the engine reuse exactly these tokens when it evaluates the prompt up to this length.

        It reuses everything that the slot has in common with a prompt, except for the prompt's last token. So one
        token that differs from the prompt is put after the tokens to reuse.
        """
        content = self._content(place)
        if reused in (0, length - 1) or content.diverges(prompt, reused):
            return
        mark = next(mark for mark in self._marks if mark != prompt.tokens[reused])
        prefix = content.prefix_tokens if content.prefix_tokens <= reused else 0
        self._put_divergence_mark(prompt.tokens[:reused], mark, prefix, place)

    def _put_divergence_mark(self, tokens: tuple[int, ...], mark: int, prefix: int, place: SlotPlacement) -> None:
        part = TokenizedPrompt((*tokens, mark), len(tokens) + 1, prefix)
        self._send(part, _EVALUATE_ONLY, place, len(tokens), lambda _: False)
        # Without `message_tokens`: the mark must not be taken for the end of real messages.
        self._contents[place.slot] = SlotContent(part.tokens, len(tokens), None, prefix)

    def _save_prefix(self, prompt: TokenizedPrompt, place: SlotPlacement) -> None:
        """Save the prefix in a slot before this prompt overwrites it."""
        content = self._content(place)
        if (
            content.prefix_tokens < _MIN_SAVED_BLOCKS * BLOCK
            or content.reusable_tokens(prompt) >= content.prefix_tokens
        ):
            return
        prefix = content.tokens[: content.prefix_tokens]
        if prefix_key(place.adapter, prefix) in self._states:
            return
        # The slot is cut right after the prefix, so that no text of a user gets into the file.
        self._put_divergence_mark(prefix, self._marks[0], content.prefix_tokens, place)
        self._save_slot(prefix, place, fixed=False)

    def _evaluate_fixed_prefix(self, prompt: TokenizedPrompt, place: SlotPlacement, stopped: StopCheck) -> None:
        """Evaluate a fixed prefix by itself, and save its state at once: no text of a user has been in the slot.

        It consists of whole blocks, so evaluating it by itself changes no result.
        """
        part = TokenizedPrompt((*prompt.prefix, self._marks[0]), prompt.prefix_tokens + 1, prompt.prefix_tokens)
        reused = self._content(place).reusable_tokens(part)
        is_short = prompt.prefix_tokens < _MIN_SAVED_BLOCKS * BLOCK
        if not prompt.fixed or self._states.kept is None or is_short or reused >= prompt.prefix_tokens:
            return
        self._limit_reuse(part, reused, len(part.tokens), place)
        watch = self._send(part, _EVALUATE_ONLY, place, reused, lambda _: stopped(), self._progress)
        if watch.evaluated < len(part.tokens):
            return
        # Without `message_tokens`: the mark must not be taken for the end of real messages.
        self._contents[place.slot] = SlotContent(part.tokens, part.prefix_tokens, None, part.prefix_tokens)
        self._save_slot(prompt.prefix, place, fixed=True)

    def _save_slot(self, prefix: tuple[int, ...], place: SlotPlacement, *, fixed: bool) -> None:
        tokens = (*prefix, self._marks[0])
        key = prefix_key(place.adapter, prefix)
        try:
            self._states.add(key, tokens, lambda name: self._server.save(place.slot, name), fixed=fixed)
        except ModelError:
            # For example a full disk. The prefix is evaluated again when it is needed.
            return

    def _restore_prefix(self, prompt: TokenizedPrompt, place: SlotPlacement) -> None:
        if (
            prompt.prefix_tokens < _MIN_SAVED_BLOCKS * BLOCK
            or self._content(place).reusable_tokens(prompt) >= prompt.prefix_tokens
        ):
            return
        key = prefix_key(place.adapter, prompt.prefix)
        state = self._states.find(key, (*prompt.prefix, self._marks[0]) if prompt.fixed else ())
        if state is None:
            return
        if not self._content(place).tokens:
            # The first request of a slot sets its adapter, which empties the slot; so one is sent before restoring.
            self._put_divergence_mark((), self._marks[0], 0, place)
        self._contents[place.slot] = None
        try:
            restored = self._server.restore(place.slot, state.name)
        except ModelError:
            restored = 0
        if restored == len(state.tokens):
            self._contents[place.slot] = SlotContent(state.tokens, prompt.prefix_tokens, None, prompt.prefix_tokens)
        else:
            self._states.discard(key)
            self.erase_slot(place.slot)


def _slot_content_after(part: TokenizedPrompt, watch: _CompletionWatch) -> SlotContent:
    """The content of a slot after a completion, which may have been stopped at any time."""
    if watch.evaluated >= len(part.tokens):
        # The token that was written last has not been evaluated.
        written = watch.written[: max(0, watch.count - 1)]
        return SlotContent((*part.tokens, *written), part.block_tokens, part.message_tokens, part.prefix_tokens)
    if watch.evaluated >= part.message_tokens:
        return SlotContent(part.tokens[: watch.evaluated], part.block_tokens, part.message_tokens, part.prefix_tokens)
    blocks = whole_block_tokens(min(watch.evaluated, part.block_tokens))
    return SlotContent(part.tokens[:blocks], blocks, None, part.prefix_tokens if part.prefix_tokens <= blocks else 0)


def whole_block_tokens(count: int) -> int:
    """`count` rounded down to whole blocks."""
    return max(0, count) // BLOCK * BLOCK


def _forward_errors(take: TakePiece, stopped: StopCheck, length: int) -> TakePiece:
    """Pass on only the errors of a completion that evaluates a part of the prompt; its text is dropped."""

    def take_error(piece: dict[str, Any]) -> bool:
        if "error" not in piece:
            return stopped()
        # The error counts the tokens of the part; the caller knows only the whole prompt.
        return take({"error": {**piece["error"], "n_prompt_tokens": length}})

    return take_error
