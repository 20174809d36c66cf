"""Qwen2 in plain PyTorch, read from a GGUF file, with low-rank adapters on every linear layer.

Training sees the same quantized weights as the engine that will use the adapter, only unpacked.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from gguf import GGUFReader
from torch import Tensor, nn
from torch.nn.attention.bias import causal_lower_right
from unpacking import unpacked

LINEAR = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")


class Adapted(nn.Module):
    """A frozen linear layer and its adapter: `x W + (x A) B * scale`."""

    def __init__(self, weight: Tensor, bias: Tensor | None, rank: int, scale: float, dropout: float) -> None:
        super().__init__()
        self.register_buffer("weight", weight)
        self.register_buffer("bias", bias)
        rows, columns = weight.shape
        self.a = nn.Parameter(torch.empty(rank, columns))
        self.b = nn.Parameter(torch.zeros(rows, rank))
        nn.init.kaiming_uniform_(self.a, a=math.sqrt(5))
        self.scale, self.dropout = scale, dropout

    def forward(self, x: Tensor) -> Tensor:
        low = F.linear(F.dropout(x, self.dropout, self.training), self.a.to(x.dtype))
        return F.linear(x, self.weight, self.bias) + F.linear(low, self.b.to(x.dtype)) * self.scale


@dataclass
class Cache:
    """Keys and values of one layer: a prefix that all rows of a batch share, and what each row has read since.

    The prefix is kept once, not once a row: a system prompt is ten times as long as a request with its plan.

    Args:
        prefix: Keys and values of the prefix, each `[kv heads, tokens, width]`.
        keys: Room for the rows' own keys, `[rows, kv heads, room, width]`.
        values: Room for the rows' own values.
        used: How much of the room is filled.
    """

    prefix: tuple[Tensor, Tensor]
    keys: Tensor
    values: Tensor
    used: int = 0

    @classmethod
    def empty(cls, rows: int, room: int, prefix: tuple[Tensor, Tensor]) -> Cache:
        kv_heads, _, width = prefix[0].shape
        made = (prefix[0].new_zeros(rows, kv_heads, room, width) for _ in range(2))
        return cls(prefix, *made)

    def as_prefix(self) -> tuple[Tensor, Tensor]:
        """What the first row has read, as a prefix for other rows."""
        return self.keys[0, :, : self.used], self.values[0, :, : self.used]

    def take(self, rows: Tensor, room: int) -> Cache:
        """A cache of some of the rows, in this order, possibly several times, with room for more tokens."""
        made = Cache.empty(len(rows), self.used + room, self.prefix)
        made.keys[:, :, : self.used] = self.keys[rows, :, : self.used]
        made.values[:, :, : self.used] = self.values[rows, :, : self.used]
        made.used = self.used
        return made

    def attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
        """Attention of new tokens over the prefix, the rows' own tokens and the new ones, which are kept.

        Args:
            mask: Added to the scores of a row's own tokens, `[rows, 1, new, used + new]`; the prefix is always seen.
        """
        rows, heads, new, width = q.shape
        kv_heads, length, _ = self.prefix[0].shape
        group = heads // kv_heads
        end = self.used + new
        self.keys[:, :, self.used : end], self.values[:, :, self.used : end] = k, v
        self.used = end
        # The heads that share keys stand in the place of query tokens, so that no key is copied for them.
        q = (q / math.sqrt(width)).reshape(rows, kv_heads, group * new, width)
        shared_q = q.transpose(0, 1).reshape(kv_heads, rows * group * new, width)
        shared = shared_q @ self.prefix[0].transpose(1, 2)
        shared = shared.view(kv_heads, rows, group * new, length).transpose(0, 1)
        own = q @ self.keys[:, :, :end].transpose(2, 3)
        own = (own.view(rows, kv_heads, group, new, end) + mask[:, :, None]).view(rows, kv_heads, group * new, end)
        weight = torch.cat((shared, own), -1).float().softmax(-1).to(q.dtype)
        over_shared = weight[..., :length].transpose(0, 1).reshape(kv_heads, rows * group * new, length)
        seen = (over_shared @ self.prefix[1]).view(kv_heads, rows, group * new, width).transpose(0, 1)
        seen = seen + weight[..., length:] @ self.values[:, :, :end]
        return seen.reshape(rows, heads, new, width)


@dataclass
class Branches:
    """Which tokens of one sequence see which: a prefix, then branches that see the prefix and themselves alone.

    The linear layers work on the sequence without any padding; only the attention lays the branches side by side.

    Args:
        prefix: How many tokens the prefix has.
        rows: How many branches there are.
        longest: How many tokens the longest of them has.
        slots: For each token behind the prefix its place in the rows, which follow each other.
    """

    prefix: int
    rows: int
    longest: int
    slots: Tensor

    @classmethod
    def of(cls, prefix: int, lengths: Sequence[int], device: str) -> Branches:
        longest = max(lengths)
        slots = torch.cat([row * longest + torch.arange(length) for row, length in enumerate(lengths)])
        return cls(prefix, len(lengths), longest, slots.to(device))

    def positions(self) -> Tensor:
        begin = torch.arange(self.prefix, device=self.slots.device)
        return torch.cat((begin, self.prefix + self.slots % self.longest))

    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Attention of all tokens, each `[heads, tokens, width]`; keys and values may have fewer heads."""
        begin = tuple(each[None, :, : self.prefix] for each in (q, k, v))
        first = F.scaled_dot_product_attention(*begin, is_causal=True, enable_gqa=True)[0]
        query = self._laid_out(q)
        keys, values = (
            torch.cat((each[None, :, : self.prefix].expand(self.rows, -1, -1, -1), self._laid_out(each)), 2)
            for each in (k, v)
        )
        mask = causal_lower_right(self.longest, self.prefix + self.longest)
        seen = F.scaled_dot_product_attention(query, keys, values, attn_mask=mask, enable_gqa=True)
        own = seen.transpose(1, 2).flatten(0, 1).index_select(0, self.slots)
        return torch.cat((first, own.transpose(0, 1)), 1)

    def _laid_out(self, each: Tensor) -> Tensor:
        """The branches as rows. Copied to their places and not gathered: the gradient of a gather that reads the same
        token for all padding adds up thousands of numbers one after the other."""
        own = each[:, self.prefix :].transpose(0, 1)
        room = own.new_zeros(self.rows * self.longest, *own.shape[1:])
        return room.index_copy(0, self.slots, own).view(self.rows, self.longest, *own.shape[1:]).transpose(1, 2)


class Layer(nn.Module):
    def __init__(self, parts: dict[str, Tensor], heads: int, kv_heads: int, eps: float, **adapter: Any) -> None:
        super().__init__()
        self.heads, self.kv_heads, self.eps = heads, kv_heads, eps
        self.register_buffer("attn_norm", parts["attn_norm.weight"])
        self.register_buffer("ffn_norm", parts["ffn_norm.weight"])
        self.linear = nn.ModuleDict(
            {name: Adapted(parts[f"{name}.weight"], parts.get(f"{name}.bias"), **adapter) for name in LINEAR}
        )

    def forward(
        self, x: Tensor, cos: Tensor, sin: Tensor, seen_by: Tensor | Branches, cache: Cache | None = None
    ) -> Tensor:
        y = norm(x, self.attn_norm, self.eps)
        batch, length, _ = y.shape
        q = self.linear["attn_q"](y).view(batch, length, self.heads, -1).transpose(1, 2)
        k = self.linear["attn_k"](y).view(batch, length, self.kv_heads, -1).transpose(1, 2)
        v = self.linear["attn_v"](y).view(batch, length, self.kv_heads, -1).transpose(1, 2)
        q, k = turn(q, cos, sin), turn(k, cos, sin)
        if isinstance(seen_by, Branches):
            seen = seen_by.attend(q[0], k[0], v[0])[None]
        elif cache is None:
            k, v = (each.repeat_interleave(self.heads // self.kv_heads, 1) for each in (k, v))
            seen = F.scaled_dot_product_attention(q, k, v, attn_mask=seen_by)
        else:
            seen = cache.attend(q, k, v, seen_by)
        x = x + self.linear["attn_output"](seen.transpose(1, 2).reshape(batch, length, -1))
        y = norm(x, self.ffn_norm, self.eps)
        return x + self.linear["ffn_down"](F.silu(self.linear["ffn_gate"](y)) * self.linear["ffn_up"](y))


def norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    return F.rms_norm(x.float(), (x.shape[-1],), weight.float(), eps).to(x.dtype)


def turn(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    one, two = x.chunk(2, -1)
    return x * cos + torch.cat((-two, one), -1) * sin


class Qwen(nn.Module):
    """The whole model; only the adapters learn."""

    def __init__(self, path: Path, *, rank: int, alpha: float, dropout: float, device: str) -> None:
        super().__init__()
        reader = GGUFReader(path)
        arch = "qwen2" if "qwen2.block_count" in reader.fields else "llama"
        fact = {
            key.split(".", 1)[1]: reader.fields[key].contents() for key in reader.fields if key.startswith(f"{arch}.")
        }
        self.arch = arch
        self.exact = exact = torch.bfloat16 if device == "cuda" else torch.float32

        parts = {tensor.name: unpacked(tensor, device, exact) for tensor in reader.tensors}
        self.eps = float(fact["attention.layer_norm_rms_epsilon"])
        heads, kv_heads = int(fact["attention.head_count"]), int(fact["attention.head_count_kv"])
        width = int(fact["embedding_length"]) // heads
        self.kv_heads, self.width = kv_heads, width
        base = float(fact.get("rope.freq_base", 10000.0))
        self.register_buffer("turns", base ** (-torch.arange(0, width, 2, device=device).float() / width))
        self.register_buffer("embedding", parts["token_embd.weight"])
        self.register_buffer("head", parts.get("output.weight", parts["token_embd.weight"]))
        self.register_buffer("last_norm", parts["output_norm.weight"])
        adapter = {"rank": rank, "scale": alpha / rank, "dropout": dropout}
        self.layers = nn.ModuleList(
            Layer(_of_layer(parts, number), heads, kv_heads, self.eps, **adapter)
            for number in range(int(fact["block_count"]))
        )

    def forward(
        self,
        tokens: Tensor,
        positions: Tensor,
        seen_by: Tensor | Branches,
        wanted: Tensor,
        caches: Sequence[Cache] | None = None,
    ) -> Tensor:
        """The logits at the wanted places (a mask over tokens).

        Args:
            seen_by: Which tokens see which: a mask that is added to the scores, or the branches of one sequence.
            caches: One for each layer, for tokens that follow on others; the mask is then that of `Cache.attend`.
        """
        angles = positions[..., None].float() * self.turns
        angles = torch.cat((angles, angles), -1)[:, None]
        x = F.embedding(tokens, self.embedding)
        cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        for number, layer in enumerate(self.layers):
            x = layer(x, cos, sin, seen_by, None if caches is None else caches[number])
        return F.linear(norm(x[wanted], self.last_norm, self.eps), self.head).float()

    def no_prefix(self) -> tuple[Tensor, Tensor]:
        """The prefix of a cache that has none."""
        nothing = self.embedding.new_zeros(self.kv_heads, 0, self.width)
        return nothing, nothing

    def load_adapter(self, path: Path) -> None:
        """Take over the tensors of an adapter file, which has this model's rank and alpha."""
        with torch.no_grad():
            tensors = {tensor.name: tensor.data for tensor in GGUFReader(path).tensors}
            for name, learned in self.adapters().items():
                given = torch.from_numpy(tensors.pop(name).astype("float32"))
                if given.shape != learned.shape:
                    raise ValueError(f"{path}: {name} is {tuple(given.shape)}, not {tuple(learned.shape)}")
                learned.copy_(given)
        if tensors:
            raise ValueError(f"{path}: no layer for {', '.join(sorted(tensors)[:3])}")

    def adapters(self) -> dict[str, Tensor]:
        """The learned tensors by the names that llama.cpp gives them."""
        found: dict[str, Tensor] = {}
        for number, layer in enumerate(self.layers):
            for name, linear in layer.linear.items():
                found[f"blk.{number}.{name}.weight.lora_a"] = linear.a.detach()
                found[f"blk.{number}.{name}.weight.lora_b"] = linear.b.detach()
        return found


def adapter_size(path: Path) -> tuple[int, float]:
    """Rank and alpha of an adapter file."""
    reader = GGUFReader(path)
    rank = next(tensor.data.shape[0] for tensor in reader.tensors if tensor.name.endswith("lora_a"))
    return int(rank), float(reader.fields["adapter.lora.alpha"].contents())


def _of_layer(parts: dict[str, Tensor], number: int) -> dict[str, Tensor]:
    start = f"blk.{number}."
    return {name.removeprefix(start): value for name, value in parts.items() if name.startswith(start)}
