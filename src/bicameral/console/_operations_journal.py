"""The record: a verification of all seals on a click, and anchors to verify against later.

The seals show every change inside of a record. That the end of it was cut off, or that all of it was sealed anew, shows
only against anchors that are kept elsewhere.
"""

from __future__ import annotations

import asyncio
import re
import time
from contextlib import ExitStack
from datetime import UTC, datetime

from starlette.responses import Response

from bicameral.console._operations_state import JournalCheck, operations_of, require_all_users
from bicameral.console._pages import PageCall, attachment, page_route
from bicameral.errors import BicameralError, ServerError
from bicameral.journal import Anchor
from bicameral.server.surface import HttpError, ServerContext

MAX_BREAKS = 200
"""Breaks on one page."""
_ANCHOR = re.compile(r"(.{1,300}) (\d{1,12}) ([0-9a-f]{64})")


async def journal_page(call: PageCall) -> Response:
    """The last verification, and the form that begins one."""
    require_all_users(call)
    check = operations_of(call).check
    template = "operations_journal_part.html" if call.is_partial else "operations_journal.html"
    return call.page(template, check=check, most=MAX_BREAKS, sqlite=call.context.runs.database.sqlite)


async def verify_journal(call: PageCall) -> Response:
    """Begin a verification, unless one is under way; the page follows it."""
    require_all_users(call)
    operations, known = operations_of(call), await asyncio.to_thread(parse_anchors, call.field("known"))
    # From here to the new check nothing is awaited, so that no two are begun.
    if operations.check is not None and operations.check.ended is None:
        return call.redirect("/operations/journal", "A verification is under way already.")
    slot = ExitStack()
    # Hashing everything keeps the machine busy, like a plan that is written.
    slot.enter_context(call.context.plans.slot())
    operations.check = JournalCheck(call.token.user, len(known))
    operations.task = asyncio.create_task(_verify(call.context, operations.check, known, slot))
    return call.redirect("/operations/journal")


async def _verify(context: ServerContext, check: JournalCheck, known: list[Anchor], slot: ExitStack) -> None:
    with slot:
        try:
            check.breaks = await asyncio.to_thread(_find_breaks, context, check, known)
        except BicameralError as error:
            check.error = error.message
        except Exception as error:
            # Whatever it is, it is not the end of the server, and says nothing about the record.
            check.error = f"something went wrong here ({type(error).__name__})"
        finally:
            check.ended = time.time()


def _find_breaks(context: ServerContext, check: JournalCheck, known: list[Anchor]) -> list[str]:
    def progress(done: int, of: int) -> None:
        check.done, check.of = done, of
        if context.stopping.is_set():
            raise ServerError("server.stopping", "the server stops")

    with context.runs.open_journal() as journal:
        return journal.verify(known=known, progress=progress)


async def anchors_file(call: PageCall) -> Response:
    """The last event of every run with its seal, as a file to be kept elsewhere."""
    require_all_users(call)

    def read() -> bytes:
        with call.context.runs.open_journal() as journal:
            return anchors_text(journal.anchors()).encode("utf-8", "replace")

    name = f"anchors-{datetime.now(UTC):%Y%m%d-%H%M%S}.txt"
    return attachment(await asyncio.to_thread(read), name, "text/plain; charset=utf-8")


def anchors_text(anchors: list[Anchor]) -> str:
    """Anchors as lines: run, number of the event, and seal."""
    return "".join(f"{each.run} {each.number} {each.seal}\n" for each in anchors)


def parse_anchors(text: str) -> list[Anchor]:
    """The anchors in a text; an error if a line is none."""
    found: list[Anchor] = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        parts = _ANCHOR.fullmatch(line.strip())
        if parts is None:
            error = ServerError(
                "server.bad-request",
                f"line {number} is no anchor",
                expected="the id of a run, the number of an event and its seal, with blanks between them",
                fix="Paste the file that was downloaded here, without changes.",
            )
            raise HttpError(422, error)
        found.append(Anchor(parts[1], int(parts[2]), parts[3]))
    return found


journal_routes = [
    page_route("/operations/journal", journal_page, "see"),
    page_route("/operations/journal", verify_journal, "see", method="POST"),
    page_route("/operations/journal/anchors", anchors_file, "see"),
]
