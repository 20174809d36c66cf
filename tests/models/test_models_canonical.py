"""Canonical evaluation: no reply depends on what was evaluated before it.

The law is tried on a server that caches as llama.cpp does and whose arithmetic is as bad as can be: what it makes of a
token depends on the size of the batch, the place in it and whether the batch has an output. So these claims hold or
fail on any CPU. The engine itself is held to it with real weights, in `test_models_reuse.py`.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from bicameral.errors import ModelError
from bicameral.models import _evaluator as canonical
from bicameral.models._evaluator import (
    Evaluator,
    PrefixStates,
    SlotContent,
    SlotPlacement,
    TokenizedPrompt,
    UnexpectedReuse,
    whole_block_tokens,
)
from property_examples import examples

BLOCK = 4
MARKS = (1, 2)
TOKENS = (1, 2, 3, 4)
WITHHELD = 4

NO_TEXT = {"choices": [{"text": "", "finish_reason": None}]}

Take = Callable[[dict[str, Any]], bool]


@pytest.fixture(autouse=True, scope="module")
def small_blocks() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(canonical, "BLOCK", BLOCK)
        yield


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
        content = json.dumps([self.slots[slot].tokens, self.slots[slot].values])
        return (self.folder / name).write_text(content)

    def restore(self, slot: int, name: str) -> int:
        self.restored += 1
        self.slots.setdefault(slot, Slot())
        self.slots[slot].tokens, self.slots[slot].values = json.loads((self.folder / name).read_text())
        return len(self.slots[slot].tokens)


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

    def prompt(self, written: tuple[int, ...]) -> TokenizedPrompt:
        messages = (*self.system, *self.user)
        prefill = (*self.prefill, *(written if self.continues else ()))
        return TokenizedPrompt(
            (*messages, *prefill), len(messages), whole_block_tokens(min(len(self.system), len(messages) - 1))
        )

    @property
    def placement(self) -> SlotPlacement:
        return SlotPlacement(self.slot, f"adapter {self.slot}", {"id_slot": self.slot, "lora": f"adapter {self.slot}"})


class World:
    def __init__(self, folder: Path, *, hasty: bool = False) -> None:
        self.server = ShapeServer(folder, hasty=hasty)
        self.states = PrefixStates(folder, most_files=2)
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


some = st.sampled_from(TOKENS)
systems = st.sampled_from([(), (1, 3, 3, 4, 3, 4, 4, 4, 3), (1, 3, 3, 4, 3, 3, 3, 3, 3, 2, 1, 4)])
users = st.lists(some, min_size=1, max_size=9).map(tuple)
asks = st.builds(
    Ask,
    system=systems,
    user=st.one_of(users, st.sampled_from([(1, 3, 3, 2), (1, 3, 3, 2, 1, 3), (1, 3, 3)])),
    prefill=st.lists(some, max_size=3).map(tuple),
    continues=st.booleans(),
    count=st.integers(1, 5),
    stop=st.none() | st.integers(0, 9),
    slot=st.integers(0, 1),
    lose=st.sampled_from([0, 0, 0, 0, 1]),
)


@settings(max_examples=examples(200))
@given(st.lists(asks, min_size=2, max_size=9), st.booleans())
def test_a_reply_is_a_function_of_its_prompt_alone_on_the_worst_kernels(requests: list[Ask], hasty: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        world, before = World(Path(folder), hasty=hasty), ()
        for ask in requests:
            prompt = ask.prompt(before)
            world.server.lose = ask.lose
            if ask.stop is not None:
                world.reply(ask, prompt, stop=ask.stop)
                continue
            text, _ = world.reply(ask, prompt)
            assert text == fresh(ask, prompt)
            before = written(text)


class LongestPrefix:
    """What llama.cpp does on its own."""

    def __init__(self, server: ShapeServer) -> None:
        self._server = server

    def run(
        self, prompt: TokenizedPrompt, body: dict[str, Any], placement: SlotPlacement, take: Take, *_: object
    ) -> int:
        self._server.complete({**body, **placement.body, "prompt": list(prompt.tokens), "cache_prompt": True}, take)
        return 0


def test_the_same_server_left_to_itself_gives_other_replies(tmp_path: Path) -> None:
    # So the property above can fail.
    server, ask = ShapeServer(tmp_path), Ask((), (3, 3, 4, 3, 4, 4))
    texts: list[str] = []
    for _ in range(2):
        pieces: list[str] = []

        def take(piece: dict[str, Any], pieces: list[str] = pieces) -> bool:
            pieces.append(piece["choices"][0]["text"])
            return False

        LongestPrefix(server).run(ask.prompt(()), {"n_predict": 3}, ask.placement, take)
        texts.append("".join(pieces))
    assert texts[0] != texts[1]


def test_a_continued_reply_costs_one_token_whatever_its_length(tmp_path: Path) -> None:
    world = World(tmp_path)
    ask = Ask((), (3, 4, 3, 4, 3), count=3)
    text, _ = world.reply(ask, ask.prompt(()))
    longer = Ask(ask.system, ask.user, prefill=written(text)[:2], count=1)
    before = world.server.evaluated
    _, reused = world.reply(longer, longer.prompt(()))
    assert reused == len(longer.prompt(()).tokens) - 1
    assert world.server.evaluated - before == 1


def test_of_a_reply_all_tokens_but_the_last_are_there_for_what_continues_it(tmp_path: Path) -> None:
    world = World(tmp_path)
    ask = Ask((), (3, 4, 3, 4, 3), count=3)
    text, _ = world.reply(ask, ask.prompt(()))
    longer = Ask(ask.system, ask.user, prefill=(*written(text), 3), count=1)
    assert world.reply(longer, longer.prompt(())) == (fresh(longer, longer.prompt(())), len(ask.user) + 2)


def test_a_prefix_that_was_overwritten_is_restored_and_holds_nothing_of_the_user(tmp_path: Path) -> None:
    world = World(tmp_path)
    one, other = Ask((3,) * 8 + (2,), (4, 4, 1)), Ask((4,) * 8 + (2,), (3, 3, 1))
    for ask in (one, other, one, other):
        text, reused = world.reply(ask, ask.prompt(()))
        assert text == fresh(ask, ask.prompt(()))
    assert reused == 8
    assert world.server.restored == 2
    for path in tmp_path.iterdir():
        tokens, _ = json.loads(path.read_text())
        assert tuple(tokens[:-1]) in ((3,) * 8, (4,) * 8)
        assert tokens[-1] in MARKS


def test_a_prefix_is_not_restored_for_another_adapter(tmp_path: Path) -> None:
    world = World(tmp_path)
    one, other = Ask((3,) * 8 + (2,), (4, 4, 1)), Ask((4,) * 8 + (2,), (3, 3, 1))
    for ask in (one, other):
        world.reply(ask, ask.prompt(()))
    elsewhere = Ask(one.system, one.user, slot=1)
    assert world.reply(elsewhere, elsewhere.prompt(())) == (fresh(elsewhere, elsewhere.prompt(())), 0)
    assert world.server.restored == 0


def test_a_damaged_state_is_never_shown_to_the_engine(tmp_path: Path) -> None:
    world = World(tmp_path)
    one, other = Ask((3,) * 8 + (2,), (4, 4, 1)), Ask((4,) * 8 + (2,), (3, 3, 1))
    for ask in (one, other):
        world.reply(ask, ask.prompt(()))
    (saved,) = tmp_path.iterdir()
    saved.write_bytes(saved.read_bytes()[:-1] + b" ")
    assert world.reply(one, one.prompt(())) == (fresh(one, one.prompt(())), 0)
    assert world.server.restored == 0
    assert not saved.exists()


def test_a_slot_that_lost_its_content_is_evaluated_anew(tmp_path: Path) -> None:
    world, ask = World(tmp_path), Ask((), (3, 4, 3, 4, 3, 3))
    expected, _ = world.reply(ask, ask.prompt(()))
    world.server.lose = 1
    assert world.reply(ask, ask.prompt(())) == (expected, 0)


def test_an_engine_that_does_not_do_as_it_is_told_gives_no_reply(tmp_path: Path) -> None:
    world, ask = World(tmp_path), Ask((), (3, 4, 3, 4, 3, 3), prefill=(3, 3))
    world.server.lose = 9
    with pytest.raises(UnexpectedReuse):
        world.reply(ask, ask.prompt(()))


def test_a_server_that_failed_is_asked_in_an_empty_slot_next(tmp_path: Path) -> None:
    world, ask = World(tmp_path), Ask((), (3, 4, 3, 4, 3, 3))
    expected, _ = world.reply(ask, ask.prompt(()))
    complete = world.server.complete

    def broken(body: dict[str, Any], take: Take) -> None:
        raise ModelError("models.engine-failed", "the engine failed")

    world.server.complete = broken
    with pytest.raises(ModelError):
        world.reply(ask, ask.prompt(()))
    world.server.complete = complete
    assert world.reply(ask, ask.prompt(())) == (expected, 0)


@given(users, users, st.integers(0, 9), st.integers(0, 9))
def test_the_last_token_is_always_evaluated(one: tuple[int, ...], other: tuple[int, ...], a: int, b: int) -> None:
    content = SlotContent(one, whole_block_tokens(len(one)), min(a, len(one)))
    prompt = TokenizedPrompt(other, max(1, min(b, len(other))))
    reused = content.reusable_tokens(prompt)
    assert 0 <= reused < len(other)
    assert one[:reused] == other[:reused]
    assert list(prompt.evaluation_lengths(reused))[-1] == len(other)


def test_states_are_bounded_in_number_and_bytes(tmp_path: Path) -> None:
    def write(size: int) -> Callable[[str], int]:
        return lambda name: (tmp_path / name).write_bytes(b"x" * size)

    few = PrefixStates(tmp_path, most_files=2, most_bytes=100)
    for key in ("a", "b"):
        few.add(key, (1,), write(40))
    assert few.find("a")
    few.add("c", (1,), write(40))
    assert [key in few for key in "abc"] == [True, False, True]
    few.add("d", (1,), write(90))
    assert [key in few for key in "abcd"] == [False, False, False, True]
    few.add("e", (1,), write(101))
    assert list(tmp_path.iterdir()) == []


def test_a_state_of_which_a_part_is_missing_is_not_kept(tmp_path: Path) -> None:
    states = PrefixStates(tmp_path)
    states.add("a", (1,), lambda name: (tmp_path / name).write_bytes(b"half") + 4)
    assert states.find("a") is None
    assert list(tmp_path.iterdir()) == []
