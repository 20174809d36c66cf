"""Mails, pages and tables that are made to stop whoever reads them, or to bring in what no value can be."""

from __future__ import annotations

import json
import math
import time
from email.message import EmailMessage
from typing import Any

from bicameral.limits import run_limits
from bicameral.plans import parse
from bicameral.runs import Failed, Finished, run_plan
from bicameral.toolboxes.mail import toolbox as mail
from bicameral.toolboxes.tables import toolbox as tables
from bicameral.tools import Registry, Surroundings

from ..case import Family, World, refused
from ..web import fetched, serving

attacks = Family("parsing")

PATIENCE = 45.0
"""Seconds on a busy machine; the limits themselves are a few seconds for a mail and ten for a page."""

HONEST = (
    b"From: ann@example.com\nTo: me@example.com\nSubject: Lunch\nDate: Mon, 2 Mar 2026 10:00:00 +0000\n\nAt noon?\n"
)
SEARCH = "answer(search_mail())"


def mailbox(world: World, *raws: bytes) -> Registry:
    """A mailbox with an honest mail and these, and the tools that read it."""
    box = world.folder / "Maildir" / "cur"
    box.mkdir(parents=True)
    for number, raw in enumerate((*raws, HONEST)):
        (box / f"{number}.host:2,S").write_bytes(raw)
    return Registry(mail.open(Surroundings.here(world.folder), {}))


def folder(world: World, name: str, text: str) -> Registry:
    (world.folder / name).write_text(text)
    return Registry(tables.open(Surroundings.here(world.folder), {}))


async def answer(registry: Registry, plan: str) -> Any:
    outcome = await run_plan(parse(plan, registry).plan, registry, caps=run_limits(seconds=PATIENCE))
    if isinstance(outcome, Failed):
        raise outcome.error
    assert isinstance(outcome, Finished)
    return outcome.answer


async def search_stopped(registry: Registry) -> str | None:
    """What the attacker got: the search took too long, the honest mail is hidden, or his own vanished silently."""
    began = time.monotonic()
    found = await answer(registry, SEARCH)
    if time.monotonic() - began > PATIENCE:
        return "the mailbox was busy for a minute"
    if all(each["subject"] != "Lunch" for each in found):
        return "the honest mail is not found"
    return None if len(found) == 2 else "his own mail vanished without a word"


def head(subject: str = "Hi", more: str = "") -> bytes:
    return f"From: eve@example.org\nTo: me@example.com\nSubject: {subject}\nMIME-Version: 1.0\n{more}\n".encode()


@attacks.case("a mail of nested parts makes each line be compared with each boundary")
async def nested_parts(world: World) -> str | None:
    depth = 80
    parts = "".join(f"--b{n}\nContent-Type: multipart/mixed; boundary=b{n + 1}\n\n" for n in range(depth))
    raw = head(more="Content-Type: multipart/mixed; boundary=b0\n") + parts.encode() + b"x\n" * 500_000
    return await search_stopped(mailbox(world, raw))


@nested_parts.twin()
async def alternatives(world: World) -> bool:
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = "bo@example.com", "me@example.com", "Minutes"
    message.set_content("See the page.\n" * 2000)
    message.add_alternative("<p>See the <b>page</b>.</p>" * 2000, subtype="html")
    message.add_attachment(b"%PDF" * 250_000, maintype="application", subtype="pdf", filename="minutes.pdf")
    found = await answer(mailbox(world, bytes(message)), 'answer(search_mail(subject="Minutes"))')
    return found[0]["body"].startswith("See the page.") and found[0]["attachments"] == ["minutes.pdf"]


@attacks.case("headers full of half encoded words are searched in quadratic time")
async def encoded_words(world: World) -> str | None:
    names = ",".join(f'"{"=?a?q?" * 300}" <a{n}@example.org>' for n in range(9))
    return await search_stopped(mailbox(world, head("=?a?q?" * 3_000, f"Cc: {names}\n") + b"x"))


@encoded_words.twin()
async def german_subject(world: World) -> bool:
    raw = head("=?utf-8?q?Gr=C3=BC=C3=9Fe_aus_Z=C3=BCrich?=") + b"x"
    found = await answer(mailbox(world, raw), 'answer(search_mail(subject="zürich"))')
    return [each["subject"] for each in found] == ["Grüße aus Zürich"]


@attacks.case("mails within mails, thousands deep")
async def mails_in_mails(world: World) -> str | None:
    inner = b"Content-Type: message/rfc822\n\n" * 20_000
    return await search_stopped(mailbox(world, head(more="Content-Type: message/rfc822\n") + inner + b"x"))


@mails_in_mails.twin()
async def forwarded(world: World) -> bool:
    raw = head(more="Content-Type: multipart/mixed; boundary=b\n") + (
        b"--b\n\nSee below.\n--b\nContent-Type: message/rfc822\n\n" + HONEST + b"\n--b--\n"
    )
    found = await answer(mailbox(world, raw), 'answer(search_mail(text="below"))')
    return [len(each["attachments"]) for each in found] == [1]


@attacks.case("a file of nothing but lines 'From x' is a quarter of a million mails")
async def from_lines(world: World) -> str | None:
    (world.folder / "mail.mbox").write_bytes(b"From x\nA: b\n\n" * 250_000)
    registry = Registry(mail.open(Surroundings.here(world.folder), {}))
    with refused("mail.folder-too-large"):
        found = await answer(registry, 'answer(len(search_mail(subject="zzz")))')
        return f"all of them were read into memory, and {found} found"
    return None


@from_lines.twin()
async def small_mbox(world: World) -> bool:
    mails = b"".join(b"From a Mon Mar  1 12:00:00 2026\n" + HONEST + b"\n" for _ in range(50))
    (world.folder / "mail.mbox").write_bytes(mails)
    registry = Registry(mail.open(Surroundings.here(world.folder), {}))
    return await answer(registry, 'answer(len(search_mail(subject="Lunch")))') == 50


@attacks.case("a page with one row of sixty thousand cells")
async def cells(world: World) -> str | None:
    async with serving(world) as site:
        site["/"] = b"<title>x</title><table><tr>" + b"<td>cell" * 60_000
        began = time.monotonic()
        page = await fetched(site, "/")
        if time.monotonic() - began > PATIENCE:
            return "the page took a minute"
        return None if page["title"] == "x" else "the page could not be read"


@cells.twin()
async def price_list(world: World) -> bool:
    async with serving(world) as site:
        site["/"] = b"<table><tr><th>what<th>price<tr><td>tea<td>2.50<tr><td>cake<td>4</table>"
        return (await fetched(site, "/"))["text"] == "what | price\ntea | 2.50\ncake | 4"


@attacks.case("a page of tags that are closed in the wrong order keeps its parser busy")
async def wrong_order(world: World) -> str | None:
    async with serving(world) as site:
        site["/"] = (b"<a href=/x><b><i><u><div><p><table><tr><td>" * 4_000 + b"</a></b></i>" * 20_000)[:1_000_000]
        began = time.monotonic()
        with refused("tools.parse-limit"):
            await fetched(site, "/")
        return "the page took a minute" if time.monotonic() - began > PATIENCE else None


@wrong_order.twin()
async def sloppy_page(world: World) -> bool:
    async with serving(world) as site:
        site["/"] = b"<p><b>One <i>two</b> three</i><p>four"
        return (await fetched(site, "/"))["text"] == "One two three\n\nfour"


@attacks.case("a number beyond all numbers comes in as infinity")
async def infinity(world: World) -> str | None:
    registry = folder(world, "bill.json", '{"amount": 1e999, "limit": -1e999}')
    with refused("tables.bad-json"):
        found = await answer(registry, 'answer(read_json("bill.json"))')
        return f"the plan computes with {found}" if not math.isfinite(found["amount"]) else None
    return None


@infinity.twin()
async def large_numbers(world: World) -> bool:
    registry = folder(world, "sky.json", '{"distance": 1.496e308, "small": 1e-300, "count": 123456789012345678901234}')
    found = await answer(registry, 'answer(read_json("sky.json"))')
    return found == {"distance": 1.496e308, "small": 1e-300, "count": 123456789012345678901234}


@attacks.case("nine hundred levels of lists break what walks over values")
async def deep(world: World) -> str | None:
    registry = folder(world, "deep.json", "[" * 900 + "]" * 900)
    with refused("tables.bad-json"):
        await answer(registry, 'answer(str(read_json("deep.json")))')
        return "a value of 900 levels is in the plan"
    return None


@deep.twin()
async def nested_settings(world: World) -> bool:
    value: Any = {"leaf": 1}
    for _ in range(20):
        value = {"inner": [value]}
    registry = folder(world, "settings.json", json.dumps(value))
    return await answer(registry, 'answer(read_json("settings.json"))') == value


@attacks.case("a file of empty lists takes fifty times its size in memory")
async def empty_lists(world: World) -> str | None:
    registry = folder(world, "lists.json", "[" + "[]," * 5_500_000 + "[]]")
    with refused("tables.bad-json", "tools.parse-limit"):
        found = await answer(registry, 'answer(len(read_json("lists.json")))')
        return f"{found:,} lists are in memory"
    return None


@empty_lists.twin()
async def long_list(world: World) -> bool:
    registry = folder(world, "rows.json", json.dumps([{"id": n, "tags": []} for n in range(30_000)]))
    return await answer(registry, 'answer(len(read_json("rows.json")))') == 30_000


@attacks.case("a table of thousands of columns of one name is named in cubic time")
async def same_names(world: World) -> str | None:
    registry = folder(world, "wide.csv", ",".join(["a"] * 16_000) + "\n" + ",".join(["1"] * 16_000) + "\n")
    began = time.monotonic()
    count = await answer(registry, 'answer(len(read_csv("wide.csv")[0]))')
    if time.monotonic() - began > PATIENCE:
        return "reading the names took a minute"
    return None if count == 16_000 else "columns are lost"


@same_names.twin()
async def repeated_names(world: World) -> bool:
    registry = folder(world, "pairs.csv", "name,,name,name_2\n1,2,3,4\n")
    found = await answer(registry, 'answer(read_csv("pairs.csv"))')
    return found == [{"name": 1, "column_2": 2, "name_3": 3, "name_2": 4}]


@attacks.case("a table of a million columns in one line")
async def wide(world: World) -> str | None:
    registry = folder(world, "wide.csv", "a" + ",a" * 1_000_000 + "\n1\n")
    with refused("tables.too-large", "tools.parse-limit"):
        await answer(registry, 'answer(len(read_csv("wide.csv")))')
        return "it was read"
    return None


@wide.twin()
async def hundred_thousand_rows(world: World) -> bool:
    rows = "".join(f"{n},name {n},{n * 1.5}\n" for n in range(100_000))
    registry = folder(world, "long.csv", "id,name,amount\n" + rows)
    return await answer(registry, 'answer(sum([r.id for r in read_csv("long.csv")]))') == sum(range(100_000))
