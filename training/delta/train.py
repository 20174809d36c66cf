"""Train an adapter for one weights file and write it as GGUF. Needs a GPU, PyTorch, tokenizers and gguf.

    python train.py WEIGHTS.gguf DATA_FOLDER ADAPTER.gguf [--rank 8] [--epochs 3] [--rate 2e-4]

A pack is one sequence: the system prompt once, then its pairs, each of which sees the prompt and itself alone. The loss
is over the replies: plans, or Echo's accounts of requests.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from gguf import GGUFReader, GGUFWriter
from qwen import Branches, Qwen, adapter_size
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers

QWEN_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)

OPENING = "```python\n"
"""How replies begin where a pack has no `opening`."""


def tokenizer(path: Path) -> tuple[Tokenizer, int, int]:
    """The tokenizer of a GGUF file, and ChatML's two markers."""
    fields = GGUFReader(path).fields
    tokens: list[str] = fields["tokenizer.ggml.tokens"].contents()
    merges = [tuple(line.split(" ")) for line in fields["tokenizer.ggml.merges"].contents()]
    words = {token: number for number, token in enumerate(tokens)}
    made = Tokenizer(models.BPE(vocab=words, merges=merges))
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(QWEN_WORDS), "isolated"), pre_tokenizers.ByteLevel(False, use_regex=False)]
    )
    made.decoder = decoders.ByteLevel()
    return made, words["<|im_start|>"], words["<|im_end|>"]


@dataclass
class Pack:
    """One sequence: a system prompt and the pairs that belong to it.

    Args:
        tokens: The prompt's tokens, then those of every pair.
        learned: Which of them the model should write.
        prompt: How long the prompt is.
        pairs: How long each pair is.
    """

    tokens: np.ndarray
    learned: np.ndarray
    prompt: int
    pairs: list[int]


class Packs:
    """Packs as tensors."""

    def __init__(self, path: Path, weights: Path, device: str) -> None:
        self.device = device
        self._tokenizer, self._start, self._end = tokenizer(weights)
        self._newline = self._ids(["\n"])[0]
        self.items = [self._pack(json.loads(line)) for line in path.read_text("utf-8").splitlines()]

    def _ids(self, texts: Sequence[str]) -> list[list[int]]:
        return [each.ids for each in self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)]

    def _turn(self, ids: list[int]) -> list[int]:
        return [self._start, *ids, self._end, *self._newline]

    def _pack(self, pack: dict[str, Any]) -> Pack:
        # What the session writes for the model is not learned: Delta's replies begin with a fence, Echo's with nothing.
        system, opening = self._ids([f"system\n{pack['system']}", "assistant\n" + pack.get("opening", OPENING)])
        tokens = self._turn(system)
        made = Pack(np.empty(0), np.empty(0), len(tokens), [])
        learned, shared = [False] * len(tokens), len(opening)
        asked = self._ids([f"user\n{each[0]}" for each in pack["pairs"]])
        replies = self._ids([f"assistant\n{each[1]}" for each in pack["pairs"]])
        # Of some replies more is given: a first statement that the runtime writes.
        begins = self._ids([f"assistant\n{each[2]}" if len(each) > 2 else "" for each in pack["pairs"]])
        for ask, reply, begin in zip(asked, replies, begins, strict=True):
            if reply[:shared] != opening:
                raise SystemExit(f"a reply does not begin with the opening of its pack: {pack['system'][:60]!r}")
            skipped = max(shared, _common(reply, begin))
            given, answer = [*self._turn(ask), self._start], [*reply, self._end]
            tokens += given + answer
            learned += [False] * (len(given) + skipped) + [True] * (len(answer) - skipped)
            made.pairs.append(len(given) + len(answer))
        made.tokens, made.learned = np.array(tokens), np.array(learned)
        return made

    def batch(self, number: int) -> tuple[Any, ...]:
        """What the model is given for a pack, and the tokens that it should write."""
        item = self.items[number]
        tokens, learned = (torch.from_numpy(each).to(self.device) for each in (item.tokens, item.learned))
        branches = Branches.of(item.prompt, item.pairs, self.device)
        # A token is predicted from the one before it.
        wanted = torch.zeros_like(learned)
        wanted[:-1] = learned[1:]
        return tokens[None], branches.positions()[None], branches, wanted[None], tokens[learned]


def _common(left: Sequence[int], right: Sequence[int]) -> int:
    """How many tokens both begin with."""
    return next(
        (at for at, pair in enumerate(zip(left, right, strict=False)) if pair[0] != pair[1]), min(len(left), len(right))
    )


def held_loss(model: Qwen, held: Packs) -> tuple[float, float]:
    """Loss and share of right tokens on what was held back."""
    model.eval()
    lost, right, count = 0.0, 0, 0
    with torch.no_grad():
        for number in range(len(held.items)):
            *given, target = held.batch(number)
            logits = model(*given)
            lost += F.cross_entropy(logits, target, reduction="sum").item()
            right += int((logits.argmax(-1) == target).sum())
            count += len(target)
    model.train()
    return lost / count, right / count


def write_adapter(model: Qwen, path: Path, alpha: float) -> None:
    writer = GGUFWriter(path, model.arch)
    writer.add_type("adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", alpha)
    for name, tensor in model.adapters().items():
        writer.add_tensor(name, tensor.float().cpu().numpy().astype(np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weights", type=Path)
    parser.add_argument("data", type=Path)
    parser.add_argument("adapter", type=Path)
    parser.add_argument("--rank", type=int, default=8)
    parser.add_argument("--alpha", type=float, default=16.0)
    parser.add_argument("--rate", type=float, default=2e-4)
    parser.add_argument("--epochs", type=float, default=3.0)
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--start", type=Path, help="an adapter to go on from")
    parser.add_argument("--steps", type=int, help="stop after so many steps")
    parser.add_argument("--seconds", type=float, help="stop after so long; the rate falls with the time that is left")
    given = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(1)
    began = time.time()
    rank, alpha = adapter_size(given.start) if given.start else (given.rank, given.alpha)
    model = Qwen(given.weights, rank=rank, alpha=alpha, dropout=given.dropout, device=device).to(device)
    if given.start:
        model.load_adapter(given.start)
    train, held = (Packs(given.data / f"{part}.jsonl", given.weights, device) for part in ("train", "held"))
    print(
        f"loaded in {time.time() - began:.0f} s; {len(train.items)} packs, "
        f"longest {max(len(each.tokens) for each in train.items)} tokens",
        flush=True,
    )
    print("held back, before: loss {:.4f}, right {:.4f}".format(*held_loss(model, held)), flush=True)
    learning = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(learning, lr=given.rate, betas=(0.9, 0.98), weight_decay=0.01)
    per_epoch = len(train.items)
    usual = sum(int(each.learned.sum()) for each in train.items) / per_epoch
    steps = given.steps or round(per_epoch * given.epochs)
    picks, order = random.Random(1), list[int]()
    losses: list[float] = []
    broken = 0
    torch.backends.cuda.enable_cudnn_sdp(False)
    for step in range(steps):
        if not order:
            order = picks.sample(range(per_epoch), per_epoch)
        spent = (time.time() - began) / given.seconds if given.seconds else 0.0
        warm, done = 20, max(step / steps, spent)
        if done >= 1:
            break
        rate = given.rate * min(1.0, (step + 1) / warm) * (0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * done)))
        for group in optimizer.param_groups:
            group["lr"] = rate
        *inputs, target = train.batch(order.pop())
        # Every token counts the same, whether its pack is large or small.
        loss = F.cross_entropy(model(*inputs), target, reduction="sum") / usual
        optimizer.zero_grad()
        loss.backward()
        size = torch.nn.utils.clip_grad_norm_(learning, 1.0)
        if not torch.isfinite(size):
            broken += 1
            if broken > 20:
                raise SystemExit(f"gradients are not finite, {broken} times by step {step + 1}")
            continue
        optimizer.step()
        losses.append(loss.item())
        if step == 19:
            print(f"20 steps after {time.time() - began:.0f} s", flush=True)
        if (step + 1) % max(1, steps // 12) == 0 or step + 1 == steps:
            shown = sum(losses[-50:]) / max(1, len(losses[-50:]))
            print(f"step {step + 1}/{steps} loss {shown:.4f}, {broken} broken, {time.time() - began:.0f} s", flush=True)
        if (step + 1) % per_epoch == 0 and step + 1 < steps:
            print("held back: loss {:.4f}, right {:.4f}".format(*held_loss(model, held)), flush=True)
    print("held back, after: loss {:.4f}, right {:.4f}".format(*held_loss(model, held)), flush=True)
    write_adapter(model, given.adapter, alpha)
    print(f"wrote {given.adapter} after {time.time() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
