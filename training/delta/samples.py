"""Draw plans from a model for prompts of `python -m training.delta.outcomes requests`. Needs what train.py needs.

    python samples.py WEIGHTS.gguf REQUESTS.jsonl SAMPLES.jsonl [--adapter ADAPTER.gguf] [--samples 8]

The system prompt is read once for all requests that share it, a request once for all of its samples. The first sample
of a request is the most probable one, token by token, as the planner decodes; the others are drawn at a temperature. A
line of the result is `{"id": …, "plans": […]}`; samples that did not end are left out. Requests that the result already
has are skipped, so that an interrupted run goes on where it stopped.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from qwen import Cache, Qwen, adapter_size
from tokenizers import Tokenizer
from torch import Tensor
from train import tokenizer

FENCE = "```"
OPENING = f"assistant\n{FENCE}python\n"
PROBABLE = 64
"""A token is drawn from so many, at most."""
NEVER = -1e4
"""Added to the score of what must not be seen; the training's masks have the same number."""


@dataclass(frozen=True)
class Request:
    """A prompt that is the same as the planner's."""

    id: str
    system: str
    told: str


@dataclass(frozen=True)
class Drawing:
    """How samples are drawn."""

    samples: int = 8
    temperature: float = 0.8
    top_p: float = 0.95
    max_tokens: int = 400
    greedy_first: bool = True


class Chat:
    """Tokens of a conversation, and back."""

    def __init__(self, weights: Path) -> None:
        self._tokenizer, self._start, self._end = tokenizer(weights)
        words: dict[str, int] = self._tokenizer.get_vocab()
        ends = {number for word, number in words.items() if FENCE in word}
        ends |= {number for word, number in words.items() if word in ("<|im_end|>", "<|endoftext|>")}
        self.ends = sorted(ends)
        self.size = max(words.values()) + 1

    def system(self, text: str) -> list[int]:
        return [self._start, *self._ids(f"system\n{text}"), self._end, *self._ids("\n")]

    def asked(self, told: str) -> list[int]:
        """The user's turn and the beginning of the answer, up to the plan's first token."""
        user = [self._start, *self._ids(f"user\n{told}"), self._end, *self._ids("\n")]
        return [*user, self._start, *self._ids(OPENING)]

    def plan(self, tokens: Sequence[int]) -> str:
        """The text before the closing fence."""
        return _decoded(self._tokenizer, tokens).partition(FENCE)[0].rstrip() + "\n"

    def _ids(self, text: str) -> list[int]:
        return self._tokenizer.encode(text, add_special_tokens=False).ids


def _decoded(tokens_of: Tokenizer, tokens: Sequence[int]) -> str:
    return tokens_of.decode(list(tokens), skip_special_tokens=False).split("<|", 1)[0]


class Sampler:
    """Draws plans from one model, one system prompt at a time."""

    def __init__(self, model: Qwen, chat: Chat, drawing: Drawing, device: str, seed: int = 1) -> None:
        self._model, self._chat, self._drawing, self._device = model.eval(), chat, drawing, device
        self._noise = torch.Generator(device).manual_seed(seed)
        self._end_tokens = frozenset(chat.ends)
        self._ends = torch.zeros(model.head.shape[0], dtype=torch.bool, device=device)
        self._ends[torch.tensor(chat.ends, device=device)] = True

    @torch.no_grad()
    def read_system(self, text: str) -> list[tuple[Tensor, Tensor]]:
        """The prefix of every layer for requests under this system prompt."""
        tokens = torch.tensor([self._chat.system(text)], device=self._device)
        length = tokens.shape[1]
        caches = [Cache.empty(1, length, self._model.no_prefix()) for _ in self._model.layers]
        positions = torch.arange(length, device=self._device)[None]
        causal = torch.ones(length, length, dtype=torch.bool, device=self._device).tril()
        self._model(tokens, positions, self._mask(causal[None]), torch.zeros_like(tokens).bool(), caches)
        return [cache.as_prefix() for cache in caches]

    @torch.no_grad()
    def draw(self, prefixes: Sequence[tuple[Tensor, Tensor]], told: Sequence[str]) -> list[list[list[int] | None]]:
        """For every request the tokens of its samples, None for one that did not end."""
        model, how = self._model, self._drawing
        asked = [self._chat.asked(each) for each in told]
        longest = max(map(len, asked))
        tokens = torch.tensor([each + [0] * (longest - len(each)) for each in asked], device=self._device)
        lengths = torch.tensor([len(each) for each in asked], device=self._device)
        begin = prefixes[0][0].shape[1]
        positions = begin + torch.arange(longest, device=self._device).expand_as(tokens)
        # What fills up a shorter request is seen by nobody else: it stands behind every token of its row.
        causal = torch.ones(longest, longest, dtype=torch.bool, device=self._device).tril()
        wanted = torch.zeros_like(tokens).bool()
        wanted[torch.arange(len(asked), device=self._device), lengths - 1] = True
        caches = [Cache.empty(len(asked), longest, prefix) for prefix in prefixes]
        logits = model(tokens, positions, self._mask(causal[None].expand(len(asked), -1, -1)), wanted, caches)
        rows = torch.arange(len(asked), device=self._device).repeat_interleave(how.samples)
        caches = [cache.take(rows, how.max_tokens) for cache in caches]
        logits, lengths = logits[rows], lengths[rows]
        greedy = torch.zeros(len(rows), dtype=torch.bool, device=self._device)
        greedy[:: how.samples] = how.greedy_first
        visible = torch.arange(longest, device=self._device)[None] < lengths[:, None]
        found = self._continue(logits, caches, begin + lengths, visible, greedy)
        return [found[start : start + how.samples] for start in range(0, len(rows), how.samples)]

    def _continue(
        self, logits: Tensor, caches: list[Cache], positions: Tensor, visible: Tensor, greedy: Tensor
    ) -> list[list[int] | None]:
        """Token after token until every row has ended, with fewer rows as they end."""
        written: list[Tensor] = []
        owner = torch.arange(len(logits), device=self._device)
        alive = torch.ones_like(owner, dtype=torch.bool)
        total = len(owner)
        for step in range(self._drawing.max_tokens):
            chosen = self._choose(logits, greedy)
            column = torch.full((total,), -1, device=self._device)
            column[owner[alive]] = chosen[alive]
            written.append(column)
            alive = alive & ~self._ends[chosen]
            left = int(alive.sum())
            if left == 0:
                break
            if left <= len(alive) // 2:
                rows = alive.nonzero()[:, 0]
                caches = [cache.take(rows, self._drawing.max_tokens - step) for cache in caches]
                owner, chosen, positions, greedy = owner[rows], chosen[rows], positions[rows], greedy[rows]
                visible, alive = visible[rows], alive[rows]
            visible = torch.cat((visible, torch.ones_like(alive)[:, None]), 1)
            each = torch.ones_like(chosen[:, None]).bool()
            logits = self._model(chosen[:, None], positions[:, None], self._mask(visible[:, None]), each, caches)
            positions = positions + 1
        ended = torch.stack(written, 1).tolist()
        return [self._whole(row) for row in ended]

    def _whole(self, row: list[int]) -> list[int] | None:
        tokens = [token for token in row if token >= 0]
        return tokens if tokens[-1] in self._end_tokens else None

    def _choose(self, logits: Tensor, greedy: Tensor) -> Tensor:
        # Some weights have rows beyond the vocabulary; no text belongs to those.
        logits[:, self._chat.size :] = -torch.inf
        best = logits.argmax(-1)
        share = (logits / self._drawing.temperature).softmax(-1)
        # The probable ones only: to sort the whole vocabulary for every row takes longer than the model itself.
        ordered, order = share.topk(min(PROBABLE, share.shape[-1]))
        # The most probable token stays whatever the limit is.
        ordered = ordered.masked_fill(ordered.cumsum(-1) - ordered >= self._drawing.top_p, 0.0)
        drawn = order.gather(1, torch.multinomial(ordered, 1, generator=self._noise))[:, 0]
        return torch.where(greedy, best, drawn)

    def _mask(self, seen: Tensor) -> Tensor:
        return torch.where(seen, 0.0, NEVER)[:, None].to(self._model.exact)


def load_requests(path: Path) -> list[Request]:
    lines = (json.loads(line) for line in path.read_text("utf-8").splitlines())
    return [Request(each["id"], each["system"], each["told"]) for each in lines]


def batches(requests: Sequence[Request], size: int, seed: int) -> Iterator[list[Request]]:
    """Requests that share a system prompt and have about the same length.

    All batches of a prompt follow each other, in any order: a run that is cut off has seen requests of all lengths.
    """
    groups: dict[str, list[Request]] = defaultdict(list)
    for each in requests:
        groups[each.system].append(each)
    for group in groups.values():
        group.sort(key=lambda each: len(each.told))
        cut = [group[start : start + size] for start in range(0, len(group), size)]
        yield from random.Random(seed).sample(cut, len(cut))


def _done(path: Path) -> set[str]:
    """The requests that a result already has; a line that was cut off is removed."""
    if not path.exists():
        return set()
    whole: list[dict[str, Any]] = []
    for line in path.read_text("utf-8").splitlines():
        try:
            whole.append(json.loads(line))
        except ValueError:
            break
    path.write_text("".join(json.dumps(each) + "\n" for each in whole), encoding="utf-8")
    return {each["id"] for each in whole}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weights", type=Path)
    parser.add_argument("requests", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--adapter", type=Path)
    parser.add_argument("--samples", type=int, default=8, help="plans a request")
    parser.add_argument("--temperature", type=float, default=0.8)
    parser.add_argument("--top-p", type=float, default=0.95)
    parser.add_argument("--max-tokens", type=int, default=400)
    parser.add_argument("--batch", type=int, default=32, help="requests at a time")
    parser.add_argument("--limit", type=int, help="so many requests")
    parser.add_argument("--seconds", type=float, help="begin no batch after so long")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    began = time.time()
    rank, alpha = adapter_size(given.adapter) if given.adapter else (1, 1.0)
    model = Qwen(given.weights, rank=rank, alpha=alpha, dropout=0.0, device=device).to(device)
    if given.adapter:
        model.load_adapter(given.adapter)
    chat = Chat(given.weights)
    how = Drawing(given.samples, given.temperature, given.top_p, given.max_tokens)
    sampler = Sampler(model, chat, how, device, given.seed)
    done = _done(given.out)
    requests = [each for each in load_requests(given.requests)[: given.limit] if each.id not in done]
    print(f"loaded in {time.time() - began:.0f} s; {len(requests)} requests, {len(done)} done before", flush=True)
    system, prefixes = None, list[tuple[Tensor, Tensor]]()
    drawn, ended = 0, 0
    with given.out.open("a", encoding="utf-8") as out:
        for number, batch in enumerate(batches(requests, given.batch, given.seed)):
            if given.seconds and time.time() - began > given.seconds:
                print(f"stopped after {drawn} requests for want of time", flush=True)
                break
            if batch[0].system != system:
                system = batch[0].system
                prefixes = sampler.read_system(system)
            for request, samples in zip(batch, sampler.draw(prefixes, [each.told for each in batch]), strict=True):
                plans = [chat.plan(tokens) for tokens in samples if tokens is not None]
                out.write(json.dumps({"id": request.id, "plans": plans}) + "\n")
                ended += len(plans)
            out.flush()
            drawn += len(batch)
            if number % 10 == 0:
                print(f"{drawn} requests, {ended} plans, {time.time() - began:.0f} s", flush=True)
    print(f"{drawn} requests, {ended} of {drawn * given.samples} plans ended, {time.time() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
