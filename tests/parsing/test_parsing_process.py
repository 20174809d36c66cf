"""Hostile input is read in a process that can be killed: within limits, confined, and started again."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from bicameral.errors import ToolError
from bicameral.parsing import MIB, ParseLimitError, ParseLimits, Parser, ParserPool, parser_confinement
from bicameral.parsing._pool import ParserFrame

EVALUATE = "builtins:eval"
"""What a parser could be made to do by an exploit: anything. It takes the code as its bytes."""


@pytest.fixture
def pool() -> Iterator[ParserPool]:
    own = ParserPool(2)
    yield own
    own.discard_idle()


def evaluating(pool: ParserPool, result: Any, limits: ParseLimits | None = None) -> Parser[Any]:
    return Parser(EVALUATE, result, limits or ParseLimits(), pool)


def test_a_value_comes_back_and_the_process_is_kept(pool: ParserPool) -> None:
    parser = evaluating(pool, int)
    first = evaluating(pool, int)(b"__import__('os').getpid()", what="it")
    assert first != os.getpid()
    assert parser(b"__import__('os').getpid()", what="it") == first
    assert parser(b"20 + 1", what="it") == 21


@pytest.mark.parametrize(
    ("code", "limit"),
    [
        (b"sum(range(10**12))", "cpu"),
        (b"__import__('time').sleep(60)", "time"),
        (b"bytearray(1 << 30)", "memory"),
        (b"'a' * (3 << 20)", "output"),
        (b"(lambda f: f(f))(lambda f: f(f))", "depth"),
        (b"__import__('os')._exit(1)", "memory"),
    ],
)
def test_what_takes_too_much_is_ended_with_its_name_and_the_limit(pool: ParserPool, code: bytes, limit: str) -> None:
    wall = 2.0 if limit == "time" else 20.0
    parser = evaluating(pool, str, ParseLimits(cpu=1.0, wall=wall, memory=512 * MIB, output=2 * MIB))
    with pytest.raises(ParseLimitError) as caught:
        parser(code, what="the mail 'INBOX/7'")
    assert caught.value.code == "tools.parse-limit"
    assert caught.value.limit == limit
    assert "the mail 'INBOX/7' was not read" in caught.value.message
    assert parser(b"'next'", what="the next") == "next"


@pytest.mark.parametrize(
    "code",
    [
        b"open('/etc/passwd').read()",
        b"__import__('os').listdir('/root')",
        b"open('/tmp/written-by-a-parser', 'w').name",
        b"__import__('_socket').socket(2, 1, 0) and ''",
        b"__import__('os').fork() and ''",
        b"__import__('os').execv('/bin/true', ['true'])",
        b"__import__('os').kill(1, 0) or ''",
        b"str(__import__('resource').prlimit(1, 7))",
    ],
)
def test_whoever_takes_the_process_over_has_no_files_network_or_processes(pool: ParserPool, code: bytes) -> None:
    if set(parser_confinement()) != {"files", "network"}:
        pytest.skip("this machine cannot confine a process")
    with pytest.raises(ToolError) as caught:
        evaluating(pool, str)(code, what="it")
    assert caught.value.code == "tools.unreadable"


def test_the_process_knows_nothing_of_our_environment(pool: ParserPool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_SECRET_OF_OURS", "x")
    monkeypatch.setenv("TZ", "Europe/Berlin")
    names = evaluating(pool, list[str])(b"sorted(__import__('os').environ)", what="it")
    assert set(names) <= {"TZ", "LC_CTYPE"}


@dataclass(frozen=True)
class Facts:
    name: str
    size: int


@pytest.mark.parametrize(
    "code",
    [b"{'name': 'a', 'size': '7'}", b"{'name': 'a'}", b"[1]", b"None", b"{'name': 7, 'size': 7}", b"object()"],
)
def test_a_reply_of_another_type_is_refused(pool: ParserPool, code: bytes) -> None:
    assert evaluating(pool, Facts)(b"{'name': 'a', 'size': 7}", what="it") == Facts("a", 7)
    with pytest.raises(ToolError) as caught:
        evaluating(pool, Facts)(code, what="it")
    assert caught.value.code == "tools.unreadable"


def test_bytes_cross_in_both_directions_whole(pool: ParserPool) -> None:
    parser: Parser[int] = Parser(
        "bicameral.toolboxes._calendar_operations:list_between", list[Any], ParseLimits(), pool
    )
    with pytest.raises(ToolError):
        parser(
            bytes(range(256)) * 4096, what="no calendar", file="x", zone=None, since="2026-01-01", before="2026-01-02"
        )
    every = bytes(range(256))
    frame = ParserFrame.from_value(b"v", {"half": "\ud800", "text": "ü"}, every)
    assert frame.value == {"half": "\ud800", "text": "ü"}
    assert frame.to_bytes().endswith(every)


def test_one_that_hangs_does_not_keep_others_waiting(pool: ParserPool) -> None:
    started = threading.Event()
    slow = evaluating(pool, int, ParseLimits(cpu=30.0, wall=6.0))

    def hang() -> None:
        started.set()
        with pytest.raises(ParseLimitError):
            slow(b"__import__('time').sleep(60)", what="it")

    evaluating(pool, int)(b"1", what="a first, so that both processes are there")
    thread = threading.Thread(target=hang)
    thread.start()
    started.wait()
    began = time.monotonic()
    assert [evaluating(pool, int)(b"%d" % n, what="it") for n in range(20)] == list(range(20))
    assert time.monotonic() - began < 5.5
    thread.join()


def test_asking_for_the_confinement_waits_for_a_place_and_starts_no_process_too_many() -> None:
    pool = ParserPool(1)
    slow = evaluating(pool, int)
    own = slow(b"__import__('os').getpid()", what="it")
    thread = threading.Thread(target=slow, args=(b"__import__('time').sleep(1.5) or 1",), kwargs={"what": "it"})
    thread.start()
    time.sleep(0.3)
    began = time.monotonic()
    found = pool.confinement
    assert time.monotonic() - began > 0.5
    thread.join()
    assert found == parser_confinement()
    assert slow(b"__import__('os').getpid()", what="it") == own
    pool.discard_idle()


def test_an_error_of_a_parser_keeps_its_code_and_place(pool: ParserPool) -> None:
    parser: Parser[Any] = Parser("bicameral.toolboxes._table_files:parse_rows", list[Any], ParseLimits(), pool)
    with pytest.raises(ToolError) as caught:
        parser(b"a,b\n1\n", what="the table", path="t.csv")
    assert caught.value.code == "tables.ragged"
    assert str(caught.value.place) == "t.csv, line 2"


SCRIPT = """
import os, sys, time
from bicameral.parsing import Parser
pid = Parser("builtins:eval", int)(b"__import__('os').getpid()", what="it")
print(pid, flush=True)
if sys.argv[1] == "killed":
    os.kill(os.getpid(), 9)
"""


@pytest.mark.parametrize("how", ["exits", "killed"])
def test_the_process_ends_with_whoever_started_it(how: str) -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT, how], capture_output=True, check=False, timeout=60)
    pid = int(done.stdout)
    for _ in range(200):
        if not _is_there(pid):
            return
        time.sleep(0.05)
    pytest.fail(f"the parser {pid} is still there")


def _is_there(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_importing_bicameral_and_its_toolboxes_starts_no_process() -> None:
    code = (
        "import bicameral, bicameral.toolboxes.mail, bicameral.toolboxes.calendar, bicameral.config\n"
        "from bicameral.parsing import _pool\nassert _pool.POOL._idle == []\n"
        "import os; assert not os.path.exists(f'/proc/{os.getpid()}/task/{os.getpid()}/children') or "
        "open(f'/proc/{os.getpid()}/task/{os.getpid()}/children').read() == ''"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_a_copy_of_this_process_has_parsers_of_its_own() -> None:
    code = (
        "import os\nfrom bicameral.parsing import Parser\n"
        "p = Parser('builtins:eval', int)\nown = p(b\"__import__('os').getpid()\", what='it')\n"
        "child = os.fork()\nother = p(b\"__import__('os').getpid()\", what='it')\n"
        "if child == 0:\n    os._exit(0 if other != own else 1)\n"
        "assert other == own\n_, status = os.waitpid(child, 0)\nassert status == 0, status"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, timeout=60)
