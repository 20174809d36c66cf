"""A server that caches as llama.cpp does and whose arithmetic is as bad as can be.

What it makes of a token depends on the size of the batch, the place in it and whether the batch has an output. So what
is claimed of the evaluation of prompts holds or fails on any CPU.
"""

from __future__ import annotations

import hashlib
import json
import struct
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bicameral.models._evaluator import Evaluator, SlotPlacement, TokenizedPrompt, whole_block_tokens
from bicameral.models._prefix_states import PrefixFolder, PrefixStates

BLOCK = 4
MARKS = (1, 2)
TOKENS = (1, 2, 3, 4)
WITHHELD = 4

NO_TEXT = {"choices": [{"text": "", "finish_reason": None}]}

Take = Callable[[dict[str, Any]], bool]


def mixed(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


@dataclass
class Slot:
    tokens: list[int] = field(default_factory=list[int])
    values: list[str] = field(default_factory=list[str])
    adapter: object = None


class ShapeServer:
    """llama.cpp's server as far as its slots go."""

    def __init__(self, folder: Path, *, hasty: bool = False) -> None:
        self.folder = folder
        self.slots: dict[int, Slot] = {}
        self.evaluated = 0
        self.restored = 0
        self.lose = 0
        """From how many of the next completions the slot's content is gone."""
        self._late = 0 if hasty else 1

    def complete(self, body: dict[str, Any], take: Take) -> None:
        slot = self.slots.setdefault(body["id_slot"], Slot())
        prompt: list[int] = body["prompt"]
        if slot.adapter != body.get("lora") or self.lose:
            slot.tokens, slot.values, slot.adapter = [], [], body.get("lora")
            self.lose = max(0, self.lose - 1)
        pairs = list(zip(slot.tokens, prompt, strict=False))
        common = next((at for at, (one, other) in enumerate(pairs) if one != other), len(pairs))
        cached = min(common, len(prompt) - 1) if body["cache_prompt"] else 0
        del slot.tokens[cached:], slot.values[cached:]
        stop = take({**NO_TEXT, **progress(cached, cached)})
        late = self._late
        while len(slot.tokens) < len(prompt):
            # A stop is seen between two batches, and perhaps one later.
            if stop and not late:
                return
            late -= stop
            batch = prompt[len(slot.tokens) : len(slot.tokens) + BLOCK]
            self._evaluate(slot, batch, output=len(slot.tokens) + len(batch) == len(prompt))
            stop = stop or take(
                {"choices": [{"text": "", "finish_reason": None}], **progress(cached, len(slot.tokens))}
            )
        for count in range(1, max(1, body["n_predict"]) + 1):
            if stop:
                return
            token = TOKENS[int(slot.values[-1], 16) % len(TOKENS)]
            piece = {"text": f"{token}:{slot.values[-1]} ", "finish_reason": None}
            verbose = {"tokens": [token], "tokens_predicted": count, "stop": False}
            if token != WITHHELD or count % 2:
                stop = take({"choices": [piece], "__verbose": verbose})
            if count < body["n_predict"]:
                self._evaluate(slot, [token], output=True)
        end: dict[str, Any] = {"tokens": [], "tokens_predicted": max(1, body["n_predict"]), "stop": True}
        take({"choices": [{"text": "", "finish_reason": "length"}], "__verbose": end})

    def _evaluate(self, slot: Slot, batch: list[int], *, output: bool) -> None:
        before = slot.values[-1:]
        self.evaluated += len(batch)
        for at, token in enumerate(batch):
            before = mixed(before, token, len(batch), at, output, slot.adapter)
            slot.tokens.append(token)
            slot.values.append(before)

    def erase(self, slot: int) -> None:
        self.slots.setdefault(slot, Slot()).tokens = []
        self.slots[slot].values = []

    def save(self, slot: int, name: str) -> int:
        tokens, values = self.slots[slot].tokens, self.slots[slot].values
        head = struct.pack(f"<4sII3i{len(tokens)}i", b"qsgg", 4, len(tokens) + 4, -1, 1, len(tokens), *tokens)
        return (self.folder / name).write_bytes(head + json.dumps(values).encode())

    def restore(self, slot: int, name: str) -> int:
        """llama.cpp aborts on a damaged file: here it is an error that no test expects."""
        self.restored += 1
        tokens = saved_tokens(self.folder / name)
        self.slots.setdefault(slot, Slot()).tokens = tokens
        self.slots[slot].values = json.loads((self.folder / name).read_bytes()[24 + 4 * len(tokens) :])
        assert len(self.slots[slot].values) == len(tokens)
        return len(tokens)


def saved_tokens(path: Path) -> list[int]:
    content = path.read_bytes()
    (number,) = struct.unpack_from("<i", content, 20)
    return list(struct.unpack_from(f"<{number}i", content, 24))


def progress(cached: int, processed: int) -> dict[str, Any]:
    return {"prompt_progress": {"cache": cached, "processed": processed}}


@dataclass(frozen=True)
class Ask:
    system: tuple[int, ...]
    user: tuple[int, ...]
    prefill: tuple[int, ...] = ()
    continues: bool = False
    """Whether what the request before wrote goes behind the prefill."""
    count: int = 3
    stop: int | None = None
    slot: int = 0
    lose: int = 0
    fixed: bool = False

    def prompt(self, written: tuple[int, ...]) -> TokenizedPrompt:
        messages = (*self.system, *self.user)
        prefill = (*self.prefill, *(written if self.continues else ()))
        return TokenizedPrompt(
            (*messages, *prefill),
            len(messages),
            whole_block_tokens(min(len(self.system), len(messages) - 1)),
            fixed=self.fixed,
        )

    @property
    def placement(self) -> SlotPlacement:
        return SlotPlacement(self.slot, f"adapter {self.slot}", {"id_slot": self.slot, "lora": f"adapter {self.slot}"})


class World:
    def __init__(self, folder: Path, *, hasty: bool = False, kept: PrefixFolder | None = None) -> None:
        folder.mkdir(exist_ok=True)
        self.server = ShapeServer(folder, hasty=hasty)
        self.states = PrefixStates(folder, most_files=2, kept=kept)
        self.evaluator = Evaluator(self.server, self.states, MARKS)

    def reply(self, ask: Ask, prompt: TokenizedPrompt, *, stop: int | None = None) -> tuple[str, int]:
        """The reply, of which every piece says what the model made of all tokens before it; and what was reused."""
        texts: list[str] = []
        pieces = 0

        def stopped() -> bool:
            return stop is not None and pieces >= stop

        def take(piece: dict[str, Any]) -> bool:
            nonlocal pieces
            pieces += 1
            texts.append(piece["choices"][0]["text"])
            return stopped()

        reused = self.evaluator.complete(prompt, {"n_predict": ask.count}, ask.placement, take, stopped)
        return "".join(texts), reused


def fresh(ask: Ask, prompt: TokenizedPrompt) -> str:
    with tempfile.TemporaryDirectory() as folder:
        return World(Path(folder)).reply(ask, prompt)[0]


def written(text: str) -> tuple[int, ...]:
    return tuple(int(piece.partition(":")[0]) for piece in text.split())
