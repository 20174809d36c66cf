"""Train a planner's adapter on preferences (DPO) and write it as GGUF. Needs what train.py needs.

    python preferences.py WEIGHTS.gguf PAIRS.jsonl ADAPTER.gguf --start SFT_ADAPTER.gguf [--beta 0.1] [--rate 2e-5]

A line of the pairs is `{"system", "told", "chosen", "rejected"}`. The reference model is the one with which training
starts: the probabilities that it gives to all plans are computed before the first step, so that there is only one model
in memory. Pairs under the same system prompt are packed into one sequence: the prompt once, then each request once, and
after it both plans, neither of which sees the other.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch
import torch.nn.functional as F
from qwen import Qwen, adapter_size
from tokenizers import Tokenizer
from torch import Tensor
from train import tokenizer, write_adapter

OPENING = "assistant\n```python\n"
CHOSEN, REJECTED = 1, 2


@dataclass
class PairedPlans:
    """Some pairs under one system prompt, token by token.

    Args:
        tokens: The tokens.
        positions: Their places; both plans of a pair start at the same one.
        pair: Which pair each belongs to, from 1; 0 is the system prompt.
        branch: 0 is the request, `CHOSEN` and `REJECTED` are the plans.
        learned: Whether a token is one of a plan.
        reference: For each pair the log-probabilities of the chosen and the rejected plan before training.
    """

    tokens: list[int]
    positions: list[int]
    pair: list[int]
    branch: list[int]
    learned: list[bool]
    count: int = 0
    reference: Tensor | None = field(default=None)


class Preferences:
    """Pairs as sequences of tokens."""

    def __init__(self, rows: Sequence[Mapping[str, str]], weights: Path, device: str, *, longest: int) -> None:
        self.device, self._longest = device, longest
        made: tuple[Tokenizer, int, int] = tokenizer(weights)
        self._tokenizer, self._start, self._end = made
        groups: dict[str, list[Mapping[str, str]]] = defaultdict(list)
        for row in rows:
            groups[row["system"]].append(row)
        self.items = [item for system, group in groups.items() for item in self._sequences(system, group)]

    def _ids(self, text: str) -> list[int]:
        return self._tokenizer.encode(text, add_special_tokens=False).ids

    def _turn(self, speaker: str, text: str) -> list[int]:
        return [self._start, *self._ids(f"{speaker}\n{text}"), self._end, *self._ids("\n")]

    def _sequences(self, system: str, rows: Sequence[Mapping[str, str]]) -> list[PairedPlans]:
        prompt = self._turn("system", system)
        found: list[PairedPlans] = []
        current: PairedPlans | None = None
        for row in rows:
            asked = [*self._turn("user", row["told"]), self._start]
            plans = [[*self._ids("assistant\n" + row[key]), self._end] for key in ("chosen", "rejected")]
            size = len(asked) + sum(map(len, plans))
            if current is None or (current.count and len(current.tokens) + size > self._longest):
                length = len(prompt)
                nothing = [0] * length
                current = PairedPlans(list(prompt), list(range(length)), nothing, list(nothing), [False] * length)
                found.append(current)
            self._add(current, len(prompt), asked, plans)
        return found

    def _add(self, item: PairedPlans, begin: int, asked: list[int], plans: list[list[int]]) -> None:
        item.count += 1
        # The opening is in both branches, though it is never learned: the first token of each plan follows on it.
        opening = len(self._ids(OPENING))
        parts = [(0, asked, begin), *((branch, plan, begin + len(asked)) for branch, plan in enumerate(plans, CHOSEN))]
        for branch, tokens, at in parts:
            item.tokens += tokens
            item.positions += range(at, at + len(tokens))
            item.pair += [item.count] * len(tokens)
            item.branch += [branch] * len(tokens)
            shared = opening if branch else len(tokens)
            item.learned += [False] * shared + [True] * (len(tokens) - shared)

    def inputs(self, item: PairedPlans) -> tuple[tuple[Tensor, ...], Tensor, Tensor]:
        """What the model is given, the tokens that it should predict, and the plan that each belongs to."""
        length = len(item.tokens)

        def row(values: Sequence[int]) -> Tensor:
            return torch.tensor(values, device=self.device)

        tokens, pair, branch = row(item.tokens), row(item.pair), row(item.branch)
        learned = row(item.learned).bool()
        causal = torch.ones(length, length, dtype=torch.bool, device=self.device).tril()
        mine = (pair[:, None] == pair) & ((branch == 0)[None] | (branch[:, None] == branch))
        # A large number instead of infinity: some attention kernels return NaN gradients for infinities.
        mask = torch.where(causal & (mine | (pair == 0)[None]), 0.0, -1e4)[None, None]
        mask = mask.to(torch.bfloat16 if self.device == "cuda" else torch.float32)
        # A token is predicted from the one before it.
        wanted = torch.zeros_like(learned)
        wanted[:-1] = learned[1:]
        plan = (pair[learned] - 1) * 2 + branch[learned] - 1
        return (tokens[None], row(item.positions)[None], mask, wanted[None]), tokens[learned], plan


def plan_log_probabilities(model: Qwen, data: Preferences, item: PairedPlans) -> tuple[Tensor, Tensor]:
    """For each pair the log-probabilities of the chosen and the rejected plan, and how many tokens these have."""
    given, target, plan = data.inputs(item)
    each = -F.cross_entropy(model(*given), target, reduction="none")
    # Not in place: gradients go through the sums.
    sums = torch.zeros(2 * item.count, device=each.device).index_add(0, plan, each)
    return sums.view(-1, 2), torch.bincount(plan, minlength=2 * item.count).view(-1, 2)


def preference_loss(found: Tensor, reference: Tensor, lengths: Tensor, beta: float, kept: float) -> Tensor:
    """The loss of some pairs.

    Args:
        found: Log-probabilities of the chosen and the rejected plans, `[pairs, 2]`.
        reference: The same of the reference model.
        lengths: How many tokens the plans have.
        beta: How strongly the model is held to the reference.
        kept: Weight of the loss of the chosen plan itself. Without it both plans may become less probable, the rejected
            one only faster.
    """
    gained = found - reference
    margin = beta * (gained[:, 0] - gained[:, 1])
    itself = -found[:, 0] / lengths[:, 0]
    return (-F.logsigmoid(margin) + kept * itself).mean()


@torch.no_grad()
def set_references(model: Qwen, data: Preferences) -> None:
    """Keep what the model thinks of all plans before it learns."""
    model.eval()
    for item in data.items:
        item.reference = plan_log_probabilities(model, data, item)[0]
    model.train()


@torch.no_grad()
def held_figures(model: Qwen, data: Preferences, beta: float) -> tuple[float, float, float]:
    """Of pairs held back: how often the chosen plan gained more, by how much, and how often it is likelier."""
    model.eval()
    better, margins, likelier, count = 0, 0.0, 0, 0
    for item in data.items:
        found, lengths = plan_log_probabilities(model, data, item)
        assert item.reference is not None
        gained = found - item.reference
        margin = beta * (gained[:, 0] - gained[:, 1])
        better += int((margin > 0).sum())
        margins += float(margin.sum())
        each = found / lengths
        likelier += int((each[:, 0] > each[:, 1]).sum())
        count += len(margin)
    model.train()
    return better / max(1, count), margins / max(1, count), likelier / max(1, count)


def split_rows(rows: Sequence[Mapping[str, str]], share: float) -> tuple[list[Mapping[str, str]], ...]:
    """The pairs to learn from, and those that are held back; all pairs of one request are on one side."""
    held = [row for row in rows if random.Random(f"held/{row['told']}").random() < share]
    return [row for row in rows if row not in held], held


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weights", type=Path)
    parser.add_argument("pairs", type=Path)
    parser.add_argument("adapter", type=Path)
    parser.add_argument("--start", type=Path, help="the adapter to start from, which is also the reference")
    parser.add_argument("--rank", type=int, default=8, help="of a new adapter, without --start")
    parser.add_argument("--alpha", type=float, default=16.0, help="of a new adapter, without --start")
    parser.add_argument("--beta", type=float, default=0.1)
    parser.add_argument("--kept", type=float, default=0.2, help="weight of the chosen plan's own loss")
    parser.add_argument("--rate", type=float, default=2e-5)
    parser.add_argument("--epochs", type=float, default=1.0)
    parser.add_argument("--longest", type=int, default=5000, help="tokens of a sequence")
    parser.add_argument("--batch", type=int, default=4, help="sequences a step")
    parser.add_argument("--held", type=float, default=0.04, help="share of requests that are held back")
    parser.add_argument("--steps", type=int, help="stop after so many steps")
    given = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(1)
    torch.backends.cuda.enable_cudnn_sdp(False)
    began = time.time()
    rank, alpha = adapter_size(given.start) if given.start else (given.rank, given.alpha)
    # No dropout: the reference has none, and a pair should differ by its plans alone.
    model = Qwen(given.weights, rank=rank, alpha=alpha, dropout=0.0, device=device).to(device)
    if given.start:
        model.load_adapter(given.start)
    rows = [json.loads(line) for line in given.pairs.read_text("utf-8").splitlines()]
    random.Random(1).shuffle(rows)
    parts = split_rows(rows, given.held)
    train, held = (Preferences(part, given.weights, device, longest=given.longest) for part in parts)
    print(f"{len(parts[0])} pairs in {len(train.items)} sequences, {len(parts[1])} held back", flush=True)
    for data in (train, held):
        set_references(model, data)
    print(f"references after {time.time() - began:.0f} s", flush=True)
    learning = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(learning, lr=given.rate, betas=(0.9, 0.98), weight_decay=0.0)
    steps = given.steps or max(1, round(math.ceil(len(train.items) / given.batch) * given.epochs))
    picks, order, losses, broken = random.Random(1), list[PairedPlans](), list[float](), 0
    for step in range(steps):
        warm, done = max(1, steps // 10), step / steps
        for group in optimizer.param_groups:
            group["lr"] = (
                given.rate * min(1.0, (step + 1) / warm) * (0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * done)))
            )
        optimizer.zero_grad()
        total = 0.0
        for _ in range(given.batch):
            if not order:
                order = picks.sample(train.items, len(train.items))
            item = order.pop()
            found, lengths = plan_log_probabilities(model, train, item)
            assert item.reference is not None
            loss = preference_loss(found, item.reference, lengths, given.beta, given.kept) / given.batch
            # One sequence at a time: the activations of several long ones would not fit.
            loss.backward()
            total += loss.item()
        size = torch.nn.utils.clip_grad_norm_(learning, 1.0)
        if not torch.isfinite(size):
            broken += 1
            if broken > 20:
                raise SystemExit(f"gradients are not finite, {broken} times by step {step + 1}")
            continue
        optimizer.step()
        losses.append(total)
        if (step + 1) % max(1, steps // 12) == 0 or step + 1 == steps:
            shown = sum(losses[-20:]) / len(losses[-20:])
            better, margin, likelier = held_figures(model, held, given.beta)
            print(
                f"step {step + 1}/{steps} loss {shown:.4f}, held back: gained {better:.3f} by {margin:.3f}, "
                f"likelier {likelier:.3f}, {broken} broken, {time.time() - began:.0f} s",
                flush=True,
            )
    write_adapter(model, given.adapter, alpha)
    print(f"wrote {given.adapter} after {time.time() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
