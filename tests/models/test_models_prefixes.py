"""What was read of fixed messages is kept for later processes: it changes no reply, holds nothing of a user, and any
doubt about it means reading again."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from shape_server import BLOCK, MARKS, Ask, World, fresh, saved_tokens

from bicameral.models import _evaluator as canonical
from bicameral.models._prefix_states import PrefixFolder, PrefixState, PrefixStates, has_tokens
from property_examples import examples

MADE_WITH = ("weights", "engine", "cpu")
SYSTEM = (3, 4) * 4 + (2,)
OTHER = (4, 4, 3, 3) * 2 + (2,)
USER = (4, 4, 1)


@pytest.fixture(autouse=True, scope="module")
def small_blocks() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(canonical, "BLOCK", BLOCK)
        yield


def process(folder: Path, number: int, **options: Any) -> World:
    """A process of its own, with the folder that all of them share."""
    kept = PrefixFolder(folder / "kept", options.pop("made_with", MADE_WITH), **options)
    return World(folder / f"process-{number}", kept=kept)


def ask(system: tuple[int, ...] = SYSTEM, *, fixed: bool = True, slot: int = 0) -> Ask:
    return Ask(system, USER, fixed=fixed, slot=slot)


def reply(world: World, asked: Ask) -> tuple[str, int]:
    return world.reply(asked, asked.prompt(()))


def state_files(folder: Path) -> list[Path]:
    return sorted((folder / "kept").glob("*.state"))


def expected(asked: Ask) -> str:
    return fresh(asked, asked.prompt(()))


def test_a_later_process_does_not_read_a_fixed_prefix_again(tmp_path: Path) -> None:
    assert reply(process(tmp_path, 1), ask()) == (expected(ask()), 0)
    later = process(tmp_path, 2)
    assert reply(later, ask()) == (expected(ask()), 8)
    # One token that sets the adapter of the slot, and what comes after the prefix with what is written.
    assert later.server.evaluated == 1 + len(ask().prompt(()).tokens) - 8 + 2


def test_what_is_kept_holds_the_prefix_and_nothing_of_the_user(tmp_path: Path) -> None:
    reply(process(tmp_path, 1), ask())
    (path,) = state_files(tmp_path)
    assert saved_tokens(path) == [*SYSTEM[:8], MARKS[0]]
    assert path.stat().st_mode & 0o077 == 0 or path.parent.stat().st_mode & 0o077 == 0


def test_messages_that_are_not_fixed_are_never_kept(tmp_path: Path) -> None:
    world = process(tmp_path, 1)
    for system in (SYSTEM, OTHER, SYSTEM):
        reply(world, ask(system, fixed=False))
    assert world.server.restored == 1
    assert not (tmp_path / "kept").exists()


def test_a_prefix_of_another_adapter_is_not_used(tmp_path: Path) -> None:
    reply(process(tmp_path, 1), ask())
    assert reply(process(tmp_path, 2), ask(slot=1)) == (expected(ask(slot=1)), 0)


@pytest.mark.parametrize("place", range(len(MADE_WITH)))
def test_a_prefix_that_was_made_with_something_else_is_not_used(tmp_path: Path, place: int) -> None:
    reply(process(tmp_path, 1), ask())
    other = tuple("other" if at == place else each for at, each in enumerate(MADE_WITH))
    assert reply(process(tmp_path, 2, made_with=other), ask()) == (expected(ask()), 0)


# Doubts -------------------------------------------------------------------------------------------------------------


def spoil_truncated(folder: Path) -> None:
    for path in state_files(folder):
        os.truncate(path, path.stat().st_size - 1)


def spoil_empty(folder: Path) -> None:
    for path in state_files(folder):
        os.truncate(path, 0)


def spoil_flipped(folder: Path) -> None:
    for path in state_files(folder):
        content = bytearray(path.read_bytes())
        content[-3] ^= 1
        path.write_bytes(content)


def spoil_foreign(folder: Path) -> None:
    """A file of other tokens, with a description that vouches for it."""
    for path in state_files(folder):
        content = path.read_bytes()[:20] + b"\1\0\0\0" + b"\2\0\0\0" + b"[]"
        digest = hashlib.sha256(content).hexdigest()
        name = path.name.partition(".")[0]
        path.unlink()
        path.with_name(f"{name}.{digest[:16]}.state").write_bytes(content)
        change_facts(folder, sha256=digest, size=len(content))


def spoil_missing(folder: Path) -> None:
    for path in state_files(folder):
        path.unlink()


def spoil_link(folder: Path) -> None:
    """The state is a link to a file somewhere else."""
    for path in state_files(folder):
        elsewhere = path.parent.parent / path.name
        path.rename(elsewhere)
        path.symlink_to(elsewhere)


def spoil_writable_by_all(folder: Path) -> None:
    for path in state_files(folder):
        path.chmod(0o666)


def spoil_folder_writable_by_all(folder: Path) -> None:
    (folder / "kept").chmod(0o777)


def spoil_folder_is_file(folder: Path) -> None:
    shutil.rmtree(folder / "kept")
    (folder / "kept").write_text("")


def change_facts(folder: Path, **changes: Any) -> None:
    for path in (folder / "kept").glob("*.json"):
        path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def changed(**changes: Any) -> Callable[[Path], None]:
    return lambda folder: change_facts(folder, **changes)


def written_facts(text: str) -> Callable[[Path], None]:
    def spoil(folder: Path) -> None:
        for path in (folder / "kept").glob("*.json"):
            path.write_text(text)

    return spoil


DOUBTS: dict[str, Callable[[Path], None]] = {
    "truncated": spoil_truncated,
    "empty": spoil_empty,
    "flipped": spoil_flipped,
    "foreign": spoil_foreign,
    "missing": spoil_missing,
    "link": spoil_link,
    "writable by all": spoil_writable_by_all,
    "folder writable by all": spoil_folder_writable_by_all,
    "folder is a file": spoil_folder_is_file,
    "other form": changed(form="prefix-state/0"),
    "other engine": changed(made_with=["weights", "older", "cpu"]),
    "other key": changed(key="0" * 64),
    "size as text": changed(size="12"),
    "path for a hash": changed(sha256="../../../../etc/passwd".ljust(64, "x")),
    "no JSON": written_facts("{"),
    "no object": written_facts("[1]"),
    "deep JSON": written_facts("[" * 3000),
    "unknown field": changed(more=1),
}


@pytest.mark.parametrize("doubt", DOUBTS)
def test_any_doubt_means_reading_again_with_the_same_reply(tmp_path: Path, doubt: str) -> None:
    reply(process(tmp_path, 1), ask())
    DOUBTS[doubt](tmp_path)
    later = process(tmp_path, 2)
    assert reply(later, ask()) == (expected(ask()), 0)
    assert later.server.restored == 0


@pytest.mark.parametrize("doubt", [name for name in DOUBTS if not name.startswith("folder")])
def test_what_was_read_again_is_kept_again(tmp_path: Path, doubt: str) -> None:
    reply(process(tmp_path, 1), ask())
    DOUBTS[doubt](tmp_path)
    reply(process(tmp_path, 2), ask())
    assert reply(process(tmp_path, 3), ask()) == (expected(ask()), 8)


def test_a_state_that_the_engine_does_not_take_is_read_again_and_replaced(tmp_path: Path) -> None:
    reply(process(tmp_path, 1), ask())
    later = process(tmp_path, 2)
    later.server.restore = lambda slot, name: 3  # pyright: ignore[reportAttributeAccessIssue]
    assert reply(later, ask()) == (expected(ask()), 0)
    assert reply(process(tmp_path, 3), ask()) == (expected(ask()), 8)


def test_a_restored_slot_that_is_not_reused_as_it_should_be_is_read_again(tmp_path: Path) -> None:
    reply(process(tmp_path, 1), ask())
    later = process(tmp_path, 2)
    restore = later.server.restore

    def forgetful(slot: int, name: str) -> int:
        restored = restore(slot, name)
        later.server.erase(slot)
        return restored

    later.server.restore = forgetful  # pyright: ignore[reportAttributeAccessIssue]
    assert reply(later, ask()) == (expected(ask()), 0)


def test_a_full_disk_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "link", full)
        patch.setattr(shutil, "copyfile", full)
        assert reply(process(tmp_path, 1), ask()) == (expected(ask()), 0)
    assert [path for path in (tmp_path / "kept").iterdir() if path.suffix == ".part"] == []
    assert reply(process(tmp_path, 2), ask()) == (expected(ask()), 0)


def test_another_file_system_is_copied_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def far(*_: object, **__: object) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", far)
    reply(process(tmp_path, 1), ask())
    assert reply(process(tmp_path, 2), ask()) == (expected(ask()), 8)


# The folder ---------------------------------------------------------------------------------------------------------


def keep(folder: PrefixFolder, key: str, size: int, scratch: Path) -> None:
    path = scratch / key
    path.write_bytes(key.encode() * size)
    content = path.read_bytes()
    folder.keep(key, PrefixState(key, (1,), len(content), hashlib.sha256(content).hexdigest()), path)


def test_the_folder_is_bounded_and_what_was_used_last_stays(tmp_path: Path) -> None:
    folder = PrefixFolder(tmp_path / "kept", MADE_WITH, most_bytes=100)
    for number, key in enumerate("ab"):
        keep(folder, key, 40, tmp_path)
        for path in (tmp_path / "kept").glob("*.json"):
            if json.loads(path.read_text())["key"] == key:
                os.utime(path, (number, number))
    for path in (tmp_path / "kept").glob("*.json"):
        if json.loads(path.read_text())["key"] == "a":
            os.utime(path, (5, 5))
    keep(folder, "c", 40, tmp_path)
    keys = {json.loads(path.read_text())["key"] for path in (tmp_path / "kept").glob("*.json")}
    assert keys == {"a", "c"}
    assert sum(path.stat().st_size for path in state_files(tmp_path)) == 80
    keep(folder, "d", 101, tmp_path)
    assert len(state_files(tmp_path)) == 2


def test_a_bound_of_zero_keeps_nothing_and_uses_nothing(tmp_path: Path) -> None:
    reply(process(tmp_path, 1), ask())
    assert reply(process(tmp_path, 2, most_bytes=0), ask()) == (expected(ask()), 0)
    shutil.rmtree(tmp_path / "kept")
    reply(process(tmp_path, 3, most_bytes=0), ask())
    assert not (tmp_path / "kept").exists()


def test_what_a_killed_process_left_behind_goes_after_a_while(tmp_path: Path) -> None:
    folder = PrefixFolder(tmp_path / "kept", MADE_WITH)
    keep(folder, "a", 4, tmp_path)
    left = [tmp_path / "kept" / name for name in ("state-1-1.part", "0123.4567.state", "state-2-2.part")]
    for path in left:
        path.write_bytes(b"x")
    for path in left[:2]:
        os.utime(path, (1, 1))
    keep(folder, "b", 4, tmp_path)
    assert [path.exists() for path in left] == [False, False, True]
    assert len(state_files(tmp_path)) == 2


def test_a_state_is_known_by_the_tokens_in_its_head(tmp_path: Path) -> None:
    world = World(tmp_path / "one")
    asked = ask(fixed=False)
    for each in (asked, ask(OTHER, fixed=False)):
        reply(world, each)
    (path,) = (tmp_path / "one").glob("*.state")
    tokens = (*SYSTEM[:8], MARKS[0])
    assert has_tokens(path, tokens)
    assert not has_tokens(path, tokens[:-1])
    assert not has_tokens(path, (*tokens[:-1], 3))


systems = st.sampled_from([SYSTEM, OTHER, (3,) * 12])
steps = st.tuples(
    systems, st.booleans(), st.integers(0, 1), st.sampled_from([None, None, None, *DOUBTS]), st.booleans()
)


@settings(max_examples=examples(120))
@given(st.lists(steps, min_size=2, max_size=7))
def test_no_reply_depends_on_what_was_kept_or_on_what_became_of_it(
    requests: list[tuple[tuple[int, ...], bool, int, str | None, bool]],
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        world = process(folder, 0)
        for number, (system, fixed, slot, doubt, anew) in enumerate(requests, 1):
            if doubt is not None and (folder / "kept").is_dir():
                # What is spoiled already may not be readable as what it was.
                with suppress(ValueError, TypeError, OSError, RecursionError, IndexError):
                    DOUBTS[doubt](folder)
            if anew:
                world = process(folder, number)
            asked = ask(system, fixed=fixed, slot=slot)
            assert reply(world, asked)[0] == expected(asked)


def test_a_private_state_is_not_fetched_for_messages_that_are_not_fixed(tmp_path: Path) -> None:
    reply(process(tmp_path, 1), ask())
    later = process(tmp_path, 2)
    assert reply(later, ask(fixed=False)) == (expected(ask()), 0)


def test_without_a_folder_nothing_is_fetched(tmp_path: Path) -> None:
    states = PrefixStates(tmp_path)
    assert states.find("a", (1, 2)) is None
