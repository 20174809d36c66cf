"""Programs in a sandbox: nothing that was not granted, nothing that stays, and every limit ends them and says which."""

from __future__ import annotations

import asyncio
import os
import socket
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bicameral.errors import ToolError
from bicameral.labels import Label, Source
from bicameral.tools import ProgramRights, confinement_problem, find_interpreter, interpreter_tool, tool
from bicameral.tools._interpreter import fresh_folder, remove_folder

pytestmark = pytest.mark.skipif(confinement_problem() is not None, reason="this kernel cannot confine")
PRIVATE = Label({Source("system", "files")}, {"user"})


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder in which programs get theirs; all of them must be gone at the end."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    yield tmp_path
    assert not list(tmp_path.glob("bicameral-program-*"))


def run(program: str, **rights: Any) -> dict[str, Any]:
    return asyncio.run(interpreter_tool(rights=ProgramRights(**rights)).call({"program": program}))


def test_a_program_has_the_standard_library_and_prints() -> None:
    assert run("import json; print(json.dumps([6 * 7]))") == {
        "ended": "exited",
        "status": 0,
        "output": "[42]",
        "errors": "",
        "cut": 0,
    }


def test_an_error_of_the_program_is_told_with_its_line() -> None:
    result = run("x = 1\nprint(x / 0)")
    assert (result["ended"], result["status"]) == ("exited", 1)
    assert "line 2" in result["errors"]
    assert result["errors"].endswith("ZeroDivisionError: division by zero")


def test_a_program_may_use_its_folder_and_the_next_one_finds_it_empty() -> None:
    program = "import os; print(os.listdir('.')); open('state', 'w').write('x'); print(open('state').read())"
    assert [run(program)["output"] for _ in range(2)] == ["[]\nx", "[]\nx"]


def test_no_variable_of_this_process_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "hunter2")
    assert run("import os; print(sorted(os.environ))")["output"] == "['LANG', 'PATH']"


@pytest.mark.parametrize(
    "program",
    [
        "import os\nwhile True: os.fork()",
        "import subprocess; subprocess.run(['/bin/true'])",
        "import multiprocessing as m; m.get_context('spawn').Process(target=print).start()",
    ],
)
def test_no_other_process_is_started(program: str) -> None:
    begun = time.monotonic()
    result = run(program)
    assert result["status"] != 0
    assert time.monotonic() - begun < 10


@pytest.mark.parametrize(
    ("program", "ended"),
    [
        ("x = bytearray(2 << 30)", "memory"),
        ("while True: pass", "cpu"),
        ("import time; time.sleep(60)", "time"),
        ("while True: print('x' * 1000)", "output"),
        ("for n in range(10 ** 6): open(str(n), 'wb').write(bytes(1 << 20))", "disk"),
        ("for n in range(10 ** 6): open(str(n), 'w')", "disk"),
    ],
)
def test_a_program_that_reaches_a_limit_is_killed_and_the_limit_is_named(program: str, ended: str) -> None:
    begun = time.monotonic()
    result = run(program, wall_seconds=2 if ended == "time" else 20, cpu_seconds=1 if ended == "cpu" else 5)
    assert result["ended"] == ended
    assert result["status"] < 0
    assert time.monotonic() - begun < 15


def test_a_program_that_ignores_the_signal_of_the_limit_is_killed() -> None:
    program = "import signal\n[signal.signal(each, signal.SIG_IGN) for each in (2, 15, 24)]\nwhile True: pass"
    assert run(program, cpu_seconds=1)["ended"] == "cpu"


def test_no_limit_can_be_raised_from_inside() -> None:
    program = "import resource\nresource.setrlimit(resource.RLIMIT_CPU, (-1, -1))"
    assert run(program)["status"] == 1


def test_one_large_file_is_refused() -> None:
    assert "File too large" in run("open('a', 'wb').write(bytes(3 << 20))", disk_mb=1)["errors"]


@pytest.mark.parametrize("path", ["/etc/passwd", "/proc/1/environ", "~/.ssh/id_rsa"])
def test_a_link_leads_nowhere_outside(path: str) -> None:
    path = os.path.expanduser(path)
    result = run(f"import os\nos.symlink({path!r}, 'link')\nprint(open('link').read())")
    assert result["status"] == 1
    assert result["output"] == ""


def test_a_link_out_of_the_folder_is_removed_and_its_target_stays(tmp_path: Path) -> None:
    outside = tmp_path / "precious"
    outside.mkdir()
    (outside / "file").write_text("here")
    run(f"import os\nos.symlink({str(outside)!r}, 'link')\nos.mkdir('d')\nos.symlink({str(outside)!r}, 'd/link')")
    assert (outside / "file").read_text() == "here"


def test_nothing_is_written_outside(tmp_path: Path) -> None:
    for target in (tmp_path / "out", Path("/tmp/out-of-the-sandbox")):
        assert "Permission denied" in run(f"open({str(target)!r}, 'w')")["errors"]
        assert not target.exists()


def test_no_network_can_be_reached_nor_a_socket_of_this_machine(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as local:
        port = server.getsockname()[1]
        local.bind(str(tmp_path / "socket"))
        local.listen()
        connects = (
            f"socket.create_connection(('127.0.0.1', {port}), 2)",
            f"socket.socket(socket.AF_UNIX).connect({str(tmp_path / 'socket')!r})",
            "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', 53))",
            "socket.gethostbyname('example.com')",
        )
        for connect in connects:
            assert run(f"import socket; {connect}")["status"] == 1, connect


def test_only_the_exact_endpoint_that_was_granted_can_be_reached() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_server(("127.0.0.1", 0)) as other:
        ports = [each.getsockname()[1] for each in (server, other)]
        program = "import socket; socket.create_connection(('127.0.0.1', {}), 2); print('in')"
        endpoints = (f"127.0.0.1:{ports[0]}",)
        results = [run(program.format(port), endpoints=endpoints) for port in ports]
    assert [each["output"] for each in results] == ["in", ""]


@pytest.mark.parametrize(
    "endpoint", ["*:*", "*.example.com:443", "example.com", "example.com:*", "Example.com:443", ""]
)
def test_an_endpoint_that_is_not_exact_is_refused(endpoint: str) -> None:
    with pytest.raises(ToolError, match="is no endpoint") as caught:
        ProgramRights(endpoints=(endpoint,))
    assert caught.value.code == "tools.bad-rights"


def test_rights_below_what_a_program_needs_are_refused() -> None:
    with pytest.raises(ToolError, match="memory_mb is 1"):
        ProgramRights(memory_mb=1)


def test_a_closed_tool_is_pure_and_one_with_endpoints_sends() -> None:
    closed, opened = interpreter_tool(), interpreter_tool(rights=ProgramRights(endpoints=("example.com:443",)))
    assert (closed.effect, closed.outbound, closed.arguments[0].purpose) == ("pure", False, "selects")
    assert (opened.effect, opened.outbound, opened.arguments[0].purpose) == ("send", True, "directs")
    assert opened.hosts == ("example.com:443",)
    # What it prints may repeat what is in the program.
    assert closed.call_labels({"program": PRIVATE}, None, "s1").flat.readers == frozenset({"user"})


def test_what_is_printed_is_cut_and_the_cut_is_counted() -> None:
    result = run("print('x' * 1000)", max_output=100)
    assert (len(result["output"]), result["cut"]) == (100, 900)


def test_bytes_that_are_no_text_are_replaced() -> None:
    assert run("import sys; sys.stdout.buffer.write(b'a\\xff\\0b')")["output"] == "a��b"


def test_a_folder_that_is_nested_too_deep_closed_and_full_of_links_is_removed(tmp_path: Path) -> None:
    with fresh_folder() as folder:
        at = os.open(folder, os.O_RDONLY)
        for _ in range(1_200):
            os.mkdir("d", dir_fd=at)
            os.symlink("/", "link", dir_fd=at)
            below = os.open("d", os.O_RDONLY, dir_fd=at)
            os.close(at)
            at = below
        os.mkdir("closed", 0, dir_fd=at)
        os.close(at)
    assert not folder.exists()


def test_a_folder_that_is_no_folder_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "target").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "target")
    with pytest.raises(NotADirectoryError):
        remove_folder(tmp_path / "link")
    assert (tmp_path / "target").exists()


def test_the_folder_is_removed_before_a_cancelled_call_ends(temporary: Path) -> None:
    def folders() -> list[Path]:
        return list(temporary.glob("bicameral-program-*"))

    async def cancelled() -> None:
        call = asyncio.create_task(interpreter_tool().call({"program": "import time; time.sleep(60)"}))
        await asyncio.sleep(0.1)
        assert folders()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert not folders()

    asyncio.run(cancelled())


def test_where_the_kernel_cannot_confine_no_program_runs(temporary: Path) -> None:
    bare = interpreter_tool(probe=lambda: "there is no Landlock")
    with pytest.raises(ToolError) as caught:
        asyncio.run(bare.call({"program": f"open({str(temporary / 'ran')!r}, 'w')"}))
    assert caught.value.code == "tools.cannot-confine"
    assert not (temporary / "ran").exists()


def test_another_tool_does_not_pass_for_an_interpreter() -> None:
    @tool(effect="pure")
    def run_python(program: str) -> str:
        """Run a program."""
        return program

    assert find_interpreter(run_python) is None
    assert find_interpreter(interpreter_tool()) is not None
