"""What a confined command cannot do, tried with real commands that try it."""

from __future__ import annotations

import asyncio
import ctypes
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from bicameral.errors import ToolError
from bicameral.tools._sandbox import (
    MIB,
    CommandResult,
    Confinement,
    NeverBegan,
    confinement_problem,
    has_executed,
    is_forked_copy,
    require_confinement,
    run_confined,
    run_confined_sync,
)

PYTHON = shutil.which("python3", path="/usr/local/bin:/usr/bin:/bin") or "python3"


def python(code: str, *arguments: str, stdin: bytes = b"", confinement: Confinement | None = None) -> CommandResult:
    return run_confined_sync([PYTHON, "-c", code, *arguments], confinement or Confinement(timeout=20), stdin=stdin)


def running(marker: str) -> list[str]:
    """The processes on this machine whose command line holds the marker."""
    found: list[str] = []
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdigit() and marker.encode() in (folder / "cmdline").read_bytes():
                found.append(folder.name)
        except OSError:
            continue
    return found


def nothing_left_of(marker: str) -> bool:
    """Whether no such process is left; the kernel may take a moment to bury the killed."""
    deadline = time.monotonic() + 20
    while running(marker):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_a_command_reads_its_input_and_answers() -> None:
    done = run_confined_sync(["/usr/bin/tr", "a-z", "A-Z"], Confinement(), stdin=b"quiet\n")
    assert (done.ended, done.exit_code, done.stdout) == ("exited", 0, b"QUIET\n")


def test_input_larger_than_a_pipe_goes_through_whole() -> None:
    text = b"line of text\n" * 500_000
    done = run_confined_sync(["/usr/bin/wc", "-c"], Confinement(), stdin=text)
    assert int(done.stdout) == len(text)


def test_a_command_that_ignores_its_input_is_no_failure() -> None:
    done = run_confined_sync(["/usr/bin/true"], Confinement(), stdin=b"x" * (4 * MIB))
    assert (done.ended, done.exit_code) == ("exited", 0)


def test_exit_codes_signals_and_complaints_are_told_apart() -> None:
    failed = run_confined_sync(["/usr/bin/sh", "-c", "echo no >&2; exit 3"], Confinement())
    signalled = run_confined_sync(["/usr/bin/sh", "-c", "kill -SEGV $$"], Confinement())
    assert (failed.ended, failed.exit_code, failed.stderr) == ("exited", 3, b"no\n")
    assert (signalled.ended, signalled.exit_code) == ("exited", -11)


def test_only_the_path_and_the_language_are_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BICAMERAL_TEST_SECRET", "hush")
    done = run_confined_sync(["/usr/bin/env"], Confinement())
    assert sorted(line.split("=")[0] for line in done.stdout.decode().split()) == ["LANG", "PATH"]


def test_the_environment_of_the_parent_cannot_be_read_from_proc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BICAMERAL_TEST_SECRET", "hush")
    code = "import os; print(open(f'/proc/{os.getppid()}/environ').read())"
    for confinement in (Confinement(), Confinement(read=(Path("/proc"),))):
        done = python(code, confinement=confinement)
        assert done.exit_code == 1
        assert b"PermissionError" in done.stderr


def test_a_file_outside_is_not_read_and_one_inside_is(tmp_path: Path) -> None:
    secret, given = tmp_path / "secret.txt", tmp_path / "given.txt"
    secret.write_text("hush")
    given.write_text("hello")
    (tmp_path / "link.txt").symlink_to(secret)
    confinement = Confinement(read=(given,))
    assert run_confined_sync(["/usr/bin/cat", str(given)], confinement).stdout == b"hello"
    for path in (secret, tmp_path / "link.txt", tmp_path / "given.txt" / ".." / "secret.txt"):
        done = run_confined_sync(["/usr/bin/cat", str(path)], confinement)
        assert done.exit_code == 1
        assert done.stdout == b""


def test_a_link_in_a_folder_that_may_be_read_does_not_lead_out(tmp_path: Path) -> None:
    inside, secret = tmp_path / "inside", tmp_path / "secret.txt"
    inside.mkdir()
    secret.write_text("hush")
    (inside / "link").symlink_to(secret)
    done = run_confined_sync(["/usr/bin/cat", str(inside / "link")], Confinement(read=(inside,)))
    assert (done.exit_code, done.stdout) == (1, b"")


@pytest.mark.parametrize("path", ["~", "/etc/passwd", "/etc/shadow", "/proc/self/environ", "/sys/kernel", "/tmp"])
def test_homes_and_system_secrets_are_not_readable(path: str) -> None:
    done = python(
        "import os,sys; p=sys.argv[1]; print(os.listdir(p) if os.path.isdir(p) else open(p).read())",
        os.path.expanduser(path),
    )
    assert done.exit_code == 1
    assert b"PermissionError" in done.stderr


def test_nothing_is_written_outside_and_what_is_granted_is(tmp_path: Path) -> None:
    victim, granted = tmp_path / "victim.txt", tmp_path / "out"
    victim.write_text("safe")
    granted.mkdir()
    code = f"""
import os
for act in (lambda: open({str(victim)!r}, "w"), lambda: os.unlink({str(victim)!r}),
            lambda: os.rename({str(victim)!r}, {str(granted / "taken")!r}),
            lambda: os.link({str(victim)!r}, {str(granted / "linked")!r}), lambda: os.truncate({str(victim)!r}, 0),
            lambda: open({str(tmp_path / "new.txt")!r}, "w"), lambda: os.mkdir({str(tmp_path / "new")!r}),
            lambda: open("/usr/bicameral-test", "w")):
    try:
        act()
        print("DONE")
    except OSError:
        print("refused")
open({str(granted / "mine.txt")!r}, "w").write("ok")
"""
    done = python(code, confinement=Confinement(write=(granted,)))
    assert done.stdout.split() == [b"refused"] * 8, done.stderr
    assert victim.read_text() == "safe"
    assert [path.name for path in granted.iterdir()] == ["mine.txt"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "victim.txt"]


def test_what_is_denied_in_a_folder_is_neither_read_nor_written(tmp_path: Path) -> None:
    denied, free = tmp_path / "bicameral.toml", tmp_path / "notes.txt"
    for file in (denied, free):
        file.write_text("safe")
    confinement = Confinement(read=(tmp_path,), write=(tmp_path,), denied=(denied,))
    code = "import sys; print(open(sys.argv[1]).read()); open(sys.argv[1], 'w').write('changed')"
    assert python(code, str(free), confinement=confinement).stdout == b"safe\n"
    done = python(code, str(denied), confinement=confinement)
    assert (done.exit_code, done.stdout) == (1, b"")
    assert (denied.read_text(), free.read_text()) == ("safe", "changed")


def test_modes_owners_times_and_attributes_outside_stay_as_they_are(tmp_path: Path) -> None:
    victim = tmp_path / "victim.txt"
    victim.write_text("safe")
    victim.chmod(0o600)
    before = victim.stat()
    code = f"""
import os
v = {str(victim)!r}
for act in (lambda: os.chmod(v, 0o777), lambda: os.chown(v, os.getuid(), os.getgid()), lambda: os.utime(v, (1, 1)),
            lambda: os.setxattr(v, "user.x", b"1")):
    try:
        act()
        print("DONE")
    except OSError:
        print("refused")
"""
    assert python(code).stdout.split() == [b"refused"] * 4
    after = victim.stat()
    assert (after.st_mode, after.st_mtime_ns, after.st_ctime_ns) == (
        before.st_mode,
        before.st_mtime_ns,
        before.st_ctime_ns,
    )


CONNECT = (
    "import socket,sys; socket.create_connection(('127.0.0.1', int(sys.argv[1])), 5).sendall(b'leak'); print('sent')"
)


def test_the_network_is_refused_unless_it_is_granted() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = str(listener.getsockname()[1])
        refused = python(CONNECT, port)
        other = python(CONNECT, port, confinement=Confinement(network=("127.0.0.1:9",)))
        granted = python(CONNECT, port, confinement=Confinement(network=(f"127.0.0.1:{port}",)))
        connection, _ = listener.accept()
        with connection:
            assert connection.recv(10) == b"leak"
        listener.settimeout(0.2)
        with pytest.raises(TimeoutError):
            listener.accept()
    assert (refused.exit_code, other.exit_code, granted.exit_code) == (1, 1, 0), granted.stderr


def test_datagrams_and_local_sockets_are_refused_too(tmp_path: Path) -> None:
    address = str(tmp_path / "socket")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen()
        unix = python("import socket,sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])", address)
    udp = python("import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', 9))")
    assert (unix.exit_code, udp.exit_code) == (1, 1)


def test_a_command_that_hangs_is_killed_with_all_it_started() -> None:
    started = time.monotonic()
    code = "import os,time\nif os.fork() == 0:\n  os.setsid()\n  os.fork()\ntime.sleep(4711)"
    done = python(code, confinement=Confinement(timeout=1))
    assert done.ended == "timeout"
    assert time.monotonic() - started < 30
    assert nothing_left_of("sleep(4711)")


def test_what_a_command_leaves_in_the_background_is_killed_when_it_ends() -> None:
    started = time.monotonic()
    done = run_confined_sync(["/usr/bin/sh", "-c", "sleep 4712 & echo done"], Confinement(timeout=60))
    assert (done.ended, done.stdout) == ("exited", b"done\n")
    assert time.monotonic() - started < 30
    assert nothing_left_of("4712")


def test_memory_beyond_the_limit_ends_the_command() -> None:
    small = Confinement(memory=128 * MIB)
    assert python("bytearray(30_000_000)", confinement=small).exit_code == 0
    hog = python("x = []\nwhile True: x.append(bytearray(10_000_000))", confinement=small)
    assert hog.ended == "killed"


def test_a_fork_bomb_is_held_to_its_number_of_processes() -> None:
    code = """
import os
started = 0
try:
    while True:
        if os.fork() == 0:
            import time; time.sleep(4713)
        started += 1
except OSError:
    print(started)
"""
    done = python(code, confinement=Confinement(processes=6, timeout=20))
    assert int(done.stdout) <= 6
    assert nothing_left_of("sleep(4713)")


def test_output_stops_at_its_limit() -> None:
    started = time.monotonic()
    done = run_confined_sync(["/usr/bin/head", "-c", "100000000", "/dev/zero"], Confinement(output=MIB))
    assert done.ended == "output"
    assert len(done.stdout) <= MIB + 1
    endless = run_confined_sync(["/usr/bin/yes"], Confinement(output=MIB))
    assert endless.ended == "output"
    assert time.monotonic() - started < 30


def test_complaints_without_end_are_cut_to_their_end() -> None:
    done = run_confined_sync(["/usr/bin/sh", "-c", "head -c 5000000 /dev/zero >&2; echo last >&2"], Confinement())
    assert len(done.stderr) <= 16 * 1024
    assert done.stderr.endswith(b"last\n")


def test_a_program_that_is_not_there_is_told_from_one_that_fails() -> None:
    assert run_confined_sync(["/usr/bin/no-such-program"], Confinement()).ended == "not-started"
    assert run_confined_sync(["/usr/bin/sh", "-c", "exit 127"], Confinement()).ended == "exited"


def test_a_file_that_vanished_is_an_error_and_not_a_traceback(tmp_path: Path) -> None:
    with pytest.raises(ToolError) as caught:
        run_confined_sync(["/usr/bin/true"], Confinement(read=(tmp_path / "gone",)))
    assert caught.value.code == "tools.cannot-start"
    with pytest.raises(ToolError) as caught:
        run_confined_sync(["/usr/bin/true"], Confinement(folder=tmp_path / "gone"))
    assert caught.value.code == "tools.cannot-start"


async def test_cancelling_kills_the_command_before_it_returns() -> None:
    task = asyncio.create_task(run_confined(["/usr/bin/sleep", "4714"], Confinement(timeout=120)))
    async with asyncio.timeout(30):
        while not running("4714"):  # noqa: ASYNC110 (a command tells nobody that it has begun)
            await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert nothing_left_of("4714")


async def test_cancelling_at_once_leaves_nothing_behind() -> None:
    for _ in range(5):
        task = asyncio.create_task(run_confined(["/usr/bin/sleep", "4715"], Confinement(timeout=60)))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert nothing_left_of("4715")


async def test_commands_run_side_by_side_and_leave_no_file_open(tmp_path: Path) -> None:
    # Each waits until all have started, so they end only if all of them run at once, however slow the machine is.
    meet = ": > {0}; set -- *; while [ $# -lt 20 ]; do sleep 0.2; set -- *; done; echo {0}"
    before = open_files()
    together = Confinement(write=(tmp_path,), folder=tmp_path, timeout=60)
    done = await asyncio.gather(*(run_confined(["/usr/bin/sh", "-c", meet.format(i)], together) for i in range(20)))
    assert [(one.ended, one.exit_code, one.stdout) for one in done] == [("exited", 0, b"%d\n" % i) for i in range(20)]
    await asyncio.sleep(0)
    assert open_files() <= before + 1


async def test_a_lock_that_another_thread_holds_while_a_command_starts_does_not_hang_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The C library's lock around the environment is copied as it stands, and the copy has nobody to release it."""
    found: list[int] = []

    def looking(pid: int) -> bool:
        try:
            return has_executed(pid)
        except NeverBegan:
            found.append(pid)
            raise

    monkeypatch.setattr("bicameral.tools._sandbox.has_executed", looking)
    # Through ctypes, which lets go of Python's own lock: so the C library's is held nearly all the time. It ends with
    # the first start that hangs, so that the next one does not.
    library, value = ctypes.CDLL(None), b"x" * 100_000

    def disturb() -> None:
        while not found:
            library.setenv(b"DISTURBED", value, 1)

    disturbing = [threading.Thread(target=disturb) for _ in range(2)]
    for thread in disturbing:
        thread.start()
    try:
        until = time.monotonic() + 240
        while not found and time.monotonic() < until:
            done = await run_confined(["/usr/bin/echo", "begun"], Confinement(timeout=60))
            assert (done.ended, done.stdout) == ("exited", b"begun\n")
    finally:
        found.append(-1)
        for thread in disturbing:
            thread.join()
        library.unsetenv(b"DISTURBED")
    found.remove(-1)
    assert found, "no start was disturbed, so nothing was tested"
    assert not {str(pid) for pid in found} & set(os.listdir("/proc"))


def parent_and_state(pid: str) -> tuple[str, str]:
    try:
        state, parent, *_ = Path("/proc", pid, "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return "", "-"
    return parent, state


def own_children() -> list[str]:
    """Looked up by thread: going through all processes takes longer than a copy needs to become the program."""
    found: list[str] = []
    for task in os.listdir("/proc/self/task"):
        with suppress(OSError):
            found += Path("/proc/self/task", task, "children").read_text().split()
    return found


def test_a_command_that_is_killed_before_it_began_is_started_again(tmp_path: Path) -> None:
    armed, over = threading.Event(), threading.Event()

    def kill_copies() -> None:
        while not over.is_set():
            for pid in own_children():
                if not armed.is_set() or not is_forked_copy(int(pid)):
                    continue
                with suppress(ProcessLookupError):
                    # Stopped first: what is a copy then is still one when it is killed.
                    os.kill(int(pid), signal.SIGSTOP)
                    while parent_and_state(pid)[1] not in "TZ-":
                        time.sleep(0.001)
                    if is_forked_copy(int(pid)):
                        armed.clear()
                        os.kill(int(pid), signal.SIGKILL)
                    else:
                        os.kill(int(pid), signal.SIGCONT)

    killing = threading.Thread(target=kill_copies)
    killing.start()
    disturbed = finished = 0
    try:
        until = time.monotonic() + 60
        while not disturbed and time.monotonic() < until:
            armed.set()
            try:
                done = run_confined_sync(
                    ["/usr/bin/sh", "-c", "echo x >> done; echo y"],
                    Confinement(write=(tmp_path,), folder=tmp_path, timeout=60),
                )
            except ToolError:  # killed so early that there was nothing to talk with
                continue
            assert (done.ended, done.stdout) == ("exited", b"y\n")
            finished += 1
            disturbed += not armed.is_set()
    finally:
        over.set()
        killing.join()
    assert disturbed, "no start was disturbed, so nothing was tested"
    assert (tmp_path / "done").read_text() == "x\n" * finished


def test_a_command_that_kills_itself_is_not_started_again(tmp_path: Path) -> None:
    write = Confinement(write=(tmp_path,), folder=tmp_path, timeout=20)
    done = run_confined_sync(["/usr/bin/sh", "-c", "echo x >> done; kill -9 $$"], write)
    assert done.exit_code == -9
    assert (tmp_path / "done").read_text() == "x\n"


def test_a_command_that_never_begins_is_given_up_with_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []

    def looking(pid: int) -> bool:
        looked.append(pid)
        raise NeverBegan

    monkeypatch.setattr("bicameral.tools._sandbox.has_executed", looking)
    with pytest.raises(ToolError, match="before it began") as caught:
        run_confined_sync(["/usr/bin/sleep", "4713"], Confinement(timeout=60))
    assert caught.value.code == "tools.cannot-start"
    assert len(looked) == len(set(looked)) == 5
    # Nothing is started any more when its time is up, or when nobody wants it.
    for confinement, said in ((Confinement(timeout=0.3), 0), (Confinement(timeout=60), 1)):
        looked.clear()
        stop = os.eventfd(0)

        def wanted_no_more(pid: int, stop: int = stop, said: int = said) -> bool:
            os.eventfd_write(stop, said)
            return looking(pid)

        monkeypatch.setattr("bicameral.tools._sandbox.has_executed", wanted_no_more)
        with pytest.raises(ToolError, match="before it began"):
            run_confined_sync(["/usr/bin/sleep", "4713"], confinement, stop=stop)
        os.close(stop)
        assert len(looked) == 1
    assert nothing_left_of("4713")


def stuck(pid: int) -> bool:
    try:
        has_executed(pid)
    except NeverBegan:
        return True
    return False


def test_a_copy_that_waits_for_a_lock_is_told_from_a_program_that_does() -> None:
    wait = "import threading; lock = threading.Lock(); lock.acquire(); print(flush=True); lock.acquire()"
    program = subprocess.Popen([PYTHON, "-c", wait], stdout=subprocess.PIPE)
    copies = "import os,threading,time\nlock = threading.Lock()\nlock.acquire()\npid = os.fork()\n"
    copies += "if not pid: lock.acquire()\nprint(pid, flush=True)\ntime.sleep(60)"
    parent = subprocess.Popen([PYTHON, "-c", copies], stdout=subprocess.PIPE)
    try:
        assert program.stdout is not None
        assert parent.stdout is not None
        program.stdout.readline()
        time.sleep(0.2)
        assert has_executed(program.pid)
        copy = int(parent.stdout.readline())
        until = time.monotonic() + 30
        while not stuck(copy) and time.monotonic() < until:
            time.sleep(0.05)
        assert stuck(copy)
        os.kill(copy, signal.SIGKILL)
        assert has_executed(0x7FFFFFFF), "nothing there is nothing to wait for"
    finally:
        for each in (program, parent):
            each.kill()
            each.communicate()


async def test_where_the_kernel_cannot_confine_nothing_runs(tmp_path: Path) -> None:
    with pytest.raises(ToolError) as caught:
        await run_confined(
            ["/usr/bin/touch", str(tmp_path / "ran")],
            Confinement(write=(tmp_path,)),
            probe=lambda: "the kernel has Landlock ABI 3, and 6 is needed",
        )
    assert caught.value.code == "tools.cannot-confine"
    assert "ABI 3" in caught.value.message
    assert "Landlock" in (caught.value.fix or "")
    assert os.listdir(tmp_path) == []


def test_the_probe_names_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    assert confinement_problem() is None
    monkeypatch.setattr("sandlock.landlock_abi_version", lambda: -1)
    assert "Landlock ABI 0" in (confinement_problem() or "")
    monkeypatch.setattr("platform.system", lambda: "Darwin")
    assert "Darwin" in (confinement_problem() or "")
    with pytest.raises(ToolError, match="cannot-confine"):
        require_confinement()
