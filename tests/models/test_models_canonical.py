"""Canonical evaluation: no reply depends on what was evaluated before it.

The law is tried on the server of `shape_server.py`, so the claims hold or fail on any CPU. The engine itself is held to
it with real weights, in `test_models_reuse.py`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from shape_server import BLOCK, MARKS, TOKENS, Ask, ShapeServer, Take, World, fresh, saved_tokens, written

from bicameral.errors import ModelError
from bicameral.models import _evaluator as canonical
from bicameral.models._evaluator import (
    SlotContent,
    SlotPlacement,
    TokenizedPrompt,
    UnexpectedReuse,
    whole_block_tokens,
)
from bicameral.models._prefix_states import PrefixStates
from property_examples import examples


@pytest.fixture(autouse=True, scope="module")
def small_blocks() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(canonical, "BLOCK", BLOCK)
        yield


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
        tokens = saved_tokens(path)
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
