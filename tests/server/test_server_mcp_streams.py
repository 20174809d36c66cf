"""Standard input and output of an MCP server: in order, bounded, and nobody waits for a client that does not read."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Generator
from contextlib import closing

import pytest

from bicameral.server._mcp_serve import LineReader, LineWriter


@pytest.fixture
def pipe() -> Generator[tuple[int, int]]:
    read, write = os.pipe()
    yield read, write
    # The writing end first: so a thread that reads comes to the end.
    for end in (write, read):
        os.close(end)


async def read_all(source: int, size: int) -> bytes:
    """So many bytes of a pipe, read in a thread."""

    def read() -> bytes:
        found = b""
        while len(found) < size:
            found += os.read(source, 65_536)
        return found

    return await asyncio.to_thread(read)


async def test_texts_keep_their_order_while_the_client_does_not_read(pipe: tuple[int, int]) -> None:
    """Small ones could be written at once, and must not overtake a large one that waits."""
    writer = LineWriter(pipe[1])
    await writer.write("first\n")
    large = "x" * 500_000 + "\n"
    waiting = [asyncio.create_task(writer.write(text)) for text in (large, "second\n", "third\n")]
    await asyncio.sleep(0.05)
    # The loop goes on meanwhile.
    assert not any(each.done() for each in waiting)
    given = f"first\n{large}second\nthird\n".encode()
    assert await read_all(pipe[0], len(given)) == given
    await asyncio.wait_for(asyncio.gather(*waiting), 20)


async def test_a_text_that_nobody_waits_for_any_more_is_not_overtaken(pipe: tuple[int, int]) -> None:
    writer = LineWriter(pipe[1])
    large = "x" * 500_000 + "\n"
    given_up = asyncio.create_task(writer.write(large))
    await asyncio.sleep(0.05)
    given_up.cancel()
    last = asyncio.create_task(writer.write("last\n"))
    given = f"{large}last\n".encode()
    assert await read_all(pipe[0], len(given)) == given
    await asyncio.wait_for(last, 20)


async def test_a_client_that_is_gone_ends_the_stream() -> None:
    import anyio

    read, write = os.pipe()
    os.close(read)
    try:
        for text in ("short\n", "x" * 500_000):
            with pytest.raises(anyio.ClosedResourceError):
                await LineWriter(write).write(text)
    finally:
        os.close(write)


async def test_a_socket_is_written_to_as_well() -> None:
    ours, theirs = socket.socketpair()
    with closing(ours), closing(theirs):
        writer = LineWriter(ours.fileno())
        await writer.write("a line\n")
        assert await asyncio.to_thread(theirs.recv, 100) == b"a line\n"


async def test_lines_are_read_no_faster_than_they_are_taken(pipe: tuple[int, int]) -> None:
    reader = LineReader(pipe[0], 1_000)
    lines = [f"line {number}" for number in range(5_000)]

    def flood() -> None:
        os.write(pipe[1], "".join(f"{each}\n" for each in lines).encode())

    flooding = asyncio.create_task(asyncio.to_thread(flood))
    await asyncio.sleep(0.1)
    # What was read and not taken: the thread waits at the limit.
    assert reader._lines.qsize() < 200  # pyright: ignore[reportPrivateUsage]
    found: list[str] = []
    async for line in reader:
        found.append(line)
        if len(found) == len(lines):
            break
    await flooding
    assert found == lines
