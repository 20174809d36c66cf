"""The guard around files, in honest use: links inside, whole writes, and errors that tell what to do."""

from __future__ import annotations

import errno
import gc
import os
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bicameral.errors import ToolError
from bicameral.tools import Folders, _file_operations as _folder_writes, _path_rules as _folder_errors

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


def plant_links(world: Path) -> None:
    inside, outside = world / "inside", world / "outside"
    (world / "inside2").mkdir()
    (world / "inside2" / "secret.txt").write_bytes(SECRET)
    (inside / "link-to-file").symlink_to(outside / "secret.txt")
    (inside / "link-to-folder").symlink_to(outside)
    (inside / "sub" / "link-up").symlink_to("../../outside")
    (inside / "chain").symlink_to("link-to-file")
    (inside / "link-absolute-chain").symlink_to(inside / "chain")


def test_a_link_that_points_inside_is_followed(world: Path, folders: Folders) -> None:
    (world / "inside" / "short").symlink_to("sub/deep.txt")
    (world / "inside" / "way").symlink_to(world / "inside" / "sub")
    assert read(folders, "short") == read(folders, "way/deep.txt") == b"deep"
    folders.write_atomic("short", b"new")
    assert (world / "inside" / "sub" / "deep.txt").read_bytes() == b"new"
    assert (world / "inside" / "short").is_symlink()


def test_a_configured_folder_may_itself_be_reached_by_a_link(world: Path) -> None:
    (world / "alias").symlink_to("inside")
    folders = Folders.of(world / "alias", read=[world / "alias"])
    assert read(folders, "notes.txt") == read(folders, str(world / "alias" / "notes.txt")) == b"notes"


def test_relative_folders_start_at_the_base_and_home_is_understood(
    world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(world / "inside"))
    folders = Folders.of(world, read=[Path("inside")])
    assert read(folders, "inside/notes.txt") == read(folders, "~/notes.txt") == b"notes"
    assert folders.display_path(folders.resolve_readable("~/notes.txt")) == "inside/notes.txt"


def test_reading_does_not_allow_writing_nor_writing_reading(world: Path) -> None:
    folders = Folders.of(world, read=[world / "inside"], write=[world / "outside"])
    assert refusal(folders.write_atomic, "inside/notes.txt", b"x").code == "files.outside"
    assert "write = [" in (refusal(folders.delete, "inside/notes.txt").fix or "")
    assert refusal(folders.open_read, "outside/secret.txt").code == "files.outside"
    assert "read = [" in (refusal(folders.exists, "outside/secret.txt").fix or "")
    assert refusal(folders.move, "outside/secret.txt", "outside/b.txt").code == "files.outside"
    folders.write_atomic("outside/new.txt", b"x")


def test_a_missing_file_names_the_nearest_one(folders: Folders) -> None:
    assert refusal(folders.open_read, "note.txt").nearest == "notes.txt"
    assert refusal(folders.open_read, "sub/dep.txt").nearest == "sub/deep.txt"
    error = refusal(folders.open_read, "sbu/deep.txt")
    assert (error.code, error.nearest) == ("files.missing", "sub")


def test_a_file_is_not_a_folder_on_the_way(folders: Folders) -> None:
    assert refusal(folders.open_read, "notes.txt/x").code == "files.not-a-folder"
    assert refusal(folders.write_atomic, "notes.txt/x", b"x").code == "files.not-a-folder"


def test_writing_creates_the_folders_on_the_way_and_keeps_the_mode(world: Path, folders: Folders) -> None:
    folders.write_atomic("new/deep/a.txt", b"a")
    assert (world / "inside/new/deep/a.txt").read_bytes() == b"a"
    (world / "inside/notes.txt").chmod(0o640)
    folders.write_atomic("notes.txt", b"b")
    assert stat.S_IMODE((world / "inside/notes.txt").stat().st_mode) == 0o640
    assert (world / "inside/notes.txt").read_bytes() == b"b"


def test_a_private_file_is_private_also_while_it_is_written(world: Path) -> None:
    target, modes = world / "inside/notes.txt", set[int]()

    def chunks() -> Iterator[bytes]:
        modes.update(stat.S_IMODE(part.stat().st_mode) for part in target.parent.glob(".*.part"))
        yield b"b"

    target.chmod(0o600)
    with _folder_writes.open_entry(target) as at:
        _folder_writes.write_file(at, chunks(), "notes.txt", replace=True)
    assert modes == {0o600}
    assert target.read_bytes() == b"b"


def test_an_allowed_folder_that_does_not_exist_yet_is_made_when_written(world: Path) -> None:
    folders = Folders.of(world, read=[world], write=[world / "reports"])
    folders.write_atomic("reports/a.txt", b"a")
    assert read(folders, "reports/a.txt") == b"a"


def test_a_hard_link_is_replaced_and_not_written_through(world: Path, folders: Folders) -> None:
    os.link(world / "outside" / "secret.txt", world / "inside" / "hard.txt")
    folders.write_atomic("hard.txt", b"new")
    assert (world / "outside" / "secret.txt").read_bytes() == SECRET


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_leaves_the_old_file_and_nothing_else(
    world: Path, folders: Folders, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def full(_: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(_folder_writes, "fsync", full)
    before = sorted(os.listdir(world / "inside"))
    for action in (
        lambda: folders.write_atomic("notes.txt", b"new"),
        lambda: folders.append("notes.txt", b"new"),
        lambda: folders.copy("notes.txt", "copy.txt"),
    ):
        assert refusal(action).code == "files.disk-full"
    assert sorted(os.listdir(world / "inside")) == before
    assert (world / "inside" / "notes.txt").read_bytes() == b"notes"


def test_a_write_that_the_system_cuts_off_leaves_nothing_half_written(world: Path) -> None:
    program = """
import os, resource, signal, sys
from pathlib import Path
from typing import Any
from bicameral.errors import ToolError
from bicameral.tools import Folders
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
base = Path(sys.argv[1])
folders = Folders.of(base, read=[base], write=[base])
try:
    folders.write_atomic("notes.txt", b"x" * 100_000)
except ToolError as error:
    print(error.code)
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(world / "inside")], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "files.disk-full"
    assert sorted(os.listdir(world / "inside")) == ["notes.txt", "sub"]
    assert (world / "inside" / "notes.txt").read_bytes() == b"notes"


def test_a_process_killed_while_writing_leaves_the_old_file(world: Path) -> None:
    program = """
import os, sys
from pathlib import Path
from typing import Any
from bicameral.tools import Folders
from bicameral.tools import _file_operations
_file_operations.fsync = lambda fd: os.kill(os.getpid(), 9)
base = Path(sys.argv[1])
Folders.of(base, read=[base], write=[base]).write_atomic("notes.txt", b"new")
"""
    subprocess.run([sys.executable, "-c", program, str(world / "inside")], check=False)
    assert (world / "inside" / "notes.txt").read_bytes() == b"notes"


def test_copying_and_moving_never_replace_a_file(world: Path, folders: Folders) -> None:
    (world / "inside" / "b.txt").write_bytes(b"b")
    assert refusal(folders.copy, "notes.txt", "b.txt").code == "files.exists"
    assert refusal(folders.move, "notes.txt", "b.txt").code == "files.exists"
    assert refusal(folders.make_folder, "b.txt").code == "files.exists"
    assert (world / "inside" / "b.txt").read_bytes() == b"b"
    folders.move("notes.txt", "sub/moved.txt")
    assert read(folders, "sub/moved.txt") == b"notes"
    assert not folders.exists("notes.txt")


def test_a_move_between_file_systems_copies_and_then_deletes(
    world: Path, folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    def other_device(*_: object, **__: object) -> None:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))

    monkeypatch.setattr(os, "link", other_device)
    folders.move("notes.txt", "sub/moved.txt")
    assert (world / "inside/sub/moved.txt").read_bytes() == b"notes"
    assert not (world / "inside/notes.txt").exists()


def test_without_hard_links_a_name_that_another_program_takes_meanwhile_is_not_replaced(
    world: Path, folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    late, replace = world / "inside" / "late.txt", os.replace

    def no_links(*_: object, **__: object) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    def another_program_comes_first(*paths: Any, **more: Any) -> None:
        with pytest.raises(FileExistsError):
            late.open("xb")
        replace(*paths, **more)

    monkeypatch.setattr(os, "link", no_links)
    monkeypatch.setattr(os, "replace", another_program_comes_first)
    folders.copy("notes.txt", "late.txt")
    assert late.read_bytes() == b"notes"
    assert refusal(folders.copy, "notes.txt", "late.txt").code == "files.exists"
    assert sorted(path.name for path in (world / "inside").iterdir()) == ["late.txt", "notes.txt", "sub"]


def test_folders_are_not_deleted_moved_or_copied(world: Path, folders: Folders) -> None:
    assert refusal(folders.delete, "sub").code == "files.is-folder"
    for action in (folders.move, folders.copy):
        assert refusal(action, "sub", "x").code == "files.is-folder"
    assert (world / "inside/sub/deep.txt").exists()


def test_listing_names_what_can_be_read_and_does_not_follow_links_out(world: Path, folders: Folders) -> None:
    plant_links(world)
    (world / "inside" / "good-link").symlink_to("sub/deep.txt")
    os.mkfifo(world / "inside" / "pipe")
    assert listed(folders, ".") == ["good-link", "notes.txt"]
    assert listed(folders, ".", recursive=True) == [
        "good-link",
        "notes.txt",
        "sub/deep.txt",
    ]
    assert refusal(list, folders.list_files("sbu")).nearest == "sub"
    assert refusal(list, folders.list_files("notes.txt")).code == "files.not-a-folder"


def test_a_name_that_is_not_unicode_is_listed_without_breaking_anything(world: Path, folders: Folders) -> None:
    (Path(os.fsdecode(bytes(world / "inside") + b"/caf\xe9.txt"))).write_bytes(b"x")
    assert listed(folders, ".")[0].encode() == "caf\ufffd.txt".encode()


def test_a_file_over_the_limit_is_refused_also_when_it_grows(world: Path, folders: Folders) -> None:
    assert folders.read_bytes("notes.txt", max_bytes=5) == b"notes"
    error = refusal(folders.read_bytes, "notes.txt", max_bytes=4)
    assert error.code == "files.too-large"
    kernel = Folders.of(Path("/proc"), read=[Path("/proc")])
    assert refusal(kernel.read_bytes, "/proc/self/status", max_bytes=100).code == "files.too-large"


@pytest.mark.parametrize(
    ("raw", "text"),
    [(b"", ""), (b"a\r\nb", "a\r\nb"), (b"\xef\xbb\xbfa", "a"), ("žluť ✓\n".encode(), "žluť ✓\n")],
)
def test_text_is_utf8_with_or_without_a_mark(world: Path, folders: Folders, raw: bytes, text: str) -> None:
    (world / "inside" / "t.txt").write_bytes(raw)
    assert folders.read_text("t.txt") == text


@pytest.mark.parametrize(
    ("raw", "code", "says"),
    [
        (b"PK\x03\x04\x00\x00", "files.binary", "binary"),
        (b"text\x00text", "files.binary", "binary"),
        (bytes(range(128, 256)) * 4 + bytes(range(1, 32)) * 8, "files.binary", "binary"),
        ("caf\xe9 au lait".encode("latin-1"), "files.encoding", "byte 3"),
        ("hello".encode("utf-16"), "files.encoding", "UTF-16"),
        ("cut ✓".encode()[:-1], "files.encoding", "byte 4"),
    ],
)
def test_what_is_not_utf8_text_is_said_to_be_so(
    world: Path, folders: Folders, raw: bytes, code: str, says: str
) -> None:
    (world / "inside" / "t.bin").write_bytes(raw)
    error = refusal(folders.read_text, "t.bin")
    assert error.code == code
    assert says in error.message


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (errno.EACCES, "files.denied"),
        (errno.EPERM, "files.denied"),
        (errno.EROFS, "files.denied"),
        (errno.ENOSPC, "files.disk-full"),
        (errno.ENAMETOOLONG, "files.bad-path"),
        (errno.EIO, "files.failed"),
    ],
)
def test_every_failure_of_the_system_has_a_code(number: int, code: str) -> None:
    error = _folder_errors.path_error(OSError(number, os.strerror(number)), "a.txt")
    assert error.code == code
    assert "a.txt" in error.message


def test_a_denied_file_is_said_to_be_denied(world: Path) -> None:
    program = """
import os, sys
from pathlib import Path
from typing import Any
from bicameral.errors import ToolError
from bicameral.tools import Folders
base = Path(sys.argv[1])
folders = Folders.of(base, read=[base], write=[base])
if os.geteuid() == 0:
    os.setuid(65534)
for action in (folders.open_read, folders.delete, lambda path: folders.write_atomic(path, b"x")):
    try:
        action("locked/notes.txt")
    except ToolError as error:
        print(error.code)
"""
    locked = world / "inside" / "locked"
    locked.mkdir()
    (locked / "notes.txt").write_bytes(b"x")
    for folder in (world, world / "inside", *world.parents[:-2]):
        folder.chmod(0o755)
    locked.chmod(0o000)
    done = subprocess.run(
        [sys.executable, "-c", program, str(world / "inside")], capture_output=True, text=True, check=True
    )
    locked.chmod(0o700)
    assert done.stdout.split() == ["files.denied"] * 3


def test_no_descriptor_is_left_open(world: Path, folders: Folders) -> None:
    plant_links(world)

    def use() -> None:
        read(folders, "notes.txt")
        folders.write_atomic("sub/new/x.txt", b"x")
        folders.append("sub/new/x.txt", b"y")
        list(folders.list_files(".", recursive=True))
        for path in ("missing", "sub/missing/x", "link-to-file", "notes.txt/x"):
            refusal(folders.open_read, path)

    use()
    # What earlier tests left to the garbage collector must not be closed between the two counts.
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        use()
    assert len(os.listdir("/proc/self/fd")) == before
