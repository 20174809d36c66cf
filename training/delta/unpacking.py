"""The numbers of quantized tensors, unpacked on the device that will use them.

`gguf.dequantize` does the same in NumPy and takes two minutes for 1.5 billion weights; here it takes a second on a GPU.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, dequantize
from torch import Tensor

CHUNK = 1 << 17
"""Blocks at a time: what is computed on the way is several times as large as what comes out."""


def unpacked(tensor: Any, device: str, exact: torch.dtype) -> Tensor:
    """The tensor of a GGUF file as plain numbers.

    Args:
        tensor: A tensor of `GGUFReader`.
        device: Where the numbers go.
        exact: Their type.
    """
    unpack = _UNPACKERS.get(tensor.tensor_type)
    if unpack is None:
        return torch.from_numpy(dequantize(tensor.data, tensor.tensor_type).copy()).to(device, exact)
    weights, size = GGML_QUANT_SIZES[tensor.tensor_type]
    data = torch.from_numpy(tensor.data.copy()).to(device)
    rows, width = data.shape
    parts = (unpack(part).to(exact) for part in data.reshape(-1, size).split(CHUNK))
    return torch.cat([part.reshape(-1) for part in parts]).view(rows, width // size * weights)


def _halves(data: Tensor) -> Tensor:
    return data.contiguous().view(torch.float16).float()


def _q4_k(blocks: Tensor) -> Tensor:
    count = len(blocks)
    scale, least = _halves(blocks[:, :2]), _halves(blocks[:, 2:4])
    low, high, rest = blocks[:, 4:16].view(count, 3, 4).unbind(1)
    scales = torch.cat((low & 0x3F, (rest & 0x0F) | ((low >> 2) & 0x30)), 1)
    minima = torch.cat((high & 0x3F, (rest >> 4) | ((high >> 2) & 0x30)), 1)
    quants = blocks[:, 16:].view(count, 4, 1, 32)
    quants = torch.cat((quants & 0x0F, quants >> 4), 2).view(count, 8, 32)
    return (scale * scales)[..., None] * quants - (least * minima)[..., None]


def _q6_k(blocks: Tensor) -> Tensor:
    count = len(blocks)
    low = blocks[:, :128].view(count, 2, 1, 64)
    low = torch.cat((low & 0x0F, low >> 4), 2).view(count, 8, 32)
    high = blocks[:, 128:192].view(count, 2, 1, 32)
    high = torch.cat([(high >> shift) & 0x03 for shift in (0, 2, 4, 6)], 2).view(count, 8, 32)
    quants = (low | (high << 4)).to(torch.int8) - 32
    scales = _halves(blocks[:, 208:210]) * blocks[:, 192:208].contiguous().view(torch.int8)
    return scales[..., None] * quants.view(count, 16, 16)


def _q5_0(blocks: Tensor) -> Tensor:
    count = len(blocks)
    shifts = torch.arange(8, device=blocks.device, dtype=torch.uint8)
    fifth = ((blocks[:, 2:6, None] >> shifts) & 1).view(count, 32)
    low = torch.cat((blocks[:, 6:] & 0x0F, blocks[:, 6:] >> 4), 1)
    return _halves(blocks[:, :2]) * ((low | (fifth << 4)).to(torch.int8) - 16)


def _q8_0(blocks: Tensor) -> Tensor:
    return _halves(blocks[:, :2]) * blocks[:, 2:].contiguous().view(torch.int8)


_UNPACKERS: dict[GGMLQuantizationType, Callable[[Tensor], Tensor]] = {
    GGMLQuantizationType.Q4_K: _q4_k,
    GGMLQuantizationType.Q5_0: _q5_0,
    GGMLQuantizationType.Q6_K: _q6_k,
    GGMLQuantizationType.Q8_0: _q8_0,
}
