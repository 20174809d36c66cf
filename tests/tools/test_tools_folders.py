"""The guard around files, attacked."""

from __future__ import annotations

import os
import shutil
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from hypothesis import example, given, settings, strategies as st

from bicameral.errors import ToolError
from bicameral.tools import Folders
from property_examples import examples

SECRET = b"the secret outside"


@pytest.fixture
def world(tmp_path: Path) -> Path:
    """`inside` may be read and written; `outside` holds a secret."""
    (tmp_path / "inside" / "sub").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.txt").write_bytes(SECRET)
    (tmp_path / "inside" / "notes.txt").write_bytes(b"notes")
    (tmp_path / "inside" / "sub" / "deep.txt").write_bytes(b"deep")
    return tmp_path


@pytest.fixture
def folders(world: Path) -> Folders:
    return Folders.of(world / "inside", read=[world / "inside"], write=[world / "inside"])


def read(folders: Folders, path: str) -> bytes:
    with folders.open_read(path) as file:
        return file.read()


def write(folders: Folders, path: str) -> None:
    folders.write_atomic(path, b"x")


def listed(folders: Folders, path: str, recursive: bool = False) -> list[str]:
    return [folders.display_path(found.path) for found in folders.list_files(path, recursive=recursive)]


def refusal(action: Callable[..., object], *arguments: object, **options: object) -> ToolError:
    with pytest.raises(ToolError) as caught:
        action(*arguments, **options)
    return caught.value


def everything_outside(world: Path) -> list[tuple[str, bytes]]:
    return [(str(p), p.read_bytes()) for p in sorted((world / "outside").rglob("*")) if p.is_file()]


ESCAPES = [
    "../outside/secret.txt",
    "sub/../../outside/secret.txt",
    "./././../outside/secret.txt",
    "sub/../sub/../../outside/./secret.txt",
    "{world}/outside/secret.txt",
    "{world}/inside/../outside/secret.txt",
    "{world}/inside2/secret.txt",
    "//{world}/outside/secret.txt",
    "/proc/self/root{world}/outside/secret.txt",
    "/proc/self/cwd/../../etc/passwd",
    "/etc/passwd",
    "/dev/zero",
    "~/.ssh/id_rsa",
    "~",
    "/",
    "..",
    "link-to-file",
    "link-to-folder/secret.txt",
    "sub/link-up/secret.txt",
    "link-absolute-chain",
]


def plant_links(world: Path) -> None:
    inside, outside = world / "inside", world / "outside"
    (world / "inside2").mkdir()
    (world / "inside2" / "secret.txt").write_bytes(SECRET)
    (inside / "link-to-file").symlink_to(outside / "secret.txt")
    (inside / "link-to-folder").symlink_to(outside)
    (inside / "sub" / "link-up").symlink_to("../../outside")
    (inside / "chain").symlink_to("link-to-file")
    (inside / "link-absolute-chain").symlink_to(inside / "chain")


@pytest.mark.parametrize("attack", ESCAPES)
def test_no_path_reaches_a_file_outside(world: Path, folders: Folders, attack: str) -> None:
    plant_links(world)
    path, before = attack.format(world=world), everything_outside(world)
    for action in (folders.resolve_readable, folders.resolve_writable, folders.open_read, partial(write, folders)):
        error = refusal(action, path)
        assert error.code == "files.outside", error
        assert "[folders]" in (error.fix or "")
        assert str(world / "inside") in (error.expected or "")
    for action in (folders.exists, folders.delete, folders.make_folder, partial(listed, folders)):
        if attack.startswith("link-") and action == folders.delete and "/" not in attack:
            continue  # deleting a link removes the link alone: a claim of its own below
        assert refusal(action, path).code == "files.outside"
    assert refusal(folders.copy, path, "stolen.txt").code == "files.outside"
    assert refusal(folders.copy, "notes.txt", path).code == "files.outside"
    assert refusal(folders.move, "notes.txt", path).code == "files.outside"
    assert everything_outside(world) == before
    assert (world / "inside" / "notes.txt").read_bytes() == b"notes"


def test_deleting_a_link_removes_the_link_and_never_what_it_points_to(world: Path, folders: Folders) -> None:
    plant_links(world)
    folders.delete("link-to-file")
    assert not (world / "inside" / "link-to-file").is_symlink()
    assert (world / "outside" / "secret.txt").read_bytes() == SECRET


@pytest.mark.parametrize("path", ["", " ", ".", "./", "sub", "sub/"])
def test_a_folder_or_nothing_is_not_a_file(folders: Folders, path: str) -> None:
    for action in (folders.open_read, partial(write, folders), folders.delete):
        error = refusal(action, path)
        assert error.code == ("files.is-folder" if path.strip() else "files.bad-path")


@pytest.mark.parametrize(
    "path",
    [
        "notes.txt\0.png",
        "\0",
        "notes\n.txt",
        "notes\x1b[2J.txt",
        "notes\u202etxt.exe",
        "no\u200btes.txt",
        "\ufeffnotes.txt",
        "notes\u2028.txt",
        "notes\ud800.txt",
        "notes\x7f.txt",
        "x" * 300,
        "x/" * 5000 + "y",
        ("y" * 200 + "/") * 30,
    ],
)
def test_hidden_characters_and_overlong_names_are_refused_by_name(folders: Folders, path: str) -> None:
    for action in (folders.open_read, folders.resolve_writable, partial(write, folders), folders.exists):
        error = refusal(action, path)
        assert error.code == "files.bad-path"
        assert len(str(error)) < 400
        assert str(error).isprintable()


@pytest.mark.parametrize("path", ["‥/outside/secret.txt", "．．/outside/secret.txt", "..\u2215outside\u2215secret.txt"])
def test_lookalikes_of_dots_and_slashes_are_ordinary_characters(folders: Folders, path: str) -> None:
    assert refusal(folders.open_read, path).code == "files.missing"


def test_a_pipe_a_socket_or_a_device_does_not_hang_and_is_refused(world: Path, folders: Folders) -> None:
    os.mkfifo(world / "inside" / "pipe")
    (world / "inside" / "to-pipe").symlink_to("pipe")
    started = time.monotonic()
    for name in ("pipe", "to-pipe"):
        assert refusal(folders.open_read, name).code == "files.not-a-file"
        assert refusal(folders.write_atomic, name, b"x").code == "files.not-a-file"
        assert refusal(folders.copy, name, "copy").code == "files.not-a-file"
    assert stat.S_ISFIFO((world / "inside" / "pipe").lstat().st_mode)
    devices = Folders.of(Path("/dev"), read=[Path("/dev")])
    assert refusal(devices.open_read, "/dev/zero").code == "files.not-a-file"
    assert time.monotonic() - started < 30


def test_a_link_loop_is_an_error_and_not_a_hang(world: Path, folders: Folders) -> None:
    (world / "inside" / "a").symlink_to("b")
    (world / "inside" / "b").symlink_to("a")
    assert refusal(folders.open_read, "a").code.startswith("files.")
    assert refusal(folders.write_atomic, "a/x", b"x").code.startswith("files.")


def swap_after_check(monkeypatch: pytest.MonkeyPatch, swap: Callable[[], None]) -> None:
    """Let the attacker move between the check of a path and its use."""
    checked = os.path.realpath

    def realpath(path: str | Path) -> str:
        result = str(checked(path))
        swap()
        return result

    monkeypatch.setattr("bicameral.tools._folders.realpath", realpath)


def test_a_folder_swapped_for_a_link_after_the_check_is_not_followed(
    world: Path, folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    victim = world / "inside" / "sub"

    def swap() -> None:
        if not victim.is_symlink():
            victim.rename(world / "inside" / "moved")
            victim.symlink_to(world / "outside")

    swap_after_check(monkeypatch, swap)
    before = everything_outside(world)
    assert refusal(folders.open_read, "sub/secret.txt").code == "files.outside"
    assert refusal(folders.write_atomic, "sub/new.txt", b"x").code == "files.outside"
    assert refusal(folders.delete, "sub/secret.txt").code == "files.outside"
    assert everything_outside(world) == before


def test_a_file_swapped_for_a_link_after_the_check_is_not_followed(
    world: Path, folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    victim = world / "inside" / "notes.txt"

    def swap() -> None:
        victim.unlink(missing_ok=True)
        victim.symlink_to(world / "outside" / "secret.txt")

    swap_after_check(monkeypatch, swap)
    assert refusal(folders.open_read, "notes.txt").code == "files.outside"
    before = everything_outside(world)
    assert refusal(folders.write_atomic, "notes.txt", b"x").code == "files.outside"
    assert everything_outside(world) == before


@pytest.fixture
def flipping(world: Path) -> Iterator[None]:
    """A neighbour that swaps `inside/flip` between a folder and a link to the outside, as fast as it can."""
    flip, honest, link = world / "inside" / "flip", world / "inside" / "honest", world / "inside" / "link"
    honest.mkdir()
    (honest / "secret.txt").write_bytes(b"harmless")
    done = threading.Event()

    def run() -> None:
        while not done.is_set():
            with suppress(OSError):
                honest.rename(flip)
            time.sleep(0.0003)
            with suppress(OSError):
                flip.rename(honest)
            shutil.rmtree(flip, ignore_errors=True)  # the tool under test may have made one of its own
            with suppress(OSError):
                link.symlink_to(world / "outside")
            with suppress(OSError):
                link.rename(flip)
            time.sleep(0.0003)
            with suppress(OSError):
                flip.unlink()

    thread = threading.Thread(target=run)
    thread.start()
    yield
    done.set()
    thread.join()


@pytest.mark.usefixtures("flipping")
def test_a_racing_neighbour_never_gets_the_secret_out_or_a_byte_in(world: Path, folders: Folders) -> None:
    end, seen = time.monotonic() + 1.0, set[bytes]()
    while time.monotonic() < end:
        with suppress(ToolError):
            seen.add(read(folders, "flip/secret.txt"))
        with suppress(ToolError):
            folders.write_atomic("flip/planted.txt", b"x")
    assert b"harmless" in seen
    assert SECRET not in seen
    assert [name for name, _ in everything_outside(world)] == [str(world / "outside" / "secret.txt")]


def test_an_allowed_folder_that_becomes_a_link_stays_what_it_was(world: Path, folders: Folders) -> None:
    (world / "inside").rename(world / "away")
    (world / "inside").symlink_to(world / "outside")
    assert refusal(folders.open_read, "secret.txt").code == "files.outside"


@settings(max_examples=examples(200))
@given(st.lists(st.sampled_from(["..", ".", "sub", "out", "notes.txt", "~", "", "/", "secret.txt"]), max_size=8))
@example(["..", "outside", "secret.txt"])
def test_every_accepted_path_lies_inside(tmp_path_factory: pytest.TempPathFactory, parts: list[str]) -> None:
    world = tmp_path_factory.getbasetemp() / "laws"
    (world / "inside" / "sub").mkdir(parents=True, exist_ok=True)
    if not (world / "inside" / "out").is_symlink():
        (world / "inside" / "out").symlink_to("../..")
    folders = Folders.of(world / "inside", read=[world / "inside"], write=[world / "inside"])
    with suppress(ToolError):
        found = folders.resolve_writable("/".join(parts))
        assert Path(os.path.realpath(found)).is_relative_to(world / "inside")
