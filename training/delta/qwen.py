"""Qwen2 in plain PyTorch, read from a GGUF file, with low-rank adapters on every linear layer.

Training sees the same quantized weights as the engine that will use the adapter, only unpacked.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from gguf import GGUFReader, dequantize
from torch import Tensor, nn

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


class Layer(nn.Module):
    def __init__(self, parts: dict[str, Tensor], heads: int, kv_heads: int, eps: float, **adapter: Any) -> None:
        super().__init__()
        self.heads, self.kv_heads, self.eps = heads, kv_heads, eps
        self.register_buffer("attn_norm", parts["attn_norm.weight"])
        self.register_buffer("ffn_norm", parts["ffn_norm.weight"])
        self.linear = nn.ModuleDict(
            {name: Adapted(parts[f"{name}.weight"], parts.get(f"{name}.bias"), **adapter) for name in LINEAR}
        )

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, mask: Tensor) -> Tensor:
        y = norm(x, self.attn_norm, self.eps)
        batch, length, _ = y.shape
        q = self.linear["attn_q"](y).view(batch, length, self.heads, -1).transpose(1, 2)
        k = self.linear["attn_k"](y).view(batch, length, self.kv_heads, -1).transpose(1, 2)
        v = self.linear["attn_v"](y).view(batch, length, self.kv_heads, -1).transpose(1, 2)
        q, k = turn(q, cos, sin), turn(k, cos, sin)
        k, v = (each.repeat_interleave(self.heads // self.kv_heads, 1) for each in (k, v))
        seen = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
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
        exact = torch.bfloat16 if device == "cuda" else torch.float32

        def unpacked(tensor: Any) -> tuple[str, Tensor]:
            return tensor.name, torch.from_numpy(dequantize(tensor.data, tensor.tensor_type).copy()).to(device, exact)

        with ThreadPoolExecutor() as pool:
            parts = dict(pool.map(unpacked, reader.tensors))
        self.eps = float(fact["attention.layer_norm_rms_epsilon"])
        heads, kv_heads = int(fact["attention.head_count"]), int(fact["attention.head_count_kv"])
        width = int(fact["embedding_length"]) // heads
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

    def forward(self, tokens: Tensor, positions: Tensor, mask: Tensor, wanted: Tensor) -> Tensor:
        """The logits at the wanted places (a mask over tokens)."""
        angles = positions[..., None].float() * self.turns
        angles = torch.cat((angles, angles), -1)[:, None]
        x = F.embedding(tokens, self.embedding)
        cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        for layer in self.layers:
            x = layer(x, cos, sin, mask)
        return F.linear(norm(x[wanted], self.last_norm, self.eps), self.head).float()

    def adapters(self) -> dict[str, Tensor]:
        """The learned tensors by the names that llama.cpp gives them."""
        found: dict[str, Tensor] = {}
        for number, layer in enumerate(self.layers):
            for name, linear in layer.linear.items():
                found[f"blk.{number}.{name}.weight.lora_a"] = linear.a.detach()
                found[f"blk.{number}.{name}.weight.lora_b"] = linear.b.detach()
        return found


def _of_layer(parts: dict[str, Tensor], number: int) -> dict[str, Tensor]:
    start = f"blk.{number}."
    return {name.removeprefix(start): value for name, value in parts.items() if name.startswith(start)}
