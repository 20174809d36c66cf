"""What is small on the wire and large when it is unpacked: compressed answers of servers, and mails within mails."""

from __future__ import annotations

import gzip
import resource
import zlib
from base64 import b64encode
from collections.abc import Callable

from ..case import Family, World, refused
from ..web import Site, fetched, serving
from .parsing import answer, head, mailbox

attacks = Family("archives")

MAX_BYTES = 1_000_000
BOMB = b"<p>" + b"a" * 64_000_000


async def unpacked(site: Site) -> str | None:
    """What the attacker got: an answer that is larger than may be kept, or the memory for it."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with refused("web.too-large", "web.bad-encoding", "web.unreachable"):
        page = await fetched(site, "/")
        if len(page["text"]) > MAX_BYTES:
            return f"{len(page['text']):,} characters came in"
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return f"{grown // 1024} MiB were taken for it" if grown > 40 * 1024 else None


async def attack(world: World, encoding: str, pack: Callable[[bytes], bytes]) -> str | None:
    async with serving(world, max_bytes=MAX_BYTES) as site:
        site["/"] = pack(BOMB)
        site.headers = {"Content-Type": "text/html", "Content-Encoding": encoding}
        return await unpacked(site)


async def control(world: World, encoding: str, pack: Callable[[bytes], bytes]) -> bool:
    async with serving(world, max_bytes=MAX_BYTES) as site:
        site["/"] = pack(b"<p>" + b"All is well. " * 1000)
        site.headers = {"Content-Type": "text/html", "Content-Encoding": encoding} if encoding else site.headers
        return (await fetched(site, "/"))["text"].startswith("All is well.")


def raw_deflate(content: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    return packer.compress(content) + packer.flush()


@attacks.case("a page of gzip that is a thousand times its size")
async def gzip_bomb(world: World) -> str | None:
    return await attack(world, "gzip", gzip.compress)


@gzip_bomb.twin()
async def gzip_page(world: World) -> bool:
    return await control(world, "gzip", gzip.compress)


@attacks.case("gzip in gzip, which the client would unpack as often as the server says")
async def twice(world: World) -> str | None:
    return await attack(world, "gzip, gzip", lambda content: gzip.compress(gzip.compress(content)))


@twice.twin()
async def not_packed(world: World) -> bool:
    return await control(world, "identity", bytes)


@attacks.case("deflate without its header, which is unpacked on a second try")
async def deflate_bomb(world: World) -> str | None:
    return await attack(world, "deflate", raw_deflate)


@deflate_bomb.twin()
async def deflate_page(world: World) -> bool:
    return await control(world, "deflate", raw_deflate)


@attacks.case("an encoding that was not asked for and has no bound here")
async def other_encoding(world: World) -> str | None:
    async with serving(world, max_bytes=MAX_BYTES) as site:
        site["/"] = gzip.compress(BOMB)
        site.headers = {"Content-Type": "text/html", "Content-Encoding": ", ".join(["br", "zstd", "gzip"] * 20)}
        return await unpacked(site)


@other_encoding.twin()
async def no_encoding(world: World) -> bool:
    return await control(world, "", bytes)


@attacks.case("a length of five thousand digits is no length")
async def long_length(world: World) -> str | None:
    async with serving(world, max_bytes=MAX_BYTES) as site:
        site["/"] = b"<p>x"
        site.headers = {"Content-Type": "text/html", "Content-Length": "9" * 5_000}
        return await unpacked(site)


@long_length.twin()
async def honest_length(world: World) -> bool:
    return await control(world, "gzip", lambda content: gzip.compress(content, 1))


@attacks.case("mails attached to mails, each of them packed again")
async def matryoshka(world: World) -> str | None:
    inner = head("inner") + b"x" * 200_000
    for _ in range(10):
        packed = b64encode(inner)
        inner = head(more="Content-Type: message/rfc822\nContent-Transfer-Encoding: base64\n") + packed
    registry = mailbox(world, inner)
    found = await answer(registry, 'answer(search_mail(sender="eve"))')
    return "what is inside was unpacked into the body" if len(found[0]["body"]) > 150_000 else None


@matryoshka.twin()
async def attachment(world: World) -> bool:
    raw = head(more="Content-Type: multipart/mixed; boundary=b\n") + (
        b"--b\n\nHere it is.\n--b\nContent-Type: text/plain\nContent-Disposition: attachment; filename=notes.txt\n"
        b"Content-Transfer-Encoding: base64\n\n" + b64encode(b"the notes") + b"\n--b--\n"
    )
    plan = 'mails = search_mail(sender="eve")\npath = save_attachment(mails[0].id, "notes.txt")\nanswer(path)'
    path = await answer(mailbox(world, raw), plan)
    return (world.folder / path).read_bytes() == b"the notes"
